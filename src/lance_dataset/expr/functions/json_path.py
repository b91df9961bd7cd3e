"""JSONPath in the dialect of the JSON functions: parse paths, and find values in documents.

``$.name``, ``$."any name"``, ``$["any name"]``, ``$:name``, ``.*``, ``[0]``, ``[last - 1]``, ``[0, 2 to last]``,
``[*]``, ``.**``, ``.**{1 to 2}``, and filters: ``? (@.price > 10 && exists(@.tags))``. The ``$`` may be left out. A
path may also be one comparison, such as ``$.price > 10``; its value is a boolean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NoReturn

import pyarrow as pa

from lance_dataset.expr.functions.json_conditions import (
    Comparison,
    Constant,
    Existence,
    Junction,
    Operand,
    Operator,
    Step,
    Test,
    ValuesAt,
    followed,
)
from lance_dataset.expr.functions.json_values import Scalar, descendants, element, elements, member, members
from lance_dataset.file.jsonb import encode_document

__all__ = ["Every", "Walked", "find", "parse_path", "plain_steps", "walked_steps"]

_NAME = re.compile(r"\w+")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_INDEX = re.compile(r"(last)(?:\s*-\s*(\d+))?|(-?\d+)")
_DEPTHS = re.compile(r"\{\s*(\d+)(?:\s*to\s*(\d+|last))?\s*\}")
_OPERATOR = re.compile(r"==|!=|<>|<=|>=|<|>|starts\s+with\b")
_WORDS: dict[str, Scalar] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class Path:
    """A parsed path: either the steps to values, or a comparison."""

    steps: tuple[Step, ...]
    test: Test | None = None


def find(document: bytes, path: Path) -> list[bytes]:
    """Return the values of a document that a path leads to."""
    if path.test is not None:
        return [encode_document(json.dumps(path.test(document, document)))]
    return followed(document, document, path.steps)


@lru_cache(maxsize=256)
def parse_path(text: str) -> Path:
    """Parse a path.

    Raises
    ------
    pyarrow.ArrowInvalid
        The text is not a valid path.
    """
    try:
        return _Parser(text).whole()
    except RecursionError:
        raise pa.ArrowInvalid(f"the JSONPath {text[:60]!r} ... is nested too deeply") from None


# -- steps -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Key:
    """Step to the value under a key of an object."""

    name: str

    def __call__(self, value: bytes, root: bytes) -> Iterator[bytes]:
        found = member(value, self.name.encode())
        if found is not None:
            yield found


@dataclass(frozen=True)
class _Element:
    """Step to an element of an array."""

    place: int

    def __call__(self, value: bytes, root: bytes) -> Iterator[bytes]:
        found = element(value, self.place)
        if found is not None:
            yield found


def plain_steps(path: Path) -> tuple[str | int, ...] | None:
    """Return the keys and places that a path consists of; None if it has steps of other kinds, or is a comparison."""
    if path.test is not None:
        return None
    found: list[str | int] = []
    for step in path.steps:
        if isinstance(step, _Key):
            found.append(step.name)
        elif isinstance(step, _Element):
            found.append(step.place)
        else:
            return None
    return tuple(found)


class Every(Enum):
    """Steps to all values of a container."""

    ELEMENT = "[*]"
    MEMBER = ".*"


@dataclass(frozen=True)
class Where:
    """Step to a value itself if it meets a condition."""

    test: Test

    def __call__(self, value: bytes, root: bytes) -> Iterator[bytes]:
        if self.test(value, root):
            yield value


#: A step that compiled code can follow.
Walked = str | int | Every | Where


def walked_steps(steps: Sequence[Step]) -> tuple[Walked, ...] | None:
    """Return steps in the form in which compiled code follows them; None if there are others."""
    found: list[Walked] = []
    for step in steps:
        if isinstance(step, Where):
            found.append(step)
        elif isinstance(step, (_Key, _Element)):
            found.append(step.name if isinstance(step, _Key) else step.place)
        elif step is _all_elements or step is _all_members:
            found.append(Every.ELEMENT if step is _all_elements else Every.MEMBER)
        else:
            return None
    return tuple(found)


def _all_members(value: bytes, root: bytes) -> Iterator[bytes]:
    for _, found in members(value) or ():
        yield found


def _all_elements(value: bytes, root: bytes) -> Iterator[bytes]:
    """Yield the elements of an array; any other value is treated as an array of itself."""
    found = elements(value)
    yield from [value] if found is None else found


def _inside(low: int, high: int | None) -> Step:
    def step(value: bytes, root: bytes) -> Iterator[bytes]:
        for depth, found in descendants(value):
            if depth >= low and (high is None or depth <= high):
                yield found

    return step


#: A number that counts from the beginning, or back from the last element.
Index = tuple[bool, int]


def _at(ranges: tuple[tuple[Index, Index | None], ...]) -> Step:
    if len(ranges) == 1 and ranges[0][1] is None and not ranges[0][0][0]:
        return _Element(ranges[0][0][1])

    def step(value: bytes, root: bytes) -> Iterator[bytes]:
        items = elements(value)
        if items is None:
            return
        for first, last in ranges:
            begin = _place(first, len(items))
            end = begin if last is None else _place(last, len(items))
            yield from items[max(begin, 0) : max(end + 1, 0)]

    return step


def _place(index: Index, length: int) -> int:
    from_end, number = index
    return length - 1 - number if from_end else number


# -- parsing ---------------------------------------------------------------------------------------------------------


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def whole(self) -> Path:
        self.blanks()
        start = self.at
        rooted = self.taken("$")
        steps = self.steps(bare=not rooted)
        self.blanks()
        if self.at == len(self.text):
            return Path(steps)
        self.at = start
        test = self.alternatives()
        self.blanks()
        if self.at < len(self.text):
            self.fail()
        return Path((), test)

    def fail(self) -> NoReturn:
        raise pa.ArrowInvalid(f"invalid JSONPath {self.text!r}: unexpected text at character {self.at + 1}")

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t\n\r":
            self.at += 1

    def taken(self, word: str) -> bool:
        if not self.text.startswith(word, self.at):
            return False
        self.at += len(word)
        return True

    def matched(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def needed(self, word: str) -> None:
        self.blanks()
        if not self.taken(word):
            self.fail()

    # -- steps

    def steps(self, *, bare: bool = False) -> tuple[Step, ...]:
        """Parse all steps that follow; a bare path may begin with a name."""
        found: list[Step] = []
        first = self.matched(_NAME) if bare else None
        if first is not None:
            found.append(_Key(first.group()))
        while (step := self.step()) is not None:
            found.append(step)
        return tuple(found)

    def step(self) -> Step | None:
        start = self.at
        self.blanks()
        if self.taken("?"):
            self.needed("(")
            test = self.alternatives()
            self.needed(")")
            return Where(test)
        self.at = start
        if self.taken("["):
            return self.bracket()
        if self.taken(".**"):
            depths = self.matched(_DEPTHS)
            if depths is None:
                return _inside(0, None)
            low, high = int(depths[1]), depths[2]
            return _inside(low, low if high is None else None if high == "last" else int(high))
        if self.taken(".*"):
            return _all_members
        if self.taken(".") or self.taken(":"):
            return _Key(self.name())
        return None

    def name(self) -> str:
        quoted = self.matched(_QUOTED)
        if quoted is not None:
            return self.unquoted(quoted)
        match = self.matched(_NAME)
        if match is None:
            self.fail()
        return match.group()

    def unquoted(self, match: re.Match[str]) -> str:
        try:
            name = str(json.loads(match.group()))
            name.encode()  # fails for half a surrogate pair
            return name
        except ValueError:
            raise pa.ArrowInvalid(f"invalid string {match.group()} in the JSONPath {self.text!r}") from None

    def bracket(self) -> Step:
        self.blanks()
        quoted = self.matched(_QUOTED)
        if quoted is not None:
            self.needed("]")
            return _Key(self.unquoted(quoted))
        if self.taken("*"):
            self.needed("]")
            return _all_elements
        ranges = [self.range()]
        self.blanks()
        while self.taken(","):
            ranges.append(self.range())
            self.blanks()
        self.needed("]")
        return _at(tuple(ranges))

    def range(self) -> tuple[Index, Index | None]:
        first = self.index()
        start = self.at
        self.blanks()
        if not self.taken("to"):
            self.at = start
            return first, None
        return first, self.index()

    def index(self) -> Index:
        self.blanks()
        match = self.matched(_INDEX)
        if match is None:
            self.fail()
        return (True, int(match[2] or 0)) if match[1] else (False, int(match[3]))

    # -- tests

    def alternatives(self) -> Test:
        tests = [self.conjunction()]
        self.blanks()
        while self.taken("||"):
            tests.append(self.conjunction())
            self.blanks()
        return tests[0] if len(tests) == 1 else Junction(tuple(tests), is_and=False)

    def conjunction(self) -> Test:
        tests = [self.term()]
        self.blanks()
        while self.taken("&&"):
            tests.append(self.term())
            self.blanks()
        return tests[0] if len(tests) == 1 else Junction(tuple(tests), is_and=True)

    def term(self) -> Test:
        self.blanks()
        if self.taken("("):
            test = self.alternatives()
            self.needed(")")
            return test
        if self.taken("exists"):
            self.needed("(")
            self.blanks()
            start, steps = self.path()
            self.needed(")")
            return Existence(ValuesAt(start == "$", steps))
        left = self.operand()
        self.blanks()
        operator = self.matched(_OPERATOR)
        if operator is None:
            self.fail()
        word = operator.group()
        name = Operator.STARTS_WITH if word.startswith("starts") else Operator("!=" if word == "<>" else word)
        return Comparison(name, left, self.operand())

    def path(self) -> tuple[str, tuple[Step, ...]]:
        start = self.text[self.at : self.at + 1]
        if start not in ("@", "$") or not start:
            self.fail()
        self.at += 1
        return start, self.steps()

    def operand(self) -> Operand:
        self.blanks()
        if self.text[self.at : self.at + 1] in ("@", "$"):
            start, steps = self.path()
            return ValuesAt(start == "$", steps)
        return Constant(self.literal())

    def literal(self) -> Scalar:
        quoted = self.matched(_QUOTED)
        if quoted is not None:
            return self.unquoted(quoted)
        number = self.matched(_NUMBER)
        if number is not None:
            return float(number.group()) if set(number.group()) & set(".eE") else int(number.group())
        word = next((word for word in _WORDS if self.taken(word)), None)
        if word is None:
            self.fail()
        return _WORDS[word]
