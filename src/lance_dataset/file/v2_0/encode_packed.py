"""Encoding of packed structs to 2.0 pages: the fixed-width children of each row side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset.errors import UnsupportedError
from lance_dataset.file.buffers import allocate, bit_width, concat_arrays
from lance_dataset.file.column import EncodedPage
from lance_dataset.file.v2_0.messages import flat, no_nulls
from lance_dataset.file.v2_0.packed import packed_bits
from lance_dataset.types.schema import Field
from lancecodec import packed

__all__ = ["encode_packed", "packed_encoding"]


def encode_packed(column: int, node: Field, path: str, arrays: Sequence[pa.Array]) -> EncodedPage:
    """Encode a page of rows.

    Raises
    ------
    UnsupportedError
        A child is null, which packed rows cannot represent.
    """
    length = sum(len(array) for array in arrays)
    widths = [(packed_bits(child.storage_type) or 0) // 8 for child in node.children]
    columns = []
    for number, child in enumerate(node.children):
        values = concat_arrays([array.field(number) for array in arrays], child.storage_type)
        columns.append(_flattened(values, f"{path}.{child.name}"))
    rows = allocate(length * sum(widths))
    packed.pack(columns, widths, length, rows)
    return EncodedPage(column, length, packed_encoding([child.storage_type for child in node.children]), [[rows]])


def _flattened(array: pa.Array, path: str) -> pa.Buffer:
    """Return the bytes of fixed-width values; the items of lists are concatenated."""
    if array.null_count:
        raise UnsupportedError(
            f"column {path!r}: holds {array.null_count} nulls, which packed structs of file version 2.0 cannot store; "
            "use file version 2.1 or later, or remove the lance-encoding:packed metadata"
        )
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        return _flattened(array.values.slice(array.offset * size, len(array) * size), f"{path}.item")
    width = bit_width(array.type) // 8
    return array.buffers()[1].slice(array.offset * width, len(array) * width)


def packed_encoding(kinds: Sequence[pa.DataType]) -> pb.ArrayEncoding:
    """Return the encoding of rows with children of some types, all in page buffer 0."""
    inner = [_child_encoding(kind) for kind in kinds]
    return pb.ArrayEncoding(packed_struct=pb.PackedStruct(inner=inner, buffer=pb.Buffer()))


def _child_encoding(kind: pa.DataType) -> pb.ArrayEncoding:
    if pa.types.is_fixed_size_list(kind):
        items = pb.FixedSizeList(dimension=kind.list_size, items=_child_encoding(kind.value_type))
        return no_nulls(pb.ArrayEncoding(fixed_size_list=items))
    return no_nulls(flat(bit_width(kind), 0))
