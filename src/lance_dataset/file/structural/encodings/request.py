"""Encodings for the writer: the request, the cost of chunks, the offers of encodings and their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.options import EncodingOptions
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.encodings.fsst_tables import FsstTables
from lance_dataset.file.structural.encodings.values import Bytes, MeasuredWords, Strings, Words
from lance_dataset.late_dataclass import dataclass
from lancecodec import flat

__all__ = [
    "Bytes",
    "Candidate",
    "ChunkBuffer",
    "EncodedChunks",
    "EncodedDictionary",
    "EncodedItems",
    "Request",
    "TextEncoding",
    "WordEncoding",
    "cheapest",
    "in_units",
    "round_up",
    "steps",
]

#: Bytes of values in a chunk, unless more bytes give fewer level blocks. Large enough to make headers negligible, and
#: small enough that a read of a random row is one disk access.
CHUNK_BYTES = 8192
_LARGEST_CHUNK_BYTES = 16384
_MOST_VALUES = 16384
_LEVEL_BLOCK = 1024
_BLOCK_BYTES = 128
#: Maximum bytes of a chunk in 2.1.
_SMALL_CHUNK_LIMIT = 32768
#: Bytes of all chunks, concatenated, and the end of each chunk in them (int64).
ChunkBuffer: TypeAlias = "tuple[Bytes, NDArray[np.int64]]"


@dataclass(frozen=True)
class EncodedDictionary:
    """Entries of a page dictionary.

    Attributes
    ----------
    encoding
        Encoding of the entries, in block context.
    size
        Number of entries.
    buffer
        The page buffer.
    """

    encoding: Encoding
    size: int
    buffer: Bytes


@dataclass(frozen=True)
class EncodedChunks:
    """Values of a mini-block page, ready for `lancecodec.miniblock_write.Assembly`.

    Attributes
    ----------
    encoding
        Encoding of the values; with a dictionary, of the indices.
    counts
        Number of values of each chunk.
    buffers
        The value buffers.
    full
        Values of a full chunk for codecs with chunks of equal size, else 0 (see `Assembly`).
    dictionary
        Entries of the dictionary if the values are indices.
    reason
        Reason for this encoding, in a short sentence.
    """

    encoding: Encoding
    counts: NDArray[np.int64]
    buffers: list[ChunkBuffer]
    full: int
    dictionary: EncodedDictionary | None
    reason: str


@dataclass(frozen=True)
class EncodedItems:
    """Visible values of a full-zip page, ready for `lancecodec.fullzip.ZipLayout.zip_items`.

    Attributes
    ----------
    encoding
        Encoding of each value.
    width
        Bytes of every value; None if widths vary.
    offset_bits
        Bits of the length in front of each value; None for fixed-width values.
    values
        Packed values, or the bytes to which `offsets` point.
    offsets, wide
        Offsets (64 bits if `wide`, else 32), one more than values; None for fixed-width values.
    reason
        Reason for this encoding, in a short sentence.
    """

    encoding: Encoding
    width: int | None
    offset_bits: int | None
    values: Bytes
    offsets: Bytes | None
    wide: bool
    reason: str


def round_up(size: int) -> int:
    """Return a size rounded up to a multiple of 8."""
    return (size + 7) & ~7


def in_units(size: int) -> str:
    """Return a size with its unit as text for reports."""
    if size < 10_000:
        return f"{size:,} B"
    return f"{size / 1000:,.0f} KB" if size < 10_000_000 else f"{size / 1e6:,.1f} MB"


def steps(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sizes of adjacent parts, given the end of each."""
    sizes = ends.copy()
    sizes[1:] -= ends[:-1]
    return sizes


@dataclass(frozen=True)
class Request:
    """Conditions under which the values of a page are encoded.

    Attributes
    ----------
    options
        Encoding options from the metadata of the field.
    large
        True if chunk words and sizes of value buffers have 32 bits (2.2).
    nullable
        True if there are nulls, so chunks have definition levels.
    max_values
        Maximum values of a chunk, a power of two.
    alone
        True if plain values of whole bytes need no chunks.
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
        """Return the bytes of a chunk's header and its chunk word."""
        word = 4 if self.large else 2
        return round_up(2 + 2 * self.nullable + word * buffers) + word

    def level_bytes(self, values: int) -> int:
        """Return the bytes of the bit-packed definition levels of a chunk."""
        if not self.nullable:
            return 0
        blocks, rest = divmod(values, _LEVEL_BLOCK)
        return blocks * _BLOCK_BYTES + round_up(min(2 * rest, _BLOCK_BYTES))

    def even_size(self, count: int, per_chunk: int, bits: Sequence[int]) -> int:
        """Return the bytes of `count` plain values in chunks of `per_chunk`, with the bits per value of each buffer."""
        if self.alone and len(bits) == 1 and bits[0] % 8 == 0:
            return count * bits[0] // 8
        chunks, rest = divmod(count, per_chunk)
        return chunks * self._chunk(per_chunk, bits) + (self._chunk(rest, bits) if rest else 0)

    def _chunk(self, values: int, bits: Sequence[int]) -> int:
        sizes = sum(round_up((values * width + 7) // 8) for width in bits)
        return self.header(len(bits)) + self.level_bytes(values) + sizes

    def size(self, encoded: EncodedChunks) -> int:
        """Return the bytes of encoded chunks, their words, their dictionary and their FSST table."""
        flat_bits = encoded.encoding.flat_bits
        if self.alone and encoded.dictionary is None and flat_bits is not None:
            return self.even_size(int(encoded.counts.sum()), encoded.full, [flat_bits])
        total = self.layout_size(encoded.counts, [ends for _, ends in encoded.buffers])
        if encoded.dictionary is not None:
            total += memoryview(encoded.dictionary.buffer).nbytes
        return total + len(encoded.encoding.item_symbols or b"")

    def layout_size(self, counts: NDArray[np.int64], ends: Sequence[NDArray[np.int64]]) -> int:
        """Return the bytes of chunks and their words, given the values of each chunk and the ends of its buffers."""
        total = len(counts) * self.header(len(ends))
        for places in ends:
            total += int(_rounded(steps(places)).sum())
        if self.nullable:
            blocks, rest = np.divmod(counts, _LEVEL_BLOCK)
            total += int((blocks * _BLOCK_BYTES + _rounded(np.minimum(2 * rest, _BLOCK_BYTES))).sum())
        return total

    def fits(self, encoded: EncodedChunks) -> bool:
        """Return whether all chunks, without levels, are small enough for the file version."""
        if self.large or not len(encoded.counts):
            return True
        sizes = sum(_rounded(steps(ends)) for _, ends in encoded.buffers)
        return int(np.max(sizes)) + self.header(len(encoded.buffers)) <= _SMALL_CHUNK_LIMIT

    def flat_values(self, bits: int, roomy: bool = False) -> int:
        """Return the number of `bits`-bit values per chunk, 0 if two do not fit. With `roomy`, chunks may be large."""
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
    """A possible encoding of a page, with its size.

    Attributes
    ----------
    size
        Bytes including chunk headers and level blocks, exact or nearly so.
    encode
        Function that encodes the values; it leaves the sizes out of the reason.
    exact
        True if `size` is exactly the size of the result.
    """

    size: int
    encode: Callable[[], EncodedChunks]
    exact: bool = False


def cheapest(candidates: list[Candidate], request: Request) -> EncodedChunks:
    """Encode with the smallest candidate, the first of equal ones; estimated sizes are checked after encoding.

    Candidates are ordered by their cost of decoding.
    """
    best: EncodedChunks | None = None
    best_size = 0
    for candidate in sorted(candidates, key=lambda one: one.size):
        if best is not None and best_size <= candidate.size:
            break
        encoded = candidate.encode()
        size = candidate.size if candidate.exact else request.size(encoded)
        if best is None or size < best_size:
            best, best_size = encoded, size
    if best is None:
        raise ValueError("no way to encode the values of a page was offered")
    return best


class WordEncoding(Encoding):
    """An encoding that the writer may choose for fixed-width values."""

    @classmethod
    def candidate(cls, measured: MeasuredWords, plain: int, request: Request) -> Candidate | None:
        """Offer to encode words of 8 to 64 bits in chunks.

        Parameters
        ----------
        measured
            The words.
        plain
            Bytes of the words in flat chunks. The candidate must be smaller.
        request
            Conditions of the page.
        """
        return None

    @classmethod
    def compressible(cls, words: Words, per_chunk: int, request: Request) -> list[EncodedChunks]:
        """Encode words with up to `per_chunk` values per chunk, in the ways that suit general compression."""
        return []


class TextEncoding(Encoding):
    """An encoding that the writer may choose for strings and binaries."""

    @classmethod
    def candidate(cls, strings: Strings, text: bool, plain: int, rival: int, request: Request) -> Candidate | None:
        """Offer to encode strings in chunks.

        Parameters
        ----------
        strings
            The strings.
        text
            True if they are UTF-8.
        plain
            Bytes of the strings without compression.
        rival
            Smallest size of the other candidates.
        request
            Conditions of the page.
        """
        return None
