"""Column readers for the fields of a schema, from the page tables of legacy files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.column import ColumnReader, NullColumn, Part
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.v0_1.read.nodes import FixedNode
from lance_dataset.file.v0_1.read.open import open_node
from lance_dataset.file.v0_1.read.statistics import read_zones
from lance_dataset.file.v0_1.spans import RowSpans, Spans
from lance_dataset.file.zones import Zones
from lance_dataset.types.schema import Field

__all__ = ["LegacyColumn", "Locate", "StructColumn", "open_column"]

#: Finds the file that holds a field; returns None if no file does.
Locate: TypeAlias = Callable[[Field], "tuple[LegacyFile, int] | None"]

#: Rows of a part: enough to be worth a thread, and few enough to divide a column among several.
_PART_ROWS = 1 << 18
#: Takes of more rows than this cache nothing for other columns, which would gain little.
_SHARED_ROWS = 1 << 12


def open_column(field: Field, locate: Locate, num_rows: int) -> ColumnReader:
    """Open the column of a top-level field with everything below it.

    Parameters
    ----------
    field
        A field of the (projected) schema.
    locate
        Returns the location of each field.
    num_rows
        Number of rows of the files.

    Raises
    ------
    CorruptFileError
        The files do not fit the field.
    UnsupportedError
        Legacy files cannot hold the type.
    """
    files = {id(found[0]): found[0] for node in field.walk() if (found := locate(node)) is not None}
    if not files:
        return NullColumn(field.storage_type, num_rows)
    if len(files) == 1:
        (file,) = files.values()
        held = {node.id for node in field.walk() if locate(node) is not None}
        if held.issuperset(node.id for node in field.walk() if node.id >= 0):
            return LegacyColumn(file, field)
    if field.logical_type != "struct":
        raise CorruptFileError(
            f"column {field.name!r}: parts of it are in {len(files)} of the files of its fragment, or in none: "
            f"{', '.join(file.source.path for file in files.values())}"
        )
    children = [open_column(child, locate, num_rows) for child in field.children]
    return StructColumn(field, children, num_rows)


class LegacyColumn(ColumnReader):
    """A column of one legacy file.

    Parameters
    ----------
    file
        The file.
    field
        The field; the file holds all of it.
    """

    def __init__(self, file: LegacyFile, field: Field) -> None:
        self.arrow_type = field.storage_type
        self.num_rows = file.num_rows
        self._file = file
        self._field = field
        self._node = open_node(field, file.pages, f"{file.source.path}, column {field.name!r}")
        self._zones: dict[tuple[str, ...], Zones | None] = {}

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        return self._node.read(Spans.of_range(self._file.batch_offsets, start, stop))

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Return one array, because pages are short and joining is cheap; large pages are not copied."""
        if start == stop:
            return []
        spans = Spans.of_range(self._file.batch_offsets, start, stop)
        views = self._node.views(spans) if isinstance(self._node, FixedNode) else None
        return [self._node.read(spans)] if views is None else views

    def parts(self, start: int, stop: int) -> list[Part]:
        """Return ranges of many batches; see `ColumnReader.parts`."""
        return [
            part
            for first in range(start, stop, _PART_ROWS)
            for part in super(LegacyColumn, self).parts(first, min(first + _PART_ROWS, stop))
        ]

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `ColumnReader.take`."""
        return self._node.read(self._spans(rows))

    def _spans(self, rows: NDArray[np.int64]) -> Spans:
        """Return the spans of rows, cached for all columns of a take, which use one array of rows in succession."""
        known = self._file.last_take
        if known is not None and known[0] is rows:
            return known[1]
        spans = RowSpans(self._file.batch_offsets, rows)
        if len(rows) <= _SHARED_ROWS:
            self._file.last_take = rows, spans
        return spans

    def zones(self, path: Sequence[str] = ()) -> Zones | None:
        """Return zones from the statistics of the file; see `ColumnReader.zones`."""
        key = tuple(path)
        if key not in self._zones:
            field: Field | None = self._field
            for name in key:
                field = None if field is None or field.logical_type != "struct" else field.child(name)
            self._zones[key] = None if field is None else read_zones(self._file, field)
        return self._zones[key]


class StructColumn(ColumnReader):
    """Struct whose fields are in several files of a fragment, or in none.

    Parameters
    ----------
    field
        The struct.
    children
        Columns of its fields.
    num_rows
        Rows of the fragment.
    """

    def __init__(self, field: Field, children: Sequence[ColumnReader], num_rows: int) -> None:
        self.arrow_type = field.storage_type
        self.num_rows = num_rows
        self._names = [child.name for child in field.children]
        self._children = children

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        return self._assemble(stop - start, [child.read(start, stop) for child in self._children])

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Return one array."""
        return [self.read(start, stop)] if start < stop else []

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `ColumnReader.take`."""
        return self._assemble(len(rows), [child.take(rows) for child in self._children])

    def _assemble(self, count: int, children: list[pa.Array]) -> pa.Array:
        return pa.Array.from_buffers(self.arrow_type, count, [None], 0, children=children)

    def zones(self, path: Sequence[str] = ()) -> Zones | None:
        """Return the zones of a field below; see `ColumnReader.zones`."""
        if not path or path[0] not in self._names:
            return None
        return self._children[self._names.index(path[0])].zones(path[1:])
