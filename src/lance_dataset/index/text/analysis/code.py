"""Base tokenizer for program code: identifiers, numbers and operators, and the words of identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from lance_dataset.expr.characters import ALPHANUMERIC, CAPITALS, SMALL, code_points
from lance_dataset.index.text.analysis.batches import (
    Codes,
    Rules,
    TextBuffers,
    TokenBatch,
    TokenSpan,
    intern,
    token_list,
)
from lance_dataset.index.text.analysis.simple import RunTokenizer
from lancecodec.search.tokens import TokenTable

__all__ = ["CodeTokenizer"]

_UNDERSCORE: Final = "5F"
_OPERATOR_CHARACTERS: Final = "!%&*+-/:<=>?^|~"
#: Operators of more than one character, longest first.
_OPERATORS: Final = (
    *(">>>=",),
    *("!==", "&&=", "**=", "//=", "<<=", "<=>", "===", ">>=", ">>>", "??=", "||="),
    *("!=", "%=", "&&", "&=", "**", "*=", "++", "+=", "--", "-=", "->", "//", "/=", "::", ":=", "<-", "<<", "<="),
    *("==", "=>", ">=", ">>", "??", "^=", "|=", "|>", "||", "~="),
)
_CLASS: Final = re.escape(_OPERATOR_CHARACTERS)
_PARTS: Final = re.compile("|".join([*map(re.escape, _OPERATORS), f"[{_CLASS}]", f"[^{_CLASS}]+"]))
_DIGITS: Final = frozenset("0123456789")
_KEEP_ALL: Final = Rules((1 << 63) - 1, lower_case=False)


class CodeTokenizer:
    """Base tokenizer for program code.

    Parameters
    ----------
    words
        True to divide identifiers into words: at underscores, and before capitals that begin a word.
    digits
        True to divide identifiers between digits and other characters, too.
    identifiers
        True to keep identifiers that are divided, at the position of their first word.
    operators
        True to make tokens of operators.
    """

    def __init__(self, words: bool, digits: bool, identifiers: bool, operators: bool) -> None:
        self._words = words
        self._digits = digits
        self._identifiers = identifiers
        self._operators = operators
        symbols = " ".join(f"{ord(each):X}" for each in _OPERATOR_CHARACTERS) if operators else ""
        self._runs = RunTokenizer(ALPHANUMERIC, _UNDERSCORE, symbols)
        self._forget()

    def _forget(self) -> None:
        self._table = TokenTable()
        self._owner: TokenTable | None = None
        self._parts = np.empty(0, np.int32)
        self._offsets = np.empty(0, np.int32)
        self._starts = np.zeros(1, np.int64)
        self._widths = np.empty(0, np.int64)

    def tokens(self, table: TokenTable, texts: TextBuffers, rules: Rules) -> TokenBatch:
        """Return the tokens of texts, see `BaseTokenizer`."""
        if not self._words and not self._operators:
            return self._runs.tokens(table, texts, rules)
        if self._owner is not table:
            self._forget()
            self._owner = table
        runs = self._runs.tokens(self._table, texts, _KEEP_ALL)
        self._learn(table, rules)
        return self._expanded(runs)

    def spans(self, text: str) -> Iterator[TokenSpan]:
        """Yield the tokens of one text, see `BaseTokenizer`."""
        runs = self._runs.spans(text)
        if not self._words and not self._operators:
            yield from runs
            return
        position = 0
        for run in runs:
            parts: list[str] = []
            offsets: list[int] = []
            width = self._divide(run.token, parts, offsets)
            # Identifiers come before their words; words follow each other, with nothing but underscores between.
            at = 0
            for number, (part, offset) in enumerate(zip(parts, offsets, strict=True)):
                start = run.token.index(part, at)
                yield TokenSpan(part, position + offset, run.start + start, run.start + start + len(part))
                is_whole = self._identifiers and offsets[number + 1 : number + 2] == [offset]
                at = start if is_whole else start + len(part)
            position += width

    def _learn(self, table: TokenTable, rules: Rules) -> None:
        """Divide the distinct runs that are new."""
        parts: list[str] = []
        offsets: list[int] = []
        ends: list[int] = []
        widths: list[int] = []
        for run in token_list(self._table, len(self._widths)):
            widths.append(self._divide(run, parts, offsets))
            ends.append(len(parts))
        if not ends:
            return
        codes = intern(table, pa.array(parts, pa.large_string()), rules)
        self._starts = np.append(self._starts, self._starts[-1] + np.array(ends, np.int64))
        self._parts = np.append(self._parts, codes)
        self._offsets = np.append(self._offsets, np.array(offsets, np.int32))
        self._widths = np.append(self._widths, np.array(widths, np.int64))

    def _divide(self, run: str, parts: list[str], offsets: list[int]) -> int:
        """Append the tokens of a run and their positions in it; return how many positions it takes."""
        at = 0
        for part in _PARTS.findall(run) if self._operators else [run]:
            words = _words(part, self._digits) if self._words and part[0] not in _OPERATOR_CHARACTERS else []
            if len(words) < 2:
                words, keep = [], True
            else:
                keep = self._identifiers
            if keep:
                parts.append(part)
                offsets.append(at)
            parts.extend(words)
            offsets.extend(range(at, at + len(words)))
            at += max(len(words), 1)
        return at

    def _expanded(self, runs: TokenBatch) -> TokenBatch:
        """Replace runs by their tokens."""
        widths = self._widths[runs.codes]
        sizes = np.diff(self._starts)[runs.codes]
        before = np.cumsum(widths) - widths
        firsts = np.append(0, runs.ends[:-1])
        sums = np.append(before, int(widths.sum()))[firsts]
        positions = before - np.repeat(sums, runs.counts)
        total = np.cumsum(sizes)
        places = np.arange(int(sizes.sum())) - np.repeat(total - sizes - self._starts[runs.codes], sizes)
        codes: Codes = self._parts[places]
        found = np.repeat(positions, sizes) + self._offsets[places]
        ends = np.append(0, total)[runs.ends]
        return TokenBatch(codes, found.astype(np.int32), ends).kept(codes)


def _words(identifier: str, digits: bool) -> list[str]:
    """Return the words of an identifier."""
    capitals, small = code_points(CAPITALS), code_points(SMALL)
    found: list[str] = []
    start = 0
    for at, here in enumerate(identifier):
        if here == "_":
            if at > start:
                found.append(identifier[start:at])
            start = at + 1
        elif at > start:
            last, following = identifier[at - 1], identifier[at + 1 : at + 2]
            begins = here in capitals and (last in small or (last in capitals and following in small))
            if begins or (digits and (last in _DIGITS) != (here in _DIGITS)):
                found.append(identifier[start:at])
                start = at
    if start < len(identifier):
        found.append(identifier[start:])
    return found
