"""Data files of fragments that somebody else commits: the worker's half of a distributed write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_dataset.arguments import refuse
from lance_dataset.errors import InvalidInputError
from lance_dataset.file.versions import asked_version
from lance_dataset.fragment_metadata import FragmentMetadata
from lance_dataset.input import as_batches
from lance_dataset.operations import LanceOperation, Transaction
from lance_dataset.session import Session
from lance_dataset.settings import DatasetBasePath
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

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["remove_uncommitted", "write_fragments"]


def write_fragments(
    data: Any,
    dataset_uri: str | Path | LanceDataset,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: str = "append",
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    max_rows_per_group: int = DEFAULT_MAX_ROWS_PER_GROUP,
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    progress: Any = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    storage_options: Mapping[str, str] | None = None,
    enable_stable_row_ids: bool = False,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    base_store_params: Any = None,
    external_blob_mode: str = "reference",
    allow_external_blob_outside_bases: bool = False,
    namespace_client: Any = None,
    table_id: Any = None,
    session: Session | None = None,
) -> list[FragmentMetadata] | Transaction:
    """Write data files without committing them: the worker's half of a distributed write.

    Parameters
    ----------
    data
        Whatever `write_dataset` accepts.
    dataset_uri
        The dataset, which need not exist yet (unless `mode` is ``append`` and it should fix field ids).
    return_transaction
        Return a `Transaction` to commit instead of the fragments.
    mode
        ``append``, ``create`` or ``overwrite``.
    target_bases, target_all_bases
        As of `write_dataset`: the base paths that data files go to in turn.
    initial_bases
        Base paths of a dataset that is to be created.

    Returns
    -------
    list of FragmentMetadata, or Transaction
        To be passed to `LanceDataset.commit`.

    Raises
    ------
    SchemaError
        Appended data does not fit the dataset.
    """
    if mode not in ("append", "create", "overwrite"):
        raise InvalidInputError(f"Invalid mode {mode!r}; use 'append', 'create' or 'overwrite'")
    refuse(
        "write_fragments",
        progress=progress,
        base_store_params=base_store_params,
        namespace_client=namespace_client,
        table_id=table_id,
    )
    data_storage_version = asked_version(data_storage_version, use_legacy_format)
    target = WriteTarget.find(dataset_uri, storage_options, session, as_shown=True)
    target.new_bases = registered_bases(target, mode, initial_bases)
    folders = data_folders(target, target_bases, target_all_bases, storage_options)
    arrow, batches = as_batches(data, schema)
    lance_schema, version = target.plan(arrow, mode, data_storage_version)
    options = WriteOptions(
        version, max_rows_per_file, max_bytes_per_file, data_cache_bytes, max_page_bytes, max_rows_per_group
    )
    fragments, lance_schema = write_fragment_files(target.store, target.root, lance_schema, batches, options, folders)
    metadata = [FragmentMetadata.from_fragment(fragment) for fragment in fragments]
    if not return_transaction:
        return metadata
    if target.manifest is None:
        bases = [DatasetBasePath.from_table(base) for base in target.new_bases] or None
        return Transaction(0, LanceOperation.Overwrite(lance_schema.arrow, metadata, initial_bases=bases))
    if mode == "append":
        return Transaction(target.manifest.version, LanceOperation.Append(metadata))
    return Transaction(target.manifest.version, LanceOperation.Overwrite(lance_schema.arrow, metadata))


def remove_uncommitted(
    fragments: Sequence[FragmentMetadata],
    dataset_uri: str | Path | LanceDataset,
    storage_options: dict[str, str] | None = None,
) -> None:
    """Remove the data files of fragments that `write_fragments` made and nobody will commit."""
    target = WriteTarget.find(dataset_uri, storage_options, None)
    files = data_files_of(fragment.to_fragment() for fragment in fragments)
    ChangeFiles(target.store, target.root, files).remove()
