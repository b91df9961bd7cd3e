"""Versions of the dataset that are open, and the rows that filters select."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import pyarrow as pa

from lance_dataset.errors import InvalidInputError
from lance_dataset.reports.columns import quoted
from lance_dataset.reports.references import parse_reference

if TYPE_CHECKING:
    from lance_dataset import LanceDataset

__all__ = ["Rows", "Source"]

_OPEN_VERSIONS = 8
_OPEN_SELECTIONS = 16
#: Rows of a selection whose numbers are kept: 80 MB.
_MOST_SELECTED = 10_000_000
_SELECTED_AT_ONCE = 8192

Value = TypeVar("Value")


class _Recent(Generic[Value]):
    """The values that were used last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._values: OrderedDict[object, Value] = OrderedDict()

    def get(self, key: object, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made if it is not there."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        made = make()
        with self._lock:
            self._values[key] = made
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return made


class Rows:
    """Rows for which a condition is true, found as far as they are asked for.

    Parameters
    ----------
    dataset
        Version to select from.
    condition
        Filter; None for all rows.
    """

    def __init__(self, dataset: LanceDataset, condition: str | None) -> None:
        self._dataset = dataset
        self._condition = condition
        self._lock = Lock()
        self._found: list[np.ndarray] = []
        self._count = 0
        self._scan: Iterator[pa.RecordBatch] | None = None
        self._total: int | None = None

    def numbers(self, start: int, count: int) -> np.ndarray:
        """Return the numbers of the rows from place `start` on; fewer at the end."""
        if self._condition is None:
            return np.arange(min(start, self.total()), min(start + count, self.total()))
        if start + count > _MOST_SELECTED:
            raise InvalidInputError(
                f"only the first {_MOST_SELECTED:,} rows of a filter can be shown; narrow it, or export the rows"
            )
        with self._lock:
            self._find(start + count)
            if len(self._found) != 1:
                self._found = [np.concatenate(self._found) if self._found else np.zeros(0, np.int64)]
            found = self._found[0]
        return found[start : start + count]

    def numbers_at(self, places: np.ndarray) -> np.ndarray:
        """Return the numbers of the rows at some places, which ascend."""
        if self._condition is None or not len(places):
            return places
        return self.numbers(0, int(places[-1]) + 1)[places]

    def total(self) -> int:
        """Return the number of rows."""
        if self._total is None:
            self._total = self._dataset.count_rows(self._condition)
        return self._total

    def _find(self, count: int) -> None:
        if self._scan is None:
            scanner = self._dataset.scanner(["_rowoffset"], filter=self._condition, batch_size=_SELECTED_AT_ONCE)
            self._scan = iter(scanner.to_batches())
        while self._count < count:
            try:
                batch = next(self._scan, None)
            except BaseException:
                self._scan, self._found, self._count = None, [], 0  # a scan that failed looks like one at its end
                raise
            if batch is None:
                return
            self._found.append(batch.column(0).to_numpy().astype(np.int64))
            self._count += batch.num_rows


class Source:
    """The dataset that a server shows.

    Parameters
    ----------
    dataset
        The dataset, in the version to show first.
    """

    def __init__(self, dataset: LanceDataset) -> None:
        self.first = dataset
        self._versions: _Recent[LanceDataset] = _Recent(_OPEN_VERSIONS)
        self._rows: _Recent[Rows] = _Recent(_OPEN_SELECTIONS)

    def dataset(self, reference: str | None) -> LanceDataset:
        """Return a version by number, tag, or branch and number; the first one by default."""
        if reference is None:
            return self.first
        parsed = parse_reference(reference)
        if isinstance(parsed, tuple):
            branch, number = parsed
            place = (None if branch == "main" else branch, number)
            if number is None:
                return self.first.checkout_version(place)
            return self._versions.get(place, lambda: self.first.checkout_version(place))
        if isinstance(parsed, str):  # tags move
            return self.first.checkout_version(parsed)
        return self._versions.get(parsed, lambda: self.first.checkout_version(parsed))

    def rows(self, dataset: LanceDataset, condition: str | None) -> Rows:
        """Return the rows of a version for which a condition is true."""
        key = (dataset.uri, dataset.version, condition)
        return self._rows.get(key, lambda: Rows(dataset, condition))

    @staticmethod
    def column(dataset: LanceDataset, place: int) -> pa.Field:
        """Return the column at a place."""
        if place >= len(dataset.schema):
            raise InvalidInputError(f"there is no column {place}; the version has {len(dataset.schema)}")
        return dataset.schema.field(place)

    @classmethod
    def take(cls, dataset: LanceDataset, rows: np.ndarray, places: list[int]) -> pa.Table:
        """Return columns of rows."""
        names = [quoted(cls.column(dataset, place).name) for place in places]
        return dataset.take(rows, columns=names)
