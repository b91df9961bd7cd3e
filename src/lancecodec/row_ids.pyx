"""Stable row ids of fragments, as runs: consecutive ids of rows at consecutive addresses.

A table that was changed often has thousands of segments of few ids, which are decoded together. Segments of many ids
are only located, because a bitmap of them takes less memory than its runs. `MAX_LANES` is the largest number of lanes.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/row_ids.h" nogil:
    int LC_IDS_LANES
    ctypedef struct lc_id_runs:
        uint64_t *first
        int64_t *lengths
        uint64_t *addresses
        int64_t room
        int64_t count
        uint64_t next_id
        uint64_t next_address
    ctypedef struct lc_id_wholes:
        int64_t *owners
        int64_t *offsets
        int64_t *starts
        int64_t *ends
        int64_t room
        int64_t count
    int lc_row_ids_split(lc_bytes src, const int64_t *starts, const int64_t *ends, const int64_t *rows,
                         const uint64_t *bases, int64_t n, uint64_t few, lc_id_runs *runs, lc_id_wholes *wholes)
    int lc_row_ids_lanes(const uint64_t *first, const int64_t *lengths, int64_t n, int64_t lanes, uint8_t *out)

MAX_LANES = LC_IDS_LANES


cdef int check_length(int64_t given, int64_t expected, str what) except -1:
    if given != expected:
        raise CodecError(f"{given} {what} instead of {expected}")
    return 0


def split(src, const int64_t[::1] starts not None, const int64_t[::1] ends not None, const int64_t[::1] rows not None,
          const uint64_t[::1] bases not None, int64_t few, uint64_t[::1] first not None, int64_t[::1] lengths not None,
          uint64_t[::1] addresses not None, int64_t[:, ::1] wholes not None):
    """Decode segments of few ids as runs, and locate all other segments.

    Ranges become runs if they have less than `few` ids; arrays, too. Ranges with holes or a bitmap must also be shorter
    than 65 numbers. Ids of a run are consecutive, and so are the addresses of its rows.

    Parameters
    ----------
    src
        Buffer with the messages.
    starts, ends
        int64 arrays of length n: the byte ranges of the sequences of row ids.
    rows
        int64 array of length n: number of ids in each sequence.
    bases
        uint64 array of length n: address of the first row of each sequence.
    few
        Segments of as many ids, at least 1, are not decoded.
    first, lengths, addresses
        Output arrays of equal length (uint64, int64, uint64): first id of each run, number of ids, and address of the
        first row. Runs that do not fit are only counted.
    wholes
        Output int64 array of shape (4, m) for the segments that are not decoded: the position in `starts` of the
        sequence, the number of ids before the segment, and its byte range. Those that do not fit are only counted.

    Returns
    -------
    runs, wholes : int
        Number of runs and of segments that are not decoded.

    Raises
    ------
    CodecError
        The bytes are not sequences of as many ids, or not in the form in which writers make them; a range is outside of
        `src`, or the arrays do not match.
    """
    cdef ByteView view = readable(src)
    cdef lc_bytes source
    cdef lc_id_runs found
    cdef lc_id_wholes located
    cdef int64_t n = starts.shape[0]
    cdef int problem
    check_length(ends.shape[0], n, "ends of sequences")
    check_length(rows.shape[0], n, "numbers of rows")
    check_length(bases.shape[0], n, "first addresses")
    check_length(lengths.shape[0], first.shape[0], "lengths of runs")
    check_length(addresses.shape[0], first.shape[0], "addresses of runs")
    check_length(wholes.shape[0], 4, "numbers for each segment")
    if few < 1:
        raise CodecError(f"segments of fewer than {few} ids")
    source.data, source.size = view.data, view.size
    found.first, found.lengths, found.addresses = &first[0], &lengths[0], &addresses[0]
    found.room, found.count, found.next_id, found.next_address = first.shape[0], 0, 0, 0
    located.owners, located.offsets, located.starts, located.ends = NULL, NULL, NULL, NULL
    located.room, located.count = wholes.shape[1], 0
    if located.room:
        located.owners, located.offsets = &wholes[0, 0], &wholes[1, 0]
        located.starts, located.ends = &wholes[2, 0], &wholes[3, 0]
    with nogil:
        problem = lc_row_ids_split(source, &starts[0], &ends[0], &rows[0], &bases[0], n, few, &found, &located)
    if problem != LC_OK:
        fail(problem, "row ids")
    return found.count, located.count


def lanes(const uint64_t[::1] first not None, const int64_t[::1] lengths not None, int64_t count, out):
    """Distribute runs over lanes, so that no two runs of a lane overlap. Each goes into the first lane that has room.

    Parameters
    ----------
    first
        uint64 array of length n, ascending: first number of each run.
    lengths
        int64 array of length n: number of consecutive numbers of each run, at least 1.
    count
        Number of lanes, 1 to `MAX_LANES`.
    out
        Output of n bytes: the lane of each run, or `count` for runs that fit into no lane.

    Raises
    ------
    CodecError
        The runs are not ascending, a run is empty or exceeds 64 bits, `count` is out of range, or the arrays do not
        match.
    """
    cdef ByteView target = writable(out)
    cdef int64_t n = first.shape[0]
    cdef int problem
    check_length(lengths.shape[0], n, "lengths of runs")
    check_length(target.size, n, "bytes of output")
    if count < 1 or count > LC_IDS_LANES:
        raise CodecError(f"{count} lanes, not 1 to {LC_IDS_LANES}")
    with nogil:
        problem = lc_row_ids_lanes(&first[0], &lengths[0], n, count, target.data)
    if problem != LC_OK:
        fail(problem, f"{n} runs")
