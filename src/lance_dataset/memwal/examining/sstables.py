"""Look at the SSTables that a shard names: all files and rows, the index and the filter of their keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, DatasetNotFoundError, LanceError, MissingFileError
from lance_dataset.index.files import IndexFolder
from lance_dataset.index.validating.ordered_values import BTreeContent
from lance_dataset.memwal.bloom import key_filter
from lance_dataset.memwal.examining.scene import RESTORE, ShardScene
from lance_dataset.memwal.flushing import KEY_FILTER, KEY_INDEX
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.schemas import TOMBSTONE, check_columns
from lance_dataset.memwal.shard_manifest import SsTable
from lance_dataset.memwal.sstables import OpenSsTable
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.validation import validate_dataset
from lance_dataset.records.diagnosis import DiagnosisCause, Finding
from lance_dataset.scan.validating import validate_indices
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import coverage, parse_indices
from lance_dataset.table.naming import VERSIONS_FOLDER
from lance_dataset.table.paths import DATA_FOLDER, DELETIONS_FOLDER, INDICES_FOLDER, deletion_name
from lance_dataset.types.schema import Field, Schema

__all__ = ["look_at_sstable"]


def look_at_sstable(scene: ShardScene, table: SsTable, key: KeyColumns) -> Iterator[Finding]:
    """Find damage of an SSTable.

    Parameters
    ----------
    scene
        The shard.
    table
        The SSTable, as the manifest of the shard names it.
    key
        Key of the table.
    """
    look = _SsTableLook(scene, table, key)
    try:
        yield from look.findings()
    except (LanceError, OSError) as error:
        yield look.unread(error)


class _SsTableLook:
    """Look at one SSTable."""

    def __init__(self, scene: ShardScene, table: SsTable, key: KeyColumns) -> None:
        self._scene, self._table, self._key = scene, table, key
        self._store = scene.place.store
        self._root = scene.place.sstable(table.path)
        self._files: set[str] = set()
        self._remedy = f"{RESTORE}, or merge the shard without this SSTable to give up its rows"
        if table.generation <= scene.merged:
            self._remedy = "ds.collect_mem_wal(), as its rows are in the table; older versions may need them"

    def unread(self, error: Exception) -> Finding:
        """Return the finding for an error of reading, with the file that it names."""
        path = self._named(str(error))
        sizes = {info.path: info.size for info in self._store.list_tree(self._root)}
        missing = isinstance(error, FileNotFoundError) or (path in self._files and path not in sizes)
        shown = error if not missing else MissingFileError(str(error))
        place = self._scene.place.store.uri(path)
        what = f"SSTable {self._table.generation}" + ("" if place in str(error) else f", {place}")
        found = self._scene.unread(shown, path, self._remedy, sizes.get(path))
        return replace(found, what=f"{self._scene.name}: {what}: {error}")

    def _named(self, text: str) -> str:
        """Return the file that an error names, or the folder of the SSTable."""
        start = len(self._root) + 1
        whole = [path for path in self._files if path[start:] in text]
        named = whole or [path for path in self._files if path.rpartition("/")[2] in text]
        return max(named, key=len, default=self._root)

    def _corrupt(self, what: str, path: str) -> Finding:
        text = f"SSTable {self._table.generation}, {self._store.uri(path)}: {what}"
        return self._scene.damage(text, self._remedy, DiagnosisCause.CORRUPT, path)

    def findings(self) -> Iterator[Finding]:
        """Yield what was found. Raises LanceError or OSError if a file cannot be read."""
        self._files = {info.path for info in self._store.list_tree(self._root)}
        if not self._files:
            what = f"SSTable {self._table.generation} is missing: {self._store.uri(self._root)} has no files"
            yield self._scene.damage(what, self._remedy, DiagnosisCause.MISSING, self._root)
            return
        try:
            snapshot = self._opened()
        except DatasetNotFoundError:
            folder = f"{self._root}/{VERSIONS_FOLDER}"
            what = f"SSTable {self._table.generation} has no manifest in {self._store.uri(folder)}"
            yield self._scene.damage(what, self._remedy, DiagnosisCause.MISSING, folder)
            return
        self._files |= {f"{self._root}/{path}" for path in _paths(snapshot)}
        validate_dataset(snapshot)
        yield from self._missing_indices(snapshot)
        validate_indices(snapshot)
        rows = sum(fragment.physical_rows or 0 for fragment in snapshot.manifest.fragments)
        if self._table.physical_rows is not None and self._table.physical_rows != rows:
            yield self._corrupt(f"has {rows} rows instead of {self._table.physical_rows}", self._root)
        opened = OpenSsTable(self._table.generation, snapshot, self._key)
        opened.scan(_wanted(self._scene.snapshot.manifest.schema.fields))
        if self._key:
            yield from self._keys(opened, rows)

    def _opened(self) -> Snapshot:
        store = self._store.for_table(self._root, self._store.trusted_bases)
        there = replace(self._scene.location, uri=store.uri(self._root), root=self._root, store=store)
        return Snapshot.of(there, there.read_manifest())

    def _missing_indices(self, snapshot: Snapshot) -> Iterator[Finding]:
        """Find indices without files. Those of SSTables need not list them."""
        for message in parse_indices(snapshot.manifest.index_section):
            index = IndexMetadata.from_proto(message, snapshot.manifest.path)
            folder = f"{self._root}/{INDICES_FOLDER}/{index.uuid}"
            if coverage(message) and not any(path.startswith(f"{folder}/") for path in self._files):
                what = f"SSTable {self._table.generation}: the index {index.name!r} has no files in {folder}"
                yield self._scene.damage(what, self._remedy, DiagnosisCause.MISSING, folder)

    def _keys(self, opened: OpenSsTable, rows: int) -> Iterator[Finding]:
        """Compare the keys of the rows with their index, which pylance needs, and with their filter."""
        keys = opened.keys
        if len(keys.unique()) != opened.rows:
            yield self._corrupt("has a key twice", self._root)
        if TOMBSTONE not in opened.snapshot.manifest.schema.names:
            return  # of releases that knew no index of the keys
        folder = f"{self._root}/{KEY_INDEX}"
        try:
            self._check_index(IndexFolder(self._store, folder), _live(opened.snapshot, rows), keys, rows)
        except (LanceError, OSError) as error:
            self._files |= {f"{folder}/{name}" for name in ("page_data.lance", "page_lookup.lance")}
            found = self.unread(error)
            remedy = f"ds.merge_mem_wal(), which does not need it, and ds.collect_mem_wal(); or {RESTORE}"
            yield replace(found, what=f"{found.what} (pylance needs this index of the keys)", remedy=remedy)
        yield from self._filter(opened)

    def _check_index(self, folder: IndexFolder, live: NDArray[np.int64], keys: pa.Array, rows: int) -> None:
        where = self._store.uri(f"{self._root}/{KEY_INDEX}/page_data.lance")
        entries = list(BTreeContent(folder).entries())
        ids = np.concatenate([entry.rows for entry in entries]) if entries else np.empty(0, np.uint64)
        if len(ids) != rows or not np.array_equal(np.sort(ids), np.arange(rows, dtype=np.uint64)):
            raise CorruptFileError(f"{where}: does not have each of the {rows} rows once")
        if not entries:
            return
        values = pa.concat_arrays([entry.keys for entry in entries])
        found = values.take(pa.array(np.argsort(ids)[live]))
        if not found.equals(keys.cast(found.type)):
            raise CorruptFileError(f"{where}: has other keys than the rows")

    def _filter(self, opened: OpenSsTable) -> Iterator[Finding]:
        """Check that the filter of the keys lets all of them pass."""
        path = f"{self._root}/{KEY_FILTER}"
        names = [opened.names[number] for number in self._key.ids]
        wanted = [opened.snapshot.manifest.schema.top_level(name) for name in names]
        batch, _ = opened.scan(wanted)
        needed = np.frombuffer(key_filter(batch.columns), np.uint8)
        cause, what = DiagnosisCause.CORRUPT, "does not fit the keys"
        try:
            stored = np.frombuffer(self._store.read(path), np.uint8)
        except MissingFileError:
            cause, what = DiagnosisCause.MISSING, "is missing"
        else:
            if len(stored) == len(needed) and not np.any(needed & ~stored):
                return
        what = f"SSTable {self._table.generation}: the filter of its keys, {self._store.uri(path)}, {what}"
        remedy = "nothing needs to be done, as readers do not need it"
        yield self._scene.advice(what, remedy, path, cause)


def _paths(snapshot: Snapshot) -> Iterator[str]:
    """Yield the data files and deletion files of a table, and the files that its indices list."""
    for fragment in snapshot.manifest.fragments:
        for file in fragment.files:
            yield f"{DATA_FOLDER}/{file.path}"
        if fragment.deletion_file is not None:
            yield f"{DELETIONS_FOLDER}/{deletion_name(fragment.id, fragment.deletion_file)}"
    for message in parse_indices(snapshot.manifest.index_section):
        index = IndexMetadata.from_proto(message, snapshot.manifest.path)
        for listed in index.files:
            yield f"{INDICES_FOLDER}/{index.uuid}/{listed.path}"


def _live(snapshot: Snapshot, rows: int) -> NDArray[np.int64]:
    """Return the offsets of the rows that are not deleted."""
    live = np.ones(rows, bool)
    start = 0
    for reader in snapshot.reader.fragments:
        live[start + reader.deletions] = False
        start += reader.physical_rows
    return np.flatnonzero(live)


def _wanted(fields: tuple[Field, ...]) -> list[Field]:
    """Return the columns that an SSTable of this release can have."""
    found = []
    for field in fields:
        try:
            check_columns(Schema((field,), {}))
        except LanceError:
            continue
        found.append(field)
    return found
