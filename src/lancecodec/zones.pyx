"""Bounds of zones: equal numbers of consecutive rows of a column, gathered as the column is written.

Bounds are keys: unsigned integers in the order of the values, as in `lancecodec.intervals`. NaN has no bounds. The key
of a text is its first 16 bytes as a big-endian integer, with zeros behind a shorter text. So the texts of a zone begin
with bytes that are not less than those of the low key, and not greater than those of the high key.

`HAS_NULL`, `HAS_VALID`, `HAS_NAN` and `BOUNDED` are flags of a zone: it has a null, a valid value, a NaN, bounds.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/zones.h" nogil:
    int LC_KEY_UNSIGNED, LC_KEY_SIGNED, LC_KEY_FLOAT
    int LC_ZONE_NULL, LC_ZONE_VALID, LC_ZONE_NAN, LC_ZONE_BOUNDED
    ctypedef struct lc_wide_key:
        uint64_t word
        uint64_t top
    ctypedef struct lc_zone:
        lc_wide_key low
        lc_wide_key high
        uint64_t flags
    void lc_zone_merge(lc_zone *zone, const lc_zone *other)
    void lc_zone_fixed(const uint8_t *values, const uint8_t *validity, int64_t bit, int64_t n, int64_t bits,
                       int64_t order, lc_zone *zone)
    int lc_zone_texts(lc_bytes data, const uint8_t *offsets, int wide, const uint8_t *validity, int64_t bit,
                      int64_t first, int64_t n, lc_zone *zone)

HAS_NULL, HAS_VALID, HAS_NAN, BOUNDED = LC_ZONE_NULL, LC_ZONE_VALID, LC_ZONE_NAN, LC_ZONE_BOUNDED

cdef tuple ORDERS = (LC_KEY_UNSIGNED, LC_KEY_SIGNED, LC_KEY_FLOAT)


cdef class ZoneBounds:
    """Bounds of the zones of a column.

    Parameters
    ----------
    zone_rows
        Number of rows of a zone, at least 1; the last zone may have fewer.

    Attributes
    ----------
    num_rows : int
        Number of rows added so far.
    zone_rows : int
        Number of rows of a zone.

    Raises
    ------
    CodecError
        `zone_rows` is not positive.
    """

    cdef lc_zone *zones
    cdef int64_t room
    cdef readonly int64_t num_rows, zone_rows

    def __cinit__(self, int64_t zone_rows):
        if zone_rows <= 0:
            raise CodecError(f"zones of {zone_rows} rows")
        self.zone_rows = zone_rows

    def __dealloc__(self):
        PyMem_Free(self.zones)

    def __len__(self):
        return self.used()

    cdef int64_t used(self) noexcept:
        return self.num_rows // self.zone_rows + (self.num_rows % self.zone_rows > 0)

    cdef int reserve(self, int64_t count) except -1:
        """Make room for the zones of further rows."""
        cdef int64_t needed
        cdef lc_zone *larger
        if count < 0 or count > INT64_MAX // 2 - self.num_rows:
            raise CodecError(f"{count} further rows")
        needed = (self.num_rows + count - 1) // self.zone_rows + 1
        if needed > self.room:
            needed += needed // 2
            larger = <lc_zone *>PyMem_Realloc(self.zones, <size_t>needed * sizeof(lc_zone))
            if larger == NULL:
                raise MemoryError(f"bounds of {needed} zones")
            memset(larger + self.room, 0, <size_t>(needed - self.room) * sizeof(lc_zone))
            self.zones, self.room = larger, needed
        return 0

    def add_fixed(self, values, int64_t bits, int64_t order, validity=None, int64_t bit=0):
        """Add values of a fixed width.

        Parameters
        ----------
        values
            The values.
        bits
            Size of a value in bits: 8, 16, 32, 64 or 128.
        order
            `UNSIGNED`, `SIGNED` or `FLOAT` of `lancecodec.intervals`. Floats have 32 or 64 bits.
        validity
            Bitmap of the values that are not null; None if none is.
        bit
            Bit of the bitmap that belongs to the first value.

        Raises
        ------
        CodecError
            An argument is out of range, or `values` is not a whole number of values.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView source = readable(values)
        cdef const uint8_t *mask = NULL
        cdef int64_t n, k = 0, live, width = bits // 8
        if bits not in (8, 16, 32, 64, 128) or order not in ORDERS or (order == LC_KEY_FLOAT and bits not in (32, 64)):
            raise CodecError(f"values of {bits} bits in order {order} have no bounds")
        if source.size % width:
            raise CodecError(f"{source.size} bytes are not values of {width} bytes")
        n = source.size // width
        view = checked_mask(validity, bit, n)
        if view is not None:
            mask = (<ByteView>view).data
        self.reserve(n)
        with nogil:
            while k < n:
                live = min(n - k, self.zone_rows - self.num_rows % self.zone_rows)
                lc_zone_fixed(source.data + k * width, mask, bit + k, live, bits, order,
                              self.zones + self.num_rows // self.zone_rows)
                self.num_rows += live
                k += live

    def add_texts(self, data, offsets, bint wide, validity=None, int64_t bit=0):
        """Add texts or binaries.

        Parameters
        ----------
        data
            Bytes of the texts.
        offsets
            Ascending offsets of 32 bits, or 64 if `wide`, into `data`, one more than there are texts.
        wide
            Whether the offsets have 64 bits.
        validity, bit
            As for `add_fixed`.

        Raises
        ------
        CodecError
            An argument is out of range, or the offsets do not ascend inside the data. The object is then unusable.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView source = readable(data), ends = readable(offsets)
        cdef const uint8_t *mask = NULL
        cdef int64_t n = ends.size // (8 if wide else 4) - 1, k = 0, live
        cdef int problem = LC_OK
        if n < 0:
            raise CodecError("texts without an offset")
        view = checked_mask(validity, bit, n)
        if view is not None:
            mask = (<ByteView>view).data
        self.reserve(n)
        with nogil:
            while k < n and problem == LC_OK:
                live = min(n - k, self.zone_rows - self.num_rows % self.zone_rows)
                problem = lc_zone_texts(lc_bytes(source.data, source.size), ends.data, wide, mask, bit, k, live,
                                        self.zones + self.num_rows // self.zone_rows)
                self.num_rows += live
                k += live
        if problem != LC_OK:
            fail(problem, "texts of a zone")

    def halve(self):
        """Merge each two neighbours, so that there are half as many zones."""
        cdef int64_t i, n = self.used()
        if self.zone_rows > INT64_MAX // 4:
            raise CodecError(f"zones of {self.zone_rows} rows cannot be larger")
        with nogil:
            for i in range(n):
                if i % 2:
                    lc_zone_merge(self.zones + i // 2, self.zones + i)
                else:
                    self.zones[i // 2] = self.zones[i]
            for i in range((n + 1) // 2, self.room):
                memset(self.zones + i, 0, sizeof(lc_zone))
        self.zone_rows *= 2

    def write(self, low, high, flags):
        """Write the bounds and flags of all zones.

        Parameters
        ----------
        low, high
            Outputs of 16 bytes per zone: the less significant word of a key, then the other one. 0 without bounds.
        flags
            Output of a byte per zone.

        Raises
        ------
        CodecError
            An output is too small.
        """
        cdef ByteView lows = writable(low), highs = writable(high), marks = writable(flags)
        cdef int64_t i, n = self.used()
        if min(lows.size, highs.size) < 16 * n or marks.size < n:
            raise CodecError(f"outputs of {lows.size}, {highs.size} and {marks.size} bytes for {n} zones")
        for i in range(n):
            (<lc_wide_key *>lows.data)[i] = self.zones[i].low
            (<lc_wide_key *>highs.data)[i] = self.zones[i].high
            marks.data[i] = <uint8_t>self.zones[i].flags


cdef object checked_mask(object validity, int64_t bit, int64_t n):
    """Return the view of a bitmap of n values from a bit on, None without one."""
    cdef ByteView mask
    if validity is None:
        return None
    mask = readable(validity)
    if bit < 0 or bit > INT64_MAX // 2 or n > INT64_MAX // 2 or (bit + n + 7) // 8 > mask.size:
        raise CodecError(f"a bitmap of {mask.size} bytes for {n} values from bit {bit} on")
    return mask
