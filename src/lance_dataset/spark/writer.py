"""Writing: tasks write data files, and the driver commits the messages of the successful tasks once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from lance_dataset import LanceOperation, write_dataset
from lance_dataset.errors import AlreadyExistsError, InvalidInputError
from lance_dataset.expr.compiled import compile_filter
from lance_dataset.file import resolve_version
from lance_dataset.fragment import FragmentMetadata, remove_uncommitted, write_fragments
from lance_dataset.spark.batches import check_storable, conform_batch
from lance_dataset.spark.jobs.fragment_commit import commit_append, commit_operation, commit_replacement
from lance_dataset.spark.jobs.job_marks import JobMark
from lance_dataset.spark.jobs.shipping import Shipped
from lance_dataset.spark.options import WriteOptions
from lance_dataset.spark.replaced_keys import Keys, check_count, check_keys, condition_of, distinct_keys
from lance_dataset.spark.snapshot import newest_or_none
from lance_dataset.spark.write_schema import (
    appended_schema,
    check_maps,
    created_schema,
    fill_missing,
    stores_null_structs,
)

__all__ = [
    "FragmentsMessage",
    "LanceWriter",
    "WritePlan",
    "commit_creation",
    "fragments_of",
    "operation_of",
    "plan_write",
]

_SHOWN = 200


@dataclass(frozen=True)
class WritePlan:
    """Plan of a write for the tasks and the commit; made once, in the driver, before the first task.

    Attributes
    ----------
    options
        Options of ``df.write``.
    action
        ``"create"`` if the dataset did not exist; ``"skip"`` if it existed and the mode is ignore, or if the job has
        committed already; ``"replace"`` to overwrite the rows of a condition.
    schema
        Arrow schema of the data files.
    data_storage_version
        File format version.
    read_version
        Version of the dataset that the plan is based on; 0 if it did not exist.
    adds_columns
        True if an append has columns that the dataset lacks.
    """

    options: WriteOptions
    action: Literal["create", "append", "overwrite", "replace", "skip"]
    schema: pa.Schema
    data_storage_version: str
    read_version: int
    adds_columns: bool = False

    @property
    def mark(self) -> JobMark | None:
        """Mark of the job, if it has a name."""
        return JobMark(self.options.txn_id) if self.options.txn_id else None

    @property
    def store_settings(self) -> dict[str, str] | None:
        """Storage options in the form that the package accepts."""
        return dict(self.options.storage_options) or None


@dataclass(frozen=True)
class FragmentsMessage(WriterCommitMessage):
    """Result of a task: the metadata of its fragments, as JSON texts, and the keys of rows to replace."""

    fragments: tuple[str, ...]
    keys: Keys = frozenset()


def plan_write(options: WriteOptions, schema: Any, overwrite: bool) -> WritePlan:
    """Plan a write for the current state of the dataset.

    Parameters
    ----------
    options
        Options of ``df.write``.
    schema
        Spark schema of the data.
    overwrite
        True if the mode is overwrite; otherwise it is append, or determined by ``if_exists``.

    Raises
    ------
    AlreadyExistsError
        The mode is error and the dataset exists.
    InvalidInputError
        Options contradict each other or the dataset.
    SchemaError
        The data does not fit the dataset it is appended to.
    UnsupportedError
        A column cannot be stored in the file version.
    """
    if overwrite and options.if_exists:
        raise InvalidInputError("The option 'if_exists' cannot be combined with the mode overwrite")
    for name in ("replace_where", "replace_by"):
        if getattr(options, name) and not overwrite:
            raise InvalidInputError(f"The option {name!r} needs the mode overwrite")
    if options.merge_schema and overwrite:
        raise InvalidInputError("The option 'merge_schema' is for appends; add columns before you replace rows")
    existing = newest_or_none(options.uri, options.storage_options)
    if existing is None:
        return _new_content(options, "create", schema, options.data_storage_version, 0)
    if options.if_exists == "error":
        raise AlreadyExistsError(f"Dataset already exists: {options.uri}; use the mode append or overwrite")
    version, stored = int(existing.version), str(existing.data_storage_version)
    if options.if_exists == "ignore":
        return WritePlan(options, "skip", existing.schema, stored, version)
    if options.txn_id and JobMark(options.txn_id).committed_in(existing) is not None:
        return WritePlan(options, "skip", existing.schema, stored, version)
    if options.stable_row_ids and not existing.has_stable_row_ids:
        raise InvalidInputError(
            f"The dataset {options.uri} has no stable row ids, and only new datasets can get them; leave out the "
            "option 'enable_stable_row_ids', or write to another path"
        )
    if options.replace_where or options.replace_by:
        arrow = appended_schema(schema, existing.schema)
        compile_filter(options.replace_where, arrow)  # raises if it is wrong, before a task runs
        check_keys(options.replace_by, arrow, schema.fieldNames())
        return WritePlan(options, "replace", arrow, resolve_version(stored), version)
    if overwrite:
        return _new_content(options, "overwrite", schema, options.data_storage_version or stored, version)
    if options.data_storage_version and resolve_version(options.data_storage_version) != stored:
        raise InvalidInputError(
            f"The dataset {options.uri} has files of version {stored}; an append cannot write "
            f"{options.data_storage_version}. Leave out the option 'data_storage_version'"
        )
    arrow = appended_schema(schema, existing.schema, options)
    check_maps(arrow, resolve_version(stored))
    return WritePlan(options, "append", arrow, resolve_version(stored), version, len(arrow) > len(existing.schema))


def _new_content(
    options: WriteOptions, action: Literal["create", "overwrite"], schema: Any, version: str | None, read_version: int
) -> WritePlan:
    stored = resolve_version(version)
    arrow = created_schema(schema, options)
    check_keys(options.replace_by, arrow, schema.fieldNames())
    check_maps(arrow, stored)
    return WritePlan(options, action, arrow, stored, read_version)


class LanceWriter(Shipped, DataSourceArrowWriter):
    """Writer that writes data files in tasks, and then commits all of them atomically or none."""

    def __init__(self, plan: WritePlan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsMessage:
        """Write the batches of one task as they arrive; nothing becomes visible."""
        plan = self.plan
        if plan.action == "skip":
            return FragmentsMessage(())
        keys: set[tuple[Any, ...]] = set()
        batches = self._storable(iterator, keys)
        first = next(batches, None)
        if first is None:
            return FragmentsMessage(())
        fragments = write_fragments(
            pa.RecordBatchReader.from_batches(plan.schema, _chained(first, batches)),
            plan.options.uri,
            schema=plan.schema,
            mode=self._file_mode(),
            max_rows_per_file=plan.options.max_rows_per_file,
            data_storage_version=plan.data_storage_version,
            storage_options=plan.store_settings,
        )
        return FragmentsMessage(tuple(json.dumps(fragment.to_json()) for fragment in fragments), frozenset(keys))

    def _file_mode(self) -> Literal["create", "append", "overwrite"]:
        """Return the mode that decides which numbers the fields of the files get."""
        action = self.plan.action
        if action in ("create", "overwrite"):
            return "create" if action == "create" else "overwrite"
        # Files with new columns have numbers of their own; the commit finds those of the dataset.
        return "overwrite" if self.plan.adds_columns else "append"

    def _storable(self, iterator: Iterator[pa.RecordBatch], keys: set[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
        null_structs = stores_null_structs(self.plan.data_storage_version)
        replaced = compile_filter(self.plan.options.replace_where, self.plan.schema)
        for batch in iterator:
            if batch.num_rows:
                fitted = conform_batch(fill_missing(batch, self.plan.schema), self.plan.schema, "written")
                check_storable(fitted, null_structs)
                if replaced is not None:
                    self._check_replaced(fitted, replaced.mask(fitted))
                if self.plan.options.replace_by:
                    keys |= distinct_keys(fitted, self.plan.options.replace_by)
                    check_count(keys)
                yield fitted

    def _check_replaced(self, batch: pa.RecordBatch, mask: pa.BooleanArray) -> None:
        if mask.true_count < len(mask):
            row = batch.slice(mask.index(False).as_py(), 1).to_pylist()[0]
            raise InvalidInputError(
                f"The condition {self.plan.options.replace_where!r} of the option 'replace_where' is not true for a "
                f"row to write: {str(row)[:_SHOWN]}; filter the rows, or change the condition"
            )

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make all fragments visible together, as one version."""
        plan, fragments = self.plan, fragments_of(messages)
        if plan.action == "skip" or (plan.action == "append" and not fragments):
            return
        if plan.action == "create":
            self._create(messages, fragments)
            return
        if plan.action == "replace":
            self._replace(messages, fragments)
            return
        if plan.mark is not None and self._has_committed(plan.mark):
            self.abort(messages)
            return
        if not fragments:
            self._write_empty()
            return
        if plan.adds_columns:
            commit_append(plan.options.uri, fragments, plan.schema, plan.store_settings, plan.mark)
            return
        commit_operation(
            plan.options.uri, operation_of(plan, fragments), plan.read_version, plan.store_settings, plan.mark
        )

    def _replace(self, messages: list[WriterCommitMessage | None], fragments: list[Any]) -> None:
        """Commit the fragments instead of the rows of a condition, or of those with the same keys."""
        plan, condition = self.plan, self.plan.options.replace_where
        if condition is None:
            keys = frozenset[tuple[Any, ...]]().union(*(getattr(message, "keys", ()) for message in messages))
            check_count(keys)
            if not keys:
                return
            condition = condition_of(keys, plan.options.replace_by, plan.schema)
        commit_replacement(plan.options.uri, condition, fragments, plan.store_settings, plan.mark)

    def _has_committed(self, mark: JobMark) -> bool:
        newest = newest_or_none(self.plan.options.uri, self.plan.options.storage_options)
        return newest is not None and mark.committed_in(newest, after=self.plan.read_version) is not None

    def _create(self, messages: list[WriterCommitMessage | None], fragments: list[Any]) -> None:
        """Commit version 1; never replace a dataset that another writer created meanwhile."""
        options = self.plan.options
        if newest_or_none(options.uri, options.storage_options) is not None:
            if options.if_exists == "ignore" or (self.plan.mark is not None and self._has_committed(self.plan.mark)):
                self.abort(messages)
                return
            raise AlreadyExistsError(f"Dataset {options.uri} was created by another writer during this write")
        if not fragments:
            self._write_empty()
            return
        commit_creation(self.plan, fragments, self.plan.mark)

    def _write_empty(self) -> None:
        """Write a version without rows; without files, the commit could not learn their version."""
        assert self.plan.action in ("create", "overwrite")
        write_dataset(
            self.plan.schema.empty_table(),
            self.plan.options.uri,
            mode=self.plan.action,
            data_storage_version=self.plan.data_storage_version,
            enable_stable_row_ids=self.plan.options.stable_row_ids,
            transaction_properties=self.plan.mark.properties if self.plan.mark else None,
            storage_options=self.plan.store_settings,
        )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the files of the tasks that succeeded, unless a commit that appeared to fail has made them visible."""
        visible = self._visible_paths()
        orphans = [
            fragment
            for fragment in fragments_of(messages)
            if not any(data_file.path in visible for data_file in fragment.files)
        ]
        if orphans:
            remove_uncommitted(orphans, self.plan.options.uri, storage_options=self.plan.store_settings)

    def _visible_paths(self) -> set[str]:
        """Return the data files of the versions that are newer than the planned one."""
        newest = newest_or_none(self.plan.options.uri, self.plan.options.storage_options)
        if newest is None:
            return set()
        numbers = [int(entry["version"]) for entry in newest.versions()]
        return {
            data_file.path
            for number in numbers
            if number > self.plan.read_version
            for fragment in newest.checkout_version(number).get_fragments()
            for data_file in fragment.metadata.files
        }


def fragments_of(messages: list[WriterCommitMessage | None]) -> list[Any]:
    """Return the fragments that tasks wrote, by their messages."""
    return [
        FragmentMetadata.from_json(text)
        for message in messages
        if message is not None and hasattr(message, "fragments")
        for text in message.fragments
    ]


def operation_of(plan: WritePlan, fragments: list[Any]) -> Any:
    """Return the operation that makes the fragments of a plan visible."""
    if plan.action == "append":
        return LanceOperation.Append(fragments)
    return LanceOperation.Overwrite(plan.schema, fragments)


def commit_creation(plan: WritePlan, fragments: list[Any], mark: JobMark | None) -> None:
    """Commit the first version of a dataset; raise if another writer made it meanwhile."""
    operation = operation_of(replace(plan, action="create"), fragments)
    more = {"enable_stable_row_ids": True} if plan.options.stable_row_ids else {}
    commit_operation(plan.options.uri, operation, 0, plan.store_settings, mark, max_retries=0, **more)


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
