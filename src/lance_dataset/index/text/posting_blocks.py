"""Posting lists: the documents of each word with the frequency of the word in each, in blocks of 128 or 256.

Many lists are read together, so that the work is done on whole arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_dataset.index.text.bit_lanes import MAX_WIDTH, packed_size, unpack_blocks
from lance_dataset.index.text.byte_ranges import Bytes, Ints, gather, starts_of
from lance_dataset.index.text.varints import decode_varints

__all__ = ["BlockFormat", "EncodedBlocks", "Postings", "decode_blocks"]

_MAX_EXCEPTIONS = 31
_U32 = 4


@dataclass(frozen=True)
class BlockFormat:
    """Layout of blocks.

    Attributes
    ----------
    size
        Documents of a full block, 128 or 256.
    fixed_tail
        True if the last block of a list, when it is not full, has numbers of 32 bits instead of varints.
    """

    size: int
    fixed_tail: bool

    @property
    def score_bytes(self) -> int:
        """Size in bytes of the best score at the start of a block."""
        return _U32 if self.size == 128 else 0


@dataclass(frozen=True)
class Postings:
    """The posting lists of several words.

    Attributes
    ----------
    lengths : int64[words]
        Number of documents of each word.
    documents : int64[postings]
        Numbers of the documents, ascending in each list.
    frequencies : int64[postings]
        Number of occurrences of the word in the document, at least 1.
    """

    lengths: Ints
    documents: Ints
    frequencies: Ints

    def block_counts(self, size: int) -> Ints:
        """Return the number of blocks of each list, int64[words]."""
        return -(-self.lengths // size)

    def block_sizes(self, size: int) -> Ints:
        """Return the number of documents of each block, int64[blocks]."""
        return _block_sizes(self.lengths, size)


@dataclass(frozen=True)
class EncodedBlocks:
    """Concatenated blocks.

    Attributes
    ----------
    data : uint8[bytes]
    starts : int64[blocks + 1]
        Start of each block, and end of the last one.
    """

    data: Bytes
    starts: Ints


def _block_sizes(lengths: Ints, size: int) -> Ints:
    counts = -(-lengths // size)
    sizes = np.full(int(counts.sum()), size, np.int64)
    last = np.cumsum(counts)[lengths > 0] - 1
    sizes[last] = (lengths[lengths > 0] - 1) % size + 1
    return sizes


def decode_blocks(blocks: EncodedBlocks, lengths: Ints, layout: BlockFormat, documents: int) -> Postings:
    """Decode posting lists.

    Parameters
    ----------
    blocks
        All blocks of all lists.
    lengths : int64[words]
        Number of documents of each list.
    layout
        Layout of the blocks.
    documents
        Number of documents of the partition.

    Raises
    ------
    ValueError
        The bytes contradict the format.
    """
    sizes = _block_sizes(lengths, layout.size)
    if len(sizes) != len(blocks.starts) - 1:
        raise ValueError(f"{len(blocks.starts) - 1} blocks, but the list lengths need {len(sizes)}")
    data = blocks.data
    full = sizes == layout.size
    begins, ends = blocks.starts[:-1] + layout.score_bytes, blocks.starts[1:]
    found, often = np.empty(int(sizes.sum()), np.int64), np.empty(int(sizes.sum()), np.int64)
    in_full = np.repeat(full, sizes)
    in_tail = ~in_full
    found[in_full], often[in_full] = _full_blocks(data, begins[full], ends[full], layout.size)
    read_tails = _fixed_tails if layout.fixed_tail else _varint_tails
    found[in_tail], often[in_tail] = read_tails(data, begins[~full], ends[~full], sizes[~full])
    _check_postings(found, often, lengths, documents)
    return Postings(lengths, found, often)


def _check_postings(found: Ints, often: Ints, lengths: Ints, documents: int) -> None:
    if not len(found):
        return
    if int(found.min()) < 0 or int(found.max()) >= documents:
        raise ValueError(f"a posting refers to document {int(found.max())} of {documents}")
    if int(often.min()) < 1:
        raise ValueError("a posting has no occurrences")
    falls = np.diff(found) <= 0
    first_of_others = starts_of(lengths)[1:-1]
    falls[first_of_others[(first_of_others > 0) & (first_of_others < len(found))] - 1] = False
    if falls.any():
        raise ValueError("the documents of a posting list are not ascending")


def _full_blocks(data: Bytes, begins: Ints, ends: Ints, size: int) -> tuple[Ints, Ints]:
    _check_inside(begins + _U32 + 1, ends)
    firsts = _u32(data, begins)
    packed = begins + _U32 + 1
    widths = _widths(data, packed - 1)
    then = packed + packed_size(size, widths)
    _check_inside(then + 1, ends)
    deltas = unpack_blocks(data, packed, widths, size)
    found = np.cumsum(deltas, axis=1, dtype=np.int64) + firsts[:, None]
    read = _packed_frequencies if size == 128 else _patched_frequencies
    often = read(data, then, ends, size)
    return found.ravel(), often.ravel()


def _packed_frequencies(data: Bytes, begins: Ints, ends: Ints, size: int) -> Ints:
    widths = _widths(data, begins)
    _check_ends(begins + 1 + packed_size(size, widths), ends)
    return unpack_blocks(data, begins + 1, widths, size).astype(np.int64)


def _patched_frequencies(data: Bytes, begins: Ints, ends: Ints, size: int) -> Ints:
    """Decode frequencies that are packed except for a few large ones, whose upper bits follow."""
    _check_inside(begins + 2, ends)
    widths, exceptions = _widths(data, begins), data[begins + 1].astype(np.int64)
    places = begins + 2 + packed_size(size, widths)
    _check_inside(places, ends)
    often = unpack_blocks(data, begins + 2, widths, size).astype(np.int64)
    if int(exceptions.max(initial=0)) > _MAX_EXCEPTIONS:
        raise ValueError(f"a block has {int(exceptions.max())} exceptions, but at most {_MAX_EXCEPTIONS} are possible")
    patched = np.flatnonzero(exceptions)
    for number in range(int(exceptions.max(initial=0))):
        patched = patched[exceptions[patched] > number]
        _check_inside(places[patched] + 2, ends[patched])
        numbers = data[places[patched]].astype(np.int64)
        above, after = _varints_at(data, places[patched] + 1, ends[patched])
        values = above << widths[patched]
        if (values >> 32).any():
            raise ValueError("a frequency has more than 32 bits")
        often[patched, numbers] |= values
        places[patched] = after
    _check_ends(places, ends)
    return often


def _varints_at(data: Bytes, begins: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return the varint at each position, and its end."""
    values, places = np.zeros(len(begins), np.int64), begins.copy()
    going = np.arange(len(begins))
    for shift in range(0, 35, 7):
        _check_inside(places[going] + 1, ends[going])
        read = data[places[going]].astype(np.int64)
        values[going] |= (read & 0x7F) << shift
        places[going] += 1
        going = going[read >= 0x80]
        if not len(going):
            return values, places
    raise ValueError("a number has more than five bytes")


def _fixed_tails(data: Bytes, begins: Ints, ends: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    _check_ends(begins + 2 * _U32 * sizes, ends)
    numbers = gather(data, begins, ends - begins).view("<u4").astype(np.int64)
    return _halves(numbers, sizes)


def _varint_tails(data: Bytes, begins: Ints, ends: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    _check_inside(begins, ends)
    numbers, number_ends = decode_varints(gather(data, begins, ends - begins))
    expected = np.cumsum(2 * sizes)
    block_ends = np.cumsum(ends - begins)
    if len(numbers) != 2 * int(sizes.sum()) or (number_ends[expected - 1] != block_ends).any():
        raise ValueError("a block does not have two numbers for each document")
    deltas, often = _halves(numbers, sizes)
    return _summed(deltas, sizes), often


def _halves(numbers: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Return the first and the second half of the numbers of each block."""
    first = np.repeat(np.tile([True, False], len(sizes)), np.repeat(sizes, 2))
    return numbers[first], numbers[~first]


def _summed(deltas: Ints, sizes: Ints) -> Ints:
    """Return running sums within each block."""
    sums = np.cumsum(deltas)
    before = np.append(np.zeros(1, np.int64), sums)[starts_of(sizes)[:-1]]
    return sums - np.repeat(before, sizes)


def _u32(data: Bytes, begins: Ints) -> Ints:
    return data[begins[:, None] + np.arange(_U32)].view("<u4").ravel().astype(np.int64)


def _widths(data: Bytes, places: Ints) -> Ints:
    widths = data[places].astype(np.int64)
    if int(widths.max(initial=0)) > MAX_WIDTH:
        raise ValueError(f"numbers of {int(widths.max())} bits")
    return widths


def _check_inside(needed: Ints, ends: Ints) -> None:
    if (needed > ends).any():
        raise ValueError("a block ends before its content")


def _check_ends(reached: Ints, ends: Ints) -> None:
    if (reached != ends).any():
        raise ValueError("a block is shorter or longer than its content")
