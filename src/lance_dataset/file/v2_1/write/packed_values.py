"""Packed structs of fixed width in chunks, and what all packed structs have in common."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_dataset.errors import SchemaError, UnsupportedError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.v2_1.compressive import PackedStruct
from lance_dataset.file.v2_1.read.arrays import value_bits
from lance_dataset.file.v2_1.write.choose_fixed import flat_chunks
from lance_dataset.file.v2_1.write.encoded import EncodedChunks
from lance_dataset.file.v2_1.write.general_chunks import compressed
from lance_dataset.file.v2_1.write.leaf_values import fixed_bytes
from lance_dataset.file.v2_1.write.request import Request
from lance_dataset.schema import Field
from lancecodec import bitmap, packed

__all__ = ["check_children", "encode_packed", "is_variable_packed"]


def is_variable_packed(kind: pa.StructType) -> bool:
    """Whether the rows of a packed struct are described child by child: a child of any length or of lists."""
    return any(
        is_binary_like(child.type) or pa.types.is_fixed_size_list(child.type) or pa.types.is_struct(child.type)
        for child in kind
    )


def check_children(values: pa.StructArray, validity: pa.Buffer | None, field: Field) -> None:
    """Refuse what rows cannot hold.

    Raises
    ------
    SchemaError
        A null child of a row that is not null.
    UnsupportedError
        A child of a type that is not stored in rows.
    """
    for number, child in enumerate(values.type):
        kind = child.type
        if pa.types.is_boolean(kind) or not (
            value_bits(kind) or is_binary_like(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_struct(kind)
        ):
            raise UnsupportedError(
                f"column {field.name!r}: field {child.name!r} of type {kind} cannot be part of a packed struct; "
                "store the struct unpacked"
            )
        if _has_nulls(values.field(number), validity, len(values)):
            raise SchemaError(
                f"column {field.name!r}: field {child.name!r} holds nulls, which a packed struct cannot express; "
                "store the struct unpacked"
            )


def _has_nulls(child: pa.Array, validity: pa.Buffer | None, count: int) -> bool:
    own = child.buffers()[0]
    if own is None or bitmap.count(own, child.offset, count) == count:
        return False
    if validity is None:
        return True
    rows, values = np.empty(count, np.uint8), np.empty(count, np.uint8)
    bitmap.unpack(validity, 0, count, rows.data)
    bitmap.unpack(own, child.offset, count, values.data)
    return bool((rows > values).any())


def encode_packed(
    values: pa.StructArray, validity: pa.Buffer | None, field: Field, request: Request
) -> EncodedChunks | None:
    """Rows of fixed width in chunks; None if their width varies or two are too wide for a chunk."""
    check_children(values, validity, field)
    if is_variable_packed(values.type):
        return None
    widths = [value_bits(child.type) // 8 for child in values.type]
    row = packed.row_bytes(widths)
    per_chunk = request.flat_values(8 * row)
    if per_chunk == 0:
        return None
    out = allocate(row * len(values))
    columns = [fixed_bytes(values.field(number), 8 * width) for number, width in enumerate(widths)]
    packed.pack(columns, widths, len(values), out)
    flat = flat_chunks(out, 8 * row, len(values), per_chunk)
    rows = EncodedChunks(
        PackedStruct(tuple(8 * width for width in widths)),
        flat.counts,
        flat.buffers,
        per_chunk,
        None,
        f"rows of {len(widths)} fields in {row} bytes",
    )
    return compressed(rows, request)
