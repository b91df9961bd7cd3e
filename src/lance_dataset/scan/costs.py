"""Estimated costs of reading the values of a column, from the pages of one fragment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from lance_dataset.errors import LanceError
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.stored_test import StoredTest
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import OutputColumn
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.request import ScanRequest
from lance_dataset.types.schema import Field

__all__ = ["ColumnCost", "ColumnCosts", "is_worth_searching"]

#: Number of fragments examined to find one that represents the table.
_CANDIDATES = 16
#: Minimum number of bytes assumed for a value of unknown length.
_UNKNOWN_BYTES = 12.0
#: Bytes read around a value that is taken from a file that is not mapped, and nanoseconds per byte.
_FETCHED_BYTES = 4096.0
_FETCH_COST = 1.0
#: Values that must be decoded to take one value from a compressed chunk.
_CHUNK_VALUES = 20
#: Limits of the sample that is decoded to measure the size of values: number of values, and bytes.
_SAMPLE_ROWS = 256
_SAMPLE_BYTES = 256 << 10
#: Nanoseconds that a page costs, no matter how little of it is read.
_PAGE_COST = 2e4
#: Nanoseconds to take a number that is not in the processor caches, if columns are taken together.
_TAKE_COST = 25.0
#: Nanoseconds that picking a number that is kept costs at least.
_LEAST_KEEP = 8.0
#: More columns than this are taken for all columns of a file, as it takes a while to look at each.
_MANY_COLUMNS = 256
#: Half of a cache line, in bytes.
_LINE_BYTES = 32.0
#: Nanoseconds that decoding a short text costs, no matter how it is stored.
_TEXT_COST = 3.5
#: Rows of a fragment from which on stored values are searched: smaller pages are read faster than they are opened.
_LEAST_SEARCHED = 1 << 14


def is_worth_searching(rows: int, slices: int = 1) -> bool:
    """Return True if stored values of some slices of fragments are searched if they can be."""
    return rows >= _LEAST_SEARCHED * slices


@dataclass(frozen=True)
class ColumnCost:
    """Costs of a column; times are nanoseconds of processor time.

    Attributes
    ----------
    stored
        Bytes of a value in its pages.
    decoded
        Bytes of a value in memory.
    read
        Time per value of a contiguous read.
    pick
        Time per value read, whether it is kept or not, to pick those that are kept.
    keep
        Time per value that is kept of those read.
    chunk
        Time per value of the compressed chunks that contain values taken by row.
    take
        Additional time per value taken by row.
    dense
        Extra time per taken value if all values are taken: taking rows one by one is slower than copying ranges.
    """

    stored: float
    decoded: float
    read: float
    pick: float
    keep: float
    chunk: float
    take: float
    dense: float

    def prefers_take(self, kept: int, width: int) -> bool:
        """Return True if taking `kept` rows is cheaper than reading a range of `width` rows and picking them out."""
        share = kept / max(width, 1)
        touched = 1.0 - (1.0 - min(share, 1.0)) ** _CHUNK_VALUES
        taken = self.chunk * touched + share * (self.take + self.dense * share)
        return taken < self.read + self.pick + share * self.keep


def _width(arrow_type: pa.DataType) -> float:
    """Return the bytes of a value in memory, as far as the type tells."""
    if pa.types.is_primitive(arrow_type):
        return max(arrow_type.bit_width / 8, 0.125)
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


#: Bytes of the values of numbers, times and the like, 0 for other types; by the number of the type.
_by_type_id: dict[int, float] = {}


def _number_bytes(arrow_type: pa.DataType) -> float:
    """Return the bytes of a value of a type whose columns need not be opened to know them, 0 for other types."""
    found = _by_type_id.get(arrow_type.id)
    if found is None:
        known = pa.types.is_primitive(arrow_type) or pa.types.is_decimal(arrow_type)
        found = _by_type_id[arrow_type.id] = _width(arrow_type) if known else 0.0
    return found


def _is_fixed(arrow_type: pa.DataType) -> bool:
    if pa.types.is_primitive(arrow_type):
        return True
    if pa.types.is_fixed_size_list(arrow_type):
        return _is_fixed(arrow_type.value_type)
    tests = (pa.types.is_nested, pa.types.is_dictionary, is_binary_like)
    return not any(test(arrow_type) for test in tests)


def _pages(fragment: FragmentReader, field: Field) -> tuple[int, int]:
    """Return the number of pages of a field and its children, and their bytes; 0 where the file does not say."""
    columns = {}
    for node in field.walk():
        file, index = fragment.stored(node.id) or (None, 0)
        if isinstance(file, FileMetadata):
            columns[id(file), index] = file.column(index)
    pages = [page for column in columns.values() for page in column.pages]
    return len(pages), sum(size for page in pages for _, size in page.buffers)


def _decoded_bytes(fragment: FragmentReader, field: Field, stored: float, indexed: tuple[float, float] | None) -> float:
    """Return the bytes of a value in memory, from a sample if the type does not tell and sampling costs no request."""
    reader = fragment.column(field)
    known = reader.value_bytes()
    if known is not None:
        return max(known, stored)
    if indexed is not None:
        return max(indexed[1], stored)
    width = max(_width(reader.arrow_type), stored)
    rows = min(int(_SAMPLE_BYTES / max(width, 1.0)), _SAMPLE_ROWS, reader.num_rows)
    if _is_fixed(reader.arrow_type) or rows == 0 or not fragment.is_mapped:
        return width
    return max(reader.read(0, rows).nbytes / rows, stored)


def column_cost(fragment: FragmentReader, field: Field) -> ColumnCost:
    """Estimate the costs of a top-level field (or a pruning of one) from its pages in one fragment."""
    reader = fragment.column(field)
    rows, kind = max(reader.num_rows, 1), reader.arrow_type
    pages, size = _pages(fragment, field)
    stored = size / rows
    read = sum(part.cost for part in reader.parts(0, reader.num_rows)) / rows
    indexed = reader.dictionary_bytes()
    decoded = _decoded_bytes(fragment, field, stored, indexed)
    if indexed is not None:
        index, entry = indexed
        read = min(read, _index_cost(index)) if fragment.is_mapped else read
        times = _Times(_pick_cost(index), _LEAST_KEEP + 0.2 * entry, 0.0, _TAKE_COST, 0.0)
    elif _is_fixed(kind):
        read = min(read, _unpack_cost(decoded)) if fragment.is_mapped else read
        times = _Times(_pick_cost(decoded), _LEAST_KEEP + 0.12 * decoded, 0.0, _TAKE_COST + 0.25 * decoded, 0.0)
    elif is_binary_like(kind):
        effort = max(read - _TEXT_COST, 0.0)
        times = _Times(0.5, 1.0 + 0.5 * decoded, 0.65 * effort, 6.0, 20.0 + 2.5 * effort)
    else:
        times = _Times(0.0, 2.0 * read, 0.6 * read, 10.0 * read, 0.0)
    fetch = 0.0 if fragment.is_mapped else _FETCH_COST * stored
    around = 0.0 if fragment.is_mapped else _FETCH_COST * (stored + _FETCHED_BYTES)
    read += _PAGE_COST * pages / rows + fetch
    return ColumnCost(stored, decoded, read, times.pick, times.keep, times.chunk, times.take + around, times.dense)


def _index_cost(index_bytes: float) -> float:
    """Return the measured time to unpack a dictionary index."""
    return 0.4 + 0.15 * index_bytes


def _unpack_cost(value_bytes: float) -> float:
    """Return the measured time to unpack a number."""
    return 0.3 + 0.11 * value_bytes


def _pick_cost(value_bytes: float) -> float:
    """Return the measured time to pass a value that is dropped: all cache lines are loaded, unless values are large."""
    return 0.1 + 0.02 * min(value_bytes, _LINE_BYTES)


class _Times(NamedTuple):
    """Measured times of `ColumnCost` that depend on the kind of a column."""

    pick: float
    keep: float
    chunk: float
    take: float
    dense: float


def _is_mapped(fragment: FragmentReader) -> bool:
    """Return True if the files of a fragment are mapped, or cannot be opened."""
    try:
        return fragment.is_mapped
    except (LanceError, OSError):
        return True


def _is_remote(fragment: FragmentReader) -> bool:
    """Return True if the files of a fragment can be opened and are on another machine."""
    try:
        return fragment.is_remote
    except (LanceError, OSError):
        return False


def _guessed_cost(field: Field) -> ColumnCost:
    width = _width(field.storage_type)
    return ColumnCost(width, width, 1.0, 0.2, 1.0 + 0.1 * width, 0.0, _TAKE_COST, 0.0)


class ColumnCosts:
    """Costs of the columns of a scan, each computed when first needed.

    Parameters
    ----------
    fragment
        The fragment that represents the table, or None without fragments.
    known
        Cache of costs, keyed by the ids of the field and its children.
    elsewhere
        Fragments with files under other base paths.
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
        """Return the costs for a scan. The costs of a table are cached in its reader."""
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

    @staticmethod
    def unread() -> ColumnCosts:
        """Return costs that are guessed from types alone, without opening a file."""
        return ColumnCosts(None, {})

    @cached_property
    def is_mapped(self) -> bool:
        """True if reading costs no request."""
        return all(map(_is_mapped, self._places))

    @property
    def row_bytes(self) -> float | None:
        """Bytes of the files per row, with all columns; None without a fragment to look at."""
        return None if self._fragment is None else self._fragment.bytes_per_row

    @cached_property
    def is_remote(self) -> bool:
        """True if reads of some fragment go to another machine."""
        return any(map(_is_remote, self._places))

    def cost(self, field: Field) -> ColumnCost:
        """Return the costs of a top-level field, or of a pruning of one."""
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
                # reading the column reports what is wrong with it, if it is read at all
                return _guessed_cost(field)
            self._known[key] = found
        return found

    def share(self, fields: Sequence[Field]) -> float:
        """Return the share of the bytes of the files that the pages of some top-level fields take."""
        if self._fragment is None or len(fields) > _MANY_COLUMNS:
            return 1.0
        wanted = sum(self.cost(field).stored for field in fields)
        return min(wanted / max(self._fragment.bytes_per_row, 1.0), 1.0)

    def can_search(self, field: Field, test: StoredTest) -> bool:
        """Return True if a condition is tested on the stored values of a field, as far as one fragment tells."""
        if self._fragment is None or not is_worth_searching(self._fragment.physical_rows):
            return False
        try:
            return self._fragment.column(field).can_search(test)
        except (LanceError, OSError):
            return False  # reading the column reports what is wrong with it

    def prefers_take(self, field: Field, kept: int, width: int) -> bool:
        """Return True if taking `kept` rows of a field is cheaper than reading `width` rows and picking them out."""
        # the file need not be opened for each of thousands of columns if any encoding has the same answer
        most = _pick_cost(0.0) * width
        if (_TAKE_COST - _LEAST_KEEP) * kept < most and self.is_mapped:
            value = _number_bytes(field.storage_type)
            if value and (_TAKE_COST + 0.25 * value - _LEAST_KEEP) * kept < most:
                return True
        return self.cost(field).prefers_take(kept, width)

    def late_read(self, field: Field) -> float:
        """Return about the time to read a value of a column that may be needed, without opening a column of numbers."""
        value = _number_bytes(field.storage_type)
        if value and self.is_mapped:
            return min(_unpack_cost(value), 1.0)
        return self.cost(field).read

    def output_bytes(self, output: OutputColumn) -> float:
        """Return the bytes of a value of an output column in memory."""
        if output.field is None:
            return _width(output.arrow.type)
        return _number_bytes(output.field.storage_type) or self.cost(output.field).decoded


_KNOWN: WeakKeyDictionary[TableReader, dict[int, dict[tuple[int, ...], ColumnCost]]] = WeakKeyDictionary()


def _typical(reader: TableReader, request: ScanRequest) -> int | None:
    """Return the position of a large fragment among the first ones of a scan."""
    counts = reader.manifest.fragment_list.columns.num_rows
    if request.fragments is None:
        first = counts[:_CANDIDATES]
        return int(np.argmax(first)) if len(first) else None
    positions = request.fragments[:_CANDIDATES]
    return max(positions, key=lambda position: int(counts[position]), default=None)
