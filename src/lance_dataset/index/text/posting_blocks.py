"""Posting lists: the documents of each word with the frequency of the word in each, in blocks of 128 or 256.

Many lists are read and written together, so that the work is done on whole arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.text.bit_lanes import MAX_WIDTH, bit_widths, pack_blocks, packed_size, unpack_blocks
from lance_dataset.index.text.byte_ranges import (
    Bytes,
    Ints,
    expand_ranges,
    gather,
    scatter,
    starts_of,
)
from lance_dataset.index.text.varints import decode_varints, encode_varints, varint_sizes

__all__ = ["BlockFormat", "EncodedBlocks", "Postings", "decode_blocks", "encode_blocks"]

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


# -- reading ---------------------------------------------------------------------------------------------------------


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


# -- writing ---------------------------------------------------------------------------------------------------------


def encode_blocks(postings: Postings, scores: NDArray[np.float32], layout: BlockFormat) -> EncodedBlocks:
    """Encode posting lists.

    Parameters
    ----------
    postings
        The lists.
    scores : float32[blocks]
        Best score of each block.
    layout
        Layout of the blocks.
    """
    sizes = postings.block_sizes(layout.size)
    full = sizes == layout.size
    in_full = np.repeat(full, sizes)
    deltas = np.diff(postings.documents, prepend=0)
    first_places = starts_of(sizes)[:-1]
    deltas[first_places[full]] = 0
    deltas[first_places[~full]] = postings.documents[first_places[~full]]
    firsts = postings.documents[first_places[full]]
    frequencies = postings.frequencies.astype(np.uint32)
    full_part = _encoded_full(firsts, deltas[in_full], frequencies[in_full], layout.size)
    tail_documents = (postings.documents if layout.fixed_tail else deltas)[~in_full]
    tail_part = _encoded_tails(tail_documents, postings.frequencies[~in_full], sizes[~full], fixed=layout.fixed_tail)
    lengths = np.empty(len(sizes), np.int64)
    lengths[full], lengths[~full] = np.diff(full_part.starts), np.diff(tail_part.starts)
    starts = starts_of(lengths + layout.score_bytes)
    out = np.empty(int(starts[-1]), np.uint8)
    bodies = starts[:-1] + layout.score_bytes
    if layout.score_bytes:
        out[starts[:-1, None] + np.arange(_U32)] = scores.astype("<f4").view(np.uint8).reshape(-1, _U32)
    scatter(full_part.data, out, bodies[full], lengths[full])
    scatter(tail_part.data, out, bodies[~full], lengths[~full])
    return EncodedBlocks(out, starts)


def _encoded_full(firsts: Ints, deltas: Ints, frequencies: NDArray[np.uint32], size: int) -> EncodedBlocks:
    """Encode full blocks, without their scores."""
    steps = deltas.astype(np.uint32).reshape(-1, size)
    widths = bit_widths(steps)
    often = frequencies.reshape(-1, size)
    often_part = _packed_part(often) if size == 128 else _patched_part(often)
    often_sizes = np.diff(often_part.starts)
    heads = _U32 + 1 + packed_size(size, widths)
    starts = starts_of(heads + often_sizes)
    out = np.empty(int(starts[-1]), np.uint8)
    begins = starts[:-1]
    out[begins[:, None] + np.arange(_U32)] = firsts.astype("<u4").view(np.uint8).reshape(-1, _U32)
    out[begins + _U32] = widths
    pack_blocks(steps, widths, out, begins + _U32 + 1)
    scatter(often_part.data, out, begins + heads, often_sizes)
    return EncodedBlocks(out, starts)


def _packed_part(often: NDArray[np.uint32]) -> EncodedBlocks:
    widths = bit_widths(often)
    starts = starts_of(1 + packed_size(128, widths))
    out = np.empty(int(starts[-1]), np.uint8)
    out[starts[:-1]] = widths
    pack_blocks(often, widths, out, starts[:-1] + 1)
    return EncodedBlocks(out, starts)


def _patched_part(often: NDArray[np.uint32]) -> EncodedBlocks:
    size = often.shape[1]
    widths = _cheapest_widths(often)
    above = often.astype(np.int64) >> widths[:, None]
    blocks, numbers = np.nonzero(above)
    values = above[blocks, numbers]
    value_sizes = varint_sizes(values)
    exceptions = np.bincount(blocks, minlength=len(often))
    exception_bytes = np.bincount(blocks, 1 + value_sizes, len(often)).astype(np.int64)
    heads = 2 + packed_size(size, widths)
    starts = starts_of(heads + exception_bytes)
    out = np.empty(int(starts[-1]), np.uint8)
    out[starts[:-1]], out[starts[:-1] + 1] = widths, exceptions
    pack_blocks(often, widths, out, starts[:-1] + 2)
    places = expand_ranges(starts[:-1] + heads, exception_bytes)
    firsts = starts_of(1 + value_sizes)[:-1]
    mine = np.zeros(len(places), bool)
    mine[firsts] = True
    out[places[mine]] = numbers
    out[places[~mine]] = encode_varints(values, value_sizes)
    return EncodedBlocks(out, starts)


def _cheapest_widths(often: NDArray[np.uint32]) -> Ints:
    """Return the width in bits that makes each block smallest, exceptions included; the wider one wins a tie."""
    size = often.shape[1]
    best = bit_widths(often)
    costs = packed_size(size, best)
    most = int(best.max(initial=0))
    possible = np.ones(len(often), bool)
    widest = best.copy()
    for width in range(most - 1, -1, -1):
        tried = np.flatnonzero(possible & (widest > width))
        above = often[tried].astype(np.int64) >> width
        exceptions = np.count_nonzero(above, axis=1)
        exception_bytes = ((1 + varint_sizes(above.ravel()).reshape(above.shape)) * (above > 0)).sum(axis=1)
        possible[tried[exceptions > _MAX_EXCEPTIONS]] = False
        cost = packed_size(size, np.full(len(tried), width)) + exception_bytes
        better = (cost < costs[tried]) & (exceptions <= _MAX_EXCEPTIONS)
        best[tried[better]], costs[tried[better]] = width, cost[better]
    return best


def _encoded_tails(documents: Ints, frequencies: Ints, sizes: Ints, *, fixed: bool) -> EncodedBlocks:
    """Encode short blocks, without their scores."""
    numbers = np.empty(2 * len(documents), np.int64)
    first = np.repeat(np.tile([True, False], len(sizes)), np.repeat(sizes, 2))
    numbers[first], numbers[~first] = documents, frequencies
    if fixed:
        return EncodedBlocks(numbers.astype("<u4").view(np.uint8), starts_of(2 * _U32 * sizes))
    number_sizes = varint_sizes(numbers)
    places = starts_of(number_sizes)
    return EncodedBlocks(encode_varints(numbers, number_sizes), places[starts_of(2 * sizes)])
