"""Columns of one type in a wide legacy file: the pages and bounds of all of them are made together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import SchemaError
from lance_dataset.file.v0_1.arrays import fixed_bytes, valid_bytes
from lance_dataset.file.v0_1.write.bounds import batch_bounds, has_bounds, value_bounds
from lance_dataset.file.v0_1.write.pages import NULLS_LOST, Warn
from lance_dataset.io.base import OutputFile
from lance_dataset.types.schema import Field

__all__ = ["GroupBounds", "PlainGroup", "plain_groups", "write_groups"]

#: Columns of a type from which on they are a group.
_MANY_COLUMNS = 16
#: Most bytes of a batch of a group, which are copied.
_GROUP_BYTES = 8 << 20


class GroupBounds(NamedTuple):
    """Statistics of the columns of a group, each as [batch, column]."""

    null_counts: NDArray[np.int64]
    minimum: NDArray[Any]
    maximum: NDArray[Any]


class PlainGroup:
    """Top-level fields of one type, whose values are numbers of 1, 2, 4 or 8 bytes.

    Parameters
    ----------
    fields, numbers
        The fields, and their numbers among all top-level fields.
    dtype
        Type of the stored numbers.

    Attributes
    ----------
    fields, numbers
        As given.
    has_bounds
        True if there are statistics for the type.
    """

    def __init__(self, fields: Sequence[Field], numbers: Sequence[int], dtype: np.dtype) -> None:
        self.fields = fields
        self.numbers = numbers
        self.has_bounds = has_bounds(fields[0].storage_type)
        self._dtype = dtype

    def values(self, arrays: Sequence[pa.Array], batches: int, rows: int, warn: Warn) -> NDArray[Any]:
        """Return the pages of a block as [batch, column, row].

        Parameters
        ----------
        arrays
            The columns of all top-level fields.
        batches, rows
            Number of batches, and of rows in each.
        warn
            Called for nulls that are lost.

        Raises
        ------
        SchemaError
            A field that is not nullable has a null.
        """
        out = np.empty((batches, len(self.fields), rows), self._dtype)
        width = self._dtype.itemsize
        for column, (node, number) in enumerate(zip(self.fields, self.numbers, strict=True)):
            array = arrays[number]
            if array.null_count:
                _check_nulls(node, array, warn)
                stored = np.frombuffer(fixed_bytes(array), self._dtype)
            else:
                stored = np.frombuffer(array.buffers()[1], self._dtype, len(array), array.offset * width)
            out[:, column] = stored.reshape(batches, rows)
        return out

    def bounds(self, values: NDArray[Any], arrays: Sequence[pa.Array]) -> GroupBounds:
        """Return the statistics of pages that `values` returned for these columns."""
        minimum, maximum = value_bounds(values)
        nulls = np.zeros(minimum.shape, np.int64)
        rows = values.shape[2]
        for column, number in enumerate(self.numbers):
            array = arrays[number]
            if array.null_count:
                least, most = batch_bounds(array, rows)
                minimum[:, column] = np.frombuffer(least.buffers()[1], self._dtype, len(least))
                maximum[:, column] = np.frombuffer(most.buffers()[1], self._dtype, len(most))
                nulls[:, column] = np.count_nonzero(~valid_bytes(array).reshape(-1, rows), axis=1)
        return GroupBounds(nulls, minimum, maximum)


def plain_groups(fields: Sequence[Field], rows: int) -> list[PlainGroup]:
    """Return the groups of top-level fields; a batch has `rows` rows. Types of few fields have none."""
    by_type: dict[pa.DataType, list[int]] = {}
    for number, node in enumerate(fields):
        if not node.children:
            by_type.setdefault(node.storage_type, []).append(number)
    groups = []
    for kind, numbers in by_type.items():
        dtype = _dtype(kind) if len(numbers) >= _MANY_COLUMNS else None
        if dtype is None:
            continue
        most = max(_GROUP_BYTES // (rows * dtype.itemsize), 1)
        for first in range(0, len(numbers), most):
            part = numbers[first : first + most]
            groups.append(PlainGroup([fields[number] for number in part], part, dtype))
    return groups


def write_groups(output: OutputFile, groups: Sequence[NDArray[Any]]) -> list[NDArray[np.int64]]:
    """Append the pages of a block, batch by batch; return the cells of each group, [column, batch, 2].

    Parameters
    ----------
    output
        The file.
    groups
        Pages of each group as [batch, column, row].
    """
    start, sizes = output.tell(), [values[0].nbytes for values in groups]
    batches = len(groups[0])
    output.write_many([values[batch].reshape(-1).view(np.uint8).data for batch in range(batches) for values in groups])
    cells = []
    for values, before in zip(groups, accumulate(sizes, initial=0), strict=False):
        _, columns, rows = values.shape
        found = np.empty((columns, batches, 2), np.int64)
        found[:, :, 0] = start + before + np.arange(batches) * sum(sizes)
        found[:, :, 0] += np.arange(columns)[:, None] * rows * values.itemsize
        found[:, :, 1] = rows
        cells.append(found)
    return cells


def _dtype(kind: pa.DataType) -> np.dtype | None:
    """Return the type of the stored numbers of a type, None if they are not numbers of whole bytes."""
    kinds = pa.types
    if kinds.is_float32(kind) or kinds.is_float64(kind):
        return np.dtype(f"f{kind.bit_width // 8}")
    if kinds.is_unsigned_integer(kind):
        return np.dtype(f"u{kind.bit_width // 8}")
    if kinds.is_integer(kind) or (kinds.is_temporal(kind) and not kinds.is_interval(kind)):
        return np.dtype(f"i{kind.bit_width // 8}")
    return None


def _check_nulls(node: Field, array: pa.Array, warn: Warn) -> None:
    if not node.nullable:
        raise SchemaError(
            f"column {node.name!r} is declared not nullable, but its data holds {array.null_count} null values"
        )
    warn(node.name, NULLS_LOST + "zeros")
