"""Memory of the caller; declarations for the other modules."""

from libc.stdint cimport int64_t, uint8_t


cdef class ByteView:
    cdef Py_buffer buffer
    cdef bint held
    cdef uint8_t *data
    cdef int64_t size


cdef ByteView readable(object owner)
cdef ByteView writable(object owner)
cdef int check_aligned(const int64_t *values) except -1
