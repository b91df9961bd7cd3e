"""Streaming writes: each batch of a query is one version, and counts once even if the query starts again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    SchemaError,
    UnsupportedError,
)
from lance_dataset.fragment import remove_uncommitted
from lance_dataset.schema import LanceSchema
from lance_dataset.spark.jobs.fragment_commit import commit_append, commit_operation
from lance_dataset.spark.jobs.job_marks import JobMark
from lance_dataset.spark.jobs.shipping import Shipped
from lance_dataset.spark.options import WriteOptions
from lance_dataset.spark.snapshot import newest_or_none
from lance_dataset.spark.writer import (
    LanceWriter,
    WritePlan,
    commit_creation,
    fragments_of,
    operation_of,
    plan_write,
)

__all__ = ["BatchMessage", "LanceStreamWriter"]

_QUERY_ID = "sql.streaming.queryId"


@dataclass(frozen=True)
class BatchMessage(WriterCommitMessage):
    """Result of a task: the metadata of its fragments, as JSON texts, and the query it belongs to."""

    fragments: tuple[str, ...]
    query: str


class LanceStreamWriter(Shipped, DataSourceStreamArrowWriter):
    """Writer of a streaming query in output mode append.

    Parameters
    ----------
    options
        Options of ``df.writeStream``.
    schema
        Spark schema of the data.
    overwrite
        True for the output mode complete, which is refused.
    """

    def __init__(self, options: WriteOptions, schema: Any, overwrite: bool) -> None:
        if overwrite:
            raise UnsupportedError(
                "The output mode complete is not supported; write each result with foreachBatch: "
                "lambda df, _: df.write.format('lance').mode('overwrite').save(path)"
            )
        for name in ("if_exists", "replace_where", "replace_by", "txn_id"):
            if getattr(options, name):
                raise InvalidInputError(f"The option {name!r} does not go with writeStream")
        self.plan = plan_write(options, schema, overwrite=False)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchMessage:
        """Write the rows of one task; nothing becomes visible."""
        context = TaskContext.get()
        query = context.getLocalProperty(_QUERY_ID) if context is not None else None
        return BatchMessage(LanceWriter(self.plan).write(iterator).fragments, query or "")

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Make the rows of a batch visible as one version, unless an earlier run of the query has done so."""
        plan, fragments, mark = self.plan, fragments_of(messages), _mark(messages, batchId)
        if not fragments:
            return
        newest = newest_or_none(plan.options.uri, plan.options.storage_options)
        if newest is not None and mark.committed_in(newest) is not None:
            self._remove(fragments)
            return
        if newest is None:
            try:
                commit_creation(plan, fragments, mark)
                return
            except (AlreadyExistsError, CommitConflictError):
                self.commit(messages, batchId)
                return
        if plan.action == "create":
            _check_created(plan, newest)
        if plan.adds_columns:
            commit_append(plan.options.uri, fragments, plan.schema, plan.store_settings, mark)
            return
        operation = operation_of(replace(plan, action="append"), fragments)
        commit_operation(plan.options.uri, operation, int(newest.version), plan.store_settings, mark)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Remove the files of a failed batch, unless its commit has succeeded."""
        plan, fragments, mark = self.plan, fragments_of(messages), _mark(messages, batchId)
        newest = newest_or_none(plan.options.uri, plan.options.storage_options)
        if newest is None or mark.committed_in(newest) is None:
            self._remove(fragments)

    def _remove(self, fragments: list[Any]) -> None:
        if fragments:
            remove_uncommitted(fragments, self.plan.options.uri, storage_options=self.plan.store_settings)


def _check_created(plan: WritePlan, newest: Any) -> None:
    """Check that a dataset that was created after the plan has the fields of the files that tasks write.

    Raises
    ------
    SchemaError
        Another writer created it with other columns, or in another order.
    """
    stored = {field.name(): field for field in newest.lance_schema.fields()}
    mine = {field.name(): field for field in LanceSchema.from_pyarrow(plan.schema).fields()}
    fits = all(name in mine or field.to_arrow().nullable for name, field in stored.items()) and all(
        name in stored
        and _numbers(field) == _numbers(stored[name])
        and field.to_arrow().type == stored[name].to_arrow().type
        and field.to_arrow().nullable == stored[name].to_arrow().nullable
        for name, field in mine.items()
    )
    if not fits:
        raise SchemaError(
            f"Another writer created {plan.options.uri} while this query started, with other columns or in another "
            "order; start the query again, which then writes by the names of the columns"
        )


def _numbers(field: Any) -> tuple[int, list[Any]]:
    return field.id(), [_numbers(child) for child in field.children()]


def _mark(messages: list[WriterCommitMessage | None], batch: int) -> JobMark:
    queries = {message.query for message in messages if isinstance(message, BatchMessage) and message.query}
    return JobMark(queries.pop() if len(queries) == 1 else "", batch)
