"""Check that legacy (0.1) files can hold a schema."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.v0_1.dictionaries import is_dictionary_value
from lance_dataset.file.v0_1.layout import PageKind, page_kind
from lance_dataset.types.schema import Field, Schema

__all__ = ["check_schema"]


def check_schema(schema: Schema, version: str) -> None:
    """Raise unless legacy files can hold the schema.

    Raises
    ------
    UnsupportedError
        A field cannot be stored. The message names the column and, if there is one, the version that can hold it.
    """
    nodes = []
    for top in schema.fields:
        for node in top.walk():
            path = top.name if node is top else f"{top.name} (field {node.name})"
            _check_field(node, f"column {path!r}: file version {version}")
            nodes.append(node)
    if nodes and all(page_kind(node) is PageKind.NONE for node in nodes):
        raise UnsupportedError(
            f"file version {version} cannot hold structs without fields unless there are other columns; "
            "use file version 2.0 or later"
        )


def _check_field(node: Field, where: str) -> None:
    if node.logical_type == "map":
        raise UnsupportedError(f"{where} has no maps; use file version 2.2 or later")
    if node.logical_type.startswith("fixed_size_list:struct:"):
        raise UnsupportedError(f"{where} has no fixed-size lists of structs; use file version 2.2 or later")
    if "lance-encoding:blob" in node.metadata or node.logical_type == "blob":
        raise UnsupportedError(f"{where} has no blob columns; write it as large_binary, or in version 2.0 or later")
    kind = node.storage_type
    if pa.types.is_fixed_size_list(kind):
        _check_fixed_list(kind, where)
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 0:
        raise UnsupportedError(
            f"{where}: readers do not support binaries of a fixed size of 0 in it; use file version 2.0 or later"
        )
    if pa.types.is_dictionary(kind) and not is_dictionary_value(kind.value_type):
        raise UnsupportedError(
            f"{where} has dictionaries of strings, binaries and integers only, not of {kind.value_type}; "
            "cast the column to its value type, or write version 2.0 or later"
        )
    page_kind(node)


def _check_fixed_list(arrow_type: pa.FixedSizeListType, where: str) -> None:
    item = arrow_type.value_type
    if is_binary_like(item) or pa.types.is_null(item):
        raise UnsupportedError(f"{where}, like any other, has no fixed-size lists of {item}; use a list")
    if pa.types.is_fixed_size_list(item):
        _check_fixed_list(item, where)
