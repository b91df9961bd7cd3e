"""Dictionary building: codes of equal values, and where each entry appears first."""

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

#: Widest fixed-width value that is looked up.
MAX_WIDTH = 256

# Chosen once per process, so that nobody can prepare values that collide.
cdef lc_secret SECRET
SECRET.a, SECRET.b = int.from_bytes(os.urandom(8), "little"), int.from_bytes(os.urandom(8), "little")


cdef class _Values:
    """A checked description of the values, and the buffers it refers to."""

    cdef lc_dict_values of
    cdef list keep

    cdef int fixed(self, object data, int64_t width) except -1:
        cdef ByteView view = readable(data)
        if not 1 <= width <= MAX_WIDTH:
            raise CodecError(f"a dictionary of values of {width} bytes is not supported: 1 to {MAX_WIDTH} are")
        if view.size % width:
            raise CodecError(f"{view.size} bytes are no whole number of values of {width} bytes")
        self.of.data, self.of.size, self.of.width, self.of.n = view.data, view.size, width, view.size // width
        self.keep = [view]
        return 0

    cdef int variable(self, object data, object offsets, bint wide) except -1:
        cdef ByteView view = readable(data), places = readable(offsets)
        cdef int64_t size = 8 if wide else 4
        if places.size % size:
            raise CodecError(f"{places.size} bytes are no whole number of offsets of {size} bytes")
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
            raise CodecError(f"a dictionary of at most {max_bytes} bytes makes no sense")
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
            raise CodecError(f"a sample of {blocks} blocks of {size} values is none of 1 to 2**20 values")
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
    return fixed_values(values, width, validity, bit).build(codes, code_width, positions, max_bytes)


def build_variable(values, offsets, bint wide, codes, int64_t code_width, int64_t[::1] positions not None,
                   validity=None, int64_t bit=0, int64_t max_bytes=INT64_MAX):
    return variable_values(values, offsets, wide, validity, bit).build(codes, code_width, positions, max_bytes)


def sample_fixed(values, int64_t width, validity=None, int64_t bit=0, int64_t blocks=32, int64_t size=128):
    return fixed_values(values, width, validity, bit).sample(blocks, size)


def sample_variable(values, offsets, bint wide, validity=None, int64_t bit=0, int64_t blocks=32, int64_t size=128):
    return variable_values(values, offsets, wide, validity, bit).sample(blocks, size)
