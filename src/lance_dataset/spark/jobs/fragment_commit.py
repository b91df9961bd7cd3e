"""Commits of fragments that tasks wrote: one version, once for each job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lance_dataset import LanceDataset, LanceOperation, Transaction
from lance_dataset import dataset as open_dataset
from lance_dataset.errors import CommitConflictError, SchemaError
from lance_dataset.fragment import DataFile, remove_uncommitted
from lance_dataset.spark.jobs.job_marks import JobMark
from lance_dataset.spark.option_parsing import storage_options_text
from lance_dataset.spark.snapshot import newest_or_none

__all__ = ["commit_append", "commit_operation", "commit_replacement", "retried"]

_ATTEMPTS = 10


def commit_operation(
    uri: str,
    operation: Any,
    read_version: int,
    settings: dict[str, str] | None,
    mark: JobMark | None = None,
    **arguments: Any,
) -> Any:
    """Commit an operation with the mark of its job; return the dataset at the new version.

    If another process committed the same job meanwhile, the files of this one are removed, and its version is returned.
    """
    properties = mark.properties if mark else {}
    transaction = Transaction(read_version, operation, transaction_properties=properties)
    try:
        return LanceDataset.commit(uri, transaction, storage_options=settings, **arguments)
    except CommitConflictError:
        newest = newest_or_none(uri, storage_options_text(settings))
        done = mark.committed_in(newest, after=read_version) if mark and newest is not None else None
        if newest is None or done is None:
            raise
        remove_uncommitted(_new_fragments(operation), uri, storage_options=settings)
        return newest.checkout_version(done)


def commit_append(
    uri: str,
    fragments: list[Any],
    schema: pa.Schema,
    settings: dict[str, str] | None,
    mark: JobMark | None = None,
) -> Any:
    """Append fragments whose fields have numbers of their own.

    Columns of `schema` that the dataset lacks are added to it first, in a commit before.

    Parameters
    ----------
    uri, settings
        Path or URI of the dataset, and settings of its object store.
    fragments
        Fragments that tasks wrote.
    schema
        Schema of their files.
    mark
        Mark of the job.

    Raises
    ------
    SchemaError
        Another writer added a column of the same name and another type meanwhile.
    """

    def with_columns() -> Any:
        newest = open_dataset(uri, storage_options=settings)
        for field in schema:
            index = newest.schema.get_field_index(field.name)
            if index >= 0 and newest.schema.field(index).type != field.type:
                raise SchemaError(
                    f"Column {field.name!r} was added by another writer as {newest.schema.field(index).type}, while "
                    f"this write has it as {field.type}; cast the column and write again"
                )
        missing = [field for field in schema if field.name not in newest.schema.names]
        if missing:
            newest.add_columns(pa.schema(missing))
        return newest

    dataset = retried(with_columns)
    for fragment in fragments:  # the numbers of the fields in the dataset are known only now
        fragment.files = [DataFile.create(dataset, file.path) for file in fragment.files]
    operation = LanceOperation.Append(fragments)
    return commit_operation(uri, operation, int(dataset.version), settings, mark)


def _new_fragments(operation: Any) -> list[Any]:
    """Return the fragments that an operation adds."""
    return list(operation.new_fragments if isinstance(operation, LanceOperation.Update) else operation.fragments)


def commit_replacement(
    uri: str,
    condition: str,
    fragments: list[Any],
    settings: dict[str, str] | None,
    mark: JobMark | None = None,
) -> Any:
    """Delete the rows for which a condition is true and add fragments, in one commit.

    The rows are those of the newest version. If other writers change the same fragments meanwhile, they are searched
    again; the new fragments are not written again.
    """

    def attempt() -> Any:
        dataset = open_dataset(uri, storage_options=settings)
        if mark is not None and mark.committed_in(dataset) is not None:
            remove_uncommitted(fragments, uri, storage_options=settings)
            return dataset
        removed, updated = [], []
        for fragment in dataset.get_fragments():
            left = fragment.delete(condition)
            if left is None:
                removed.append(fragment.fragment_id)
            elif left != fragment.metadata:
                updated.append(left)
        operation = LanceOperation.Update(removed, updated, fragments, update_mode="rewrite_rows")
        return commit_operation(uri, operation, int(dataset.version), settings, mark)

    return retried(attempt)


def retried(attempt: Callable[[], Any]) -> Any:
    """Call a function again if its commit conflicts with others; return its result."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except CommitConflictError as error:
            if not error.retryable:
                raise
    return attempt()
