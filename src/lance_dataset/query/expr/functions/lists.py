"""List and struct functions. Lists of every layout are brought to `list` first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.query.expr.casts import cast_kernel

from .registry import Function, Kind
from .rowwise import rowwise

__all__ = ["ALIASES", "FUNCTIONS", "list_element", "make_array"]


def _as_list(value: Any) -> Any:
    if pa.types.is_fixed_size_list(value.type):
        return pc.cast(value, pa.list_(value.type.value_type))
    return value


def _lengths(lists: pa.Array) -> np.ndarray:
    return pc.fill_null(pc.cast(pc.list_value_length(lists), pa.int64()), 0).to_numpy(zero_copy_only=False)


def _flat(lists: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """The elements of all lists, and the row that each belongs to."""
    return lists.flatten(), np.repeat(np.arange(len(lists)), _lengths(lists))


def _rows_with(found: pa.Array, rows: np.ndarray, lists: pa.Array) -> pa.Array:
    """True for the rows that own a true element, null for null lists."""
    hit = np.zeros(len(lists), bool)
    hit[rows[pc.fill_null(found, False).to_numpy(zero_copy_only=False)]] = True
    return pa.array(hit, mask=pc.is_null(lists).to_numpy(zero_copy_only=False))


def _on_arrays(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Let a kernel that wants an array as first argument take a scalar list as well."""

    def wrapped(value: Any, *others: Any) -> Any:
        if not isinstance(value, pa.Scalar):
            return kernel(_as_list(value), *others)
        length = next((len(other) for other in others if not isinstance(other, pa.Scalar)), None)
        result = kernel(_as_list(pa.repeat(value, 1 if length is None else length)), *others)
        return result[0] if length is None else result

    return wrapped


def _meeting(flat: pa.Array, element: Any) -> pa.Array:
    if flat.type.equals(element.type):
        return flat
    convert = cast_kernel(flat.type, element.type, lenient=False)
    if convert is None:
        raise pa.ArrowInvalid(f"list elements of type {flat.type} are not comparable with {element.type}")
    return convert(flat)


def _array_has(lists: pa.Array, element: Any) -> pa.Array:
    if isinstance(element, pa.Scalar) and not element.is_valid:
        return pa.nulls(len(lists), pa.bool_())
    flat, rows = _flat(lists)
    flat = _meeting(flat, element)
    wanted = element if isinstance(element, pa.Scalar) else element.take(pa.array(rows))
    return _rows_with(pc.equal(flat, wanted), rows, lists)


def _array_has_any(lists: pa.Array, others: Any) -> pa.Array:
    if isinstance(others, pa.Scalar) and others.is_valid:
        flat, rows = _flat(lists)
        return _rows_with(pc.is_in(flat, value_set=_meeting(others.values, flat)), rows, lists)
    return rowwise(lambda left, right: not set(left).isdisjoint(right), pa.bool_())(lists, others)


def _array_has_all(lists: pa.Array, others: Any) -> pa.Array:
    if isinstance(others, pa.Scalar) and others.is_valid:
        result = pc.is_valid(lists)
        flat, rows = _flat(lists)
        for wanted in _meeting(others.values, flat).unique():
            found = pc.equal(flat, wanted) if wanted.is_valid else pc.is_null(flat)
            result = pc.and_(result, _rows_with(found, rows, lists))
        return pc.if_else(pc.is_valid(lists), result, pa.scalar(None, pa.bool_()))
    return rowwise(lambda left, right: set(left) >= set(right), pa.bool_())(lists, others)


def _array_length(lists: Any, dimension: Any = None) -> Any:
    if dimension is not None and dimension.as_py() != 1:
        raise pa.ArrowInvalid("array_length is supported for the first dimension only")
    return pc.cast(pc.list_value_length(lists), pa.uint64())


def _list_element(lists: pa.Array, index: Any) -> pa.Array:
    lengths = _lengths(lists)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(lengths) else lengths
    if isinstance(index, pa.Scalar):
        places = np.full(len(lists), index.as_py() or 0, np.int64)
    else:
        places = pc.fill_null(pc.cast(index, pa.int64()), 0).to_numpy(zero_copy_only=False)
    offsets = np.where(places > 0, places - 1, lengths + places)
    outside = (places == 0) | (offsets < 0) | (offsets >= lengths)
    return lists.flatten().take(pa.array(np.where(outside, 0, starts + offsets), mask=outside))


list_element = _on_arrays(_list_element)


def make_array(*items: Any) -> Any:
    """One list per row out of the arguments, all of one type."""
    if not items:
        return pa.scalar([], pa.list_(pa.null()))
    value_type = items[0].type
    length = next((len(item) for item in items if not isinstance(item, pa.Scalar)), None)
    if length is None:
        return pa.scalar([item.as_py() for item in items], pa.list_(value_type))
    columns = [pa.repeat(item, length) if isinstance(item, pa.Scalar) else item for item in items]
    order = np.arange(length * len(columns)).reshape(len(columns), length).T.ravel()
    offsets = np.arange(length + 1, dtype=np.int32) * len(columns)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.concat_arrays(columns).take(pa.array(order)))


def _position(values: list[Any], wanted: Any) -> int | None:
    return values.index(wanted) + 1 if wanted in values else None


def _to_string(lists: Any, separator: Any, null_text: Any = None) -> Any:
    def join(values: list[str | None], between: str, missing: str | None = None) -> str:
        shown = (missing if value is None else value for value in values)
        return between.join(value for value in shown if value is not None)

    convert = cast_kernel(lists.type.value_type, pa.string(), lenient=False)
    if convert is None:
        raise pa.ArrowInvalid(f"array_to_string does not take {lists.type}")
    flat, _ = _flat(lists)
    offsets = pa.array(np.concatenate([[0], np.cumsum(_lengths(lists))]).astype(np.int32))
    texts = pa.ListArray.from_arrays(offsets, convert(flat), mask=pc.is_null(lists))
    arguments = (texts, separator) if null_text is None else (texts, separator, null_text)
    return rowwise(join, pa.string())(*arguments)


def _per_list(function: Callable[[list[Any]], Any], whole: bool) -> Callable[[Any], Any]:
    """A kernel over the Python values of each list, giving a list (`whole`) or one element."""

    def kernel(lists: Any) -> Any:
        return rowwise(function, lists.type if whole else lists.type.value_type)(lists)

    return _on_arrays(kernel)


def _present(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _sorted(values: list[Any]) -> list[Any]:
    return [None] * (len(values) - len(_present(values))) + sorted(_present(values))


def _struct(*values: Any) -> Any:
    return pc.make_struct(*values, field_names=[f"c{place}" for place in range(len(values))])


def _named_struct(*pairs: Any) -> Any:
    if len(pairs) % 2 or not all(isinstance(name, pa.Scalar) for name in pairs[::2]):
        raise pa.ArrowInvalid("named_struct needs pairs of a constant name and a value")
    return pc.make_struct(*pairs[1::2], field_names=[str(name.as_py()) for name in pairs[::2]])


_LIST, _ELEMENT, _INTEGER = Kind.LIST, Kind.ELEMENT, Kind.INTEGER
FUNCTIONS = [
    Function("array_has", (_LIST, _ELEMENT), _on_arrays(_array_has)),
    Function("array_has_any", (_LIST, _LIST), _on_arrays(_array_has_any)),
    Function("array_has_all", (_LIST, _LIST), _on_arrays(_array_has_all)),
    Function("array_length", (_LIST, _INTEGER), _on_arrays(_array_length), optional=1),
    Function("empty", (_LIST,), _on_arrays(lambda lists: pc.equal(pc.list_value_length(lists), 0))),
    Function("array_element", (_LIST, _INTEGER), list_element),
    Function("array_position", (_LIST, _ELEMENT), _on_arrays(rowwise(_position, pa.uint64()))),
    Function("array_to_string", (_LIST, Kind.TEXT, Kind.TEXT), _on_arrays(_to_string), optional=1),
    Function("array_sort", (_LIST,), _per_list(_sorted, whole=True)),
    Function("array_distinct", (_LIST,), _per_list(lambda values: list(dict.fromkeys(values)), whole=True)),
    Function("array_max", (_LIST,), _per_list(lambda values: max(_present(values), default=None), whole=False)),
    Function("array_min", (_LIST,), _per_list(lambda values: min(_present(values), default=None), whole=False)),
    Function("make_array", (Kind.SAME,), make_array, optional=1, variadic=True),
    Function("struct", (Kind.ANY,), _struct, variadic=True),
    Function("named_struct", (Kind.ANY, Kind.ANY), _named_struct, variadic=True),
]
_SAME_AS_ARRAY = (
    "has",
    "has_any",
    "has_all",
    "length",
    "element",
    "position",
    "to_string",
    "sort",
    "distinct",
    "max",
    "min",
)
ALIASES = {
    **{f"list_{name}": f"array_{name}" for name in _SAME_AS_ARRAY},
    "array_contains": "array_has",
    "list_contains": "array_has",
    "arrays_overlap": "array_has_any",
    "array_extract": "array_element",
    "array_join": "array_to_string",
    "array_empty": "empty",
    "array_indexof": "array_position",
    "cardinality": "array_length",
    "make_list": "make_array",
    "row": "struct",
}
