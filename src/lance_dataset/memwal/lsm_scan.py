"""Scans over memtables, SSTables and the table, in which the newest row of each key wins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import FieldNotFoundError, nearest_name_hint
from lance_dataset.expr.compiled import Filter, compile_filter
from lance_dataset.memwal.key_set import KeySet
from lance_dataset.memwal.memtable import Memtable
from lance_dataset.memwal.schemas import TOMBSTONE, conformed
from lance_dataset.memwal.sources import LsmSources
from lance_dataset.memwal.sstables import OpenSsTable
from lance_dataset.read.kept_values import kept_batch
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.resolving import resolve_request
from lance_dataset.scan.scan import scan_batches
from lance_dataset.types.schema import Field

__all__ = [
    "GENERATION",
    "ROW_ADDRESS",
    "LsmQuery",
    "hidden_addresses",
    "lsm_batches",
    "lsm_count",
    "lsm_schema",
    "scanned_columns",
    "shard_rows",
]

#: Columns of the generation and of the address of rows.
GENERATION, ROW_ADDRESS = "_memtable_gen", "_rowaddr"
#: Rows of the table in one batch.
_BASE_ROWS = 1 << 17


@dataclass(frozen=True)
class LsmQuery:
    """Columns and rows to return.

    Attributes
    ----------
    columns
        Names of columns; None for all. Those of the key are always returned.
    filter
        SQL text; None for all rows. It applies to the newest row of each key.
    limit, offset
        Rows to return at most, and rows to leave out before.
    with_generation, with_address
        True to return these columns.
    """

    columns: tuple[str, ...] | None = None
    filter: str | None = None
    limit: int | None = None
    offset: int = 0
    with_generation: bool = False
    with_address: bool = False


def scanned_columns(sources: LsmSources, columns: Sequence[str] | None) -> list[Field]:
    """Return the fields of the columns of a query, and of the key if it lacks them.

    Raises
    ------
    FieldNotFoundError
        A column does not exist.
    """
    schema = sources.base.manifest.schema
    if columns is None:
        return list(schema.fields)
    for name in columns:
        if name not in schema.names:
            hint = nearest_name_hint(name, schema.names)
            raise FieldNotFoundError(f"column {name!r} does not exist{hint}; scans of a MemWAL return whole columns")
    missing = [name for name in sources.key.names if name not in columns]
    return [schema.top_level(name) for name in [*dict.fromkeys(columns), *missing]]


def lsm_schema(sources: LsmSources, query: LsmQuery) -> pa.Schema:
    """Return the schema of the rows of a query. Raises like `scanned_columns`."""
    fields = [field.to_arrow() for field in scanned_columns(sources, query.columns)]
    if query.with_generation:
        fields.append(pa.field(GENERATION, pa.uint64()))
    if query.with_address:
        fields.append(pa.field(ROW_ADDRESS, pa.uint64()))
    return pa.schema(fields)


def lsm_batches(sources: LsmSources, query: LsmQuery) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query, newest sources first.

    Raises
    ------
    FieldNotFoundError, FilterError
        A column does not exist, or the filter does not fit.
    CorruptFileError, MissingFileError
        A source cannot be read.
    """
    schema = lsm_schema(sources, query)
    skipped, left = query.offset, query.limit
    for batch in _rows(sources, query, schema):
        if skipped >= batch.num_rows:
            skipped -= batch.num_rows
            continue
        batch = batch.slice(skipped, left)
        skipped = 0
        if batch.num_rows:
            yield batch
        if left is not None:
            left -= batch.num_rows
            if left <= 0:
                return


def lsm_count(sources: LsmSources, query: LsmQuery) -> int:
    """Return the number of rows of a query; raises like `lsm_batches`."""
    slim = replace(query, columns=sources.key.names, with_generation=False, with_address=False)
    return sum(batch.num_rows for batch in lsm_batches(sources, slim))


def _rows(sources: LsmSources, query: LsmQuery, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if query.limit == 0:
        return
    for generation, batch in shard_rows(sources, scanned_columns(sources, query.columns), query.filter):
        yield _shaped(batch, schema, generation)
    yield from _base_rows(sources, query, schema)


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
    read = _with_filter_columns(outputs, filter, sources)
    for number, shard in enumerate(sources.shards or ((),)):
        newer: list[pa.Array] = []  # keys of one shard do not hide rows of another one, only those of the table
        newest_first: list[Memtable | OpenSsTable] = [*(sources.memtables if number == 0 else ()), *shard]
        for source in newest_first:
            keys, batch = _small_source(source, read, newer, filter)
            newer.append(keys)
            if batch.num_rows:
                yield source.generation, batch


def _shard_keys(sources: LsmSources) -> KeySet:
    """Return the keys of all rows of memtables and SSTables."""
    keys = [sources.key.array(memtable.newest()) for memtable in sources.memtables]
    return KeySet([*keys, *(table.keys for shard in sources.shards for table in shard)])


def hidden_addresses(sources: LsmSources) -> NDArray[np.uint64]:
    """Return the addresses of the rows of the table that newer rows hide."""
    hidden = _shard_keys(sources)
    found = [np.empty(0, np.uint64)]
    if hidden:
        request = resolve_request(sources.base, {"columns": list(sources.key.names), "with_row_address": True})
        for batch in scan_batches(sources.base.reader, replace(request, batch_size=_BASE_ROWS)):
            held = batch.column(ROW_ADDRESS).filter(hidden.holds(sources.key.array(batch)))
            found.append(held.to_numpy(zero_copy_only=False))
    return np.concatenate(found)


def _with_filter_columns(outputs: list[Field], filter: Filter | None, sources: LsmSources) -> list[Field]:
    names = {field.name for field in outputs}
    more = [] if filter is None else [name for name in filter.columns if name not in names]
    return [*outputs, *(sources.base.manifest.schema.top_level(name) for name in more)]


def _small_source(
    source: Memtable | OpenSsTable, read: list[Field], newer: list[pa.Array], filter: Filter | None
) -> tuple[pa.Array, pa.RecordBatch]:
    """Return the keys of a memtable or SSTable, and the rows of it that no newer source hides and that match."""
    if isinstance(source, Memtable):
        newest = source.newest()
        keys, marks = source.key.array(newest), newest.column(TOMBSTONE)
        batch = conformed(newest, source.names, read, "memtable")
    else:
        batch, marks = source.scan(read)
        keys = source.keys
    keep = pc.invert(marks)
    hidden = KeySet(newer)
    if hidden:
        keep = pc.and_(keep, pc.invert(hidden.holds(keys)))
    batch = kept_batch(batch, keep)
    return keys, batch.filter(filter.mask(batch)) if filter is not None and batch.num_rows else batch


def _shaped(batch: pa.RecordBatch, schema: pa.Schema, generation: int) -> pa.RecordBatch:
    """Return rows of a memtable or SSTable with the columns of the result."""
    columns = []
    for field in schema:
        if field.name == GENERATION:
            columns.append(_repeated(generation, batch.num_rows))
        elif field.name == ROW_ADDRESS:
            columns.append(pa.nulls(batch.num_rows, pa.uint64()))
        else:
            columns.append(batch.column(field.name))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _base_rows(sources: LsmSources, query: LsmQuery, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    hidden = _shard_keys(sources)
    names = [field.name for field in scanned_columns(sources, query.columns)]
    options = {"columns": names, "with_row_address": query.with_address}
    if query.filter is not None:
        options["filter"] = query.filter
    request: ScanRequest = resolve_request(sources.base, options)
    request = replace(request, batch_size=_BASE_ROWS)
    for batch in scan_batches(sources.base.reader, request):
        if hidden:
            held = hidden.holds(sources.key.array(batch))
            if held.true_count:
                batch = kept_batch(batch, pc.invert(held))
        columns = [
            _repeated(0, batch.num_rows) if field.name == GENERATION else batch.column(field.name) for field in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _repeated(generation: int, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(generation, pa.uint64()), rows)
