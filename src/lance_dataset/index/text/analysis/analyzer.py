"""Analysis of texts: a base tokenizer, and filters that see each distinct token once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice, pairwise

import numpy as np
import pyarrow as pa

from lance_dataset.index.text.analysis.batches import (
    BaseTokenizer,
    Rules,
    TextBuffers,
    TokenBatch,
    TokenSpan,
    intern,
    token_list,
)
from lance_dataset.index.text.analysis.cjk import CjkTokenizer
from lance_dataset.index.text.analysis.code import CodeTokenizer
from lance_dataset.index.text.analysis.dictionaries import dictionary_tokenizer
from lance_dataset.index.text.analysis.filters import TokenFilters
from lance_dataset.index.text.analysis.icu import icu_tokenizer
from lance_dataset.index.text.analysis.ngram import NgramTokenizer
from lance_dataset.index.text.analysis.parameters import AnalysisParameters
from lance_dataset.index.text.analysis.raw import RawTokenizer
from lance_dataset.index.text.analysis.simple import simple, whitespace
from lancecodec.search.tokens import TokenTable

__all__ = ["Analyzer"]

_NO_LIMIT = (1 << 63) - 1
_ALL = Rules(_NO_LIMIT, lower_case=False)
#: Bytes of text that are divided at once.
_SLICE_BYTES = 1 << 20
#: Tokens with their places that are filtered at once.
_SPANS = 1 << 12


class Analyzer:
    """Analysis of texts. An object is used by one thread at a time.

    Parameters
    ----------
    parameters
        Parameters of the analysis.
    queries
        True for the analysis of queries.

    Raises
    ------
    UnsupportedError
        The base tokenizer needs a package that is not installed, or is not supported.
    InvalidInputError
        The base tokenizer needs a dictionary that does not exist.
    """

    def __init__(self, parameters: AnalysisParameters, *, queries: bool = False) -> None:
        self.parameters = parameters
        self._base = _base_tokenizer(parameters, queries)
        self._filters = TokenFilters(parameters)
        longest = parameters.max_token_length
        self._rules = Rules(_NO_LIMIT if longest is None else min(longest, _NO_LIMIT), parameters.lower_case)
        self.forget()

    def forget(self) -> None:
        """Forget all tokens, to free their memory; codes begin at 0 again."""
        self._divided = TokenTable()
        #: Distinct tokens of all texts so far.
        self.table = TokenTable()
        self._final = np.empty(0, np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the distinct tokens."""
        return self._divided.nbytes + self.table.nbytes + self._final.nbytes

    def analyze(self, texts: pa.Array) -> TokenBatch:
        """Return the tokens of texts, with codes of `table`.

        The position of a token counts those that are left out. Nulls have no tokens.

        Parameters
        ----------
        texts
            Strings of either width.
        """
        parts = [self._analyzed(part) for part in _slices(texts)]
        return TokenBatch.concat(parts)

    def _analyzed(self, texts: pa.Array) -> TokenBatch:
        divided = self._base.tokens(self._divided, TextBuffers.of(texts), self._rules)
        known = len(self._final)
        if self._divided.count > known:
            kept = self._filters.apply(token_list(self._divided, known))
            codes = intern(self.table, pa.array(kept, pa.large_string()), _ALL)
            self._final = np.append(self._final, codes)
        return divided.kept(self._final[divided.codes])

    def tokens(self, text: str) -> list[tuple[str, int]]:
        """Return the tokens of one text, each with its position."""
        found = self.analyze(pa.array([text], pa.large_string()))
        known = token_list(self.table)
        return [(known[code], position) for code, position in zip(found.codes, found.positions.tolist(), strict=True)]

    def spans(self, text: str) -> Iterator[TokenSpan]:
        """Yield the tokens of one text, each with its place in the text."""
        longest = self._rules.longest
        divided = (each for each in self._base.spans(text) if len(each.token.encode()) < longest)
        while found := list(islice(divided, _SPANS)):
            kept = self._filters.apply([each.token for each in found])
            for each, token in zip(found, kept, strict=True):
                if token is not None:
                    yield each._replace(token=token)


_BASES: Mapping[str, Callable[[AnalysisParameters], BaseTokenizer]] = {
    "simple": lambda _: simple(),
    "whitespace": lambda _: whitespace(),
    "raw": lambda _: RawTokenizer(),
    "ngram": lambda of: NgramTokenizer(of.min_ngram_length, of.max_ngram_length, of.prefix_only),
    "code": lambda of: CodeTokenizer(
        of.split_identifiers, of.split_on_numerics, of.preserve_original, of.index_operators
    ),
}


def _base_tokenizer(parameters: AnalysisParameters, queries: bool) -> BaseTokenizer:
    if parameters.base_tokenizer == "cjk":
        return CjkTokenizer(queries=queries)
    make = _BASES.get(parameters.base_tokenizer)
    if make is not None:
        return make(parameters)
    if parameters.base_tokenizer.startswith("icu"):
        return icu_tokenizer(parameters.base_tokenizer)
    return dictionary_tokenizer(parameters.base_tokenizer)


def _slices(texts: pa.Array) -> list[pa.Array]:
    """Return slices of about as many bytes as are divided at once."""
    offsets = TextBuffers.of(texts).offsets
    marks = np.arange(int(offsets[0]) + _SLICE_BYTES, int(offsets[-1]), _SLICE_BYTES)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, marks), [len(texts)]]))
    return [texts.slice(low, high - low) for low, high in pairwise(cuts.tolist())] or [texts]
