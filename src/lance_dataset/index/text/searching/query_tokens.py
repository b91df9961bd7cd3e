"""Tokens of queries, which are analyzed like the documents of an index."""

from __future__ import annotations

from dataclasses import replace

from lance_dataset.index.text.analysis.analyzer import Analyzer
from lance_dataset.index.text.analysis.json_documents import parse_triplets
from lance_dataset.index.text.analysis.parameters import AnalysisParameters
from lance_dataset.locks import SharedLock
from lance_dataset.properties import cached_property

__all__ = ["UNINDEXED", "QueryAnalyzer"]

#: Analysis of columns without an index: words as they are.
UNINDEXED = AnalysisParameters(
    max_token_length=None, lower_case=False, stem=False, remove_stop_words=False, ascii_folding=False
)
#: Queries whose tokens are remembered.
_KNOWN = 1 << 10


class QueryAnalyzer:
    """Analysis of queries. Any thread may use it.

    Parameters
    ----------
    parameters
        Parameters of the analysis of documents.
    is_json
        True if documents are JSON, and queries name a path, a type and a value.

    Raises
    ------
    UnsupportedError, InvalidInputError
        See `Analyzer`.
    """

    def __init__(self, parameters: AnalysisParameters, *, is_json: bool) -> None:
        self._parameters = parameters
        self._is_json = is_json
        self._analyzer = Analyzer(parameters, queries=True)
        self._lock = SharedLock()
        self._known: dict[tuple[str, bool], list[tuple[str, int]]] = {}

    @cached_property
    def _divider(self) -> Analyzer:
        plain = replace(self._parameters, lower_case=False, stem=False, remove_stop_words=False, ascii_folding=False)
        return Analyzer(plain, queries=True)

    def tokens(self, query: str, *, unfiltered: bool = False) -> list[tuple[str, int]]:
        """Return the tokens of a query, each with its position.

        Parameters
        ----------
        query
            The text.
        unfiltered
            True to divide the text only, as for queries of similar words.

        Raises
        ------
        InvalidInputError
            A query of JSON documents has another form.
        """
        key = query, unfiltered
        # A lookup is atomic: threads with a known query need not wait for the analysis of another one.
        found = self._known.get(key)
        if found is not None:
            return found
        with self._lock:
            found = self._known.get(key)
            if found is None:
                analyzer = self._divider if unfiltered else self._analyzer
                found = _of_json(query, analyzer) if self._is_json else analyzer.tokens(query)
                analyzer.forget()
                if len(self._known) >= _KNOWN:
                    self._known.clear()
                self._known[key] = found
            return found


def _of_json(query: str, analyzer: Analyzer) -> list[tuple[str, int]]:
    found: list[str] = []
    for path, kind, value in parse_triplets(query):
        if kind == "str":
            analyzer.forget()
            found.extend(f"{path},{kind},{word}" for word, _ in analyzer.tokens(value))
        else:
            found.append(f"{path},{kind},{value}")
    return [(token, position) for position, token in enumerate(found)]
