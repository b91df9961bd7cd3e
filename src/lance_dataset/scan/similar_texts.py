"""Searches for similar texts: rows that a MinHash index finds, and rows without an index, compared one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from lance_dataset.errors import FieldNotFoundError, InvalidInputError
from lance_dataset.index.scalar.minhash_search import MinHashIndex, SimilarRows, TextPattern, minhash_index
from lance_dataset.read.projection import project, scalar_path
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.queries import MinHashQuery
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.scan import scan_batches
from lance_dataset.table.row_addresses import fragments_of

__all__ = ["SimilarTexts"]

_BATCH_ROWS = 1 << 14


@dataclass(frozen=True)
class SimilarTexts:
    """A search for texts that are similar to another one.

    Attributes
    ----------
    snapshot
        The version.
    query
        Text and column.
    index
        Index of the column.
    """

    snapshot: Snapshot
    query: MinHashQuery
    index: MinHashIndex

    @classmethod
    def of(cls, snapshot: Snapshot, query: MinHashQuery) -> SimilarTexts:
        """Find the index of a query.

        Raises
        ------
        TypeError
            The text or the name of the column is not text.
        InvalidInputError
            The column has no MinHash index.
        """
        for name, value in (("text", query.text), ("column", query.column)):
            if not isinstance(value, str):
                raise TypeError(f"the {name} of a MinHashQuery must be text, not {type(value).__name__}")
        try:
            field = scalar_path(snapshot.scanned_schema, query.column, "to search")[-1]
        except FieldNotFoundError:
            field = None
        index = None if field is None else minhash_index(snapshot.reader, field.id)
        if index is None:
            raise InvalidInputError(
                f"No MinHash LSH index found for column {query.column}; create a MINHASHLSH index of the column with "
                "create_scalar_index before running a MinHash search"
            )
        return cls(snapshot, query, index)

    def unindexed(self, positions: Collection[int] | None) -> tuple[int, ...]:
        """Return the positions of fragments that the index does not cover, among some positions or all (None)."""
        ids = self.snapshot.manifest.fragment_list.columns.ids.tolist()
        covered = self.index.fragment_ids
        wanted = range(len(ids)) if positions is None else sorted(positions)
        return tuple(position for position in wanted if ids[position] not in covered)

    def find(self, positions: Collection[int] | None, *, only_indexed: bool) -> SimilarRows:
        """Return all live rows that share a band with the text, by ascending distance.

        Parameters
        ----------
        positions
            Positions of the fragments to search; None for all.
        only_indexed
            True to leave out fragments that the index does not cover.

        Raises
        ------
        CorruptFileError
            The files of the index contradict the format.
        """
        pattern = TextPattern(self.query.text, self.index.parameters)
        found = self.index.find(pattern)
        if positions is not None:
            ids = self.snapshot.manifest.fragment_list.columns.ids[sorted(positions)]
            found = found.take(np.isin(fragments_of(found.addresses), ids.astype(np.uint64)))
        parts = [found]
        if not only_indexed and pattern.signature is not None:
            left = self.unindexed(positions)
            parts.extend(self._compared(pattern, left) if left else ())
        return SimilarRows.concat(parts).ordered()

    def _compared(self, pattern: TextPattern, positions: tuple[int, ...]) -> Iterator[SimilarRows]:
        """Yield the rows of fragments whose texts share a band with the text."""
        schema = self.snapshot.scanned_schema
        projection = project(schema, [self.query.column], with_row_id=True, with_row_address=True)
        request = ScanRequest(schema, projection, fragments=positions, batch_size=_BATCH_ROWS)
        for batch in scan_batches(self.snapshot.reader, request):
            texts, ids, addresses = batch.columns
            numbers, distances = pattern.compare(texts)
            yield SimilarRows(ids.to_numpy()[numbers], addresses.to_numpy()[numbers], distances)
