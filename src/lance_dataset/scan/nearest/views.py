"""Vectors of a version that lie in mapped files as kernels read them: exact searches find them without a scan."""

from __future__ import annotations

from threading import Lock

import pyarrow as pa

from lance_dataset.file.container import MAGIC
from lance_dataset.memory import MemoryUse, share_of_memory
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.nearest.search import VectorColumn
from lance_dataset.scan.nearest.vectors import Places, coarse_codes
from lance_dataset.scan.request import ScanRequest
from lancecodec.search.distances import Coarse

__all__ = ["VectorViews", "ViewCollector", "kept_views", "takes_all"]

#: Bytes of the vectors of a column up to which views are kept: more are read ahead of the comparison by a scan.
_MOST_BYTES = 1 << 30
#: Searches of views after which coarse codes are made: this takes about as long as ten searches without them.
_SEARCHES = 4


class VectorViews:
    """All vectors of a column, as views of mapped files, with their coarse codes if they are searched often.

    Parameters
    ----------
    parts
        Arrays, and the places of their rows.
    column
        The column.
    """

    def __init__(self, parts: tuple[tuple[pa.Array, Places], ...], column: VectorColumn) -> None:
        self.parts = parts
        self._column = column
        self._searches = 0
        self._codes: dict[int, Coarse | None] = {}
        self._lock = Lock()

    def begin(self) -> None:
        """Take note of a search by one vector."""
        self._searches += 1

    def codes(self, number: int) -> Coarse | None:
        """Return the coarse codes of a part; None if there are none, or not yet."""
        if self._searches <= _SEARCHES:
            return None
        if number not in self._codes:
            with self._lock:
                if number not in self._codes:
                    self._codes[number] = coarse_codes(self.parts[number][0], self._column)
        return self._codes[number]

    @property
    def nbytes(self) -> int:
        """Bytes of the codes."""
        return sum(each.nbytes for each in list(self._codes.values()) if each is not None)


class ViewCollector:
    """Collector of the arrays that a search reads, as long as all are views of mapped files.

    Parameters
    ----------
    column
        The column.
    """

    def __init__(self, column: VectorColumn) -> None:
        self._column = column
        self._row_bytes = column.dimension * column.width
        self._parts: list[tuple[pa.Array, Places]] | None = None if column.is_lists else []
        self._lock = Lock()

    def add(self, array: pa.Array, places: Places) -> None:
        """Add an array; forget all if it is a copy, or not all of its rows are searched, or it is too much."""
        with self._lock:
            if self._parts is None:
                return
            self._parts.append((array, places))
            size = self._row_bytes * sum(len(each) for each, _ in self._parts)
            if size > share_of_memory(_MOST_BYTES, MemoryUse.CACHE) or not _is_view(array, places):
                self._parts = None

    @property
    def views(self) -> VectorViews | None:
        """All arrays; None if they were forgotten."""
        return None if self._parts is None else VectorViews(tuple(self._parts), self._column)


class _Known:
    """Views of the columns of a version. Its reader keeps them."""

    def __init__(self) -> None:
        self.by_field: dict[int, VectorViews] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the codes of all columns."""
        return sum(each.nbytes for each in list(self.by_field.values()))


def kept_views(reader: TableReader) -> dict[int, VectorViews]:
    """Return the views that searches keep for a version, by the id of the field of the vectors."""
    found = reader.companions.get(_Known) or reader.companions.setdefault(_Known, _Known())
    return found.by_field if isinstance(found, _Known) else {}


def takes_all(request: ScanRequest) -> bool:
    """Return True if a search compares all rows of the version, and nobody counts the steps."""
    restricts = (request.filter, request.fragments, request.row_range, request.rows, request.metrics)
    return all(each is None for each in restricts) and not request.only_indexed


def _is_view(array: pa.Array, places: Places) -> bool:
    """Return True if the elements of an array are a part of a whole file, and all rows are searched."""
    if places.rows is not None or places.mask is not None or places.addresses is not None or places.ids is not None:
        return False
    elements = array.values.storage if isinstance(array.values, pa.ExtensionArray) else array.values
    if array.null_count or elements.null_count:
        return False
    data = elements.buffers()[1]
    if data is None:
        return False
    whole = data
    while whole.parent is not None:
        whole = whole.parent
    return bool(whole.size > data.size and whole.slice(whole.size - len(MAGIC)).to_pybytes() == MAGIC)
