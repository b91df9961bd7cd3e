"""Base tokenizer of n-grams of characters."""

from __future__ import annotations

from collections.abc import Iterator

from lance_dataset.index.text.analysis.batches import Rules, TextBuffers, TokenBatch, TokenSpan, found_tokens
from lancecodec.search.tokens import TokenTable

__all__ = ["NgramTokenizer"]


class NgramTokenizer:
    """Base tokenizer of n-grams of characters, which all have the position 0.

    Parameters
    ----------
    shortest, longest
        Numbers of characters.
    prefixes
        True to make only the n-grams at the start of a text.
    """

    def __init__(self, shortest: int, longest: int, prefixes: bool) -> None:
        self._shortest = shortest
        self._longest = longest
        self._prefixes = prefixes

    def tokens(self, table: TokenTable, texts: TextBuffers, rules: Rules) -> TokenBatch:
        """Return the tokens of texts, see `BaseTokenizer`."""
        longest = min(self._longest, texts.nbytes)
        starts = len(texts) if self._prefixes else texts.nbytes
        data, offsets, wide = texts.data, texts.offsets.data, texts.wide
        return found_tokens(
            starts * max(longest - self._shortest + 1, 0),
            len(texts),
            rules,
            lambda found: table.grams(
                self._shortest, longest, self._prefixes, found, data, offsets, wide, texts.validity, texts.bit
            ),
        )

    def spans(self, text: str) -> Iterator[TokenSpan]:
        """Yield the tokens of one text, see `BaseTokenizer`."""
        sizes = range(self._shortest, min(self._longest, len(text)) + 1)
        starts = range(1 if self._prefixes else len(text))
        return (
            TokenSpan(text[start : start + size], 0, start, start + size)
            for start in starts
            for size in sizes
            if start + size <= len(text)
        )
