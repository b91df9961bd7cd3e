"""Gathers of values by index into buffers of the caller."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable

from lancecodec.errors import CodecError

cdef extern from "kernels/gather.h" nogil:
    int lc_gather_u8(const uint8_t *src, uint64_t count, int64_t width, const uint8_t *index, int64_t n, uint8_t *out,
                     uint64_t *bad)
    int lc_gather_u16(const uint8_t *src, uint64_t count, int64_t width, const uint8_t *index, int64_t n, uint8_t *out,
                      uint64_t *bad)
    int lc_gather_u32(const uint8_t *src, uint64_t count, int64_t width, const uint8_t *index, int64_t n, uint8_t *out,
                      uint64_t *bad)
    int lc_gather_u64(const uint8_t *src, uint64_t count, int64_t width, const uint8_t *index, int64_t n, uint8_t *out,
                      uint64_t *bad)
    uint16_t lc_load_u16(const uint8_t *p)
    uint32_t lc_load_u32(const uint8_t *p)
    uint64_t lc_load_u64(const uint8_t *p)
    int64_t lc_load_offset(const uint8_t *offsets, int wide, int64_t i)
    void lc_copy_bytes(uint8_t *out, const uint8_t *src, int64_t n)


cdef int64_t count_indices(ByteView indices, int index_width) except -1:
    if index_width not in (1, 2, 4, 8):
        raise CodecError(f"indices of {index_width} bytes are not supported")
    if indices.size % index_width:
        raise CodecError(f"{indices.size} bytes are no whole number of indices of {index_width} bytes")
    return indices.size // index_width


cdef inline uint64_t index_at(const uint8_t *indices, int index_width, int64_t i) noexcept nogil:
    if index_width == 1:
        return indices[i]
    if index_width == 2:
        return lc_load_u16(indices + 2 * i)
    if index_width == 4:
        return lc_load_u32(indices + 4 * i)
    return lc_load_u64(indices + 8 * i)


def fixed(values, int64_t width, indices, int index_width, out):
    cdef ByteView source = readable(values), index = readable(indices), target = writable(out)
    cdef int64_t n = count_indices(index, index_width)
    cdef uint64_t count, bad = 0
    cdef bint good
    if width < 0:
        raise CodecError(f"value width {width} is negative")
    if width == 0:
        return
    if target.size // width < n:
        raise CodecError(f"output of {target.size} bytes is too small for {n} values of {width} bytes")
    count = source.size // width
    with nogil:
        if index_width == 1:
            good = lc_gather_u8(source.data, count, width, index.data, n, target.data, &bad)
        elif index_width == 2:
            good = lc_gather_u16(source.data, count, width, index.data, n, target.data, &bad)
        elif index_width == 4:
            good = lc_gather_u32(source.data, count, width, index.data, n, target.data, &bad)
        else:
            good = lc_gather_u64(source.data, count, width, index.data, n, target.data, &bad)
    if not good:
        raise CodecError(f"index {bad} is outside {count} values")


def variable_offsets(const int64_t[::1] value_offsets not None, indices, int index_width, int64_t[::1] out not None):
    cdef ByteView index = readable(indices)
    cdef int64_t n = count_indices(index, index_width), count = value_offsets.shape[0] - 1
    cdef int64_t i, begin, end, total = 0
    cdef uint64_t k = 0
    cdef bint broken = False, outside = False
    if out.shape[0] < n + 1:
        raise CodecError(f"output of {out.shape[0]} offsets is too small for {n} values")
    check_aligned(&value_offsets[0])
    check_aligned(&out[0])
    out[0] = 0
    with nogil:
        for i in range(n):
            k = index_at(index.data, index_width, i)
            if count <= 0 or k >= <uint64_t>count:
                outside = True
                break
            begin, end = value_offsets[k], value_offsets[k + 1]
            if begin < 0 or end < begin or end - begin > INT64_MAX - total:
                broken = True
                break
            total += end - begin
            out[i + 1] = total
    if outside:
        raise CodecError(f"index {k} is outside {max(count, 0)} values")
    if broken:
        raise CodecError("value offsets decrease, are negative, or add up to 2**63 or more")
    return total


def variable(values, const int64_t[::1] value_offsets not None, indices, int index_width,
             const int64_t[::1] out_offsets not None, out):
    cdef ByteView source = readable(values), index = readable(indices), target = writable(out)
    cdef int64_t n = count_indices(index, index_width), count = value_offsets.shape[0] - 1
    cdef int64_t i, begin, end, at
    cdef uint64_t k = 0
    cdef bint broken = False, outside = False
    if out_offsets.shape[0] < n + 1:
        raise CodecError(f"{out_offsets.shape[0]} output offsets are too few for {n} values")
    check_aligned(&value_offsets[0])
    check_aligned(&out_offsets[0])
    with nogil:
        for i in range(n):
            k = index_at(index.data, index_width, i)
            if count <= 0 or k >= <uint64_t>count:
                outside = True
                break
            begin, end, at = value_offsets[k], value_offsets[k + 1], out_offsets[i]
            if begin < 0 or end < begin or end > source.size or at < 0 or at > target.size \
                    or end - begin > target.size - at:
                broken = True
                break
            lc_copy_bytes(target.data + at, source.data + begin, end - begin)
    if outside:
        raise CodecError(f"index {k} is outside {max(count, 0)} values")
    if broken:
        raise CodecError("a value lies outside its buffer")


def expand_ranges(const int64_t[::1] begins not None, offsets, bint wide, int64_t[::1] out not None):
    cdef ByteView ends = readable(offsets)
    cdef int64_t n = begins.shape[0], i, j, low, high
    cdef uint64_t begin
    cdef bint broken = False
    if ends.size // (8 if wide else 4) < n + 1:
        raise CodecError(f"offsets of {ends.size} bytes are too few for {n} ranges")
    check_aligned(&begins[0])
    check_aligned(&out[0])
    with nogil:
        for i in range(n):
            low, high = lc_load_offset(ends.data, wide, i), lc_load_offset(ends.data, wide, i + 1)
            if low < 0 or high < low or high > out.shape[0]:
                broken = True
                break
            begin = <uint64_t>begins[i]
            for j in range(low, high):
                out[j] = <int64_t>(begin + <uint64_t>(j - low))
    if broken:
        raise CodecError("a range lies outside the output")
