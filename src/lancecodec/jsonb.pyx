"""Values at a path of JSON documents in binary form, found without decoding the documents."""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/jsonb.h" nogil:
    ctypedef struct lc_json_step:
        int64_t key_start
        int64_t key_stop
        int64_t place
    ctypedef struct lc_json_path:
        const uint8_t *keys
        const lc_json_step *steps
        int64_t n
    int LC_JSON_MISSING, LC_JSON_NULL, LC_JSON_STRING, LC_JSON_INTEGER, LC_JSON_UNSIGNED, LC_JSON_FLOAT
    int LC_JSON_FALSE, LC_JSON_TRUE, LC_JSON_ARRAY, LC_JSON_OBJECT, LC_JSON_OTHER
    int lc_json_find_all(lc_bytes data, const uint8_t *offsets, int wide, int64_t n, lc_json_path path,
                         uint8_t *kinds, int64_t *words, int64_t *ranges)

MISSING, NULL_VALUE, STRING, INTEGER, UNSIGNED = \
    LC_JSON_MISSING, LC_JSON_NULL, LC_JSON_STRING, LC_JSON_INTEGER, LC_JSON_UNSIGNED
FLOAT, FALSE, TRUE, ARRAY, OBJECT, OTHER = \
    LC_JSON_FLOAT, LC_JSON_FALSE, LC_JSON_TRUE, LC_JSON_ARRAY, LC_JSON_OBJECT, LC_JSON_OTHER


def find(data, offsets, bint wide, keys, const int64_t[::1] steps not None, kinds, int64_t[::1] words not None,
         int64_t[::1] ranges not None):
    """Find the value at a path of each of n documents.

    A path is followed from the outside to the inside. Of several equal keys of an object, the last one counts.

    Parameters
    ----------
    data
        The documents.
    offsets
        At least n + 1 offsets of the documents in `data`, of 32 bits, or 64 if `wide`.
    wide
        Whether the offsets have 64 bits.
    keys
        Bytes of the keys of the path.
    steps
        int64 array of three numbers for each step: start and end of its key in `keys`, and the place of its element.
        The key applies to objects, unless its start is negative, and the place to arrays, unless it is negative.
    kinds
        Output of n bytes, the kinds of the values: MISSING, NULL_VALUE, STRING, INTEGER (from -2**63 to 2**63 - 1),
        UNSIGNED (up to 2**64 - 1), FLOAT, FALSE, TRUE, ARRAY, OBJECT, or OTHER. OTHER stands for a value that
        is not known here (decimals, dates), for a document in the form of text, and for a damaged document.
    words
        Output int64 array of n words: the bits of integers and floats, 0 for other values.
    ranges
        Output int64 array of 2 n ascending numbers: where the bytes of each value start and end in `data`. Texts may
        not be valid UTF-8. An empty range at the start of the document for MISSING and OTHER.

    Returns
    -------
    None

    Raises
    ------
    CodecError
        Offsets decrease or exceed `data`, or a key exceeds `keys`.
    """
    cdef ByteView source = readable(data), ends = readable(offsets), names = readable(keys), out = writable(kinds)
    cdef int64_t n = words.shape[0], i
    cdef lc_bytes documents = lc_bytes(source.data, source.size)
    cdef lc_json_path path = lc_json_path(names.data, NULL, steps.shape[0] // 3)
    cdef int problem
    if ends.size // (8 if wide else 4) < n + 1:
        raise CodecError(f"offsets of {ends.size} bytes are too few for {n} documents")
    if out.size < n or ranges.shape[0] < 2 * n:
        raise CodecError(f"outputs of {out.size} kinds and {ranges.shape[0]} limits are too small for {n} documents")
    for i in range(path.n):
        if steps[3 * i] >= 0 and not steps[3 * i] <= steps[3 * i + 1] <= names.size:
            raise CodecError(f"the key of step {i} is outside of the {names.size} bytes of keys")
    if n == 0:
        return
    check_aligned(&words[0])
    check_aligned(&ranges[0])
    if path.n:
        check_aligned(&steps[0])
        path.steps = <const lc_json_step *>&steps[0]
    with nogil:
        problem = lc_json_find_all(documents, ends.data, wide, n, path, out.data, &words[0], &ranges[0])
    if problem:
        fail(problem, "JSON documents")
