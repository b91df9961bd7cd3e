"""Offsets of lists and binaries as Lance 2.0 stores them: one u64 end per value, with an adjustment added for nulls."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, readable, writable

from lancecodec.errors import CodecError, OffsetOverflowError

cdef extern from "kernels/offsets.h" nogil:
    int LC_OFFSETS_PAST_END, LC_OFFSETS_DECREASE, LC_OFFSETS_OVERFLOW, LC_OFFSETS_ADJUSTMENT
    ctypedef struct lc_ends_state:
        uint64_t adjustment
        uint64_t limit
        uint64_t first
        uint64_t previous
        int64_t nulls
    int lc_offsets_decode(const uint8_t *raw, int64_t start, int64_t stop, int wide, uint8_t *out, uint8_t *validity,
                          lc_ends_state *state)
    int lc_offsets_encode(const uint8_t *offsets, int wide, int64_t n, const uint8_t *validity, int64_t bit,
                          uint64_t base, uint64_t adjustment, uint8_t *out)


def decode(raw, int64_t start, int64_t stop, uint64_t adjustment, uint64_t limit, bint wide, offsets, validity):
    """Decode a range of values into Arrow offsets that begin at 0.

    Parameters
    ----------
    raw
        Little-endian u64 ends of values 0, 1, ... of the page.
    start, stop
        Range ``[start, stop)`` of values.
    adjustment
        Number that was added to the end of a null, above `limit`.
    limit
        Number of items that the page covers.
    wide
        Whether the offsets written have 64 bits.
    offsets
        Output of ``stop - start + 1`` offsets of 32 bits, or 64 if `wide`.
    validity
        Output bitmap of ``ceil((stop - start) / 8)`` bytes. Unused bits of the last byte become 0.

    Returns
    -------
    first : int
        First item of the range.
    last : int
        Item behind the last one of the range.
    null_count : int
        Number of nulls.

    Raises
    ------
    CodecError
        Ends decrease or exceed `limit`, or a buffer is too small.
    OffsetOverflowError
        The items do not fit 32-bit offsets.
    """
    cdef ByteView ends = readable(raw), target = writable(offsets), bits = writable(validity)
    cdef lc_ends_state state
    cdef int problem
    cdef int64_t n
    if start < 0 or stop < start or stop > ends.size // 8:
        raise CodecError(f"offsets of {ends.size} bytes do not hold values {start} to {stop}")
    n = stop - start
    if target.size // (8 if wide else 4) < n + 1 or bits.size < (n + 7) // 8:
        raise CodecError(f"output is too small for the offsets and validity of {n} values")
    if limit > <uint64_t>INT64_MAX:
        raise CodecError(f"the page claims {limit} items, which is out of range")
    if n > 0 and adjustment <= limit:
        raise CodecError(f"null adjustment {adjustment} is not above the number of items, {limit}")
    state.adjustment, state.limit = adjustment, limit
    with nogil:
        problem = lc_offsets_decode(ends.data, start, stop, wide, target.data, bits.data, &state)
    if problem == LC_OFFSETS_PAST_END:
        raise CodecError(f"an offset exceeds the {limit} items of the page")
    if problem == LC_OFFSETS_DECREASE:
        raise CodecError("offsets decrease")
    if problem == LC_OFFSETS_OVERFLOW:
        raise OffsetOverflowError(f"values {start} to {stop} span more than 2**31 - 1 items")
    return state.first, state.previous, state.nulls


def encode(offsets, bint wide, int64_t length, validity, int64_t bit, uint64_t base, uint64_t adjustment, out):
    """Encode Arrow offsets as u64 ends, relative to the first offset and shifted by `base`.

    Parameters
    ----------
    offsets
        ``length + 1`` ascending offsets of 32 bits, or 64 if `wide`. The first one need not be 0.
    wide
        Whether the offsets have 64 bits.
    length
        Number of values.
    validity
        Bitmap, or None if no value is null.
    bit
        Bit of `validity` that belongs to the first value.
    base
        Number of items in front of the first value in the page.
    adjustment
        Number to add to the end of a null. It must be above the last end.
    out
        Output of at least ``8 * length`` bytes.

    Raises
    ------
    CodecError
        Offsets decrease or are negative, a buffer is too small, or `adjustment` is not above the last end.
    """
    cdef ByteView source = readable(offsets), target = writable(out), bits
    cdef const uint8_t *valid = NULL
    cdef int problem
    if length < 0 or source.size // (8 if wide else 4) <= length or target.size // 8 < length:
        raise CodecError(f"buffers are too small for the offsets of {length} values")
    if validity is not None:
        bits = readable(validity)
        valid = bits.data
        if bit < 0 or bit > bits.size * 8 or length > bits.size * 8 - bit:
            raise CodecError(f"validity of {bits.size} bytes does not hold {length} bits from bit {bit} on")
    if length == 0:
        return
    with nogil:
        problem = lc_offsets_encode(source.data, wide, length, valid, bit, base, adjustment, target.data)
    if problem == LC_OFFSETS_DECREASE:
        raise CodecError("offsets decrease or are negative")
    if problem == LC_OFFSETS_OVERFLOW:
        raise CodecError(f"ends from {base} on do not fit 63 bits")
    if problem == LC_OFFSETS_ADJUSTMENT:
        raise CodecError(f"null adjustment {adjustment} is not above the last end")
