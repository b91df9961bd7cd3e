"""Which column of a 2.0 file holds which field."""

from __future__ import annotations

from lance_dataset.schema import Schema

__all__ = ["column_indices"]


def column_indices(schema: Schema) -> list[tuple[int, int]]:
    """(field id, column index) of every field: in 2.0 structs and lists own a column before their children's."""
    return [(node.id, index) for index, node in enumerate(schema.walk())]
