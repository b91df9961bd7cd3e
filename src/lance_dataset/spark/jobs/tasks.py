"""Running one piece of work per task, for changes of a dataset that the driver plans and commits."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from lance_dataset.errors import LanceError
from lance_dataset.spark.jobs.shipping import Shipped
from lance_dataset.spark.jobs.workers import settle

__all__ = ["TaskError", "Work", "run_tasks"]


class TaskError(LanceError, RuntimeError):
    """A task failed; the message names its piece of work. Nothing was committed."""


class Work(Shipped):
    """Pieces of work for tasks; subclasses say what to do with one."""

    def __init__(self, pieces: Sequence[Any]) -> None:
        self.pieces = list(pieces)

    def run(self, piece: Any) -> Any:
        """Do one piece in a task and return a result that can be pickled."""
        raise NotImplementedError

    def describe(self, piece: Any) -> str:
        """Return what to call a piece in messages."""
        return str(piece)

    def one(self, number: int) -> bytes:
        """Do the piece of a number; return its pickled result."""
        try:
            return pickle.dumps(self.run(self.pieces[number]))
        except Exception as error:
            raise TaskError(f"The task of {self.describe(self.pieces[number])} failed: {error}") from error


def run_tasks(spark: Any, work: Work) -> list[Any]:
    """Run all pieces of work, each in a task of its own.

    Parameters
    ----------
    spark
        Spark session.
    work
        The pieces, which are sent to every task.

    Returns
    -------
    list
        Results in the order of the pieces.
    """
    count = len(work.pieces)
    if not count:
        return []
    rows = spark.range(0, count, 1, count).mapInArrow(_runner(work), "number bigint, result binary").collect()
    return [pickle.loads(bytes(row.result)) for row in sorted(rows, key=lambda row: row.number)]


def _runner(work: Work) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            results = [work.one(number) for number in numbers]
            yield pa.record_batch({"number": pa.array(numbers, pa.int64()), "result": pa.array(results, pa.binary())})

    return run
