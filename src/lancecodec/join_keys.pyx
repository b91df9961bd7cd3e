"""Keys of joins: rows of several columns by value, in a hash table."""

import os

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from lancecodec.buffers cimport ByteView, check_aligned, readable
from lancecodec.problems cimport LC_OK, fail

from lancecodec.errors import CodecError

cdef extern from "kernels/key_table.h" nogil:
    enum: LC_KEY_BITS
    enum: LC_KEY_TEXTS
    ctypedef struct lc_secret:
        uint64_t a
        uint64_t b
    ctypedef struct lc_key_column:
        int64_t width
        int null_is_value
        const uint8_t *validity
        int64_t bit
        const uint8_t *data
        int64_t size
        int64_t first
        const uint8_t *offsets
        int wide
    ctypedef struct lc_key_rows:
        int64_t n
    ctypedef struct lc_key_table:
        int64_t count
    void lc_key_rows_open(lc_key_rows *r, const lc_key_column *columns, int64_t count, int64_t n)
    int lc_key_parts(const lc_key_rows *r, lc_secret secret, int64_t parts, int64_t *out)
    int lc_key_strings(const lc_key_rows *r, uint8_t **data, int64_t *ends)
    int lc_key_table_open(lc_key_table *t, const lc_key_rows *shape, lc_secret secret)
    void lc_key_table_close(lc_key_table *t)
    int lc_key_table_add(lc_key_table *t, const lc_key_rows *r, int64_t *groups)
    int lc_key_table_find(const lc_key_table *t, const lc_key_rows *r, int64_t *places, int64_t *groups, int64_t *found)
    int lc_groups_measure(const int64_t *groups, int64_t n, int64_t count, int64_t *first, int64_t *sizes)

BITS, TEXTS, NOTHING = LC_KEY_BITS, LC_KEY_TEXTS, 0

#: Most bytes of a fixed-width value, most columns, most parts.
cdef int64_t MAX_WIDTH = (<int64_t>1 << 31) - 1
cdef int64_t MAX_COLUMNS = 4096
cdef int64_t MAX_PARTS = 1 << 20


cdef lc_secret new_secret():
    """Nobody can prepare keys that collide."""
    cdef bytes random = os.urandom(16)
    cdef lc_secret secret
    memcpy(&secret, <const char *>random, sizeof(secret))
    return secret


cdef class _Rows:
    """A checked description of rows, and the buffers it refers to."""

    cdef lc_key_rows of
    cdef lc_key_column *columns
    cdef list keep
    cdef tuple shape

    def __cinit__(self, columns, int64_t rows):
        cdef list described = list(columns)
        cdef int64_t count = len(described), i
        if not 1 <= count <= MAX_COLUMNS:
            raise CodecError(f"keys of {count} columns are not supported: 1 to {MAX_COLUMNS} are")
        if rows < 0:
            raise CodecError(f"there are no {rows} rows")
        self.columns = <lc_key_column *>PyMem_Calloc(<size_t>count, sizeof(lc_key_column))
        if self.columns == NULL:
            raise MemoryError("the columns of a key")
        self.keep = []
        for i in range(count):
            self.describe(self.columns + i, described[i], rows)
        self.shape = tuple([(self.columns[i].width, self.columns[i].null_is_value != 0) for i in range(count)])
        lc_key_rows_open(&self.of, self.columns, count, rows)

    def __dealloc__(self):
        PyMem_Free(self.columns)

    cdef int describe(self, lc_key_column *column, object described, int64_t rows) except -1:
        cdef ByteView view
        width, null_is_value, validity, bit, data, first, offsets, wide = described
        column.width, column.null_is_value, column.first, column.wide = width, bool(null_is_value), first, bool(wide)
        if not LC_KEY_BITS <= column.width <= MAX_WIDTH:
            raise CodecError(f"keys of {column.width} bytes are not supported")
        view = self.view(data)
        column.data, column.size = view.data, view.size
        if column.width == LC_KEY_BITS:
            check_room(8 * view.size if view.size <= INT64_MAX // 8 else INT64_MAX, column.first, rows, "values")
        elif column.width > 0:
            check_room(view.size // column.width, column.first, rows, "values")
        elif column.width == LC_KEY_TEXTS:
            view = self.view(offsets)
            column.offsets = view.data
            if rows:
                check_room(view.size // (8 if column.wide else 4) - 1, column.first, rows, "offsets")
        if validity is not None:
            view = self.view(validity)
            column.validity, column.bit = view.data, bit
            check_room(8 * view.size if view.size <= INT64_MAX // 8 else INT64_MAX, column.bit, rows, "validity bits")
        return 0

    cdef ByteView view(self, object buffer):
        cdef ByteView view = readable(buffer)
        self.keep.append(view)
        return view


cdef int check_room(int64_t held, int64_t first, int64_t rows, str what) except -1:
    if first < 0 or first > held or rows > held - first:
        raise CodecError(f"{held} {what} do not hold {rows} rows from {first} on")
    return 0


cdef int64_t *output(int64_t[::1] out, int64_t count) except? NULL:
    if out.shape[0] < count:
        raise CodecError(f"an output of {out.shape[0]} numbers is too small for {count}")
    cdef int64_t *target = &out[0] if out.shape[0] else NULL
    check_aligned(target)
    return target


cdef class KeyTable:
    cdef lc_key_table table
    cdef tuple shape
    cdef bint broken, adding, sealed

    def __cinit__(self):
        self.broken = True

    def add(self, columns, int64_t rows, int64_t[::1] out):
        cdef _Rows keys = _Rows(columns, rows)
        cdef int64_t *groups = output(out, rows)
        cdef int problem
        if self.adding or self.sealed:
            raise CodecError("a table that is in use, or was looked into, takes no more keys")
        if self.shape is None:
            self.shape = keys.shape
            problem = lc_key_table_open(&self.table, &keys.of, new_secret())
            if problem != LC_OK:
                fail(problem, "a table of keys")
            self.broken = False
        self.check(keys)
        self.adding = True
        with nogil:
            problem = lc_key_table_add(&self.table, &keys.of, groups)
        self.adding = False
        if problem != LC_OK:
            self.broken = True
            fail(problem, "keys")

    def find(self, columns, int64_t rows, int64_t[::1] places, int64_t[::1] out):
        cdef _Rows keys = _Rows(columns, rows)
        cdef int64_t *at = output(places, rows)
        cdef int64_t *groups = output(out, rows)
        cdef int64_t found = 0
        cdef int problem
        if self.adding:
            raise CodecError("keys are being added to this table")
        if self.shape is None:
            raise CodecError("no keys were added to this table")
        self.check(keys)
        self.sealed = True
        with nogil:
            problem = lc_key_table_find(&self.table, &keys.of, at, groups, &found)
        if problem != LC_OK:
            fail(problem, "keys")
        return found

    def __len__(self):
        return self.table.count

    cdef int check(self, _Rows keys) except -1:
        if self.broken:
            raise CodecError("a table that failed to take keys has none")
        if keys.shape != self.shape:
            raise CodecError(f"keys of other columns than those of the table: {keys.shape}, not {self.shape}")
        return 0

    def __dealloc__(self):
        lc_key_table_close(&self.table)


cdef class KeyParts:
    cdef lc_secret secret
    cdef int64_t parts

    def __cinit__(self, int64_t parts):
        if not 1 <= parts <= MAX_PARTS:
            raise CodecError(f"{parts} parts are not supported: 1 to {MAX_PARTS} are")
        self.parts, self.secret = parts, new_secret()

    def numbers(self, columns, int64_t rows, int64_t[::1] out):
        cdef _Rows keys = _Rows(columns, rows)
        cdef int64_t *parts = output(out, rows)
        cdef int problem
        with nogil:
            problem = lc_key_parts(&keys.of, self.secret, self.parts, parts)
        if problem != LC_OK:
            fail(problem, "keys")


def pack(columns, int64_t rows, int64_t[::1] ends):
    cdef _Rows keys = _Rows(columns, rows)
    if ends.shape[0] != rows + 1:
        raise CodecError(f"{ends.shape[0]} ends are not one more than {rows} rows")
    cdef int64_t *target = output(ends, rows + 1)
    cdef uint8_t *data = NULL
    cdef int problem
    with nogil:
        problem = lc_key_strings(&keys.of, &data, target)
    try:
        if problem != LC_OK:
            fail(problem, "keys")
        return PyBytes_FromStringAndSize(<const char *>data, <Py_ssize_t>target[rows])
    finally:
        free(data)


def measure_groups(const int64_t[::1] groups, int64_t[::1] first, int64_t[::1] sizes):
    cdef int64_t count = first.shape[0], n = groups.shape[0]
    cdef int64_t *starts = output(first, count)
    cdef int64_t *counts = output(sizes, count)
    cdef const int64_t *rows = &groups[0] if n else NULL
    cdef int problem
    check_aligned(rows)
    with nogil:
        problem = lc_groups_measure(rows, n, count, starts, counts)
    if problem != LC_OK:
        fail(problem, "groups")
