"""Conditions of JSON paths as programs, which compiled code runs for many values."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lance_dataset.expr.functions.json_columns import described_steps
from lance_dataset.expr.functions.json_conditions import (
    Comparison,
    Constant,
    Existence,
    Junction,
    Operator,
    Test,
    ValuesAt,
)
from lance_dataset.expr.functions.json_path import Every, walked_steps
from lance_dataset.expr.functions.json_values import Scalar
from lancecodec import jsonb

__all__ = ["Program", "program_of"]


@dataclass(frozen=True)
class Program:
    """A condition as `lancecodec.jsonb.test` takes it."""

    texts: bytes
    steps: NDArray[np.int64]
    tests: NDArray[np.int64]


@lru_cache(maxsize=256)
def program_of(test: Test) -> Program | None:
    """Return the program of a condition.

    It may compare values at keys and places below the current value with constants, and ask if there are such values.
    There is no program for other conditions.
    """
    draft = _Draft()
    if not draft.add(test) or draft.most_verdicts > jsonb.MAX_VERDICTS:
        return None
    keys, steps = described_steps([(step, None) if isinstance(step, str) else (None, step) for step in draft.steps])
    tests = np.array(draft.tests, np.int64).reshape(-1, 8)
    tests[:, 6:] += len(keys)
    return Program(keys + b"".join(draft.texts), steps, tests.ravel())


@dataclass
class _Draft:
    """A program while it is written. Its stack holds at most as many verdicts as it has tests."""

    steps: list[str | int] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    tests: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def most_verdicts(self) -> int:
        return len(self.tests)

    def add(self, test: Test) -> bool:
        """Write a test. Return False if it has no program."""
        if isinstance(test, Junction):
            if not all(self.add(part) for part in test.tests):
                return False
            operation = jsonb.AND if test.is_and else jsonb.OR
            self.tests.append((operation, 0, len(test.tests), 0, 0, 0, 0, 0))
            return True
        if isinstance(test, Existence):
            return self._compare(jsonb.EXISTS, test.values, None)
        return isinstance(test, Comparison) and self._add_comparison(test)

    def _add_comparison(self, test: Comparison) -> bool:
        if isinstance(test.left, ValuesAt) and isinstance(test.right, Constant):
            return self._compare(_OPERATIONS[test.operator], test.left, test.right.value)
        swapped = _SWAPPED.get(test.operator)
        if swapped is not None and isinstance(test.left, Constant) and isinstance(test.right, ValuesAt):
            return self._compare(_OPERATIONS[swapped], test.right, test.left.value)
        return False

    def _compare(self, operation: int, values: ValuesAt, constant: Scalar) -> bool:
        steps = walked_steps(values.steps)
        number = _constant(constant)
        if values.is_rooted or steps is None or number is None:
            return False
        levels = 1
        while steps and steps[-1] is Every.ELEMENT and operation != jsonb.EXISTS and levels < jsonb.MAX_LEVELS:
            steps, levels = steps[:-1], levels + 1
        plain = [step for step in steps if isinstance(step, (str, int)) and not isinstance(step, Every)]
        if len(plain) < len(steps):
            return False
        start = sum(map(len, self.texts))
        if isinstance(constant, str):
            self.texts.append(constant.encode())
        end = sum(map(len, self.texts))
        self.tests.append((operation, len(self.steps), len(plain), levels, *number, start, end))
        self.steps += plain
        return True


def _constant(value: Scalar) -> tuple[int, int] | None:
    """Return kind and word of a value, None for an integer beyond 64 bits."""
    if value is None or isinstance(value, bool):
        return (jsonb.NULL_VALUE if value is None else jsonb.TRUE if value else jsonb.FALSE), 0
    if isinstance(value, str):
        return jsonb.STRING, 0
    if isinstance(value, float):
        return jsonb.FLOAT, _from_bits(struct.pack("<d", value))
    if not -(2**63) <= value < 2**64:
        return None
    return (jsonb.INTEGER, value) if value < 2**63 else (jsonb.UNSIGNED, value - 2**64)


_from_bits: Callable[[bytes], int] = lambda bits: int.from_bytes(bits, "little", signed=True)  # noqa: E731
_OPERATIONS = {
    Operator.EQUAL: jsonb.EQUAL,
    Operator.UNEQUAL: jsonb.UNEQUAL,
    Operator.LESS: jsonb.LESS,
    Operator.LESS_OR_EQUAL: jsonb.LESS_OR_EQUAL,
    Operator.GREATER: jsonb.GREATER,
    Operator.GREATER_OR_EQUAL: jsonb.GREATER_OR_EQUAL,
    Operator.STARTS_WITH: jsonb.STARTS_WITH,
}
#: Comparisons of the same values in the other order.
_SWAPPED = {
    Operator.EQUAL: Operator.EQUAL,
    Operator.UNEQUAL: Operator.UNEQUAL,
    Operator.LESS: Operator.GREATER,
    Operator.LESS_OR_EQUAL: Operator.GREATER_OR_EQUAL,
    Operator.GREATER: Operator.LESS,
    Operator.GREATER_OR_EQUAL: Operator.LESS_OR_EQUAL,
}
