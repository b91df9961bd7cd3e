"""Packed structs: rows of fixed or variable width, and the columns that they consist of.

A fixed-width row has the bytes of its children back to back. In a variable-width row each child that varies in size has
its length in front, and the rows themselves are described by Arrow offsets. A column of fixed width has ``rows *
width`` bytes.

A child to be packed is a tuple ``(data, width)`` if its width is fixed. Otherwise it is ``(data, length_width, offsets,
wide)``: the bytes, the size of a length in bytes (4 or 8), and ascending Arrow offsets of 32 bits, or 64 if `wide`. A
field of a row to be split is a tuple ``(variable, width)``: whether the child varies in size, and its width or the size
of its length in bytes.
"""

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

cdef int64_t MAX_ROW = 2**40  # keeps the sizes of all rows far below 63 bits


def row_bytes(widths):
    """Compute the size of a fixed-width row.

    Parameters
    ----------
    widths
        Sizes of the children in bytes, at least 1 each.

    Returns
    -------
    int
        Size in bytes.

    Raises
    ------
    CodecError
        There are no children, or a width is out of range.
    """
    cdef int64_t total = 0, width
    for item in widths:
        width = item
        if width < 1 or width > MAX_ROW - total:
            raise CodecError(f"widths of packed children are out of range: {list(widths)}")
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
        """Return the distance between rows, or raise CodecError if the buffer does not hold them."""
        stride = stride if stride else self.size
        if rows < 0 or stride < self.size:
            raise CodecError(f"{rows} rows of {self.size} bytes, {stride} apart")
        if rows and (view.size < self.size or rows - 1 > (view.size - self.size) // stride):
            raise CodecError(f"buffer of {view.size} bytes for {rows} rows of {self.size} bytes, {stride} apart")
        return stride


def pack(columns, widths, int64_t rows, out, int64_t stride=0):
    """Pack columns of fixed width into rows.

    Parameters
    ----------
    columns
        Columns of ``rows * width`` bytes or more.
    widths
        Sizes of the children in bytes.
    rows
        Number of rows.
    out
        Output.
    stride
        Distance between rows in `out` in bytes; 0 for back to back.

    Returns
    -------
    int
        Size of the rows without gaps in bytes, ``rows * row_bytes(widths)``.

    Raises
    ------
    CodecError
        A buffer is too small, or an argument is out of range.
    """
    cdef _Fields fields = _Fields(widths, columns, rows, False)
    cdef ByteView target = writable(out)
    stride = fields.check_rows(target, rows, stride)
    with nogil:
        lc_packed_pack(fields.fields, fields.count, rows, target.data, stride)
    return rows * fields.size


def unpack(source, widths, int64_t rows, columns, int64_t stride=0):
    """Unpack rows into columns of fixed width.

    Parameters
    ----------
    source
        The rows.
    widths
        Sizes of the children in bytes.
    rows
        Number of rows.
    columns
        Outputs of ``rows * width`` bytes or more; None for a child that is not wanted.
    stride
        Distance between rows in `source` in bytes; 0 for back to back.

    Raises
    ------
    CodecError
        A buffer is too small, or an argument is out of range.
    """
    cdef _Fields fields = _Fields(widths, columns, rows, True)
    cdef ByteView view = readable(source)
    stride = fields.check_rows(view, rows, stride)
    with nogil:
        lc_packed_unpack(fields.fields, fields.count, rows, view.data, stride)


def take(source, widths, int64_t rows, const int64_t[::1] index not None, columns, int64_t stride=0):
    """Unpack the rows at given positions into columns of fixed width.

    Parameters
    ----------
    source
        The rows.
    widths
        Sizes of the children in bytes.
    rows
        Number of rows in `source`.
    index
        int64 array of positions below `rows`, in any order.
    columns
        Outputs of ``len(index) * width`` bytes or more; None for a child that is not wanted.
    stride
        Distance between rows in `source` in bytes; 0 for back to back.

    Raises
    ------
    CodecError
        A position is outside of the rows, a buffer is too small, or an argument is out of range.
    """
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
    """Read the children to be packed: (data, width), or (data, width of the length, offsets, wide)."""
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
    """Compute the offsets of variable-width rows: the first of two passes, before `pack_rows`.

    Parameters
    ----------
    children
        Children to be packed, as in the module documentation.
    rows
        Number of rows.
    wide
        Whether the offsets written have 64 bits.
    out
        Output of ``rows + 1`` offsets of 32 bits, or 64 if `wide`, starting with 0.
    validity
        Bitmap of the rows, or None. A null row is empty.
    bit
        Bit of `validity` that belongs to the first row.

    Raises
    ------
    CodecError
        Offsets of a child decrease or exceed its bytes, or a buffer is too small.
    OffsetOverflowError
        An offset, or the length of a value, does not fit 32 bits.
    """
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
    """Write the bytes of variable-width rows: the second pass, after `row_offsets`.

    Parameters
    ----------
    children, rows, validity, bit
        As for `row_offsets`.
    out
        Output for the bytes, of the size that the last row offset gives. Bytes behind them may be overwritten.

    Returns
    -------
    int
        Number of bytes written.

    Raises
    ------
    CodecError
        As for `row_offsets`.
    OffsetOverflowError
        `out` is too small, or the length of a value does not fit 32 bits.
    """
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
    """Split variable-width rows: values of the fixed children and offsets of the variable ones, the first of two
    passes.

    Parameters
    ----------
    offsets
        ``rows + 1`` ascending offsets of 32 bits, or 64 if `wide`.
    wide
        Whether the offsets of the rows have 64 bits.
    data
        Bytes that the offsets point into.
    rows
        Number of rows.
    fields
        Children of a row, as in the module documentation.
    outputs
        For a fixed child its column. For a variable child ``(offsets, wide)``: an output of ``rows + 1`` offsets,
        starting with 0, and whether they have 64 bits. None for a child that is not wanted.
    validity
        Bitmap of the rows, or None. A null row results in zeros and empty values.
    bit
        Bit of `validity` that belongs to the first row.

    Returns
    -------
    list of int
        For each child, the size of its values in bytes if it is variable, else 0.

    Raises
    ------
    CodecError
        A value exceeds its row, a row has bytes left over, or a buffer is too small.
    OffsetOverflowError
        An offset does not fit 32 bits.
    """
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
    """Copy the bytes of the variable children of variable-width rows, back to back: the second pass, after
    `split_rows`.

    Parameters
    ----------
    offsets, wide, data, rows, fields, validity, bit
        As for `split_rows`.
    outputs
        For each child an output of the size that `split_rows` returns. Bytes behind the values may be overwritten. None
        for a child that is not wanted or has a fixed width.

    Raises
    ------
    CodecError
        A value exceeds its row, or a row has bytes left over.
    OffsetOverflowError
        An output is too small.
    """
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
