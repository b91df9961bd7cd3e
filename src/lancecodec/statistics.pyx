"""Statistics of a page, from which a writer chooses its encoding.

The bytes of nulls are encoded like any others, so they count for bit widths and runs. They do not count for minimum and
maximum, equality, lengths and distinct values. In all functions `validity` is a bitmap that is read from bit `bit` on,
or None if no value is null.
"""

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
        raise CodecError(f"statistics of values of {width} bytes are not supported")
    if values.size % width:
        raise CodecError(f"{values.size} bytes are not a whole number of values of {width} bytes")
    return values.size // width


cdef int64_t count_strings(ByteView offsets, bint wide) except -1:
    cdef int64_t size = 8 if wide else 4
    if offsets.size % size:
        raise CodecError(f"{offsets.size} bytes are not a whole number of offsets of {size} bytes")
    return max(offsets.size // size - 1, 0)


cdef ByteView validity_of(object validity, int64_t bit, int64_t n):
    """Return a bitmap that holds n bits from `bit` on, or None."""
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
    """Convert a bit pattern of `width` bytes to a number of the kind."""
    if kind == c'f':
        return struct.unpack({2: "<e", 4: "<f", 8: "<d"}[width], int(bits).to_bytes(width, "little"))[0]
    return int.from_bytes(int(bits).to_bytes(width, "little"), "little", signed=kind == c'i')


cdef class FixedStatistics:
    """Statistics of fixed-width values; the result of `fixed` and `fixed_bytes`. Fields that `fixed_bytes` does not
    compute are None.

    Attributes
    ----------
    count : int
        Number of values.
    null_count : int
        Number of nulls.
    first_valid : int
        Position of the first value that is not null, or -1.
    width : int
        Size of a value in bytes.
    all_equal : bool
        Whether all values that are not null have the same bits. True if there are none.
    run_count : int
        Number of runs of values with the same bits, including the bytes of nulls.
    cut_run_count : int or None
        Number of runs if they are cut at multiples of `run_cut`.
    rle_entries : int or None
        Number of run-length entries of up to 255 values: a run of R values needs ``ceil(R / 255)`` entries.
    bit_width : int
        Number of bits of the largest value, taken as unsigned; ``8 * width`` for `fixed_bytes`.
    inline_size : int or None
        Size in bytes with inline bit packing: `width` + 128 * W bytes for each group of 1024 values of W bits.
    nan_count : int or None
        Number of NaNs that are not null.
    min, max : int, float or None
        Smallest and largest value that is neither null nor NaN, or None. -0.0 is less than 0.0.
    """

    cdef readonly int64_t count, null_count, first_valid, width, run_count
    cdef readonly bint all_equal
    cdef readonly object bit_width, inline_size, cut_run_count, rle_entries, nan_count, min, max

    @property
    def rle_size(self):
        """Size in bytes with run-length encoding and 8-bit lengths: ``rle_entries * (width + 1)``. None for
        `fixed_bytes`.
        """
        return None if self.rle_entries is None else self.rle_entries * (self.width + 1)

    def __repr__(self):
        names = ("count", "null_count", "first_valid", "width", "run_count", "all_equal", "bit_width", "inline_size",
                 "cut_run_count", "rle_entries", "rle_size", "nan_count", "min", "max")
        return f"FixedStatistics({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


cdef class VariableStatistics:
    """Statistics of strings; the result of `variable`. Lengths are in bytes, of values that are not null, and 0 if all
    values are null.

    Attributes
    ----------
    count : int
        Number of values.
    null_count : int
        Number of nulls.
    first_valid : int
        Position of the first value that is not null, or -1.
    all_equal : bool
        Whether all values that are not null are equal. True if there are none.
    min_length, max_length, total_length : int
        Length of the shortest and the longest value, and the sum of all lengths.
    empty_count : int
        Number of values of length 0.
    """

    cdef readonly int64_t count, null_count, first_valid, min_length, max_length, total_length, empty_count
    cdef readonly bint all_equal

    def __repr__(self):
        names = ("count", "null_count", "first_valid", "min_length", "max_length", "total_length", "empty_count",
                 "all_equal")
        return f"VariableStatistics({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def fixed(values, int64_t width, str kind not None="u", validity=None, int64_t bit=0, widths=None,
          int64_t run_cut=4096):
    """Compute the statistics of values of 1, 2, 4 or 8 bytes in one pass.

    Parameters
    ----------
    values
        Values of `width` bytes.
    width
        Size of a value in bytes: 1, 2, 4 or 8.
    kind
        Order of the values: ``"u"`` unsigned, ``"i"`` signed, ``"f"`` floating point (2, 4 or 8 bytes).
    validity
        Bitmap, or None if no value is null.
    bit
        Bit of `validity` that belongs to the first value.
    widths
        Output for the bit width of each group of 1024 values, one byte each, or None.
    run_cut
        Runs are cut at multiples of it for `cut_run_count` and `rle_entries`. A multiple of 128, or 0 for never.

    Returns
    -------
    FixedStatistics
        The statistics.

    Raises
    ------
    CodecError
        A buffer is too small or not a whole number of values, or an argument is out of range.
    """
    cdef ByteView source = readable(values), bits, groups
    cdef lc_stat_values view
    cdef lc_statistics s
    cdef FixedStatistics result
    memset(&view, 0, sizeof(view))
    memset(&s, 0, sizeof(s))
    view.n = count_values(source, width)
    if width not in (1, 2, 4, 8):
        raise CodecError(f"values must have 1, 2, 4 or 8 bytes, not {width}; see fixed_bytes")
    if kind not in ("u", "i", "f") or (kind == "f" and width == 1):
        raise CodecError(f"kind {kind!r} of values of {width} bytes is not one of u (unsigned), i (signed), f (float)")
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
    """Compute the runs, nulls and equality of values of any number of bytes.

    Parameters
    ----------
    values
        Values of `width` bytes.
    width
        Size of a value in bytes.
    validity
        Bitmap, or None if no value is null.
    bit
        Bit of `validity` that belongs to the first value.

    Returns
    -------
    FixedStatistics
        The statistics; fields that were not computed are None.

    Raises
    ------
    CodecError
        A buffer is too small or not a whole number of values.
    """
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
    """Compute the lengths and equality of strings.

    Parameters
    ----------
    values
        Bytes that the offsets point into.
    offsets
        n + 1 ascending offsets of 32 bits, or 64 if `wide`.
    wide
        Whether the offsets have 64 bits.
    validity
        Bitmap, or None if no value is null.
    bit
        Bit of `validity` that belongs to the first value.

    Returns
    -------
    VariableStatistics
        The statistics.

    Raises
    ------
    CodecError
        Offsets decrease or exceed `values`, or a buffer is too small.
    """
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
    """Compute the Shannon entropy of each byte position of the first 64 values, averaged over the positions.

    A small result means that byte-stream split is worthwhile.

    Parameters
    ----------
    values
        Values of `width` bytes.
    width
        Size of a value in bytes, at most 1024.

    Returns
    -------
    float
        Average entropy in bits, 0.0 if there are no values.

    Raises
    ------
    CodecError
        `values` is not a whole number of values, or `width` is out of range.
    """
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
    """HyperLogLog sketch of a set of values, to estimate the number of distinct values.

    The standard error is ``1.04 / sqrt(2**precision)``, 1.6 % for the default. Sketches of equal precision can be
    merged, also in other processes and versions. Sources: Flajolet et al., "HyperLogLog: the analysis of a near-optimal
    cardinality estimation algorithm" (2007), with the improved raw estimator of Ertl, "New cardinality estimation
    algorithms for HyperLogLog sketches" (2017), which has no bias for small sets. ``bytes(sketch)`` serialises a
    sketch.

    Parameters
    ----------
    precision
        Logarithm of the number of registers, 4 to 16. A sketch has ``2**precision`` bytes.

    Attributes
    ----------
    precision : int
        The argument.

    Raises
    ------
    CodecError
        `precision` is out of range.
    MemoryError
        There is not enough memory.
    """

    cdef uint8_t *registers
    cdef readonly int precision

    def __cinit__(self, int precision=12):
        if not 4 <= precision <= 16:
            raise CodecError(f"a sketch of precision {precision} is not supported, only of 4 to 16")
        self.precision = precision
        self.registers = <uint8_t *>PyMem_Calloc(1 << precision, 1)
        if self.registers == NULL:
            raise MemoryError()

    def __dealloc__(self):
        PyMem_Free(self.registers)

    def add_fixed(self, values, int64_t width, validity=None, int64_t bit=0):
        """Add fixed-width values, except nulls.

        Parameters
        ----------
        values
            Values of `width` bytes.
        width
            Size of a value in bytes.
        validity
            Bitmap, or None if no value is null.
        bit
            Bit of `validity` that belongs to the first value.

        Raises
        ------
        CodecError
            A buffer is too small or not a whole number of values.
        """
        cdef ByteView source = readable(values), bits
        cdef int64_t n = count_values(source, width)
        cdef const uint8_t *valid = NULL
        bits = validity_of(validity, bit, n)
        if bits is not None:
            valid = bits.data
        with nogil:
            lc_sketch_fixed(self.registers, self.precision, source.data, width, n, valid, bit)

    def add_variable(self, values, offsets, bint wide, validity=None, int64_t bit=0):
        """Add strings, except nulls. A string equals a fixed-width value with the same bytes.

        Parameters
        ----------
        values
            Bytes that the offsets point into.
        offsets
            n + 1 ascending offsets of 32 bits, or 64 if `wide`.
        wide
            Whether the offsets have 64 bits.
        validity
            Bitmap, or None if no value is null.
        bit
            Bit of `validity` that belongs to the first value.

        Raises
        ------
        CodecError
            Offsets decrease or exceed `values`, or a buffer is too small.
        """
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
        """Add all values of another sketch.

        Parameters
        ----------
        other
            `DistinctSketch` of the same precision.

        Raises
        ------
        CodecError
            The precisions differ.
        """
        cdef int64_t i
        if other.precision != self.precision:
            raise CodecError(f"sketches of precision {self.precision} and {other.precision} cannot be merged")
        for i in range(1 << self.precision):
            self.registers[i] = max(self.registers[i], other.registers[i])

    def estimate(self):
        """Estimate the number of distinct values.

        Returns
        -------
        float
            The estimate; infinite if all registers have their maximum.
        """
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
        """Serialise the sketch: one byte per register, ``2**precision`` bytes."""
        return (<const uint8_t *>self.registers)[:1 << self.precision]

    @staticmethod
    def from_bytes(data):
        """Restore a sketch from its bytes.

        Parameters
        ----------
        data
            The ``2**precision`` bytes of ``bytes(sketch)``.

        Returns
        -------
        DistinctSketch
            The sketch.

        Raises
        ------
        CodecError
            The size is not a power of two from 16 to 65536, or a register is out of range.
        """
        cdef ByteView source = readable(data)
        cdef DistinctSketch sketch
        cdef int64_t i
        precision = int(source.size).bit_length() - 1
        if not 4 <= precision <= 16 or source.size != 1 << precision:
            raise CodecError(f"{source.size} bytes are not a sketch: the size must be a power of two from 16 to 65536")
        sketch = DistinctSketch(precision)
        for i in range(source.size):
            if source.data[i] > 65 - precision:
                raise CodecError(f"register {i} of a sketch is {source.data[i]}, but must be at most {65 - precision}")
        memcpy(sketch.registers, source.data, source.size)
        return sketch
