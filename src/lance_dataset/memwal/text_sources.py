"""Texts of a table, of its SSTables and of memtables, for searches in all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.expr.compiled import Filter, compile_filter
from lance_dataset.index.scalar.sorting import ROWS, VALUES
from lance_dataset.index.text.searching.text_index import TextIndex, text_indices
from lance_dataset.index.text.searching.wanted import Chooser
from lance_dataset.index.text.training.documents import DocumentReader
from lance_dataset.index.text.training.parameters import InvertedParameters
from lance_dataset.memwal.hiding import hidden_addresses
from lance_dataset.memwal.shard_parts import ShardPart, shard_parts
from lance_dataset.memwal.sources import LsmSources
from lance_dataset.memwal.sstables import OpenSsTable
from lance_dataset.properties import cached_property
from lance_dataset.read.empty_batches import rows_only
from lance_dataset.read.projection import OutputColumn, project, scalar_path
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.take import take_addresses
from lance_dataset.scan.full_text.analyzed import AnalyzedTexts
from lance_dataset.scan.full_text.column import TextColumn
from lance_dataset.scan.full_text.scanned import ScannedTexts
from lance_dataset.scan.full_text.scope import SearchScope
from lance_dataset.scan.resolving import resolve_request
from lance_dataset.types.schema import Field, Schema

__all__ = ["LsmTextSources", "LsmTexts"]

_Addresses = NDArray[np.uint64]


class LsmTextSources:
    """Sources of a moment for searches. Columns that are searched again are known.

    Parameters
    ----------
    sources
        The sources.
    filter
        SQL text for the rows that may be found; None for all.

    Raises
    ------
    FieldNotFoundError, FilterError
        The filter does not fit.
    """

    def __init__(self, sources: LsmSources, filter: str | None) -> None:
        self.sources = sources
        self._text, self._filter = filter, compile_filter(filter, sources.base.manifest.schema.storage_arrow)
        self._known: dict[tuple[str, ...], list[LsmTexts]] = {}

    def of_columns(self, columns: Mapping[str, TextColumn]) -> list[LsmTexts]:
        """Return the table first, then the memtables and SSTables of each shard, the newest ones first.

        Parameters
        ----------
        columns
            The columns of a query in the table.

        Raises
        ------
        CorruptFileError, MissingFileError
            A source cannot be read.
        """
        names = tuple(columns)
        if names not in self._known:
            base = self.sources.base
            found: list[LsmTexts] = [_BaseTexts.of(base, columns, self._hidden, self._text)]
            found += [_ShardTexts(part, base.manifest.schema, columns, self._filter) for part in self._parts]
            self._known[names] = found
        return self._known[names]

    @cached_property
    def _hidden(self) -> _Addresses:
        """Addresses of the rows of the table that newer rows hide, ascending."""
        return hidden_addresses(self.sources)

    @cached_property
    def _parts(self) -> list[ShardPart]:
        """Memtables and SSTables."""
        return list(shard_parts(self.sources))


class LsmTexts(ABC):
    """Rows of one source, and their texts; a `SharedScope`.

    Attributes
    ----------
    generation
        Generation of a memtable or SSTable, 0 for the table.
    columns
        The columns of a query, with the indices of the source.
    """

    generation: int
    columns: Mapping[str, TextColumn]

    @property
    def is_table(self) -> bool:
        """True for the table."""
        return not self.generation

    @abstractmethod
    def uncovered(self, covered: Collection[int]) -> tuple[int, ...]:
        """Return the positions of the parts whose texts have to be read."""

    @abstractmethod
    def chooser(self, covered: Collection[int]) -> Chooser | None:
        """Return the function that says which rows of an index may be found."""

    @abstractmethod
    def read_chooser(self, positions: tuple[int, ...]) -> Chooser | None:
        """Return the function that says which rows whose texts are read may be found."""

    @abstractmethod
    def texts(self, column: OutputColumn, positions: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        """Yield the values of a column, with the addresses of their rows."""

    def read(
        self, column: TextColumn, words: Sequence[str], positions: tuple[int, ...], parameters: InvertedParameters
    ) -> ScannedTexts:
        """Find different words in the texts of parts that no index covers."""
        return column.read(words, self, positions, parameters=parameters)

    @abstractmethod
    def take(self, addresses: _Addresses, wanted: list[Field]) -> pa.RecordBatch:
        """Return columns of rows."""


# -- the table ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _BaseTexts(LsmTexts):
    """Rows of the table.

    Attributes
    ----------
    base, columns
        The table, and the columns of the query.
    hidden : uint64[n]
        Addresses of the rows that newer rows hide, ascending.
    scope
        All rows.
    filtered
        The rows that match a filter; None for all.
    """

    base: Snapshot
    columns: Mapping[str, TextColumn]
    hidden: _Addresses
    scope: SearchScope
    filtered: SearchScope | None
    generation: int = 0

    @classmethod
    def of(
        cls, base: Snapshot, columns: Mapping[str, TextColumn], hidden: _Addresses, filter: str | None
    ) -> _BaseTexts:
        projection = project(base.scanned_schema, [])
        scope = SearchScope(base.reader, replace(resolve_request(base, {}), projection=projection))
        if filter is None:
            return cls(base, columns, hidden, scope, None)
        request = replace(resolve_request(base, {"filter": filter}), projection=projection)
        return cls(base, columns, hidden, scope, SearchScope(base.reader, request))

    def uncovered(self, covered: Collection[int]) -> tuple[int, ...]:
        return self.scope.uncovered(covered)

    def chooser(self, covered: Collection[int]) -> Chooser | None:
        visible = _WithoutHidden(self.hidden) if len(self.hidden) else None
        matching = None if self.filtered is None else self.filtered.chooser(covered)
        if matching is None or visible is None:
            return matching or visible
        return lambda addresses: matching(addresses) & visible(addresses)

    def read_chooser(self, positions: tuple[int, ...]) -> Chooser | None:
        if self.filtered is None:
            return None
        matching = self.filtered.addresses(positions)
        return lambda addresses: np.isin(addresses, matching)

    def texts(self, column: OutputColumn, positions: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        visible = _WithoutHidden(self.hidden)
        for batch in self.scope.texts(column, positions):
            shown = visible(batch.column(1).to_numpy())
            yield batch if shown.all() else batch.filter(pa.array(shown))

    def take(self, addresses: _Addresses, wanted: list[Field]) -> pa.RecordBatch:
        names = [field.name for field in wanted]
        request = resolve_request(self.base, {"columns": names})
        return take_addresses(self.base.reader, addresses, request.projection, request.schema)


@dataclass(frozen=True, eq=False)
class _WithoutHidden:
    """Function that says which rows are not among some, whose addresses ascend."""

    hidden: _Addresses

    def __call__(self, addresses: _Addresses) -> NDArray[np.bool_]:
        if len(addresses) < len(self.hidden) or not (addresses[1:] > addresses[:-1]).all():
            return ~np.isin(addresses, self.hidden)
        found = np.ones(len(addresses), bool)
        if len(addresses):
            places = np.minimum(np.searchsorted(addresses, self.hidden), len(addresses) - 1)
            found[places[addresses[places] == self.hidden]] = False
        return found


# -- shards ------------------------------------------------------------------------------------------------------


class _ShardTexts(LsmTexts):
    """Visible rows of a memtable or SSTable. Those of a memtable have their numbers as addresses."""

    def __init__(
        self, part: ShardPart, schema: Schema, columns: Mapping[str, TextColumn], filter: Filter | None
    ) -> None:
        self._part, self._schema, self._filter = part, schema, filter
        self.generation = part.generation
        self.columns = {name: replace(column, index=self._index(column)) for name, column in columns.items()}

    def _index(self, column: TextColumn) -> TextIndex | None:
        """Return the index of the SSTable that is searched like that of the table; None without one."""
        table, base = self._part.table, column.index
        if base is None or table is None:
            return None
        reader = table.snapshot.reader
        fragments = frozenset(reader.manifest.fragment_list.columns.ids.tolist())
        wanted = (base.parameters.analysis, base.parameters.by_element, base.parameters.with_position)
        for index in text_indices(reader, scalar_path(self._schema, column.name)[-1].id):
            mine = index.parameters
            if fragments <= index.fragment_ids and (mine.analysis, mine.by_element, mine.with_position) == wanted:
                return index
        return None

    @cached_property
    def _addresses(self) -> _Addresses:
        """Addresses of the visible rows, ascending."""
        return self._part.source.addresses[self._part.visible]

    @cached_property
    def _content(self) -> pa.RecordBatch:
        """Visible rows, with the columns of the filter and those whose texts are read."""
        fields = [each.output.field for each in self.columns.values() if each.index is None]
        names = [field.name for field in fields if field is not None]
        names += [] if self._filter is None else self._filter.columns
        wanted = [self._schema.top_level(name) for name in dict.fromkeys(names)]
        batch, marks = self._part.source.scan(wanted)
        if not names:  # of a filter without columns
            return rows_only(len(self._part.visible), pa.schema([]))
        return batch if len(self._part.visible) == len(marks) else batch.take(pa.array(self._part.visible))

    @cached_property
    def _matching(self) -> _Addresses:
        """Addresses of the visible rows that match the filter."""
        if self._filter is None:
            return self._addresses
        return self._addresses[self._filter.mask(self._content).to_numpy(zero_copy_only=False)]

    def uncovered(self, covered: Collection[int]) -> tuple[int, ...]:
        return () if covered else (0,)

    @cached_property
    def _chooser(self) -> Chooser | None:
        others = np.setdiff1d(self._part.source.addresses, self._matching, assume_unique=True)
        return _WithoutHidden(others) if len(others) else None

    def chooser(self, covered: Collection[int]) -> Chooser | None:
        return self._chooser

    def read_chooser(self, positions: tuple[int, ...]) -> Chooser | None:
        return None if self._filter is None else self._chooser

    def texts(self, column: OutputColumn, positions: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        values = _values(self._content, column)
        yield pa.RecordBatch.from_arrays([values, pa.array(self._addresses)], names=[VALUES, ROWS])

    def read(
        self, column: TextColumn, words: Sequence[str], positions: tuple[int, ...], parameters: InvertedParameters
    ) -> ScannedTexts:
        source, field = self._part.source, column.output.field
        if isinstance(source, OpenSsTable) or field is None or not positions:
            return super().read(column, words, positions, parameters)
        # Memtables are searched again and again, and only get more rows.
        where = (self._schema.resolve(column.name)[-1].id, parameters.analysis, parameters.by_element)
        companions = source.memtable.companions
        analyzed: AnalyzedTexts | None = companions.get(where)
        if analyzed is None:
            reader = DocumentReader(parameters, column.output.arrow.type, f"column {column.name!r}")
            analyzed = companions.setdefault(where, AnalyzedTexts(reader))
        with analyzed.lock:
            more = source.all_rows([self._schema.top_level(field.name)], analyzed.rows)
            if more.num_rows:
                analyzed.add(_values(more, column.output))
        return analyzed.find(words, self._addresses)

    def take(self, addresses: _Addresses, wanted: list[Field]) -> pa.RecordBatch:
        source = self._part.source
        return source.take(np.searchsorted(source.addresses, addresses), wanted)[0]


def _values(rows: pa.RecordBatch, column: OutputColumn) -> pa.Array:
    """Return the values of a column, which may be a field of a struct."""
    values = rows.column(column.arrow.name if column.field is None else column.field.name)
    for inner in column.path:
        values = pc.struct_field(values, inner)
    return values
