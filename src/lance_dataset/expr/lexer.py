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

__all__ = ["Token", "TokenKind", "split_literals", "tokenize"]


class TokenKind(Enum):
    """Kind of a token; keywords are names, and the parser tells them apart."""

    NAME = "name"
    QUOTED_NAME = "quoted name"
    STRING = "string"
    INTEGER = "integer"
    DECIMAL = "number"
    BINARY = "binary literal"
    LITERALS = "list"
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
        Decoded literal value, those of a list, the unquoted name, or the operator.
    position
        0-based character position in the filter text.
    """

    kind: TokenKind
    text: str
    value: str | int | bytes | Decimal | tuple[int, ...] | tuple[str, ...]
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
#: What the list of an IN is searched for; its commas and digits are checked when it is converted.
_INTEGERS = re.compile(r"[-0-9,\s]+")
_STRINGS = re.compile(r"\s*'[^']*'(?:\s*,\s*'[^']*')+\s*")
_STRING = re.compile(r"'([^']*)'")
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
            if written == "(" and len(tokens) > 1 and tokens[-2].keyword == "IN":
                literals = _literals(text, position + 1)
                if literals is not None:
                    tokens.append(literals)
                    position += 1 + len(literals.text)
                    continue
        elif group == "comment":
            raise FilterError("Unterminated comment", text, position)
        elif group != "space":
            tokens.append(_token(match, text))
        position = match.end()
    tokens.append(Token(TokenKind.END, "", "", len(text)))
    return tokens


#: Lists in brackets, strings and integers: in most filters those that `tokenize` finds.
_LITERAL = re.compile(
    r"""
    (?<=\()\s*(?:-?\d[-\d\s]*,[-\d\s,]* | '[^']*'(?:\s*,\s*'[^']*')+\s*)(?=\))
  | '[^']*'
  | (?<![\w.])\d+(?![\w.])
    """,
    re.VERBOSE,
)


def split_literals(text: str) -> tuple[tuple[str, ...], list[Token]]:
    """Return a text without its integers, strings and lists, and these as tokens, by a quick look.

    Returns
    -------
    tuple of tuple and list
        What is between the literals, and a letter for the kind of each; and the literals. These are wrong if the text
        has comments, names in back-ticks and so on. If they are those of `tokenize`, they are right for all texts with
        the same rest, too.
    """
    rest: list[str] = []
    literals: list[Token] = []
    end = 0
    for match in _LITERAL.finditer(text):
        start, written = match.start(), match.group()
        if written[0] == "'" and "'" not in written[1:-1]:
            letter, literal = "s", Token(TokenKind.STRING, written, written[1:-1], start)
        elif written.isdigit() and len(written) <= _LONGEST_INTEGER:
            letter, literal = "i", Token(TokenKind.INTEGER, written, int(written), start)
        else:
            listed = _literals(text, start)
            if listed is None:
                continue
            letter, literal = "l", listed
        rest += (text[end:start], letter)
        literals.append(literal)
        end = match.end()
    rest.append(text[end:])
    return tuple(rest), literals


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


def _literals(text: str, start: int) -> Token | None:
    """Return the plain integers or strings up to the closing bracket as one token; None if there is something else."""
    found = _INTEGERS.match(text, start) or _STRINGS.match(text, start)
    if found is None or text[found.end() : found.end() + 1] != ")":
        return None
    written = found.group()
    if found.re is _STRINGS:
        return Token(TokenKind.LITERALS, written, tuple(_STRING.findall(written)), start)
    parts = written.split(",")
    try:
        integers = tuple(map(int, parts)) if len(parts) > 1 and len(max(parts, key=len)) <= _LONGEST_INTEGER else ()
    except ValueError:
        return None
    return Token(TokenKind.LITERALS, written, integers, start) if integers else None


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
