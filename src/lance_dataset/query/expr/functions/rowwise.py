"""Kernels for what Arrow has no vectorised function for: a Python function applied value by value."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

import pyarrow as pa

__all__ = ["constant", "result_text_type", "rowwise"]


def constant(datum: Any) -> Any:
    """The Python value of a scalar argument; None for an array."""
    return datum.as_py() if isinstance(datum, pa.Scalar) else None


def result_text_type(datum: Any) -> pa.DataType:
    """The string type of a result that is derived from a string argument."""
    return datum.type if pa.types.is_large_string(datum.type) else pa.string()


def rowwise(function: Callable[..., Any], result: pa.DataType | None = None) -> Callable[..., Any]:
    """A kernel out of a function of Python values; a null argument makes a null result.

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
