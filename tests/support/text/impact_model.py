"""Model of the writer of skip data: for each block, the pairs of frequency and length that could give its best score.

There is one entry for each block, then one for each 32 blocks. An entry has the last document, and the pairs that no
other pair beats, by ascending frequency. It is a string of varints, with a byte for lengths that are not the next code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_dataset.index.text.byte_ranges import Bytes, Ints, expand_ranges, scatter, starts_of
from lance_dataset.index.text.scoring import length_codes
from lance_dataset.index.text.varints import encode_varints, varint_sizes

__all__ = ["encode_impacts"]

#: Number of blocks that share one entry of the second level.
_GROUP = 32
_SORTED_BITS = 63


@dataclass(frozen=True)
class _Pairs:
    """Pairs that no other pair of their set beats, ordered by set, then by ascending frequency."""

    sets: Ints
    frequencies: Ints
    lengths: Ints


def encode_impacts(
    blocks: Ints, block_rows: Ints, last_documents: Ints, frequencies: Ints, lengths: Ints
) -> tuple[Bytes, Ints, Ints]:
    """Encode the entries of the posting lists of several words.

    Parameters
    ----------
    blocks : int64[postings]
        Block of each posting, ascending from 0.
    block_rows : int64[blocks]
        Word of each block, ascending from 0 without gaps.
    last_documents : int64[blocks]
        Last document of each block.
    frequencies, lengths : int64[postings]
        Occurrences of the word in the document, and number of tokens of the document.

    Returns
    -------
    data : uint8[bytes]
        The entries. For each word, the entries of its blocks precede those of its groups of blocks.
    ends : int64[entries]
        End of each entry.
    counts : int64[words]
        Number of entries of each word.
    """
    counts = np.bincount(block_rows)
    group_counts = -(-counts // _GROUP)
    first_groups, first_blocks = starts_of(group_counts)[:-1], starts_of(counts)[:-1]
    numbers = np.arange(len(block_rows)) - np.repeat(first_blocks, counts)
    groups = np.repeat(first_groups, counts) + numbers // _GROUP
    last_blocks = np.flatnonzero(np.append(np.diff(groups) > 0, True))
    of_blocks = _unbeaten(blocks, frequencies, lengths)
    of_groups = _unbeaten(groups[of_blocks.sets], of_blocks.frequencies, of_blocks.lengths)
    block_data, block_ends = _entries(of_blocks, last_documents)
    group_data, group_ends = _entries(of_groups, last_documents[last_blocks])
    return _joined(block_data, block_ends, counts, group_data, group_ends, group_counts)


def _unbeaten(sets: Ints, frequencies: Ints, lengths: Ints) -> _Pairs:
    """Return the pairs of each set that have shorter documents than all pairs of at least the same frequency."""
    sets, frequencies, lengths = _ordered(sets, frequencies, lengths)
    ranks = lengths - (sets << 32)  # below those of all earlier sets
    shortest = np.minimum.accumulate(ranks)
    kept = np.append(True, ranks[1:] < shortest[:-1])
    ascending = np.flatnonzero(kept)[::-1]
    turned = ascending[np.argsort(sets[ascending], kind="stable")]
    return _Pairs(sets[turned], frequencies[turned], lengths[turned])


def _ordered(sets: Ints, frequencies: Ints, lengths: Ints) -> tuple[Ints, Ints, Ints]:
    """Sort pairs by set, then by descending frequency, then by ascending length."""
    most, longest = int(frequencies.max()), int(lengths.max())
    low, high = longest.bit_length(), longest.bit_length() + most.bit_length()
    if int(sets[-1]).bit_length() + high > _SORTED_BITS:
        order = np.lexsort((lengths, -frequencies, sets))
        return sets[order], frequencies[order], lengths[order]
    keys = np.sort(sets << high | (most - frequencies) << low | lengths)  # several times faster than lexsort
    return keys >> high, most - ((keys >> low) & ((1 << most.bit_length()) - 1)), keys & ((1 << low) - 1)


def _entries(pairs: _Pairs, last_documents: Ints) -> tuple[Bytes, Ints]:
    """Return the bytes of the entries of all sets, and the end of each entry."""
    codes = length_codes(pairs.lengths)
    same_set = np.diff(pairs.sets) == 0
    kept = ~np.append(same_set & (np.diff(codes) == 0), False)  # the highest frequency of each code
    sets, frequencies, codes = pairs.sets[kept], pairs.frequencies[kept], codes[kept]
    first = np.append(True, np.diff(sets) != 0)
    steps = np.where(first, frequencies, np.diff(frequencies, prepend=0)) - 1
    code_steps = np.where(first, codes, np.diff(codes, prepend=0))
    explicit = code_steps != 1
    numbers = np.column_stack([last_documents, np.bincount(sets, minlength=len(last_documents))]).ravel()
    step_numbers = (steps << 1) | explicit
    head_sizes = varint_sizes(numbers)
    step_sizes = varint_sizes(step_numbers)
    pair_sizes = step_sizes + explicit
    heads = head_sizes.reshape(-1, 2).sum(axis=1)
    bodies = np.bincount(sets, pair_sizes, len(last_documents)).astype(np.int64)
    starts = starts_of(heads + bodies)
    out = np.empty(int(starts[-1]), np.uint8)
    scatter(encode_varints(numbers, head_sizes), out, starts[:-1], heads)
    pair_starts = starts_of(pair_sizes)[:-1] + np.repeat(starts[:-1] + heads - starts_of(bodies)[:-1], numbers[1::2])
    scatter(encode_varints(step_numbers, step_sizes), out, pair_starts, step_sizes)
    out[(pair_starts + step_sizes)[explicit]] = code_steps[explicit].astype(np.uint8)
    return out, starts[1:]


def _joined(
    data: Bytes, ends: Ints, counts: Ints, other_data: Bytes, other_ends: Ints, other_counts: Ints
) -> tuple[Bytes, Ints, Ints]:
    """Return, for every word, the entries of the first list, then those of the second."""
    both = counts + other_counts
    starts = starts_of(both)[:-1]
    sizes = np.empty(int(both.sum()), np.int64)
    places, other_places = expand_ranges(starts, counts), expand_ranges(starts + counts, other_counts)
    sizes[places], sizes[other_places] = np.diff(ends, prepend=0), np.diff(other_ends, prepend=0)
    begins = starts_of(sizes)
    out = np.empty(int(begins[-1]), np.uint8)
    scatter(data, out, begins[:-1][places], sizes[places])
    scatter(other_data, out, begins[:-1][other_places], sizes[other_places])
    return out, begins[1:], both
