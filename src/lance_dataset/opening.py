"""Opening a dataset: `dataset`."""

from __future__ import annotations

import datetime as dt
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lance_dataset.arguments import moment_of, refuse, version_number
from lance_dataset.dataset import LanceDataset
from lance_dataset.errors import InvalidInputError
from lance_dataset.io.base import CommitLock
from lance_dataset.session import Session, check_session, check_size
from lance_dataset.table.versions import version_as_of

__all__ = ["dataset"]


def dataset(
    uri: str | Path | None = None,
    version: int | str | tuple[str | None, int | None] | None = None,
    asof: dt.datetime | dt.date | str | None = None,
    block_size: int | None = None,
    commit_lock: CommitLock | None = None,
    index_cache_size: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    default_scan_options: Mapping[str, Any] | None = None,
    metadata_cache_size_bytes: int | None = None,
    index_cache_size_bytes: int | None = None,
    read_params: Mapping[str, Any] | None = None,
    session: Session | None = None,
    namespace_client: Any = None,
    table_id: Any = None,
    base_store_params: Any = None,
) -> LanceDataset:
    """Open a dataset.

    Parameters
    ----------
    uri
        Path or URI.
    version
        Version number, name of a tag, or a pair of branch (None: the main one) and version (None: the newest); None for
        the newest version.
    asof
        Open the newest version committed before this time (a datetime, a date, or ISO text; local time if naive).
    storage_options
        Options of the store: ``mmap`` and ``local_fsync`` for local files; for any store ``manifest_store_url`` (a URL
        of SQLAlchemy such as ``sqlite:////shared/manifests.db``) and ``manifest_store_table``: then that database lists
        the manifests.
    default_scan_options
        Keywords that every scan starts from.
    commit_lock
        Called with the number of a version that is about to be committed, returns a context in which no other process
        commits it: what a store needs that cannot create an object only if it is absent. The handle keeps it.
    session
        What is shared with other datasets: a cache of metadata, and the data of ``memory://`` URIs. A new one by
        default.
    metadata_cache_size_bytes, index_cache_size_bytes
        Limits of the caches of the new session, 1 GiB and 6 GiB by default; not used where `session` is given.
    index_cache_size
        Number of indices to keep; replaced by `index_cache_size_bytes`.
    block_size
        Bytes of a read. A hint: reads are as large as what they are for.
    read_params
        Settings of the reference's decoder, ``cache_repetition_index`` and ``validate_on_decode``: here the index is
        always kept, and all bytes are always checked.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        There is no such dataset or version.
    TypeError, OutOfRangeError
        A size that is no integer, or negative; something that is no session.
    """
    refuse(
        "dataset",
        namespace_client=namespace_client,
        table_id=table_id,
        base_store_params=base_store_params,
    )
    if uri is None:
        raise InvalidInputError("dataset needs a path or URI")
    if version is not None and asof is not None:
        raise InvalidInputError("give either version or asof, not both")
    if check_size("block_size", block_size) == 0:
        raise InvalidInputError("block_size must be at least 1")
    if check_size("index_cache_size", index_cache_size) is not None:
        warnings.warn("index_cache_size is deprecated, use index_cache_size_bytes", DeprecationWarning, stacklevel=2)
    if read_params is not None and not isinstance(read_params, Mapping):
        raise TypeError(f"read_params must be a dictionary, not {type(read_params).__name__}")
    session = check_session(session) or Session(index_cache_size_bytes, metadata_cache_size_bytes)
    options: dict[str, Any] = {
        "storage_options": storage_options,
        "default_scan_options": default_scan_options,
        "session": session,
        "commit_lock": commit_lock,
    }
    if asof is None:
        plain = version is None or isinstance(version, str | tuple)
        return LanceDataset(uri, version if plain else version_number(version), **options)
    store, root = session.resolve(os.fspath(uri), storage_options or {})
    return LanceDataset(uri, **options, _manifest=version_as_of(store, root, moment_of(asof)), _store=(store, root))
