"""Container of legacy (0.1) data files: footer, metadata, page tables, schema. Page contents are opaque to it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from lance_dataset._proto import file_pb2, table_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.container import FIELD_MEMORY
from lance_dataset.file.v0_1.dictionaries import with_dictionaries
from lance_dataset.file.v0_1.spans import Spans
from lance_dataset.io.base import InputFile
from lance_dataset.io.messages import parse_message
from lance_dataset.properties import cached_property
from lance_dataset.types.schema import Schema

__all__ = ["FOOTER", "LEGACY_PAIRS", "MAGIC", "LegacyFile", "PageTable"]

MAGIC = b"LANC"
FOOTER = struct.Struct("<qhh4s")
#: Footer version pairs of legacy files; all have the same grammar.
LEGACY_PAIRS = frozenset({(0, 0), (0, 1), (0, 2)})
_LENGTH = struct.Struct("<I")
_CELL = 16
#: Bytes of memory of the first row of a batch while a list of them becomes an array.
_NUMBER_MEMORY = 48

_M = TypeVar("_M", bound=Message)


class PageTable:
    """Table of the pages inside a file: a (position, length) cell per field id and batch.

    Parameters
    ----------
    source
        The file.
    position
        First byte of the table.
    base
        Field id of its first row.
    batch_offsets
        int64, first row of each batch, and the number of rows.
    """

    def __init__(self, source: InputFile, position: int, base: int, batch_offsets: NDArray[np.int64]) -> None:
        self.source = source
        self.base = base
        self.batch_offsets = batch_offsets
        self.position = position

    def cells(self, field_id: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions in bytes and the lengths in values of the pages of a field, per batch.

        Raises
        ------
        CorruptFileError
            The table is too short, or a page starts outside the file.
        """
        positions, lengths = self._row(field_id)
        outside = (positions < 0) | (lengths < 0) | (positions > self.source.size)
        if outside.any():
            batch = int(np.argmax(outside))
            raise CorruptFileError(
                f"{self.source.path}: the page of field {field_id} in batch {batch} has {lengths[batch]} values from "
                f"byte {positions[batch]} of {self.source.size} on"
            )
        return positions, lengths

    def _row(self, field_id: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        size = (len(self.batch_offsets) - 1) * _CELL
        start = self.position + (field_id - self.base) * size
        if field_id < self.base or start + size > self.source.size:
            raise CorruptFileError(
                f"{self.source.path}: the page table has no row for field {field_id}: it starts at byte "
                f"{self.position} with field {self.base}, but the file has {self.source.size} bytes"
            )
        cells = np.frombuffer(bytes(self.source.read(start, size)), "<i8").reshape(-1, 2)
        return np.ascontiguousarray(cells[:, 0]), np.ascontiguousarray(cells[:, 1])

    def is_blank(self, field_id: int) -> bool:
        """Return True if all cells of a field are zero, as for fields without pages."""
        return not any(part.any() for part in self._row(field_id))


class LegacyFile:
    """Metadata at the end of a legacy file.

    Parameters
    ----------
    source
        The file.
    fields
        Field ids that a manifest lists for the file, ascending; negative ids are ignored. Empty to use the schema
        embedded in the file.

    Attributes
    ----------
    version
        ``"0.1"``, the version of all legacy files.
    footer_version
        Version pair in the footer.
    batch_offsets
        int64, first row of each batch, and the number of rows.
    num_rows, num_batches
        Number of rows and of batches.
    statistics
        Description of the statistics table; None if the file has none.

    Raises
    ------
    CorruptFileError
        The bytes contradict the format.
    UnsupportedError
        The file is not a legacy file.
    """

    version = "0.1"

    def __init__(self, source: InputFile, fields: Sequence[int] = ()) -> None:
        self.source = source
        position, self.footer_version = _read_footer(source)
        message = _framed(source, position, file_pb2.Metadata, "metadata")
        self.batch_offsets = _batch_offsets(message, source.path)
        self.num_rows = int(self.batch_offsets[-1])
        self.num_batches = len(self.batch_offsets) - 1
        self.statistics = message.statistics if message.HasField("statistics") else None
        self._manifest_position = message.manifest_position
        self._table_position = message.page_table_position
        self._fields = _live_ids(fields, source.path)
        #: Rows of the last take and their locations, shared by the columns.
        self.last_take: tuple[NDArray[np.int64], Spans] | None = None

    @cached_property
    def batch_rows(self) -> NDArray[np.int64]:
        """Number of rows of each batch."""
        return np.diff(self.batch_offsets)

    @cached_property
    def schema(self) -> Schema:
        """Schema embedded in the file, including dictionaries.

        Raises
        ------
        CorruptFileError
            The file has no schema, or it is broken.
        """
        schema = self._embedded
        if schema is None:
            raise CorruptFileError(
                f"{self.source.path}: the file has no schema of its own; read it as part of its dataset"
            )
        if all(node.dictionary is None for node in schema.walk()):
            return schema
        # Positions of dictionaries count from the start of the file.
        return with_dictionaries(schema, self.source, self.source.path)

    @cached_property
    def _embedded(self) -> Schema | None:
        if self._manifest_position == 0:
            return None
        manifest = _framed(self.source, self._manifest_position, table_pb2.Manifest, "embedded schema")
        return Schema.from_proto(manifest.fields, manifest.schema_metadata, where=self.source.path)

    @cached_property
    def pages(self) -> PageTable:
        """Page table of the data.

        Releases up to 0.7 started it at field 0, whatever the first field of the file. If such a table is read as if it
        started with the first field, the first field that has pages finds only empty cells, or those of structs.
        """
        fields = self._fields or tuple(sorted(node.id for node in self.schema.walk()))
        base = fields[0] if fields else 0
        table = PageTable(self.source, self._table_position, base, self.batch_offsets)
        if base == 0 or self.num_rows == 0 or self._embedded is None:
            return table
        paged = (node.id for node in self._embedded.walk() if node.logical_type != "struct" and node.id in fields)
        first = next(paged, None)
        if first is None or not table.is_blank(first):
            return table
        return PageTable(self.source, self._table_position, 0, self.batch_offsets)

    @cached_property
    def statistics_pages(self) -> PageTable | None:
        """Page table of the statistics, whose only batch has one row per batch of the file."""
        if self.statistics is None:
            return None
        rows = np.array([0, self.num_batches], np.int64)
        return PageTable(self.source, self.statistics.page_table_position, 0, rows)

    def statistics_fields(self, field_id: int) -> list[file_pb2.Field]:
        """Return the struct named after a data field with its fields; none if there is not exactly one struct."""
        nodes, names, parents = self._statistics_nodes
        name = str(field_id)
        if names.count(name) != 1 or parents[top := names.index(name)] != -1:
            return []
        struct_id = nodes[top].id
        return [nodes[top], *(nodes[place] for place, parent in enumerate(parents) if parent == struct_id)]

    @cached_property
    def _statistics_nodes(self) -> tuple[list[file_pb2.Field], list[str], list[int]]:
        """Fields of the statistics, their names and the ids of their parents: 4 fields for each field of the data."""
        nodes = [] if self.statistics is None else list(self.statistics.schema)
        return nodes, [node.name for node in nodes], [node.parent_id for node in nodes]


def _read_footer(source: InputFile) -> tuple[int, tuple[int, int]]:
    """Return the position of the metadata, and the version pair."""
    if source.size < FOOTER.size:
        raise CorruptFileError(f"{source.path}: {source.size} bytes are too few for a Lance file; is it truncated?")
    position, major, minor, magic = FOOTER.unpack(bytes(source.read(source.size - FOOTER.size, FOOTER.size)))
    if magic != MAGIC:
        raise CorruptFileError(
            f"{source.path}: the last four bytes are {magic!r}, not {MAGIC!r}: not a Lance file, or truncated"
        )
    if (major, minor) not in LEGACY_PAIRS:
        raise UnsupportedError(f"{source.path}: file version {major}.{minor} is not legacy (0.1)")
    return position, (major, minor)


def _framed(source: InputFile, position: int, message_type: type[_M], what: str) -> _M:
    """Read a message that follows its length."""
    end = source.size - FOOTER.size
    if not 0 <= position <= end - _LENGTH.size:
        raise CorruptFileError(f"{source.path}: its {what} starts at byte {position} of {source.size}")
    (length,) = _LENGTH.unpack(bytes(source.read(position, _LENGTH.size)))
    start = position + _LENGTH.size
    if length > end - start:
        raise CorruptFileError(f"{source.path}: its {what} claims {length} bytes, but there are {end - start}")
    data = bytes(source.read(start, length))
    return parse_message(
        message_type, data, f"{source.path}: {what}", per_message=FIELD_MEMORY, per_number=_NUMBER_MEMORY
    )


def _batch_offsets(message: file_pb2.Metadata, path: str) -> NDArray[np.int64]:
    offsets = np.array(message.batch_offsets or [0], np.int64)
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise CorruptFileError(f"{path}: the first rows of its batches do not ascend from 0: {offsets[:20].tolist()}")
    return offsets


def _live_ids(fields: Sequence[int], path: str) -> tuple[int, ...]:
    live = tuple(field_id for field_id in fields if field_id >= 0)
    if any(later <= earlier for earlier, later in pairwise(live)):
        raise CorruptFileError(f"{path}: the field ids that its manifest lists do not ascend: {list(fields)[:50]}")
    return live
