"""Frames whose tasks scan a dataset themselves, with half of the conversions of Spark's Python data sources.

Spark copies each row of a data source written in Python twice, and asks two more Python processes to plan. The rows of
`mapInArrow` are copied once. Spark also learns the size of such a frame, so small datasets are broadcast in joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from lance_dataset.spark.jobs.shipping import Shipped
from lance_dataset.spark.narrowing.requests import WIDE_COLUMN, Request
from lance_dataset.spark.narrowing.rule import narrow_scans
from lance_dataset.spark.options import ReadOptions
from lance_dataset.spark.partitions import RowPartition
from lance_dataset.spark.reader import LanceReader, checked_scan, select_fields
from lance_dataset.spark.snapshot import Snapshot
from lance_dataset.spark.types import spark_schema

__all__ = ["frame_of"]

_FEW_ROWS = 64 * 1024


def frame_of(spark: Any, snapshot: Snapshot, options: ReadOptions) -> Any:
    """Return a DataFrame of the rows that options of ``spark.read`` ask for.

    Parameters
    ----------
    spark
        Spark session.
    snapshot
        Version to read.
    options
        What to read of it; the version among them is not looked at.

    Raises
    ------
    LanceError, TypeError
        An option does not fit the dataset, or Spark has no type for a column.
    """
    dataset = snapshot.open()
    fields = select_fields(dataset.schema, options)
    schema = spark_schema(fields)
    checked_scan(dataset, options, fields.names)
    reader = LanceReader(snapshot, dataset, options, schema)
    partitions = reader.partitions()
    stride = -(-_rows(partitions, options, dataset) // len(partitions)) or 1
    # One row for each task; Spark takes the size of the range, which a filter does not change, for that of the frame.
    tasks = spark.range(0, stride * len(partitions), 1, len(partitions)).where(f"id % {stride} = 0")
    if options.pushdown is None:
        narrow_scans(spark)
        tasks = tasks.selectExpr("id", f"'' AS {WIDE_COLUMN}")
    return tasks.mapInArrow(_scanning(_Scan(reader, partitions, stride)), schema)


def _rows(partitions: Sequence[Any], options: ReadOptions, dataset: Any) -> int:
    """Return about how many rows there are at most; searches by words and by indices are taken to find few."""
    slices = [piece for part in partitions if isinstance(part, RowPartition) for piece in part.slices]
    if slices:
        return sum(piece.stop - piece.start for piece in slices)
    rows = int(dataset.count_rows())
    return min(rows, options.limit or (rows if options.order_by else _FEW_ROWS))


class _Scan(Shipped):
    def __init__(self, reader: LanceReader, partitions: Sequence[Any], stride: int) -> None:
        self.reader, self.partitions, self.stride = reader, partitions, stride

    def batches(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            request = Request.read(batch)
            for number in batch.column(0).to_pylist():
                yield from self.reader.read_narrowed(self.partitions[number // self.stride], request)


def _scanning(scan: _Scan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    # Spark sends this function by value: it must need nothing of this module, which a worker may lack.
    def scanned(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from scan.batches(numbers)

    return scanned
