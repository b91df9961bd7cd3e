"""Kernels for functions that Arrow has not vectorised: a Python function is applied value by value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["constant", "per_parameters", "result_text_type", "rowwise"]


def constant(datum: Any) -> Any:
    """Return the Python value of a scalar argument; None for an array."""
    return datum.as_py() if isinstance(datum, pa.Scalar) else None


def result_text_type(datum: Any) -> pa.DataType:
    """Return the string type of a result that is derived from a string argument."""
    return datum.type if pa.types.is_large_string(datum.type) else pa.string()


def rowwise(function: Callable[..., Any], result: pa.DataType | None = None) -> Callable[..., Any]:
    """Return a kernel for a function of Python values; a null argument makes a null result.

    Parameters
    ----------
    function
        Called with one value of each argument.
    result
        Type of the result; None for the string type of the first argument.
    """

    def kernel(*data: Any) -> Any:
        target = result if result is not None else result_text_type(data[0])
        if all(isinstance(datum, pa.Scalar) for datum in data):
            values = [datum.as_py() for datum in data]
            return pa.scalar(None if None in values else function(*values), target)
        columns = [repeat(datum.as_py()) if isinstance(datum, pa.Scalar) else datum.to_pylist() for datum in data]
        rows = zip(*columns, strict=False)  # constants repeat without end
        return pa.array([None if None in row else function(*row) for row in rows], target)

    return kernel


def per_parameters(function: Callable[..., pa.Array], result: pa.DataType | None = None) -> Callable[..., Any]:
    """Return a kernel for a function of an array and Python values; a null argument makes a null result.

    Parameters
    ----------
    function
        Called with the first argument and one value of each other argument, once for all rows with those values.
    result
        As in `rowwise`.
    """

    def kernel(value: Any, *parameters: Any) -> Any:
        target = result if result is not None else result_text_type(value)
        count = next((len(datum) for datum in (value, *parameters) if not isinstance(datum, pa.Scalar)), None)
        values = pa.repeat(value, 1 if count is None else count) if isinstance(value, pa.Scalar) else value
        if all(isinstance(datum, pa.Scalar) for datum in parameters):
            given = [datum.as_py() for datum in parameters]
            found = pa.nulls(len(values), target) if None in given else function(values, *given)
        else:
            found = _by_groups(function, values, parameters, target)
        found = found if found.type.equals(target) else found.cast(target)
        return found[0] if count is None else found

    return kernel


def _by_groups(
    function: Callable[..., pa.Array], values: pa.Array, parameters: Sequence[Any], target: pa.DataType
) -> pa.Array:
    columns = [repeat(datum.as_py()) if isinstance(datum, pa.Scalar) else datum.to_pylist() for datum in parameters]
    rows_of: dict[tuple[Any, ...], list[int]] = {}
    for row, given in enumerate(zip(*columns, strict=False)):
        rows_of.setdefault(given, []).append(row)
    parts = [
        pa.nulls(len(rows), target) if None in given else function(values.take(pa.array(rows)), *given).cast(target)
        for given, rows in rows_of.items()
    ]
    if not parts:
        return pa.nulls(0, target)
    order = pa.array([row for rows in rows_of.values() for row in rows], pa.int64())
    return pa.concat_arrays(parts).take(pc.array_sort_indices(order))
