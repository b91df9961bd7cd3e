"""Partitioning of a dataset for Spark: equal shares of the rows, whatever the sizes of the fragments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from lance_dataset.spark.options import ReadOptions

__all__ = ["RowPartition", "RowSlice", "WholeTable", "partition_count", "plan_partitions"]

_ROWS_PER_PARTITION = 512 * 1024
_LEAST_ROWS_PER_PARTITION = 16 * 1024


@dataclass(frozen=True)
class RowSlice:
    """Physical rows ``[start, stop)`` of one fragment."""

    fragment_id: int
    start: int
    stop: int
    whole: bool


@dataclass(frozen=True)
class RowPartition(InputPartition):
    """Input of one Spark task."""

    slices: tuple[RowSlice, ...]


@dataclass(frozen=True)
class WholeTable(InputPartition):
    """Input of the only task of a read that cannot be cut, or is too small to be cut."""


def partition_count(rows: int, options: ReadOptions) -> int:
    """Return the number of partitions for `rows` rows.

    Without options, there are enough partitions for every core of this machine, unless the shares would be too small
    to be worth a task. No share exceeds half a million rows, so that a cluster is used too.
    """
    if options.num_partitions:
        wanted = options.num_partitions
    elif options.rows_per_partition:
        wanted = -(-rows // options.rows_per_partition)
    else:
        for_cores = min(os.cpu_count() or 1, rows // _LEAST_ROWS_PER_PARTITION)
        wanted = max(for_cores, -(-rows // _ROWS_PER_PARTITION))
    return max(1, min(wanted, rows))


def plan_partitions(sizes: Sequence[tuple[int, int]], count: int) -> list[RowPartition]:
    """Cut fragments, laid end to end, into `count` shares that differ by at most one row.

    Parameters
    ----------
    sizes
        Fragment id and number of physical rows, in the order of the dataset.
    count
        Number of partitions.

    Returns
    -------
    list of RowPartition
        Partitions in row order. Shares are empty only if there are fewer rows than partitions.
    """
    total = sum(rows for _, rows in sizes)
    bounds = [total * i // count for i in range(count + 1)]
    slices: list[list[RowSlice]] = [[] for _ in range(count)]
    part, base = 0, 0
    for fragment_id, rows in sizes:
        start = 0
        while start < rows:
            while bounds[part + 1] <= base + start:
                part += 1
            stop = min(rows, bounds[part + 1] - base)
            slices[part].append(RowSlice(fragment_id, start, stop, whole=stop - start == rows))
            start = stop
        base += rows
    return [RowPartition(tuple(part_slices)) for part_slices in slices]
