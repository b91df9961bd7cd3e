"""Case and marks of letters: texts in lower case, and folded to ASCII."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from lance_dataset.index.text.folding_table import SERIES, SINGLE

__all__ = ["FOLDED", "fold", "lower"]


def _characters(ranges: str) -> Iterator[int]:
    """Yield the numbers of characters in ranges such as ``c0-c5,100-104/2``."""
    for each in ranges.split(","):
        bounds, _, step = each.partition("/")
        first, _, last = bounds.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1, int(step or 1))


def _folded() -> Iterator[tuple[str, str]]:
    for each in SINGLE.split():
        replacement, _, ranges = each.rpartition("=")
        for code in _characters(ranges):
            yield chr(code), replacement.replace("\N{OPEN BOX}", " ")
    for each in SERIES.split():
        first, _, ranges = each.rpartition("=")
        for place, code in enumerate(_characters(ranges)):
            yield chr(code), chr(ord(first) + place)


#: Replacement of each character that is not left as it is.
FOLDED: Final[Mapping[str, str]] = dict(_folded())

#: Capital letters of Unicode 14 to 17, which not all Pythons know, with the distances of their small letters.
_NEWER = (
    "2c2f+30 a7c0+1 a7d0+1 a7d6+1 a7d8+1 10570-1057a+27 1057c-1058a+27 1058c-10592+27 10594-10595+27"  # Unicode 14
    " 10d50-10d65+20 1c89+1 a7cb-a567 a7cc+1 a7da+1 a7dc-a641"  # Unicode 16
    " 16ea0-16eb8+1b a7ce+1 a7d2+1 a7d4+1"  # Unicode 17
)


def _newer() -> Iterator[tuple[str, str]]:
    for each in _NEWER.split():
        ranges, sign, distance = re.fullmatch(r"(.+)([+-])(.+)", each).groups()  # type: ignore[union-attr]
        for code in _characters(ranges):
            yield chr(code), chr(code + int(sign + distance, 16))


_SMALL: Final = dict(_newer())


_BEYOND = chr(0x10000)
#: Characters that are replaced one after the other, which is faster for few; no replacement is another one of them.
_FEW = 24
#: Characters of a text that NumPy looks at faster.
_LONG = 4096


def _characters_in(text: str) -> set[str]:
    """Return the distinct characters of a text."""
    if len(text) < _LONG:
        return set(text)
    return set(map(chr, np.flatnonzero(np.bincount(np.frombuffer(text.encode("utf-32-le"), "<u4"))).tolist()))


class _Replacement:
    """Replacement of some characters. Those beyond 16 bits have their own pattern, because they make any class slow."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self._table = table
        narrow = "".join(each for each in table if each < _BEYOND)
        self._patterns = tuple(re.compile(f"[{each}]") for each in (re.escape(narrow), f"{_BEYOND}-{chr(0x10FFFF)}"))

    def apply(self, text: str) -> str:
        found = self._table.keys() & _characters_in(text)
        if len(found) <= _FEW:
            for each in found:
                text = text.replace(each, self._table[each])
            return text
        for pattern in self._patterns:
            text = pattern.sub(lambda match: self._table.get(match.group(), match.group()), text)
        return text


_FOLDING, _NEWER_LETTERS = _Replacement(FOLDED), _Replacement(_SMALL)


def lower(text: str) -> str:
    """Return a text in lower case, character by character: a final sigma is not special. This is Unicode 17."""
    if text.isascii():
        return text.lower()
    found = text.replace("\N{GREEK CAPITAL LETTER SIGMA}", "\N{GREEK SMALL LETTER SIGMA}").lower()
    return _NEWER_LETTERS.apply(found)


def fold(text: str) -> str:
    """Return a text with ASCII characters in place of those that look similar. Others stay."""
    return text if text.isascii() else _FOLDING.apply(text)
