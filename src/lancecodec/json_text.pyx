"""JSON text into the binary form of JSON columns, and back."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_BAD_OFFSETS, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/utf8.h" nogil:
    void lc_utf8_fill(uint64_t *table)

cdef extern from "kernels/json_read.h" nogil:
    ctypedef struct lc_json_item:
        int64_t start
    ctypedef struct lc_json_reader:
        const uint64_t *powers
        uint8_t *out
        uint8_t *spare
        lc_json_item *items
    int LC_POWER_MIN, LC_POWERS
    int64_t LC_JSON_READ_BOUND(int64_t size)
    int64_t LC_JSON_READ_ITEMS(int64_t size)
    int64_t lc_load_offset(const uint8_t *offsets, int wide, int64_t i)
    int64_t lc_json_read_all(lc_bytes texts, const uint8_t *offsets, int wide, const uint8_t *skip, int64_t row,
                             int64_t n, lc_json_reader *r, int64_t capacity, int64_t *ends)

cdef extern from "kernels/json_write.h" nogil:
    ctypedef struct lc_json_writer:
        const uint64_t *powers
        const uint64_t *automaton
        uint8_t *out
        int64_t capacity
    int64_t lc_json_write_all(lc_bytes documents, const uint8_t *offsets, int wide, const uint8_t *skip, int64_t row,
                              int64_t n, lc_json_writer *w, int64_t *ends)

cdef uint64_t[2000] powers
cdef uint64_t[256] automaton
cdef bint is_filled = False


cdef void fill():
    """Fill the tables at the first call: powers of ten, rounded up to their 128 highest bits."""
    global is_filled
    cdef int entry
    if is_filled:
        return
    lc_utf8_fill(automaton)
    for entry in range(LC_POWERS):
        exponent = LC_POWER_MIN + entry
        power = 5 ** abs(exponent)
        bits = power.bit_length()
        if exponent < 0:
            power = -(-(1 << (bits + 127)) // power)
        else:
            power = power << (128 - bits) if bits <= 128 else -(-power >> (bits - 128))
        powers[2 * entry], powers[2 * entry + 1] = power >> 64, power & 0xFFFFFFFFFFFFFFFF
    is_filled = True


cdef const uint8_t *start_of(ByteView skip, int64_t n) except? NULL:
    if skip.size and skip.size < n:
        raise CodecError(f"{skip.size} marks are too few for {n} documents")
    return skip.data if skip.size else NULL


cdef int check(ByteView offsets, bint wide, int64_t[::1] ends, int64_t row, int64_t size) except -1:
    """Check the arguments that both directions have, before the first document is looked at."""
    cdef int64_t n = ends.shape[0] - 1
    if n < 0 or offsets.size // (8 if wide else 4) < n + 1:
        raise CodecError(f"offsets of {offsets.size} bytes are too few for {n} documents")
    if not 0 <= row <= n or not 0 <= ends[row] <= size:
        raise CodecError(f"row {row} of {n} does not start in the {size} bytes of the output")
    return check_aligned(&ends[0])


def encode(data, offsets, bint wide, skip, int64_t row, out, int64_t[::1] ends not None):
    """Encode texts in binary form, from one row on, until the output may be too small for the next one.

    Accepted are texts of RFC 8259, and also ``NaN``, ``Infinity``, ``-Infinity``, control characters in strings, and
    blank texts, which are null. Integers of up to 64 bits stay integers. Numbers are rounded correctly.

    Parameters
    ----------
    data
        The texts, valid UTF-8.
    offsets
        At least n + 1 offsets of the texts in `data`, of 32 bits, or 64 if `wide`.
    wide
        Whether the offsets have 64 bits.
    skip
        A byte for each text that is not 0 if it is not to be encoded; empty to encode all.
    row
        The first text to encode.
    out
        Output for the documents. One of n bytes of text needs up to 4 n + 8 bytes while it is encoded.
    ends
        int64 array of n + 1 numbers: where the documents start and end in `out`. The start of that of `row` is given,
        the others are outputs. A skipped text has an empty document, and so has one that is left to the caller: one
        that is not valid, has a key twice, half of a surrogate pair, more than 400 levels, or parts above 256 MiB.

    Returns
    -------
    int
        The first row that was not encoded; n if all were.

    Raises
    ------
    CodecError
        Offsets decrease or exceed `data`, or an argument has too few values.
    """
    cdef ByteView texts = readable(data), starts = readable(offsets), skipped = readable(skip), target = writable(out)
    cdef int64_t n = ends.shape[0] - 1, longest = 0, i, low, high, done
    check(starts, wide, ends, row, target.size)
    cdef const uint8_t *marks = start_of(skipped, n)
    cdef lc_bytes source = lc_bytes(texts.data, texts.size)
    cdef lc_json_reader *reader
    fill()
    for i in range(row, n):
        low, high = lc_load_offset(starts.data, wide, i), lc_load_offset(starts.data, wide, i + 1)
        if low < 0 or high < low or high > texts.size:
            fail(LC_BAD_OFFSETS, "JSON texts")
        if high - low > longest and LC_JSON_READ_BOUND(high - low) <= target.size:
            longest = high - low
    reader = <lc_json_reader *>malloc(sizeof(lc_json_reader))
    cdef uint8_t *spare = <uint8_t *>malloc(<size_t>LC_JSON_READ_BOUND(longest))
    cdef lc_json_item *items = <lc_json_item *>malloc(<size_t>LC_JSON_READ_ITEMS(longest) * sizeof(lc_json_item))
    try:
        if not reader or not spare or not items:
            raise MemoryError("JSON texts")
        reader.powers, reader.out, reader.spare, reader.items = powers, target.data, spare, items
        with nogil:
            done = lc_json_read_all(source, starts.data, wide, marks, row, n, reader, target.size, &ends[0])
    finally:
        free(reader)
        free(spare)
        free(items)
    if done < 0:
        fail(LC_BAD_OFFSETS, "JSON texts")
    return done


def decode(data, offsets, bint wide, skip, int64_t row, out, int64_t[::1] ends not None):
    """Decode documents to compact text, from one row on, until the output may be too small for the next one.

    Floating-point numbers have the fewest digits that give them back, and an exponent below 1e-5 and from 1e16 on;
    those that are not finite are null, and so are empty documents.

    Parameters
    ----------
    data
        The documents.
    offsets, wide
        As for `encode`.
    skip
        A byte for each document that is not 0 if it is not to be decoded; empty to decode all.
    row
        The first document to decode.
    out
        Output for the texts. One of n bytes needs up to 6 n + 48 bytes, usually less than 2 n + 96.
    ends
        As for `encode`. A skipped document has an empty text, and so has one that is left to the caller: one that is
        damaged, holds a value that JSON does not have, or has more than 400 levels.

    Returns
    -------
    int
        The first row that was not decoded; n if all were.

    Raises
    ------
    CodecError
        As for `encode`.
    """
    cdef ByteView documents = readable(data), starts = readable(offsets), skipped = readable(skip)
    cdef ByteView target = writable(out)
    cdef int64_t n = ends.shape[0] - 1, done
    check(starts, wide, ends, row, target.size)
    cdef const uint8_t *marks = start_of(skipped, n)
    cdef lc_bytes source = lc_bytes(documents.data, documents.size)
    fill()
    cdef lc_json_writer *writer = <lc_json_writer *>malloc(sizeof(lc_json_writer))
    if not writer:
        raise MemoryError("JSON documents")
    writer.powers, writer.automaton, writer.out, writer.capacity = powers, automaton, target.data, target.size
    with nogil:
        done = lc_json_write_all(source, starts.data, wide, marks, row, n, writer, &ends[0])
    free(writer)
    if done < 0:
        fail(LC_BAD_OFFSETS, "JSON documents")
    return done
