"""Filters of tokens: lower case, stems, stop words, folding to ASCII. They see each distinct token once."""

from __future__ import annotations

from collections.abc import Sequence

from Stemmer import Stemmer

from lance_dataset.index.text.analysis.parameters import AnalysisParameters
from lance_dataset.index.text.analysis.stop_words import stop_words
from lance_dataset.index.text.folding import fold, lower

__all__ = ["TokenFilters"]


class TokenFilters:
    """Filters in the order in which they are applied.

    Parameters
    ----------
    parameters
        Which of them there are.
    """

    def __init__(self, parameters: AnalysisParameters) -> None:
        self._lower = parameters.lower_case
        self._fold = parameters.ascii_folding
        self._stemmer = Stemmer(parameters.language.lower(), 0) if parameters.stem else None
        self._stops: frozenset[str] = frozenset()
        if parameters.remove_stop_words and parameters.custom_stop_words is not None:
            self._stops = frozenset(parameters.custom_stop_words)
        elif parameters.remove_stop_words:
            self._stops = stop_words(parameters.language)

    def apply(self, tokens: Sequence[str]) -> list[str | None]:
        """Return what becomes of tokens, None for those that are left out."""
        found = list(tokens)
        if self._lower:
            found = [lower(token) for token in found]
        if self._stemmer is not None:
            found = self._stemmer.stemWords(found)
        stops = self._stops
        kept: list[str | None] = [None if token in stops else token for token in found]
        if not self._fold:
            return kept
        return [token if token is None else fold(token) for token in kept]
