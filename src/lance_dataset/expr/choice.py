"""Evaluation of CASE: each branch is computed only for the rows that choose it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.tree import (
    And,
    Case,
    Cast,
    Column,
    Comparison,
    Constant,
    Expression,
    FieldAccess,
    IsDistinct,
    IsNull,
    IsTruth,
    Like,
    Not,
    OneOf,
    Or,
    walk,
)

__all__ = ["case_evaluator"]

Evaluator = Callable[[pa.RecordBatch], Any]
#: Nodes that never fail, so that computing them for rows that do not need them only costs time.
#: Name of the column that remembers the places of rows while they are split up.
_TOTAL = (And, Case, Column, Comparison, Constant, FieldAccess, IsDistinct, IsNull, IsTruth, Like, Not, OneOf, Or)
#: Name of the column that remembers the places of rows while they are parted.
_PLACE = "\0place"


def case_evaluator(node: Case, compile_tree: Callable[[Expression], Evaluator]) -> Evaluator:
    """Return a function from a record batch to the value of a CASE."""
    branches = [(compile_tree(c), compile_tree(r)) for c, r in zip(node.conditions, node.results, strict=True)]
    otherwise = compile_tree(node.otherwise or Constant(pa.scalar(None, node.type), type=node.type))
    if _is_total(node):
        return _everywhere(branches, otherwise)
    names = list(dict.fromkeys(part.path[0] for part in walk(node) if isinstance(part, Column)))
    return _where_chosen(branches, otherwise, names, node.type)


def _is_total(node: Expression) -> bool:
    return all(isinstance(part, _TOTAL) or (isinstance(part, Cast) and part.lenient) for part in walk(node))


def _everywhere(branches: list[tuple[Evaluator, Evaluator]], otherwise: Evaluator) -> Evaluator:
    def evaluate(batch: pa.RecordBatch) -> Any:
        value = otherwise(batch)
        for condition, result in reversed(branches):
            value = pc.if_else(pc.fill_null(condition(batch), False), result(batch), value)
        return value

    return evaluate


def _where_chosen(
    branches: list[tuple[Evaluator, Evaluator]], otherwise: Evaluator, names: list[str], arrow: pa.DataType
) -> Evaluator:
    def evaluate(batch: pa.RecordBatch) -> Any:
        places = pa.array(np.arange(batch.num_rows))
        left = pa.RecordBatch.from_arrays([places, *(batch.column(name) for name in names)], names=[_PLACE, *names])
        values: list[pa.Array] = []
        rows: list[pa.Array] = []

        def choose(chosen: pa.RecordBatch, result: Evaluator) -> None:
            if chosen.num_rows:
                values.append(_array(result(chosen), chosen.num_rows))
                rows.append(chosen.column(0))

        for condition, result in branches:
            if not left.num_rows:
                break
            mask = _array(condition(left), left.num_rows).fill_null(False)
            choose(left.filter(mask), result)
            left = left.filter(pc.invert(mask))
        choose(left, otherwise)
        if not values:
            return pa.nulls(0, arrow)
        return pa.concat_arrays(values).take(pc.array_sort_indices(pa.concat_arrays(rows)))

    return evaluate


def _array(datum: Any, length: int) -> pa.Array:
    if isinstance(datum, pa.Scalar):
        return pa.repeat(datum, length)
    return datum.combine_chunks() if isinstance(datum, pa.ChunkedArray) else datum
