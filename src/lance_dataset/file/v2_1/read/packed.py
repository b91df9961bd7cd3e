"""Some children of packed structs: rows are read whole, whatever is wanted of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from numpy import int64
from numpy.typing import NDArray

from lance_dataset.file.buffers import bitmap_at_zero
from lance_dataset.file.column import ColumnReader, Part
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.options import is_packed
from lance_dataset.schema import Field

__all__ = ["PrunedColumn", "with_packed_children"]


def with_packed_children(field: Field, file: FileMetadata | None) -> Field:
    """The field, every packed struct at or below it with all children that the file says it has.

    Returns
    -------
    Field
        The field itself where nothing was missing.
    """
    if file is None or not any(is_packed(node) for node in field.walk()):
        return field
    stored = {node.id: node for node in file.schema.walk()}

    def completed(node: Field) -> Field:
        known = stored.get(node.id)
        if is_packed(node) and known is not None and len(known.children) > len(node.children):
            return replace(node, children=known.children)
        children = tuple(completed(child) for child in node.children)
        same = all(new is old for new, old in zip(children, node.children, strict=True))
        return node if same else replace(node, children=children)

    return completed(field)


class PrunedColumn(ColumnReader):
    """A column of which some children of structs are left out.

    Parameters
    ----------
    inner
        The whole column.
    stored
        Its field.
    field
        The field wanted: the same, structs having fewer children.
    """

    def __init__(self, inner: ColumnReader, stored: Field, field: Field) -> None:
        self.arrow_type = field.storage_type
        self.num_rows = inner.num_rows
        self._inner = inner
        self._stored = stored
        self._field = field

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        return _pruned(self._inner.read(start, stop), self._stored, self._field)

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """See `ColumnReader.read_chunks`."""
        return [_pruned(piece, self._stored, self._field) for piece in self._inner.read_chunks(start, stop)]

    def parts(self, start: int, stop: int) -> list[Part]:
        """See `ColumnReader.parts`."""
        return self._inner.parts(start, stop)

    def take(self, rows: NDArray[int64]) -> pa.Array:
        """See `ColumnReader.take`."""
        return _pruned(self._inner.take(rows), self._stored, self._field)


def _pruned(array: pa.Array, stored: Field, field: Field) -> pa.Array:
    """The array with the children that `field` has; all other buffers are shared."""
    if stored is field or not field.children:
        return array
    kind, kinds = field.storage_type, pa.types
    if kinds.is_struct(kind):
        numbers = {child.id: number for number, child in enumerate(stored.children)}
        children = [
            _pruned(array.field(numbers[child.id]), stored.children[numbers[child.id]], child)
            for child in field.children
        ]
        validity = array.buffers()[0]
        bits = [None if validity is None else bitmap_at_zero(validity, array.offset, len(array))]
        return pa.Array.from_buffers(kind, len(array), bits, array.null_count, 0, children)
    # lists, maps and fixed-size lists have one child
    items = _pruned(array.values if not kinds.is_map(kind) else _entries(array), stored.children[0], field.children[0])
    buffers = array.buffers()[: 1 if kinds.is_fixed_size_list(kind) else 2]
    return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, array.offset, [items])


def _entries(array: pa.MapArray) -> pa.StructArray:
    return pa.StructArray.from_arrays([array.keys, array.items], fields=[array.type.key_field, array.type.item_field])
