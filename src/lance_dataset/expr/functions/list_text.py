"""Conversion of lists to text and of text to lists."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.casts import cast_kernel
from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.list_edits import flatten
from lance_dataset.expr.functions.list_layout import Lists, columnar, list_of, mask_of
from lance_dataset.expr.rowwise import constant, result_text_type
from lance_dataset.expr.type_rules import is_list, is_text

__all__ = ["ALIASES", "FUNCTIONS"]


@columnar
def _to_string(array: pa.Array, separator: pa.Array, null_text: pa.Array | None = None) -> pa.Array:
    """Join the items of all depths; null items are left out, or become `null_text` if that is not null."""
    while is_list(array.type.value_type):
        array = _flat_with_nulls(array) if null_text is not None else flatten(array)
    lists = Lists.of(array)
    texts = _texts(lists.items)
    if null_text is not None:
        texts = pc.coalesce(texts, null_text.take(pa.array(lists.rows)))
    parts = Lists(texts, lists.lengths, lists.valid).kept(mask_of(pc.is_valid(texts)))
    return pc.binary_join(parts, separator)


def _flat_with_nulls(array: pa.Array) -> pa.Array:
    """Flatten one level, with a null item in place of a null list."""
    lists = Lists.of(array)
    inner = Lists.of(lists.items)
    spans = np.where(inner.valid, inner.lengths, 1)
    owners = np.repeat(np.arange(len(spans)), spans)
    places = np.arange(len(owners)) - np.repeat(np.cumsum(spans) - spans, spans)
    numbers = np.where(inner.valid[owners], inner.starts[owners] + places, -1)
    ends = np.concatenate([[0], np.cumsum(spans)])
    lengths = ends[lists.starts + lists.lengths] - ends[lists.starts]
    return inner.picked(numbers, lengths, lists.valid)


def _texts(items: pa.Array) -> pa.Array:
    arrow = items.type
    if pa.types.is_floating(arrow):
        scalars = items.to_numpy(zero_copy_only=False) if items.null_count == 0 else np.array(pc.fill_null(items, 0.0))
        texts = pa.array([_decimal_digits(str(value)) for value in scalars], pa.string())
        return pc.if_else(pc.is_valid(items), texts, pa.scalar(None, pa.string()))
    convert = None if pa.types.is_nested(arrow) else cast_kernel(arrow, pa.string(), lenient=True)
    if convert is None:
        raise pa.ArrowInvalid(f"array_to_string does not print values of type {arrow}")
    return convert(items)


def _decimal_digits(text: str) -> str:
    """Return the shortest digits of a float, never with an exponent."""
    if "e" in text:
        text = f"{Decimal(text):f}"
    elif text == "nan":
        return "NaN"
    return text.removesuffix(".0")


def _to_array(value: Any, separator: Any, null_text: Any = None) -> Any:
    """Split texts; an empty text has no parts, and a null separator splits into characters."""
    between = constant(separator)
    if not between or isinstance(value, pa.Scalar):
        return _split_rows(value, separator) if null_text is None else _split_rows(value, separator, null_text)
    lists = Lists.of(pc.split_pattern(value, pattern=between))
    lists = _without_empty(lists, mask_of(pc.fill_null(pc.equal(pc.binary_length(value), 0), False)))
    return lists.array() if null_text is None else _with_nulls(lists, null_text)


def _without_empty(lists: Lists, empty: Any) -> Lists:
    keep = ~np.repeat(empty, lists.lengths)
    return Lists(lists.items.filter(pa.array(keep)), np.where(empty, 0, lists.lengths), lists.valid)


def _with_nulls(lists: Lists, null_text: Any) -> pa.Array:
    wanted = null_text if isinstance(null_text, pa.Scalar) else null_text.take(pa.array(lists.rows))
    same = pc.fill_null(pc.equal(lists.items, wanted), False)
    items = pc.if_else(same, pa.scalar(None, lists.items.type), lists.items)
    return list_of(items, lists.lengths, lists.valid)


@columnar
def _split_rows(value: pa.Array, separator: pa.Array, null_text: pa.Array | None = None) -> pa.Array:
    rows = [
        None if text is None else _parts(text, between)
        for text, between in zip(value.to_pylist(), separator.to_pylist(), strict=True)
    ]
    array = pa.array(rows, pa.list_(result_text_type(value)))
    return array if null_text is None else _with_nulls(Lists.of(array), null_text)


def _parts(text: str, separator: str | None) -> list[str]:
    if not text:
        return []
    if separator is None:
        return list(text)
    return text.split(separator) if separator else [text]


def _split_types(types: Sequence[pa.DataType]) -> list[pa.DataType]:
    wrong = next((arrow for arrow in types if not (is_text(arrow) or pa.types.is_null(arrow))), None)
    if wrong is not None:
        raise pa.ArrowInvalid(f"string_to_array needs strings, not {wrong}")
    target = pa.large_string() if pa.types.is_large_string(types[0]) else pa.string()
    return [target] * len(types)


def _join_types(types: Sequence[pa.DataType]) -> list[pa.DataType]:
    array = pa.list_(pa.null()) if pa.types.is_null(types[0]) else types[0]
    if not is_list(array):
        raise pa.ArrowInvalid(f"array_to_string needs a list, not {types[0]}")
    return [array, *([pa.string()] * (len(types) - 1))]


FUNCTIONS = [
    Function("array_to_string", (Kind.ANY, Kind.ANY, Kind.ANY), _to_string, optional=1, coercion=_join_types),
    Function("string_to_array", (Kind.ANY, Kind.ANY, Kind.ANY), _to_array, optional=1, coercion=_split_types),
]
ALIASES = {
    "list_to_string": "array_to_string",
    "array_join": "array_to_string",
    "list_join": "array_to_string",
    "string_to_list": "string_to_array",
}
