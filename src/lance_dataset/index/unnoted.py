"""Kinds of indices of old releases, which did not record them."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from lance_dataset.index.files import IndexFolder
from lance_dataset.types.schema import Schema

__all__ = ["unnoted_kind"]


def unnoted_kind(field_ids: Collection[int], schema: Schema, folder: IndexFolder) -> str:
    """Derive the kind of an index from its column and the names of its files."""
    column = next((node for node in schema.walk() if node.id in field_ids), None)
    if column is not None and pa.types.is_fixed_size_list(column.storage_type):
        return "vector"
    if column is not None and (pa.types.is_list(column.storage_type) or pa.types.is_large_list(column.storage_type)):
        return "labellist"
    names = set(folder.names())
    if "bitmap_page_lookup.lance" in names:
        return "bitmap"
    if not names.isdisjoint(("metadata.lance", "invert.lance")):
        return "inverted"
    return "vector" if "index.idx" in names else "btree"
