"""Changes of a dataset from Spark: merges by key, updates, deletes. Each is one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_dataset import dataset as open_dataset
from lance_dataset.errors import InvalidInputError
from lance_dataset.spark.batches import conform_batch
from lance_dataset.spark.jobs.fragment_commit import commit_operation, retried
from lance_dataset.spark.jobs.job_marks import JobMark
from lance_dataset.spark.jobs.staging import staged
from lance_dataset.spark.write_schema import appended_schema

__all__ = ["conformed", "delete", "merge_into", "merged", "update"]


def merge_into(
    df: Any,
    uri: str,
    on: str | Sequence[str],
    *,
    when_matched: str = "update",
    when_matched_condition: str | None = None,
    when_not_matched: str = "insert",
    when_not_matched_by_source: str = "keep",
    by_source_condition: str | None = None,
    txn_id: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Merge the rows of a DataFrame into a dataset by key, in one commit.

    The tasks write the rows beside the dataset; the driver merges them as a stream and removes them.

    Parameters
    ----------
    df
        Spark DataFrame. Its columns are matched by name.
    uri
        Path or URI of the dataset.
    on
        Key columns.
    when_matched
        ``"update"``, ``"delete"``, ``"fail"`` or ``"ignore"``: what happens to rows that have a key of `df`.
    when_matched_condition
        Condition of the update, with ``source.`` and ``target.`` before column names.
    when_not_matched
        ``"insert"`` or ``"ignore"``: what happens to rows of `df` whose key the dataset does not have.
    when_not_matched_by_source
        ``"keep"`` or ``"delete"``: what happens to rows of the dataset whose key `df` does not have.
    by_source_condition
        Condition of that deletion.
    txn_id
        Name of the job: a merge with the name of an earlier write changes nothing.
    storage_options
        Settings of the object store.

    Returns
    -------
    dict
        ``num_inserted_rows``, ``num_updated_rows`` and ``num_deleted_rows``.

    Raises
    ------
    CommitConflictError
        Other writers changed the same rows, and the retries ran out.
    InvalidInputError
        An action is unknown, or a condition has no action.
    SchemaError
        The columns of `df` do not fit the dataset.
    """
    actions = (when_matched, when_matched_condition, when_not_matched, when_not_matched_by_source, by_source_condition)
    return merged(df, uri, on, actions, JobMark(txn_id) if txn_id else None, storage_options)


def merged(
    df: Any,
    uri: str,
    on: str | Sequence[str],
    actions: tuple[str, str | None, str, str, str | None],
    mark: JobMark | None,
    storage_options: Mapping[str, str] | None,
) -> dict[str, int]:
    """Do what `merge_into` says, with its five actions and the mark of the job."""
    settings = dict(storage_options) if storage_options else None
    target = open_dataset(uri, storage_options=settings)
    _builder(target, on, *actions)
    schema = _merged_schema(df.schema, target.schema)
    if mark is not None and mark.committed_in(target) is not None:
        return _counts({})
    with staged(df, uri, settings) as source:
        if actions[3] == "keep" and not source.count_rows():
            return _counts({})

        def attempt() -> dict[str, int]:
            newest = open_dataset(uri, storage_options=settings)
            if mark is not None and mark.committed_in(newest) is not None:
                return _counts({})
            rows = pa.RecordBatchReader.from_batches(schema, conformed(source, schema))
            transaction, counts = _builder(newest, on, *actions).execute_uncommitted(rows)
            commit_operation(uri, transaction.operation, transaction.read_version, settings, mark)
            return _counts(counts)

        return dict(retried(attempt))


def _builder(
    target: Any,
    on: str | Sequence[str],
    matched: str,
    matched_condition: str | None,
    not_matched: str,
    by_source: str,
    by_source_condition: str | None,
) -> Any:
    builder = target.merge_insert(on)
    if matched_condition is not None and matched != "update":
        raise InvalidInputError("when_matched_condition needs when_matched='update'")
    if by_source_condition is not None and by_source != "delete":
        raise InvalidInputError("by_source_condition needs when_not_matched_by_source='delete'")
    choose = {
        "update": lambda: builder.when_matched_update_all(matched_condition),
        "delete": builder.when_matched_delete,
        "fail": builder.when_matched_fail,
        "ignore": lambda: None,
    }
    _chosen("when_matched", matched, choose)()
    _chosen("when_not_matched", not_matched, {"insert": builder.when_not_matched_insert_all, "ignore": lambda: None})()
    deletion = {"keep": lambda: None, "delete": lambda: builder.when_not_matched_by_source_delete(by_source_condition)}
    _chosen("when_not_matched_by_source", by_source, deletion)()
    return builder


def _chosen(parameter: str, action: str, actions: Mapping[str, Any]) -> Any:
    if action not in actions:
        raise InvalidInputError(f"{parameter} must be one of {', '.join(map(repr, actions))}, not {action!r}")
    return actions[action]


def _merged_schema(given: Any, stored: pa.Schema) -> pa.Schema:
    """Return the fields of the dataset that the DataFrame has, after checking that it fits them."""
    nullable = pa.schema([field.with_nullable(True) for field in stored])
    appended_schema(given, nullable)
    return pa.schema([stored.field(name) for name in given.fieldNames()])


def conformed(source: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a dataset in the types of a schema."""
    for batch in source.to_batches():
        yield conform_batch(batch, schema, "written")


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: int(counts.get(name, 0)) for name in ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")}


def update(
    uri: str,
    assignments: Mapping[str, str],
    where: str | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Set columns to SQL expressions in the rows for which a condition is true; return the number of rows.

    Parameters
    ----------
    uri
        Path or URI of the dataset.
    assignments
        SQL expressions by column.
    where
        Condition in Lance's SQL; None for all rows.
    storage_options
        Settings of the object store.
    """
    dataset = open_dataset(uri, storage_options=dict(storage_options) if storage_options else None)
    return int(dataset.update(dict(assignments), where=where)["num_rows_updated"])


def delete(uri: str, where: str, *, storage_options: Mapping[str, str] | None = None) -> int:
    """Delete the rows for which a condition is true; return their number.

    Parameters
    ----------
    uri
        Path or URI of the dataset.
    where
        Condition in Lance's SQL.
    storage_options
        Settings of the object store.
    """
    dataset = open_dataset(uri, storage_options=dict(storage_options) if storage_options else None)
    return int(dataset.delete(where)["num_deleted_rows"])
