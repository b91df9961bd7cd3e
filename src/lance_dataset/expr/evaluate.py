"""Compilation of bound trees into Python closures over record batches.

Compilation happens once per filter. Running a closure costs one Python call and one Arrow kernel per node.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, singledispatch
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import InvalidInputError, nearest_name_hint
from lance_dataset.expr.casts import cast_kernel, strip_wrapping
from lance_dataset.expr.choice import case_evaluator
from lance_dataset.expr.functions.lists import list_element
from lance_dataset.expr.kernels import (
    arithmetic_kernel,
    comparison_kernel,
    concatenate,
    distinct_kernel,
    in_kernel,
    like_kernel,
    truth_kernel,
)
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
    Element,
    Expression,
    FieldAccess,
    IsDistinct,
    IsNull,
    IsTruth,
    Like,
    Negate,
    Not,
    OneOf,
    Or,
)

__all__ = ["Evaluator", "compile_tree"]

Evaluator = Callable[[pa.RecordBatch], Any]


@singledispatch
def compile_tree(node: Expression) -> Evaluator:
    """Return a function from a record batch to an array, or to a scalar if the value is the same for every row.

    Parameters
    ----------
    node
        A bound tree. `Name` and `Literal` nodes cannot be evaluated.
    """
    raise TypeError(f"{type(node).__name__} nodes must be bound to a schema first")


@compile_tree.register
def _(node: Constant) -> Evaluator:
    value = node.value
    return lambda batch: value


@compile_tree.register
def _(node: Column) -> Evaluator:
    name, nested, wanted = node.path[0], list(node.path[1:]), node.type
    strippers: dict[pa.DataType, Callable[[Any], Any]] = {}

    def stripped(datum: Any) -> Any:
        if datum.type.equals(wanted):
            return datum
        if datum.type not in strippers:
            strippers[datum.type] = strip_wrapping(datum.type)
        return strippers[datum.type](datum)

    def column(batch: pa.RecordBatch) -> Any:
        try:
            datum = batch.column(name)
        except KeyError:
            hint = nearest_name_hint(name, batch.schema.names)
            raise InvalidInputError(f"The batch lacks the column {name!r} that the filter reads{hint}") from None
        if not nested:
            return stripped(datum)
        while isinstance(datum.type, pa.BaseExtensionType):
            datum = datum.storage
        return stripped(pc.struct_field(datum, nested))

    return column


@compile_tree.register
def _(node: FieldAccess) -> Evaluator:
    operand, name = compile_tree(node.operand), [node.name]
    return lambda batch: pc.struct_field(operand(batch), name)


@compile_tree.register
def _(node: Element) -> Evaluator:
    return _binary(node.operand, node.index, list_element)


@compile_tree.register
def _(node: Comparison) -> Evaluator:
    right = node.right.value if isinstance(node.right, Constant) else None
    kernel = comparison_kernel(node.operator, node.left.type, right)
    return _binary(node.left, node.right, kernel)


@compile_tree.register
def _(node: IsDistinct) -> Evaluator:
    return _binary(node.left, node.right, distinct_kernel(node.left.type, node.negated))


@compile_tree.register
def _(node: And) -> Evaluator:
    return _logical(node.operands, pc.and_kleene)


@compile_tree.register
def _(node: Or) -> Evaluator:
    return _logical(node.operands, pc.or_kleene)


@compile_tree.register
def _(node: Not) -> Evaluator:
    return _unary(node.operand, pc.invert)


@compile_tree.register
def _(node: IsNull) -> Evaluator:
    return _unary(node.operand, pc.is_valid if node.negated else pc.is_null)


@compile_tree.register
def _(node: IsTruth) -> Evaluator:
    return _unary(node.operand, truth_kernel(node.truth, node.negated))


@compile_tree.register
def _(node: OneOf) -> Evaluator:
    kernel = in_kernel(node.values)
    if node.negated:
        return _unary(node.operand, lambda value: pc.invert(kernel(value)))
    return _unary(node.operand, kernel)


@compile_tree.register
def _(node: Like) -> Evaluator:
    return _binary(node.operand, node.pattern, like_kernel(node.ignore_case, node.negated))


@compile_tree.register
def _(node: Arithmetic) -> Evaluator:
    return _binary(node.left, node.right, arithmetic_kernel(node.operator, node.left.type, node.right.type))


@compile_tree.register
def _(node: Negate) -> Evaluator:
    return _unary(node.operand, pc.negate)


@compile_tree.register
def _(node: Concatenation) -> Evaluator:
    return _binary(node.left, node.right, concatenate)


@compile_tree.register
def _(node: Cast) -> Evaluator:
    kernel = cast_kernel(node.operand.type, node.target, lenient=node.lenient)
    if kernel is None:
        raise TypeError(f"no conversion from {node.operand.type} to {node.target}")
    return _unary(node.operand, kernel)


@compile_tree.register
def _(node: Call) -> Evaluator:
    if node.function is None:
        raise TypeError(f"the call of {node.name!r} must be bound to a function first")
    kernel = node.function.kernel
    arguments = [compile_tree(argument) for argument in node.arguments]
    if node.function.volatile:
        return lambda batch: kernel(batch.num_rows, *[argument(batch) for argument in arguments])
    return lambda batch: kernel(*[argument(batch) for argument in arguments])


@compile_tree.register
def _(node: Case) -> Evaluator:
    return case_evaluator(node, compile_tree)


def _unary(operand: Expression, kernel: Callable[[Any], Any]) -> Evaluator:
    inner = compile_tree(operand)
    return lambda batch: kernel(inner(batch))


def _binary(left: Expression, right: Expression, kernel: Callable[[Any, Any], Any]) -> Evaluator:
    if isinstance(right, Constant):
        value, inner = right.value, compile_tree(left)
        return lambda batch: kernel(inner(batch), value)
    first, second = compile_tree(left), compile_tree(right)
    return lambda batch: kernel(first(batch), second(batch))


def _logical(operands: tuple[Expression, ...], kernel: Callable[[Any, Any], Any]) -> Evaluator:
    parts = [compile_tree(operand) for operand in operands]
    return lambda batch: reduce(kernel, [part(batch) for part in parts])
