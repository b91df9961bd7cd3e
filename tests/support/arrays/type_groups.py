"""Types of the matrix tests of 2.1 and 2.2, in groups that form one table each."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from support.arrays.random_arrays import FLAT_TYPES

__all__ = ["GROUPS", "groups"]

#: Values without bytes can be neither written in 2.1 nor read by the reference.
_FLAT = {name: kind for name, kind in FLAT_TYPES.items() if name != "fixed_binary_0"}
_VARIABLE = ("string", "large_string", "binary", "large_binary")
_FIXED = {name: kind for name, kind in _FLAT.items() if name not in _VARIABLE}
_INDICES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
_DICTIONARY_VALUES = [
    *(pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
]
_STRUCT = pa.struct([("i", pa.int32()), ("s", pa.string()), ("v", pa.list_(pa.float32(), 4))])
_DEEP = {
    "struct_in_struct": pa.struct([("a", _STRUCT), ("b", pa.struct([("c", pa.struct([("d", pa.bool_())]))]))]),
    "list_of_struct": pa.list_(_STRUCT),
    "large_list_of_struct": pa.large_list(_STRUCT),
    "struct_of_list": pa.struct([("l", pa.list_(pa.int64())), ("t", pa.large_list(pa.string()))]),
    "list_of_list": pa.list_(pa.list_(pa.int16())),
    "list_of_list_of_list": pa.list_(pa.large_list(pa.list_(pa.string()))),
    "list_of_struct_of_list_of_struct": pa.list_(pa.struct([("l", pa.list_(_STRUCT)), ("k", pa.date32())])),
    "struct_of_null": pa.struct([("n", pa.null()), ("i", pa.int8())]),
    "struct_of_dictionary": pa.struct([("d", pa.dictionary(pa.int16(), pa.string()))]),
    "list_of_dictionary": pa.list_(pa.dictionary(pa.int32(), pa.string())),
    "list_of_null": pa.list_(pa.null()),
    "struct_of_fixed_list": pa.struct([("v", pa.list_(pa.list_(pa.decimal128(9, 3), 2), 3))]),
    "list_of_fixed_list_of_fixed_list": pa.list_(pa.list_(pa.list_(pa.int8(), 2), 3)),
    "deep_fixed_list": pa.list_(pa.list_(pa.list_(pa.list_(pa.bool_(), 3), 1), 2), 5),
    "long_fixed_list": pa.list_(pa.float16(), 257),
    "wide_binary": pa.binary(300),
    "list_of_wide_binary": pa.list_(pa.binary(256)),
}
_MAPS = {
    "map": pa.map_(pa.string(), pa.int32()),
    "map_of_lists": pa.map_(pa.int32(), pa.list_(pa.string())),
    "list_of_maps": pa.list_(pa.map_(pa.string(), _STRUCT)),
    "map_of_maps": pa.map_(pa.int8(), pa.map_(pa.large_string(), pa.float64())),
    "struct_of_map": pa.struct([("m", pa.map_(pa.date32(), pa.bool_()))]),
}

GROUPS: dict[str, Mapping[str, pa.DataType]] = {
    "flat": {**_FLAT, "null": pa.null()},
    "dictionary": {
        **{f"{index}_string": pa.dictionary(index, pa.string()) for index in _INDICES},
        **{f"int32_{value}": pa.dictionary(pa.int32(), value) for value in _DICTIONARY_VALUES},
        "uint8_int64": pa.dictionary(pa.uint8(), pa.int64()),
    },
    "list": {name: pa.list_(kind) for name, kind in _FLAT.items()},
    "large_list": {name: pa.large_list(kind) for name, kind in _FLAT.items()},
    "fixed_list": {name: pa.list_(kind, 3) for name, kind in _FIXED.items()},
    "fixed_list_of_fixed_list": {name: pa.list_(pa.list_(kind, 2), 3) for name, kind in _FIXED.items()},
    "list_of_fixed_list": {name: pa.list_(pa.list_(kind, 5)) for name, kind in _FIXED.items()},
    "struct": {f"in_struct_{name}": pa.struct([(name, kind), ("other", pa.int8())]) for name, kind in _FLAT.items()},
    "deep": _DEEP,
    "map": _MAPS,
}


def groups(version: str) -> dict[str, Mapping[str, pa.DataType]]:
    """Return the groups that a file version supports."""
    return {name: kinds for name, kinds in GROUPS.items() if name != "map" or version not in ("2.0", "2.1")}
