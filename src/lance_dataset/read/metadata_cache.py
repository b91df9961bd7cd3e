"""Metadata cache of a session: decoded manifests, and tables that stay open after their handles are closed."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from lance_dataset.file.container import FileMetadata
from lance_dataset.io.base import ObjectStore
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import UNLIMITED, ResultLimit
from lance_dataset.locks import SharedLock
from lance_dataset.read.blob_table import open_table
from lance_dataset.read.table_reader import TableReader
from lance_dataset.table.fragment import DataFile
from lance_dataset.table.manifest import Manifest, decode_manifest
from lance_dataset.table.paths import FileLocator

__all__ = ["CacheStatistics", "MetadataCache"]

_Opened = TypeVar("_Opened")

#: Estimated memory of decoded metadata: a factor of its size in the file, and a constant number of bytes.
_MANIFEST_FACTOR, _MANIFEST_BYTES = 3, 2 << 10
_COLUMN_FACTOR, _FILE_BYTES = 4, 8 << 10
_TABLE_BYTES = 8 << 10
#: Maximum bytes of the files of the manifests that the process keeps, and of one of them.
_RECENT_BYTES, _RECENT_FILE_BYTES = 2 << 20, 256 << 10


@dataclass(frozen=True)
class CacheStatistics:
    """Statistics of a cache.

    Attributes
    ----------
    hits, misses
        Number of lookups of manifests and open tables that the cache answered, and that it did not.
    evictions
        Number of entries removed because of the limit.
    entries
        Current number of entries.
    bytes
        Estimated size of the entries in memory.
    max_bytes
        Limit of the cache.
    """

    hits: int
    misses: int
    evictions: int
    entries: int
    bytes: int
    max_bytes: int


class _RecentManifests:
    """Small manifests that the process decoded last. Programs open a dataset again with a new session each time."""

    def __init__(self) -> None:
        self._lock = SharedLock()
        self._known: OrderedDict[str, tuple[bytes, Manifest]] = OrderedDict()
        self._bytes = 0

    def decode(self, data: bytes, path: str) -> Manifest:
        """Decode the bytes of a manifest, unless these bytes of this path are known."""
        if len(data) > _RECENT_FILE_BYTES:
            return decode_manifest(data, path)
        with self._lock:
            known = self._known.get(path)
            if known is not None and known[0] == data:
                self._known.move_to_end(path)
                return known[1]
        manifest = decode_manifest(data, path)
        with self._lock:
            self._forget(path)
            self._known[path] = data, manifest
            self._bytes += len(data)
            while self._bytes > _RECENT_BYTES:
                self._forget(next(iter(self._known)))
        return manifest

    def _forget(self, path: str) -> None:
        data, _ = self._known.pop(path, (b"", None))
        self._bytes -= len(data)


_recent = _RecentManifests()


class MetadataCache:
    """Cache of the most recently used manifests and open tables, limited in bytes. Safe to use from several threads.

    The key of a manifest is its path and its bytes, which are read each time, so a dataset that replaced another one of
    the same name is not mistaken for it. An open table includes the metadata of its data files and the data decoded
    from it. A file that several tables read is opened once.

    Parameters
    ----------
    max_bytes
        Maximum estimated size of the entries.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = SharedLock()
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = self._hits = self._misses = self._evictions = 0
        self._files: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    # -- manifests -----------------------------------------------------------------------------------------------

    def decode(self, data: bytes, path: str) -> Manifest:
        """Decode the bytes of a manifest, or return it from the cache. Errors are those of `decode_manifest`."""
        key = "manifest", path
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0][0] == data:
                self._entries.move_to_end(key)
                self._hits += 1
                return entry[0][1]  # type: ignore[no-any-return]
        manifest = _recent.decode(data, path)
        with self._lock:
            self._misses += 1
            self._keep(key, (data, manifest), _MANIFEST_FACTOR * len(data) + _MANIFEST_BYTES)
        return manifest

    # -- open tables ---------------------------------------------------------------------------------------------

    def open_table(
        self,
        store: ObjectStore,
        root: str,
        manifest: Manifest,
        storage_options: Mapping[str, str],
        session: object,
        previous: TableReader | None = None,
        limit: ResultLimit = UNLIMITED,
    ) -> TableReader:
        """Open a version of a table, or return it from the cache.

        Parameters
        ----------
        store, root
            Location of the table.
        manifest
            Manifest of the version.
        storage_options
            Options of the store.
        session
            Session that owns the cache.
        previous, limit
            See `TableReader`.
        """
        key = _table_key(store, root, storage_options, manifest.version, limit)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0].manifest is manifest:
                self._entries.move_to_end(key)
                self._hits += 1
                return entry[0]  # type: ignore[no-any-return]
            self._misses += 1
        shared = _SharedFiles(self, key)
        locator = FileLocator(store, root, manifest.base_paths, storage_options, session, shared)
        reader = open_table(locator, manifest, previous, limit)
        shared.reader = weakref.ref(reader)
        with self._lock:
            self._keep(key, reader, _TABLE_BYTES)
        return reader

    def forget_table(
        self,
        store: ObjectStore,
        root: str,
        manifest: Manifest,
        storage_options: Mapping[str, str],
        limit: ResultLimit = UNLIMITED,
    ) -> None:
        """Remove a version of a table from the cache, when a handle moves on to the next version."""
        key = _table_key(store, root, storage_options, manifest.version, limit)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0].manifest is manifest:
                self._bytes -= self._entries.pop(key)[1]

    def open_file(self, key: Hashable, make: Callable[[], _Opened]) -> _Opened:
        """Open a file, or return the open file that another table uses."""
        with self._lock:
            known = self._files.get(key)
        if known is not None:
            return known  # type: ignore[no-any-return]
        made = make()
        with self._lock:
            return self._files.setdefault(key, made)  # type: ignore[no-any-return]

    def grow(self, key: Hashable, reader: TableReader | None, size: int) -> None:
        """Add to the size of the table of a reader, if the cache still holds it."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0] is reader:
                self._entries[key] = entry[0], entry[1] + size
                self._bytes += size
                self._trim()

    # -- entries -------------------------------------------------------------------------------------------------

    def statistics(self) -> CacheStatistics:
        """Return the statistics of the cache."""
        with self._lock:
            counts = self._hits, self._misses, self._evictions
            return CacheStatistics(*counts, len(self._entries), self._bytes, self._max_bytes)

    def restart(self, max_bytes: int) -> None:
        """Count hits, misses and evictions from zero, and set the maximum size."""
        with self._lock:
            self._max_bytes = max_bytes
            self._trim()
            self._hits = self._misses = self._evictions = 0

    def tables(self) -> list[TableReader]:
        """Return the open tables."""
        with self._lock:
            return [value for value, _ in self._entries.values() if isinstance(value, TableReader)]

    def clear(self) -> None:
        """Remove all entries. Open handles keep the objects they use."""
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


def _table_key(
    store: ObjectStore, root: str, storage_options: Mapping[str, str], version: int, limit: ResultLimit
) -> tuple[Any, ...]:
    return "table", store.uri(root), frozenset(storage_options.items()), store.trusted_bases, limit.max_bytes, version


class _SharedFiles:
    """Open data files of one table, which the cache shares between tables.

    The references to the cache and to the reader are weak: the cache holds the reader, which holds the locator, which
    holds this object. So all of them are freed with the last handle, without the garbage collector.
    """

    def __init__(self, cache: MetadataCache, key: tuple[Any, ...]) -> None:
        self._cache = weakref.ref(cache)
        self._key = key
        self._options: dict[int | None, frozenset[tuple[str, str]]] = {}
        self.reader: weakref.ref[TableReader] | None = None

    def opened(self, locator: FileLocator, file: DataFile, make: Callable[[], _Opened]) -> _Opened:
        cache = self._cache()
        if cache is None or self.reader is None:
            return make()
        store, path = locator.data_file(file)
        # the same location with other options may be a different store
        options = self._options.get(file.base_id)
        if options is None:
            options = self._options[file.base_id] = frozenset(locator.options_of(file.base_id).items())
        made = cache.open_file((store.uri(path), options, file.file_size_bytes, file.fields), make)
        columns = made.column_metadata_size if isinstance(made, FileMetadata) else 0
        cache.grow(self._key, self.reader(), _FILE_BYTES + _COLUMN_FACTOR * columns)
        return made
