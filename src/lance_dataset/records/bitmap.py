"""Sets of numbers of 32 bits, such as the fragments of an index."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, MutableSet
from itertools import islice
from typing import SupportsIndex

from lance_dataset.errors import InvalidInputError

__all__ = ["Bitmap"]

_LIMIT = 1 << 32
#: Numbers that the text of a set has at most.
_SHOWN = 20


class Bitmap(MutableSet[int]):
    """Set of unsigned numbers of 32 bits, which are iterated in ascending order.

    Parameters
    ----------
    values
        Its numbers; None for no numbers.

    Raises
    ------
    InvalidInputError
        A number does not fit.
    TypeError
        A value is not a number.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Iterable[SupportsIndex] | None = None) -> None:
        self._values = set() if values is None else _numbers(values)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, SupportsIndex) and operator.index(value) in self._values

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = ", ".join(map(str, islice(self, _SHOWN)))
        return f"Bitmap({{{shown}}})" if len(self) <= _SHOWN else f"Bitmap({{{shown}, ...}}, len={len(self)})"

    def add(self, value: SupportsIndex) -> None:
        """Add a number."""
        self._values.add(_checked(value))

    def discard(self, value: SupportsIndex) -> None:
        """Remove a number if it is in the set."""
        self._values.discard(operator.index(value))

    def remove(self, value: SupportsIndex) -> None:
        """Remove a number. Raise KeyError if it is not in the set."""
        self._values.remove(operator.index(value))

    def clear(self) -> None:
        """Remove all numbers."""
        self._values.clear()

    def copy(self) -> Bitmap:
        """Return a set with the same numbers."""
        return Bitmap(self._values)

    def union(self, *others: Iterable[SupportsIndex]) -> Bitmap:
        """Return the numbers that are in any of the sets."""
        found = self.copy()
        found.update(*others)
        return found

    def intersection(self, *others: Iterable[SupportsIndex]) -> Bitmap:
        """Return the numbers that are in all of the sets."""
        return Bitmap(self._values.intersection(*map(_numbers, others)))

    def difference(self, *others: Iterable[SupportsIndex]) -> Bitmap:
        """Return the numbers that are in none of the other sets."""
        return Bitmap(self._values.difference(*map(_numbers, others)))

    def symmetric_difference(self, other: Iterable[SupportsIndex]) -> Bitmap:
        """Return the numbers that are in one of the two sets only."""
        return Bitmap(self._values.symmetric_difference(_numbers(other)))

    def issubset(self, other: Iterable[SupportsIndex]) -> bool:
        """Return True if the other set has all numbers of this one."""
        return self._values <= _numbers(other)

    def issuperset(self, other: Iterable[SupportsIndex]) -> bool:
        """Return True if this set has all numbers of the other one."""
        return self._values >= _numbers(other)

    def isdisjoint(self, other: Iterable[SupportsIndex]) -> bool:
        """Return True if the sets have no number in common."""
        return self._values.isdisjoint(_numbers(other))

    def update(self, *others: Iterable[SupportsIndex]) -> None:
        """Add the numbers of other sets."""
        for other in others:
            self._values |= _numbers(other)


def _numbers(values: Iterable[SupportsIndex]) -> set[int]:
    return {_checked(value) for value in values}


def _checked(value: SupportsIndex) -> int:
    number = operator.index(value)
    if not 0 <= number < _LIMIT:
        raise InvalidInputError(f"Bitmap values must fit in an unsigned 32-bit integer, got {number}")
    return number
