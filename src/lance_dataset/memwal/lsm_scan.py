"""Scans over memtables, SSTables and the table, in which the newest row of each key wins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import FieldNotFoundError, nearest_name_hint
from lance_dataset.memwal.hiding import shard_keys, visible_base
from lance_dataset.memwal.key_set import KeySet
from lance_dataset.memwal.shard_rows import shard_rows
from lance_dataset.memwal.sources import LsmSources
from lance_dataset.read.kept_values import kept_batch
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.resolving import resolve_request
from lance_dataset.scan.scan import count, scan_batches, scan_table
from lance_dataset.types.schema import Field

__all__ = [
    "GENERATION",
    "ROW_ADDRESS",
    "LsmQuery",
    "lsm_batches",
    "lsm_count",
    "lsm_schema",
    "lsm_table",
    "scanned_columns",
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

    @property
    def is_whole(self) -> bool:
        """True if all rows are returned."""
        return self.filter is None and self.limit is None and self.offset == 0


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


def lsm_table(sources: LsmSources, query: LsmQuery) -> pa.Table:
    """Return the rows of a query as a table; raises like `lsm_batches`."""
    schema = lsm_schema(sources, query)
    if not query.is_whole:
        return pa.Table.from_batches(lsm_batches(sources, query), schema)
    fields = scanned_columns(sources, query.columns)
    small = [_shaped(batch, schema, generation) for generation, batch in shard_rows(sources, fields, None)]
    base = visible_base(sources)
    rows = scan_table(base.reader, _base_request(base, sources, query))
    if query.with_generation:
        rows = rows.append_column(GENERATION, _repeated(0, rows.num_rows))
    return pa.concat_tables([pa.Table.from_batches(small, schema), rows.select(schema.names).cast(schema)])


def lsm_count(sources: LsmSources, query: LsmQuery) -> int:
    """Return the number of rows of a query; raises like `lsm_batches`."""
    slim = replace(query, columns=sources.key.names, with_generation=False, with_address=False)
    if slim.is_whole:
        base = visible_base(sources)
        rows = sum(batch.num_rows for _, batch in shard_rows(sources, scanned_columns(sources, slim.columns), None))
        return rows + count(base.reader, _base_request(base, sources, slim))
    return sum(batch.num_rows for batch in lsm_batches(sources, slim))


def _rows(sources: LsmSources, query: LsmQuery, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if query.limit == 0:
        return
    for generation, batch in shard_rows(sources, scanned_columns(sources, query.columns), query.filter):
        yield _shaped(batch, schema, generation)
    yield from _base_rows(sources, query, schema)


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


def _base_request(base: Snapshot, sources: LsmSources, query: LsmQuery) -> ScanRequest:
    names = [field.name for field in scanned_columns(sources, query.columns)]
    options = {"columns": names, "with_row_address": query.with_address}
    if query.filter is not None:
        options["filter"] = query.filter
    return replace(resolve_request(base, options), batch_size=_BASE_ROWS)


def _base_rows(sources: LsmSources, query: LsmQuery, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    base = visible_base(sources) if query.is_whole else sources.base
    # Filters keep few rows, and limits read few, so that these are looked up instead of all rows of the table.
    hidden = KeySet([]) if query.is_whole else shard_keys(sources)
    for batch in scan_batches(base.reader, _base_request(base, sources, query)):
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
