"""Full-zip pages of file versions 2.1 and 2.2: levels and values zipped item by item, and the repetition index of rows.

Reading works on byte ranges of the zipped buffer (or of the part that was read), each of one or more whole rows.
`row_span` and `row_ranges` compute the ranges; ``(0, size)`` is the whole page.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_BAD_COUNT, LC_BAD_OFFSETS, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/fullzip.h" nogil:
    ctypedef struct lc_fsst_table:
        int count
    ctypedef struct lc_zip:
        int64_t bits_rep
        int64_t bits_def
        int64_t control
        int64_t top_rep
        int64_t top_def
        int64_t visible
        int64_t width
        int64_t prefix
        const lc_fsst_table *table
    ctypedef struct lc_zip_out:
        uint8_t *rep
        uint8_t *definition "def"
        uint8_t *values
        uint8_t *offsets
        int wide
        int64_t items
        int64_t visible
        int64_t rows
        int64_t bytes
        int64_t room_items
        int64_t room_visible
        int64_t room_bytes
    ctypedef struct lc_zip_source:
        const uint8_t *rep
        const uint8_t *definition "def"
        int64_t items
        const uint8_t *values
        const uint8_t *offsets
        int wide
        int64_t room_visible
        int64_t room_bytes
    ctypedef struct lc_zip_sink:
        uint8_t *out
        uint8_t *index
        int64_t index_width
        int64_t index_rows
        int64_t room
        int64_t size
        int64_t rows
        int64_t visible
    int lc_fsst_table_parse(const uint8_t *bytes, int64_t size, lc_fsst_table *table)
    void lc_store_offset(uint8_t *offsets, int wide, int64_t i, int64_t value)
    int64_t lc_zip_control(int64_t bits)
    int lc_zip_count(const lc_zip *zip, lc_bytes data, const int64_t *begins, const int64_t *ends, int64_t ranges,
                     lc_zip_out *out, int64_t *where)
    int lc_zip_unzip(const lc_zip *zip, lc_bytes data, const int64_t *begins, const int64_t *ends, int64_t ranges,
                     lc_zip_out *out, int64_t *where)
    int lc_zip_fixed(const lc_zip *zip, lc_bytes data, const int64_t *items, int64_t first, int64_t n,
                     uint8_t *definition, uint8_t *values, int64_t *where)
    uint64_t lc_zip_position(const uint8_t *index, int64_t width, int64_t i)
    int lc_zip_row_ranges(const uint8_t *index, int64_t width, int64_t first, int64_t entries, const int64_t *rows,
                          int64_t n, int64_t size, int64_t *begins, int64_t *ends, int64_t *where)
    int lc_zip_zip(const lc_zip *zip, const lc_zip_source *source, lc_zip_sink *sink, int64_t *where)


cdef inline lc_bytes whole(ByteView view) noexcept:
    cdef lc_bytes data
    data.data, data.size = view.data, view.size
    return data


cdef int check_ranges(const int64_t[::1] begins, const int64_t[::1] ends) except -1:
    if begins.shape[0] != ends.shape[0]:
        raise CodecError(f"{begins.shape[0]} begins but {ends.shape[0]} ends")
    check_aligned(&begins[0])
    check_aligned(&ends[0])
    return 0


cdef class ZipLayout:
    """Layout of the items of a page. It is immutable, so threads may share it.

    Parameters
    ----------
    bits_rep, bits_def
        Number of bits of the repetition and the definition level in a control word, together at most 32.
    max_repetition, max_definition
        Largest levels of the layers. `max_repetition` is the number of list layers.
    max_visible
        Largest definition level of an item that owns a value.
    width
        Size of a value in bytes if all values have the same size, else None.
    offset_bits
        Size in bits (32 or 64) of the length in front of each value if values vary in size, else None. A visible null
        has no length then, and is returned as an empty value.
    symbol_table
        FSST table of values that vary in size, or None. Values that are compressed one by one (general compression) are
        returned as stored.

    Raises
    ------
    CodecError
        An argument is out of range, or both or neither of `width` and `offset_bits` are given.
    """

    cdef lc_zip zip
    cdef lc_fsst_table table

    def __cinit__(self, *, int64_t bits_rep=0, int64_t bits_def=0, int64_t max_repetition=0, int64_t max_definition=0,
                  int64_t max_visible=0, width=None, offset_bits=None, symbol_table=None):
        cdef ByteView view
        if bits_rep < 0 or bits_def < 0 or bits_rep > 32 or bits_def > 32 - bits_rep:
            raise CodecError(f"control words cannot hold levels of {bits_rep} and {bits_def} bits")
        if not (0 <= max_repetition <= 65535 and 0 <= max_visible <= max_definition <= 65535):
            raise CodecError(f"maximum levels {max_repetition}, {max_definition}, {max_visible} are out of range")
        if (max_repetition > 0) != (bits_rep > 0):
            raise CodecError(f"{bits_rep} bits of repetition levels do not match {max_repetition} list layers")
        if (width is None) == (offset_bits is None):
            raise CodecError("exactly one of width and offset_bits must be given")
        self.zip.bits_rep, self.zip.bits_def = bits_rep, bits_def
        self.zip.control = lc_zip_control(bits_rep + bits_def)
        self.zip.top_rep, self.zip.top_def, self.zip.visible = max_repetition, max_definition, max_visible
        if width is not None:
            if not 0 <= width <= 2**40 or width + self.zip.control == 0:
                raise CodecError(f"items of {width} bytes without levels are not supported")
            if symbol_table is not None:
                raise CodecError("values of one width are not FSST codes")
            self.zip.width = width
            return
        if offset_bits not in (32, 64):
            raise CodecError(f"lengths must have 32 or 64 bits, not {offset_bits}")
        self.zip.width, self.zip.prefix = -1, offset_bits // 8
        if symbol_table is not None:
            view = readable(symbol_table)
            if lc_fsst_table_parse(view.data, view.size, &self.table):
                raise CodecError(f"{view.size} bytes are not an FSST symbol table")
            self.zip.table = &self.table

    @property
    def item_size(self):
        """Size of every item in bytes, or None if items differ in size."""
        if self.zip.width < 0 or self.zip.top_rep:
            return None
        return self.zip.control + self.zip.width

    def count(self, data, const int64_t[::1] begins not None, const int64_t[::1] ends not None):
        """Count what unzipping byte ranges will return, to allocate its outputs.

        Without lists it is not needed: items, visible items and rows are known and equal. The size of the ranges is
        then an upper bound for the value bytes, except for FSST.

        Parameters
        ----------
        data
            Zipped items.
        begins, ends
            int64 arrays of equal length: the byte ranges in `data`.

        Returns
        -------
        tuple of int
            Number of items, of visible items, of rows and of value bytes.

        Raises
        ------
        CodecError
            A range does not begin with a row, is outside of `data`, or has damaged items.
        """
        cdef ByteView view = readable(data)
        cdef lc_zip_out out
        cdef int64_t where = 0
        cdef int problem
        cdef lc_bytes source = whole(view)
        check_ranges(begins, ends)
        out.items = out.visible = out.rows = out.bytes = 0
        out.room_bytes = 2**62
        with nogil:
            problem = lc_zip_count(&self.zip, source, &begins[0], &ends[0], begins.shape[0], &out, &where)
        if problem:
            fail(problem, f"zipped items, range {where} of {begins.shape[0]}")
        return out.items, out.visible, out.rows, out.bytes

    cdef int unzip(self, ByteView data, const int64_t[::1] begins, const int64_t[::1] ends, ByteView rep,
                   ByteView levels, lc_zip_out *out) except -1:
        cdef int64_t where = 0
        cdef int problem
        cdef lc_bytes source = whole(data)
        check_ranges(begins, ends)
        out.items = out.visible = out.rows = 0
        out.room_items = 2**62
        out.rep = out.definition = NULL
        if rep is not None:
            out.rep, out.room_items = rep.data, rep.size // 2
        if levels is not None:
            out.definition, out.room_items = levels.data, min(out.room_items, levels.size // 2)
        with nogil:
            problem = lc_zip_unzip(&self.zip, source, &begins[0], &ends[0], begins.shape[0], out, &where)
        if problem:
            fail(problem, f"zipped items, range {where} of {begins.shape[0]}")
        return 0

    def unzip_fixed(self, data, const int64_t[::1] begins not None, const int64_t[::1] ends not None, values, *,
                    repetition=None, definition=None):
        """Unzip the items in byte ranges, with values of one width.

        Values are written back to back, including those of visible nulls. The caller must compare the returned counts
        with what it expects.

        Parameters
        ----------
        data
            Zipped items.
        begins, ends
            int64 arrays of equal length: the byte ranges in `data`.
        values
            Output for the visible values.
        repetition, definition
            Outputs for the levels, 16 bits per item, or None.

        Returns
        -------
        tuple of int
            Number of items, of visible items and of rows.

        Raises
        ------
        CodecError
            The values vary in width, a range or an item is damaged, or an output is too small.
        """
        cdef ByteView target = writable(values)
        cdef lc_zip_out out
        if self.zip.width < 0:
            raise CodecError("the values of this page vary in width")
        out.values, out.offsets, out.wide, out.bytes = target.data, NULL, False, 0
        out.room_bytes, out.room_visible = target.size, 2**62
        self.unzip(readable(data), begins, ends, None if repetition is None else writable(repetition),
                   None if definition is None else writable(definition), &out)
        return out.items, out.visible, out.rows

    def unzip_variable(self, data, const int64_t[::1] begins not None, const int64_t[::1] ends not None, bint wide,
                       offsets, values, *, repetition=None, definition=None, int64_t base=0):
        """Unzip the items in byte ranges, with values that vary in size.

        Parameters
        ----------
        data
            Zipped items.
        begins, ends
            int64 arrays of equal length: the byte ranges in `data`.
        wide
            Whether the offsets have 64 bits.
        offsets
            Output of visible items + 1 offsets of 32 bits, or 64 if `wide`. The first one is `base`.
        values
            Output for the bytes of the values, back to back.
        repetition, definition
            Outputs for the levels, 16 bits per item, or None.
        base
            First offset.

        Returns
        -------
        tuple of int
            Number of items, of visible items, of rows and of value bytes.

        Raises
        ------
        CodecError
            The values have one width, a range or an item is damaged, or an output is too small.
        OffsetOverflowError
            The values do not fit `values` or the offsets.
        """
        cdef ByteView target = writable(values), places = writable(offsets)
        cdef lc_zip_out out
        cdef int64_t limit = 2**62 if wide else 2**31 - 1
        if self.zip.width >= 0:
            raise CodecError("the values of this page have one width")
        if base < 0 or base > limit:
            raise CodecError(f"offsets cannot start at {base}")
        if places.size < (8 if wide else 4):
            raise CodecError("the output has no room for the first offset")
        lc_store_offset(places.data, wide, 0, base)
        out.values, out.offsets, out.wide, out.bytes = target.data, places.data, wide, base
        out.room_bytes = min(base + min(target.size, 2**62), limit)
        out.room_visible = places.size // (8 if wide else 4) - 1
        self.unzip(readable(data), begins, ends, None if repetition is None else writable(repetition),
                   None if definition is None else writable(definition), &out)
        return out.items, out.visible, out.rows, out.bytes - base

    cdef int fixed(self, ByteView data, const int64_t *items, int64_t first, int64_t n, object values,
                   object definition) except -1:
        cdef ByteView target = writable(values), levels = None
        cdef int64_t where = 0
        cdef int problem
        if self.zip.width < 0 or self.zip.top_rep:
            raise CodecError("items can be located by number only if all have the same size")
        if self.zip.width and target.size // self.zip.width < n:
            raise CodecError(f"output of {target.size} bytes has no room for {n} values of {self.zip.width} bytes")
        if definition is not None:
            levels = writable(definition)
            if levels.size // 2 < n:
                raise CodecError(f"output of {levels.size} bytes has no room for {n} levels")
        cdef uint8_t *out = levels.data if levels is not None else NULL
        cdef lc_bytes source = whole(data)
        with nogil:
            problem = lc_zip_fixed(&self.zip, source, items, first, n, out, target.data, &where)
        if problem == LC_BAD_COUNT:
            raise CodecError(f"item {items[where] if items else first + where} is outside {data.size} bytes of items")
        if problem:
            fail(problem, f"zipped item {items[where] if items else first + where}")
        return 0

    def scan_fixed(self, data, int64_t start, int64_t stop, values, definition=None):
        """Unzip a range of items of a page whose `item_size` is not None.

        Parameters
        ----------
        data
            Zipped items of the page.
        start, stop
            Range ``[start, stop)`` of items.
        values
            Output for the values.
        definition
            Output for the definition levels, 16 bits per item, or None.

        Raises
        ------
        CodecError
            Items differ in size, the range is outside of the page, a level is invalid, or an output is too small.
        """
        if start < 0 or stop < start:
            raise CodecError(f"items {start} to {stop} are not a range")
        self.fixed(readable(data), NULL, start, stop - start, values, definition)

    def take_fixed(self, data, const int64_t[::1] items not None, values, definition=None):
        """Unzip the items at given positions of a page whose `item_size` is not None. It needs no index.

        Parameters
        ----------
        data
            Zipped items of the page.
        items
            int64 array of item positions, in any order.
        values
            Output for the values, in the order of `items`.
        definition
            Output for the definition levels, 16 bits per item, or None.

        Raises
        ------
        CodecError
            Items differ in size, a position is outside of the page, a level is invalid, or an output is too small.
        """
        check_aligned(&items[0])
        if items.shape[0]:
            self.fixed(readable(data), &items[0], 0, items.shape[0], values, definition)

    cdef lc_zip_source source(self, int64_t length, ByteView values, ByteView offsets, bint wide, ByteView rep,
                              ByteView levels) except *:
        cdef lc_zip_source source
        if (rep is not None) != (self.zip.bits_rep > 0) or (levels is not None) != (self.zip.bits_def > 0):
            raise CodecError("levels must be given exactly if the control words have bits for them")
        for given in (rep, levels):
            if given is not None and (<ByteView>given).size // 2 < length:
                raise CodecError(f"{(<ByteView>given).size} bytes are not {length} levels")
        if length < 0 or (offsets is not None) != (self.zip.width < 0):
            raise CodecError(f"{length} items; offsets must be given exactly if values vary in width")
        if self.zip.table:
            raise CodecError("a layout with a symbol table cannot zip: pass the codes to a layout without one")
        source.items, source.values, source.room_bytes = length, values.data, values.size
        source.rep = rep.data if rep is not None else NULL
        source.definition = levels.data if levels is not None else NULL
        source.offsets, source.wide = NULL, wide
        if offsets is not None:
            source.offsets, source.room_visible = offsets.data, offsets.size // (8 if wide else 4) - 1
        else:
            source.room_visible = values.size // self.zip.width if self.zip.width else 2**62
        return source

    def zipped_size(self, int64_t length, values, *, repetition=None, definition=None, offsets=None, bint wide=False):
        """Compute the size of the output of `zip_items`.

        Parameters
        ----------
        length, values, repetition, definition, offsets, wide
            The items, as for `zip_items`.

        Returns
        -------
        tuple of int
            Number of bytes, of rows and of visible items.

        Raises
        ------
        CodecError
            As for `zip_items`, except for outputs.
        """
        cdef lc_zip_sink sink
        sink.out = sink.index = NULL
        self.run(length, values, repetition, definition, offsets, wide, &sink)
        return sink.size, sink.rows, sink.visible

    cdef int run(self, int64_t length, object values, object repetition, object definition, object offsets, bint wide,
                 lc_zip_sink *sink) except -1:
        cdef ByteView data = readable(values)
        cdef ByteView rep = None if repetition is None else readable(repetition)
        cdef ByteView levels = None if definition is None else readable(definition)
        cdef ByteView places = None if offsets is None else readable(offsets)
        cdef lc_zip_source source = self.source(length, data, places, wide, rep, levels)
        cdef int64_t where = 0
        cdef int problem
        with nogil:
            problem = lc_zip_zip(&self.zip, &source, sink, &where)
        if problem:
            fail(problem, f"zipping item {where} of {length}")
        return 0

    def zip_items(self, int64_t length, values, out, index=None, int64_t index_width=0, *, repetition=None,
                  definition=None, offsets=None, bint wide=False):
        """Zip items and, if requested, write the repetition index of their rows.

        Parameters
        ----------
        length
            Number of items.
        values
            Visible values including those of nulls: back to back if they have one width, else the bytes that `offsets`
            point into.
        out
            Output, of the size that `zipped_size` computes.
        index
            Output of rows + 1 byte positions of `index_width` bytes, or None.
        index_width
            Size of an index entry in bytes: 1, 2, 4 or 8.
        repetition, definition
            Levels, 16 bits per item. Pass them exactly if the layout has bits for them.
        offsets
            Visible items + 1 offsets of 32 bits, or 64 if `wide`; None if values have one width. Bytes of nulls are
            left out.
        wide
            Whether the offsets have 64 bits.

        Returns
        -------
        tuple of int
            Number of bytes and of rows.

        Raises
        ------
        CodecError
            An output is too small, a level is invalid or does not fit its bits, the first item does not start a row,
            there are fewer values than visible items, or a position does not fit the index.
        """
        cdef ByteView target = writable(out), rows = None if index is None else writable(index)
        cdef lc_zip_sink sink
        sink.out, sink.room, sink.index = target.data, target.size, NULL
        if rows is not None:
            if index_width not in (1, 2, 4, 8) or rows.size < index_width:
                raise CodecError(f"an index of {rows.size} bytes cannot have entries of {index_width} bytes")
            sink.index, sink.index_width, sink.index_rows = rows.data, index_width, rows.size // index_width - 1
        self.run(length, values, repetition, definition, offsets, wide, &sink)
        if rows is not None and index_width < 8 and sink.size >> (8 * index_width):
            raise CodecError(f"positions up to {sink.size} do not fit {index_width} bytes")
        return sink.size, sink.rows


def index_width(int64_t size, int64_t rows):
    """Compute the size of an entry of a repetition index.

    Parameters
    ----------
    size
        Size of the index in bytes.
    rows
        Number of rows.

    Returns
    -------
    int
        1, 2, 4 or 8 bytes.

    Raises
    ------
    CodecError
        The size does not match the number of rows.
    """
    if rows < 0 or size % (rows + 1) or size // (rows + 1) not in (1, 2, 4, 8):
        raise CodecError(f"repetition index of {size} bytes for {rows} rows: entries must have 1, 2, 4 or 8 bytes")
    return size // (rows + 1)


cdef int check_index(ByteView index, int64_t width, int64_t first, int64_t size) except -1:
    if width not in (1, 2, 4, 8) or index.size % width:
        raise CodecError(f"{index.size} bytes are not a whole number of entries of {width} bytes")
    if first < 0 or size < 0 or first > INT64_MAX - index.size:
        raise CodecError(f"an index from row {first} on over {size} bytes is out of range")
    return 0


def row_ranges(index, int64_t width, const int64_t[::1] rows not None, int64_t size, int64_t[::1] begins not None,
               int64_t[::1] ends not None, int64_t first=0):
    """Look up the byte ranges of given rows in the repetition index. Only the entries used are checked.

    Parameters
    ----------
    index
        The repetition index, or a part of it that starts with the entry of row `first`. It must include the entry
        behind the last row.
    width
        Size of an index entry in bytes: 1, 2, 4 or 8.
    rows
        int64 array of n row numbers, in any order.
    size
        Size of the zipped items in bytes.
    begins, ends
        Output int64 arrays with n entries.
    first
        Row of the first entry of `index`.

    Raises
    ------
    CodecError
        A row is not in the index, an entry contradicts `size`, or an output is too small.
    """
    cdef ByteView view = readable(index)
    cdef int64_t where = 0, n = rows.shape[0]
    cdef int problem
    check_index(view, width, first, size)
    if begins.shape[0] < n or ends.shape[0] < n:
        raise CodecError(f"the outputs have no room for {n} ranges")
    check_aligned(&rows[0])
    check_ranges(begins, ends)
    with nogil:
        problem = lc_zip_row_ranges(view.data, width, first, view.size // width, &rows[0], n, size, &begins[0],
                                    &ends[0], &where)
    if problem == LC_BAD_COUNT:
        raise CodecError(f"row {rows[where]} is not in the index of rows {first} to {first + view.size // width - 1}")
    if problem:
        fail(problem, f"repetition index, row {rows[where]}")


def row_span(index, int64_t width, int64_t start, int64_t stop, int64_t size, int64_t first=0):
    """Look up the byte range of consecutive rows in the repetition index.

    Parameters
    ----------
    index
        The repetition index or a part of it, as for `row_ranges`.
    width
        Size of an index entry in bytes: 1, 2, 4 or 8.
    start, stop
        Range ``[start, stop)`` of rows.
    size
        Size of the zipped items in bytes.
    first
        Row of the first entry of `index`.

    Returns
    -------
    tuple of int
        First byte, and the byte behind the last one.

    Raises
    ------
    CodecError
        A row is not in the index, or an entry contradicts `size`.
    """
    cdef ByteView view = readable(index)
    cdef uint64_t begin, end
    check_index(view, width, first, size)
    if start < first or stop < start or stop - first >= view.size // width:
        raise CodecError(f"rows {start} to {stop} are not in the index of rows {first} to "
                         f"{first + view.size // width - 1}")
    begin = lc_zip_position(view.data, width, start - first)
    end = lc_zip_position(view.data, width, stop - first)
    if begin > end or end > <uint64_t>size:
        fail(LC_BAD_OFFSETS, f"repetition index, rows {start} to {stop}")
    return begin, end
