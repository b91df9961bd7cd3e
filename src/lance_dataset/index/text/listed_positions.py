"""Positions of words in documents in the layout of format version 1: a list of binaries for each document."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_dataset.index.text.bit_lanes import bit_widths, pack_blocks, packed_size
from lance_dataset.index.text.byte_ranges import Ints, expand_ranges, scatter, starts_of
from lance_dataset.index.text.posting_blocks import Postings

__all__ = ["listed_positions"]

_GROUP = 128
_U32 = 4
_HEAD = _U32 + 1


def listed_positions(steps: Ints, postings: Postings) -> pa.Array:
    """Return the positions of posting lists, one list of lists of binaries for each word.

    The first binary of a document has the number of its positions. Full groups of 128 follow, packed, and then the
    remaining positions.

    Parameters
    ----------
    steps : int64[occurrences]
        Distance of each occurrence to the one before it in the same document, or to the start of that.
    postings
        The posting lists.
    """
    often = postings.frequencies
    groups, rest = often // _GROUP, often % _GROUP
    firsts = starts_of(often)[:-1]
    positions = np.cumsum(steps)
    before = positions - steps
    positions -= np.repeat(before[firsts], often)
    group_begins = expand_ranges(np.zeros(len(often), np.int64), groups) * _GROUP + np.repeat(firsts, groups)
    blocks = (group_begins[:, None] + np.arange(_GROUP)).ravel()
    deltas = steps[blocks].astype(np.uint32).reshape(-1, _GROUP)
    deltas[:, 0] = 0
    widths = bit_widths(deltas)
    has_rest = rest > 0
    counts = 1 + groups + has_rest
    sizes = np.full(int(counts.sum()), _U32, np.int64)
    heads = starts_of(counts)[:-1]
    packed_places = expand_ranges(heads + 1, groups)
    rest_places = (heads + counts - 1)[has_rest]
    sizes[packed_places] = _HEAD + packed_size(_GROUP, widths)
    sizes[rest_places] = _U32 * rest[has_rest]
    starts = starts_of(sizes)
    out = np.empty(int(starts[-1]), np.uint8)
    scatter(_bytes_of(often), out, starts[heads], np.full(len(often), _U32, np.int64))
    begins = starts[packed_places]
    scatter(_bytes_of(positions[group_begins]), out, begins, np.full(len(begins), _U32, np.int64))
    out[begins + _U32] = widths
    pack_blocks(deltas, widths, out, begins + _HEAD)
    left = positions[expand_ranges((firsts + groups * _GROUP)[has_rest], rest[has_rest])]
    scatter(_bytes_of(left), out, starts[rest_places], _U32 * rest[has_rest])
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(out)]
    values = pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers)
    documents = pa.ListArray.from_arrays(pa.array(starts_of(counts), pa.int32()), values)
    return pa.ListArray.from_arrays(pa.array(starts_of(postings.lengths), pa.int32()), documents)


def _bytes_of(numbers: Ints) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.ascontiguousarray(numbers.astype("<u4")).view(np.uint8)
