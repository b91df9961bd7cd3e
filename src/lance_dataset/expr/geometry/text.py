"""Well-known text in the form in which the reference writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_dataset.expr.geometry.shapes import Shapes, shapely

__all__ = ["text_of"]

_NUMBER: Final = re.compile(r"-?(?:\d[\d.]*(?:e[+-]?\d+)?|Infinity|NaN)")


def text_of(shapes: Shapes) -> pa.Array:
    """Return the text of geometries, with the digits that identify each number and without exponents.

    The library leaves out some of these digits, so its text is used without its numbers.
    """
    texts = np.atleast_1d(shapely().to_wkt(shapes, rounding_precision=1, output_dimension=4))
    pairs = zip(texts.tolist(), shapes, strict=True)
    return pa.array([None if text is None else _text(text, shape) for text, shape in pairs], pa.string())


def _text(text: str, shape: Any) -> str:
    numbers = _numbers(shape)
    close = text.replace(", ", ",").replace(" (", "(")
    return _NUMBER.sub(lambda _: _written(next(numbers)), close)


def _numbers(shape: Any) -> Iterator[float]:
    """Yield the coordinates of a geometry in the order of its text."""
    if shape.geom_type == "GeometryCollection":  # its parts may have different dimensions
        for part in shape.geoms:
            yield from _numbers(part)
        return
    options = {"include_z": bool(shape.has_z), "include_m": bool(shape.has_m)}
    yield from shapely().get_coordinates(shape, **options).ravel().tolist()


def _written(number: float) -> str:
    text = repr(number)
    if "e" in text:
        return np.format_float_positional(number, trim="-")
    return "NaN" if text == "nan" else text.removesuffix(".0")
