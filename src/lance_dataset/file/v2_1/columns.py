"""Which column of a 2.1 (or later) file holds which field: only leaves own one."""

from __future__ import annotations

from collections.abc import Iterator

from lance_dataset.file.options import is_blob, is_blob_v2, is_packed
from lance_dataset.schema import Field, Schema

__all__ = ["column_indices", "leaf_fields", "owns_column"]


def owns_column(field: Field) -> bool:
    """Whether a field is stored as one column, whatever is below it."""
    return not field.children or is_packed(field) or is_blob(field) or is_blob_v2(field)


def leaf_fields(field: Field) -> Iterator[Field]:
    """The fields at or below `field` that own a column, in column order."""
    if owns_column(field):
        yield field
        return
    for child in field.children:
        yield from leaf_fields(child)


def column_indices(schema: Schema) -> list[tuple[int, int]]:
    """(field id, column index) of every field that owns a column."""
    leaves = (leaf for top in schema.fields for leaf in leaf_fields(top))
    return [(leaf.id, index) for index, leaf in enumerate(leaves)]
