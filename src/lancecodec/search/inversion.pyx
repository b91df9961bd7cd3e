"""Building of full-text indices: from the words of documents to posting lists, and these in blocks with skip data.

Blocks have 128 or 256 postings in 4 or 8 interleaved lanes of 32 values. Skip data have, for each block and for every
32 blocks, the pairs of frequency and length of a document that no other pair beats.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uintptr_t
from libc.stdlib cimport free, malloc

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_OK, fail

from lancecodec.errors import CodecError

cdef extern from "kernels/inversion.h" nogil:
    ctypedef struct lc_documents:
        const void *words
        const void *positions
        const uint32_t *lengths
        int64_t first, count, size
        int word_bytes, position_bytes
    ctypedef struct lc_lists:
        uint32_t low, high
        int64_t *next
        int64_t *next_step
        uint32_t *seen
        uint32_t *last
        uint32_t *documents
        uint32_t *frequencies
        uint32_t *steps
        int64_t room, steps_room
    int lc_codes_rank(uint32_t *codes, int64_t n, const uint32_t *ranks, int64_t count)
    int lc_words_count(const lc_documents *documents, int64_t count, uint32_t *seen, int64_t *found,
                       int64_t *occurrences)
    int lc_short_codes_rank(uint16_t *codes, int64_t n, const uint32_t *ranks, int64_t count)
    int lc_lists_fill(const lc_documents *documents, int positioned, lc_lists *out)

cdef extern from "kernels/posting_lists.h" nogil:
    int64_t LC_IMPACT_GROUP, LC_IMPACT_HEAD, LC_IMPACT_PAIR
    ctypedef struct lc_written:
        uint8_t *data
        int64_t size, room
    ctypedef struct lc_postings_in:
        const int64_t *lengths
        int64_t words
        const uint32_t *documents
        const uint32_t *frequencies
        int64_t postings
        const uint32_t *document_lengths
        const float *norms
        int64_t num_documents
        const float *limits
        int size, fixed_tail
    ctypedef struct lc_postings_out:
        lc_written blocks, impacts
        int64_t *block_ends
        int64_t *impact_ends
        int64_t num_blocks, num_impacts, blocks_room, impacts_room
        float *best
    int lc_lists_write(const lc_postings_in *lists, lc_postings_out *out, lc_written *groups, int64_t *group_ends,
                       int64_t groups_room)
    int lc_positions_write(const int64_t *lengths, int64_t words, const uint32_t *frequencies, int64_t postings,
                           const uint32_t *steps, int64_t occurrences, int64_t size, lc_written *out, int64_t *ends,
                           int64_t ends_room)

cdef const int64_t *longs(const int64_t[::1] values) except? NULL:
    cdef const int64_t *first = &values[0] if values.shape[0] else NULL
    check_aligned(first)
    return first


cdef int64_t *longs_out(int64_t[::1] values) except? NULL:
    cdef int64_t *first = &values[0] if values.shape[0] else NULL
    check_aligned(first)
    return first


cdef inline const uint32_t *words_of(const uint32_t[::1] values):
    return &values[0] if values.shape[0] else NULL


cdef inline uint32_t *words_out(uint32_t[::1] values):
    return &values[0] if values.shape[0] else NULL


ctypedef fused code:
    uint16_t
    uint32_t


def rank_codes(code[::1] codes not None, const uint32_t[::1] ranks not None):
    """Replace codes by their ranks.

    Parameters
    ----------
    codes
        Uint16 or uint32 array of codes, which is changed.
    ranks
        Uint32 array of the rank of each code.

    Raises
    ------
    CodecError
        There is no such code, or a rank has more bits. Then some codes are replaced.
    """
    cdef int64_t n = codes.shape[0], count = ranks.shape[0]
    cdef code *first = &codes[0] if n else NULL
    cdef const uint32_t *known = words_of(ranks)
    cdef int problem
    with nogil:
        if code is uint16_t:
            problem = lc_short_codes_rank(first, n, known, count)
        else:
            problem = lc_codes_rank(first, n, known, count)
    if problem != LC_OK:
        fail(problem, "codes of tokens")


cdef int element_bytes(values) except -1:
    """Return the size of the numbers of an array without gaps."""
    return memoryview(values).itemsize


cdef class WordDocuments:
    """Consecutive documents with their words.

    Parameters
    ----------
    words
        Uint16 or uint32 array of the words of all documents.
    lengths
        Uint32 array: number of words of each document.
    first
        Number of the first document, from 0 on.
    positions
        Uint8, uint16 or uint32 array of the positions of the words in their documents; None if they are not kept.

    Raises
    ------
    CodecError
        There are too many documents, or not as many positions as words, or numbers have another size.
    """

    cdef lc_documents of
    cdef object keep

    def __cinit__(self, words not None, const uint32_t[::1] lengths not None, int64_t first=0, positions=None):
        cdef ByteView content = readable(words), places = readable(b"" if positions is None else positions)
        cdef int64_t count = lengths.shape[0]
        self.of.word_bytes = element_bytes(words)
        self.of.position_bytes = 0 if positions is None else element_bytes(positions)
        if first < 0 or first >= 1 << 32 or count >= (1 << 32) - 1 - first:
            raise CodecError(f"{count} documents from number {first} on have no numbers of 32 bits")
        if self.of.word_bytes not in (2, 4) or self.of.position_bytes not in (0, 1, 2, 4):
            raise CodecError(f"words of {self.of.word_bytes} bytes, or positions of {self.of.position_bytes}")
        self.of.size = content.size // self.of.word_bytes
        if positions is not None and places.size != self.of.size * self.of.position_bytes:
            raise CodecError(f"{places.size} bytes are not the positions of {self.of.size} words")
        if <uintptr_t>content.data % self.of.word_bytes or <uintptr_t>places.data % max(self.of.position_bytes, 1):
            raise CodecError("words or positions are not aligned to their size; copy them first")
        self.keep = content, lengths, places
        self.of.words, self.of.positions = content.data, places.data
        self.of.lengths = words_of(lengths)
        self.of.first, self.of.count = first, count

    def count(self, uint32_t[::1] seen not None, int64_t[::1] documents not None, int64_t[::1] occurrences not None):
        """Add the documents and the occurrences of each word.

        Parameters
        ----------
        seen
            Uint32 array of zeros for each word, kept from one part of the documents to the next.
        documents, occurrences
            Int64 arrays of the numbers of each word, which are changed.

        Raises
        ------
        CodecError
            A word or a length is out of range, or the arrays differ in length.
        """
        cdef int64_t n = seen.shape[0]
        cdef int64_t *found = longs_out(documents)
        cdef int64_t *often = longs_out(occurrences)
        cdef uint32_t *marks = words_out(seen)
        cdef int problem
        if documents.shape[0] != n or occurrences.shape[0] != n:
            raise CodecError(f"{documents.shape[0]} and {occurrences.shape[0]} numbers are not those of {n} words")
        with nogil:
            problem = lc_words_count(&self.of, n, marks, found, often)
        if problem != LC_OK:
            fail(problem, "words of documents")

    def fill(self, WordLists lists not None):
        """Add the documents to posting lists.

        Parameters
        ----------
        lists
            The lists of a range of words.

        Raises
        ------
        CodecError
            A length is out of range, or the lists have less room than they need.
        """
        cdef int problem
        cdef int positioned = lists.with_steps
        with nogil:
            problem = lc_lists_fill(&self.of, positioned, &lists.of)
        if problem != LC_OK:
            fail(problem, "posting lists")


cdef class WordLists:
    """Posting lists of a range of words, which `WordDocuments.fill` fills.

    Parameters
    ----------
    low
        First word.
    next, next_step
        Int64 arrays for the words of the range: where the next posting and the next step go. They are changed.
    seen, last
        Uint32 arrays of as many zeros.
    documents, frequencies
        Uint32 arrays for the postings.
    steps
        Uint32 array for the distances of positions; None if they are not kept.

    Raises
    ------
    CodecError
        The arrays differ in length.
    """

    cdef lc_lists of
    cdef bint with_steps
    cdef object keep

    def __cinit__(self, int64_t low, int64_t[::1] next not None, int64_t[::1] next_step not None,
                  uint32_t[::1] seen not None, uint32_t[::1] last not None, uint32_t[::1] documents not None,
                  uint32_t[::1] frequencies not None, uint32_t[::1] steps=None):
        cdef int64_t n = next.shape[0]
        if next_step.shape[0] != n or seen.shape[0] != n or last.shape[0] != n:
            raise CodecError("the arrays of the words of a range differ in length")
        if documents.shape[0] != frequencies.shape[0]:
            raise CodecError(f"{documents.shape[0]} documents do not have {frequencies.shape[0]} frequencies")
        if low < 0 or low >= 1 << 32 or n >= (1 << 32) - low:
            raise CodecError(f"{n} words from {low} on have no numbers of 32 bits")
        self.keep = next, next_step, seen, last, documents, frequencies, steps
        self.with_steps = steps is not None
        self.of.low, self.of.high = <uint32_t>low, <uint32_t>(low + n)
        self.of.next, self.of.next_step = longs_out(next), longs_out(next_step)
        self.of.seen, self.of.last = words_out(seen), words_out(last)
        self.of.documents, self.of.frequencies = words_out(documents), words_out(frequencies)
        self.of.room = documents.shape[0]
        self.of.steps, self.of.steps_room = NULL, 0
        if steps is not None:
            self.of.steps, self.of.steps_room = words_out(steps), steps.shape[0]


cdef class DocumentNorms:
    """Documents of a partition, as far as scores depend on them.

    Parameters
    ----------
    lengths
        Uint32 array of the numbers of their words.
    norms
        Float32 array of what is added to a frequency to find the share of the best possible score.

    Raises
    ------
    CodecError
        The arrays differ in length.
    """

    cdef const uint32_t *lengths
    cdef const float *norms
    cdef int64_t count
    cdef object keep

    def __cinit__(self, const uint32_t[::1] lengths not None, const float[::1] norms not None):
        if lengths.shape[0] != norms.shape[0]:
            raise CodecError(f"{lengths.shape[0]} documents do not have {norms.shape[0]} norms")
        self.keep = lengths, norms
        self.count = lengths.shape[0]
        self.lengths = words_of(lengths)
        self.norms = &norms[0] if self.count else NULL


cdef int64_t longest_of(const int64_t[::1] lengths):
    cdef int64_t i, most = 0
    for i in range(lengths.shape[0]):
        most = max(most, lengths[i])
    return most


def write_lists(const int64_t[::1] lengths not None, const uint32_t[::1] documents not None,
                const uint32_t[::1] frequencies not None, DocumentNorms norms not None,
                const float[::1] limits not None, int size, bint fixed_tail, blocks, int64_t[::1] block_ends not None,
                impacts, int64_t[::1] impact_ends not None, float[::1] best not None):
    """Encode posting lists in blocks, with skip data.

    Parameters
    ----------
    lengths
        Int64 array of the numbers of documents of each word, at least 1.
    documents, frequencies
        Uint32 arrays of the documents of all words, ascending for each, and how often it occurs in each.
    norms
        All documents.
    limits
        Float32 array of the highest possible score of each word.
    size
        Postings of a full block, 128 or 256. Blocks of 128 begin with their best score.
    fixed_tail
        Whether short blocks have numbers of 32 bits instead of varints.
    blocks, impacts
        Outputs for bytes.
    block_ends, impact_ends
        Int64 arrays for the end of each block, and of each entry of the skip data: for each word, those of its blocks
        and then those of every 32 blocks.
    best
        Float32 array for the best score of each word.

    Returns
    -------
    tuple of int
        Bytes of blocks and of skip data.

    Raises
    ------
    CodecError
        A size is wrong, a document does not exist or does not ascend, or a frequency is 0.
    OffsetOverflowError
        An output is too small.
    MemoryError
        There is not enough memory.
    """
    cdef ByteView block_bytes = writable(blocks), impact_bytes = writable(impacts)
    cdef lc_postings_in lists
    cdef lc_written groups
    cdef int64_t most = longest_of(lengths), groups_room
    cdef int problem
    if size != 128 and size != 256:
        raise CodecError(f"blocks of {size} documents, not 128 or 256")
    if limits.shape[0] != lengths.shape[0] or best.shape[0] != lengths.shape[0]:
        raise CodecError(f"{limits.shape[0]} limits, {best.shape[0]} scores, but {lengths.shape[0]} words")
    if frequencies.shape[0] != documents.shape[0] or most > documents.shape[0]:
        raise CodecError(f"{documents.shape[0]} documents, {frequencies.shape[0]} frequencies, a list of {most}")
    lists.lengths, lists.words = longs(lengths), lengths.shape[0]
    lists.documents, lists.frequencies, lists.postings = words_of(documents), words_of(frequencies), documents.shape[0]
    lists.document_lengths, lists.norms, lists.num_documents = norms.lengths, norms.norms, norms.count
    lists.limits = &limits[0] if limits.shape[0] else NULL
    lists.size, lists.fixed_tail = size, fixed_tail
    groups_room = most // (size * LC_IMPACT_GROUP) + 1
    groups.size, groups.room = 0, LC_IMPACT_HEAD * groups_room + LC_IMPACT_PAIR * most
    cdef lc_postings_out *out = <lc_postings_out *>malloc(sizeof(lc_postings_out))
    cdef int64_t *group_ends = <int64_t *>malloc(8 * groups_room)
    groups.data = <uint8_t *>malloc(groups.room)
    try:
        if out == NULL or group_ends == NULL or groups.data == NULL:
            raise MemoryError
        out.blocks.data, out.blocks.size, out.blocks.room = block_bytes.data, 0, block_bytes.size
        out.impacts.data, out.impacts.size, out.impacts.room = impact_bytes.data, 0, impact_bytes.size
        out.block_ends, out.num_blocks, out.blocks_room = longs_out(block_ends), 0, block_ends.shape[0]
        out.impact_ends, out.num_impacts, out.impacts_room = longs_out(impact_ends), 0, impact_ends.shape[0]
        out.best = &best[0] if best.shape[0] else NULL
        with nogil:
            problem = lc_lists_write(&lists, out, &groups, group_ends, groups_room)
        if problem != LC_OK:
            fail(problem, "posting lists")
        return out.blocks.size, out.impacts.size
    finally:
        free(out)
        free(group_ends)
        free(groups.data)


def write_positions(const int64_t[::1] lengths not None, const uint32_t[::1] frequencies not None,
                    const uint32_t[::1] steps not None, int64_t size, out, int64_t[::1] ends not None):
    """Encode the positions of posting lists.

    Parameters
    ----------
    lengths
        Int64 array of the numbers of documents of each word.
    frequencies
        Uint32 array of the occurrences of each word in each of its documents.
    steps
        Uint32 array of the distances of all occurrences.
    size
        Postings of a full block, 128 or 256.
    out
        Output for bytes.
    ends
        Int64 array for the end of the positions of each block.

    Returns
    -------
    int
        Number of bytes.

    Raises
    ------
    CodecError
        A size is wrong, or the numbers do not add up.
    OffsetOverflowError
        The output is too small.
    """
    cdef ByteView view = writable(out)
    cdef lc_written written
    cdef const int64_t *list_lengths = longs(lengths)
    cdef const uint32_t *often = words_of(frequencies)
    cdef const uint32_t *distances = words_of(steps)
    cdef int64_t *found = longs_out(ends)
    cdef int64_t words = lengths.shape[0], postings = frequencies.shape[0], count = steps.shape[0]
    cdef int64_t room = ends.shape[0]
    cdef int problem
    if size != 128 and size != 256:
        raise CodecError(f"blocks of {size} documents, not 128 or 256")
    written.data, written.size, written.room = view.data, 0, view.size
    with nogil:
        problem = lc_positions_write(list_lengths, words, often, postings, distances, count, size, &written, found,
                                     room)
    if problem != LC_OK:
        fail(problem, "positions")
    return written.size
