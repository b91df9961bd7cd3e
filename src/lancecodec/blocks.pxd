"""Blocks of files in memory; declarations for the modules that read from them."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef extern from "kernels/blocks.h" nogil:
    ctypedef struct lc_blocks:
        uint8_t *base
        int64_t size
        int64_t extents
        uint64_t *loaded
        int32_t *pins
        uint8_t *used
        void *owner
    ctypedef struct lc_blocks_run:
        lc_blocks *blocks
        int64_t begin
        int64_t end
    ctypedef struct lc_needs:
        lc_blocks_run *runs
        int64_t count
        int64_t pinned
    int lc_need(lc_needs *needs, lc_blocks *blocks, const uint8_t *p, int64_t n)
    void lc_needs_merge(lc_needs *needs)
    void lc_needs_close(lc_needs *needs)


cdef class FileBlocks:
    cdef lc_blocks blocks
    cdef int64_t serial
    cdef bint enlarged
    cdef object lend
    cdef object give_back
    cdef object fetch
    cdef object __weakref__
    cdef int load_runs(self, const lc_blocks_run *runs, int64_t n) except -1
    cdef int read_runs(self, const lc_blocks_run *runs, int64_t n) except -1
    cdef int fetch_runs(self, const lc_blocks_run *runs, int64_t n) except -1
    cdef int record(self, const lc_blocks_run *runs, int64_t n) except -1


cdef class Held:
    cdef lc_needs needs
    cdef list owners


cdef Held new_held(FileBlocks blocks)
cdef int load_needs(lc_needs *needs) except -1
cdef list needed_ranges(lc_needs *needs)
