"""Run-length encoding: a page of mini-block chunks, one chunk, or one block.

An entry is a value of 8, 16, 32 or 64 bits and the length of its run. Lengths have 8 bits (2.3 also allows 16 and 32);
longer runs need several entries. Values are bit patterns: a floating-point number is treated as an integer of the same
width. In all functions `bits` is the size of a value and `length_bits` the size of a length. Other sizes raise
`CodecError`.
"""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/rle.h" nogil:
    int lc_rle_expand(const uint8_t *values, int64_t value_bits, const uint8_t *lengths, int64_t length_bits,
                      int64_t runs, int64_t n, int strict, uint8_t *out)
    int lc_rle_chunk(const lc_bytes *buffers, int64_t n, int64_t bits, uint8_t *out)
    int lc_rle_block(const uint8_t *src, int64_t size, int64_t n, int64_t bits, uint8_t *out)
    int lc_rle_take(const uint8_t *values, int64_t value_bits, const uint8_t *lengths, int64_t length_bits,
                    int64_t runs, const int64_t *at, int64_t count, uint8_t *out)

cdef extern from "kernels/runs.h" nogil:
    int64_t LC_RUNS_VALUES
    ctypedef struct lc_runs_page:
        const uint8_t *values
        int64_t n
        int64_t length_bytes
        int64_t unit
        int64_t longest
        int64_t max_values
        int64_t max_bytes
        uint8_t *out_values
        uint8_t *out_lengths
        int64_t capacity
    void lc_count_runs(const uint8_t *values, int64_t bits, int64_t n, int64_t cut, int64_t longest, int64_t *runs,
                       int64_t *entries)
    int64_t lc_rle_page(const lc_runs_page *page, int64_t bits, int64_t *entry_ends, int64_t *counts, int64_t chunks)
    int lc_rle_entries_of(const lc_runs_page *page, int64_t bits)

cdef extern from "kernels/bits.h" nogil:
    int64_t lc_find_outside(const int64_t *index, int64_t n, int64_t length)


cdef int check_widths(int64_t bits, int64_t length_bits) except -1:
    if bits not in (8, 16, 32, 64):
        raise CodecError(f"run-length encoding does not support values of {bits} bits, only of 8, 16, 32 and 64")
    if length_bits not in (8, 16, 32):
        raise CodecError(f"run-length encoding does not support lengths of {length_bits} bits, only of 8, 16 and 32")
    return 0


cdef int64_t whole(int64_t size, int64_t bits, str what) except -1:
    if size % (bits // 8):
        raise CodecError(f"{what} of {size} bytes is not a whole number of items of {bits} bits")
    return size // (bits // 8)


cdef int64_t entries_of(ByteView values, int64_t bits, ByteView lengths, int64_t length_bits) except -1:
    cdef int64_t runs = whole(lengths.size, length_bits, "a buffer of run lengths")
    if whole(values.size, bits, "a buffer of run values") != runs:
        raise CodecError(f"{values.size // (bits // 8)} run values have {runs} run lengths")
    return runs


cdef int check_output(int64_t size, int64_t n, int64_t bits) except -1:
    if n < 0 or size // (bits // 8) < n:
        raise CodecError(f"output of {size} bytes is too small for {n} values of {bits} bits")
    return 0


cdef int64_t longest_of(int64_t length_bits):
    return (<int64_t>1 << length_bits) - 1


cdef int check_limits(int64_t max_values, int64_t max_bytes, int64_t unit) except -1:
    if max_values < 64 or max_values > LC_RUNS_VALUES or max_values & (max_values - 1):
        raise ValueError(f"chunks of at most {max_values} values: choose a power of two from 64 to {LC_RUNS_VALUES}")
    if max_bytes < 64 * unit or max_bytes > 1 << 30:
        raise ValueError(f"chunks of at most {max_bytes} bytes: choose from {64 * unit}, for 64 entries, to {1 << 30}")
    return 0


def count(values, int64_t bits, int64_t cut=4096, int64_t length_bits=8):
    """Count the runs of values, and the entries that they need.

    Parameters
    ----------
    values
        Values of `bits` bits.
    bits
        Size of a value.
    cut
        Runs are also cut after every `cut` values, as at the ends of chunks. A multiple of 64, or 0 for never.
    length_bits
        Size of a length.

    Returns
    -------
    runs : int
        Number of runs without any cuts.
    entries : int
        Number of entries, cut every `cut` values and at the maximum length.

    Raises
    ------
    CodecError
        `values` is not a whole number of values.
    ValueError
        `cut` is not a multiple of 64.
    """
    cdef ByteView source = readable(values)
    cdef int64_t n, longest, runs = 0, entries = 0
    check_widths(bits, length_bits)
    n = whole(source.size, bits, "a buffer of values")
    longest = longest_of(length_bits)
    if cut < 0 or cut % 64:
        raise ValueError(f"runs cannot be cut every {cut} values: choose a multiple of 64, or 0 for never")
    with nogil:
        lc_count_runs(source.data, bits, n, cut, longest, &runs, &entries)
    return runs, entries


def encode_bound(int64_t n, int64_t bits, int64_t entries, int64_t length_bits=8, int64_t max_values=4096,
                 int64_t max_bytes=8186):
    """Compute output sizes that are sufficient for `encode`.

    Parameters
    ----------
    n
        Number of values.
    bits
        Size of a value.
    entries
        Number of entries that `count` returned for the same `length_bits`.
    length_bits
        Size of a length.
    max_values, max_bytes
        As for `encode`.

    Returns
    -------
    tuple of int
        Size of the run values in bytes, size of the run lengths in bytes, number of chunks.

    Raises
    ------
    CodecError
        The number of values or entries is out of range.
    ValueError
        `max_values` or `max_bytes` is out of range.
    """
    cdef int64_t unit, smallest = 64, most
    check_widths(bits, length_bits)
    unit = bits // 8 + length_bits // 8
    check_limits(max_values, max_bytes, unit)
    if n < 0 or entries < 0 or n > 1 << 56 or entries > n:
        raise CodecError(f"{n} values cannot have {entries} entries")
    while smallest * 2 <= max_values and smallest * 2 * unit <= max_bytes:
        smallest *= 2
    most = min(n, entries + n // smallest + 1) + max_values // longest_of(length_bits) + 2
    return most * (bits // 8), most * (length_bits // 8), n // smallest + 1


def encode(values, int64_t bits, out_values, out_lengths, int64_t[::1] value_ends not None,
           int64_t[::1] length_ends not None, int64_t[::1] counts not None, int64_t length_bits=8,
           int64_t max_values=4096, int64_t max_bytes=8186):
    """Encode a page as chunks, divided like the chunks of the reference implementation.

    A chunk takes all remaining values if there are at most `max_values` of them and their entries have at most
    `max_bytes` bytes. Otherwise it takes the largest power of two of values for which both are true.

    Parameters
    ----------
    values
        Values of `bits` bits.
    bits
        Size of a value.
    out_values, out_lengths
        Outputs for the run values and run lengths of all chunks, back to back. `encode_bound` computes their sizes.
    value_ends, length_ends
        Output int64 arrays with an entry per chunk: the byte offset of its end in the two outputs.
    counts
        Output int64 array with an entry per chunk: its number of values.
    length_bits
        Size of a length.
    max_values
        Largest number of values in a chunk: a power of two from 64 to 32768.
    max_bytes
        Largest size of the entries of a chunk in bytes, at least the size of 64 entries.

    Returns
    -------
    int
        Number of chunks.

    Raises
    ------
    CodecError
        An output is too small, or `values` is not a whole number of values.
    ValueError
        `max_values` or `max_bytes` is out of range.
    """
    cdef ByteView source = readable(values), runs = writable(out_values), lengths = writable(out_lengths)
    cdef lc_runs_page page
    cdef int64_t i, made, places = min(value_ends.shape[0], length_ends.shape[0], counts.shape[0])
    check_widths(bits, length_bits)
    page.values, page.n = source.data, whole(source.size, bits, "a buffer of values")
    page.length_bytes, page.longest = length_bits // 8, longest_of(length_bits)
    page.unit, page.max_values, page.max_bytes = bits // 8 + length_bits // 8, max_values, max_bytes
    page.out_values, page.out_lengths = runs.data, lengths.data
    page.capacity = min(runs.size // (bits // 8), lengths.size // (length_bits // 8))
    check_limits(max_values, max_bytes, page.unit)
    if page.n == 0:
        return 0
    check_aligned(&value_ends[0])
    check_aligned(&length_ends[0])
    check_aligned(&counts[0])
    with nogil:
        made = lc_rle_page(&page, bits, &value_ends[0], &counts[0], places)
        for i in range(made):
            length_ends[i] = value_ends[i] * page.length_bytes
            value_ends[i] *= bits // 8
    if made < 0:
        raise CodecError(f"output of {page.capacity} entries in {places} chunks is too small; see encode_bound")
    return made


def decode(values, lengths, int64_t n, int64_t bits, out, int64_t length_bits=8, bint strict=False):
    """Decode the entries of one chunk.

    Parameters
    ----------
    values, lengths
        Run values and run lengths, the same number of each.
    n
        Number of values.
    bits
        Size of a value.
    out
        Output of at least ``n * bits / 8`` bytes. Bytes behind the values keep their content.
    length_bits
        Size of a length.
    strict
        Whether the lengths must add up to exactly n. Otherwise they may exceed n, because old releases of the reference
        implementation kept the whole last run of a chunk.

    Raises
    ------
    CodecError
        The buffers are not whole entries or do not match, a length is 0, the lengths do not add up, or `out` is too
        small.
    """
    cdef ByteView runs = readable(values), sizes = readable(lengths), target = writable(out)
    cdef int64_t entries
    cdef int problem
    check_widths(bits, length_bits)
    check_output(target.size, n, bits)
    entries = entries_of(runs, bits, sizes, length_bits)
    with nogil:
        problem = lc_rle_expand(runs.data, bits, sizes.data, length_bits, entries, n, strict, target.data)
    if problem:
        fail(problem, f"run-length encoding of {n} values of {bits} bits in {entries} entries")


def decode_page(values, const int64_t[::1] value_ends not None, lengths, const int64_t[::1] length_ends not None,
                const int64_t[::1] counts not None, int64_t bits, out):
    """Decode a page that `encode` wrote with lengths of 8 bits.

    Parameters
    ----------
    values, lengths
        Run values and run lengths of all chunks, back to back.
    value_ends, length_ends
        int64 arrays with the byte offset of the end of each chunk in `values` and `lengths`.
    counts
        int64 array with the number of values of each chunk.
    bits
        Size of a value.
    out
        Output for all values.

    Returns
    -------
    int
        Number of values.

    Raises
    ------
    CodecError
        A chunk is outside of its buffers or is damaged, the arrays do not match, or `out` is too small.
    """
    cdef ByteView runs = readable(values), sizes = readable(lengths), target = writable(out)
    cdef int64_t i, chunks = counts.shape[0], done = 0, v = 0, s = 0, width
    cdef lc_bytes[2] chunk
    cdef int problem = 0
    check_widths(bits, 8)
    width = bits // 8
    if value_ends.shape[0] != chunks or length_ends.shape[0] != chunks:
        raise CodecError(f"{chunks} chunks have {value_ends.shape[0]} and {length_ends.shape[0]} buffers")
    for i in range(chunks):
        if counts[i] < 0 or counts[i] > target.size // width - done:
            raise CodecError(f"output of {target.size} bytes is too small for the values of chunk {i}")
        if not v <= value_ends[i] <= runs.size or not s <= length_ends[i] <= sizes.size:
            raise CodecError(f"chunk {i} ends before it begins, or after its buffers")
        done, v, s = done + counts[i], value_ends[i], length_ends[i]
    done = v = s = 0
    with nogil:
        for i in range(chunks):
            chunk[0].data, chunk[0].size = runs.data + v, value_ends[i] - v
            chunk[1].data, chunk[1].size = sizes.data + s, length_ends[i] - s
            problem = lc_rle_chunk(chunk, counts[i], bits, target.data + done * width)
            if problem:
                break
            done, v, s = done + counts[i], value_ends[i], length_ends[i]
    if problem:
        fail(problem, f"run-length encoding of {bits} bits, chunk {i}")
    return done


def take(values, lengths, int64_t n, int64_t bits, const int64_t[::1] positions not None, out,
         int64_t length_bits=8):
    """Decode the values at given positions of one chunk, without decoding the others.

    Parameters
    ----------
    values, lengths
        Run values and run lengths, the same number of each.
    n
        Number of values in the chunk.
    bits
        Size of a value.
    positions
        int64 array of positions below `n`, in any order.
    out
        Output with room for a value per position.
    length_bits
        Size of a length.

    Raises
    ------
    CodecError
        A position is outside of the chunk, the buffers are not whole entries or do not match, or `out` is too small.
    """
    cdef ByteView runs = readable(values), sizes = readable(lengths), target = writable(out)
    cdef int64_t entries, wanted = positions.shape[0], bad
    cdef int problem
    check_widths(bits, length_bits)
    check_output(target.size, wanted, bits)
    entries = entries_of(runs, bits, sizes, length_bits)
    check_aligned(&positions[0])
    with nogil:
        bad = lc_find_outside(&positions[0], wanted, max(n, 0))
    if bad >= 0:
        raise CodecError(f"position {positions[bad]} is outside {n} values")
    with nogil:
        problem = lc_rle_take(runs.data, bits, sizes.data, length_bits, entries, &positions[0], wanted, target.data)
    if problem:
        fail(problem, f"run-length encoding of {n} values of {bits} bits in {entries} entries")


def block_size(int64_t entries, int64_t bits):
    """Compute the size of a block.

    Parameters
    ----------
    entries
        Number of entries, as ``count(values, bits, cut=0)`` returns it.
    bits
        Size of a value.

    Returns
    -------
    int
        Size in bytes.

    Raises
    ------
    CodecError
        `entries` is out of range.
    """
    check_widths(bits, 8)
    if entries < 0 or entries > 1 << 56:
        raise CodecError(f"a block of {entries} entries is not supported")
    return 8 + entries * (bits // 8 + 1)


def encode_block(values, int64_t bits, out):
    """Encode values as one block: u64 size of the run values, run values, run lengths of 8 bits.

    Parameters
    ----------
    values
        Values of `bits` bits.
    bits
        Size of a value.
    out
        Output of at least ``block_size(entries, bits)`` bytes.

    Returns
    -------
    int
        Number of bytes written.

    Raises
    ------
    CodecError
        `values` is not a whole number of values, they change during the call, or `out` is too small.
    """
    cdef ByteView source = readable(values), target = writable(out)
    cdef lc_runs_page page
    cdef int64_t runs = 0, entries = 0, size
    cdef int problem
    check_widths(bits, 8)
    page.values, page.n = source.data, whole(source.size, bits, "a buffer of values")
    page.length_bytes, page.longest, page.unit = 1, 255, bits // 8 + 1
    page.max_values = page.max_bytes = 0
    with nogil:
        lc_count_runs(page.values, bits, page.n, 0, 255, &runs, &entries)
    size = block_size(entries, bits)
    if target.size < size:
        raise CodecError(f"output of {target.size} bytes is too small for a block of {size}")
    page.capacity, page.out_values = entries, target.data + 8
    page.out_lengths = page.out_values + entries * (bits // 8)
    for i in range(8):
        target.data[i] = (entries * (bits // 8)) >> (8 * i) & 0xFF
    with nogil:
        problem = lc_rle_entries_of(&page, bits)
    if problem:
        raise CodecError("the values changed while they were encoded")
    return size


def decode_block(data, int64_t n, int64_t bits, out):
    """Decode a block that `encode_block` wrote. The lengths must add up to exactly n.

    Parameters
    ----------
    data
        The block.
    n
        Number of values.
    bits
        Size of a value.
    out
        Output of at least ``n * bits / 8`` bytes.

    Raises
    ------
    CodecError
        The block is damaged, or `out` is too small.
    """
    cdef ByteView source = readable(data), target = writable(out)
    cdef int problem
    check_widths(bits, 8)
    check_output(target.size, n, bits)
    with nogil:
        problem = lc_rle_block(source.data, source.size, n, bits, target.data)
    if problem:
        fail(problem, f"run-length block of {source.size} bytes with {n} values of {bits} bits")
