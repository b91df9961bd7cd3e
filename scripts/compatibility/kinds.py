"""Arrow types on the page, by family, and the rows that represent each of them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from support.arrays.nested_arrays import nested_array
from support.arrays.random_arrays import FLAT_TYPES, whole
from support.arrays.type_groups import GROUPS

__all__ = ["BATCH_ROWS", "CASES", "FAMILIES", "FILE_ROWS", "Case", "rows"]

_NUMBERS = ("bool", "halffloat", "float", "double")
_ITEMS = (*_NUMBERS, "int8", "int64", "uint32", "decimal128", "decimal256", "date32", "timestamp_ns_utc", "duration_s")
_WORDS = ("string", "large_string", "binary", "large_binary")
_FIXED = ("fixed_binary_1", "fixed_binary_3", "fixed_binary_40")
_PLAIN_STRUCT = pa.struct([("a", pa.int8()), ("b", pa.string()), ("c", pa.struct([("d", pa.binary())]))])


def _named(*prefixes: str) -> dict[str, pa.DataType]:
    return {name: kind for name, kind in FLAT_TYPES.items() if name.startswith(prefixes)}


def _of(group: str, names: tuple[str, ...], prefix: str) -> dict[str, pa.DataType]:
    return {f"{prefix}_{name}": GROUPS[group][name] for name in names}


#: Types by family and name. Most are shared with the tests, so that a type added there appears here.
FAMILIES: Mapping[str, Mapping[str, pa.DataType]] = {
    "Numbers": {**_named("int", "uint"), **_named(*_NUMBERS)},
    "Decimals": _named("decimal"),
    "Dates, times, durations": _named("date", "time", "duration"),
    "Strings and binaries": {name: FLAT_TYPES[name] for name in _WORDS},
    "Fixed-size binaries": {**_named("fixed_binary"), "wide_binary": GROUPS["deep"]["wide_binary"]},
    "Null": {"null": pa.null()},
    "Dictionaries": {f"dictionary_{name}": kind for name, kind in GROUPS["dictionary"].items()},
    "Lists": {
        **_of("list", _ITEMS + _WORDS + _FIXED, "list"),
        **_of("large_list", _ITEMS + _WORDS + _FIXED, "large_list"),
    },
    "Fixed-size lists": {
        **_of("fixed_list", _ITEMS + _FIXED, "fixed_list"),
        **_of("fixed_list_of_fixed_list", (*_NUMBERS, "int8"), "fixed_list_of_fixed_list"),
        **_of("list_of_fixed_list", (*_NUMBERS, "int8"), "list_of_fixed_list"),
    },
    "Structs and deeper nesting": {
        "struct": _PLAIN_STRUCT,
        **{name: kind for name, kind in GROUPS["deep"].items() if name != "wide_binary"},
    },
    "Maps": GROUPS["map"],
}

#: Rows of a batch, and of a data file.
BATCH_ROWS, FILE_ROWS = 32, 64


@dataclass(frozen=True)
class Case:
    """A dataset that is created for each type.

    Attributes
    ----------
    name
        Name in footnotes.
    rows
        Number of rows, written in batches of `BATCH_ROWS`.
    nulls
        Share of nulls on every level.
    deleted
        First and last (exclusive) `id` of the rows that are deleted afterwards; (0, 0) for none.
    """

    name: str
    rows: int
    nulls: float
    deleted: tuple[int, int] = (0, 0)


CASES = (Case("values", 90, 0.0), Case("nulls", 90, 0.3, (10, 14)), Case("no rows", 0, 0.0))


def rows(name: str, kind: pa.DataType, case: Case) -> pa.Table:
    """Return the rows of a case: `id` counts from 0, and `value` has random values of the type, always the same."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {case.name}".encode()))
    values = nested_array(kind, case.rows, case.nulls, rng)
    if pa.types.is_nested(kind) or pa.types.is_dictionary(kind):
        values = pa.array([_plainer(value) for value in values.to_pylist()], kind)
    table = pa.table({"id": pa.array(range(case.rows), pa.int64()), "value": values})
    return whole(pa.Table.from_batches(table.to_batches(BATCH_ROWS), table.schema))


def _plainer(value: Any) -> Any:
    """Return a value without empty strings; their loss in legacy files is shown by the columns of strings.

    The conversion through Python also removes values below nulls and outside of lists, because some releases reject
    such arrays.
    """
    if isinstance(value, dict):
        return {name: _plainer(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plainer(item) for item in value]
    if isinstance(value, tuple):
        return tuple(map(_plainer, value))
    return {"": "-", b"": b"-"}.get(value, value) if isinstance(value, str | bytes) else value
