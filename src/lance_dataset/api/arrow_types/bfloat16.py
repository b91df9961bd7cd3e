"""Arrow extension type ``lance.bfloat16``: the upper 16 bits of float32."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import total_ordering
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError, UnsupportedError

__all__ = [
    "BFloat16",
    "BFloat16Array",
    "BFloat16Scalar",
    "BFloat16Type",
    "array_of_bits",
    "bfloat16_array",
    "bits_of",
    "floats_of",
    "numpy_type",
    "rounded_bits",
]

_STORAGE = pa.binary(2)
#: Number of values at each end that the text of an array shows.
_SHOWN = 10


def rounded_bits(values: NDArray[Any]) -> NDArray[np.uint16]:
    """Round floats to bfloat16, to the nearest, of two to the even one; return the bits."""
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(values, dtype=np.float32)
    bits = narrow.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)  # rounding might turn a NaN into an infinity
    return np.where(np.isnan(narrow), quiet, rounded).astype(np.uint16)


def _floats(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def numpy_type() -> np.dtype[Any]:
    """Return the NumPy type of bfloat16.

    Raises
    ------
    UnsupportedError
        The package ml_dtypes, which has it, is not installed.
    """
    try:
        from ml_dtypes import bfloat16
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "NumPy arrays of bfloat16 need the package ml_dtypes: pip install ml-dtypes; or cast the values to "
            "float32 with lance_dataset.arrow.cast"
        ) from error
    return np.dtype(bfloat16)


@total_ordering
class BFloat16:
    """One number of the type bfloat16.

    Parameters
    ----------
    value
        The number, which is rounded.
    """

    __slots__ = ("_bits",)

    def __init__(self, value: float) -> None:
        self._bits = int(rounded_bits(np.array([_number(value)]))[0])

    @classmethod
    def from_bytes(cls, bytes: bytes) -> BFloat16:
        """Make the number from its two bytes, the lower one first.

        Raises
        ------
        InvalidInputError
            There are not two bytes.
        """
        if len(bytes) != 2:
            raise InvalidInputError(f"BFloat16::from_bytes: expected 2 bytes, got {len(bytes)}")
        found = cls(0)
        found._bits = int.from_bytes(bytes, "little")
        return found

    def as_float(self) -> float:
        """Return the number as a Python float."""
        return float(_floats(np.array([self._bits], np.uint16))[0])

    def __float__(self) -> float:
        return self.as_float()

    def __eq__(self, other: object) -> bool:
        return self.as_float() == other.as_float() if isinstance(other, BFloat16) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.as_float() < other.as_float() if isinstance(other, BFloat16) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.as_float())

    def __repr__(self) -> str:
        value = np.float32(self.as_float())
        return "NaN" if np.isnan(value) else np.format_float_positional(value, trim="-")

    def __reduce__(self) -> tuple[Any, ...]:
        return BFloat16.from_bytes, (self._bits.to_bytes(2, "little"),)


class BFloat16Scalar(pa.ExtensionScalar):
    """One value of a bfloat16 array."""

    __hash__ = None  # type: ignore[assignment]

    def as_py(self, **kwargs: object) -> BFloat16 | None:
        """Return the value as a `BFloat16`; None for null."""
        return None if self.value is None else BFloat16.from_bytes(self.value.as_py())

    def __eq__(self, other: object) -> bool:
        return self.as_py() == other if isinstance(other, BFloat16) else bool(super().__eq__(other))


class BFloat16Array(pa.ExtensionArray):
    """Arrow array of bfloat16."""

    def __repr__(self) -> str:
        return f"<lance_dataset.arrow.BFloat16Array object at {id(self):#018x}>\n{self}"

    def __str__(self) -> str:
        parts = [self] if len(self) <= 2 * _SHOWN else [self[:_SHOWN], None, self[-_SHOWN:]]
        texts = ["  ..." if part is None else ",\n".join(f"  {each}" for each in part.to_pylist()) for part in parts]
        return "[\n" + ",\n".join(text for text in texts if text) + "\n]" if len(self) else "[]"

    def to_numpy(self, zero_copy_only: bool = False) -> NDArray[Any]:
        """Return the values as an array of the type of the package ml_dtypes, without a copy.

        Raises
        ------
        InvalidInputError
            There are nulls.
        UnsupportedError
            The package is not installed.
        """
        if self.null_count:
            raise InvalidInputError("Cannot convert null values to numpy; fill or drop the nulls first")
        return bits_of(self).view(numpy_type())

    @classmethod
    def from_numpy(cls, array: NDArray[Any]) -> BFloat16Array:
        """Make an array from one of NumPy, without a copy.

        Raises
        ------
        InvalidInputError
            It is not of the type bfloat16 of the package ml_dtypes.
        """
        if array.dtype.name != "bfloat16":
            raise InvalidInputError(
                f"Cannot convert non-bfloat16 values to BFloat16Array, got {array.dtype}; use bfloat16_array"
            )
        return array_of_bits(np.ascontiguousarray(array).view(np.uint16))


class BFloat16Type(pa.ExtensionType):
    """Arrow extension type of bfloat16, stored as two bytes."""

    _pandas: ClassVar[type | None] = None

    def __init__(self) -> None:
        super().__init__(_STORAGE, "lance.bfloat16")

    def __arrow_ext_serialize__(self) -> bytes:
        """Return the metadata of the type, which is empty."""
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> BFloat16Type:
        """Make the type from its storage and metadata."""
        return cls()

    def __arrow_ext_class__(self) -> type:
        """Return the class of arrays."""
        return BFloat16Array

    def __arrow_ext_scalar_class__(self) -> type:
        """Return the class of scalars."""
        return BFloat16Scalar

    def to_pandas_dtype(self) -> object:
        """Return the type of pandas columns; NotImplementedError without pandas."""
        if self._pandas is None:
            raise NotImplementedError("columns of pandas with bfloat16 need pandas: pip install pandas")
        return self._pandas()


def bits_of(array: pa.Array) -> NDArray[np.uint16]:
    """Return the bits of an array of bfloat16 of any package; those of nulls are arbitrary."""
    storage = array.storage
    data = storage.buffers()[1]
    if data is None:
        return np.zeros(len(array), np.uint16)
    return cast("NDArray[np.uint16]", np.frombuffer(data, np.uint16, len(array), 2 * storage.offset))


def floats_of(array: pa.Array) -> pa.Array:
    """Return an array of bfloat16 of any package as float32."""
    return pa.array(_floats(bits_of(array)), mask=_nulls(array))


def _nulls(array: pa.Array) -> NDArray[np.bool_] | None:
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None


def array_of_bits(bits: NDArray[np.uint16], nulls: NDArray[np.bool_] | None = None) -> BFloat16Array:
    """Make an array of bits, with nulls where a mask is true."""
    valid = None
    if nulls is not None and nulls.any():
        valid = pa.py_buffer(np.packbits(~nulls, bitorder="little").tobytes())
    storage = pa.Array.from_buffers(_STORAGE, len(bits), [valid, pa.py_buffer(np.ascontiguousarray(bits))])
    return cast(BFloat16Array, pa.ExtensionArray.from_storage(BFloat16Type(), storage))


def bfloat16_array(values: Sequence[float | None] | NDArray[Any] | pa.Array) -> BFloat16Array:
    """Make an array of bfloat16 from numbers, which are rounded; None is null.

    Raises
    ------
    TypeError
        A value is not a number.
    """
    if not isinstance(values, (Sequence, np.ndarray, pa.Array, pa.ChunkedArray)) or isinstance(values, (str, bytes)):
        raise TypeError(f"argument 'values' must be a sequence of numbers, not {values!r}")
    found = [None if value is None else _number(value) for value in _plain(values)]
    nulls = np.array([value is None for value in found], np.bool_)
    return array_of_bits(
        rounded_bits(np.array([0.0 if value is None else value for value in found], np.float64)), nulls
    )


def _plain(values: Any) -> Sequence[Any]:
    if isinstance(values, np.ndarray):
        return cast("Sequence[Any]", values.tolist())
    return values.to_pylist() if isinstance(values, (pa.Array, pa.ChunkedArray)) else values


def _number(value: object) -> float:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return float(value)  # type: ignore[arg-type]


with suppress(pa.ArrowKeyError):  # another package has registered the type
    pa.register_extension_type(BFloat16Type())
