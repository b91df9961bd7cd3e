"""SSTables, open for reading, and a cache of them."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, MissingFileError
from lance_dataset.locks import SharedLock
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.places import ShardPlace
from lance_dataset.memwal.schemas import TOMBSTONE, conformed, one_batch
from lance_dataset.properties import cached_property
from lance_dataset.read.location import TableLocation
from lance_dataset.read.projection import Projection
from lance_dataset.read.session import Session
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.take import take_rows
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.scan import scan_table
from lance_dataset.types.schema import Field, Schema

__all__ = ["OpenSsTable", "open_sstable"]

#: Bytes of keys and of rows that the SSTables of one session keep, and bytes of each row that are counted.
_MAX_BYTES, _ROW_BYTES = 256 << 20, 200


@dataclass(frozen=True, eq=False)
class OpenSsTable:
    """SSTable, open for reading. It never changes.

    Attributes
    ----------
    generation
        Its generation.
    snapshot
        The table.
    key
        Key of the table that the shard belongs to.
    """

    generation: int
    snapshot: Snapshot
    key: KeyColumns

    @cached_property
    def names(self) -> dict[int, str]:
        """Names of its columns by field id, without the mark of deletions."""
        return {field.id: field.name for field in self.snapshot.manifest.schema.fields if field.name != TOMBSTONE}

    @cached_property
    def rows(self) -> int:
        """Number of its rows without older rows of the same key."""
        return self.snapshot.reader.num_rows

    @cached_property
    def keys(self) -> pa.Array:
        """Keys of its rows.

        Raises
        ------
        CorruptFileError
            It lacks a column of the key, or a key occurs twice.
        """
        missing = [name for name, number in zip(self.key.names, self.key.ids, strict=True) if number not in self.names]
        if missing:
            raise CorruptFileError(f"{self.snapshot.uri}: the SSTable lacks the key columns {missing}")
        table = self._scanned([self.names[number] for number in self.key.ids])
        named = table.rename_columns(list(self.key.names)).select(list(self.key.names))
        return self.key.array(named.combine_chunks())

    @cached_property
    def marks(self) -> pa.BooleanArray:
        """True for each of its rows that stands for a deletion."""
        wanted = [self.snapshot.manifest.schema.by_id[number] for number in self.key.ids]
        return self.scan(wanted)[1]

    @cached_property
    def addresses(self) -> NDArray[np.uint64]:
        """Addresses of its rows in its own files, ascending."""
        return self.snapshot.reader.addresses_of_numbers(np.arange(self.rows))

    @cached_property
    def _places(self) -> dict[object, int]:
        return {key: row for row, key in enumerate(self.keys.to_pylist())}

    def scan(self, wanted: list[Field]) -> tuple[pa.RecordBatch, pa.Array]:
        """Return columns of all rows as the table has them now, and which rows stand for deletions."""
        return self._conformed(one_batch(self._scanned(self._stored(wanted)), self.snapshot.uri), wanted)

    def find(self, key: object, wanted: list[Field]) -> tuple[pa.RecordBatch, pa.Array] | None:
        """Return the row of a key like `scan`, None if there is none."""
        row = self._places.get(key)
        return None if row is None else self.take(np.array([row], np.int64), wanted)

    def take(self, rows: NDArray[np.int64], wanted: list[Field]) -> tuple[pa.RecordBatch, pa.Array]:
        """Return some of its rows, given by number, like `scan`."""
        snapshot = self.snapshot
        projection = snapshot.projection(self._stored(wanted))
        return self._conformed(take_rows(snapshot.reader, rows, projection, snapshot.scanned_schema), wanted)

    def _stored(self, wanted: list[Field]) -> list[str]:
        names = [self.names[field.id] for field in wanted if field.id in self.names]
        return [*names, TOMBSTONE] if TOMBSTONE in self.snapshot.manifest.schema.names else names

    def _scanned(self, names: list[str]) -> pa.Table:
        snapshot = self.snapshot
        projection: Projection = snapshot.projection(tuple(names))
        return scan_table(snapshot.reader, ScanRequest(snapshot.scanned_schema, projection))

    def _conformed(self, batch: pa.RecordBatch, wanted: list[Field]) -> tuple[pa.RecordBatch, pa.Array]:
        if TOMBSTONE in batch.schema.names:
            marks = batch.column(TOMBSTONE)
            if marks.type != pa.bool_() or marks.null_count:
                raise CorruptFileError(
                    f"{self.snapshot.uri}: column {TOMBSTONE!r} is of type {marks.type} or has nulls"
                )
        else:
            marks = pa.repeat(pa.scalar(False), batch.num_rows)
        return conformed(batch, self.names, wanted, self.snapshot.uri), marks


class _Cache:
    """SSTables of one session that were used last."""

    def __init__(self) -> None:
        # Not that of the table, which must be free to end while its tables are cached.
        self.session = Session()
        self._tables: OrderedDict[tuple[str, KeyColumns], OpenSsTable] = OrderedDict()
        self._lock = SharedLock()

    def get(self, key: tuple[str, KeyColumns]) -> OpenSsTable | None:
        with self._lock:
            found = self._tables.get(key)
            if found is not None:
                self._tables.move_to_end(key)
            return found

    def put(self, key: tuple[str, KeyColumns], table: OpenSsTable) -> OpenSsTable:
        _ = table.rows  # is read without the lock
        with self._lock:
            table = self._tables.setdefault(key, table)
            size = sum(each.rows * _ROW_BYTES for each in self._tables.values())
            while size > _MAX_BYTES and len(self._tables) > 1:
                _, dropped = self._tables.popitem(last=False)
                size -= dropped.rows * _ROW_BYTES
            return table


_caches: weakref.WeakKeyDictionary[Session, _Cache] = weakref.WeakKeyDictionary()
_caches_lock = SharedLock()


def open_sstable(
    location: TableLocation, place: ShardPlace, generation: int, path: str, key: KeyColumns, schema: Schema
) -> OpenSsTable:
    """Open an SSTable, or return it if it is open.

    Parameters
    ----------
    location
        Location of the table that the shard belongs to.
    place
        The shard.
    generation, path
        Generation and folder of the SSTable.
    key, schema
        Key and schema of the table.

    Raises
    ------
    MissingFileError
        The SSTable does not exist.
    CorruptFileError
        It cannot be read.
    """
    root = place.sstable(path)
    with _caches_lock:
        cache = _caches.get(location.session) or _caches.setdefault(location.session, _Cache())
    uri = place.store.uri(root)
    found = cache.get((uri, key))
    if found is not None:
        return found
    store = place.store.for_table(root, place.store.trusted_bases)
    there = replace(location, uri=uri, root=root, store=store, session=cache.session)
    try:
        snapshot = Snapshot.of(there, there.read_manifest())
    except FileNotFoundError as error:
        raise MissingFileError(
            f"SSTable {generation} of shard {place.shard_id} does not exist ({uri}); it may have been merged and "
            "collected: open the dataset and its shards anew"
        ) from error
    return cache.put((uri, key), OpenSsTable(generation, snapshot, key))
