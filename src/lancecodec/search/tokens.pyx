"""Tokens of texts, and codes for the distinct ones.

A `TokenTable` gives every distinct token a code. Texts are divided into runs of characters of an `Alphabet`, into
n-grams of characters, or not at all. The hash table uses a secret that is chosen once per process; codes do not depend
on it.
"""

import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from lancecodec.buffers cimport ByteView, check_aligned, readable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/tokens.h" nogil:
    int64_t LC_CODE_POINTS
    ctypedef struct lc_secret:
        uint64_t a
        uint64_t b
    ctypedef struct lc_token_table:
        uint8_t *bytes
        int64_t *ends
        int64_t count
        int64_t size
    ctypedef struct lc_alphabet:
        uint8_t[256] kinds
    ctypedef struct lc_texts:
        lc_bytes data
        const uint8_t *offsets
        int wide
        const uint8_t *validity
        int64_t bit
        int64_t n
    ctypedef struct lc_found_tokens:
        int64_t longest
        int32_t *codes
        int32_t *positions
        int64_t *ends
        int64_t room
        int64_t count
    int lc_tokens_open(lc_token_table *t, lc_secret secret)
    void lc_tokens_close(lc_token_table *t)
    int64_t lc_tokens_memory(const lc_token_table *t)
    void lc_tokens_fold(lc_found_tokens *f, int lower)
    void lc_alphabet_fill(lc_alphabet *a, const int32_t *ranges, int64_t n)
    int lc_tokens_runs(lc_token_table *t, const lc_alphabet *a, const lc_texts *texts, lc_found_tokens *f)
    int lc_tokens_grams(lc_token_table *t, const lc_texts *texts, int64_t shortest, int64_t largest, int prefixes,
                        lc_found_tokens *f)
    int lc_tokens_whole(lc_token_table *t, const lc_texts *texts, lc_found_tokens *f)

# Chosen once per process, so that nobody can prepare tokens that collide.
cdef lc_secret SECRET
SECRET.a, SECRET.b = int.from_bytes(os.urandom(8), "little"), int.from_bytes(os.urandom(8), "little")


cdef class Alphabet:
    """Set of characters that tokens consist of.

    Parameters
    ----------
    ranges
        Int32 array of pairs: first code point of a range, and the one behind its last.

    Raises
    ------
    CodecError
        A range is reversed, or is not one of code points.
    """

    cdef lc_alphabet letters

    def __cinit__(self, const int32_t[::1] ranges not None):
        cdef int64_t i, n = ranges.shape[0]
        if n % 2:
            raise CodecError("ranges of an alphabet must be pairs")
        for i in range(0, n, 2):
            if not 0 <= ranges[i] <= ranges[i + 1] <= LC_CODE_POINTS:
                raise CodecError(f"{ranges[i]} to {ranges[i + 1]} is not a range of code points")
        cdef const int32_t *first = &ranges[0] if n else NULL
        with nogil:
            lc_alphabet_fill(&self.letters, first, n // 2)


cdef class _Texts:
    """Checked description of texts, with the buffers that it refers to."""

    cdef lc_texts of
    cdef list keep

    def __cinit__(self, data, offsets, bint wide, validity, int64_t bit):
        cdef ByteView values = readable(data), places = readable(offsets), bits
        cdef int64_t width = 8 if wide else 4
        if places.size < width or places.size % width:
            raise CodecError(f"{places.size} bytes are not a whole number of offsets of {width} bytes, at least one")
        self.keep = [values, places]
        self.of.data = lc_bytes(values.data, values.size)
        self.of.offsets, self.of.wide, self.of.n = places.data, wide, places.size // width - 1
        self.of.validity, self.of.bit = NULL, 0
        if validity is not None:
            bits = readable(validity)
            if bit < 0 or bits.size > INT64_MAX // 8 or bit > 8 * bits.size or self.of.n > 8 * bits.size - bit:
                raise CodecError(f"validity of {bits.size} bytes does not hold {self.of.n} bits from bit {bit} on")
            self.of.validity, self.of.bit = bits.data, bit
            self.keep.append(bits)


cdef class FoundTokens:
    """Memory for the tokens of texts, which methods of `TokenTable` fill.

    Parameters
    ----------
    codes, positions
        Int32 arrays with room for all tokens.
    ends
        Int64 array with room for as many numbers as there are texts. Number i is that of the tokens of texts 0 to i.
    longest
        Only tokens with fewer bytes are kept.
    lower
        Whether upper-case letters of ASCII are replaced by lower-case ones.
    """

    cdef lc_found_tokens of
    cdef object keep
    cdef int64_t texts

    def __cinit__(self, int32_t[::1] codes not None, int32_t[::1] positions not None, int64_t[::1] ends not None,
                  int64_t longest=INT64_MAX, bint lower=False):
        self.keep = codes, positions, ends
        self.of.longest = max(longest, 0)
        self.of.room = min(codes.shape[0], positions.shape[0])
        self.of.codes = &codes[0] if codes.shape[0] else NULL
        self.of.positions = &positions[0] if positions.shape[0] else NULL
        self.of.ends = &ends[0] if ends.shape[0] else NULL
        check_aligned(self.of.ends)
        self.texts = ends.shape[0]
        with nogil:
            lc_tokens_fold(&self.of, lower)


cdef class TokenTable:
    """Distinct tokens, and a code for each, from 0 on in order of first appearance.

    Attributes
    ----------
    count : int
        Number of distinct tokens.
    nbytes : int
        Bytes of memory.
    """

    cdef lc_token_table table
    cdef bint busy

    def __cinit__(self):
        cdef int problem
        self.busy = False
        with nogil:
            problem = lc_tokens_open(&self.table, SECRET)
        if problem != LC_OK:
            fail(problem, "a table of tokens")

    def __dealloc__(self):
        with nogil:
            lc_tokens_close(&self.table)

    @property
    def count(self):
        """Number of distinct tokens."""
        return self.table.count

    @property
    def nbytes(self):
        """Bytes of memory."""
        cdef int64_t size
        self._check_idle()
        with nogil:
            size = lc_tokens_memory(&self.table)
        return size

    cdef int _begin(self, _Texts texts, FoundTokens found) except -1:
        if found.texts < texts.of.n:
            raise CodecError(f"{found.texts} numbers are too few for {texts.of.n} texts")
        return self._check_idle()

    cdef int _check_idle(self) except -1:
        if self.busy:
            raise CodecError("another thread uses the table of tokens")
        return 0

    cdef object _end(self, int problem, const lc_found_tokens *found, str what):
        self.busy = False
        if problem != LC_OK:
            fail(problem, what)
        return found.count

    def runs(self, Alphabet alphabet not None, FoundTokens found not None, data, offsets, bint wide, validity=None,
             int64_t bit=0):
        """Divide texts into runs of characters of an alphabet. Runs that are too long are left out.

        The position of a token is its number in its text, where those that are left out count too.

        Parameters
        ----------
        alphabet
            Characters of tokens; all others separate them.
        found
            Memory for the tokens; (bytes + texts) / 2 tokens are always enough.
        data
            Concatenated texts. Bytes that are not UTF-8 separate tokens.
        offsets
            n + 1 ascending offsets of 32 bits, or 64 if `wide`, into `data`.
        wide
            Whether the offsets have 64 bits.
        validity
            Bitmap with a 0 for each null text; None if there are none.
        bit
            Position of the first text in the bitmap.

        Returns
        -------
        int
            Number of tokens.

        Raises
        ------
        CodecError
            An offset of a valid text decreases or exceeds the data.
        OffsetOverflowError
            There are too many tokens.
        MemoryError
            There is not enough memory.
        """
        cdef _Texts texts = _Texts(data, offsets, wide, validity, bit)
        cdef lc_found_tokens of = found.of
        cdef int problem
        self._begin(texts, found)
        self.busy = True
        with nogil:
            problem = lc_tokens_runs(&self.table, &alphabet.letters, &texts.of, &of)
        return self._end(problem, &of, "tokens of texts")

    def grams(self, int64_t shortest, int64_t largest, bint prefixes, FoundTokens found not None, data, offsets,
              bint wide, validity=None, int64_t bit=0):
        """Divide texts into all n-grams of characters, in order of their starts and then of their sizes.

        All positions are 0.

        Parameters
        ----------
        shortest, largest
            Numbers of characters.
        prefixes
            Whether only the n-grams at the start of a text are wanted.
        found
            Memory for the tokens.
        data, offsets, wide, validity, bit
            The texts, see `runs`.

        Returns
        -------
        int
            Number of tokens.

        Raises
        ------
        CodecError, OffsetOverflowError, MemoryError
            See `runs`.
        """
        cdef _Texts texts = _Texts(data, offsets, wide, validity, bit)
        cdef lc_found_tokens of = found.of
        cdef int problem
        self._begin(texts, found)
        self.busy = True
        with nogil:
            problem = lc_tokens_grams(&self.table, &texts.of, shortest, largest, prefixes, &of)
        return self._end(problem, &of, "n-grams of texts")

    def whole(self, FoundTokens found not None, data, offsets, bint wide, validity=None, int64_t bit=0):
        """Take each text that is not null as a token, with position 0.

        Parameters
        ----------
        found
            Memory for the tokens, as many as there are texts.
        data, offsets, wide, validity, bit
            The texts, see `runs`.

        Returns
        -------
        int
            Number of tokens.

        Raises
        ------
        CodecError, OffsetOverflowError, MemoryError
            See `runs`.
        """
        cdef _Texts texts = _Texts(data, offsets, wide, validity, bit)
        cdef lc_found_tokens of = found.of
        cdef int problem
        self._begin(texts, found)
        self.busy = True
        with nogil:
            problem = lc_tokens_whole(&self.table, &texts.of, &of)
        return self._end(problem, &of, "texts")

    def tokens(self, int64_t start=0):
        """Return tokens by code.

        Parameters
        ----------
        start
            First code.

        Returns
        -------
        tuple of bytes
            Offsets of 64 bits into the data, one more than tokens; and the data.

        Raises
        ------
        CodecError
            There is no such code.
        """
        self._check_idle()
        cdef int64_t i, count = self.table.count - start
        if start < 0 or count < 0:
            raise CodecError(f"no token has the code {start}, only 0 to {self.table.count - 1}")
        cdef int64_t begin = self.table.ends[start - 1] if start else 0
        cdef bytes offsets = PyBytes_FromStringAndSize(NULL, 8 * (count + 1))
        cdef uint8_t *out = <uint8_t *>PyBytes_AS_STRING(offsets)
        cdef int64_t end = 0
        memcpy(out, &end, 8)
        for i in range(count):
            end = self.table.ends[start + i] - begin
            memcpy(out + 8 * (i + 1), &end, 8)
        return offsets, PyBytes_FromStringAndSize(<char *>self.table.bytes + begin, self.table.size - begin)
