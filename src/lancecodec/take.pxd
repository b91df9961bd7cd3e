"""Columns from which rows can be taken; declarations for the other modules."""

cimport cython
from libc.stdint cimport int64_t

from lancecodec.take_pages cimport lc_take_page


@cython.final
cdef class ColumnTaker:
    cdef const int64_t *firsts
    cdef int64_t *memory
    cdef int64_t count
    cdef const lc_take_page **known
    cdef dict pages
    cdef object open_page
    cdef readonly int64_t width
    cdef bint is_open(self, int64_t number)
    cdef const lc_take_page *page(self, int64_t number) except? NULL
    cdef int64_t page_at(self, int64_t row)
    cdef int64_t pages_of(self, int64_t start, int64_t stop)
