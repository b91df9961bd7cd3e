"""Columns of pandas with values of bfloat16."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray
from pandas.api.extensions import ExtensionArray, ExtensionDtype, register_extension_dtype, take

from lance_dataset.api.arrow_types.bfloat16 import (
    BFloat16,
    BFloat16Array,
    BFloat16Type,
    array_of_bits,
    bfloat16_array,
    bits_of,
)

__all__ = ["PandasBFloat16Array", "PandasBFloat16Type"]


@register_extension_dtype
class PandasBFloat16Type(ExtensionDtype):
    """Type of pandas columns with values of bfloat16."""

    kind = "f"
    na_value = None
    name = "lance.bfloat16"
    names = None
    type = BFloat16
    _is_numeric = True

    def __from_arrow__(self, array: pa.Array | pa.ChunkedArray) -> PandasBFloat16Array:
        """Make a column of an Arrow array."""
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        parts = [PandasBFloat16Array(chunk) for chunk in chunks]
        return parts[0] if len(parts) == 1 else PandasBFloat16Array._concat_same_type(parts)

    @classmethod
    def construct_array_type(cls) -> builtins.type[PandasBFloat16Array]:
        """Return the class of columns."""
        return PandasBFloat16Array


class PandasBFloat16Array(ExtensionArray):
    """Column of pandas with values of bfloat16.

    Parameters
    ----------
    data
        An Arrow array of bfloat16.
    """

    def __init__(self, data: pa.Array) -> None:
        self._bits = bits_of(data).copy()
        self._nulls = data.is_null().to_numpy(zero_copy_only=False)

    @classmethod
    def _make(cls, bits: NDArray[np.uint16], nulls: NDArray[np.bool_]) -> PandasBFloat16Array:
        return cls(array_of_bits(bits, nulls))

    @classmethod
    def _from_sequence(cls, scalars: Sequence[Any], *, dtype: object = None, copy: bool = False) -> PandasBFloat16Array:
        return cls(bfloat16_array(list(scalars)))

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[PandasBFloat16Array]) -> PandasBFloat16Array:
        bits = [each._bits for each in to_concat]
        nulls = [each._nulls for each in to_concat]
        if not bits:
            return cls(bfloat16_array([]))
        return cls._make(np.concatenate(bits), np.concatenate(nulls))

    @classmethod
    def from_numpy(cls, array: NDArray[Any]) -> PandasBFloat16Array:
        """Make a column of a NumPy array of the type of the package ml_dtypes."""
        return cls(BFloat16Array.from_numpy(array))

    @property
    def dtype(self) -> PandasBFloat16Type:
        """Type of the column."""
        return PandasBFloat16Type()

    @property
    def nbytes(self) -> int:
        """Number of bytes in memory."""
        return int(self._bits.nbytes + self._nulls.nbytes)

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._bits)

    def __getitem__(self, item: object) -> object:
        """Return a value, or a part of the column."""
        if isinstance(item, (int, np.integer)):
            if self._nulls[item]:
                return None
            return BFloat16.from_bytes(int(self._bits[item]).to_bytes(2, "little"))
        if isinstance(item, (list, ExtensionArray)):
            item = np.asarray(item)
            item = item if len(item) else item.astype(np.int64)
        return self._make(self._bits[item], self._nulls[item])

    def __eq__(self, other: object) -> Any:
        values = other if isinstance(other, (PandasBFloat16Array, list, np.ndarray)) else [other] * len(self)
        return np.array([a is not None and a == b for a, b in zip(self, values, strict=True)], np.bool_)

    def isna(self) -> NDArray[np.bool_]:
        """Return a mask of the nulls."""
        return cast("NDArray[np.bool_]", self._nulls.copy())

    def take(
        self, indices: Sequence[int] | NDArray[Any], *, allow_fill: bool = False, fill_value: object = None
    ) -> PandasBFloat16Array:
        """Return the values at some places; -1 is null if `allow_fill` is true."""
        bits = take(self._bits, np.asarray(indices), allow_fill=allow_fill, fill_value=0)
        nulls = take(self._nulls, np.asarray(indices), allow_fill=allow_fill, fill_value=True)
        return self._make(bits.astype(np.uint16), nulls.astype(np.bool_))

    def copy(self) -> PandasBFloat16Array:
        """Return a copy."""
        return self._make(self._bits.copy(), self._nulls.copy())

    def to_numpy(
        self, dtype: DTypeLike | None = None, copy: bool = False, na_value: object = None, zero_copy_only: bool = False
    ) -> NDArray[Any]:
        """Return the values as `BFloat16Array.to_numpy` does, or in another type."""
        if dtype is None:
            return self.__arrow_array__().to_numpy()
        return np.array([na_value if each is None else each for each in self], dtype)

    def __arrow_array__(self, type: pa.DataType | None = None) -> BFloat16Array:
        """Return the values as an Arrow array."""
        return array_of_bits(self._bits, self._nulls)


BFloat16Type._pandas = PandasBFloat16Type
