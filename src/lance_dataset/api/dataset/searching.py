"""Searches of a dataset by text, by vector, or by both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.read.shown import Shown
from lance_dataset.read.snapshot import Columns
from lance_dataset.scan.full_text.highlight import Highlight, checked_highlight
from lance_dataset.scan.hybrid.fusion import Fusion, FusionMethod

__all__ = ["Searching"]

Predicate: TypeAlias = "str | pc.Expression"


class Searching(Shown):
    """Searches of a dataset by text, by vector, or by both."""

    def search(
        self,
        text: object = None,
        vector: object = None,
        columns: Columns = None,
        *,
        filter: Predicate | None = None,
        k: int = 10,
        text_columns: Sequence[str] | None = None,
        vector_column: str | None = None,
        fusion: FusionMethod = "rrf",
        weights: tuple[float, float] | None = None,
        rrf_k: float = 60,
        candidates: int | None = None,
        highlight: bool | Highlight = False,
        explain_score: bool = False,
        fast_search: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
    ) -> pa.Table:
        """Find the rows that are most relevant to a text, to a vector, or to both.

        Parameters
        ----------
        text
            Text, or a query of `lance_dataset.query`, as for `ScannerBuilder.full_text_search`.
        vector
            A vector, or a dictionary of parameters of `ScannerBuilder.nearest`, such as
            ``{"column": "v", "q": [...], "nprobes": 20}``.
        columns
            As for `scanner`; expressions may read the columns that the search adds.
        filter
            Condition of the rows to search in, as for `scanner`.
        k
            Number of rows to find.
        text_columns
            Columns to search for a text; None for all that have an INVERTED index.
        vector_column
            Column of vectors; None for the only one of the table, or that of the dictionary.
        fusion
            How the results of both searches are united. ``rrf`` is reciprocal rank fusion: the relevance of a row is
            the sum of ``weight / (rrf_k + place)`` over the searches that find it, with places from 1. ``weighted`` is
            the sum of ``weight * share``, where the share of the best row that a search finds is 1, and that of the
            last 0.
        weights
            Weights of the text and of the vector, 1 by default.
        rrf_k
            The larger, the less the first places stand out.
        candidates
            Number of rows that each search may find, 3 `k` by default and at least 100. A ``k`` of the dictionary is
            that of the vector.
        highlight
            True, or a `lance_dataset.query.Highlight`, for the column `_highlights`: for each row a list of snippets of
            its texts with the words of the query. A snippet has the name of its ``column``; its ``path``, which is
            ``[2]`` for an element of a list, ``$.a[0]`` for a value of a JSON document, and otherwise null; the
            ``snippet`` with the words between marks; its place in the text in characters (``start``, ``end``) and in
            bytes of UTF-8 (``byte_start``, ``byte_end``); and its ``terms`` as the index has them, with their places.
        explain_score
            True for the column `_explanation`: for each row a list of ``column``, ``term``, ``idf``, ``boost``,
            ``frequency`` of the term in the row, ``length`` of the row in terms, ``norm`` that follows from it, and
            ``score``, which is ``boost * idf * 2.2 * frequency / (frequency + norm)``. These add up to `_score`. The
            search runs once more for it, without a limit.
        fast_search, with_row_id, with_row_address
            As for `scanner`.

        Returns
        -------
        pyarrow.Table
            The rows, the most relevant first, with `_score` (the score of the text), `_distance` (that of the vector)
            or, after a search for both, these and `_relevance`. `_score` or `_distance` is null for a row that only the
            other search found. Equally relevant rows are in the order of the table.

        Raises
        ------
        FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError, TypeError
            A value is never valid, or does not fit the dataset.
        """
        from lance_dataset.api.search import search
        from lance_dataset.scan.full_text.details import TextDetails

        if not isinstance(explain_score, bool):
            raise TypeError(f"explain_score must be True or False, not {explain_score!r}")
        options = {
            "filter": filter,
            "fast_search": fast_search,
            "with_row_id": with_row_id,
            "with_row_address": with_row_address,
        }
        return search(
            self.snapshot,
            text,
            vector,
            columns,
            options,
            k=k,
            text_columns=text_columns,
            vector_column=vector_column,
            fusion=Fusion.of(fusion, weights, rrf_k),
            candidates=candidates,
            details=TextDetails(checked_highlight(highlight), explain_score),
        )

    def facets(
        self,
        text: object,
        columns: Sequence[str],
        *,
        filter: Predicate | None = None,
        text_columns: Sequence[str] | None = None,
        most: int = 10,
        fast_search: bool | None = None,
    ) -> dict[str, pa.Table]:
        """Count how many of all rows that match a text have each value of some columns.

        Parameters
        ----------
        text
            As for `search`.
        columns
            Columns of single values, or of lists of them: a row counts once for each different element of its list.
            Fields of structs have dotted names.
        filter, text_columns, fast_search
            As for `search`.
        most
            Number of values of each column: the most frequent, then the smallest.

        Returns
        -------
        dict of str to pyarrow.Table
            For each column the values (``value``) and the numbers of rows (``count``), the most frequent first. Null is
            a value too, but not in lists.

        Raises
        ------
        FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError, TypeError
            A value is never valid, or does not fit the dataset.
        """
        from lance_dataset.api.search import count_facets

        options = {"filter": filter, "fast_search": fast_search}
        return count_facets(self.snapshot, text, columns, options, text_columns=text_columns, most=most)
