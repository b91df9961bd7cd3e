"""Keys of joins: rows of several columns compared by value, in a hash table.

Two keys are equal if all their bytes are equal. Floating-point numbers are compared by their bits too. A key consists
of columns, each described by a tuple ``(width, null_is_value, validity, bit, data, first, offsets, wide)``:

width
    Size of a value in bytes; `BITS` or `TEXTS` for bits and strings; `NOTHING` if only the validity is compared.
null_is_value
    Whether a null equals another null. Otherwise rows with a null in this column do not have a key.
validity, bit
    Bitmap, and the bit of the first row in it. The bitmap is None if no value is null.
data, first
    Buffer of the values, and the position of the first row in it (in values, bits or offsets).
offsets, wide
    For `TEXTS`: ascending offsets into the data of 32 bits, or 64 if `wide`, one more than there are values.

The *shape* of rows is the width and the `null_is_value` of each column. Rows of the same shape can be compared with
each other. All functions raise `CodecError` if a buffer is too small for its rows, offsets decrease or exceed their
data, or a width or the number of columns (1 to 4096) is not supported.
"""

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

#: Largest size of a fixed-width value in bytes, number of columns and number of parts.
cdef int64_t MAX_WIDTH = (<int64_t>1 << 31) - 1
cdef int64_t MAX_COLUMNS = 4096
cdef int64_t MAX_PARTS = 1 << 20


cdef lc_secret new_secret():
    """Return a random secret, so that nobody can prepare keys that collide."""
    cdef bytes random = os.urandom(16)
    cdef lc_secret secret
    memcpy(&secret, <const char *>random, sizeof(secret))
    return secret


cdef class _Rows:
    """Checked description of rows, with the buffers that it refers to."""

    cdef lc_key_rows of
    cdef lc_key_column *columns
    cdef list keep
    cdef tuple shape

    def __cinit__(self, columns, int64_t rows):
        cdef list described = list(columns)
        cdef int64_t count = len(described), i
        if not 1 <= count <= MAX_COLUMNS:
            raise CodecError(f"keys of {count} columns are not supported, only of 1 to {MAX_COLUMNS}")
        if rows < 0:
            raise CodecError(f"the number of rows must not be negative: {rows}")
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
    """Hash table of distinct keys, numbered from 0 in the order in which they are added.

    The table uses open addressing with linear probing (Knuth, "The Art of Computer Programming", vol. 3, 6.4, algorithm
    L), bits of the hash in the slots (Leis et al., "Morsel-Driven Parallelism", SIGMOD 2014), and a filter for absent
    keys (Bloom, "Space/Time Trade-offs in Hash Coding", 1970). Each table has its own random secret, so that nobody can
    prepare keys that collide. Keys are copied. In addition to them the table needs 18 to 36 bytes per key, and 8 more
    if keys vary in size.
    """

    cdef lc_key_table table
    cdef tuple shape
    cdef bint broken, adding, sealed

    def __cinit__(self):
        self.broken = True

    def add(self, columns, int64_t rows, int64_t[::1] out):
        """Number the keys of all rows, adding the new ones to the table.

        Parameters
        ----------
        columns
            Descriptions of the columns, as in the module documentation.
        rows
            Number of rows.
        out
            Output int64 array with `rows` entries: the number of the key of each row, -1 for rows without a key.

        Raises
        ------
        CodecError
            The shape differs from that of the first rows, another thread is adding keys, or `find` was called before.
        MemoryError
            There is not enough memory. The table cannot be used any more.
        """
        cdef _Rows keys = _Rows(columns, rows)
        cdef int64_t *groups = output(out, rows)
        cdef int problem
        if self.adding or self.sealed:
            raise CodecError("keys cannot be added while the table is in use or after find")
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
        """Look up the keys of all rows. Several threads may do so at the same time.

        Parameters
        ----------
        columns
            Descriptions of the columns, as in the module documentation.
        rows
            Number of rows.
        places, out
            Output int64 arrays with `rows` entries. The first entries receive the ascending numbers of the rows that
            were found, and the numbers of their keys. Further entries are undefined.

        Returns
        -------
        int
            Number of rows that were found.

        Raises
        ------
        CodecError
            The shape differs from that of the table, the table is empty, or keys are being added.
        """
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
        """Number of distinct keys."""
        return self.table.count

    cdef int check(self, _Rows keys) except -1:
        if self.broken:
            raise CodecError("the table cannot be used after a failed add")
        if keys.shape != self.shape:
            raise CodecError(f"the columns differ from those of the table: {keys.shape}, not {self.shape}")
        return 0

    def __dealloc__(self):
        lc_key_table_close(&self.table)


cdef class KeyParts:
    """Partitioning of keys by their hash. Equal keys belong to the same part.

    Parameters
    ----------
    parts
        Number of parts, 1 to 2**20.

    Raises
    ------
    CodecError
        `parts` is out of range.
    """

    cdef lc_secret secret
    cdef int64_t parts

    def __cinit__(self, int64_t parts):
        if not 1 <= parts <= MAX_PARTS:
            raise CodecError(f"{parts} parts are not supported, only 1 to {MAX_PARTS}")
        self.parts, self.secret = parts, new_secret()

    def numbers(self, columns, int64_t rows, int64_t[::1] out):
        """Compute the part of each row.

        Parameters
        ----------
        columns
            Descriptions of the columns, as in the module documentation.
        rows
            Number of rows.
        out
            Output int64 array with `rows` entries: the part of each row from 0 on, -1 for rows without a key.

        Raises
        ------
        CodecError
            A buffer is too small, or a column is not supported.
        """
        cdef _Rows keys = _Rows(columns, rows)
        cdef int64_t *parts = output(out, rows)
        cdef int problem
        with nogil:
            problem = lc_key_parts(&keys.of, self.secret, self.parts, parts)
        if problem != LC_OK:
            fail(problem, "keys")


def pack(columns, int64_t rows, int64_t[::1] ends):
    """Encode rows as byte strings, such that different rows have different strings and none is a prefix of another.

    Parameters
    ----------
    columns
        Descriptions of the columns, as in the module documentation.
    rows
        Number of rows.
    ends
        Output int64 array with exactly ``rows + 1`` entries: 0, then the end of each string.

    Returns
    -------
    bytes
        The strings, back to back.

    Raises
    ------
    CodecError
        A buffer is too small, a column is not supported, or `ends` has the wrong length.
    MemoryError
        There is not enough memory.
    """
    cdef _Rows keys = _Rows(columns, rows)
    if ends.shape[0] != rows + 1:
        raise CodecError(f"{ends.shape[0]} ends for {rows} rows; one more than rows is needed")
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
    """Compute the first row and the number of rows of each key.

    Parameters
    ----------
    groups
        int64 array with the numbers that `KeyTable.add` assigned to all rows.
    first
        Output int64 array with an entry per distinct key: its first row.
    sizes
        Output int64 array with an entry per distinct key: its number of rows.

    Raises
    ------
    CodecError
        `groups` has numbers that `KeyTable.add` cannot have assigned, or `sizes` is too small.
    """
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
