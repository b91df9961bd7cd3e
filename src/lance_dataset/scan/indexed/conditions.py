"""Filters as conditions that indices can answer.

Negations are moved down to the conditions on single columns (De Morgan's laws hold in three-valued logic), where they
become other ranges of values. So an answer consists only of the rows for which a condition is true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import FieldNotFoundError
from lance_dataset.expr.condition_text import condition_text
from lance_dataset.expr.tree import (
    And,
    Call,
    Column,
    Comparison,
    Constant,
    Expression,
    IsNull,
    IsTruth,
    Like,
    Not,
    OneOf,
    Or,
)
from lance_dataset.index.open_segments import IndexedValue
from lance_dataset.index.scalar.conditions import (
    EVERYTHING,
    AllTexts,
    AnyText,
    Condition,
    Interval,
    ItemCondition,
    TextCondition,
    ValueCondition,
)
from lance_dataset.index.scalar.value_order import ValueOrder, order_of
from lance_dataset.scan.indexed.accessors import accessed_value
from lance_dataset.scan.indexed.boxes import GEOMETRY_RELATIONS, box_condition
from lance_dataset.scan.indexed.text_conditions import text_condition
from lance_dataset.types.schema import Schema

__all__ = ["AllOf", "AnyOf", "ColumnCondition", "Node", "conditions_in", "conditions_of"]

_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_LIST_FUNCTIONS = {"array_has": True, "array_contains": True, "array_has_all": True, "array_has_any": False}


_LAST_CHARACTER = chr(0x10FFFF)


@dataclass(frozen=True, eq=False)
class ColumnCondition:
    """A condition on one column.

    Attributes
    ----------
    value
        What the condition is on: a field, or a path inside its JSON documents.
    kind
        Type of the values.
    write
        Returns the condition as text, for plans.
    condition
        The condition.
    weaker
        Another one that is true wherever it is, for indices that cannot answer it; None if none is known.
    """

    value: IndexedValue
    kind: pa.DataType
    write: Callable[[], str]
    condition: Condition
    weaker: TextCondition | None = None

    @property
    def text(self) -> str:
        """The condition as text."""
        return self.write()

    @property
    def forms(self) -> tuple[ColumnCondition, ...]:
        """The condition, and what to ask an index that cannot answer it."""
        return (self,) if self.weaker is None else (self, replace(self, condition=self.weaker, weaker=None))


@dataclass(frozen=True, eq=False)
class AllOf:
    """Conditions that all must hold.

    Attributes
    ----------
    parts
        The conditions.
    is_complete
        True if nothing else must hold.
    """

    parts: tuple[Node, ...]
    is_complete: bool


@dataclass(frozen=True, eq=False)
class AnyOf:
    """Conditions of which one must hold."""

    parts: tuple[Node, ...]


Node: TypeAlias = "ColumnCondition | AllOf | AnyOf"
_Condition: TypeAlias = tuple[Expression, Callable[[ValueOrder], Condition | None]]


def conditions_of(tree: Expression, schema: Schema, has_index: Callable[[IndexedValue], bool]) -> Node | None:
    """Return what a filter demands of columns with an index; None if that is nothing.

    Parameters
    ----------
    tree
        The filter, bound to the schema.
    schema
        Schema of the table.
    has_index
        Returns True for values with an index.
    """
    return _Reading(schema, has_index).read(tree, negated=False)


def conditions_in(tree: Expression, schema: Schema) -> list[ColumnCondition]:
    """Return all conditions of a filter that some index could answer, whatever the filter combines them to."""
    return list(_Reading(schema, lambda _: True).leaves(tree, negated=False))


class _Reading:
    def __init__(self, schema: Schema, has_index: Callable[[IndexedValue], bool]) -> None:
        self._schema = schema
        self._has_index = has_index

    def read(self, node: Expression, *, negated: bool) -> Node | None:
        if isinstance(node, Not):
            return self.read(node.operand, negated=not negated)
        if isinstance(node, And | Or):
            parts = [self.read(operand, negated=negated) for operand in node.operands]
            return _all_of(parts) if isinstance(node, And) != negated else _any_of(parts)
        return self._leaf(node, negated)

    def leaves(self, node: Expression, *, negated: bool) -> Iterator[ColumnCondition]:
        """Yield the conditions that a filter consists of."""
        if isinstance(node, Not):
            yield from self.leaves(node.operand, negated=not negated)
        elif isinstance(node, And | Or):
            for operand in node.operands:
                yield from self.leaves(operand, negated=negated)
        elif isinstance(found := self._leaf(node, negated), ColumnCondition):
            yield found

    def _leaf(self, node: Expression, negated: bool) -> Node | None:
        found = self._condition(node, negated)
        if found is None:
            return None
        operand, make = found
        value = self._value(operand)
        if value is None or not self._has_index(value):
            return None
        condition = make(order_of(operand.type))
        if condition is None:
            return None
        weaker = None
        if not negated and isinstance(condition, ValueCondition) and (contained := text_condition(node)) is not None:
            weaker = contained[1] if isinstance(contained[1], TextCondition) else None
        write = partial(condition_text, Not(node) if negated else node)
        return ColumnCondition(value, operand.type, write, condition, weaker)

    def _value(self, operand: Expression) -> IndexedValue | None:
        """Return what an index must be of to answer conditions on an operand; None if no index can."""
        if isinstance(operand, Call):
            return accessed_value(operand, self._schema)
        if not isinstance(operand, Column):
            return None
        try:
            field = self._schema.descend(operand.path)[-1]
        except FieldNotFoundError:  # a column of the system
            return None
        return IndexedValue(field.id) if field.storage_type == operand.type else None

    def _condition(self, node: Expression, negated: bool) -> _Condition | None:
        """Return the operand of a condition, and what makes the condition on its values."""
        if isinstance(node, Comparison):
            return self._comparison(node, negated)
        if isinstance(node, OneOf):
            return self._in_list(node, negated)
        if isinstance(node, IsNull | IsTruth) and not negated and (contained := _text(node)) is not None:
            return contained
        if isinstance(node, IsNull):
            wants_null = not (node.negated ^ negated)
            return node.operand, lambda _: ValueCondition(() if wants_null else (EVERYTHING,), wants_null)
        if isinstance(node, IsTruth):
            return self._truth(node, negated)
        if isinstance(node, Column | Call) and pa.types.is_boolean(node.type) and self._value(node) is not None:
            return node, lambda order: _points([order.bound(pa.scalar(not negated))])
        if isinstance(node, Call) and node.name in _LIST_FUNCTIONS:
            return self._items(node, negated)
        if isinstance(node, Call) and node.name in GEOMETRY_RELATIONS and not negated:
            return _box(node)
        prefix = None if negated else _prefix(node)
        if prefix is not None:
            return node.children()[0], lambda _: _starting_with(prefix)
        return None if negated else _text(node)

    def _comparison(self, node: Comparison, negated: bool) -> _Condition | None:
        column, constant, operator = node.left, node.right, node.operator
        if isinstance(column, Constant):
            column, constant, operator = constant, column, _FLIPPED.get(operator, operator)
        if operator not in _NEGATED or not isinstance(constant, Constant) or constant.type != column.type:
            return None
        value, operator = constant.value, _NEGATED[operator] if negated else operator
        return column, lambda order: _compared(operator, value, order)

    def _in_list(self, node: OneOf, negated: bool) -> _Condition | None:
        if pa.types.is_floating(node.values.type) and pc.any(pc.is_nan(node.values)).as_py():
            return None
        values = list(node.values)
        if not (node.negated ^ negated):
            return node.operand, lambda order: _one_of(values, order)
        return node.operand, lambda order: _none_of(values, order)

    def _truth(self, node: IsTruth, negated: bool) -> _Condition | None:
        inverted = node.negated ^ negated
        value = pa.scalar(node.truth ^ inverted)
        return node.operand, lambda order: ValueCondition(_points([order.bound(value)]).intervals, inverted)

    def _items(self, node: Call, negated: bool) -> _Condition | None:
        if len(node.arguments) != 2 or not isinstance(node.arguments[1], Constant):
            return None
        column, value = node.arguments[0], node.arguments[1].value
        if not value.is_valid or not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            return None
        kind = column.type.value_type
        is_list = pa.types.is_list(value.type) or pa.types.is_large_list(value.type)
        if not is_list and value.type != kind:
            return None
        items = value.values if is_list else pa.array([value], kind)
        if items.type != kind or items.null_count or not len(items):
            return None
        if pa.types.is_floating(kind) and pc.any(pc.or_(pc.equal(items, pa.scalar(0, kind)), pc.is_nan(items))).as_py():
            return None  # zeros of either sign are equal, but different keys, and so are NaNs
        condition = ItemCondition(items, _LIST_FUNCTIONS[node.name], negated)
        return column, lambda _: condition


def _box(node: Call) -> _Condition | None:
    found = box_condition(node)
    if found is None:
        return None
    column, condition = found
    return column, lambda _: condition


def _text(node: Expression) -> _Condition | None:
    found = text_condition(node)
    if found is None:
        return None
    column, condition = found
    return column, lambda _: condition


def _prefix(node: Expression) -> str | None:
    """Return the text that values must start with, and need only start with; None for other conditions."""
    if isinstance(node, Like) and not node.negated and not node.ignore_case and isinstance(node.pattern, Constant):
        pattern = node.pattern.value.as_py()
        literal = pattern[:-1] if isinstance(pattern, str) and pattern.endswith("%") else ""
        return literal if literal and not set(literal) & set("%_\\") else None
    if isinstance(node, Call) and node.name == "starts_with" and len(node.arguments) == 2:
        value = node.arguments[1]
        text = value.value.as_py() if isinstance(value, Constant) else None
        return text if isinstance(text, str) and text else None
    return None


def _starting_with(prefix: str) -> ValueCondition:
    """Return the texts with a prefix: from the prefix to the first text after all of those."""
    stem = prefix
    while stem and stem[-1] == _LAST_CHARACTER:
        stem = stem[:-1]
    if not stem:
        return ValueCondition((Interval(prefix, None),))
    following = ord(stem[-1]) + 1
    after = stem[:-1] + chr(0xE000 if following == 0xD800 else following)  # surrogates are no characters
    return ValueCondition((Interval(prefix, after, includes_high=False),))


def _all_of(parts: Sequence[Node | None]) -> Node | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    whole = len(known) == len(parts)
    flat: list[Node] = []
    for part in known:
        if isinstance(part, AllOf):
            flat += part.parts
            whole &= part.is_complete
        else:
            flat.append(part)
    joined = _joined(flat, ValueCondition.intersection, " AND ")
    return joined[0] if whole and len(joined) == 1 else AllOf(tuple(joined), whole)


def _any_of(parts: Sequence[Node | None]) -> Node | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    flat: list[Node] = []
    for part in known:
        flat += part.parts if isinstance(part, AnyOf) else (part,)
    joined = _joined(flat, ValueCondition.union, " OR ")
    return joined[0] if len(joined) == 1 else AnyOf(tuple(joined))


def _joined(
    nodes: Sequence[Node], join: Callable[[ValueCondition, ValueCondition], ValueCondition], word: str
) -> list[Node]:
    """Join the conditions on the same values."""
    by_value: dict[tuple[IndexedValue, pa.DataType], list[ColumnCondition]] = {}
    others: list[Node] = []
    for node in nodes:
        if isinstance(node, ColumnCondition) and isinstance(node.condition, ValueCondition):
            by_value.setdefault((node.value, node.kind), []).append(node)
        else:
            others.append(node)
    joined: list[Node] = []
    for (value, kind), same in by_value.items():
        condition = reduce(join, [each.condition for each in same if isinstance(each.condition, ValueCondition)])
        write = same[0].write if len(same) == 1 else partial(_joined_text, word, same)
        weaker = _weaker(same, is_union=join == ValueCondition.union)
        joined.append(ColumnCondition(value, kind, write, condition, weaker))
    return joined + others


def _joined_text(word: str, conditions: Sequence[ColumnCondition]) -> str:
    return word.join(each.text for each in conditions)


def _weaker(joined: Sequence[ColumnCondition], *, is_union: bool) -> TextCondition | None:
    """Return what is true of texts wherever one of several conditions is, or all are."""
    known = [each.weaker for each in joined if each.weaker is not None]
    if not known or (is_union and len(known) < len(joined)):
        return None
    needs = tuple(each.need for each in known)
    return known[0] if len(joined) == 1 else TextCondition(AnyText(needs) if is_union else AllTexts(needs), False)


def _compared(operator: str, value: pa.Scalar, order: ValueOrder) -> ValueCondition:
    """Return the values that compare with a constant as wanted; none compares with null."""
    if not value.is_valid:
        return ValueCondition()
    if pa.types.is_floating(value.type):
        return _compared_floats(operator, value, order)
    low, high = _equal_bounds(value, order)
    below, above = Interval(None, low, includes_high=False), Interval(high, None, includes_low=False)
    intervals = {
        "=": (Interval(low, high),),
        "!=": (below, above),
        "<": (below,),
        "<=": (Interval(None, high),),
        ">": (above,),
        ">=": (Interval(low, None),),
    }
    return ValueCondition(intervals[operator])


def _compared_floats(operator: str, value: pa.Scalar, order: ValueOrder) -> ValueCondition:
    """Compare floats as the engine does: NaN of either sign equals NaN, and is greater than all numbers.

    In the order of indices, NaN with the sign bit comes before all numbers, and the other after them.
    """
    least, greatest = (order.bound(pc.cast(pa.scalar(sign * math.inf), value.type)) for sign in (-1, 1))
    numbers = Interval(least, greatest)
    nans = Interval(None, least, includes_high=False), Interval(greatest, None, includes_low=False)
    if value.as_py() != value.as_py():
        of_nan: dict[str, tuple[Interval, ...]] = {
            "=": nans,
            "!=": (numbers,),
            "<": (numbers,),
            "<=": (EVERYTHING,),
            ">": (),
            ">=": nans,
        }
        return ValueCondition(of_nan[operator])
    low, high = _equal_bounds(value, order)
    intervals = {
        "=": (Interval(low, high),),
        "!=": (Interval(None, low, includes_high=False), Interval(high, None, includes_low=False)),
        "<": (Interval(least, low, includes_high=False),),
        "<=": (Interval(least, high),),
        ">": (Interval(high, None, includes_low=False), nans[0]),
        ">=": (Interval(low, None), nans[0]),
    }
    return ValueCondition(tuple(each for each in intervals[operator] if not each.is_empty))


def _equal_bounds(value: pa.Scalar, order: ValueOrder) -> tuple[Any, Any]:
    """Return the least and the greatest value that equal a constant: zeros of both signs are equal."""
    if pa.types.is_floating(value.type) and value.as_py() == 0:
        zeros = (pc.cast(pa.scalar(sign, pa.float64()), value.type) for sign in (-0.0, 0.0))
        low, high = (order.bound(zero) for zero in zeros)
        return low, high
    bound = order.bound(value)
    return bound, bound


def _points(bounds: Sequence[Any]) -> ValueCondition:
    return ValueCondition(tuple(Interval(bound, bound) for bound in bounds))


def _one_of(values: Sequence[pa.Scalar], order: ValueOrder) -> ValueCondition:
    return ValueCondition(tuple(Interval(*_equal_bounds(value, order)) for value in values if value.is_valid))


def _none_of(values: Sequence[pa.Scalar], order: ValueOrder) -> ValueCondition:
    if any(not value.is_valid for value in values):
        return ValueCondition()
    gaps, low = [], None
    for least, greatest in sorted(_equal_bounds(value, order) for value in values):
        gaps.append(Interval(low, least, includes_low=False, includes_high=False))
        low = greatest
    gaps.append(Interval(low, None, includes_low=False))
    return ValueCondition(tuple(gap for gap in gaps if not gap.is_empty))
