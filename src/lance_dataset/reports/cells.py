"""Values of columns as text, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["cell_texts", "python_values", "shown_text"]

_TEXT = pa.string()


def cell_texts(column: pa.Array, longest: int) -> pa.StringArray:
    """Return the values of a column as text of limited length, without characters that move the cursor."""
    texts = _simple_texts(column)
    if texts is None or pc.any(pc.invert(pc.utf8_is_printable(texts))).as_py():
        values = python_values(column)
        return pa.array([_cut(shown_text(_beginning(value, longest)), longest) for value in values], _TEXT)
    texts = pc.fill_null(texts, "null")
    too_long = pc.greater(pc.utf8_length(texts), longest)
    if not pc.any(too_long).as_py():
        return texts
    cut = pc.binary_join_element_wise(pc.utf8_slice_codeunits(texts, 0, longest - 3), "...", "")
    return pc.if_else(too_long, cut, texts)


def _simple_texts(column: pa.Array) -> pa.StringArray | None:
    """Convert values that Arrow writes as people do; None for other types."""
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return pc.replace_substring_regex(column.cast(_TEXT), r"\.0+$", "")
    if pa.types.is_date(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        return column.cast(_TEXT)
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return column.cast(_TEXT)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(_TEXT)
    return None


def python_values(column: pa.Array) -> list[Any]:
    """Return the values of a column as Python objects; times in nanoseconds, which Python does not have, as text."""
    kind = _without_nanoseconds(column.type)
    return (column if kind == column.type else column.cast(kind)).to_pylist()


def _without_nanoseconds(kind: pa.DataType) -> pa.DataType:
    if kind in (pa.time64("ns"),) or (pa.types.is_timestamp(kind) and kind.unit == "ns"):
        return _TEXT
    if kind == pa.duration("ns"):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_nanoseconds(field.type)) for field in kind.fields])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_nanoseconds(kind.value_type)))
    return kind


def shown_text(value: Any) -> str:
    """Return a value as text on one line."""
    text = "null" if value is None else value if isinstance(value, str) else str(value)
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _beginning(value: Any, longest: int) -> Any:
    """Cut long values before they are formatted."""
    return value[: longest + 1] if isinstance(value, (str, bytes, list)) and len(value) > longest else value


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def texts_of(values: Sequence[Any], longest: int) -> pa.StringArray:
    """Return Python values as `cell_texts` does."""
    return pa.array([_cut(shown_text(_beginning(value, longest)), longest) for value in values], _TEXT)
