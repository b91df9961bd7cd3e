"""Encoding of Arrow arrays to the pages of a 2.0 file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import Message

from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset.errors import SchemaError, UnsupportedError
from lance_dataset.file.buffers import aligned, bitmap_at_zero, concat_arrays
from lance_dataset.file.column import ColumnEncoder, EncodedPage, WriteBuffer
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.options import binary_compression, is_blob, is_packed
from lance_dataset.file.v2_0.columns import num_columns
from lance_dataset.file.v2_0.encode_binary import encode_binary_column, encode_ends
from lance_dataset.file.v2_0.encode_blob import BLOB_COLUMN, BlobPages
from lance_dataset.file.v2_0.encode_dictionary import encode_dictionary
from lance_dataset.file.v2_0.encode_fixed import encode_fixed_column
from lance_dataset.file.v2_0.encode_packed import encode_packed
from lance_dataset.file.v2_0.messages import flat, no_nulls
from lance_dataset.types.logical import NESTED_TYPES
from lance_dataset.types.schema import Field

__all__ = ["StructuredEncoder"]


class StructuredEncoder(ColumnEncoder):
    """Encoder of a top-level field and of all fields below it.

    Parameters
    ----------
    field
        The field.
    first_column
        Column index of the field; the fields below it follow depth first.
    write_buffer
        Appends the values of blobs to the file.
    """

    def __init__(self, field: Field, first_column: int, write_buffer: WriteBuffer) -> None:
        self._field = field
        self._first = first_column
        self._write_buffer = write_buffer
        # Structs write one header at the end of the file; blobs write a page whenever there are enough of them.
        self._header_rows: dict[int, int] = {}
        self._blobs: dict[int, BlobPages] = {}
        self._prepare(field, first_column)
        self.is_independent = not self._blobs

    def _prepare(self, node: Field, column: int) -> None:
        if is_blob(node):
            self._blobs[column] = BlobPages(column, self._write_buffer)
        elif node.logical_type == "struct" and not is_packed(node):
            self._header_rows[column] = 0
        for below, child in self._below(node, column):
            self._prepare(child, below)

    def _below(self, node: Field, column: int) -> Iterator[tuple[int, Field]]:
        """Yield the children that own a column, with their column index."""
        below = column + 1
        for child in () if is_packed(node) else node.children:
            yield below, child
            below += num_columns(child)

    def encode(self, arrays: Sequence[pa.Array]) -> Iterator[EncodedPage]:
        """See `ColumnEncoder.encode`."""
        return self._encode(self._field, self._field.name, self._first, arrays)

    def finish(self) -> Iterator[EncodedPage]:
        """Yield the headers of structs, and the remaining blobs."""
        for blobs in self._blobs.values():
            yield from blobs.finish()
        for column, length in self._header_rows.items():
            yield EncodedPage(column, length, pb.ArrayEncoding(struct=pb.SimpleStruct()))

    def column_encodings(self) -> Mapping[int, Message]:
        """See `ColumnEncoder.column_encodings`."""
        return dict.fromkeys(self._blobs, BLOB_COLUMN)

    def _encode(self, node: Field, path: str, column: int, arrays: Sequence[pa.Array]) -> Iterator[EncodedPage]:
        """Encode a span of rows of a field and of all fields below it, children before the parent's page."""
        if not node.nullable and any(array.null_count for array in arrays):
            raise SchemaError(f"column {path!r} is declared not nullable, but its data holds nulls")
        kind = node.storage_type
        if column in self._blobs:
            yield from self._blobs[column].add(arrays)
        elif node.logical_type == "struct":
            yield from self._encode_struct(node, path, column, arrays)
        elif node.logical_type in NESTED_TYPES:
            yield from self._encode_list(node, path, column, concat_arrays(list(arrays), kind))
        elif pa.types.is_dictionary(kind):
            yield from encode_dictionary(column, arrays, kind, path)
        elif is_binary_like(kind):
            yield encode_binary_column(column, arrays, path, binary_compression(node))
        else:
            yield encode_fixed_column(column, arrays)

    def _encode_struct(self, node: Field, path: str, column: int, arrays: Sequence[pa.Array]) -> Iterator[EncodedPage]:
        nulls = sum(array.null_count for array in arrays)
        if nulls:
            raise UnsupportedError(
                f"column {path!r}: holds {nulls} null structs, which file version 2.0 cannot store; "
                "use file version 2.1 or later"
            )
        if is_packed(node):
            yield encode_packed(column, node, path, arrays)
            return
        self._header_rows[column] += sum(len(array) for array in arrays)
        for number, (below, child) in enumerate(self._below(node, column)):
            # field() respects the offset of a sliced struct; flatten() would copy the validity, which is empty here.
            values = [array.field(number) for array in arrays]
            yield from self._encode(child, f"{path}.{child.name}", below, values)

    def _encode_list(self, node: Field, path: str, column: int, array: pa.Array) -> Iterator[EncodedPage]:
        array = _without_hidden_items(array)
        length, wide = len(array), is_wide(array.type)
        validity, offsets = array.buffers()[:2]
        entry = 8 if wide else 4
        offsets = aligned(offsets.slice(array.offset * entry, (length + 1) * entry), entry)
        view = np.frombuffer(offsets, np.int64 if wide else np.int32)
        first, num_items = int(view[0]), int(view[-1] - view[0])
        adjustment = num_items + 1
        ends = encode_ends(offsets, wide, length, validity if array.null_count else None, array.offset, 0, adjustment)
        if num_items:
            items = array.values.slice(first, num_items)
            child = node.children[0]
            yield from self._encode(child, f"{path}.{child.name}", column + 1, [items])
        encoding = pb.ArrayEncoding(
            list=pb.List(offsets=no_nulls(flat(64, 0)), null_offset_adjustment=adjustment, num_items=num_items)
        )
        yield EncodedPage(column, length, encoding, [[ends]])


def _without_hidden_items(array: pa.Array) -> pa.Array:
    """Return the same lists, without items under nulls."""
    if array.null_count == 0:
        return array
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    visible = pc.sum(lengths).as_py() or 0
    offsets = array.offsets
    if offsets[-1].as_py() - offsets[0].as_py() == visible:
        return array
    wide = is_wide(array.type)
    compact = np.zeros(len(array) + 1, np.int64 if wide else np.int32)
    np.cumsum(np.asarray(lengths), out=compact[1:])
    validity = bitmap_at_zero(array.buffers()[0], array.offset, len(array))
    return pa.Array.from_buffers(array.type, len(array), [validity, pa.py_buffer(compact)], children=[array.flatten()])
