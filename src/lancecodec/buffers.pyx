"""Memory of the caller: any contiguous object with the buffer protocol, viewed as plain bytes."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uintptr_t

from lancecodec.errors import CodecError


@cython.final
@cython.freelist(16)
cdef class ByteView:
    """Address and size of a buffer, which stays exported (neither freed nor resized) as long as this object lives."""

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.buffer)


cdef ByteView export(object owner, int flags):
    cdef ByteView view = ByteView.__new__(ByteView)
    PyObject_GetBuffer(owner, &view.buffer, flags)
    view.held = True
    view.data = <uint8_t *>view.buffer.buf
    view.size = view.buffer.len
    return view


cdef ByteView readable(object owner):
    return export(owner, PyBUF_SIMPLE)


cdef ByteView writable(object owner):
    return export(owner, PyBUF_SIMPLE | PyBUF_WRITABLE)


cdef int check_aligned(const int64_t *values) except -1:
    """Raise CodecError unless a typed array is aligned; NumPy creates views at odd addresses without a warning."""
    if <uintptr_t>values % sizeof(int64_t):
        raise CodecError("an array of 64-bit integers is not aligned to 8 bytes; copy it first")
    return 0
