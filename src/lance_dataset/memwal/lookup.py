"""Lookups of one key over memtables, SSTables and the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.compiled import Filter, compile_filter
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.index.open_segments import FieldIndex, IndexedValue
from lance_dataset.index.scalar.conditions import Interval, ValueCondition
from lance_dataset.index.scalar.value_order import order_of
from lance_dataset.memwal.lsm_scan import scanned_columns
from lance_dataset.memwal.routing import may_hold
from lance_dataset.memwal.schemas import TOMBSTONE, conformed
from lance_dataset.memwal.sources import LsmSources
from lance_dataset.properties import cached_property
from lance_dataset.read.take import take_addresses
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.resolving import resolve_request
from lance_dataset.scan.scan import scan_table
from lance_dataset.types.schema import Field

__all__ = ["KeyLookup"]


class KeyLookup:
    """Lookups of keys that return the same columns.

    Parameters
    ----------
    sources
        Where to look, newest first.
    columns
        Columns to return; None for all. Those of the key are added if they are missing.

    Raises
    ------
    FieldNotFoundError
        A column does not exist.
    """

    def __init__(self, sources: LsmSources, columns: tuple[str, ...] | None) -> None:
        self._sources = sources
        self._wanted = scanned_columns(sources, columns)
        self.schema = pa.schema([field.to_arrow() for field in self._wanted])

    def find(self, key: pa.StructArray) -> pa.RecordBatch:
        """Return the newest row of a key, or no row.

        Parameters
        ----------
        key
            The key as one row, with a field for each column.

        Raises
        ------
        CorruptFileError, MissingFileError
            A source cannot be read.
        """
        names = self._sources.key.names
        given = pa.RecordBatch.from_arrays([key.field(number) for number in range(len(names))], list(names))
        found = _in_shards(self._sources, given, self._wanted)
        if found is None:
            found = self._in_base(given)
        return pa.RecordBatch.from_arrays(found.columns, schema=self.schema)

    def _in_base(self, given: pa.RecordBatch) -> pa.RecordBatch:
        base = self._sources.base
        index = self._key_index
        if index is not None and given.column(0).type == self._key_type and not given.column(0).null_count:
            return self._by_index(index, given.column(0)[0])
        request = replace(self._request, filter=_condition(given, base.reader.expression_schema))
        table = scan_table(base.reader, request).combine_chunks()
        batches = table.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)

    @cached_property
    def _request(self) -> ScanRequest:
        """Scan of the columns for one row."""
        return resolve_request(self._sources.base, {"columns": [field.name for field in self._wanted], "limit": 1})

    @cached_property
    def _key_type(self) -> pa.DataType:
        return self._sources.base.manifest.schema.top_level(self._sources.key.names[0]).storage_type

    @cached_property
    def _key_index(self) -> FieldIndex | None:
        """Index that finds exactly the rows of the table with a key of one column, if there is one."""
        base, indices = self._sources.base, self._request.indices
        if len(self._sources.key.names) != 1 or indices is None:
            return None
        field = base.manifest.schema.top_level(self._sources.key.names[0])
        if not (pa.types.is_integer(field.storage_type) or is_binary_like(field.storage_type)):
            return None
        everywhere = frozenset(base.manifest.fragment_list.columns.ids.tolist())
        for index in indices.by_value.get(IndexedValue(field.id), ()):
            if index.kind == "btree" and everywhere <= index.fragment_ids and index.of_type(field.storage_type):
                return index
        return None

    def _by_index(self, index: FieldIndex, key: pa.Scalar) -> pa.RecordBatch:
        reader, projection = self._sources.base.reader, self._request.projection
        bound = order_of(key.type).bound(key)
        addresses = index.rows(ValueCondition((Interval(bound, bound),))).addresses()
        live = addresses[reader.is_live(addresses)][:1]
        return take_addresses(reader, live, projection, self._request.schema)


def _condition(given: pa.RecordBatch, schema: pa.Schema) -> Filter | None:
    """Return the condition that a row has a key."""
    texts = [_text(name, column) for name, column in zip(given.schema.names, given.columns, strict=True)]
    if all(text is not None for text in texts):  # texts are compiled faster
        return compile_filter(" AND ".join(text for text in texts if text is not None), schema)
    condition: Any = None
    for name, column in zip(given.schema.names, given.columns, strict=True):
        one = pc.field(name).is_null() if column.null_count else pc.field(name) == column[0]
        condition = one if condition is None else condition & one
    return compile_filter(condition, schema)


def _text(name: str, column: pa.Array) -> str | None:
    """Return the condition of one column as text if that is simple, None otherwise."""
    if column.null_count or not name.isidentifier():
        return None
    if pa.types.is_integer(column.type) and column.type != pa.uint64():
        number = column[0].as_py()
        return f"`{name}` = {number}" if abs(number) < 1 << 62 else None
    if pa.types.is_string(column.type):
        text = column[0].as_py()
        return f"`{name}` = '{text}'" if text.isalnum() and text.isascii() else None
    return None


def _in_shards(sources: LsmSources, given: pa.RecordBatch, wanted: list[Field]) -> pa.RecordBatch | None:
    """Return the newest row of a key in memtables and SSTables: none if it was deleted. None without any."""
    key, marks = sources.key.array(given)[0].as_py(), sources.wanted(given)
    for memtable in sources.memtables:
        row = memtable.find(key)
        if row is not None:
            dead = row.column(TOMBSTONE)[0].as_py()
            return conformed(row, memtable.names, wanted, "memtable").slice(0, 0 if dead else 1)
    for shard in sources.shards:
        for sstable in shard:
            if not may_hold(sources.marks.get(sstable), marks):
                continue
            found = sstable.find(key, wanted)
            if found is not None:
                return found[0].slice(0, 0 if found[1][0].as_py() else 1)
    return None
