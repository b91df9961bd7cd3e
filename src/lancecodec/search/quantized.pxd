"""Partitions of vectors and kernels that search them; declarations for the other modules."""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.search.distances cimport lc_coarse

cdef extern from "kernels/partitions.h" nogil:
    int LC_STORED_FLAT, LC_STORED_PRODUCT, LC_STORED_SCALAR, LC_STORED_RABIT, LC_STORAGES, LC_DOT, LC_VECTOR_BLOCK
    ctypedef struct lc_vectors:
        const uint8_t *values
        int64_t dimension
        int element
        const uint8_t *rows
        int64_t n
    ctypedef struct lc_queries:
        const uint8_t *values
        int64_t n
        int metric
    ctypedef struct lc_candidates:
        int64_t n
    ctypedef struct lc_nearest:
        lc_candidates *heaps
        bint has_lowest, has_below
        float lowest, below
    ctypedef struct lc_partition:
        const uint8_t *codes
        const uint8_t *ids
        const uint8_t *addresses
        const uint8_t *extra
        const uint8_t *add
        const uint8_t *scale
        const uint8_t *error
        const uint8_t *add_all
        const uint8_t *scale_all
        int64_t n
        const lc_coarse *coarse
    ctypedef struct lc_stored:
        int storage, element, metric, bits, raw, by_column
        int64_t dimension, parts, count
        const uint8_t *codebook
        const uint8_t *centroids
        const uint8_t *squares
        float start, step
        lc_partition *partitions
    ctypedef struct lc_probe:
        const uint8_t *vector
        const uint8_t *numbers
        const uint8_t *distances
        int64_t probes
        int effort
        const uint8_t *fragments
        const uint8_t *starts
        const uint8_t *sizes
        int64_t n_fragments
        const uint8_t *allowed
    int64_t lc_element_width(int element)
    double lc_query_length(const lc_queries *q, int64_t k, int64_t dimension, int element)
    void lc_distances(const lc_vectors *v, int64_t first, int64_t stop, const lc_queries *q, const double *lengths,
                      float *out, int64_t apart)
    int lc_nearest_open(lc_nearest *s, int64_t queries, int64_t k)
    void lc_nearest_close(lc_nearest *s)
    void lc_nearest_drain(lc_nearest *s, int64_t query, uint8_t *distances, uint8_t *ids, uint8_t *addresses)
    int lc_least_distances(const uint8_t *distances, int64_t n, int64_t k, uint8_t *numbers, int64_t *count)
    void lc_coarse_set(lc_partition *p, const lc_coarse *coarse)
    int lc_stored_search(const lc_stored *s, const lc_probe *q, lc_nearest *best)

cdef class Partitions:
    cdef lc_stored stored
    cdef list kept
    cdef dict owners
    cdef int64_t row_bytes(self)
    cdef int run(self, const lc_probe *probe, lc_nearest *best, int64_t ef) noexcept nogil

cdef extern from "kernels/rabit.h" nogil:
    void lc_rabit_rotate(uint8_t *values, int64_t n, int64_t dimension, const uint8_t *signs)
    void lc_rabit_extra(const uint8_t *values, int64_t n, int64_t dimension, int bits, double first, uint8_t *codes)
