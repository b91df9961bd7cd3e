"""Assembly of mini-block pages: the chunk words and the chunks, from the encoded buffers."""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.miniblock cimport LC_CHUNK_MAX_BUFFERS, LC_CHUNK_MAX_VALUES

from lancecodec.errors import CodecError

cdef extern from "kernels/miniblock_write.h" nogil:
    ctypedef struct lc_chunk_stream:
        const uint8_t *data
        const int64_t *ends
    ctypedef struct lc_chunk_plan:
        int64_t count
        const int64_t *values
        const int64_t *levels
        int64_t level_streams
        int64_t num_streams
        lc_chunk_stream *streams
        int64_t full
        int large
    int64_t lc_chunk_plan_check(const lc_chunk_plan *plan, int64_t *where)
    void lc_chunk_plan_assemble(const lc_chunk_plan *plan, uint8_t *words, uint8_t *chunks)


cdef class Assembly:
    """Chunks of a page to be written, checked against the limits of the format.

    Parameters
    ----------
    counts
        Number of values per chunk: powers of two from 2 to 32768; the last chunk may have any number from 1 on.
    values
        For each value buffer a pair: the bytes of all chunks back to back, and the byte offset of the end of each
        chunk.
    large
        Whether words and the sizes of value buffers have 32 bits (2.2 and later). Otherwise a chunk has at most 32 KiB.
    levels
        Number of level entries per chunk, at most 65,535; None if there are no level streams.
    level_streams
        Encoded repetition levels, then definition levels, if they exist; pairs as in `values`.
    full
        Number of values in a full chunk, for codecs whose chunks all have the same size (flat values, fixed-size lists,
        packed structs). A last chunk of this size then has its logarithm in its word, like in the files of the
        reference implementation. 0 for other codecs.

    Attributes
    ----------
    words_size : int
        Size of page buffer 0 in bytes.
    chunks_size : int
        Size of page buffer 1 in bytes.

    Raises
    ------
    CodecError
        A count, a size or a sum is not allowed. The message names the chunk.
    """

    cdef lc_chunk_plan plan
    cdef list keep
    cdef readonly int64_t words_size
    cdef readonly int64_t chunks_size

    def __cinit__(self, counts, values, bint large, *, levels=None, level_streams=(),
                  int64_t full=0):
        cdef int64_t where = 0
        self.keep = []
        self.plan.values, self.plan.count = self.integers(counts, "counts")
        self.plan.large, self.plan.full = large, full
        if levels is not None:
            self.plan.levels, where = self.integers(levels, "levels")
            if where != self.plan.count:
                raise CodecError(f"{where} level counts for {self.plan.count} chunks")
        if (levels is not None) != (len(level_streams) > 0) or len(level_streams) > 2:
            raise CodecError(f"{len(level_streams)} level streams; level counts must be given exactly if there are any")
        if len(values) > LC_CHUNK_MAX_BUFFERS:
            raise CodecError(f"chunks of {len(values)} value buffers; at most {LC_CHUNK_MAX_BUFFERS} are supported")
        self.plan.level_streams = len(level_streams)
        for data, ends in [*level_streams, *values]:
            self.add_stream(data, ends)
        with nogil:
            self.chunks_size = lc_chunk_plan_check(&self.plan, &where)
        if self.chunks_size < 0:
            self.refuse(where)
        self.words_size = self.plan.count * (4 if large else 2)

    cdef (const int64_t *, int64_t) integers(self, object values, str what) except *:
        """Copy integers, because the caller may change its own before the chunks are written."""
        cdef int64_t[::1] view
        import array
        kept = array.array("q", values)
        self.keep.append(kept)
        if len(kept) == 0:
            return NULL, 0
        view = kept
        return &view[0], view.shape[0]

    cdef int add_stream(self, object data, object ends) except -1:
        cdef ByteView view = readable(data)
        cdef const int64_t *places
        cdef int64_t n
        places, n = self.integers(ends, "ends")
        if n != self.plan.count:
            raise CodecError(f"{n} ends of a buffer for {self.plan.count} chunks")
        if n and places[n - 1] != view.size:
            raise CodecError(f"the last chunk of a buffer of {view.size} bytes ends at {places[n - 1]}")
        self.keep.append(view)
        self.plan.streams[self.plan.num_streams].data = view.data
        self.plan.streams[self.plan.num_streams].ends = places
        self.plan.num_streams += 1
        return 0

    cdef int refuse(self, int64_t chunk) except -1:
        limit = "2 GiB, each buffer below 4 GiB" if self.plan.large else "32 KiB, each buffer below 64 KiB"
        sizes = [self.plan.streams[s].ends[chunk] - (self.plan.streams[s].ends[chunk - 1] if chunk else 0)
                 for s in range(self.plan.num_streams)]
        raise CodecError(
            f"chunk {chunk} of {self.plan.count} with {self.plan.values[chunk]} values in buffers of {sizes} bytes "
            f"cannot be written: counts are powers of two from 2 to {LC_CHUNK_MAX_VALUES} (the last chunk: any from "
            f"1 on), levels at most 65,535, chunks at most {limit}")

    def write(self, words, chunks):
        """Write page buffers 0 and 1.

        Parameters
        ----------
        words
            Output of at least `words_size` bytes.
        chunks
            Output of at least `chunks_size` bytes.

        Raises
        ------
        CodecError
            An output is too small.
        """
        cdef ByteView places = writable(words), target = writable(chunks)
        if places.size < self.words_size or target.size < self.chunks_size:
            raise CodecError(f"outputs of {places.size} and {target.size} bytes are too small for {self.words_size} "
                             f"bytes of words and {self.chunks_size} bytes of chunks")
        with nogil:
            lc_chunk_plan_assemble(&self.plan, places.data, target.data)
