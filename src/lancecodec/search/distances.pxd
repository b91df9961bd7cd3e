"""Coarse codes of vectors; declarations for the other modules."""

from libc.stdint cimport int64_t, uint8_t

cdef extern from "kernels/coarse.h" nogil:
    ctypedef struct lc_coarse:
        float start, step
    int lc_coarse_make(const uint8_t *values, int64_t n, int64_t dimension, int element, lc_coarse *c, uint8_t *codes,
                       float *errors)

cdef class Coarse:
    cdef lc_coarse made
    cdef uint8_t *codes
    cdef float *errors
    cdef int64_t n, dimension, size
    cdef int element
    cdef void forget(self) noexcept
