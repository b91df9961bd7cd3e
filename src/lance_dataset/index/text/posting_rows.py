"""Rows of posting lists: blocks, best scores, skip data and positions of many words as Arrow arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.index.text.byte_ranges import Bytes, Ints, starts_of
from lance_dataset.index.text.positions import encode_steps
from lance_dataset.index.text.posting_blocks import BlockFormat, EncodedBlocks
from lance_dataset.index.text.scoring import Corpus, decode_lengths, length_codes
from lancecodec.search.inversion import DocumentNorms, write_lists, write_positions

__all__ = [
    "IMPACTS",
    "LENGTH",
    "LISTED_POSITIONS",
    "MAX_SCORE",
    "POSITIONS",
    "POSITION_OFFSETS",
    "POSTING",
    "ListEncoder",
    "sums_of",
]

POSTING, MAX_SCORE, LENGTH, IMPACTS = "_posting", "_max_score", "_length", "_impacts"
LISTED_POSITIONS, POSITIONS, POSITION_OFFSETS = "_position", "_compressed_position", "_position_block_offset"
_MAX_OFFSET = (1 << 32) - 1
#: Blocks that share an entry of the second level of the skip data.
_GROUP = 32
#: Most bytes of a posting in a block, of the rest of a block, and of the largest block.
_POSTING_BYTES, _BLOCK_BYTES, _LARGEST_BYTES = 10, 4, 2304
#: Most bytes of the pairs of a posting in both levels of the skip data, and of the rest of an entry.
_IMPACT_BYTES, _ENTRY_BYTES = 12, 10
#: Most bytes of a position.
_STEP_BYTES = 5

_Numbers = NDArray[np.uint32]


class ListEncoder:
    """Encodes posting lists of a partition.

    Parameters
    ----------
    document_lengths : integers[documents]
        Number of tokens of each document.
    corpus
        Documents that scores are relative to.
    layout
        Layout of the blocks.
    """

    def __init__(self, document_lengths: NDArray[np.integer[Any]], corpus: Corpus, layout: BlockFormat) -> None:
        self._corpus = corpus
        self._layout = layout
        scored: NDArray[np.integer[Any]] = document_lengths
        if layout.size != 128:
            scored = decode_lengths(length_codes(document_lengths.astype(np.int64)))
        norms = corpus.norms(scored).astype(np.float32, copy=False) if len(scored) else np.empty(0, np.float32)
        self._norms = DocumentNorms(document_lengths.astype(np.uint32, copy=False), norms)

    def scored(
        self, lengths: Ints, documents: _Numbers, frequencies: _Numbers, *, impacts: bool = True
    ) -> dict[str, pa.Array]:
        """Return the columns of posting lists: blocks, best scores, lengths and skip data.

        Parameters
        ----------
        lengths : int64[words]
            Number of documents of each word, at least 1.
        documents, frequencies : uint32[postings]
            Documents of each word, ascending, and how often it occurs in each.
        impacts
            True for skip data.
        """
        counts = -(-lengths // self._layout.size)
        entries = counts + -(-counts // _GROUP)
        num_blocks, num_entries = int(counts.sum()), int(entries.sum())
        blocks = np.empty(len(documents) * _POSTING_BYTES + num_blocks * _BLOCK_BYTES + _LARGEST_BYTES, np.uint8)
        skips = np.empty(len(documents) * _IMPACT_BYTES + num_entries * _ENTRY_BYTES, np.uint8)
        starts, skip_starts = np.zeros(num_blocks + 1, np.int64), np.zeros(num_entries + 1, np.int64)
        best = np.empty(len(lengths), np.float32)
        size, skip_size = write_lists(
            lengths,
            documents,
            frequencies,
            self._norms,
            self._corpus.limits(lengths),
            self._layout.size,
            self._layout.fixed_tail,
            blocks.data,
            starts[1:],
            skips.data,
            skip_starts[1:],
            best,
        )
        made = {
            POSTING: _listed(blocks[:size], starts, counts),
            MAX_SCORE: pa.array(best),
            LENGTH: pa.array(lengths.astype(np.uint32)),
        }
        if impacts:
            made[IMPACTS] = _listed(skips[:skip_size], skip_starts, entries)
        return made

    def positions(
        self, lengths: Ints, frequencies: _Numbers, steps: _Numbers, where: str, *, packed: bool = True
    ) -> dict[str, pa.Array]:
        """Return the columns of the positions of posting lists.

        Parameters
        ----------
        lengths : int64[words]
            Number of documents of each word.
        frequencies : uint32[postings]
            Occurrences in each document.
        steps : uint32[occurrences]
            Distance of each occurrence to the one before it in the same document, or to the start of that.
        where
            Name of the file, for error messages.
        packed
            True if full groups of positions are packed.

        Raises
        ------
        UnsupportedError
            The positions of a word are too large for the format.
        """
        counts = -(-lengths // self._layout.size)
        made = self._packed(lengths, frequencies, steps, counts) if packed else self._plain(lengths, frequencies, steps)
        first_blocks = starts_of(counts)
        row_starts = made.starts[first_blocks]
        offsets = made.starts[:-1] - np.repeat(row_starts[:-1], counts)
        if len(offsets) and int(offsets.max()) > _MAX_OFFSET:
            raise UnsupportedError(f"{where}: the positions of a word take more than 4 GiB")
        return {
            POSITIONS: _binaries(made.data, row_starts),
            POSITION_OFFSETS: pa.ListArray.from_arrays(
                pa.array(first_blocks, pa.int32()), pa.array(offsets, pa.uint32())
            ),
        }

    def _packed(self, lengths: Ints, frequencies: _Numbers, steps: _Numbers, counts: Ints) -> EncodedBlocks:
        starts = np.zeros(int(counts.sum()) + 1, np.int64)
        out = np.empty(len(steps) * _STEP_BYTES, np.uint8)
        size = write_positions(lengths, frequencies, steps, self._layout.size, out.data, starts[1:])
        return EncodedBlocks(out[:size], starts)

    def _plain(self, lengths: Ints, frequencies: _Numbers, steps: _Numbers) -> EncodedBlocks:
        sizes = np.full(int((-(-lengths // self._layout.size)).sum()), self._layout.size, np.int64)
        last = np.cumsum(-(-lengths // self._layout.size)) - 1
        sizes[last] = (lengths - 1) % self._layout.size + 1
        return encode_steps(steps.astype(np.int64), sums_of(frequencies.astype(np.int64), sizes), packed=False)


def _binaries(data: Bytes, starts: Ints) -> pa.Array:
    """Build an array of consecutive binaries."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(starts, np.int64)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(starts) - 1, buffers)


def _listed(data: Bytes, starts: Ints, counts: Ints) -> pa.Array:
    """Build lists of binaries."""
    return pa.ListArray.from_arrays(pa.array(starts_of(counts), pa.int32()), _binaries(data, starts))


def sums_of(values: Ints, sizes: Ints) -> Ints:
    """Return the sums of consecutive ranges."""
    return np.diff(np.append(np.zeros(1, np.int64), np.cumsum(values))[starts_of(sizes)])
