"""Search in FM indices."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import reduce
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.scalar.conditions import (
    AllTexts,
    Answer,
    Condition,
    Text,
    TextCondition,
    TextNeed,
    nothing,
)
from lance_dataset.index.scalar.fm import Partition, open_partition, partition_names
from lance_dataset.locks import SharedLock
from lance_dataset.threads.streams import map_parallel
from lance_dataset.threads.waiting import map_waiting
from lancecodec.errors import CodecError

__all__ = ["FmSearch"]

_Rows = NDArray[np.uint64]

#: Texts whose places in the partitions are kept.
_KEPT_TEXTS = 64
#: Nanoseconds of looking at a partition for a text and for each byte of it, of an occurrence, and of a step from symbol
#: to symbol. Most of them are for memory that is not in the caches of the processor.
_PARTITION_COST = 3e3
_BYTE_COST = 600.0
_OCCURRENCE_COST = 1.5e3
_STEP_COST = 40.0
#: Nanoseconds from which on several threads search.
_PARALLEL_COST = 1e6


class FmSearch:
    """An open segment of an FM index; see `BTreeSearch` for its methods."""

    byte_cost: ClassVar[float] = 3.0

    def __init__(self, folder: IndexFolder, rows_in: Callable[[int], int]) -> None:
        self._parts = _open_parts(folder)
        documents = [part.content.documents for part in self._parts]
        self._counts = np.array([each.num_documents for each in documents], np.int64)
        self._sizes = np.array([each.size for each in documents], np.int64)
        self._ways = np.array([each.way for each in documents], np.int64)
        self._kept: OrderedDict[str, NDArray[np.int64]] = OrderedDict()
        self._lock = SharedLock()
        self.kind: pa.DataType | None = None
        self.nbytes = sum(each.nbytes for each in documents) + 16 * _KEPT_TEXTS * len(self._parts)

    @staticmethod
    def answers(condition: Condition) -> Answer:
        """Return how exactly such an index answers a condition, at best; see `is_exact`."""
        if not isinstance(condition, TextCondition):
            return Answer.NONE
        return Answer.EXACT if condition.is_whole else Answer.CANDIDATES

    def is_exact(self, condition: Condition) -> bool:
        """Return True unless a file stores byte 0 of texts as a space, and the condition has either."""
        if all(part.content.keeps_zeros for part in self._parts):
            return True
        return isinstance(condition, TextCondition) and not any(
            mark in text for text in _texts(condition.need) for mark in " \0"
        )

    def estimate(self, condition: Condition) -> int:
        """Return an upper estimate of the number of rows: how often the texts occur."""
        return self._estimate(condition.need) if isinstance(condition, TextCondition) else 0

    def _estimate(self, need: TextNeed) -> int:
        if isinstance(need, Text):
            ranges = self._ranges(need.content)
            return int(np.minimum(ranges[:, 1] - ranges[:, 0], self._counts).sum())
        parts = [self._estimate(part) for part in need.parts]
        return min(parts, default=0) if isinstance(need, AllTexts) else sum(parts)

    def cost(self, condition: Condition) -> float:
        """Return the nanoseconds of looking up texts, and of the steps from where they occur to known positions."""
        return self._cost(condition.need, condition.is_whole) if isinstance(condition, TextCondition) else 0.0

    def _cost(self, need: TextNeed, is_whole: bool) -> float:
        if isinstance(need, Text):
            look = (_PARTITION_COST + _BYTE_COST * len(need.content)) * len(self._parts)
            return look + float(self._location_costs(self._ranges(need.content)).sum())
        if isinstance(need, AllTexts) and not is_whole:
            return self._cost(min(need.parts, key=self._estimate), is_whole) if need.parts else 0.0
        return sum(self._cost(part, is_whole) for part in need.parts)

    def _location_costs(self, ranges: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the nanoseconds of finding the documents of suffixes in each partition.

        At most all symbols are stepped through.
        """
        counts = ranges[:, 1] - ranges[:, 0]
        found: NDArray[np.float64] = np.minimum(
            counts * (_OCCURRENCE_COST + self._ways * _STEP_COST), self._sizes * _STEP_COST
        )
        return found

    def search(self, condition: Condition) -> _Rows:
        """Return the addresses of rows whose texts satisfy a need.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """
        if not isinstance(condition, TextCondition):
            return nothing()
        return self._search(condition.need, condition.is_whole)

    def _search(self, need: TextNeed, is_whole: bool) -> _Rows:
        if isinstance(need, Text):
            return self._located(self._ranges(need.content))
        parts = sorted(need.parts, key=self._estimate)
        if not isinstance(need, AllTexts):
            return np.unique(np.concatenate([nothing(), *(self._search(part, is_whole) for part in parts)]))
        found = [self._search(part, is_whole) for part in (parts if is_whole else parts[:1])]
        return reduce(np.intersect1d, found) if found else nothing()

    def _ranges(self, text: str) -> NDArray[np.int64]:
        """Return the rows of the suffixes that begin with a text, the first and the end, of each partition."""
        with self._lock:
            known = self._kept.get(text)
            if known is not None:
                self._kept.move_to_end(text)
                return known
        found = np.array([part.find(text) for part in self._parts], np.int64).reshape(-1, 2)
        with self._lock:
            self._kept[text] = found
            while len(self._kept) > _KEPT_TEXTS:
                self._kept.popitem(last=False)
        return found

    def _located(self, ranges: NDArray[np.int64]) -> _Rows:
        """Return the addresses of the rows with the suffixes in a range of each partition."""
        chosen = np.flatnonzero(ranges[:, 1] > ranges[:, 0]).tolist()
        costs = self._location_costs(ranges)[chosen] + _PARTITION_COST
        parallel = float(costs.sum()) > _PARALLEL_COST
        found = map_parallel(
            lambda number: self._parts[number].locate(int(ranges[number, 0]), int(ranges[number, 1])),
            chosen,
            parallel=parallel,
            costs=costs.tolist(),
        )
        return np.concatenate([nothing(), *found])


def _open_parts(folder: IndexFolder) -> list[_Part]:
    """Open all partitions that have documents, several at the same time."""

    def opened(name: str) -> _Part | None:
        table = folder.open(name)
        content = open_partition(table)
        return None if content is None else _Part(table, content)

    names = partition_names(folder)
    if folder.open_input(names[0]).is_remote:
        parts = map_waiting(opened, names, stop_at_error=True)
    else:
        parts = map_parallel(opened, names, parallel=True)
    return [part for part in parts if part is not None]


class _Part:
    """An open partition and its file."""

    def __init__(self, table: IndexTable, content: Partition) -> None:
        self._table = table
        self.content = content

    def find(self, text: str) -> tuple[int, int]:
        """Return the rows of the suffixes that begin with a text, the first and the end."""
        pattern = text.encode().replace(b"\0", bytes([self.content.zero]))
        return self.content.documents.find(pattern)

    def locate(self, start: int, stop: int) -> _Rows:
        """Return the addresses of the rows with some suffixes."""
        found = np.empty(self.content.documents.num_documents, np.uint64)
        try:
            return found[: self.content.documents.locate(start, stop, found)]
        except CodecError as error:
            raise self._table.corrupt(str(error)) from error


def _texts(need: TextNeed) -> Iterator[str]:
    if isinstance(need, Text):
        yield need.content
    else:
        for part in need.parts:
            yield from _texts(part)
