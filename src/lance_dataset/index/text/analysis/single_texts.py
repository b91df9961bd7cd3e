"""Base tokenizers that divide one text at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from lance_dataset.index.text.analysis.batches import Rules, TextBuffers, TokenBatch, TokenSpan, intern
from lancecodec.search.tokens import TokenTable

__all__ = ["SingleTextTokenizer"]


class SingleTextTokenizer(ABC):
    """Base tokenizer that divides one text at a time."""

    @abstractmethod
    def spans(self, text: str) -> Iterable[TokenSpan]:
        """Return the tokens of one text, see `BaseTokenizer`."""

    def tokens(self, table: TokenTable, texts: TextBuffers, rules: Rules) -> TokenBatch:
        """Return the tokens of texts, see `BaseTokenizer`."""
        found: list[str] = []
        positions: list[int] = []
        ends: list[int] = []
        for text in texts.strings():
            for each in self.spans(text) if text else ():
                found.append(each.token)
                positions.append(each.position)
            ends.append(len(found))
        codes = intern(table, pa.array(found, pa.large_string()), rules)
        return TokenBatch(codes, np.array(positions, np.int32), np.array(ends, np.int64)).kept(codes)
