"""Storage of the vectors of an index: plain or as codes, with the parameters that give the codes their meaning."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset._proto import vector_index_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.vector.tensors import decode_tensor
from lance_dataset.table.messages import parse_message

__all__ = [
    "FlatVectors",
    "ProductQuantizer",
    "Quantizer",
    "RabitQuantizer",
    "ScalarQuantizer",
    "parse_quantizer",
]

_MAX_DIMENSION = 1 << 24
#: Reads a global buffer by its number.
ReadBuffer: TypeAlias = Callable[[int], bytes]


@dataclass(frozen=True)
class FlatVectors:
    """Plain vectors; they have unit length for the metric cosine.

    Attributes
    ----------
    dimension
        Number of values of a vector.
    """

    dimension: int
    code_column = "flat"
    #: True if the codes of a partition can only be read together.
    whole_partitions = False

    def check_columns(self, columns: Mapping[str, pa.DataType], where: str) -> None:
        """Check that the needed columns exist and have the right types."""
        kind = _code_type(columns, self.code_column, self.dimension, where)
        if not (pa.types.is_floating(kind) or kind == pa.uint8()):
            raise CorruptFileError(f"{where}: the vectors are of {kind}")

    @property
    def columns(self) -> list[str]:
        """Names of the columns of codes and factors."""
        return [self.code_column]


@dataclass(frozen=True)
class ProductQuantizer:
    """Vectors cut into parts, each replaced by its nearest codeword; the centroid may be subtracted first.

    Attributes
    ----------
    dimension
        Number of values of a vector.
    bits
        Bits of a codeword number: 8, or 4. Two numbers of 4 bits share a byte, the lower half first.
    sub_vectors
        Number of parts of a vector.
    whole_partitions
        True if the codes of a partition are stored column by column.
    codebook : float[sub_vectors, codewords, values]
        The codewords.
    """

    dimension: int
    bits: int
    sub_vectors: int
    whole_partitions: bool
    codebook: NDArray[Any]
    code_column = "__pq_code"

    def check_columns(self, columns: Mapping[str, pa.DataType], where: str) -> None:
        """Check that the needed columns exist and have the right types."""
        _check_bytes(columns, self.code_column, self.sub_vectors * self.bits // 8, where)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of codes and factors."""
        return [self.code_column]


@dataclass(frozen=True)
class ScalarQuantizer:
    """Values as bytes, from 0 for `start` to 255 for `end`.

    Attributes
    ----------
    dimension
        Number of values of a vector.
    start, end
        Smallest and largest value.
    """

    dimension: int
    start: float
    end: float
    code_column = "__sq_code"
    whole_partitions = False

    def check_columns(self, columns: Mapping[str, pa.DataType], where: str) -> None:
        """Check that the needed columns exist and have the right types."""
        _check_bytes(columns, self.code_column, self.dimension, where)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of codes and factors."""
        return [self.code_column]


@dataclass(frozen=True)
class RabitQuantizer:
    """Signs of the values of rotated vectors, and optionally more bits of each value.

    Attributes
    ----------
    dimension
        Number of values of a rotated vector.
    bits
        Bits of a value, from 1 to 9.
    whole_partitions
        True if the signs of a partition are stored in blocks.
    raw_query
        True if the factors apply to plain queries, False if they apply to queries minus the centroid.
    signs : uint8[4 * ceil(dimension / 8)]
        Signs of the fast rotation; None for a matrix rotation.
    matrix : float[dimension, dimension]
        The rotation; None for the fast rotation.
    """

    dimension: int
    bits: int
    whole_partitions: bool
    raw_query: bool
    signs: NDArray[np.uint8] | None
    matrix: NDArray[Any] | None
    code_column = "_rabit_codes"

    def check_columns(self, columns: Mapping[str, pa.DataType], where: str) -> None:
        """Check that the needed columns exist and have the right types."""
        _check_bytes(columns, self.code_column, -(-self.dimension // 8), where)
        for name in self._factors:
            if columns.get(name) != pa.float32():
                raise CorruptFileError(f"{where}: has no column {name} of float32")
        extra = self.bits - 1
        if extra and "__blocked_ex_codes" in columns:
            _check_bytes(columns, "__blocked_ex_codes", -(-self.dimension // 64) * 8 * extra, where)
        elif extra:
            _check_bytes(columns, "__ex_codes", -(-self.dimension * extra // 8), where)

    @property
    def _factors(self) -> list[str]:
        names = ["__add_factors", "__scale_factors"]
        if self.raw_query:
            names.append("__error_factors")
        return names + (["__add_factors_ex", "__scale_factors_ex"] if self.bits > 1 else [])

    @property
    def columns(self) -> list[str]:
        """Names of the columns of codes and factors that always exist."""
        return [self.code_column, *self._factors]


Quantizer: TypeAlias = FlatVectors | ProductQuantizer | ScalarQuantizer | RabitQuantizer


def parse_quantizer(family: str, text: str, read_buffer: ReadBuffer, where: str) -> Quantizer:
    """Parse the quantizer that metadata describe.

    Parameters
    ----------
    family
        ``FLAT``, ``PQ``, ``SQ`` or ``RQ``.
    text
        The metadata: a JSON array of one string that contains a JSON object.
    read_buffer
        Reads a global buffer of the file by its number.
    where
        Name of the file, for error messages.
        Name of the file, for error messages.

    Raises
    ------
    CorruptFileError
        The metadata are incomplete or contradict each other.
    """
    entries = _Entries(_parse_json(text, where), where)
    return _PARSERS[family](entries, read_buffer)


class _Entries:
    """A JSON object whose entries are checked on access."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values = values
        self.where = where

    def integer(self, key: str, lowest: int, highest: int) -> int:
        value = self.values.get(key)
        if type(value) is not int or not lowest <= value <= highest:
            raise self.wrong(key, f"a number from {lowest} to {highest}")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def bytes(self, key: str) -> NDArray[np.uint8] | None:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(byte) is int and 0 <= byte < 256 for byte in value):
            raise self.wrong(key, "an array of bytes")
        return np.array(value, np.uint8)

    def wrong(self, key: str, expected: str) -> CorruptFileError:
        found = json.dumps(self.values.get(key))[:60]
        return CorruptFileError(f"{self.where}: {key} in storage_metadata is {found}, not {expected}")


def _parse_json(text: str, where: str) -> Mapping[str, Any]:
    try:
        outer = parse_json(text)
        inner = parse_json(outer[0]) if isinstance(outer, list) and len(outer) == 1 else None
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptFileError(f"{where}: storage_metadata is not JSON: {error}") from error
    if not isinstance(inner, dict):
        raise CorruptFileError(f"{where}: storage_metadata is not a JSON array of one object")
    return inner


def _flat(entries: _Entries, read_buffer: ReadBuffer) -> FlatVectors:
    return FlatVectors(entries.integer("dim", 1, _MAX_DIMENSION))


def _product(entries: _Entries, read_buffer: ReadBuffer) -> ProductQuantizer:
    key = "nbits" if "nbits" in entries.values else "num_bits"  # the name in releases before 1.0
    bits = entries.integer(key, 4, 8)
    dimension = entries.integer("dimension", 1, _MAX_DIMENSION)
    parts = entries.integer("num_sub_vectors", 1, dimension)
    if bits not in (4, 8) or dimension % parts or parts * bits % 8:
        raise entries.wrong("num_sub_vectors", f"such that {dimension} values are cut evenly, {bits} bits each")
    position = entries.integer("codebook_position", 0, 1 << 30)
    if position:
        data = read_buffer(position)
    else:
        inline = entries.bytes("codebook_tensor")
        data = b"" if inline is None else inline.tobytes()
    codebook = decode_tensor(parse_message(vector_index_pb2.Tensor, data, entries.where), entries.where)
    words = 1 << bits
    if codebook.size != words * dimension or codebook.dtype.kind != "f":
        raise CorruptFileError(
            f"{entries.where}: the codebook has {codebook.size} values of {codebook.dtype}, "
            f"not {words * dimension} floats"
        )
    return ProductQuantizer(
        dimension, bits, parts, entries.flag("transposed"), codebook.reshape(parts, words, dimension // parts)
    )


def _scalar(entries: _Entries, read_buffer: ReadBuffer) -> ScalarQuantizer:
    entries.integer("num_bits", 8, 8)
    bounds = entries.values.get("bounds")
    bounds = bounds if isinstance(bounds, dict) else {}
    start, end = (_finite(bounds.get(key)) for key in ("start", "end"))
    if start is None or end is None or start > end:
        raise entries.wrong("bounds", "a range of numbers")
    return ScalarQuantizer(entries.integer("dim", 1, _MAX_DIMENSION), start, end)


def _finite(value: object) -> float | None:
    """Return a finite number of JSON, or None for anything else."""
    if isinstance(value, float) or (type(value) is int and abs(value) < 1 << 1000):
        return float(value) if math.isfinite(value) else None
    return None


def _rabit(entries: _Entries, read_buffer: ReadBuffer) -> RabitQuantizer:
    bits, packed = entries.integer("num_bits", 1, 9), entries.flag("packed")
    estimator = entries.values.get("query_estimator", "residual_query")
    if estimator not in ("raw_query", "residual_query"):
        raise entries.wrong("query_estimator", "raw_query or residual_query")
    if estimator == "residual_query" and bits > 1:
        raise entries.wrong("query_estimator", f"raw_query, which codes of {bits} bits need")
    dimension = entries.values.get("code_dim") or 0
    signs = matrix = None
    if entries.values.get("rotation_type", "matrix") == "fast":
        dimension = entries.integer("code_dim", 1, _MAX_DIMENSION)
        signs = entries.bytes("fast_rotation_signs")
        if signs is None or len(signs) != 4 * -(-dimension // 8):
            raise entries.wrong("fast_rotation_signs", f"4 bits for each of {dimension} values")
    else:
        data = read_buffer(entries.integer("rotate_mat_position", 1, 1 << 30))
        matrix = decode_tensor(parse_message(vector_index_pb2.Tensor, data, entries.where), entries.where)
        dimension = dimension or len(matrix)
        if matrix.shape != (dimension, dimension) or matrix.dtype.kind != "f":
            raise CorruptFileError(f"{entries.where}: the rotation has {matrix.shape} values, not {dimension} squared")
    return RabitQuantizer(dimension, bits, packed, estimator == "raw_query", signs, matrix)


_PARSERS: Mapping[str, Callable[[_Entries, ReadBuffer], Quantizer]] = {
    "FLAT": _flat,
    "PQ": _product,
    "SQ": _scalar,
    "RQ": _rabit,
}


def _code_type(columns: Mapping[str, pa.DataType], name: str, size: int, where: str) -> pa.DataType:
    kind = columns.get(name)
    if kind is None or not pa.types.is_fixed_size_list(kind) or kind.list_size != size:
        raise CorruptFileError(f"{where}: the column {name} is of {kind}, not lists of {size} values")
    return kind.value_type


def _check_bytes(columns: Mapping[str, pa.DataType], name: str, size: int, where: str) -> None:
    kind = _code_type(columns, name, size, where)
    if kind != pa.uint8():
        raise CorruptFileError(f"{where}: the values of the column {name} are of {kind}, not bytes")
