"""State shared by all legacy files of one write: the dictionaries, and the columns that users were warned about."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lance_dataset.callers import callers_level
from lance_dataset.file.buffers import bitmap_at_zero
from lance_dataset.file.v0_1.arrays import visible_items
from lance_dataset.file.v0_1.layout import PageKind, page_kind
from lance_dataset.file.v0_1.write.growing import GrowingDictionary
from lance_dataset.types.schema import Field, Schema

__all__ = ["LegacyWrite"]

_UNUSUAL_ITEM = (
    "has lists whose items are not a nullable field named 'item': the reference can write, but not read them in legacy "
    "(0.1) files"
)


class LegacyWrite:
    """One write of a legacy table, with any number of files.

    It warns of lists that this package can read back and the reference cannot.

    Parameters
    ----------
    schema
        Schema of the data. A dictionary field with `Field.dictionary_values` keeps these values; any other field gets
        its values from the data.
    """

    def __init__(self, schema: Schema) -> None:
        self._dictionaries = {
            node.id: GrowingDictionary(node) for node in schema.walk() if page_kind(node) is PageKind.DICTIONARY
        }
        self._coded = {top.id for top in schema.fields if any(node.id in self._dictionaries for node in top.walk())}
        self._warned: set[tuple[str, str]] = set()
        for top in schema.fields:
            for node in top.walk():
                if page_kind(node) is PageKind.LIST and not _is_usual_item(node.children[0]):
                    self.warn(top.name, _UNUSUAL_ITEM)

    @property
    def has_dictionaries(self) -> bool:
        """True if any field has a dictionary type."""
        return bool(self._dictionaries)

    def warn(self, path: str, lost: str) -> None:
        """Warn that data is lost, once for each column and reason."""
        if (path, lost) not in self._warned:
            self._warned.add((path, lost))
            text = f"column {path!r} {lost}; a later data_storage_version keeps all that legacy files lose"
            warnings.warn(text, UserWarning, stacklevel=callers_level())

    def with_values(self, schema: Schema) -> Schema:
        """Return the schema with the present dictionaries."""
        if not self._dictionaries:
            return schema

        def filled(node: Field) -> Field:
            known = self._dictionaries.get(node.id)
            values = node.dictionary_values if known is None else known.values
            return replace(node, children=tuple(filled(child) for child in node.children), dictionary_values=values)

        return Schema(tuple(filled(top) for top in schema.fields), schema.metadata)

    def coded(self, top: Field, array: pa.Array) -> pa.Array:
        """Return the values of a top-level field with plain indices in place of all dictionaries.

        Raises
        ------
        SchemaError
            See `GrowingDictionary.indices`.
        """
        return self._coded_below(top, top.name, array, 0) if top.id in self._coded else array

    def _coded_below(self, node: Field, path: str, array: pa.Array, absent: int) -> pa.Array:
        kind = page_kind(node)
        if kind is PageKind.DICTIONARY:
            return self._dictionaries[node.id].indices(array, path, absent, self.warn)
        if kind is PageKind.NONE:
            return self._coded_struct(node, path, array)
        if kind is PageKind.LIST:
            return self._coded_list(node, path, array)
        return array

    def _coded_struct(self, node: Field, path: str, array: pa.StructArray) -> pa.StructArray:
        nulls = array.null_count
        children = array.flatten() if nulls else [array.field(number) for number in range(len(node.children))]
        below = [
            self._coded_below(child, f"{path}.{child.name}", values, nulls)
            for child, values in zip(node.children, children, strict=True)
        ]
        fields = [pa.field(child.name, values.type) for child, values in zip(node.children, below, strict=True)]
        return pa.Array.from_buffers(pa.struct(fields), len(array), [_validity(array)], nulls, 0, below)

    def _coded_list(self, node: Field, path: str, array: pa.Array) -> pa.Array:
        offsets, items = visible_items(array)
        child = node.children[0]
        below = self._coded_below(child, f"{path}.{child.name}", items, 0)
        field = pa.field(child.name, below.type)
        kind = pa.large_list(field) if offsets.dtype == np.int64 else pa.list_(field)
        buffers = [_validity(array), pa.py_buffer(np.ascontiguousarray(offsets))]
        return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, 0, [below])


def _is_usual_item(item: Field) -> bool:
    return item.name == "item" and item.nullable


def _validity(array: pa.Array) -> pa.Buffer | None:
    return bitmap_at_zero(array.buffers()[0], array.offset, len(array)) if array.null_count else None
