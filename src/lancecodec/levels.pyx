"""Level streams of a page: rows, division into chunks, repetition index and control words.

Streams are levels of 16 bits, little-endian, at any address. `max_repetition` is the number of list layers, which is
the repetition level that rows start with. Streams that are not a whole number of levels raise `CodecError`.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_BAD_SIZE, fail

from lancecodec.errors import CodecError

cdef extern from "kernels/levels_pages.h" nogil:
    int64_t lc_levels_count_le(const uint8_t *levels, int64_t n, uint16_t limit)
    int64_t lc_levels_count_between(const uint8_t *levels, int64_t n, uint16_t low, uint16_t high)
    uint16_t lc_levels_max(const uint8_t *levels, int64_t n)
    int64_t lc_levels_find(const uint8_t *levels, int64_t n, int64_t start, uint16_t low, uint16_t high, int64_t k)
    int64_t lc_levels_positions(const uint8_t *levels, int64_t n, uint16_t level, int64_t *out)
    int lc_levels_cut(const uint8_t *definition, int64_t n, uint16_t max_visible_def, const int64_t *counts,
                      int64_t chunks, int64_t *ends)
    int lc_repetition_index(const uint8_t *rep, int64_t n, uint16_t max_rep, const int64_t *ends, int64_t chunks,
                            uint8_t *out)
    int lc_control_width(int64_t bits_rep, int64_t bits_def)
    int lc_control_pack(const uint8_t *rep, const uint8_t *definition, int64_t n, int64_t bits_rep, int64_t bits_def,
                        uint8_t *out)
    void lc_control_unpack(const uint8_t *words, int64_t n, int64_t bits_rep, int64_t bits_def, uint8_t *rep,
                           uint8_t *definition)


cdef int64_t count_levels(ByteView levels) except -1:
    if levels.size % 2:
        fail(LC_BAD_SIZE, f"{levels.size} bytes are not a whole number of levels")
    return levels.size // 2


cdef uint16_t check_level(int64_t level, str what) except? 0:
    if level < 0 or level > 0xFFFF:
        raise CodecError(f"{what} {level} does not fit 16 bits")
    return level


cdef int check_stream(ByteView levels, int64_t n, str what) except -1:
    if levels.size // 2 != n or levels.size % 2:
        fail(LC_BAD_SIZE, f"{what}: {levels.size} bytes for {n} items")
    return 0


def max_level(levels):
    """Compute the highest level of a stream.

    Parameters
    ----------
    levels
        Level stream.

    Returns
    -------
    int
        The highest level, 0 if the stream is empty.

    Raises
    ------
    CodecError
        `levels` is not a whole number of levels.
    """
    cdef ByteView source = readable(levels)
    cdef int64_t n = count_levels(source)
    cdef uint16_t top
    with nogil:
        top = lc_levels_max(source.data, n)
    return top


def count_rows(repetition, int64_t max_repetition):
    """Count the rows that start in a repetition stream.

    Parameters
    ----------
    repetition
        Repetition levels.
    max_repetition
        Level that rows start with.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    CodecError
        `repetition` is not a whole number of levels, or `max_repetition` does not fit 16 bits.
    """
    cdef ByteView source = readable(repetition)
    cdef int64_t n = count_levels(source), rows
    cdef uint16_t level = check_level(max_repetition, "repetition level")
    with nogil:
        rows = lc_levels_count_between(source.data, n, level, level)
    return rows


def count_visible(definition, int64_t start, int64_t stop, int64_t max_visible_definition):
    """Count the items of a range that own a value.

    Parameters
    ----------
    definition
        Definition levels.
    start, stop
        Range ``[start, stop)`` of items.
    max_visible_definition
        Highest definition level of an item that owns a value.

    Returns
    -------
    int
        Number of visible items.

    Raises
    ------
    CodecError
        The range is outside of the stream, or an argument is out of range.
    """
    cdef ByteView source = readable(definition)
    cdef int64_t n = count_levels(source), count
    cdef uint16_t level = check_level(max_visible_definition, "definition level")
    if start < 0 or stop < start or stop > n:
        raise CodecError(f"items {start} to {stop} are outside {n}")
    with nogil:
        count = lc_levels_count_le(source.data + 2 * start, stop - start, level)
    return count


def row_starts(repetition, int64_t max_repetition, int64_t[::1] out not None):
    """Find the item that each row starts with.

    Parameters
    ----------
    repetition
        Repetition levels.
    max_repetition
        Level that rows start with.
    out
        Output int64 array with at least an entry per row.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    CodecError
        `out` is too small, or an argument is out of range.
    """
    cdef ByteView source = readable(repetition)
    cdef int64_t n = count_levels(source), rows
    cdef uint16_t level = check_level(max_repetition, "repetition level")
    check_aligned(&out[0])
    with nogil:
        rows = lc_levels_count_between(source.data, n, level, level)
        if rows <= out.shape[0]:
            lc_levels_positions(source.data, n, level, &out[0])
    if rows > out.shape[0]:
        raise CodecError(f"output of {out.shape[0]} entries is too small for {rows} rows")
    return rows


def row_items(repetition, int64_t max_repetition, int64_t start, int64_t stop):
    """Find the items of a range of rows.

    Items in front of the first row start do not belong to a row of this stream, because a chunk may begin within a row.

    Parameters
    ----------
    repetition
        Repetition levels.
    max_repetition
        Level that rows start with.
    start, stop
        Range ``[start, stop)`` of rows.

    Returns
    -------
    first : int
        First item of the rows.
    last : int
        Item behind the last one of the rows.

    Raises
    ------
    CodecError
        The range is outside of the stream, or an argument is out of range.
    """
    cdef ByteView source = readable(repetition)
    cdef int64_t n = count_levels(source), rows, first = n, last = n
    cdef uint16_t level = check_level(max_repetition, "repetition level")
    if start < 0 or stop < start:
        raise CodecError(f"rows {start} to {stop} are not a range")
    with nogil:
        rows = lc_levels_count_between(source.data, n, level, level)
        if stop <= rows:
            first = lc_levels_find(source.data, n, 0, level, level, start)
            last = first if start == stop else lc_levels_find(source.data, n, first, level, level, stop - start)
    if stop > rows:
        raise CodecError(f"rows {start} to {stop} are outside {rows}")
    return first, last


def cut(definition, int64_t num_items, int64_t max_visible_definition, const int64_t[::1] counts not None,
        int64_t[::1] ends not None):
    """Divide the items of a page among its chunks.

    A chunk ends behind its last visible item. Items without a value that follow belong to the next chunk, and the last
    chunk takes all remaining items.

    Parameters
    ----------
    definition
        Definition levels of the page, or None if it has none.
    num_items
        Number of items.
    max_visible_definition
        Highest definition level of an item that owns a value.
    counts
        int64 array with the number of visible items in each chunk, at least 1 each. Their sum is that of the page.
    ends
        Output int64 array with an entry per chunk: the item behind its last one.

    Returns
    -------
    int
        The largest number of items in a chunk. Chunk headers hold at most 65,535.

    Raises
    ------
    CodecError
        The counts do not match the levels, or a buffer has the wrong size.
    """
    cdef ByteView source = None
    cdef const uint8_t *levels = NULL
    cdef uint16_t level = check_level(max_visible_definition, "definition level")
    cdef int64_t chunks = counts.shape[0], i, start = 0, most = 0
    cdef int problem
    if num_items < 0 or ends.shape[0] < chunks:
        raise CodecError(f"{num_items} items, {ends.shape[0]} ends for {chunks} chunks")
    if definition is not None:
        source = readable(definition)
        check_stream(source, num_items, "definition levels")
        levels = source.data
    check_aligned(&counts[0])
    check_aligned(&ends[0])
    with nogil:
        problem = lc_levels_cut(levels, num_items, level, &counts[0], chunks, &ends[0])
        if problem == 0:
            for i in range(chunks):
                most = max(most, ends[i] - start)
                start = ends[i]
    if problem:
        fail(problem, f"values of {chunks} chunks, {num_items} items")
    return most


def repetition_index(repetition, int64_t max_repetition, const int64_t[::1] ends not None, out):
    """Write the repetition index of a mini-block page.

    An entry is a pair of 64-bit integers: the number of rows that end in the chunk, and the number of items at its end
    that belong to an unfinished row (0 if the chunk ends with a row).

    Parameters
    ----------
    repetition
        Repetition levels of the page.
    max_repetition
        Level that rows start with.
    ends
        int64 array with the end item of each chunk, as `cut` returns them.
    out
        Output of at least 16 bytes per chunk.

    Raises
    ------
    CodecError
        `ends` do not match the levels, or `out` is too small.
    """
    cdef ByteView source = readable(repetition), target = writable(out)
    cdef int64_t n = count_levels(source), chunks = ends.shape[0]
    cdef uint16_t level = check_level(max_repetition, "repetition level")
    cdef int problem
    if target.size // 16 < chunks:
        raise CodecError(f"output of {target.size} bytes is too small for {chunks} chunks")
    check_aligned(&ends[0])
    with nogil:
        problem = lc_repetition_index(source.data, n, level, &ends[0], chunks, target.data)
    if problem:
        fail(problem, f"ends of {chunks} chunks, {n} items")


def control_width(int64_t bits_repetition, int64_t bits_definition):
    """Compute the size of a full-zip control word.

    Parameters
    ----------
    bits_repetition, bits_definition
        Number of bits of the levels in a control word.

    Returns
    -------
    int
        Size in bytes: 0 (no control words), 1, 2 or 4.

    Raises
    ------
    CodecError
        The levels have too many bits.
    """
    cdef int width = lc_control_width(bits_repetition, bits_definition)
    if width < 0:
        raise CodecError(f"control words cannot hold levels of {bits_repetition} and {bits_definition} bits")
    return width


def pack_control_words(repetition, definition, int64_t num_items, int64_t bits_repetition, int64_t bits_definition,
                       out):
    """Write one control word ``(repetition << bits_definition) | definition`` per item.

    Parameters
    ----------
    repetition, definition
        Levels of exactly `num_items` items. None stands for zeros.
    num_items
        Number of items.
    bits_repetition, bits_definition
        Number of bits of the levels in a control word.
    out
        Output of at least ``num_items * control_width(bits_repetition, bits_definition)`` bytes.

    Raises
    ------
    CodecError
        A level does not fit its bits, a stream has the wrong length, or `out` is too small.
    """
    cdef ByteView rep = None, levels = None, target = writable(out)
    cdef const uint8_t *rep_data = NULL
    cdef const uint8_t *def_data = NULL
    cdef int64_t width = control_width(bits_repetition, bits_definition)
    cdef int problem
    if num_items < 0 or (width and target.size // width < num_items):
        raise CodecError(f"output of {target.size} bytes is too small for {num_items} control words")
    if repetition is not None:
        rep = readable(repetition)
        check_stream(rep, num_items, "repetition levels")
        rep_data = rep.data
    if definition is not None:
        levels = readable(definition)
        check_stream(levels, num_items, "definition levels")
        def_data = levels.data
    with nogil:
        problem = lc_control_pack(rep_data, def_data, num_items, bits_repetition, bits_definition, target.data)
    if problem:
        fail(problem, f"control words of {bits_repetition} and {bits_definition} bits")


def unpack_control_words(words, int64_t num_items, int64_t bits_repetition, int64_t bits_definition, repetition,
                         definition):
    """Split control words into streams of levels.

    The levels are not checked; `LevelUnraveler` checks them.

    Parameters
    ----------
    words
        Control words of exactly `num_items` items.
    num_items
        Number of items.
    bits_repetition, bits_definition
        Number of bits of the levels in a control word.
    repetition, definition
        Outputs for exactly `num_items` levels of 16 bits, or None.

    Raises
    ------
    CodecError
        `words` or an output does not have the size of `num_items` items.
    """
    cdef ByteView source = readable(words), rep = None, levels = None
    cdef uint8_t *rep_data = NULL
    cdef uint8_t *def_data = NULL
    cdef int64_t width = control_width(bits_repetition, bits_definition)
    if num_items < 0 or (source.size != 0 if width == 0 else source.size // width != num_items or source.size % width):
        fail(LC_BAD_SIZE, f"control words: {source.size} bytes for {num_items} items")
    if repetition is not None:
        rep = writable(repetition)
        check_stream(rep, num_items, "repetition levels")
        rep_data = rep.data
    if definition is not None:
        levels = writable(definition)
        check_stream(levels, num_items, "definition levels")
        def_data = levels.data
    with nogil:
        lc_control_unpack(source.data, num_items, bits_repetition, bits_definition, rep_data, def_data)
