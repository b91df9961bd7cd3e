"""Data files that another process commits: the worker's half of a distributed write."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, overload

import pyarrow as pa

from lance_dataset.api.locations import find_target
from lance_dataset.changes.write.input import ReaderLike
from lance_dataset.file.goals import StorageGoal, checked_goal
from lance_dataset.file.versions import asked_version
from lance_dataset.io.catalogs import options_of_table
from lance_dataset.read.session import Session
from lance_dataset.read.shown import Shown
from lance_dataset.records.defaults import (
    DEFAULT_MAX_BYTES_PER_FILE,
    DEFAULT_MAX_ROWS_PER_FILE,
    DEFAULT_MAX_ROWS_PER_GROUP,
)
from lance_dataset.records.fragment import FragmentMetadata
from lance_dataset.records.operations import LanceOperation, Transaction
from lance_dataset.records.settings import DatasetBasePath
from lance_dataset.records.write_progress import FragmentWriteProgress, checked_progress
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of

if TYPE_CHECKING:
    from lance_dataset.changes.write.writing import Mode

__all__ = ["remove_uncommitted", "write_fragments"]


@overload
def write_fragments(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str] | Shown,
    schema: pa.Schema | None = None,
    *,
    return_transaction: Literal[False] = False,
    mode: Mode = "append",
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    max_rows_per_group: int = DEFAULT_MAX_ROWS_PER_GROUP,
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    progress: FragmentWriteProgress | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    storage_options: Mapping[str, str] | None = None,
    enable_stable_row_ids: bool = False,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    external_blob_mode: Literal["reference", "ingest"] = "reference",
    allow_external_blob_outside_bases: bool = False,
    namespace_client: object = None,
    table_id: Sequence[str] | None = None,
    session: Session | None = None,
    optimize: StorageGoal | None = None,
) -> list[FragmentMetadata]: ...


@overload
def write_fragments(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str] | Shown,
    schema: pa.Schema | None = None,
    *,
    return_transaction: Literal[True],
    mode: Mode = "append",
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    max_rows_per_group: int = DEFAULT_MAX_ROWS_PER_GROUP,
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    progress: FragmentWriteProgress | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    storage_options: Mapping[str, str] | None = None,
    enable_stable_row_ids: bool = False,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    external_blob_mode: Literal["reference", "ingest"] = "reference",
    allow_external_blob_outside_bases: bool = False,
    namespace_client: object = None,
    table_id: Sequence[str] | None = None,
    session: Session | None = None,
    optimize: StorageGoal | None = None,
) -> Transaction: ...


def write_fragments(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str] | Shown,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: Mode = "append",
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    max_rows_per_group: int = DEFAULT_MAX_ROWS_PER_GROUP,
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    progress: FragmentWriteProgress | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    storage_options: Mapping[str, str] | None = None,
    enable_stable_row_ids: bool = False,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    external_blob_mode: Literal["reference", "ingest"] = "reference",
    allow_external_blob_outside_bases: bool = False,
    namespace_client: object = None,
    table_id: Sequence[str] | None = None,
    session: Session | None = None,
    optimize: StorageGoal | None = None,
) -> list[FragmentMetadata] | Transaction:
    """Write data files without committing them: the worker's half of a distributed write.

    Parameters
    ----------
    data
        Anything that `write_dataset` accepts.
    dataset_uri
        The dataset. It need not exist yet. If it does and `mode` is ``append``, the data gets its field ids.
    return_transaction
        True to return a `Transaction` to commit instead of the fragments.
    mode
        ``append``, ``create`` or ``overwrite``.
    progress
        Hooks that are told of each fragment.
    target_bases, target_all_bases
        Base paths to write data files to in turn, as for `write_dataset`.
    initial_bases
        Base paths of a new dataset.
    external_blob_mode
        What happens to references of blob columns to other objects: ``reference`` keeps them, ``ingest`` stores the
        bytes.
    allow_external_blob_outside_bases
        True to accept references to any place, not only to base paths.
    base_store_params
        Options of each base path, by its URI; see `lance_dataset.dataset`.
    namespace_client, table_id
        Client of the catalog that has the dataset, and its id there; the catalog may lend storage options.
    optimize
        What pages are encoded for, see `write_dataset`.

    Returns
    -------
    list of FragmentMetadata, or Transaction
        Input for `LanceDataset.commit`.

    Raises
    ------
    SchemaError
        Appended data does not fit the dataset.
    """
    from lance_dataset.changes.write.bases import registered_bases
    from lance_dataset.changes.write.blob_files import check_external_mode
    from lance_dataset.changes.write.writing import FileSettings, check_mode, write_files

    check_mode(mode)
    check_external_mode(external_blob_mode)
    storage_options = options_of_table(namespace_client, table_id, storage_options)
    settings = FileSettings(
        max_rows_per_file,
        max_bytes_per_file,
        max_rows_per_group,
        asked_version(data_storage_version, use_legacy_format),
        data_cache_bytes,
        max_page_bytes,
        target_bases,
        target_all_bases,
        external_blob_mode,
        allow_external_blob_outside_bases,
        progress=checked_progress(progress),
        goal=checked_goal(optimize),
    )
    target = find_target(dataset_uri, storage_options, session, as_shown=True, base_store_params=base_store_params)
    new_bases = registered_bases(target, mode, initial_bases)
    written = write_files(target, data, schema, mode, settings, new_bases)
    metadata = [FragmentMetadata.from_fragment(fragment) for fragment in written.fragments]
    if not return_transaction:
        return metadata
    if target.manifest is None:
        bases = [DatasetBasePath.from_table(base) for base in new_bases] or None
        return Transaction(0, LanceOperation.Overwrite(written.schema.arrow, metadata, initial_bases=bases))
    if mode == "append":
        return Transaction(target.manifest.version, LanceOperation.Append(metadata))
    return Transaction(target.manifest.version, LanceOperation.Overwrite(written.schema.arrow, metadata))


def remove_uncommitted(
    fragments: Sequence[FragmentMetadata],
    dataset_uri: str | os.PathLike[str] | Shown,
    storage_options: dict[str, str] | None = None,
) -> None:
    """Delete the data files of fragments that `write_fragments` made and that will not be committed."""
    target = find_target(dataset_uri, storage_options)
    files = data_files_of(fragment.to_fragment() for fragment in fragments)
    ChangeFiles(target.store, target.root, files).remove()
