"""Exceptions for the problem numbers of kernels; declarations for the other modules."""

cdef extern from "kernels/chunk.h" nogil:
    ctypedef struct lc_bytes:
        const unsigned char *data
        long long size
    int LC_OK, LC_BAD_SIZE, LC_BAD_WIDTH, LC_BAD_COUNT, LC_BAD_OFFSETS, LC_BAD_RUN, LC_BAD_CODE, LC_BAD_TABLE
    int LC_BAD_INDEX, LC_BAD_LEVEL, LC_BAD_HEADER, LC_BAD_ROW, LC_NO_SPACE, LC_NO_MEMORY

cdef int fail(int problem, str what) except -1
