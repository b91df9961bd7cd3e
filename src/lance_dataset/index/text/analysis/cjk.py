"""Base tokenizer for Chinese, Japanese and Korean without a dictionary: characters, and pairs of neighbours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.expr.characters import ALPHANUMERIC, ranges_of, runs_of
from lance_dataset.index.text.analysis.batches import Codes, Rules, TextBuffers, TokenBatch, TokenSpan, intern
from lancecodec.search.tokens import TokenTable

__all__ = ["CjkTokenizer"]

#: Han, Hiragana, Katakana, Hangul and Bopomofo, with their marks for repetition and length.
_CJK: Final = """
    1100-11FF 3005-3007 3021-3029 3031-3035 3038-303C 3041-3096 309D-309F 30A1-30FA 30FC-30FF 3105-312F 3131-318E
    31A0-31BF 31F0-31FF 3400-4DBF 4E00-9FFF A960-A97C AC00-D7A3 D7B0-D7C6 D7CB-D7FB F900-FA6D FA70-FAD9 FF66-FF9F
    FFA0-FFBE FFC2-FFC7 FFCA-FFCF FFD2-FFD7 FFDA-FFDC 16FF0-16FF1 1AFF0-1AFF3 1AFF5-1AFFB 1AFFD-1AFFE 1B000-1B122 1B132
    1B150-1B152 1B155 1B164-1B167 20000-2A6DF 2A700-2EBE0 2EBF0-2EE5D 2F800-2FA1D 30000-323AF
"""
_WORD: Final = 1
_CHARACTER: Final = 2
#: Bits of a code point.
_BITS: Final = 21


class CjkTokenizer:
    """Base tokenizer of words of letters and digits, as of `simple`, of single CJK characters, and of pairs of them.

    Each word, and each CJK character, takes one position; a pair has that of its first character.

    Parameters
    ----------
    queries
        True for queries: of several CJK characters, only the pairs are tokens. So a query for one character finds it
        anywhere, and one for several does not find each of them.

    Notes
    -----
    Pairs do as well as words for finding texts: Nie and others, "On the use of words and n-grams for Chinese
    information retrieval", IRAL 2000.
    """

    def __init__(self, *, queries: bool = False) -> None:
        self._queries = queries

    def tokens(self, table: TokenTable, texts: TextBuffers, rules: Rules) -> TokenBatch:
        """Return the tokens of texts, see `BaseTokenizer`."""
        found = _Characters.of(list(texts.strings()))
        words, pairs = found.words(), found.pairs()
        singles = np.flatnonzero(found.kinds == _CHARACTER)
        if self._queries:
            singles = np.setdiff1d(singles, np.concatenate([pairs, pairs + 1]))
        points = found.points.astype(np.int64)
        keys = np.concatenate([points[singles], points[pairs] | points[pairs + 1] << _BITS])
        starts = np.concatenate([words[:, 0], singles, pairs])
        tokens = [found.text[start:end] for start, end in words.tolist()]
        codes = np.concatenate(
            [intern(table, pa.array(tokens, pa.large_string()), rules), _interned(table, keys, rules)]
        )
        # Pairs come after the single characters.
        order = np.argsort(starts, kind="stable")
        owners = found.owners[starts[order]]
        ends = np.searchsorted(owners, np.arange(found.count), side="right").astype(np.int64)
        kept: Codes = codes[order]
        return TokenBatch(kept, found.positions()[starts[order]], ends).kept(kept)

    def spans(self, text: str) -> Iterator[TokenSpan]:
        """Yield the tokens of one text, see `BaseTokenizer`."""
        position = 0
        for run in _runs().finditer(text):
            start, end = run.span()
            if run.lastgroup == "word":
                yield TokenSpan(run.group(), position, start, end)
                position += 1
                continue
            for place in range(start, end):
                if not self._queries or end - start == 1:
                    yield TokenSpan(text[place], position, place, place + 1)
                if place + 1 < end:
                    yield TokenSpan(text[place : place + 2], position, place, place + 2)
                position += 1


@dataclass(frozen=True)
class _Characters:
    """Characters of several texts.

    Attributes
    ----------
    text
        The texts one after the other.
    points : uint32[n]
        Their code points.
    kinds : uint8[n]
        `_CHARACTER` for those of CJK, `_WORD` for other letters and digits, or 0.
    owners : int64[n]
        Number of the text of each.
    begins : bool[n + 1]
        True for the first of a text, and for the end.
    count
        Number of texts.
    """

    text: str
    points: NDArray[np.uint32]
    kinds: NDArray[np.uint8]
    owners: NDArray[np.int64]
    begins: NDArray[np.bool_]
    count: int

    @classmethod
    def of(cls, texts: list[str]) -> _Characters:
        joined = "".join(texts)
        points = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
        sizes = np.array([len(text) for text in texts], np.int64)
        owners = np.repeat(np.arange(len(texts)), sizes)
        begins = np.ones(len(points) + 1, bool)
        begins[1:-1] = owners[1:] != owners[:-1]
        return cls(joined, points, _kinds()[points], owners, begins, len(texts))

    def words(self) -> NDArray[np.int64]:
        """Return start and end of each word, int64[n, 2]."""
        inside = np.concatenate([[False], self.kinds == _WORD, [False]])
        starts = np.flatnonzero(inside[1:-1] & (~inside[:-2] | self.begins[:-1]))
        ends = np.flatnonzero(inside[1:-1] & (~inside[2:] | self.begins[1:])) + 1
        return np.column_stack([starts, ends])

    def pairs(self) -> NDArray[np.int64]:
        """Return the places of CJK characters that another one follows."""
        inside = self.kinds == _CHARACTER
        return np.flatnonzero(inside[:-1] & inside[1:] & ~self.begins[1:-1])

    def positions(self) -> NDArray[np.int32]:
        """Return for each character how many words and CJK characters of its text are before it."""
        counts = (self.kinds == _CHARACTER).astype(np.int64)
        counts[self.words()[:, 0]] = 1
        before = np.cumsum(counts) - counts
        firsts = np.flatnonzero(self.begins[:-1])
        return (before - np.repeat(before[firsts], np.diff(np.append(firsts, len(before))))).astype(np.int32)


def _interned(table: TokenTable, keys: NDArray[np.int64], rules: Rules) -> Codes:
    """Return the codes of characters and pairs."""
    different, places = np.unique(keys, return_inverse=True)
    mask = (1 << _BITS) - 1
    tokens = [chr(key & mask) + (chr(key >> _BITS) if key >> _BITS else "") for key in different.tolist()]
    codes: Codes = intern(table, pa.array(tokens, pa.large_string()), rules)[places]
    return codes


@lru_cache(1)
def _kinds() -> NDArray[np.uint8]:
    """Return the kind of each code point."""
    found = np.zeros(0x110000, np.uint8)
    for table, kind in ((ALPHANUMERIC, _WORD), (_CJK, _CHARACTER)):
        for low, high in ranges_of(table):
            found[low:high] = kind
    return found


@lru_cache(1)
def _runs() -> re.Pattern[str]:
    """Return the pattern of CJK characters, and of words of other letters and digits."""
    others = runs_of(ALPHANUMERIC).pattern.removesuffix("+")
    cjk = runs_of(_CJK).pattern
    return re.compile(f"(?P<cjk>{cjk})|(?P<word>(?:(?!{cjk.removesuffix('+')}){others})+)")
