"""List and binary offsets as Lance 2.0 stores them: one u64 end per value, a null has an adjustment added."""

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
        raise CodecError(f"the page claims {limit} items")
    if n > 0 and adjustment <= limit:
        raise CodecError(f"null adjustment {adjustment} is not above the number of items, {limit}")
    state.adjustment, state.limit = adjustment, limit
    with nogil:
        problem = lc_offsets_decode(ends.data, start, stop, wide, target.data, bits.data, &state)
    if problem == LC_OFFSETS_PAST_END:
        raise CodecError(f"an offset points past the {limit} items of the page")
    if problem == LC_OFFSETS_DECREASE:
        raise CodecError("offsets decrease")
    if problem == LC_OFFSETS_OVERFLOW:
        raise OffsetOverflowError(f"values {start} to {stop} span more than 2**31 - 1 items")
    return state.first, state.previous, state.nulls


def encode(offsets, bint wide, int64_t length, validity, int64_t bit, uint64_t base, uint64_t adjustment, out):
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
