"""Encoded values of a page, before a layout arranges them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.v2_1.compressive import Encoding

__all__ = ["Bytes", "ChunkBuffer", "EncodedChunks", "EncodedDictionary", "EncodedItems"]

#: Bytes as the kernels give and take them.
Bytes: TypeAlias = "pa.Buffer | bytes | memoryview"
#: The bytes of all chunks back to back, and the end of each chunk in them (int64).
ChunkBuffer: TypeAlias = "tuple[Bytes, NDArray[np.int64]]"


@dataclass(frozen=True)
class EncodedDictionary:
    """The entries of a page dictionary.

    Attributes
    ----------
    encoding
        Of the entries, in block context.
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
        Of the values; with a dictionary, of the indices.
    counts
        Values of each chunk.
    buffers
        The value buffers.
    full
        Values of a full chunk for codecs whose chunks all have one size, else 0 (see `Assembly`).
    dictionary
        What the values are indices into, if they are.
    reason
        Why this encoding, in a short sentence.
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
        Of each value.
    width
        Bytes of every value; None if they vary.
    offset_bits
        Bits of the length in front of each value; None if all have one width.
    values
        Packed values, or the bytes that `offsets` point into.
    offsets, wide
        Offsets (64 bits if `wide`, else 32), one more than values; None for one width.
    reason
        Why this encoding, in a short sentence.
    """

    encoding: Encoding
    width: int | None
    offset_bits: int | None
    values: Bytes
    offsets: Bytes | None
    wide: bool
    reason: str
