"""What it costs to have the values of a column, estimated of the pages of one fragment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from lance_dataset.errors import LanceError
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.projection import OutputColumn
from lance_dataset.query.request import ScanRequest
from lance_dataset.query.table_reader import TableReader
from lance_dataset.schema import Field

__all__ = ["ColumnCost", "ColumnCosts"]

#: So many fragments are looked at to find one that stands for all.
_CANDIDATES = 16
#: Bytes that a value of unknown length takes, at least.
_UNKNOWN_BYTES = 12.0
#: Bytes that are read around a value that is taken from a file that is not mapped, and nanoseconds per byte.
_FETCHED_BYTES = 4096.0
_FETCH_COST = 1.0
#: Values that are decoded on the way to one that is taken, where they lie in compressed chunks.
_CHUNK_VALUES = 20
#: As many values as are decoded to see how large they are, and bytes of them.
_SAMPLE_ROWS = 256
_SAMPLE_BYTES = 256 << 10
#: Nanoseconds that a page costs, however little is read of it.
_PAGE_COST = 2e4
#: Nanoseconds that decoding a short text costs, however it is stored.
_TEXT_COST = 3.5


@dataclass(frozen=True)
class ColumnCost:
    """Costs of a column; times are nanoseconds of a processor.

    Attributes
    ----------
    stored
        Bytes of a value in its pages.
    decoded
        Bytes of a value in memory.
    read
        Time per value of a range that is read.
    keep
        Time per value that is kept of those.
    chunk
        Time per value of the compressed chunks that hold values that are taken by row.
    take
        Time per value that is taken by row, besides.
    dense
        How much longer that takes when all values are taken: rows one by one are slower than copies of ranges.
    """

    stored: float
    decoded: float
    read: float
    keep: float
    chunk: float
    take: float
    dense: float

    def prefers_take(self, kept: int, width: int) -> bool:
        """Whether `kept` rows are better taken than picked out of a range of `width` rows that is read."""
        share = kept / max(width, 1)
        touched = 1.0 - (1.0 - min(share, 1.0)) ** _CHUNK_VALUES
        taken = self.chunk * touched + share * (self.take + self.dense * share)
        return taken < self.read + share * self.keep


def _width(arrow_type: pa.DataType) -> float:
    """Bytes of a value in memory as far as the type tells."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _width(arrow_type.storage_type)
    if pa.types.is_fixed_size_list(arrow_type):
        return arrow_type.list_size * _width(arrow_type.value_type)
    if pa.types.is_struct(arrow_type):
        return sum(_width(arrow_type.field(number).type) for number in range(arrow_type.num_fields))
    if pa.types.is_dictionary(arrow_type):
        return _width(arrow_type.index_type)
    if pa.types.is_null(arrow_type):
        return 0.0
    try:
        return max(arrow_type.bit_width / 8, 0.125)
    except ValueError:
        return _UNKNOWN_BYTES


def _is_fixed(arrow_type: pa.DataType) -> bool:
    if pa.types.is_fixed_size_list(arrow_type):
        return _is_fixed(arrow_type.value_type)
    tests = (pa.types.is_nested, pa.types.is_dictionary, is_binary_like)
    return not any(test(arrow_type) for test in tests)


def _pages(fragment: FragmentReader, field: Field) -> tuple[int, int]:
    """How many pages a field and all below it have, and their bytes; 0 where the file does not say."""
    columns = {}
    for node in field.walk():
        file, index = fragment.stored(node.id) or (None, 0)
        if isinstance(file, FileMetadata):
            columns[id(file), index] = file.column(index)
    pages = [page for column in columns.values() for page in column.pages]
    return len(pages), sum(size for page in pages for _, size in page.buffers)


def _decoded_bytes(fragment: FragmentReader, field: Field, stored: float) -> float:
    """Bytes of a value in memory, of some values that are looked at where only they tell and that costs no request."""
    reader = fragment.column(field)
    width = max(_width(reader.arrow_type), stored)
    rows = min(int(_SAMPLE_BYTES / max(width, 1.0)), _SAMPLE_ROWS, reader.num_rows)
    if _is_fixed(reader.arrow_type) or rows == 0 or not fragment.is_mapped:
        return width
    return max(reader.read(0, rows).nbytes / rows, stored)


def column_cost(fragment: FragmentReader, field: Field) -> ColumnCost:
    """The costs of a top-level field (or a pruning of one), of its pages in one fragment."""
    reader = fragment.column(field)
    rows, kind = max(reader.num_rows, 1), reader.arrow_type
    pages, size = _pages(fragment, field)
    stored = size / rows
    read = sum(part.cost for part in reader.parts(0, reader.num_rows)) / rows
    decoded = _decoded_bytes(fragment, field, stored)
    if _is_fixed(kind):
        times = _Times(0.7 + 0.12 * decoded, 0.0, 6.0 + 0.25 * decoded, 16.0)
    elif is_binary_like(kind):
        effort = max(read - _TEXT_COST, 0.0)
        times = _Times(1.0 + 0.5 * decoded, 0.65 * effort, 6.0, 20.0 + 2.5 * effort)
    else:
        times = _Times(2.0 * read, 0.6 * read, 10.0 * read, 0.0)
    fetch = 0.0 if fragment.is_mapped else _FETCH_COST * stored
    around = 0.0 if fragment.is_mapped else _FETCH_COST * (stored + _FETCHED_BYTES)
    read += _PAGE_COST * pages / rows + fetch
    return ColumnCost(stored, decoded, read, times.keep, times.chunk, times.take + around, times.dense)


class _Times(NamedTuple):
    """Times of `ColumnCost` that depend on the kind of a column, as measured."""

    keep: float
    chunk: float
    take: float
    dense: float


def _told(fragment: FragmentReader, question: str, *, unknown: bool) -> bool:
    """What a fragment says of its files; `unknown` where they cannot be opened."""
    try:
        return bool(getattr(fragment, question))
    except (LanceError, OSError):
        return unknown


def _guessed_cost(field: Field) -> ColumnCost:
    width = _width(field.storage_type)
    return ColumnCost(width, width, 1.0, 1.0 + 0.1 * width, 0.0, 20.0, 0.0)


class ColumnCosts:
    """Costs of the columns of a scan, each found out when it is asked for.

    Parameters
    ----------
    fragment
        The fragment that stands for all of the table, None where there is none.
    known
        Where costs are kept, by the ids of the field and what is below it.
    elsewhere
        Fragments with files of other base paths.
    """

    def __init__(
        self,
        fragment: FragmentReader | None,
        known: dict[tuple[int, ...], ColumnCost],
        elsewhere: Iterable[FragmentReader] = (),
    ) -> None:
        self._fragment = fragment
        self._known = known
        self._places = [] if fragment is None else [fragment, *elsewhere]
        self._by_identity: dict[int, ColumnCost] = {}

    @staticmethod
    def of(reader: TableReader | FragmentReader, request: ScanRequest) -> ColumnCosts:
        """The costs for a scan. Those of a table are kept as long as its reader."""
        if isinstance(reader, FragmentReader):
            return ColumnCosts(reader, {})
        per_fragment = _KNOWN.get(reader)
        if per_fragment is None:
            per_fragment = _KNOWN.setdefault(reader, {})
        position = _typical(reader, request)
        if position is None:
            return ColumnCosts(None, {})
        elsewhere = reader.one_per_base(request.fragments) if reader.manifest.base_paths else ()
        return ColumnCosts(reader.fragments[position], per_fragment.setdefault(position, {}), elsewhere)

    @cached_property
    def is_mapped(self) -> bool:
        """Whether reading costs no request."""
        return all(_told(fragment, "is_mapped", unknown=True) for fragment in self._places)

    @cached_property
    def is_remote(self) -> bool:
        """Whether reads wait for another machine, be it for some of the fragments."""
        return any(_told(fragment, "is_remote", unknown=False) for fragment in self._places)

    def cost(self, field: Field) -> ColumnCost:
        """The costs of a top-level field, or of a pruning of one."""
        found = self._by_identity.get(id(field))
        if found is None:
            found = self._by_identity[id(field)] = self._find(field)
        return found

    def _find(self, field: Field) -> ColumnCost:
        key = tuple(node.id for node in field.walk())
        found = self._known.get(key)
        if found is None:
            try:
                found = _guessed_cost(field) if self._fragment is None else column_cost(self._fragment, field)
            except (LanceError, OSError):
                # whoever reads the column says what is wrong with it, if anyone does
                return _guessed_cost(field)
            self._known[key] = found
        return found

    def output_bytes(self, output: OutputColumn) -> float:
        """Bytes of a value of an output column in memory."""
        if output.field is None:
            return _width(output.arrow.type)
        return self.cost(output.field).decoded


_KNOWN: WeakKeyDictionary[TableReader, dict[int, dict[tuple[int, ...], ColumnCost]]] = WeakKeyDictionary()


def _typical(reader: TableReader, request: ScanRequest) -> int | None:
    """Position of a large fragment among the first ones of a scan."""
    counts = reader.manifest.fragment_list.columns.num_rows
    if request.fragments is None:
        first = counts[:_CANDIDATES]
        return int(np.argmax(first)) if len(first) else None
    positions = request.fragments[:_CANDIDATES]
    return max(positions, key=lambda position: int(counts[position]), default=None)
