"""Sort keys: arrays that Arrow sorts as the reference orders the values, and bounds of the rows that may come first.

Numbers follow the total order of IEEE 754 (negative NaN, -inf ... -0.0, 0.0 ... inf, NaN). Texts and binaries sort by
their bytes, dictionaries by their values, structs by their fields, and nulls come where a key says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.scan.request import Ordering

__all__ = ["Bound", "check_sortable", "sort_indices", "sortable"]

#: Decimals of up to this number of digits fit 64 bits.
_SHORT_DIGITS = 18


def check_sortable(arrow_type: pa.DataType, column: str) -> None:
    """Raise UnsupportedError if values of a type cannot be sorted.

    Raises
    ------
    UnsupportedError
        The type has no order; the message names the column.
    """
    if isinstance(arrow_type, pa.BaseExtensionType):
        return check_sortable(arrow_type.storage_type, column)
    if pa.types.is_dictionary(arrow_type):
        return check_sortable(arrow_type.value_type, column)
    if pa.types.is_struct(arrow_type):
        for number in range(arrow_type.num_fields):
            check_sortable(arrow_type.field(number).type, f"{column}.{arrow_type.field(number).name}")
        return None
    if pa.types.is_nested(arrow_type) or pa.types.is_interval(arrow_type):
        raise UnsupportedError(
            f"column {column!r} of type {arrow_type} has no order to sort by in this release; "
            "sort by columns of single values"
        )
    return None


def sortable(array: pa.Array) -> pa.Array:
    """Return an array that Arrow sorts as the values order, with nulls unchanged; structs stay structs.

    Floating point numbers become integers of the same order, short decimals become integers, and texts and binaries get
    64-bit offsets, so that they can be joined.
    """
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return sortable(array.storage)
    if pa.types.is_dictionary(kind):
        return sortable(array.dictionary_decode())
    if pa.types.is_floating(kind):
        return _ordered_integers(array)
    if pa.types.is_decimal128(kind) and kind.precision <= _SHORT_DIGITS:
        words = np.frombuffer(array.buffers()[1] or b"", np.int64)[2 * array.offset :: 2][: len(array)]
        return _with_nulls(np.ascontiguousarray(words), array)
    if pa.types.is_string(kind) or _is(kind, "is_string_view"):
        return array.cast(pa.large_string())
    if pa.types.is_binary(kind) or _is(kind, "is_binary_view"):
        return array.cast(pa.large_binary())
    if pa.types.is_null(kind):
        return pa.nulls(len(array), pa.int8())
    return array


def _is(kind: pa.DataType, test: str) -> bool:
    """Run a type test that some releases of Arrow do not have; False if it is missing."""
    return bool(getattr(pa.types, test, lambda kind: False)(kind))


def _ordered_integers(array: pa.Array) -> pa.Array:
    """Return integers in the total order of the floating point numbers."""
    size = array.type.bit_width
    buffer = array.buffers()[1]
    bits = np.frombuffer(buffer or b"", f"<i{size // 8}")[array.offset : array.offset + len(array)]
    # for negative numbers, all bits but the sign count downwards
    flipped = (bits >> (size - 1)) & ((1 << (size - 1)) - 1)
    return _with_nulls(bits ^ flipped.astype(bits.dtype), array)


def _with_nulls(values: NDArray[np.integer], array: pa.Array) -> pa.Array:
    if array.null_count == 0:
        return pa.array(values)
    return pa.array(values, mask=np.asarray(array.is_null()))


# -- sorting -----------------------------------------------------------------------------------------------------


def sort_indices(keys: Sequence[pa.Array], orderings: Sequence[Ordering]) -> NDArray[np.int64]:
    """Return the positions of rows in the order of their keys; equal rows keep their order.

    Parameters
    ----------
    keys
        The sortable arrays of all rows, one per ordering.
    orderings
        The direction of each key.
    """
    columns = [column for key, ordering in zip(keys, orderings, strict=True) for column in _columns(key, ordering)]
    if not columns:
        return np.arange(len(keys[0]))
    if len(columns) == 1:
        array, direction = columns[0]
        return np.asarray(pc.array_sort_indices(array, order=direction)).astype(np.int64)
    names = [str(number) for number in range(len(columns))]
    batch = pa.RecordBatch.from_arrays([array for array, _ in columns], names=names)
    directed = [(name, direction) for name, (_, direction) in zip(names, columns, strict=True)]
    return np.asarray(pc.sort_indices(batch, sort_keys=directed)).astype(np.int64)


def _columns(key: pa.Array, ordering: Ordering) -> Iterator[tuple[pa.Array, str]]:
    """Yield the arrays that a key sorts by, with their directions: several for a struct, or if nulls come first.

    Arrow puts nulls last in either direction.
    """
    is_struct = pa.types.is_struct(key.type)
    if key.null_count and (is_struct or ordering.nulls_first):
        yield (key.is_valid() if ordering.nulls_first else key.is_null()).cast(pa.int8()), "ascending"
    if is_struct:
        for child in key.flatten():
            yield from _columns(sortable(child), ordering)
    else:
        yield key, "ascending" if ordering.ascending else "descending"


# -- bounds ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Bound:
    """Bound of the first key; rows that come after it are not wanted.

    Attributes
    ----------
    value
        The value, as `sortable` returns it.
    ordering
        The key.
    strict
        If true, rows with exactly this value are not wanted either.
    """

    value: pa.Scalar
    ordering: Ordering
    strict: bool

    @staticmethod
    def last(key: pa.Array, orderings: Sequence[Ordering]) -> Bound | None:
        """Return the bound set by the last of the best rows so far; None if the key cannot be compared.

        Without a second key, later rows of the same value come after it.
        """
        if len(key) == 0 or pa.types.is_struct(key.type):
            return None
        return Bound(key[len(key) - 1], orderings[0], len(orderings) == 1)

    def wanted(self, key: pa.Array) -> NDArray[np.int64]:
        """Return the positions of the rows that may be among the best."""
        nulls_first = self.ordering.nulls_first
        if not self.value.is_valid:
            if nulls_first:
                none = np.empty(0, np.int64)
                return none if self.strict else np.flatnonzero(np.asarray(key.is_null()))
            # nulls come last: all values precede this null, and the other nulls are equal to it
            return np.flatnonzero(np.asarray(key.is_valid())) if self.strict else np.arange(len(key))
        if self.ordering.ascending:
            compare = pc.less if self.strict else pc.less_equal
        else:
            compare = pc.greater if self.strict else pc.greater_equal
        better = compare(key, self.value)
        return np.flatnonzero(np.asarray(better.fill_null(nulls_first) if better.null_count else better))
