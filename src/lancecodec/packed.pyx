"""Packed structs: rows of fixed or variable width, and the columns they hold."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport fail

from lancecodec.errors import CodecError

cdef extern from "kernels/packed.h" nogil:
    ctypedef struct lc_packed_field:
        uint8_t *column
        int64_t width
        int64_t place
    void lc_packed_pack(const lc_packed_field *fields, int64_t count, int64_t n, uint8_t *out, int64_t stride)
    void lc_packed_unpack(const lc_packed_field *fields, int64_t count, int64_t n, const uint8_t *src, int64_t stride)
    int64_t lc_packed_take(const lc_packed_field *fields, int64_t count, int64_t rows, const uint8_t *src,
                           int64_t stride, const int64_t *at, int64_t n)
    ctypedef struct lc_packed_child:
        int variable
        int64_t width
        uint8_t *offsets
        int wide
        uint8_t *data
        int64_t size
        int64_t used
    ctypedef struct lc_packed_rows:
        uint8_t *offsets
        int wide
        uint8_t *data
        int64_t size
        int64_t n
        const uint8_t *validity
        int64_t bit
    int lc_packed_row_offsets(const lc_packed_child *children, int64_t count, lc_packed_rows *rows, int64_t *where)
    int lc_packed_row_bytes(const lc_packed_child *children, int64_t count, lc_packed_rows *rows, int64_t *where)
    int lc_packed_split(lc_packed_child *children, int64_t count, const lc_packed_rows *rows, int64_t *where)
    int lc_packed_split_bytes(lc_packed_child *children, int64_t count, const lc_packed_rows *rows, int64_t *where)

cdef int64_t MAX_ROW = 2**40  # so that rows and their sums stay far below 63 bits


def row_bytes(widths):
    cdef int64_t total = 0, width
    for item in widths:
        width = item
        if width < 1 or width > MAX_ROW - total:
            raise CodecError(f"a packed row cannot have children of {list(widths)} bytes")
        total += width
    if total == 0:
        raise CodecError("a packed row needs at least one child")
    return total


cdef class _Fields:
    """Columns of fixed width, exported for as long as this object lives."""

    cdef lc_packed_field *fields
    cdef int64_t count, size
    cdef list keep

    def __cinit__(self, widths, columns, int64_t rows, bint writing):
        cdef ByteView view
        cdef int64_t f, place = 0
        self.keep = []
        self.size = row_bytes(widths)
        self.count = len(widths)
        if len(columns) != self.count or rows < 0:
            raise CodecError(f"{len(columns)} columns for {self.count} widths, {rows} rows")
        self.fields = <lc_packed_field *>PyMem_Calloc(self.count, sizeof(lc_packed_field))
        if self.fields == NULL:
            raise MemoryError()
        for f in range(self.count):
            self.fields[f].width, self.fields[f].place = widths[f], place
            place += self.fields[f].width
            if writing and columns[f] is None:
                continue
            view = writable(columns[f]) if writing else readable(columns[f])
            if view.size // self.fields[f].width < rows:
                raise CodecError(f"column {f} of {view.size} bytes is too small for {rows} rows")
            self.fields[f].column = view.data
            self.keep.append(view)

    def __dealloc__(self):
        PyMem_Free(self.fields)

    cdef int64_t check_rows(self, ByteView view, int64_t rows, int64_t stride) except -1:
        """Distance of rows, when the buffer holds that many."""
        stride = stride if stride else self.size
        if rows < 0 or stride < self.size:
            raise CodecError(f"{rows} rows of {self.size} bytes, {stride} apart")
        if rows and (view.size < self.size or rows - 1 > (view.size - self.size) // stride):
            raise CodecError(f"buffer of {view.size} bytes for {rows} rows of {self.size} bytes, {stride} apart")
        return stride


def pack(columns, widths, int64_t rows, out, int64_t stride=0):
    cdef _Fields fields = _Fields(widths, columns, rows, False)
    cdef ByteView target = writable(out)
    stride = fields.check_rows(target, rows, stride)
    with nogil:
        lc_packed_pack(fields.fields, fields.count, rows, target.data, stride)
    return rows * fields.size


def unpack(source, widths, int64_t rows, columns, int64_t stride=0):
    cdef _Fields fields = _Fields(widths, columns, rows, True)
    cdef ByteView view = readable(source)
    stride = fields.check_rows(view, rows, stride)
    with nogil:
        lc_packed_unpack(fields.fields, fields.count, rows, view.data, stride)


def take(source, widths, int64_t rows, const int64_t[::1] index not None, columns, int64_t stride=0):
    cdef _Fields fields = _Fields(widths, columns, index.shape[0], True)
    cdef ByteView view = readable(source)
    cdef int64_t bad
    check_aligned(&index[0])
    stride = fields.check_rows(view, rows, stride)
    with nogil:
        bad = lc_packed_take(fields.fields, fields.count, rows, view.data, stride, &index[0], index.shape[0])
    if bad >= 0:
        raise CodecError(f"row {index[bad]} is not one of {rows} packed rows")


cdef class _Children:
    """Children of variable-width rows, exported for as long as this object lives."""

    cdef lc_packed_child *children
    cdef int64_t count, fixed
    cdef list keep

    def __cinit__(self, int64_t count):
        self.keep = []
        self.count = count
        if count < 1:
            raise CodecError("a packed row needs at least one child")
        self.children = <lc_packed_child *>PyMem_Calloc(count, sizeof(lc_packed_child))
        if self.children == NULL:
            raise MemoryError()

    def __dealloc__(self):
        PyMem_Free(self.children)

    cdef int declare(self, int64_t c, bint variable, int64_t width, int64_t rows) except -1:
        if width < 1 or width > MAX_ROW - self.fixed or (variable and width != 4 and width != 8):
            raise CodecError(f"child {c} has {'a length' if variable else 'values'} of {width} bytes")
        self.children[c].variable, self.children[c].width = variable, width
        self.fixed += width
        if rows < 0 or rows > 2**62 // self.fixed:
            raise CodecError(f"{rows} rows of at least {self.fixed} bytes")
        return 0

    cdef int column(self, int64_t c, ByteView data, int64_t rows) except -1:
        if data.size // self.children[c].width < rows:
            raise CodecError(f"column {c} of {data.size} bytes is too small for {rows} rows")
        self.children[c].data, self.children[c].size = data.data, data.size
        self.keep.append(data)
        return 0

    cdef int offsets(self, int64_t c, ByteView offsets, bint wide, int64_t rows) except -1:
        if offsets.size // (8 if wide else 4) <= rows:
            raise CodecError(f"offsets of child {c} of {offsets.size} bytes are too few for {rows} rows")
        self.children[c].offsets, self.children[c].wide = offsets.data, wide
        self.keep.append(offsets)
        return 0


cdef _Children read_children(children, int64_t rows):
    """Children to be packed: (data, width), or (data, width of the length, offsets, wide)."""
    cdef _Children given = _Children(len(children))
    cdef ByteView data
    cdef int64_t c
    for c in range(given.count):
        child = tuple(children[c])
        if len(child) not in (2, 4):
            raise CodecError(f"child {c} must be (data, width) or (data, width of the length, offsets, wide)")
        given.declare(c, len(child) == 4, child[1], rows)
        data = readable(child[0])
        if len(child) == 2:
            given.column(c, data, rows)
            continue
        given.children[c].data, given.children[c].size = data.data, data.size
        given.keep.append(data)
        given.offsets(c, readable(child[2]), child[3], rows)
    return given


cdef int set_validity(lc_packed_rows *rows, ByteView validity, int64_t bit) except -1:
    if validity is not None:
        if bit < 0 or bit > validity.size * 8 or rows.n > validity.size * 8 - bit:
            raise CodecError(f"validity of {validity.size} bytes does not hold {rows.n} bits from bit {bit} on")
        rows.validity, rows.bit = validity.data, bit
    return 0


cdef lc_packed_rows rows_of(ByteView offsets, bint wide, ByteView data, int64_t n) except *:
    cdef lc_packed_rows rows
    rows.offsets, rows.wide, rows.data, rows.size, rows.n, rows.validity, rows.bit = NULL, wide, NULL, 0, n, NULL, 0
    if offsets is not None:
        if n < 0 or offsets.size // (8 if wide else 4) <= n:
            raise CodecError(f"row offsets of {offsets.size} bytes are too few for {n} rows")
        rows.offsets = offsets.data
    if data is not None:
        rows.data, rows.size = data.data, data.size
    return rows


def row_offsets(children, int64_t rows, bint wide, out, validity=None, int64_t bit=0):
    cdef _Children given = read_children(children, rows)
    cdef ByteView target = writable(out), valid = None if validity is None else readable(validity)
    cdef lc_packed_rows packed = rows_of(target, wide, None, rows)
    cdef int64_t where = 0
    cdef int problem
    set_validity(&packed, valid, bit)
    with nogil:
        problem = lc_packed_row_offsets(given.children, given.count, &packed, &where)
    if problem:
        fail(problem, f"offsets of packed rows, row {where}")


def pack_rows(children, int64_t rows, out, validity=None, int64_t bit=0):
    cdef _Children given = read_children(children, rows)
    cdef ByteView target = writable(out), valid = None if validity is None else readable(validity)
    cdef lc_packed_rows packed = rows_of(None, False, target, rows)
    cdef int64_t where = 0
    cdef int problem
    set_validity(&packed, valid, bit)
    with nogil:
        problem = lc_packed_row_bytes(given.children, given.count, &packed, &where)
    if problem:
        fail(problem, f"packing row {where}")
    return packed.size


def split_rows(offsets, bint wide, data, int64_t rows, fields, outputs, validity=None, int64_t bit=0):
    cdef ByteView places = readable(offsets), view = readable(data)
    cdef ByteView valid = None if validity is None else readable(validity)
    cdef lc_packed_rows packed = rows_of(places, wide, view, rows)
    cdef _Children children = _Children(len(fields))
    cdef int64_t c, where = 0
    cdef int problem
    set_validity(&packed, valid, bit)
    if len(outputs) != children.count:
        raise CodecError(f"{len(outputs)} outputs for {children.count} children")
    for c in range(children.count):
        variable, width = fields[c]
        children.declare(c, variable, width, rows)
        children.children[c].wide = True
        if outputs[c] is None:
            continue
        if variable:
            target, target_wide = outputs[c]
            children.offsets(c, writable(target), target_wide, rows)
        else:
            children.column(c, writable(outputs[c]), rows)
    with nogil:
        problem = lc_packed_split(children.children, children.count, &packed, &where)
    if problem:
        fail(problem, f"packed row {where}")
    return [children.children[c].used for c in range(children.count)]


def split_bytes(offsets, bint wide, data, int64_t rows, fields, outputs, validity=None, int64_t bit=0):
    cdef ByteView places = readable(offsets), view = readable(data), target
    cdef ByteView valid = None if validity is None else readable(validity)
    cdef lc_packed_rows packed = rows_of(places, wide, view, rows)
    cdef _Children children = _Children(len(fields))
    cdef int64_t c, where = 0
    cdef int problem
    set_validity(&packed, valid, bit)
    if len(outputs) != children.count:
        raise CodecError(f"{len(outputs)} outputs for {children.count} children")
    for c in range(children.count):
        variable, width = fields[c]
        children.declare(c, variable, width, rows)
        if variable and outputs[c] is not None:
            target = writable(outputs[c])
            children.children[c].data, children.children[c].size = target.data, target.size
            children.keep.append(target)
    with nogil:
        problem = lc_packed_split_bytes(children.children, children.count, &packed, &where)
    if problem:
        fail(problem, f"packed row {where}")
