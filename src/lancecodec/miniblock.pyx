"""Mini-block pages of file versions 2.1 and 2.2: the positions of chunks, and the bytes of those that were read.

A `ChunkTable` is computed from the chunk words of a page alone and can be cached. `Chunks` holds the chunk bytes of one
read. `lancecodec.miniblock_values` and `lancecodec.miniblock_levels` decode their content.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, readable
from lancecodec.problems cimport fail as raise_problem, lc_bytes

from lancecodec.errors import CodecError

#: Address of empty decompressed chunks, because NULL marks a missing chunk.
cdef uint8_t NOTHING = 0


cdef class ChunkTable:
    """Positions and first values of the chunks of a page. It is immutable, so threads may share it.

    Parameters
    ----------
    words
        Page buffer 0: one word per chunk, of 16 bits, or 32 if `large`.
    num_items
        Number of values (visible items) in the page.
    chunks_size
        Size of page buffer 1 in bytes.
    large
        The ``has_large_chunk`` field of the layout.

    Attributes
    ----------
    large : bool
        Whether words have 32 bits.

    Raises
    ------
    CodecError
        The words do not add up to `chunks_size` bytes or `num_items` values, or a chunk has a number of values that the
        format does not allow.
    """

    def __cinit__(self, words, int64_t num_items, int64_t chunks_size, bint large):
        cdef ByteView view = readable(words)
        cdef int64_t width = 4 if large else 2, where = 0
        cdef int problem
        cdef int64_t *starts
        cdef int64_t *firsts
        if view.size % width:
            raise CodecError(f"chunk words of {view.size} bytes are not words of {width} bytes")
        if num_items < 0 or chunks_size < 0:
            raise CodecError(f"a page of {num_items} values in chunks of {chunks_size} bytes")
        self.large = large
        self.table.count = view.size // width
        self.table.items = num_items
        # Bytes objects, which the garbage collector does not track: there may be thousands of tables.
        self.start_bytes = PyBytes_FromStringAndSize(NULL, 8 * (self.table.count + 1))
        self.first_bytes = PyBytes_FromStringAndSize(NULL, 8 * (self.table.count + 1))
        starts = <int64_t *>PyBytes_AS_STRING(self.start_bytes)
        firsts = <int64_t *>PyBytes_AS_STRING(self.first_bytes)
        self.table.starts, self.table.firsts = starts, firsts
        with nogil:
            problem = lc_chunk_table_parse(view.data, large, chunks_size, &self.table, starts, firsts, &where)
        if problem == LC_CHUNK_SUM:
            raise CodecError(f"the words of {self.table.count} chunks do not add up to {chunks_size} bytes of chunks")
        if problem:
            raise CodecError(f"the word of chunk {where} contradicts its place among {self.table.count} chunks of "
                             f"{num_items} values")

    @property
    def num_chunks(self):
        """Number of chunks."""
        return self.table.count

    @property
    def num_items(self):
        """Number of values (visible items) in the page."""
        return self.table.items

    @property
    def largest(self):
        """Number of values in the largest chunk."""
        return self.table.largest

    @property
    def starts(self):
        """Read-only int64 memoryview of ``num_chunks + 1`` entries: first byte of each chunk in page buffer 1, then
        its size.
        """
        return memoryview(self.start_bytes).cast("q")

    @property
    def firsts(self):
        """Read-only int64 memoryview of ``num_chunks + 1`` entries: first value of each chunk, then `num_items`."""
        return memoryview(self.first_bytes).cast("q")

    def locate(self, int64_t item):
        """Find the chunk of a value.

        Parameters
        ----------
        item
            Position of the value in the page.

        Returns
        -------
        chunk : int
            Number of the chunk.
        position : int
            Position of the value in the chunk.

        Raises
        ------
        CodecError
            The value is outside of the page.
        """
        cdef int64_t chunk
        if item < 0 or item >= self.table.items:
            raise CodecError(f"value {item} is outside a page of {self.table.items} values")
        chunk = lc_chunk_find(&self.table, item)
        return chunk, item - self.table.firsts[chunk]

    def chunk_range(self, int64_t start, int64_t stop):
        """Find the chunks of a range of values.

        Parameters
        ----------
        start, stop
            Range ``[start, stop)`` of values in the page.

        Returns
        -------
        first : int
            First chunk with values of the range.
        last : int
            Chunk behind the last one. Both are 0 for an empty range.

        Raises
        ------
        CodecError
            The range is outside of the page.
        """
        if start < 0 or stop < start or stop > self.table.items:
            raise CodecError(f"values {start} to {stop} are outside a page of {self.table.items} values")
        if start == stop:
            return 0, 0
        return lc_chunk_find(&self.table, start), lc_chunk_find(&self.table, stop - 1) + 1


@cython.no_gc  # cannot be part of a reference cycle
cdef class Chunks:
    """Bytes of the chunks of one page, either all of them or those that were read.

    Load (and replace) chunks before decoding them. Afterwards threads may decode from this object at the same time. The
    buffers passed in are kept alive, not copied.

    Parameters
    ----------
    table
        `ChunkTable` of the page.
    num_buffers
        Number of value buffers per chunk, at most 16.
    repetition, definition
        Whether the chunks have such level streams.
    wrapped
        Whether value buffer 0 is compressed (general compression). Each chunk then needs its decompressed value buffer,
        set by `replace`, before it is decoded.
    data
        Bytes of all chunks, or None to `load` them later.

    Attributes
    ----------
    table : ChunkTable
        Positions of the chunks.

    Raises
    ------
    CodecError
        An argument is out of range, or `data` does not have the size of all chunks.
    MemoryError
        There is not enough memory.
    """

    def __cinit__(self, ChunkTable table not None, int64_t num_buffers=1, *, bint repetition=False,
                  bint definition=False, bint wrapped=False, data=None):
        cdef int64_t count = table.table.count
        if num_buffers < 0 or num_buffers > LC_CHUNK_MAX_BUFFERS:
            raise CodecError(f"chunks of {num_buffers} value buffers; at most {LC_CHUNK_MAX_BUFFERS} are supported")
        if wrapped and num_buffers == 0:
            raise CodecError("chunks without value buffers cannot be compressed")
        self.table = table
        self.data = <const uint8_t **>PyMem_Calloc(count + 1, sizeof(uint8_t *))
        if self.data == NULL:
            raise MemoryError()
        if wrapped:
            self.plain = <lc_bytes *>PyMem_Calloc(count + 1, sizeof(lc_bytes))
            if self.plain == NULL:
                raise MemoryError()
        self.chunks.table = table.table
        self.chunks.data, self.chunks.plain, self.chunks.buffers = self.data, self.plain, num_buffers
        self.chunks.repetition, self.chunks.definition, self.chunks.large = repetition, definition, table.large
        if data is not None and count:
            if self.load(data) != count:
                raise CodecError("the data does not have the size of all chunks")

    def __dealloc__(self):
        PyMem_Free(self.data)
        PyMem_Free(self.plain)

    cdef int keep(self, ByteView view) except -1:
        """Keep a buffer alive as long as this object. In most cases there is one."""
        if self.view is None:
            self.view = view
        elif self.others is None:
            self.others = [view]
        else:
            self.others.append(view)
        return 0

    cdef int check_range(self, int64_t start, int64_t stop) except -1:
        if start < 0 or stop < start or stop > self.chunks.table.items:
            raise CodecError(f"values {start} to {stop} are outside a page of {self.chunks.table.items} values")
        return 0

    cdef int check_chunk(self, int64_t chunk) except -1:
        if chunk < 0 or chunk >= self.chunks.table.count:
            raise CodecError(f"chunk {chunk} is outside a page of {self.chunks.table.count} chunks")
        return 0

    cdef int fail(self, int problem, int64_t where, str what) except -1:
        if problem == LC_CHUNK_ITEM:
            raise CodecError(f"{what}: requested position {where} is outside a page of "
                             f"{self.chunks.table.items} values")
        if problem == LC_CHUNK_MISSING:
            raise CodecError(f"{what}: chunk {where} was not loaded")
        if problem == LC_CHUNK_WRAPPED:
            raise CodecError(f"{what}: chunk {where} is compressed and was not replaced by its decompressed bytes")
        return raise_problem(problem, f"{what}, chunk {where} of {self.chunks.table.count}")

    def load(self, data, int64_t first=0):
        """Add the bytes of whole chunks.

        Parameters
        ----------
        data
            Bytes of one or more consecutive chunks.
        first
            Number of the first chunk in `data`.

        Returns
        -------
        int
            Number of chunks in `data`.

        Raises
        ------
        CodecError
            `data` is not a whole number of chunks, or `first` is outside of the page.
        """
        cdef ByteView view = readable(data)
        cdef int64_t i, stop = first, begin
        cdef const int64_t *starts = self.chunks.table.starts
        cdef const uint8_t **places = self.data
        cdef const uint8_t *bytes_ = view.data
        self.check_chunk(first)
        begin = starts[first]
        if first == 0 and starts[self.chunks.table.count] == view.size:
            stop = self.chunks.table.count
        while stop < self.chunks.table.count and starts[stop + 1] - begin <= view.size:
            stop += 1
        if starts[stop] - begin != view.size or stop == first:
            raise CodecError(f"{view.size} bytes are not whole chunks from chunk {first} on")
        self.keep(view)
        for i in range(first, stop):
            places[i] = bytes_ + (starts[i] - begin)
        return stop - first

    cdef int open(self, int64_t chunk, lc_chunk *opened) except -1:
        self.check_chunk(chunk)
        cdef int problem = lc_chunk_parts(&self.chunks, chunk, opened)
        if problem:
            self.fail(problem, chunk, "header")
        return 0

    def header(self, int64_t chunk):
        """Read the header of a chunk.

        Parameters
        ----------
        chunk
            Number of the chunk.

        Returns
        -------
        tuple
            Number of levels as stored, sizes in bytes of the repetition and of the definition stream (None for a stream
            that does not exist), and a tuple with the sizes of the value buffers.

        Raises
        ------
        CodecError
            The chunk was not loaded, or its header contradicts its size.
        """
        cdef lc_chunk opened
        self.open(chunk, &opened)
        return (opened.levels, opened.repetition.size if self.chunks.repetition else None,
                opened.definition.size if self.chunks.definition else None,
                tuple([opened.values[i].size for i in range(self.chunks.buffers)]))

    def stored(self, int64_t chunk, int64_t buffer=0):
        """Copy a value buffer of a chunk as stored in the file, for decompression.

        Parameters
        ----------
        chunk
            Number of the chunk.
        buffer
            Number of the value buffer.

        Returns
        -------
        bytes
            Content of the buffer.

        Raises
        ------
        CodecError
            The chunk was not loaded, its header contradicts its size, or there is no such buffer.
        """
        cdef lc_chunk opened
        cdef lc_bytes part
        if buffer < 0 or buffer >= self.chunks.buffers:
            raise CodecError(f"value buffer {buffer} of chunks with {self.chunks.buffers}")
        self.open(chunk, &opened)
        part = opened.values[buffer]
        if part.size == 0:
            return b""
        return part.data[:part.size]

    def replace(self, int64_t chunk, plain):
        """Set the decompressed content of value buffer 0 of a chunk.

        Parameters
        ----------
        chunk
            Number of the chunk.
        plain
            The decompressed bytes.

        Raises
        ------
        CodecError
            There is no such chunk, or the chunks are not `wrapped`.
        """
        cdef ByteView view = readable(plain)
        self.check_chunk(chunk)
        if self.plain == NULL:
            raise CodecError("the values of these chunks are not compressed; there is nothing to replace")
        self.keep(view)
        self.plain[chunk].data = view.data if view.size else &NOTHING
        self.plain[chunk].size = view.size

    def is_ready(self, int64_t chunk):
        """Check that a chunk was loaded and, if `wrapped`, replaced.

        Parameters
        ----------
        chunk
            Number of the chunk.

        Returns
        -------
        bool
            Whether the chunk can be decoded.

        Raises
        ------
        CodecError
            There is no such chunk.
        """
        self.check_chunk(chunk)
        return self.data[chunk] != NULL and (self.plain == NULL or self.plain[chunk].data != NULL)
