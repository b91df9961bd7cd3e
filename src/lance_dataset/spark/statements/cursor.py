"""Reading a statement word by word; errors show the place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from lance_dataset.errors import InvalidInputError

__all__ = ["Cursor", "Token"]

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*)
      | (?P<string>'(?:[^']|'')*')
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<word>[^\W\d]\w*)
      | (?P<symbol>\S)""",
    re.VERBOSE,
)
_UNCLOSED = "'`"


@dataclass(frozen=True)
class Token:
    """A word, name, number, text or symbol, and where it is in the statement."""

    kind: str
    text: str
    start: int
    stop: int

    @property
    def value(self) -> str:
        """The text without its quotes."""
        if self.kind in ("string", "quoted"):
            quote = self.text[0]
            return self.text[1:-1].replace(quote * 2, quote)
        return self.text


class Cursor:
    """A position in a statement.

    Parameters
    ----------
    statement
        Text of one statement; a semicolon at its end is ignored.

    Raises
    ------
    InvalidInputError
        A text or quoted name does not end.
    """

    def __init__(self, statement: str) -> None:
        self.statement = statement.strip().removesuffix(";").rstrip()
        self.tokens = []
        for match in _TOKEN.finditer(self.statement):
            kind = match.lastgroup or "symbol"
            if kind == "symbol" and match.group() in _UNCLOSED:
                raise InvalidInputError(f"{match.group()} is never closed in: {self.statement[match.start() :]}")
            if kind != "space":
                self.tokens.append(Token(kind, match.group(), match.start(), match.end()))
        self.position = 0

    def peek(self, ahead: int = 0) -> Token | None:
        """Return a token without moving, or None at the end."""
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def accept(self, *words: str) -> bool:
        """Move behind these words or symbols if they come next."""
        if not self._comes(words):
            return False
        self.position += len(words)
        return True

    def accept_any(self, *words: str) -> bool:
        """Move behind one of these words if it comes next."""
        return any(self.accept(word) for word in words)

    def _comes(self, words: tuple[str, ...]) -> bool:
        for ahead, word in enumerate(words):
            token = self.peek(ahead)
            if token is None or token.kind in ("string", "quoted") or token.text.upper() != word:
                return False
        return True

    def expect(self, *words: str) -> None:
        """Move behind these words; raise if they do not come next."""
        if not self.accept(*words):
            raise self.error(f"expected {' '.join(words)}")

    def name(self, what: str) -> str:
        """Return a name, which may be quoted with back-ticks and have dots."""
        parts = [self._part(what)]
        while self.accept("."):
            parts.append(self._part(what))
        return ".".join(parts)

    def _part(self, what: str) -> str:
        token = self.peek()
        if token is None or token.kind not in ("word", "quoted"):
            raise self.error(f"expected {what}")
        self.position += 1
        return token.value

    def names(self, what: str) -> list[str]:
        """Return names separated by commas, in parentheses or not."""
        inside = self.accept("(")
        found = [self.name(what)]
        while self.accept(","):
            found.append(self.name(what))
        if inside:
            self.expect(")")
        return found

    def whole_number(self, what: str) -> int:
        """Return a number."""
        token = self.peek()
        if token is None or token.kind != "number" or not token.text.isdecimal():
            raise self.error(f"expected {what}")
        self.position += 1
        return int(token.text)

    def text(self, what: str) -> str:
        """Return a text in single quotes."""
        token = self.peek()
        if token is None or token.kind != "string":
            raise self.error(f"expected {what} in single quotes")
        self.position += 1
        return token.value

    def options(self) -> dict[str, Any]:
        """Return ``WITH (name = value, ...)`` if it comes next."""
        found: dict[str, Any] = {}
        if not self.accept_any("WITH", "OPTIONS"):
            return found
        self.expect("(")
        while True:
            name = self.name("the name of an option")
            self.expect("=")
            found[name] = self._literal()
            if not self.accept(","):
                break
        self.expect(")")
        return found

    def _literal(self) -> Any:
        negative = self.accept("-")
        token = self.peek()
        if token is None:
            raise self.error("expected a value")
        self.position += 1
        if token.kind == "number":
            value = float(token.text) if set(token.text) & set(".eE") else int(token.text)
            return -value if negative else value
        if token.kind == "string" and not negative:
            return token.value
        if token.kind == "word" and token.text.lower() in ("true", "false") and not negative:
            return token.text.lower() == "true"
        self.position -= 1
        raise self.error("expected a number, a text in single quotes, true or false")

    def expression(self, what: str, *ends: str) -> str:
        """Return the text up to one of these words or symbols outside of parentheses, or to the end."""
        first, depth = self.position, 0
        while (token := self.peek()) is not None:
            plain = token.kind in ("word", "symbol")
            if depth == 0 and plain and token.text.upper() in ends:
                break
            if plain:
                depth += (token.text in "([") - (token.text in ")]")
            if depth < 0:
                break
            self.position += 1
        if self.position == first:
            raise self.error(f"expected {what}")
        return self.statement[self.tokens[first].start : self.tokens[self.position - 1].stop]

    def end(self) -> None:
        """Raise if there is more."""
        if self.peek() is not None:
            raise self.error("expected the end")

    def error(self, message: str) -> InvalidInputError:
        """Return an error that shows the place."""
        token = self.peek()
        found = f"found {token.text!r}" if token else "the statement ends"
        position = token.start if token else len(self.statement)
        return InvalidInputError(f"{message}, but {found} (at position {position}): {self.statement}")
