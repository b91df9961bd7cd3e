"""Metadata at the end of a 2.x file: its tables, its descriptor, and the pages of a column.

The functions parse the protobuf messages in the form in which writers produce them, much faster than a general parser.
They return None or False for any other form (repeated or unknown fields, damaged messages, buffers outside of the file)
and leave it to a general parser. They do not raise errors for content.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
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
