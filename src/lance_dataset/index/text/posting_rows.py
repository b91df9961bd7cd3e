"""Rows of posting lists: blocks, best scores, skip data and positions of many words as Arrow arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.index.text.byte_ranges import Bytes, Ints, starts_of
from lance_dataset.index.text.impacts import encode_impacts
from lance_dataset.index.text.positions import encode_steps
from lance_dataset.index.text.posting_blocks import BlockFormat, Postings, encode_blocks
from lance_dataset.index.text.scoring import Corpus, decode_lengths, length_codes

__all__ = [
    "IMPACTS",
    "LENGTH",
    "LISTED_POSITIONS",
    "MAX_SCORE",
    "POSITIONS",
    "POSITION_OFFSETS",
    "POSTING",
    "binaries",
    "position_columns",
    "scored_columns",
    "sums_of",
]

POSTING, MAX_SCORE, LENGTH, IMPACTS = "_posting", "_max_score", "_length", "_impacts"
LISTED_POSITIONS, POSITIONS, POSITION_OFFSETS = "_position", "_compressed_position", "_position_block_offset"
_MAX_OFFSET = (1 << 32) - 1


def scored_columns(
    postings: Postings, document_lengths: Ints, corpus: Corpus, layout: BlockFormat, *, impacts: bool = True
) -> dict[str, pa.Array]:
    """Return the columns of posting lists: blocks, best scores, lengths and skip data.

    Parameters
    ----------
    postings
        The posting lists; none is empty.
    document_lengths : int64[documents]
        Number of tokens of each document of the partition.
    corpus
        Documents that scores are relative to.
    layout
        Layout of the blocks.
    impacts
        True for skip data.
    """
    block_sizes = postings.block_sizes(layout.size)
    counts = postings.block_counts(layout.size)
    lengths = document_lengths[postings.documents]
    scores, word_scores = _best_scores(postings, lengths, corpus, layout, block_sizes, counts)
    blocks = encode_blocks(postings, scores, layout)
    made = {
        POSTING: _listed(blocks.data, blocks.starts, counts),
        MAX_SCORE: pa.array(word_scores, pa.float32()),
        LENGTH: pa.array(postings.lengths, pa.uint32()),
    }
    if impacts:
        data, ends, entries = encode_impacts(
            np.repeat(np.arange(len(block_sizes)), block_sizes),
            np.repeat(np.arange(len(counts)), counts),
            postings.documents[np.cumsum(block_sizes) - 1],
            postings.frequencies,
            lengths,
        )
        made[IMPACTS] = _listed(data, np.append(np.zeros(1, np.int64), ends), entries)
    return made


def _best_scores(
    postings: Postings, lengths: Ints, corpus: Corpus, layout: BlockFormat, block_sizes: Ints, counts: Ints
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the best score of each block and of each word, among the documents of the partition."""
    if layout.size == 256:
        lengths = decode_lengths(length_codes(lengths))
    shares = corpus.shares(postings.frequencies, lengths)
    limits = corpus.limits(postings.lengths)
    best = np.repeat(limits, counts) * np.maximum.reduceat(shares, starts_of(block_sizes)[:-1])
    return best, np.maximum.reduceat(best, starts_of(counts)[:-1])


def position_columns(steps: Ints, postings: Postings, size: int, where: str, *, packed: bool) -> dict[str, pa.Array]:
    """Return the columns of the positions of posting lists in blocks of `size` documents.

    Parameters
    ----------
    steps : int64[occurrences]
        Distance of each occurrence to the one before it in the same document, or to the start of that.
    postings
        The posting lists.
    size
        Documents of a block.
    where
        Name of the file, for error messages.
    packed
        True if full groups of positions are packed.

    Raises
    ------
    UnsupportedError
        The positions of a word are too large for the format.
    """
    counts = postings.block_counts(size)
    made = encode_steps(steps, sums_of(postings.frequencies, postings.block_sizes(size)), packed=packed)
    first_blocks = starts_of(counts)
    row_starts = made.starts[first_blocks]
    offsets = made.starts[:-1] - np.repeat(row_starts[:-1], counts)
    if len(offsets) and int(offsets.max()) > _MAX_OFFSET:
        raise UnsupportedError(f"{where}: the positions of a word take more than 4 GiB")
    return {
        POSITIONS: binaries(made.data, row_starts),
        POSITION_OFFSETS: pa.ListArray.from_arrays(pa.array(first_blocks, pa.int32()), pa.array(offsets, pa.uint32())),
    }


def binaries(data: Bytes, starts: Ints) -> pa.Array:
    """Build an array of consecutive binaries."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(starts, np.int64)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(starts) - 1, buffers)


def _listed(data: Bytes, starts: Ints, counts: Ints) -> pa.Array:
    """Build lists of binaries."""
    return pa.ListArray.from_arrays(pa.array(starts_of(counts), pa.int32()), binaries(data, starts))


def sums_of(values: Ints, sizes: Ints) -> Ints:
    """Return the sums of consecutive ranges."""
    return np.diff(np.append(np.zeros(1, np.int64), np.cumsum(values))[starts_of(sizes)])
