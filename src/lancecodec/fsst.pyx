"""FSST string compression: strings as one-byte codes for the symbols of a table, one table per page.

Source: P. Boncz, T. Neumann, V. Leis, "FSST: Fast Random Access String Compression", VLDB 2020. A code below the number
of symbols stands for a symbol of 1 to 8 bytes. The code 255 is an escape: the byte behind it stands for itself.

A writer calls `build`, then `Encoder.encode`. If the sizes that `build` returns promise too little, it stores the
strings verbatim, with a table from `write_verbatim_table`. A reader calls `SymbolTable.decode` for each chunk.

`TABLE_SIZE` is the size of a serialised table in bytes, `MAX_SYMBOLS` the largest number of symbols in a table.
"""

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
    """Compute the output size that `Encoder.encode` needs.

    Parameters
    ----------
    size
        Size of all strings together in bytes.

    Returns
    -------
    int
        Size in bytes.

    Raises
    ------
    CodecError
        `size` is negative or too large.
    """
    if size < 0 or size > 2**61:
        raise CodecError(f"strings of {size} bytes are not supported")
    return lc_fsst_bound(size)


def write_table(symbols, table):
    """Serialise a table of given symbols.

    Parameters
    ----------
    symbols
        Iterable of bytes objects of 1 to 8 bytes, in code order.
    table
        Output of exactly `TABLE_SIZE` bytes.

    Raises
    ------
    CodecError
        There are more than `MAX_SYMBOLS` symbols, a symbol does not have 1 to 8 bytes, or `table` has the wrong size.
    """
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
    """Serialise the table of a page whose strings are stored verbatim.

    Parameters
    ----------
    table
        Output of exactly `TABLE_SIZE` bytes.

    Raises
    ------
    CodecError
        `table` has the wrong size.
    """
    lc_fsst_table_write(NULL, NULL, 0, False, table_output(table).data)


cdef ByteView table_output(table):
    cdef ByteView target = writable(table)
    if target.size != LC_FSST_TABLE_SIZE:
        raise CodecError(f"output of {target.size} bytes must have the size of a symbol table, {LC_FSST_TABLE_SIZE}")
    return target


cdef int check_offsets_size(ByteView offsets, bint wide, int64_t n, str what) except -1:
    """Raise CodecError unless there is room for `n` offsets. The number may come from a file."""
    if n < 0 or offsets.size // (8 if wide else 4) < n:
        raise CodecError(f"{what} of {offsets.size} bytes do not hold {n} offsets of {64 if wide else 32} bits")
    return 0


cdef int load_job(lc_fsst_job *job, ByteView data, ByteView offsets, bint wide, int64_t n) except -1:
    cdef int problem
    if n < 0 or n >= 2**60:
        raise CodecError(f"the number of strings is out of range: {n}")
    check_offsets_size(offsets, wide, n + 1, "offsets")
    with nogil:
        problem = lc_fsst_check_offsets(offsets.data, wide, n, data.size)
    if problem:
        fail(problem, f"FSST, {n} strings of {data.size} bytes")
    job.data, job.size, job.offsets, job.n = data.data, data.size, offsets.data, n
    job.out_offsets = job.out = NULL
    return 0


def build(data, offsets, bint wide, int64_t n, table):
    """Build a symbol table for strings, from a sample of about 16 KiB of them.

    The same strings always result in the same table.

    Parameters
    ----------
    data
        Bytes that the offsets point into.
    offsets
        n + 1 ascending offsets of 32 bits, or 64 if `wide`. The first one need not be 0.
    wide
        Whether the offsets have 64 bits.
    n
        Number of strings.
    table
        Output of exactly `TABLE_SIZE` bytes. The table marks the strings as compressed, and has no symbols if all
        strings are empty.

    Returns
    -------
    sampled : int
        Size of the sample in bytes.
    compressed : int
        Size of the sample when compressed with this table. Compressed divided by sampled is an estimate for all
        strings, slightly too good because the table was built for the sample. From 1 on, verbatim strings are smaller.

    Raises
    ------
    CodecError
        The offsets decrease or exceed the data, or an argument has the wrong size.
    MemoryError
        There is not enough memory.
    """
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
    """Symbols of a page, prepared for decoding its strings.

    The methods take strings as `data`, the bytes of all strings back to back, and `ends`, n offsets of 32 bits (64 if
    `wide`). String i ends in front of byte ``ends[i] - first`` of `data` and begins where the previous string ended;
    string 0 begins at byte 0. So `ends` may be Arrow offsets without the first one, with the first one passed as
    `first`.

    Parameters
    ----------
    table
        The 2312 bytes from the description of the page.

    Raises
    ------
    CodecError
        `table` is not a valid symbol table.
    """

    cdef lc_fsst_table table

    def __init__(self, table):
        cdef ByteView source = readable(table)
        cdef int problem = lc_fsst_table_parse(source.data, source.size, &self.table)
        if problem:
            fail(problem, f"FSST symbol table of {source.size} bytes")

    @property
    def compressed(self):
        """True if the strings are compressed; otherwise they are stored verbatim."""
        return bool(self.table.compressed)

    @property
    def symbols(self):
        """List of the symbols as bytes objects, in code order."""
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
        """Compute the size of strings when decoded.

        Parameters
        ----------
        data
            The compressed strings, back to back.

        Returns
        -------
        int
            Size of all strings together in bytes.

        Raises
        ------
        CodecError
            A code has no symbol, or the last byte is an escape.
        """
        cdef ByteView source = readable(data)
        cdef int64_t size
        with nogil:
            size = lc_fsst_decoded_size(&self.table, source.data, source.size)
        if size < 0:
            raise CodecError(f"FSST, {source.size} bytes: a code has no symbol, or an escape has no byte")
        return size

    def decode(self, data, ends, bint wide, int64_t first, int64_t n, int64_t base, bint out_wide, out_ends, out):
        """Decode strings into Arrow offsets and bytes.

        Parameters
        ----------
        data, ends, wide, first, n
            The n strings, as described for the class.
        base
            Position of `out` among the bytes of the final array. It is added to the ends.
        out_wide
            Whether the ends written have 64 bits.
        out_ends
            Output of n ends of 32 bits, or 64 if `out_wide`. It may be the buffer `ends` if both have the same width.
        out
            Output for the decoded bytes. `decoded_size` bytes are enough. Bytes behind the last string may be
            overwritten, so decode chunks into one output in ascending order.

        Returns
        -------
        int
            Number of bytes written.

        Raises
        ------
        CodecError
            The ends decrease or exceed the data, a code has no symbol, or a string ends with an escape.
        OffsetOverflowError
            `out` is too small, or an end does not fit its width.
        """
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
        """Compute the ends of the decoded strings at given positions. Only these strings are read.

        Parameters
        ----------
        data, ends, wide, first, n
            The n strings, as described for the class.
        rows
            int64 array of positions below `n`, in any order.
        base, out_wide
            As for `decode`.
        out_ends
            Output with an end of 32 bits, or 64 if `out_wide`, per position.

        Returns
        -------
        int
            Size of the decoded strings together in bytes.

        Raises
        ------
        CodecError
            A position is outside of the strings, `out_ends` is too small, or a string is damaged as for `decode`.
        OffsetOverflowError
            An end does not fit its width.
        """
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
        """Decode the bytes of the strings at given positions, back to back.

        Parameters
        ----------
        data, ends, wide, first, n
            The n strings, as described for the class.
        rows
            int64 array of positions below `n`, in any order.
        out
            Output for the bytes, of the size that `take_ends` returns.

        Returns
        -------
        int
            Number of bytes written.

        Raises
        ------
        CodecError
            A position is outside of the strings, or a string is damaged as for `decode`.
        OffsetOverflowError
            `out` is too small.
        """
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
    """Symbols of a page, prepared for compressing its strings. With a verbatim table it copies them.

    Parameters
    ----------
    table
        `SymbolTable` of a table from `build`, `write_table` or `write_verbatim_table`.

    Raises
    ------
    MemoryError
        There is not enough memory.
    """

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
        """Compress strings, replacing the longest matching symbol from left to right.

        If several symbols of three or more bytes have the same first three bytes, only the first of them in code order
        is used. `build` does not make such tables.

        Parameters
        ----------
        data
            Bytes that the offsets point into.
        offsets
            n + 1 ascending offsets of 32 bits, or 64 if `wide`. The first one need not be 0.
        wide
            Whether the offsets have 64 bits.
        n
            Number of strings.
        out_wide
            Whether the offsets written have 64 bits.
        out_offsets
            Output of n + 1 offsets of 32 bits, or 64 if `out_wide`, starting with 0.
        out
            Output of at least ``encode_bound(size)`` bytes for strings of `size` bytes, most of it scratch space. For a
            verbatim table, as many bytes as the strings have.

        Returns
        -------
        int
            Number of compressed bytes, at the start of `out`.

        Raises
        ------
        CodecError
            The offsets decrease or exceed the data, or an output is too small.
        OffsetOverflowError
            An offset does not fit 32 bits.
        """
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
