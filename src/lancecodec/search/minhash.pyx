"""MinHash signatures of texts, and the keys of their bands.

Sources: A. Broder, "On the resemblance and containment of documents", 1997; P. Indyk and R. Motwani, "Approximate
nearest neighbors", 1998; XXH64 by Y. Collet; SplitMix64 by G. Steele, D. Lea and C. Flood, 2014.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/minhash.h" nogil:
    ctypedef struct lc_minhash:
        int64_t hashes
        int64_t shingle
        const uint64_t *a
        const uint64_t *b
        const uint64_t *c
    ctypedef struct lc_known_tokens:
        lc_bytes data
        const uint8_t *offsets
        int64_t count
    void lc_minhash_coefficients(int64_t n, uint64_t *a, uint64_t *b, uint64_t *c)
    int lc_minhash_signatures(const lc_minhash *m, const lc_known_tokens *known, const uint8_t *codes, int64_t total,
                              const uint8_t *ends, int64_t n, uint8_t *out)
    void lc_minhash_bands(const uint8_t *signatures, int64_t n, int64_t hashes, int64_t bands, uint8_t *keys)
    void lc_minhash_equal(const uint8_t *signatures, int64_t n, int64_t hashes, const uint8_t *other, uint8_t *out)

#: Largest number of values in a signature.
MAX_HASHES = 1 << 20
#: Largest number of bands: their numbers have 8 bits in the keys.
MAX_BANDS = 256


cdef int64_t count_signatures(ByteView signatures, int64_t hashes) except -1:
    if not 1 <= hashes <= MAX_HASHES:
        raise CodecError(f"a signature must have 1 to {MAX_HASHES} values, not {hashes}")
    if signatures.size % (2 * hashes):
        raise CodecError(f"{signatures.size} bytes are not a whole number of signatures of {hashes} values")
    return signatures.size // (2 * hashes)


cdef class Signer:
    """Functions that make signatures.

    Parameters
    ----------
    hashes
        Number of values of a signature.
    shingle
        Number of tokens of a shingle.

    Raises
    ------
    CodecError
        A number is out of range.
    """

    cdef lc_minhash of
    cdef uint64_t *coefficients

    def __cinit__(self, int64_t hashes, int64_t shingle):
        cdef uint64_t *made
        if not 1 <= hashes <= MAX_HASHES or shingle < 1:
            raise CodecError(f"signatures of {hashes} values of shingles of {shingle} tokens are not possible")
        self.coefficients = made = <uint64_t *>PyMem_Malloc(<size_t>(3 * 8 * hashes))
        if made == NULL:
            raise MemoryError("coefficients of signatures")
        self.of.hashes, self.of.shingle = hashes, shingle
        self.of.a, self.of.b, self.of.c = made, made + hashes, made + 2 * hashes
        with nogil:
            lc_minhash_coefficients(hashes, made, made + hashes, made + 2 * hashes)

    def __dealloc__(self):
        PyMem_Free(self.coefficients)

    def sign(self, offsets, data, codes, ends, out):
        """Make the signatures of texts. A text without tokens gets zeros.

        Parameters
        ----------
        offsets, data
            Distinct tokens, as `lancecodec.search.tokens.TokenTable.tokens` returns them.
        codes
            32-bit codes of the tokens of all texts.
        ends
            64-bit numbers, for each of n texts, of the tokens up to its end.
        out
            Output for n signatures of 16-bit values.

        Raises
        ------
        CodecError
            There is no token with a code, an offset or a number decreases or is too large, or the output is too small.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView places = readable(offsets), values = readable(data), found = readable(codes)
        cdef ByteView until = readable(ends), target = writable(out)
        cdef lc_known_tokens known
        cdef int64_t texts = until.size // 8
        cdef int problem
        if places.size < 8 or places.size % 8 or until.size % 8 or found.size % 4:
            raise CodecError("offsets and numbers of tokens must have 64 bits, codes 32")
        if target.size // (2 * self.of.hashes) < texts:
            raise CodecError(f"{target.size} bytes are too few for {texts} signatures of {self.of.hashes} values")
        known.data, known.offsets = lc_bytes(values.data, values.size), places.data
        known.count = places.size // 8 - 1
        with nogil:
            problem = lc_minhash_signatures(&self.of, &known, found.data, found.size // 4, until.data, texts,
                                            target.data)
        if problem != LC_OK:
            fail(problem, "tokens of texts")


def band_keys(signatures, int64_t hashes, int64_t bands, out):
    """Compute the keys of the bands of signatures.

    Parameters
    ----------
    signatures
        n signatures of 16-bit values.
    hashes
        Number of values of a signature.
    bands
        Number of bands; it divides the number of values.
    out
        Output for n times `bands` keys of 64 bits.

    Raises
    ------
    CodecError
        A number is out of range, or the output is too small.
    """
    cdef ByteView source = readable(signatures), target = writable(out)
    cdef int64_t count = count_signatures(source, hashes)
    if not 1 <= bands <= MAX_BANDS or hashes % bands:
        raise CodecError(f"signatures of {hashes} values do not have {bands} bands")
    if target.size // (8 * bands) < count:
        raise CodecError(f"{target.size} bytes are too few for {bands} keys of {count} signatures")
    with nogil:
        lc_minhash_bands(source.data, count, hashes, bands, target.data)


def count_equal(signatures, int64_t hashes, other, out):
    """Count the positions at which signatures have the same values as another one.

    Parameters
    ----------
    signatures
        n signatures of 16-bit values.
    hashes
        Number of values of a signature.
    other
        The other signature.
    out
        Output for n numbers of 32 bits.

    Raises
    ------
    CodecError
        A number is out of range, or the other signature or the output is too small.
    """
    cdef ByteView source = readable(signatures), single = readable(other), target = writable(out)
    cdef int64_t count = count_signatures(source, hashes)
    if single.size < 2 * hashes or target.size // 4 < count:
        raise CodecError(f"the other signature or the output is too small for {count} signatures of {hashes} values")
    with nogil:
        lc_minhash_equal(source.data, count, hashes, single.data, target.data)
