"""Numeric functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .registry import Function, Kind
from .rowwise import rowwise

__all__ = ["ALIASES", "FUNCTIONS"]

_FLOAT, _NUMBER, _INTEGER = Kind.FLOAT, Kind.NUMBER, Kind.INTEGER


def _numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel out of a NumPy function of float64 arrays."""

    def kernel(*data: Any) -> Any:
        with np.errstate(all="ignore"):
            if all(isinstance(datum, pa.Scalar) for datum in data):
                values = [datum.as_py() for datum in data]
                return pa.scalar(None if None in values else float(function(*map(np.float64, values))), pa.float64())
            length = next(len(datum) for datum in data if not isinstance(datum, pa.Scalar))
            missing = np.zeros(length, bool)
            columns = []
            for datum in data:
                if isinstance(datum, pa.Scalar):
                    if not datum.is_valid:
                        return pa.nulls(length, pa.float64())
                    columns.append(datum.as_py())
                    continue
                if datum.null_count:
                    missing |= pc.is_null(datum).to_numpy(zero_copy_only=False)
                columns.append(pc.fill_null(datum, 0.0).to_numpy(zero_copy_only=False))
            result = np.asarray(function(*columns), dtype=np.float64)
            return pa.array(result, pa.float64(), mask=missing if missing.any() else None)

    return kernel


def _round(value: Any, digits: Any = None) -> Any:
    if digits is not None and (not isinstance(digits, pa.Scalar) or not digits.is_valid):
        return rowwise(lambda number, to: _round(pa.scalar(number), pa.scalar(to)).as_py(), value.type)(value, digits)
    places: int = 0 if digits is None else digits.as_py()
    if pa.types.is_integer(value.type):
        value = pc.cast(value, pa.float64(), safe=False)
    rounded = pc.round(value, ndigits=places, round_mode="half_towards_infinity")
    if pa.types.is_decimal(value.type) and places < value.type.scale:
        rounded = pc.cast(rounded, _rescaled(value.type, max(places, 0)))
    return rounded


def _rescaled(arrow: pa.DataType, scale: int) -> pa.DataType:
    width = pa.decimal128 if pa.types.is_decimal128(arrow) else pa.decimal256
    return width(arrow.precision, scale)


def _truncate(value: Any, digits: Any = None) -> Any:
    places = digits if digits is not None else pa.scalar(0)
    return _numpy(lambda number, to: np.trunc(number * 10.0**to) / 10.0**to if np.any(to) else np.trunc(number))(
        value, pc.cast(places, pa.float64())
    )


def _log(first: Any, second: Any = None) -> Any:
    return pc.log10(first) if second is None else pc.divide(pc.ln(second), pc.ln(first))


def _is_nan(value: Any) -> Any:
    if pa.types.is_floating(value.type):
        return pc.is_nan(value)
    return pc.and_(pc.is_valid(value), False) if not _has_null(value) else pc.not_equal(value, value)


def _has_null(value: Any) -> bool:
    return not value.is_valid if isinstance(value, pa.Scalar) else value.null_count > 0


def _is_zero(value: Any) -> Any:
    return pc.equal(value, pa.scalar(0).cast(value.type))


def _nan_value(value: Any, other: Any) -> Any:
    return pc.if_else(pc.is_nan(value), other, value)


def _absolute(value: Any) -> Any:
    return value if pa.types.is_unsigned_integer(value.type) else pc.abs_checked(value)


def _pi() -> Any:
    return pa.scalar(math.pi, pa.float64())


def _factorial(value: int) -> int:
    if not 0 <= value <= 20:
        raise pa.ArrowInvalid(f"factorial({value}) does not fit int64")
    return math.factorial(value)


_UNARY: dict[str, Callable[..., Any]] = {
    "acos": pc.acos, "asin": pc.asin, "atan": pc.atan, "cos": pc.cos, "sin": pc.sin, "tan": pc.tan,
    "exp": _numpy(np.exp), "ln": pc.ln, "log10": pc.log10, "log2": pc.log2, "sqrt": pc.sqrt,
    "acosh": _numpy(np.arccosh), "asinh": _numpy(np.arcsinh), "atanh": _numpy(np.arctanh), "cosh": _numpy(np.cosh),
    "sinh": _numpy(np.sinh), "tanh": _numpy(np.tanh), "cbrt": _numpy(np.cbrt), "degrees": _numpy(np.degrees),
    "radians": _numpy(np.radians), "cot": _numpy(lambda x: 1.0 / np.tan(x)), "ceil": pc.ceil, "floor": pc.floor,
    "signum": _numpy(lambda x: np.where(x == 0, 0.0, np.sign(x))),
}  # fmt: skip

FUNCTIONS = [
    *(Function(name, (_FLOAT,), kernel) for name, kernel in _UNARY.items()),
    Function("abs", (_NUMBER,), _absolute),
    Function("atan2", (_FLOAT, _FLOAT), pc.atan2),
    Function("power", (_FLOAT, _FLOAT), pc.power),
    Function("log", (_FLOAT, _FLOAT), _log, optional=1),
    Function("round", (_NUMBER, _INTEGER), _round, optional=1),
    Function("trunc", (_FLOAT, _INTEGER), _truncate, optional=1),
    Function("isnan", (_NUMBER,), _is_nan),
    Function("iszero", (_NUMBER,), _is_zero),
    Function("nanvl", (_FLOAT, _FLOAT), _nan_value),
    Function("pi", (), _pi),
    Function("gcd", (_INTEGER, _INTEGER), rowwise(math.gcd, pa.int64())),
    Function(
        "lcm", (_INTEGER, _INTEGER), rowwise(lambda a, b: abs(a * b) // math.gcd(a, b) if a and b else 0, pa.int64())
    ),
    Function("factorial", (_INTEGER,), rowwise(_factorial, pa.int64())),
]
ALIASES = {"pow": "power", "ceiling": "ceil"}
