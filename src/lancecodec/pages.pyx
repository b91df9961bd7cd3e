"""Random access to the pages of a 2.0 column: row numbers in, values at their final place out."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int64_t, uint8_t, uint64_t

from lancecodec.blocks cimport FileBlocks, Held, lc_blocks, lc_needs, load_needs, new_held
from lancecodec.buffers cimport ByteView, check_aligned, readable, writable

from lancecodec.errors import CodecError, OffsetOverflowError

cdef extern from "kernels/pages.h" nogil:
    int LC_TAKE_ROW, LC_TAKE_PAGE, LC_TAKE_OVERFLOW, LC_TAKE_OFFSETS, LC_TAKE_NO_DATA
    ctypedef struct lc_page_map:
        const int64_t *starts
        int64_t pages
        int64_t rows
    ctypedef struct lc_fixed_page:
        const uint8_t *values
        const uint8_t *validity
    ctypedef struct lc_ends_page:
        const uint8_t *ends
        const uint8_t *codes
        const uint8_t *data
        uint64_t adjustment
        uint64_t limit
        int64_t entries
        int64_t base
    int64_t lc_fixed_pages_take(const lc_page_map *map, const lc_fixed_page *pages, const int64_t *rows, int64_t n,
                                int64_t width, uint8_t *out, uint8_t *validity, int64_t *nulls)
    int lc_ends_take_offsets(const lc_page_map *map, lc_ends_page *pages, const int64_t *rows, int64_t n,
                             int wide, uint8_t *offsets, uint8_t *validity, int64_t *begins, int64_t *total,
                             int64_t *nulls, int64_t *where)
    int lc_ends_take_bytes(const lc_page_map *map, const lc_ends_page *pages, const int64_t *rows, int64_t n, int wide,
                           const uint8_t *offsets, uint8_t *out, int64_t out_size, int64_t *where)

cdef extern from "kernels/pages_needs.h" nogil:
    int lc_fixed_pages_needs(const lc_page_map *map, const lc_fixed_page *pages, const int64_t *rows, int64_t n,
                             int64_t width, lc_blocks *blocks, lc_needs *needs)
    int lc_ends_pages_needs(const lc_page_map *map, const lc_ends_page *pages, const int64_t *rows, int64_t n,
                            lc_blocks *blocks, lc_needs *needs)

#: Values are found in this many steps at most: codes, ends, bytes. The last one finds everything loaded.
cdef int LOADS = 5


cdef class _Pages:
    """Page starts, and the buffers that are kept alive; the base of both kinds of pages."""

    cdef lc_page_map map
    cdef int64_t *starts
    cdef int64_t count
    cdef list keep

    def __cinit__(self, starts, *args, **kwargs):
        cdef int64_t i
        self.keep = []
        self.count = len(starts) - 1
        if self.count < 0 or starts[0] != 0:
            raise CodecError("page starts must begin with 0")
        self.starts = <int64_t *>PyMem_Calloc(self.count + 2, sizeof(int64_t))
        if self.starts == NULL:
            raise MemoryError()
        for i in range(self.count + 1):
            self.starts[i] = starts[i]
            if i and self.starts[i] < self.starts[i - 1]:
                raise CodecError("page starts must not decrease")
        self.starts[self.count + 1] = self.starts[self.count]
        self.map.starts, self.map.pages, self.map.rows = self.starts, self.count, self.starts[self.count]

    def __dealloc__(self):
        PyMem_Free(self.starts)

    @property
    def num_rows(self):
        """Number of rows in all pages."""
        return self.map.rows

    cdef const uint8_t *kept(self, object buffer, int64_t needed, int64_t page, str what) except? NULL:
        """Return the address of a buffer of at least `needed` bytes, and keep it exported as long as this object."""
        cdef ByteView view = readable(buffer)
        if view.size < needed:
            raise CodecError(f"{what} of page {page} has {view.size} bytes instead of {needed}")
        self.keep.append(view)
        return view.data

    cdef int add_needs(self, const int64_t *rows, int64_t n, lc_blocks *blocks, lc_needs *needs) noexcept nogil:
        return 0

    def hold(self, const int64_t[::1] rows not None, FileBlocks blocks not None):
        """Load what is needed to take some rows. Buffers that are not views of the blocks are in memory already.

        Parameters
        ----------
        rows
            int64 array of row numbers, in any order.
        blocks
            Blocks of the file.

        Returns
        -------
        Held
            An object that keeps the bytes as long as it lives.

        Raises
        ------
        CodecError
            A page is outside of the file, or the file is shorter than its size.
        OSError
            The system cannot read the file.
        """
        cdef Held held = new_held(blocks)
        cdef int64_t n = rows.shape[0]
        cdef int problem, _attempt
        check_aligned(&rows[0])
        for _attempt in range(LOADS):
            with nogil:
                problem = self.add_needs(&rows[0], n, &blocks.blocks, &held.needs)
            if problem:
                raise CodecError("a page is outside of its file")
            if held.needs.count == 0:
                return held
            load_needs(&held.needs)
        raise CodecError("the file changes while it is read")


cdef class FixedPages(_Pages):
    """Fixed-width values of a column. Each page has a value buffer and may have a validity bitmap.

    Parameters
    ----------
    starts
        First row of each page, beginning with 0, then the number of rows: one entry more than there are pages.
    bits
        Size of a value in bits: 1 or a multiple of 8.
    values
        List with a value buffer per page; None for a page of nulls only.
    validity
        List with a bitmap per page; None for a page without nulls.

    Attributes
    ----------
    has_nulls : bool
        Whether a page may have nulls.

    Raises
    ------
    CodecError
        A buffer is too small for its page, or an argument is out of range.
    MemoryError
        There is not enough memory.
    """

    cdef lc_fixed_page *pages
    cdef int64_t bits
    cdef readonly bint has_nulls

    def __cinit__(self, starts, int64_t bits, list values not None, list validity not None):
        cdef int64_t i, rows
        self.bits = bits
        if bits != 1 and (bits <= 0 or bits % 8 or bits > 2**40):
            raise CodecError(f"a width of {bits} bits is not supported")
        if len(values) != self.count or len(validity) != self.count:
            raise CodecError(f"{len(values)} value and {len(validity)} validity buffers for {self.count} pages")
        self.pages = <lc_fixed_page *>PyMem_Calloc(max(self.count, 1), sizeof(lc_fixed_page))
        if self.pages == NULL:
            raise MemoryError()
        for i in range(self.count):
            rows = self.starts[i + 1] - self.starts[i]
            if rows == 0:
                continue
            if rows > 2**56 // bits:
                raise CodecError(f"page {i} claims {rows} rows")
            if values[i] is not None:
                self.pages[i].values = self.kept(values[i], (rows * bits + 7) // 8, i, "value buffer")
            if validity[i] is not None:
                self.pages[i].validity = self.kept(validity[i], (rows + 7) // 8, i, "validity buffer")
            if values[i] is None or validity[i] is not None:
                self.has_nulls = True

    def __dealloc__(self):
        PyMem_Free(self.pages)

    cdef int add_needs(self, const int64_t *rows, int64_t n, lc_blocks *blocks, lc_needs *needs) noexcept nogil:
        cdef int64_t width = 0 if self.bits == 1 else self.bits // 8
        return lc_fixed_pages_needs(&self.map, self.pages, rows, n, width, blocks, needs)

    def take(self, const int64_t[::1] rows not None, out, validity=None):
        """Read the values of given rows.

        Parameters
        ----------
        rows
            int64 array of n row numbers, in any order.
        out
            Output with room for n values: value ``rows[i]`` becomes value i.
        validity
            Output bitmap of at least ``ceil(n / 8)`` bytes. It may be None only if `has_nulls` is false.

        Returns
        -------
        int
            Number of nulls.

        Raises
        ------
        CodecError
            A row is outside of the pages, an output is too small, or `validity` is missing.
        """
        cdef ByteView target = writable(out), bits
        cdef int64_t n = rows.shape[0], width = 0 if self.bits == 1 else self.bits // 8, nulls = 0, bad
        cdef uint8_t *valid = NULL
        if (target.size < (n + 7) // 8) if width == 0 else (target.size // width < n):
            raise CodecError(f"output of {target.size} bytes is too small for {n} values of {self.bits} bits")
        if validity is not None:
            bits = writable(validity)
            if bits.size < (n + 7) // 8:
                raise CodecError(f"validity output of {bits.size} bytes is too small for {n} values")
            valid = bits.data
        elif self.has_nulls:
            raise CodecError("the column has nulls: a validity output is needed")
        check_aligned(&rows[0])
        with nogil:
            bad = lc_fixed_pages_take(&self.map, self.pages, &rows[0], n, width, target.data, valid, &nulls)
        if bad >= 0:
            raise CodecError(f"row {rows[bad]} is outside {self.map.rows} rows")
        return nulls


cdef class EndsPages(_Pages):
    """Variable-width values of a column: pages of 2.0 end offsets, either plain or with a dictionary.

    Parameters
    ----------
    starts
        First row of each page, then the number of rows, as for `FixedPages`.
    pages
        List with an entry per page: None for a page of nulls only, else a tuple ``(ends, adjustment, limit, base, data,
        codes, entries)``. These are the buffer of u64 ends, the null adjustment, the number of items (bytes) that the
        page covers, the position of its first item in the item column, and the value bytes (None for lists). For a
        dictionary page they end with the buffer of u8 codes (0 is null, k is entry k - 1) and the number of dictionary
        entries, otherwise with None and 0.

    Raises
    ------
    CodecError
        A buffer is too small for its page, or a number is out of range.
    MemoryError
        There is not enough memory.
    """

    cdef lc_ends_page *pages

    def __cinit__(self, starts, list pages not None):
        cdef int64_t i, rows
        if len(pages) != self.count:
            raise CodecError(f"{len(pages)} page descriptions for {self.count} pages")
        self.pages = <lc_ends_page *>PyMem_Calloc(max(self.count, 1), sizeof(lc_ends_page))
        if self.pages == NULL:
            raise MemoryError()
        for i in range(self.count):
            rows = self.starts[i + 1] - self.starts[i]
            if pages[i] is not None and rows:
                self.load(i, rows, pages[i])

    cdef int load(self, int64_t i, int64_t rows, tuple page) except -1:
        ends, adjustment, limit, base, data, codes, entries = page
        cdef lc_ends_page *at = self.pages + i
        at.adjustment, at.limit, at.base = adjustment, limit, base
        at.entries = entries if codes is not None else rows
        if at.entries < 0 or at.entries > 2**56 or at.limit > 2**62 or at.base < 0 or at.base > 2**62:
            raise CodecError(f"page {i} claims {at.entries} offsets of {limit} items from {base} on")
        if at.entries:
            if at.adjustment <= at.limit:
                raise CodecError(f"null adjustment {adjustment} of page {i} is not above its {limit} items")
            at.ends = self.kept(ends, at.entries * 8, i, "offset buffer")
        if codes is not None:
            at.codes = self.kept(codes, rows, i, "index buffer")
        if data is not None and at.limit:
            at.data = self.kept(data, at.limit, i, "byte buffer")
        return 0

    def __dealloc__(self):
        PyMem_Free(self.pages)

    cdef int add_needs(self, const int64_t *rows, int64_t n, lc_blocks *blocks, lc_needs *needs) noexcept nogil:
        return lc_ends_pages_needs(&self.map, self.pages, rows, n, blocks, needs)

    cdef int fail(self, int problem, int64_t where) except -1:
        if problem == LC_TAKE_ROW:
            raise CodecError(f"row {where} is outside {self.map.rows} rows")
        if problem == LC_TAKE_PAGE:
            raise CodecError(f"an offset of page {where} decreases, exceeds its items or has no dictionary item")
        if problem == LC_TAKE_NO_DATA:
            raise CodecError(f"page {where} has no value bytes")
        if problem == LC_TAKE_OFFSETS:
            raise CodecError("the offsets do not belong to these rows")
        raise OffsetOverflowError("the values have too many items together for these offsets; take fewer rows at once")

    def take_offsets(self, const int64_t[::1] rows not None, bint wide, offsets, validity, int64_t[::1] begins=None):
        """Compute the offsets and validity of the values of given rows: the first of two passes, before `take_bytes`.

        If the total exceeds the number of items in all pages, all ends of the affected pages are checked.

        Parameters
        ----------
        rows
            int64 array of n row numbers, in any order.
        wide
            Whether the offsets written have 64 bits.
        offsets
            Output of n + 1 offsets of 32 bits, or 64 if `wide`, starting with 0. A null has length 0.
        validity
            Output bitmap of at least ``ceil(n / 8)`` bytes.
        begins
            Output int64 array of n entries or None: the position of the first item of each value in the item column.

        Returns
        -------
        total : int
            Number of items (bytes) of all values together.
        null_count : int
            Number of nulls.

        Raises
        ------
        CodecError
            A row is outside of the pages, an end decreases or exceeds its page, or an output is too small.
        OffsetOverflowError
            The total does not fit the offsets.
        """
        cdef ByteView target = writable(offsets), bits = writable(validity)
        cdef int64_t n = rows.shape[0], total = 0, nulls = 0, where = 0
        cdef int64_t *positions = NULL
        cdef int problem
        if target.size // (8 if wide else 4) < n + 1 or bits.size < (n + 7) // 8:
            raise CodecError(f"output is too small for the offsets and validity of {n} values")
        if begins is not None:
            if begins.shape[0] < n:
                raise CodecError(f"output of {begins.shape[0]} begins is too small for {n} values")
            positions = &begins[0]
            check_aligned(positions)
        check_aligned(&rows[0])
        with nogil:
            problem = lc_ends_take_offsets(&self.map, self.pages, &rows[0], n, wide, target.data, bits.data, positions,
                                           &total, &nulls, &where)
        if problem:
            self.fail(problem, where)
        return total, nulls

    def take_bytes(self, const int64_t[::1] rows not None, bint wide, offsets, out):
        """Copy the bytes of the values of given rows: the second pass, after `take_offsets`.

        Parameters
        ----------
        rows
            int64 array of n row numbers, the same as for `take_offsets`.
        wide
            Whether the offsets have 64 bits.
        offsets
            The n + 1 offsets that `take_offsets` wrote.
        out
            Output for the bytes, of the size that `take_offsets` returns.

        Raises
        ------
        CodecError
            A row is outside of the pages, a page has no value bytes, or the offsets do not belong to these rows.
        """
        cdef ByteView places = readable(offsets), target = writable(out)
        cdef int64_t n = rows.shape[0], where = 0
        cdef int problem
        if places.size // (8 if wide else 4) < n + 1:
            raise CodecError(f"offsets of {places.size} bytes are too few for {n} values")
        check_aligned(&rows[0])
        with nogil:
            problem = lc_ends_take_bytes(&self.map, self.pages, &rows[0], n, wide, places.data, target.data,
                                         target.size, &where)
        if problem:
            self.fail(problem, where)
