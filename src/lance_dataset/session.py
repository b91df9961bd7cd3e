"""Sessions: what several datasets share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_dataset.arguments import checked_integer, refuse
from lance_dataset.display import byte_count
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.resolve import resolve
from lance_dataset.query.metadata_cache import CacheStatistics, MetadataCache

__all__ = ["Session", "check_session", "check_size"]

_DEFAULT_METADATA_BYTES = 1 << 30


class Session:
    """What datasets share that are opened with it: metadata in a cache, and the data of ``memory://`` URIs.

    Opening a dataset again is faster with the session it was opened with before: manifests that did not change, open
    data files, what these say of their columns, and dictionaries that were decoded are still there. What was used last
    stays, up to `metadata_cache_size_bytes`: an estimate of what manifests and the metadata of files take; decoded
    pages do not count, and go with their file. A session may be used by several threads.

    Parameters
    ----------
    index_cache_size_bytes
        Limit of the cache of indices, of which this release reads none; 6 GiB by default.
    metadata_cache_size_bytes
        Limit of the cache of metadata; 1 GiB by default, 0 for no cache.
    index_cache_backend, metadata_cache_backend, store_registry
        Not supported.

    Raises
    ------
    TypeError, OutOfRangeError
        A limit that is no integer, or negative.
    UnsupportedError
        A backend or a registry.
    """

    def __init__(
        self,
        index_cache_size_bytes: int | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_backend: str | Mapping[str, Any] | None = None,
        metadata_cache_backend: str | Mapping[str, Any] | None = None,
        store_registry: Any = None,
    ) -> None:
        refuse(
            "Session",
            index_cache_backend=index_cache_backend,
            metadata_cache_backend=metadata_cache_backend,
            store_registry=store_registry,
        )
        check_size("index_cache_size_bytes", index_cache_size_bytes)
        limit = check_size("metadata_cache_size_bytes", metadata_cache_size_bytes)
        #: Metadata of the datasets of the session.
        self.metadata = MetadataCache(_DEFAULT_METADATA_BYTES if limit is None else limit)
        self._stores: dict[tuple[Any, ...], ObjectStore] = {}

    def resolve(self, uri: str, storage_options: Mapping[str, str]) -> tuple[ObjectStore, str]:
        """The store a location lies in, one for all datasets that reach it with the same options, and the path in it.

        Raises as `lance_dataset.io.resolve.resolve`.
        """
        store, root = resolve(uri, storage_options, self)
        options = frozenset(storage_options.items())
        key = type(store), store.uri(""), repr(store.external_manifests), options
        _ = store.statistics  # made here, so that copies of the store count together
        return self._stores.setdefault(key, store), root

    def __repr__(self) -> str:
        found = self.cache_stats()
        return (
            f"Session({byte_count(found.bytes)} of {byte_count(found.max_bytes)} metadata in {found.entries} entries, "
            f"{found.hits} hits, {found.misses} misses)"
        )

    def size_bytes(self) -> int:
        """Estimated size of what the session keeps, in bytes."""
        return self.metadata.statistics().bytes

    def index_cache_size_bytes(self) -> int:
        """Size of the cache of indices, in bytes: 0, as this release reads none."""
        return 0

    def cache_stats(self) -> CacheStatistics:
        """How often metadata was found in the cache, and how much is in it.

        Returns
        -------
        CacheStatistics
            With ``hits``, ``misses``, ``evictions``, ``entries``, ``bytes`` and ``max_bytes``.
        """
        return self.metadata.statistics()

    def clear_cache(self) -> None:
        """Let go of the cached metadata; open datasets go on with what they use."""
        self.metadata.clear()

    def is_same_as(self, other: Session) -> bool:
        """Whether both are the same session."""
        if not isinstance(other, Session):
            raise TypeError(f"other must be a Session, not {type(other).__name__}")
        return self is other


def check_size(name: str, value: object) -> int | None:
    """A size given by a user, None where there is none; refuses what is no integer, or negative."""
    if value is None:
        return None
    return checked_integer(name, value)


def check_session(session: object) -> Session | None:
    """Refuse what is no session."""
    if session is not None and not isinstance(session, Session):
        raise TypeError(f"session must be a Session, not {type(session).__name__}")
    return session
