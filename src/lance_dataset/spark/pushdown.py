"""Translation of Spark filters to Lance SQL where both mean exactly the same; Spark evaluates all other filters.

Each translation is exact in three-valued logic, not only for rows that pass. So NOT may be put in front of it.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds

__all__ = ["literal", "quoted", "translate"]

_EPOCH = datetime.datetime(1970, 1, 1)
_UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_UTC_NAMES = ("UTC", "Z", "+00:00", "Etc/UTC")
_COMPARISONS: dict[type, str] = {
    ds.EqualTo: "=",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
}
_TEXT_TESTS: dict[type, str] = {
    ds.StringStartsWith: "starts_with",
    ds.StringEndsWith: "ends_with",
    ds.StringContains: "contains",
}


def translate(condition: Any, schema: pa.Schema) -> str | None:
    """Translate a Spark filter to Lance SQL.

    Parameters
    ----------
    condition
        A `pyspark.sql.datasource.Filter`.
    schema
        Arrow schema of the dataset.

    Returns
    -------
    str or None
        None if no filter text has exactly the same meaning.
    """
    if isinstance(condition, ds.Not):
        inner = translate(condition.child, schema)
        return None if inner is None else f"NOT ({inner})"
    attribute = getattr(condition, "attribute", None)
    located = _locate(attribute, schema) if attribute else None
    if located is None:
        return None
    column, arrow = located
    if isinstance(condition, ds.IsNull):
        return f"{column} IS NULL"
    if isinstance(condition, ds.IsNotNull):
        return f"{column} IS NOT NULL"
    return _with_value(condition, column, arrow)


def _with_value(condition: Any, column: str, arrow: pa.DataType) -> str | None:
    if isinstance(condition, ds.EqualNullSafe):
        if condition.value is None:
            return f"{column} IS NULL"
        text = literal(condition.value, arrow)
        return None if text is None else f"({column} IS NOT NULL AND {column} = {text})"
    if isinstance(condition, ds.In):
        texts = [literal(value, arrow) for value in condition.value]
        if not texts or None in texts:
            return None
        if pa.types.is_floating(arrow):  # lists may be looked up by hash, which distinguishes -0.0 from 0.0
            return "(" + " OR ".join(f"{column} = {text}" for text in texts) + ")"
        return f"{column} IN ({', '.join(text for text in texts if text is not None)})"
    function = _TEXT_TESTS.get(type(condition))
    if function is not None:
        text = literal(condition.value, arrow) if _is_text(arrow) else None
        return None if text is None else f"{function}({column}, {text})"
    operator = _COMPARISONS.get(type(condition))
    if operator is None:
        return None
    return _comparison(column, operator, condition.value, arrow)


def _comparison(column: str, operator: str, value: Any, arrow: pa.DataType) -> str | None:
    if operator != "=" and (_is_bytes(arrow) or pa.types.is_boolean(arrow)):
        return None
    text = literal(value, arrow)
    if text is None:
        return None
    compared = f"{column} {operator} {text}"
    if not pa.types.is_floating(arrow) or operator == "=":
        return compared
    # In Spark NaN is larger than every number. Say so explicitly instead of relying on the engine below.
    if operator.startswith(">"):
        return f"({compared} OR isnan({column}))"
    return f"({compared} AND NOT isnan({column}))"


def _locate(path: tuple[str, ...], schema: pa.Schema) -> tuple[str, pa.DataType] | None:
    """Return the quoted name and the type of a column or a field of a struct."""
    arrow: pa.DataType = pa.struct(list(schema))
    for name in path:
        if not pa.types.is_struct(arrow) or "`" in name or not name or arrow.get_field_index(name) < 0:
            return None
        arrow = arrow.field(name).type
    if isinstance(arrow, pa.BaseExtensionType) or pa.types.is_null(arrow):
        return None
    return ".".join(map(quoted, path)), arrow


def _is_text(arrow: pa.DataType) -> bool:
    return pa.types.is_string(arrow) or pa.types.is_large_string(arrow)


def _is_bytes(arrow: pa.DataType) -> bool:
    return pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow)


def quoted(name: str) -> str:
    """Return a column name as Lance's SQL takes it."""
    return f"`{name}`"


def literal(value: Any, arrow: pa.DataType) -> str | None:
    """Return the value as a literal that Lance compares with the column without a cast, or None."""
    for test, write in _WRITERS:
        if test(arrow):
            return write(value, arrow)
    return None


def _boolean(value: Any, arrow: pa.DataType) -> str | None:
    return str(value).lower() if isinstance(value, bool) else None


def _integer(value: Any, arrow: pa.DataType) -> str | None:
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)  # uint64 columns are decimal(20,0) in Spark
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    bits = arrow.bit_width
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if pa.types.is_signed_integer(arrow) else (0, 2**bits)
    # The smallest integer is spelled with a number that is one too large for its type.
    return str(value) if low < value < high or (value == low == 0) else None


def _floating(value: Any, arrow: pa.DataType) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    if pa.types.is_float32(arrow) and pa.scalar(value, pa.float32()).as_py() != value:
        return None
    text = f"{Decimal(repr(float(value))):f}"
    return text if "." in text else f"{text}.0"


def _decimal(value: Any, arrow: pa.DataType) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    try:
        exact = pa.scalar(Decimal(value), arrow).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    return f"decimal({arrow.precision},{arrow.scale}) '{exact:f}'" if exact == value else None


def _text(value: Any, arrow: pa.DataType) -> str | None:
    if not isinstance(value, str) or "\0" in value:
        return None
    return "'" + value.replace("'", "''") + "'"


def _bytes(value: Any, arrow: pa.DataType) -> str | None:
    return f"X'{bytes(value).hex()}'" if isinstance(value, (bytes, bytearray)) and value else None


def _date(value: Any, arrow: pa.DataType) -> str | None:
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        return None
    return f"date '{value.isoformat()}'"


def _timestamp(value: Any, arrow: pa.DataType) -> str | None:
    """Return a literal of a UTC timestamp, or None if the unit of the column does not hold it exactly."""
    if not isinstance(value, datetime.datetime) or (arrow.tz is not None and arrow.tz not in _UTC_NAMES):
        return None
    if (value.tzinfo is None) != (arrow.tz is None):
        return None
    if value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    micros = (value - _EPOCH) // datetime.timedelta(microseconds=1)
    units, rest = divmod(micros * _UNITS_PER_SECOND[arrow.unit], 10**6)
    if rest or not -(2**63) < units < 2**63:
        return None
    digits = _DIGITS[arrow.unit]
    return f"timestamp({digits}) '{value.isoformat(sep=' ', timespec='microseconds')}'"


_WRITERS: list[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType], str | None]]] = [
    (pa.types.is_boolean, _boolean),
    (pa.types.is_integer, _integer),
    (lambda arrow: pa.types.is_float32(arrow) or pa.types.is_float64(arrow), _floating),
    (pa.types.is_decimal128, _decimal),
    (_is_text, _text),
    (_is_bytes, _bytes),
    (pa.types.is_date32, _date),
    (pa.types.is_timestamp, _timestamp),
]
