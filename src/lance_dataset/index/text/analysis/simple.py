"""Base tokenizers of runs of characters: letters and digits, or anything between blanks."""

from __future__ import annotations

from collections.abc import Iterator

from lance_dataset.expr.characters import ALPHANUMERIC, WHITESPACE, runs_of
from lance_dataset.index.text.analysis.alphabets import alphabet
from lance_dataset.index.text.analysis.batches import Rules, TextBuffers, TokenBatch, TokenSpan, found_tokens
from lancecodec.search.tokens import TokenTable

__all__ = ["RunTokenizer", "simple", "whitespace"]


class RunTokenizer:
    """Base tokenizer whose tokens are runs of characters.

    Parameters
    ----------
    *tables
        Tables of the characters; all others separate tokens.
    but
        True if the characters of the tables separate tokens, and all others belong to them.
    """

    def __init__(self, *tables: str, but: bool = False) -> None:
        self._tables = tables
        self._but = but
        self._letters = alphabet(*tables, but=but)

    def tokens(self, table: TokenTable, texts: TextBuffers, rules: Rules) -> TokenBatch:
        """Return the tokens of texts, see `BaseTokenizer`."""
        data, offsets, wide = texts.data, texts.offsets.data, texts.wide
        return found_tokens(
            (texts.nbytes + len(texts)) // 2,
            len(texts),
            rules,
            lambda found: table.runs(self._letters, found, data, offsets, wide, texts.validity, texts.bit),
        )

    def spans(self, text: str) -> Iterator[TokenSpan]:
        """Yield the tokens of one text, see `BaseTokenizer`."""
        runs = runs_of(*self._tables, but=self._but).finditer(text)
        return (TokenSpan(run.group(), position, *run.span()) for position, run in enumerate(runs))


def simple() -> RunTokenizer:
    """Return the tokenizer of letters and digits."""
    return RunTokenizer(ALPHANUMERIC)


def whitespace() -> RunTokenizer:
    """Return the tokenizer of anything between blanks."""
    return RunTokenizer(WHITESPACE, but=True)
