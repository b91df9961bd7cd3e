"""Handle on a dataset, `LanceDataset`, and the function that writes one, `write_dataset`."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.api.dataset.blobs import BlobAccess
from lance_dataset.api.dataset.commits import Committed
from lance_dataset.api.dataset.handle import Handle, name_methods
from lance_dataset.api.dataset.history import History
from lance_dataset.api.dataset.index_segments import IndexSegments
from lance_dataset.api.dataset.indices import Indexed
from lance_dataset.api.dataset.logged import Logged
from lance_dataset.api.dataset.maintenance import Maintained
from lance_dataset.api.dataset.reading import Reading
from lance_dataset.api.dataset.references import Referenced
from lance_dataset.api.dataset.row_changes import RowChanges
from lance_dataset.api.dataset.schema_evolution import SchemaEvolution
from lance_dataset.api.dataset.searching import Searching
from lance_dataset.api.dataset.settings import Configured
from lance_dataset.api.dataset.version import TableVersion
from lance_dataset.api.fragment.fragment import LanceFragment
from lance_dataset.api.locations import find_target
from lance_dataset.api.optimize import DatasetOptimizer
from lance_dataset.api.scanner.builder import dataset_schema
from lance_dataset.api.scanner.progress import ProgressOption, reported_progress
from lance_dataset.api.sql import SqlQueryBuilder
from lance_dataset.arguments import checked_integer
from lance_dataset.changes.write.input import ReaderLike
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.explain.report import EncodingReport
from lance_dataset.file.goals import StorageGoal, checked_goal
from lance_dataset.file.versions import asked_version
from lance_dataset.io.catalogs import declare_table, describe_table, is_in_catalog
from lance_dataset.io.guarded import CommitLock
from lance_dataset.io.resolve import resolve
from lance_dataset.memory import limited_memory
from lance_dataset.read.location import TableLocation
from lance_dataset.read.opening import open_snapshot
from lance_dataset.read.session import Session, check_session
from lance_dataset.records.defaults import (
    DEFAULT_COMMIT_TIMEOUT,
    DEFAULT_MAX_BYTES_PER_FILE,
    DEFAULT_MAX_ROWS_PER_FILE,
    DEFAULT_MAX_ROWS_PER_GROUP,
)
from lance_dataset.records.operations import Transaction, commit_properties
from lance_dataset.records.settings import AutoCleanupConfig, DatasetBasePath, auto_cleanup_settings
from lance_dataset.records.write_progress import FragmentWriteProgress, checked_progress
from lance_dataset.table.dropping import drop_table
from lance_dataset.table.no_table import no_table
from lance_dataset.table.versions import find_latest

if TYPE_CHECKING:
    import pydantic

    from lance_dataset.changes.write.writing import Mode

__all__ = ["BulkCommitResult", "LanceDataset", "write_dataset"]


class BulkCommitResult(TypedDict):
    """Result of `LanceDataset.commit_batch`.

    Attributes
    ----------
    dataset
        Handle on the new version.
    merged
        Transaction that was committed.
    """

    dataset: LanceDataset
    merged: Transaction


class LanceDataset(
    Handle,
    Committed,
    TableVersion,
    History,
    Referenced,
    Configured,
    Maintained,
    Indexed,
    IndexSegments,
    Logged,
    RowChanges,
    SchemaEvolution,
    BlobAccess,
    Reading,
    Searching,
):
    """Handle on a dataset, which shows one version of it. Open it with `lance_dataset.dataset`.

    Parameters
    ----------
    uri
        Path or URI.
    version
        Version number, tag, or pair of branch and version; None for the newest version.
    storage_options
        Options of the store.
    default_scan_options
        Default keywords of every scan.
    session
        Metadata cache and ``memory://`` data, shared between datasets.
    commit_lock
        Function that is called with the number of the version to commit. It returns a context manager; while that is
        entered, no other process may commit the version. Needed only for stores that cannot create an object on
        condition that it does not exist.
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
    UnsupportedError, CorruptFileError
        The version cannot be read.
    """

    def __init__(
        self,
        uri: str | os.PathLike[str],
        version: int | str | tuple[str | None, int | None] | None = None,
        *,
        storage_options: Mapping[str, str] | None = None,
        default_scan_options: Mapping[str, object] | None = None,
        session: Session | None = None,
        commit_lock: CommitLock | None = None,
        trusted_bases: Sequence[str | os.PathLike[str]] | None = None,
        max_result_bytes: int | None = None,
    ) -> None:
        location = TableLocation.resolve(
            os.fspath(uri),
            storage_options,
            check_session(session),
            scan_options=default_scan_options,
            commit_lock=commit_lock,
            trusted_bases=trusted_bases,
            max_result_bytes=max_result_bytes,
        )
        self._snapshot = open_snapshot(location, version)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).showing, (self.snapshot,)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count_rows()

    # -- identity ------------------------------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """Location of the dataset as given when it was opened, or of the branch if a branch is open."""
        return self.snapshot.uri

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the version. With default scan options, it is the schema that a scan returns."""
        return dataset_schema(self.snapshot)

    # -- versions ------------------------------------------------------------------------------------------------

    def checkout_latest(self) -> None:
        """Move this handle to the newest version, in place."""
        self.show(self.snapshot.newest())

    def restore(self) -> None:
        """Commit the version that this handle shows as the newest one."""
        from lance_dataset.changes.commit import restore_version

        self.show(restore_version(self.snapshot))

    def migrate_manifest_paths_v2(self) -> None:
        """Rename all manifests to the names used for new datasets, with which listings start with the newest version.

        Nothing else changes. A dataset that already has such names stays unchanged. Readers may continue during the
        migration, but nobody should write. An interrupted run leaves a readable dataset, and another run finishes it.
        Releases of pylance before 0.18 cannot read the dataset afterwards.

        Raises
        ------
        CorruptFileError
            A version exists under both names with different content.
        UnsupportedError
            The dataset uses a feature that this release cannot maintain.
        """
        from lance_dataset.table.old_tables.migration import migrate_names

        migrate_names(self.snapshot.store, self.snapshot.root)

    # -- writes ---------------------------------------------------------------------------------------------------

    def insert(self, data: ReaderLike, *, mode: Mode = "append", **kwargs: Any) -> None:
        """Write data into this dataset (append by default) and move this handle to the new version.

        Parameters
        ----------
        data, mode, **kwargs
            As for `lance_dataset.write_dataset`.
        """
        self.show(write_dataset(data, self, mode=mode, **kwargs).snapshot)

    # -- commits of files that are already written ---------------------------------------------------------------

    @staticmethod
    def commit_batch(
        dest: str | os.PathLike[str] | LanceDataset,
        transactions: Sequence[Transaction],
        commit_lock: CommitLock | None = None,
        storage_options: Mapping[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        base_store_params: Mapping[str, Mapping[str, str]] | None = None,
        commit_timeout: dt.timedelta | None = DEFAULT_COMMIT_TIMEOUT,
        session: Session | None = None,
    ) -> BulkCommitResult:
        """Commit several appends as one version.

        Parameters
        ----------
        dest
            The dataset.
        transactions
            Transactions of `LanceOperation.Append`. The read version of the merged transaction is the oldest one of
            these transactions. Properties of later transactions replace those of earlier ones.
        commit_lock, storage_options, detached, max_retries, base_store_params, commit_timeout
            As for `commit`.
        enable_v2_manifest_paths
            Has no effect, since the dataset exists.

        Returns
        -------
        BulkCommitResult
            Dictionary with ``dataset``, a handle on the new version, and ``merged``, the transaction that made it.

        Raises
        ------
        InvalidInputError
            `transactions` is empty, or contains a transaction twice.
        UnsupportedError
            A transaction is not an Append.
        CommitConflictError
            As for `commit`, or the same transactions were committed as a batch before.
        DatasetNotFoundError
            As for `commit`.
        """
        from lance_dataset.changes.write.committing import CommitSettings, commit_operation, merged_appends

        paths_v2 = enable_v2_manifest_paths is not False
        settings = CommitSettings(max_retries, commit_timeout, bool(detached), enable_v2_manifest_paths=paths_v2)
        merged = merged_appends(transactions)
        target = find_target(dest, storage_options, session, commit_lock, base_store_params=base_store_params)
        return {"dataset": LanceDataset.showing(commit_operation(target, merged, settings)), "merged": merged}

    # -- reading -------------------------------------------------------------------------------------------------

    def sql(self, sql: str) -> SqlQueryBuilder:
        """Start an SQL query over this version. The name of the table is ``dataset``, and DataFusion runs the query.

        Names are case-insensitive unless quoted with ``"``. Only the required columns are read, and the scan evaluates
        conditions on columns. Needs ``lance-dataset[sql]``.

        Parameters
        ----------
        sql
            One SQL statement.

        Returns
        -------
        SqlQueryBuilder
            Builder of the query. Call ``build()``, then ``to_batch_records()`` or ``to_stream_reader()`` to run it.
            These raise any errors.
        """
        return SqlQueryBuilder(self.snapshot, sql)

    def get_fragments(self, filter: pc.Expression | None = None) -> list[LanceFragment]:
        """Return handles on all fragments, in scan order."""
        if filter is not None:
            raise UnsupportedError(
                "get_fragments (pass the filter to scanner(); for DataFusion use LanceDataset.sql): a filter is not "
                "supported"
            )
        snapshot = self.snapshot
        return [LanceFragment.of(snapshot, each) for each in snapshot.manifest.fragment_list.ids.tolist()]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return a handle on the fragment with the given id, or None if it does not exist."""
        fragment_id = checked_integer("fragment_id", fragment_id)
        snapshot = self.snapshot
        known = snapshot.manifest.fragment_list.position(fragment_id) is not None
        return LanceFragment.of(snapshot, fragment_id) if known else None

    def explain_encodings(self, columns: Sequence[str] | None = None, *, deep: bool = False) -> EncodingReport:
        """Explain the encoding of the data files page by page: layout, encoding, sizes and reasons.

        Parameters
        ----------
        columns
            Names; dotted names select fields of structs. None for all.
        deep
            True to decode the values too, a page at a time, and report nulls, the uncompressed size of compressed text,
            and estimated sizes with other encodings. Otherwise only page descriptions and chunk headers are read.

        Returns
        -------
        EncodingReport
            Sequence of `lance_dataset.file.PageEncoding`, summed up by column in ``columns``. It prints as a table.
            Deleted rows are included, since they are stored.

        Raises
        ------
        FieldNotFoundError
            A column does not exist.
        CorruptFileError
            A page contradicts its description.
        """
        found = [fragment.explain_encodings(columns, deep=deep) for fragment in self.get_fragments()]
        return EncodingReport([page for report in found for page in report])

    @property
    def optimize(self) -> DatasetOptimizer:
        """Maintenance of the dataset: compaction and automatic cleanup."""
        return DatasetOptimizer(self)

    @classmethod
    def from_pydantic_model(
        cls,
        model_class: type[pydantic.BaseModel],
        data: Sequence[pydantic.BaseModel],
        uri: str | os.PathLike[str] | None = None,
        mode: Mode = "create",
        **kwargs: Any,
    ) -> LanceDataset:
        """Write objects of a model of pydantic. The schema is that of the model, whatever values the objects have.

        Parameters
        ----------
        model_class
            The model, a class that derives from ``pydantic.BaseModel``; see `lance_dataset.pydantic`.
        data
            Objects of exactly this class, at least one.
        uri
            Path or URI; None for the name of the class in snake_case, in the current folder.
        mode, kwargs
            As for `write_dataset`.

        Raises
        ------
        TypeError
            `model_class` is not a model, a field has a type that Arrow has not, or an object is of another class.
        InvalidInputError
            There are no objects.
        """
        from lance_dataset.changes.write.input import checked_models, models_table

        objects = checked_models(model_class, data)
        if uri is None:
            uri = re.sub(r"(?<!^)(?=[A-Z])", "_", model_class.__name__).lower()
        return write_dataset(models_table(model_class, objects), uri, mode=mode, **kwargs)

    @staticmethod
    def drop(
        base_uri: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        ignore_not_found: bool | None = None,
    ) -> None:
        """Delete a dataset with all its versions and branches.

        Files in its folder that do not belong to it stay. The log names them.

        Raises
        ------
        DatasetNotFoundError
            The dataset does not exist, and `ignore_not_found` is False.
        """
        store, root = resolve(os.fspath(base_uri), storage_options)
        if find_latest(store, root) is None:
            if ignore_not_found:
                return
            raise no_table(store, root)
        drop_table(store, root)


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
    progress: FragmentWriteProgress | ProgressOption = None,
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
    preserve_index: bool | None = None,
    optimize: StorageGoal | None = None,
    memory_limit: int | None = None,
) -> LanceDataset:
    """Write data as one new version, atomically and durably, in bounded memory.

    Parameters
    ----------
    data_obj
        pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner; LanceDataset or LanceScanner; pandas or
        polars DataFrame; dict of columns; list of dicts; iterable of dicts or DataFrames, or of RecordBatch (with
        `schema`); any object with ``__arrow_c_stream__``. Appended data is cast to the types of the dataset where no
        value changes.
    uri
        Path, URI, or an open dataset. The open handle stays on its version; `LanceDataset.insert` moves it.
    schema
        Schema to which the data is cast; required for iterables of RecordBatch.
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
    progress
        Hooks that are told of each fragment, see `lance_dataset.progress`; or True for a bar (tqdm), or a function of
        the numbers of rows written and in all. A stream, whose rows are not known before, has the rows so far in all.
    commit_message, transaction_properties
        Stored in the transaction.
    initial_bases
        For new datasets: base paths, other places that may hold files of the dataset.
    target_bases
        Names or paths of the base paths to write new files to, in turn. The location of the dataset means the dataset
        itself.
    target_all_bases
        Write new files to all base paths in turn: True to include the dataset itself, False to leave it out.
    external_blob_mode
        What happens to references of blob columns to other objects: ``reference`` keeps them, ``ingest`` stores the
        bytes.
    allow_external_blob_outside_bases
        True to accept references to any place, not only to base paths.
    base_store_params
        Options of each base path, by its URI; see `lance_dataset.dataset`.
    blob_pack_file_size_threshold
        Maximum size in bytes of a file with several values of blob columns; None for that of each column.
    namespace_client, table_id
        Client of a catalog and the id of the dataset there, instead of `uri`; see `lance_dataset.dataset`. A dataset
        that is appended to or overwritten must exist in the catalog.
    preserve_index
        For a pandas DataFrame: whether its index is written as a column. The default writes an index that has a name,
        and warns of another one that is not just the numbers of the rows.
    optimize
        What pages are encoded for: ``balanced`` (the default) for the smallest of encodings that are fast to decode;
        ``size`` with Zstandard where it makes a page smaller, so that files are about as small as Parquet's, and rows
        by number slower to fetch; ``speed`` as plain values, which are mapped instead of decoded. Without it, the
        config ``lance_dataset.optimize`` of the dataset decides, also in updates and compactions. Metadata of a field
        that asks for a compression takes precedence. It needs file version 2.1 or later.
    memory_limit
        Bytes of memory that the write may use, at least 16 MiB. The default is that of `lance_dataset.limited_memory`,
        or the environment variable ``LANCE_MEMORY_LIMIT``, or none.

    Returns
    -------
    LanceDataset
        Handle on the new version.

    Raises
    ------
    AlreadyExistsError
        `mode` is ``create`` and the dataset exists.
    SchemaError
        `mode` is ``append`` and the data does not fit the dataset, or a value would change in a cast. The message names
        column, row and value.
    UnsupportedError
        The file version cannot hold a type, or an option belongs to a later release.

    Warns
    -----
    UserWarning
        The data has nulls that legacy files cannot store. They keep nulls only in strings, binaries and dictionaries
        of these.
    """
    from lance_dataset.changes.write.blob_files import check_external_mode
    from lance_dataset.changes.write.input import known_rows, with_index
    from lance_dataset.changes.write.target import CommitOptions
    from lance_dataset.changes.write.writing import FileSettings, check_mode, write_version

    check_mode(mode)
    check_external_mode(external_blob_mode)
    table = None
    if is_in_catalog(uri, namespace_client, table_id):
        find = declare_table if mode == "create" else describe_table
        table = find(namespace_client, table_id or (), storage_options)
        uri = table.location
    if uri is None:
        raise InvalidInputError("write_dataset needs a path or URI, or both namespace_client and table_id")
    hooks, option = _hooks_or_rows(progress)
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
        blob_pack_file_size_threshold,
        hooks,
        goal=checked_goal(optimize),
    )
    target = find_target(
        uri,
        storage_options,
        session,
        commit_lock,
        as_shown=True,
        table=table,
        base_store_params=base_store_params,
    )
    options = CommitOptions(
        config={} if auto_cleanup_options is None else auto_cleanup_settings(auto_cleanup_options),
        properties=commit_properties(transaction_properties, commit_message),
        initial_bases=initial_bases,
        v2_paths=enable_v2_manifest_paths,
        stable_row_ids=enable_stable_row_ids,
    )
    data = with_index(data_obj, preserve_index)
    with limited_memory(memory_limit), reported_progress(option, lambda: known_rows(data), "write") as counted:
        made = write_version(target, data, schema, mode, replace(settings, counted=counted), options)
    return LanceDataset.showing(made)


def _hooks_or_rows(
    progress: FragmentWriteProgress | ProgressOption,
) -> tuple[FragmentWriteProgress | None, ProgressOption]:
    """Tell hooks of fragments from a bar or a function, which are told of rows."""
    if isinstance(progress, FragmentWriteProgress):
        return checked_progress(progress), None
    if progress is None or isinstance(progress, bool) or (callable(progress) and not isinstance(progress, type)):
        return None, progress
    return checked_progress(progress), None  # raises TypeError


name_methods(LanceDataset, LanceDataset.__bases__)
