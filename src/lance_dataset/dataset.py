"""What users hold of a dataset: `LanceDataset`."""

from __future__ import annotations

import importlib
import os
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.arguments import check_arrow_options, check_count, checked_integer
from lance_dataset.blob import BlobAccess
from lance_dataset.committing import Committing
from lance_dataset.errors import (
    DatasetNotFoundError,
    InvalidInputError,
    MissingFileError,
    UnsupportedError,
)
from lance_dataset.file.blob_fields import described_schema
from lance_dataset.file.explain import EncodingReport
from lance_dataset.fragment import LanceFragment
from lance_dataset.handle import Handle
from lance_dataset.io.base import CommitLock, ObjectStore
from lance_dataset.io.resolve import resolve
from lance_dataset.maintenance import Maintained
from lance_dataset.optimize import DatasetOptimizer
from lance_dataset.query.projection import Projection
from lance_dataset.query.table_reader import TableReader
from lance_dataset.query.take import row_numbers, take_rows
from lance_dataset.references import Referenced, open_reference
from lance_dataset.row_access import RowAccess
from lance_dataset.row_changes import RowChanges
from lance_dataset.scannable import ScannableDataset, scan_method
from lance_dataset.scanner import ColumnOrdering, LanceScanner, ProgressOption, ScannerBuilder, serialize_row_addrs
from lance_dataset.schema_evolution import SchemaEvolution
from lance_dataset.session import Session, check_session
from lance_dataset.settings import Configured
from lance_dataset.sql import SqlQueryBuilder
from lance_dataset.table import operations as table_operations
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.commit.protocol import drop_table, with_commit_lock
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.old_tables.migration import migrate_names
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import (
    find_latest,
    latest_version,
    list_versions,
    read_named,
    read_newest,
    read_version,
    version_info,
)
from lance_dataset.table_version import TableVersion

__all__ = ["LanceDataset", "serialize_row_addrs"]

Columns: TypeAlias = "Sequence[str] | Mapping[str, str] | None"
Predicate: TypeAlias = "str | pc.Expression"

#: What a handle is made of.
_STATE = (
    "_uri",
    "_storage_options",
    "_default_scan_options",
    "_session",
    "_store",
    "_root",
    "_manifest",
    "_reader",
    "_projections",
    "_scanned_schema",
)


class LanceDataset(
    Handle,
    BlobAccess,
    RowAccess,
    RowChanges,
    SchemaEvolution,
    Referenced,
    Configured,
    Maintained,
    Committing,
    ScannableDataset,
    TableVersion,
):
    """One version of a dataset. Open it with `lance_dataset.dataset`.

    Parameters
    ----------
    uri
        Path or URI.
    version
        Version number, tag, or pair of branch and version; None for the newest version.
    storage_options
        Options of the store.
    default_scan_options
        Keywords that every scan starts from.
    session
        Shared between datasets; owns ``memory://`` data.
    commit_lock
        Called with the number of a version that is about to be committed, returns a context in which no other process
        commits it. Only for stores that cannot create an object only if it is absent.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        There is no such dataset or version.
    UnsupportedError, CorruptFileError
        It cannot be read.
    """

    #: Whether this is a snapshot, which nobody moves.
    _is_fixed = False

    def __init__(
        self,
        uri: str | Path,
        version: int | str | tuple[str | None, int | None] | None = None,
        *,
        storage_options: Mapping[str, str] | None = None,
        default_scan_options: Mapping[str, Any] | None = None,
        session: Session | None = None,
        commit_lock: CommitLock | None = None,
        _manifest: Manifest | None = None,
        _store: tuple[ObjectStore, str] | None = None,
    ) -> None:
        self._uri = os.fspath(uri)
        self._storage_options = dict(storage_options or {})
        self._default_scan_options = dict(default_scan_options or {})
        self._session = check_session(session) or Session()
        store, self._root = _store or self._session.resolve(self._uri, self._storage_options)
        self._store = with_commit_lock(store, commit_lock)
        if isinstance(version, str | tuple):
            self._uri, self._root, _manifest = open_reference(self._store, self._root, self._uri, version)
            version = None
        self._show(_manifest if _manifest is not None else self._load(version))

    def _load(self, version: int | None) -> Manifest:
        if version is None:
            return read_newest(self._store, self._root, self._session.metadata.decode)
        return read_version(self._store, self._root, version, decode=self._session.metadata.decode)

    def _show(self, manifest: Manifest) -> None:
        """Make this handle show a version."""
        cache, place = self._session.metadata, (self._store.uri(self._root), self._storage_options)
        previous: TableReader | None = getattr(self, "_reader", None)
        if previous is not None and manifest is not self._manifest:
            cache.forget_table(self._manifest, place)
        self._manifest = manifest
        locator = FileLocator(self._store, self._root, manifest.base_paths, self._storage_options, self._session)
        table = cache.open_table(locator, manifest, place, described_schema, previous)
        self._reader = table.reader
        self._projections: dict[tuple[str, ...] | None, Projection] = table.projections
        self._scanned_schema = table.scanned_schema

    def _at(self, manifest: Manifest, uri: str | None = None, root: str | None = None) -> LanceDataset:
        """Another handle on the same dataset, on another branch of it where `uri` and `root` say so."""
        return LanceDataset(
            uri or self._uri,
            storage_options=self._storage_options,
            default_scan_options=self._default_scan_options,
            session=self._session,
            _manifest=manifest,
            _store=(self._store, root or self._root),
        )

    def _snapshot(self) -> LanceDataset:
        """A handle on this version that stays on it when this one moves to another; it shares what is open."""
        if self._is_fixed:
            return self
        fixed: LanceDataset = LanceDataset.__new__(LanceDataset)
        for name in _STATE:
            setattr(fixed, name, getattr(self, name))
        fixed._is_fixed = True
        return fixed

    def __reduce__(self) -> tuple[Any, ...]:
        options = (self._storage_options, self._default_scan_options, self._store.commit_lock)
        return _reopen, (self._uri, self.version, *options)

    def __len__(self) -> int:
        return self.count_rows()

    # -- identity ------------------------------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """Location of the dataset, as it was opened; that of the branch, if a version of one is open."""
        return self._uri

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of this version; with default scan options, of what a scan returns."""
        if self._default_scan_options:
            return self.scanner().projected_schema
        return self._manifest.schema.arrow

    # -- versions ------------------------------------------------------------------------------------------------

    @property
    def latest_version(self) -> int:
        """Number of the newest version in storage."""
        return latest_version(self._store, self._root).version

    def versions(self) -> list[dict[str, Any]]:
        """All versions, oldest first: dictionaries with version, timestamp (naive local time) and metadata."""
        found = []
        for name in list_versions(self._store, self._root):
            with suppress(MissingFileError):  # cleaned up since the listing
                found.append(version_info(read_named(self._store, self._root, name)))
        return found

    def version_refs(self) -> list[dict[str, int]]:
        """Numbers of all versions, oldest first, without opening them."""
        return [{"version": name.version} for name in list_versions(self._store, self._root)]

    def checkout_latest(self) -> None:
        """Move this handle to the newest version, in place."""
        manifest = self._load(None)
        if (manifest.version, manifest.commit_id) != (self.version, self._manifest.commit_id):
            self._show(manifest)

    def restore(self) -> None:
        """Commit the version this handle shows as the newest one."""
        operation = table_operations.Restore(self.version)
        change = Transaction(self.latest_version, operation)
        self._show(commit_transaction(self._store, self._root, change, read_manifest=self._manifest))

    def migrate_manifest_paths_v2(self) -> None:
        """Rename all manifests to the names that new datasets have, which list the newest version first.

        Nothing else changes, and a dataset that has such names stays as it is. Readers may go on; writers should not be
        at work meanwhile. An interrupted run leaves a dataset that can be read, and another run finishes it. Releases
        of pylance before 0.18 cannot read the dataset any more.

        Raises
        ------
        CorruptFileError
            A version is there under both names with different content.
        UnsupportedError
            The dataset needs a feature that this release cannot keep up.
        """
        migrate_names(self._store, self._root)

    # -- reading -------------------------------------------------------------------------------------------------

    def scanner(
        self,
        columns: Columns = None,
        filter: Predicate | None = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Sequence[LanceFragment] | None = None,
        index_segments: Any = None,
        full_text_query: Any = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Any = None,
        strict_batch_size: bool | None = None,
        order_by: Sequence[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        **arrow_options: Any,
    ) -> LanceScanner:
        """A scanner over this version.

        Parameters
        ----------
        columns
            Names (nested ones dotted, system columns such as ``_rowid`` included) in the order wanted, or a mapping
            output name -> SQL expression; None for all.
        filter
            SQL text or a pyarrow expression; rows where it is false or null are dropped.
        limit, offset
            Applied after filter and ordering.
        batch_size
            Most rows of a batch, 8192 by default.
        fragments
            Fragments to read, in that order; None for all.
        with_row_id, with_row_address
            Append ``_rowid``, ``_rowaddr``.
        order_by
            Column names (ascending, nulls last) or `ColumnOrdering`.
        include_deleted_rows
            Return deleted rows too, with a null ``_rowid``.
        strict_batch_size
            Make every batch but the last exactly `batch_size` rows.
        batch_size_bytes
            Make batches of about as many bytes, where that is less.
        scan_in_order
            False to let rows come as they are read.
        late_materialization
            Which columns to read only for rows that the filter keeps: all (True), none, or those of some names; None
            for what is cheaper. The result is the same.
        batch_readahead, fragment_readahead
            Most windows of rows, and most fragments, that are read before they are asked for; None for as many as keep
            the processors, or the connections to another machine, busy.
        io_buffer_size
            Most bytes of rows that wait to be asked for: 128 MiB, unless less is given.
        use_stats
            False to look at rows that the statistics of files exclude, too.
        blob_handling
            Whether blob columns come as descriptions, a struct of position and size in the data file
            (``blobs_descriptions``, the default; ``all_descriptions``), or as their values (``all_binary``). Filters
            see descriptions.
        **arrow_options
            What pyarrow datasets take besides (``use_threads``, ``memory_pool`` ...); ignored, for other libraries.

        Raises
        ------
        FieldNotFoundError
            Unknown column; the message suggests the nearest name.
        FilterError
            The filter is malformed; the message points at the position.
        UnsupportedError
            An option that needs an index.
        """
        given = {name: value for name, value in locals().items() if name not in ("self", "columns", "arrow_options")}
        check_arrow_options(arrow_options)
        builder = ScannerBuilder(self).apply_defaults(given)
        return (builder.columns(columns) if columns is not None else builder).to_scanner()

    to_table = scan_method(scanner, LanceScanner.to_table, "Scan into a table")
    to_batches = scan_method(scanner, LanceScanner.to_batches, "Scan as a stream of record batches")
    to_pandas = scan_method(scanner, LanceScanner.to_pandas, "Scan into a DataFrame")

    def count_rows(self, filter: Predicate | None = None, *, progress: ProgressOption = None, **kwargs: Any) -> int:
        """Number of rows, or of those that a filter keeps.

        Parameters
        ----------
        filter
            As for `scanner`, as are further keywords.
        progress
            As for `LanceScanner.to_table`. Without a filter the manifest knows the number, and nothing is reported.
        """
        if filter is None:
            known = self._manifest.num_rows
            return self._reader.num_rows if known is None else known
        return self.scanner(columns=[], filter=filter, **kwargs).count_rows(progress=progress)

    def take(self, indices: Sequence[int] | pa.Array, columns: Columns = None, **kwargs: Any) -> pa.Table:
        """Rows by their number, in the order asked, repeats kept.

        Parameters
        ----------
        indices
            Row numbers from 0 to ``count_rows() - 1``.
        columns
            As for `scanner`; of a dotted name the struct around it is returned.

        Raises
        ------
        RowIndexError
            A number outside the dataset.
        """
        projection = self._take_projection(columns)
        return projection.for_user(take_rows(self._reader, row_numbers(indices), projection, self._scanned_schema))

    def slice(self, start: int, end: int, columns: Columns = None) -> pa.Table:
        """Rows ``[start, end)`` by number."""
        check_count("start", start)
        if end < start:
            raise InvalidInputError(f"end ({end}) must be >= start ({start})")
        return self.scanner(columns=columns, offset=start, limit=end - start).to_table()

    def sample(self, num_rows: int, columns: Columns = None, randomize_order: bool = True, **kwargs: Any) -> pa.Table:
        """Rows chosen at random without repeats; in order of position unless `randomize_order`.

        Raises
        ------
        InvalidInputError
            More rows than there are.
        """
        total = self.count_rows()
        check_count("num_rows", num_rows)
        if num_rows > total:
            raise InvalidInputError(f"cannot sample {num_rows} rows of a dataset of {total} rows")
        chosen = random.sample(range(total), num_rows)
        return self.take(chosen if randomize_order else sorted(chosen), columns)

    def sql(self, sql: str) -> SqlQueryBuilder:
        """An SQL query over this version, in which the table is called ``dataset``; DataFusion runs it.

        Names are case-insensitive unless quoted with ``"``. Columns that are not needed are not read, and conditions on
        columns are evaluated by the scan. Needs ``lance-dataset[sql]``.

        Parameters
        ----------
        sql
            One statement.

        Returns
        -------
        SqlQueryBuilder
            ``build()`` it, then run it with ``to_batch_records()`` or ``to_stream_reader()``. Errors come then.
        """
        return SqlQueryBuilder(self, sql)

    # -- fragments -----------------------------------------------------------------------------------------------

    def get_fragments(self, filter: pc.Expression | None = None) -> list[LanceFragment]:
        """All fragments, in scan order."""
        if filter is not None:
            raise UnsupportedError(
                "get_fragments (pass the filter to scanner(); for DataFusion use LanceDataset.sql): a filter is not "
                "supported"
            )
        fixed = self._snapshot()
        return [LanceFragment(fixed, fragment_id) for fragment_id in fixed.fragment_ids()]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """The fragment of that id, None if there is none."""
        fragment_id = checked_integer("fragment_id", fragment_id)
        fixed = self._snapshot()
        return None if fixed._manifest.fragment(fragment_id) is None else LanceFragment(fixed, fragment_id)

    def explain_encodings(self, columns: Sequence[str] | None = None, *, deep: bool = False) -> EncodingReport:
        """What the data files store page by page: layout, encoding, sizes, and why.

        Parameters
        ----------
        columns
            Names; dotted ones select fields of structs. None for all.
        deep
            Decode the values too, a page at a time: nulls, the plain size of compressed text, and estimates of what
            other encodings would need. Otherwise only the descriptions of pages and the headers of chunks are read.

        Returns
        -------
        EncodingReport
            Prints as a table; a sequence of `lance_dataset.file.PageEncoding`, summed up by column in ``columns``.
            Deleted rows count, as they are stored.

        Raises
        ------
        FieldNotFoundError
            Unknown column.
        CorruptFileError
            A page contradicts its description.
        """
        found = [fragment.explain_encodings(columns, deep=deep) for fragment in self.get_fragments()]
        return EncodingReport([page for report in found for page in report])

    # -- changing ------------------------------------------------------------------------------------------------

    @property
    def optimize(self) -> DatasetOptimizer:
        """Maintenance: compaction."""
        return DatasetOptimizer(self)

    @staticmethod
    def drop(
        base_uri: str | Path,
        storage_options: Mapping[str, str] | None = None,
        ignore_not_found: bool | None = None,
    ) -> None:
        """Delete a dataset with all its versions.

        Raises
        ------
        DatasetNotFoundError
            There is none, unless `ignore_not_found`.
        """
        store, root = resolve(os.fspath(base_uri), storage_options)
        if find_latest(store, root) is None:
            if ignore_not_found:
                return
            raise DatasetNotFoundError(f"Dataset at path {store.uri(root)} was not found")
        drop_table(store, root)


def _reopen(
    uri: str,
    version: int,
    storage_options: Mapping[str, str],
    default_scan_options: Mapping[str, Any],
    commit_lock: CommitLock | None = None,
) -> LanceDataset:
    return LanceDataset(
        uri,
        version,
        storage_options=storage_options,
        default_scan_options=default_scan_options,
        commit_lock=commit_lock,
    )


#: What the module of this name has in the reference besides, and where it is here.
_ELSEWHERE = {
    "dataset": "opening",
    "write_dataset": "write",
    "Branches": "branches",
    "BulkCommitResult": "committing",
    "Index": "index_record",
    "IndexFile": "index_record",
    "LanceOperation": "operations",
    "Transaction": "operations",
    "AutoCleanupConfig": "settings",
    "DatasetBasePath": "settings",
    "DatasetDelta": "delta",
    "DataStatistics": "statistics",
    "DatasetStats": "statistics",
    "FieldStatistics": "statistics",
    "LanceStats": "statistics",
    "SqlQuery": "sql",
    "SqlQueryBuilder": "sql",
    "Tags": "tags",
}


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(f"lance_dataset.{_ELSEWHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
