"""Column readers for the fields of a schema, from the columns of a 2.0 file."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.blob_fields import is_pair
from lance_dataset.file.column import ColumnReader, NullColumn
from lance_dataset.file.container import ColumnMetadata, FileMetadata
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.options import is_packed
from lance_dataset.file.v2_0.blob import BlobColumn
from lance_dataset.file.v2_0.leaf import LeafColumn
from lance_dataset.file.v2_0.nested import ListColumn, StructColumn, list_node
from lance_dataset.file.v2_0.nodes import List, Node, Nullable, PackedStruct, SimpleStruct
from lance_dataset.file.v2_0.packed import PackedColumn
from lance_dataset.file.v2_0.page import Page, first_node, open_pages
from lance_dataset.file.v2_0.strings import ListedStrings, byte_lists
from lance_dataset.types.schema import Field

__all__ = ["Locate", "open_column", "open_values"]

#: Finds the file and the column index that hold a field; returns None if no file does.
Locate = Callable[[Field], "tuple[FileMetadata, int] | None"]


def open_column(field: Field, locate: Locate, num_rows: int) -> ColumnReader:
    """Open the column of a field with everything below it.

    Parameters
    ----------
    field
        A field of the (projected) schema.
    locate
        Returns the location of each field.
    num_rows
        Number of values that the column must have.

    Raises
    ------
    CorruptFileError
        The column does not fit the field, or has another number of values.
    UnsupportedError
        The file uses a feature of 2.0 that this release does not read.
    """
    found = locate(field)
    if found is None:
        return _open_absent(field, locate, num_rows)
    opened = _Opened(field, *found)
    if opened.num_rows != num_rows:
        raise CorruptFileError(f"{opened.where}: has {opened.num_rows} values instead of {num_rows}")
    if opened.is_header:
        if len(opened.column.pages) > 1 or not all(_is_header(page.node) for page in opened.pages):
            raise CorruptFileError(f"{opened.where}: the header of a struct is not one page of struct encoding")
        children = [open_column(child, locate, num_rows) for child in field.children]
        return StructColumn(field.storage_type, num_rows, children, opened.where)
    if opened.is_list:
        storage = field.storage_type  # also checks that there is exactly one child
        items = open_column(field.children[0], locate, _num_items(opened.pages))
        return ListColumn(opened.pages, storage, items, field.nullable, opened.where)
    return _open_values(opened, locate)


def _is_header(node: Node | None) -> bool:
    while isinstance(node, Nullable) and node.validity is None:
        node = node.values
    return isinstance(node, SimpleStruct)


def open_values(field: Field, metadata: FileMetadata, index: int) -> ColumnReader | None:
    """Open one column by itself; return None if it has no values but only the structure of the columns below.

    Raises
    ------
    CorruptFileError, UnsupportedError
        As `open_column`.
    """
    opened = _Opened(field, metadata, index)
    return None if opened.is_header or opened.is_list else _open_values(opened, lambda field: None)


def _open_values(opened: _Opened, locate: Locate) -> ColumnReader:
    field = opened.field
    if opened.column.kind == "blob":
        return BlobColumn(field, opened.metadata.source, opened.pages, opened.where)
    if field.logical_type == "struct":
        return _open_packed(opened, locate)
    if is_binary_like(field.storage_type) and isinstance(opened.first, List):
        return _open_listed_strings(opened)
    return LeafColumn(opened.pages, field.storage_type, field.nullable, opened.where)


class _Opened:
    """Field and the column that holds it."""

    def __init__(self, field: Field, metadata: FileMetadata, index: int) -> None:
        self.field = field
        self.metadata = metadata
        self.index = index
        self.column = metadata.column(index)
        self.where = f"{metadata.source.path}, column {index} ({field.name!r})"
        if self.column.kind != "blob":
            _check_kind(self.column, field, self.where)
        self.pages = self.pages_of(self.column)
        self.first = first_node(self.column, self.where)
        self.num_rows = self.pages[-1].start + self.pages[-1].length if self.pages else 0

    @property
    def is_header(self) -> bool:
        """True if this is the column of a struct whose children have columns of their own."""
        if self.column.kind == "blob" or self.field.logical_type != "struct":
            return False
        return not (isinstance(self.first, PackedStruct) or (self.first is None and is_packed(self.field)))

    @property
    def is_list(self) -> bool:
        """True if this is the column of a list, whose items have columns of their own."""
        return self.field.logical_type.removesuffix(".struct") in ("list", "large_list")

    def pages_of(self, column: ColumnMetadata) -> list[Page]:
        return open_pages(self.metadata.source, column, self.field.name, self.metadata.global_buffers)


def _num_items(pages: list[Page]) -> int:
    return sum(list_node(page).num_items for page in pages)


def _open_packed(opened: _Opened, locate: Locate) -> ColumnReader:
    field = opened.field
    stored = opened.metadata.schema.by_id.get(field.id, field)
    if stored.logical_type != "struct":
        raise CorruptFileError(f"{opened.where}: the file has a packed struct under a field of {stored.logical_type}")
    inside = {child.id for child in stored.children}
    elsewhere = [
        None if child.id in inside else open_column(child, locate, opened.num_rows) for child in field.children
    ]
    return PackedColumn(opened.pages, stored.children, field, elsewhere, opened.where)


def _open_listed_strings(opened: _Opened) -> ColumnReader:
    kind = byte_lists(opened.field.storage_type)
    items = opened.pages_of(opened.metadata.column(opened.index + 1))
    values = LeafColumn(items, pa.uint8(), False, opened.where)
    lists = ListColumn(opened.pages, kind, values, opened.field.nullable, opened.where)
    return ListedStrings(lists, opened.field.storage_type, opened.where)


def _open_absent(field: Field, locate: Locate, num_rows: int) -> ColumnReader:
    """Open a field without a column: all null, unless it is a struct with children in other files."""
    if field.logical_type == "struct" and any(locate(node) is not None for node in field.walk()):
        children = [open_column(child, locate, num_rows) for child in field.children]
        return StructColumn(field.storage_type, num_rows, children, field.name)
    return NullColumn(field.storage_type, num_rows)


def _check_kind(column: ColumnMetadata, field: Field, where: str) -> None:
    if is_pair(field):
        raise UnsupportedError(
            f"{where}: the values lie in the column itself, so there are no descriptions of them; "
            'read them with blob_handling="all_binary"'
        )
    if column.kind != "values":
        raise UnsupportedError(f"{where}: column encoding {column.kind!r} cannot be read by this release")
    if field.logical_type == "map" or pa.types.is_map(field.storage_type):
        raise CorruptFileError(f"{where}: a 2.0 file cannot hold a map")
    if field.logical_type.startswith("fixed_size_list:struct:"):
        raise CorruptFileError(f"{where}: a 2.0 file cannot hold a fixed-size list of structs")
