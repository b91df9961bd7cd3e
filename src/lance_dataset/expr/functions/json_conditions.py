"""Conditions of JSON paths: comparisons of values, and what is true of them together."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lance_dataset.expr.functions.json_values import Scalar, elements, is_container, scalar

__all__ = [
    "Comparison",
    "Constant",
    "Existence",
    "Junction",
    "Operand",
    "Operator",
    "Step",
    "Test",
    "ValuesAt",
    "followed",
]

Step = Callable[[bytes, bytes], Iterator[bytes]]
#: A condition of a value in a document; None if it is neither true nor false.
Test = Callable[[bytes, bytes], "bool | None"]


class Operator(Enum):
    """Comparisons."""

    EQUAL = "=="
    UNEQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    STARTS_WITH = "starts with"


def followed(start: bytes, root: bytes, steps: tuple[Step, ...]) -> list[bytes]:
    """Return the values at some steps from a value of a document."""
    found = [start]
    for step in steps:
        found = [value for place in found for value in step(place, root)]
    return found


class _Container:
    """Stand-in for arrays and objects in comparisons."""


_Value = Scalar | _Container


@dataclass(frozen=True, eq=False)
class Constant:
    """A value that a condition names. Constants are distinct objects, since 1 and True are equal values."""

    value: Scalar

    def __call__(self, value: bytes, root: bytes) -> list[_Value]:
        """Return the only value."""
        return [self.value]


@dataclass(frozen=True)
class ValuesAt:
    """All values at a path from the current value, or from the root; elements of arrays are separate values."""

    is_rooted: bool
    steps: tuple[Step, ...]

    def places(self, value: bytes, root: bytes) -> list[bytes]:
        """Return the values themselves."""
        return followed(root if self.is_rooted else value, root, self.steps)

    def __call__(self, value: bytes, root: bytes) -> list[_Value]:
        """Return the values to compare."""
        found: list[_Value] = []
        for place in self.places(value, root):
            items = elements(place)
            inner = [place] if items is None else items
            found += [_Container() if is_container(item) else scalar(item) for item in inner]
        return found


Operand = Constant | ValuesAt


@dataclass(frozen=True)
class Comparison:
    """A test that is true or unknown as the first pair of values that is either, else false."""

    operator: Operator
    left: Operand
    right: Operand

    def __call__(self, value: bytes, root: bytes) -> bool | None:
        """Compare all pairs of values."""
        others = self.right(value, root)
        for one in self.left(value, root):
            for other in others:
                verdict = _compare(self.operator, one, other)
                if verdict is not False:
                    return verdict
        return False


@dataclass(frozen=True)
class Existence:
    """A test that is true if there are values at a path."""

    values: ValuesAt

    def __call__(self, value: bytes, root: bytes) -> bool:
        """Look for a value."""
        return bool(self.values.places(value, root))


@dataclass(frozen=True)
class Junction:
    """Tests that are true together, or of which one is. The result is unknown if any of them is unknown."""

    tests: tuple[Test, ...]
    is_and: bool

    def __call__(self, value: bytes, root: bytes) -> bool | None:
        """Join the verdicts of all tests."""
        verdicts = [part(value, root) for part in self.tests]
        if None in verdicts:
            return None
        return all(verdicts) if self.is_and else any(verdicts)


def _compare(name: Operator, left: _Value, right: _Value) -> bool | None:
    """Compare two values; values of different kinds are unequal, and other comparisons of them give None."""
    if isinstance(left, _Container) or isinstance(right, _Container):
        return None
    if _kind(left) is not _kind(right):
        return True if name is Operator.UNEQUAL else None
    if name is Operator.STARTS_WITH:
        return left.startswith(right) if isinstance(left, str) and isinstance(right, str) else None
    if left is None or right is None:
        return name in (Operator.EQUAL, Operator.LESS_OR_EQUAL, Operator.GREATER_OR_EQUAL)
    return _OPERATORS[name](left, right)


def _kind(value: Scalar) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


_OPERATORS: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUAL: operator.eq,
    Operator.UNEQUAL: operator.ne,
    Operator.LESS: operator.lt,
    Operator.LESS_OR_EQUAL: operator.le,
    Operator.GREATER: operator.gt,
    Operator.GREATER_OR_EQUAL: operator.ge,
}
