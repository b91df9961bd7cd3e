"""Sequences of version 2.3: ranges, deltas and dictionaries of integers, and the frames of nested sequences.

Sequences are offsets, positions and counts: unsigned integers of 32 or 64 bits (`bits`), little-endian. Other widths,
and values that do not fit them, raise `CodecError`.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.problems cimport LC_BAD_COUNT, fail

from lancecodec.errors import CodecError

cdef extern from "kernels/sequences.h" nogil:
    uint64_t lc_sequence_top(int64_t bits)
    int lc_range_fill(int64_t bits, uint64_t start, uint64_t step, int64_t n, uint8_t *out)
    int lc_delta_expand(int64_t bits, uint64_t base, const uint8_t *deltas, int64_t n, uint8_t *out)
    int lc_delta_take(int64_t bits, const uint8_t *values, int64_t n, uint8_t *out)
    uint64_t lc_range_step(int64_t bits, const uint8_t *values, int64_t n)
    int lc_sequence_dictionary(int64_t bits, const uint8_t *indices, int64_t n, const uint8_t *items, int64_t entries,
                               uint8_t *out)

cdef int64_t MAX_ITEMS = 4096


cdef int64_t width_of(int64_t bits) except -1:
    if bits != 32 and bits != 64:
        raise CodecError(f"sequences do not support values of {bits} bits, only of 32 and 64")
    return bits // 8


cdef int check_output(int64_t size, int64_t n, int64_t bits) except -1:
    if n < 0 or size // width_of(bits) < n:
        raise CodecError(f"output of {size} bytes is too small for {n} values of {bits} bits")
    return 0


cdef int64_t values_of(int64_t size, int64_t bits) except -1:
    if size % width_of(bits):
        raise CodecError(f"{size} bytes are not a whole number of values of {bits} bits")
    return size // width_of(bits)


def decode_range(uint64_t start, uint64_t step, int64_t n, int64_t bits, out):
    """Write the values of a range: ``start + i * step`` for i from 0 to ``n - 1``.

    Parameters
    ----------
    start
        First value.
    step
        Difference between values, positive.
    n
        Number of values, at least 2.
    bits
        Size of a value: 32 or 64.
    out
        Output of at least ``n * bits / 8`` bytes.

    Raises
    ------
    CodecError
        An argument is out of range, a value does not fit `bits`, or `out` is too small.
    """
    cdef ByteView target = writable(out)
    cdef int problem
    check_output(target.size, n, bits)
    if n < 2 or step == 0:
        raise CodecError(f"a range of {n} values with step {step}: at least 2 values and a positive step are needed")
    with nogil:
        problem = lc_range_fill(bits, start, step, n, target.data)
    if problem == LC_BAD_COUNT:
        raise CodecError(f"a range of {n} values from {start} on with step {step} does not fit {bits} bits")
    if problem:
        fail(problem, "range")


def range_of(values, int64_t bits):
    """Check whether values are a range.

    Parameters
    ----------
    values
        Values of `bits` bits.
    bits
        Size of a value: 32 or 64.

    Returns
    -------
    tuple of int or None
        Start and step, or None if the values are not a range.

    Raises
    ------
    CodecError
        `values` is not a whole number of values.
    """
    cdef ByteView source = readable(values)
    cdef int64_t n = values_of(source.size, bits)
    cdef uint64_t step, start
    with nogil:
        step = lc_range_step(bits, source.data, n)
    if step == 0:
        return None
    start = int.from_bytes(source.data[:bits // 8], "little")
    return start, step


def decode_delta(uint64_t base, deltas, int64_t bits, out):
    """Write a first value and its sums with the deltas that follow.

    Parameters
    ----------
    base
        First value.
    deltas
        n - 1 deltas of `bits` bits, at least one.
    bits
        Size of a value: 32 or 64.
    out
        Output of at least ``n * bits / 8`` bytes.

    Raises
    ------
    CodecError
        There are no deltas, a value does not fit `bits`, or `out` is too small.
    """
    cdef ByteView source = readable(deltas), target = writable(out)
    cdef int64_t n = values_of(source.size, bits) + 1
    cdef int problem
    check_output(target.size, n, bits)
    if n < 2 or base > lc_sequence_top(bits):
        raise CodecError(f"deltas of {n} values of {bits} bits from {base} on: at least 2 values that fit are needed")
    with nogil:
        problem = lc_delta_expand(bits, base, source.data, n, target.data)
    if problem == LC_BAD_COUNT:
        raise CodecError(f"the sum of {n - 1} deltas from {base} on does not fit {bits} bits")
    if problem:
        fail(problem, "delta")


def encode_delta(values, int64_t bits, out):
    """Write the differences of ascending values.

    Parameters
    ----------
    values
        n values of `bits` bits, at least 2, that do not descend.
    bits
        Size of a value: 32 or 64.
    out
        Output of at least ``(n - 1) * bits / 8`` bytes.

    Returns
    -------
    int
        The first value.

    Raises
    ------
    CodecError
        There are fewer than 2 values, the values descend, or `out` is too small.
    """
    cdef ByteView source = readable(values), target = writable(out)
    cdef int64_t n = values_of(source.size, bits)
    cdef int problem
    if n < 2:
        raise CodecError(f"{n} values do not have deltas, at least 2 are needed")
    check_output(target.size, n - 1, bits)
    with nogil:
        problem = lc_delta_take(bits, source.data, n, target.data)
    if problem == LC_BAD_COUNT:
        raise CodecError("descending values cannot be encoded as deltas")
    if problem:
        fail(problem, "delta")
    return int.from_bytes(source.data[:bits // 8], "little")


def decode_dictionary(indices, items, int64_t bits, out):
    """Write the item of each dictionary index.

    Parameters
    ----------
    indices
        n indices of 32 bits.
    items
        1 to 4096 items of `bits` bits.
    bits
        Size of an item: 32 or 64.
    out
        Output of at least ``n * bits / 8`` bytes.

    Raises
    ------
    CodecError
        An index has no item, the number of items is out of range, or `out` is too small.
    """
    cdef ByteView source = readable(indices), entries = readable(items), target = writable(out)
    cdef int64_t n = values_of(source.size, 32), count = values_of(entries.size, bits)
    cdef int problem
    check_output(target.size, n, bits)
    if count < 1 or count > MAX_ITEMS:
        raise CodecError(f"a sequence dictionary must have 1 to {MAX_ITEMS} items, not {count}")
    with nogil:
        problem = lc_sequence_dictionary(bits, source.data, n, entries.data, count, target.data)
    if problem:
        fail(problem, f"sequence dictionary of {count} items")


def rle_frame(data):
    """Split the payload of a run-length sequence: u64 size of the run values, run values, run lengths.

    Parameters
    ----------
    data
        The payload.

    Returns
    -------
    tuple of int
        Byte offsets at which the run values begin, at which they end and the run lengths begin, and at which those end.

    Raises
    ------
    CodecError
        The payload is too short.
    """
    cdef ByteView source = readable(data)
    if source.size < 8:
        raise CodecError(f"a run-length frame of {source.size} bytes has no size in front")
    values = int.from_bytes(source.data[:8], "little")
    if values > source.size - 8:
        raise CodecError(f"a run-length frame of {source.size} bytes claims {values} bytes of values")
    return 8, 8 + values, source.size


def dictionary_frame(data):
    """Split the payload of a dictionary sequence: u64 sizes of the indices and of the items, indices, items.

    Parameters
    ----------
    data
        The payload.

    Returns
    -------
    tuple of int
        Byte offsets at which the indices begin, at which they end and the items begin, and at which those end.

    Raises
    ------
    CodecError
        The sizes do not match the payload.
    """
    cdef ByteView source = readable(data)
    if source.size < 16:
        raise CodecError(f"a dictionary frame of {source.size} bytes has no sizes in front")
    indices = int.from_bytes(source.data[:8], "little")
    items = int.from_bytes(source.data[8:16], "little")
    if indices + items != source.size - 16:
        raise CodecError(f"a dictionary frame of {source.size} bytes claims {indices} bytes of indices and {items} of "
                         f"items")
    return 16, 16 + indices, source.size


def runs_of_constant(int64_t length, int64_t n):
    """Compute the number of runs of equal length that make up n values.

    Parameters
    ----------
    length
        Length of a run, at least 1.
    n
        Number of values.

    Returns
    -------
    int
        Number of runs.

    Raises
    ------
    CodecError
        The runs do not make up exactly n values.
    """
    if length < 1 or n < 0 or n % length:
        raise CodecError(f"runs of {length} values do not make up {n} values")
    return n // length


def runs_of_range(uint64_t start, uint64_t step, int64_t n):
    """Compute the number of runs of lengths ``start``, ``start + step``, ... that make up n values.

    Parameters
    ----------
    start
        Length of the first run, at least 1.
    step
        Difference between lengths, at least 1.
    n
        Number of values.

    Returns
    -------
    int
        Number of runs.

    Raises
    ------
    CodecError
        The runs do not make up exactly n values.
    """
    if start == 0 or step == 0 or n < 0:
        raise CodecError(f"run lengths {start}, {start} + {step}, ... of {n} values: all must be positive, ascending")
    low, high, first, by = 0, n, int(start), int(step)
    while low < high:
        middle = (low + high) // 2
        if middle * first + by * (middle * (middle - 1) // 2) < n:
            low = middle + 1
        else:
            high = middle
    if low * first + by * (low * (low - 1) // 2) != n:
        raise CodecError(f"run lengths {start}, {start} + {step}, ... do not add up to {n} values")
    return low
