"""Writes of data: first the files, then a commit of one new version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

import pyarrow as pa

from lance_dataset.changes.write.bases import data_folders, registered_bases
from lance_dataset.changes.write.blob_files import BlobPolicy, ExternalMode
from lance_dataset.changes.write.blob_input import as_blobs_v2
from lance_dataset.changes.write.fragment_files import WriteOptions, write_fragment_files
from lance_dataset.changes.write.input import PANDAS_INDEX, ReaderLike, as_batches, has_no_rows
from lance_dataset.changes.write.lossless import fit_batches
from lance_dataset.changes.write.target import CommitOptions, WriteTarget
from lance_dataset.errors import AlreadyExistsError, InvalidInputError
from lance_dataset.events import emit
from lance_dataset.file.goals import StorageGoal, configured_goal
from lance_dataset.late_dataclass import dataclass
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.write_progress import FragmentWriteProgress
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of
from lance_dataset.table.dropping import log_other_names
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.manifest import BasePath
from lance_dataset.table.operations import Overwrite
from lance_dataset.table.paths import DATA_FOLDER, DataFolder, FileLocator
from lance_dataset.threads.progress import Progress
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
    target_bases, target_all_bases
        Base paths that files go to, see `data_folders`.
    external_mode, external_outside_bases, pack_threshold
        See `BlobPolicy`.
    progress
        See `WriteOptions`.
    counted
        Is told of the rows of each batch that is read.
    goal
        See `DataFileWriter`; None for that of the table.
    """

    max_rows_per_file: int
    max_bytes_per_file: int
    max_rows_per_group: int
    storage_version: str | None = None
    data_cache_bytes: int | None = None
    max_page_bytes: int | None = None
    target_bases: Sequence[str] | None = None
    target_all_bases: bool | None = None
    external_mode: ExternalMode = "reference"
    external_outside_bases: bool = False
    pack_threshold: int | None = None
    progress: FragmentWriteProgress | None = None
    counted: Progress | None = None
    goal: StorageGoal | None = None


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
    target: WriteTarget,
    data: ReaderLike,
    schema: pa.Schema | None,
    mode: Mode,
    settings: FileSettings,
    new_bases: Sequence[BasePath] = (),
) -> WrittenData:
    """Write data to new files, without a commit.

    Parameters
    ----------
    target
        Table to write to.
    data, schema
        See `as_batches`.
    mode
        ``create``, ``append`` or ``overwrite``.
    settings
        Settings of the files.
    new_bases
        Base paths of the table, if it does not exist yet.

    Raises
    ------
    SchemaError
        Appended data does not fit the table.
    """
    bases = new_bases if target.manifest is None else target.manifest.base_paths
    folders = data_folders(target.location, bases, settings.target_bases, settings.target_all_bases)
    appended = target.manifest if mode == "append" else None
    keep_index = appended is not None and PANDAS_INDEX in appended.schema.names
    arrow, batches = as_batches(data, schema, keep_index=keep_index)
    if appended is not None:
        arrow, batches = fit_batches(arrow, batches, appended.schema, empty=has_no_rows(data))
    if settings.counted is not None:
        batches = _counted(batches, settings.counted)
    version = target.version(mode, settings.storage_version)
    arrow, batches = as_blobs_v2(arrow, batches, version, None if appended is None else appended.schema)
    planned, version = target.plan(arrow, mode, settings.storage_version)
    place = target.location
    locator = FileLocator(target.store, target.root, bases, place.storage_options, place.session)
    options = WriteOptions(
        version,
        settings.max_rows_per_file,
        settings.max_bytes_per_file,
        settings.data_cache_bytes,
        settings.max_page_bytes,
        settings.max_rows_per_group,
        BlobPolicy(locator, settings.external_mode, settings.external_outside_bases, settings.pack_threshold),
        settings.progress,
        configured_goal({} if target.manifest is None else target.manifest.config, settings.goal),
    )
    try:
        fragments, written = write_fragment_files(target.store, target.root, planned, batches, options, folders)
    except BaseException:
        if target.manifest is None:  # the table does not exist, and neither should its folders
            for folder in (f"{target.root}/{DATA_FOLDER}", target.root):
                target.store.delete_empty_folder(folder)
        raise
    return WrittenData(fragments, written, version, folders)


def _counted(batches: Iterator[pa.RecordBatch], progress: Progress) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        progress.advance(batch.num_rows)
    progress.finish()  # before the commit, which a report that raises must prevent


def write_version(
    target: WriteTarget,
    data: ReaderLike,
    schema: pa.Schema | None,
    mode: Mode,
    settings: FileSettings,
    options: CommitOptions,
) -> Snapshot:
    """Write data as one new version. If that fails, remove all files.

    Parameters
    ----------
    target, data, schema, mode, settings
        See `write_files`.
    options
        Options of the commit.

    Returns
    -------
    Snapshot
        The new version.

    Raises
    ------
    AlreadyExistsError
        `mode` is ``create`` and the table exists.
    SchemaError, CommitConflictError
        Appended data does not fit the table, or another writer changed it.
    """
    if mode == "create" and target.manifest is not None:
        raise AlreadyExistsError(
            f"Dataset already exists: {target.store.uri(target.root)}; append to it with mode='append', or replace its "
            "rows with mode='overwrite'"
        )
    if target.manifest is None:
        log_other_names(target.store, target.root)
    emit("dataset_events", event="writing", uri=target.store.uri(target.root), mode=mode.capitalize())
    bases = registered_bases(target, mode, options.initial_bases)
    written = write_files(target, data, schema, mode, settings, bases)
    overwrite = Overwrite(written.schema, tuple(written.fragments), options.config, bases, written.version)
    # A table that another writer creates in the meantime lacks the base paths of the new files.
    commit_mode = "create" if bases else mode
    files = ChangeFiles(target.store, target.root, data_files_of(written.fragments), folders=written.folders)
    with files.taken_back(0 if target.manifest is None else target.manifest.version):
        manifest = target.commit(commit_mode, overwrite, options)
    return target.opened(manifest)
