"""Texts that are divided into words once, and searched many times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.scalar.sorting import ROWS, VALUES
from lance_dataset.index.text.analysis.batches import TokenBatch, intern
from lance_dataset.index.text.scoring import Corpus
from lance_dataset.index.text.training.documents import DocumentReader, Documents
from lance_dataset.locks import SharedLock
from lance_dataset.scan.full_text.scanned import ALL, ScannedTexts

__all__ = ["AnalyzedTexts"]


class AnalyzedTexts:
    """Words of rows that are added from time to time. Any thread may use it.

    Parameters
    ----------
    reader
        Reader of the documents.
    """

    def __init__(self, reader: DocumentReader) -> None:
        self._reader = reader
        self._known = Documents(TokenBatch.concat([]), np.empty(0, np.uint64), _places(reader, []))
        #: Number of rows that were added.
        self.rows = 0
        #: Held by those who add rows, while they find out which ones are missing.
        self.lock = SharedLock()

    def add(self, values: pa.Array) -> None:
        """Add the texts of rows, whose numbers are those after the last one."""
        with self.lock:
            numbers = pa.array(np.arange(self.rows, self.rows + len(values), dtype=np.uint64))
            new = self._reader.read(pa.RecordBatch.from_arrays([values, numbers], names=[VALUES, ROWS]))
            parts = [self._known, *new]
            self._known = Documents(
                TokenBatch.concat([part.tokens for part in parts]),
                np.concatenate([part.rows for part in parts]),
                _places(self._reader, parts),
            )
            self.rows += len(values)

    def find(self, words: Sequence[str], chosen: NDArray[np.uint64]) -> ScannedTexts:
        """Find words in the texts of some rows.

        Parameters
        ----------
        words
            Different words, as the analysis makes them.
        chosen
            Numbers of the rows.
        """
        with self.lock:
            wanted = intern(self._reader.table, pa.array(list(words), pa.large_string()), ALL)
            known, rows = self._known, self.rows
        mask = np.zeros(rows, bool)
        mask[chosen] = True
        shown, lengths, tokens = mask[known.rows], known.tokens.counts, known.tokens
        corpus = Corpus(int(np.count_nonzero(shown)), int(lengths[shown].sum()))
        found = [np.flatnonzero(tokens.codes == code) for code in wanted.tolist()]
        places = np.concatenate([np.empty(0, np.int64), *found])
        numbers = np.repeat(np.arange(len(words)), [len(each) for each in found])
        owners = np.searchsorted(tokens.ends, places, side="right")
        kept = np.flatnonzero(shown[owners])
        kept = kept[np.argsort(places[kept])]
        places, numbers = places[kept], numbers[kept]
        mine, owners = np.unique(owners[kept], return_inverse=True)
        counts = np.bincount(owners * len(words) + numbers, minlength=len(mine) * len(words))
        return ScannedTexts(
            corpus,
            known.rows[mine],
            lengths[mine],
            counts.reshape(len(mine), len(words)),
            np.column_stack([owners, numbers, tokens.positions[places]]),
            None if known.elements is None else known.elements[mine],
        )


def _places(reader: DocumentReader, parts: Sequence[Documents]) -> NDArray[np.uint32] | None:
    """Return the places of documents in lists; None if rows are documents."""
    if not reader.by_element:
        return None
    known = [part.elements for part in parts if part.elements is not None]
    return np.concatenate([np.empty(0, np.uint32), *known])
