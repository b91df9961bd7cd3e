"""Statistics of the batches of a legacy (0.1) file, and the table inside the file that stores them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from itertools import count

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset._proto import file_pb2
from lance_dataset.file.v0_1.arrays import valid_bytes, without_nulls
from lance_dataset.file.v0_1.layout import PageKind, page_kind
from lance_dataset.file.v0_1.write.bounds import batch_bounds, has_bounds
from lance_dataset.file.v0_1.write.pages import Bounds, FieldPages, Leaf, field_pages, write_pages
from lance_dataset.io.base import OutputFile
from lance_dataset.late_dataclass import dataclass
from lance_dataset.types.logical import logical_from_arrow
from lance_dataset.types.schema import Field, Schema

__all__ = ["Statistics"]


@dataclass
class _FieldStatistics:
    """Statistics of a field, per block of batches."""

    null_counts: list[NDArray[np.int64]] = field(default_factory=list)
    minimum: list[pa.Array] = field(default_factory=list)
    maximum: list[pa.Array] = field(default_factory=list)


class Statistics:
    """Collects statistics while a file is written.

    Parameters
    ----------
    schema
        Schema of the file. There are statistics of fields outside of lists whose types have bounds (see `has_bounds`).
    """

    def __init__(self, schema: Schema) -> None:
        known = [node for top in schema.fields for node in _outside_lists(top) if has_bounds(node.storage_type)]
        self._fields = {node.id: (node, _FieldStatistics()) for node in sorted(known, key=lambda node: node.id)}

    def add(self, leaves: Iterable[Leaf], rows: int) -> None:
        """Add the values of a block of batches of `rows` rows each."""
        for leaf in leaves:
            if leaf.field.id in self._fields:
                self._add(leaf, rows)

    def _add(self, leaf: Leaf, rows: int) -> None:
        node, gathered = self._fields[leaf.field.id]
        # Readers assume that a field without nulls has none, so the replacements of its nulls count as values.
        values = leaf.values if node.nullable else without_nulls(leaf.values)
        minimum, maximum = batch_bounds(values, rows)
        gathered.null_counts.append(_null_counts(values, rows))
        gathered.minimum.append(minimum)
        gathered.maximum.append(maximum)

    def write(self, output: OutputFile, num_batches: int) -> file_pb2.Metadata.StatisticsMetadata | None:
        """Append the statistics of `num_batches` batches; return their description, or None without statistics."""
        if not self._fields or num_batches == 0:
            return None
        schema = _statistics_schema([node for node, _ in self._fields.values()])
        pages: list[FieldPages] = []
        bounds = Bounds(np.array([0, num_batches], np.int64))
        for top, (_, gathered) in zip(schema.fields, self._fields.values(), strict=True):
            columns = (
                pa.array(np.concatenate(gathered.null_counts)),
                pa.concat_arrays(gathered.minimum),
                pa.concat_arrays(gathered.maximum),
            )
            for node, values in zip(top.children, columns, strict=True):
                pages += field_pages(node, node.name, values, bounds, _nothing_lost, None)
        cells = np.zeros((schema.max_field_id + 1, 1, 2), np.int64)
        cells[[page.field_id for page in pages]] = write_pages(output, pages)
        position = output.tell()
        output.write(cells.tobytes())
        ids = [node.id for node in schema.walk()]
        return file_pb2.Metadata.StatisticsMetadata(schema=schema.to_proto(), fields=ids, page_table_position=position)


def _nothing_lost(path: str, lost: str) -> None:
    """Ignore the loss: readers treat null or empty bounds as unknown, which is intended."""


def _outside_lists(node: Field) -> list[Field]:
    kind = page_kind(node)
    if kind is PageKind.NONE:
        return [below for child in node.children for below in _outside_lists(child)]
    return [] if kind is PageKind.LIST else [node]


def _null_counts(array: pa.Array, rows: int) -> NDArray[np.int64]:
    if array.null_count == 0:
        return np.zeros(len(array) // rows, np.int64)
    return np.count_nonzero(~valid_bytes(array).reshape(-1, rows), axis=1).astype(np.int64)


def _statistics_schema(fields: list[Field]) -> Schema:
    """Return a schema with a struct per field, named by the id of the field."""
    ids = count()
    tops = []
    for node in fields:
        top = next(ids)
        children = (
            Field("null_count", next(ids), "int64", nullable=False),
            Field("min_value", next(ids), logical_from_arrow(node.storage_type, node.name)),
            Field("max_value", next(ids), logical_from_arrow(node.storage_type, node.name)),
        )
        tops.append(Field(str(node.id), top, "struct", nullable=False, children=children))
    return Schema(tuple(tops))
