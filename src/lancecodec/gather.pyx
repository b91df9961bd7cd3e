"""Gathers of values by index, which is also how dictionaries are decoded.

Indices are unsigned little-endian integers of 1, 2, 4 or 8 bytes (`index_width`), at any address. `SHORT_ENTRY` is the
largest string in bytes that `ShortEntries` accepts.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_BAD_INDEX, LC_NO_SPACE, LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/gather_variable.h" nogil:
    int lc_gather_fixed_nulls(const uint8_t *entries, int64_t num_entries, int64_t width, const uint8_t *codes,
                              int64_t code_width, int64_t n, const uint8_t *validity, int64_t bit, uint8_t *out)
    int64_t lc_codes_find_bad(const uint8_t *codes, int64_t code_width, int64_t n, uint64_t num_entries,
                              const uint8_t *validity, int64_t bit)
    int lc_entry_offsets_check(const uint8_t *offsets, int wide, int64_t num_entries, int64_t size)
    int lc_gather_ends(const uint8_t *offsets, int wide, int64_t num_entries, const uint8_t *codes, int64_t code_width,
                       int64_t n, const uint8_t *validity, int64_t bit, int64_t base, int out_wide, uint8_t *out_ends,
                       int64_t *end)
    int lc_gather_bytes(lc_bytes data, const uint8_t *offsets, int wide, int64_t num_entries, const uint8_t *codes,
                        int64_t code_width, int64_t n, const uint8_t *validity, int64_t bit, uint8_t *out, int64_t size,
                        int64_t *written)
    int64_t LC_SHORT_ENTRY
    ctypedef struct lc_short_entries:
        const uint8_t *slots
        const int32_t *lengths
        int64_t step
        int64_t count
    int64_t lc_entry_longest(const uint8_t *offsets, int wide, int64_t num_entries)
    int lc_short_entries_fill(lc_bytes data, const uint8_t *offsets, int wide, int64_t num_entries, int64_t step,
                              uint8_t *slots, int32_t *lengths)
    int lc_gather_short(const lc_short_entries *entries, const uint8_t *codes, int64_t code_width, int64_t n,
                        int out_wide, int64_t base, uint8_t *ends, uint8_t *out, int64_t *written)
    uint64_t lc_code_at(const uint8_t *codes, int64_t code_width, int64_t i)
    int64_t lc_load_offset(const uint8_t *offsets, int wide, int64_t i)
    void lc_store_offset(uint8_t *offsets, int wide, int64_t i, int64_t value)
    void lc_copy_bytes(uint8_t *out, const uint8_t *src, int64_t n)


cdef int64_t count_indices(ByteView indices, int index_width) except -1:
    if index_width not in (1, 2, 4, 8):
        raise CodecError(f"indices of {index_width} bytes are not supported")
    if indices.size % index_width:
        raise CodecError(f"{indices.size} bytes are not a whole number of indices of {index_width} bytes")
    return indices.size // index_width


cdef class _Codes:
    """Codes and their validity, checked."""

    cdef ByteView view, bits
    cdef const uint8_t *validity
    cdef int64_t n, bit
    cdef int width

    def __cinit__(self, object indices, int index_width, object validity, int64_t bit):
        self.view, self.width = readable(indices), index_width
        self.n, self.bit = count_indices(self.view, index_width), bit
        if validity is not None:
            self.bits = readable(validity)
            if bit < 0 or self.bits.size > INT64_MAX // 8 or bit > 8 * self.bits.size \
                    or self.n > 8 * self.bits.size - bit:
                raise CodecError(f"validity of {self.bits.size} bytes does not hold {self.n} bits from bit {bit} on")
            self.validity = self.bits.data

    cdef int reject(self, int problem, int64_t count, str what) except -1:
        cdef int64_t at
        if problem == LC_BAD_INDEX:
            at = lc_codes_find_bad(self.view.data, self.width, self.n, count, self.validity, self.bit)
            if at < 0:  # the indices changed during the call
                return fail(problem, what)
            raise CodecError(f"index {lc_code_at(self.view.data, self.width, at)} is outside {count} values")
        return fail(problem, what)


def fixed(values, int64_t width, indices, int index_width, out, validity=None, int64_t bit=0):
    """Gather fixed-width values: value ``indices[i]`` becomes value i of the output.

    Parameters
    ----------
    values
        Input values of `width` bytes.
    width
        Size of a value in bytes. If it is 0, nothing is done.
    indices
        n indices.
    index_width
        Size of an index in bytes: 1, 2, 4 or 8.
    out
        Output of at least ``n * width`` bytes.
    validity
        Bitmap of the indices, or None. With a bitmap, a null may have any index. An index outside of `values` then
        counts as 0, or as a value of zero bytes if `values` is empty. With None, every index must be valid.
    bit
        Bit of `validity` that belongs to the first index.

    Raises
    ------
    CodecError
        An index is outside of `values`, or a buffer is too small.
    """
    cdef ByteView source = readable(values), target = writable(out)
    cdef _Codes codes = _Codes(indices, index_width, validity, bit)
    cdef int64_t n = codes.n, count
    cdef int problem
    if width < 0:
        raise CodecError(f"value width {width} is negative")
    if width == 0:
        return
    if target.size // width < n:
        raise CodecError(f"output of {target.size} bytes is too small for {n} values of {width} bytes")
    count = source.size // width
    with nogil:
        problem = lc_gather_fixed_nulls(source.data, count, width, codes.view.data, codes.width, n, codes.validity,
                                        codes.bit, target.data)
    if problem:
        codes.reject(problem, count, "gather of fixed-width values")


cdef class _Entries:
    """Dictionary entries between offsets of 32 or 64 bits, checked."""

    cdef ByteView data, offsets
    cdef int64_t count
    cdef bint wide

    def __cinit__(self, object data, object offsets, bint wide):
        cdef int problem = LC_OK
        self.data, self.offsets, self.wide = readable(data), readable(offsets), wide
        if self.offsets.size % (8 if wide else 4):
            raise CodecError(f"{self.offsets.size} bytes are not a whole number of {64 if wide else 32}-bit offsets")
        self.count = max(self.offsets.size // (8 if wide else 4) - 1, 0)
        if self.offsets.size:
            with nogil:
                problem = lc_entry_offsets_check(self.offsets.data, wide, self.count, self.data.size)
        if problem:
            fail(problem, f"{self.count} dictionary entries of {self.data.size} bytes")


def binary_offsets(values, offsets, bint wide, indices, int index_width, bint out_wide, out, int64_t base=0,
                   validity=None, int64_t bit=0):
    """Compute the offsets of dictionary-encoded strings: the first of two passes, before `binary`.

    Parameters
    ----------
    values
        Bytes of the dictionary entries.
    offsets
        Ascending offsets of the entries in `values`, of 32 bits, or 64 if `wide`.
    wide
        Whether `offsets` have 64 bits.
    indices
        n indices.
    index_width
        Size of an index in bytes: 1, 2, 4 or 8.
    out_wide
        Whether the offsets written have 64 bits.
    out
        Output of n + 1 offsets of 32 bits, or 64 if `out_wide`. The first one is `base`.
    base
        First offset.
    validity
        Bitmap of the indices, or None. With a bitmap, a null has length 0 and may have any index. With None, every
        index must be valid.
    bit
        Bit of `validity` that belongs to the first index.

    Returns
    -------
    int
        Size of all strings together in bytes.

    Raises
    ------
    CodecError
        An index is outside of the dictionary, the offsets of the entries do not ascend within `values`, or a buffer is
        too small.
    OffsetOverflowError
        The size does not fit the offsets.
    """
    cdef _Entries entries = _Entries(values, offsets, wide)
    cdef _Codes codes = _Codes(indices, index_width, validity, bit)
    cdef ByteView target = writable(out)
    cdef int64_t end = base, size = 8 if out_wide else 4
    cdef int problem
    if target.size // size < codes.n + 1:
        raise CodecError(f"output of {target.size} bytes is too small for {codes.n + 1} offsets of {size} bytes")
    if base < 0 or (base > 0x7FFFFFFF and not out_wide):
        raise CodecError(f"offsets cannot start at {base}")
    with nogil:
        lc_store_offset(target.data, out_wide, 0, base)
        problem = lc_gather_ends(entries.offsets.data, entries.wide, entries.count, codes.view.data, codes.width,
                                 codes.n, codes.validity, codes.bit, base, out_wide, target.data + size, &end)
    if problem:
        codes.reject(problem, entries.count, f"offsets of {codes.n} gathered values")
    return end - base


def binary(values, offsets, bint wide, indices, int index_width, out, validity=None, int64_t bit=0):
    """Copy the bytes of dictionary-encoded strings, back to back: the second pass, after `binary_offsets`.

    Parameters
    ----------
    values, offsets, wide, indices, index_width, validity, bit
        As for `binary_offsets`.
    out
        Output for the bytes, of the size that `binary_offsets` returns. With 64 further bytes the last strings are
        copied as fast as the others, and those bytes may be overwritten.

    Returns
    -------
    int
        Number of bytes of the strings.

    Raises
    ------
    CodecError
        As for `binary_offsets`.
    OffsetOverflowError
        `out` is too small.
    """
    cdef _Entries entries = _Entries(values, offsets, wide)
    cdef _Codes codes = _Codes(indices, index_width, validity, bit)
    cdef ByteView target = writable(out)
    cdef lc_bytes data
    cdef int64_t written = 0
    cdef int problem
    data.data, data.size = entries.data.data, entries.data.size
    with nogil:
        problem = lc_gather_bytes(data, entries.offsets.data, entries.wide, entries.count, codes.view.data,
                                  codes.width, codes.n, codes.validity, codes.bit, target.data, target.size, &written)
    if problem:
        codes.reject(problem, entries.count, f"bytes of {codes.n} gathered values")
    return written


SHORT_ENTRY = LC_SHORT_ENTRY


cdef class ShortEntries:
    """Dictionary of short strings, laid out for gathers in one pass.

    Parameters
    ----------
    values
        Bytes of the dictionary entries.
    offsets
        Ascending offsets of the entries in `values`, of 32 bits, or 64 if `wide`.
    wide
        Whether `offsets` have 64 bits.

    Attributes
    ----------
    longest : int
        Size of the longest entry in bytes.

    Raises
    ------
    CodecError
        An entry has more than `SHORT_ENTRY` bytes, or the offsets do not ascend within `values`.
    MemoryError
        There is not enough memory.
    """

    cdef lc_short_entries entries
    cdef void *memory
    cdef readonly int64_t longest

    def __cinit__(self, values, offsets, bint wide):
        cdef _Entries source = _Entries(values, offsets, wide)
        cdef lc_bytes data
        cdef int64_t step
        cdef int problem
        cdef int64_t longest
        with nogil:
            longest = lc_entry_longest(source.offsets.data, wide, source.count)
        self.longest = longest
        if self.longest > LC_SHORT_ENTRY:
            raise CodecError(f"an entry of {self.longest} bytes is longer than {LC_SHORT_ENTRY}")
        step = 8 if self.longest <= 8 else 16 if self.longest <= 16 else 32
        self.memory = PyMem_Malloc(source.count * (step + 4) + 1)
        if self.memory == NULL:
            raise MemoryError(f"{source.count} dictionary entries")
        data.data, data.size = source.data.data, source.data.size
        self.entries.step, self.entries.count = step, source.count
        self.entries.slots = <uint8_t *>self.memory
        self.entries.lengths = <int32_t *>(<uint8_t *>self.memory + source.count * step)
        with nogil:
            problem = lc_short_entries_fill(data, source.offsets.data, wide, source.count, step,
                                            <uint8_t *>self.memory, <int32_t *>self.entries.lengths)
        if problem:
            fail(problem, f"{source.count} dictionary entries of {source.data.size} bytes")

    def __dealloc__(self):
        PyMem_Free(self.memory)

    def room(self, int64_t length):
        """Compute the output size in bytes that `gather` needs.

        Parameters
        ----------
        length
            Number of values.

        Returns
        -------
        int
            Size in bytes, enough for any indices.

        Raises
        ------
        CodecError
            `length` is negative or too large.
        """
        if length < 0 or length > 2**56:
            raise CodecError(f"{length} values")
        return length * self.longest + self.entries.step

    def gather(self, indices, int index_width, bint out_wide, offsets, out, int64_t base=0):
        """Gather the offsets and bytes of dictionary-encoded strings in one pass.

        Parameters
        ----------
        indices
            n indices, all of them valid.
        index_width
            Size of an index in bytes: 1, 2, 4 or 8.
        out_wide
            Whether the offsets written have 64 bits.
        offsets
            Output of n + 1 offsets of 32 bits, or 64 if `out_wide`. The first one is `base`.
        out
            Output of at least ``room(n)`` bytes. Bytes behind the last string may be overwritten.
        base
            First offset.

        Returns
        -------
        int
            Number of bytes of the strings.

        Raises
        ------
        CodecError
            An index is outside of the dictionary, or a buffer is too small.
        OffsetOverflowError
            n copies of the longest entry do not fit the offsets. Use `binary_offsets` and `binary` then.
        """
        cdef _Codes codes = _Codes(indices, index_width, None, 0)
        cdef ByteView places = writable(offsets), target = writable(out)
        cdef int64_t written = 0, size = 8 if out_wide else 4
        cdef int problem
        if places.size // size < codes.n + 1:
            raise CodecError(f"output of {places.size} bytes is too small for {codes.n + 1} offsets of {size} bytes")
        if target.size < self.room(codes.n):
            raise CodecError(f"output of {target.size} bytes is too small for {codes.n} values of up to {self.longest}")
        if base < 0 or base > (2**62 if out_wide else 2**31 - 1):
            raise CodecError(f"offsets cannot start at {base}")
        if codes.n * self.longest > (2**62 if out_wide else 2**31 - 1) - base:
            fail(LC_NO_SPACE, f"{codes.n} values of up to {self.longest} bytes")
        with nogil:
            lc_store_offset(places.data, out_wide, 0, base)
            problem = lc_gather_short(&self.entries, codes.view.data, codes.width, codes.n, out_wide, base,
                                      places.data + size, target.data, &written)
        if problem:
            codes.reject(problem, self.entries.count, f"{codes.n} gathered values")
        return written


def variable_offsets(const int64_t[::1] value_offsets not None, indices, int index_width, int64_t[::1] out not None):
    """Compute the offsets of gathered variable-width values: the first of two passes, before `variable`.

    Parameters
    ----------
    value_offsets
        int64 array of ascending offsets, one more than there are values.
    indices
        n indices.
    index_width
        Size of an index in bytes: 1, 2, 4 or 8.
    out
        Output int64 array of n + 1 offsets, starting with 0.

    Returns
    -------
    int
        Size of all gathered values together in bytes.

    Raises
    ------
    CodecError
        An index is outside of the values, the offsets decrease or are negative, or `out` is too small.
    """
    cdef ByteView index = readable(indices)
    cdef int64_t n = count_indices(index, index_width), count = value_offsets.shape[0] - 1
    cdef int64_t i, begin, end, total = 0
    cdef uint64_t k = 0
    cdef bint broken = False, outside = False
    if out.shape[0] < n + 1:
        raise CodecError(f"output of {out.shape[0]} offsets is too small for {n} values")
    check_aligned(&value_offsets[0])
    check_aligned(&out[0])
    out[0] = 0
    with nogil:
        for i in range(n):
            k = lc_code_at(index.data, index_width, i)
            if count <= 0 or k >= <uint64_t>count:
                outside = True
                break
            begin, end = value_offsets[k], value_offsets[k + 1]
            if begin < 0 or end < begin or end - begin > INT64_MAX - total:
                broken = True
                break
            total += end - begin
            out[i + 1] = total
    if outside:
        raise CodecError(f"index {k} is outside {max(count, 0)} values")
    if broken:
        raise CodecError("value offsets decrease, are negative, or add up to 2**63 or more")
    return total


def variable(values, const int64_t[::1] value_offsets not None, indices, int index_width,
             const int64_t[::1] out_offsets not None, out):
    """Copy the bytes of gathered variable-width values: the second pass, after `variable_offsets`.

    Parameters
    ----------
    values
        Bytes that `value_offsets` point into.
    value_offsets
        int64 array of ascending offsets, one more than there are values.
    indices
        n indices.
    index_width
        Size of an index in bytes: 1, 2, 4 or 8.
    out_offsets
        int64 array of n + 1 offsets: value ``indices[i]`` is copied to byte ``out_offsets[i]`` of `out`.
    out
        Output for the bytes.

    Raises
    ------
    CodecError
        An index is outside of the values, or a value is outside of its buffer.
    """
    cdef ByteView source = readable(values), index = readable(indices), target = writable(out)
    cdef int64_t n = count_indices(index, index_width), count = value_offsets.shape[0] - 1
    cdef int64_t i, begin, end, at
    cdef uint64_t k = 0
    cdef bint broken = False, outside = False
    if out_offsets.shape[0] < n + 1:
        raise CodecError(f"{out_offsets.shape[0]} output offsets are too few for {n} values")
    check_aligned(&value_offsets[0])
    check_aligned(&out_offsets[0])
    with nogil:
        for i in range(n):
            k = lc_code_at(index.data, index_width, i)
            if count <= 0 or k >= <uint64_t>count:
                outside = True
                break
            begin, end, at = value_offsets[k], value_offsets[k + 1], out_offsets[i]
            if begin < 0 or end < begin or end > source.size or at < 0 or at > target.size \
                    or end - begin > target.size - at:
                broken = True
                break
            lc_copy_bytes(target.data + at, source.data + begin, end - begin)
    if outside:
        raise CodecError(f"index {k} is outside {max(count, 0)} values")
    if broken:
        raise CodecError("a value lies outside its buffer")


def expand_ranges(const int64_t[::1] begins not None, offsets, bint wide, int64_t[::1] out not None):
    """Write the integers of n ranges: ``begins[i], begins[i] + 1, ...`` to ``out[offsets[i]:offsets[i + 1]]``.

    Parameters
    ----------
    begins
        int64 array with the first integer of each range.
    offsets
        n + 1 ascending offsets of 32 bits, or 64 if `wide`.
    wide
        Whether the offsets have 64 bits.
    out
        Output int64 array.

    Raises
    ------
    CodecError
        A range is outside of `out`, or `offsets` is too small.
    """
    cdef ByteView ends = readable(offsets)
    cdef int64_t n = begins.shape[0], i, j, low, high
    cdef uint64_t begin
    cdef bint broken = False
    if ends.size // (8 if wide else 4) < n + 1:
        raise CodecError(f"offsets of {ends.size} bytes are too few for {n} ranges")
    check_aligned(&begins[0])
    check_aligned(&out[0])
    with nogil:
        for i in range(n):
            low, high = lc_load_offset(ends.data, wide, i), lc_load_offset(ends.data, wide, i + 1)
            if low < 0 or high < low or high > out.shape[0]:
                broken = True
                break
            begin = <uint64_t>begins[i]
            for j in range(low, high):
                out[j] = <int64_t>(begin + <uint64_t>(j - low))
    if broken:
        raise CodecError("a range lies outside the output")
