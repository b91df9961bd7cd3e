"""Check that 2.0 files can hold a schema."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.options import binary_compression, check_not_descriptor, is_blob, is_blob_v2, is_packed
from lance_dataset.file.v2_0.packed import packed_bits
from lance_dataset.types.schema import Field, Schema

__all__ = ["check_schema"]


def check_schema(schema: Schema) -> None:
    """Raise unless 2.0 can hold the schema.

    Raises
    ------
    UnsupportedError
        A field cannot be stored. The message names the column and the version that can hold it.
    """
    for top in schema.fields:
        for node in top.walk():
            _check_field(node, top.name if node is top else f"{top.name} (field {node.name})")


def _check_field(node: Field, path: str) -> None:
    if node.logical_type == "map":
        raise UnsupportedError(f"column {path!r}: file version 2.0 has no maps; use file version 2.2 or later")
    if node.logical_type.startswith("fixed_size_list:struct:"):
        raise UnsupportedError(
            f"column {path!r}: file version 2.0 has no fixed-size lists of structs; use file version 2.2 or later"
        )
    check_not_descriptor(node, path)
    if is_blob_v2(node):
        raise InvalidInputError(f"column {path!r}: Blob v2 requires file version >= 2.2 (got 2.0)")
    if is_blob(node) and not pa.types.is_large_binary(node.storage_type):
        raise UnsupportedError(
            f"column {path!r}: blobs of type {node.storage_type} cannot be stored; cast the column to large_binary"
        )
    if pa.types.is_fixed_size_list(node.storage_type):
        _check_fixed_list(node.storage_type, path)
    if is_packed(node):
        _check_packed(node, path)
    _check_compression(node, path)


def _check_fixed_list(arrow_type: pa.DataType, path: str) -> None:
    item = arrow_type.value_type
    if is_binary_like(item) or pa.types.is_null(item):
        raise UnsupportedError(f"column {path!r}: no file version holds fixed-size lists of {item}; use a list")
    if pa.types.is_fixed_size_list(item):
        _check_fixed_list(item, path)


def _check_packed(node: Field, path: str) -> None:
    if not node.children:
        raise UnsupportedError(f"column {path!r}: a packed struct needs a child")
    for child in node.children:
        if not packed_bits(child.storage_type):
            raise UnsupportedError(
                f"column {path!r}: packed structs of file version 2.0 have no children of type {child.storage_type}; "
                "remove the lance-encoding:packed metadata"
            )


def _check_compression(node: Field, path: str) -> None:
    kind = node.storage_type
    if not is_binary_like(kind) or is_blob(node):
        return
    compression = binary_compression(node)
    if compression is not None and compression.scheme == "fsst" and is_wide(kind):
        raise UnsupportedError(
            f"column {path!r}: fsst compression of {kind} cannot be stored in file version 2.0; use zstd, or cast the "
            "column to a type with 32-bit offsets"
        )
