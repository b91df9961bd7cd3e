"""Writes of data: first the files, then a commit of one new version."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pyarrow as pa

from lance_dataset.arguments import refuse
from lance_dataset.changes.write.bases import data_folders, registered_bases
from lance_dataset.changes.write.fragment_files import WriteOptions, write_fragment_files
from lance_dataset.changes.write.input import ReaderLike, as_batches
from lance_dataset.changes.write.target import WriteTarget
from lance_dataset.errors import AlreadyExistsError, InvalidInputError
from lance_dataset.file.versions import asked_version
from lance_dataset.io.guarded import CommitLock
from lance_dataset.read.session import Session
from lance_dataset.read.shown import Shown
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.defaults import (
    DEFAULT_MAX_BYTES_PER_FILE,
    DEFAULT_MAX_ROWS_PER_FILE,
    DEFAULT_MAX_ROWS_PER_GROUP,
)
from lance_dataset.records.operations import commit_properties
from lance_dataset.records.settings import AutoCleanupConfig, DatasetBasePath, auto_cleanup_settings
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.paths import DataFolder
from lance_dataset.types.schema import Schema

__all__ = ["FileSettings", "Mode", "WrittenData", "check_mode", "write_files", "write_version"]

#: Modes of writing a dataset.
Mode: TypeAlias = Literal["create", "append", "overwrite"]
_MODES = ("create", "append", "overwrite")


@dataclass(frozen=True)
class FileSettings:
    """Settings of the data files of a write; None for the default.

    Attributes
    ----------
    storage_version
        File version.
    max_rows_per_file, max_bytes_per_file, data_cache_bytes, max_page_bytes, max_rows_per_group
        See `WriteOptions`.
    initial_bases
        Base paths of a table that the write creates.
    target_bases, target_all_bases
        Base paths that files go to, see `data_folders`.
    """

    max_rows_per_file: int
    max_bytes_per_file: int
    max_rows_per_group: int
    storage_version: str | None = None
    data_cache_bytes: int | None = None
    max_page_bytes: int | None = None
    initial_bases: Sequence[DatasetBasePath] | None = None
    target_bases: Sequence[str] | None = None
    target_all_bases: bool | None = None


@dataclass(frozen=True)
class WrittenData:
    """Data files that no version refers to yet.

    Attributes
    ----------
    fragments
        New fragments, whose ids are assigned at commit.
    schema
        Schema to commit with them.
    version
        File version.
    folders
        Folders of the files; empty for the table itself.
    """

    fragments: Sequence[Fragment]
    schema: Schema
    version: str
    folders: Sequence[DataFolder] = field(default=())


def check_mode(mode: str) -> None:
    """Raise InvalidInputError unless `mode` is a write mode."""
    if mode not in _MODES:
        raise InvalidInputError(f"Invalid mode {mode!r}; use 'create', 'append' or 'overwrite'")


def write_files(
    target: WriteTarget, data: ReaderLike, schema: pa.Schema | None, mode: Mode, settings: FileSettings
) -> WrittenData:
    """Write data to new files, without a commit.

    Parameters
    ----------
    target
        Table to write to. If it does not exist yet, its `new_bases` are set.
    data, schema
        See `as_batches`.
    mode
        ``create``, ``append`` or ``overwrite``.
    settings
        Settings of the files.

    Raises
    ------
    SchemaError
        Appended data does not fit the table.
    """
    target.new_bases = registered_bases(target, mode, settings.initial_bases)
    folders = data_folders(target, settings.target_bases, settings.target_all_bases)
    arrow, batches = as_batches(data, schema)
    planned, version = target.plan(arrow, mode, settings.storage_version)
    options = WriteOptions(
        version,
        settings.max_rows_per_file,
        settings.max_bytes_per_file,
        settings.data_cache_bytes,
        settings.max_page_bytes,
        settings.max_rows_per_group,
    )
    fragments, written = write_fragment_files(target.store, target.root, planned, batches, options, folders)
    return WrittenData(fragments, written, version, folders)


def write_version(
    data_obj: ReaderLike,
    uri: str | os.PathLike[str] | Shown | None,
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
) -> Snapshot:
    """Write data as one new version. If that fails, remove all files.

    Parameters and errors are those of `lance_dataset.write_dataset`.

    Returns
    -------
    Snapshot
        The new version.
    """
    refuse(
        "write_dataset",
        progress=progress,
        base_store_params=base_store_params,
        namespace_client=namespace_client,
        table_id=table_id,
    )
    check_mode(mode)
    if uri is None:
        raise InvalidInputError("write_dataset needs a path or URI")
    settings = FileSettings(
        max_rows_per_file,
        max_bytes_per_file,
        max_rows_per_group,
        asked_version(data_storage_version, use_legacy_format),
        data_cache_bytes,
        max_page_bytes,
        initial_bases,
        target_bases,
        target_all_bases,
    )
    target = WriteTarget.find(uri, storage_options, session, commit_lock, as_shown=True)
    if auto_cleanup_options is not None:
        target.new_config = auto_cleanup_settings(auto_cleanup_options)
    if mode == "create" and target.manifest is not None:
        raise AlreadyExistsError(f"Dataset already exists: {target.store.uri(target.root)}")
    properties = commit_properties(transaction_properties, commit_message)
    written = write_files(target, data_obj, schema, mode, settings)
    # A table that another writer creates in the meantime lacks the base paths of the new files.
    commit_mode = "create" if target.new_bases else mode
    files = ChangeFiles(target.store, target.root, data_files_of(written.fragments), folders=written.folders)
    with files.taken_back(0 if target.manifest is None else target.manifest.version):
        manifest = target.commit(
            commit_mode,
            written.schema,
            written.fragments,
            written.version,
            properties,
            enable_v2_manifest_paths,
            enable_stable_row_ids,
        )
    return target.opened(manifest)
