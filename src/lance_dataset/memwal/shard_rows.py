"""Rows of memtables and SSTables that no newer row of the same key hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.compiled import compile_filter
from lance_dataset.memwal.key_set import KeySet, newest_first
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.shard_parts import NewestRows
from lance_dataset.memwal.sources import LsmSources
from lance_dataset.memwal.sstables import OpenSsTable
from lance_dataset.read.kept_values import kept_batch
from lance_dataset.types.schema import Field

__all__ = ["shard_rows"]

#: Bytes of the rows of a shard that are kept at most, and number of shards and sets of columns with such rows.
_KEPT_BYTES, _KEPT_SETS = 4 << 20, 4

_Shard: TypeAlias = "tuple[OpenSsTable, ...]"
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False)
class _Shown:
    """Rows of SSTables that were found before. They are kept as long as the reader of a version of the table.

    SSTables are named by their URIs, as an object would keep the reader of each.

    Attributes
    ----------
    key
        Columns by which rows are compared.
    masks
        Rows of the SSTables of a shard that no newer SSTable of it hides.
    rows
        These rows themselves, without those that stand for deletions, by SSTables and columns.
    """

    key: KeyColumns
    masks: dict[tuple[str, ...], list[pa.BooleanArray | None]] = field(default_factory=dict)
    rows: dict[object, list[pa.RecordBatch]] = field(default_factory=dict)


def shard_rows(sources: LsmSources, outputs: list[Field], text: str | None) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of memtables and SSTables that match, and that no newer row of the same key hides.

    Parameters
    ----------
    sources
        The sources.
    outputs
        Columns that are needed; the batches may have more.
    text
        SQL text of a filter; None for all rows.

    Yields
    ------
    generation : int
        Generation of the memtable or SSTable.
    batch : pyarrow.RecordBatch
        At least one row.
    """
    filter = compile_filter(text, sources.base.manifest.schema.storage_arrow)
    names = {field.name for field in outputs}
    more = [] if filter is None else [name for name in filter.columns if name not in names]
    # Rows of SSTables are compared with those of memtables by their key.
    key = [name for name in sources.key.names if name not in names and name not in more]
    read = [*outputs, *map(sources.base.manifest.schema.top_level, [*more, *key])]
    for generation, batch in _all_rows(sources, read):
        found = batch.filter(filter.mask(batch)) if filter is not None and batch.num_rows else batch
        if found.num_rows:
            yield generation, found


def _all_rows(sources: LsmSources, read: list[Field]) -> Iterator[tuple[int, pa.RecordBatch]]:
    memtables = [memtable for memtable in sources.memtables if not memtable.is_empty]
    newest = [NewestRows(memtable, *memtable.numbered()) for memtable in memtables]
    keys = [sources.key.array(each.batch) for each in newest]
    for each, shown in zip(newest, newest_first(keys), strict=True):
        yield each.generation, _kept(*each.scan(read), shown)
    hidden = KeySet(keys)
    for number, shard in enumerate(sources.shards):
        for table, rows in zip(shard, _of_sstables(sources, shard, read), strict=True):
            # keys of one shard do not hide rows of another one, only those of the table
            if hidden and number == 0:
                held = hidden.holds(sources.key.array(rows))
                rows = kept_batch(rows, pc.invert(held)) if held.true_count else rows
            yield table.generation, rows


def _of_sstables(sources: LsmSources, shard: _Shard, read: list[Field]) -> list[pa.RecordBatch]:
    """Return the rows of each SSTable of a shard that no newer SSTable of it hides. Few rows are kept."""
    companions = sources.base.reader.companions
    known = companions.get(_Shown)
    if not isinstance(known, _Shown) or known.key != sources.key:
        known = companions[_Shown] = _Shown(sources.key)
    tables = tuple(table.snapshot.uri for table in shard)
    wanted = tables, tuple((field.id, field.name, field.storage_type) for field in read)
    rows = known.rows.get(wanted)
    if rows is not None:
        return rows
    masks = known.masks.get(tables)
    if masks is None:
        masks = newest_first([table.keys for table in shard])
        _add(known.masks, tables, masks)
    rows = [_kept(*table.scan(read), shown) for table, shown in zip(shard, masks, strict=True)]
    if sum(batch.nbytes for batch in rows) <= _KEPT_BYTES:
        _add(known.rows, wanted, rows)
    return rows


def _add(known: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Add what was found, instead of what was added first if there is much."""
    for oldest in list(known)[: len(known) - _KEPT_SETS + 1]:
        known.pop(oldest, None)
    known[key] = value


def _kept(rows: pa.RecordBatch, marks: pa.Array, shown: pa.BooleanArray | None) -> pa.RecordBatch:
    """Return the rows of a memtable or SSTable that are not deletions and that are shown."""
    keep = pc.invert(marks) if shown is None else pc.and_not(shown, marks)
    return kept_batch(rows, keep) if keep.true_count < len(keep) else rows
