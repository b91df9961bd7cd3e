"""Columns of a file that are one small page of plain values each: found in one pass over their metadata, read together.

A table of thousands of columns has as many pages, and an object per page and call would cost more than the values.
Metadata of any other form, and pages that contradict it, are left to readers of single columns: the functions say which
columns those are, and do not raise errors for the content of a file.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.miniblock cimport lc_chunk_table_parse, lc_chunks
from lancecodec.problems cimport LC_OK

from lancecodec.errors import CodecError

cdef extern from "kernels/portable.h" nogil:
    uint64_t lc_once_u64(const uint8_t *p)

cdef extern from "kernels/gather.h" nogil:
    void lc_gather_block(const uint8_t *entries, int64_t width, const uint8_t *codes, int64_t code_width, int64_t n,
                         uint8_t *out)

cdef extern from "kernels/miniblock_fixed.h" nogil:
    int LC_VALUE_FLAT, LC_VALUE_INLINE, LC_VALUE_RLE, LC_VALUE_SPLIT
    ctypedef struct lc_value_codec:
        int64_t kind
        int64_t bits
        int64_t buffer
    int lc_fixed_scan(const lc_chunks *chunks, const lc_value_codec *codec, int64_t a, int64_t b, uint8_t *out,
                      uint8_t *scratch, int64_t *where)
    int lc_fixed_take(const lc_chunks *chunks, const lc_value_codec *codec, const int64_t *items, int64_t n,
                      uint8_t *out, uint8_t *scratch, int64_t budget, int64_t *done, int64_t *where)

cdef extern from "kernels/records.h" nogil:
    int LC_FIELD_VARINT, LC_FIELD_BYTES
    ctypedef struct lc_record_field:
        int64_t number
        int64_t kind
        uint64_t value
        const uint8_t *data
        int64_t size
    int lc_record_next(const uint8_t **at, const uint8_t *end, lc_record_field *out)
    int lc_record_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)

cdef enum:
    ROWS = 1 << 15
    ALIGNMENT = 64
    MOST_WIDTH = 64
    PLACED = 64
    OTHER = -1

#: Codec of values side by side in the only buffer of a page.
IN_PLACE = PLACED
#: Most rows of a column: of more, the values cost more than the objects around them.
MOST_ROWS = ROWS

#: Field numbers of columns, pages and encodings; see protos/file2.proto.
cdef enum:
    COLUMN_ENCODING = 1
    COLUMN_PAGES = 2
    PAGE_OFFSETS = 1
    PAGE_SIZES = 2
    PAGE_LENGTH = 3
    PAGE_ENCODING = 4
    PAGE_PRIORITY = 5
    DIRECT = 2
    CONTENT = 1

cdef struct Slice:
    const uint8_t *data
    int64_t size

#: A column as its metadata has it.
cdef struct Found:
    Slice column, page
    uint64_t offsets[2]
    uint64_t sizes[2]
    int64_t buffers
    uint64_t length

#: A column with its plan; `kind` is OTHER unless it is plain.
cdef struct Column:
    int64_t kind, width, buffers
    bint large
    int64_t words, words_size
    int64_t values, values_size

cdef struct Scratch:
    int64_t *starts
    int64_t *firsts
    const uint8_t **data
    uint8_t *values


# -- metadata ------------------------------------------------------------------------------------------------------


cdef bint only_field(const uint8_t *at, const uint8_t *end, int64_t number, Slice *out) noexcept nogil:
    cdef lc_record_field field
    if at == end or lc_record_next(&at, end, &field) != LC_OK or field.kind != LC_FIELD_BYTES:
        return False
    out.data, out.size = field.data, field.size
    return at == end and field.number == number


cdef bint direct_encoding(lc_record_field *field, Slice *out) noexcept nogil:
    return (
        field.kind == LC_FIELD_BYTES
        and only_field(field.data, field.data + field.size, DIRECT, out)
        and only_field(out.data, out.data + out.size, CONTENT, out)
    )


cdef int64_t two_numbers(lc_record_field *field, uint64_t *out) noexcept nogil:
    """Store the numbers of a packed field; return how many there are, 3 for more than two and for other fields."""
    cdef const uint8_t *at = field.data
    cdef const uint8_t *end
    cdef int64_t count = 0
    if field.kind != LC_FIELD_BYTES:
        return 3
    end = at + field.size
    while at < end:
        if count == 2 or not lc_record_varint(&at, end, &out[count]):
            return 3
        count += 1
    return count


cdef bint find_page(const uint8_t *at, const uint8_t *end, Found *out) noexcept nogil:
    cdef lc_record_field field
    cdef int64_t offsets = 0, sizes = 0
    field.value, field.data, field.size = 0, NULL, 0
    while at < end:
        if lc_record_next(&at, end, &field) != LC_OK:
            return False
        if field.number == PAGE_OFFSETS and offsets == 0:
            offsets = two_numbers(&field, out.offsets)
        elif field.number == PAGE_SIZES and sizes == 0:
            sizes = two_numbers(&field, out.sizes)
        elif field.number == PAGE_LENGTH and field.kind == LC_FIELD_VARINT and out.length == 0:
            out.length = field.value
        elif field.number == PAGE_ENCODING and out.page.data == NULL:
            if not direct_encoding(&field, &out.page):
                return False
        elif field.number != PAGE_PRIORITY or field.kind != LC_FIELD_VARINT:
            return False
    out.buffers = offsets
    return out.page.data != NULL and offsets == sizes and (offsets == 1 or offsets == 2)


cdef bint find_column(const uint8_t *at, const uint8_t *end, Found *out) noexcept nogil:
    """Find the only page of a column. Return False for columns of any other form."""
    cdef lc_record_field field
    cdef bint has_page = False
    field.value, field.data, field.size = 0, NULL, 0
    out.column.data = out.page.data = NULL
    out.length = 0
    while at < end:
        if lc_record_next(&at, end, &field) != LC_OK:
            return False
        if field.number == COLUMN_PAGES and field.kind == LC_FIELD_BYTES and not has_page:
            has_page = find_page(field.data, field.data + field.size, out)
            if not has_page:
                return False
        elif field.number == COLUMN_ENCODING and out.column.data == NULL:
            if not direct_encoding(&field, &out.column):
                return False
        else:
            return False
    return has_page and out.column.data != NULL


cdef bint is_inside(uint64_t offset, uint64_t size, uint64_t total) noexcept nogil:
    return size <= total and offset <= total - size


cdef bint is_known(int64_t kind, int64_t width, int64_t buffers) noexcept:
    """Return whether the kernels support a codec."""
    if kind == LC_VALUE_INLINE or kind == LC_VALUE_RLE:
        return width in (1, 2, 4, 8) and buffers == (2 if kind == LC_VALUE_RLE else 1)
    if kind == LC_VALUE_SPLIT:
        return width in (4, 8) and buffers == 1
    return (kind == LC_VALUE_FLAT or kind == PLACED) and 1 <= width <= MOST_WIDTH and buffers == 1


# -- values --------------------------------------------------------------------------------------------------------


cdef int open_chunks(const uint8_t *file, const Column *column, int64_t rows, const Scratch *scratch,
                     lc_chunks *out) noexcept nogil:
    """Find the chunks of a column; `scratch` has room for one more than there are rows."""
    cdef int64_t i, where = 0
    cdef int problem
    out.table.count = column.words_size // (4 if column.large else 2)
    out.table.items = rows
    problem = lc_chunk_table_parse(file + column.words, column.large, column.values_size, &out.table, scratch.starts,
                                   scratch.firsts, &where)
    if problem:
        return problem
    for i in range(out.table.count):
        scratch.data[i] = file + column.values + scratch.starts[i]
    out.table.starts, out.table.firsts = scratch.starts, scratch.firsts
    out.data, out.plain, out.buffers = scratch.data, NULL, column.buffers
    out.repetition = out.definition = 0
    out.large = column.large
    return LC_OK


cdef int scan_column(const uint8_t *file, const Column *column, int64_t rows, int64_t start, int64_t stop,
                     const Scratch *scratch, uint8_t *out) noexcept nogil:
    cdef lc_chunks chunks
    cdef lc_value_codec codec
    cdef int64_t where = 0
    cdef int problem = open_chunks(file, column, rows, scratch, &chunks)
    codec.kind, codec.bits, codec.buffer = column.kind, 8 * column.width, 0
    return problem or lc_fixed_scan(&chunks, &codec, start, stop, out, scratch.values, &where)


cdef int take_column(const uint8_t *file, const Column *column, int64_t rows, const int64_t *items, int64_t n,
                     const Scratch *scratch, uint8_t *out) noexcept nogil:
    cdef lc_chunks chunks
    cdef lc_value_codec codec
    cdef int64_t done = 0, where = 0
    cdef int problem
    if column.kind == PLACED:
        lc_gather_block(file + column.values, column.width, <const uint8_t *>items, 8, n, out)
        return LC_OK
    problem = open_chunks(file, column, rows, scratch, &chunks)
    codec.kind, codec.bits, codec.buffer = column.kind, 8 * column.width, 0
    # without a limit of the work: rows ascend, so that no chunk is decoded twice
    return problem or lc_fixed_take(&chunks, &codec, items, n, out, scratch.values, <int64_t>1 << 62, &done, &where)


cdef int64_t padded(int64_t size) noexcept nogil:
    return (size + ALIGNMENT - 1) & ~<int64_t>(ALIGNMENT - 1)


@cython.no_gc  # cannot be part of a reference cycle
cdef class PlainColumns:
    """Columns of a file, those that are plain with the places of their values.

    It is immutable, so threads may share it. The file is kept alive, not copied.

    Parameters
    ----------
    file
        All bytes of the file.
    table
        Position and size in bytes of the metadata of each column of the file, 8 bytes each.
    numbers
        Columns of the file to find; those outside of the table are not plain.
    kinds
        For each of them a hashable object that names the type of its values.
    rows
        Number of rows.
    plan_of
        Function of a kind, the serialized ``Any`` message of the encoding of a column, and that of its only page.
        It returns None if the page is not plain, otherwise a tuple: the codec (`IN_PLACE`, or one of
        `lancecodec.miniblock_values`), bytes of a value, value buffers of a chunk, whether chunk words have 32 bits,
        and the minimum bits of a value in a chunk. It is called once for all columns with equal descriptions.
        A column that the codec does not support, or whose page does not fit its plan, is not plain either.

    Attributes
    ----------
    rows : int
        Number of rows.

    Raises
    ------
    CodecError
        There are not as many kinds as columns.
    MemoryError
        There is not enough memory.
    """

    cdef ByteView file
    cdef Column *columns
    cdef int64_t count
    cdef readonly int64_t rows

    def __cinit__(self, file, table, list numbers not None, list kinds not None, int64_t rows, plan_of):
        cdef ByteView entries = readable(table)
        cdef int64_t i, number
        cdef dict plans = {}
        if len(numbers) != len(kinds):
            raise CodecError(f"{len(numbers)} columns of {len(kinds)} kinds")
        self.file, self.count, self.rows = readable(file), len(numbers), rows
        self.columns = <Column *>PyMem_Calloc(self.count + 1, sizeof(Column))
        if self.columns == NULL:
            raise MemoryError()
        for i in range(self.count):
            self.columns[i].kind = OTHER
        if rows < 1 or rows > ROWS:
            return
        for i in range(self.count):
            number = numbers[i]
            if 0 <= number < entries.size // 16:
                self.find(&self.columns[i], entries.data + 16 * number, kinds[i], plans, plan_of)

    def __dealloc__(self):
        PyMem_Free(self.columns)

    cdef int find(self, Column *column, const uint8_t *entry, kind, dict plans, plan_of) except -1:
        cdef Found found
        cdef uint64_t position = lc_once_u64(entry), size = lc_once_u64(entry + 8)
        cdef const uint8_t *at
        if not is_inside(position, size, self.file.size):
            return 0
        at = self.file.data + position
        if not find_column(at, at + size, &found) or found.length != <uint64_t>self.rows:
            return 0
        key = (
            kind,
            PyBytes_FromStringAndSize(<const char *>found.column.data, found.column.size),
            PyBytes_FromStringAndSize(<const char *>found.page.data, found.page.size),
        )
        if key not in plans:
            plans[key] = plan_of(*key)
        if plans[key] is not None:
            self.fill(column, &found, plans[key])
        return 0

    cdef int fill(self, Column *column, const Found *found, tuple plan) except -1:
        """Describe a column if its page fits its plan."""
        cdef int64_t kind, i
        cdef double least
        cdef bint large
        kind, column.width, column.buffers, large, least = plan
        column.large = large
        if not is_known(kind, column.width, column.buffers):
            return 0
        for i in range(found.buffers):
            if not is_inside(found.offsets[i], found.sizes[i], self.file.size):
                return 0
        column.values, column.values_size = found.offsets[found.buffers - 1], found.sizes[found.buffers - 1]
        column.words, column.words_size = found.offsets[0], found.sizes[0]
        if kind == PLACED:
            if found.buffers == 1 and column.values_size == self.rows * column.width and self.is_aligned(column):
                column.kind = kind
        elif (
            found.buffers == 2
            and column.words_size % (4 if large else 2) == 0
            and column.words_size // (4 if large else 2) <= self.rows
            and self.rows * least <= 8.0 * column.values_size
        ):
            column.kind = kind
        return 0

    cdef bint is_aligned(self, const Column *column) noexcept:
        return <uintptr_t>(self.file.data + column.values) % <uintptr_t>min(column.width & -column.width, 8) == 0

    def in_place(self):
        """Find the columns whose values can be used where they are.

        Returns
        -------
        list
            For each column the position of its first value in the file, -1 if its values must be decoded, and None if
            it is not plain.
        """
        cdef int64_t i
        return [
            None if self.columns[i].kind == OTHER
            else self.columns[i].values if self.columns[i].kind == PLACED
            else -1
            for i in range(self.count)
        ]

    def extent(self):
        """Find the part of the file with the pages of all plain columns.

        Returns
        -------
        tuple
            Position of its first byte, position behind its last byte, and bytes of the pages in it. The positions are
            equal if no column is plain.
        """
        cdef int64_t i, low = 2**62, high = 0, total = 0
        cdef Column *column
        for i in range(self.count):
            column = &self.columns[i]
            if column.kind != OTHER:
                low = min(low, column.words, column.values)
                high = max(high, column.words + column.words_size, column.values + column.values_size)
                total += column.values_size + (0 if column.kind == PLACED else column.words_size)
        if high == 0:
            return 0, 0, 0
        return low, high, total

    def places(self, int64_t rows, bint taken):
        """Place the values of columns in an output.

        Parameters
        ----------
        rows
            Number of values of each column.
        taken
            True if rows are taken; False if columns whose values are in place need no room.

        Returns
        -------
        list
            The position of each column, at a multiple of 64 bytes, then the size of the output.

        Raises
        ------
        CodecError
            There cannot be so many values.
        """
        cdef int64_t i, at = 0
        cdef list found = [0]
        if rows < 0 or rows > 2**32:
            raise CodecError(f"{rows} values of a column")
        for i in range(self.count):
            if self.columns[i].kind != OTHER and (taken or self.columns[i].kind != PLACED):
                at += padded(rows * self.columns[i].width)
            found.append(at)
        return found

    cdef int check_columns(self, int64_t first, int64_t last) except -1:
        if first < 0 or last < first or last > self.count:
            raise CodecError(f"columns {first} to {last} of {self.count}")
        return 0

    cdef int check_room(self, int64_t first, int64_t last, int64_t rows, bint taken, ByteView target) except -1:
        cdef int64_t i, at = 0
        for i in range(first, last):
            if self.columns[i].kind != OTHER and (taken or self.columns[i].kind != PLACED):
                at += padded(rows * self.columns[i].width)
        if at > target.size:
            raise CodecError(f"output of {target.size} bytes has no room for {rows} rows of columns {first} to {last}")
        return 0

    cdef uint8_t *scratch(self, Scratch *out) except NULL:
        """Allocate room for the chunks of a column, and the values of one of them."""
        cdef int64_t rows = max(min(self.rows, ROWS), 0)  # of plain columns; there are none of more rows
        cdef int64_t words = 8 * (rows + 1)
        cdef uint8_t *memory = <uint8_t *>PyMem_Malloc(3 * words + rows * MOST_WIDTH)
        if memory == NULL:
            raise MemoryError()
        out.starts, out.firsts = <int64_t *>memory, <int64_t *>(memory + words)
        out.data, out.values = <const uint8_t **>(memory + 2 * words), memory + 3 * words
        return memory

    def read(self, int64_t first, int64_t last, int64_t start, int64_t stop, out):
        """Decode a range of rows of some columns.

        Parameters
        ----------
        first, last
            Range ``[first, last)`` of the columns.
        start, stop
            Range ``[start, stop)`` of the rows.
        out
            Output for the columns, one after another as `places` says; the first one is at its begin. Columns whose
            values are in place have no room in it.

        Returns
        -------
        list
            Numbers of the columns that contradict their description, whose part of `out` is undefined.

        Raises
        ------
        CodecError
            A range is outside of the file, or `out` is too small.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out)
        cdef Scratch scratch
        cdef int64_t i, at = 0
        cdef list damaged = []
        cdef int problem
        cdef uint8_t *memory
        self.check_columns(first, last)
        if start < 0 or stop < start or stop > self.rows:
            raise CodecError(f"rows {start} to {stop} of {self.rows}")
        self.check_room(first, last, stop - start, False, target)
        memory = self.scratch(&scratch)
        try:
            with nogil:
                for i in range(first, last):
                    if self.columns[i].kind == OTHER or self.columns[i].kind == PLACED:
                        continue
                    problem = scan_column(self.file.data, &self.columns[i], self.rows, start, stop, &scratch,
                                          target.data + at)
                    at += padded((stop - start) * self.columns[i].width)
                    if problem:
                        with gil:
                            damaged.append(i)
        finally:
            PyMem_Free(memory)
        return damaged

    def take(self, int64_t first, int64_t last, const int64_t[::1] rows not None, out):
        """Decode the values of some columns at ascending rows.

        Parameters
        ----------
        first, last
            Range ``[first, last)`` of the columns.
        rows
            int64 array of rows.
        out
            Output for the columns, one after another as `places` says; the first one is at its begin.

        Returns
        -------
        list
            Numbers of the columns that contradict their description, whose part of `out` is undefined.

        Raises
        ------
        CodecError
            A row is outside of the file or less than the one before, or `out` is too small.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out)
        cdef Scratch scratch
        cdef int64_t i, n = rows.shape[0], at = 0, before = 0
        cdef list damaged = []
        cdef int problem
        cdef uint8_t *memory
        self.check_columns(first, last)
        if n > 2**32:
            raise CodecError(f"{n} rows")
        self.check_room(first, last, n, True, target)
        if n == 0:
            return damaged
        check_aligned(&rows[0])
        for i in range(n):
            if rows[i] < before or rows[i] >= self.rows:
                raise CodecError(f"row {rows[i]} of {self.rows}, after row {before}")
            before = rows[i]
        memory = self.scratch(&scratch)
        try:
            with nogil:
                for i in range(first, last):
                    if self.columns[i].kind == OTHER:
                        continue
                    problem = take_column(self.file.data, &self.columns[i], self.rows, &rows[0], n, &scratch,
                                          target.data + at)
                    at += padded(n * self.columns[i].width)
                    if problem:
                        with gil:
                            damaged.append(i)
        finally:
            PyMem_Free(memory)
        return damaged
