"""Relations of geometries with a constant one, as conditions on boxes."""

from __future__ import annotations

from typing import Final

import numpy as np

from lance_dataset.expr.geometry.boxes import boxes_of
from lance_dataset.expr.geometry.coordinates import as_array
from lance_dataset.expr.geometry.relations import MEETING_RELATIONS
from lance_dataset.expr.tree import Call, Column, Constant, Expression
from lance_dataset.index.scalar.conditions import BoxCondition, ValueCondition

__all__ = ["GEOMETRY_RELATIONS", "box_condition"]

#: Names of functions that are true only for geometries whose boxes meet.
GEOMETRY_RELATIONS: Final = frozenset(f"st_{name}" for name in MEETING_RELATIONS)


def box_condition(node: Call) -> tuple[Expression, BoxCondition | ValueCondition] | None:
    """Return the column of a relation, and a condition that holds wherever the relation does.

    The result is None for relations that are not between a column and a constant.
    """
    if len(node.arguments) != 2:
        return None
    column, constant = node.arguments
    if isinstance(column, Constant):
        column, constant = constant, column
    if not isinstance(column, Column) or not isinstance(constant, Constant):
        return None
    if not constant.value.is_valid:
        return column, ValueCondition()
    bounds = boxes_of(as_array(constant.value))[:, 0]
    if np.isnan(bounds).any():
        return column, ValueCondition()  # an empty geometry is related to none
    return column, BoxCondition(*bounds.tolist())
