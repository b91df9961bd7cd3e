"""Functions that test for nulls and choose between values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.kernels import comparison_kernel

__all__ = ["ALIASES", "FUNCTIONS"]


def _nullif(value: Any, other: Any) -> Any:
    if pa.types.is_null(value.type):
        return value
    same = pc.fill_null(comparison_kernel("=", value.type, None)(value, other), False)
    return pc.if_else(same, pa.scalar(None, value.type), value)


def _nvl2(test: Any, present: Any, absent: Any) -> Any:
    return pc.if_else(pc.is_valid(test), present, absent)


def _extreme(largest: bool) -> Any:
    """Return the kernel of the largest or smallest non-null value; NaN counts as the largest float."""

    def kernel(*values: Any) -> Any:
        result = values[0]
        for value in values[1:]:
            result = _pick(result, value, largest)
        return result

    return kernel


def _pick(left: Any, right: Any, largest: bool) -> Any:
    if pa.types.is_null(left.type):
        return left
    better = pc.greater(left, right) if largest else pc.less(left, right)
    if pa.types.is_floating(left.type):
        better = pc.or_kleene(better, pc.is_nan(left)) if largest else pc.or_kleene(better, pc.is_nan(right))
    better = pc.if_else(pc.and_(pc.is_valid(left), pc.is_valid(right)), better, pc.is_valid(left))
    return pc.if_else(better, left, right)


FUNCTIONS = [
    Function("coalesce", (Kind.SAME,), pc.coalesce, variadic=True),
    Function("nvl", (Kind.SAME, Kind.SAME), pc.coalesce),
    Function("nvl2", (Kind.ANY, Kind.SAME, Kind.SAME), _nvl2),
    Function("nullif", (Kind.SAME, Kind.SAME), _nullif),
    Function("greatest", (Kind.SAME,), _extreme(largest=True), variadic=True),
    Function("least", (Kind.SAME,), _extreme(largest=False), variadic=True),
]
ALIASES = {"ifnull": "nvl"}
