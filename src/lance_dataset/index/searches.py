"""Kinds of indices that scans use: what an open segment of an index offers, and the class for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder
from lance_dataset.index.scalar.bitmap_search import BitmapSearch, LabelListSearch
from lance_dataset.index.scalar.bloom_filter_search import BloomFilterSearch
from lance_dataset.index.scalar.btree_search import BTreeSearch
from lance_dataset.index.scalar.conditions import Answer, Condition
from lance_dataset.index.scalar.fm_search import FmSearch
from lance_dataset.index.scalar.ngram_search import NgramSearch
from lance_dataset.index.scalar.rtree_search import RTreeSearch
from lance_dataset.index.scalar.zone_map_search import ZoneMapSearch
from lance_dataset.table.address_ranges import AddressRanges

__all__ = ["RANGED", "SEARCHES", "FoundRows", "Search", "VaryingSearch"]

#: Ids or addresses of rows, in any order, each once; or ranges of addresses.
FoundRows: TypeAlias = NDArray[np.uint64] | AddressRanges


class Search(Protocol):
    """An open segment of an index.

    Attributes
    ----------
    byte_cost
        Nanoseconds of opening, for each byte of its files.
    kind
        Type of the values that it is of; None if its files do not say. Then it is set after opening, to the type of
        the column.
    nbytes
        Estimated bytes of memory.
    """

    byte_cost: ClassVar[float]
    kind: pa.DataType | None
    nbytes: int

    def __init__(self, folder: IndexFolder, rows_in: Callable[[int], int]) -> None:
        """Open the files of a segment.

        Parameters
        ----------
        folder
            Folder of the files.
        rows_in
            Returns the number of rows, deleted ones included, of a fragment; 0 if it does not exist.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """

    @staticmethod
    def answers(condition: Condition) -> Answer:
        """Return how exactly such an index answers a condition."""

    def estimate(self, condition: Condition) -> int:
        """Return an upper estimate of the number of rows that `search` returns."""

    def cost(self, condition: Condition) -> float:
        """Return the nanoseconds of `search`, apart from those for each row that it returns."""

    def search(self, condition: Condition) -> FoundRows:
        """Return all rows for which the condition is true, and maybe others if the answer is not exact.

        Rows of fragments that the segment does not cover may be among them, and deleted rows.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """


@runtime_checkable
class VaryingSearch(Protocol):
    """An open segment whose answers are exact with some files only."""

    def is_exact(self, condition: Condition) -> bool:
        """Return True if the answer to a condition is exact; `Search.answers` tells whether it may be."""


#: Kinds that find long ranges of rows.
RANGED: Final = frozenset({"zonemap", "bloomfilter"})
#: Classes by kind, a key of `KINDS`.
SEARCHES: Mapping[str, type[Search]] = {
    "btree": BTreeSearch,
    "bitmap": BitmapSearch,
    "labellist": LabelListSearch,
    "zonemap": ZoneMapSearch,
    "bloomfilter": BloomFilterSearch,
    "rtree": RTreeSearch,
    "ngram": NgramSearch,
    "fm": FmSearch,
}
