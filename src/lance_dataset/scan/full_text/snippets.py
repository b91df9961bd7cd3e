"""Snippets of a text: the parts with the most of the words that are looked for, and these words marked."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Hit", "Snippet", "byte_offsets", "marked", "snippets"]


class Hit(NamedTuple):
    """Word that is looked for, at its place in a text, in characters."""

    start: int
    end: int
    term: str


@dataclass(frozen=True)
class Snippet:
    """Part of a text.

    Attributes
    ----------
    start, end
        Its characters.
    hits
        Words in it, by their place.
    """

    start: int
    end: int
    hits: tuple[Hit, ...]

    @property
    def rank(self) -> tuple[int, int]:
        """Number of different words, and of words."""
        return len({hit.term for hit in self.hits}), len(self.hits)


def snippets(text: str, hits: Sequence[Hit], length: int, most: int) -> list[Snippet]:
    """Return the best snippets of a text, by their place. They do not overlap.

    Parameters
    ----------
    text
        The text.
    hits
        The words, by their place.
    length
        Number of characters of a snippet.
    most
        Number of snippets.
    """
    left = list(hits)
    chosen: list[Snippet] = []
    while left and len(chosen) < most:
        best = max(_windows(left, length), key=lambda window: (window.different, window.last - window.first))
        inside = left[best.first : best.last]
        start, end = inside[0].start, max(hit.end for hit in inside)
        low = max((each.end for each in chosen if each.end <= start), default=0)
        high = min((each.start for each in chosen if each.start >= end), default=len(text))
        start, end = _widened(text, (start, end), (low, high), length)
        chosen.append(Snippet(start, end, tuple(hit for hit in left if start <= hit.start and hit.end <= end)))
        left = [hit for hit in left if hit.end <= start or hit.start >= end]
    return sorted(chosen, key=lambda each: each.start)


class _Window(NamedTuple):
    """Range of words; the numbers of different words and of all."""

    first: int
    last: int
    different: int


def _windows(hits: Sequence[Hit], length: int) -> Iterator[_Window]:
    """Yield the longest range of words within a number of characters, from each word on."""
    counts: dict[str, int] = {}
    last = 0
    for first, hit in enumerate(hits):
        while last < len(hits) and (last <= first or hits[last].end <= hit.start + length):
            counts[hits[last].term] = counts.get(hits[last].term, 0) + 1
            last += 1
        yield _Window(first, last, len(counts))
        counts[hit.term] -= 1
        if not counts[hit.term]:
            del counts[hit.term]


def _widened(text: str, inside: tuple[int, int], limits: tuple[int, int], length: int) -> tuple[int, int]:
    """Return a range of characters with others around it, which begins and ends at blanks if there are any."""
    start, end = inside
    spare = max(length - (end - start), 0)
    low = max(start - spare // 2, limits[0])
    high = min(low + max(length, end - start), limits[1])
    low = max(min(low, high - length), limits[0])
    if low > 0:
        blank = next((place for place in range(low - 1, start) if text[place].isspace()), None)
        low = low if blank is None else blank + 1
    if high < len(text):
        blank = next((place for place in range(high, end - 1, -1) if text[place].isspace()), None)
        high = high if blank is None else blank
    return max(min(low, start), limits[0]), min(max(high, end), limits[1])


def marked(text: str, snippet: Snippet, before: str, after: str, *, escape: bool) -> str:
    """Return a snippet with its words between marks; words that overlap or touch each other are marked together."""
    shown = html.escape if escape else str
    parts: list[str] = []
    at = snippet.start
    for start, end in _united(snippet.hits):
        parts += (shown(text[at:start]), before, shown(text[start:end]), after)
        at = end
    parts.append(shown(text[at : snippet.end]))
    return "".join(parts)


def _united(hits: Sequence[Hit]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for hit in hits:
        if found and hit.start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], hit.end)
        else:
            found.append((hit.start, hit.end))
    return found


def byte_offsets(text: str) -> NDArray[np.int64]:
    """Return the number of bytes of UTF-8 before each character, and before the end."""
    if text.isascii():
        return np.arange(len(text) + 1)
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    widths = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    return np.append(0, np.cumsum(widths))
