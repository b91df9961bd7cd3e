"""Columns of a file that are one small page each: found in one pass over their metadata, read together.

They are plain if their values have a fixed size and are stored without compression of whole buffers, with or without a
validity or a dictionary.

A table of thousands of columns has as many pages, and an object per page and call would cost more than the values.
Metadata of any other form, and pages that contradict it, are left to readers of single columns: the functions say which
columns those are, and do not raise errors for the content of a file.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_OK, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/portable.h" nogil:
    uint64_t lc_once_u64(const uint8_t *p)

cdef extern from "kernels/gather.h" nogil:
    void lc_gather_block(const uint8_t *entries, int64_t width, const uint8_t *codes, int64_t code_width, int64_t n,
                         uint8_t *out)

cdef extern from "kernels/plain_columns.h" nogil:
    int64_t lc_plain_bytes(const lc_plain_column *column, int64_t n)
    int lc_plain_scan(const lc_plain_column *column, int64_t rows, int64_t a, int64_t b,
                      const lc_plain_scratch *scratch, uint8_t *out, uint8_t *validity, int64_t *nulls)
    int lc_plain_take(const lc_plain_column *column, int64_t rows, const int64_t *items, int64_t n,
                      const lc_plain_scratch *scratch, uint8_t *out, uint8_t *validity, int64_t *nulls)
    void lc_plain_copy(const lc_plain_column *column, int64_t a, const int64_t *items, int64_t n, uint8_t *out,
                       uint8_t *validity, int64_t *nulls)

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
    ALIGNMENT = 64
    MOST_PACKED = 1024

#: Codec of values side by side in the only buffer of a page.
IN_PLACE = PLACED
#: Codec of values side by side in the last of one or two buffers; the first of two is a bitmap of the valid values.
SIDE_BY_SIDE = COPIED
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


cdef int64_t few_numbers(lc_record_field *field, uint64_t *out) noexcept nogil:
    """Store the numbers of a packed field; return how many there are, -1 for too many and for other fields."""
    cdef const uint8_t *at = field.data
    cdef const uint8_t *end
    cdef int64_t count = 0
    if field.kind != LC_FIELD_BYTES:
        return -1
    end = at + field.size
    while at < end:
        if count == MOST_BUFFERS or not lc_record_varint(&at, end, &out[count]):
            return -1
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
            offsets = few_numbers(&field, out.offsets)
        elif field.number == PAGE_SIZES and sizes == 0:
            sizes = few_numbers(&field, out.sizes)
        elif field.number == PAGE_LENGTH and field.kind == LC_FIELD_VARINT and out.length == 0:
            out.length = field.value
        elif field.number == PAGE_ENCODING and out.page.data == NULL:
            if not direct_encoding(&field, &out.page):
                return False
        elif field.number != PAGE_PRIORITY or field.kind != LC_FIELD_VARINT:
            return False
    out.buffers = offsets
    return out.page.data != NULL and offsets == sizes and offsets > 0


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


cdef bint is_known(int64_t kind, int64_t bits, int64_t buffers) noexcept:
    """Return whether the kernels support a codec."""
    if kind == LC_VALUE_INLINE or kind == LC_VALUE_RLE:
        return bits in (8, 16, 32, 64) and buffers == (2 if kind == LC_VALUE_RLE else 1)
    if kind == LC_VALUE_SPLIT:
        return bits in (32, 64) and buffers == 1
    return (
        (((kind == LC_VALUE_FLAT or kind == PLACED) and buffers == 1) or (kind == COPIED and buffers in (1, 2)))
        and (bits == 1 if bits % 8 else 8 <= bits <= 8 * LC_PLAIN_WIDTH)
    )


cdef bint has_known_levels(const lc_level_codec *codec) noexcept:
    return codec.kind in (LC_LEVEL_FLAT, LC_LEVEL_INLINE, LC_LEVEL_RLE) or (
        codec.kind == LC_LEVEL_OUT_OF_LINE and 0 <= codec.width <= 16
    )


cdef bint has_known_dictionary(const lc_plain_column *page) noexcept:
    """Return whether the kernels support the entries of a dictionary, and the indices into them."""
    cdef bint entries = page.entries > 0 and page.bits % 8 == 0 and 8 <= page.bits <= 8 * LC_PLAIN_WIDTH
    if page.codec.bits not in (8, 16, 32, 64):
        return False
    if page.entries_kind == LC_VALUE_INLINE:
        return entries and page.bits in (8, 16, 32, 64) and page.entries <= MOST_PACKED
    return entries and page.entries_kind == LC_VALUE_FLAT and page.entries <= ROWS


cdef lc_bytes buffer(ByteView file, const Found *found, int64_t number) noexcept:
    cdef lc_bytes out
    out.data, out.size = file.data + found.offsets[number], found.sizes[number]
    return out


cdef bint is_aligned(const lc_plain_column *page) noexcept:
    cdef int64_t width = page.bits // 8
    return <uintptr_t>page.values.data % <uintptr_t>min(width & -width, 8) == 0


cdef bint decode_entries(source, list kept, lc_plain_column *page, decode, int64_t position) except -1:
    """Have the entries of a dictionary decoded. Return False if they are damaged."""
    cdef ByteView view
    decoded = decode(source, position, page.dictionary.size)
    if decoded is None:
        return False
    view = readable(decoded)
    kept.append(view)
    page.dictionary.data, page.dictionary.size = view.data, view.size
    return True


cdef int describe_copied(ByteView file, int64_t rows, const Found *found, Column *column) noexcept:
    """Describe a column of values side by side if the buffers have all of them."""
    cdef lc_plain_column *page = &column.page
    page.values = buffer(file, found, page.buffers - 1)
    if page.buffers == 2:
        page.words = buffer(file, found, 0)
        if page.words.size < (rows + 7) // 8:
            return 0
    if page.values.size >= lc_plain_bytes(page, rows):
        column.kind = COPIED
    return 0


cdef int describe(ByteView file, source, list kept, int64_t rows, const Found *found, tuple plan,
                  Column *column) except -1:
    """Describe a column if its page fits its plan; otherwise, its kind stays as it is.

    Entries of a dictionary that the plan has a function for are decoded from the source of the file, and kept.
    """
    cdef lc_plain_column *page = &column.page
    cdef int64_t kind, word, i
    cdef bint large
    cdef double least
    kind, page.bits, page.codec.bits, page.buffers, large, least, levels, entries = plan
    page.codec.kind, page.large = kind, large
    if levels is not None:
        page.definition.kind, page.definition.width = levels
        page.definition.top = 1
        if not has_known_levels(&page.definition):
            return 0
    else:
        page.definition.kind = LC_LEVEL_NONE
    decode = None
    if entries is not None:
        page.entries_kind, page.entries, decode = entries
    if not is_known(kind, page.codec.bits, page.buffers) or (
        not has_known_dictionary(page) if entries is not None else page.bits != page.codec.bits
    ):
        return 0
    if kind == COPIED and (levels is not None or entries is not None):
        return 0
    if found.buffers != (page.buffers if kind == COPIED else (1 if kind == PLACED else 2) + (entries is not None)):
        return 0
    for i in range(found.buffers):
        if not is_inside(found.offsets[i], found.sizes[i], file.size):
            return 0
    if kind == COPIED:
        return describe_copied(file, rows, found, column)
    page.values = buffer(file, found, 0 if kind == PLACED else 1)
    if kind != PLACED:
        page.words = buffer(file, found, 0)
    if entries is not None:
        page.dictionary = buffer(file, found, 2)
    if decode is not None and not decode_entries(source, kept, page, decode, found.offsets[2]):
        return 0
    if kind == PLACED:
        if (
            levels is None
            and entries is None
            and page.bits % 8 == 0
            and page.values.size == rows * (page.bits // 8)
            and is_aligned(page)
        ):
            column.kind = kind
        return 0
    word = 4 if large else 2
    if (
        page.words.size % word == 0
        and page.words.size // word <= rows
        and rows * least <= 8.0 * page.values.size
    ):
        column.kind = kind
    return 0


# -- values --------------------------------------------------------------------------------------------------------


cdef int64_t padded(int64_t size) noexcept nogil:
    return (size + ALIGNMENT - 1) & ~<int64_t>(ALIGNMENT - 1)


cdef int64_t scratch_size(int64_t rows, int64_t items) noexcept nogil:
    """Return the bytes of memory to decode columns with; `items` are decoded at a time."""
    return 24 * (rows + 1) + rows * LC_PLAIN_WIDTH + 10 * max(items, rows) + 8 * MOST_PACKED


cdef void divide(uint8_t *memory, int64_t rows, int64_t items, lc_plain_scratch *out) noexcept nogil:
    """Divide memory to decode columns with."""
    cdef int64_t words = 8 * (rows + 1), chunk = rows * LC_PLAIN_WIDTH, most = max(items, rows)
    out.starts, out.firsts = <int64_t *>memory, <int64_t *>(memory + words)
    out.data, out.indices = <const uint8_t **>(memory + 2 * words), memory + 3 * words
    out.entries = out.indices + 8 * most
    out.chunk = out.entries + 8 * MOST_PACKED
    out.levels = out.chunk + chunk


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
        It returns None if the page is not plain, otherwise a tuple: the codec (`IN_PLACE`, `SIDE_BY_SIDE`, or one of
        `lancecodec.miniblock_values`), bits of a value, bits of what the codec stores, value buffers of a chunk,
        whether chunk words have 32 bits, the minimum bits of a value in a chunk, the codec of the validity (a pair as
        in `lancecodec.miniblock_levels`, or None), and for a dictionary, otherwise None: the codec and number of its
        entries, and None or a function of the file, the position and the size of its buffer, which returns the flat
        entries, or None if they are damaged.
        It is called once for all columns with equal descriptions.

    Attributes
    ----------
    rows : int
        Number of rows.

    Notes
    -----
    A column that the codec does not support, or whose page does not fit its plan, is not plain either.

    Raises
    ------
    CodecError
        There are not as many kinds as columns.
    MemoryError
        There is not enough memory.
    """

    cdef ByteView file
    cdef object source
    cdef list kept
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
        self.source, self.kept = file, []
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
            describe(self.file, self.source, self.kept, self.rows, &found, plans[key], column)
        return 0

    def in_place(self):
        """Find the columns whose values can be used where they are.

        Returns
        -------
        list
            For each column the position of its first value in the file, -1 if its values must be decoded, -2 if they
            are copied from their places, and None if it is not plain.
        """
        cdef int64_t i
        return [
            None if self.columns[i].kind == OTHER
            else -2 if self.columns[i].kind == COPIED
            else self.columns[i].page.values.data - self.file.data if self.columns[i].kind == PLACED
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
        cdef lc_plain_column *page
        for i in range(self.count):
            page = &self.columns[i].page
            if self.columns[i].kind != OTHER:
                total += self.extend(&page.words, &low, &high) + self.extend(&page.values, &low, &high)
                if self.file.data <= page.dictionary.data < self.file.data + self.file.size:
                    total += self.extend(&page.dictionary, &low, &high)
        if high == 0:
            return 0, 0, 0
        return low, high, total

    cdef int64_t extend(self, const lc_bytes *part, int64_t *low, int64_t *high) noexcept:
        """Extend a part of the file by another one, whose size is returned."""
        cdef int64_t begin = part.data - self.file.data
        if part.data == NULL:
            return 0
        low[0] = min(low[0], begin)
        high[0] = max(high[0], begin + part.size)
        return part.size

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
            at += self.room(i, rows, taken)
            found.append(at)
        return found

    cdef int64_t room(self, int64_t number, int64_t rows, bint taken) noexcept nogil:
        """Return the bytes of a column in an output."""
        cdef Column *column = &self.columns[number]
        cdef int64_t size
        if column.kind == OTHER or (column.kind == PLACED and not taken):
            return 0
        size = padded(lc_plain_bytes(&column.page, rows))
        if column.page.definition.kind == LC_LEVEL_NONE and (column.kind != COPIED or column.page.words.data == NULL):
            return size
        return size + padded((rows + 7) // 8)

    cdef int check_columns(self, int64_t first, int64_t last) except -1:
        if first < 0 or last < first or last > self.count:
            raise CodecError(f"columns {first} to {last} of {self.count}")
        return 0

    cdef int check_room(self, int64_t first, int64_t last, int64_t rows, bint taken, ByteView target) except -1:
        cdef int64_t i, at = 0
        for i in range(first, last):
            at += self.room(i, rows, taken)
        if at > target.size:
            raise CodecError(f"output of {target.size} bytes has no room for {rows} rows of columns {first} to {last}")
        return 0

    cdef uint8_t *scratch(self, int64_t items, lc_plain_scratch *out) except NULL:
        """Allocate memory to decode columns with; `items` are decoded at a time."""
        cdef int64_t rows = max(min(self.rows, ROWS), 0)  # of plain columns; there are none of more rows
        cdef uint8_t *memory = <uint8_t *>PyMem_Malloc(scratch_size(rows, items))
        if memory == NULL:
            raise MemoryError()
        divide(memory, rows, items, out)
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
            values are in place have no room in it. A column consists of its values, and at the next multiple of 64
            bytes its validity bitmap if its plan has one.

        Returns
        -------
        list
            For each column the number of its nulls: 0 for one whose values are in place, and -1 for one that is not
            plain or contradicts its description, whose part of `out` is undefined. The bitmap of a column without
            nulls may be undefined, too.

        Raises
        ------
        CodecError
            A range is outside of the file, or `out` is too small.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out)
        self.check_columns(first, last)
        if start < 0 or stop < start or stop > self.rows:
            raise CodecError(f"rows {start} to {stop} of {self.rows}")
        self.check_room(first, last, stop - start, False, target)
        return self.decode(first, last, NULL, start, stop - start, target.data)

    cdef list decode(self, int64_t first, int64_t last, const int64_t *rows, int64_t start, int64_t n, uint8_t *out):
        """Decode `n` rows, which start at `start` unless `rows` says which they are. Return the counts of nulls."""
        cdef lc_plain_scratch scratch
        cdef uint8_t *memory = NULL
        cdef int64_t *nulls = <int64_t *>PyMem_Malloc(8 * (last - first + 1))
        cdef int64_t i
        if n == 0:
            PyMem_Free(nulls)
            return [-1 if self.columns[i].kind == OTHER else 0 for i in range(first, last)]
        try:
            if nulls == NULL:
                raise MemoryError()
            memory = self.scratch(n if rows != NULL else 0, &scratch)
            with nogil:
                for i in range(first, last):
                    nulls[i - first] = self.decode_column(i, rows, start, n, &scratch, out)
                    out += self.room(i, n, rows != NULL)
            return [nulls[i] for i in range(last - first)]
        finally:
            PyMem_Free(memory)
            PyMem_Free(nulls)

    cdef int64_t decode_column(self, int64_t number, const int64_t *rows, int64_t start, int64_t n,
                               const lc_plain_scratch *scratch, uint8_t *out) noexcept nogil:
        """Decode a column as `decode`. Return the number of nulls, -1 if the column is not plain or damaged."""
        cdef Column *column = &self.columns[number]
        cdef uint8_t *validity
        cdef int64_t nulls = 0
        cdef int problem = LC_OK
        if column.kind == OTHER:
            return -1
        validity = out + padded(lc_plain_bytes(&column.page, n))
        if column.kind == COPIED:
            lc_plain_copy(&column.page, start, rows, n, out, validity, &nulls)
        elif column.kind != PLACED:
            if rows == NULL:
                problem = lc_plain_scan(&column.page, self.rows, start, start + n, scratch, out, validity, &nulls)
            else:
                problem = lc_plain_take(&column.page, self.rows, rows, n, scratch, out, validity, &nulls)
        elif rows != NULL:
            lc_gather_block(column.page.values.data, column.page.bits >> 3, <const uint8_t *>rows, 8, n, out)
        return -1 if problem else nulls

    def take(self, int64_t first, int64_t last, const int64_t[::1] rows not None, out):
        """Decode the values of some columns at ascending rows.

        Parameters
        ----------
        first, last
            Range ``[first, last)`` of the columns.
        rows
            int64 array of rows.
        out
            Output for the columns as in `read`, with room for those whose values are in place, too.

        Returns
        -------
        list
            For each column the number of its nulls, as in `read`.

        Raises
        ------
        CodecError
            A row is outside of the file or less than the one before, or `out` is too small.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out)
        cdef int64_t i, n = rows.shape[0], before = 0
        self.check_columns(first, last)
        if n > 2**32:
            raise CodecError(f"{n} rows")
        self.check_room(first, last, n, True, target)
        if n > 0:
            check_aligned(&rows[0])
        for i in range(n):
            if rows[i] < before or rows[i] >= self.rows:
                raise CodecError(f"row {rows[i]} of {self.rows}, after row {before}")
            before = rows[i]
        return self.decode(first, last, &rows[0] if n > 0 else &before, 0, n, target.data)
