"""Function `write_dataset`, which writes data as a new version."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from lance_dataset.api.dataset.dataset import LanceDataset
from lance_dataset.changes.write.input import ReaderLike
from lance_dataset.io.guarded import CommitLock
from lance_dataset.read.session import Session
from lance_dataset.records.defaults import (
    DEFAULT_MAX_BYTES_PER_FILE,
    DEFAULT_MAX_ROWS_PER_FILE,
    DEFAULT_MAX_ROWS_PER_GROUP,
)
from lance_dataset.records.settings import AutoCleanupConfig, DatasetBasePath

if TYPE_CHECKING:
    from lance_dataset.changes.write.writing import Mode

__all__ = ["write_dataset"]


def write_dataset(
    data_obj: ReaderLike,
    uri: str | os.PathLike[str] | LanceDataset | None = None,
    schema: pa.Schema | None = None,
    mode: Mode = "create",
    *,
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    max_rows_per_group: int = DEFAULT_MAX_ROWS_PER_GROUP,
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    commit_lock: CommitLock | None = None,
    progress: object = None,
    storage_options: Mapping[str, str] | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    auto_cleanup_options: AutoCleanupConfig | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    external_blob_mode: Literal["reference", "ingest"] = "reference",
    allow_external_blob_outside_bases: bool = False,
    blob_pack_file_size_threshold: int | None = None,
    namespace_client: object = None,
    table_id: Sequence[str] | None = None,
    session: Session | None = None,
) -> LanceDataset:
    """Write data as one new version, atomically and durably, in bounded memory.

    Parameters
    ----------
    data_obj
        pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner; LanceDataset or LanceScanner; pandas or
        polars DataFrame; dict of columns; list of dicts; iterable of RecordBatch (with `schema`); any object with
        ``__arrow_c_stream__``.
    uri
        Path, URI, or an open dataset. The open handle stays on its version; `LanceDataset.insert` moves it.
    schema
        Schema of the data; required for iterables.
    mode
        ``create`` (the dataset must not exist), ``append`` or ``overwrite``. The last two create it if needed.
    max_rows_per_file, max_bytes_per_file
        Number of rows, or size in bytes, at which a new file and fragment is started.
    max_rows_per_group
        Number of rows in the batches of legacy files. Later file versions do not use it.
    data_cache_bytes, max_page_bytes
        Number of bytes to buffer before a page is written, and maximum size of a page.
    data_storage_version
        File version of a new or overwritten dataset: ``legacy`` (``0.1``), ``2.0``, ``2.1``, ``2.2`` (the default) or
        ``2.3`` (unstable).
    enable_v2_manifest_paths, enable_stable_row_ids
        For new datasets: use the newer names of manifests, and row ids that stay the same when rows move.
    commit_lock
        Function that returns a context manager to hold during the commit; see `lance_dataset.dataset`.
    auto_cleanup_options
        For new datasets: after every ``interval`` commits (20 by default), remove versions that are older than
        ``older_than_seconds`` (two weeks by default).
    commit_message, transaction_properties
        Stored in the transaction.
    initial_bases
        For new datasets: base paths, other places that may hold files of the dataset.
    target_bases
        Names or paths of the base paths to write new files to, in turn. The location of the dataset means the dataset
        itself.
    target_all_bases
        Write new files to all base paths in turn: True to include the dataset itself, False to leave it out.

    Returns
    -------
    LanceDataset
        Handle on the new version.

    Raises
    ------
    AlreadyExistsError
        `mode` is ``create`` and the dataset exists.
    SchemaError
        `mode` is ``append`` and the data does not fit the dataset.
    UnsupportedError
        The file version cannot hold a type, or an option belongs to a later release.

    Warns
    -----
    UserWarning
        The data has nulls that legacy files cannot store. They keep nulls only in strings, binaries and dictionaries
        of these.
    """
    from lance_dataset.changes.write.writing import write_version

    made = write_version(
        data_obj,
        uri,
        schema,
        mode,
        max_rows_per_file=max_rows_per_file,
        max_rows_per_group=max_rows_per_group,
        max_bytes_per_file=max_bytes_per_file,
        data_cache_bytes=data_cache_bytes,
        max_page_bytes=max_page_bytes,
        commit_lock=commit_lock,
        progress=progress,
        storage_options=storage_options,
        data_storage_version=data_storage_version,
        use_legacy_format=use_legacy_format,
        enable_v2_manifest_paths=enable_v2_manifest_paths,
        enable_stable_row_ids=enable_stable_row_ids,
        auto_cleanup_options=auto_cleanup_options,
        commit_message=commit_message,
        transaction_properties=transaction_properties,
        initial_bases=initial_bases,
        target_bases=target_bases,
        target_all_bases=target_all_bases,
        base_store_params=base_store_params,
        external_blob_mode=external_blob_mode,
        allow_external_blob_outside_bases=allow_external_blob_outside_bases,
        blob_pack_file_size_threshold=blob_pack_file_size_threshold,
        namespace_client=namespace_client,
        table_id=table_id,
        session=session,
    )
    return LanceDataset.showing(made)
