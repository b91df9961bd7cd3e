"""Manifests of tables: what a list of versions and the removal of old ones need, without an object for each fragment.

`scan` parses a manifest in the form in which writers of today produce it. It returns None for any other form (fields
that it does not know, files outside of the table, unusual names, damaged messages) and leaves it to a general parser.
It does not raise errors for content. Parts that are not needed, such as the schema, are not looked at.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

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
    int64_t lc_record_signs(const uint8_t *text, int64_t size)

cdef enum:
    #: Position of the message (u64), two version numbers (u16) and "LANC".
    FOOTER = 16
    #: Length of a section in front of it (u32).
    LENGTH = 4

#: Field numbers; see protos/table.proto.
cdef enum:
    FRAGMENTS = 2
    VERSION = 3
    INDEX_SECTION = 6
    TIMESTAMP = 7
    READER_FLAGS = 9
    WRITER_FLAGS = 10
    TRANSACTION_FILE = 12
    WRITER_VERSION = 13
    DATA_FORMAT = 15
    TRANSACTION = 23
    SECONDS = 1
    NANOS = 2
    FRAGMENT_ID = 1
    FRAGMENT_FILES = 2
    FRAGMENT_DELETION = 3
    FRAGMENT_ROWS = 4
    FILE_PATH = 1
    FILE_MAJOR = 4
    FILE_MINOR = 5
    FILE_SIZE = 6
    DELETION_TYPE = 1
    DELETION_VERSION = 2
    DELETION_ID = 3
    DELETION_ROWS = 4

#: Fields, as bits, with a value of the kind in the first name, which `scan` need not read.
cdef enum:
    # schema; schema metadata, tag, config, table metadata, branch
    MANIFEST_BYTES = 1 << 1 | 1 << 5 | 1 << 8 | 1 << 16 | 1 << 19 | 1 << 20
    # auxiliary position, highest fragment id, next row id, blob version
    MANIFEST_NUMBERS = 1 << 4 | 1 << 11 | 1 << 14 | 1 << 17
    # row ids and versions of rows
    FRAGMENT_BYTES = 1 << 5 | 1 << 7 | 1 << 9 | 1 << 12 | 1 << 13 | 1 << 14
    # fields, column indices; size of the metadata
    FILE_BYTES = 1 << 2 | 1 << 3
    FILE_NUMBERS = 1 << 2 | 1 << 3 | 1 << 8

#: Sums of numbers below this limit do not overflow, as there are fewer than 2**31 numbers.
cdef enum:
    SUMMAND_BITS = 32


cdef struct Totals:
    uint64_t major, minor
    bint has_version
    int64_t fragments, files, left
    uint64_t rows, deleted, bytes


cdef bint expected(lc_record_field *field, uint64_t with_bytes, uint64_t with_numbers) noexcept nogil:
    """Return whether a field that is not read has a known number and its kind."""
    cdef uint64_t bit
    if field.number > 31:
        return False
    bit = <uint64_t>1 << field.number
    return (field.kind == LC_FIELD_BYTES and bit & with_bytes) or (field.kind == LC_FIELD_VARINT and bit & with_numbers)


cdef bytes copied(const uint8_t *data, int64_t size):
    return PyBytes_FromStringAndSize(<const char *>data, size)


cdef bint add(uint64_t *total, uint64_t value) noexcept nogil:
    """Add a number, unless sums of such numbers might overflow."""
    if value >> SUMMAND_BITS:
        return False
    total[0] += value
    return True


cdef bytes scan_file(lc_record_field *outer, Totals *totals):
    """Return the path of a data file; None if it needs a general parser."""
    cdef const uint8_t *at = outer.data
    cdef const uint8_t *end = outer.data + outer.size
    cdef lc_record_field field = outer[0]
    cdef const uint8_t *path = NULL
    cdef int64_t length = 0
    cdef uint64_t major = 0, minor = 0, size = 0
    while at < end:
        if lc_record_next(&at, end, &field) != LC_OK:
            return None
        if field.number == FILE_PATH and field.kind == LC_FIELD_BYTES:
            path, length = field.data, field.size
        elif field.kind == LC_FIELD_VARINT and field.number == FILE_MAJOR:
            major = field.value
        elif field.kind == LC_FIELD_VARINT and field.number == FILE_MINOR:
            minor = field.value
        elif field.kind == LC_FIELD_VARINT and field.number == FILE_SIZE:
            size = field.value
        elif not expected(&field, FILE_BYTES, FILE_NUMBERS):
            return None
    if totals.files == 0:
        totals.major, totals.minor = major, minor
    totals.files += 1
    if path == NULL or lc_record_signs(path, length) or major != totals.major or minor != totals.minor \
            or not add(&totals.bytes, size):
        return None
    totals.left -= 1
    return copied(path, length) if totals.left >= 0 else None


cdef tuple scan_deletion(lc_record_field *outer, Totals *totals):
    """Return the type of a deletion file and the numbers in its name; None if it needs a general parser."""
    cdef const uint8_t *at = outer.data
    cdef const uint8_t *end = outer.data + outer.size
    cdef lc_record_field field = outer[0]
    cdef uint64_t[5] numbers
    memset(numbers, 0, sizeof(numbers))
    while at < end:
        if lc_record_next(&at, end, &field) != LC_OK or field.kind != LC_FIELD_VARINT or field.number > DELETION_ROWS:
            return None
        numbers[field.number] = field.value
    totals.left -= 1
    if totals.left < 0 or not add(&totals.deleted, numbers[DELETION_ROWS]):
        return None
    return numbers[DELETION_TYPE], numbers[DELETION_VERSION], numbers[DELETION_ID]


cdef bint scan_fragment(lc_record_field *outer, Totals *totals, list paths, list deletions) except -1:
    """Append the files of a fragment. Return False if it needs a general parser."""
    cdef const uint8_t *at = outer.data
    cdef const uint8_t *end = outer.data + outer.size
    cdef lc_record_field field = outer[0]
    cdef uint64_t number = 0, rows = 0
    cdef bytes path
    cdef tuple deletion = None
    while at < end:
        if lc_record_next(&at, end, &field) != LC_OK:
            return False
        if field.number == FRAGMENT_FILES and field.kind == LC_FIELD_BYTES:
            path = scan_file(&field, totals)
            if path is None:
                return False
            paths.append(path)
        elif field.number == FRAGMENT_DELETION and field.kind == LC_FIELD_BYTES:
            if deletion is not None:
                return False
            deletion = scan_deletion(&field, totals)
            if deletion is None:
                return False
        elif field.number == FRAGMENT_ID and field.kind == LC_FIELD_VARINT:
            number = field.value
        elif field.number == FRAGMENT_ROWS and field.kind == LC_FIELD_VARINT:
            rows = field.value
        elif not expected(&field, FRAGMENT_BYTES, 0):
            return False
    totals.fragments += 1
    if deletion is not None:
        deletions.append((number, *deletion))
    return number >> 32 == 0 and add(&totals.rows, rows)


cdef bint scan_timestamp(lc_record_field *outer, int64_t *numbers) noexcept nogil:
    cdef const uint8_t *at = outer.data
    cdef const uint8_t *end = outer.data + outer.size
    cdef lc_record_field field = outer[0]
    while at < end:
        if lc_record_next(&at, end, &field) != LC_OK or field.kind != LC_FIELD_VARINT:
            return False
        if field.number == SECONDS:
            numbers[0] = <int64_t>field.value
        elif field.number == NANOS and field.value < 1000000000:
            numbers[1] = <int64_t>field.value
        else:
            return False
    return True


cdef int64_t message_start(ByteView file) noexcept nogil:
    """Return the position of the message, which ends at the footer; -1 if the file does not have that form."""
    cdef uint64_t position
    cdef uint64_t end = <uint64_t>(file.size - FOOTER)
    cdef unsigned int length
    if file.size < FOOTER + LENGTH or memcmp(file.data + file.size - 4, b"LANC", 4) != 0:
        return -1
    memcpy(&position, file.data + end, 8)
    if position > end - LENGTH:
        return -1
    memcpy(&length, file.data + position, LENGTH)
    return <int64_t>position + LENGTH if length == end - position - LENGTH else -1


cdef int64_t section_size(ByteView file, uint64_t position) noexcept nogil:
    """Return the bytes of a section with its length in front; -1 if it does not lie in front of the footer."""
    cdef uint64_t end = <uint64_t>(file.size - FOOTER)
    cdef unsigned int length
    if position > end - LENGTH:
        return -1
    memcpy(&length, file.data + position, LENGTH)
    return <int64_t>length if length <= end - position - LENGTH else -1


cdef struct Found:
    uint64_t version, reader_flags, writer_flags, index_section, transaction
    int64_t[2] time
    bint is_signed, has_indices, has_transaction
    const uint8_t *name
    int64_t name_size
    const uint8_t *format
    int64_t format_size


cdef bint note(lc_record_field *field, Found *found) noexcept nogil:
    """Take a field of the manifest that is not a fragment. Return False if it needs a general parser."""
    if field.kind == LC_FIELD_VARINT:
        if field.number == VERSION:
            found.version = field.value
        elif field.number == READER_FLAGS:
            found.reader_flags = field.value
        elif field.number == WRITER_FLAGS:
            found.writer_flags = field.value
        elif field.number == INDEX_SECTION:
            found.index_section, found.has_indices = field.value, True
        elif field.number == TRANSACTION:
            found.transaction, found.has_transaction = field.value, True
        else:
            return expected(field, 0, MANIFEST_NUMBERS)
        return True
    if field.number == TIMESTAMP and field.kind == LC_FIELD_BYTES:
        return scan_timestamp(field, found.time)
    if field.number == TRANSACTION_FILE and field.kind == LC_FIELD_BYTES:
        found.name, found.name_size = field.data, field.size
        return field.size == 0 or lc_record_signs(field.data, field.size) == 0
    if field.number == WRITER_VERSION and field.kind == LC_FIELD_BYTES:
        found.is_signed = True
        return True
    if field.number == DATA_FORMAT and field.kind == LC_FIELD_BYTES:
        if found.format != NULL:
            return False
        found.format, found.format_size = field.data, field.size
        return True
    return expected(field, MANIFEST_BYTES, 0)


def scan(src, int64_t most_files):
    """Parse the file of a manifest.

    Parameters
    ----------
    src
        The whole file.
    most_files
        Number of data files and deletion files, from which on it is left to a general parser.

    Returns
    -------
    version, reader_flags, writer_flags : int
        As in the manifest.
    seconds, nanos : int
        Time of the commit.
    transaction_file : bytes
        Name of the transaction file, a plain file name or empty.
    has_transaction : bool
        Whether the file has the transaction itself.
    indices : bytes
        Serialised list of indices, empty without one.
    format : bytes
        Serialised ``DataStorageFormat``.
    file_version : tuple of int or None
        Major and minor version of all data files, None without data files.
    paths : list of bytes
        Path of each data file, a plain file name.
    deletions : list of tuple
        For each deletion file the id of its fragment, its type, and the version and the id in its name.
    fragments, rows, deleted, file_bytes : int
        Number of fragments, sum of their rows with deleted ones, of their deleted rows, and of the sizes of data files.

    The result is None if a general parser is needed.
    """
    cdef ByteView view = readable(src)
    cdef int64_t start = message_start(view), size
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef lc_record_field field
    cdef Found found
    cdef Totals totals
    cdef list paths = [], deletions = []
    cdef bytes indices = b""
    if start < 0:
        return None
    memset(&field, 0, sizeof(field))
    memset(&found, 0, sizeof(found))
    memset(&totals, 0, sizeof(totals))
    totals.left = max(most_files, 0)
    at, end = view.data + start, view.data + view.size - FOOTER
    while at < end:
        if lc_record_next(&at, end, &field) != LC_OK:
            return None
        if field.number == FRAGMENTS:
            if field.kind != LC_FIELD_BYTES or not scan_fragment(&field, &totals, paths, deletions):
                return None
        elif not note(&field, &found):
            return None
    if not found.is_signed or found.format == NULL:
        return None
    if found.has_transaction and section_size(view, found.transaction) < 0:
        return None
    if found.has_indices:
        size = section_size(view, found.index_section)
        if size < 0:
            return None
        indices = copied(view.data + found.index_section + LENGTH, size)
    return (
        found.version, found.reader_flags, found.writer_flags, found.time[0], found.time[1],
        copied(found.name, found.name_size), found.has_transaction, indices, copied(found.format, found.format_size),
        (totals.major, totals.minor) if totals.files else None, paths, deletions,
        totals.fragments, totals.rows, totals.deleted, totals.bytes,
    )
