"""From a schema field and the columns of a 2.0 file to a column reader."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.blob_fields import is_described
from lance_dataset.file.column import ColumnReader, NullColumn
from lance_dataset.file.container import ColumnMetadata, FileMetadata
from lance_dataset.file.v2_0.blob import open_blob_column
from lance_dataset.file.v2_0.leaf import LeafColumn
from lance_dataset.file.v2_0.nested import ListColumn, StructColumn, list_node
from lance_dataset.file.v2_0.nodes import SimpleStruct
from lance_dataset.file.v2_0.page import open_pages
from lance_dataset.schema import Field

__all__ = ["Locate", "open_column"]

#: Finds the file and the column index that hold a field; None if no file does.
Locate = Callable[[Field], "tuple[FileMetadata, int] | None"]


def open_column(field: Field, locate: Locate, num_rows: int) -> ColumnReader:
    """Open the column of a field with everything below it.

    Parameters
    ----------
    field
        A field of the (projected) schema.
    locate
        Where each field is stored.
    num_rows
        Number of values the column must have.

    Raises
    ------
    CorruptFileError
        The column does not fit the field, or has another number of values.
    UnsupportedError
        A feature of 2.0 this release does not read.
    """
    found = locate(field)
    if found is None:
        return _open_absent(field, locate, num_rows)
    metadata, index = found
    column = metadata.column(index)
    where = f"{metadata.source.path}, column {index} ({field.name!r})"
    if column.kind == "blob":
        return open_blob_column(field, metadata.source, column, num_rows, where)
    _check_kind(column, field, where)
    pages = open_pages(metadata.source, column, field.name)
    total = pages[-1].start + pages[-1].length if pages else 0
    if total != num_rows:
        raise CorruptFileError(f"{where}: has {total} values instead of {num_rows}")
    if field.logical_type == "struct":
        if len(pages) > 1 or (pages and not isinstance(pages[0].node, SimpleStruct)):
            raise CorruptFileError(f"{where}: the header of a struct is not one page of struct encoding")
        children = [open_column(child, locate, num_rows) for child in field.children]
        return StructColumn(field.storage_type, num_rows, children, where)
    if field.logical_type.removesuffix(".struct") in ("list", "large_list"):
        storage = field.storage_type  # also checks that there is exactly one child
        items = open_column(field.children[0], locate, sum(list_node(page).num_items for page in pages))
        return ListColumn(pages, storage, items, field.nullable, where)
    return LeafColumn(pages, field.storage_type, field.nullable, where)


def _open_absent(field: Field, locate: Locate, num_rows: int) -> ColumnReader:
    """A field without a column: all null, unless it is a struct of which other files hold some children."""
    if field.logical_type == "struct" and any(locate(node) is not None for node in field.walk()):
        children = [open_column(child, locate, num_rows) for child in field.children]
        return StructColumn(field.storage_type, num_rows, children, field.name)
    return NullColumn(field.storage_type, num_rows)


def _check_kind(column: ColumnMetadata, field: Field, where: str) -> None:
    if is_described(field):
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
