"""Predicates on the values of a buffer, with bitmaps as results.

Bit i of an output (bit ``i % 8`` of byte ``i // 8``) belongs to value i. Bits behind the last value are undefined.
Nulls are not treated specially: the bytes below a null are compared like any other value.

`PREFIX`, `SUFFIX` and `WHOLE` are the places for `compare_text`. `EQUAL`, `LESS` and `LESS_EQUAL` are the orders for
`compare_decimals`.
"""

import os

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/text_search.h" nogil:
    ctypedef struct lc_strings:
        const uint8_t *data
        int64_t size
        const uint8_t *offsets
        int wide
        int64_t count
    int LC_TEXT_PREFIX, LC_TEXT_SUFFIX, LC_TEXT_WHOLE
    int lc_strings_containing(lc_strings s, lc_bytes text, uint8_t *out)
    int lc_strings_with(lc_strings s, lc_bytes text, int place, uint8_t *out)

cdef extern from "kernels/decimal_compare.h" nogil:
    int LC_EQUAL, LC_LESS, LC_LESS_EQUAL
    void lc_decimals_compare(const uint8_t *p, int64_t n, const uint64_t *bound, int words, int order, int flip,
                             uint8_t *out)

cdef extern from "kernels/membership.h" nogil:
    int64_t LC_DENSE_RANGE
    ctypedef struct lc_secret:
        uint64_t a
        uint64_t b
    ctypedef struct lc_integer_set:
        uint64_t base
        uint64_t range
        uint8_t *bits
        uint64_t *slots
        int shift
        uint64_t none
        lc_secret secret
    ctypedef struct lc_string_set:
        const uint8_t *data
        const uint8_t *offsets
        int wide
        int64_t size
        int64_t count
        uint32_t *slots
        uint64_t *hashes
        int shift
        uint64_t[4] lengths
        lc_secret secret
    void lc_marked(const uint8_t *codes, int64_t width, int64_t n, const uint8_t *marks, int64_t entries, uint8_t *out)
    void lc_integer_bounds(const uint8_t *values, int64_t width, int64_t n, int64_t *low, int64_t *high)
    uint64_t lc_integer_missing(const uint8_t *values, int64_t width, int64_t n, uint8_t *seen)
    void lc_integers_add(lc_integer_set *set, const uint8_t *values, int64_t width, int64_t n)
    void lc_integers_among(const lc_integer_set *set, const uint8_t *values, int64_t width, int64_t n, uint8_t *out)
    int lc_string_set_fill(lc_string_set *set)
    int lc_strings_among(const lc_string_set *set, lc_bytes data, const uint8_t *offsets, int wide, int64_t n,
                         uint8_t *out)

cdef extern from "kernels/positions.h" nogil:
    int64_t lc_bits_positions(const uint8_t *bits, int64_t n, int64_t *out, int64_t room)

PREFIX, SUFFIX, WHOLE = LC_TEXT_PREFIX, LC_TEXT_SUFFIX, LC_TEXT_WHOLE
EQUAL, LESS, LESS_EQUAL = LC_EQUAL, LC_LESS, LC_LESS_EQUAL

#: Largest number of strings in a set: their numbers have 32 bits.
cdef int64_t MOST_STRINGS = (<int64_t>1 << 31) - 1

cdef lc_secret SECRET
SECRET.a, SECRET.b = int.from_bytes(os.urandom(8), "little"), int.from_bytes(os.urandom(8), "little") | 1


cdef int64_t count_values(ByteView values, int64_t width) except -1:
    if width not in (1, 2, 4, 8):
        raise CodecError(f"integers of {width} bytes are not supported")
    if values.size % width:
        raise CodecError(f"{values.size} bytes are not a whole number of values of {width} bytes")
    return values.size // width


cdef int check_bits(ByteView out, int64_t count) except -1:
    if out.size < count // 8 + (count % 8 != 0):
        raise CodecError(f"{out.size} bytes are too few for {count} bits")
    return 0


cdef int64_t count_strings(ByteView offsets, bint wide) except -1:
    cdef int64_t width = 8 if wide else 4
    if offsets.size < width or offsets.size % width:
        raise CodecError(f"{offsets.size} bytes are not a whole number of offsets of {width} bytes, at least one")
    return offsets.size // width - 1


cdef int table_bits(int64_t count) noexcept:
    """Return the logarithm of the number of slots in a hash table, at least twice as many as members."""
    cdef int bits = 6
    while (<int64_t>1 << bits) < 2 * count:
        bits += 1
    return bits


# -- results -----------------------------------------------------------------------------------------------------


def positions(bits, int64_t length, int64_t[::1] out):
    """Write the positions of the set bits of a bitmap, ascending.

    Parameters
    ----------
    bits
        Bitmap.
    length
        Number of bits to look at.
    out
        Output int64 array.

    Returns
    -------
    int
        Number of set bits.

    Raises
    ------
    CodecError
        More bits are set than `out` has entries, or the bitmap is too small.
    """
    cdef ByteView source = readable(bits)
    cdef int64_t found, room = out.shape[0]
    if length < 0 or source.size < length // 8 + (length % 8 != 0):
        raise CodecError(f"bitmap of {source.size} bytes does not hold {length} bits")
    cdef int64_t *target = &out[0] if room else NULL
    check_aligned(target)
    with nogil:
        found = lc_bits_positions(source.data, length, target, room)
    if found < 0:
        raise CodecError(f"more than {room} bits are set")
    return found


# -- strings -----------------------------------------------------------------------------------------------------


def contains(data, offsets, bint wide, text, out):
    """Mark the strings that contain a text. The bytes of all strings are searched at once.

    Parameters
    ----------
    data
        Concatenated values.
    offsets
        n + 1 ascending offsets of 32 bits, or 64 if `wide`, into `data`.
    wide
        Whether the offsets have 64 bits.
    text
        Bytes to search for, at least one.
    out
        Output bitmap of at least ``ceil(n / 8)`` bytes.

    Raises
    ------
    CodecError
        An offset that is used decreases or exceeds the data, the text is empty, or `out` is too small.
    """
    cdef ByteView values = readable(data), ends = readable(offsets), needle = readable(text), target = writable(out)
    cdef int64_t count = count_strings(ends, wide)
    cdef lc_strings strings = lc_strings(values.data, values.size, ends.data, wide, count)
    cdef lc_bytes wanted = lc_bytes(needle.data, needle.size)
    cdef int problem
    check_bits(target, count)
    if needle.size == 0:
        raise CodecError("the text to search for is empty")
    with nogil:
        memset(target.data, 0, <size_t>((count + 7) // 8))
        problem = lc_strings_containing(strings, wanted, target.data)
    if problem != LC_OK:
        fail(problem, "strings")


def compare_text(data, offsets, bint wide, text, int place, out):
    """Mark the strings that begin with, end with or are equal to a text.

    Parameters
    ----------
    data, offsets, wide
        The n strings, as for `contains`.
    text
        Bytes to compare with, at least one.
    place
        `PREFIX`, `SUFFIX` or `WHOLE`.
    out
        Output bitmap of at least ``ceil(n / 8)`` bytes.

    Raises
    ------
    CodecError
        An offset that is used decreases or exceeds the data, the text is empty, `place` is unknown, or `out` is too
        small.
    """
    cdef ByteView values = readable(data), ends = readable(offsets), needle = readable(text), target = writable(out)
    cdef int64_t count = count_strings(ends, wide)
    cdef lc_strings strings = lc_strings(values.data, values.size, ends.data, wide, count)
    cdef lc_bytes wanted = lc_bytes(needle.data, needle.size)
    cdef int problem
    check_bits(target, count)
    if needle.size == 0:
        raise CodecError("the text to compare with is empty")
    if place not in (LC_TEXT_PREFIX, LC_TEXT_SUFFIX, LC_TEXT_WHOLE):
        raise CodecError(f"unknown place {place}; it must be PREFIX, SUFFIX or WHOLE")
    with nogil:
        problem = lc_strings_with(strings, wanted, place, target.data)
    if problem != LC_OK:
        fail(problem, "strings")


# -- decimals ----------------------------------------------------------------------------------------------------


def compare_decimals(values, bound, int order, bint negated, out):
    """Mark the integers of 128 or 256 bits that are equal to, less than, or not greater than a bound.

    Parameters
    ----------
    values
        n signed little-endian integers.
    bound
        One such integer of 16 or 32 bytes. Its size is the size of the values.
    order
        `EQUAL`, `LESS` or `LESS_EQUAL`.
    negated
        Whether to mark the other values instead.
    out
        Output bitmap of at least ``ceil(n / 8)`` bytes.

    Raises
    ------
    CodecError
        The sizes of the buffers do not match, or `order` is unknown.
    """
    cdef ByteView source = readable(values), limit = readable(bound), target = writable(out)
    cdef int64_t n
    cdef uint64_t[4] words
    if limit.size not in (16, 32):
        raise CodecError(f"decimals of {limit.size} bytes are not supported")
    if source.size % limit.size:
        raise CodecError(f"{source.size} bytes are not a whole number of values of {limit.size} bytes")
    if order not in (LC_EQUAL, LC_LESS, LC_LESS_EQUAL):
        raise CodecError(f"unknown order {order}; it must be EQUAL, LESS or LESS_EQUAL")
    n = source.size // limit.size
    check_bits(target, n)
    memcpy(words, limit.data, <size_t>limit.size)
    with nogil:
        lc_decimals_compare(source.data, n, words, <int>(limit.size // 8), order, negated, target.data)


# -- members -----------------------------------------------------------------------------------------------------


def marked(codes, int code_width, marks, out):
    """Mark the dictionary indices whose entry is marked.

    Parameters
    ----------
    codes
        n unsigned indices of `code_width` bytes. An index without an entry is not marked.
    code_width
        Size of an index in bytes: 1, 2, 4 or 8.
    marks
        One byte per entry, 0 or 1.
    out
        Output bitmap of at least ``ceil(n / 8)`` bytes.

    Raises
    ------
    CodecError
        `code_width` is not supported, `codes` is not a whole number of indices, or `out` is too small.
    """
    cdef ByteView source = readable(codes), entries = readable(marks), target = writable(out)
    cdef int64_t n = count_values(source, code_width)
    check_bits(target, n)
    with nogil:
        lc_marked(source.data, code_width, n, entries.data, entries.size, target.data)


cdef class IntegerSet:
    """Set of integers of one width, for membership tests. It is a bitmap if the integers are close together, else a
    hash table with a secret of the process.

    Parameters
    ----------
    members
        Integers of `width` bytes, signed or not, in any order, repeats allowed. They are copied.
    width
        Size of an integer in bytes: 1, 2, 4 or 8.

    Raises
    ------
    CodecError
        `width` is not supported, or `members` is not a whole number of integers.
    MemoryError
        There is not enough memory.
    """

    cdef lc_integer_set table
    cdef int64_t width

    def __cinit__(self, members, int width):
        cdef ByteView source = readable(members)
        cdef int64_t n = count_values(source, width), low, high
        cdef uint64_t spread
        self.width = width
        with nogil:
            lc_integer_bounds(source.data, width, n, &low, &high)
        spread = <uint64_t>high - <uint64_t>low
        if n and spread < <uint64_t>LC_DENSE_RANGE:
            self.open_dense(<uint64_t>low, spread + 1)
        else:
            self.open_hashed(source, n)
        with nogil:
            lc_integers_add(&self.table, source.data, width, n)

    cdef int open_dense(self, uint64_t base, uint64_t range) except -1:
        cdef size_t size = <size_t>(range + 7) // 8
        self.table.base, self.table.range = base, range
        self.table.bits = <uint8_t *>PyMem_Malloc(size)
        if self.table.bits == NULL:
            raise MemoryError("a set of integers")
        memset(self.table.bits, 0, size)
        return 0

    cdef int open_hashed(self, ByteView source, int64_t n) except -1:
        cdef int bits = table_bits(2 * n)
        cdef int64_t i, slots = <int64_t>1 << bits
        cdef uint8_t *seen = <uint8_t *>PyMem_Malloc(<size_t>(n + 1))
        self.table.shift, self.table.secret = 64 - bits, SECRET
        self.table.slots = <uint64_t *>PyMem_Malloc(<size_t>(8 * slots))
        if self.table.slots == NULL or seen == NULL:
            PyMem_Free(seen)
            raise MemoryError("a set of integers")
        with nogil:
            memset(seen, 0, <size_t>(n + 1))
            self.table.none = lc_integer_missing(source.data, self.width, n, seen)
            for i in range(slots):
                self.table.slots[i] = self.table.none
        PyMem_Free(seen)
        return 0

    def __dealloc__(self):
        PyMem_Free(self.table.bits)
        PyMem_Free(self.table.slots)

    def contains(self, values, out):
        """Mark the values that are members of the set.

        Parameters
        ----------
        values
            n integers of the width of the set.
        out
            Output bitmap of at least ``ceil(n / 8)`` bytes.

        Raises
        ------
        CodecError
            `values` is not a whole number of integers, or `out` is too small.
        """
        cdef ByteView source = readable(values), target = writable(out)
        cdef int64_t n = count_values(source, self.width)
        check_bits(target, n)
        with nogil:
            lc_integers_among(&self.table, source.data, self.width, n, target.data)


cdef class StringSet:
    """Set of strings, for membership tests. It is a hash table with a secret of the process.

    Parameters
    ----------
    data, offsets, wide
        The strings, as for `contains`, at most 2**31 - 1 of them. They are copied.

    Raises
    ------
    CodecError
        There are too many strings, or an offset decreases or exceeds the data.
    MemoryError
        There is not enough memory.
    """

    cdef lc_string_set table
    cdef bytes data, offsets

    def __cinit__(self, data, offsets, bint wide):
        cdef ByteView values, ends
        cdef int64_t count, slots
        cdef int problem
        self.data, self.offsets = bytes(readable_bytes(data)), bytes(readable_bytes(offsets))
        values, ends = readable(self.data), readable(self.offsets)
        count = count_strings(ends, wide)
        if count > MOST_STRINGS:
            raise CodecError(f"a set of {count} strings is too large")
        self.table.data, self.table.size = values.data, values.size
        self.table.offsets, self.table.wide, self.table.count = ends.data, wide, count
        self.table.secret = SECRET
        self.table.shift = 64 - table_bits(count)
        slots = <int64_t>1 << (64 - self.table.shift)
        self.table.slots = <uint32_t *>PyMem_Malloc(<size_t>(4 * slots))
        self.table.hashes = <uint64_t *>PyMem_Malloc(<size_t>(8 * count + 8))
        if self.table.slots == NULL or self.table.hashes == NULL:
            raise MemoryError("a set of strings")
        with nogil:
            memset(self.table.slots, 0, <size_t>(4 * slots))
            problem = lc_string_set_fill(&self.table)
        if problem != LC_OK:
            fail(problem, "the strings of a set")

    def __dealloc__(self):
        PyMem_Free(self.table.slots)
        PyMem_Free(self.table.hashes)

    def contains(self, data, offsets, bint wide, out):
        """Mark the strings that are members of the set.

        Parameters
        ----------
        data, offsets, wide
            The n strings to look up, as for `contains`.
        out
            Output bitmap of at least ``ceil(n / 8)`` bytes.

        Raises
        ------
        CodecError
            An offset that is used decreases or exceeds the data, or `out` is too small.
        """
        cdef ByteView values = readable(data), ends = readable(offsets), target = writable(out)
        cdef int64_t n = count_strings(ends, wide)
        cdef lc_bytes strings = lc_bytes(values.data, values.size)
        cdef int problem
        check_bits(target, n)
        with nogil:
            problem = lc_strings_among(&self.table, strings, ends.data, wide, n, target.data)
        if problem != LC_OK:
            fail(problem, "strings")


cdef object readable_bytes(object owner):
    """Return a view of the content. Raise TypeError unless it is a buffer, because bytes(5) would be 5 zeros."""
    return memoryview(owner).cast("B")
