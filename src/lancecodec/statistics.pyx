"""What a writer must know about a page to choose its encoding."""

import math
import struct

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.problems cimport fail

from lancecodec.errors import CodecError

cdef extern from "kernels/statistics.h" nogil:
    ctypedef struct lc_statistics:
        int64_t runs, cut_runs, rle_entries, inline_bytes, bits, nulls, nans, first_valid
        uint64_t differ, low, high, low_key, high_key
    ctypedef struct lc_stat_values:
        const uint8_t *data
        int64_t n, width, kind
        const uint8_t *validity
        int64_t bit, cut
        uint8_t *widths
    void lc_statistics_fixed(const lc_stat_values *v, lc_statistics *s)
    int LC_STAT_PIECE, LC_STAT_GROUP

cdef extern from "kernels/statistics_wide.h" nogil:
    ctypedef struct lc_lengths:
        int64_t shortest, longest, total, empty, valid, first_valid
        int all_equal
    int64_t lc_wide_changes(const uint8_t *data, int64_t width, int64_t n)
    int lc_wide_all_equal(const uint8_t *data, int64_t width, int64_t n, const uint8_t *validity, int64_t bit,
                          int64_t first)
    double lc_byte_entropy(const uint8_t *data, int64_t width, int64_t n, const double *weights)
    int lc_statistics_variable(const uint8_t *data, int64_t size, const uint8_t *offsets, int wide, int64_t n,
                               const uint8_t *validity, int64_t bit, lc_lengths *l)
    int LC_ENTROPY_VALUES

cdef extern from "kernels/hyperloglog.h" nogil:
    void lc_sketch_fixed(uint8_t *registers, int precision, const uint8_t *data, int64_t width, int64_t n,
                         const uint8_t *validity, int64_t bit)
    int lc_sketch_variable(uint8_t *registers, int precision, const uint8_t *data, int64_t size,
                           const uint8_t *offsets, int wide, int64_t n, const uint8_t *validity, int64_t bit)

cdef extern from "kernels/bits.h" nogil:
    int64_t lc_bits_count(const uint8_t *bits, int64_t offset, int64_t n)

cdef double[65] ENTROPY_WEIGHTS
for _count in range(65):
    ENTROPY_WEIGHTS[_count] = _count * math.log2(_count) if _count else 0.0


cdef int64_t count_values(ByteView values, int64_t width) except -1:
    if not 1 <= width <= 1 << 40:
        raise CodecError(f"values of {width} bytes have no statistics")
    if values.size % width:
        raise CodecError(f"{values.size} bytes are no whole number of values of {width} bytes")
    return values.size // width


cdef int64_t count_strings(ByteView offsets, bint wide) except -1:
    cdef int64_t size = 8 if wide else 4
    if offsets.size % size:
        raise CodecError(f"{offsets.size} bytes are no whole number of offsets of {size} bytes")
    return max(offsets.size // size - 1, 0)


cdef ByteView validity_of(object validity, int64_t bit, int64_t n):
    """A bitmap that holds n bits from `bit` on, or None."""
    cdef ByteView bits
    if validity is None:
        return None
    bits = readable(validity)
    if bit < 0 or bits.size > INT64_MAX // 8 or bit > 8 * bits.size or n > 8 * bits.size - bit:
        raise CodecError(f"validity of {bits.size} bytes does not hold {n} bits from bit {bit} on")
    return bits


cdef int64_t find_valid(const uint8_t *validity, int64_t bit, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if (validity[(bit + i) >> 3] >> ((bit + i) & 7)) & 1:
            return i
    return -1


cdef object number(uint64_t bits, int64_t width, int64_t kind):
    """A bit pattern of `width` bytes as a number of the kind."""
    if kind == c'f':
        return struct.unpack({2: "<e", 4: "<f", 8: "<d"}[width], int(bits).to_bytes(width, "little"))[0]
    return int.from_bytes(int(bits).to_bytes(width, "little"), "little", signed=kind == c'i')


cdef class FixedStatistics:
    cdef readonly int64_t count, null_count, first_valid, width, run_count
    cdef readonly bint all_equal
    cdef readonly object bit_width, inline_size, cut_run_count, rle_entries, nan_count, min, max

    @property
    def rle_size(self):
        return None if self.rle_entries is None else self.rle_entries * (self.width + 1)

    def __repr__(self):
        names = ("count", "null_count", "first_valid", "width", "run_count", "all_equal", "bit_width", "inline_size",
                 "cut_run_count", "rle_entries", "rle_size", "nan_count", "min", "max")
        return f"FixedStatistics({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


cdef class VariableStatistics:
    cdef readonly int64_t count, null_count, first_valid, min_length, max_length, total_length, empty_count
    cdef readonly bint all_equal

    def __repr__(self):
        names = ("count", "null_count", "first_valid", "min_length", "max_length", "total_length", "empty_count",
                 "all_equal")
        return f"VariableStatistics({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def fixed(values, int64_t width, str kind not None="u", validity=None, int64_t bit=0, widths=None,
          int64_t run_cut=4096):
    cdef ByteView source = readable(values), bits, groups
    cdef lc_stat_values view
    cdef lc_statistics s
    cdef FixedStatistics result
    memset(&view, 0, sizeof(view))
    memset(&s, 0, sizeof(s))
    view.n = count_values(source, width)
    if width not in (1, 2, 4, 8):
        raise CodecError(f"values of {width} bytes are not those of a machine word; see fixed_bytes")
    if kind not in ("u", "i", "f") or (kind == "f" and width == 1):
        raise CodecError(f"kind {kind!r} of values of {width} bytes is none of u (unsigned), i (signed), f (float)")
    if run_cut < 0 or run_cut % LC_STAT_PIECE:
        raise CodecError(f"runs cannot be cut every {run_cut} values: only at multiples of {LC_STAT_PIECE}")
    view.data, view.width, view.kind, view.cut, view.bit = source.data, width, ord(kind), run_cut, bit
    bits = validity_of(validity, bit, view.n)
    if bits is not None:
        view.validity = bits.data
    if widths is not None:
        groups = writable(widths)
        if groups.size < (view.n + LC_STAT_GROUP - 1) // LC_STAT_GROUP:
            raise CodecError(f"output of {groups.size} bytes is too small for the bit widths of {view.n} values")
        view.widths = groups.data
    with nogil:
        if view.validity != NULL:
            s.nulls = view.n - lc_bits_count(view.validity, bit, view.n)
        lc_statistics_fixed(&view, &s)
    result = FixedStatistics.__new__(FixedStatistics)
    result.count, result.null_count, result.first_valid, result.width = view.n, s.nulls, s.first_valid, width
    result.run_count, result.all_equal, result.bit_width = s.runs, s.differ == 0, s.bits
    result.inline_size, result.cut_run_count, result.rle_entries = s.inline_bytes, s.cut_runs, s.rle_entries
    result.nan_count = s.nans if kind == "f" else 0
    if s.low_key <= s.high_key:
        result.min, result.max = number(s.low, width, view.kind), number(s.high, width, view.kind)
    return result


def fixed_bytes(values, int64_t width, validity=None, int64_t bit=0):
    cdef ByteView source = readable(values), bits
    cdef int64_t n = count_values(source, width), changes, nulls = 0, first = 0
    cdef const uint8_t *valid = NULL
    cdef bint equal
    cdef FixedStatistics result = FixedStatistics.__new__(FixedStatistics)
    bits = validity_of(validity, bit, n)
    if bits is not None:
        valid = bits.data
    with nogil:
        if valid != NULL:
            nulls = n - lc_bits_count(valid, bit, n)
            first = find_valid(valid, bit, n)
        changes = lc_wide_changes(source.data, width, n)
        equal = first < 0 or lc_wide_all_equal(source.data, width, n, valid if nulls else NULL, bit, first)
    result.count, result.null_count, result.width = n, nulls, width
    result.first_valid = first if n else -1
    result.run_count, result.all_equal, result.bit_width = changes + (n > 0), equal, 8 * width
    return result


def variable(values, offsets, bint wide, validity=None, int64_t bit=0):
    cdef ByteView source = readable(values), places = readable(offsets), bits
    cdef int64_t n = count_strings(places, wide)
    cdef const uint8_t *valid = NULL
    cdef lc_lengths lengths
    cdef VariableStatistics result = VariableStatistics.__new__(VariableStatistics)
    cdef int problem
    bits = validity_of(validity, bit, n)
    if bits is not None:
        valid = bits.data
    with nogil:
        problem = lc_statistics_variable(source.data, source.size, places.data, wide, n, valid, bit, &lengths)
    if problem:
        fail(problem, f"statistics of {n} strings")
    result.count, result.null_count, result.first_valid = n, n - lengths.valid, lengths.first_valid
    result.min_length, result.max_length, result.total_length = lengths.shortest, lengths.longest, lengths.total
    result.empty_count, result.all_equal = lengths.empty, lengths.all_equal
    return result


def byte_entropy(values, int64_t width):
    cdef ByteView source = readable(values)
    cdef int64_t n = min(count_values(source, width), LC_ENTROPY_VALUES)
    if width > 1024:
        raise CodecError(f"the byte entropy of values of {width} bytes is not supported")
    return lc_byte_entropy(source.data, width, n, ENTROPY_WEIGHTS) if n else 0.0


cdef double sigma(double x) noexcept nogil:
    cdef double y = 1, z = x, before
    if x == 1:
        return INFINITY
    while True:
        x *= x
        before = z
        z += x * y
        y += y
        if z == before:
            return z


cdef double tau(double x) noexcept nogil:
    cdef double y = 1, z = 1 - x, before
    if x == 0 or x == 1:
        return 0
    while True:
        x = sqrt(x)
        before = z
        y *= 0.5
        z -= (1 - x) * (1 - x) * y
        if z == before:
            return z / 3


cdef class DistinctSketch:
    cdef uint8_t *registers
    cdef readonly int precision

    def __cinit__(self, int precision=12):
        if not 4 <= precision <= 16:
            raise CodecError(f"a sketch of precision {precision} is not supported: 4 to 16 are")
        self.precision = precision
        self.registers = <uint8_t *>PyMem_Calloc(1 << precision, 1)
        if self.registers == NULL:
            raise MemoryError()

    def __dealloc__(self):
        PyMem_Free(self.registers)

    def add_fixed(self, values, int64_t width, validity=None, int64_t bit=0):
        cdef ByteView source = readable(values), bits
        cdef int64_t n = count_values(source, width)
        cdef const uint8_t *valid = NULL
        bits = validity_of(validity, bit, n)
        if bits is not None:
            valid = bits.data
        with nogil:
            lc_sketch_fixed(self.registers, self.precision, source.data, width, n, valid, bit)

    def add_variable(self, values, offsets, bint wide, validity=None, int64_t bit=0):
        cdef ByteView source = readable(values), places = readable(offsets), bits
        cdef int64_t n = count_strings(places, wide)
        cdef const uint8_t *valid = NULL
        cdef int problem
        bits = validity_of(validity, bit, n)
        if bits is not None:
            valid = bits.data
        with nogil:
            problem = lc_sketch_variable(self.registers, self.precision, source.data, source.size, places.data, wide,
                                         n, valid, bit)
        if problem:
            fail(problem, f"sketch of {n} strings")

    def merge(self, DistinctSketch other not None):
        cdef int64_t i
        if other.precision != self.precision:
            raise CodecError(f"sketches of precision {self.precision} and {other.precision} cannot be merged")
        for i in range(1 << self.precision):
            self.registers[i] = max(self.registers[i], other.registers[i])

    def estimate(self):
        cdef int q = 64 - self.precision, k
        cdef int64_t i, count = 1 << self.precision
        cdef int64_t[66] histogram
        cdef double z
        memset(histogram, 0, sizeof(histogram))
        for i in range(count):
            histogram[self.registers[i]] += 1
        z = count * tau(1 - <double>histogram[q + 1] / count)
        for k in range(q, 0, -1):
            z = 0.5 * (z + histogram[k])
        z += count * sigma(<double>histogram[0] / count)
        if z == 0:
            return math.inf
        return 0.0 if math.isinf(z) else 0.5 / math.log(2) * count * count / z

    def __bytes__(self):
        return (<const uint8_t *>self.registers)[:1 << self.precision]

    @staticmethod
    def from_bytes(data):
        cdef ByteView source = readable(data)
        cdef DistinctSketch sketch
        cdef int64_t i
        precision = int(source.size).bit_length() - 1
        if not 4 <= precision <= 16 or source.size != 1 << precision:
            raise CodecError(f"{source.size} bytes are no sketch: their number must be a power of two from 16 to 65536")
        sketch = DistinctSketch(precision)
        for i in range(source.size):
            if source.data[i] > 65 - precision:
                raise CodecError(f"register {i} of a sketch is {source.data[i]}: at most {65 - precision} is possible")
        memcpy(sketch.registers, source.data, source.size)
        return sketch
