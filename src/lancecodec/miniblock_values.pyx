"""Values of mini-block chunks: ranges and single positions, written to their final place.

Positions count the values (visible items) of the page. Outputs belong to the caller. All functions raise `CodecError`
if a position is outside of the page, an output is too small, or a chunk was not loaded, was not decompressed, or
contradicts its codec. The content of the output is then undefined.

The codecs of fixed-width values are `FLAT`, `INLINE` (bit packing), `RLE` (run lengths of 8 bits) and `SPLIT`
(byte-stream split).
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.miniblock cimport LC_CHUNK_ITEM, Chunks, lc_chunks
from lancecodec.problems cimport fail

from lancecodec.errors import CodecError

cdef extern from "kernels/gather.h" nogil:
    void lc_gather_block(const uint8_t *entries, int64_t width, const uint8_t *codes, int64_t code_width, int64_t n,
                         uint8_t *out)

cdef extern from "kernels/miniblock_fixed.h" nogil:
    int LC_VALUE_FLAT, LC_VALUE_INLINE, LC_VALUE_RLE, LC_VALUE_SPLIT
    ctypedef struct lc_value_codec:
        int64_t kind
        int64_t bits
        int64_t buffer
    ctypedef struct lc_dictionary:
        const uint8_t *entries
        int64_t width
        int64_t count
    int lc_fixed_scan(const lc_chunks *chunks, const lc_value_codec *codec, int64_t a, int64_t b, uint8_t *out,
                      uint8_t *scratch, int64_t *where)
    int lc_bits_scan(const lc_chunks *chunks, const lc_value_codec *codec, int64_t a, int64_t b, uint8_t *out,
                     int64_t at, int64_t *where)
    int lc_bits_take(const lc_chunks *chunks, const lc_value_codec *codec, const int64_t *items, int64_t n,
                     uint8_t *out, int64_t at, int64_t *where)
    int lc_fixed_take(const lc_chunks *chunks, const lc_value_codec *codec, const int64_t *items, int64_t n,
                      uint8_t *out, uint8_t *scratch, int64_t budget, int64_t *done, int64_t *where)
    int lc_indices_check(uint8_t *indices, int64_t bits, int64_t n, int64_t count, const uint8_t *validity, int64_t at,
                         int64_t *bad)
    int lc_dictionary_gather(const lc_dictionary *dictionary, const uint8_t *indices, int64_t bits, int64_t n,
                             const uint8_t *validity, int64_t at, uint8_t *out)
    int lc_dictionary_scan(const lc_chunks *chunks, const lc_value_codec *codec, const lc_dictionary *dictionary,
                           int64_t a, int64_t b, const uint8_t *validity, int64_t at, uint8_t *out, uint8_t *scratch,
                           int64_t *where)

cdef extern from "kernels/miniblock_variable.h" nogil:
    ctypedef struct lc_fsst_table:
        int count
    ctypedef struct lc_text_codec:
        const lc_fsst_table *table
        int64_t buffer
        int wide
    ctypedef struct lc_ends:
        uint8_t *out
        int wide
        int64_t total
    int lc_fsst_table_parse(const uint8_t *bytes, int64_t size, lc_fsst_table *table)
    void lc_store_offset(uint8_t *offsets, int wide, int64_t i, int64_t value)
    int lc_text_scan_ends(const lc_chunks *chunks, const lc_text_codec *codec, int64_t a, int64_t b, lc_ends *ends,
                          int64_t *where)
    int lc_text_scan_bytes(const lc_chunks *chunks, const lc_text_codec *codec, int64_t a, int64_t b, uint8_t *out,
                           int64_t capacity, int64_t *total, int64_t *where)
    int lc_text_scan(const lc_chunks *chunks, const lc_text_codec *codec, int64_t a, int64_t b, lc_ends *ends,
                     uint8_t *out, int64_t capacity, int exact, int64_t *done, int64_t *total, int64_t *where)
    int lc_text_scan_size(const lc_chunks *chunks, const lc_text_codec *codec, int64_t a, int64_t b, int64_t *total,
                          int64_t *where)
    int lc_text_scan_estimate(const lc_chunks *chunks, const lc_text_codec *codec, int64_t a, int64_t b, int64_t *total,
                              int64_t *where)
    int64_t lc_text_most(const lc_chunks *chunks, const lc_text_codec *codec)
    int lc_text_take_ends(const lc_chunks *chunks, const lc_text_codec *codec, const int64_t *items, int64_t n,
                          lc_ends *ends, int64_t *where)
    int lc_text_take_bytes(const lc_chunks *chunks, const lc_text_codec *codec, const int64_t *items, int64_t n,
                           uint8_t *out, int64_t capacity, int64_t *total, int64_t *where)

FLAT = LC_VALUE_FLAT
INLINE = LC_VALUE_INLINE
RLE = LC_VALUE_RLE
SPLIT = LC_VALUE_SPLIT

cdef tuple NAMES = ("flat values", "inline bit packing", "run-length encoding", "byte-stream split")
cdef tuple WIDTHS = (None, (8, 16, 32, 64), (8, 16, 32, 64), (32, 64))
#: Extra values to decode per requested value before a take in random order decodes the whole page instead.
cdef int64_t PATIENCE = 16


cdef uint8_t *allocate(int64_t size) except NULL:
    cdef uint8_t *memory = <uint8_t *>PyMem_Malloc(size + 8)
    if memory == NULL:
        raise MemoryError(f"{size} bytes of scratch")
    return memory


cdef int check_bitmap(ByteView bitmap, int64_t at, int64_t n) except -1:
    if at < 0 or at > 2**60 or (at + n + 7) // 8 > bitmap.size:
        raise CodecError(f"a validity bitmap of {bitmap.size} bytes does not hold {n} bits from bit {at} on")
    return 0


cdef class FixedValues:
    """Fixed-width values of the chunks of a page.

    Parameters
    ----------
    chunks
        `Chunks` of the page.
    kind
        Codec: `FLAT`, `INLINE`, `RLE` or `SPLIT`.
    bits
        Size of a value in bits. Any for `FLAT` (a fixed-size list of items is one wide value), 8, 16, 32 or 64 for
        `INLINE` and `RLE`, 32 or 64 for `SPLIT`.
    buffer
        First value buffer of the codec. Buffers in front of it are validity bitmaps of list items, which can be read as
        flat values of as many bits as a list has items.

    Raises
    ------
    CodecError
        An argument is out of range.
    """

    cdef Chunks chunks
    cdef lc_value_codec codec
    cdef str name

    def __cinit__(self, Chunks chunks not None, int64_t kind, int64_t bits, int64_t buffer=0):
        if kind < 0 or kind > LC_VALUE_SPLIT:
            raise CodecError(f"unknown value codec {kind}")
        if bits <= 0 or bits > 2**40 or (WIDTHS[kind] is not None and bits not in WIDTHS[kind]):
            raise CodecError(f"{NAMES[kind]} does not support values of {bits} bits")
        if buffer < 0 or buffer > chunks.chunks.buffers - (2 if kind == LC_VALUE_RLE else 1):
            raise CodecError(f"{NAMES[kind]} from buffer {buffer} on needs more than {chunks.chunks.buffers} buffers")
        self.chunks, self.name = chunks, NAMES[kind]
        self.codec.kind, self.codec.bits, self.codec.buffer = kind, bits, buffer

    cdef int check_room(self, ByteView target, int64_t at, int64_t n) except -1:
        cdef int64_t room = target.size // (self.codec.bits // 8) if self.codec.bits % 8 == 0 else \
            target.size * 8 // self.codec.bits
        if at < 0 or at > room or n > room - at:
            raise CodecError(f"output of {target.size} bytes has no room for {n} values of {self.codec.bits} bits from "
                             f"value {at} on")
        return 0

    cdef uint8_t *scratch(self) except NULL:
        """Allocate room for the largest chunk, or nothing if its values can be used in place."""
        return allocate(0 if self.codec.kind == LC_VALUE_FLAT else
                        self.chunks.chunks.table.largest * (self.codec.bits // 8))

    def scan(self, int64_t start, int64_t stop, out, int64_t at=0):
        """Decode a range of values.

        Parameters
        ----------
        start, stop
            Range ``[start, stop)`` of values.
        out
            Output with room for ``at + stop - start`` values. If values are not whole bytes, it is a bit string. Bits
            outside of the range written keep their values, so threads must not write neighbouring ranges that share a
            byte.
        at
            Position in `out` of the first value, in values.

        Raises
        ------
        CodecError
            The range is outside of the page, `out` is too small, or a chunk is not ready or is damaged.
        """
        cdef ByteView target = writable(out)
        cdef int64_t where = 0
        cdef int problem
        cdef uint8_t *scratch
        self.chunks.check_range(start, stop)
        self.check_room(target, at, stop - start)
        if self.codec.bits % 8:
            with nogil:
                problem = lc_bits_scan(&self.chunks.chunks, &self.codec, start, stop, target.data, at * self.codec.bits,
                                       &where)
        else:
            scratch = self.scratch()
            with nogil:
                problem = lc_fixed_scan(&self.chunks.chunks, &self.codec, start, stop,
                                        target.data + at * (self.codec.bits >> 3), scratch, &where)
            PyMem_Free(scratch)
        if problem:
            self.chunks.fail(problem, where, self.name)

    def take(self, const int64_t[::1] items not None, out, int64_t at=0):
        """Decode the values at given positions.

        Ascending positions are fastest, because neighbours in one chunk are decoded together. For many positions in
        random order the whole page is decoded once, unless it has more than eight times as many values as positions.

        Parameters
        ----------
        items
            int64 array of positions, in any order, repeats allowed.
        out
            Output with room for ``at + len(items)`` values, a bit string as for `scan`.
        at
            Position in `out` of the first value, in values.

        Raises
        ------
        CodecError
            A position is outside of the page, `out` is too small, or a chunk is not ready or is damaged.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out)
        cdef int64_t n = items.shape[0], where = 0
        cdef int problem
        self.check_room(target, at, n)
        check_aligned(&items[0])
        if self.codec.bits % 8 == 0:
            self.take_bytes(&items[0], n, target.data + at * (self.codec.bits >> 3))
            return
        with nogil:
            problem = lc_bits_take(&self.chunks.chunks, &self.codec, &items[0], n, target.data, at * self.codec.bits,
                                   &where)
        if problem:
            self.chunks.fail(problem, where, self.name)

    cdef int take_bytes(self, const int64_t *items, int64_t n, uint8_t *out) except -1:
        """Take values of whole bytes. If positions jump so much that decoding single chunks costs more than the whole
        page, decode the page, unless it has many more values than requested, and gather the rest from there."""
        cdef int64_t width = self.codec.bits >> 3, total = self.chunks.chunks.table.items, done = 0, where = 0
        cdef int64_t budget = 2**62 if total // 8 > n else PATIENCE * n
        cdef int problem
        cdef uint8_t *scratch = self.scratch()
        with nogil:
            problem = lc_fixed_take(&self.chunks.chunks, &self.codec, items, n, out, scratch, budget, &done, &where)
        PyMem_Free(scratch)
        if problem:
            self.chunks.fail(problem, where, self.name)
        if done < n:
            self.take_from_page(items + done, n - done, out + done * width, done)
        return 0

    cdef int take_from_page(self, const int64_t *items, int64_t n, uint8_t *out, int64_t skipped) except -1:
        cdef int64_t width = self.codec.bits >> 3, total = self.chunks.chunks.table.items, where = 0, i
        cdef int problem = 0
        cdef uint8_t *scratch
        cdef uint8_t *page = allocate(total * width)
        try:
            scratch = self.scratch()
            with nogil:
                for i in range(n):
                    if items[i] < 0 or items[i] >= total:
                        problem, where = LC_CHUNK_ITEM, skipped + i
                        break
                if problem == 0:
                    problem = lc_fixed_scan(&self.chunks.chunks, &self.codec, 0, total, page, scratch, &where)
                if problem == 0:
                    lc_gather_block(page, width, <const uint8_t *>items, 8, n, out)
            PyMem_Free(scratch)
        finally:
            PyMem_Free(page)
        if problem:
            self.chunks.fail(problem, where, self.name)
        return 0

    cdef lc_dictionary dictionary(self, ByteView entries, int64_t width, int64_t count) except *:
        cdef lc_dictionary table
        if self.codec.bits not in (8, 16, 32, 64):
            raise CodecError(f"dictionary indices must have 8, 16, 32 or 64 bits, not {self.codec.bits}")
        if width <= 0 or count < 0 or entries.size // width < count:
            raise CodecError(f"{entries.size} bytes are not {count} dictionary entries of {width} bytes")
        table.entries, table.width, table.count = entries.data, width, count
        return table

    def scan_dictionary(self, int64_t start, int64_t stop, entries, int64_t width, int64_t count, out, int64_t at=0,
                        validity=None, int64_t bit=0):
        """Decode a range of dictionary indices and write the entries that they refer to.

        Parameters
        ----------
        start, stop
            Range ``[start, stop)`` of values.
        entries
            `count` dictionary entries of `width` bytes.
        width
            Size of an entry in bytes.
        count
            Number of entries.
        out
            Output with room for ``at + stop - start`` entries.
        at
            Position in `out` of the first entry, in entries.
        validity
            Bitmap of the values, or None. With a bitmap, a null may have any index, and gets entry 0 if it is out of
            range. With None, every index must be valid.
        bit
            Bit of `validity` that belongs to value `start`.

        Raises
        ------
        CodecError
            An index of a valid value is out of range, a buffer is too small, or as for `scan`.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out), source = readable(entries), bits = None
        cdef lc_dictionary dictionary = self.dictionary(source, width, count)
        cdef const uint8_t *valid = NULL
        cdef int64_t where = 0
        cdef int problem
        cdef uint8_t *scratch
        self.chunks.check_range(start, stop)
        if at < 0 or at > target.size // width or stop - start > target.size // width - at:
            raise CodecError(f"output of {target.size} bytes has no room for {stop - start} entries of {width} bytes "
                             f"from entry {at} on")
        if validity is not None:
            bits = readable(validity)
            check_bitmap(bits, bit, stop - start)
            valid = bits.data
        scratch = self.scratch()
        with nogil:
            problem = lc_dictionary_scan(&self.chunks.chunks, &self.codec, &dictionary, start, stop, valid, bit,
                                         target.data + at * width, scratch, &where)
        PyMem_Free(scratch)
        if problem:
            self.chunks.fail(problem, where, f"dictionary of {count} entries")

    def take_dictionary(self, const int64_t[::1] items not None, entries, int64_t width, int64_t count, out,
                        int64_t at=0, validity=None, int64_t bit=0):
        """Decode the dictionary indices at given positions and write the entries that they refer to.

        Parameters
        ----------
        items
            int64 array of positions, in any order.
        entries, width, count, out, at
            As for `scan_dictionary`.
        validity
            Bitmap of the positions, or None, as for `scan_dictionary`.
        bit
            Bit of `validity` that belongs to ``items[0]``.

        Raises
        ------
        CodecError
            An index of a valid value is out of range, a buffer is too small, or as for `take`.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out), source = readable(entries), bits = None
        cdef lc_dictionary dictionary = self.dictionary(source, width, count)
        cdef const uint8_t *valid = NULL
        cdef int64_t n = items.shape[0]
        cdef int problem
        cdef uint8_t *indices
        if at < 0 or at > target.size // width or n > target.size // width - at:
            raise CodecError(f"output of {target.size} bytes has no room for {n} entries of {width} bytes from entry "
                             f"{at} on")
        if validity is not None:
            bits = readable(validity)
            check_bitmap(bits, bit, n)
            valid = bits.data
        check_aligned(&items[0])
        indices = allocate(n * (self.codec.bits >> 3))
        try:
            self.take_bytes(&items[0], n, indices)
            with nogil:
                problem = lc_dictionary_gather(&dictionary, indices, self.codec.bits, n, valid, bit,
                                               target.data + at * width)
        finally:
            PyMem_Free(indices)
        if problem:
            fail(problem, f"dictionary of {count} entries")


def check_indices(indices, int64_t bits, int64_t length, int64_t count, validity=None, int64_t bit=0):
    """Check that decoded dictionary indices are below the number of entries. An invalid index of a null becomes 0.

    Parameters
    ----------
    indices
        Writable buffer of at least `length` unsigned indices of `bits` bits.
    bits
        Size of an index: 8, 16, 32 or 64.
    length
        Number of indices.
    count
        Number of dictionary entries.
    validity
        Bitmap of the indices, or None if there are no nulls.
    bit
        Bit of `validity` that belongs to the first index.

    Raises
    ------
    CodecError
        An index of a valid value is out of range, or a buffer is too small.
    """
    cdef ByteView target = writable(indices), bitmap = None
    cdef const uint8_t *valid = NULL
    cdef int64_t bad = 0
    cdef int problem
    if bits not in (8, 16, 32, 64) or count < 0:
        raise CodecError(f"indices of {bits} bits into {count} entries are not supported")
    if length < 0 or target.size // (bits // 8) < length:
        raise CodecError(f"{target.size} bytes are not {length} indices of {bits} bits")
    if validity is not None:
        bitmap = readable(validity)
        check_bitmap(bitmap, bit, length)
        valid = bitmap.data
    with nogil:
        problem = lc_indices_check(target.data, bits, length, count, valid, bit, &bad)
    if problem:
        fail(problem, f"index {bad} into a dictionary of {count} entries")


cdef class VariableValues:
    """Strings and binaries of the chunks of a page.

    Parameters
    ----------
    chunks
        `Chunks` of the page.
    wide
        Whether the stored offsets have 64 bits.
    symbol_table
        FSST table of the page if the values are FSST codes, else None.
    buffer
        Value buffer that holds the values.

    Raises
    ------
    CodecError
        There is no such buffer, or the symbol table is not valid.
    """

    cdef Chunks chunks
    cdef lc_text_codec codec
    cdef lc_fsst_table table

    def __cinit__(self, Chunks chunks not None, bint wide, symbol_table=None, int64_t buffer=0):
        cdef ByteView view
        cdef int problem
        if buffer < 0 or buffer >= chunks.chunks.buffers:
            raise CodecError(f"value buffer {buffer} of chunks with {chunks.chunks.buffers}")
        if symbol_table is not None:
            view = readable(symbol_table)
            problem = lc_fsst_table_parse(view.data, view.size, &self.table)
            if problem:
                fail(problem, "FSST")
            self.codec.table = &self.table
        self.chunks, self.codec.wide, self.codec.buffer = chunks, wide, buffer

    cdef lc_ends ends(self, ByteView target, int64_t n, bint wide, int64_t base) except *:
        cdef lc_ends ends
        if base < 0 or base > (2**62 if wide else 2**31 - 1):
            raise CodecError(f"offsets cannot start at {base}")
        if target.size // (8 if wide else 4) < n + 1:
            raise CodecError(f"output of {target.size} bytes has no room for the offsets of {n} values")
        ends.out, ends.wide, ends.total = target.data + (8 if wide else 4), wide, base
        lc_store_offset(target.data, wide, 0, base)
        return ends

    @property
    def most_bytes(self):
        """Largest size in bytes of all loaded values together, if each is requested once."""
        cdef int64_t most
        with nogil:
            most = lc_text_most(&self.chunks.chunks, &self.codec)
        return most

    def size(self, int64_t start, int64_t stop):
        """Compute the size of a range of values. It is several times as fast as decoding them.

        Parameters
        ----------
        start, stop
            Range ``[start, stop)`` of values.

        Returns
        -------
        int
            Size of all values together in bytes.

        Raises
        ------
        CodecError
            The range is outside of the page, or a chunk is not ready or is damaged.
        """
        cdef int64_t total = 0, where = 0
        cdef int problem
        self.chunks.check_range(start, stop)
        with nogil:
            problem = lc_text_scan_size(&self.chunks.chunks, &self.codec, start, stop, &total, &where)
        if problem:
            self.chunks.fail(problem, where, "variable-width values")
        return total

    def estimate(self, int64_t start, int64_t stop):
        """Estimate the output size that `scan` needs to write a range of values in one call, from a few chunks.

        Parameters
        ----------
        start, stop
            Range ``[start, stop)`` of values.

        Returns
        -------
        int
            Size in bytes. It is exact unless the values are FSST codes; then it is a few percent above the likely size.

        Raises
        ------
        CodecError
            The range is outside of the page, or a chunk is not ready or is damaged.
        """
        cdef int64_t total = 0, where = 0
        cdef int problem
        self.chunks.check_range(start, stop)
        with nogil:
            problem = lc_text_scan_estimate(&self.chunks.chunks, &self.codec, start, stop, &total, &where)
        if problem:
            self.chunks.fail(problem, where, "variable-width values")
        return total

    def scan(self, int64_t start, int64_t stop, bint wide, offsets, out, int64_t base=0, bint exact=False):
        """Decode the offsets and bytes of a range of values in one pass.

        The function stops in front of a chunk that may not fit the rest of `out`: its stored size must fit, and eight
        times that for FSST codes. Enlarge `out` then and call again from the returned value on, with `offsets` and
        `out` moved on and the new `base`; or use `scan_offsets` and `scan_bytes`.

        Parameters
        ----------
        start, stop
            Range ``[start, stop)`` of values.
        wide
            Whether the offsets written have 64 bits.
        offsets
            Output of ``stop - start + 1`` offsets of 32 bits, or 64 if `wide`. The first one is `base`.
        out
            Output for the bytes.
        base
            First offset.
        exact
            Whether `out` has room for all values, as computed by `size`. The function then does not stop early, but
            raises an error if the room is not sufficient.

        Returns
        -------
        done : int
            First value that was not written.
        written : int
            Number of bytes written.

        Raises
        ------
        CodecError
            The range is outside of the page, `offsets` is too small, or a chunk is not ready or is damaged.
        OffsetOverflowError
            The values do not fit `out` (if `exact`) or the offsets.
        """
        cdef ByteView target = writable(out), places = writable(offsets)
        cdef int64_t where = 0, done = 0, total = 0
        cdef int problem
        self.chunks.check_range(start, stop)
        cdef lc_ends ends = self.ends(places, stop - start, wide, base)
        with nogil:
            problem = lc_text_scan(&self.chunks.chunks, &self.codec, start, stop, &ends, target.data, target.size,
                                   exact, &done, &total, &where)
        if problem:
            self.chunks.fail(problem, where, "variable-width values")
        return done, total

    def scan_offsets(self, int64_t start, int64_t stop, bint wide, out, int64_t base=0):
        """Compute the offsets of a range of values: the first of two passes, before `scan_bytes`.

        Parameters
        ----------
        start, stop
            Range ``[start, stop)`` of values.
        wide
            Whether the offsets written have 64 bits.
        out
            Output of ``stop - start + 1`` offsets of 32 bits, or 64 if `wide`. The first one is `base`.
        base
            First offset.

        Returns
        -------
        int
            Size of all values together in bytes.

        Raises
        ------
        CodecError
            The range is outside of the page, `out` is too small, or a chunk is not ready or is damaged.
        OffsetOverflowError
            The values do not fit the offsets.
        """
        cdef ByteView target = writable(out)
        cdef int64_t where = 0
        cdef int problem
        self.chunks.check_range(start, stop)
        cdef lc_ends ends = self.ends(target, stop - start, wide, base)
        with nogil:
            problem = lc_text_scan_ends(&self.chunks.chunks, &self.codec, start, stop, &ends, &where)
        if problem:
            self.chunks.fail(problem, where, "variable-width values")
        return ends.total - base

    def scan_bytes(self, int64_t start, int64_t stop, out):
        """Decode the bytes of a range of values, back to back: the second pass, after `scan_offsets`.

        Parameters
        ----------
        start, stop
            Range ``[start, stop)`` of values.
        out
            Output for the bytes, of the size that `scan_offsets` returns.

        Returns
        -------
        int
            Number of bytes written.

        Raises
        ------
        CodecError
            The range is outside of the page, or a chunk is not ready or is damaged.
        OffsetOverflowError
            `out` is too small.
        """
        cdef ByteView target = writable(out)
        cdef int64_t where = 0, total = 0
        cdef int problem
        self.chunks.check_range(start, stop)
        with nogil:
            problem = lc_text_scan_bytes(&self.chunks.chunks, &self.codec, start, stop, target.data, target.size,
                                         &total, &where)
        if problem:
            self.chunks.fail(problem, where, "variable-width values")
        return total

    def take_offsets(self, const int64_t[::1] items not None, bint wide, out, int64_t base=0):
        """Compute the offsets of the values at given positions: the first of two passes, before `take_bytes`.

        Values that overlap are only noticed if their positions in `items` are next to each other and ascend. A caller
        who passes other positions compares the result with `most_bytes`.

        Parameters
        ----------
        items
            int64 array of positions, in any order.
        wide
            Whether the offsets written have 64 bits.
        out
            Output of ``len(items) + 1`` offsets of 32 bits, or 64 if `wide`. The first one is `base`.
        base
            First offset.

        Returns
        -------
        int
            Size of all values together in bytes.

        Raises
        ------
        CodecError
            A position is outside of the page, `out` is too small, or a chunk is not ready or is damaged.
        OffsetOverflowError
            The values do not fit the offsets.
        """
        cdef ByteView target = writable(out)
        cdef int64_t n = items.shape[0], where = 0
        cdef int problem
        cdef lc_ends ends = self.ends(target, n, wide, base)
        check_aligned(&items[0])
        with nogil:
            problem = lc_text_take_ends(&self.chunks.chunks, &self.codec, &items[0], n, &ends, &where)
        if problem:
            self.chunks.fail(problem, where, "variable-width values")
        return ends.total - base

    def take_bytes(self, const int64_t[::1] items not None, out):
        """Decode the bytes of the values at given positions, back to back: the second pass, after `take_offsets`.

        Parameters
        ----------
        items
            int64 array of positions, in any order.
        out
            Output for the bytes, of the size that `take_offsets` returns.

        Returns
        -------
        int
            Number of bytes written.

        Raises
        ------
        CodecError
            A position is outside of the page, or a chunk is not ready or is damaged.
        OffsetOverflowError
            `out` is too small.
        """
        cdef ByteView target = writable(out)
        cdef int64_t n = items.shape[0], where = 0, total = 0
        cdef int problem
        check_aligned(&items[0])
        with nogil:
            problem = lc_text_take_bytes(&self.chunks.chunks, &self.codec, &items[0], n, target.data, target.size,
                                         &total, &where)
        if problem:
            self.chunks.fail(problem, where, "variable-width values")
        return total
