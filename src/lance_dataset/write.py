"""`write_dataset`: data in, one new version out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_dataset.arguments import refuse
from lance_dataset.committing import commit_properties
from lance_dataset.dataset import LanceDataset
from lance_dataset.errors import AlreadyExistsError, InvalidInputError
from lance_dataset.file.versions import asked_version
from lance_dataset.input import as_batches
from lance_dataset.io.base import CommitLock
from lance_dataset.session import Session
from lance_dataset.settings import AutoCleanupConfig, DatasetBasePath, auto_cleanup_settings
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of
from lance_dataset.target import WriteTarget
from lance_dataset.target_bases import data_folders, registered_bases
from lance_dataset.writer import (
    DEFAULT_MAX_BYTES_PER_FILE,
    DEFAULT_MAX_ROWS_PER_FILE,
    DEFAULT_MAX_ROWS_PER_GROUP,
    WriteOptions,
    write_fragment_files,
)

__all__ = ["write_dataset"]

_MODES = ("create", "append", "overwrite")


def write_dataset(
    data_obj: Any,
    uri: str | Path | LanceDataset | None = None,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    max_rows_per_group: int = DEFAULT_MAX_ROWS_PER_GROUP,
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    commit_lock: CommitLock | None = None,
    progress: Any = None,
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
    base_store_params: Any = None,
    external_blob_mode: str = "reference",
    allow_external_blob_outside_bases: bool = False,
    blob_pack_file_size_threshold: int | None = None,
    namespace_client: Any = None,
    table_id: Any = None,
    session: Session | None = None,
) -> LanceDataset:
    """Write data as one new version, atomically and durably; memory stays bounded whatever the size of the data.

    Parameters
    ----------
    data_obj
        pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner; LanceDataset or LanceScanner; pandas or
        polars DataFrame; dict of columns; list of dicts; an iterable of RecordBatch (with `schema`); anything with
        ``__arrow_c_stream__``.
    uri
        Path, URI, or an open dataset, which stays on its version (`LanceDataset.insert` moves it).
    schema
        Schema of the data; required for iterables.
    mode
        ``create`` (the dataset must not exist), ``append`` or ``overwrite`` (both create it if needed).
    max_rows_per_file, max_bytes_per_file
        When to start a new file and fragment.
    max_rows_per_group
        Rows of the batches that legacy files consist of; later versions have none.
    data_cache_bytes, max_page_bytes
        When to cut a page.
    data_storage_version
        File version of a new or overwritten dataset: ``legacy`` (``0.1``), ``2.0``, ``2.1``, ``2.2`` (the default) or
        ``2.3`` (unstable).
    enable_v2_manifest_paths, enable_stable_row_ids
        For new datasets: manifest naming, and row ids that survive moves.
    commit_lock
        Called with the number of the version that is about to be committed, returns a context that is held meanwhile,
        see `lance_dataset.dataset`.
    auto_cleanup_options
        For new datasets: remove old versions after every ``interval`` commits (20 by default) that are older than
        ``older_than_seconds`` (two weeks by default).
    commit_message, transaction_properties
        Stored in the transaction.
    initial_bases
        For new datasets: other places that may hold files of the dataset.
    target_bases
        Names or paths of the base paths that new files go to, one after the other in turn; the location of the
        dataset means the dataset itself.
    target_all_bases
        Let new files go to all base paths in turn, with the dataset itself (True) or without it (False).

    Returns
    -------
    LanceDataset
        A handle on the new version.

    Raises
    ------
    AlreadyExistsError
        ``create``, and the dataset exists.
    SchemaError
        ``append``, and the data does not fit the dataset.
    UnsupportedError
        A type that the file version cannot hold, or an option of a later release.

    Warns
    -----
    UserWarning
        Legacy files lose nulls, but those of strings, binaries and their dictionaries.
    """
    refuse(
        "write_dataset",
        progress=progress,
        base_store_params=base_store_params,
        namespace_client=namespace_client,
        table_id=table_id,
    )
    if mode not in _MODES:
        raise InvalidInputError(f"Invalid mode {mode!r}; use 'create', 'append' or 'overwrite'")
    if uri is None:
        raise InvalidInputError("write_dataset needs a path or URI")
    data_storage_version = asked_version(data_storage_version, use_legacy_format)
    target = WriteTarget.find(uri, storage_options, session, commit_lock, as_shown=True)
    if auto_cleanup_options is not None:
        target.new_config = auto_cleanup_settings(auto_cleanup_options)
    if mode == "create" and target.manifest is not None:
        raise AlreadyExistsError(f"Dataset already exists: {target.store.uri(target.root)}")
    target.new_bases = registered_bases(target, mode, initial_bases)
    if target.new_bases:
        mode = "create"  # A dataset that others create meanwhile lacks the base paths of the new files.
    folders = data_folders(target, target_bases, target_all_bases, storage_options)
    arrow, batches = as_batches(data_obj, schema)
    properties = commit_properties(transaction_properties, commit_message)
    lance_schema, version = target.plan(arrow, mode, data_storage_version)
    options = WriteOptions(
        version, max_rows_per_file, max_bytes_per_file, data_cache_bytes, max_page_bytes, max_rows_per_group
    )
    fragments, lance_schema = write_fragment_files(target.store, target.root, lance_schema, batches, options, folders)
    files = ChangeFiles(target.store, target.root, data_files_of(fragments), folders=folders)
    with files.taken_back(0 if target.manifest is None else target.manifest.version):
        manifest = target.commit(
            mode, lance_schema, fragments, version, properties, enable_v2_manifest_paths, enable_stable_row_ids
        )
    if isinstance(uri, LanceDataset):
        return uri._at(manifest)
    return LanceDataset(
        uri,
        storage_options=storage_options,
        session=target.session,
        _manifest=manifest,
        _store=(target.store, target.root),
    )
