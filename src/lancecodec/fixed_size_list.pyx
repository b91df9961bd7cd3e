"""Fixed-size lists of fixed-width items: chunks of bit streams, and full-zip rows of whole bytes."""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/fixed_size_list.h" nogil:
    enum: LC_FSL_LEVELS
    ctypedef struct lc_fsl:
        int64_t levels, streams, validities, bits, row_bytes
        int64_t items[LC_FSL_LEVELS]
        int64_t stream_bits[LC_FSL_LEVELS + 1]
        int64_t place[LC_FSL_LEVELS + 1]
    ctypedef struct lc_fsl_stream:
        uint8_t *data
        int64_t bit
    ctypedef struct lc_fsl_rows:
        const uint8_t *data
        int64_t size
        int64_t stride
        const int64_t *places
    int lc_fsl_init(lc_fsl *shape, const int64_t *dimensions, const uint8_t *has_validity, int64_t levels, int64_t bits)
    int64_t lc_fsl_max_rows(const lc_fsl *shape)
    int64_t lc_fsl_chunk_rows(const lc_fsl *shape)
    void lc_fsl_ends(const lc_fsl *shape, int64_t s, int64_t rows, int64_t per_chunk, int64_t *ends)
    void lc_fsl_encode(const lc_fsl *shape, const lc_fsl_stream *sources, int64_t rows, int64_t per_chunk,
                       uint8_t **outputs)
    int lc_fsl_chunk(const lc_fsl *shape, const lc_bytes *buffers, int64_t n, const lc_fsl_stream *targets,
                     int64_t row)
    int lc_fsl_at(const lc_fsl *shape, const lc_bytes *buffers, int64_t n, const int64_t *at, int64_t count,
                  const lc_fsl_stream *targets, int64_t row)
    int lc_fsl_unpack(const lc_fsl *shape, const lc_fsl_rows *rows, int64_t n, const lc_fsl_stream *targets,
                      int64_t row)
    void lc_fsl_pack(const lc_fsl *shape, const lc_fsl_stream *sources, int64_t n, uint8_t *out, int64_t stride)
    int64_t lc_bits_to_bytes(int64_t bits)


cdef class _Streams:
    """Validity bitmaps and values of rows as bit streams, exported for as long as this object lives."""

    cdef lc_fsl_stream stream[33]
    cdef list keep

    cdef int add(self, ByteView view, int64_t s, int64_t bit, int64_t row_bits, int64_t rows, str what) except -1:
        """Set stream s of `rows` rows from `bit` on; rows * row_bits does not overflow."""
        cdef int64_t needed = rows * row_bits
        if bit < 0 or bit > 2**61 or view.size < lc_bits_to_bytes(bit + needed):
            raise CodecError(f"{what} of {view.size} bytes does not hold {rows} rows of {row_bits} bits from {bit} on")
        self.stream[s].data, self.stream[s].bit = view.data, bit
        self.keep.append(view)
        return 0


cdef class Shape:
    """Dimensions, validity levels and value width of a fixed-size list, which may be nested.

    The validity of a level is the validity of its *items*. It is one bitmap in which row i has bits ``i * c`` to ``(i +
    1) * c - 1``, where c is the product of the dimensions up to this level. The values of the innermost level are one
    stream too, a bit stream if their width is not a whole number of bytes.

    Parameters
    ----------
    dimensions
        List sizes, outermost first: at least 1 each, at most 32 levels.
    has_validity
        For each level, whether its items have a bitmap.
    bits
        Size of a value in bits; 0 if every item is null and no values are stored.

    Attributes
    ----------
    dimensions : tuple of int
        The list sizes.
    has_validity : tuple of bool
        Whether each level has a bitmap.

    Raises
    ------
    CodecError
        A dimension is below 1, there are more than 32 levels, or a row has more than 2**56 bits.
    """

    cdef lc_fsl shape
    cdef readonly tuple dimensions, has_validity

    def __cinit__(self, dimensions, has_validity, int64_t bits):
        cdef int64_t sizes[LC_FSL_LEVELS]
        cdef uint8_t flags[LC_FSL_LEVELS]
        cdef int64_t levels, j
        self.dimensions = tuple(dimensions)
        self.has_validity = tuple([bool(flag) for flag in has_validity])
        levels = len(self.dimensions)
        if levels != len(self.has_validity) or levels > LC_FSL_LEVELS:
            raise CodecError(f"{levels} dimensions and {len(self.has_validity)} validity flags; at most 32 of each")
        for j in range(levels):
            sizes[j], flags[j] = self.dimensions[j], self.has_validity[j]
        cdef int problem = lc_fsl_init(&self.shape, sizes, flags, levels, bits)
        if problem:
            fail(problem, f"fixed-size list of dimensions {self.dimensions} and {bits} bits")

    @property
    def bits(self):
        """Size of a value in bits."""
        return self.shape.bits

    @property
    def buffers(self):
        """Number of buffers in a chunk: a bitmap per level with validity, outermost first, then the values if there
        are any.
        """
        return self.shape.streams

    @property
    def row_bytes(self):
        """Size of a full-zip row in bytes: the bits of each buffer, rounded up to whole bytes."""
        return self.shape.row_bytes

    cdef int check_rows(self, int64_t rows, int64_t first) except -1:
        if rows < 0 or first < 0 or rows > lc_fsl_max_rows(&self.shape) - first:
            raise CodecError(f"{rows} rows from row {first} on are out of range")
        return 0

    cdef int check_whole(self) except -1:
        """Raise CodecError unless the values of a row are whole bytes, as full-zip rows must be."""
        if self.shape.streams > self.shape.validities and self.shape.stream_bits[self.shape.validities] % 8:
            raise CodecError(f"rows of {self.dimensions} values of {self.shape.bits} bits are not whole bytes")
        return 0

    cdef int check_stride(self, ByteView view, int64_t rows, int64_t stride) except -1:
        cdef int64_t size = self.shape.row_bytes
        if stride < size or (rows and (view.size < size or rows - 1 > (view.size - size) // max(stride, 1))):
            raise CodecError(f"buffer of {view.size} bytes for {rows} rows of {size} bytes, {stride} apart")
        return 0

    cdef _Streams sources(self, validity, values, int64_t rows, int64_t first):
        """Return the bit streams to read: validity levels as (buffer, bit), then values from item `first` on."""
        cdef _Streams streams = _Streams.__new__(_Streams)
        cdef int64_t s = 0, bits
        streams.keep = []
        for flag, level in zip(self.has_validity, self.levels(validity), strict=True):
            if flag:
                buffer, bit = level
                streams.add(readable(buffer), s, bit, self.shape.stream_bits[s], rows, "validity")
                s += 1
        bits = self.shape.bits
        if bits:
            if first < 0 or first > 2**61 // bits:
                raise CodecError(f"values of {bits} bits from item {first} on")
            streams.add(readable(values), s, first * bits, self.shape.stream_bits[s], rows, "value buffer")
        return streams

    cdef _Streams targets(self, validity, values, int64_t rows):
        """Return the bit streams to write: validity of each level and the values, for `rows` rows."""
        cdef _Streams streams = _Streams.__new__(_Streams)
        cdef int64_t s = 0
        streams.keep = []
        for flag, level in zip(self.has_validity, self.levels(validity), strict=True):
            if flag:
                streams.add(writable(level), s, 0, self.shape.stream_bits[s], rows, "validity output")
                s += 1
        if self.shape.bits:
            streams.add(writable(values), s, 0, self.shape.stream_bits[s], rows, "value output")
        return streams

    cdef list levels(self, validity):
        cdef list given = list(validity)
        if len(given) != len(self.dimensions):
            raise CodecError(f"validity of {len(given)} levels for {len(self.dimensions)} dimensions")
        for j, flag in enumerate(self.has_validity):
            if flag != (given[j] is not None):
                raise CodecError(f"validity of level {j} is {'missing' if flag else 'not expected'}")
        return given

    cdef int load(self, buffers, lc_bytes *chunk, list keep) except -1:
        """Fill `chunk` with the buffers of a chunk, one per stream."""
        cdef ByteView view
        cdef int64_t s
        if len(buffers) != self.shape.streams:
            raise CodecError(f"{len(buffers)} chunk buffers instead of {self.shape.streams}")
        for s in range(self.shape.streams):
            view = readable(buffers[s])
            chunk[s].data, chunk[s].size = view.data, view.size
            keep.append(view)
        return 0

    def rows_per_chunk(self):
        """Compute the number of rows in every chunk except the last, by the rule of the reference implementation.

        Returns
        -------
        int
            Number of rows.

        Raises
        ------
        CodecError
            A row is too wide for chunks.
        """
        cdef int64_t rows = lc_fsl_chunk_rows(&self.shape)
        if rows == 0:
            raise CodecError(f"rows of {self.shape.row_bytes} bytes are too wide for chunks of the usual size; "
                             "choose the rows per chunk yourself or store the rows one by one")
        return rows

    def plan(self, int64_t rows, int64_t per_chunk, int64_t[:, ::1] ends not None):
        """Compute the byte offset at which each chunk ends in each output of `encode`.

        Parameters
        ----------
        rows
            Number of rows.
        per_chunk
            Number of rows in every chunk except the last.
        ends
            Output int64 array of shape (`buffers`, chunks or more).

        Returns
        -------
        int
            Number of chunks, ``ceil(rows / per_chunk)``.

        Raises
        ------
        CodecError
            `ends` has another shape, or a number is out of range.
        """
        cdef int64_t s, chunks
        self.check_rows(rows, 0)
        if per_chunk < 1:
            raise CodecError(f"chunks of {per_chunk} rows")
        chunks = rows // per_chunk + (rows % per_chunk != 0)
        if ends.shape[0] != self.shape.streams or ends.shape[1] < chunks:
            raise CodecError(f"room for {ends.shape[0]} x {ends.shape[1]} ends of {self.shape.streams} x {chunks}")
        if chunks == 0:
            return 0
        check_aligned(&ends[0, 0])
        with nogil:
            for s in range(self.shape.streams):
                lc_fsl_ends(&self.shape, s, rows, per_chunk, &ends[s, 0])
        return chunks

    def encode(self, validity, values, int64_t first, int64_t rows, int64_t per_chunk, outputs):
        """Encode rows as chunks, each stream into its own output.

        Parameters
        ----------
        validity
            For each level None, or its bitmap and the bit of the first item.
        values
            Value buffer. It is ignored if `bits` is 0.
        first
            Item of `values` that is the first one to encode.
        rows
            Number of rows.
        per_chunk
            Number of rows in every chunk except the last.
        outputs
            An output per buffer, of the size that `plan` computes. Unused bits of the last byte of a chunk become 0.

        Raises
        ------
        CodecError
            A buffer is too small, or `validity` does not match the levels.
        """
        cdef uint8_t *targets[LC_FSL_LEVELS + 1]
        cdef _Streams sources
        cdef ByteView view
        cdef list keep = []
        cdef int64_t s, whole, needed
        self.check_rows(rows, 0)
        if per_chunk < 1 or len(outputs) != self.shape.streams:
            raise CodecError(f"chunks of {per_chunk} rows into {len(outputs)} outputs of {self.shape.streams}")
        sources = self.sources(validity, values, rows, first)
        whole = rows // per_chunk
        for s in range(self.shape.streams):
            view = writable(outputs[s])
            keep.append(view)
            targets[s] = view.data
            needed = lc_bits_to_bytes(rows % per_chunk * self.shape.stream_bits[s])
            if whole:
                needed += whole * lc_bits_to_bytes(per_chunk * self.shape.stream_bits[s])
            if view.size < needed:
                raise CodecError(f"output {s} of {view.size} bytes is too small for {needed}")
        with nogil:
            lc_fsl_encode(&self.shape, sources.stream, rows, per_chunk, targets)

    def decode_chunk(self, buffers, int64_t rows, validity, values, int64_t row=0):
        """Decode the rows of one chunk to a position in the target bitmaps and values.

        Parameters
        ----------
        buffers
            The buffers of the chunk, each with exactly the size of its rows.
        rows
            Number of rows in the chunk.
        validity
            For each level None, or the bitmap to write. Bits of other rows keep their values.
        values
            Value buffer to write. It is ignored if `bits` is 0.
        row
            Row of the targets that receives the first row.

        Raises
        ------
        CodecError
            A buffer of the chunk has the wrong size, or a target is too small.
        """
        cdef lc_bytes chunk[LC_FSL_LEVELS + 1]
        cdef _Streams targets
        cdef list keep = []
        cdef int problem
        self.check_rows(rows, row)
        self.load(buffers, chunk, keep)
        targets = self.targets(validity, values, row + rows)
        with nogil:
            problem = lc_fsl_chunk(&self.shape, chunk, rows, targets.stream, row)
        if problem:
            fail(problem, f"chunk of {rows} fixed-size lists")

    def decode(self, buffers, const int64_t[:, ::1] ends not None, const int64_t[::1] counts not None, validity,
               values, int64_t row=0):
        """Decode several chunks that lie back to back.

        Parameters
        ----------
        buffers
            For each buffer of a chunk, the bytes of all chunks.
        ends
            int64 array of shape (`buffers`, chunks): the byte offset of the end of each chunk in each buffer.
        counts
            int64 array with the number of rows of each chunk.
        validity, values, row
            Targets, as for `decode_chunk`.

        Raises
        ------
        CodecError
            A chunk has the wrong size, or a target is too small.
        """
        cdef lc_bytes page[LC_FSL_LEVELS + 1]
        cdef lc_bytes chunk[LC_FSL_LEVELS + 1]
        cdef _Streams targets
        cdef list keep = []
        cdef int64_t k, s, begin, chunks = counts.shape[0], rows = 0
        cdef int problem = 0
        if ends.shape[0] != self.shape.streams or ends.shape[1] != chunks:
            raise CodecError(f"{ends.shape[0]} x {ends.shape[1]} ends for {self.shape.streams} x {chunks} buffers")
        if chunks == 0:
            return
        check_aligned(&ends[0, 0])
        check_aligned(&counts[0])
        self.load(buffers, page, keep)
        for k in range(chunks):
            if counts[k] < 0:
                raise CodecError(f"chunk {k} has {counts[k]} rows")
            self.check_rows(counts[k], rows)
            rows += counts[k]
            for s in range(self.shape.streams):
                begin = ends[s, k - 1] if k else 0
                if ends[s, k] < begin or ends[s, k] > page[s].size:
                    raise CodecError(f"chunk {k} ends at byte {ends[s, k]} of {page[s].size}, after {begin}")
        self.check_rows(rows, row)
        targets = self.targets(validity, values, row + rows)
        rows = row
        with nogil:
            for k in range(chunks):
                for s in range(self.shape.streams):
                    begin = ends[s, k - 1] if k else 0
                    chunk[s].data = page[s].data + begin
                    chunk[s].size = ends[s, k] - begin
                problem = lc_fsl_chunk(&self.shape, chunk, counts[k], targets.stream, rows)
                if problem:
                    break
                rows += counts[k]
        if problem:
            fail(problem, f"chunk {k} of fixed-size lists")

    def take_chunk(self, buffers, int64_t rows, const int64_t[::1] index not None, validity, values, int64_t row=0):
        """Decode the rows at given positions of one chunk.

        Parameters
        ----------
        buffers
            The buffers of the chunk, each with exactly the size of its rows.
        rows
            Number of rows in the chunk.
        index
            int64 array of positions below `rows`, in any order.
        validity, values, row
            Targets, as for `decode_chunk`.

        Raises
        ------
        CodecError
            A position is outside of the chunk, a buffer has the wrong size, or a target is too small.
        """
        cdef lc_bytes chunk[LC_FSL_LEVELS + 1]
        cdef _Streams targets
        cdef list keep = []
        cdef int64_t i, count = index.shape[0]
        cdef int problem
        self.check_rows(rows, 0)
        self.check_rows(count, row)
        check_aligned(&index[0])
        for i in range(count):
            if index[i] < 0 or index[i] >= rows:
                raise CodecError(f"row {index[i]} is not one of the {rows} rows of the chunk")
        self.load(buffers, chunk, keep)
        targets = self.targets(validity, values, row + count)
        with nogil:
            problem = lc_fsl_at(&self.shape, chunk, rows, &index[0], count, targets.stream, row)
        if problem:
            fail(problem, f"chunk of {rows} fixed-size lists")

    def pack_rows(self, validity, values, int64_t first, int64_t rows, out, int64_t stride=0):
        """Write full-zip rows of `row_bytes` bytes. The values of a row must be whole bytes.

        Parameters
        ----------
        validity, values, first, rows
            The rows, as for `encode`.
        out
            Output. To leave room in front of the first row, pass a slice.
        stride
            Distance between rows in bytes; 0 for back to back.

        Raises
        ------
        CodecError
            The values of a row are not whole bytes, or a buffer is too small.
        """
        cdef ByteView target = writable(out)
        cdef _Streams sources
        self.check_rows(rows, 0)
        self.check_whole()
        stride = stride if stride else self.shape.row_bytes
        self.check_stride(target, rows, stride)
        sources = self.sources(validity, values, rows, first)
        with nogil:
            lc_fsl_pack(&self.shape, sources.stream, rows, target.data, stride)

    def unpack_rows(self, source, int64_t rows, validity, values, int64_t row=0, int64_t stride=0,
                    const int64_t[::1] places=None):
        """Read full-zip rows to a position in the target bitmaps and values.

        Parameters
        ----------
        source
            Buffer with rows of `row_bytes` bytes.
        rows
            Number of rows.
        validity, values, row
            Targets, as for `decode_chunk`.
        stride
            Distance between rows in bytes; 0 for back to back.
        places
            int64 array with the byte offset of each row, instead of `stride`; None if the rows are equally spaced.

        Raises
        ------
        CodecError
            The values of a row are not whole bytes, a row is outside of `source`, or a target is too small.
        """
        cdef ByteView view = readable(source)
        cdef _Streams targets
        cdef lc_fsl_rows packed
        cdef int problem
        self.check_rows(rows, row)
        self.check_whole()
        packed.data, packed.size, packed.places = view.data, view.size, NULL
        packed.stride = stride if stride else self.shape.row_bytes
        if places is None:
            self.check_stride(view, rows, packed.stride)
        elif places.shape[0] < rows:
            raise CodecError(f"{places.shape[0]} places for {rows} rows")
        else:
            check_aligned(&places[0])
            packed.places = &places[0]
        targets = self.targets(validity, values, row + rows)
        with nogil:
            problem = lc_fsl_unpack(&self.shape, &packed, rows, targets.stream, row)
        if problem:
            fail(problem, f"places of {rows} rows of {self.shape.row_bytes} bytes in {view.size} bytes")
