"""Products, quotients and roundings of decimals, with the precision and scale that the dialect gives them.

A product keeps all digits. A quotient has four decimal places more than the dividend, and further digits are cut off.
All divisions are done here, because Arrow (26 and before) divides some decimals by powers of ten wrongly when it
rounds, casts to fewer places, or computes quotients. An example is `2**64 - 1` followed by 21 zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.file.buffers import allocate, bitmap_at_zero
from lancecodec import decimals

__all__ = ["decimal_product", "decimal_quotient", "rescaled", "truncated_to_integers", "with_more_places"]

_WIDEST = 76
_WIDEST_NARROW = 38
_EXTRA_PLACES = 4
_SAFE = 2**62
_MOST = 2**127 - 1
Kernel = Callable[[Any, Any], Any]


def _type(precision: int, scale: int, *operands: pa.DataType) -> pa.DataType:
    """Return a decimal type with as many digits as possible, of 128 bits if the operands are and the places fit."""
    narrow = scale <= _WIDEST_NARROW and all(pa.types.is_decimal128(operand) for operand in operands)
    if narrow:
        return pa.decimal128(min(precision, _WIDEST_NARROW), scale)
    return pa.decimal256(min(precision, _WIDEST), scale)


def decimal_product(left: pa.DataType, right: pa.DataType) -> Kernel:
    """Return the kernel of the product of two decimals, which fails if its type has too few bits."""
    precision = left.precision + right.precision + 1
    target = _type(precision, left.scale + right.scale, left, right)
    if not pa.types.is_decimal128(target):
        return _wide_product(left, right, target)
    exact = pc.multiply if precision <= _WIDEST_NARROW else _wide_product(left, right, target)

    def kernel(a: Any, b: Any) -> Any:
        product = _narrow_product(a, b, target, _MOST)
        return exact(a, b) if product is None else product

    return kernel


def _narrow_product(left: Any, right: Any, target: pa.DataType, most: int) -> pa.Array | None:
    """Multiply decimals of 128 bits; None if neither is an array, or a value (even under a null) exceeds `most`."""
    if isinstance(left, pa.Scalar):
        left, right = right, left
    length = len(left) if isinstance(left, pa.Array) else 0
    if not length or not (isinstance(right, pa.Array) or right.is_valid):
        return None
    out = allocate(16 * length)
    factors = [_words(datum) for datum in (left, right)]
    if not decimals.multiply(factors[0], factors[1], length, most, out):
        return None
    return pa.Array.from_buffers(target, length, [_validity(left, right), out])


def _words(datum: Any) -> pa.Buffer:
    """Return the digits of decimals of 128 bits, 16 bytes each."""
    if isinstance(datum, pa.Scalar):
        datum = pa.repeat(datum, 1)
    return datum.buffers()[1].slice(16 * datum.offset, 16 * len(datum))


def _validity(left: Any, right: Any) -> pa.Buffer | None:
    """Return where two arrays, or an array and a valid scalar, are both valid."""
    masked = [side for side in (left, right) if isinstance(side, pa.Array) and side.null_count]
    if len(masked) == 2:
        return pc.and_(left.is_valid(), right.is_valid()).buffers()[1]
    return bitmap_at_zero(masked[0].buffers()[0], masked[0].offset, len(left)) if masked else None


def with_more_places(datum: Any, target: pa.DataType) -> Any:
    """Convert decimals to as many places or more; raise pyarrow.ArrowInvalid if the type has too few digits."""
    places = target.scale - datum.type.scale
    if 0 < places < _WIDEST_NARROW and pa.types.is_decimal128(datum.type) and pa.types.is_decimal128(target):
        unit = pa.scalar(Decimal(10**places), pa.decimal128(_WIDEST_NARROW, 0))
        most = 10**target.precision - 1
        scaled = _narrow_product(datum, unit, target, most) if isinstance(datum, pa.Array) else None
        if scaled is not None:
            return scaled
    return pc.cast(datum, target)


def _wide_product(left: pa.DataType, right: pa.DataType, target: pa.DataType) -> Kernel:
    """Return the kernel of a product if 128 bits may be too few."""
    precision = left.precision + right.precision + 1
    holders = [pa.decimal256(side.precision, side.scale) for side in (left, right)]

    def kernel(a: Any, b: Any) -> Any:
        small = _small_product(a, b, target)
        if small is not None:
            return small
        if precision > _WIDEST:
            product = _exactly(lambda x, y: x * y, pa.decimal256(_WIDEST, target.scale), a, b)
        else:
            product = pc.multiply(pc.cast(a, holders[0]), pc.cast(b, holders[1]))
        return _narrowed(product, target) if pa.types.is_decimal128(target) else product

    return kernel


def _narrowed(wide: Any, target: pa.DataType) -> Any:
    """Convert decimals of 256 bits to 128 bits, allowing one digit too many, as the reference does."""
    if isinstance(wide, pa.Scalar):
        return _narrowed(pa.repeat(wide, 1), target)[0]
    words = np.frombuffer(wide.buffers()[1], np.int64).reshape(-1, 4)[wide.offset : wide.offset + len(wide)]
    missing = _missing(wide, wide, len(wide))
    if not np.all((words[:, 2:] == (words[:, 1] >> 63)[:, None]).all(axis=1) | missing):
        raise pa.ArrowInvalid(f"Arithmetic overflow: a product has more digits than {target}")
    valid = pa.array(~missing).buffers()[1] if missing.any() else None
    return pa.Array.from_buffers(target, len(wide), [valid, pa.py_buffer(np.ascontiguousarray(words[:, :2]))])


def _small_product(left: Any, right: Any, target: pa.DataType) -> pa.Array | None:
    """Multiply with integers, which is several times faster than with 256 bits; None if 64 bits are too few."""
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return None
    length = len(right) if isinstance(left, pa.Scalar) else len(left)
    factors = []
    for side in (left, right):
        digits = _small(side, length)
        if digits is None:
            return None
        factors.append(digits)
    if length and _largest(factors[0]) * _largest(factors[1]) > _SAFE:
        return None
    return _decimals(factors[0] * factors[1], _missing(left, right, length), target)


def decimal_quotient(left: pa.DataType, right: pa.DataType) -> Kernel:
    """Return the kernel of the quotient of two decimals."""
    scale = left.scale + _EXTRA_PLACES
    target = _type(left.precision - left.scale + right.scale + scale, scale, left, right)
    places = right.scale + _EXTRA_PLACES

    def divide(a: Decimal, b: Decimal) -> Decimal:
        if b == 0:
            raise pa.ArrowInvalid("divide by zero")
        quotient = int(abs(a).scaleb(scale) / abs(b))
        return Decimal(quotient if (a < 0) == (b < 0) else -quotient).scaleb(-scale)

    def kernel(a: Any, b: Any) -> Any:
        if 0 <= places <= 18 and not (isinstance(a, pa.Scalar) and isinstance(b, pa.Scalar)):
            length = len(b) if isinstance(a, pa.Scalar) else len(a)
            dividend, divisor = _small(a, length), _small(b, length)
            if dividend is not None and divisor is not None and _fits(dividend, 10**places):
                return _quotients(dividend * 10**places, divisor, _missing(a, b, length), target)
        return _exactly(divide, target, a, b)

    return kernel


def _quotients(
    dividend: NDArray[np.int64], divisor: NDArray[np.int64], missing: NDArray[np.bool_], target: pa.DataType
) -> pa.Array:
    if np.any((divisor == 0) & ~missing):
        raise pa.ArrowInvalid("divide by zero")
    quotient = np.abs(dividend) // np.where(divisor == 0, 1, np.abs(divisor))
    return _decimals(np.where((dividend < 0) == (divisor < 0), quotient, -quotient), missing, target)


def rescaled(datum: Any, target: pa.DataType, *, cut: bool = False) -> Any:
    """Convert decimals to as many places or fewer, rounding half away from zero or cutting digits off.

    Parameters
    ----------
    datum
        Decimals of any width, as an array or scalar.
    target
        A decimal type whose scale is not larger.
    cut
        Cut the digits off instead of rounding.

    Raises
    ------
    pyarrow.ArrowInvalid
        A result has more digits than the target.
    """
    if isinstance(datum, pa.Scalar):
        return rescaled(pa.repeat(datum, 1), target, cut=cut)[0]
    drop = datum.type.scale - target.scale
    if drop == 0:
        return pc.cast(datum, target)
    unit = 10**drop
    small = _small(datum, len(datum)) if drop <= 18 else None
    if small is None or not _fits(small, 1):
        return _exactly(lambda value: _rescaled_value(value, target, cut), target, datum)
    size = np.abs(small)
    whole = size // unit if cut else (size + unit // 2) // unit
    if np.any(whole >= 10 ** min(target.precision, 18)) and target.precision <= 18:
        raise pa.ArrowInvalid(f"A number has more digits than {target}")
    return _decimals(np.where(small < 0, -whole, whole), _missing(datum, datum, len(datum)), target)


def _rescaled_value(value: Decimal, target: pa.DataType, cut: bool) -> Decimal:
    scaled = abs(value).scaleb(target.scale)
    whole = int(scaled if cut else scaled + Decimal("0.5"))
    if whole >= 10**target.precision:
        raise pa.ArrowInvalid(f"{value} has more digits than {target}")
    return Decimal(-whole if value < 0 else whole).scaleb(-target.scale)


def truncated_to_integers(datum: Any, target: pa.DataType) -> Any:
    """Truncate decimals to integers."""
    whole = pa.decimal128(38, 0) if pa.types.is_decimal128(datum.type) else pa.decimal256(_WIDEST, 0)
    if datum.type.scale > 0:
        datum = rescaled(datum, whole, cut=True)
    return pc.cast(datum, target)


def _small(datum: Any, length: int) -> NDArray[np.int64] | None:
    """Return the digits of decimals as 64-bit integers, zero for null; None if some value is too large."""
    if isinstance(datum, pa.Scalar):
        one = _small(pa.repeat(datum, 1), 1)
        return None if one is None else np.repeat(one, length)
    if len(datum) == 0:
        return np.zeros(0, np.int64)
    words = np.frombuffer(datum.buffers()[1], np.int64).reshape(-1, datum.type.byte_width // 8)
    words = words[datum.offset : datum.offset + len(datum)]
    low = words[:, 0]
    fits = (words[:, 1:] == (low >> 63)[:, None]).all(axis=1)
    if datum.null_count:
        missing = datum.is_null().to_numpy(zero_copy_only=False)
        low, fits = np.where(missing, 0, low), fits | missing
    return low if fits.all() else None


def _fits(values: NDArray[np.int64], factor: int) -> bool:
    """Return True if the values times the factor are 64-bit integers with a bit to spare."""
    limit = _SAFE // factor
    return not len(values) or bool(values.max() <= limit and values.min() >= -limit)


def _largest(values: NDArray[np.int64]) -> int:
    return max(abs(int(values.max())), abs(int(values.min())))


def _missing(left: Any, right: Any, length: int) -> NDArray[np.bool_]:
    missing = np.zeros(length, bool)
    for side in (left, right):
        if isinstance(side, pa.Scalar):
            missing |= not side.is_valid
        elif side.null_count:
            missing |= side.is_null().to_numpy(zero_copy_only=False)
    return missing


def _decimals(values: NDArray[np.int64], missing: NDArray[np.bool_], target: pa.DataType) -> pa.Array:
    """Return decimals of a type with the given digits."""
    words = np.empty((len(values), target.byte_width // 8), np.int64)
    words[:, 0] = values
    words[:, 1:] = (values >> 63)[:, None]
    valid = pa.array(~missing).buffers()[1] if missing.any() else None
    return pa.Array.from_buffers(target, len(values), [valid, pa.py_buffer(words)])


def _exactly(function: Callable[..., Decimal], target: pa.DataType, *data: Any) -> Any:
    """Apply a function value by value, for digits that need more than 64 bits."""
    scalars = all(isinstance(datum, pa.Scalar) for datum in data)
    length = 1 if scalars else next(len(datum) for datum in data if not isinstance(datum, pa.Scalar))
    columns = [[datum.as_py()] * length if isinstance(datum, pa.Scalar) else datum.to_pylist() for datum in data]
    with localcontext() as context:
        context.prec = 250
        values = [None if None in row else function(*row) for row in zip(*columns, strict=True)]
    result = pa.array(values, target)
    return result[0] if scalars else result
