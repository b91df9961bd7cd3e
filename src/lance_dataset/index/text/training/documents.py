"""Documents of a full-text index: the tokens of rows, or of the elements of lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.index.text.analysis.analyzer import Analyzer
from lance_dataset.index.text.analysis.batches import TokenBatch
from lance_dataset.index.text.analysis.json_documents import JsonAnalyzer
from lance_dataset.index.text.byte_ranges import Ints
from lance_dataset.index.text.training.parameters import InvertedParameters
from lancecodec.search.tokens import TokenTable

__all__ = ["DocumentReader", "Documents", "is_json", "is_list", "is_text"]

#: Bytes of values that are analyzed together.
_PIECE_BYTES = 8 << 20


@dataclass(frozen=True)
class Documents:
    """Consecutive documents.

    Attributes
    ----------
    tokens
        Their tokens.
    rows : uint64[documents]
        Row of each document.
    elements : uint32[documents]
        Place of each document in the list of its row; None if rows are documents.
    """

    tokens: TokenBatch
    rows: NDArray[np.uint64]
    elements: NDArray[np.uint32] | None


def is_text(kind: pa.DataType) -> bool:
    """Return True for texts of any layout, dictionaries of them included."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_list(kind: pa.DataType) -> bool:
    """Return True for lists of texts."""
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return lists and is_text(kind.value_type)


def is_json(kind: pa.DataType) -> bool:
    """Return True for the storage type of JSON documents: other columns of bytes have no such index."""
    return pa.types.is_large_binary(kind)


class DocumentReader:
    """Reads the documents in the entries of an index.

    Parameters
    ----------
    parameters
        Parameters of the index.
    kind
        Type of the values.
    where
        Name of the column, for error messages.
    """

    def __init__(self, parameters: InvertedParameters, kind: pa.DataType, where: str) -> None:
        #: True if the elements of lists are documents.
        self.by_element = parameters.by_element
        self._is_list = is_list(kind)
        self._analyze: Callable[[pa.Array], TokenBatch]
        self._analyzer: Analyzer | JsonAnalyzer
        if is_json(kind):
            documents = JsonAnalyzer(parameters.analysis)
            self._analyzer, self._analyze = documents, lambda values: documents.analyze(values, where)
        else:
            texts = Analyzer(parameters.analysis)
            self._analyzer, self._analyze = texts, lambda values: texts.analyze(_large_texts(values))

    @property
    def table(self) -> TokenTable:
        """Distinct tokens of all documents since the last call of `forget`."""
        return self._analyzer.table

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the distinct tokens."""
        return self._analyzer.nbytes

    def forget(self) -> None:
        """Forget all tokens; their codes begin at 0 again."""
        self._analyzer.forget()

    def read(self, entries: pa.RecordBatch) -> Iterator[Documents]:
        """Yield the documents of entries. Rows without tokens are not documents, but elements are."""
        rows = max(_PIECE_BYTES * entries.num_rows // max(entries.nbytes, 1), 1)
        for start in range(0, entries.num_rows, rows):
            piece = entries.slice(start, rows)
            values, ids = piece.column(0), piece.column(1).to_numpy()
            if self.by_element:
                yield self._elements(values, ids)
            else:
                yield _without_empty(self._analyze(_joined(values) if self._is_list else values), ids)

    def _elements(self, lists: pa.Array, ids: NDArray[np.uint64]) -> Documents:
        counts = _list_sizes(lists)
        firsts = np.cumsum(counts) - counts
        places = np.arange(int(counts.sum())) - np.repeat(firsts, counts)
        return Documents(self._analyze(lists.flatten()), np.repeat(ids, counts), places.astype(np.uint32))


def _without_empty(tokens: TokenBatch, ids: NDArray[np.uint64]) -> Documents:
    counts = tokens.counts
    kept = counts > 0
    if kept.all():
        return Documents(tokens, ids, None)
    return Documents(TokenBatch(tokens.codes, tokens.positions, tokens.ends[kept]), ids[kept], None)


def _large_texts(values: pa.Array) -> pa.Array:
    """Return texts in one of the two layouts that are analyzed."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return values
    return values.cast(pa.large_string())


def _list_sizes(lists: pa.Array) -> Ints:
    """Return the number of elements of each list, 0 for nulls."""
    sizes: Ints = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes


def _joined(lists: pa.Array) -> pa.Array:
    """Return the texts of each list as one, with blanks between; nulls, and empty texts at the start, are left out."""
    texts = _large_texts(lists.flatten())
    owners = np.repeat(np.arange(len(lists)), _list_sizes(lists))
    sizes = pc.binary_length(texts).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    before = np.cumsum(sizes) - sizes
    firsts = np.searchsorted(owners, np.arange(len(lists)))
    started = before > np.append(before, 0)[firsts][owners]
    kept = texts.is_valid().to_numpy(zero_copy_only=False) & (started | (sizes > 0))
    offsets = np.append(0, np.cumsum(np.bincount(owners[kept], minlength=len(lists))))
    chosen = texts.filter(pa.array(kept))
    joined = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), chosen)
    found = pc.binary_join(joined, pa.scalar(" ", chosen.type))
    return pc.if_else(lists.is_valid(), found, pa.scalar(None, found.type))
