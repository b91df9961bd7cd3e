"""Dictionary building: the distinct values of a column, and a code for each value.

Values are compared as bytes: -0.0 and 0.0 are different, and NaNs are equal if their bits are. The hash table uses open
addressing in buckets of two slots, and a hash in the style of wyhash (Wang Yi) with a secret that is chosen once per
process. The results do not depend on the secret.
"""

import os

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_OK, fail

from lancecodec.errors import CodecError

cdef extern from "kernels/dictionary.h" nogil:
    int LC_DICT_TOO_MANY
    ctypedef struct lc_secret:
        uint64_t a
        uint64_t b
    ctypedef struct lc_dict_table:
        int64_t count
        int64_t bytes
    ctypedef struct lc_dict_values:
        const uint8_t *data
        int64_t size
        int64_t width
        const uint8_t *offsets
        int wide
        const uint8_t *validity
        int64_t bit
        int64_t n
    void lc_dict_open(lc_dict_table *d, int64_t *positions, int64_t limit, int64_t max_bytes, lc_secret secret)
    void lc_dict_close(lc_dict_table *d)
    int lc_dict_build(lc_dict_table *d, lc_dict_values *v, int64_t code_width, uint8_t *codes)
    int lc_dict_sample(lc_dict_table *d, lc_dict_values *v, int64_t blocks, int64_t size, int64_t *looked)

#: Size in bytes of the largest fixed-width value that is supported.
MAX_WIDTH = 256

# Chosen once per process, so that nobody can prepare values that collide.
cdef lc_secret SECRET
SECRET.a, SECRET.b = int.from_bytes(os.urandom(8), "little"), int.from_bytes(os.urandom(8), "little")


cdef class _Values:
    """Checked description of the values, with the buffers that it refers to."""

    cdef lc_dict_values of
    cdef list keep

    cdef int fixed(self, object data, int64_t width) except -1:
        cdef ByteView view = readable(data)
        if not 1 <= width <= MAX_WIDTH:
            raise CodecError(f"a dictionary of values of {width} bytes is not supported, only of 1 to {MAX_WIDTH}")
        if view.size % width:
            raise CodecError(f"{view.size} bytes are not a whole number of values of {width} bytes")
        self.of.data, self.of.size, self.of.width, self.of.n = view.data, view.size, width, view.size // width
        self.keep = [view]
        return 0

    cdef int variable(self, object data, object offsets, bint wide) except -1:
        cdef ByteView view = readable(data), places = readable(offsets)
        cdef int64_t size = 8 if wide else 4
        if places.size % size:
            raise CodecError(f"{places.size} bytes are not a whole number of offsets of {size} bytes")
        self.of.data, self.of.size, self.of.offsets, self.of.wide = view.data, view.size, places.data, wide
        self.of.n = max(places.size // size - 1, 0)
        self.keep = [view, places]
        return 0

    cdef int nulls(self, object validity, int64_t bit) except -1:
        cdef ByteView bits
        if validity is None:
            return 0
        bits = readable(validity)
        if bit < 0 or bits.size > INT64_MAX // 8 or bit > 8 * bits.size or self.of.n > 8 * bits.size - bit:
            raise CodecError(f"validity of {bits.size} bytes does not hold {self.of.n} bits from bit {bit} on")
        self.of.validity, self.of.bit = bits.data, bit
        self.keep.append(bits)
        return 0

    cdef object build(self, object codes, int64_t code_width, int64_t[::1] positions, int64_t max_bytes):
        cdef ByteView out = writable(codes)
        cdef lc_dict_table table
        cdef int outcome
        cdef int64_t limit = positions.shape[0]
        if code_width not in (1, 2, 4, 8):
            raise CodecError(f"codes of {code_width} bytes are not supported")
        if out.size // code_width < self.of.n:
            raise CodecError(f"output of {out.size} bytes is too small for {self.of.n} codes of {code_width} bytes")
        if max_bytes < 0:
            raise CodecError(f"the limit of a dictionary must not be negative: {max_bytes} bytes")
        if limit:
            check_aligned(&positions[0])
        if code_width < 4:
            limit = min(limit, 1 << (8 * code_width))
        with nogil:
            lc_dict_open(&table, &positions[0] if limit else NULL, limit, max_bytes, SECRET)
            outcome = lc_dict_build(&table, &self.of, code_width, out.data)
            lc_dict_close(&table)
        if outcome == LC_DICT_TOO_MANY:
            return None
        if outcome != LC_OK:
            fail(outcome, "dictionary of values")
        return table.count, table.bytes

    cdef tuple sample(self, int64_t blocks, int64_t size):
        cdef lc_dict_table table
        cdef int outcome
        cdef int64_t looked = 0
        if blocks < 1 or size < 1 or blocks > (1 << 20) // size:
            raise CodecError(f"a sample must have 1 to 2**20 values, not {blocks} blocks of {size} values")
        with nogil:
            lc_dict_open(&table, NULL, INT64_MAX, INT64_MAX, SECRET)
            outcome = lc_dict_sample(&table, &self.of, blocks, size, &looked)
            lc_dict_close(&table)
        if outcome != LC_OK:
            fail(outcome, "sample of values")
        return looked, table.count


cdef _Values fixed_values(object values, int64_t width, object validity, int64_t bit):
    cdef _Values view = _Values.__new__(_Values)
    view.fixed(values, width)
    view.nulls(validity, bit)
    return view


cdef _Values variable_values(object values, object offsets, bint wide, object validity, int64_t bit):
    cdef _Values view = _Values.__new__(_Values)
    view.variable(values, offsets, wide)
    view.nulls(validity, bit)
    return view


def build_fixed(values, int64_t width, codes, int64_t code_width, int64_t[::1] positions not None,
                validity=None, int64_t bit=0, int64_t max_bytes=INT64_MAX):
    """Number the distinct fixed-width values in order of first appearance.

    Parameters
    ----------
    values
        n values of `width` bytes.
    width
        Size of a value in bytes, 1 to `MAX_WIDTH` (256).
    codes
        Output for n unsigned codes of `code_width` bytes. A null gets code 0.
    code_width
        Size of a code in bytes: 1, 2, 4 or 8.
    positions
        Output int64 array that receives the index of the first value of each entry. Its length limits the number of
        entries, as do `code_width` and 2**30.
    validity
        Bitmap, or None if no value is null. Nulls do not become entries.
    bit
        Bit of `validity` that belongs to the first value.
    max_bytes
        Limit for the bytes of all entries together.

    Returns
    -------
    tuple of int or None
        Number of entries and their size in bytes. None if a limit is exceeded; the outputs are then undefined.

    Raises
    ------
    CodecError
        A buffer is too small or not a whole number of values, or a width is not supported.
    """
    return fixed_values(values, width, validity, bit).build(codes, code_width, positions, max_bytes)


def build_variable(values, offsets, bint wide, codes, int64_t code_width, int64_t[::1] positions not None,
                   validity=None, int64_t bit=0, int64_t max_bytes=INT64_MAX):
    """Number the distinct strings in order of first appearance.

    Parameters
    ----------
    values
        Concatenated values. The first offset need not be 0.
    offsets
        n + 1 ascending offsets of 32 bits, or 64 if `wide`. Offsets in front of the first valid value are not checked.
    wide
        Whether the offsets have 64 bits.
    codes, code_width, positions
        Outputs, as for `build_fixed`.
    validity, bit
        Validity of the values, as for `build_fixed`.
    max_bytes
        Limit for the bytes of all entries together, without offsets.

    Returns
    -------
    tuple of int or None
        As for `build_fixed`.

    Raises
    ------
    CodecError
        Offsets decrease or exceed `values`, a buffer is too small, or a width is not supported.
    """
    return variable_values(values, offsets, wide, validity, bit).build(codes, code_width, positions, max_bytes)


def sample_fixed(values, int64_t width, validity=None, int64_t bit=0, int64_t blocks=32, int64_t size=128):
    """Count the distinct values of a sample, to estimate whether a dictionary is worthwhile.

    The sample consists of blocks of neighbouring values at equal distances, starting with the first value. With nulls
    it also includes the first valid value. It is the whole column if there are not enough values. If nearly all values
    of the sample are distinct, a dictionary will not save space.

    Parameters
    ----------
    values
        n values of `width` bytes.
    width
        Size of a value in bytes, 1 to `MAX_WIDTH` (256).
    validity
        Bitmap, or None if no value is null.
    bit
        Bit of `validity` that belongs to the first value.
    blocks
        Number of blocks.
    size
        Number of values in a block; ``blocks * size`` is at most 2**20.

    Returns
    -------
    values : int
        Number of valid values in the sample.
    distinct : int
        Number of distinct values among them.

    Raises
    ------
    CodecError
        A buffer is too small, or an argument is out of range.
    """
    return fixed_values(values, width, validity, bit).sample(blocks, size)


def sample_variable(values, offsets, bint wide, validity=None, int64_t bit=0, int64_t blocks=32, int64_t size=128):
    """Count the distinct strings of a sample; like `sample_fixed` for strings.

    Parameters
    ----------
    values
        Concatenated values.
    offsets
        n + 1 ascending offsets of 32 bits, or 64 if `wide`.
    wide
        Whether the offsets have 64 bits.
    validity, bit
        Validity of the values, as for `sample_fixed`.
    blocks, size
        The sample, as for `sample_fixed`.

    Returns
    -------
    values : int
        Number of valid values in the sample.
    distinct : int
        Number of distinct values among them.

    Raises
    ------
    CodecError
        Offsets decrease or exceed `values`, a buffer is too small, or an argument is out of range.
    """
    return variable_values(values, offsets, wide, validity, bit).sample(blocks, size)
