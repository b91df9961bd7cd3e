"""Well-known text in the form in which the reference writes it."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.geometry.shapes import Shapes, shapely

__all__ = ["text_of"]

#: A number with an exponent.
_SCIENTIFIC: Final = re.compile(r"-?\d+(?:\.\d+)?e[+-]?\d+")


def text_of(shapes: Shapes) -> pa.Array:
    """Return the text of geometries, with the digits that identify each number and without exponents."""
    texts = shapely().to_wkt(shapes, rounding_precision=-1, output_dimension=4)
    found = pa.array(list(np.atleast_1d(texts)), pa.string())
    for old, new in ((", ", ","), (" (", "("), ("Infinity", "inf")):
        found = pc.replace_substring(found, old, new)
    if pc.any(pc.match_substring_regex(found, r"\de[+-]?\d")).as_py():
        found = pa.array([None if text is None else _SCIENTIFIC.sub(_plain, text) for text in found.to_pylist()])
    return found


def _plain(number: re.Match[str]) -> str:
    return np.format_float_positional(float(number.group()), trim="-")
