"""Opening of the node that reads the values of a field, from a page table."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.blob_fields import is_pair
from lance_dataset.file.v0_1.container import PageTable
from lance_dataset.file.v0_1.layout import PageKind, bits_per_row, page_kind
from lance_dataset.file.v0_1.read.nodes import (
    BinaryNode,
    BlobNode,
    DictionaryNode,
    FixedNode,
    ListNode,
    Node,
    NullNode,
    Pages,
    StructNode,
)
from lance_dataset.types.schema import Field

__all__ = ["open_node"]


def open_node(field: Field, table: PageTable, where: str) -> Node:
    """Open the node of a field over the pages of a table.

    Parameters
    ----------
    field
        The field; the table holds all of it.
    table
        Table of its pages.
    where
        File and field, for error messages.

    Raises
    ------
    CorruptFileError
        Its pages lie outside the file, or its dictionary is missing.
    UnsupportedError
        Legacy files cannot hold the type.
    """
    arrow_type = field.storage_type
    if is_pair(field):
        pages = Pages.of(table, field.id, where)
        pages.check_size(64)
        return BlobNode(pages, arrow_type, field.nullable)
    kind = page_kind(field)
    if kind is PageKind.NONE:
        below = tuple(open_node(child, table, f"{where}.{child.name}") for child in field.children)
        return StructNode(arrow_type, below)
    pages = Pages.of(table, field.id, where)
    if kind is PageKind.NULL:
        return NullNode(pages)
    if kind is PageKind.BINARY:
        pages.check_size(64)
        return BinaryNode(pages, arrow_type, field.nullable)
    if kind is PageKind.LIST:
        pages.check_size(32 if pa.types.is_list(arrow_type) else 64)
        child = field.children[0]
        return ListNode(pages, arrow_type, open_node(child, table, f"{where}.{child.name}"))
    if kind is PageKind.DICTIONARY:
        return _open_dictionary(field, pages)
    return _open_fixed(pages, arrow_type)


def _open_dictionary(field: Field, pages: Pages) -> Node:
    if field.dictionary_values is None:
        raise CorruptFileError(f"{pages.where}: the schema does not record the location of the column's dictionary")
    indices = _open_fixed(pages, field.storage_type.index_type)
    return DictionaryNode(indices, field.dictionary_values, pages.where)


def _open_fixed(pages: Pages, arrow_type: pa.DataType) -> FixedNode:
    bits = bits_per_row(arrow_type)
    pages.check_size(bits)
    return FixedNode(pages, arrow_type, bits)
