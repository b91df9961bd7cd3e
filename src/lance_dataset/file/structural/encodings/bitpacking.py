"""Bit packing of blocks of 1,024 words to the bits of the largest word, with the width in each block or the message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.structural.encodings.base import (
    Encoding,
    ParsePart,
    StoredValues,
    check_no_compression,
    range_text,
    word_bits,
)
from lance_dataset.file.structural.encodings.flat import flat_ends, flat_message
from lance_dataset.file.structural.encodings.request import Candidate, EncodedChunks, Request, WordEncoding
from lance_dataset.file.structural.encodings.values import Bytes, MeasuredWords, Words
from lance_dataset.late_dataclass import dataclass
from lancecodec import CodecError, bitpacking, miniblock_levels, miniblock_values

__all__ = ["InlineBitpacking", "OutOfLineBitpacking", "packed_entries"]

_BLOCK = bitpacking.BLOCK_VALUES
_LEVEL_BITS = 16


@dataclass(frozen=True)
class InlineBitpacking(WordEncoding):
    """Blocks of 1,024 values of `bits` bits, each preceded by its packed width."""

    bits: int

    message_field = "inline_bitpacking"
    is_simple_part = True

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> InlineBitpacking:
        """See `Encoding.parse`."""
        check_no_compression(message, "values")
        return cls(word_bits(message))

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        return pb.CompressiveEncoding(inline_bitpacking=pb.InlineBitpacking(uncompressed_bits_per_value=self.bits))

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def least_bits(self) -> tuple[float, ...]:
        """See `Encoding.least_bits`; a block consists of at least a header."""
        return (self.bits / _BLOCK,)

    def chunk_codec(self, where: str) -> tuple[int, int]:
        """See `Encoding.chunk_codec`."""
        return miniblock_values.INLINE, self.bits

    def most_chunk_bytes(self, count: int, where: str) -> int:
        """See `Encoding.most_chunk_bytes`; the last block is full, and each has a header."""
        return self.padded_bytes((count // _BLOCK + 1) * (_BLOCK + 1), self.bits)

    def entries_codec(self, bits: int) -> int | None:
        """See `Encoding.entries_codec`."""
        return miniblock_values.INLINE if bits == self.bits else None

    @property
    def level_codec(self) -> tuple[int, int] | None:
        """See `Encoding.level_codec`."""
        return (miniblock_levels.INLINE, 0) if self.bits == _LEVEL_BITS else None

    def decode_block(self, buffer: pa.Buffer, count: int, bits: int, out: pa.Buffer, where: str) -> None:
        """See `Encoding.decode_block`."""
        bitpacking.inline_block_decode(buffer, bits, count, out)

    def decode_integers(self, payload: pa.Buffer | None, count: int, bits: int, out: pa.Buffer) -> None:
        """See `Encoding.decode_integers`."""
        bitpacking.inline_block_decode(payload or b"", bits, count, out)

    def count_summing_to(self, payload: pa.Buffer | None, total: int) -> int | None:
        """See `Encoding.count_summing_to`; there is only one block."""
        if payload is None:
            return None
        out = allocate(_BLOCK * self.bits // 8)
        bitpacking.inline_block_decode(payload, self.bits, _BLOCK, out)
        return _count_summing_to(out, self.bits, total)

    # -- writing -------------------------------------------------------------------------------------------------

    @classmethod
    def candidate(cls, measured: MeasuredWords, plain: int, request: Request) -> Candidate | None:
        """See `WordEncoding.candidate`."""
        words, size = measured.packed, measured.packed_size
        if size >= plain or request.max_values < _BLOCK:
            return None
        chunks = -(-words.count // _BLOCK)
        packed = size - chunks * words.width
        last = words.count - (chunks - 1) * _BLOCK
        levels = (chunks - 1) * request.level_bytes(_BLOCK) + request.level_bytes(last)
        return Candidate(chunks * (request.header(1) + 8) + packed + levels, lambda: _pack(words), exact=True)

    # -- report --------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        return f"bit packing {self.bits}"

    def reason(self, stored: StoredValues) -> str:
        """See `Encoding.reason`."""
        widths = "" if stored.widths is None else f"the values of a chunk fit in {range_text(stored.widths)} of "
        return f"{widths}{self.bits} bits: {stored.sizes('flat')}"

    def bit_widths(self, sizes: NDArray[np.int64]) -> tuple[int, int] | None:
        """See `Encoding.bit_widths`; a chunk is one word with the width, and 1,024 values of that width."""
        if not sizes.size:
            return None
        widths = (sizes - self.bits // 8) // 128
        return int(widths.min()), int(widths.max())


@dataclass(frozen=True)
class OutOfLineBitpacking(Encoding):
    """Blocks of 1,024 values of `bits` bits packed to `width`."""

    bits: int
    width: int

    message_field = "out_of_line_bitpacking"
    is_simple_part = True

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> OutOfLineBitpacking:
        """See `Encoding.parse`."""
        bits, flat = word_bits(message), message.values.flat
        width = flat.bits_per_value  # 0 is allowed here, unlike for flat values
        if message.values.WhichOneof("compression") != "flat" or width > bits:
            raise CorruptFileError(f"bit packing of {bits}-bit values with width {width}")
        return cls(bits, width)

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        values = flat_message(pb, self.width)
        packed = pb.OutOfLineBitpacking(uncompressed_bits_per_value=self.bits, values=values)
        return pb.CompressiveEncoding(out_of_line_bitpacking=packed)

    @property
    def level_codec(self) -> tuple[int, int] | None:
        """See `Encoding.level_codec`."""
        return (miniblock_levels.OUT_OF_LINE, self.width) if self.bits == _LEVEL_BITS else None

    def decode_block(self, buffer: pa.Buffer, count: int, bits: int, out: pa.Buffer, where: str) -> None:
        """See `Encoding.decode_block`."""
        bitpacking.out_of_line_decode(buffer, bits, self.width, count, out)

    def decode_integers(self, payload: pa.Buffer | None, count: int, bits: int, out: pa.Buffer) -> None:
        """See `Encoding.decode_integers`."""
        bitpacking.out_of_line_decode(payload or b"", bits, self.width, count, out)

    def count_summing_to(self, payload: pa.Buffer | None, total: int) -> int | None:
        """See `Encoding.count_summing_to`: all that fit if the last block is plain, otherwise up to the sum."""
        if payload is None:
            return None
        block = _BLOCK * self.width // 8
        if block == 0 or payload.size == 0:
            raise CorruptFileError("run lengths that are all 0, or none")
        if payload.size % block == 0:
            packed = payload.size // block * _BLOCK
            out = allocate(packed * self.bits // 8)
            bitpacking.unpack(payload, self.bits, self.width, 0, packed, out)
            try:
                return _count_summing_to(out, self.bits, total)
            except CodecError:
                pass  # a plain tail has the size of a packed block
        full = (payload.size - 1) // block
        return full * _BLOCK + (payload.size - full * block) * 8 // self.bits

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        return f"bit packing {self.width} of {self.bits}"


def _count_summing_to(lengths: pa.Buffer, bits: int, total: int) -> int:
    ends = np.cumsum(np.frombuffer(lengths, f"u{bits // 8}"), dtype=np.uint64)
    runs = int(np.searchsorted(ends, total)) + 1 if total else 0
    if runs > len(ends) or (runs and ends[runs - 1] != total):
        raise CodecError(f"run lengths that do not add up to {total}")
    return runs


def _pack(words: Words) -> EncodedChunks:
    counts, ends = flat_ends(words.count, _BLOCK, 1)
    out = allocate(bitpacking.inline_bound(words.count, words.bits))
    size = bitpacking.inline_encode(words.buffer, words.bits, out, ends)
    return EncodedChunks(InlineBitpacking(words.bits), counts, [(out.slice(0, size), ends)], 0, None, "bit packing")


def packed_entries(values: Bytes, bits: int, count: int) -> tuple[Encoding, Bytes]:
    """Return the packed entries of a dictionary with their encoding."""
    if count <= _BLOCK:
        out = allocate(bitpacking.inline_bound(count, bits))
        size = bitpacking.inline_encode(values, bits, out, np.empty(1, np.int64))
        return InlineBitpacking(bits), out.slice(0, size)
    width = max(1, bitpacking.width(values, bits))
    out = allocate(bitpacking.out_of_line_size(count, bits, width))
    return OutOfLineBitpacking(bits, width), out.slice(0, bitpacking.out_of_line_encode(values, bits, width, out))
