"""Details of the rows that a full-text search finds: snippets of their texts, and explanations of their scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.full_text.explaining import EXPLANATION, explanations
from lance_dataset.scan.full_text.highlight import Highlight
from lance_dataset.scan.full_text.highlighting import HIGHLIGHTS, highlights
from lance_dataset.scan.full_text.rows import TextRequest
from lance_dataset.scan.full_text.scope import SearchScope

__all__ = ["TextDetails"]


@dataclass(frozen=True)
class TextDetails:
    """Details to add to each row.

    Attributes
    ----------
    highlight
        Form of snippets; None for none.
    explains
        True for explanations of the scores.
    """

    highlight: Highlight | None = None
    explains: bool = False

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """Names and types of the columns."""
        return (*((HIGHLIGHTS,) if self.highlight else ()), *((EXPLANATION,) if self.explains else ()))

    def columns(
        self,
        reader: TableReader,
        request: TextRequest,
        addresses: NDArray[np.uint64],
        elements: pa.ListArray | None = None,
    ) -> Iterator[pa.Array]:
        """Yield the columns for rows.

        Parameters
        ----------
        reader
            The version.
        request
            The search that found the rows.
        addresses : uint64[n]
            Addresses of the rows.
        elements
            Places of the elements of lists that were found; None if rows are documents.

        Raises
        ------
        InvalidInputError, CorruptFileError
            See `highlights` and `explanations`.
        """
        if self.highlight is not None:
            yield highlights(reader, request.candidates.schema, request.search, self.highlight, addresses, elements)
        if self.explains:
            yield explanations(request.search, SearchScope(reader, request.candidates), addresses, elements)
