"""Versions to open and targets of writes, given by the arguments of users."""

from __future__ import annotations

import datetime as dt
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lance_dataset.arguments import moment_of, version_number
from lance_dataset.errors import InvalidInputError
from lance_dataset.io.catalogs import CatalogTable, describe_table, is_in_catalog
from lance_dataset.io.guarded import CommitLock
from lance_dataset.read.location import TableLocation
from lance_dataset.read.opening import open_as_of, open_snapshot
from lance_dataset.read.recent_sessions import session_for
from lance_dataset.read.session import Session, check_session, check_size
from lance_dataset.read.shown import Shown
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.base_access import with_base_params

if TYPE_CHECKING:
    from lance_dataset.changes.write.target import WriteTarget

__all__ = ["find_target", "open_dataset"]


def open_dataset(
    uri: str | os.PathLike[str] | None = None,
    version: int | str | tuple[str | None, int | None] | None = None,
    asof: dt.datetime | dt.date | str | None = None,
    block_size: int | None = None,
    commit_lock: CommitLock | None = None,
    index_cache_size: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    default_scan_options: Mapping[str, object] | None = None,
    metadata_cache_size_bytes: int | None = None,
    index_cache_size_bytes: int | None = None,
    read_params: Mapping[str, object] | None = None,
    session: Session | None = None,
    namespace_client: object = None,
    table_id: Sequence[str] | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    trusted_bases: Sequence[str | os.PathLike[str]] | None = None,
    max_result_bytes: int | None = None,
) -> Snapshot:
    """Open a version. Parameters and errors are those of `lance_dataset.dataset`."""
    storage_options = with_base_params(storage_options, base_store_params)
    in_catalog = is_in_catalog(uri, namespace_client, table_id)
    if uri is None and not in_catalog:
        raise InvalidInputError("dataset needs a path or URI, or both namespace_client and table_id")
    if version is not None and asof is not None:
        raise InvalidInputError("give either version or asof, not both")
    if check_size("block_size", block_size) == 0:
        raise InvalidInputError("block_size must be at least 1")
    if check_size("index_cache_size", index_cache_size) is not None:
        warnings.warn("index_cache_size is deprecated, use index_cache_size_bytes", DeprecationWarning, stacklevel=3)
    if read_params is not None and not isinstance(read_params, Mapping):
        raise TypeError(f"read_params must be a dictionary, not {type(read_params).__name__}")
    table = describe_table(namespace_client, table_id or (), storage_options) if in_catalog else None
    place = table.location if table is not None else uri or ""
    owner = check_session(session)
    if owner is None:
        sizes = index_cache_size_bytes, metadata_cache_size_bytes
        special = *sizes, commit_lock, trusted_bases, max_result_bytes
        is_plain = all(each is None for each in special)
        owner = session_for(place, storage_options) if is_plain else Session(*sizes)
    location = TableLocation.resolve(
        place,
        storage_options if table is None else table.storage_options,
        owner,
        scan_options=default_scan_options,
        commit_lock=commit_lock,
        trusted_bases=trusted_bases,
        max_result_bytes=max_result_bytes,
    )
    if table is not None:
        location = location.managed_by(table)
    if asof is not None:
        return open_as_of(location, moment_of(asof))
    plain = version is None or isinstance(version, str | tuple)
    return open_snapshot(location, version if plain else version_number(version))


def find_target(
    uri: str | os.PathLike[str] | Shown,
    storage_options: Mapping[str, str] | None,
    session: Session | None = None,
    commit_lock: CommitLock | None = None,
    *,
    as_shown: bool = False,
    table: CatalogTable | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
) -> WriteTarget:
    """Find the table at a location.

    Parameters
    ----------
    uri
        Path, URI, or handle.
    storage_options, session
        Options of the store, and the session, for a path or URI.
    commit_lock
        Lock that commits hold.
    as_shown
        True to write on top of the snapshot of the handle instead of the newest version.
    table
        The table in its catalog, None for a table without one.
    base_store_params
        Options of the base paths.

    Raises
    ------
    TypeError
        `uri` is neither a location nor a handle.
    """
    from lance_dataset.changes.write.target import WriteTarget

    if isinstance(uri, Shown):
        options = with_base_params(storage_options or uri.snapshot.location.storage_options, base_store_params)
        return WriteTarget.of(uri.snapshot, options, commit_lock, as_shown=as_shown)
    if not isinstance(uri, str | os.PathLike):
        raise TypeError(f"a dataset must be a path, a URI or a LanceDataset, not {type(uri).__name__}")
    options = with_base_params(storage_options if table is None else table.storage_options, base_store_params)
    location = TableLocation.resolve(uri, options, session, commit_lock=commit_lock)
    return WriteTarget.at(location if table is None else location.managed_by(table))
