"""Chunks of 2.3 whose parts are in encodings of block context -> chunks as 2.2 has them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.v2_1.compressive import (
    Encoding,
    Flat,
    General,
    InlineBitpacking,
    OutOfLineBitpacking,
    Rle,
    Variable,
)
from lance_dataset.file.v2_1.layout import MiniBlockLayout, list_depth, max_definition
from lance_dataset.file.v2_3.sequences import decode_integers, expand_runs, has_payload, integer_bits
from lancecodec import bitpacking, general, variable

__all__ = ["ChunkRewriter", "open_rewriter"]

_UNIT = 8
#: Most that a value buffer can hold decompressed.
_MAX_CHUNK = 1 << 31
_LEVEL_BITS = 16
#: Levels of the widest rewritten stream that a chunk of 65,535 levels has room for.
_MAX_LEVEL_WIDTH = 7

_Part: TypeAlias = "pa.Buffer | bytes"


def open_rewriter(layout: MiniBlockLayout, where: str) -> ChunkRewriter | None:
    """What rewrites the chunks of a page; None if they are as 2.2 has them.

    Raises
    ------
    UnsupportedError
        The page combines encodings that no release writes together.
    """
    plain = replace(
        layout,
        values=_plain_values(layout.values),
        rep=_plain_levels(layout.rep, list_depth(layout.layers), where),
        definition=_plain_levels(layout.definition, max_definition(layout.layers), where),
    )
    if plain == layout:
        return None
    buffers = layout.num_buffers if plain.values == layout.values else 1
    return ChunkRewriter(layout, replace(plain, num_buffers=buffers), where)


def _plain_values(encoding: Encoding) -> Encoding:
    inner = encoding.values if isinstance(encoding, General) else encoding
    if isinstance(inner, Rle) and not (isinstance(inner.values, Flat) and inner.lengths == Flat(8)):
        return Flat(integer_bits(inner))
    if isinstance(inner, Variable) and not isinstance(inner.offsets, Flat):
        bits = integer_bits(inner.offsets)
        if bits < 32:
            raise CorruptFileError(f"offsets of {bits} bits")
        return Variable(Flat(bits))
    return encoding


def _plain_levels(encoding: Encoding | None, highest: int, where: str) -> Encoding | None:
    if encoding is None or isinstance(encoding, Flat | InlineBitpacking | OutOfLineBitpacking):
        return encoding
    if encoding == Rle(Flat(_LEVEL_BITS), Flat(8)):
        return encoding
    width = highest.bit_length()
    if width > _MAX_LEVEL_WIDTH:
        raise UnsupportedError(f"{where}: levels up to {highest} with encoding {encoding}")
    return OutOfLineBitpacking(_LEVEL_BITS, width)


class ChunkRewriter:
    """Rewrites the chunks of a page.

    Parameters
    ----------
    stored
        The layout of the page.
    plain
        The layout its chunks get.
    where
        File, column and page, for error messages.
    """

    def __init__(self, stored: MiniBlockLayout, plain: MiniBlockLayout, where: str) -> None:
        self._stored = stored
        self.plain = plain
        self._where = where
        self._values = stored.values.values if isinstance(stored.values, General) else stored.values
        expected = self._count_buffers()
        if expected is not None and stored.num_buffers != expected:
            raise CorruptFileError(f"{where}: {stored.num_buffers} value buffers per chunk instead of {expected}")
        if stored.num_buffers > 16:
            raise CorruptFileError(f"{where}: {stored.num_buffers} value buffers per chunk")

    def _count_buffers(self) -> int | None:
        """Stored value buffers of a chunk; None if they are not rewritten."""
        values = self._values
        if self._stored.values == self.plain.values:
            return None
        if isinstance(values, Variable):
            return 1 + has_payload(values.offsets)
        assert isinstance(values, Rle)
        return has_payload(values.values) + has_payload(values.lengths)

    def rewrite(self, chunk: pa.Buffer, count: int) -> bytes:
        """A chunk of `count` values.

        Raises
        ------
        CodecError, CorruptFileError
            The chunk contradicts the layout.
        """
        num_levels, levels, values = self._split(chunk)
        streams: list[_Part] = []
        for encoding, plain, part in zip(
            (self._stored.rep, self._stored.definition), (self.plain.rep, self.plain.definition), levels, strict=True
        ):
            if part is not None:
                streams.append(part if encoding == plain else _repack(encoding, plain, part, num_levels))
        if self._stored.values != self.plain.values:
            values = [self._plain_value(values, count)]
        return _join(num_levels, streams, values)

    def _split(self, chunk: pa.Buffer) -> tuple[int, tuple[pa.Buffer | None, pa.Buffer | None], list[pa.Buffer]]:
        """Number of levels, the level streams, the value buffers."""
        stored = self._stored
        widths = [2 for encoding in (stored.rep, stored.definition) if encoding is not None] + [4] * stored.num_buffers
        data = memoryview(chunk)
        at = 2
        sizes = []
        for width in widths:
            sizes.append(int.from_bytes(data[at : at + width], "little"))
            at += width
        parts = []
        for size in sizes:
            at += -at % _UNIT
            if at + size > chunk.size:
                raise CorruptFileError(f"{self._where}: a part of {size} bytes at {at} of a chunk of {chunk.size}")
            parts.append(chunk.slice(at, size))
            at += size
        rep = parts.pop(0) if stored.rep is not None else None
        definition = parts.pop(0) if stored.definition is not None else None
        return int.from_bytes(data[:2], "little"), (rep, definition), parts

    def _plain_value(self, parts: list[pa.Buffer], count: int) -> _Part:
        encoding = self._values
        if isinstance(self._stored.values, General) and parts:
            scheme = self._stored.values.scheme
            parts = [pa.py_buffer(general.decompress(scheme, parts[0], max_size=_MAX_CHUNK)), *parts[1:]]
        if isinstance(encoding, Rle):
            stored = iter(parts)
            values = next(stored) if has_payload(encoding.values) else None
            lengths = next(stored) if has_payload(encoding.lengths) else None
            return expand_runs(encoding, values, lengths, count)
        assert isinstance(encoding, Variable)
        bits = integer_bits(encoding.offsets)
        payload = parts[0] if has_payload(encoding.offsets) else None
        return _with_offsets(decode_integers(encoding.offsets, payload, count + 1, bits), parts[-1], count, bits)


def _repack(encoding: Encoding | None, plain: Encoding | None, part: pa.Buffer, count: int) -> pa.Buffer:
    assert encoding is not None
    assert isinstance(plain, OutOfLineBitpacking)
    levels = decode_integers(encoding, part, count, _LEVEL_BITS)
    out = allocate(bitpacking.out_of_line_size(count, _LEVEL_BITS, plain.width))
    bitpacking.out_of_line_encode(levels, _LEVEL_BITS, plain.width, out)
    return out


def _with_offsets(offsets: pa.Buffer, data: pa.Buffer, count: int, bits: int) -> bytes:
    """A buffer of offsets and bytes as `Variable` with flat offsets has it."""
    header = allocate((count + 1) * bits // 8)
    variable.decode_generic(offsets, bits == 64, count, data.size, bits == 64, header, header.size)
    return b"".join([header, data, bytes(-(header.size + data.size) % (bits // 8))])


def _join(num_levels: int, streams: list[_Part], values: list[_Part]) -> bytes:
    """A chunk."""
    sizes = [memoryview(part).nbytes for part in (*streams, *values)]
    header = num_levels.to_bytes(2, "little") + b"".join(
        size.to_bytes(2 if number < len(streams) else 4, "little") for number, size in enumerate(sizes)
    )
    pieces = [header, bytes(-len(header) % _UNIT)]
    for part, size in zip((*streams, *values), sizes, strict=True):
        pieces += [part, bytes(-size % _UNIT)]
    return b"".join(pieces)
