"""Rows that a search by text, by vector, or by both finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.full_text.details import TextDetails
from lance_dataset.scan.full_text.rows import DOCUMENT_INDEX, SCORE, TextRequest, text_rows
from lance_dataset.scan.hybrid.fusion import Fusion
from lance_dataset.scan.nearest.rows import DISTANCE, NearestRequest, nearest_rows
from lance_dataset.scan.scored_rows import ScoredRows

__all__ = ["RELEVANCE", "HybridRequest", "hybrid_rows"]

#: Column that a search by text and by vector adds.
RELEVANCE = pa.field("_relevance", pa.float32())


@dataclass(frozen=True)
class HybridRequest:
    """A search of one version by text, by vector, or by both.

    Attributes
    ----------
    text, nearest
        The searches, with the number of candidates that each may find; None if there is no such search.
    fusion
        How the results of both are united.
    k
        Number of rows to find.
    details
        Details of the texts to add.
    """

    text: TextRequest | None
    nearest: NearestRequest | None
    fusion: Fusion
    k: int
    details: TextDetails

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """Names and types of the values that are found for each row."""
        return (*self.ranking, *self.details.fields)

    @property
    def ranking(self) -> tuple[pa.Field, ...]:
        """Names and types of the values that rows are ordered by."""
        if self.text is None:
            return (DISTANCE,)
        by_element = self.text.search.by_element
        if self.nearest is None:
            return (DOCUMENT_INDEX, SCORE) if by_element else (SCORE,)
        elements = (DOCUMENT_INDEX.with_nullable(True),) if by_element else ()
        return (*elements, SCORE, DISTANCE, RELEVANCE)


def hybrid_rows(reader: TableReader, request: HybridRequest) -> ScoredRows:
    """Run the searches, unite their results, and add details.

    Parameters
    ----------
    reader
        The version.
    request
        The searches.

    Raises
    ------
    CorruptFileError
        A file contradicts the format.
    InvalidInputError
        A phrase is searched for in an index without positions.
    """
    rows = _ranked(reader, request)
    if request.text is None or not request.details.fields:
        return rows
    elements = rows.found.column(DOCUMENT_INDEX.name) if request.text.search.by_element else None
    details = request.details.columns(reader, request.text, rows.addresses, elements)
    columns = [*rows.found.columns, *details]
    return ScoredRows(rows.addresses, pa.RecordBatch.from_arrays(columns, schema=pa.schema(request.fields)))


def _ranked(reader: TableReader, request: HybridRequest) -> ScoredRows:
    text = None if request.text is None else text_rows(reader, request.text)
    near = None if request.nearest is None else nearest_rows(reader, request.nearest)
    if text is None or near is None:
        found = text or near
        if found is None:
            raise InvalidInputError("search for a text, for a vector, or for both")
        return found.take(np.arange(min(request.k, len(found.addresses))))
    # Of several elements of a list, the best one counts.
    text = text.take(np.sort(np.unique(text.addresses, return_index=True)[1]))
    scores, distances = text.found.column(SCORE.name), near.found.column(DISTANCE.name)
    fused = request.fusion.fuse((text.addresses, scores.to_numpy()), (near.addresses, -distances.to_numpy()))
    places = [each[: request.k] for each in fused.places]
    columns = [
        *(_at(each, places[0]) for each in text.found.columns),
        _at(distances, places[1]),
        pa.array(fused.relevance[: request.k]),
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=pa.schema(request.ranking))
    return ScoredRows(fused.addresses[: request.k], batch)


def _at(values: pa.Array, places: NDArray[np.int64]) -> pa.Array:
    """Return the values at some places, null for -1."""
    return values.take(pa.array(places, mask=places < 0))
