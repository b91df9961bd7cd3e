"""Protobuf messages as columns of numbers: the positions of nested messages, and their numeric fields.

A list of a hundred thousand messages is parsed without an object for each of them. A record is a byte range
``[start, end)`` of a buffer that holds a message; the outermost record is the whole buffer.

A column of `columns` holds one of these values for each record:

LAST
    The last value of the field, as a signed 64-bit number.
COUNT
    Number of occurrences of the field with bytes, which are text or a nested record.
ITEMS
    Number of numbers in the field. Packed numbers are counted one by one.
MAX
    The largest of these numbers as a signed 32-bit number.
LAST_32
    The lower 32 bits of the last value, unsigned, which is how readers take fields that are declared with 32 bits.
SIGNS
    Number of characters of the last text that do not belong in a plain file name: all except ASCII letters and digits,
    ``-``, ``_`` and ``.``, and a ``.`` in front. An empty text counts as 1.

`weigh` tells what a general parser would allocate for a message.

`MAX_COLUMNS` is the largest number of columns in one call.
"""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, readable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/records.h" nogil:
    int LC_RECORD_LAST, LC_RECORD_COUNT, LC_RECORD_ITEMS, LC_RECORD_MAX, LC_RECORD_LAST_32, LC_RECORD_SIGNS
    int LC_RECORD_COLUMNS
    ctypedef struct lc_record_column:
        int64_t field
        int64_t inner
        int64_t how
        int64_t missing
    ctypedef struct lc_record_places:
        int64_t *owners
        int64_t *heads
        int64_t *starts
        int64_t *ends
        int64_t room
    ctypedef struct lc_record_numbers:
        int64_t *owners
        int64_t *numbers
        int64_t room
        int64_t count
    int lc_records_locate(lc_bytes src, const int64_t *starts, const int64_t *ends, int64_t n, int64_t number,
                          const lc_record_places *out, int64_t *found)
    int lc_records_columns(lc_bytes src, const int64_t *starts, const int64_t *ends, int64_t n,
                           const lc_record_column *columns, int64_t count, int64_t *out)
    int lc_records_numbers(lc_bytes src, const int64_t *starts, const int64_t *ends, int64_t n, int64_t number,
                           lc_record_numbers *out)
    int LC_RECORD_BYTES, LC_RECORD_NUMBERS
    ctypedef struct lc_record_types:
        const int64_t *fixed
        const int64_t *fields
        int64_t width
    ctypedef struct lc_record_memory:
        int64_t bytes
        int64_t messages
        int64_t numbers
    int lc_record_weigh(const uint8_t *at, const uint8_t *end, const lc_record_types *types, int64_t type, int depth,
                        lc_record_memory *out)

LAST = LC_RECORD_LAST
COUNT = LC_RECORD_COUNT
ITEMS = LC_RECORD_ITEMS
MAX = LC_RECORD_MAX
LAST_32 = LC_RECORD_LAST_32
SIGNS = LC_RECORD_SIGNS
MAX_COLUMNS = LC_RECORD_COLUMNS
BYTES_FIELD = LC_RECORD_BYTES
NUMBERS_FIELD = LC_RECORD_NUMBERS


cdef int check_lengths(int64_t given, int64_t expected, str what) except -1:
    if given != expected:
        raise CodecError(f"{given} {what} instead of {expected}")
    return 0


def locate(src, const int64_t[::1] starts not None, const int64_t[::1] ends not None, int64_t field,
           int64_t[::1] owners not None, int64_t[::1] heads not None, int64_t[::1] inner_starts not None,
           int64_t[::1] inner_ends not None):
    """Find the records in a field of other records.

    Parameters
    ----------
    src
        Buffer with the messages.
    starts, ends
        int64 arrays of equal length: the byte ranges of the outer records.
    field
        Number of the field.
    owners, heads, inner_starts, inner_ends
        Output int64 arrays of equal length. They receive the position in `starts` of the outer record, the first byte
        of the field, and the byte range of the inner record. Records that do not fit are only counted, so empty outputs
        can be used to get the number.

    Returns
    -------
    int
        Number of records found.

    Raises
    ------
    CodecError
        The bytes are not valid messages, a range is outside of `src`, or the arrays do not match.
    """
    cdef ByteView view = readable(src)
    cdef lc_bytes source
    cdef lc_record_places places
    cdef int64_t found = 0, n = starts.shape[0]
    cdef int problem
    check_lengths(ends.shape[0], n, "ends of records")
    places.room = owners.shape[0]
    check_lengths(heads.shape[0], places.room, "heads")
    check_lengths(inner_starts.shape[0], places.room, "starts of inner records")
    check_lengths(inner_ends.shape[0], places.room, "ends of inner records")
    source.data, source.size = view.data, view.size
    places.owners, places.heads = &owners[0], &heads[0]
    places.starts, places.ends = &inner_starts[0], &inner_ends[0]
    with nogil:
        problem = lc_records_locate(source, &starts[0], &ends[0], n, field, &places, &found)
    if problem != LC_OK:
        fail(problem, f"records in field {field}")
    return found


def numbers(src, const int64_t[::1] starts not None, const int64_t[::1] ends not None, int64_t field,
            int64_t[::1] owners not None, int64_t[::1] out not None):
    """Read all numbers in a field of records as signed 32-bit numbers. Packed numbers are read one by one.

    Parameters
    ----------
    src
        Buffer with the messages.
    starts, ends
        int64 arrays of equal length: the byte ranges of the records.
    field
        Number of the field.
    owners, out
        Output int64 arrays of equal length: the position in `starts` of the record of each number, and the number.
        Numbers that do not fit are only counted.

    Returns
    -------
    int
        Number of numbers found.

    Raises
    ------
    CodecError
        The bytes are not valid messages, a range is outside of `src`, or the arrays do not match.
    """
    cdef ByteView view = readable(src)
    cdef lc_bytes source
    cdef lc_record_numbers noted
    cdef int64_t n = starts.shape[0]
    cdef int problem
    check_lengths(ends.shape[0], n, "ends of records")
    check_lengths(owners.shape[0], out.shape[0], "owners")
    source.data, source.size = view.data, view.size
    noted.owners, noted.numbers = &owners[0], &out[0]
    noted.room, noted.count = out.shape[0], 0
    with nogil:
        problem = lc_records_numbers(source, &starts[0], &ends[0], n, field, &noted)
    if problem != LC_OK:
        fail(problem, f"numbers in field {field}")
    return noted.count


def columns(src, const int64_t[::1] starts not None, const int64_t[::1] ends not None,
            const int64_t[:, ::1] wanted not None, int64_t[:, ::1] out not None):
    """Read numeric fields of records as columns.

    Parameters
    ----------
    src
        Buffer with the messages.
    starts, ends
        int64 arrays of length n: the byte ranges of the records.
    wanted
        int64 array of shape (columns, 4). A row has the number of the field; the number of a field in that field's
        record, or 0 for the field itself; the value to compute (`LAST`, `COUNT`, `ITEMS`, `MAX`, `LAST_32` or `SIGNS`);
        and the value for records without the field.
    out
        Output int64 array of shape (columns, n). Unsigned 64-bit values are stored as the signed numbers with the same
        bits.

    Raises
    ------
    CodecError
        The bytes are not valid messages, a range is outside of `src`, there are more than `MAX_COLUMNS` columns, or the
        arrays do not match.
    """
    cdef ByteView view = readable(src)
    cdef lc_bytes source
    cdef int64_t n = starts.shape[0], count = wanted.shape[0], c
    cdef int problem
    check_lengths(ends.shape[0], n, "ends of records")
    check_lengths(wanted.shape[1], 4, "numbers for each column")
    check_lengths(out.shape[0], count, "output columns")
    check_lengths(out.shape[1], n, "output rows")
    if count > LC_RECORD_COLUMNS:
        raise CodecError(f"{count} columns, more than {LC_RECORD_COLUMNS}")
    for c in range(count):
        if not LC_RECORD_LAST <= wanted[c, 2] <= LC_RECORD_SIGNS:
            raise CodecError(f"column {c} asks for {wanted[c, 2]}, which is not one of LAST to SIGNS")
    if n == 0 or count == 0:
        return
    source.data, source.size = view.data, view.size
    with nogil:
        problem = lc_records_columns(source, &starts[0], &ends[0], n, <const lc_record_column *> &wanted[0, 0], count,
                                     &out[0, 0])
    if problem != LC_OK:
        fail(problem, "fields of records")


def weigh(src, const int64_t[::1] fixed not None, const int64_t[:, ::1] fields not None):
    """Compute how much memory a general parser would allocate for a message, without parsing it.

    Parameters
    ----------
    src
        Buffer with a message of type 0.
    fixed
        int64 array of length t: bytes of memory of a message of each type, without its texts and lists.
    fields
        int64 array of shape (t, w): for each type and number of a field the type of the messages in the field,
        `NUMBERS_FIELD` for a list of numbers, or `BYTES_FIELD` for all other fields.

    Returns
    -------
    bytes : int
        Bytes of messages and texts.
    messages : int
        Number of messages, with those inside of others.
    numbers : int
        Number of numbers in lists.

    Raises
    ------
    CodecError
        The bytes are not valid messages, or nested more than 100 deep, or the arrays do not match.
    """
    cdef ByteView view = readable(src)
    cdef lc_record_types types
    cdef lc_record_memory found
    cdef int64_t count = fixed.shape[0], i, j
    cdef int problem
    check_lengths(fields.shape[0], count, "types of messages")
    if count == 0 or fields.shape[1] == 0:
        raise CodecError("no types of messages")
    for i in range(count):
        for j in range(fields.shape[1]):
            if not LC_RECORD_NUMBERS <= fields[i, j] < count:
                raise CodecError(f"field {j} has type {fields[i, j]} of {count}")
    types.fixed, types.fields, types.width = &fixed[0], &fields[0, 0], fields.shape[1]
    found.bytes, found.messages, found.numbers = 0, 0, 0
    with nogil:
        problem = lc_record_weigh(view.data, view.data + view.size, &types, 0, 0, &found)
    if problem != LC_OK:
        fail(problem, "fields of a message")
    return found.bytes, found.messages, found.numbers
