"""Base tokenizer that makes a token of each text."""

from __future__ import annotations

from lance_dataset.index.text.analysis.batches import Rules, TextBuffers, TokenBatch, TokenSpan, found_tokens
from lancecodec.search.tokens import TokenTable

__all__ = ["RawTokenizer"]


class RawTokenizer:
    """Base tokenizer that makes a token of each text, also of an empty one."""

    def tokens(self, table: TokenTable, texts: TextBuffers, rules: Rules) -> TokenBatch:
        """Return the tokens of texts, see `BaseTokenizer`."""
        data, offsets, wide = texts.data, texts.offsets.data, texts.wide
        return found_tokens(
            len(texts),
            len(texts),
            rules,
            lambda found: table.whole(found, data, offsets, wide, texts.validity, texts.bit),
        )

    def spans(self, text: str) -> list[TokenSpan]:
        """Return the token of one text, see `BaseTokenizer`."""
        return [TokenSpan(text, 0, 0, len(text))]
