"""Names of types in filter text, both of SQL (``CAST(x AS bigint)``) and of Arrow (``arrow_cast(x, 'Int64')``)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

__all__ = ["ARROW_TYPE_NAMES", "SQL_TYPE_NAMES", "arrow_type_name", "parse_arrow_type", "sql_type"]

_SIMPLE: dict[str, pa.DataType] = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "BOOL": pa.bool_(),
    "STRING": pa.string(),
    "VARCHAR": pa.string(),
    "TEXT": pa.string(),
    "BINARY": pa.binary(),
    "BYTEA": pa.binary(),
    "DATE": pa.date32(),
}
_UNSIGNED: dict[str, pa.DataType] = {
    "TINYINT": pa.uint8(),
    "SMALLINT": pa.uint16(),
    "INT": pa.uint32(),
    "INTEGER": pa.uint32(),
    "BIGINT": pa.uint64(),
}
_PRECISION_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
SQL_TYPE_NAMES = (*_SIMPLE, "TIMESTAMP", "DATETIME", "DECIMAL", "NUMERIC")


def sql_type(name: str, parameters: tuple[int, ...] = (), *, unsigned: bool = False) -> pa.DataType | None:
    """The Arrow type of an SQL type name in upper case, or None when there is no such type."""
    if unsigned:
        return _UNSIGNED.get(name) if not parameters else None
    if name in ("TIMESTAMP", "DATETIME"):
        precision = parameters[0] if parameters else 6
        unit = _PRECISION_UNITS.get(precision)
        return pa.timestamp(unit) if unit is not None and len(parameters) <= 1 else None
    if name in ("DECIMAL", "NUMERIC"):
        return _decimal(parameters)
    if parameters and name != "VARCHAR":
        return None
    return _SIMPLE.get(name)


def _decimal(parameters: tuple[int, ...]) -> pa.DataType | None:
    if not 1 <= len(parameters) <= 2:
        return None
    precision, scale = parameters[0], parameters[1] if len(parameters) == 2 else 0
    if not (1 <= precision <= 76 and 0 <= scale <= precision):
        return None
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


_ARROW: dict[str, pa.DataType] = {
    "Null": pa.null(),
    "Boolean": pa.bool_(),
    "Int8": pa.int8(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "UInt8": pa.uint8(),
    "UInt16": pa.uint16(),
    "UInt32": pa.uint32(),
    "UInt64": pa.uint64(),
    "Float16": pa.float16(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Utf8": pa.string(),
    "LargeUtf8": pa.large_string(),
    "Binary": pa.binary(),
    "LargeBinary": pa.large_binary(),
    "Date32": pa.date32(),
    "Date64": pa.date64(),
}
if hasattr(pa, "string_view"):  # pyarrow 16
    _ARROW.update({"Utf8View": pa.string_view(), "BinaryView": pa.binary_view()})
ARROW_TYPE_NAMES = (*_ARROW, "Timestamp", "Time32", "Time64", "Duration", "Decimal128", "Decimal256", "FixedSizeBinary")
_UNITS = {
    "second": "s", "s": "s", "millisecond": "ms", "ms": "ms",
    "microsecond": "us", "us": "us", "µs": "us", "nanosecond": "ns", "ns": "ns",
}  # fmt: skip


def _timestamp(unit: str, zone: str = "None") -> pa.DataType:
    inner = re.fullmatch(r"(?:Some\()?\"?([^\")]*)\"?\)?", zone)
    name = inner.group(1) if inner else zone
    return pa.timestamp(_UNITS[unit.lower()], None if name == "None" else name)


_PARAMETRIC: dict[str, Callable[..., pa.DataType]] = {
    "Timestamp": _timestamp,
    "Time32": lambda unit: pa.time32(_UNITS[unit.lower()]),
    "Time64": lambda unit: pa.time64(_UNITS[unit.lower()]),
    "Duration": lambda unit: pa.duration(_UNITS[unit.lower()]),
    "Decimal128": lambda precision, scale: pa.decimal128(int(precision), int(scale)),
    "Decimal256": lambda precision, scale: pa.decimal256(int(precision), int(scale)),
    "FixedSizeBinary": lambda width: pa.binary(int(width)),
}


def parse_arrow_type(name: str) -> pa.DataType | None:
    """The type of an Arrow type name such as ``Int64`` or ``Timestamp(Microsecond, None)``; None when unknown."""
    name = name.strip()
    if name in _ARROW:
        return _ARROW[name]
    match = re.fullmatch(r"(\w+)\((.*)\)", name)
    if match is None or match.group(1) not in _PARAMETRIC:
        return None
    try:
        return _PARAMETRIC[match.group(1)](*(part.strip() for part in match.group(2).split(",")))
    except (KeyError, TypeError, ValueError, pa.ArrowException):
        return None


_UNIT_NAMES = {"s": "s", "ms": "ms", "us": "µs", "ns": "ns"}
_NAME_OF = {arrow: name for name, arrow in _ARROW.items()}


def arrow_type_name(arrow: pa.DataType) -> str:
    """The name `arrow_typeof` gives to a type."""
    if arrow in _NAME_OF:
        return _NAME_OF[arrow]
    if pa.types.is_timestamp(arrow):
        zone = f', "{arrow.tz}"' if arrow.tz else ""
        return f"Timestamp({_UNIT_NAMES[arrow.unit]}{zone})"
    if pa.types.is_time(arrow) or pa.types.is_duration(arrow):
        family = "Duration" if pa.types.is_duration(arrow) else f"Time{arrow.bit_width}"
        return f"{family}({_UNIT_NAMES[arrow.unit]})"
    if pa.types.is_decimal(arrow):
        return f"Decimal{arrow.bit_width}({arrow.precision}, {arrow.scale})"
    if pa.types.is_fixed_size_binary(arrow):
        return f"FixedSizeBinary({arrow.byte_width})"
    if pa.types.is_fixed_size_list(arrow):
        return f"FixedSizeList({arrow.list_size} x {arrow_type_name(arrow.value_type)})"
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return f"{'Large' if pa.types.is_large_list(arrow) else ''}List({arrow_type_name(arrow.value_type)})"
    if pa.types.is_struct(arrow):
        return f"Struct({', '.join(f'{chr(34)}{f.name}{chr(34)}: {arrow_type_name(f.type)}' for f in arrow)})"
    return str(arrow)
