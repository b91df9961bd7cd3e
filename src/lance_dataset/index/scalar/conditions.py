"""Conditions on the values of one column, in the form in which indices answer them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

__all__ = [
    "EVERYTHING",
    "AllTexts",
    "Answer",
    "AnyText",
    "BoxCondition",
    "CaselessTextCondition",
    "Condition",
    "Interval",
    "ItemCondition",
    "KeyCondition",
    "Text",
    "TextCondition",
    "TextNeed",
    "ValueCondition",
    "merged_ranges",
    "nothing",
]


class Answer(Enum):
    """Exactness of the answer of an index to a condition."""

    #: Not at all.
    NONE = 0
    #: It finds all rows for which the condition is true, and maybe others.
    CANDIDATES = 1
    #: It finds just the rows for which the condition is true.
    EXACT = 2


@dataclass(frozen=True)
class Interval:
    """Range of values.

    Attributes
    ----------
    low, high
        Bounds as `ValueOrder.bound` returns them; None for no bound.
    includes_low, includes_high
        True if the bound itself is in the range.
    """

    low: Any = None
    high: Any = None
    includes_low: bool = True
    includes_high: bool = True

    def intersection(self, other: Interval) -> Interval | None:
        """Return the values in both ranges; None if there are none."""
        low, includes_low = _tighter(self.low, self.includes_low, other.low, other.includes_low, lower=True)
        high, includes_high = _tighter(self.high, self.includes_high, other.high, other.includes_high, lower=False)
        found = Interval(low, high, includes_low, includes_high)
        return None if found.is_empty else found

    @property
    def is_empty(self) -> bool:
        """True if no value can be in the range."""
        if self.low is None or self.high is None:
            return False
        return bool(self.low > self.high or (self.low == self.high and not (self.includes_low and self.includes_high)))


def _tighter(one: Any, has_one: bool, two: Any, has_two: bool, *, lower: bool) -> tuple[Any, bool]:
    if one is None or two is None:
        return (two, has_two) if one is None else (one, has_one)
    if one == two:
        return one, has_one and has_two
    return (one, has_one) if (one > two) == lower else (two, has_two)


#: All values.
EVERYTHING = Interval()


@dataclass(frozen=True)
class ValueCondition:
    """Is true for values in some ranges, and for nulls or not; it is never null.

    Attributes
    ----------
    intervals
        The ranges. They may overlap.
    nulls
        True if it holds for nulls.
    """

    intervals: tuple[Interval, ...] = ()
    nulls: bool = False

    def intersection(self, other: ValueCondition) -> ValueCondition:
        """Return the condition that both hold."""
        pairs = (mine.intersection(theirs) for mine in self.intervals for theirs in other.intervals)
        return ValueCondition(tuple(pair for pair in pairs if pair is not None), self.nulls and other.nulls)

    def union(self, other: ValueCondition) -> ValueCondition:
        """Return the condition that one of the two holds."""
        return ValueCondition(self.intervals + other.intervals, self.nulls or other.nulls)

    @property
    def is_selective(self) -> bool:
        """True if every range has two ends, so that few rows may be expected."""
        return all(each.low is not None and each.high is not None for each in self.intervals)


@dataclass(frozen=True, eq=False)
class ItemCondition:
    """Is true for lists with all, or any, of some items; never for null lists.

    Attributes
    ----------
    items
        The items, without nulls.
    every
        True if a list must have all items, False if one is enough.
    negated
        True for the lists, other than null, that do not.
    """

    items: pa.Array
    every: bool
    negated: bool = False


@dataclass(frozen=True)
class Text:
    """The need that a text contains another one, which is not empty."""

    content: str


@dataclass(frozen=True)
class AllTexts:
    """Needs that a text must all satisfy."""

    parts: tuple[TextNeed, ...]


@dataclass(frozen=True)
class AnyText:
    """Needs of which a text must satisfy one."""

    parts: tuple[TextNeed, ...]


TextNeed: TypeAlias = "Text | AllTexts | AnyText"


@dataclass(frozen=True)
class TextCondition:
    """Is true only for texts that satisfy a need; never for nulls.

    Attributes
    ----------
    need
        What texts must contain.
    is_whole
        True if the condition is true for all texts that satisfy the need.
    """

    need: TextNeed
    is_whole: bool


@dataclass(frozen=True)
class CaselessTextCondition:
    """Is true only for texts that satisfy a need, whatever the case of letters; never for nulls.

    Attributes
    ----------
    need
        What texts must contain: ASCII letters and digits.
    """

    need: TextNeed


@dataclass(frozen=True, eq=False)
class KeyCondition:
    """Is true for values that equal one of many keys, floats bit by bit; never for nulls.

    Attributes
    ----------
    keys
        The keys, in the order of `order_of`.
    """

    keys: pa.Array


@dataclass(frozen=True)
class BoxCondition:
    """Is true only for geometries whose boxes have a point in common with a box; never for nulls.

    Attributes
    ----------
    xmin, ymin, xmax, ymax
        The box.
    """

    xmin: float
    ymin: float
    xmax: float
    ymax: float


Condition = ValueCondition | ItemCondition | TextCondition | CaselessTextCondition | KeyCondition | BoxCondition


def merged_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges of positions in order, overlapping ones joined, empty ones left out."""
    found: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if start >= stop:
            continue
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found


def nothing() -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return no rows."""
    return np.empty(0, np.uint64)
