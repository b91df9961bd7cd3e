"""Columns of pages of every kind for tests of windows, with what they hold."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lancecodec import bitpacking, fsst, take_pages
from lancecodec import miniblock_levels as levels
from lancecodec import miniblock_values as values
from lancecodec.miniblock import Chunks
from support.pages.take_pages import WORDS, chunks_of, cut, inline, text_chunk
from support.pages.window_pages import Column

COUNTS = [1024, 256, 32, 64, 5]
ROWS = sum(COUNTS)


def level_chunk(kind: int, nulls: np.ndarray) -> bytes:
    level = nulls.astype(np.uint16)
    if kind == levels.INLINE:
        return inline(level)
    if kind == levels.RLE:
        return struct.pack("<Q", 2 * len(level)) + level.tobytes() + bytes([1] * len(level))
    if kind == levels.OUT_OF_LINE:
        out = np.zeros(bitpacking.out_of_line_size(len(level), 16, 1), np.uint8)
        bitpacking.out_of_line_encode(level, 16, 1, out)
        return out.tobytes()
    return level.tobytes()


def page_chunks(
    buffers: Sequence[Sequence[bytes]], nulls: np.ndarray | None = None, kind: int = levels.FLAT
) -> tuple[Chunks, tuple[int, int] | None]:
    """Return chunks with levels, and the codec of these."""
    if nulls is None:
        return chunks_of(buffers, counts=COUNTS), None
    streams = [[level_chunk(kind, part) for part in cut(nulls, COUNTS)]]
    return chunks_of(buffers, streams, COUNTS), (kind, 1)


def fixed_buffers(codec: int, stored: np.ndarray) -> list[list[bytes]]:
    """Return the buffers of values of a type of numbers, or of rows of bytes."""
    parts = cut(stored, COUNTS)
    if codec == values.INLINE:
        return [[inline(part) for part in parts]]
    if codec == values.RLE:
        return [[part.tobytes() for part in parts], [bytes([1] * len(part)) for part in parts]]
    if codec == values.SPLIT:
        return [[part.view(np.uint8).reshape(len(part), -1).T.tobytes() for part in parts]]
    return [[part.tobytes() for part in parts]]


def numbers(codec: int, bits: int, seed: int, nullable: bool, level: int = levels.FLAT) -> Column:
    rng = np.random.default_rng(seed)
    stored = rng.integers(0, 120, ROWS).astype(f"u{bits // 8}")
    nulls = rng.random(ROWS) < 0.3 if nullable else None
    chunks, definition = page_chunks(fixed_buffers(codec, stored), nulls, level)
    page = take_pages.fixed_chunks(chunks, bits // 8, codec, bits, definition=definition)
    return Column([page], pa.array(stored, mask=nulls))


def rows_of_bytes(width: int, codec: int, seed: int) -> Column:
    stored = np.random.default_rng(seed).integers(0, 256, (ROWS, width)).astype(np.uint8)
    chunks, _ = page_chunks(fixed_buffers(codec, stored))
    page = take_pages.fixed_chunks(chunks, width, codec, 8 * width)
    return Column([page], pa.array([row.tobytes() for row in stored], pa.binary(width)))


def booleans(seed: int, nullable: bool) -> Column:
    rng = np.random.default_rng(seed)
    flags, nulls = rng.random(ROWS) < 0.5, rng.random(ROWS) < 0.3 if nullable else None
    packed = [np.packbits(part, bitorder="little").tobytes() for part in cut(flags, COUNTS)]
    chunks, definition = page_chunks([packed], nulls)
    page = take_pages.fixed_chunks(chunks, 0, values.FLAT, 1, definition=definition)
    return Column([page], pa.array(flags, mask=nulls))


#: Texts of dictionaries and of pages.
CHOICES: dict[str, list[str]] = {
    "equal": ["abc", "def", "grü"[:2] + "x", "xyz"],
    "equal long": ["x" * 40, "y" * 40],
    "short": ["", "a", "word", "grün", "seven77"],
    "middle": ["", "word", "sixteen bytes 16"],
    "longer": ["", "a word", "thirty-two bytes are the most..."],
    "long": WORDS,
    "skewed": ["a"] * 60 + ["twenty-eight bytes, not more"],
    "empty": ["", ""],
}


def codes_of(rng: np.random.Generator, count: int, bits: int, nulls: np.ndarray | None) -> np.ndarray:
    """Return codes; those of nulls may be anything."""
    codes = rng.integers(0, count, ROWS).astype(f"u{bits // 8}")
    if nulls is not None:
        codes[nulls] = rng.integers(0, 255, int(nulls.sum()))
    return codes


def named(which: str, kind: pa.DataType, bits: int, seed: int, nullable: bool, codec: int = values.INLINE) -> Column:
    """Return a column of texts in a dictionary."""
    rng, entries = np.random.default_rng(seed), pa.array(CHOICES[which], kind)
    nulls = rng.random(ROWS) < 0.3 if nullable else None
    codes = codes_of(rng, len(entries), bits, nulls)
    chunks, definition = page_chunks(fixed_buffers(codec, codes), nulls)
    page = take_pages.fixed_chunks(
        chunks,
        -1,
        codec,
        bits,
        definition=definition,
        entries=entries.buffers()[2] or b"",
        offsets=entries.buffers()[1],
        wide=pa.types.is_large_string(kind),
        count=len(entries),
    )
    valid = codes if nulls is None else np.where(nulls, 0, codes)
    return Column([page], entries.take(pa.array(valid, mask=nulls)))


def indexed(width: int, bits: int, seed: int, nullable: bool, codec: int = values.INLINE) -> Column:
    """Return a column of values of a fixed size in a dictionary."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, (9, width)).astype(np.uint8)
    nulls = rng.random(ROWS) < 0.3 if nullable else None
    codes = codes_of(rng, 9, bits, nulls)
    chunks, definition = page_chunks(fixed_buffers(codec, codes), nulls)
    page = take_pages.fixed_chunks(
        chunks, width, codec, bits, definition=definition, entries=data.tobytes(), count=len(data)
    )
    valid = codes if nulls is None else np.where(nulls, 0, codes)
    entries = pa.array([row.tobytes() for row in data], pa.binary(width))
    return Column([page], entries.take(pa.array(valid, mask=nulls)))


def symbols_of(how: str) -> bytearray | None:
    symbols = bytearray(fsst.TABLE_SIZE)
    if how == "plain":
        return None
    if how == "verbatim":
        fsst.write_verbatim_table(symbols)
    else:
        fsst.write_table([b"x" * 8, b"longer", b"wor"], symbols)
    return symbols


def encoded(texts: list[bytes], symbols: bytearray) -> list[bytes]:
    encoder, found = fsst.Encoder(fsst.SymbolTable(symbols)), []
    for text in texts:
        out, ends = bytearray(fsst.encode_bound(len(text))), np.zeros(2, np.int32)
        size = encoder.encode(text, np.array([0, len(text)], np.int32), False, 1, False, ends, out)
        found.append(bytes(out[:size]))
    return found


def text_parts(stored: Sequence[bytes], wide: bool) -> list[bytes]:
    """Return the buffers of chunks of texts."""
    ends = np.cumsum(COUNTS)
    return [text_chunk(stored[end - count : end], wide) for count, end in zip(COUNTS, ends, strict=True)]


def texts(how: str, stored_wide: bool, kind: pa.DataType, seed: int, nullable: bool, which: str = "long") -> Column:
    rng = np.random.default_rng(seed)
    found = [CHOICES[which][i].encode() for i in rng.integers(0, len(CHOICES[which]), ROWS)]
    nulls = rng.random(ROWS) < 0.3 if nullable else None
    if nulls is not None:
        found = [b"" if null else text for null, text in zip(nulls, found, strict=True)]
    symbols = symbols_of(how)
    stored = encoded(found, symbols) if symbols is not None and how == "codes" else found
    parts = text_parts(stored, stored_wide)
    chunks, definition = page_chunks([parts], nulls)
    page = take_pages.text_chunks(chunks, stored_wide, symbol_table=symbols, definition=definition)
    model = pa.array(
        found if nulls is None else [None if null else text for null, text in zip(nulls, found, strict=True)]
    )
    return Column([page], model.cast(kind))
