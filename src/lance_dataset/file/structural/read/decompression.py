"""Decompression of the chunks of mini-block pages, without more memory than their values need.

A few bytes can decompress to a gigabyte. So a chunk must claim no more bytes than its values can take, before anything
is allocated for it, and only so many chunks are decompressed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import MEMORY_PER_BYTE, check_memory, memory_allowance
from lancecodec import CodecError
from lancecodec.miniblock import Chunks

__all__ = ["ALL_VALUES", "SPAN_BYTES", "WantedValues", "WideSpanError", "check_span", "decompress_chunks"]

#: Bytes that the chunks of one read may have together, beyond what their stored bytes allow.
SPAN_BYTES = 32 << 20
#: Maximum bytes of a chunk of texts, far above what writers store: two values may be of any length.
_MAX_TEXT_BYTES = 1 << 31
#: Bytes that a chunk of texts is likely to have at most.
_USUAL_TEXT_BYTES = 1 << 20
#: Maximum bytes behind the last text of a chunk.
_TEXT_PADDING = 64


class WideSpanError(Exception):
    """The chunks of some rows have too many bytes to be decompressed together; fewer rows have fewer chunks."""


@dataclass(frozen=True)
class WantedValues:
    """Values of a page that are read, and that the result has room for.

    Attributes
    ----------
    start, stop
        Range of the values.
    items
        Their positions in any order, instead of the range.
    divisible
        True if the read can be divided into several.
    """

    start: int = 0
    stop: int = 0
    items: NDArray[np.int64] | None = None
    divisible: bool = True

    def positions(self, first: int, stop: int) -> NDArray[np.int64]:
        """Return the distinct positions in a chunk of values ``[first, stop)``, counted from its first value."""
        if self.items is None:
            return np.arange(max(first, self.start), min(stop, self.stop), dtype=np.int64) - first
        return np.unique(self.items[(self.items >= first) & (self.items < stop)]) - first


#: All values of the chunks that are read.
ALL_VALUES = WantedValues(0, 1 << 62)


def check_span(size: int, stored: int, chunks: int, wanted: WantedValues) -> None:
    """Raise WideSpanError if several chunks have too many bytes to be in memory together.

    Parameters
    ----------
    size, stored
        Bytes of the chunks, decompressed and in the file.
    chunks
        Number of the chunks.
    wanted
        The values that are read.
    """
    if size > SPAN_BYTES + MEMORY_PER_BYTE * stored and chunks > 1 and wanted.divisible:
        raise WideSpanError(f"{chunks} chunks of {size} bytes")


def decompress_chunks(
    chunks: Chunks, encoding: Encoding, spans: Sequence[tuple[int, int]], wanted: WantedValues, where: str
) -> None:
    """Decompress loaded chunks.

    Parameters
    ----------
    chunks
        The chunks.
    encoding
        Encoding of their values with general compression.
    spans
        Ranges of chunks.
    wanted
        The values that are read.
    where
        File, column and page, for error messages.

    Raises
    ------
    CodecError, CorruptFileError
        A chunk is broken, or has more or fewer bytes than its values.
    MemoryLimitError
        A chunk needs too much memory for the wanted values.
    WideSpanError
        See `check_span`.
    """
    firsts, inner = chunks.table.firsts, encoding.inner
    least, several = sum(inner.least_bits[:1]), sum(stop - first for first, stop in spans)
    size = stored = 0
    for number in chain.from_iterable(range(first, stop) for first, stop in spans):
        unit = chunks.stored(number)
        first, stop = firsts[number], firsts[number + 1]
        count = stop - first
        most = inner.most_chunk_bytes(count, where)
        try:
            plain = encoding.decompress(unit, _USUAL_TEXT_BYTES if most is None else most)
        except CodecError:
            if most is not None:
                raise
            plain = _large_texts(encoding, unit, count, wanted.positions(first, stop), f"{where}: chunk {number}")
        if count * least > 8 * len(plain):
            raise CorruptFileError(f"chunk {number}: {count} values in {len(plain)} bytes")
        size, stored = size + len(plain), stored + len(unit)
        check_span(size, stored, several, wanted)
        chunks.replace(number, plain)


def _large_texts(encoding: Encoding, unit: bytes, count: int, wanted: NDArray[np.int64], where: str) -> pa.Buffer:
    """Decompress a chunk of texts that may have more bytes than usual."""
    claim = encoding.decompressed_size(unit)
    if claim is None:
        return encoding.decompress(unit, memory_allowance(len(unit)))
    if _USUAL_TEXT_BYTES < claim <= _MAX_TEXT_BYTES:
        _check_texts(encoding, unit, claim, count, wanted, where)
    return encoding.decompress(unit, min(claim, _MAX_TEXT_BYTES))


def _check_texts(encoding: Encoding, unit: bytes, size: int, count: int, wanted: NDArray[np.int64], where: str) -> None:
    """Check that a chunk has all the bytes it claims for its texts, and that most of them are wanted."""
    kind = np.dtype(np.int64 if encoding.inner.text_codec(where)[0] else np.int32)
    head = (count + 1) * kind.itemsize
    ends = np.frombuffer(encoding.decompress_first(unit, head), np.uint8)
    if len(ends) != head:
        raise CorruptFileError(f"{where}: {len(ends)} bytes are too few for the offsets of {count} values")
    offsets = ends.view(kind).astype(np.int64)
    lengths = np.diff(offsets)
    if offsets[0] < head or (lengths < 0).any() or not size - _TEXT_PADDING <= offsets[-1] <= size:
        raise CorruptFileError(f"{where}: offsets from {offsets[0]} to {offsets[-1]} in {size} bytes")
    check_memory(size - int(lengths[wanted].sum()), len(unit), where)
