"""Pages from which rows can be taken; declarations for `take`."""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from lancecodec.blocks cimport FileBlocks, lc_blocks
from lancecodec.buffers cimport ByteView
from lancecodec.miniblock cimport lc_chunks
from lancecodec.problems cimport lc_bytes


cdef extern from "kernels/take.h" nogil:
    int LC_TAKE_NULLS, LC_TAKE_CONSTANT, LC_TAKE_CHUNKS, LC_TAKE_ZIPPED
    int LC_VALUE_FLAT, LC_VALUE_INLINE, LC_VALUE_RLE, LC_VALUE_SPLIT
    int LC_LEVEL_NONE, LC_LEVEL_FLAT, LC_LEVEL_INLINE, LC_LEVEL_RLE, LC_LEVEL_OUT_OF_LINE
    ctypedef struct lc_fsst_table:
        int count
    ctypedef struct lc_value_codec:
        int64_t kind
        int64_t bits
        int64_t buffer
    ctypedef struct lc_text_codec:
        const lc_fsst_table *table
        int64_t buffer
        int wide
    ctypedef struct lc_level_codec:
        int64_t kind
        int64_t width
        int64_t top
    ctypedef struct lc_take_entries:
        lc_bytes data
        const uint8_t *offsets
        int wide
        int64_t count
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
    ctypedef struct lc_level_codecs:
        lc_level_codec repetition
        lc_level_codec definition
        int64_t visible
    ctypedef struct lc_take_lists:
        lc_level_codecs codecs
        const int64_t *started
        int64_t null_item
        int64_t null_list
        int64_t empty
        int required
    ctypedef struct lc_take_page:
        int64_t kind
        int64_t rows
        int64_t width
        int required
        const lc_chunks *chunks
        lc_value_codec values
        lc_text_codec text
        lc_level_codec levels
        lc_take_entries entries
        const lc_take_lists *lists
        lc_zip zip
        lc_bytes data
        lc_bytes index
        int64_t index_width
        lc_bytes value
        const uint8_t *definition
        lc_blocks *blocks
    int lc_fsst_table_parse(const uint8_t *bytes, int64_t size, lc_fsst_table *table)
    int64_t lc_zip_control(int64_t bits)
    int64_t lc_take_expected(const lc_take_page *page)


@cython.final
cdef class PageTaker:
    cdef lc_take_page page
    cdef lc_take_lists lists
    cdef lc_fsst_table *table
    cdef tuple keep
    cdef const lc_fsst_table *symbols(self, object table) except? NULL
    cdef lc_bytes bytes_of(self, object owner) except *


@cython.final
cdef class Lists:
    cdef lc_take_lists lists
    cdef ByteView view
    cdef int64_t top
    cdef int64_t num_chunks
    cdef readonly int64_t num_rows
