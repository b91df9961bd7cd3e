"""FSST: strings as rows of one-byte codes for the symbols of a table, one table a page."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_BAD_INDEX, fail

from lancecodec.errors import CodecError

cdef extern from "kernels/fsst_build.h" nogil:
    int LC_FSST_TABLE_SIZE, LC_FSST_MAX_SYMBOLS
    ctypedef struct lc_fsst_table:
        uint64_t words[512]
        uint8_t lengths[512]
        int count
        int compressed
    ctypedef struct lc_fsst_strings:
        const uint8_t *data
        int64_t size
        const uint8_t *ends
        int wide
        int64_t first
        int64_t n
    ctypedef struct lc_fsst_sink:
        uint8_t *ends
        int wide
        int64_t base
        uint8_t *data
        int64_t capacity
    ctypedef struct lc_fsst_lookup:
        pass
    ctypedef struct lc_fsst_job:
        const uint8_t *data
        int64_t size
        const uint8_t *offsets
        int64_t n
        uint8_t *out_offsets
        uint8_t *out
    ctypedef struct lc_fsst_symbols:
        uint64_t words[255]
        uint8_t lengths[255]
        int count
        int64_t size
    ctypedef struct lc_fsst_builder:
        lc_fsst_symbols best
    int lc_fsst_table_parse(const uint8_t *bytes, int64_t size, lc_fsst_table *table)
    void lc_fsst_table_write(const uint64_t *symbols, const uint8_t *lengths, int count, int compressed, uint8_t *bytes)
    int64_t lc_fsst_decoded_size(const lc_fsst_table *table, const uint8_t *src, int64_t size)
    int lc_fsst_decode_strings(const lc_fsst_table *table, const lc_fsst_strings *strings, const lc_fsst_sink *sink,
                               int64_t *written)
    int lc_fsst_take_ends(const lc_fsst_table *table, const lc_fsst_strings *strings, const int64_t *rows, int64_t n,
                          const lc_fsst_sink *sink, int64_t *total, int64_t *where)
    int lc_fsst_take_bytes(const lc_fsst_table *table, const lc_fsst_strings *strings, const int64_t *rows, int64_t n,
                           uint8_t *out, int64_t capacity, int64_t *total, int64_t *where)
    int64_t lc_fsst_bound(int64_t size)
    int64_t lc_fsst_job_size(const lc_fsst_job *job, int wide)
    int lc_fsst_check_offsets(const uint8_t *offsets, int wide, int64_t n, int64_t size)
    void lc_fsst_lookup_fill(lc_fsst_lookup *lookup, const lc_fsst_table *table)
    int lc_fsst_encode(const lc_fsst_lookup *lookup, const lc_fsst_job *job, int wide, int out_wide, int64_t *written)
    int lc_fsst_copy(const lc_fsst_job *job, int wide, int out_wide, int64_t *written)
    void lc_fsst_build(lc_fsst_builder *builder, const lc_fsst_job *job, int wide, int64_t *sampled)

TABLE_SIZE = LC_FSST_TABLE_SIZE
MAX_SYMBOLS = LC_FSST_MAX_SYMBOLS


def encode_bound(int64_t size):
    if size < 0 or size > 2**61:
        raise CodecError(f"there are no strings of {size} bytes")
    return lc_fsst_bound(size)


def write_table(symbols, table):
    cdef uint64_t words[255]
    cdef uint8_t lengths[255]
    cdef list given = [bytes(symbol) for symbol in symbols]
    cdef int count = len(given) if len(given) <= LC_FSST_MAX_SYMBOLS else -1, code
    if count < 0:
        raise CodecError(f"{len(given)} symbols are too many: a table holds {LC_FSST_MAX_SYMBOLS}")
    for code in range(count):
        if not 1 <= len(given[code]) <= 8:
            raise CodecError(f"symbol {code} has {len(given[code])} bytes instead of 1 to 8")
        lengths[code] = len(given[code])
        words[code] = int.from_bytes(given[code], "little")
    lc_fsst_table_write(words, lengths, count, True, table_output(table).data)


def write_verbatim_table(table):
    lc_fsst_table_write(NULL, NULL, 0, False, table_output(table).data)


cdef ByteView table_output(table):
    cdef ByteView target = writable(table)
    if target.size != LC_FSST_TABLE_SIZE:
        raise CodecError(f"output of {target.size} bytes is no room for a symbol table of {LC_FSST_TABLE_SIZE}")
    return target


cdef int check_offsets_size(ByteView offsets, bint wide, int64_t n, str what) except -1:
    """Room for `n` offsets, which may be a number from a file."""
    if n < 0 or offsets.size // (8 if wide else 4) < n:
        raise CodecError(f"{what} of {offsets.size} bytes do not hold {n} offsets of {64 if wide else 32} bits")
    return 0


cdef int load_job(lc_fsst_job *job, ByteView data, ByteView offsets, bint wide, int64_t n) except -1:
    cdef int problem
    if n < 0 or n >= 2**60:
        raise CodecError(f"there are no {n} strings")
    check_offsets_size(offsets, wide, n + 1, "offsets")
    with nogil:
        problem = lc_fsst_check_offsets(offsets.data, wide, n, data.size)
    if problem:
        fail(problem, f"FSST, {n} strings of {data.size} bytes")
    job.data, job.size, job.offsets, job.n = data.data, data.size, offsets.data, n
    job.out_offsets = job.out = NULL
    return 0


def build(data, offsets, bint wide, int64_t n, table):
    cdef ByteView source = readable(data), places = readable(offsets), target = table_output(table)
    cdef lc_fsst_job job
    cdef int64_t sampled = 0, size
    load_job(&job, source, places, wide, n)
    cdef lc_fsst_builder *builder = <lc_fsst_builder *>PyMem_RawCalloc(1, sizeof(lc_fsst_builder))
    if builder == NULL:
        raise MemoryError("no memory to build a symbol table")
    with nogil:
        lc_fsst_build(builder, &job, wide, &sampled)
        size = builder.best.size
        lc_fsst_table_write(builder.best.words, builder.best.lengths, builder.best.count, True, target.data)
        PyMem_RawFree(builder)
    return sampled, size


cdef class SymbolTable:
    """The symbols of a page, ready to decode its strings."""

    cdef lc_fsst_table table

    def __init__(self, table):
        cdef ByteView source = readable(table)
        cdef int problem = lc_fsst_table_parse(source.data, source.size, &self.table)
        if problem:
            fail(problem, f"FSST symbol table of {source.size} bytes")

    @property
    def compressed(self):
        return bool(self.table.compressed)

    @property
    def symbols(self):
        return [self.table.words[code].to_bytes(8, "little")[: self.table.lengths[code]]
                for code in range(self.table.count)]

    cdef int load(self, lc_fsst_strings *strings, ByteView data, ByteView ends, bint wide, int64_t first,
                  int64_t n) except -1:
        check_offsets_size(ends, wide, n, "ends")
        strings.data, strings.size, strings.ends, strings.wide = data.data, data.size, ends.data, wide
        strings.first, strings.n = first, n
        return 0

    cdef int fail_row(self, int problem, int64_t row, int64_t n) except -1:
        if problem == LC_BAD_INDEX:
            raise CodecError(f"row {row} is outside {n} strings")
        return fail(problem, f"FSST, string {row} of {n}")

    def decoded_size(self, data):
        cdef ByteView source = readable(data)
        cdef int64_t size
        with nogil:
            size = lc_fsst_decoded_size(&self.table, source.data, source.size)
        if size < 0:
            raise CodecError(f"FSST, {source.size} bytes: a code has no symbol, or an escape has no byte")
        return size

    def decode(self, data, ends, bint wide, int64_t first, int64_t n, int64_t base, bint out_wide, out_ends, out):
        cdef ByteView source = readable(data), places = readable(ends), target_ends = writable(out_ends)
        cdef ByteView target = writable(out)
        cdef lc_fsst_strings strings
        cdef lc_fsst_sink sink
        cdef int64_t written = 0
        cdef int problem
        self.load(&strings, source, places, wide, first, n)
        check_offsets_size(target_ends, out_wide, n, "output ends")
        sink.ends, sink.wide, sink.base = target_ends.data, out_wide, base
        sink.data, sink.capacity = target.data, target.size
        with nogil:
            problem = lc_fsst_decode_strings(&self.table, &strings, &sink, &written)
        if problem:
            fail(problem, f"FSST, {n} strings of {source.size} compressed bytes")
        return written

    def take_ends(self, data, ends, bint wide, int64_t first, int64_t n, const int64_t[::1] rows not None,
                  int64_t base, bint out_wide, out_ends):
        cdef ByteView source = readable(data), places = readable(ends), target = writable(out_ends)
        cdef lc_fsst_strings strings
        cdef lc_fsst_sink sink
        cdef int64_t total = 0, where = 0, count = rows.shape[0]
        cdef int problem
        check_aligned(&rows[0])
        self.load(&strings, source, places, wide, first, n)
        check_offsets_size(target, out_wide, count, "output ends")
        sink.ends, sink.wide, sink.base, sink.data, sink.capacity = target.data, out_wide, base, NULL, 0
        with nogil:
            problem = lc_fsst_take_ends(&self.table, &strings, &rows[0], count, &sink, &total, &where)
        if problem:
            self.fail_row(problem, where, n)
        return total

    def take_bytes(self, data, ends, bint wide, int64_t first, int64_t n, const int64_t[::1] rows not None, out):
        cdef ByteView source = readable(data), places = readable(ends), target = writable(out)
        cdef lc_fsst_strings strings
        cdef int64_t total = 0, where = 0, count = rows.shape[0]
        cdef int problem
        check_aligned(&rows[0])
        self.load(&strings, source, places, wide, first, n)
        with nogil:
            problem = lc_fsst_take_bytes(&self.table, &strings, &rows[0], count, target.data, target.size, &total,
                                         &where)
        if problem:
            self.fail_row(problem, where, n)
        return total


cdef class Encoder:
    """The symbols of a page, ready to compress its strings."""

    cdef lc_fsst_lookup *lookup
    cdef bint compressed

    def __cinit__(self, SymbolTable table not None):
        self.compressed = table.table.compressed
        self.lookup = <lc_fsst_lookup *>PyMem_RawMalloc(sizeof(lc_fsst_lookup))
        if self.lookup == NULL:
            raise MemoryError("no memory for an FSST encoder")
        lc_fsst_lookup_fill(self.lookup, &table.table)

    def __dealloc__(self):
        PyMem_RawFree(self.lookup)

    def encode(self, data, offsets, bint wide, int64_t n, bint out_wide, out_offsets, out):
        cdef ByteView source = readable(data), places = readable(offsets), target_offsets = writable(out_offsets)
        cdef ByteView target = writable(out)
        cdef lc_fsst_job job
        cdef int64_t written = 0, needed
        cdef int problem
        load_job(&job, source, places, wide, n)
        check_offsets_size(target_offsets, out_wide, n + 1, "output offsets")
        needed = lc_fsst_job_size(&job, wide)
        needed = lc_fsst_bound(needed) if self.compressed else needed
        if target.size < needed:
            raise CodecError(f"output of {target.size} bytes is too small: compressing needs room for {needed}")
        job.out_offsets, job.out = target_offsets.data, target.data
        with nogil:
            if self.compressed:
                problem = lc_fsst_encode(self.lookup, &job, wide, out_wide, &written)
            else:
                problem = lc_fsst_copy(&job, wide, out_wide, &written)
        if problem:
            fail(problem, f"FSST, {n} strings of {source.size} bytes")
        return written
