"""Pages of words without nulls, for columns of so few values that choosing their encoding must cost next to nothing.

One call measures the values, and encodes them if it is sure of the smallest form: as they are, or bit-packed in chunks.
"""

import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from lancecodec.buffers cimport ByteView, check_aligned, readable
from lancecodec.problems cimport LC_OK, fail

from lancecodec.errors import CodecError

cdef extern from "kernels/statistics.h" nogil:
    ctypedef struct lc_statistics:
        int64_t runs, cut_runs, rle_entries, inline_bytes, bits, nulls, nans, first_valid
        uint64_t differ, low, high, low_key, high_key
    ctypedef struct lc_stat_values:
        const uint8_t *data
        int64_t n, width, kind
        const uint8_t *validity
        int64_t bit, cut
        uint8_t *widths
    void lc_statistics_fixed(const lc_stat_values *v, lc_statistics *s)

cdef extern from "kernels/dictionary.h" nogil:
    ctypedef struct lc_secret:
        uint64_t a
        uint64_t b
    ctypedef struct lc_dict_table:
        int64_t count
        int64_t bytes
    ctypedef struct lc_dict_values:
        const uint8_t *data
        int64_t size
        int64_t width
        int64_t n
    void lc_dict_open(lc_dict_table *d, int64_t *positions, int64_t limit, int64_t max_bytes, lc_secret secret)
    void lc_dict_close(lc_dict_table *d)
    int lc_dict_sample(lc_dict_table *d, lc_dict_values *v, int64_t blocks, int64_t size, int64_t *looked)

cdef extern from "kernels/gather.h" nogil:
    int lc_gather_fixed(const uint8_t *entries, int64_t num_entries, int64_t width, const uint8_t *codes,
                        int64_t code_width, int64_t n, uint8_t *out)

cdef extern from "kernels/fastlanes.h" nogil:
    int64_t lc_inline_pack(const uint8_t *values, int64_t n, int bits, uint8_t *out, int64_t *ends)

cdef extern from "kernels/miniblock_write.h" nogil:
    ctypedef struct lc_chunk_stream:
        const uint8_t *data
        const int64_t *ends
    ctypedef struct lc_chunk_plan:
        int64_t count
        const int64_t *values
        const int64_t *levels
        int64_t level_streams
        int64_t num_streams
        lc_chunk_stream *streams
        int64_t full
        int large
    int64_t lc_chunk_plan_check(const lc_chunk_plan *plan, int64_t *where)
    int64_t lc_chunk_plan_header(const lc_chunk_plan *plan)
    void lc_chunk_plan_assemble(const lc_chunk_plan *plan, uint8_t *words, uint8_t *chunks)

#: Largest page and largest sample, in values.
MAX_VALUES = 1 << 20
MAX_SAMPLE = 4096

cdef enum:
    BLOCK = 1024
    UNIT = 8
    #: Values after which runs are cut, because no chunk of runs has more.
    RUN_CUT = 16384

# Chosen once per process, so that nobody can prepare values that collide.
cdef lc_secret SECRET
SECRET.a, SECRET.b = int.from_bytes(os.urandom(8), "little"), int.from_bytes(os.urandom(8), "little")


cdef struct Page:
    const uint8_t *data
    int64_t count, width
    int large
    const int64_t *rows
    int64_t sampled, most


cdef int64_t count_sample(const Page *page, int *problem) noexcept nogil:
    """Return the number of distinct values among the sampled ones."""
    cdef uint8_t sample[8 * 4096]
    cdef lc_dict_values values
    cdef lc_dict_table table
    cdef int64_t looked = 0
    problem[0] = lc_gather_fixed(page.data, page.count, page.width, <const uint8_t *>page.rows, 8, page.sampled, sample)
    if problem[0] != LC_OK:
        return 0
    memset(&values, 0, sizeof(values))
    values.data, values.size, values.width, values.n = sample, page.sampled * page.width, page.width, page.sampled
    lc_dict_open(&table, NULL, INT64_MAX, INT64_MAX, SECRET)
    problem[0] = lc_dict_sample(&table, &values, 1, page.sampled, &looked)
    lc_dict_close(&table)
    return table.count


cdef int64_t packed_size(const Page *page) noexcept nogil:
    """Measure the values, and return the size of bit-packed chunks with their words.

    The result is 0 if a form other than plain and bit-packed words may be the smallest.
    """
    cdef lc_stat_values values
    cdef lc_statistics found
    cdef lc_chunk_plan plan
    cdef int64_t chunks = (page.count + BLOCK - 1) // BLOCK
    memset(&values, 0, sizeof(values))
    memset(&found, 0, sizeof(found))
    memset(&plan, 0, sizeof(plan))
    values.data, values.n, values.width, values.kind, values.cut = page.data, page.count, page.width, c'u', RUN_CUT
    lc_statistics_fixed(&values, &found)
    if found.differ == 0 or found.rle_entries * (page.width + 1) < page.count * page.width:
        return 0
    plan.num_streams, plan.large = 1, page.large
    # the width in front of each block fills a unit
    return found.inline_bytes + chunks * (lc_chunk_plan_header(&plan) + (4 if page.large else 2) + UNIT - page.width)


cdef object pack(const Page *page):
    """Return the words and the chunks of a bit-packed page, whose values may have changed since they were measured."""
    cdef int64_t chunks = (page.count + BLOCK - 1) // BLOCK, size = 0, where = 0, i
    cdef int64_t bound = chunks * (BLOCK + 1) * page.width
    cdef int64_t *ends = <int64_t *>PyMem_Malloc(2 * chunks * sizeof(int64_t) + bound)
    cdef lc_chunk_plan plan
    cdef bytes words, data
    cdef char *word_bytes
    cdef char *data_bytes
    if ends == NULL:
        raise MemoryError()
    try:
        memset(&plan, 0, sizeof(plan))
        plan.count, plan.num_streams, plan.large, plan.values = chunks, 1, page.large, ends + chunks
        plan.streams[0].data, plan.streams[0].ends = <uint8_t *>(ends + 2 * chunks), ends
        for i in range(chunks):
            ends[chunks + i] = min(BLOCK, page.count - BLOCK * i)
        with nogil:
            lc_inline_pack(page.data, page.count, <int>(8 * page.width), <uint8_t *>(ends + 2 * chunks), ends)
            size = lc_chunk_plan_check(&plan, &where)
        if size < 0:
            raise CodecError(f"chunk {where} of {chunks} bit-packed chunks cannot be written")
        words = PyBytes_FromStringAndSize(NULL, chunks * (4 if page.large else 2))
        data = PyBytes_FromStringAndSize(NULL, size)
        word_bytes, data_bytes = PyBytes_AS_STRING(words), PyBytes_AS_STRING(data)
        with nogil:
            lc_chunk_plan_assemble(&plan, <uint8_t *>word_bytes, <uint8_t *>data_bytes)
        return words, data
    finally:
        PyMem_Free(ends)


def encode(values, int64_t begin, int64_t count, int64_t width, bint large, const int64_t[::1] rows not None,
           int64_t most):
    """Encode a page of words without nulls in its smallest form, if it is sure of that.

    Parameters
    ----------
    values
        Buffer with the words.
    begin
        Position of the first word in bytes.
    count
        Number of words, 1 to `MAX_VALUES`.
    width
        Size of a word in bytes: 1, 2, 4 or 8.
    large
        Whether words of chunks and sizes of buffers have 32 bits (2.2 and later).
    rows
        int64 array of up to `MAX_SAMPLE` row numbers, a sample; empty if a dictionary does not pay for any values.
    most
        Number of distinct values in the sample up to which a dictionary may be the smallest form.

    Returns
    -------
    tuple or None
        The chunk words and the chunks of a bit-packed page, as bytes. An empty tuple if the words are smallest as they
        are. None if another form may be smaller: a constant, runs or a dictionary.

    Raises
    ------
    CodecError
        The words lie outside the buffer, a row is outside the page, or an argument is out of range.
    """
    cdef ByteView view = readable(values)
    cdef Page page
    cdef int64_t distinct = 0, packed
    cdef int problem = LC_OK
    if width not in (1, 2, 4, 8):
        raise CodecError(f"words must have 1, 2, 4 or 8 bytes, not {width}")
    if not 1 <= count <= MAX_VALUES or begin < 0 or begin > view.size or count * width > view.size - begin:
        raise CodecError(f"{count} words of {width} bytes from byte {begin} on, in a buffer of {view.size} bytes")
    if rows.shape[0] > MAX_SAMPLE:
        raise CodecError(f"a sample of {rows.shape[0]} words; at most {MAX_SAMPLE} are supported")
    page.data, page.count, page.width, page.large = view.data + begin, count, width, large
    page.rows, page.sampled, page.most = NULL, rows.shape[0], most
    if page.sampled:
        check_aligned(&rows[0])
        page.rows = &rows[0]
    with nogil:
        if page.sampled:
            distinct = count_sample(&page, &problem)
        packed = packed_size(&page) if page.sampled == 0 or distinct > most else 0
    if problem != LC_OK:
        fail(problem, f"sample of {page.sampled} of {count} words")
    if packed == 0:
        return None
    return pack(&page) if packed < count * width else ()
