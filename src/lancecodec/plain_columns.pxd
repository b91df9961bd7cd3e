"""Columns of one small page; declarations for modules that read such columns in another order."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView
from lancecodec.problems cimport lc_bytes

cdef extern from "kernels/miniblock_fixed.h" nogil:
    int LC_VALUE_FLAT, LC_VALUE_INLINE, LC_VALUE_RLE, LC_VALUE_SPLIT
    ctypedef struct lc_value_codec:
        int64_t kind
        int64_t bits
        int64_t buffer

cdef extern from "kernels/miniblock_levels.h" nogil:
    int LC_LEVEL_NONE, LC_LEVEL_FLAT, LC_LEVEL_INLINE, LC_LEVEL_RLE, LC_LEVEL_OUT_OF_LINE
    ctypedef struct lc_level_codec:
        int64_t kind
        int64_t width
        int64_t top

cdef extern from "kernels/plain_columns.h" nogil:
    int64_t LC_PLAIN_WIDTH
    ctypedef struct lc_plain_column:
        lc_value_codec codec
        int64_t bits
        int64_t buffers
        int large
        lc_level_codec definition
        lc_bytes words
        lc_bytes values
        lc_bytes dictionary
        int64_t entries_kind
        int64_t entries
    ctypedef struct lc_plain_scratch:
        int64_t *starts
        int64_t *firsts
        const uint8_t **data
        uint8_t *chunk
        uint8_t *levels
        uint8_t *indices
        uint8_t *entries

cdef enum:
    ROWS = 1 << 15
    MOST_BUFFERS = 3
    PLACED = 64
    COPIED = 65
    OTHER = -1

cdef struct Slice:
    const uint8_t *data
    int64_t size

#: A column as its metadata has it.
cdef struct Found:
    Slice column, page
    uint64_t offsets[MOST_BUFFERS]
    uint64_t sizes[MOST_BUFFERS]
    int64_t buffers
    uint64_t length

#: A column with its plan; `kind` is that of the codec, or PLACED or COPIED, and OTHER unless the column is plain.
cdef struct Column:
    int64_t kind
    lc_plain_column page

cdef bint find_column(const uint8_t *at, const uint8_t *end, Found *out) noexcept nogil
cdef bint is_inside(uint64_t offset, uint64_t size, uint64_t total) noexcept nogil
cdef int describe(ByteView file, source, list kept, int64_t rows, const Found *found, tuple plan,
                  Column *column) except -1
cdef int64_t padded(int64_t size) noexcept nogil
cdef int64_t scratch_size(int64_t rows, int64_t items) noexcept nogil
cdef void divide(uint8_t *memory, int64_t rows, int64_t items, lc_plain_scratch *out) noexcept nogil
