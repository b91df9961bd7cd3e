"""New columns from Spark: computed by fragment in tasks, or joined from a DataFrame. Each is one commit."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_dataset import LanceOperation
from lance_dataset import dataset as open_dataset
from lance_dataset.errors import InvalidInputError, SchemaError
from lance_dataset.fragment import FragmentMetadata
from lance_dataset.spark.batches import conform_batch
from lance_dataset.spark.changes.merge import conformed
from lance_dataset.spark.jobs.fragment_commit import commit_operation
from lance_dataset.spark.jobs.staging import staged
from lance_dataset.spark.jobs.tasks import Work, run_tasks
from lance_dataset.spark.option_parsing import storage_options_text
from lance_dataset.spark.snapshot import Snapshot, pin
from lance_dataset.spark.write_schema import created_schema

__all__ = ["add_columns", "add_columns_from"]

_BATCH_ROWS = 8192


def add_columns(
    spark: Any,
    uri: str,
    values: Mapping[str, str] | Callable[[pa.RecordBatch], pa.RecordBatch],
    schema: Any = None,
    *,
    read_columns: Sequence[str] | None = None,
    batch_size: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Add columns that tasks compute, a fragment each; return the new version.

    Parameters
    ----------
    spark
        Spark session.
    uri
        Path or URI of the dataset.
    values
        SQL expressions by column, or a function of a record batch that returns a record batch of as many rows.
    schema
        Spark schema of the new columns (a StructType or its text), or a `pyarrow.Schema`; required for functions.
    read_columns
        Columns that the function gets; None for all.
    batch_size
        Maximum number of rows in a batch of the function (8192 by default).
    checkpoint
        Folder that all workers can write to. A call that is repeated after a failure, on the same version and with the
        same folder, does not compute the fragments again that were finished.
    storage_options
        Settings of the object store.

    Raises
    ------
    CommitConflictError
        Rows were added or changed meanwhile. With a checkpoint on an unchanged version the work is not lost.
    InvalidInputError, SchemaError
        The function has no schema, or a column exists already.
    TaskError
        A task failed; the message names its fragment. Nothing is committed.
    """
    snapshot, dataset = pin(uri, None, storage_options_text(storage_options))
    arrow = _arrow(schema)
    if callable(values):
        if arrow is None:
            raise InvalidInputError("A function needs the parameter schema, such as 'embedding array<float>'")
        names = arrow.names
    else:
        names = list(values)
        dataset.scanner(columns=dict(values))  # raises if an expression is wrong
    known = [name for name in names if name in dataset.schema.names]
    if known:
        raise SchemaError(f"Column {known[0]!r} exists already; drop it first, or merge the new values")
    work = _Backfill(dataset.fragment_ids(), snapshot, values, arrow)
    work.read_columns = None if read_columns is None else list(read_columns)
    work.batch_size = batch_size or _BATCH_ROWS
    work.folder = _folder(checkpoint, snapshot, names)
    results = run_tasks(spark, work)
    if not results:
        raise InvalidInputError(f"The dataset {uri} has no rows; add the columns with LanceDataset.add_columns")
    fragments = [FragmentMetadata.from_json(text) for text, _ in results]
    operation = LanceOperation.Merge(fragments, results[0][1])
    settings = dict(storage_options) if storage_options else None
    return int(commit_operation(uri, operation, snapshot.version, settings).version)


def _arrow(schema: Any) -> pa.Schema | None:
    if schema is None or isinstance(schema, pa.Schema):
        return schema
    if isinstance(schema, str):
        from pyspark.sql.types import StructType

        schema = StructType.fromDDL(schema)
    return created_schema(schema)


def _folder(checkpoint: str | os.PathLike[str] | None, snapshot: Snapshot, names: list[str]) -> str | None:
    """Return the folder for one version of one dataset and these columns."""
    if checkpoint is None:
        return None
    identity = hashlib.sha256(json.dumps([snapshot.uri, snapshot.branch, snapshot.version, names]).encode()).hexdigest()
    folder = Path(checkpoint, identity[:16])
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


class _Backfill(Work):
    """Columns of one fragment in each task."""

    read_columns: list[str] | None = None
    batch_size = _BATCH_ROWS
    folder: str | None = None

    def __init__(self, pieces: Sequence[int], snapshot: Snapshot, values: Any, schema: pa.Schema | None) -> None:
        super().__init__(pieces)
        self.snapshot = snapshot
        self.values = values
        self.schema = schema

    def describe(self, piece: int) -> str:
        return f"fragment {piece} of version {self.snapshot.version} of {self.snapshot.uri}"

    def run(self, piece: int) -> tuple[str, Any]:
        dataset = self.snapshot.open()
        # The first fragment is always computed: it gives the schema with the ids of the new fields.
        done = Path(self.folder, f"{piece}.json") if self.folder and piece != self.pieces[0] else None
        if done is not None and done.exists():
            return done.read_text(), None
        metadata, schema = self._merged(dataset.get_fragment(piece))
        text = json.dumps(metadata.to_json())
        if done is not None:
            partial = done.with_suffix(f".{os.getpid()}")
            partial.write_text(text)
            partial.replace(done)
        return text, schema

    def _merged(self, fragment: Any) -> Any:
        if not callable(self.values):
            return fragment.merge_columns(dict(self.values))
        return fragment.merge_columns(self._checked, columns=self.read_columns, batch_size=self.batch_size)

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        assert self.schema is not None
        found = self.values(batch)
        if not isinstance(found, pa.RecordBatch) or found.num_rows != batch.num_rows:
            raise InvalidInputError(
                f"The function must return a record batch of {batch.num_rows} rows, like its argument"
            )
        missing = [name for name in self.schema.names if name not in found.schema.names]
        if missing:
            raise SchemaError(f"The function returned no column {missing[0]!r}, which its schema has")
        return conform_batch(found, self.schema, "written")


def add_columns_from(
    df: Any, uri: str, on: str, *, right_on: str | None = None, storage_options: Mapping[str, str] | None = None
) -> int:
    """Add the other columns of a DataFrame by a left outer join; return the new version.

    Parameters
    ----------
    df
        Spark DataFrame with a key and new columns. Rows of the dataset without their key get nulls.
    uri
        Path or URI of the dataset.
    on
        Key column of the dataset.
    right_on
        Key column of `df`; the same name by default.
    storage_options
        Settings of the object store.

    Raises
    ------
    FieldNotFoundError, SchemaError
        A key does not exist, or the dataset has one of the other columns.
    """
    settings = dict(storage_options) if storage_options else None
    dataset = open_dataset(uri, storage_options=settings)
    key = right_on or on
    known = [name for name in df.columns if name in dataset.schema.names and name != key]
    if known:
        raise SchemaError(f"Column {known[0]!r} exists already; drop it first, or use merge_into")
    with staged(df, uri, settings) as source:
        rows = pa.RecordBatchReader.from_batches(source.schema, conformed(source, source.schema))
        dataset.merge(rows, on, right_on=key)
    return int(dataset.version)
