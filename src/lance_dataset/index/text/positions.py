"""Positions of words in documents, as deltas between occurrences, in blocks that match those of postings.

The first occurrence in a document counts from the start of the document, so its deltas mean the same in any block.
"""

from __future__ import annotations

import numpy as np

from lance_dataset.index.text.bit_lanes import MAX_WIDTH, bit_widths, pack_blocks, packed_size, unpack_blocks
from lance_dataset.index.text.byte_ranges import Ints, gather, scatter, starts_of
from lance_dataset.index.text.posting_blocks import EncodedBlocks
from lance_dataset.index.text.varints import decode_varints, encode_varints, varint_sizes

__all__ = ["decode_steps", "encode_steps"]

#: Number of deltas in a packed group, whatever the size of posting blocks.
_GROUP = 128


def decode_steps(blocks: EncodedBlocks, counts: Ints, *, packed: bool) -> Ints:
    """Decode the deltas of all blocks.

    Parameters
    ----------
    blocks
        The blocks.
    counts : int64[blocks]
        Number of deltas in each block, which is the sum of its frequencies.
    packed
        True if full groups are packed; otherwise all deltas are varints.

    Returns
    -------
    int64[sum of the counts]

    Raises
    ------
    ValueError
        The bytes contradict the format.
    """
    data, begins, ends = blocks.data, blocks.starts[:-1].copy(), blocks.starts[1:]
    if (counts > _GROUP * (ends - begins)).any():
        raise ValueError("a block of positions is too short for its occurrences")
    groups = counts // _GROUP if packed else np.zeros(len(counts), np.int64)
    rest = counts - groups * _GROUP
    first_groups = starts_of(groups)
    group_begins, widths = np.empty(int(first_groups[-1]), np.int64), np.empty(int(first_groups[-1]), np.int64)
    going = np.flatnonzero(groups)
    for number in range(int(groups.max(initial=0))):
        going = going[groups[going] > number]
        if (begins[going] >= ends[going]).any():
            raise ValueError("a block of positions ends before its content")
        width = data[begins[going]].astype(np.int64)
        if int(width.max()) > MAX_WIDTH:
            raise ValueError(f"positions of {int(width.max())} bits")
        group_begins[first_groups[going] + number] = begins[going] + 1
        widths[first_groups[going] + number] = width
        begins[going] += 1 + packed_size(_GROUP, width)
    if (begins > ends).any():
        raise ValueError("a block of positions ends before its content")
    numbers, number_ends = decode_varints(gather(data, begins, ends - begins))
    rest_ends = np.append(np.zeros(1, np.int64), number_ends)[np.minimum(np.cumsum(rest), len(number_ends))]
    if len(numbers) != int(rest.sum()) or (rest_ends != np.cumsum(ends - begins)).any():
        raise ValueError("the number of positions in a block differs from the number of occurrences")
    steps = np.empty(int(counts.sum()), np.int64)
    in_groups = _in_groups(groups, rest)
    steps[in_groups] = unpack_blocks(data, group_begins, widths, _GROUP).ravel()
    steps[~in_groups] = numbers
    return steps


def encode_steps(steps: Ints, counts: Ints, *, packed: bool) -> EncodedBlocks:
    """Encode `counts` deltas in each block; the opposite of `decode_steps`."""
    groups = counts // _GROUP if packed else np.zeros(len(counts), np.int64)
    rest = counts - groups * _GROUP
    in_groups = _in_groups(groups, rest)
    grouped = steps[in_groups].astype(np.uint32).reshape(-1, _GROUP)
    widths = bit_widths(grouped)
    group_sizes = 1 + packed_size(_GROUP, widths)
    group_bytes = np.diff(starts_of(group_sizes)[starts_of(groups)])
    numbers = steps[~in_groups]
    number_sizes = varint_sizes(numbers)
    rest_bytes = np.diff(starts_of(number_sizes)[starts_of(rest)])
    starts = starts_of(group_bytes + rest_bytes)
    out = np.empty(int(starts[-1]), np.uint8)
    firsts = starts_of(group_sizes)[:-1]
    begins = firsts + np.repeat(starts[:-1] - (np.cumsum(group_bytes) - group_bytes), groups)
    out[begins] = widths
    pack_blocks(grouped, widths, out, begins + 1)
    scatter(encode_varints(numbers, number_sizes), out, starts[:-1] + group_bytes, rest_bytes)
    return EncodedBlocks(out, starts)


def _in_groups(groups: Ints, rest: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask of the deltas that are in full groups."""
    lengths = np.column_stack([groups * _GROUP, rest]).ravel()
    return np.repeat(np.tile([True, False], len(groups)), lengths)
