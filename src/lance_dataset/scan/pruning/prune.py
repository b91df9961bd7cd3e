"""Pruning by statistics: find the rows of a fragment among which a filter may keep some.

`Pruner` runs the tree of a filter over zones (`file.zones`) instead of rows, with the intervals of
`scan.pruning.intervals`. Anything it does not know may have any value, so a scan returns the same with and without it.

Errors. A filter may raise for some rows: a division by zero, a CAST that overflows. SQL leaves open whether the error
shows if other conditions drop the row. The reference skips what its statistics exclude, errors included, so there an
error depends on how rows were batched. Here pruning never hides an error: a range is skipped only if the filter is
certain to be computed without one. A filter with a part that may fail whatever the statistics say is not pruned at all.

Nulls. The values that count are those that a scan returns. Legacy files (0.1) lose the nulls of types of fixed width,
so ``c IS NULL`` is never true there. The reference treats a batch whose values were all null before they were lost as
null, and answers ``c IS NULL`` with its rows although it returns them as zeros.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.expr.compiled import Filter
from lance_dataset.expr.functions.regex import is_valid_regex
from lance_dataset.expr.tree import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Concatenation,
    Constant,
    Expression,
    FieldAccess,
    IsDistinct,
    IsNull,
    IsTruth,
    Like,
    Literal,
    Negate,
    Not,
    OneOf,
    Or,
    walk,
)
from lance_dataset.expr.type_rules import is_number, is_text
from lance_dataset.file.zones import Zones
from lance_dataset.late_dataclass import dataclass
from lance_dataset.scan.pruning.cast_intervals import cast_always_succeeds, cast_is_monotone, cast_values
from lance_dataset.scan.pruning.intervals import (
    Truth,
    Values,
    all_of,
    any_of,
    compared,
    constant_values,
    distinct,
    has_prefix,
    in_list,
    inverted,
    is_null,
    is_truth,
    truth_of,
    unknown_values,
    values_of,
)
from lance_dataset.scan.row_ranges import RowRanges

__all__ = ["Pruner", "is_total", "may_fail", "may_fail_itself", "may_match"]

Path: TypeAlias = "tuple[str, ...]"

#: Nodes that never raise an error of their own.
_HARMLESS = (
    *(Column, Constant, Literal, FieldAccess, Comparison, IsDistinct, And, Or, Not, IsNull, IsTruth, OneOf, Like),
    *(Concatenation, Case),
)
#: Functions that are defined for all values. Relations of geometries are, unless a value is not a geometry at all.
_TOTAL_FUNCTIONS = frozenset(
    (
        *("lower", "upper", "btrim", "ltrim", "rtrim", "reverse", "length", "octet_length", "bit_length", "ascii"),
        *(
            "strpos",
            "starts_with",
            "ends_with",
            "contains",
            "contains_tokens",
            "isnan",
            "iszero",
            "coalesce",
            "nvl",
            "nullif",
        ),
        *("array_has", "array_has_any", "array_has_all"),
        *("st_intersects", "st_contains", "st_within", "st_touches", "st_crosses", "st_overlaps", "st_covers"),
        *("st_coveredby", "st_disjoint", "st_equals"),
    )
)


class Pruner:
    """A filter as far as statistics can decide it.

    Attributes
    ----------
    paths
        Columns and nested fields whose zones matter.
    """

    def __init__(self, tree: Expression, paths: tuple[Path, ...]) -> None:
        self._tree = tree
        self.paths = paths

    @staticmethod
    def of(filter: Filter | None) -> Pruner | None:
        """Return the pruner of a filter, or None if no statistics could ever exclude a row."""
        return None if filter is None else filter.finding(_pruner)

    def ranges(self, zones: Callable[[Path], Zones | None], num_rows: int, gap: int = 1) -> RowRanges | None:
        """Return the ranges of rows that the filter may keep.

        Parameters
        ----------
        zones
            Returns the zones of a column or nested field, or None if it has none.
        num_rows
            Number of rows of the fragment.
        gap
            Ranges are joined if fewer rows than this lie between them.

        Returns
        -------
        RowRanges or None
            None for all rows.
        """
        found = {path: known for path in self.paths if (known := zones(path)) is not None}
        if not found:
            return None
        bounds, match = may_match(self._tree, found, num_rows)
        return None if match.all() else RowRanges.of(bounds, match, gap)


def _pruner(filter: Filter) -> Pruner | None:
    if filter.tree is None:
        return None
    parts = list(_analysed(filter.tree))
    if any(part is None for part in parts):
        return None
    paths = {part.path: None for part in parts if isinstance(part, Column) and _is_ordered(part.type)}
    return Pruner(filter.tree, tuple(paths)) if paths else None


def is_total(filter: Filter) -> bool:
    """Return True if a filter has a tree, and computing it raises no error whatever the values of the columns."""
    return filter.finding(_is_total)


def _is_total(filter: Filter) -> bool:
    return filter.tree is not None and not may_fail(filter.tree)


def may_match(
    tree: Expression, zones: Mapping[Path, Zones], num_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return whether a filter may keep rows, or fail, in ranges of rows.

    Parameters
    ----------
    tree
        The bound tree of the filter.
    zones
        Zones of columns and nested fields. Zones that do not cover the rows, that have another type than the column,
        or that contradict themselves are ignored.
    num_rows
        Number of rows.

    Returns
    -------
    bounds : int64[n + 1]
        The ranges, from 0 to `num_rows`: the common refinement of all zones.
    match : bool[n]
        False where certainly no row is kept and no error raised.
    """
    usable = {path: known for path, known in zones.items() if _covers(known, num_rows)}
    if not usable:
        return np.array([0, num_rows], np.int64), np.ones(1, bool)
    bounds = np.unique(np.concatenate([known.starts for known in usable.values()]))
    columns = {path: _column_values(known, bounds) for path, known in usable.items()}
    truth = _Analysis(columns, len(bounds) - 1).truth(tree)
    return bounds, truth.true | truth.fails


# -- zones -------------------------------------------------------------------------------------------------------


def _covers(zones: Zones, num_rows: int) -> bool:
    starts, count = zones.starts, len(zones)
    described = (zones.minimum, zones.maximum, zones.may_be_null, zones.may_be_valid, zones.may_be_nan)
    if count < 1 or any(len(member) != count for member in described):
        return False
    return bool(starts[0] == 0 and starts[-1] == num_rows and (np.diff(starts) >= 0).all())


def _column_values(zones: Zones, bounds: NDArray[np.int64]) -> Values:
    """Return the zones of a column as values in finer ranges."""
    arrow_type = zones.minimum.type
    if not _is_ordered(arrow_type) or not zones.maximum.type.equals(arrow_type):
        return unknown_values(arrow_type, len(bounds) - 1, fails=False)
    owners = np.searchsorted(zones.starts, bounds[:-1], side="right") - 1
    valid, nan = zones.may_be_valid[owners], zones.may_be_nan[owners]
    low, high = _sensible(zones.minimum.take(pa.array(owners)), zones.maximum.take(pa.array(owners)))
    return Values(low, high, zones.may_be_null[owners], valid, nan, np.zeros(len(owners), bool))


def _sensible(low: pa.Array, high: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the bounds with impossible ones unknown: NaN, and a minimum above the maximum."""
    nothing = pa.scalar(None, low.type)
    if pa.types.is_floating(low.type):
        low, high = (pc.if_else(pc.is_nan(bound), nothing, bound) for bound in (low, high))
    crossed = pc.fill_null(pc.greater(low, high), False)
    if pc.any(crossed).as_py():
        low, high = (pc.if_else(crossed, nothing, bound) for bound in (low, high))
    return low, high


def _is_ordered(arrow: pa.DataType) -> bool:
    """Return True if Arrow compares values of the type as the engine does."""
    if pa.types.is_float16(arrow):
        return False
    tests = (pa.types.is_boolean, is_number, pa.types.is_date, pa.types.is_time, pa.types.is_timestamp)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(arrow) for test in (*tests, *texts, pa.types.is_duration))


# -- trees -------------------------------------------------------------------------------------------------------


class _Analysis:
    """Evaluates trees over columns whose values are known range by range."""

    def __init__(self, columns: Mapping[Path, Values], count: int) -> None:
        self._columns = columns
        self._count = count

    def truth(self, node: Expression) -> Truth:
        if type(node) in _TRUTH and not _is_opaque(node):
            return _TRUTH[type(node)](self, node)
        return truth_of(self.values(node))

    def values(self, node: Expression) -> Values:
        if _is_opaque(node):
            return unknown_values(node.type, self._count, fails=may_fail(node))
        if isinstance(node, Column):
            known = self._columns.get(node.path)
            if known is None or not known.minimum.type.equals(node.type):
                return unknown_values(node.type, self._count, fails=False)
            return known
        if isinstance(node, Constant):
            return constant_values(node.value, self._count)
        if isinstance(node, Cast):
            return cast_values(self.values(node.operand), node.operand.type, node.target, lenient=node.lenient)
        return values_of(self.truth(node))

    def compared(self, node: Comparison) -> Truth:
        return compared(node.operator, self.values(node.left), self.values(node.right))

    def distinct(self, node: IsDistinct) -> Truth:
        return distinct(self.values(node.left), self.values(node.right), node.negated)

    def conjunction(self, node: And) -> Truth:
        return all_of([self.truth(operand) for operand in node.operands])

    def disjunction(self, node: Or) -> Truth:
        return any_of([self.truth(operand) for operand in node.operands])

    def negation(self, node: Not) -> Truth:
        return inverted(self.truth(node.operand))

    def null_test(self, node: IsNull) -> Truth:
        return is_null(self.values(node.operand), node.negated)

    def truth_test(self, node: IsTruth) -> Truth:
        return is_truth(self.truth(node.operand), node.truth, node.negated)

    def member(self, node: OneOf) -> Truth:
        return in_list(self.values(node.operand), list(node.values), node.negated)

    def prefixed(self, node: Like | Call) -> Truth:
        test = _prefix_test(node)
        if test is None:
            raise TypeError(f"{type(node).__name__} does not test for a prefix")
        found = has_prefix(self.values(test.operand), test.prefix, exactly=test.exactly)
        return inverted(found) if isinstance(node, Like) and node.negated else found


_TRUTH: dict[type[Expression], Callable[[_Analysis, Any], Truth]] = {
    Comparison: _Analysis.compared,
    IsDistinct: _Analysis.distinct,
    And: _Analysis.conjunction,
    Or: _Analysis.disjunction,
    Not: _Analysis.negation,
    IsNull: _Analysis.null_test,
    IsTruth: _Analysis.truth_test,
    OneOf: _Analysis.member,
    Like: _Analysis.prefixed,
    Call: _Analysis.prefixed,
}


def _is_opaque(node: Expression) -> bool:
    """Return True if nothing is known of the values of a node."""
    if isinstance(node, Like | Call):
        return _prefix_test(node) is None
    if isinstance(node, Cast):
        return not cast_is_monotone(node.operand.type, node.target)
    return type(node) not in _TRUTH and not isinstance(node, Column | Constant)


def _analysed(node: Expression) -> Iterator[Expression | None]:
    """Yield the nodes that statistics say something about; None for one that may raise an error in any row."""
    if _is_opaque(node):
        if may_fail(node):
            yield None
        return
    yield node
    if isinstance(node, Constant):  # its literal child only records how it was written
        return
    for child in node.children():
        yield from _analysed(child)


@dataclass(frozen=True)
class _PrefixTest:
    operand: Expression
    prefix: str
    exactly: bool


def _prefix_test(node: Like | Call) -> _PrefixTest | None:
    """Return the text that values must start with for a node to be true; `exactly` if that suffices."""
    if isinstance(node, Call):
        text = _constant_text(node.arguments[1]) if _function_name(node) == "starts_with" else None
        return None if text is None else _PrefixTest(node.arguments[0], text, True)
    pattern = None if node.ignore_case else _constant_text(node.pattern)
    if pattern is None:
        return None
    pieces = re.findall(r"\\[\s\S]|[\s\S]", pattern)
    fixed = next((place for place, piece in enumerate(pieces) if piece in ("%", "_")), len(pieces))
    rest = pieces[fixed:]
    exactly = bool(rest) and set(rest) == {"%"} and "\\" not in pattern
    return _PrefixTest(node.operand, "".join(piece[-1] for piece in pieces[:fixed]), exactly)


def _function_name(node: Call) -> str | None:
    return None if node.function is None else node.function.name


def _constant_text(node: Expression) -> str | None:
    if not isinstance(node, Constant) or not is_text(node.type):
        return None
    text = node.value.as_py()
    return text if isinstance(text, str) else None


def may_fail(node: Expression) -> bool:
    """Return True if computing a node may raise an error for some values of the columns."""
    return any(may_fail_itself(part) for part in walk(node))


def may_fail_itself(node: Expression) -> bool:
    """Return True if computing a node from the values of its operands may raise an error."""
    if isinstance(node, Cast):
        return not node.lenient and not cast_always_succeeds(node.operand.type, node.target)
    if isinstance(node, Call):
        if _function_name(node) in ("regexp_like", "regexp_match"):
            return not _has_valid_regex(node)
        return _function_name(node) not in _TOTAL_FUNCTIONS
    if isinstance(node, Negate):
        return bool(pa.types.is_decimal(node.type))
    if isinstance(node, Arithmetic):
        return _arithmetic_may_fail(node)
    return not isinstance(node, _HARMLESS)


def _has_valid_regex(node: Call) -> bool:
    texts = [_constant_text(argument) for argument in node.arguments[1:]]
    known = [text for text in texts if text is not None]
    return len(known) == len(texts) and is_valid_regex(*known)


def _arithmetic_may_fail(node: Arithmetic) -> bool:
    if pa.types.is_floating(node.type):
        return False
    if not pa.types.is_integer(node.type) or not pa.types.is_integer(node.left.type):
        return True
    if node.operator not in ("/", "%"):
        return False  # integers wrap
    divisor = node.right.value.as_py() if isinstance(node.right, Constant) else 0
    return divisor in (0, -1)
