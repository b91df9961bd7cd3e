"""Flat: fixed-width values side by side."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import aligned, allocate
from lance_dataset.file.sizes import size_text
from lance_dataset.file.structural.arrays import fixed_array, value_bits
from lance_dataset.file.structural.encodings.base import MAX_BITS, ParsePart, StoredValues, check_no_compression
from lance_dataset.file.structural.encodings.request import Candidate, EncodedChunks, Request, WordEncoding
from lance_dataset.file.structural.encodings.values import Bytes, Words
from lance_dataset.late_dataclass import dataclass
from lancecodec import flat, miniblock_levels, miniblock_values

__all__ = ["Flat", "encode_bits", "flat_candidate", "flat_chunks", "flat_ends", "flat_message", "parse_flat_part"]

_LEVEL_BITS = 16


@dataclass(frozen=True)
class Flat(WordEncoding):
    """Values of `bits` bits, stored side by side."""

    bits: int

    message_field = "flat"
    is_simple_part = True

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> Flat:
        """See `Encoding.parse`."""
        check_no_compression(message, "data")
        if not 0 < message.bits_per_value <= MAX_BITS:
            raise CorruptFileError(f"flat encoding with {message.bits_per_value} bits per value")
        return _shared(message.bits_per_value)

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        return flat_message(pb, self.bits)

    @property
    def flat_bits(self) -> int:
        """See `Encoding.flat_bits`."""
        return self.bits

    @property
    def plain_item_bits(self) -> int | None:
        """See `Encoding.plain_item_bits`."""
        return None if self.bits % 8 else self.bits

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def least_bits(self) -> tuple[float, ...]:
        """See `Encoding.least_bits`."""
        return (self.bits,)

    def chunk_codec(self, where: str) -> tuple[int, int]:
        """See `Encoding.chunk_codec`."""
        return miniblock_values.FLAT, self.bits

    def taken_entries(self, buffer: pa.Buffer, size: int, bits: int, most_bytes: int) -> pa.Buffer | bytes:
        """See `Encoding.taken_entries`."""
        return buffer if bits == self.bits else super().taken_entries(buffer, size, bits, most_bytes)

    def entries_codec(self, bits: int) -> int | None:
        """See `Encoding.entries_codec`."""
        return miniblock_values.FLAT if bits == self.bits else None

    @property
    def level_codec(self) -> tuple[int, int] | None:
        """See `Encoding.level_codec`."""
        return (miniblock_levels.FLAT, 0) if self.bits == _LEVEL_BITS else None

    @property
    def item_width(self) -> int | None:
        """See `Encoding.item_width`."""
        return None if self.bits % 8 else self.bits // 8

    def fixed_items(self, value_type: pa.DataType, values: pa.Buffer, length: int, where: str) -> pa.Array:
        """See `Encoding.fixed_items`."""
        if self.bits == 8 and pa.types.is_boolean(value_type):
            bits = allocate((length + 7) // 8)
            flat.booleans_from_bytes(values.slice(0, length), bits)
            return fixed_array(value_type, length, bits)
        if self.bits != value_bits(value_type):
            raise CorruptFileError(f"{where}: values of {self.bits} bits do not fit the type {value_type}")
        return fixed_array(value_type, length, aligned(values, self.bits // 8))

    def decode_block(self, buffer: pa.Buffer, count: int, bits: int, out: pa.Buffer, where: str) -> None:
        """See `Encoding.decode_block`."""
        flat.decode(buffer, count, bits, out)

    def planar_entries(self, buffer: pa.Buffer, size: int, value_type: pa.DataType, where: str) -> pa.Array:
        """See `Encoding.planar_entries`."""
        return self.entries(buffer, size, value_type, where)

    def decode_integers(self, payload: pa.Buffer | None, count: int, bits: int, out: pa.Buffer) -> None:
        """See `Encoding.decode_integers`."""
        flat.decode(payload or b"", count, bits, out)

    def stored_count(self, payload: pa.Buffer | None) -> int | None:
        """See `Encoding.stored_count`."""
        return None if payload is None else payload.size * 8 // self.bits

    # -- writing -------------------------------------------------------------------------------------------------

    @classmethod
    def compressible(cls, words: Words, per_chunk: int, request: Request) -> list[EncodedChunks]:
        """See `WordEncoding.compressible`."""
        return [flat_chunks(words.buffer, words.bits, words.count, per_chunk)]

    # -- report --------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        return f"flat {self.bits}"

    @property
    def is_plain(self) -> bool:
        """See `Encoding.is_plain`."""
        return True

    def reason(self, stored: StoredValues) -> str:
        """See `Encoding.reason`."""
        return f"{stored.count:,} values of {self.bits} bits as they are: {size_text(stored.size)}"


@lru_cache(maxsize=256)
def _shared(bits: int) -> Flat:
    """Return a shared object for all pages, as thousands of pages are open at a time."""
    return Flat(bits)


def parse_flat_part(message: Any, name: str, part: ParsePart) -> Flat:
    """Parse a part of an encoding that must be flat."""
    parsed = part(message, name)
    if not isinstance(parsed, Flat):
        raise CorruptFileError(f"{name} of encoding {message.DESCRIPTOR.name} is {type(parsed).__name__}, not flat")
    return parsed


def flat_message(pb: Any, bits: int) -> Any:
    """Return the message of flat values; see `Encoding.to_message`."""
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def flat_ends(count: int, per_chunk: int, width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of values of each chunk and the byte where it ends, for values of `width` bytes."""
    chunks = -(-count // per_chunk)
    ends = np.arange(width * per_chunk, width * per_chunk * (chunks + 1), width * per_chunk, dtype=np.int64)
    counts = np.full(chunks, per_chunk, np.int64)
    ends[-1:] = count * width
    counts[-1:] = count - (chunks - 1) * per_chunk
    return counts, ends


def flat_chunks(buffer: Bytes, bits: int, count: int, per_chunk: int) -> EncodedChunks:
    """Encode values of whole bytes in chunks without compression."""
    counts, ends = flat_ends(count, per_chunk, bits // 8)
    return EncodedChunks(Flat(bits), counts, [(buffer, ends)], per_chunk, None, "flat")


def flat_candidate(words: Words, request: Request) -> Candidate | None:
    """Return the candidate without compression, the baseline for others; None if two words are too wide for a chunk."""
    per_chunk = request.flat_values(words.bits)
    if per_chunk == 0:
        return None
    return Candidate(
        request.even_size(words.count, per_chunk, [words.bits]),
        lambda: flat_chunks(words.buffer, words.bits, words.count, per_chunk),
        exact=True,
    )


def encode_bits(values: pa.Buffer, bit: int, count: int, request: Request) -> EncodedChunks:
    """Encode booleans in chunks, starting at bit `bit` of a buffer."""
    per_chunk = request.flat_values(1)
    counts, ends = flat_ends(count, per_chunk, 1)
    out = allocate(sum((size + 7) // 8 for size in counts.tolist()))
    flat.encode(values, bit, count, 1, per_chunk, out, ends)
    return EncodedChunks(Flat(1), counts, [(out, ends)], per_chunk, None, "a bit each")
