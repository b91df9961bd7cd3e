"""Arrays with blob columns of version 2, whose form changes wherever a blob is nested."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.buffers import bitmap_at_zero
from lance_dataset.file.options import is_blob_v2
from lance_dataset.types.schema import Field

__all__ = ["Convert", "converted", "struct_of"]

#: Converts an array of the first field to one of the second.
Convert = Callable[[pa.Array, Field, Field], pa.Array]


def converted(array: pa.Array, have: Field, want: Field, convert: Convert) -> pa.Array:
    """Convert the blobs of an array at any depth; the nesting around them is kept.

    Parameters
    ----------
    array
        Array of the type of `have`.
    have, want
        Fields that differ only in the form of blobs.
    convert
        Converts the array of a blob.
    """
    if have is want:
        return array
    if have.blob is not None or is_blob_v2(have):
        return convert(array, have, want)
    kind, kinds = want.storage_type, pa.types
    pairs = list(zip(have.children, want.children, strict=True))
    if kinds.is_struct(kind):
        children = [
            converted(array.field(number), child, wanted, convert) for number, (child, wanted) in enumerate(pairs)
        ]
        return pa.Array.from_buffers(kind, len(array), [_validity(array)], array.null_count, 0, children)
    ((item, wanted),) = pairs
    if kinds.is_fixed_size_list(kind):
        items = array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size)
        below = converted(items, item, wanted, convert)
        return pa.Array.from_buffers(kind, len(array), [_validity(array)], array.null_count, 0, [below])
    # only the items in use, so that a slice of a long list array does not convert the others too
    wide = kinds.is_large_list(kind)
    offsets = np.asarray(array.offsets)
    first, end = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    values = _entries(array) if kinds.is_map(kind) else array.values
    below = converted(values.slice(first, end - first), item, wanted, convert)
    starts = (offsets - first).astype(np.int64 if wide else np.int32)
    return pa.Array.from_buffers(
        kind, len(array), [_validity(array), pa.py_buffer(starts)], array.null_count, 0, [below]
    )


def struct_of(kind: pa.DataType, children: Sequence[pa.Array], null: NDArray[np.bool_]) -> pa.Array:
    """Make an array of structs with some nulls."""
    nulls = int(null.sum())
    validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if nulls else None
    return pa.Array.from_buffers(kind, len(null), [validity], nulls, 0, list(children))


def _validity(array: pa.Array) -> pa.Buffer | None:
    bits = array.buffers()[0]
    return None if bits is None else bitmap_at_zero(bits, array.offset, len(array))


def _entries(array: pa.MapArray) -> pa.StructArray:
    return pa.StructArray.from_arrays([array.keys, array.items], fields=[array.type.key_field, array.type.item_field])
