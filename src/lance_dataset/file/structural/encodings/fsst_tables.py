"""FSST tables of a column: the best of several, each built from another part of its strings, kept while it fits."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lance_dataset.file.buffers import allocate
from lance_dataset.file.structural.encodings.values import Strings
from lance_dataset.late_dataclass import dataclass
from lancecodec import fsst

__all__ = ["FsstCodes", "FsstTables", "fsst_codes"]

#: A table is built from 16 KiB of strings. Tables from different places differ by several percent. One more table for
#: this many bytes of strings costs about half as much as encoding them.
_BYTES_PER_TABLE = 1 << 20
_MOST_TABLES = 4
#: Ratio by which codes may be larger than for the first page before a column gets another table.
_WORSE = 1.005
_TRIAL_STRETCHES = 8
_TRIAL_BYTES = 1 << 14
#: Strings that are longer than this on average would make trials slow.
_LONG_STRING = 1 << 15


@dataclass(frozen=True)
class FsstCodes:
    """FSST codes and their offsets, which are as wide as those of the strings."""

    offsets: pa.Buffer
    data: pa.Buffer


def fsst_codes(strings: Strings, table: bytes) -> FsstCodes:
    """Encode strings as codes of a symbol table."""
    encoder = fsst.Encoder(fsst.SymbolTable(table))
    offsets = allocate((strings.count + 1) * strings.offset_width)
    out = allocate(fsst.encode_bound(strings.total))
    size = encoder.encode(strings.data, strings.offsets, strings.wide, strings.count, strings.wide, offsets, out)
    return FsstCodes(offsets, out.slice(0, size))


class FsstTables:
    """Symbol tables of a column; pages share a table while it compresses as well as for the page it was built for."""

    def __init__(self) -> None:
        self._table = b""
        self._ratio = 0.0

    def table_for(self, strings: Strings) -> tuple[bytes, float]:
        """Return a symbol table and the expected ratio of the sizes of codes and strings."""
        if not _tried(strings):
            return _build(strings, 0, strings.count)
        trials = _trial_stretches(strings)
        if self._table:
            ratio = _trial(strings, self._table, trials)
            if ratio <= self._ratio * _WORSE:
                return self._table, ratio
        tables = min(_MOST_TABLES, max(1, strings.total // _BYTES_PER_TABLE))
        built = [_build(strings, *part)[0] for part in _stretches(strings.count, tables, strings.count // tables, 0)]
        self._table, self._ratio = min(
            ((table, _trial(strings, table, trials)) for table in built), key=lambda one: one[1]
        )
        return self._table, self._ratio


def _tried(strings: Strings) -> bool:
    """Return whether a trial of a table needs fewer bytes than all strings together."""
    return 2 * _TRIAL_STRETCHES * _TRIAL_BYTES < strings.total < _LONG_STRING * strings.count


def _trial_stretches(strings: Strings) -> list[tuple[int, int]]:
    size = max(1, _TRIAL_BYTES * strings.count // strings.total)
    return list(_stretches(strings.count, _TRIAL_STRETCHES, size, strings.count // _TRIAL_STRETCHES // 2))


def _stretches(count: int, parts: int, size: int, shift: int) -> Iterator[tuple[int, int]]:
    """Yield (first, number) of the strings of `parts` equidistant stretches."""
    for part in range(parts):
        first = min(count * part // parts + shift, count - 1)
        yield first, min(size, count - first)


def _part(strings: Strings, first: int, number: int) -> pa.Buffer:
    return strings.offsets.slice(first * strings.offset_width, (number + 1) * strings.offset_width)


def _build(strings: Strings, first: int, number: int) -> tuple[bytes, float]:
    table = bytearray(fsst.TABLE_SIZE)
    sampled, coded = fsst.build(strings.data, _part(strings, first, number), strings.wide, number, table)
    return bytes(table), coded / sampled if sampled else 1.0


def _trial(strings: Strings, table: bytes, stretches: list[tuple[int, int]]) -> float:
    """Return the ratio of the sizes of codes and strings for some strings and a table."""
    encoder = fsst.Encoder(fsst.SymbolTable(table))
    width, plain, coded = strings.offset_width, 0, 0
    for first, number in stretches:
        offsets = _part(strings, first, number)
        places = memoryview(offsets).cast("B").cast("q" if strings.wide else "i")
        size = places[number] - places[0]
        out_offsets, out = allocate((number + 1) * width), allocate(fsst.encode_bound(size))
        coded += encoder.encode(strings.data, offsets, strings.wide, number, strings.wide, out_offsets, out)
        plain += size
    return coded / plain if plain else 1.0
