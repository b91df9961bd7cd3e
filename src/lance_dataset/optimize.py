"""Maintenance of a dataset: compaction, and by it the upgrade to a later file version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_dataset.errors import CorruptFileError, InvalidInputError, UnsupportedError
from lance_dataset.file.blob_fields import check_table_blobs
from lance_dataset.file.families import family_of
from lance_dataset.file.versions import resolve_version
from lance_dataset.query.compact import CompactionPlan, Limits, Task, plan_compaction, with_lineage
from lance_dataset.query.request import DEFAULT_BATCH_SIZE
from lance_dataset.scanner import LanceScanner, resolve_request
from lance_dataset.schema import Schema
from lance_dataset.settings import AutoCleanupConfig, auto_cleanup_keys, auto_cleanup_settings
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.operations import Rewrite, RewriteGroup
from lance_dataset.table.transaction import Transaction
from lance_dataset.target import WriteTarget
from lance_dataset.writer import (
    DEFAULT_MAX_BYTES_PER_FILE,
    DEFAULT_MAX_ROWS_PER_GROUP,
    WriteOptions,
    remove_data_files,
    write_fragment_files,
)

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["CompactionMetrics", "DatasetOptimizer"]

_CONFIG = "lance.compaction."
_MODES = ("reencode", "try_binary_copy", "force_binary_copy")
_DEFAULT_TARGET_ROWS = 1024 * 1024
_DEFAULT_THRESHOLD = 0.1


@dataclass
class CompactionMetrics:
    """What a compaction changed.

    Attributes
    ----------
    fragments_removed, fragments_added
        Fragments.
    files_removed, files_added
        Data files and deletion files that the new version does not need any more, and new ones.
    """

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0


class DatasetOptimizer:
    """Maintenance of a dataset. Get it with `LanceDataset.optimize`."""

    def __init__(self, dataset: LanceDataset) -> None:
        self._dataset = dataset

    def enable_auto_cleanup(self, auto_cleanup_config: AutoCleanupConfig, **kwargs: Any) -> None:
        """Make the dataset remove old versions by itself, after every so many commits.

        Parameters
        ----------
        auto_cleanup_config
            ``interval`` in versions and ``older_than_seconds``, the age of the versions that go.

        Raises
        ------
        InvalidInputError, TypeError
            One of the two is missing or has a value it cannot have.
        """
        _no_options("enable_auto_cleanup", kwargs)
        self._dataset.update_config(dict(auto_cleanup_settings(auto_cleanup_config, complete=True)))

    def disable_auto_cleanup(self, **kwargs: Any) -> None:
        """Stop removing old versions by itself."""
        _no_options("disable_auto_cleanup", kwargs)
        self._dataset.delete_config_keys(auto_cleanup_keys())

    def compact_files(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        max_rows_per_group: int | None = None,
        max_bytes_per_file: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        defer_index_remap: bool | None = None,
        num_threads: int | None = None,
        batch_size: int | None = None,
        compaction_mode: str | None = None,
        binary_copy_read_batch_bytes: int | None = None,
        max_source_fragments: int | None = None,
        max_source_rows: int | None = None,
        max_source_bytes: int | None = None,
        excluded_fragment_ids: Sequence[int] | None = None,
        data_storage_version: str | None = None,
    ) -> CompactionMetrics:
        """Join small neighbouring fragments and drop deleted rows, in one commit; the dataset moves to the new version.

        Fragments are read and written anew one group after another, in bounded memory. The order of rows changes only
        in that new fragments come last. Row ids and row versions stay on datasets with stable row ids. An option that
        is left out is taken from the dataset's config (``lance.compaction.`` and its name), if it is there.

        Parameters
        ----------
        target_rows_per_fragment
            Fragments with fewer rows are joined with their neighbours until they have that many, 1,048,576 by default.
        max_rows_per_group
            Rows of the batches of legacy (0.1) files, 1024 by default.
        max_bytes_per_file
            When to start a new file before it has its rows.
        materialize_deletions, materialize_deletions_threshold
            Whether, and from which fraction of deleted rows on (0.1 by default), a fragment is written anew without
            them even if it has no neighbour to join.
        batch_size
            Rows to read at a time.
        max_source_fragments, max_source_rows, max_source_bytes
            Stop before more than that is read; the rest is left to another run.
        excluded_fragment_ids
            Fragments to leave alone, and not to join others across.
        data_storage_version
            File version of the new fragments; by default that of the dataset. Within 2.x, other fragments and the
            version of the dataset stay as they are. From 0.1 to one of 2.x all fragments are written anew, and it
            becomes the version of the dataset.
        compaction_mode, defer_index_remap, num_threads, binary_copy_read_batch_bytes
            Accepted for compatibility: data is always encoded anew, on the threads that the process shares, and there
            are no indices to adapt.

        Returns
        -------
        CompactionMetrics
            All zero, and no commit, if nothing needs to be done.

        Raises
        ------
        UnsupportedError
            An index covers a fragment that would be written anew; or the file version cannot hold the data.
        CommitConflictError
            Another writer changed the same fragments or their columns meanwhile; nothing is changed then.
        InvalidInputError
            An option is out of range.
        """
        given = {name: value for name, value in locals().items() if name != "self" and value is not None}
        return _compact(self._dataset, _Options({**_configured(self._dataset.config()), **given}))


def _no_options(call: str, options: Mapping[str, Any]) -> None:
    if options:
        raise TypeError(f"{call} got unknown options: {', '.join(options)}; other settings are set with update_config")


class _Options:
    """Checked options of a compaction."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        for name in (
            "target_rows_per_fragment",
            "max_rows_per_group",
            "max_bytes_per_file",
            "batch_size",
            "num_threads",
        ):
            _check_number(name, options.get(name))
        sources = ("max_source_fragments", "max_source_rows", "max_source_bytes")
        for name in sources:
            _check_number(name, options.get(name), least=1)
        mode = options.get("compaction_mode", _MODES[0])
        if mode not in _MODES:
            raise InvalidInputError(f"Invalid compaction mode {mode!r}. Valid values: {', '.join(_MODES)}")
        if mode == "force_binary_copy":
            raise UnsupportedError(
                "compact_files: copying pages without decoding them is not supported by this release"
            )
        threshold = float(options.get("materialize_deletions_threshold", _DEFAULT_THRESHOLD))
        materialize = options.get("materialize_deletions", True) and threshold < 1
        self.limits = Limits(
            target_rows=options.get("target_rows_per_fragment", _DEFAULT_TARGET_ROWS),
            max_deleted=threshold if materialize else None,
            excluded=frozenset(options.get("excluded_fragment_ids", ())),
            **{f"max_{name.rpartition('_')[2]}": options.get(name) for name in sources},
        )
        version = options.get("data_storage_version")
        self.version = None if version is None else resolve_version(version)
        self.defer_index_remap = bool(options.get("defer_index_remap"))
        self.batch_size = max(1, options.get("batch_size", DEFAULT_BATCH_SIZE))
        self.max_bytes_per_file = max(1, options.get("max_bytes_per_file", DEFAULT_MAX_BYTES_PER_FILE))
        self.max_rows_per_group = max(1, options.get("max_rows_per_group", DEFAULT_MAX_ROWS_PER_GROUP))


def _check_number(name: str, value: object, least: int = 0) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
    if value < 0:
        raise OverflowError(f"{name} must not be negative, got {value}")
    if value < least:
        raise InvalidInputError(f"{name} must be greater than 0, got {value}")


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_CONFIGURABLE: Mapping[str, Callable[[str], Any]] = {
    "target_rows_per_fragment": int,
    "max_rows_per_group": int,
    "max_bytes_per_file": int,
    "materialize_deletions": _flag,
    "materialize_deletions_threshold": float,
    "defer_index_remap": _flag,
    "batch_size": int,
    "compaction_mode": str,
    "max_source_fragments": int,
    "max_source_rows": int,
    "max_source_bytes": int,
    "data_storage_version": str,
}


def _configured(config: Mapping[str, str]) -> dict[str, Any]:
    """Options from the config of a dataset."""
    found = {}
    for name, convert in _CONFIGURABLE.items():
        text = config.get(_CONFIG + name)
        if text is not None:
            try:
                found[name] = convert(text)
            except ValueError as error:
                raise InvalidInputError(
                    f"the dataset's config {_CONFIG + name} is {text!r}, which is no value"
                ) from error
    return found


def _compact(dataset: LanceDataset, options: _Options) -> CompactionMetrics:
    manifest = dataset._manifest
    check_writable(manifest.writer_flags, manifest.path)
    if options.defer_index_remap and manifest.index_section:
        raise UnsupportedError("compact_files: defer_index_remap is not supported by this release for indexed datasets")
    plan = plan_compaction(dataset._reader, options.limits, options.version)
    if not plan.tasks and plan.storage_version is None:
        return CompactionMetrics()
    family_of(plan.version).check_schema(manifest.schema, plan.version)
    check_table_blobs(manifest.schema, plan.version)
    groups: list[RewriteGroup] = []
    target = WriteTarget(dataset._store, dataset._root, dataset._session, manifest)
    try:
        groups.extend(_rewritten(dataset, task, plan, options) for task in plan.tasks)
        operation = Rewrite(tuple(groups), storage_version=plan.storage_version)
        change = Transaction(manifest.version, operation)
        made = commit_transaction(dataset._store, dataset._root, change, read_manifest=manifest)
    except BaseException:
        written = [fragment for group in groups for fragment in group.new_fragments]
        if not target.holds(written):
            remove_data_files(dataset._store, dataset._root, written)
        raise
    dataset._show(made)
    return _metrics(groups)


def _rewritten(dataset: LanceDataset, task: Task, plan: CompactionPlan, options: _Options) -> RewriteGroup:
    """Write the live rows of a task."""
    manifest, reader = dataset._manifest, dataset._reader
    old = tuple(fragment.fragment for fragment in task.fragments)
    if task.num_rows == 0:
        return RewriteGroup(old, ())
    scanned = [_Numbered(each.id) for each in old]
    scan = {"batch_size": options.batch_size, "blob_handling": "all_binary", "fragments": scanned}
    request = resolve_request(reader, dataset._scanned_schema, scan)
    sizes = task.part_sizes(options.limits.target_rows)
    writing = WriteOptions(
        plan.version,
        max_rows_per_file=max(sizes),
        max_bytes_per_file=options.max_bytes_per_file,
        max_rows_per_group=options.max_rows_per_group,
    )
    batches = LanceScanner(reader, request).to_batches()
    written: list[Fragment] = []
    try:
        for part in _parts(batches, sizes):
            fragments, schema = write_fragment_files(dataset._store, dataset._root, manifest.schema, part, writing)
            written += fragments
            _check_dictionaries(manifest.schema, schema)
        _check_rows(task, written, batches)
        return RewriteGroup(old, with_lineage(task, written, manifest))
    except BaseException:
        remove_data_files(dataset._store, dataset._root, written)
        raise


def _parts(batches: Iterator[pa.RecordBatch], sizes: Sequence[int]) -> Iterator[Iterator[pa.RecordBatch]]:
    """The stream cut into streams of so many rows, each to be used up before the next."""
    left: list[pa.RecordBatch] = []

    def part(size: int) -> Iterator[pa.RecordBatch]:
        while size > 0:
            batch = left.pop() if left else next(batches, None)
            if batch is None:
                return
            if batch.num_rows > size:
                left.append(batch.slice(size))
                batch = batch.slice(0, size)
            size -= batch.num_rows
            yield batch

    return map(part, sizes)


@dataclass(frozen=True)
class _Numbered:
    """A fragment for a scan."""

    fragment_id: int


def _check_rows(task: Task, written: Sequence[Fragment], rest: Iterator[pa.RecordBatch]) -> None:
    """A last look before rows are replaced: as many were written as there are."""
    rows = sum(fragment.physical_rows for fragment in written)
    if rows != task.num_rows or next(rest, None) is not None:
        raise CorruptFileError(
            f"fragments {[each.fragment.id for each in task.fragments]} should have {task.num_rows} rows, but another "
            "number was read; the dataset is left as it is"
        )


def _check_dictionaries(before: Schema, after: Schema) -> None:
    """Refuse new dictionary values of a legacy table: those in its manifest are for all its files."""
    for old, new in zip(before.walk(), after.walk(), strict=True):
        values = new.dictionary_values
        if values is not None and old.dictionary_values is not None and not values.equals(old.dictionary_values):
            raise UnsupportedError(
                f"column {old.name!r}: its rows need dictionary values that the legacy (0.1) table does not have; "
                "compact with data_storage_version='2.0' or later"
            )


def _metrics(groups: Sequence[RewriteGroup]) -> CompactionMetrics:
    old = [fragment for group in groups for fragment in group.old_fragments]
    new = [fragment for group in groups for fragment in group.new_fragments]
    deletions = sum(fragment.deletion_file is not None for fragment in old)
    return CompactionMetrics(
        fragments_removed=len(old),
        fragments_added=len(new),
        files_removed=sum(len(fragment.files) for fragment in old) + deletions,
        files_added=sum(len(fragment.files) for fragment in new),
    )
