"""Paths from a top-level field down to its leaves, and nested arrays built from one array per leaf.

Only leaves own a column, and that column knows everything above its leaf. Each leaf is read as a nested array with
that leaf alone (a *branch*). The branches of a field are then merged with the structure of the first one. The
fields of a struct may be in several files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.options import is_blob, is_blob_v2, is_packed
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lance_dataset.types.logical import fixed_list_length
from lance_dataset.types.schema import Field, Schema

__all__ = ["Branch", "Nest", "branches", "column_indices", "leaf_fields", "merge_branches", "owns_column"]


@dataclass(frozen=True)
class Nest:
    """A field above a leaf.

    Attributes
    ----------
    field
        The field.
    kind
        "struct", "list" (also for maps) or "fixed_size_list" (of structs).
    dimension
        Items per value of a fixed-size list, otherwise 1.
    """

    field: Field
    kind: str
    dimension: int = 1


@dataclass(frozen=True)
class Branch:
    """A leaf and the fields above it, outermost first.

    Attributes
    ----------
    leaf
        The field that owns the column.
    above
        Structs, lists, maps and fixed-size lists of structs from the top down.
    """

    leaf: Field
    above: tuple[Nest, ...] = ()

    @cached_property
    def arrow_type(self) -> pa.DataType:
        """Type of the nested array with this leaf alone; maps appear as lists of entries."""
        arrow_type = self.leaf.storage_type
        below = self.leaf
        for nest in reversed(self.above):
            arrow_type = _nest_type(nest, pa.field(below.name, arrow_type, below.nullable))
            below = nest.field
        return arrow_type

    @cached_property
    def types(self) -> tuple[pa.DataType, ...]:
        """Types of the nested arrays, from the leaf to the outermost."""
        chain = [self.arrow_type]
        for nest in self.above:
            inner = chain[-1].field(0).type if nest.kind == "struct" else chain[-1].value_type
            chain.append(inner)
        return tuple(reversed(chain))

    @cached_property
    def rows_per_value(self) -> int:
        """Product of the dimensions of fixed-size lists above the leaf, by which page lengths are multiplied."""
        return int(np.prod([nest.dimension for nest in self.above], dtype=object)) if self.above else 1


def _nest_type(nest: Nest, child: pa.Field) -> pa.DataType:
    if nest.kind == "struct":
        return pa.struct([child])
    if nest.kind == "fixed_size_list":
        return pa.list_(child, nest.dimension)
    return pa.large_list(child) if nest.field.logical_type.startswith("large_list") else pa.list_(child)


def owns_column(field: Field) -> bool:
    """Return whether a field is stored as one column, including everything below it."""
    return not field.children or is_packed(field) or is_blob(field) or is_blob_v2(field)


def leaf_fields(field: Field) -> Iterator[Field]:
    """Yield the fields at or below `field` that own a column, in column order."""
    if owns_column(field):
        yield field
        return
    for child in field.children:
        yield from leaf_fields(child)


def column_indices(schema: Schema) -> list[tuple[int, int]]:
    """Return (field id, column index) of every field that owns a column."""
    leaves = (leaf for top in schema.fields for leaf in leaf_fields(top))
    return [(leaf.id, index) for index, leaf in enumerate(leaves)]


def branches(field: Field, above: tuple[Nest, ...] = ()) -> Iterator[Branch]:
    """Yield every leaf at or below a field, in column order."""
    if owns_column(field):
        yield Branch(field, above)
        return
    nest = _nest(field)
    for child in field.children:
        yield from branches(child, (*above, nest))


def _nest(field: Field) -> Nest:
    if field.logical_type == "struct":
        return Nest(field, "struct")
    if field.logical_type.startswith("fixed_size_list:struct:"):
        return Nest(field, "fixed_size_list", fixed_list_length(field.logical_type))
    return Nest(field, "list")


def merge_branches(field: Field, arrays: Sequence[pa.Array | None], length: int, where: str) -> pa.Array:
    """Merge a nested array per leaf into one array of a field.

    Parameters
    ----------
    field
        The field.
    arrays
        An array of ``branch.arrow_type`` for each of ``branches(field)``, without offset; None for a leaf that is in no
        file, which becomes null.
    length
        Number of values.
    where
        File and column, for error messages.

    Raises
    ------
    CorruptFileError
        The branches do not agree on the lengths of lists.
    """
    if owns_column(field):
        found = arrays[0]
        return pa.nulls(length, field.storage_type) if found is None else found
    first = next((array for array in arrays if array is not None), None)
    if first is None:
        return pa.nulls(length, field.storage_type)
    inner = [None if array is None else _inside(array, field) for array in arrays]
    items = next(array for array in inner if array is not None)
    if any(array is not None and len(array) != len(items) for array in inner) or _differ(first, arrays):
        raise CorruptFileError(f"{where}: the columns below {field.name!r} have different numbers of items")
    children, start = [], 0
    for child in field.children:
        count = sum(1 for _ in branches(child))
        children.append(merge_branches(child, inner[start : start + count], len(items), where))
        start += count
    kind = field.storage_type
    if field.logical_type == "struct":
        validity, nulls = _struct_validity([array for array in arrays if array is not None])
        return pa.Array.from_buffers(kind, len(first), [validity], nulls, 0, children)
    buffers = first.buffers()[: 2 if _has_offsets(kind) else 1]
    return pa.Array.from_buffers(kind, len(first), buffers, first.null_count, 0, children)


def _differ(first: pa.Array, arrays: Sequence[pa.Array | None]) -> bool:
    """Return whether list lengths differ between branches, which another file may cause for deleted rows."""
    if not _has_offsets(first.type) or not len(first):
        return False
    size = (len(first) + 1) * (8 if pa.types.is_large_list(first.type) else 4)
    offsets = first.buffers()[1].slice(0, size)
    return any(
        array is not None and array is not first and not array.buffers()[1].slice(0, size).equals(offsets)
        for array in arrays
    )


def _struct_validity(arrays: Sequence[pa.Array]) -> tuple[pa.Buffer | None, int]:
    """Return the validity and the number of nulls of a struct.

    The branches of one file agree. Fields that were added later are in other files. The struct is null only if it is
    null in all of them.
    """
    first, *others = arrays
    if any(not array.null_count for array in arrays):
        return None, 0
    validity, differing = first.buffers()[0], []
    for array in others:
        other = array.buffers()[0]
        if array.null_count != first.null_count or not other.equals(validity):
            differing.append(np.frombuffer(other, np.uint8))
    if not differing:
        return validity, first.null_count
    size = (len(first) + 7) // 8
    bits = np.bitwise_or.reduce([each[:size] for each in (np.frombuffer(validity, np.uint8), *differing)])
    valid = int(np.unpackbits(bits, bitorder="little")[: len(first)].sum())
    return pa.py_buffer(bits), len(first) - valid


def _has_offsets(arrow_type: pa.DataType) -> bool:
    kinds = pa.types
    return kinds.is_list(arrow_type) or kinds.is_large_list(arrow_type) or kinds.is_map(arrow_type)


def _inside(array: pa.Array, field: Field) -> pa.Array:
    return array.field(0) if field.logical_type == "struct" else array.values
