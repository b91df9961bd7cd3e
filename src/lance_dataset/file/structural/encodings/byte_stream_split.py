"""Byte-stream split: byte j of all values together, which general compression compresses better."""

from __future__ import annotations

from typing import Any

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.structural.encodings.base import ParsePart, StoredValues
from lance_dataset.file.structural.encodings.flat import flat_ends, flat_message, parse_flat_part
from lance_dataset.file.structural.encodings.request import EncodedChunks, Request, WordEncoding
from lance_dataset.file.structural.encodings.values import Words
from lance_dataset.late_dataclass import dataclass
from lancecodec import byte_stream_split, miniblock_values, statistics

__all__ = ["ByteStreamSplit"]

#: Splitting pays below this many bits of entropy per byte position. The reference uses the same threshold.
_SPLIT_ENTROPY = 4.0
_SPLIT_BYTES = 4096


@dataclass(frozen=True)
class ByteStreamSplit(WordEncoding):
    """Values stored with byte j of all values together."""

    bits: int

    message_field = "byte_stream_split"

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> ByteStreamSplit:
        """See `Encoding.parse`."""
        bits = parse_flat_part(message, "values", part).bits
        if bits not in (32, 64):
            raise CorruptFileError(f"byte-stream split of values of {bits} bits")
        return cls(bits)

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        return pb.CompressiveEncoding(byte_stream_split=pb.ByteStreamSplit(values=flat_message(pb, self.bits)))

    @property
    def least_bits(self) -> tuple[float, ...]:
        """See `Encoding.least_bits`."""
        return (self.bits,)

    def chunk_codec(self, where: str) -> tuple[int, int]:
        """See `Encoding.chunk_codec`."""
        return miniblock_values.SPLIT, self.bits

    @classmethod
    def compressible(cls, words: Words, per_chunk: int, request: Request) -> list[EncodedChunks]:
        """See `WordEncoding.compressible`; the better size of a chunk differs from page to page."""
        mode = request.options.byte_stream_split
        if words.bits not in (32, 64) or mode == "off":
            return []
        if mode != "on" and statistics.byte_entropy(words.buffer, words.width) >= _SPLIT_ENTROPY:
            return []
        return [_split(words, min(_SPLIT_BYTES // words.width, per_chunk)), _split(words, per_chunk)]

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        return f"byte-stream split {self.bits}"

    def reason(self, stored: StoredValues) -> str:
        """See `Encoding.reason`."""
        streams = f"byte i of all values together, {self.bits // 8} streams"
        return f"{streams}, which compress better: {stored.sizes('flat')}"


def _split(words: Words, per_chunk: int) -> EncodedChunks:
    counts, ends = flat_ends(words.count, per_chunk, words.width)
    out = allocate(words.count * words.width)
    byte_stream_split.encode(words.buffer, words.bits, per_chunk, out, ends)
    return EncodedChunks(ByteStreamSplit(words.bits), counts, [(out, ends)], 0, None, "byte streams")
