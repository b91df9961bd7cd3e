"""Names of types in filter text, both of SQL (``CAST(x AS bigint)``) and of Arrow (``arrow_cast(x, 'Int64')``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pyarrow as pa

__all__ = ["SQL_TYPE_NAMES", "arrow_type_name", "parse_arrow_type", "sql_type"]

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
    """Return the Arrow type of an SQL type name in upper case, or None if the type is unknown."""
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
_UNITS = {
    "second": "s", "s": "s", "millisecond": "ms", "ms": "ms",
    "microsecond": "us", "us": "us", "µs": "us", "nanosecond": "ns", "ns": "ns",
}  # fmt: skip


def _timestamp(unit: str, zone: str = "None") -> pa.DataType:
    inner = re.fullmatch(r"(?:Some\()?\"?([^\")]*)\"?\)?", zone)
    name = inner.group(1) if inner else zone
    return pa.timestamp(_UNITS[unit.lower()], None if name == "None" else name)


def _small_decimal(name: str) -> Callable[..., pa.DataType]:
    def make(precision: str, scale: str) -> pa.DataType:
        factory = getattr(pa, name, None)  # pyarrow 19
        if factory is None:
            raise ValueError(f"this pyarrow has no {name}")
        return factory(int(precision), int(scale))

    return make


def _inner(text: str) -> pa.DataType:
    arrow = parse_arrow_type(text)
    if arrow is None:
        raise ValueError(text)
    return arrow


def _fixed_size_list(*parts: str) -> pa.DataType:
    size, value = parts if len(parts) == 2 else re.split(r"\s+x\s+", parts[0], maxsplit=1)
    return pa.list_(_inner(value), int(size))


def _struct(*parts: str) -> pa.DataType:
    fields = []
    for part in parts:
        match = re.fullmatch(r"\"?([^\":]+)\"?\s*:?\s*(.+)", part, re.DOTALL)
        if match is None:
            raise ValueError(part)
        fields.append((match.group(1), _inner(match.group(2))))
    return pa.struct(fields)


_INTERVALS = {"monthdaynano": pa.month_day_nano_interval()}
_PARAMETRIC: dict[str, Callable[..., pa.DataType]] = {
    "Timestamp": _timestamp,
    "Time32": lambda unit: pa.time32(_UNITS[unit.lower()]),
    "Time64": lambda unit: pa.time64(_UNITS[unit.lower()]),
    "Duration": lambda unit: pa.duration(_UNITS[unit.lower()]),
    "Interval": lambda unit: _INTERVALS[unit.lower()],
    "Decimal32": _small_decimal("decimal32"),
    "Decimal64": _small_decimal("decimal64"),
    "Decimal128": lambda precision, scale: pa.decimal128(int(precision), int(scale)),
    "Decimal256": lambda precision, scale: pa.decimal256(int(precision), int(scale)),
    "FixedSizeBinary": lambda width: pa.binary(int(width)),
    "List": lambda value: pa.list_(_inner(value)),
    "LargeList": lambda value: pa.large_list(_inner(value)),
    "FixedSizeList": _fixed_size_list,
    "Struct": _struct,
    "Dictionary": lambda index, value: pa.dictionary(_inner(index), _inner(value)),
}
_DEEPEST = 32


def parse_arrow_type(name: str) -> pa.DataType | None:
    """Parse the name of an Arrow type such as ``Int64`` or ``Timestamp(Microsecond, None)``; None if unknown."""
    name = name.strip()
    if name in _ARROW:
        return _ARROW[name]
    match = re.fullmatch(r"(\w+)\s*\((.*)\)", name, re.DOTALL)
    if match is None or match.group(1) not in _PARAMETRIC or name.count("(") > _DEEPEST:
        return None
    try:
        return _PARAMETRIC[match.group(1)](*_parameters(match.group(2)))
    except (KeyError, TypeError, ValueError, OverflowError, pa.ArrowException):
        return None


def _parameters(text: str) -> list[str]:
    """Split the text between brackets at commas that are not inside nested brackets or quotes."""
    parts, depth, quoted = [""], 0, False
    for character in text:
        quoted ^= character == '"'
        depth += 0 if quoted else (character == "(") - (character == ")")
        if character == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


_UNIT_NAMES = {"s": "s", "ms": "ms", "us": "µs", "ns": "ns"}
_NAME_OF = {arrow: name for name, arrow in _ARROW.items()}


def arrow_type_name(arrow: pa.DataType) -> str:
    """Return the name `arrow_typeof` gives to a type."""
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
    if pa.types.is_interval(arrow):
        return "Interval(MonthDayNano)"
    if pa.types.is_dictionary(arrow):
        return f"Dictionary({arrow_type_name(arrow.index_type)}, {arrow_type_name(arrow.value_type)})"
    if pa.types.is_fixed_size_binary(arrow):
        return f"FixedSizeBinary({arrow.byte_width})"
    if pa.types.is_fixed_size_list(arrow):
        return f"FixedSizeList({arrow.list_size} x {_nullable_name(arrow.value_field)})"
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return f"{'Large' if pa.types.is_large_list(arrow) else ''}List({_nullable_name(arrow.value_field)})"
    if pa.types.is_struct(arrow):
        return f"Struct({_member_names(arrow)})"
    if pa.types.is_map(arrow):
        entries = _member_names((arrow.key_field, arrow.item_field))
        order = "sorted" if arrow.keys_sorted else "unsorted"
        return f'Map("entries": non-null Struct({entries}), {order})'
    return str(arrow)


def _member_names(fields: Iterable[pa.Field]) -> str:
    return ", ".join(f'"{field.name}": {_nullable_name(field)}' for field in fields)


def _nullable_name(field: pa.Field) -> str:
    return f"{'' if field.nullable else 'non-null '}{arrow_type_name(field.type)}"
