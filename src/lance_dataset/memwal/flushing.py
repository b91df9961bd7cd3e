"""Flushes: a memtable becomes an SSTable, a small table with its keys in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.write.fragment_files import WriteOptions, write_fragment_files
from lance_dataset.index.files import NewIndexFolder
from lance_dataset.index.scalar import btree_training
from lance_dataset.index.scalar.sorting import entry_schema
from lance_dataset.memwal.bloom import key_filter
from lance_dataset.memwal.keys import KeyColumns, newest_rows
from lance_dataset.memwal.maintained import SsTableIndices
from lance_dataset.memwal.memtable import Memtable
from lance_dataset.memwal.places import ShardPlace
from lance_dataset.memwal.routing import ShardRouting
from lance_dataset.memwal.schemas import sstable_schema
from lance_dataset.memwal.shard_manifest import SsTable
from lance_dataset.table.apply import first_manifest
from lance_dataset.table.deletions import write_deletions
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.naming import Naming
from lance_dataset.table.operations import Overwrite
from lance_dataset.table.publish import publish_version
from lance_dataset.table.transaction import Transaction
from lance_dataset.types.schema import Schema

__all__ = ["KEY_FILTER", "KEY_INDEX", "write_sstable"]

#: Folder of the index of the keys of an SSTable.
KEY_INDEX = "_pk_index"
#: File with the filter of the keys of an SSTable.
KEY_FILTER = "bloom_filter.bin"
_INDEX_PAGE_ROWS = 8192
_INDEX_MEMORY = 1 << 30
#: Larger than any memtable: an SSTable has one fragment.
_UNLIMITED = 1 << 40


def write_sstable(place: ShardPlace, memtable: Memtable, base: Manifest, indices: SsTableIndices) -> SsTable:
    """Write the rows of a memtable as a new SSTable. All of its files are durable on return.

    Parameters
    ----------
    place
        The shard.
    memtable
        Rows, which do not change any more.
    base
        Version of the table whose schema the rows have.
    indices
        Indices that the SSTable gets.
    """
    name = place.new_sstable(memtable.generation)
    root = place.sstable(name)
    rows = memtable.table()
    schema = sstable_schema(base.schema, memtable.key, base.max_field_id)
    options = WriteOptions(base.storage_version, max_rows_per_file=_UNLIMITED, max_bytes_per_file=_UNLIMITED)
    fragments, written = write_fragment_files(place.store, root, schema, rows.to_batches(), options)
    columns = [rows.column(name).combine_chunks() for name in memtable.key.names]
    if memtable.key:
        newest = newest_rows(memtable.key.array(rows))
        if len(newest) < rows.num_rows:
            fragments = [_without_older(place, root, fragments[0], rows.num_rows, newest)]
            columns = [column.take(pa.array(newest)) for column in columns]
        _write_key_index(place, root, memtable.key, rows, base.schema)
    place.store.put(f"{root}/{KEY_FILTER}", key_filter(columns))
    operation = Overwrite(written, tuple(fragments), {}, (), base.storage_version)
    manifest = first_manifest(operation, storage_version=base.storage_version, stable_row_ids=False)
    manifest = indices.write(root, manifest)
    publish_version(place.store, root, manifest, Transaction(0, operation), Naming.V2)
    key_bytes = memtable.key_bytes() if memtable.key else None
    routing = ShardRouting.of(base, memtable.key)
    marks = None if routing is None else routing.marks(rows.column(routing.column).combine_chunks())
    return SsTable(memtable.generation, name, memtable.num_bytes, rows.num_rows, key_bytes, marks)


def _without_older(place: ShardPlace, root: str, fragment: Fragment, rows: int, newest: NDArray[np.int64]) -> Fragment:
    """Mark all rows of a fragment as deleted that are not the last of their keys."""
    older = np.ones(rows, bool)
    older[newest] = False
    deletions = write_deletions(place.store, root, 0, 1, np.flatnonzero(older).astype(np.uint32))
    return replace(fragment, deletion_file=deletions)


def _write_key_index(place: ShardPlace, root: str, key: KeyColumns, rows: pa.Table, schema: Schema) -> None:
    kind = key.type(schema)
    numbers = pa.array(np.arange(rows.num_rows, dtype=np.uint64))
    entries = pa.RecordBatch.from_arrays([key.array(rows), numbers], schema=entry_schema(kind))
    folder = NewIndexFolder(place.store, f"{root}/{KEY_INDEX}")
    btree_training.train([entries], kind, folder, _INDEX_PAGE_ROWS, _INDEX_MEMORY)
