"""Split-block Bloom filters of Parquet's form, and the XXH64 hashes with seed 0 of the values in them.

A filter is a number of blocks of 8 words of 32 bits. A value sets one bit in each word of one block.
"""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/xxh64.h" nogil:
    void lc_xxh_fixed(const uint8_t *values, int64_t width, int64_t n, uint8_t *hashes)
    int lc_xxh_variable(lc_bytes data, const uint8_t *offsets, int wide, int64_t n, uint8_t *hashes)

cdef extern from "kernels/bloom.h" nogil:
    int LC_BLOOM_BLOCK
    int lc_bloom_insert(const uint8_t *hashes, int64_t n, const int64_t *stops, int64_t filters, int64_t size,
                        uint8_t *out)
    int lc_bloom_probe(lc_bytes data, const uint8_t *offsets, int wide, int64_t n, const uint8_t *hashes,
                       int64_t count, uint8_t *out)


cdef int64_t count_hashes(ByteView hashes) except -1:
    if hashes.size % 8:
        raise CodecError(f"{hashes.size} bytes are not a whole number of hashes of 8 bytes")
    return hashes.size // 8


cdef int64_t count_strings(ByteView offsets, bint wide) except -1:
    cdef int64_t width = 8 if wide else 4
    if offsets.size < width or offsets.size % width:
        raise CodecError(f"{offsets.size} bytes are not a whole number of offsets of {width} bytes, at least one")
    return offsets.size // width - 1


def hash_fixed(values, int64_t width, out):
    """Compute the XXH64 hash of each value of a fixed width.

    Parameters
    ----------
    values
        n values of `width` bytes.
    width
        Size of a value in bytes, at least 1.
    out
        Output of n unsigned integers of 64 bits.

    Raises
    ------
    CodecError
        `values` is not a whole number of values, or `out` has another size.
    """
    cdef ByteView source = readable(values), target = writable(out)
    cdef int64_t n
    if width < 1 or source.size % width:
        raise CodecError(f"{source.size} bytes are not a whole number of values of {width} bytes")
    n = source.size // width
    if count_hashes(target) != n:
        raise CodecError(f"{target.size} bytes are not the size of {n} hashes")
    with nogil:
        lc_xxh_fixed(source.data, width, n, target.data)


def hash_variable(data, offsets, bint wide, out):
    """Compute the XXH64 hash of each value of variable width.

    Parameters
    ----------
    data
        Concatenated values.
    offsets
        n + 1 ascending offsets of 32 bits, or 64 if `wide`, into `data`.
    wide
        Whether the offsets have 64 bits.
    out
        Output of n unsigned integers of 64 bits.

    Raises
    ------
    CodecError
        An offset decreases or exceeds the data, or `out` has another size.
    """
    cdef ByteView values = readable(data), ends = readable(offsets), target = writable(out)
    cdef int64_t n = count_strings(ends, wide)
    cdef lc_bytes strings = lc_bytes(values.data, values.size)
    cdef int problem
    if count_hashes(target) != n:
        raise CodecError(f"{target.size} bytes are not the size of {n} hashes")
    with nogil:
        problem = lc_xxh_variable(strings, ends.data, wide, n, target.data)
    if problem != LC_OK:
        fail(problem, "values")


def insert(hashes, int64_t[::1] stops, int64_t size, out):
    """Add hashes to filters: to each filter those between the stop of the filter before and its own.

    Parameters
    ----------
    hashes
        Unsigned integers of 64 bits.
    stops
        Number of hashes up to the end of those of each filter, ascending.
    size
        Bytes of a filter: whole blocks, at least one.
    out
        The filters back to back. Bits are set in what they hold already.

    Raises
    ------
    CodecError
        A stop decreases or exceeds the hashes, or a size does not fit.
    """
    cdef ByteView source = readable(hashes), target = writable(out)
    cdef int64_t n = count_hashes(source), filters = stops.shape[0]
    cdef const int64_t *ends = &stops[0] if filters else NULL
    cdef int problem
    check_aligned(ends)
    check_filter(size)
    if target.size % size or target.size // size != filters:
        raise CodecError(f"{target.size} bytes are not the size of {filters} filters of {size} bytes")
    with nogil:
        problem = lc_bloom_insert(source.data, n, ends, filters, size, target.data)
    if problem != LC_OK:
        fail(problem, "stops of the filters")


cdef int check_filter(int64_t size) except -1:
    if size < LC_BLOOM_BLOCK or size % LC_BLOOM_BLOCK or size // LC_BLOOM_BLOCK > 0xFFFFFFFF:
        raise CodecError(f"a filter of {size} bytes is not a possible number of blocks of {LC_BLOOM_BLOCK} bytes")
    return 0


def probe(data, offsets, bint wide, hashes, out):
    """Note for each filter whether it may have one of some hashes.

    Parameters
    ----------
    data
        Concatenated filters, of any sizes.
    offsets
        n + 1 ascending offsets of 32 bits, or 64 if `wide`, into `data`.
    wide
        Whether the offsets have 64 bits.
    hashes
        Unsigned integers of 64 bits.
    out
        Output of n bytes, 0 or 1.

    Raises
    ------
    CodecError
        An offset decreases or exceeds the data, a filter is empty or not a number of whole blocks, or `out` has
        another size.
    """
    cdef ByteView filters = readable(data), ends = readable(offsets), source = readable(hashes), target = writable(out)
    cdef int64_t n = count_strings(ends, wide), count = count_hashes(source)
    cdef lc_bytes bytes_of_filters = lc_bytes(filters.data, filters.size)
    cdef int problem
    if target.size != n:
        raise CodecError(f"{target.size} bytes are not one for each of {n} filters")
    with nogil:
        problem = lc_bloom_probe(bytes_of_filters, ends.data, wide, n, source.data, count, target.data)
    if problem != LC_OK:
        fail(problem, "filters")
