"""Column indices of fields in a 2.0 file."""

from __future__ import annotations

from collections.abc import Iterator

from lance_dataset.file.container import FileMetadata
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.options import is_packed
from lance_dataset.file.v2_0.nodes import List, Node, PackedStruct
from lance_dataset.file.v2_0.page import first_node
from lance_dataset.types.schema import Field, Schema

__all__ = ["column_indices", "num_columns", "stored_indices"]


def column_indices(schema: Schema) -> list[tuple[int, int]]:
    """Return (field id, column index) of every field that owns a column.

    Structs and lists own a column before those of their children. The children of a packed struct own none.
    """
    owners = (node for top in schema.fields for node in _owners(top))
    return [(node.id, index) for index, node in enumerate(owners)]


def num_columns(field: Field) -> int:
    """Return the number of columns of a field with everything below it."""
    return sum(1 for _ in _owners(field))


def _owners(field: Field) -> Iterator[Field]:
    yield field
    if not is_packed(field):
        for child in field.children:
            yield from _owners(child)


def stored_indices(schema: Schema, metadata: FileMetadata) -> list[tuple[int, int]]:
    """Return (field id, column index) of the fields of a standalone file.

    Old releases ignored some requests for packed structs, so the pages decide; without pages, the metadata decides.
    The same applies to strings that are stored as lists, which take two columns.

    Raises
    ------
    CorruptFileError, UnsupportedError
        The file has too few columns, or the first page of a struct is broken.
    """
    walk = _Walk(metadata, with_strings=False)
    walk.visit_all(schema)
    if walk.index != metadata.num_columns and walk.has_strings:
        other = _Walk(metadata, with_strings=True)
        other.visit_all(schema)
        if other.index == metadata.num_columns:
            return other.pairs
    return walk.pairs


class _Walk:
    """Counts columns along the fields of a schema."""

    def __init__(self, metadata: FileMetadata, with_strings: bool) -> None:
        self.pairs: list[tuple[int, int]] = []
        self.index = 0
        self.has_strings = False
        self._metadata = metadata
        self._with_strings = with_strings

    def visit_all(self, schema: Schema) -> None:
        for top in schema.fields:
            self._visit(top)

    def _visit(self, field: Field) -> None:
        index = self.index
        self.pairs.append((field.id, index))
        self.index += 1
        if field.logical_type == "struct":
            node = self._first(field, index)
            if isinstance(node, PackedStruct) or (node is None and is_packed(field)):
                return
        elif not field.children and is_binary_like(field.storage_type):
            self.has_strings = True
            if self._with_strings and isinstance(self._first(field, index), List):
                self.index += 1
        for child in field.children:
            self._visit(child)

    def _first(self, field: Field, index: int) -> Node | None:
        if index >= self._metadata.num_columns:
            return None
        where = f"{self._metadata.source.path}, column {index} ({field.name!r})"
        return first_node(self._metadata.column(index), where)
