"""Tensors of Arrow arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import torch

from lance_dataset.arrow import BFloat16Array, cast
from lance_dataset.errors import UnsupportedError
from lance_dataset.hf import HuggingFaceConverter

__all__ = ["Tensors", "ToTensorFn", "concat_batches", "to_tensor"]

#: Tensors by column, or that of the only column. Image columns of Hugging Face datasets have lists of pictures.
Tensors: TypeAlias = "dict[str, Any] | torch.Tensor"


class ToTensorFn(Protocol):
    """Function that makes tensors, or anything else, of a batch."""

    def __call__(
        self,
        batch: pa.RecordBatch | dict[str, Any],
        *,
        hf_converter: HuggingFaceConverter | None = None,
        use_blob_api: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Return what the loop gets.

        Parameters
        ----------
        batch
            The batch. With blob columns it is a dictionary of arrays, of which these have lists of `BlobFile`.
        hf_converter
            Converter of the columns of a Hugging Face dataset; None if the dataset was not made from one.
        use_blob_api
            True if there are blob columns.
        **kwargs
            Not used.
        """


def to_tensor(
    batch: pa.RecordBatch | Mapping[str, pa.Array],
    *,
    uint64_as_int64: bool = True,
    hf_converter: HuggingFaceConverter | None = None,
    use_blob_api: bool = False,
    **kwargs: object,
) -> Tensors:
    """Make tensors of the columns of a batch: numbers, and lists of a fixed size with numbers.

    Nulls in integers make float64 with NaN, as in NumPy. Numbers without nulls are not copied more than once.

    Parameters
    ----------
    batch
        The batch.
    uint64_as_int64
        True to return uint64 as int64, which more functions of PyTorch take.
    hf_converter, use_blob_api, **kwargs
        See `ToTensorFn`.

    Raises
    ------
    UnsupportedError
        A column has other values, or there are blob columns.
    """
    if use_blob_api:
        raise UnsupportedError(
            'Need user-provided "to_tensor_fn" for Blob files: a function that reads and decodes them'
        )
    names = batch.schema.names if isinstance(batch, pa.RecordBatch) else list(batch)
    columns = batch.columns if isinstance(batch, pa.RecordBatch) else list(batch.values())
    found: dict[str, Any] = {}
    for name, each in zip(names, columns, strict=True):
        # Of all columns of Hugging Face only pictures are not numbers.
        made = hf_converter.to_pytorch(name, each) if hf_converter and pa.types.is_struct(each.type) else None
        found[name] = _tensor(name, each, uint64_as_int64) if made is None else made
    return found[names[0]] if len(names) == 1 else found


def _tensor(name: str, array: pa.Array, uint64_as_int64: bool) -> torch.Tensor:
    kind = array.type
    if isinstance(kind, pa.FixedShapeTensorType) or getattr(kind, "extension_name", "").endswith("_image_tensor"):
        array = array.storage
        kind = array.type
    if pa.types.is_fixed_size_list(kind):
        if array.null_count:  # values of null lists are arbitrary
            array = _filled(array)
        inner = array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size)
        if not _is_number(inner.type):
            raise _refused(name, kind)
        return _numbers(inner, uint64_as_int64).reshape(len(array), kind.list_size)
    if not _is_number(kind):
        raise _refused(name, kind)
    return _numbers(array, uint64_as_int64)


def _filled(array: pa.FixedSizeListArray) -> pa.FixedSizeListArray:
    """Return lists whose values are null where the lists are."""
    size = array.type.list_size
    valid = np.repeat(array.is_valid().to_numpy(zero_copy_only=False), size)
    places = np.arange(array.offset * size, (array.offset + len(array)) * size)
    values = array.values.take(pa.array(places, mask=~valid))
    return pa.FixedSizeListArray.from_arrays(values, size)


def _is_number(kind: pa.DataType) -> bool:
    known = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return known or getattr(kind, "extension_name", "") == "lance.bfloat16"


def _numbers(array: pa.Array, uint64_as_int64: bool) -> torch.Tensor:
    if isinstance(array.type, pa.BaseExtensionType):
        if isinstance(array, BFloat16Array) and not array.null_count:
            bits = np.frombuffer(array.storage.buffers()[1], np.int16, len(array), 2 * array.offset)
            return torch.from_numpy(bits.copy()).view(torch.bfloat16)
        return torch.from_numpy(_writable(cast(array, pa.float32()).to_numpy(zero_copy_only=False))).bfloat16()
    if pa.types.is_boolean(array.type) and array.null_count:
        array = array.cast(pa.uint8())
    values = array.to_numpy(zero_copy_only=False)
    if uint64_as_int64 and values.dtype == np.uint64:
        values = values.astype(np.int64)
    return torch.from_numpy(_writable(values))


def _writable(values: Any) -> Any:
    """Return the values in memory that a tensor may change."""
    return values if values.flags.writeable else values.copy()


def _refused(name: str, kind: pa.DataType) -> UnsupportedError:
    return UnsupportedError(
        "Only support FixedSizeList<f16/bf16/f32/f64> or numeric/bfloat16 values, "
        f"got: {kind} in column {name!r}; leave it out with columns=, or pass to_tensor_fn"
    )


def concat_batches(bs: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of batches with the same columns as one batch."""
    return bs[0] if len(bs) == 1 else pa.concat_batches(bs)
