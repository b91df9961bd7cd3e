"""Statistics of columns by tasks of Spark: exact ones of all rows, from partial ones of some fragments each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import FieldNotFoundError, nearest_name_hint
from lance_dataset.reports.cells import cell_texts
from lance_dataset.reports.columns import ColumnKind, column_kind, quoted
from lance_dataset.reports.statistics import ColumnStatistics, countable
from lance_dataset.spark.jobs.shares import cores, grouped
from lance_dataset.spark.jobs.tasks import Work, run_tasks
from lance_dataset.spark.option_parsing import storage_options_text
from lance_dataset.spark.snapshot import Snapshot, pin

__all__ = ["column_statistics"]

_SHARES = 4
#: Distinct values of a column, and bytes of them, that tasks send to the driver; more are not counted.
_MOST_DISTINCT = 100_000
_MOST_BYTES = 4 << 20
_LONGEST_VALUE = 200
_ORDERED = (ColumnKind.NUMBER, ColumnKind.TIME, ColumnKind.TEXT, ColumnKind.BOOLEAN)


def column_statistics(
    spark: Any,
    uri: str,
    columns: Sequence[str] | None = None,
    *,
    where: str | None = None,
    version: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> dict[str, ColumnStatistics]:
    """Read columns with tasks, some fragments each, and return their statistics.

    Parameters
    ----------
    spark
        Spark session.
    uri
        Path or URI of the dataset.
    columns
        Names of top-level columns; all by default.
    where
        Condition in Lance's SQL; only rows for which it is true count.
    version
        Version number or tag; the newest version by default.
    storage_options
        Settings of the object store.

    Returns
    -------
    dict
        By column: rows and nulls; of numbers, times, texts and booleans also the number of distinct values, None if
        there are more than 100,000; of all but booleans extremes, as text; of numbers NaNs, mean and standard
        deviation. Histograms are left out.

    Raises
    ------
    FieldNotFoundError
        The dataset has no such column.
    TaskError
        A task failed; the message names its fragments.
    """
    snapshot, dataset = pin(uri, version, storage_options_text(storage_options))
    names = list(dict.fromkeys(dataset.schema.names if columns is None else columns))
    for name in names:
        if name not in dataset.schema.names:
            hint = nearest_name_hint(name, dataset.schema.names)
            raise FieldNotFoundError(f"The dataset has no column {name!r}{hint}")
    dataset.scanner([quoted(name) for name in names], filter=where)  # errors of the condition come before tasks
    fields = [dataset.schema.field(name) for name in names]
    pieces = grouped(dataset.fragment_ids(), _SHARES * cores(spark))
    totals = [_Partial() for _ in fields]
    for partials in run_tasks(spark, _Readings(pieces, snapshot, names, where)):
        for total, partial, each in zip(totals, partials, fields, strict=True):
            total.join(partial, column_kind(each))
    return {each.name: _described(each, total) for each, total in zip(fields, totals, strict=True)}


@dataclass
class _Partial:
    """Statistics of a column in some rows.

    Attributes
    ----------
    rows, nulls, nans
        Counts.
    finite, mean, squares
        Number of finite numbers, their mean, and the sum of their squared distances from it.
    extremes
        Minimum and maximum, or nothing.
    distinct
        The distinct values; None if there are too many.
    """

    rows: int = 0
    nulls: int = 0
    nans: int = 0
    finite: int = 0
    mean: float = 0.0
    squares: float = 0.0
    extremes: pa.Array | None = None
    distinct: pa.Array | None = field(default_factory=lambda: pa.nulls(0))

    def join(self, other: _Partial, kind: ColumnKind) -> None:
        """Add the rows of another one."""
        self.rows += other.rows
        self.nulls += other.nulls
        self.nans += other.nans
        if other.finite:
            finite, apart = self.finite + other.finite, other.mean - self.mean
            self.squares += other.squares + apart * apart * self.finite * other.finite / finite
            self.mean += apart * other.finite / finite
            self.finite = finite
        if other.extremes is not None:
            both = [each for each in (self.extremes, other.extremes) if each is not None]
            self.extremes = _extremes(pa.concat_arrays(both))
        self.distinct = _united(self.distinct, other.distinct) if kind in _ORDERED else None


def _united(first: pa.Array | None, second: pa.Array | None) -> pa.Array | None:
    """Return the distinct values of both; None if they are too many."""
    if first is None or second is None:
        return None
    if not len(first) or not len(second):
        return second if len(second) else first
    both = pc.unique(pa.concat_arrays([first, second]))
    return both if len(both) <= _MOST_DISTINCT and both.nbytes <= _MOST_BYTES else None


def _extremes(present: pa.Array) -> pa.Array:
    found = pc.min_max(present)
    return pa.array([found["min"].as_py(), found["max"].as_py()], present.type)


class _Readings(Work):
    """Partial statistics of some fragments in each task."""

    def __init__(self, pieces: Sequence[list[int]], snapshot: Snapshot, names: list[str], where: str | None) -> None:
        super().__init__(pieces)
        self.snapshot = snapshot
        self.names = names
        self.where = where

    def describe(self, piece: list[int]) -> str:
        return f"the statistics of fragments {piece[0]} to {piece[-1]} of {self.snapshot.uri}"

    def run(self, piece: list[int]) -> list[_Partial]:
        dataset = self.snapshot.open()
        kinds = [column_kind(dataset.schema.field(name)) for name in self.names]
        fragments = [dataset.get_fragment(number) for number in piece]
        totals = [_Partial() for _ in kinds]
        scanner = dataset.scanner([quoted(name) for name in self.names], filter=self.where, fragments=fragments)
        for batch in scanner.to_batches():
            for total, values, kind in zip(totals, batch.columns, kinds, strict=True):
                total.join(_partial(values, kind, counts=total.distinct is not None), kind)
        return totals


def _partial(values: pa.Array, kind: ColumnKind, *, counts: bool) -> _Partial:
    """Return the statistics of an array; times are those of the integers that stand for them."""
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    values = values.cast(countable(values.type))
    found = _Partial(rows=len(values), nulls=values.null_count)
    if kind not in _ORDERED or found.nulls == found.rows:
        return found
    present = values.drop_null()
    if kind is ColumnKind.TIME:
        present = present.cast(pa.int32() if present.type.bit_width == 32 else pa.int64())
    found.distinct = _few(pc.unique(present)) if counts else None
    if kind is ColumnKind.NUMBER:
        numbers = present.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        finite = numbers[np.isfinite(numbers)]
        found.nans, found.finite = int(np.isnan(numbers).sum()), len(finite)
        if len(finite):
            found.mean = float(finite.mean())
            found.squares = float(np.square(finite - found.mean).sum())
        if pa.types.is_floating(present.type):
            present = present.filter(pc.invert(pc.is_nan(present)))
    if len(present) and kind is not ColumnKind.BOOLEAN:
        found.extremes = _extremes(present)
    return found


def _few(distinct: pa.Array) -> pa.Array | None:
    return distinct if len(distinct) <= _MOST_DISTINCT and distinct.nbytes <= _MOST_BYTES else None


def _described(column: pa.Field, total: _Partial) -> ColumnStatistics:
    kind = column_kind(column)
    facts: dict[str, Any] = {}
    if kind in _ORDERED and total.distinct is not None:
        facts["distinct"] = len(total.distinct)
    if kind is ColumnKind.NUMBER and pa.types.is_floating(column.type):
        facts["nans"] = total.nans
    if total.finite:
        facts |= {"mean": total.mean, "deviation": math.sqrt(total.squares / total.finite)}
    if total.extremes is not None:
        shown = total.extremes.cast(column.type) if kind is ColumnKind.TIME else total.extremes
        facts["minimum"], facts["maximum"] = cell_texts(shown, _LONGEST_VALUE).to_pylist()
    return ColumnStatistics(
        column.name, str(column.type), kind.value, total.rows, total.rows, total.nulls, of="none", **facts
    )
