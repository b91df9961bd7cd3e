"""Strings in the form that the FSST codec takes, and symbol tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lancecodec import fsst
from lancecodec.fsst import Encoder, SymbolTable

GOLDEN_SYMBOLS = [b"he", b"ll", b"hello ", b"o"]
GOLDEN_TABLE = bytes.fromhex(
    "0400000154535346 6865000000000000 6c6c000000000000 68656c6c6f200000 6f00000000000000 02020601"
).ljust(2312, b"\0")
ESCAPE = 255


@dataclass(frozen=True)
class Strings:
    """Strings as bytes and n + 1 offsets that begin at `first`."""

    data: np.ndarray
    offsets: np.ndarray

    @staticmethod
    def of(values: Sequence[bytes], wide: bool = False, first: int = 0) -> Strings:
        lengths = np.cumsum([0, *map(len, values)])
        return Strings(np.frombuffer(b"".join(values), np.uint8), (lengths + first).astype(offset_type(wide)))

    @property
    def n(self) -> int:
        return len(self.offsets) - 1

    @property
    def wide(self) -> bool:
        return self.offsets.dtype == np.int64

    @property
    def ends(self) -> memoryview:
        return memoryview(self.offsets[1:].tobytes())

    @property
    def first(self) -> int:
        return int(self.offsets[0])

    def values(self) -> list[bytes]:
        data, places = self.data.tobytes(), (self.offsets - self.first).tolist()
        return [data[i:j] for i, j in pairwise(places)]


def offset_type(wide: bool) -> type:
    return np.int64 if wide else np.int32


def ragged(data: bytes, skew: int) -> memoryview:
    return memoryview(bytearray(b"." * skew + data))[skew:]


def table_of(symbols: Sequence[bytes]) -> SymbolTable:
    out = bytearray(fsst.TABLE_SIZE)
    fsst.write_table(symbols, out)
    return SymbolTable(out)


def verbatim() -> SymbolTable:
    out = bytearray(fsst.TABLE_SIZE)
    fsst.write_verbatim_table(out)
    return SymbolTable(out)


def built(given: Strings) -> tuple[SymbolTable, int, int]:
    out = bytearray(fsst.TABLE_SIZE)
    sizes = fsst.build(given.data, given.offsets, given.wide, given.n, out)
    return SymbolTable(out), *sizes


def encode(table: SymbolTable, given: Strings, wide: bool = False, skew: int = 0) -> Strings:
    width, bound = 8 if wide else 4, fsst.encode_bound(len(given.data))
    places, out = ragged(bytes((given.n + 1) * width), skew), ragged(bytes(bound), skew)
    data, source = ragged(given.data.tobytes(), skew), ragged(given.offsets.tobytes(), skew)
    size = Encoder(table).encode(data, source, given.wide, given.n, wide, places, out)
    return Strings(np.frombuffer(out[:size], np.uint8), np.frombuffer(bytes(places), offset_type(wide)))


def decode(
    table: SymbolTable, given: Strings, wide: bool = False, base: int = 0, skew: int = 0, slack: int = 0
) -> Strings:
    """Decode into an output of exactly the right size, or with `slack`; bytes after it must stay unchanged."""
    size = table.decoded_size(given.data)
    out = bytearray(b"\xa5" * (skew + size + slack + 9))
    ends = bytearray(b"\xa5" * (skew + given.n * (8 if wide else 4) + 9))
    data, places = ragged(given.data.tobytes(), skew), ragged(given.ends.tobytes(), skew)
    written = table.decode(
        data, places, given.wide, given.first, given.n, base, wide, memoryview(ends)[skew:-9], memoryview(out)[skew:-9]
    )
    assert written == size
    assert out[-9:] == ends[-9:] == b"\xa5" * 9
    offsets = np.concatenate([[base], np.frombuffer(bytes(ends[skew:-9]), offset_type(wide))])
    return Strings(np.frombuffer(bytes(out[skew : skew + size]), np.uint8), offsets)
