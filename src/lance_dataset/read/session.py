"""Sessions, which hold caches and in-memory data that several datasets share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_dataset.arguments import checked_integer, refuse
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.guarded import external_manifests_of, plain_store
from lance_dataset.io.resolve import resolve
from lance_dataset.late_dataclass import dataclass
from lance_dataset.memory import MemoryUse, share_of_memory
from lance_dataset.read.metadata_cache import CacheStatistics, MetadataCache

__all__ = ["Session", "SessionContent", "byte_count", "check_session", "check_size"]

_DEFAULT_METADATA_BYTES = 1 << 30
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


@dataclass(frozen=True)
class SessionContent:
    """Cache and stores of a session.

    Attributes
    ----------
    metadata
        Its cache.
    stores
        Its object stores, by location and options.
    """

    metadata: MetadataCache
    stores: dict[tuple[Any, ...], ObjectStore]

    @property
    def index_bytes(self) -> int | None:
        """Estimated bytes of the open indices of its tables; None if none is open, or if one does not tell its size."""
        companions = [companion for table in self.metadata.tables() for companion in table.companions.values()]
        sizes = [getattr(companion, "nbytes", None) for companion in companions]
        known = [size for size in sizes if size is not None]
        return sum(known) if known and len(known) == len(sizes) else None

    @property
    def has_base_paths(self) -> bool:
        """True if a table of the session has base paths elsewhere."""
        return any(table.manifest.base_paths for table in self.metadata.tables())


class Session:
    """Metadata cache and data of ``memory://`` URIs, shared by the datasets that are opened with the session.

    Opening a dataset again with the same session is faster, since the session caches unchanged manifests, open data
    files, their column metadata, and decoded dictionaries. It keeps the most recently used entries, up to
    `metadata_cache_size_bytes`. This limit applies to the estimated size of manifests and file metadata. Decoded pages
    are not counted; they are freed with their file. Several threads may use a session.

    Parameters
    ----------
    index_cache_size_bytes
        Limit of the index cache, 6 GiB by default. It has no effect: what an open dataset has read of its indices is
        freed with the dataset.
    metadata_cache_size_bytes
        Limit of the metadata cache, 1 GiB by default; 0 for no cache.
    index_cache_backend, metadata_cache_backend, store_registry
        Not supported.

    Raises
    ------
    TypeError, OutOfRangeError
        A limit is not an integer, or it is negative.
    UnsupportedError
        A backend or a registry is given.
    """

    def __init__(
        self,
        index_cache_size_bytes: int | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_backend: str | Mapping[str, object] | None = None,
        metadata_cache_backend: str | Mapping[str, object] | None = None,
        store_registry: object = None,
    ) -> None:
        refuse(
            "Session",
            index_cache_backend=index_cache_backend,
            metadata_cache_backend=metadata_cache_backend,
            store_registry=store_registry,
        )
        check_size("index_cache_size_bytes", index_cache_size_bytes)
        limit = check_size("metadata_cache_size_bytes", metadata_cache_size_bytes)
        #: Metadata cache of the datasets of the session.
        usual = share_of_memory(_DEFAULT_METADATA_BYTES, MemoryUse.CACHE)
        self.metadata = MetadataCache(usual if limit is None else limit)
        self._stores: dict[tuple[Any, ...], ObjectStore] = {}

    def resolve(
        self, uri: str, storage_options: Mapping[str, str], trusted_bases: tuple[str, ...] | None = None
    ) -> tuple[ObjectStore, str]:
        """Return the store of a location and the path in it. Datasets that use the same options share its counts.

        Errors are those of `lance_dataset.io.resolve.resolve`.
        """
        store, root = resolve(uri, storage_options, self)
        options = frozenset(storage_options.items())
        key = type(plain_store(store)), store.uri(""), repr(external_manifests_of(store)), options
        _ = store.statistics  # created here, so that copies of the store share the counts
        return self._stores.setdefault(key, store).for_table(root, trusted_bases), root

    @property
    def _content(self) -> SessionContent:
        """Cache and stores of the session."""
        return SessionContent(self.metadata, self._stores)

    def _take_over(self, content: SessionContent) -> None:
        """Keep what another session kept, which ended, as far as it fits. Counts start from zero."""
        most = self.metadata.statistics().max_bytes
        self.metadata, self._stores = content.metadata, content.stores
        self.metadata.restart(most)
        for store in self._stores.values():
            store.statistics.restart()

    def __repr__(self) -> str:
        found = self.cache_stats()
        return (
            f"Session({byte_count(found.bytes)} of {byte_count(found.max_bytes)} metadata in {found.entries} entries, "
            f"{found.hits} hits, {found.misses} misses)"
        )

    def size_bytes(self) -> int:
        """Return the estimated size of the cached metadata in bytes."""
        return self.metadata.statistics().bytes

    def index_cache_size_bytes(self) -> int:
        """Return the size of the index cache in bytes: 0, since sessions do not keep indices."""
        return 0

    def cache_stats(self) -> CacheStatistics:
        """Return statistics of the metadata cache.

        Returns
        -------
        CacheStatistics
            Has ``hits``, ``misses``, ``evictions``, ``entries``, ``bytes`` and ``max_bytes``.
        """
        return self.metadata.statistics()

    def clear_cache(self) -> None:
        """Clear the metadata cache. Open datasets keep the metadata that they use."""
        self.metadata.clear()

    def is_same_as(self, other: Session) -> bool:
        """Return True if both are the same session."""
        if not isinstance(other, Session):
            raise TypeError(f"other must be a Session, not {type(other).__name__}")
        return self is other


def check_size(name: str, value: object) -> int | None:
    """Return a size given by a user, or None. Raise an error unless it is a non-negative integer."""
    if value is None:
        return None
    return checked_integer(name, value)


def check_session(session: object) -> Session | None:
    """Raise TypeError unless the value is a Session or None."""
    if session is not None and not isinstance(session, Session):
        raise TypeError(f"session must be a Session, not {type(session).__name__}")
    return session


def byte_count(number: int) -> str:
    """Format a number of bytes for people: ``"512 B"``, ``"1.5 MiB"``."""
    if number < 1024:
        return f"{number} B"
    value = float(number)
    for unit in _UNITS:
        value /= 1024
        if value < 1023.95 or unit == _UNITS[-1]:
            break
    return f"{value:.1f} {unit}"
