"""Tokens of texts for n-gram indices: numbers of windows of three letters or digits.

The number of a window has its characters as digits to the base 37: 1 to 10 for ``0`` to ``9``, 11 to 36 for ``a`` to
``z``. There are `PLAIN` numbers of plain texts, and `FOLDED` numbers of texts that were folded to ASCII: there, capital
letters are not made small, and have numbers that only the reference's arithmetic explains.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from lancecodec.buffers cimport ByteView, check_aligned, readable
from lancecodec.problems cimport LC_OK, fail

from lancecodec.errors import CodecError

cdef extern from "kernels/ngrams.h" nogil:
    int LC_NGRAM_PLAIN, LC_NGRAM_FOLDED
    ctypedef struct lc_ngram_texts:
        const uint8_t *data
        int64_t size
        const uint8_t *offsets
        int wide
        int64_t count
        int folded
    ctypedef struct lc_ngram_entries:
        uint32_t *tokens
        uint32_t *rows
        int64_t room
        int64_t count
        uint32_t *others
        int64_t num_others
    int64_t lc_ngrams_room(const lc_ngram_texts *texts)
    int lc_ngrams_find(const lc_ngram_texts *texts, uint32_t *seen, lc_ngram_entries *out)
    int lc_ngrams_group(const uint32_t *tokens, const uint32_t *rows, int64_t n, const uint64_t *ids, int64_t num_ids,
                        int64_t *ends, int64_t num_tokens, uint64_t *out)

PLAIN, FOLDED = LC_NGRAM_PLAIN, LC_NGRAM_FOLDED

#: Largest number of texts in a call: their numbers have 32 bits, and one more is a mark.
cdef int64_t MOST_TEXTS = (<int64_t>1 << 32) - 2


cdef lc_ngram_texts described(ByteView values, ByteView ends, bint wide, bint folded) except *:
    cdef int64_t width = 8 if wide else 4
    cdef lc_ngram_texts texts = lc_ngram_texts(values.data, values.size, ends.data, wide, 0, folded)
    if ends.size < width or ends.size % width:
        raise CodecError(f"{ends.size} bytes are not a whole number of offsets of {width} bytes, at least one")
    texts.count = ends.size // width - 1
    if texts.count > MOST_TEXTS:
        raise CodecError(f"{texts.count} texts are too many for one call")
    return texts


def room(data, offsets, bint wide, bint folded):
    """Return how many entries `find` needs room for.

    Parameters
    ----------
    data, offsets, wide, folded
        The texts, as for `find`.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    CodecError
        An offset decreases or exceeds the data.
    """
    cdef ByteView values = readable(data), ends = readable(offsets)
    cdef lc_ngram_texts texts = described(values, ends, wide, folded)
    cdef int64_t needed
    with nogil:
        needed = lc_ngrams_room(&texts)
    if needed < 0:
        raise CodecError("offsets of texts decrease, start too early or exceed their bytes")
    return needed


def find(data, offsets, bint wide, bint folded, uint32_t[::1] tokens, uint32_t[::1] rows, uint32_t[::1] others):
    """Find the tokens of texts, each once for each text.

    Parameters
    ----------
    data
        Concatenated texts.
    offsets
        n + 1 ascending offsets of 32 bits, or 64 if `wide`, into `data`.
    wide
        Whether the offsets have 64 bits.
    folded
        Whether the texts were folded. If not, texts with other than ASCII characters are left out.
    tokens, rows
        Outputs: a token, and the number of a text that has it, ascending. As many as `room` says.
    others
        Output: numbers of the texts that are left out. One place for each text.

    Returns
    -------
    tuple of int
        Number of entries, and number of texts that are left out.

    Raises
    ------
    CodecError
        An offset decreases or exceeds the data, or an output is too small.
    MemoryError
        There is not enough memory.
    """
    cdef ByteView values = readable(data), ends = readable(offsets)
    cdef lc_ngram_texts texts = described(values, ends, wide, folded)
    cdef lc_ngram_entries found = lc_ngram_entries(NULL, NULL, 0, 0, NULL, 0)
    cdef size_t size = sizeof(uint32_t) * <size_t>(LC_NGRAM_FOLDED if folded else LC_NGRAM_PLAIN)
    cdef uint32_t *seen
    cdef int problem
    if rows.shape[0] != tokens.shape[0] or others.shape[0] < texts.count:
        raise CodecError(f"outputs of {tokens.shape[0]}, {rows.shape[0]} and {others.shape[0]} places do not fit")
    found.room = tokens.shape[0]
    if found.room:
        found.tokens, found.rows = &tokens[0], &rows[0]
    if texts.count:
        found.others = &others[0]
    seen = <uint32_t *>PyMem_Malloc(size)
    if seen == NULL:
        raise MemoryError("tokens of texts")
    with nogil:
        memset(seen, 0, size)
        problem = lc_ngrams_find(&texts, seen, &found)
    PyMem_Free(seen)
    if problem != LC_OK:
        fail(problem, "texts")
    return found.count, found.num_others


def group(const uint32_t[::1] tokens, const uint32_t[::1] rows, const uint64_t[::1] ids, int64_t[::1] starts,
          uint64_t[::1] out):
    """Sort the ids of rows by token; those of equal tokens keep their order.

    Parameters
    ----------
    tokens, rows
        Entries as `find` writes them.
    ids
        Id of each row.
    starts
        Output: place in `out` of the first id of each token, and the number of all. One place more than tokens.
    out
        Output: an id for each entry.

    Raises
    ------
    CodecError
        A token or a row is out of range, or sizes do not fit.
    """
    cdef int64_t n = tokens.shape[0], tokens_known = starts.shape[0] - 1
    cdef int problem
    if rows.shape[0] != n or out.shape[0] != n or tokens_known < 0:
        raise CodecError(f"{n} tokens, {rows.shape[0]} rows and {out.shape[0]} results do not fit together")
    cdef const uint32_t *token = &tokens[0] if n else NULL
    cdef const uint32_t *row = &rows[0] if n else NULL
    cdef const uint64_t *identifier = &ids[0] if ids.shape[0] else NULL
    cdef uint64_t *target = &out[0] if n else NULL
    check_aligned(<const int64_t *>identifier)
    check_aligned(<const int64_t *>target)
    check_aligned(&starts[0])
    with nogil:
        problem = lc_ngrams_group(token, row, n, identifier, ids.shape[0], &starts[0], tokens_known, target)
    if problem != LC_OK:
        fail(problem, "tokens")
