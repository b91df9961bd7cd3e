"""Metadata at the end of a 2.x file: its tables, its descriptor, and the pages of a column.

The functions that read parse the messages in the form in which writers produce them, much faster than a general parser.
They return None or False for any other form (repeated or unknown fields, damaged messages, buffers outside of the file)
and leave it to a general parser. They do not raise errors for content.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from lancecodec.buffers cimport ByteView, readable
from lancecodec.problems cimport LC_OK

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

#: Field numbers of columns, pages and encodings; see protos/file2.proto.
cdef enum:
    COLUMN_ENCODING = 1
    COLUMN_PAGES = 2
    COLUMN_OFFSETS = 3
    COLUMN_SIZES = 4
    PAGE_OFFSETS = 1
    PAGE_SIZES = 2
    PAGE_LENGTH = 3
    PAGE_ENCODING = 4
    PAGE_PRIORITY = 5
    DIRECT = 2
    CONTENT = 1
    SCHEMA = 1
    ROWS = 2

cdef struct Slice:
    const uint8_t *data
    int64_t size


cdef uint64_t entry_at(const uint8_t *table, int64_t index) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, table + 8 * index, 8)
    return value


cdef bint all_fit(const uint8_t *table, int64_t count, uint64_t low, uint64_t high, uint64_t total) noexcept nogil:
    cdef uint64_t position, size, sum_ = 0
    cdef int64_t i
    for i in range(count):
        position, size = entry_at(table, 2 * i), entry_at(table, 2 * i + 1)
        if position < low or position > high or size > high - position or size > total - sum_:
            return False
        sum_ += size
    return True


def entries_fit(table, uint64_t low, uint64_t high, uint64_t total):
    """Check that all entries of a table are inside a byte range.

    Parameters
    ----------
    table
        A position and a size in bytes per entry, 8 bytes each, little-endian.
    low, high
        Byte range ``[low, high)`` that must contain every entry.
    total
        Upper limit for the sum of the sizes.

    Returns
    -------
    bool
        True if the table is a whole number of entries, all of them are inside and their sizes are within `total`.
    """
    cdef ByteView view = readable(table)
    cdef bint fit
    if view.size % 16 or low > high:
        return False
    with nogil:
        fit = all_fit(view.data, view.size // 16, low, high, total)
    return fit


cdef bint only_field(const uint8_t *at, const uint8_t *end, int64_t number, Slice *out) noexcept nogil:
    """Check that a record is a single field of bytes with this number, and store where they are."""
    cdef lc_record_field field
    if at == end or lc_record_next(&at, end, &field) != LC_OK or field.kind != LC_FIELD_BYTES:
        return False
    out.data, out.size = field.data, field.size
    return at == end and field.number == number


cdef bint direct_encoding(lc_record_field *field, Slice *out) noexcept nogil:
    """Check that a field is an encoding inside the record itself, and store where its bytes are."""
    return (
        field.kind == LC_FIELD_BYTES
        and only_field(field.data, field.data + field.size, DIRECT, out)
        and only_field(out.data, out.data + out.size, CONTENT, out)
    )


cdef bint add_numbers(lc_record_field *field, list out) except -1:
    """Append the numbers of a field, packed or not. Return False if the field is not numeric."""
    cdef const uint8_t *at = field.data
    cdef const uint8_t *end
    cdef uint64_t value
    if field.kind == LC_FIELD_VARINT:
        out.append(field.value)
        return True
    if field.kind != LC_FIELD_BYTES:
        return False
    end = at + field.size
    while at < end:
        if not lc_record_varint(&at, end, &value):
            return False
        out.append(value)
    return True


cdef tuple paired(list offsets, list sizes, uint64_t file_size, uint64_t *left):
    """Return (offset, size) of buffers, or None if one is outside of the file or their sum exceeds `left`."""
    cdef uint64_t offset, size
    cdef Py_ssize_t i, count = len(offsets)
    cdef list pairs = []
    if len(sizes) != count:
        return None
    for i in range(count):
        offset, size = offsets[i], sizes[i]
        if size > file_size or offset > file_size - size or size > left[0]:
            return None
        left[0] -= size
        pairs.append((offsets[i], sizes[i]))
    return tuple(pairs)


cdef tuple scan_page(const uint8_t *at, const uint8_t *end, uint64_t file_size, uint64_t *left, bytes before):
    """Return (buffers, length, encoding) of a page, or None if it needs a general parser."""
    cdef lc_record_field field
    cdef Slice content
    cdef list offsets = [], sizes = []
    cdef uint64_t length = 0
    cdef bint seen_encoding = False, seen_length = False, plain = True
    cdef tuple buffers
    while at < end and plain:
        if lc_record_next(&at, end, &field) != LC_OK:
            return None
        if field.number == PAGE_OFFSETS:
            plain = add_numbers(&field, offsets)
        elif field.number == PAGE_SIZES:
            plain = add_numbers(&field, sizes)
        elif field.number == PAGE_LENGTH:
            plain = field.kind == LC_FIELD_VARINT and not seen_length
            length, seen_length = field.value, True
        elif field.number == PAGE_ENCODING:
            plain = not seen_encoding and direct_encoding(&field, &content)
            seen_encoding = True
        else:
            plain = field.number == PAGE_PRIORITY and field.kind == LC_FIELD_VARINT
    if not plain or not seen_encoding:
        return None
    buffers = paired(offsets, sizes, file_size, left)
    if buffers is None:
        return None
    return buffers, length, shared(&content, before)


cdef bytes shared(Slice *content, bytes before):
    """Return the content as bytes; `before` itself if it is equal, because most pages share an encoding."""
    if before is not None and len(before) == content.size:
        if memcmp(<const char *>before, content.data, content.size) == 0:
            return before
    return PyBytes_FromStringAndSize(<const char *>content.data, content.size)


def scan_column(src, uint64_t file_size):
    """Parse the metadata of a column.

    Parameters
    ----------
    src
        Serialised ``ColumnMetadata`` message.
    file_size
        Size of the file in bytes. Every buffer must be inside, and the buffers of all pages together must not be
        larger.

    Returns
    -------
    encoding : bytes
        Serialised ``Any`` message with the encoding of the column.
    buffers : tuple
        (position, size) of each buffer of the column.
    pages : list
        For each page a tuple of its buffers as (position, size), its number of rows, and the serialised ``Any`` message
        with its encoding. A page with the encoding of the previous one shares its bytes object.

    The result is None if a general parser is needed.
    """
    cdef ByteView view = readable(src)
    cdef const uint8_t *at = view.data
    cdef const uint8_t *end = view.data + view.size
    cdef lc_record_field field
    cdef Slice content
    cdef list offsets = [], sizes = [], pages = []
    cdef bytes encoding = None, before = None
    cdef uint64_t left = file_size, own = file_size
    cdef tuple page, buffers
    cdef bint plain = True
    while at < end and plain:
        if lc_record_next(&at, end, &field) != LC_OK:
            return None
        if field.number == COLUMN_PAGES:
            if field.kind != LC_FIELD_BYTES:
                return None
            page = scan_page(field.data, field.data + field.size, file_size, &left, before)
            if page is None:
                return None
            before = <bytes>page[2]
            pages.append(page)
        elif field.number == COLUMN_ENCODING:
            plain = encoding is None and direct_encoding(&field, &content)
            if plain:
                encoding = shared(&content, None)
        elif field.number == COLUMN_OFFSETS:
            plain = add_numbers(&field, offsets)
        else:
            plain = field.number == COLUMN_SIZES and add_numbers(&field, sizes)
    if not plain or encoding is None:
        return None
    buffers = paired(offsets, sizes, file_size, &own)
    return None if buffers is None else (encoding, buffers, pages)


def scan_descriptor(src):
    """Parse a file descriptor.

    Parameters
    ----------
    src
        Serialised ``FileDescriptor`` message.

    Returns
    -------
    tuple or None
        The serialised schema as bytes and the number of rows. None if a general parser is needed.
    """
    cdef ByteView view = readable(src)
    cdef const uint8_t *at = view.data
    cdef const uint8_t *end = view.data + view.size
    cdef lc_record_field field
    cdef Slice schema
    cdef bint seen = False
    cdef uint64_t rows = 0
    while at < end:
        if lc_record_next(&at, end, &field) != LC_OK:
            return None
        if field.number == SCHEMA and field.kind == LC_FIELD_BYTES and not seen:
            schema.data, schema.size, seen = field.data, field.size, True
        elif field.number == ROWS and field.kind == LC_FIELD_VARINT:
            rows = field.value
        else:
            return None
    return (PyBytes_FromStringAndSize(<const char *>schema.data, schema.size), rows) if seen else None


cdef struct Writer:
    uint8_t *at
    int64_t size


cdef void put_varint(Writer *out, uint64_t value) noexcept nogil:
    """Append a varint; without memory, count its bytes."""
    while True:
        if out.at != NULL:
            out.at[out.size] = <uint8_t>(value & 0x7F | (0x80 if value > 0x7F else 0))
        out.size += 1
        value >>= 7
        if value == 0:
            return


cdef void put_bytes(Writer *out, int64_t number, const uint8_t *data, int64_t size) noexcept nogil:
    put_varint(out, <uint64_t>(number << 3 | LC_FIELD_BYTES))
    put_varint(out, <uint64_t>size)
    if out.at != NULL and size:
        memcpy(out.at + out.size, data, <size_t>size)
    out.size += size


cdef void put_numbers(Writer *out, int64_t number, const uint64_t *values, int64_t count) noexcept nogil:
    """Append every other one of 2 * count numbers as a packed field, unless there are none."""
    cdef Writer content
    cdef int64_t i
    content.at, content.size = NULL, 0
    if count == 0:
        return
    for i in range(count):
        put_varint(&content, values[2 * i])
    put_varint(out, <uint64_t>(number << 3 | LC_FIELD_BYTES))
    put_varint(out, <uint64_t>content.size)
    for i in range(count):
        put_varint(out, values[2 * i])


cdef struct PageFields:
    const uint64_t *ranges
    int64_t count
    uint64_t length, priority
    const uint8_t *encoding
    int64_t encoding_size


cdef void put_page(Writer *out, const PageFields *page) noexcept nogil:
    put_numbers(out, PAGE_OFFSETS, page.ranges, page.count)
    put_numbers(out, PAGE_SIZES, page.ranges + 1, page.count)
    if page.length:
        put_varint(out, PAGE_LENGTH << 3 | LC_FIELD_VARINT)
        put_varint(out, page.length)
    put_bytes(out, PAGE_ENCODING, page.encoding, page.encoding_size)
    if page.priority:
        put_varint(out, PAGE_PRIORITY << 3 | LC_FIELD_VARINT)
        put_varint(out, page.priority)


cdef bytes page_bytes(const PageFields *page):
    """Return the page with the tag of its field in the metadata of a column."""
    cdef Writer content, record
    cdef bytes out
    content.at, content.size, record.at, record.size = NULL, 0, NULL, 0
    put_page(&content, page)
    put_varint(&record, COLUMN_PAGES << 3 | LC_FIELD_BYTES)
    put_varint(&record, <uint64_t>content.size)
    out = PyBytes_FromStringAndSize(NULL, record.size + content.size)
    record.at, record.size = <uint8_t *>PyBytes_AS_STRING(out), 0
    put_varint(&record, COLUMN_PAGES << 3 | LC_FIELD_BYTES)
    put_varint(&record, <uint64_t>content.size)
    put_page(&record, page)
    return out


def page_record(list ranges not None, uint64_t length, bytes encoding not None, uint64_t priority):
    """Serialize a page as the metadata of its column has it.

    Parameters
    ----------
    ranges
        (position, size) of each buffer of the page.
    length
        Number of rows.
    encoding
        Serialised ``Encoding`` message.
    priority
        First row of the page.

    Returns
    -------
    bytes
        A field ``pages`` of a ``ColumnMetadata`` message, with its tag.

    Raises
    ------
    OverflowError
        A number does not have 64 bits.
    """
    cdef PageFields page
    cdef uint64_t *numbers
    cdef int64_t i
    page.count, page.length, page.priority = len(ranges), length, priority
    page.encoding, page.encoding_size = <const uint8_t *>PyBytes_AS_STRING(encoding), len(encoding)
    numbers = <uint64_t *>PyMem_Malloc((2 * page.count + 1) * sizeof(uint64_t))
    if numbers == NULL:
        raise MemoryError()
    page.ranges = numbers
    try:
        for i in range(page.count):
            numbers[2 * i], numbers[2 * i + 1] = ranges[i]
        return page_bytes(&page)
    finally:
        PyMem_Free(numbers)


def column_head(bytes encoding not None):
    """Serialize the metadata of a column without pages and buffers; the records of its pages may follow.

    Parameters
    ----------
    encoding
        Serialised ``Encoding`` message.

    Returns
    -------
    bytes
        A ``ColumnMetadata`` message.
    """
    cdef Writer record
    cdef bytes out
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(encoding)
    record.at, record.size = NULL, 0
    put_bytes(&record, COLUMN_ENCODING, data, len(encoding))
    out = PyBytes_FromStringAndSize(NULL, record.size)
    record.at, record.size = <uint8_t *>PyBytes_AS_STRING(out), 0
    put_bytes(&record, COLUMN_ENCODING, data, len(encoding))
    return out
