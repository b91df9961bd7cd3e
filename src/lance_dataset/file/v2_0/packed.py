"""Packed structs of 2.0 files: one column whose pages hold the rows of a struct side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate, bit_width, bitmap_at_zero
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.v2_0.leaf import LeafColumn
from lance_dataset.file.v2_0.nodes import Flat, Node, Nullable, PackedStruct
from lance_dataset.file.v2_0.page import Page
from lance_dataset.file.v2_0.take import nested_array
from lance_dataset.types.schema import Field
from lancecodec import packed

__all__ = ["PackedColumn", "packed_bits", "row_column"]

_MAX_ROW_BYTES = 2**31 - 1


def packed_bits(arrow_type: pa.DataType) -> int | None:
    """Return the width of a child in a packed row; None for a type that packed structs cannot hold."""
    if pa.types.is_fixed_size_list(arrow_type):
        item = packed_bits(arrow_type.value_type)
        return None if item is None else item * arrow_type.list_size
    if pa.types.is_dictionary(arrow_type) or pa.types.is_nested(arrow_type) or pa.types.is_null(arrow_type):
        return None
    try:
        bits = bit_width(arrow_type)
    except ValueError:
        return None
    return bits if bits % 8 == 0 else None


def row_column(pages: Sequence[Page], bits: Sequence[int], where: str) -> LeafColumn:
    """Open the rows of packed pages as binaries of one width.

    Parameters
    ----------
    pages
        Non-empty pages in row order.
    bits
        Width of each child.
    where
        File and column, for error messages.

    Raises
    ------
    CorruptFileError
        A page is not a packed struct of such children.
    """
    width = sum(bits) // 8
    if width > _MAX_ROW_BYTES:
        raise CorruptFileError(f"{where}: a row has {width} bytes")
    rows = [replace(page, node=_as_rows(page.node, page, tuple(bits))) for page in pages]
    return LeafColumn(rows, pa.binary(width), True, where)


def _as_rows(node: Node, page: Page, bits: tuple[int, ...]) -> Node:
    if isinstance(node, Nullable):
        return node if node.values is None else Nullable(_as_rows(node.values, page, bits), node.validity)
    if not isinstance(node, PackedStruct):
        raise CorruptFileError(f"{page.where}: encoding {type(node).__name__} does not fit a packed struct")
    stored = tuple(told or known for told, known in zip(node.bits, bits, strict=False))
    if len(node.bits) != len(bits) or stored != bits:
        raise CorruptFileError(f"{page.where}: children of {node.bits} bits do not fit the struct, which has {bits}")
    return Flat(sum(bits), node.buffer)


class PackedColumn(ColumnReader):
    """Struct stored row by row, or some of its children.

    Parameters
    ----------
    pages
        Non-empty pages in row order.
    stored
        All children of the struct in the file.
    field
        Struct to read, with the wanted children.
    elsewhere
        For each wanted child, the column that holds it, or None if it is in the rows.
    where
        File and column, for error messages.
    """

    def __init__(
        self,
        pages: Sequence[Page],
        stored: Sequence[Field],
        field: Field,
        elsewhere: Sequence[ColumnReader | None],
        where: str,
    ) -> None:
        self.arrow_type = field.storage_type
        self._nullable = field.nullable
        self._where = where
        self._elsewhere = elsewhere
        bits = [self._bits(child) for child in stored]
        self._widths = [width // 8 for width in bits]
        self._rows = row_column(pages, bits, where)
        self.num_rows = self._rows.num_rows
        places = {child.id: place for place, child in reversed([*enumerate(stored)])}
        self._places = [
            places[child.id] if column is None else None
            for child, column in zip(field.children, elsewhere, strict=True)
        ]

    def _bits(self, child: Field) -> int:
        bits = packed_bits(child.storage_type)
        if bits is None:
            raise CorruptFileError(
                f"{self._where}: child {child.name!r} of type {child.storage_type} is in a packed row"
            )
        return bits

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        others = [None if column is None else column.read(start, stop) for column in self._elsewhere]
        return self._struct(self._rows.read(start, stop), others)

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Return one array per page, unless a child is stored elsewhere."""
        if any(column is not None for column in self._elsewhere):
            return [self.read(start, stop)] if start < stop else []
        nothing = [None] * len(self._elsewhere)
        return [self._struct(rows, nothing) for rows in self._rows.read_chunks(start, stop)]

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `ColumnReader.take`."""
        others = [None if column is None else column.take(rows) for column in self._elsewhere]
        return self._struct(self._rows.take(rows), others)

    def _struct(self, rows: pa.FixedSizeBinaryArray, others: Sequence[pa.Array | None]) -> pa.Array:
        count, nulls = len(rows), rows.null_count
        if nulls and not self._nullable:
            raise CorruptFileError(f"{self._where}: holds {nulls} nulls but is declared not nullable")
        columns: list[pa.Buffer | None] = [None] * len(self._widths)
        for place in self._places:
            if place is not None:
                columns[place] = allocate(count * self._widths[place])
        if count and any(self._widths):
            begin = rows.offset * rows.type.byte_width
            data = rows.buffers()[1].slice(begin, count * rows.type.byte_width)
            packed.unpack(data, self._widths, count, columns)
        children = [
            nested_array(child.type, count, None, columns[place]) if place is not None else other
            for child, place, other in zip(self.arrow_type, self._places, others, strict=True)
        ]
        validity = bitmap_at_zero(rows.buffers()[0], rows.offset, count) if nulls else None
        return pa.Array.from_buffers(self.arrow_type, count, [validity], nulls, 0, children)
