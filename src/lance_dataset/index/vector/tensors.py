"""Numeric arrays in messages: centroids, codebooks, rotations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset._proto import vector_index_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError

__all__ = ["decode_tensor", "encode_tensor"]

_TYPES: dict[int, np.dtype[Any]] = {
    vector_index_pb2.Tensor.FLOAT16: np.dtype("<f2"),
    vector_index_pb2.Tensor.FLOAT32: np.dtype("<f4"),
    vector_index_pb2.Tensor.FLOAT64: np.dtype("<f8"),
    vector_index_pb2.Tensor.UINT8: np.dtype("u1"),
    vector_index_pb2.Tensor.UINT16: np.dtype("<u2"),
    vector_index_pb2.Tensor.UINT32: np.dtype("<u4"),
    vector_index_pb2.Tensor.UINT64: np.dtype("<u8"),
}


def encode_tensor(array: NDArray[Any]) -> vector_index_pb2.Tensor:
    """Return the message of an array ``[rows, columns]`` of a type that vectors have."""
    number = next(number for number, kind in _TYPES.items() if kind == array.dtype)
    return vector_index_pb2.Tensor(
        data_type=vector_index_pb2.Tensor.DataType.Name(number),
        shape=array.shape,
        data=np.ascontiguousarray(array).tobytes(),
    )


def decode_tensor(message: vector_index_pb2.Tensor, where: str) -> NDArray[Any]:
    """Decode a message.

    Parameters
    ----------
    message
        The message.
    where
        Name of the file, for error messages.

    Returns
    -------
    array [rows, columns]
        Array of the stored type, which shares the bytes of the message.

    Raises
    ------
    CorruptFileError
        The array does not have two dimensions, or its shape does not fit its bytes.
    UnsupportedError
        The numbers are of a type that vector indices do not use.
    """
    kind = _TYPES.get(message.data_type)
    if kind is None:
        raise UnsupportedError(f"{where}: an array has numbers of type {message.data_type}, which is not supported")
    if len(message.shape) != 2:
        raise CorruptFileError(f"{where}: an array has {len(message.shape)} dimensions instead of 2")
    rows, columns = message.shape
    if rows * columns * kind.itemsize != len(message.data):
        raise CorruptFileError(f"{where}: an array of {rows} x {columns} {kind} has {len(message.data)} bytes")
    return np.frombuffer(message.data, kind).reshape(rows, columns)
