"""Function `dataset`, which opens a dataset."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence

from lance_dataset.api.dataset.dataset import LanceDataset
from lance_dataset.api.locations import open_dataset
from lance_dataset.io.guarded import CommitLock
from lance_dataset.read.session import Session

__all__ = ["dataset"]


def dataset(
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
    *,
    trusted_bases: Sequence[str | os.PathLike[str]] | None = None,
    max_result_bytes: int | None = None,
) -> LanceDataset:
    """Open a dataset.

    Parameters
    ----------
    uri
        Path or URI.
    version
        Version number, name of a tag, or a pair of branch (None for the main branch) and version (None for the newest).
        None for the newest version.
    asof
        Open the newest version committed before this time: a datetime, a date, or ISO text. Naive times are local.
    storage_options
        Options of the store. Local files take ``mmap`` and ``local_fsync``. Any store takes ``manifest_store_url`` (a
        SQLAlchemy URL such as ``sqlite:////shared/manifests.db``) and ``manifest_store_table``: that database then
        lists the manifests.
    default_scan_options
        Default keywords of every scan.
    commit_lock
        Function that is called with the number of the version to commit. It returns a context manager; while that is
        entered, no other process may commit the version. Stores need it if they cannot create an object on condition
        that it does not exist. The handle keeps the lock.
    session
        Metadata cache and data of ``memory://`` URIs, shared between datasets. The default is a new session.
    metadata_cache_size_bytes, index_cache_size_bytes
        Limits of the caches of the new session, 1 GiB and 6 GiB by default. Ignored if `session` is given.
    index_cache_size
        Number of indices to cache; replaced by `index_cache_size_bytes`.
    block_size
        Number of bytes of a read. Only a hint: each read is as large as the data needs.
    read_params
        Settings of the reference's decoder: ``cache_repetition_index`` and ``validate_on_decode``. They have no effect:
        the index is always cached, and all bytes are always checked.
    namespace_client, table_id
        Client of a catalog (such as `lance_dataset.namespace.DirectoryNamespace`) and the id of the dataset there, a
        list of the names of namespaces and table, instead of `uri`. Options of the store that the catalog lends replace
        those of `storage_options`, and are renewed before they expire. If the catalog manages versions, it decides
        which exist. Errors of the client, such as ``TableNotFoundError``, are passed on.
    base_store_params
        Options of each base path, by its URI, such as its credentials. They replace options of the form
        ``base_{id}.{key}`` in `storage_options`. Base paths without any use `storage_options`, but in another bucket or
        account not its credentials.
    trusted_bases
        Paths and URIs in which base paths of the dataset may lie; an empty list for none besides the dataset itself.
        The default is the environment variable ``LANCE_TRUSTED_BASES`` (separated by commas), or any place.
    max_result_bytes
        Most bytes of memory of one result, at least 1; None for no limit. A table or a list of values that is larger
        raises MemoryLimitError, and streams have smaller batches. Programs that serve others can pass it.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        The dataset or version does not exist.
    TypeError, OutOfRangeError
        A size is not an integer or is negative, `max_result_bytes` is 0, or `session` is not a Session.
    """
    made = open_dataset(
        uri,
        version,
        asof,
        block_size=block_size,
        commit_lock=commit_lock,
        index_cache_size=index_cache_size,
        storage_options=storage_options,
        default_scan_options=default_scan_options,
        metadata_cache_size_bytes=metadata_cache_size_bytes,
        index_cache_size_bytes=index_cache_size_bytes,
        read_params=read_params,
        session=session,
        namespace_client=namespace_client,
        table_id=table_id,
        base_store_params=base_store_params,
        trusted_bases=trusted_bases,
        max_result_bytes=max_result_bytes,
    )
    return LanceDataset.showing(made)
