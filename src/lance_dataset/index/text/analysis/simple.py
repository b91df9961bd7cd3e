"""Base tokenizers of runs of characters: letters and digits, or anything between blanks."""

from __future__ import annotations

from lance_dataset.index.text.analysis.batches import Rules, TextBuffers, TokenBatch, found_tokens
from lance_dataset.index.text.analysis.characters import ALPHANUMERIC, WHITESPACE, alphabet
from lancecodec.search.tokens import Alphabet, TokenTable

__all__ = ["RunTokenizer", "simple", "whitespace"]


class RunTokenizer:
    """Base tokenizer whose tokens are runs of characters.

    Parameters
    ----------
    letters
        The characters; all others separate tokens.
    """

    def __init__(self, letters: Alphabet) -> None:
        self._letters = letters

    def tokens(self, table: TokenTable, texts: TextBuffers, rules: Rules) -> TokenBatch:
        """Return the tokens of texts, see `BaseTokenizer`."""
        data, offsets, wide = texts.data, texts.offsets.data, texts.wide
        return found_tokens(
            (texts.nbytes + len(texts)) // 2,
            len(texts),
            rules,
            lambda found: table.runs(self._letters, found, data, offsets, wide, texts.validity, texts.bit),
        )


def simple() -> RunTokenizer:
    """Return the tokenizer of letters and digits."""
    return RunTokenizer(alphabet(ALPHANUMERIC))


def whitespace() -> RunTokenizer:
    """Return the tokenizer of anything between blanks."""
    return RunTokenizer(alphabet(WHITESPACE, but=True))
