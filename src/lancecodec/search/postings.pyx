"""Posting lists of full-text indices, and searches in them: the best documents for some terms by BM25, or all of them.

A document scores weight * f / (f + norm) for a term, where f is the frequency of the term in the document, and the norm
grows with the length of the document. Numbers are 32-bit floats, and the scores of terms are added in their order.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free

from lancecodec.buffers cimport ByteView, readable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/postings.h" nogil:
    ctypedef struct lc_term:
        uint8_t *data
        int64_t *starts
        float *bounds
        float bound
        int64_t length
        int64_t blocks
        int64_t documents
        int size
        int fixed
    int lc_term_open(lc_term *t, lc_bytes data, const uint8_t *offsets, int64_t count)
    void lc_term_close(lc_term *t)
    int lc_term_decode(const lc_term *t, int64_t block, uint32_t *docs, uint32_t *counts)
    void lc_term_read_impacts(lc_term *t, lc_bytes data, const uint8_t *offsets, int64_t count, const float *norms)
    int lc_term_measure(lc_term *t, const float *norms)

cdef extern from "kernels/term_positions.h" nogil:
    int LC_POSITIONS_LISTED, LC_POSITION_KINDS
    ctypedef struct lc_positions:
        uint8_t *data
        int64_t *starts
        int64_t *owners
        int64_t parts
        int64_t documents
        int kind
    ctypedef struct lc_block_positions:
        uint32_t *values
    int lc_positions_open(lc_positions *p, lc_bytes data, const uint8_t *starts, const uint8_t *owners)
    void lc_positions_close(lc_positions *p)

cdef extern from "kernels/posting_search.h" nogil:
    ctypedef struct lc_cursor:
        const lc_term *term
        lc_block_positions found
    ctypedef struct lc_hits:
        uint32_t *docs
        float *scores
        int64_t n
        int64_t k
        int64_t room
        double floor
    ctypedef struct lc_phrase:
        const int32_t *cursors
        const int32_t *places
        int64_t n
        int64_t slop
        int64_t *reached
        int64_t *next
        int64_t room
    ctypedef struct lc_search:
        lc_cursor *cursors
        lc_cursor **order
        int64_t n
        int64_t documents
        const float *norms
        const uint8_t *allowed
        lc_phrase *phrase
        lc_hits *hits
    void lc_cursor_start(lc_cursor *c, const lc_term *term, const lc_positions *positions, float weight)
    int lc_search_run(lc_search *s, int all)

#: Ways of keeping positions: one list for each document, blocks with packed groups, blocks of varints.
LISTED, PACKED, VARINT = range(3)
#: Number of codes of document lengths.
CODES = 256
# Postings up to which a search keeps the GIL: other threads would keep it for longer than the search lasts.
cdef int64_t BRIEF = 1 << 17
cdef int64_t LARGEST_SLOP = <int64_t>1 << 40


cdef lc_bytes bytes_of(ByteView view):
    cdef lc_bytes found
    found.data, found.size = view.data, view.size
    return found


cdef class Positions:
    """Positions of a term in its documents. The bytes are copied.

    Parameters
    ----------
    data
        Bytes of all positions.
    starts
        64-bit offsets into `data`: of each block, or with one list for each document of each of its parts; and the end.
    owners
        Number of the first part of each document and the number of all parts, 64 bits each; None with blocks.
    kind
        How they are kept.

    Attributes
    ----------
    nbytes : int
        Bytes of memory.

    Raises
    ------
    CodecError
        Offsets decrease or exceed the data.
    MemoryError
        There is not enough memory.
    """

    cdef lc_positions positions
    cdef readonly int64_t nbytes

    def __cinit__(self, data, starts, owners, int kind):
        cdef ByteView content = readable(data), begins = readable(starts)
        cdef ByteView firsts = readable(b"" if owners is None else owners)
        cdef lc_bytes source = bytes_of(content)
        cdef int problem
        if not 0 <= kind < LC_POSITION_KINDS or begins.size < 8 or (kind == LC_POSITIONS_LISTED) != (firsts.size >= 8):
            raise CodecError("positions need offsets, and those of documents if each has a list")
        self.positions.kind = kind
        self.positions.parts = begins.size // 8 - 1
        self.positions.documents = max(firsts.size // 8 - 1, 0)
        with nogil:
            problem = lc_positions_open(&self.positions, source, begins.data, firsts.data)
        if problem != LC_OK:
            fail(problem, "positions")
        self.nbytes = self.positions.starts[self.positions.parts] + begins.size + firsts.size

    def __dealloc__(self):
        lc_positions_close(&self.positions)


cdef class Term:
    """Posting list of a term. The bytes are copied.

    Parameters
    ----------
    data
        Bytes of all blocks.
    offsets
        64-bit offsets of the blocks into `data`, and the end of the last one.
    length
        Number of documents of the list.
    documents
        Number of all documents.
    size
        Documents of a block, 128 or 256.
    fixed
        True if a short block has numbers of 32 bits instead of varints.

    Attributes
    ----------
    length : int
    documents : int
    nbytes : int
        Bytes of memory.

    Raises
    ------
    CodecError
        The list contradicts itself.
    MemoryError
        There is not enough memory.
    """

    cdef lc_term term
    cdef readonly int64_t nbytes

    def __cinit__(self, data, offsets, int64_t length, int64_t documents, int size, bint fixed):
        cdef ByteView content = readable(data), ends = readable(offsets)
        cdef lc_bytes source = bytes_of(content)
        cdef int problem
        if size != 128 and size != 256:
            raise CodecError(f"blocks have 128 or 256 documents, not {size}")
        if ends.size < 16 or ends.size % 8:
            raise CodecError(f"{ends.size} bytes are not offsets of 64 bits, at least two")
        self.term.length, self.term.documents, self.term.size, self.term.fixed = length, documents, size, fixed
        with nogil:
            problem = lc_term_open(&self.term, source, ends.data, ends.size // 8)
        if problem != LC_OK:
            fail(problem, "postings")
        self.nbytes = self.term.starts[self.term.blocks] + 2 * ends.size

    def __dealloc__(self):
        lc_term_close(&self.term)

    @property
    def length(self):
        """Number of documents of the list."""
        return self.term.length

    @property
    def documents(self):
        """Number of all documents."""
        return self.term.documents

    @property
    def bound(self):
        """Most that a document of the list scores, for a weight of 1."""
        return self.term.bound

    def bound_by_impacts(self, data, offsets, const float[::1] norms):
        """Set the bounds of blocks from skip data. Entries that are malformed or missing set no bound.

        Parameters
        ----------
        data
            Bytes of the entries.
        offsets
            64-bit offsets of the entries into `data`, and the end of the last one. Those of blocks come first.
        norms
            Norm of each of the codes of a length.

        Raises
        ------
        CodecError
            There are not `CODES` norms.
        """
        cdef ByteView content = readable(data), ends = readable(offsets)
        cdef lc_bytes source = bytes_of(content)
        if norms.shape[0] != CODES:
            raise CodecError(f"{norms.shape[0]} norms, but there are {CODES} codes of lengths")
        with nogil:
            lc_term_read_impacts(&self.term, source, ends.data, ends.size // 8, &norms[0])

    def bound_by_documents(self, const float[::1] norms):
        """Decode the list to set the bounds of its blocks.

        Parameters
        ----------
        norms
            Norm of each of all documents.

        Raises
        ------
        CodecError
            The list contradicts itself, or the number of norms is wrong.
        """
        cdef int problem
        if norms.shape[0] != self.term.documents:
            raise CodecError(f"{norms.shape[0]} norms for {self.term.documents} documents")
        with nogil:
            problem = lc_term_measure(&self.term, &norms[0])
        if problem != LC_OK:
            fail(problem, "postings")

    def decode(self, uint32_t[::1] docs, uint32_t[::1] counts):
        """Write the documents and the frequencies of the list.

        Parameters
        ----------
        docs, counts
            Outputs of `length` places.

        Raises
        ------
        CodecError
            The list contradicts itself, or an output has another size.
        """
        cdef int problem = LC_OK
        cdef int64_t b, at = 0
        cdef uint32_t[256] some, often
        cdef int64_t i, n
        if docs.shape[0] != self.term.length or counts.shape[0] != self.term.length:
            raise CodecError(f"outputs must have {self.term.length} places")
        with nogil:
            for b in range(self.term.blocks):
                problem = lc_term_decode(&self.term, b, some, often)
                if problem != LC_OK:
                    break
                n = min(<int64_t>self.term.size, self.term.length - at)
                for i in range(n):
                    docs[at + i], counts[at + i] = some[i], often[i]
                at += n
        if problem != LC_OK:
            fail(problem, "postings")


cdef class Phrase:
    """Order in which terms must follow each other.

    Parameters
    ----------
    terms
        Numbers of the terms of a search, one for each word of the phrase.
    places
        Place of each word in the phrase.
    slop
        How many places later than in the phrase a word may follow the one before.

    Raises
    ------
    CodecError
        There are not as many places as terms, or the slop is out of range.
    """

    cdef const int32_t[::1] terms, places
    cdef int64_t slop

    def __cinit__(self, const int32_t[::1] terms, const int32_t[::1] places, int64_t slop):
        if terms.shape[0] != places.shape[0] or not terms.shape[0] or not 0 <= slop < LARGEST_SLOP:
            raise CodecError(f"a phrase of {terms.shape[0]} words needs as many places, at least one")
        self.terms, self.places, self.slop = terms, places, slop


cdef class _Run:
    """Memory of one search."""

    cdef lc_search search
    cdef lc_hits hits
    cdef lc_phrase phrase

    def __cinit__(self, int64_t n):
        self.search.n = n
        self.search.hits = &self.hits
        self.search.cursors = <lc_cursor *>calloc(n + 1, sizeof(lc_cursor))
        self.search.order = <lc_cursor **>calloc(n + 1, sizeof(lc_cursor *))
        if self.search.cursors == NULL or self.search.order == NULL:
            raise MemoryError("cursors of a search")

    def __dealloc__(self):
        cdef int64_t i
        if self.search.cursors != NULL:
            for i in range(self.search.n):
                free(self.search.cursors[i].found.values)
        free(self.search.cursors)
        free(self.search.order)
        free(self.phrase.reached)
        free(self.phrase.next)

    cdef int follow(self, Phrase wanted) except -1:
        """Add a phrase to the search, whose terms are checked."""
        cdef int64_t i
        for i in range(wanted.terms.shape[0]):
            if not 0 <= wanted.terms[i] < self.search.n:
                raise CodecError(f"a phrase has the term {wanted.terms[i]} of {self.search.n}")
        self.phrase.cursors, self.phrase.places = &wanted.terms[0], &wanted.places[0]
        self.phrase.n, self.phrase.slop = wanted.terms.shape[0], wanted.slop
        self.search.phrase = &self.phrase
        return 0


def search(list terms, const float[::1] weights, const float[::1] norms, allowed, bint every, int64_t best,
           double above, uint32_t[::1] docs, float[::1] scores, Phrase phrase=None, list positions=None):
    """Find documents by terms.

    Parameters
    ----------
    terms
        Posting lists, with the same number of documents.
    weights
        Weight of each term, finite and not negative.
    norms
        Norm of each document.
    allowed
        A bit for each document that may be found; None for all.
    every
        True for documents that have all terms, False for those that have any of them.
    best
        Number of documents to find, those with the largest scores first; 0 for all, in their order.
    above
        Only documents with larger scores are found, if `best` is not 0.
    docs, scores
        Outputs: numbers of the documents, and their scores. `best` places, or as many as could be found.
    phrase
        Order of the terms, all of which are required then; None for any.
    positions
        Positions of each term; needed for a phrase.

    Returns
    -------
    int
        Number of documents found.

    Raises
    ------
    CodecError
        A list contradicts itself, or arguments do not fit together.
    OffsetOverflowError
        The outputs are too small.
    MemoryError
        There is not enough memory.
    """
    cdef int64_t n = len(terms), i, postings = 0
    cdef _Run run = _Run(n)
    cdef ByteView bits = readable(b"" if allowed is None else allowed)
    cdef Term term
    cdef Positions places
    cdef const lc_positions *found
    cdef int problem
    if weights.shape[0] != n or docs.shape[0] != scores.shape[0] or best < 0 or best > docs.shape[0]:
        raise CodecError(f"{n} terms, {weights.shape[0]} weights and {docs.shape[0]} places do not fit together")
    for i in range(n):
        term = terms[i]
        places = None if positions is None else positions[i]
        if term.term.documents != norms.shape[0] or (phrase is not None and places is None):
            raise CodecError(f"a term of {term.term.documents} documents, but there are {norms.shape[0]}")
        if not 0 <= weights[i] <= 1e30:
            raise CodecError(f"a weight is {weights[i]}")
        found = NULL if places is None else &places.positions
        lc_cursor_start(&run.search.cursors[i], &term.term, found, weights[i])
        run.search.order[i] = &run.search.cursors[i]
    if allowed is not None and bits.size * 8 < norms.shape[0]:
        raise CodecError(f"{bits.size} bytes have too few bits for {norms.shape[0]} documents")
    if not n:
        return 0
    run.search.documents, run.search.norms = norms.shape[0], &norms[0]
    run.search.allowed = NULL if allowed is None else bits.data
    run.hits.k, run.hits.room, run.hits.floor = best, docs.shape[0], above
    if docs.shape[0]:
        run.hits.docs, run.hits.scores = &docs[0], &scores[0]
    if phrase is not None:
        run.follow(phrase)
    for i in range(n):
        postings += run.search.cursors[i].term.length
    if postings <= BRIEF:
        problem = lc_search_run(&run.search, every)
    else:
        with nogil:
            problem = lc_search_run(&run.search, every)
    if problem != LC_OK:
        fail(problem, "postings")
    return run.hits.n
