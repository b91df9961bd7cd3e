"""Functions that build structs, and functions of unions, which no column has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.function import Function, Kind

__all__ = ["ALIASES", "FUNCTIONS"]


def _struct(*values: Any) -> Any:
    return pc.make_struct(*values, field_names=[f"c{place}" for place in range(len(values))])


def _named_struct(*pairs: Any) -> Any:
    names = pairs[::2]
    if len(pairs) % 2:
        raise pa.ArrowInvalid(f"named_struct needs pairs of a name and a value, not {len(pairs)} arguments")
    if not all(isinstance(name, pa.Scalar) and isinstance(name.as_py(), str) and name.as_py() for name in names):
        raise pa.ArrowInvalid("named_struct needs non-empty constant strings as names")
    return pc.make_struct(*pairs[1::2], field_names=[name.as_py() for name in names])


def _no_unions(name: str) -> Any:
    def coercion(types: Sequence[pa.DataType]) -> NoReturn:
        raise pa.ArrowInvalid(f"{name} needs a union, not {types[0]}; no column of a dataset has such a type")

    return coercion


def _unreachable(*_: Any) -> NoReturn:
    raise pa.ArrowInvalid("there are no values of union types")


_ANY = Kind.ANY
FUNCTIONS = [
    Function("struct", (_ANY,), _struct, variadic=True),
    Function("named_struct", (_ANY, _ANY), _named_struct, variadic=True),
    Function("union_tag", (_ANY,), _unreachable, coercion=_no_unions("union_tag")),
    Function("union_extract", (_ANY, _ANY), _unreachable, coercion=_no_unions("union_extract")),
]
ALIASES = {"row": "struct"}
