"""UTF-8 validation of whole value buffers."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, readable, writable

from lancecodec.errors import CodecError

cdef extern from "kernels/utf8.h" nogil:
    void lc_utf8_fill(uint64_t *table)
    int64_t lc_utf8_find_invalid(const uint64_t *table, const uint8_t *p, int64_t n)
    int64_t lc_utf8_copy(const uint64_t *table, const uint8_t *src, int64_t n, uint8_t *out)
    int lc_is_ascii(const uint8_t *p, int64_t n)
    int64_t lc_load_offset(const uint8_t *offsets, int wide, int64_t i)

cdef uint64_t[256] automaton
lc_utf8_fill(automaton)


cdef int64_t find_split(const uint8_t *data, int64_t n, const uint8_t *offsets, int64_t count,
                        bint wide) noexcept nogil:
    """Return an offset that lies inside a character, or -1."""
    cdef int64_t i, position
    for i in range(count):
        position = lc_load_offset(offsets, wide, i)
        if 0 <= position < n and (data[position] & 0xC0) == 0x80:
            return position
    return -1


def validate(data, offsets, bint wide):
    """Check that every value is valid UTF-8 (The Unicode Standard 15.0, table 3-7).

    Parameters
    ----------
    data
        Concatenated values.
    offsets
        Ascending offsets of 32 bits, or 64 if `wide`, into `data`, one more than there are values.
    wide
        Whether the offsets have 64 bits.

    Raises
    ------
    CodecError
        The bytes are not valid UTF-8, or a value starts inside a character.
    """
    cdef ByteView values = readable(data), ends = readable(offsets)
    cdef int64_t n = values.size, count = ends.size // (8 if wide else 4), bad = -1
    with nogil:
        if not lc_is_ascii(values.data, n):
            bad = lc_utf8_find_invalid(automaton, values.data, n)
            if bad < 0:
                bad = find_split(values.data, n, ends.data, count, wide)
    if bad >= 0:
        raise CodecError(f"invalid UTF-8 at byte {bad} of the values")


def copy(data, offsets, bint wide, out):
    """Copy values and check that every value of the copy is valid UTF-8, in one pass.

    The data may be a view of a mapped file, which another process can change. The copy is what was checked.

    Parameters
    ----------
    data
        Concatenated values.
    offsets, wide
        As for `validate`.
    out
        Output of at least as many bytes as `data`.

    Raises
    ------
    CodecError
        The bytes are not valid UTF-8, a value starts inside a character, or `out` is too small.
    """
    cdef ByteView values = readable(data), ends = readable(offsets), target = writable(out)
    cdef int64_t n = values.size, count = ends.size // (8 if wide else 4), bad
    if target.size < n:
        raise CodecError(f"output of {target.size} bytes is too small for {n} bytes of values")
    with nogil:
        bad = lc_utf8_copy(automaton, values.data, n, target.data)
        if bad < 0 and not lc_is_ascii(target.data, n):
            bad = find_split(target.data, n, ends.data, count, wide)
    if bad >= 0:
        raise CodecError(f"invalid UTF-8 at byte {bad} of the values")
