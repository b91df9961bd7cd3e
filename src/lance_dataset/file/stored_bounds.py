"""Bounds of the values of columns in a global buffer at the end of a 2.x file, which other readers ignore.

Layout, little-endian:

    8 bytes   "LDZONES1"
    u32       CRC-32 of everything behind it
    u32       number of columns with bounds
    u64       number of rows
    for each column, 28 bytes:
        u32   column
        u32   CRC-32 of its serialized metadata: whatever moved or changed its pages without its bounds is noticed
        u64   rows of a zone, a power of two; the last zone may have fewer
        u32   number of zones
        u8    kind of the keys: 0 unsigned, 1 signed, 2 floats, 3 texts
        u8    bytes of a key: 1, 2, 4, 8 or 16
        6 bytes of zeros
    for each column:
        the low key of each zone, the high key of each zone, a byte of flags for each zone

Keys and flags are those of `lancecodec.zones`. A file may have no such buffer, and readers need none.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.stored_test import StoredTest
from lance_dataset.file.value_order import key_order
from lance_dataset.file.zones import Zones
from lance_dataset.late_dataclass import dataclass
from lancecodec.intervals import ALL_PASS, FLOAT, NONE_PASS, SOME_PASS, UNSIGNED
from lancecodec.zones import BOUNDED, HAS_NAN, HAS_NULL, HAS_VALID

__all__ = ["KEY_BYTES", "MAGIC", "TEXT_KIND", "StoredBounds", "bounds_buffer", "buffer_size", "parse_bounds"]

MAGIC: Final = b"LDZONES1"
#: Bytes of the key of a text.
KEY_BYTES: Final = 16
#: Kind of the keys of texts; other kinds are the orders of `lancecodec.intervals`.
TEXT_KIND: Final = 3
_HEADER = struct.Struct("<8sIIQ")
_ENTRY = struct.Struct("<IIQIBB6x")
_CRC_START = 12
_MAX_ROWS = 2**32
_KNOWN_FLAGS = bytes(range((HAS_NULL | HAS_VALID | HAS_NAN | BOUNDED) + 1))


@dataclass(frozen=True, eq=False)
class StoredBounds:
    """Bounds of the zones of a column.

    Attributes
    ----------
    kind
        Kind of the keys.
    width
        Bytes of a key.
    zone_rows, num_rows
        Rows of each zone but the last, and of the column.
    low, high
        Keys of each zone, as rows of two words of which the second one is more significant.
    flags
        Flags of each zone.
    """

    kind: int
    width: int
    zone_rows: int
    num_rows: int
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    flags: NDArray[np.uint8]

    def zones(self, arrow_type: pa.DataType) -> Zones | None:
        """Return the bounds as those of values of a type; None if they belong to another type."""
        order = key_order(arrow_type)
        if order is None:
            if self.kind != TEXT_KIND or not is_binary_like(arrow_type):
                return None
            low, high = _texts(self.low, arrow_type, above=False), _texts(self.high, arrow_type, above=True)
        elif order != self.kind or arrow_type.bit_width != 8 * self.width:
            return None
        else:
            low, high = _values(self.low, arrow_type, order), _values(self.high, arrow_type, order)
        starts = np.minimum(np.arange(len(self.flags) + 1, dtype=np.int64) * self.zone_rows, self.num_rows)
        nothing, known = pa.scalar(None, arrow_type), pa.array(self._has(BOUNDED))
        low, high = (_where(known, bound, nothing) for bound in (low, high))
        return Zones(starts, low, high, self._has(HAS_NULL), self._has(HAS_VALID), self._has(HAS_NAN))

    def verdicts(self, test: StoredTest) -> NDArray[np.uint8] | None:
        """Return what is certain of the results of a test in each zone (see `lancecodec.intervals`).

        None if the test compares values in another order.
        """
        if test.validity is not None:
            valid, null = test.validity
            passes = (self._has(HAS_VALID) & valid) | (self._has(HAS_NULL) & null)
            fails = (self._has(HAS_VALID) & (not valid)) | (self._has(HAS_NULL) & (not null))
            return np.where(passes == fails, SOME_PASS, np.where(passes, ALL_PASS, NONE_PASS)).astype(np.uint8)
        intervals = test.intervals
        if intervals is None or intervals.order != self.kind or intervals.bits != 8 * self.width:
            return None
        found = np.empty(len(self.flags), np.uint8)
        intervals.verdicts(self.low.data, self.high.data, self.flags.data, found.data)
        return found

    def _has(self, flag: int) -> NDArray[np.bool_]:
        return (self.flags & flag) > 0


def _where(known: pa.BooleanArray, bound: pa.Array, nothing: pa.Scalar) -> pa.Array:
    return bound if known.false_count == 0 else pc.if_else(known, bound, nothing)


def _values(keys: NDArray[np.uint64], arrow_type: pa.DataType, order: int) -> pa.Array:
    """Return the values that have some keys."""
    bits = arrow_type.bit_width
    if bits > 64:
        words = keys.copy()
        words[:, 1] ^= np.uint64(0 if order == UNSIGNED else 1 << 63)
    else:
        found = keys[:, 0]
        sign = np.uint64(1 << (bits - 1))
        if order == FLOAT:
            found = np.where(found & sign, found ^ sign, ~found)
        elif order != UNSIGNED:
            found = found ^ sign
        words = found.astype(f"<u{bits // 8}")
    return pa.Array.from_buffers(arrow_type, len(keys), [None, pa.py_buffer(np.ascontiguousarray(words))], 0)


# -- texts -------------------------------------------------------------------------------------------------------


def _texts(keys: NDArray[np.uint64], arrow_type: pa.DataType, *, above: bool) -> pa.Array:
    """Return texts that are not greater than those with some keys, or with `above` not less; null where none is."""
    stored = keys[:, ::-1].astype(">u8").tobytes()
    prefixes = [stored[start : start + KEY_BYTES] for start in range(0, len(stored), KEY_BYTES)]
    is_text = pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type)
    bound = _text_above if above else _text_below
    return pa.array([bound(prefix, is_text) for prefix in prefixes], pa.large_binary()).cast(arrow_type)


def _text_below(prefix: bytes, is_text: bool) -> bytes | None:
    """Return a prefix of all texts that begin with the bytes of a key."""
    known = prefix.rstrip(b"\0")
    return _whole_characters(known) if is_text else known


def _text_above(prefix: bytes, is_text: bool) -> bytes | None:
    """Return a text that is not less than any that begins with the bytes of a key."""
    known = prefix.rstrip(b"\0")
    if len(known) < KEY_BYTES:
        # all of the text, or it goes on with zeros
        return known + b"\x01" if not is_text or _whole_characters(known) == known else None
    if not is_text:
        shorter = known.rstrip(b"\xff")
        return shorter[:-1] + bytes([shorter[-1] + 1]) if shorter else None
    whole = _whole_characters(known)
    if whole is None:
        return None
    characters = whole.decode()
    while characters and characters[-1] == "\U0010ffff":
        characters = characters[:-1]
    if not characters:
        return None
    following = ord(characters[-1]) + 1
    return (characters[:-1] + chr(0xE000 if following == 0xD800 else following)).encode()


def _whole_characters(data: bytes) -> bytes | None:
    """Return UTF-8 text without a last character that is cut; None if it is not UTF-8."""
    for cut in range(4):
        shorter = data[: max(len(data) - cut, 0)]
        try:
            shorter.decode()
        except UnicodeDecodeError:
            continue
        return shorter
    return None


# -- buffer ------------------------------------------------------------------------------------------------------


def bounds_buffer(bounds: Mapping[int, StoredBounds], columns: Sequence[bytes], num_rows: int) -> bytes:
    """Return the buffer with the bounds of columns.

    Parameters
    ----------
    bounds
        Bounds by column.
    columns
        Serialized metadata of all columns of the file.
    num_rows
        Number of rows of the file.
    """
    entries, parts = [], []
    for column, each in sorted(bounds.items()):
        count = len(each.flags)
        entries.append(_ENTRY.pack(column, crc32(columns[column]), each.zone_rows, count, each.kind, each.width))
        words = [np.ascontiguousarray(keys).view(np.uint8).reshape(count, 16) for keys in (each.low, each.high)]
        parts += [*(keys[:, : each.width].tobytes() for keys in words), each.flags.tobytes()]
    body = b"".join([*entries, *parts])
    counts = struct.pack("<IQ", len(entries), num_rows)
    return MAGIC + struct.pack("<I", crc32(counts + body)) + counts + body


def buffer_size(counts: Sequence[tuple[int, int]]) -> int:
    """Return the size of a buffer for columns, each given as bytes of a key and number of zones."""
    return _HEADER.size + sum(_ENTRY.size + count * (2 * width + 1) for width, count in counts)


def parse_bounds(data: bytes) -> tuple[str | None, dict[int, tuple[int, Callable[[], StoredBounds]]]]:
    """Parse a buffer with bounds. Those of a column are decoded when they are needed.

    Returns
    -------
    problem : str or None
        The reason why the buffer cannot be used; None if it can.
    bounds : dict
        For each column, the checksum of its metadata, and a function that returns its bounds. Empty with a problem.
    """
    if len(data) < _HEADER.size or data[: len(MAGIC)] != MAGIC:
        return "is not a buffer with bounds", {}
    _, crc, count, num_rows = _HEADER.unpack_from(data)
    if crc32(data[_CRC_START:]) != crc:
        return "has another checksum than its bytes", {}
    if count * _ENTRY.size > len(data) - _HEADER.size:
        return f"of {len(data)} bytes is too small for {count} columns", {}
    found: dict[int, tuple[int, Callable[[], StoredBounds]]] = {}
    at = _HEADER.size + count * _ENTRY.size
    for number in range(count):
        column, stored_crc, rows, zones, kind, width = _ENTRY.unpack_from(data, _HEADER.size + number * _ENTRY.size)
        size = zones * (2 * width + 1)
        if kind > TEXT_KIND or width not in (1, 2, 4, 8, 16) or size > len(data) - at:
            return f"describes column {column} in a way that is not possible", {}
        if num_rows > _MAX_ROWS or not 0 < rows <= _MAX_ROWS or rows & (rows - 1) or zones != -(-num_rows // rows):
            return f"has {zones} zones of {rows} rows in column {column} of {num_rows} rows", {}
        if data[at + 2 * zones * width : at + size].strip(_KNOWN_FLAGS):
            return f"has unknown flags of column {column}", {}
        found[column] = stored_crc, partial(_decoded, data, at, zones, (kind, width, rows, num_rows))
        at += size
    return None, found


def _decoded(data: bytes, at: int, zones: int, about: tuple[int, int, int, int]) -> StoredBounds:
    """Return the bounds of a column from their first byte on; `about` are the first attributes."""
    width = about[1]
    low, high = (_words(data, at + part * zones * width, zones, width) for part in (0, 1))
    return StoredBounds(*about, low, high, np.frombuffer(data, np.uint8, zones, at + 2 * zones * width))


def _words(data: bytes, start: int, count: int, width: int) -> NDArray[np.uint64]:
    """Return keys as rows of two words."""
    words = np.zeros((count, 16), np.uint8)
    words[:, :width] = np.frombuffer(data, np.uint8, count * width, start).reshape(count, width)
    return words.view(np.uint64)
