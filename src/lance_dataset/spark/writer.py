"""Writing: tasks write data files, and the driver commits the messages of the successful tasks once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from lance_dataset import LanceDataset, LanceOperation, write_dataset
from lance_dataset.errors import AlreadyExistsError, InvalidInputError
from lance_dataset.file import resolve_version
from lance_dataset.fragment import FragmentMetadata, remove_uncommitted, write_fragments
from lance_dataset.spark.batches import check_storable, conform_batch
from lance_dataset.spark.options import WriteOptions
from lance_dataset.spark.shipping import Shipped
from lance_dataset.spark.snapshot import newest_or_none
from lance_dataset.spark.write_schema import (
    appended_schema,
    check_maps,
    created_schema,
    fill_missing,
    stores_null_structs,
)

__all__ = ["FragmentsMessage", "LanceWriter", "WritePlan", "plan_write"]


@dataclass(frozen=True)
class WritePlan:
    """Plan of a write for the tasks and the commit; made once, in the driver, before the first task.

    Attributes
    ----------
    options
        Options of ``df.write``.
    action
        ``"create"`` if the dataset did not exist; ``"skip"`` if it existed and the mode is ignore.
    schema
        Arrow schema of the data files.
    data_storage_version
        File format version.
    read_version
        Version of the dataset that the plan is based on; 0 if it did not exist.
    """

    options: WriteOptions
    action: Literal["create", "append", "overwrite", "skip"]
    schema: pa.Schema
    data_storage_version: str
    read_version: int

    @property
    def store_settings(self) -> dict[str, str] | None:
        """Storage options in the form that the package accepts."""
        return dict(self.options.storage_options) or None


@dataclass(frozen=True)
class FragmentsMessage(WriterCommitMessage):
    """Result of a task: the metadata of its fragments, as JSON texts."""

    fragments: tuple[str, ...]


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
    existing = newest_or_none(options.uri, options.storage_options)
    if existing is None:
        return _new_content(options, "create", schema, options.data_storage_version, 0)
    if options.if_exists == "error":
        raise AlreadyExistsError(f"Dataset already exists: {options.uri}; use the mode append or overwrite")
    version, stored = int(existing.version), str(existing.data_storage_version)
    if options.if_exists == "ignore":
        return WritePlan(options, "skip", existing.schema, stored, version)
    if overwrite:
        return _new_content(options, "overwrite", schema, options.data_storage_version or stored, version)
    if options.data_storage_version and resolve_version(options.data_storage_version) != stored:
        raise InvalidInputError(
            f"The dataset {options.uri} has files of version {stored}; an append cannot write "
            f"{options.data_storage_version}. Leave out the option 'data_storage_version'"
        )
    return WritePlan(options, "append", appended_schema(schema, existing.schema), resolve_version(stored), version)


def _new_content(
    options: WriteOptions, action: Literal["create", "overwrite"], schema: Any, version: str | None, read_version: int
) -> WritePlan:
    stored = resolve_version(version)
    arrow = created_schema(schema)
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
        batches = self._storable(iterator)
        first = next(batches, None)
        if first is None:
            return FragmentsMessage(())
        fragments = write_fragments(
            pa.RecordBatchReader.from_batches(plan.schema, _chained(first, batches)),
            plan.options.uri,
            schema=plan.schema,
            mode=plan.action,
            max_rows_per_file=plan.options.max_rows_per_file,
            data_storage_version=plan.data_storage_version,
            storage_options=plan.store_settings,
        )
        return FragmentsMessage(tuple(json.dumps(fragment.to_json()) for fragment in fragments))

    def _storable(self, iterator: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        null_structs = stores_null_structs(self.plan.data_storage_version)
        for batch in iterator:
            if batch.num_rows:
                fitted = conform_batch(fill_missing(batch, self.plan.schema), self.plan.schema, "written")
                check_storable(fitted, null_structs)
                yield fitted

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make all fragments visible together, as one version."""
        plan, fragments = self.plan, _fragments(messages)
        if plan.action == "skip" or (plan.action == "append" and not fragments):
            return
        if plan.action == "create":
            self._create(messages, fragments)
            return
        if not fragments:
            self._write_empty()
            return
        operation: Any
        if plan.action == "append":
            operation = LanceOperation.Append(fragments)
        else:
            operation = LanceOperation.Overwrite(plan.schema, fragments)
        LanceDataset.commit(
            plan.options.uri, operation, read_version=plan.read_version, storage_options=plan.store_settings
        )

    def _create(self, messages: list[WriterCommitMessage | None], fragments: list[Any]) -> None:
        """Commit version 1; never replace a dataset that another writer created meanwhile."""
        options = self.plan.options
        if newest_or_none(options.uri, options.storage_options) is not None:
            if options.if_exists == "ignore":
                self.abort(messages)
                return
            raise AlreadyExistsError(f"Dataset {options.uri} was created by another writer during this write")
        if not fragments:
            self._write_empty()
            return
        LanceDataset.commit(
            options.uri,
            LanceOperation.Overwrite(self.plan.schema, fragments),
            read_version=0,
            max_retries=0,
            storage_options=self.plan.store_settings,
        )

    def _write_empty(self) -> None:
        """Write a version without rows; without files, the commit could not learn their version."""
        assert self.plan.action != "skip"  # then nothing is committed
        write_dataset(
            self.plan.schema.empty_table(),
            self.plan.options.uri,
            mode=self.plan.action,
            data_storage_version=self.plan.data_storage_version,
            storage_options=self.plan.store_settings,
        )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the files of the tasks that succeeded, unless a commit that appeared to fail has made them visible."""
        visible = self._visible_paths()
        orphans = [
            fragment
            for fragment in _fragments(messages)
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


def _fragments(messages: list[WriterCommitMessage | None]) -> list[Any]:
    return [
        FragmentMetadata.from_json(text)
        for message in messages
        if isinstance(message, FragmentsMessage)
        for text in message.fragments
    ]


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
