"""Texts that must occur wherever a regular expression matches.

The idea is that of Google Code Search (Russ Cox, Regular Expression Matching with a Trigram Index). Expressions have
the syntax of RE2; those with anything unknown have no needs, which is always correct.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from lance_dataset.index.scalar.conditions import AllTexts, AnyText, Text, TextNeed

__all__ = ["RegexNeed", "need_of_regex", "plain_runs"]

_MOST_DEPTH = 60
_MOST_REPEATS = 16
_MOST_BRANCHES = 64

_CLASS_ESCAPES = frozenset("dDwWsS")
_BORDERS = frozenset("bBAz")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_HEXADECIMAL = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
_PROPERTY = re.compile(r"[pP](?:\{\^?\w+\}|[A-Z])")
_GROUP = re.compile(r"\((?:\?P?<\w+>|\?([imsU]*(?:-[imsU]+)?)([:)])|(?!\?))")
_REPEAT = re.compile(r"(?:[*+?]|\{(\d{1,4})(,(?:\d{1,4})?)?\})\??")
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\[pPx]\{[^}]*\}|\\[\s\S]|[^\]\\])*\]")


@dataclass(frozen=True)
class RegexNeed:
    """Texts that a text must contain to match.

    Attributes
    ----------
    need
        The need.
    is_caseless
        True if it may be satisfied in any case of letters. Then it has nothing but ASCII letters and digits.
    is_literal
        True if all texts that satisfy it match.
    """

    need: TextNeed
    is_caseless: bool
    is_literal: bool


def plain_runs(text: str) -> list[Text]:
    """Return the runs of ASCII letters and digits. All of their case variants fold to the same tokens."""
    return [Text(run) for run in re.findall("[0-9A-Za-z]+", text)]


@lru_cache(maxsize=256)
def need_of_regex(pattern: str) -> RegexNeed | None:
    """Return what a text must contain to match an expression of RE2; None if nothing is known."""
    parser = _Parser(pattern)
    try:
        need = parser.alternatives(0)
        if parser.at < len(pattern):
            return None
    except _UnknownSyntaxError:
        return None
    if need is None:
        return None
    is_literal = not parser.is_caseless and need == Text(pattern)
    need = _plain(need) if parser.is_caseless else need
    return None if need is None else RegexNeed(need, parser.is_caseless, is_literal)


class _UnknownSyntaxError(Exception):
    """The expression has something that the parser does not know."""


@dataclass
class _Sequence:
    """Needs of a concatenation, while it is read.

    Attributes
    ----------
    needs
        Needs that are complete.
    run
        Characters that must follow each other, up to here.
    """

    needs: list[TextNeed] = field(default_factory=list)
    run: str = ""

    def interrupt(self) -> None:
        """End the run: anything may follow."""
        if self.run:
            self.needs.append(Text(self.run))
        self.run = ""

    def need(self) -> TextNeed | None:
        """Return what the whole concatenation needs."""
        self.interrupt()
        return _all(self.needs)


class _Parser:
    """Parser of the syntax of RE2 (github.com/google/re2/wiki/Syntax) by recursive descent.

    Attributes
    ----------
    at
        Position of the next character.
    is_caseless
        True if case is ignored in a part of the expression.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.at = 0
        self.is_caseless = False

    def alternatives(self, depth: int) -> TextNeed | None:
        """Read alternatives up to the end of the group."""
        if depth > _MOST_DEPTH:
            raise _UnknownSyntaxError
        branches = [self._concatenation(depth)]
        while self._pattern.startswith("|", self.at):
            self.at += 1
            branches.append(self._concatenation(depth))
        known = [branch for branch in branches if branch is not None]
        if len(known) < len(branches) or len(known) > _MOST_BRANCHES:
            return None
        return known[0] if len(known) == 1 else AnyText(tuple(known))

    def _concatenation(self, depth: int) -> TextNeed | None:
        sequence = _Sequence()
        while self.at < len(self._pattern) and self._pattern[self.at] not in "|)":
            self._item(sequence, depth)
        return sequence.need()

    def _item(self, sequence: _Sequence, depth: int) -> None:
        start = self._pattern[self.at]
        if start == "(":
            self._group(sequence, depth)
        elif start == "[":
            self.at = self._match(_CLASS).end()
            self._repeats()
            sequence.interrupt()
        elif start in "^$":
            self.at += 1  # no characters
            self._repeats()
        elif start in "*+?{":
            raise _UnknownSyntaxError
        else:
            self._character(sequence)

    def _group(self, sequence: _Sequence, depth: int) -> None:
        opened = self._match(_GROUP)
        self.at = opened.end()
        flags, end = opened[1] or "", opened[2]
        self.is_caseless |= "i" in flags.partition("-")[0]
        if end == ")":
            return
        need = self.alternatives(depth + 1)
        if not self._pattern.startswith(")", self.at):
            raise _UnknownSyntaxError
        self.at += 1
        least, _ = self._repeats()
        sequence.interrupt()
        if least and need is not None:
            sequence.needs.append(need)

    def _character(self, sequence: _Sequence) -> None:
        """Read a character, a border or a class, with what says how often it occurs."""
        character = self._literal()
        least, most = self._repeats()
        if character == "":
            return
        if character is None or not least:
            sequence.interrupt()
            return
        sequence.run += character * min(least, _MOST_REPEATS)
        if most is None or most > least or least > _MOST_REPEATS:
            sequence.interrupt()
            sequence.run = character * min(least, _MOST_REPEATS)  # what follows is next to the last ones

    def _literal(self) -> str | None:
        """Return the next character; an empty text for borders, None for classes."""
        character = self._pattern[self.at]
        self.at += 1
        if character == ".":
            return None
        return character if character != "\\" else self._escaped()

    def _escaped(self) -> str | None:
        character = self._pattern[self.at : self.at + 1]
        if character in _CLASS_ESCAPES or character in _BORDERS:
            self.at += 1
            return None if character in _CLASS_ESCAPES else ""
        if found := _HEXADECIMAL.match(self._pattern, self.at):
            self.at = found.end()
            number = int(found[1] or found[2], 16)
            if number > 0x10FFFF or 0xD800 <= number < 0xE000:
                raise _UnknownSyntaxError
            return chr(number)
        if found := _PROPERTY.match(self._pattern, self.at):
            self.at = found.end()
            return None
        if not character or (character.isalnum() and character not in _CONTROLS) or not character.isascii():
            raise _UnknownSyntaxError
        self.at += 1
        return _CONTROLS.get(character, character)

    def _repeats(self) -> tuple[int, int | None]:
        """Read how often something occurs: at least and at most, None for no limit."""
        found = _REPEAT.match(self._pattern, self.at)
        if found is None:
            return 1, 1
        self.at = found.end()
        if _REPEAT.match(self._pattern, self.at):
            raise _UnknownSyntaxError  # repetitions of repetitions
        sign = found[0][0]
        if sign != "{":
            return (1 if sign == "+" else 0), (1 if sign == "?" else None)
        least = int(found[1])
        if found[2] is None:
            return least, least
        return least, int(found[2][1:]) if len(found[2]) > 1 else None

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._pattern, self.at)
        if found is None:
            raise _UnknownSyntaxError
        return found


def _all(needs: list[TextNeed]) -> TextNeed | None:
    if len(needs) < 2:
        return needs[0] if needs else None
    return AllTexts(tuple(needs))


def _plain(need: TextNeed) -> TextNeed | None:
    """Return the need for ASCII letters and digits alone, whose case variants are known; None if nothing is left."""
    if isinstance(need, Text):
        return _all(list(plain_runs(need.content)))
    parts = [_plain(part) for part in need.parts]
    known = [part for part in parts if part is not None]
    if isinstance(need, AllTexts):
        return _all(known)
    return AnyText(tuple(known)) if len(known) == len(parts) else None
