"""Rows that a full-text search may find."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.scalar.sorting import ROWS, VALUES
from lance_dataset.index.text.searching.wanted import Chooser
from lance_dataset.properties import cached_property
from lance_dataset.read.projection import OutputColumn, Projection, project
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.scan import matching_by_fragment, scan_batches
from lance_dataset.table.row_addresses import addresses_in, fragments_of

__all__ = ["SearchScope", "TextScope"]


class TextScope(Protocol):
    """Rows of one source that a search may find."""

    def uncovered(self, covered: Collection[int]) -> tuple[int, ...]:
        """Return the positions of the parts whose texts have to be read, as no index covers their fragments."""
        ...

    def chooser(self, covered: Collection[int]) -> Chooser | None:
        """Return the function that says which rows of covered fragments may be found; None for all live ones."""
        ...

    def texts(self, column: OutputColumn, positions: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        """Yield the values of a column in parts that no index covers, with the addresses of their rows."""
        ...


@dataclass(frozen=True)
class SearchScope:
    """Rows that a search may find.

    Attributes
    ----------
    reader
        The version.
    request
        Scan of the rows: fragments, and the filter that comes first.
    """

    reader: TableReader
    request: ScanRequest

    @property
    def is_restricted(self) -> bool:
        """True if single rows are left out."""
        return self.request.filter is not None or self.request.rows is not None

    @cached_property
    def _fragment_ids(self) -> list[int]:
        found: list[int] = self.reader.manifest.fragment_list.columns.ids.tolist()
        return found

    def uncovered(self, covered: Collection[int]) -> tuple[int, ...]:
        """Return the positions of the fragments whose texts have to be read; none if only the index is searched."""
        return () if self.request.only_indexed else self.positions(covered, inside=False)

    def positions(self, ids: Collection[int], *, inside: bool) -> tuple[int, ...]:
        """Return the positions of the fragments to search that are among some, or are not."""
        known, chosen = self._fragment_ids, self.request.fragments
        wanted = range(len(known)) if chosen is None else chosen
        return tuple(position for position in wanted if (known[position] in ids) == inside)

    def chooser(self, covered: Collection[int]) -> Chooser | None:
        """Return the function that says which rows of covered fragments may be found; None for all live ones."""
        if not self.is_restricted:
            if self.request.fragments is None:
                return None
            ids = np.array([self._fragment_ids[position] for position in self.request.fragments], np.uint64)
            return lambda addresses: np.isin(fragments_of(addresses), ids)
        found = self.addresses(self.positions(covered, inside=True))
        return lambda addresses: np.isin(addresses, found)

    def addresses(self, positions: tuple[int, ...]) -> NDArray[np.uint64]:
        """Return the addresses of the rows of fragments that may be found."""
        projection = project(self.request.schema, [], with_row_address=True)
        request = replace(self.request, fragments=positions, projection=projection, in_order=False)
        found = matching_by_fragment(self.reader, request)
        return np.concatenate(
            [np.empty(0, np.uint64), *(addresses_in(fragment.fragment.id, rows) for fragment, rows in found)]
        )

    def texts(self, column: OutputColumn, positions: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        """Yield the values of a column in fragments, with the addresses of their rows."""
        address = project(self.request.schema, [], with_row_address=True).columns[0]
        columns = (column, address)
        projection = Projection(columns, pa.schema([each.arrow for each in columns]))
        request = replace(self.request, fragments=positions, projection=projection)
        for batch in scan_batches(self.reader, request):
            yield pa.RecordBatch.from_arrays(batch.columns, names=[VALUES, ROWS])
