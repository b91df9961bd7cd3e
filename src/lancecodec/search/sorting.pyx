"""Sorting of 64-bit keys, and the places they come from.

The algorithm is radix sort from the least significant digit (Knuth, The Art of Computer Programming, volume 3, section
5.2.5): a pass over the keys for each digit in which they differ.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from lancecodec.buffers cimport ByteView, readable, writable

from lancecodec.errors import CodecError

cdef extern from "kernels/radix_sort.h" nogil:
    ctypedef struct lc_radix:
        pass
    int lc_radix_sort(const uint8_t *keys, int64_t n, lc_radix *radix, uint8_t *sorted, uint32_t *places,
                      uint8_t *other_keys, uint32_t *other_places)


def sort_keys(keys, out, places, other_keys, other_places):
    """Sort keys; equal keys keep their order.

    Parameters
    ----------
    keys
        n unsigned integers of 64 bits, n < 2**32.
    out
        Output of n keys, in order.
    places
        Output of n unsigned integers of 32 bits: where each key was.
    other_keys, other_places
        Scratch of the same sizes.

    Returns
    -------
    bool
        False if the keys were in order already. Then nothing is written.

    Raises
    ------
    CodecError
        A size is wrong.
    MemoryError
        There is no memory for the counters.
    """
    cdef ByteView source = readable(keys), sorted_keys = writable(out), found = writable(places)
    cdef ByteView more_keys = writable(other_keys), more_places = writable(other_places)
    cdef int64_t n = source.size // 8
    cdef lc_radix *radix
    cdef int moved
    if source.size % 8 or n >= 1 << 32:
        raise CodecError(f"{source.size} bytes are not a number of 64-bit keys below 2**32")
    if sorted_keys.size != 8 * n or more_keys.size != 8 * n or found.size != 4 * n or more_places.size != 4 * n:
        raise CodecError(f"the outputs and the scratch do not have the sizes of {n} keys and places")
    if <size_t>found.data % 4 or <size_t>more_places.data % 4:
        raise CodecError("places are not aligned to 4 bytes")
    radix = <lc_radix *>malloc(sizeof(lc_radix))
    if radix == NULL:
        raise MemoryError
    with nogil:
        moved = lc_radix_sort(source.data, n, radix, sorted_keys.data, <uint32_t *>found.data,
                              more_keys.data, <uint32_t *>more_places.data)
        free(radix)
    return bool(moved)
