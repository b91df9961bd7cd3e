"""Rows of one column of many small files, decoded into one output.

Each file holds the column as one small page, found by its metadata. With an object per file, a table of thousands of
small files would take many times as long. Metadata of any other form, and pages that contradict it, are left to readers
of single columns: the functions say which parts those are, and do not raise errors for the content of a file.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.miniblock cimport lc_chunks
from lancecodec.plain_columns cimport (
    COPIED,
    OTHER,
    PLACED,
    ROWS,
    Column,
    Found,
    Slice,
    describe,
    divide,
    find_column,
    is_inside,
    lc_plain_column,
    lc_plain_scratch,
    scratch_size,
)

from lancecodec.errors import CodecError

cdef extern from "kernels/portable.h" nogil:
    uint64_t lc_once_u64(const uint8_t *p)
    uint32_t lc_once_u32(const uint8_t *p)
    uint16_t lc_once_u16(const uint8_t *p)

cdef extern from "kernels/bits.h" nogil:
    int lc_get_bit(const uint8_t *bits, int64_t i)
    void lc_bits_copy(const uint8_t *src, int64_t offset, int64_t n, uint8_t *out, int64_t at)
    void lc_bits_fill(uint8_t *out, int64_t at, int64_t n, int value)

cdef extern from "kernels/plain_columns.h" nogil:
    int lc_plain_open(const lc_plain_column *column, int64_t rows, const lc_plain_scratch *scratch, lc_chunks *chunks)
    int lc_plain_levels(const lc_plain_column *column, int64_t rows, const lc_chunks *chunks, int64_t a, int64_t b,
                        const lc_plain_scratch *scratch, uint8_t *validity, int64_t *nulls)
    int lc_plain_scan(const lc_plain_column *column, int64_t rows, int64_t a, int64_t b,
                      const lc_plain_scratch *scratch, uint8_t *out, uint8_t *validity, int64_t *nulls)

cdef extern from "kernels/miniblock_variable.h" nogil:
    ctypedef struct lc_fsst_table:
        int count
    ctypedef struct lc_text_codec:
        const lc_fsst_table *table
        int64_t buffer
        int wide
    ctypedef struct lc_ends:
        uint8_t *out
        int wide
        int64_t total
    void lc_store_offset(uint8_t *offsets, int wide, int64_t i, int64_t value)
    int lc_text_scan(const lc_chunks *chunks, const lc_text_codec *codec, int64_t a, int64_t b, lc_ends *ends,
                     uint8_t *out, int64_t capacity, int exact, int64_t *done, int64_t *total, int64_t *where)
    int lc_text_scan_size(const lc_chunks *chunks, const lc_text_codec *codec, int64_t a, int64_t b, int64_t *total,
                          int64_t *where)

cdef enum:
    FORM_VALUES = 0
    FORM_TEXTS = 1
    FORM_WIDE_TEXTS = 2
    FORM_INDICES = 3

#: Forms of a column: values of a fixed size; texts and binaries with stored offsets of 32 and of 64 bits; indices of a
#: dictionary, which is another buffer of the page.
VALUES, TEXTS, WIDE_TEXTS, INDICES = FORM_VALUES, FORM_TEXTS, FORM_WIDE_TEXTS, FORM_INDICES

#: Rows of a column in one file. `size` is the number of bytes of their values, of 4 for each index, `entries` the place
#: of the dictionary.
cdef struct Part:
    const uint8_t *file
    Column column
    int64_t form, rows, start, stop, size
    int64_t entries, entries_size

#: Memory to decode parts with: `bits` has room for a validity and for boolean values, `room` for indices.
cdef struct Room:
    lc_plain_scratch scratch
    uint8_t *bits
    uint8_t *values


cdef bint same(const Slice *a, const Slice *b) noexcept nogil:
    return a.size == b.size and memcmp(a.data, b.data, <size_t>a.size) == 0


cdef bint is_text(const Part *part) noexcept nogil:
    return part.form == FORM_TEXTS or part.form == FORM_WIDE_TEXTS


cdef bint are_alike(const Part *a, const Part *b) noexcept nogil:
    """Return whether the values of both can be in one output."""
    return a.form == b.form or (is_text(a) and is_text(b))


cdef lc_text_codec text_codec(const Part *part) noexcept nogil:
    cdef lc_text_codec codec
    codec.table, codec.buffer, codec.wide = NULL, 0, part.form == FORM_WIDE_TEXTS
    return codec


cdef int measure(Part *part, const lc_plain_scratch *scratch) noexcept nogil:
    """Find the size of texts."""
    cdef lc_chunks chunks
    cdef lc_text_codec codec = text_codec(part)
    cdef int64_t where = 0
    cdef int problem = lc_plain_open(&part.column.page, part.rows, scratch, &chunks)
    return problem or lc_text_scan_size(&chunks, &codec, part.start, part.stop, &part.size, &where)


cdef uint64_t index_at(const uint8_t *values, int64_t width, int64_t i) noexcept nogil:
    if width == 1:
        return values[i]
    if width == 2:
        return lc_once_u16(values + 2 * i)
    return lc_once_u32(values + 4 * i) if width == 4 else lc_once_u64(values + 8 * i)


cdef int scan(const Part *part, const Room *room, uint8_t *out, int64_t *nulls) noexcept nogil:
    """Decode values, and their validity to `room.bits`."""
    cdef const lc_plain_column *page = &part.column.page
    nulls[0] = 0
    if part.start == part.stop:
        return 0
    if part.column.kind != PLACED:
        return lc_plain_scan(page, part.rows, part.start, part.stop, &room.scratch, out, room.bits, nulls)
    memcpy(out, page.values.data + part.start * (page.bits >> 3), <size_t>part.size)
    return 0


cdef int decode_values(const Part *part, const Room *room, int64_t row, uint8_t *out, int64_t at,
                       int64_t *nulls) noexcept nogil:
    """Decode values to byte `at`, booleans to bit `row`."""
    cdef int problem
    if part.column.page.bits != 1:
        return scan(part, room, out + at, nulls)
    problem = scan(part, room, room.values, nulls)
    if problem == 0:
        lc_bits_copy(room.values, 0, part.stop - part.start, out, row)
    return problem


cdef int decode_indices(const Part *part, const Room *room, int64_t base, int64_t count, uint8_t *out,
                        int64_t *nulls) noexcept nogil:
    """Decode indices of a dictionary of `count` entries, with the number of those in front of it added."""
    cdef int64_t i, width = part.column.page.bits >> 3
    cdef uint64_t index
    cdef int32_t found
    if scan(part, room, room.values, nulls):
        return 1
    for i in range(part.stop - part.start):
        index = index_at(room.values, width, i)
        if index >= <uint64_t>count:
            if nulls[0] == 0 or lc_get_bit(room.bits, i):
                return 1
            index = 0
        found = <int32_t>(base + <int64_t>index)
        memcpy(out + 4 * i, &found, 4)
    return 0


cdef int decode_texts(const Part *part, const Room *room, lc_ends *ends, uint8_t *out, int64_t *nulls) noexcept nogil:
    cdef lc_chunks chunks
    cdef lc_text_codec codec = text_codec(part)
    cdef const lc_plain_column *page = &part.column.page
    cdef int64_t done = 0, total = 0, where = 0
    cdef int problem
    nulls[0] = 0
    if part.start == part.stop:
        return 0
    problem = lc_plain_open(page, part.rows, &room.scratch, &chunks)
    if problem == 0:
        problem = lc_plain_levels(page, part.rows, &chunks, part.start, part.stop, &room.scratch, room.bits, nulls)
    if problem == 0:
        problem = lc_text_scan(&chunks, &codec, part.start, part.stop, ends, out, part.size, 1, &done, &total, &where)
    return problem or total != part.size


cdef void add_validity(const Part *part, const Room *room, int64_t nulls, int64_t row,
                       uint8_t *validity) noexcept nogil:
    if nulls:
        lc_bits_copy(room.bits, 0, part.stop - part.start, validity, row)
    else:
        lc_bits_fill(validity, row, part.stop - part.start, 1)


@cython.no_gc  # cannot be part of a reference cycle
cdef class ColumnParts:
    """Parts of a column, those that are plain with the places of their values.

    It is immutable, so threads may share it. The files are kept alive, not copied.

    Parameters
    ----------
    parts
        For each part a tuple: all bytes of the file, the position in it of the table with position and size (8 bytes
        each) of the metadata of each column, the number of the column, the number of rows of the file, and the range
        of rows ``[start, stop)``. A column outside of the table is not plain.
    plans
        Known plans, which this class adds to.
    plan_of
        Function of the serialized ``Any`` message of the encoding of a column, and that of its only page. It returns
        None if the page is not plain, otherwise a tuple: the number of rows, the form of the column, what stands for
        its dictionary if its values are indices, and a plan as for `PlainColumns`: of the values, of the indices, or of
        single bytes for texts.

    Raises
    ------
    CodecError
        A range of rows is outside of its file.
    MemoryError
        There is not enough memory.
    """

    cdef list files, kept, dictionaries_
    cdef Part *parts
    cdef int64_t count, most_rows

    def __cinit__(self, list parts not None, dict plans not None, plan_of):
        cdef Found found, last
        cdef ByteView file
        cdef Part *part
        cdef int64_t i, position, number, rows, start, stop
        plan = None
        last.column.data, last.column.size = NULL, -1
        last.page.data, last.page.size = NULL, -1
        self.count, self.most_rows = len(parts), 0
        self.files, self.kept, self.dictionaries_ = [], [], [None] * self.count
        self.parts = <Part *>PyMem_Calloc(self.count + 1, sizeof(Part))
        if self.parts == NULL:
            raise MemoryError()
        for i in range(self.count):
            part = &self.parts[i]
            part.column.kind = OTHER
            data, position, number, rows, start, stop = parts[i]
            if start < 0 or stop < start or stop > rows:
                raise CodecError(f"rows {start} to {stop} of {rows}")
            file = readable(data)
            self.files.append(file)
            part.file, part.rows, part.start, part.stop = file.data, rows, start, stop
            if not self.locate(file, position, number, rows, &found):
                continue
            if not (same(&found.column, &last.column) and same(&found.page, &last.page)):
                plan = self.plan(&found, plans, plan_of)
                last = found
            if plan is not None and plan[0] == rows:
                self.open(i, file, data, &found, plan)
        self.measure_parts()

    def __dealloc__(self):
        PyMem_Free(self.parts)

    cdef bint locate(self, ByteView file, int64_t position, int64_t number, int64_t rows, Found *found) except -1:
        """Find the only page of a column; return False if it has another form."""
        cdef const uint8_t *entry
        cdef uint64_t start, size
        if rows < 1 or rows > ROWS or position < 0 or number < 0 or number > 2**32:
            return False
        if not is_inside(<uint64_t>position, 16 * (<uint64_t>number + 1), <uint64_t>file.size):
            return False
        entry = file.data + position + 16 * number
        start, size = lc_once_u64(entry), lc_once_u64(entry + 8)
        if not is_inside(start, size, <uint64_t>file.size):
            return False
        return find_column(file.data + start, file.data + start + size, found) and found.length == <uint64_t>rows

    cdef object plan(self, const Found *found, dict plans, plan_of):
        cdef tuple key = (
            PyBytes_FromStringAndSize(<const char *>found.column.data, found.column.size),
            PyBytes_FromStringAndSize(<const char *>found.page.data, found.page.size),
        )
        if key not in plans:
            plans[key] = plan_of(*key)
        return plans[key]

    cdef int open(self, int64_t number, ByteView file, data, const Found *found, tuple plan) except -1:
        """Describe a part if its page fits its plan."""
        cdef Part *part = &self.parts[number]
        cdef Found own = found[0]
        _, part.form, dictionary, values = plan
        if part.form < FORM_VALUES or part.form > FORM_INDICES:
            return 0
        if part.form == FORM_INDICES:
            if own.buffers != 3 or not is_inside(own.offsets[2], own.sizes[2], <uint64_t>file.size):
                return 0
            part.entries, part.entries_size = own.offsets[2], own.sizes[2]
            own.buffers = 2
        describe(file, data, self.kept, part.rows, &own, values, &part.column)
        if part.column.kind == OTHER:
            return 0
        if (
            part.column.kind == COPIED
            or (part.form != FORM_VALUES and (part.column.kind == PLACED or part.column.page.dictionary.data != NULL))
            or (part.form == FORM_INDICES and part.column.page.bits not in (8, 16, 32, 64))
        ):
            part.column.kind = OTHER
            return 0
        self.dictionaries_[number] = dictionary
        self.most_rows = max(self.most_rows, part.rows)
        return 0

    cdef uint8_t *room(self, Room *out) except NULL:
        """Allocate memory to decode parts with."""
        cdef int64_t rows = self.most_rows, size = scratch_size(rows, 0), bits = 8 * (rows // 64 + 1)
        cdef uint8_t *memory = <uint8_t *>PyMem_Malloc(size + bits + 8 * rows)
        if memory == NULL:
            raise MemoryError()
        divide(memory, rows, 0, &out.scratch)
        out.bits, out.values = memory + size, memory + size + bits
        return memory

    cdef int measure_parts(self) except -1:
        cdef Room room
        cdef Part *part
        cdef int64_t i
        cdef uint8_t *memory = self.room(&room)
        with nogil:
            for i in range(self.count):
                part = &self.parts[i]
                if part.column.kind == OTHER:
                    continue
                if not is_text(part):
                    part.size = (part.stop - part.start) * (
                        4 if part.form == FORM_INDICES else part.column.page.bits >> 3
                    )
                elif measure(part, &room.scratch):
                    part.column.kind = OTHER
        PyMem_Free(memory)
        return 0

    def groups(self, int64_t limit):
        """Divide the parts that are plain into groups of neighbours.

        Parameters
        ----------
        limit
            Bytes of values above which a group ends.

        Returns
        -------
        list
            For each group its form, the first part, the part after the last one, and the numbers of rows and of bytes
            of values, which is 0 for booleans.
        """
        cdef int64_t i, first = 0, rows = 0, size = 0
        cdef list found = []
        for i in range(self.count + 1):
            if i == self.count or self.parts[i].column.kind == OTHER or size > limit or not self.can_join(first, i):
                if i > first:
                    found.append((self.parts[first].form, first, i, rows, size))
                first, rows, size = i, 0, 0
            if i < self.count:
                if self.parts[i].column.kind == OTHER:
                    first = i + 1
                else:
                    rows += self.parts[i].stop - self.parts[i].start
                    size += self.parts[i].size
        return found

    cdef bint can_join(self, int64_t first, int64_t number) noexcept:
        return are_alike(&self.parts[first], &self.parts[number])

    def places(self, int64_t first, int64_t last):
        """Find the part of each file with the page.

        Parameters
        ----------
        first, last
            Range ``[first, last)`` of the parts, all of which are plain.

        Returns
        -------
        list
            Position and size in bytes for each part.

        Raises
        ------
        CodecError
            A part is not plain.
        """
        cdef int64_t i, low, high
        cdef const Part *part
        cdef list found = []
        self.check_parts(first, last)
        for i in range(first, last):
            part = &self.parts[i]
            low = part.column.page.values.data - part.file
            high = low + part.column.page.values.size
            if part.column.page.words.data != NULL:
                low = min(low, part.column.page.words.data - part.file)
            if part.form == FORM_INDICES:
                low = min(low, part.entries)
                high = max(high, part.entries + part.entries_size)
            found.append((low, high - low))
        return found

    def dictionaries(self, int64_t first, int64_t last):
        """Find the dictionaries of some parts.

        Parameters
        ----------
        first, last
            Range ``[first, last)`` of the parts, all of which are plain.

        Returns
        -------
        list
            For each part what stands for its dictionary, and the position and size in bytes of that in the file.

        Raises
        ------
        CodecError
            A part is not plain.
        """
        cdef int64_t i
        self.check_parts(first, last)
        return [(self.dictionaries_[i], self.parts[i].entries, self.parts[i].entries_size) for i in range(first, last)]

    cdef int check_parts(self, int64_t first, int64_t last) except -1:
        cdef int64_t i
        if first < 0 or last < first or last > self.count:
            raise CodecError(f"parts {first} to {last} of {self.count}")
        for i in range(first, last):
            if self.parts[i].column.kind == OTHER:
                raise CodecError(f"part {i} is not plain")
        return 0

    cdef int64_t check_room(self, int64_t first, int64_t last, int64_t form, ByteView target,
                            ByteView validity) except -1:
        """Check parts and outputs. Return the number of rows."""
        cdef int64_t i, size = 0, rows = 0, bits = 0
        cdef Part wanted
        wanted.form = form
        self.check_parts(first, last)
        for i in range(first, last):
            if not are_alike(&self.parts[i], &wanted):
                raise CodecError(f"part {i} has values of another form")
            size += self.parts[i].size
            rows += self.parts[i].stop - self.parts[i].start
            if form == FORM_VALUES and self.parts[i].column.page.bits == 1:
                bits = rows
        size = max(size, (bits + 7) // 8)
        if size > target.size:
            raise CodecError(f"output of {target.size} bytes has no room for {size} bytes of parts {first} to {last}")
        if (rows + 7) // 8 > validity.size:
            raise CodecError(f"validity of {validity.size} bytes has no room for {rows} rows")
        return rows

    def read(self, int64_t first, int64_t last, out, validity):
        """Decode the values of some parts, one after another.

        Parameters
        ----------
        first, last
            Range ``[first, last)`` of the parts, all of which are plain, of the form `VALUES`, and of the same type.
        out
            Output with room for all values. Booleans take a bit each.
        validity
            Output with room for a bit for each value.

        Returns
        -------
        int
            The number of nulls; -1 if a part contradicts its description. The outputs are then undefined.

        Raises
        ------
        CodecError
            A part is not plain or has another form, or an output is too small.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out), bits = writable(validity)
        cdef Room room
        cdef Part *part
        cdef int64_t i, row = 0, at = 0, nulls = 0, total = 0
        cdef int problem = 0
        cdef uint8_t *memory
        self.check_room(first, last, FORM_VALUES, target, bits)
        memory = self.room(&room)
        with nogil:
            for i in range(first, last):
                part = &self.parts[i]
                problem = decode_values(part, &room, row, target.data, at, &nulls)
                if problem:
                    break
                add_validity(part, &room, nulls, row, bits.data)
                at, row, total = at + part.size, row + part.stop - part.start, total + nulls
        PyMem_Free(memory)
        return -1 if problem else total

    def read_indices(self, int64_t first, int64_t last, const int64_t[::1] bases not None,
                     const int64_t[::1] counts not None, out, validity):
        """Decode indices of dictionaries of some parts, one after another.

        Parameters
        ----------
        first, last
            Range ``[first, last)`` of the parts, all of which have the form `INDICES`.
        bases
            int64 array: for each of these parts what is added to its indices.
        counts
            int64 array: for each of these parts the number of entries of its dictionary.
        out
            Output with room for all indices, of 32 bits.
        validity
            Output with room for a bit for each index. An index of a null may be any.

        Returns
        -------
        int
            The number of nulls; -1 if a part contradicts its description, or an index has no entry. The outputs are
            then undefined.

        Raises
        ------
        CodecError
            A part is not plain or has another form, a sum does not fit 32 bits, or an output is too small.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out), bits = writable(validity)
        cdef Room room
        cdef Part *part
        cdef int64_t i, row = 0, nulls = 0, total = 0
        cdef int problem = 0
        cdef uint8_t *memory
        self.check_room(first, last, FORM_INDICES, target, bits)
        if bases.shape[0] != last - first or counts.shape[0] != last - first:
            raise CodecError(f"{bases.shape[0]} first entries and {counts.shape[0]} counts of {last - first} parts")
        if first == last:
            return 0
        check_aligned(&bases[0])
        check_aligned(&counts[0])
        for i in range(last - first):
            if bases[i] < 0 or counts[i] < 0 or bases[i] > INT32_MAX or counts[i] > INT32_MAX - bases[i]:
                raise CodecError(f"{counts[i]} entries from entry {bases[i]} on")
        memory = self.room(&room)
        with nogil:
            for i in range(first, last):
                part = &self.parts[i]
                problem = decode_indices(part, &room, bases[i - first], counts[i - first], target.data + 4 * row,
                                         &nulls)
                if problem:
                    break
                add_validity(part, &room, nulls, row, bits.data)
                row, total = row + part.stop - part.start, total + nulls
        PyMem_Free(memory)
        return -1 if problem else total

    def read_texts(self, int64_t first, int64_t last, bint wide, offsets, out, validity):
        """Decode texts of some parts, one after another.

        Parameters
        ----------
        first, last
            Range ``[first, last)`` of the parts, all of which have the form `TEXTS` or `WIDE_TEXTS`.
        wide
            True if offsets are to have 64 bits, False for 32 bits.
        offsets
            Output with room for the offsets, one more than there are rows.
        out
            Output with room for all texts.
        validity
            Output with room for a bit for each text.

        Returns
        -------
        int
            The number of nulls; -1 if a part contradicts its description, or if offsets would not fit. The outputs are
            then undefined.

        Raises
        ------
        CodecError
            A part is not plain or has another form, or an output is too small.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out), counts = writable(offsets), bits = writable(validity)
        cdef Room room
        cdef Part *part
        cdef lc_ends ends
        cdef int64_t i, row = 0, at = 0, nulls = 0, total = 0
        cdef int64_t rows = self.check_room(first, last, FORM_TEXTS, target, bits)
        cdef int problem = 0
        cdef uint8_t *memory
        if (rows + 1) * (8 if wide else 4) > counts.size:
            raise CodecError(f"output of {counts.size} bytes has no room for the offsets of {rows} rows")
        memory = self.room(&room)
        with nogil:
            lc_store_offset(counts.data, wide, 0, 0)
            ends.out, ends.wide, ends.total = counts.data + (8 if wide else 4), wide, 0
            for i in range(first, last):
                part = &self.parts[i]
                problem = decode_texts(part, &room, &ends, target.data + at, &nulls)
                if problem:
                    break
                add_validity(part, &room, nulls, row, bits.data)
                at, row, total = at + part.size, row + part.stop - part.start, total + nulls
        PyMem_Free(memory)
        return -1 if problem else total
