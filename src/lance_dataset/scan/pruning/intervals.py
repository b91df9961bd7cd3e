"""Interval analysis of expressions: the possible values and truth values in each range of rows.

This is an abstract interpretation with intervals (Cousot and Cousot 1977) of what `lance_dataset.expr` computes, for
all ranges together. Every operation takes the possible inputs of each range and returns a superset of the possible
outputs. Values are ordered as in the engine's comparisons: NaN equals itself and is greater than everything else, and
zeros of both signs are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.late_dataclass import dataclass

__all__ = [
    "Truth",
    "Values",
    "all_of",
    "any_of",
    "compared",
    "constant_values",
    "distinct",
    "has_prefix",
    "in_list",
    "inverted",
    "is_null",
    "is_truth",
    "truth_of",
    "unknown_values",
    "values_of",
]

Flags: TypeAlias = "NDArray[np.bool_]"

#: True if an operator holds for a left side that is less than, equal to, or greater than the right side.
_HOLDS = {
    "=": (False, True, False),
    "!=": (True, False, True),
    "<": (True, False, False),
    "<=": (True, True, False),
    ">": (False, False, True),
    ">=": (False, True, True),
}
#: From this number of values on, IN ranks the values instead of comparing them one by one.
_MANY_ITEMS = 8


@dataclass(frozen=True)
class Values:
    """Possible values of an expression in each of n ranges.

    Attributes
    ----------
    minimum, maximum
        Bounds of the valid values other than NaN: n values, or one for all ranges; null if unknown.
    null, number, nan
        bool[n]: True if there may be a null, a valid value other than NaN, a NaN.
    fails
        bool[n]: True if computing a value may raise an error.
    """

    minimum: pa.Array | pa.Scalar
    maximum: pa.Array | pa.Scalar
    null: Flags
    number: Flags
    nan: Flags
    fails: Flags

    @property
    def valid(self) -> Flags:
        """True for each range that may contain a valid value."""
        return self.number | self.nan


@dataclass(frozen=True)
class Truth:
    """Possible results of a boolean expression in each of n ranges.

    Attributes
    ----------
    true, false, null
        bool[n]: True if some row may have this result.
    fails
        bool[n]: True if computing it may raise an error.
    """

    true: Flags
    false: Flags
    null: Flags
    fails: Flags


# -- values ------------------------------------------------------------------------------------------------------


def unknown_values(arrow_type: pa.DataType, count: int, *, fails: bool) -> Values:
    """Return values about which nothing is known."""
    nothing, anything = pa.scalar(None, arrow_type), np.ones(count, bool)
    nan = np.full(count, pa.types.is_floating(arrow_type))
    return Values(nothing, nothing, anything, anything, nan, np.full(count, fails))


def constant_values(value: pa.Scalar, count: int) -> Values:
    """Return the same value in every row."""
    is_nan = pa.types.is_floating(value.type) and value.is_valid and value.as_py() != value.as_py()
    bound = pa.scalar(None, value.type) if is_nan else value
    flags = [np.full(count, flag) for flag in (not value.is_valid, value.is_valid and not is_nan, is_nan, False)]
    return Values(bound, bound, *flags)


def values_of(truth: Truth) -> Values:
    """Convert truth to boolean values."""
    return Values(pa.array(~truth.false), pa.array(truth.true), truth.null, *_valid_flags(truth), truth.fails)


def _valid_flags(truth: Truth) -> tuple[Flags, Flags]:
    valid = truth.true | truth.false
    return valid, np.zeros_like(valid)


def truth_of(values: Values) -> Truth:
    """Convert boolean values to truth."""
    number = values.number
    true = number & _settled(values.maximum, number, unknown=True)
    false = number & ~_settled(values.minimum, number, unknown=False)
    return Truth(true, false, values.null, values.fails)


def _settled(datum: Any, like: Flags, *, unknown: bool) -> Flags:
    """Convert a boolean array or scalar of Arrow to flags."""
    if isinstance(datum, pa.Scalar):
        return np.full(like.shape, datum.as_py() if datum.is_valid else unknown)
    return np.asarray(datum.fill_null(unknown).to_numpy(zero_copy_only=False))


# -- comparisons -------------------------------------------------------------------------------------------------


def compared(operator: str, left: Values, right: Values) -> Truth:
    """Compute ``left operator right`` for values of one type."""
    outcomes = (_may_be_less(left, right), _may_be_equal(left, right), _may_be_less(right, left))
    true, false = np.zeros_like(left.number), np.zeros_like(left.number)
    for outcome, holds in zip(outcomes, _HOLDS[operator], strict=True):
        if holds:
            true = true | outcome
        else:
            false = false | outcome
    return Truth(true, false, left.null | right.null, left.fails | right.fails)


def _may_be_less(left: Values, right: Values) -> Flags:
    numbers = left.number & right.number & _less(left.minimum, right.maximum, left.number, unknown=True)
    return numbers | (left.number & right.nan)


def _may_be_equal(left: Values, right: Values) -> Flags:
    apart = _less(left.maximum, right.minimum, left.number, unknown=False)
    apart |= _less(right.maximum, left.minimum, left.number, unknown=False)
    return (left.number & right.number & ~apart) | (left.nan & right.nan)


def _less(left: Any, right: Any, like: Flags, *, unknown: bool) -> Flags:
    """Return where one bound is less than another; `unknown` where one of them is null."""
    if any(isinstance(bound, pa.Scalar) and not bound.is_valid for bound in (left, right)):
        return np.full(like.shape, unknown)
    return _settled(pc.less(left, right), like, unknown=unknown)


def distinct(left: Values, right: Values, negated: bool) -> Truth:
    """Compute ``left IS [NOT] DISTINCT FROM right``."""
    equal = compared("=", left, right)
    same = equal.true | (left.null & right.null)
    differ = equal.false | (left.null & right.valid) | (left.valid & right.null)
    true, false = (same, differ) if negated else (differ, same)
    return Truth(true, false, np.zeros_like(true), equal.fails)


def in_list(values: Values, items: Sequence[pa.Scalar], negated: bool) -> Truth:
    """Compute ``values [NOT] IN items``, which is null instead of false if one of the items is null."""
    known = [constant_values(item, len(values.null)) for item in items if item.is_valid]
    has_null = len(known) < len(items)
    if len(known) < _MANY_ITEMS or any(item.nan.any() for item in known) or isinstance(values.minimum, pa.Scalar):
        tests = [compared("=", values, item) for item in known]
        found, missed = np.zeros_like(values.null), values.valid
        for test in tests:
            found, missed = found | test.true, missed & test.false
    else:
        found, missed = _among_many(values, [item for item in items if item.is_valid])
    null = values.null | missed if has_null else values.null
    truth = Truth(found, np.zeros_like(missed) if has_null else missed, null, values.fails)
    return inverted(truth) if negated else truth


def _among_many(values: Values, items: Sequence[pa.Scalar]) -> tuple[Flags, Flags]:
    """Return whether values may be among the items, and whether they may not be; no item may be null or NaN."""
    count, size = len(items), len(values.null)
    ends = pa.concat_arrays([pa.repeat(item, 1) for item in items] + [values.minimum, values.maximum])
    if pa.types.is_floating(ends.type):
        ends = pc.add(ends, pa.scalar(0.0, ends.type))  # one rank for both zeros
    ranks = np.asarray(pc.rank(ends, "ascending", tiebreaker="dense")).astype(np.int64)
    known = np.asarray(pc.is_valid(ends))
    low = np.where(known[count : count + size], ranks[count : count + size], -1)
    high = np.where(known[count + size :], ranks[count + size :], len(ends) + 1)
    ordered = np.append(np.sort(ranks[:count]), len(ends) + 2)
    inside = ordered[np.searchsorted(ordered, low)] <= high
    return values.number & inside, (values.number & ~(inside & (low == high))) | values.nan


def has_prefix(values: Values, prefix: str, *, exactly: bool) -> Truth:
    """Test whether text starts with a prefix; if `exactly` is false, the prefix is necessary but may not suffice."""
    bounds = (values.minimum, values.maximum)
    if any(isinstance(bound, pa.Scalar) for bound in bounds):
        return Truth(values.number, values.number, values.null, values.fails)
    start = pa.scalar(prefix, values.minimum.type)
    like = values.number
    low, high = (_settled(pc.starts_with(bound, pattern=prefix), like, unknown=False) for bound in bounds)
    before = _settled(pc.less(values.maximum, start), like, unknown=False)
    after = _settled(pc.greater(values.minimum, start), like, unknown=False) & ~low
    # every text between two texts with the prefix has it too
    false = like & ~(low & high) if exactly else like
    return Truth(like & ~before & ~after, false, values.null, values.fails)


# -- logic -------------------------------------------------------------------------------------------------------


def inverted(truth: Truth) -> Truth:
    """Compute NOT."""
    return replace(truth, true=truth.false, false=truth.true)


def all_of(operands: Sequence[Truth]) -> Truth:
    """Compute AND."""
    true, false, null = operands[0].true, operands[0].false, operands[0].null
    fails = operands[0].fails
    for operand in operands[1:]:
        # the result is null if no operand is false and at least one is null
        null = (null & (operand.true | operand.null)) | (true & operand.null)
        true, false, fails = true & operand.true, false | operand.false, fails | operand.fails
    return Truth(true, false, null, fails)


def any_of(operands: Sequence[Truth]) -> Truth:
    """Compute OR."""
    return inverted(all_of([inverted(operand) for operand in operands]))


def is_null(operand: Values, negated: bool) -> Truth:
    """Compute ``IS [NOT] NULL``."""
    true, false = (operand.valid, operand.null) if negated else (operand.null, operand.valid)
    return Truth(true, false, np.zeros_like(true), operand.fails)


def is_truth(operand: Truth, truth: bool, negated: bool) -> Truth:
    """Compute ``IS [NOT] TRUE`` and ``IS [NOT] FALSE``."""
    same, other = (operand.true, operand.false) if truth else (operand.false, operand.true)
    found = Truth(same, other | operand.null, np.zeros_like(same), operand.fails)
    return inverted(found) if negated else found
