"""What a writer is asked for, and what chunks cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.options import EncodingOptions
from lance_dataset.file.v2_1.compressive import Flat, Fsst
from lance_dataset.file.v2_1.write.encoded import EncodedChunks
from lance_dataset.file.v2_1.write.fsst_table import FsstTables
from lancecodec import flat

__all__ = ["Candidate", "Request", "in_units", "round_up", "steps"]

#: Bytes of values in a chunk, unless more give fewer level blocks: large enough that headers do not count, small
#: enough that one read of a random row is one disk access.
CHUNK_BYTES = 8192
_LARGEST_CHUNK_BYTES = 16384
_MOST_VALUES = 16384
_LEVEL_BLOCK = 1024
_BLOCK_BYTES = 128
#: 2.1: a chunk has at most 32 KiB.
_SMALL_CHUNK_LIMIT = 32768


def round_up(size: int) -> int:
    """The next multiple of 8."""
    return (size + 7) & ~7


def in_units(size: int) -> str:
    """A size for a reader of a report."""
    if size < 10_000:
        return f"{size:,} B"
    return f"{size / 1000:,.0f} KB" if size < 10_000_000 else f"{size / 1e6:,.1f} MB"


def steps(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sizes of parts that lie back to back, given where each ends."""
    sizes = ends.copy()
    sizes[1:] -= ends[:-1]
    return sizes


@dataclass(frozen=True)
class Request:
    """The circumstances under which the values of a page are encoded.

    Attributes
    ----------
    options
        Metadata of the field.
    large
        2.2: chunk words and sizes of value buffers have 32 bits.
    nullable
        There are nulls, so chunks have definition levels.
    max_values
        Most values of a chunk, a power of two.
    alone
        Plain values of whole bytes need no chunks.
    tables
        FSST tables of the column.
    """

    options: EncodingOptions
    large: bool
    nullable: bool
    max_values: int = 32768
    alone: bool = False
    tables: FsstTables = field(default_factory=FsstTables)

    def header(self, buffers: int) -> int:
        """Bytes of a chunk's header, with its word."""
        word = 4 if self.large else 2
        return round_up(2 + 2 * self.nullable + word * buffers) + word

    def level_bytes(self, values: int) -> int:
        """Bytes of the definition levels of a chunk, bit packed."""
        if not self.nullable:
            return 0
        blocks, rest = divmod(values, _LEVEL_BLOCK)
        return blocks * _BLOCK_BYTES + round_up(min(2 * rest, _BLOCK_BYTES))

    def even_size(self, count: int, per_chunk: int, bits: Sequence[int]) -> int:
        """Bytes of `count` plain values in chunks of `per_chunk`, whose buffers have so many bits per value."""
        if self.alone and len(bits) == 1 and bits[0] % 8 == 0:
            return count * bits[0] // 8
        chunks, rest = divmod(count, per_chunk)
        return chunks * self._chunk(per_chunk, bits) + (self._chunk(rest, bits) if rest else 0)

    def _chunk(self, values: int, bits: Sequence[int]) -> int:
        sizes = sum(round_up((values * width + 7) // 8) for width in bits)
        return self.header(len(bits)) + self.level_bytes(values) + sizes

    def size(self, encoded: EncodedChunks) -> int:
        """Bytes of encoded chunks, their words, their dictionary and their FSST table."""
        if self.alone and encoded.dictionary is None and isinstance(encoded.encoding, Flat):
            return self.even_size(int(encoded.counts.sum()), encoded.full, [encoded.encoding.bits])
        total = self.layout_size(encoded.counts, [ends for _, ends in encoded.buffers])
        if encoded.dictionary is not None:
            total += memoryview(encoded.dictionary.buffer).nbytes
        return total + (len(encoded.encoding.symbol_table) if isinstance(encoded.encoding, Fsst) else 0)

    def layout_size(self, counts: NDArray[np.int64], ends: Sequence[NDArray[np.int64]]) -> int:
        """Bytes of chunks of so many values whose buffers end there, and of their words."""
        total = len(counts) * self.header(len(ends))
        for places in ends:
            total += int(_rounded(steps(places)).sum())
        if self.nullable:
            blocks, rest = np.divmod(counts, _LEVEL_BLOCK)
            total += int((blocks * _BLOCK_BYTES + _rounded(np.minimum(2 * rest, _BLOCK_BYTES))).sum())
        return total

    def fits(self, encoded: EncodedChunks) -> bool:
        """Whether no chunk is too large for the file version, levels not counted."""
        if self.large or not len(encoded.counts):
            return True
        sizes = sum(_rounded(steps(ends)) for _, ends in encoded.buffers)
        return int(np.max(sizes)) + self.header(len(encoded.buffers)) <= _SMALL_CHUNK_LIMIT

    def flat_values(self, bits: int, roomy: bool = False) -> int:
        """Values per chunk of `bits` bits each; 0 if two are too many. With `roomy` chunks may be large."""
        room = 8 * (_LARGEST_CHUNK_BYTES if roomy else CHUNK_BYTES) // bits
        if room < _LEVEL_BLOCK and (self.nullable or bits <= 128):
            room = min(_LEVEL_BLOCK, 8 * _LARGEST_CHUNK_BYTES // bits)
        if room < 2:
            return 2 if bits <= 8 * _LARGEST_CHUNK_BYTES // 2 else 0
        return flat.power_of_two_values(min(room, _MOST_VALUES, self.max_values))


def _rounded(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return (sizes + 7) & ~np.int64(7)


@dataclass(frozen=True)
class Candidate:
    """A way to encode a page, and what it comes to.

    Attributes
    ----------
    size
        Bytes with chunk headers and level blocks, exact or nearly so.
    encode
        Does it; the reason is left to say how, without the sizes.
    exact
        Whether `size` is exactly what comes out.
    """

    size: int
    encode: Callable[[], EncodedChunks]
    exact: bool = False
