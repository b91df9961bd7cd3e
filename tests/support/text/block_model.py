"""Model of the writers of posting lists: their blocks, written with whole arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.text.bit_lanes import bit_widths, pack_blocks, packed_size
from lance_dataset.index.text.byte_ranges import Ints, expand_ranges, scatter, starts_of
from lance_dataset.index.text.posting_blocks import BlockFormat, EncodedBlocks, Postings
from lance_dataset.index.text.varints import encode_varints, varint_sizes

__all__ = ["encode_blocks"]

_MAX_EXCEPTIONS = 31
_U32 = 4


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
