"""Full-text search in one column, by its index and by reading the texts that the index does not cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError
from lance_dataset.index.text.scoring import Corpus
from lance_dataset.index.text.searching.query_tokens import UNINDEXED, QueryAnalyzer
from lance_dataset.index.text.searching.text_index import (
    FoundTexts,
    Fuzziness,
    PhraseWords,
    TextIndex,
    WantedTexts,
    text_index,
)
from lance_dataset.index.text.training.documents import DocumentReader, is_list, is_text
from lance_dataset.index.text.training.parameters import InvertedParameters
from lance_dataset.read.projection import OutputColumn, project, scalar_path
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.full_text.scanned import ScannedTexts, scan_texts
from lance_dataset.scan.full_text.scope import SearchScope
from lance_dataset.scan.text_queries import FullTextOperator, MatchQuery, PhraseQuery
from lance_dataset.types.schema import Schema

__all__ = ["TextColumn"]

_ROW = "row"


@dataclass(frozen=True)
class TextColumn:
    """A column of texts, with its index.

    Attributes
    ----------
    name
        Its name.
    output
        The column as a scan returns it.
    is_json
        True if it holds JSON documents.
    index
        Its index; None without one.
    """

    name: str
    output: OutputColumn
    is_json: bool
    index: TextIndex | None

    @classmethod
    def of(cls, reader: TableReader, schema: Schema, name: str) -> TextColumn:
        """Find a column and its index.

        Raises
        ------
        FieldNotFoundError
            There is no such column.
        InvalidInputError
            The column does not hold text.
        UnsupportedError
            The elements of lists are the documents of its index.
        """
        if not name:
            raise FieldNotFoundError("a full-text search needs the name of a column, not an empty text")
        field = scalar_path(schema, name, "to search for text")[-1]
        arrow = field.to_arrow()
        json = field.logical_type == "json"
        if not (json or is_text(arrow.type) or is_list(arrow.type)):
            raise InvalidInputError(f"FTS field {name!r} must hold text, lists of text or JSON, not {arrow.type}")
        index = text_index(reader, field.id)
        if index is not None and index.parameters.by_element:
            raise UnsupportedError(
                f"this release does not search the index {index.name!r}, whose documents are the elements of lists"
            )
        return cls(name, project(schema, [name]).columns[0], json, index)

    def check_granularity(self, wanted: object) -> None:
        """Raise InvalidInputError if a query needs other documents than those of the index."""
        value = getattr(wanted, "value", None)
        if value in (None, _ROW):
            return
        if self.index is None:
            raise UnsupportedError("this release does not search the elements of lists as documents")
        raise InvalidInputError(
            f"FTS query for field {self.name!r} requested {value} document granularity, but the existing FTS index "
            f"{self.index.name!r} has rows as documents"
        )

    @cached_property
    def _parameters(self) -> InvertedParameters:
        return InvertedParameters(UNINDEXED) if self.index is None else self.index.parameters

    @cached_property
    def _analyzer(self) -> QueryAnalyzer:
        return QueryAnalyzer(UNINDEXED, is_json=self.is_json) if self.index is None else self.index.analyzer

    def uncovered(self, scope: SearchScope) -> tuple[int, ...]:
        """Return the positions of the fragments whose texts have to be read."""
        if scope.request.only_indexed:
            return ()
        return scope.positions(frozenset() if self.index is None else self.index.fragment_ids, inside=False)

    # -- queries -------------------------------------------------------------------------------------------------

    def match(self, query: MatchQuery, scope: SearchScope, best: int | None, *, by_address: bool = False) -> FoundTexts:
        """Return the rows that match a query, the best ones, or all for None; by descending score, or by address."""
        self.check_granularity(query.document_granularity)
        every = query.operator is FullTextOperator.AND
        words = [word for word, _ in self._analyzer.tokens(query.query)]
        parts = []
        if self.index is not None:
            wanted = WantedTexts(best, scope.chooser(self.index.fragment_ids), by_address)
            if query.fuzziness:
                fuzziness = Fuzziness(query.fuzziness, query.prefix_length, query.max_expansions)
                plain = [word for word, _ in self._analyzer.tokens(query.query, unfiltered=True)]
                parts.append(self.index.similar(plain, fuzziness, wanted, every=every, boost=query.boost))
            else:
                parts.append(self.index.match(words, wanted, every=every, boost=query.boost))
        left = self.uncovered(scope)
        if left and words:
            parts.append(self._scanned(words, scope, left, every=every, boost=query.boost))
        found = FoundTexts.concat(parts)
        if by_address:
            return found.by_address()
        return found if len(parts) == 1 and self.index is not None else found.ordered(best)

    def phrase(
        self, query: PhraseQuery, scope: SearchScope, best: int | None, *, by_address: bool = False
    ) -> FoundTexts:
        """Return the rows that have a phrase, the best ones, or all for None; by descending score, or by address."""
        self.check_granularity(query.document_granularity)
        phrase = PhraseWords(tuple(self._analyzer.tokens(query.query)), query.slop)
        parts = []
        if self.index is not None:
            if not self.index.has_positions:
                raise InvalidInputError(
                    "position is not found but required for phrase queries, try recreating the index with position"
                )
            wanted = WantedTexts(best, scope.chooser(self.index.fragment_ids), by_address)
            parts.append(self.index.phrase(phrase, wanted))
        left = self.uncovered(scope)
        if left and phrase.words:
            words = [word for word, _ in phrase.words]
            parts.append(self._scanned(words, scope, left, every=True, phrase=phrase))
        found = FoundTexts.concat(parts)
        if by_address:
            return found.by_address()
        return found if len(parts) == 1 and self.index is not None else found.ordered(best)

    # -- texts without an index ----------------------------------------------------------------------------------

    def _scanned(
        self,
        words: Sequence[str],
        scope: SearchScope,
        positions: tuple[int, ...],
        *,
        every: bool,
        boost: float = 1.0,
        phrase: PhraseWords | None = None,
    ) -> FoundTexts:
        """Return the rows of fragments whose texts have words; their scores count the texts of the index, too."""
        different = list(dict.fromkeys(words))
        texts = self.read(different, scope, positions)
        corpus, frequencies = self.statistics(different, texts)
        if not corpus.documents:
            return FoundTexts.concat([])
        repeats = np.array([words.count(word) for word in different], np.float32)
        weights = corpus.limits(frequencies) * repeats * np.float32(boost)
        if phrase is not None:
            texts = texts.with_phrase(different, phrase)
        return texts.scored(weights, corpus, every=every)

    def read(
        self,
        words: Sequence[str],
        scope: SearchScope,
        positions: tuple[int, ...],
        *,
        parameters: InvertedParameters | None = None,
        every_row: bool = False,
    ) -> ScannedTexts:
        """Find different words in the texts of fragments, which may be analyzed as those of another column."""
        kind = self.output.arrow.type
        reader = DocumentReader(parameters or self._parameters, kind, f"column {self.name!r}")
        entries = scope.texts(self.output, positions) if positions else ()
        return scan_texts(entries, reader, words, every_row=every_row)

    def statistics(self, words: Sequence[str], texts: ScannedTexts) -> tuple[Corpus, NDArray[np.int64]]:
        """Return the texts that scores of texts without an index are relative to, and how many of them have words."""
        if self.index is None:
            return texts.corpus, texts.frequencies()
        known = self.index.corpus
        corpus = Corpus(known.documents + texts.corpus.documents, known.tokens + texts.corpus.tokens)
        in_index = np.array([self.index.frequency(word) for word in words], np.int64)
        return corpus, in_index + texts.frequencies()
