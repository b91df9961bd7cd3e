"""Chunks of a mini-block page; declarations for the modules that decode their values and levels."""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView
from lancecodec.problems cimport lc_bytes


cdef extern from "kernels/miniblock.h" nogil:
    int LC_CHUNK_MISSING, LC_CHUNK_WRAPPED, LC_CHUNK_ITEM, LC_CHUNK_LOG, LC_CHUNK_SUM
    int64_t LC_CHUNK_MAX_BUFFERS, LC_CHUNK_MAX_VALUES
    ctypedef struct lc_chunk_table:
        int64_t count
        int64_t items
        int64_t largest
        int64_t log
        const int64_t *starts
        const int64_t *firsts
    ctypedef struct lc_chunks:
        lc_chunk_table table
        const uint8_t **data
        const lc_bytes *plain
        int64_t buffers
        int repetition
        int definition
        int large
    ctypedef struct lc_chunk:
        int64_t levels
        lc_bytes repetition
        lc_bytes definition
        lc_bytes *values
    int lc_chunk_table_parse(const uint8_t *words, int large, int64_t size, lc_chunk_table *table, int64_t *starts,
                             int64_t *firsts, int64_t *where)
    int64_t lc_chunk_find(const lc_chunk_table *table, int64_t item)
    int lc_chunk_parts(const lc_chunks *chunks, int64_t i, lc_chunk *chunk)


cdef class ChunkTable:
    cdef lc_chunk_table table
    cdef bytes start_bytes
    cdef bytes first_bytes
    cdef readonly bint large


cdef class Chunks:
    cdef lc_chunks chunks
    cdef const uint8_t **data
    cdef lc_bytes *plain
    cdef readonly ChunkTable table
    cdef ByteView view
    cdef list others
    cdef int keep(self, ByteView view) except -1
    cdef int check_chunk(self, int64_t chunk) except -1
    cdef int open(self, int64_t chunk, lc_chunk *opened) except -1
    cdef int check_range(self, int64_t start, int64_t stop) except -1
    cdef int fail(self, int problem, int64_t where, str what) except -1
