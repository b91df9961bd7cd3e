"""Values at a path of JSON documents in binary form, found without decoding the documents."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

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
    int lc_json_follow_all(lc_bytes data, int64_t n, lc_json_path path, uint8_t *kinds, int64_t *words,
                           int64_t *ranges)
    int lc_json_count_all(lc_bytes data, int64_t n, int is_object, int64_t alone, const uint8_t *kinds,
                          const int64_t *ranges, int64_t *counts)
    int lc_json_children_all(lc_bytes data, int64_t n, int is_object, const uint8_t *kinds, const int64_t *words,
                             const int64_t *ranges, const int64_t *counts, uint8_t *child_kinds,
                             int64_t *child_words, int64_t *child_ranges)
    int lc_json_documents_all(lc_bytes data, int64_t n, const uint8_t *kinds, const int64_t *ranges, uint8_t *out,
                              int64_t capacity, int64_t *ends)
    int lc_json_digits_all(lc_bytes data, int64_t n, uint8_t *kinds, int64_t *words, const int64_t *ranges)
    int lc_json_texts_all(lc_bytes data, int64_t n, const uint8_t *kinds, const int64_t *ranges, uint8_t *out,
                          int64_t capacity, int64_t *ends)

cdef extern from "kernels/utf8.h" nogil:
    void lc_utf8_fill(uint64_t *table)

cdef extern from "kernels/json_tests.h" nogil:
    ctypedef struct lc_json_test:
        int64_t operation
    ctypedef struct lc_json_condition:
        const uint64_t *automaton
        const uint8_t *texts
        const lc_json_step *steps
        const lc_json_test *tests
        int64_t n
    int LC_JSON_EXISTS, LC_JSON_AND, LC_JSON_OR, LC_JSON_EQUAL, LC_JSON_UNEQUAL, LC_JSON_LESS, LC_JSON_LESS_OR_EQUAL
    int LC_JSON_GREATER, LC_JSON_GREATER_OR_EQUAL, LC_JSON_STARTS_WITH
    int LC_JSON_REFUTED, LC_JSON_MET, LC_JSON_UNKNOWN, LC_JSON_LEFT
    int LC_JSON_VERDICTS, LC_JSON_LEVELS
    int lc_json_is_condition(const lc_json_condition *c, int64_t n_steps, int64_t n_texts)
    int lc_json_test_all(lc_bytes data, int64_t n, const lc_json_condition *c, const uint8_t *kinds,
                         const int64_t *words, const int64_t *ranges, uint8_t *verdicts)

MISSING, NULL_VALUE, STRING, INTEGER, UNSIGNED = \
    LC_JSON_MISSING, LC_JSON_NULL, LC_JSON_STRING, LC_JSON_INTEGER, LC_JSON_UNSIGNED
FLOAT, FALSE, TRUE, ARRAY, OBJECT, OTHER = \
    LC_JSON_FLOAT, LC_JSON_FALSE, LC_JSON_TRUE, LC_JSON_ARRAY, LC_JSON_OBJECT, LC_JSON_OTHER
EXISTS, AND, OR, EQUAL, UNEQUAL, LESS, LESS_OR_EQUAL = \
    LC_JSON_EXISTS, LC_JSON_AND, LC_JSON_OR, LC_JSON_EQUAL, LC_JSON_UNEQUAL, LC_JSON_LESS, LC_JSON_LESS_OR_EQUAL
GREATER, GREATER_OR_EQUAL, STARTS_WITH = LC_JSON_GREATER, LC_JSON_GREATER_OR_EQUAL, LC_JSON_STARTS_WITH
REFUTED, MET, UNKNOWN, LEFT = LC_JSON_REFUTED, LC_JSON_MET, LC_JSON_UNKNOWN, LC_JSON_LEFT
MAX_VERDICTS, MAX_LEVELS = LC_JSON_VERDICTS, LC_JSON_LEVELS

cdef uint64_t[256] automaton
lc_utf8_fill(automaton)


cdef int path_of(ByteView names, const int64_t[::1] steps, lc_json_path *path) except -1:
    """Check the steps of a path, which then refers to their memory."""
    cdef int64_t i
    path.keys, path.steps, path.n = names.data, NULL, steps.shape[0] // 3
    for i in range(path.n):
        if steps[3 * i] >= 0 and not steps[3 * i] <= steps[3 * i + 1] <= names.size:
            raise CodecError(f"the key of step {i} is outside of the {names.size} bytes of keys")
    if path.n:
        check_aligned(&steps[0])
        path.steps = <const lc_json_step *>&steps[0]
    return 0


cdef int check_values(ByteView kinds, const int64_t[::1] ranges, int64_t n) except -1:
    """Check that there are kinds and limits for n values."""
    if n < 0 or kinds.size < n or ranges.shape[0] < 2 * n:
        raise CodecError(f"{kinds.size} kinds and {ranges.shape[0]} limits are too few for {n} values")
    return check_aligned(&ranges[0]) if n else 0


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
    cdef int64_t n = words.shape[0]
    cdef lc_bytes documents = lc_bytes(source.data, source.size)
    cdef lc_json_path path
    cdef int problem
    if ends.size // (8 if wide else 4) < n + 1:
        raise CodecError(f"offsets of {ends.size} bytes are too few for {n} documents")
    if out.size < n or ranges.shape[0] < 2 * n:
        raise CodecError(f"outputs of {out.size} kinds and {ranges.shape[0]} limits are too small for {n} documents")
    path_of(names, steps, &path)
    if n == 0:
        return
    check_aligned(&words[0])
    check_aligned(&ranges[0])
    with nogil:
        problem = lc_json_find_all(documents, ends.data, wide, n, path, out.data, &words[0], &ranges[0])
    if problem:
        fail(problem, "JSON documents")


def follow(data, keys, const int64_t[::1] steps not None, kinds, int64_t[::1] words not None,
           int64_t[::1] ranges not None):
    """Follow a path from n values that were found. Values that are missing or not known stay so.

    Parameters
    ----------
    data, keys, steps
        As for `find`.
    kinds, words, ranges
        The values, as outputs of `find`; each is replaced by the value at the path.

    Raises
    ------
    CodecError
        A range exceeds `data`, or a key exceeds `keys`.
    """
    cdef ByteView source = readable(data), names = readable(keys), known = writable(kinds)
    cdef int64_t n = words.shape[0]
    cdef lc_bytes documents = lc_bytes(source.data, source.size)
    cdef lc_json_path path
    cdef int problem
    check_values(known, ranges, n)
    path_of(names, steps, &path)
    if n == 0:
        return
    check_aligned(&words[0])
    with nogil:
        problem = lc_json_follow_all(documents, n, path, known.data, &words[0], &ranges[0])
    if problem:
        fail(problem, "JSON values")


def count(data, bint objects, int64_t alone, kinds, const int64_t[::1] ranges not None, int64_t[::1] counts not None):
    """Count the elements of arrays, or the members of objects.

    Parameters
    ----------
    data
        The documents.
    objects
        True for members of objects.
    alone
        The count of a value of another kind.
    kinds, ranges
        The values, as outputs of `find`.
    counts
        Output of n counts: 0 for missing values; -1 for damaged containers, and for values that are not known.

    Raises
    ------
    CodecError
        A range exceeds `data`, or there are too few values.
    """
    cdef ByteView source = readable(data), known = readable(kinds)
    cdef int64_t n = counts.shape[0]
    cdef lc_bytes documents = lc_bytes(source.data, source.size)
    cdef int problem
    check_values(known, ranges, n)
    if n == 0:
        return
    check_aligned(&counts[0])
    with nogil:
        problem = lc_json_count_all(documents, n, objects, alone, known.data, &ranges[0], &counts[0])
    if problem:
        fail(problem, "JSON values")


def children(data, bint objects, kinds, const int64_t[::1] words not None, const int64_t[::1] ranges not None,
             const int64_t[::1] counts not None, child_kinds, int64_t[::1] child_words not None,
             int64_t[::1] child_ranges not None):
    """Find the elements of arrays, or the members of objects. A value of another kind is its own child.

    Parameters
    ----------
    data, objects
        As for `count`.
    kinds, words, ranges
        The values, as outputs of `find`.
    counts
        Outputs of `count`. Values with a count below 1 have no children.
    child_kinds, child_words, child_ranges
        Outputs like those of `find` for as many values as the counts add up to, in order.

    Raises
    ------
    CodecError
        A range exceeds `data`, a count is not that of its container, or there are too few values.
    """
    cdef ByteView source = readable(data), known = readable(kinds), out = writable(child_kinds)
    cdef int64_t n = counts.shape[0], total = 0, most = child_words.shape[0], i
    cdef lc_bytes documents = lc_bytes(source.data, source.size)
    cdef int problem
    check_values(known, ranges, n)
    check_values(out, child_ranges, most)
    if words.shape[0] < n:
        raise CodecError(f"{words.shape[0]} words are too few for {n} values")
    for i in range(n):
        if counts[i] > most - total:
            raise CodecError(f"outputs for {most} children are too small for the counts")
        total += max(counts[i], 0)
    if total == 0:
        return
    check_aligned(&words[0])
    check_aligned(&counts[0])
    check_aligned(&child_words[0])
    with nogil:
        problem = lc_json_children_all(documents, n, objects, known.data, &words[0], &ranges[0], &counts[0],
                                       out.data, &child_words[0], &child_ranges[0])
    if problem:
        fail(problem, "JSON values")


def documents(data, kinds, const int64_t[::1] ranges not None, out, int64_t[::1] ends not None):
    """Write values as documents of their own.

    Parameters
    ----------
    data
        The documents that they are in.
    kinds, ranges
        The values, as outputs of `find`.
    out
        Output of at least 8 bytes for each value, and those of its range.
    ends
        Output of n + 1 numbers: where the documents start and end. Missing values, and those that are not known, have
        empty documents.

    Raises
    ------
    CodecError
        A range exceeds `data`, `out` is too small, or there are too few values.
    """
    cdef ByteView source = readable(data), known = readable(kinds), target = writable(out)
    cdef int64_t n = ends.shape[0] - 1
    cdef lc_bytes whole = lc_bytes(source.data, source.size)
    cdef int problem
    check_values(known, ranges, n)
    check_aligned(&ends[0])
    with nogil:
        problem = lc_json_documents_all(whole, n, known.data, &ranges[0] if n else NULL, target.data, target.size,
                                        &ends[0])
    if problem:
        fail(problem, "JSON values")


def test(data, texts, const int64_t[::1] steps not None, const int64_t[::1] tests not None, kinds,
         const int64_t[::1] words not None, const int64_t[::1] ranges not None, verdicts):
    """Run a condition of a path for n values that were found.

    Each test puts a verdict on a stack, or combines some of them, and one remains. Of the values that a test compares,
    the first one that does not compare as false decides.

    Parameters
    ----------
    data
        The documents.
    texts
        Bytes of the keys of the steps, and of the constants that are text.
    steps
        As for `find`, those of all tests.
    tests
        int64 array of eight numbers for each test: the operation (EXISTS, AND, OR, EQUAL, UNEQUAL, LESS,
        LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL, STARTS_WITH); the first of its steps and their number, for AND and OR
        the number of verdicts; how many times arrays are replaced by their elements; kind of the constant, its word as
        in `find`, and where its text starts and ends in `texts`.
    kinds, words, ranges
        The values, as outputs of `find`.
    verdicts
        Output of n bytes: REFUTED, MET, UNKNOWN, or LEFT for values that the caller must look at: damaged ones, and
        those that are not known here.

    Raises
    ------
    CodecError
        A range exceeds `data`, the tests are not a program, or there are too few values.
    """
    cdef ByteView source = readable(data), names = readable(texts), known = readable(kinds), out = writable(verdicts)
    cdef int64_t n = words.shape[0]
    cdef lc_bytes documents = lc_bytes(source.data, source.size)
    cdef lc_json_path path
    cdef lc_json_condition condition
    cdef int problem, is_condition
    check_values(known, ranges, n)
    path_of(names, steps, &path)
    condition.automaton, condition.texts, condition.steps = automaton, names.data, path.steps
    condition.tests, condition.n = NULL, tests.shape[0] // 8
    if condition.n:
        check_aligned(&tests[0])
        condition.tests = <const lc_json_test *>&tests[0]
    with nogil:
        is_condition = lc_json_is_condition(&condition, path.n, names.size)
    if not is_condition:
        raise CodecError(f"{condition.n} tests of {path.n} steps are not a condition")
    if out.size < n:
        raise CodecError(f"an output of {out.size} verdicts is too small for {n} values")
    if n == 0:
        return
    check_aligned(&words[0])
    with nogil:
        problem = lc_json_test_all(documents, n, &condition, known.data, &words[0], &ranges[0], out.data)
    if problem:
        fail(problem, "JSON values")


def digits(data, kinds, int64_t[::1] words not None, const int64_t[::1] ranges not None):
    """Turn strings of up to 18 digits, perhaps behind a minus sign, into integers. Other values stay.

    Parameters
    ----------
    data
        The documents.
    kinds, words, ranges
        The values, as outputs of `find`; kinds and words of such strings are replaced.

    Raises
    ------
    CodecError
        A range exceeds `data`, or there are too few values.
    """
    cdef ByteView source = readable(data), known = writable(kinds)
    cdef int64_t n = words.shape[0]
    cdef lc_bytes whole = lc_bytes(source.data, source.size)
    cdef int problem
    check_values(known, ranges, n)
    if n == 0:
        return
    check_aligned(&words[0])
    with nogil:
        problem = lc_json_digits_all(whole, n, known.data, &words[0], &ranges[0])
    if problem:
        fail(problem, "JSON values")


def strings(data, kinds, const int64_t[::1] ranges not None, out, int64_t[::1] ends not None):
    """Copy the strings among some values, which may not be valid UTF-8.

    Parameters
    ----------
    data
        The documents that they are in.
    kinds, ranges
        The values, as outputs of `find`.
    out
        Output of at least the bytes of the strings.
    ends
        Output of n + 1 numbers: where the strings start and end. Other values are empty.

    Raises
    ------
    CodecError
        A range exceeds `data`, `out` is too small, or there are too few values.
    """
    cdef ByteView source = readable(data), known = readable(kinds), target = writable(out)
    cdef int64_t n = ends.shape[0] - 1
    cdef lc_bytes whole = lc_bytes(source.data, source.size)
    cdef int problem
    check_values(known, ranges, n)
    check_aligned(&ends[0])
    with nogil:
        problem = lc_json_texts_all(whole, n, known.data, &ranges[0] if n else NULL, target.data, target.size, &ends[0])
    if problem:
        fail(problem, "JSON values")
