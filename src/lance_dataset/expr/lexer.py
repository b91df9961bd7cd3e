"""Lexer: filter text to tokens.

The dialect is small and differs from every stock SQL lexer in its quoting (double quotes make string literals,
back-ticks make identifiers), so it has a lexer of its own. Every token knows its position for error messages.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import NamedTuple

from lance_dataset.errors import FilterError

__all__ = ["Token", "TokenKind", "tokenize"]


class TokenKind(Enum):
    """Kind of a token; keywords are names, and the parser tells them apart."""

    NAME = "name"
    QUOTED_NAME = "quoted name"
    STRING = "string"
    INTEGER = "integer"
    DECIMAL = "number"
    BINARY = "binary literal"
    OPERATOR = "operator"
    END = "end of the filter"


class Token(NamedTuple):
    """One token.

    Attributes
    ----------
    kind
        Class of the token.
    text
        The token as written.
    value
        Decoded literal value, the unquoted name, or the operator.
    position
        0-based character position in the filter text.
    """

    kind: TokenKind
    text: str
    value: str | int | bytes | Decimal
    position: int

    @property
    def keyword(self) -> str:
        """Upper-case text of an unquoted name, else an empty string."""
        return self.text.upper() if self.kind is TokenKind.NAME else ""


_TOKEN = re.compile(
    r"""
    (?P<space>\s+ | --[^\n]* | /\*.*?\*/)
  | (?P<comment>/\*)
  | (?P<binary>[xX]'[^']*')
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<name>[^\W\d]\w*)
  | (?P<string>'(?:[^']|'')*' | "(?:[^"]|"")*")
  | (?P<quoted>`(?:[^`]|``)+`)
  | (?P<operator>!~\*|->>|<=>|\|\||::|==|!=|<>|<=|>=|<<|>>|->|~\*|!~|[-=<>+*/%()\[\],.;~&|^!?:@$])
    """,
    re.VERBOSE | re.DOTALL,
)
#: Longer digit strings do not fit any integer type.
_LONGEST_INTEGER = 100
_UNTERMINATED = {"'": "string literal", '"': "string literal", "`": "quoted name"}


def tokenize(text: str) -> list[Token]:
    """Split filter text into tokens, the last one of kind `TokenKind.END`.

    Raises
    ------
    FilterError
        The text has a character outside the dialect, an unterminated literal, or a malformed number.
    """
    tokens: list[Token] = []
    position, size, operator, next_match = 0, len(text), TokenKind.OPERATOR, _TOKEN.match
    while position < size:
        match = next_match(text, position)
        if match is None:
            raise _unexpected(text, position)
        group = match.lastgroup
        if group == "operator":
            written = match.group()
            tokens.append(Token(operator, written, written, position))
        elif group == "comment":
            raise FilterError("Unterminated comment", text, position)
        elif group != "space":
            tokens.append(_token(match, text))
        position = match.end()
    tokens.append(Token(TokenKind.END, "", "", len(text)))
    return tokens


def _unexpected(text: str, position: int) -> FilterError:
    character = text[position]
    if character in _UNTERMINATED:
        return FilterError(f"Unterminated {_UNTERMINATED[character]}", text, position)
    return FilterError(f"Unexpected character {character!r} in the filter", text, position)


def _token(match: re.Match[str], text: str) -> Token:
    written, position = match.group(), match.start()
    group = match.lastgroup
    if group == "name":
        return Token(TokenKind.NAME, written, written, position)
    if group == "quoted":
        return Token(TokenKind.QUOTED_NAME, written, written[1:-1].replace("``", "`"), position)
    if group == "string":
        quote = written[0]
        return Token(TokenKind.STRING, written, written[1:-1].replace(quote * 2, quote), position)
    if group == "binary":
        return Token(TokenKind.BINARY, written, _binary(written, text, position), position)
    return _number(written, text, position)


def _number(written: str, text: str, position: int) -> Token:
    end = position + len(written)
    if end < len(text) and (text[end].isalnum() or text[end] == "_"):
        raise FilterError("Malformed number, or a name that must be quoted with back-ticks", text, position)
    if written.isdigit() and len(written) <= _LONGEST_INTEGER:
        return Token(TokenKind.INTEGER, written, int(written), position)
    try:
        return Token(TokenKind.DECIMAL, written, Decimal(written), position)
    except InvalidOperation:
        raise FilterError("The exponent of the number is too large", text, position) from None


def _binary(written: str, text: str, position: int) -> bytes:
    try:
        return bytes.fromhex(written[2:-1])
    except ValueError:
        raise FilterError("A binary literal needs pairs of hexadecimal digits, as in X'6162'", text, position) from None
