"""Lookups in indices: which index answers which part of a filter, what that costs, and the rows it finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np

from lance_dataset.index.kinds import KINDS
from lance_dataset.index.open_segments import FieldIndex, IndexedValue
from lance_dataset.index.scalar.conditions import Answer
from lance_dataset.properties import cached_property
from lance_dataset.scan.indexed.conditions import AllOf, AnyOf, ColumnCondition, Node
from lance_dataset.table.address_ranges import AddressRanges
from lance_dataset.table.row_addresses import fragments_of

__all__ = ["Leaf", "Lookup", "lookup_for", "within"]

#: Nanoseconds of each row that an index names, and of each row in a long range that it names.
_ROW_COST = 12.0
_RANGED_ROW_COST = 0.2
#: Rows that one part of a conjunction may name more than the most selective one, to be looked up as well.
_MORE_ROWS = 1 << 12
#: Nanoseconds of checking a row that an index only suspects, where several indices are compared.
_CHECK_COST = 20.0


@dataclass(frozen=True, eq=False)
class Leaf:
    """Lookup of a condition in one index."""

    index: FieldIndex
    asked: ColumnCondition
    #: True if it finds no row for which the filter is not true.
    is_exact: bool

    @cached_property
    def estimate(self) -> int:
        """Upper estimate of the number of rows."""
        return self.index.estimate(self.asked.condition)

    @property
    def cost(self) -> float:
        """Nanoseconds."""
        each = _RANGED_ROW_COST if self.is_ranged else _ROW_COST
        return self.index.cost(self.asked.condition) + each * self.estimate

    @property
    def is_ranged(self) -> bool:
        """True if it finds long ranges of rows, which are read like all rows."""
        return self.index.finds_ranges

    @property
    def fragment_ids(self) -> frozenset[int]:
        """Fragments whose rows are found."""
        return self.index.fragment_ids

    def rows(self) -> AddressRanges:
        """Return the addresses of the rows."""
        return self.index.rows(self.asked.condition)

    @property
    def text(self) -> str:
        """Description of the lookup."""
        return f"[{self.asked.text}]@{self.index.name}({KINDS[self.index.kind].shown})"


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
    def is_ranged(self) -> bool:
        return all(part.is_ranged for part in self.parts)

    @property
    def fragment_ids(self) -> frozenset[int]:
        return frozenset.intersection(*(part.fragment_ids for part in self.parts))

    def rows(self) -> AddressRanges:
        return reduce(AddressRanges.intersection, (part.rows() for part in self.parts))

    @property
    def text(self) -> str:
        return _joined("AND", self.parts)


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
    def is_ranged(self) -> bool:
        return all(part.is_ranged for part in self.parts)

    @property
    def fragment_ids(self) -> frozenset[int]:
        return frozenset.intersection(*(part.fragment_ids for part in self.parts))

    def rows(self) -> AddressRanges:
        return AddressRanges.union([part.rows() for part in self.parts])

    @property
    def text(self) -> str:
        return _joined("OR", self.parts)


@dataclass(frozen=True, eq=False)
class _Within:
    """Rows that a lookup finds in some fragments."""

    lookup: Leaf | _Every | _Some
    fragment_ids: frozenset[int]

    @property
    def is_exact(self) -> bool:
        return self.lookup.is_exact

    @property
    def estimate(self) -> int:
        return self.lookup.estimate

    @property
    def cost(self) -> float:
        return self.lookup.cost

    @property
    def is_ranged(self) -> bool:
        return self.lookup.is_ranged

    def rows(self) -> AddressRanges:
        found = self.lookup.rows()
        return found.without(~np.isin(fragments_of(found.starts), np.array(sorted(self.fragment_ids), np.uint64)))

    @property
    def text(self) -> str:
        return self.lookup.text


def _joined(word: str, parts: Sequence[Lookup]) -> str:
    """Describe lookups in the form of the reference, which joins two at a time."""
    return reduce(lambda one, two: f"{word}({one},{two})", (part.text for part in parts))


Lookup: TypeAlias = "Leaf | _Every | _Some | _Within"


def within(lookup: Lookup, fragment_ids: frozenset[int]) -> Lookup | None:
    """Return a lookup of the rows in some fragments; None if it looks up nothing in these."""
    common = lookup.fragment_ids & fragment_ids
    if common == lookup.fragment_ids or isinstance(lookup, _Within):
        return lookup
    return _Within(lookup, common) if common else None


def lookup_for(node: Node, by_value: Mapping[IndexedValue, tuple[FieldIndex, ...]], scan: float) -> Lookup | None:
    """Return a lookup that finds all rows for which a filter is true; None if indices cannot find them.

    Parameters
    ----------
    node
        What the filter demands.
    by_value
        Indices by what they are of.
    scan
        Nanoseconds of the scan that the lookup would save.
    """
    if isinstance(node, ColumnCondition):
        return _leaf(node, by_value[node.value], scan)
    parts = [lookup_for(part, by_value, scan) for part in node.parts]
    known = [part for part in parts if part is not None]
    if isinstance(node, AnyOf):
        return _Some(tuple(known)) if len(known) == len(parts) else None
    return _selective(node, known)


def _leaf(asked: ColumnCondition, indices: Sequence[FieldIndex], scan: float) -> Leaf | None:
    """Return the lookup in the index that covers most, of several the one that takes least time."""
    fitting = []
    for each in indices:
        answers = ((form, each.answers(form.condition, form.kind)) for form in asked.forms)
        form, answer = next((found for found in answers if found[1] is not Answer.NONE), (asked, Answer.NONE))
        if answer is Answer.NONE or not each.is_worth_opening(scan):
            continue
        typed = each.of_type(asked.kind)
        if typed is not None:
            is_exact = answer is Answer.EXACT and typed.is_exact(form.condition)
            fitting.append(Leaf(typed, form, is_exact))
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    most = max(len(each.fragment_ids) for each in fitting)
    return min(
        (each for each in fitting if len(each.fragment_ids) == most),
        key=lambda each: each.index.opening_cost + each.cost + (0 if each.is_exact else _CHECK_COST * each.estimate),
    )


def _selective(node: AllOf, parts: list[Lookup]) -> Lookup | None:
    """Return a lookup of the selective parts of a conjunction; the others are cheaper to check row by row."""
    if not parts:
        return None
    ordered = sorted(parts, key=lambda part: part.estimate)
    best = ordered[0]
    chosen = [part for part in ordered if part.estimate <= best.estimate + _MORE_ROWS]
    complete = node.is_complete and len(chosen) == len(node.parts)
    return _Every(tuple(chosen), complete and all(part.is_exact for part in chosen))
