"""Dictionaries from byte strings to numbers as finite state transducers (fst format, version 3), and their checksum."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t

from lancecodec.buffers cimport ByteView, readable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/crc32c.h" nogil:
    ctypedef struct lc_crc32c_tables:
        pass
    void lc_crc32c_fill(lc_crc32c_tables *t)
    uint32_t lc_crc32c(const lc_crc32c_tables *t, lc_bytes data)

cdef extern from "kernels/automaton.h" nogil:
    ctypedef struct lc_fst:
        uint8_t *data
        int64_t size
    int lc_fst_begin(lc_fst *f)
    int lc_fst_build(lc_fst *f, lc_bytes keys, const uint8_t *offsets, const uint8_t *numbers, int64_t n)
    void lc_fst_close(lc_fst *f)


def crc32c(data):
    """Return the CRC-32C checksum of bytes.

    Parameters
    ----------
    data
        Any bytes.

    Returns
    -------
    int
    """
    cdef ByteView source = readable(data)
    cdef lc_crc32c_tables tables
    cdef uint32_t found
    with nogil:
        lc_crc32c_fill(&tables)
        found = lc_crc32c(&tables, lc_bytes(source.data, source.size))
    return found


def write_fst(keys, offsets, numbers):
    """Encode a dictionary.

    The algorithm is that of Daciuk, Mihov, Watson and Watson ("Incremental construction of minimal acyclic finite-state
    automata", 2000), with outputs as in Mihov and Maurel ("Direct construction of minimal acyclic subsequential
    transducers", 2001).

    Parameters
    ----------
    keys
        Concatenated keys.
    offsets
        n + 1 ascending offsets of 64 bits into `keys`; the keys are distinct and ascend.
    numbers
        n unsigned numbers of 64 bits.

    Returns
    -------
    bytes

    Raises
    ------
    CodecError
        A size is wrong, an offset decreases or exceeds the keys, or the keys are not in order.
    MemoryError
        There is not enough memory.
    """
    cdef ByteView source = readable(keys), places = readable(offsets), values = readable(numbers)
    cdef int64_t n = values.size // 8
    cdef lc_fst made
    cdef int problem
    if values.size % 8 or places.size != 8 * (n + 1):
        raise CodecError(f"{places.size} bytes of offsets and {values.size} of numbers are not those of the same keys")
    with nogil:
        problem = lc_fst_begin(&made)
        if problem == LC_OK:
            problem = lc_fst_build(&made, lc_bytes(source.data, source.size), places.data, values.data, n)
    try:
        if problem != LC_OK:
            fail(problem, "a dictionary")
        return PyBytes_FromStringAndSize(<char *>made.data, made.size)
    finally:
        with nogil:
            lc_fst_close(&made)
