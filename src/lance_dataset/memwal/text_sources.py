"""Texts of a table, of its SSTables and of memtables, for searches in all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.expr.compiled import Filter, compile_filter
from lance_dataset.index.scalar.sorting import ROWS, VALUES
from lance_dataset.index.text.searching.text_index import TextIndex, text_indices
from lance_dataset.index.text.searching.wanted import Chooser
from lance_dataset.memwal.hiding import hidden_addresses
from lance_dataset.memwal.shard_parts import ShardPart, shard_parts
from lance_dataset.memwal.sources import LsmSources
from lance_dataset.properties import cached_property
from lance_dataset.read.empty_batches import rows_only
from lance_dataset.read.projection import OutputColumn, project, scalar_path
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.take import take_addresses
from lance_dataset.scan.full_text.column import TextColumn
from lance_dataset.scan.full_text.scope import SearchScope
from lance_dataset.scan.resolving import resolve_request
from lance_dataset.types.schema import Field, Schema

__all__ = ["LsmTexts", "lsm_texts"]

_Addresses = NDArray[np.uint64]


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

    @abstractmethod
    def take(self, addresses: _Addresses, wanted: list[Field]) -> pa.RecordBatch:
        """Return columns of rows."""


def lsm_texts(sources: LsmSources, columns: Mapping[str, TextColumn], filter: str | None) -> list[LsmTexts]:
    """Return the sources of a search that have rows: the table first, then the newest ones of each shard first.

    Parameters
    ----------
    sources
        The sources.
    columns
        The columns of the query in the table.
    filter
        SQL text for the rows that may be found; None for all.

    Raises
    ------
    FieldNotFoundError, FilterError
        The filter does not fit.
    CorruptFileError, MissingFileError
        A source cannot be read.
    """
    base = sources.base
    compiled = compile_filter(filter, base.manifest.schema.storage_arrow)
    found: list[LsmTexts] = [_BaseTexts.of(base, columns, hidden_addresses(sources), filter)]
    found += [_ShardTexts(part, base.manifest.schema, columns, compiled) for part in shard_parts(sources)]
    return found


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
    """Visible rows of a memtable or SSTable. Those of a memtable have their positions as addresses."""

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

    def chooser(self, covered: Collection[int]) -> Chooser | None:
        if len(self._matching) == len(self._part.source.addresses):
            return None
        return lambda addresses: np.isin(addresses, self._matching)

    def read_chooser(self, positions: tuple[int, ...]) -> Chooser | None:
        return None if self._filter is None else lambda addresses: np.isin(addresses, self._matching)

    def texts(self, column: OutputColumn, positions: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        name = column.arrow.name if column.field is None else column.field.name
        values = self._content.column(name)
        for inner in column.path:
            values = pc.struct_field(values, inner)
        yield pa.RecordBatch.from_arrays([values, pa.array(self._addresses)], names=[VALUES, ROWS])

    def take(self, addresses: _Addresses, wanted: list[Field]) -> pa.RecordBatch:
        source = self._part.source
        return source.take(np.searchsorted(source.addresses, addresses), wanted)[0]
