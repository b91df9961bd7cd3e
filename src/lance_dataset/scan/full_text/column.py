"""Full-text search in one column, by its index and by reading the texts that the index does not cover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import FieldNotFoundError, InvalidInputError
from lance_dataset.index.text.scoring import Corpus
from lance_dataset.index.text.searching.found import FoundTexts
from lance_dataset.index.text.searching.query_tokens import UNINDEXED, QueryAnalyzer
from lance_dataset.index.text.searching.text_index import TextIndex, text_indices
from lance_dataset.index.text.searching.wanted import Fuzziness, PhraseWords, WantedTexts
from lance_dataset.index.text.training.documents import DocumentReader, is_list, is_text
from lance_dataset.index.text.training.parameters import InvertedParameters
from lance_dataset.properties import cached_property
from lance_dataset.read.projection import OutputColumn, project, scalar_path
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.full_text.scanned import ScannedTexts, scan_texts
from lance_dataset.scan.full_text.scope import TextScope
from lance_dataset.scan.text_queries import FullTextOperator, MatchQuery, PhraseQuery
from lance_dataset.types.schema import Schema

__all__ = ["TextColumn", "indexed_columns"]

#: Granularities of documents, and how messages name them.
_NAMES = {"row": "Row", "list_element": "ListElement"}
_ELEMENT = "list_element"
_LARGE_BOOST = 2.0**64


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
    by_element
        True if the elements of lists are documents.
    """

    name: str
    output: OutputColumn
    is_json: bool
    index: TextIndex | None
    by_element: bool = False

    @classmethod
    def of(cls, reader: TableReader, schema: Schema, name: str, granularity: str | None = None) -> TextColumn:
        """Find a column and its index.

        Parameters
        ----------
        reader
            The version.
        schema
            Its schema.
        name
            Full name of the column.
        granularity
            ``row`` or ``list_element`` for what documents are; None for those of its index.

        Raises
        ------
        FieldNotFoundError
            There is no such column.
        InvalidInputError
            The column does not hold text, or lists of it, or its index has other documents.
        """
        known = _Columns.of(reader, schema)
        if (name, granularity) not in known.columns:
            known.columns[name, granularity] = cls._found(reader, schema, name, granularity)
        return known.columns[name, granularity]

    @classmethod
    def _found(cls, reader: TableReader, schema: Schema, name: str, granularity: str | None) -> TextColumn:
        if not name:
            raise FieldNotFoundError("a full-text search needs the name of a column, not an empty text")
        field = scalar_path(schema, name, "to search for text")[-1]
        arrow = field.to_arrow()
        json = field.logical_type == "json"
        if not (json or is_text(arrow.type) or is_list(arrow.type)):
            raise InvalidInputError(f"FTS field {name!r} must hold text, lists of text or JSON, not {arrow.type}")
        index = _chosen(text_indices(reader, field.id), name, granularity)
        by_element = granularity == _ELEMENT if index is None else index.parameters.by_element
        if by_element and not is_list(arrow.type):
            raise InvalidInputError(
                f"FTS field path {name!r} has no List layer and cannot use ListElement document granularity"
            )
        return cls(name, project(schema, [name]).columns[0], json, index, by_element)

    @cached_property
    def parameters(self) -> InvertedParameters:
        """Parameters of its index, or those for texts without one."""
        if self.index is None:
            return InvertedParameters(UNINDEXED, by_element=self.by_element)
        return self.index.parameters

    @cached_property
    def analyzer(self) -> QueryAnalyzer:
        """Analysis of queries."""
        return QueryAnalyzer(UNINDEXED, is_json=self.is_json) if self.index is None else self.index.analyzer

    def uncovered(self, scope: TextScope) -> tuple[int, ...]:
        """Return the positions of the fragments whose texts have to be read."""
        return scope.uncovered(frozenset() if self.index is None else self.index.fragment_ids)

    # -- queries -------------------------------------------------------------------------------------------------

    def match(self, query: MatchQuery, scope: TextScope, best: int | None, *, by_address: bool = False) -> FoundTexts:
        """Return the rows that match a query, the best ones, or all for None; by descending score, or by address."""
        every = query.operator is FullTextOperator.AND
        words = [word for word, _ in self.analyzer.tokens(query.query)]
        boost, factor = _split(query.boost)
        parts = []
        index = self.searched_index(words, scope)
        if index is not None:
            wanted = WantedTexts(best, scope.chooser(index.fragment_ids), by_address)
            if query.fuzziness:
                fuzziness = Fuzziness(query.fuzziness, query.prefix_length, query.max_expansions)
                plain = [word for word, _ in self.analyzer.tokens(query.query, unfiltered=True)]
                parts.append(index.similar(plain, fuzziness, wanted, every=every, boost=boost))
            else:
                parts.append(index.match(words, wanted, every=every, boost=boost))
        left = self.uncovered(scope)
        if left and words:
            parts.append(self._scanned(words, scope, left, every=every, boost=boost))
        found = FoundTexts.concat(parts)
        if factor != 1:
            with np.errstate(over="ignore"):
                found = found.with_scores(found.scores * factor)
        if by_address:
            return found.by_address()
        return found if len(parts) == 1 and self.index is not None else found.ordered(best)

    def phrase(self, query: PhraseQuery, scope: TextScope, best: int | None, *, by_address: bool = False) -> FoundTexts:
        """Return the rows that have a phrase, the best ones, or all for None; by descending score, or by address."""
        phrase = PhraseWords(tuple(self.analyzer.tokens(query.query)), query.slop)
        parts = []
        index = self.searched_index([word for word, _ in phrase.words], scope)
        if index is not None:
            if not index.has_positions:
                raise InvalidInputError(
                    "position is not found but required for phrase queries, try recreating the index with position"
                )
            wanted = WantedTexts(best, scope.chooser(index.fragment_ids), by_address)
            parts.append(index.phrase(phrase, wanted))
        left = self.uncovered(scope)
        if left and phrase.words:
            words = [word for word, _ in phrase.words]
            parts.append(self._scanned(words, scope, left, every=True, phrase=phrase))
        found = FoundTexts.concat(parts)
        if by_address:
            return found.by_address()
        return found if len(parts) == 1 and self.index is not None else found.ordered(best)

    def searched_index(self, words: Sequence[str], scope: TextScope) -> TextIndex | None:
        """Return the index. Scores of elements of lists count those of fragments without an index, too; of rows not."""
        left = self.uncovered(scope)
        if self.index is None or not self.by_element or not left:
            return self.index
        different = list(dict.fromkeys(words))
        texts = self.read(different, scope, left)
        return self.index.with_added(texts.corpus, dict(zip(different, texts.frequencies().tolist(), strict=True)))

    # -- texts without an index ----------------------------------------------------------------------------------

    def _scanned(
        self,
        words: Sequence[str],
        scope: TextScope,
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
        scope: TextScope,
        positions: tuple[int, ...],
        *,
        parameters: InvertedParameters | None = None,
        every_row: bool = False,
    ) -> ScannedTexts:
        """Find different words in the texts of fragments, which may be analyzed as those of another column."""
        if not positions:
            return ScannedTexts.none(len(words), by_element=(parameters or self.parameters).by_element)
        kind = self.output.arrow.type
        reader = DocumentReader(parameters or self.parameters, kind, f"column {self.name!r}")
        return scan_texts(scope.texts(self.output, positions), reader, words, every_row=every_row)

    def statistics(self, words: Sequence[str], texts: ScannedTexts) -> tuple[Corpus, NDArray[np.int64]]:
        """Return the texts that scores of texts without an index are relative to, and how many of them have words."""
        if self.index is None:
            return texts.corpus, texts.frequencies()
        known = self.index.corpus
        corpus = Corpus(known.documents + texts.corpus.documents, known.tokens + texts.corpus.tokens)
        in_index = np.array([self.index.frequency(word) for word in words], np.int64)
        return corpus, in_index + texts.frequencies()


def _split(boost: float) -> tuple[float, np.float32]:
    """Return a boost as a smaller one and a power of two, so that scores exceed 32 bits only after they are added."""
    return (boost, np.float32(1)) if boost <= _LARGE_BOOST else (boost / _LARGE_BOOST, np.float32(_LARGE_BOOST))


def indexed_columns(reader: TableReader, schema: Schema) -> tuple[str, ...]:
    """Return the names of the columns that have a full-text index with rows as documents.

    Raises
    ------
    CorruptFileError
        The list of indices, or the metadata of an index, cannot be read.
    """
    known = _Columns.of(reader, schema)
    if known.indexed is None:
        known.indexed = tuple(_indexed(reader, schema))
    return known.indexed


def _indexed(reader: TableReader, schema: Schema) -> Iterator[str]:
    names = dict(schema.paths_by_id())
    for field_id, name in names.items():
        field = schema.by_id[field_id]
        kind = field.to_arrow().type
        searchable = field.logical_type == "json" or is_text(kind) or is_list(kind)
        indices = text_indices(reader, field_id) if searchable else ()
        if not all(index.parameters.by_element for index in indices):
            yield name


class _Columns:
    """Columns of a version with their indices. Its reader keeps them; a pickle leaves them out."""

    def __init__(self, schema: Schema | None) -> None:
        self.schema = schema
        self.columns: dict[tuple[str, str | None], TextColumn] = {}
        self.indexed: tuple[str, ...] | None = None

    @staticmethod
    def of(reader: TableReader, schema: Schema) -> _Columns:
        """Return what is known of a version; nothing for another schema than the first one."""
        known = reader.companions.setdefault(_Columns, _Columns(schema))
        assert isinstance(known, _Columns)
        return known if known.schema is schema else _Columns(schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Columns, (None,)


def _chosen(indices: Sequence[TextIndex], name: str, granularity: str | None) -> TextIndex | None:
    """Return the index of a column to search, None without one."""
    found: dict[str, TextIndex] = {}
    for index in indices:
        found.setdefault(_ELEMENT if index.parameters.by_element else "row", index)
    listed = ", ".join(f"{index.name!r} ({_NAMES[each]})" for each, index in found.items())
    if granularity is None:
        if len(found) > 1:
            raise InvalidInputError(
                f"FTS query for field {name!r} is ambiguous because Row and ListElement indexes coexist: {listed}; "
                "specify document_granularity"
            )
        return next(iter(found.values()), None)
    if found and granularity not in found:
        raise InvalidInputError(
            f"FTS query for field {name!r} requested {_NAMES[granularity]} document granularity, but the existing FTS "
            f"index uses a different granularity: {listed}"
        )
    return found.get(granularity)
