"""Zones of zone-map and Bloom-filter indices in training: entries cut into zones, zones of old segments, null rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidIndexError, InvalidInputError
from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.scalar.row_set_building import GrowingRowSet
from lance_dataset.index.scalar.sorting import ROWS, VALUES
from lance_dataset.index.scalar.zones import DEFAULT_ZONE_ROWS, NULL_ROWS, ZONE_COLUMNS, Zones, null_parts
from lance_dataset.index.trainer import OldSegment
from lance_dataset.table.row_addresses import first_addresses, fragments_of, offsets_of
from lance_dataset.table.row_sets import ROW_SETS, encode_parts

__all__ = [
    "ZONE_FIELDS",
    "NullRows",
    "Pieces",
    "ZoneCutter",
    "has_null_rows",
    "old_zones",
    "rows_per_zone",
    "zone_arrays",
    "zone_rows",
]

_Addresses = NDArray[np.uint64]
_Counts = NDArray[np.int64]

ZONE_FIELDS: Final = tuple(pa.field(each, pa.uint64(), nullable=False) for each in ZONE_COLUMNS)
#: Rows that a fragment can have.
_MOST_ROWS = 1 << 32
_ONE = np.uint64(1)


@dataclass(frozen=True)
class Pieces:
    """Parts of a batch of entries, each of one zone.

    Attributes
    ----------
    starts : int64[n]
        Positions of their first entries in the batch, ascending; the first one is 0.
    firsts, lasts : uint64[n]
        Addresses of their first and last rows.
    continues
        True if the first one belongs to the last zone of the batch before.
    """

    starts: _Counts
    firsts: _Addresses
    lasts: _Addresses
    continues: bool


class ZoneCutter:
    """Cuts entries in storage order into zones.

    Parameters
    ----------
    rows
        Number of rows in a zone.
    """

    def __init__(self, rows: int) -> None:
        self._rows = min(rows, _MOST_ROWS)
        self._fragment = -1
        self._count = 0

    def cut(self, addresses: _Addresses) -> Pieces:
        """Cut the next entries, at least one, given the addresses of their rows."""
        first, last = fragments_of(addresses[[0, -1]]).tolist()
        heads = [] if first == last else _heads(fragments_of(addresses))
        continues = first == self._fragment and self._count < self._rows
        parts = []
        for head, stop in pairwise([0, *heads, len(addresses)]):
            left = self._rows - self._count if continues and not head else 0
            cuts = np.arange(head + left, stop, self._rows)
            parts += [cuts] if not left else [np.zeros(1, np.int64), cuts]
        starts = np.concatenate(parts)
        is_in_same = continues and len(starts) == 1
        self._fragment = last
        self._count = (self._count if is_in_same else 0) + len(addresses) - int(starts[-1])
        return Pieces(starts, addresses[starts], addresses[np.append(starts[1:], len(addresses)) - 1], continues)


def _heads(owners: NDArray[np.uint64]) -> list[int]:
    """Return where the entries of another fragment begin."""
    found: list[int] = (np.flatnonzero(owners[1:] != owners[:-1]) + 1).tolist()
    return found


def zone_arrays(firsts: _Addresses, lasts: _Addresses) -> list[pa.Array]:
    """Return the columns `ZONE_COLUMNS` of zones, given the addresses of their first and last rows."""
    columns = (fragments_of(firsts), offsets_of(firsts).view(np.uint64), lasts - firsts + _ONE)
    return [pa.array(column) for column in columns]


class NullRows:
    """Rows whose value is null."""

    def __init__(self) -> None:
        self._new = GrowingRowSet()
        self._old: dict[int, bytes] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Add those of a batch of entries."""
        values = batch.column(VALUES)
        if values.null_count:
            self._new.add(batch.column(ROWS).filter(values.is_null()).to_numpy())

    def add_old(self, old: OldSegment, name: str) -> None:
        """Add those of the fragments that an old segment covers.

        Raises
        ------
        CorruptFileError
            Its file contradicts the format.
        """
        parts = null_parts(old.folder.open(name)) or []
        covered = old.is_covered(first_addresses(np.array([part.key for part in parts], np.uint64)))
        self._old.update(
            {part.key: part.bitmap or b"" for part, is_kept in zip(parts, covered, strict=True) if is_kept}
        )

    def encode(self) -> bytes:
        """Return the serialized set."""
        return encode_parts({**self._old, **self._new.bitmaps()}, ROW_SETS)


def old_zones(old: Sequence[OldSegment], name: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the zones of the fragments that old segments cover.

    Parameters
    ----------
    old
        The segments.
    name
        Name of their files.
    schema
        Columns of the zones.

    Raises
    ------
    CorruptFileError
        A file contradicts the format.
    """
    for segment in old:
        table = segment.folder.open(name)
        for field in schema:
            if table.column_type(field.name) != field.type:
                raise table.corrupt(f"has {field.name} of {table.column_type(field.name)}, not {field.type}")
        for batch in table.batches(schema.names):
            kept = batch.filter(pa.array(segment.is_covered(Zones.read(table, batch).firsts)))
            if any(column.null_count for column, field in zip(kept.columns, schema, strict=True) if not field.nullable):
                raise table.corrupt("has nulls in the description of a zone")
            yield pa.RecordBatch.from_arrays(kept.columns, schema=schema)


def has_null_rows(name: str) -> Callable[[IndexFolder], bool]:
    """Return a function that tells whether an old segment has null rows: without them, it cannot be taken over."""
    return lambda folder: NULL_ROWS in folder.open(name).metadata


def zone_rows(value: object) -> int:
    """Return a number of rows, as a check of a parameter.

    Raises
    ------
    InvalidInputError
        It is zero.
    InvalidIndexError
        It is not a number of 64 bits.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise InvalidIndexError("must be a positive number of 64 bits")
    if not value:
        raise InvalidInputError("must be greater than zero")
    return value


def rows_per_zone(table: IndexTable, key: str) -> int:
    """Return the number of rows in a zone of an existing index, from the metadata of its file.

    Raises
    ------
    CorruptFileError
        It is not a positive number.
    """
    found = table.number(key, DEFAULT_ZONE_ROWS)
    if not found:
        raise table.corrupt(f"{key} is 0")
    return found
