"""Statistics of the batches of a legacy (0.1) file, and the table inside the file that stores them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset._proto import file_pb2
from lance_dataset.file.v0_1.arrays import valid_bytes, without_nulls
from lance_dataset.file.v0_1.layout import PageKind, page_kind
from lance_dataset.file.v0_1.write.bounds import batch_bounds, has_bounds
from lance_dataset.file.v0_1.write.pages import Bounds, FieldPages, Leaf, field_pages, write_pages
from lance_dataset.file.v0_1.write.plain_groups import GroupBounds, PlainGroup
from lance_dataset.io.base import OutputFile
from lance_dataset.late_dataclass import dataclass
from lance_dataset.types.logical import logical_from_arrow
from lance_dataset.types.schema import Field, Schema, stated_encoding

__all__ = ["Statistics"]

#: Fields of the statistics of a field: the struct, and its members.
_MEMBERS = ("", "null_count", "min_value", "max_value")


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
    groups
        Fields whose statistics come together.
    """

    def __init__(self, schema: Schema, groups: Sequence[PlainGroup] = ()) -> None:
        known = [node for top in schema.fields for node in _outside_lists(top) if has_bounds(node.storage_type)]
        #: All fields with statistics.
        self._known = sorted(known, key=lambda node: node.id)
        self._groups: dict[int, tuple[PlainGroup, list[GroupBounds]]] = {
            id(group): (group, []) for group in groups if group.has_bounds
        }
        grouped = {node.id for group, _ in self._groups.values() for node in group.fields}
        self._fields = {node.id: (node, _FieldStatistics()) for node in self._known if node.id not in grouped}

    def add(self, leaves: Iterable[Leaf], rows: int) -> None:
        """Add the values of a block of batches of `rows` rows each."""
        for leaf in leaves:
            if leaf.field.id in self._fields:
                self._add(leaf, rows)

    def add_group(self, group: PlainGroup, bounds: GroupBounds) -> None:
        """Add the statistics of the fields of a group in a block."""
        self._groups[id(group)][1].append(bounds)

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
        if not self._known or num_batches == 0:
            return None
        numbers = {node.id: number for number, node in enumerate(self._known)}
        cells = np.zeros((len(_MEMBERS) * len(self._known), 1, 2), np.int64)
        for group, blocks in self._groups.values():
            tops = np.array([numbers[node.id] for node in group.fields], np.int64) * len(_MEMBERS)
            _write_group(output, blocks, cells, tops)
        self._write_fields(output, num_batches, numbers, cells)
        position = output.tell()
        output.write(cells.tobytes())
        messages = _statistics_messages(self._known)
        return file_pb2.Metadata.StatisticsMetadata(
            schema=messages, fields=range(len(messages)), page_table_position=position
        )

    def _write_fields(
        self, output: OutputFile, num_batches: int, numbers: dict[int, int], cells: NDArray[np.int64]
    ) -> None:
        """Append the statistics of the fields outside of groups, and store their cells."""
        pages: list[FieldPages] = []
        bounds = Bounds(np.array([0, num_batches], np.int64))
        for node, gathered in self._fields.values():
            columns = (
                pa.array(np.concatenate(gathered.null_counts)),
                pa.concat_arrays(gathered.minimum),
                pa.concat_arrays(gathered.maximum),
            )
            first = numbers[node.id] * len(_MEMBERS) + 1
            kinds = ("int64", *[logical_from_arrow(node.storage_type, node.name)] * 2)
            for number, (name, kind, values) in enumerate(zip(_MEMBERS[1:], kinds, columns, strict=True), first):
                member = Field(name, number, kind, nullable=number > first)
                pages += field_pages(member, name, values, bounds, _nothing_lost, None)
        if pages:
            cells[[page.field_id for page in pages]] = write_pages(output, pages)


def _write_group(
    output: OutputFile, blocks: Sequence[GroupBounds], cells: NDArray[np.int64], tops: NDArray[np.int64]
) -> None:
    """Append the statistics of the fields of a group, whose structs are at `tops` among all fields."""
    members = [np.ascontiguousarray(np.concatenate(parts).T) for parts in zip(*blocks, strict=True)]
    pages = np.concatenate([values.view(np.uint8) for values in members], axis=1)  # all of a field, one after another
    position = output.tell() + np.arange(len(tops)) * pages.shape[1]
    for member, values in enumerate(members, 1):
        cells[tops + member, 0, 0] = position
        cells[tops + member, 0, 1] = values.shape[1]
        position += values[0].nbytes
    output.write(pages.reshape(-1).data)


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


def _statistics_messages(fields: Sequence[Field]) -> list[file_pb2.Field]:
    """Return a schema with a struct per field, named by the id of the field. Ids count the fields of the schema."""
    make, none, plain = file_pb2.Field, stated_encoding("struct"), stated_encoding("int64")
    messages: list[file_pb2.Field] = []
    count, least, most = _MEMBERS[1:]
    for top, node in enumerate(fields):
        kind, first = logical_from_arrow(node.storage_type, node.name), len(_MEMBERS) * top
        encoding = stated_encoding(kind)
        messages += (
            make(name=str(node.id), id=first, parent_id=-1, logical_type="struct", encoding=none),
            make(name=count, id=first + 1, parent_id=first, logical_type="int64", encoding=plain),
            make(name=least, id=first + 2, parent_id=first, logical_type=kind, nullable=True, encoding=encoding),
            make(name=most, id=first + 3, parent_id=first, logical_type=kind, nullable=True, encoding=encoding),
        )
    return messages
