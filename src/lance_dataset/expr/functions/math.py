"""Numeric functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.decimals import rescaled
from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.rowwise import rowwise

__all__ = ["ALIASES", "FUNCTIONS"]

_FLOAT, _NUMBER, _INTEGER = Kind.FLOAT, Kind.NUMBER, Kind.INTEGER


#: Powers of ten with more zeros do not fit a float.
_MOST_PLACES, _MOST_PLACES_OF_SINGLES = 308, 38


def _real(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a kernel to compute in single precision for float32, and in double precision for all other numbers."""

    def real(value: Any) -> Any:
        single = pa.types.is_float32(value.type)
        result = kernel(value if single or pa.types.is_float64(value.type) else _double(value))
        return pc.cast(result, pa.float32(), safe=False) if single and not pa.types.is_float32(result.type) else result

    return real


def _double(value: Any) -> Any:
    return pc.cast(value, pa.float64(), safe=False)


def _in_one_precision(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a kernel to compute in double precision if an argument is float64 or decimal, else in single precision."""

    def meeting(*values: Any) -> Any:
        double = any(pa.types.is_float64(v.type) or pa.types.is_decimal(v.type) for v in values)
        target = pa.float64() if double else pa.float32()
        result = kernel(*(pc.cast(value, target, safe=False) for value in values))
        return result if result.type.equals(target) else pc.cast(result, target, safe=False)

    return meeting


def _numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel for a NumPy function of float64 arrays."""

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
    if pa.types.is_decimal(value.type):
        return _round_decimal(value, places)
    if pa.types.is_integer(value.type):
        value = pc.cast(value, pa.float64(), safe=False)
    if abs(places) > (_MOST_PLACES if pa.types.is_float64(value.type) else _MOST_PLACES_OF_SINGLES):
        return pc.multiply(value, pa.scalar(math.nan, value.type))  # as in the reference
    return pc.round(value, ndigits=places, round_mode="half_towards_infinity")


def _round_decimal(value: Any, places: int) -> Any:
    """Round decimals to at most the given number of places, and to at least none."""
    if places >= value.type.scale:
        return value
    width = pa.decimal128 if pa.types.is_decimal128(value.type) else pa.decimal256
    target = width(value.type.precision, max(places, 0))
    if places >= 0:
        return rescaled(value, target)
    widest = 38 if pa.types.is_decimal128(value.type) else 76
    if widest + places <= 0:
        return pc.if_else(pc.is_valid(value), pa.scalar(Decimal(0), target), pa.scalar(None, target))
    return pc.cast(rescaled(value, width(widest + places, places)), target)


def _truncate(value: Any, digits: Any = None) -> Any:
    if digits is None:
        return _real(pc.trunc)(value)
    target = pa.float64() if pa.types.is_float64(value.type) or pa.types.is_decimal(value.type) else pa.float32()
    cut = _numpy(_cut)
    return pc.cast(cut(pc.cast(value, target, safe=False), pc.cast(digits, target)), target, safe=False)


def _cut(number: Any, places: Any) -> Any:
    factor = np.power(10.0, places)
    return np.trunc(number * factor) / factor if np.any(places) else np.trunc(number)


def _log(first: Any, second: Any = None) -> Any:
    if second is None:
        return _real(pc.log10)(first)
    target = pa.float32() if pa.types.is_float32(second.type) else pa.float64()
    base, number = (pc.cast(value, pa.float64(), safe=False) for value in (first, second))
    return pc.cast(_numpy(lambda b, n: np.log(n) / np.log(b))(base, number), target, safe=False)


def _is_nan(value: Any) -> Any:
    if pa.types.is_floating(value.type):
        return pc.is_nan(value)
    return pc.and_(pc.is_valid(value), False) if not _has_null(value) else pc.not_equal(value, value)


def _has_null(value: Any) -> bool:
    return not value.is_valid if isinstance(value, pa.Scalar) else value.null_count > 0


def _is_zero(value: Any) -> Any:
    """Return True for zeros of both signs."""
    return pc.equal(value, pa.scalar(Decimal(0) if pa.types.is_decimal(value.type) else 0, value.type))


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


def _least_common_multiple(left: int, right: int) -> int:
    result = math.lcm(left, right)
    if result >= 2**63:
        raise pa.ArrowInvalid(f"lcm({left}, {right}) does not fit int64")
    return result


def _greatest_common_divisor(left: int, right: int) -> int:
    result = math.gcd(left, right)
    if result >= 2**63:
        raise pa.ArrowInvalid(f"gcd({left}, {right}) does not fit int64")
    return result


_UNARY: dict[str, Callable[..., Any]] = {
    "acos": pc.acos, "asin": pc.asin, "atan": pc.atan, "cos": pc.cos, "sin": pc.sin, "tan": pc.tan,
    "exp": _numpy(np.exp), "ln": pc.ln, "log10": pc.log10, "log2": pc.log2, "sqrt": pc.sqrt,
    "acosh": _numpy(np.arccosh), "asinh": _numpy(np.arcsinh), "atanh": _numpy(np.arctanh), "cosh": _numpy(np.cosh),
    "sinh": _numpy(np.sinh), "tanh": _numpy(np.tanh), "cbrt": _numpy(np.cbrt), "degrees": _numpy(np.degrees),
    "radians": _numpy(np.radians), "cot": _numpy(lambda x: 1.0 / np.tan(x)), "ceil": pc.ceil, "floor": pc.floor,
    "signum": _numpy(lambda x: np.where(x == 0, 0.0, np.sign(x))),
}  # fmt: skip

FUNCTIONS = [
    *(Function(name, (_NUMBER,), _real(kernel)) for name, kernel in _UNARY.items()),
    Function("abs", (_NUMBER,), _absolute),
    Function("atan2", (_NUMBER, _NUMBER), _in_one_precision(pc.atan2)),
    Function("power", (_FLOAT, _FLOAT), pc.power),
    Function("log", (_NUMBER, _NUMBER), _log, optional=1),
    Function("round", (_NUMBER, _INTEGER), _round, optional=1),
    Function("trunc", (_NUMBER, _INTEGER), _truncate, optional=1),
    Function("isnan", (_NUMBER,), _is_nan),
    Function("iszero", (_NUMBER,), _is_zero),
    Function("nanvl", (_NUMBER, _NUMBER), _in_one_precision(_nan_value)),
    Function("pi", (), _pi),
    Function("gcd", (_INTEGER, _INTEGER), rowwise(_greatest_common_divisor, pa.int64())),
    Function("lcm", (_INTEGER, _INTEGER), rowwise(_least_common_multiple, pa.int64())),
    Function("factorial", (_INTEGER,), rowwise(_factorial, pa.int64())),
]
ALIASES = {"pow": "power", "ceiling": "ceil"}
