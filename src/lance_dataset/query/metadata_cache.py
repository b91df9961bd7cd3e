"""What datasets of one session share: decoded manifests, and tables that stay open after a handle on them is gone."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from lance_dataset.file.container import FileMetadata
from lance_dataset.query.blob_table import open_table
from lance_dataset.query.table_reader import TableReader
from lance_dataset.schema import Schema
from lance_dataset.table.fragment import DataFile
from lance_dataset.table.manifest import Manifest, decode_manifest
from lance_dataset.table.paths import FileLocator

__all__ = ["CacheStatistics", "MetadataCache", "OpenTable"]

_Opened = TypeVar("_Opened")

#: Bytes that decoded metadata takes in memory for each byte that it takes in a file, and besides.
_MANIFEST_FACTOR, _MANIFEST_BYTES = 3, 2 << 10
_COLUMN_FACTOR, _FILE_BYTES = 4, 8 << 10
_TABLE_BYTES = 8 << 10


@dataclass(frozen=True)
class CacheStatistics:
    """How a cache did so far.

    Attributes
    ----------
    hits, misses
        Manifests and open tables that were there when they were asked for, and that were not.
    evictions
        Entries that went because of the limit.
    entries
        Entries now.
    bytes
        Estimated size of the entries in memory.
    max_bytes
        The limit.
    """

    hits: int
    misses: int
    evictions: int
    entries: int
    bytes: int
    max_bytes: int


class OpenTable:
    """A version of a table with the data files that were read of it.

    Parameters
    ----------
    manifest
        The version.
    reader
        Its reader.
    scanned_schema
        Schema that scans see.
    """

    def __init__(self, manifest: Manifest, reader: TableReader, scanned_schema: Schema) -> None:
        self.manifest = manifest
        self.reader = reader
        self.scanned_schema = scanned_schema
        #: What takes return, by the columns asked for.
        self.projections: dict[tuple[str, ...] | None, Any] = {}


class MetadataCache:
    """Manifests and open tables, those used last, within a number of bytes. Safe to use from several threads.

    A manifest is found by its path and its bytes, which are read each time: a dataset that was replaced by another of
    the same name is not mistaken for it. With a table goes what its data files say of their columns, and what was
    decoded of those. Files that several tables read are open once.

    Parameters
    ----------
    max_bytes
        Size up to which entries are kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.RLock()
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = self._hits = self._misses = self._evictions = 0
        self._files: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    # -- manifests -----------------------------------------------------------------------------------------------

    def decode(self, data: bytes, path: str) -> Manifest:
        """The manifest in these bytes of a file; raises as `decode_manifest`."""
        key = "manifest", path
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0][0] == data:
                self._entries.move_to_end(key)
                self._hits += 1
                return entry[0][1]  # type: ignore[no-any-return]
        manifest = decode_manifest(data, path)
        with self._lock:
            self._misses += 1
            self._keep(key, (data, manifest), _MANIFEST_FACTOR * len(data) + _MANIFEST_BYTES)
        return manifest

    # -- open tables ---------------------------------------------------------------------------------------------

    def open_table(
        self,
        locator: FileLocator,
        manifest: Manifest,
        place: tuple[str, Mapping[str, str]],
        scanned: Callable[[Schema], Schema],
        previous: TableReader | None = None,
    ) -> OpenTable:
        """A version of a table, which may be open already.

        Parameters
        ----------
        locator
            Finds the files where it is not.
        manifest
            The version.
        place
            Location of the table, and the options it is reached with.
        scanned
            From the schema of a table to that which scans see.
        previous
            See `TableReader`.
        """
        key = _key(place, manifest.version)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0].manifest is manifest:
                self._entries.move_to_end(key)
                self._hits += 1
                return entry[0]  # type: ignore[no-any-return]
            self._misses += 1
        shared = _SharingLocator(self, locator, key)
        opened = OpenTable(manifest, open_table(shared, manifest, previous), scanned(manifest.schema))
        shared.reader = weakref.ref(opened.reader)
        with self._lock:
            self._keep(key, opened, _TABLE_BYTES)
        return opened

    def forget_table(self, manifest: Manifest, place: tuple[str, Mapping[str, str]]) -> None:
        """Let go of a version of a table, as handles do that move on to the next one."""
        key = _key(place, manifest.version)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0].manifest is manifest:
                self._bytes -= self._entries.pop(key)[1]

    def open_file(self, key: Hashable, make: Callable[[], _Opened]) -> _Opened:
        """An open file, as long as some table uses it the same for all."""
        with self._lock:
            known = self._files.get(key)
        if known is not None:
            return known  # type: ignore[no-any-return]
        made = make()
        with self._lock:
            return self._files.setdefault(key, made)  # type: ignore[no-any-return]

    def grow(self, key: Hashable, reader: TableReader | None, size: int) -> None:
        """Say that the table of a reader, if it is still there, takes more bytes than before."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0].reader is reader:
                self._entries[key] = entry[0], entry[1] + size
                self._bytes += size
                self._trim()

    # -- entries -------------------------------------------------------------------------------------------------

    def statistics(self) -> CacheStatistics:
        """How the cache did so far."""
        with self._lock:
            counts = self._hits, self._misses, self._evictions
            return CacheStatistics(*counts, len(self._entries), self._bytes, self._max_bytes)

    def clear(self) -> None:
        """Let go of everything; handles go on with what they use."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _keep(self, key: Hashable, value: object, size: int) -> None:
        replaced = self._entries.pop(key, None)
        if replaced is not None:
            self._bytes -= replaced[1]
        self._entries[key] = value, size
        self._bytes += size
        self._trim()

    def _trim(self) -> None:
        while self._bytes > self._max_bytes:
            self._bytes -= self._entries.popitem(last=False)[1][1]
            self._evictions += 1


def _key(place: tuple[str, Mapping[str, str]], version: int) -> tuple[str, str, frozenset[tuple[str, str]], int]:
    return "table", place[0], frozenset(place[1].items()), version


class _SharingLocator(FileLocator):
    """Finds the files of a table, and opens them by way of a cache.

    Knows the cache, the session and the reader weakly: the cache holds the reader, which holds this. So all of them go
    when the last handle does, without waiting for the garbage collector.
    """

    def __init__(self, cache: MetadataCache, locator: FileLocator, key: tuple[Any, ...]) -> None:
        vars(self).update({name: value for name, value in vars(locator).items() if name != "_session"})
        owner = locator._session
        self._owner = None if owner is None else weakref.ref(owner)
        self._cache = weakref.ref(cache)
        self._key = key
        self._reached: dict[int | None, frozenset[tuple[str, str]]] = {}
        self.reader: weakref.ref[TableReader] | None = None

    @property
    def _session(self) -> object | None:  # type: ignore[override]
        return None if self._owner is None else self._owner()

    def opened(self, file: DataFile, make: Callable[[], _Opened]) -> _Opened:
        cache = self._cache()
        if cache is None or self.reader is None:
            return make()
        store, path = self.data_file(file)
        reached = self._reached.get(file.base_id)
        if reached is None:
            reached = self._reached[file.base_id] = self._reached_with(file.base_id)
        made = cache.open_file((store.uri(path), reached, file.file_size_bytes, file.fields), make)
        columns = made.column_metadata_size if isinstance(made, FileMetadata) else 0
        cache.grow(self._key, self.reader(), _FILE_BYTES + _COLUMN_FACTOR * columns)
        return made

    def _reached_with(self, base_id: int | None) -> frozenset[tuple[str, str]]:
        """The options that files of a base path are reached with: the same location may be another one with others."""
        return frozenset(self.options_of(base_id).items())
