"""Casts of Arrow arrays from and to bfloat16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.api.arrow_types.bfloat16 import BFloat16Type, array_of_bits, floats_of, rounded_bits
from lance_dataset.errors import InvalidInputError

__all__ = ["cast", "is_bfloat16"]

_NAMES = ("bfloat16", "bf16")


def is_bfloat16(kind: object) -> bool:
    """Return True for the type bfloat16 of any package."""
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "lance.bfloat16"


def cast(arr: pa.Array, target_type: pa.DataType | str, *args: Any, **kwargs: Any) -> pa.Array:
    """Cast an array, like `pyarrow.compute.cast`, which does not know bfloat16.

    Parameters
    ----------
    arr
        The array.
    target_type
        Type of the result; ``bfloat16`` or ``bf16`` for `BFloat16Type`. Lists of a fixed size are cast value by value.
    *args, **kwargs
        Arguments of `pyarrow.compute.cast`.

    Returns
    -------
    pyarrow.Array
        The values in the other type, rounded to the nearest. Nulls stay null.

    Raises
    ------
    InvalidInputError
        The type is not of floats, or a list of another size.
    """
    target = _type(target_type)
    if pa.types.is_fixed_size_list(arr.type) and pa.types.is_fixed_size_list(target):
        return _cast_lists(arr, target, *args, **kwargs)
    if is_bfloat16(target):
        return arr if is_bfloat16(arr.type) else _to_bfloat16(arr)
    if is_bfloat16(arr.type):
        if not pa.types.is_floating(target):
            raise InvalidInputError(f"Only support casting bfloat16 array to floating array,got: {target}")
        return floats_of(arr).cast(target)
    return pc.cast(arr, target, *args, **kwargs)


def _type(kind: pa.DataType | str) -> pa.DataType:
    if not isinstance(kind, str):
        return kind
    return BFloat16Type() if kind in _NAMES else pa.type_for_alias(kind)


def _to_bfloat16(arr: pa.Array) -> pa.Array:
    if not pa.types.is_floating(arr.type):
        raise InvalidInputError(f"Only support casting floating array to bfloat16 array,got: {arr.type}")
    nulls = arr.is_null().to_numpy(zero_copy_only=False)
    return array_of_bits(rounded_bits(np.asarray(arr.to_numpy(zero_copy_only=False))), nulls)


def _cast_lists(arr: pa.Array, target: pa.DataType, *args: Any, **kwargs: Any) -> pa.Array:
    size = arr.type.list_size
    if target.list_size != size:
        raise InvalidInputError(
            f"Only support casting fixed size list to fixed size list with the same size, got: {arr.type} to {target}"
        )
    values = cast(arr.values.slice(arr.offset * size, len(arr) * size), target.value_type, *args, **kwargs)
    mask = arr.is_null() if arr.null_count else None
    return pa.FixedSizeListArray.from_arrays(values, type=target, mask=mask)
