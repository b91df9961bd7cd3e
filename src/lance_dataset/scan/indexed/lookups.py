"""Lookups in indices: which index answers which part of a filter, what that costs, and the rows it finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.kinds import KINDS
from lance_dataset.index.open_segments import FieldIndex
from lance_dataset.index.scalar.conditions import Condition
from lance_dataset.scan.indexed.conditions import AllOf, AnyOf, ColumnCondition, Node

__all__ = ["Lookup", "lookup_for"]

#: Nanoseconds of examining a page or a set of an index, and of each row that it names.
_PLACE_COST = 4e4
_ROW_COST = 12.0
#: Rows that one part of a conjunction may name more than the most selective one, to be looked up as well.
_MORE_ROWS = 1 << 12


@dataclass(frozen=True, eq=False)
class _Leaf:
    """Lookup of a condition in one index."""

    index: FieldIndex
    column: str
    condition: Condition

    #: True if it finds no row for which the filter is not true.
    is_exact = True

    @property
    def estimate(self) -> int:
        """Upper estimate of the number of rows."""
        return self.index.estimate(self.condition)

    @property
    def cost(self) -> float:
        """Nanoseconds."""
        return _PLACE_COST * self.index.cost(self.condition) + _ROW_COST * self.estimate

    @property
    def fragment_ids(self) -> frozenset[int]:
        """Fragments whose rows are found."""
        return self.index.fragment_ids

    def rows(self) -> NDArray[np.uint64]:
        """Return the addresses of the rows, ascending."""
        return self.index.rows(self.condition)

    def texts(self) -> Iterator[str]:
        """Describe the lookup."""
        yield f"ScalarIndexQuery: query=[{self.column}]@{self.index.name}({KINDS[self.index.kind].shown})"


@dataclass(frozen=True, eq=False)
class _Every:
    """Rows that all lookups find; there may be more conditions."""

    parts: tuple[Lookup, ...]
    is_exact: bool

    @property
    def estimate(self) -> int:
        return min(part.estimate for part in self.parts)

    @property
    def cost(self) -> float:
        return sum(part.cost for part in self.parts)

    @property
    def fragment_ids(self) -> frozenset[int]:
        return frozenset.intersection(*(part.fragment_ids for part in self.parts))

    def rows(self) -> NDArray[np.uint64]:
        found = (part.rows() for part in self.parts)
        return reduce(lambda one, two: np.intersect1d(one, two, assume_unique=True), found)

    def texts(self) -> Iterator[str]:
        for part in self.parts:
            yield from part.texts()


@dataclass(frozen=True, eq=False)
class _Some:
    """Rows that one of several lookups finds."""

    parts: tuple[Lookup, ...]

    @property
    def is_exact(self) -> bool:
        return all(part.is_exact for part in self.parts)

    @property
    def estimate(self) -> int:
        return sum(part.estimate for part in self.parts)

    @property
    def cost(self) -> float:
        return sum(part.cost for part in self.parts)

    @property
    def fragment_ids(self) -> frozenset[int]:
        return frozenset.intersection(*(part.fragment_ids for part in self.parts))

    def rows(self) -> NDArray[np.uint64]:
        return np.unique(np.concatenate([part.rows() for part in self.parts]))

    def texts(self) -> Iterator[str]:
        for part in self.parts:
            yield from part.texts()


Lookup: TypeAlias = "_Leaf | _Every | _Some"


def lookup_for(node: Node, by_field: Mapping[int, tuple[FieldIndex, ...]], scan: float) -> Lookup | None:
    """Return a lookup that finds all rows for which a filter is true; None if indices cannot find them.

    Parameters
    ----------
    node
        What the filter demands.
    by_field
        Indices by field.
    scan
        Nanoseconds of the scan that the lookup would save.
    """
    if isinstance(node, ColumnCondition):
        indices = by_field[node.field_id]
        fitting = [each for each in indices if each.answers(node.condition) and each.is_worth_opening(scan)]
        if not fitting:
            return None
        most = max(len(each.fragment_ids) for each in fitting)
        fullest = [each for each in fitting if len(each.fragment_ids) == most]
        cheapest = min(fullest, key=lambda each: each.opening_cost)
        return _Leaf(cheapest, node.column, node.condition)
    parts = [lookup_for(part, by_field, scan) for part in node.parts]
    known = [part for part in parts if part is not None]
    if isinstance(node, AnyOf):
        return _Some(tuple(known)) if len(known) == len(parts) else None
    return _selective(node, known)


def _selective(node: AllOf, parts: list[Lookup]) -> Lookup | None:
    """Return a lookup of the selective parts of a conjunction; the others are cheaper to check row by row."""
    if not parts:
        return None
    ordered = sorted(parts, key=lambda part: part.estimate)
    best = ordered[0]
    chosen = [part for part in ordered if part.estimate <= best.estimate + _MORE_ROWS]
    complete = node.is_complete and len(chosen) == len(node.parts)
    return _Every(tuple(chosen), complete and all(part.is_exact for part in chosen))
