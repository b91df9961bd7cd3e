"""Pages of all layouts, checked and described once so that rows can be taken from them many times.

`lancecodec.take` takes rows of many such pages. In all functions `width` is the size of a value in bytes: 0 for
booleans, -1 for values that vary in size. With `required`, a null counts as damage. A level codec is a pair as in
`lancecodec.miniblock_levels`.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from lancecodec.blocks cimport FileBlocks, Held, lc_blocks, lc_needs, load_needs, new_held
from lancecodec.buffers cimport ByteView, check_aligned, readable
from lancecodec.miniblock cimport Chunks, lc_chunks
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/take_needs.h" nogil:
    int lc_need_values(const lc_chunks *chunks, lc_blocks *blocks, const int64_t *rows, int64_t n, int64_t base,
                       lc_needs *needs)
    int lc_need_lists(const lc_chunks *chunks, lc_blocks *blocks, const int64_t *started, const int64_t *rows,
                      int64_t n, int64_t base, lc_needs *needs)

cdef extern from "kernels/variable.h" nogil:
    int lc_variable_block_offsets(lc_bytes block, int64_t n, int64_t base, int out_wide, uint8_t *out_offsets,
                                  lc_bytes *values)
    void lc_store_offset(uint8_t *offsets, int wide, int64_t i, int64_t value)

cdef tuple VALUE_BITS = (None, (8, 16, 32, 64), (8, 16, 32, 64), (32, 64))
cdef tuple LEVEL_KINDS = (LC_LEVEL_FLAT, LC_LEVEL_INLINE, LC_LEVEL_RLE, LC_LEVEL_OUT_OF_LINE)
#: Largest size of a value in bytes.
cdef int64_t MAX_WIDTH = 1 << 40


@cython.final
@cython.no_gc  # cannot be part of a reference cycle, and there may be thousands of pages
cdef class PageTaker:
    """Page from which rows can be taken, made by the functions of this module. It keeps its buffers alive."""

    def __dealloc__(self):
        free(self.table)

    @property
    def num_rows(self):
        """Number of rows."""
        return self.page.rows

    def load_from(self, FileBlocks blocks not None):
        """Set where the bytes of the page have to be loaded before rows are taken.

        Parameters
        ----------
        blocks
            Blocks of the file. The chunks, zipped items and index that describe the page must be views of them.
        """
        self.keep += (blocks,)
        self.page.blocks = &blocks.blocks

    cdef const lc_fsst_table *symbols(self, object table) except? NULL:
        """Return the symbols of an FSST table, or NULL for None."""
        cdef ByteView view
        cdef int problem
        if table is None:
            return NULL
        view = readable(table)
        self.table = <lc_fsst_table *>malloc(sizeof(lc_fsst_table))
        if self.table == NULL:
            raise MemoryError("a symbol table")
        problem = lc_fsst_table_parse(view.data, view.size, self.table)
        if problem:
            fail(problem, "FSST")
        return self.table

    cdef lc_bytes bytes_of(self, object owner) except *:
        """Return the bytes of a buffer, and keep it alive as long as this page."""
        cdef ByteView view = readable(owner)
        cdef lc_bytes data
        self.keep += (view,)
        data.data, data.size = view.data, view.size
        return data


cdef PageTaker make_page(int64_t kind, int64_t rows, int64_t width, bint required):
    cdef PageTaker taker = PageTaker.__new__(PageTaker)
    if rows < 0 or width < -1 or width > MAX_WIDTH:
        raise CodecError(f"a page of {rows} rows of {width} bytes")
    taker.keep = ()
    taker.page.kind, taker.page.rows, taker.page.width, taker.page.required = kind, rows, width, required
    taker.page.entries.count = -1
    taker.page.levels.kind = LC_LEVEL_NONE
    return taker


def nulls(int64_t rows, int64_t width, *, bint required=False):
    """Describe a page of nulls.

    Parameters
    ----------
    rows
        Number of rows.
    width
        Size of a value in bytes.
    required
        Whether a null counts as damage.

    Returns
    -------
    PageTaker
        The page.

    Raises
    ------
    CodecError
        An argument is out of range.
    """
    return make_page(LC_TAKE_NULLS, rows, width, required)


def constant(int64_t rows, int64_t width, value, *, definition=None, bint required=False):
    """Describe a page of one value.

    Parameters
    ----------
    rows
        Number of rows.
    width
        Size of a value in bytes.
    value
        Bytes of the value. A boolean has one byte, 0 or 1.
    definition
        Definition levels of 16 bits per row, 0 or 1 (null), or None if there are no nulls.
    required
        Whether a null counts as damage.

    Returns
    -------
    PageTaker
        The page.

    Raises
    ------
    CodecError
        The value has another width, or there are too few levels.
    """
    cdef PageTaker taker = make_page(LC_TAKE_CONSTANT, rows, width, required)
    cdef lc_bytes levels
    taker.page.value = taker.bytes_of(value)
    if width >= 0 and taker.page.value.size != (width if width else 1):
        raise CodecError(f"{taker.page.value.size} bytes are not a value of {width} bytes")
    if definition is not None:
        levels = taker.bytes_of(definition)
        if levels.size // 2 < rows:
            raise CodecError(f"{levels.size} bytes are not {rows} levels")
        taker.page.definition = levels.data
    return taker


cdef int read_codec(object given, int64_t top, lc_level_codec *codec) except -1:
    """Read the codec of a level stream; None means that there is no stream."""
    cdef int64_t kind, packed
    codec.kind, codec.top = LC_LEVEL_NONE, top
    if given is not None:
        kind, packed = given
        if kind not in LEVEL_KINDS or not 0 <= packed <= 16:
            raise CodecError(f"unknown level codec {kind} of {packed} bits")
        codec.kind, codec.width = kind, packed
    return 0


cdef PageTaker chunked(Chunks chunks, int64_t width, object definition, Lists lists, bint required):
    cdef PageTaker taker = make_page(LC_TAKE_CHUNKS, chunks.chunks.table.items, width, required)
    if chunks.chunks.plain != NULL:
        raise CodecError("compressed chunks are not supported")
    if (definition is not None) != chunks.chunks.definition or (lists is not None) != chunks.chunks.repetition:
        raise CodecError("the level codecs do not match the level streams of the chunks")
    taker.keep += (chunks,)
    taker.page.chunks = &chunks.chunks
    if lists is None:
        read_codec(definition, 1, &taker.page.levels)
        return taker
    if lists.num_chunks != chunks.chunks.table.count:
        raise CodecError("the repetition index does not match these chunks")
    taker.keep += (lists,)
    taker.lists = lists.lists
    read_codec(definition, lists.top, &taker.lists.codecs.definition)
    if definition is None and lists.top:
        raise CodecError(f"definition levels up to {lists.top} without a stream")
    taker.page.lists, taker.page.rows = &taker.lists, lists.num_rows
    return taker


@cython.final
@cython.no_gc
cdef class Lists:
    """Structure of lists in the chunks of a mini-block page.

    Parameters
    ----------
    started
        int64 buffer with the number of rows that start in front of each chunk, then of all, as
        `miniblock_levels.RepetitionIndex.started` has them.
    repetition
        Level codec of the repetition levels.
    null_items, null_lists, empty_lists
        Which of these exist. In this order they have the definition levels from 1 on.
    required
        Whether a null list counts as damage.

    Attributes
    ----------
    num_rows : int
        Number of rows.

    Raises
    ------
    CodecError
        A codec does not exist, or `started` does not begin with 0 or decreases.
    """

    def __cinit__(self, started, repetition, *, bint null_items=False, bint null_lists=False,
                  bint empty_lists=False, bint required=False):
        cdef int64_t i
        cdef const int64_t *rows
        if repetition is None:
            raise CodecError("lists need repetition levels")
        read_codec(repetition, 1, &self.lists.codecs.repetition)
        self.top = self.lists.codecs.visible = 1 if null_items else 0
        self.lists.null_item = self.top
        if null_lists:
            self.top += 1
            self.lists.null_list = self.top
        if empty_lists:
            self.top += 1
            self.lists.empty = self.top
        self.lists.required = required
        self.view = readable(started)
        self.num_chunks = self.view.size // 8 - 1
        rows = <const int64_t *>self.view.data
        check_aligned(rows)
        if self.num_chunks < 0 or rows[0] != 0:
            raise CodecError("the number of started rows must begin with 0")
        for i in range(self.num_chunks):
            if rows[i + 1] < rows[i]:
                raise CodecError(f"rows that start before chunk {i + 1} are fewer than before chunk {i}")
        self.lists.started, self.num_rows = rows, rows[self.num_chunks]


cdef int check_buffers(Chunks chunks, int64_t buffer, int64_t count) except -1:
    if buffer < 0 or buffer > chunks.chunks.buffers - count:
        raise CodecError(f"{count} value buffers from {buffer} on of chunks with {chunks.chunks.buffers}")
    return 0


def fixed_chunks(Chunks chunks not None, int64_t width, int64_t kind, int64_t bits, *, definition=None,
                 entries=None, offsets=None, bint wide=False, int64_t count=0, Lists lists=None, bint required=False):
    """Describe a mini-block page of fixed-width values, or of indices into a dictionary.

    Parameters
    ----------
    chunks
        `Chunks` with all chunks of the page, not compressed.
    width
        Size of a value (of a dictionary entry) in bytes.
    kind, bits
        Codec and size of the stored values in bits, as for `miniblock_values.FixedValues`.
    definition
        Level codec of the definition levels, or None. Without lists a level is 0 or 1 (null).
    entries
        Bytes of the dictionary entries, or None if there is no dictionary.
    offsets
        ``count + 1`` offsets of the entries, of 32 bits, or 64 if `wide`; None if entries have `width` bytes each.
    wide
        Whether the offsets have 64 bits.
    count
        Number of dictionary entries.
    lists
        `Lists`, or None if each row is one value.
    required
        Whether a null counts as damage.

    Returns
    -------
    PageTaker
        The page.

    Raises
    ------
    CodecError
        The arguments do not match each other or the chunks.
    """
    cdef PageTaker taker = chunked(chunks, width, definition, lists, required)
    cdef lc_take_entries *table = &taker.page.entries
    cdef lc_bytes places
    if kind < 0 or kind > LC_VALUE_SPLIT or (VALUE_BITS[kind] is not None and bits not in VALUE_BITS[kind]):
        raise CodecError(f"value codec {kind} does not support values of {bits} bits")
    check_buffers(chunks, 0, 2 if kind == LC_VALUE_RLE else 1)
    taker.page.values.kind, taker.page.values.bits = kind, bits
    if entries is None:
        if width < 0 or bits != (8 * width if width else 1) or (width == 0 and kind != LC_VALUE_FLAT):
            raise CodecError(f"values of {bits} bits are not values of {width} bytes")
        return taker
    if bits not in (8, 16, 32, 64) or width == 0:
        raise CodecError(f"dictionary indices of {bits} bits for values of {width} bytes")
    table.data, table.count, table.wide = taker.bytes_of(entries), count, wide
    if count < 0 or (width < 0) != (offsets is not None):
        raise CodecError(f"a dictionary of {count} entries; offsets must be given exactly if entries vary in size")
    if width > 0 and table.data.size // width < count:
        raise CodecError(f"{table.data.size} bytes are not {count} dictionary entries of {width} bytes")
    if offsets is not None:
        places = taker.bytes_of(offsets)
        if places.size // (8 if wide else 4) <= count:
            raise CodecError(f"{places.size} bytes are not {count + 1} offsets")
        table.offsets = places.data
    return taker


def indexed_chunks(Chunks chunks not None, int64_t width, int64_t kind, int64_t bits, block, int64_t count, *,
                   bint wide=False, definition=None, bint required=False):
    """Describe a mini-block page of indices into a dictionary that is given as it is stored.

    Parameters
    ----------
    chunks, width, kind, bits, definition, required
        As for `fixed_chunks`; `width` is not 0.
    block
        Entries of `width` bytes side by side, or a block of values that vary in size, see `variable.decode_block`.
    count
        Number of dictionary entries, more than 0.
    wide
        Whether offsets of 64 bits are needed for values that vary in size.

    Returns
    -------
    PageTaker
        The page.

    Raises
    ------
    CodecError
        The arguments do not match each other or the chunks, or the block is damaged.
    OffsetOverflowError
        The entries do not fit offsets of 32 bits.
    """
    cdef ByteView view = readable(block)
    cdef lc_bytes stored, values
    cdef bytes places
    cdef uint8_t *offsets
    cdef PageTaker taker
    cdef int problem
    stored.data, stored.size = view.data, view.size
    values.data, values.size = view.data, view.size
    if width > 0:
        if count < 1 or view.size % width or view.size // width != count:
            raise CodecError(f"{view.size} bytes are not {count} dictionary entries of {width} bytes")
        return fixed_chunks(chunks, width, kind, bits, definition=definition, entries=block, count=count,
                            required=required)
    if width == 0 or count < 1 or count > view.size // 4:
        raise CodecError(f"a dictionary of {count} entries in {view.size} bytes for values of {width} bytes")
    places = PyBytes_FromStringAndSize(NULL, (count + 1) * (8 if wide else 4))
    offsets = <uint8_t *>PyBytes_AS_STRING(places)
    lc_store_offset(offsets, wide, 0, 0)
    with nogil:
        problem = lc_variable_block_offsets(stored, count, 0, wide, offsets + (8 if wide else 4), &values)
    if problem:
        fail(problem, f"a dictionary of {count} entries")
    taker = fixed_chunks(chunks, width, kind, bits, definition=definition, entries=block, offsets=places, wide=wide,
                         count=count, required=required)
    taker.page.entries.data = values
    return taker


def text_chunks(Chunks chunks not None, bint wide, *, symbol_table=None, definition=None, Lists lists=None,
                bint required=False):
    """Describe a mini-block page of strings or binaries.

    Parameters
    ----------
    chunks
        `Chunks` with all chunks of the page, not compressed.
    wide
        Whether the stored offsets have 64 bits.
    symbol_table
        FSST table of the page if the values are FSST codes, else None.
    definition, lists, required
        As for `fixed_chunks`.

    Returns
    -------
    PageTaker
        The page.

    Raises
    ------
    CodecError
        The arguments do not match each other or the chunks.
    """
    cdef PageTaker taker = chunked(chunks, -1, definition, lists, required)
    check_buffers(chunks, 0, 1)
    taker.page.text.table, taker.page.text.wide = taker.symbols(symbol_table), wide
    return taker


def zipped(data, int64_t rows, int64_t width, *, int64_t bits_def=0, index=None, int64_t index_width=0,
           offset_bits=None, symbol_table=None, bint required=False):
    """Describe a full-zip page without lists.

    Parameters
    ----------
    data
        The zipped items. A boolean is one byte.
    rows
        Number of rows.
    width
        Size of a value in bytes.
    bits_def
        Number of bits of the definition level in a control word.
    index
        Repetition index with the byte position of each row, for values that vary in size.
    index_width
        Size of an index entry in bytes: 1, 2, 4 or 8.
    offset_bits
        Size in bits (32 or 64) of the length in front of each value, for values that vary in size.
    symbol_table
        FSST table of the page if the values are FSST codes, else None.
    required
        Whether a null counts as damage.

    Returns
    -------
    PageTaker
        The page.

    Raises
    ------
    CodecError
        An argument is out of range, or the index does not have `rows` rows.
    """
    cdef PageTaker taker = make_page(LC_TAKE_ZIPPED, rows, width, required)
    cdef lc_zip *layout = &taker.page.zip
    if not 0 <= bits_def <= 16:
        raise CodecError(f"{bits_def} bits of definition levels")
    layout.bits_def, layout.control = bits_def, lc_zip_control(bits_def)
    layout.top_def = layout.visible = 1 if bits_def else 0
    taker.page.data = taker.bytes_of(data)
    if width >= 0:
        layout.width = width if width else 1
        return taker
    if offset_bits not in (32, 64):
        raise CodecError(f"lengths must have 32 or 64 bits, not {offset_bits}")
    taker.page.index = taker.bytes_of(index)
    if index_width not in (1, 2, 4, 8) or taker.page.index.size // index_width - 1 != rows:
        raise CodecError(f"an index of {taker.page.index.size} bytes for {rows} rows, {index_width} bytes each")
    layout.width, layout.prefix, layout.table = -1, offset_bits // 8, taker.symbols(symbol_table)
    taker.page.index_width = index_width
    return taker


def hold_values(Chunks chunks not None, FileBlocks blocks not None, const int64_t[::1] items not None):
    """Load the chunks of some values of a page.

    Parameters
    ----------
    chunks
        `Chunks` with all chunks of the page, as views of `blocks`.
    blocks
        Blocks of the file.
    items
        int64 array of positions of values in the page, in any order.

    Returns
    -------
    Held
        An object that keeps the chunks as long as it lives.

    Raises
    ------
    CodecError
        A position is outside of the page, a chunk outside of the file, or the file is shorter than its size.
    OSError
        The system cannot read the file.
    """
    cdef Held held = new_held(blocks)
    cdef int problem = LC_OK
    if items.shape[0]:
        with nogil:
            problem = lc_need_values(&chunks.chunks, &blocks.blocks, &items[0], items.shape[0], 0, &held.needs)
    if problem:
        chunks.fail(problem, 0, "values")
    load_needs(&held.needs)
    return held


def hold_lists(Chunks chunks not None, FileBlocks blocks not None, started, const int64_t[::1] rows not None):
    """Load the chunks of some rows of lists.

    Parameters
    ----------
    chunks, blocks
        As for `hold_values`.
    started
        As for `Lists`.
    rows
        int64 array of rows of the page, in any order.

    Returns
    -------
    Held
        An object that keeps the chunks as long as it lives.

    Raises
    ------
    CodecError
        As for `hold_values`, or `started` does not match the chunks.
    OSError
        The system cannot read the file.
    """
    cdef Held held = new_held(blocks)
    cdef ByteView view = readable(started)
    cdef const int64_t *starts = <const int64_t *>view.data
    cdef int problem = LC_OK
    check_aligned(starts)
    if view.size // 8 - 1 != chunks.chunks.table.count:
        raise CodecError(f"{view.size} bytes are not the starts of the rows of {chunks.chunks.table.count} chunks")
    if rows.shape[0]:
        with nogil:
            problem = lc_need_lists(&chunks.chunks, &blocks.blocks, starts, &rows[0], rows.shape[0], 0, &held.needs)
    if problem:
        chunks.fail(problem, 0, "rows")
    load_needs(&held.needs)
    return held
