"""Texts that no index covers: they are read, divided into words and scored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.text.analysis.batches import Rules, intern
from lance_dataset.index.text.byte_ranges import Ints
from lance_dataset.index.text.scoring import Corpus
from lance_dataset.index.text.searching.found import FoundTexts
from lance_dataset.index.text.searching.wanted import PhraseWords
from lance_dataset.index.text.training.documents import DocumentReader

__all__ = ["ALL", "ScannedTexts", "scan_texts"]

#: Words of queries are not left out.
ALL = Rules((1 << 63) - 1, lower_case=False)
#: Bytes of distinct words that are kept while texts are read.
_WORD_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class ScannedTexts:
    """Occurrences of some words in texts.

    Attributes
    ----------
    corpus
        All texts that have a word, also another one.
    rows : uint64[n]
        Addresses of the rows with any of the words.
    lengths : int64[n]
        Their numbers of words.
    counts : int64[n, words]
        Occurrences of the words in them.
    places : int64[m, 3]
        Row, word and position of each occurrence.
    elements : uint32[n]
        Places of the texts in the lists of the rows; None if rows are documents.
    """

    corpus: Corpus
    rows: NDArray[np.uint64]
    lengths: Ints
    counts: NDArray[np.int64]
    places: NDArray[np.int64]
    elements: NDArray[np.uint32] | None = None

    @staticmethod
    def none(words: int, *, by_element: bool) -> ScannedTexts:
        """Return no texts, of a number of words."""
        return ScannedTexts(
            Corpus(0, 0),
            np.empty(0, np.uint64),
            np.empty(0, np.int64),
            np.empty((0, words), np.int64),
            np.empty((0, 3), np.int64),
            np.empty(0, np.uint32) if by_element else None,
        )

    def frequencies(self) -> Ints:
        """Return the number of texts that have each word."""
        return np.count_nonzero(self.counts, axis=0).astype(np.int64)

    def of_words(self, numbers: Sequence[int]) -> ScannedTexts:
        """Return the occurrences of only some of the words, given by their places."""
        counts = self.counts[:, list(numbers)]
        kept = counts.any(axis=1)
        row_of, word_of = np.cumsum(kept) - 1, np.full(self.counts.shape[1], -1)
        word_of[list(numbers)] = np.arange(len(numbers))
        mine = self.places[word_of[self.places[:, 1]] >= 0]
        places = np.column_stack([row_of[mine[:, 0]], word_of[mine[:, 1]], mine[:, 2]])
        elements = None if self.elements is None else self.elements[kept]
        return ScannedTexts(self.corpus, self.rows[kept], self.lengths[kept], counts[kept], places, elements)

    def scored(self, weights: NDArray[np.float32], corpus: Corpus, *, every: bool) -> FoundTexts:
        """Return the rows with any of the words, or with all of them, and their scores.

        Parameters
        ----------
        weights
            Highest score for each word.
        corpus
            Texts that scores are relative to.
        every
            True for rows with all words.
        """
        scores = np.zeros(len(self.rows), np.float32)
        for word, weight in enumerate(weights):
            scores += weight * corpus.shares(self.counts[:, word], self.lengths)
        kept = (self.counts > 0).all(axis=1) if every else np.ones(len(self.rows), bool)
        return FoundTexts(self.rows, scores, self.elements).take(np.flatnonzero(kept))

    def with_phrase(self, words: Sequence[str], phrase: PhraseWords) -> ScannedTexts:
        """Return only the rows that have a phrase."""
        order = [words.index(word) for word, _ in phrase.words]
        complete = np.flatnonzero((self.counts > 0).all(axis=1)).tolist()
        has = np.array([row for row in complete if self._has_phrase(row, order, phrase)], np.int64)
        elements = None if self.elements is None else self.elements[has]
        return ScannedTexts(self.corpus, self.rows[has], self.lengths[has], self.counts[has], self.places[:0], elements)

    def _has_phrase(self, row: int, order: Sequence[int], phrase: PhraseWords) -> bool:
        low, high = np.searchsorted(self.places[:, 0], (row, row + 1)).tolist()
        mine = self.places[low:high]
        reached: NDArray[np.int64] | None = None
        for word, (_, place) in zip(order, phrase.words, strict=True):
            starts = mine[mine[:, 1] == word, 2] - place
            if reached is not None:
                before = np.searchsorted(reached, starts - phrase.slop)
                near = reached[np.minimum(before, len(reached) - 1)]
                starts = starts[(near >= starts - phrase.slop) & (near <= starts)]
            if not len(starts):
                return False
            reached = starts
        return True


def scan_texts(
    entries: Iterable[pa.RecordBatch], reader: DocumentReader, words: Sequence[str], *, every_row: bool = False
) -> ScannedTexts:
    """Find words in texts.

    Parameters
    ----------
    entries
        Values and addresses of rows.
    reader
        Reader of the documents.
    words
        Different words, as the analysis makes them.
    every_row
        True to return the rows without any of the words, too.
    """
    wanted = pa.array(list(words), pa.large_string())
    intern(reader.table, wanted, ALL)
    documents = tokens = known = 0
    rows: list[NDArray[np.uint64]] = [np.empty(0, np.uint64)]
    lengths: list[Ints] = [np.empty(0, np.int64)]
    counts: list[NDArray[np.int64]] = [np.empty((0, len(words)), np.int64)]
    places: list[NDArray[np.int64]] = [np.empty((0, 3), np.int64)]
    elements: list[NDArray[np.uint32]] = []
    for batch in entries:
        for found in reader.read(batch):
            batch_counts = found.tokens.counts
            documents, tokens = documents + len(found.rows), tokens + len(found.tokens.codes)
            hits = np.flatnonzero(found.tokens.codes < len(words))
            if not (len(hits) or every_row):
                continue
            owners = found.tokens.texts()[hits]
            mine, numbers = np.unique(owners, return_inverse=True)
            if every_row:
                mine, numbers = np.arange(len(found.rows)), owners
            codes = found.tokens.codes[hits].astype(np.int64)
            flat = np.bincount(numbers * len(words) + codes, minlength=len(mine) * len(words))
            rows.append(found.rows[mine])
            lengths.append(batch_counts[mine])
            if found.elements is not None:
                elements.append(found.elements[mine])
            counts.append(flat.reshape(len(mine), len(words)))
            places.append(np.column_stack([numbers + known, codes, found.tokens.positions[hits]]))
            known += len(mine)
        if reader.nbytes > _WORD_BYTES:
            reader.forget()
            intern(reader.table, wanted, ALL)
    return ScannedTexts(
        Corpus(documents, tokens),
        np.concatenate(rows),
        np.concatenate(lengths),
        np.concatenate(counts),
        np.concatenate(places),
        np.concatenate([np.empty(0, np.uint32), *elements]) if reader.by_element else None,
    )
