"""Precedence-climbing parser: filter text to an unbound expression tree."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa

from lance_dataset.errors import FilterError, nearest_name_hint
from lance_dataset.expr.interval_text import INTERVAL_UNITS
from lance_dataset.expr.lexer import Token, TokenKind, tokenize
from lance_dataset.expr.parse_forms import IN_STRENGTH, SpecialForms
from lance_dataset.expr.sql_types import SQL_TYPE_NAMES, sql_type
from lance_dataset.expr.tree import (
    And,
    Arithmetic,
    Call,
    Cast,
    Comparison,
    Concatenation,
    Element,
    Expression,
    FieldAccess,
    InList,
    IsDistinct,
    IsNull,
    IsTruth,
    Like,
    Literal,
    Literals,
    Name,
    Negate,
    Not,
    Or,
)

__all__ = ["parse"]

_OR, _AND, _NOT, _IS, _LIKE, _COMPARE, _SHIFT, _ADD, _MULTIPLY, _POSTFIX = (
    5,
    10,
    15,
    17,
    19,
    IN_STRENGTH,
    22,
    30,
    40,
    50,
)
_BINARY: dict[str, tuple[int, Callable[[Token, Expression, Expression], Expression]]] = {}
_COMPARISONS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_KEYWORD_PRECEDENCE = {
    "OR": _OR,
    "AND": _AND,
    "IS": _IS,
    "LIKE": _LIKE,
    "ILIKE": _LIKE,
    "IN": _COMPARE,
    "BETWEEN": _COMPARE,
}
_NEGATABLE = {"LIKE", "ILIKE", "IN", "BETWEEN"}
_UNSUPPORTED_OPERATORS = {"&", "|", "^", "~", "~*", "!~", "!~*", "!", "->", "->>", "<=>", "?", "$", ":", "@"}
#: What people mean who know these operators from other languages.
_INSTEAD = {"&&": "AND", "&": "AND", "|": "OR", "!": "NOT", "~": "NOT"}
_UNSUPPORTED_KEYWORDS = {
    "EXISTS",
    "SIMILAR",
    "RLIKE",
    "REGEXP",
    "OVER",
    "COLLATE",
    "SELECT",
    "DIV",
    "XOR",
}
_RESERVED = {"AND", "OR", "IS", "IN", "LIKE", "ILIKE", "BETWEEN", "WHERE", "FROM"}
_TYPED_LITERALS = {"DATE", "TIMESTAMP", "DATETIME", "DECIMAL", "NUMERIC"}
_BARE_CALLS = {"CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME"}
_MAX_DEPTH = 200
_NO_TUPLES = "Tuples are not supported in filters"


def parse(text: str, tokens: list[Token] | None = None) -> Expression:
    """Parse one expression.

    Parameters
    ----------
    text
        The expression.
    tokens
        Its tokens, if they are known.

    Raises
    ------
    FilterError
        The text is empty, malformed, or uses syntax outside the dialect; the error has the position.
    """
    return _Parser(text, tokenize(text) if tokens is None else tokens).parse()


_LITERALS = (TokenKind.INTEGER, TokenKind.STRING, TokenKind.DECIMAL, TokenKind.BINARY)


class _Parser(SpecialForms):
    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.index = 0
        self.depth = 0

    # -- tokens ------------------------------------------------------------------------------------------------------

    def peek(self, offset: int = 1) -> Token:
        place = self.index + offset
        return self.tokens[place] if place < len(self.tokens) else self.tokens[-1]

    def advance(self) -> Token:
        token = self.peek(0)
        if token.kind is not TokenKind.END:
            self.index += 1
        return token

    def accept(self, operator: str) -> bool:
        if self.peek(0).kind is TokenKind.OPERATOR and self.peek(0).value == operator:
            self.index += 1
            return True
        return False

    def expect(self, operator: str) -> None:
        if not self.accept(operator):
            raise self.error(f"Expected {operator!r}, found {self.found()}")

    def accept_keyword(self, *keywords: str) -> bool:
        """Consume all of `keywords` in sequence, or nothing."""
        if all(self.peek(offset).keyword == keyword for offset, keyword in enumerate(keywords)):
            self.index += len(keywords)
            return True
        return False

    def expect_keyword(self, keyword: str) -> None:
        if not self.accept_keyword(keyword):
            raise self.error(f"Expected {keyword}, found {self.found()}")

    def found(self) -> str:
        return self.peek(0).kind.value if self.peek(0).kind is TokenKind.END else repr(self.peek(0).text)

    def error(self, message: str, token: Token | None = None) -> FilterError:
        return FilterError(message, self.text, (token or self.peek(0)).position)

    # -- grammar -----------------------------------------------------------------------------------------------------

    def parse(self) -> Expression:
        if self.peek(0).kind is TokenKind.END:
            raise self.error("The filter is empty")
        tree = self.expression(0)
        if self.peek(0).value == ";" and self.peek().kind is TokenKind.END:
            self.advance()
        if self.peek(0).kind is not TokenKind.END:
            self.reject_unsupported()
            raise self.error(f"Expected an operator or the end of the filter, found {self.found()}")
        return tree

    def reject_unsupported(self) -> None:
        token = self.peek(0)
        if token.kind is TokenKind.OPERATOR and token.value in _UNSUPPORTED_OPERATORS:
            twice = self.peek(1).value == token.value and self.peek(1).kind is TokenKind.OPERATOR
            operator = token.text * 2 if twice and token.value == "&" else token.text
            instead = f"; write {_INSTEAD[operator]}" if operator in _INSTEAD else ""
            raise self.error(f"Operator {operator} is not supported in filters{instead}")
        if token.keyword in _UNSUPPORTED_KEYWORDS:
            raise self.error(f"{token.keyword} is not supported in filters")

    def expression(self, precedence: int) -> Expression:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(f"The filter is nested deeper than {_MAX_DEPTH} levels")
        left = self.prefix()
        while True:
            strength = self.next_precedence()
            if strength <= precedence:
                break
            left = self.infix(left, strength)
        self.depth -= 1
        return left

    def next_precedence(self) -> int:
        token = self.peek(0)
        if token.kind is TokenKind.OPERATOR:
            entry = _BINARY.get(str(token.value))
            if entry is not None:
                return entry[0]
            return _POSTFIX if token.value in ("::", "[", ".") else 0
        keyword = token.keyword
        if keyword == "NOT":
            return _KEYWORD_PRECEDENCE[self.peek().keyword] if self.peek().keyword in _NEGATABLE else 0
        return _KEYWORD_PRECEDENCE.get(keyword, 0)

    def infix(self, left: Expression, strength: int) -> Expression:
        token = self.advance()
        if token.kind is TokenKind.OPERATOR:
            if strength == _POSTFIX:
                return self.postfix(left, token)
            return _BINARY[str(token.value)][1](token, left, self.expression(strength))
        keyword = token.keyword
        if keyword in ("AND", "OR"):
            return self.logical(And if keyword == "AND" else Or, token, left, strength)
        if keyword == "IS":
            return self.is_test(left, token)
        negated = keyword == "NOT"
        if negated:
            keyword = self.advance().keyword
        if keyword == "IN":
            return self.in_list(left, token, negated)
        if keyword == "BETWEEN":
            return self.between(left, token, negated)
        pattern = self.like_escape(self.expression(strength))
        return Like(left, pattern, negated, keyword == "ILIKE", position=token.position)

    def logical(self, node: type[And] | type[Or], token: Token, left: Expression, strength: int) -> Expression:
        """Parse all operands of a chain, however long, into one node."""
        operands = [*left.operands] if isinstance(left, node) else [left]
        operands.append(self.expression(strength))
        while self.peek(0).keyword == token.keyword:
            token = self.advance()
            operands.append(self.expression(strength))
        return node(tuple(operands), position=token.position)

    def postfix(self, operand: Expression, token: Token) -> Expression:
        if token.value == "::":
            return Cast(operand, self.type_name(), position=token.position)
        if token.value == ".":
            name = self.peek(0)
            if name.kind not in (TokenKind.NAME, TokenKind.QUOTED_NAME):
                raise self.error(
                    "Expected a field name after '.'; odd names are quoted with back-ticks, as in st.`y-z`"
                )
            self.advance()
            return self.field(operand, str(name.value), token)
        index = self.expression(0)
        self.expect("]")
        if isinstance(index, Literal) and isinstance(index.value, str):
            return self.field(operand, index.value, token)
        return Element(operand, index, position=token.position)

    def field(self, operand: Expression, name: str, token: Token) -> Expression:
        if isinstance(operand, Name):
            if len(operand.parts) >= _MAX_DEPTH:
                raise self.error(f"The name has more than {_MAX_DEPTH} parts", token)
            return Name((*operand.parts, name), operand.quoted, position=operand.position)
        return FieldAccess(operand, name, position=token.position)

    def is_test(self, operand: Expression, token: Token) -> Expression:
        negated = self.accept_keyword("NOT")
        if self.accept_keyword("NULL"):
            return IsNull(operand, negated, position=token.position)
        for word, truth in (("TRUE", True), ("FALSE", False)):
            if self.accept_keyword(word):
                return IsTruth(operand, truth, negated, position=token.position)
        if self.accept_keyword("DISTINCT", "FROM"):
            return IsDistinct(operand, self.expression(_IS), negated, position=token.position)
        if self.accept_keyword("UNKNOWN"):  # a null boolean: NOT is null where its operand is, and takes only booleans
            return IsNull(Not(operand, position=token.position), negated, position=token.position)
        raise self.error(f"Expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS, found {self.found()}")

    def in_list(self, operand: Expression, token: Token, negated: bool) -> Expression:
        self.expect("(")
        if self.peek(0).keyword == "SELECT":
            raise self.error("Subqueries are not supported in filters")
        listed = self.peek(0)
        if isinstance(listed.value, tuple):
            self.advance()
            self.expect(")")
            literals = Literals(listed.value, listed.text, position=listed.position)
            return InList(operand, literals, negated, position=token.position)
        items = self.expressions(")")
        if not items:
            raise self.error("IN needs at least one value", token)
        return InList(operand, items, negated, position=token.position)

    def between(self, operand: Expression, token: Token, negated: bool) -> Expression:
        low = self.expression(_COMPARE)
        self.expect_keyword("AND")
        high = self.expression(_COMPARE)
        bounds = And(
            (
                Comparison(">=", operand, low, position=token.position),
                Comparison("<=", operand, high, position=token.position),
            ),
            position=token.position,
        )
        return Not(bounds, position=token.position) if negated else bounds

    def like_escape(self, pattern: Expression) -> Expression:
        """Return the pattern with a backslash as its escape character, whatever ESCAPE says."""
        if not self.accept_keyword("ESCAPE"):
            return pattern
        token = self.peek(0)
        if token.kind is not TokenKind.STRING or len(str(token.value)) > 1:
            raise self.error("The escape character of LIKE must be a string of one character")
        self.advance()
        escape = str(token.value)
        if escape == "\\":
            return pattern
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
            raise self.error("ESCAPE with a character other than a backslash needs a literal pattern", token)
        return Literal(_with_backslashes(pattern.value, escape), position=pattern.position)

    def expressions(self, closing: str) -> tuple[Expression, ...]:
        """Parse comma-separated expressions up to and including the closing bracket."""
        if self.accept(closing):
            return ()
        items = self.literals()
        items.append(self.expression(0))
        while self.accept(","):
            items.append(self.expression(0))
        self.expect(closing)
        return tuple(items)

    def literals(self) -> list[Expression]:
        """Parse the literals followed by a comma in one loop, because lists of them may be long."""
        tokens, index, comma = self.tokens, self.index, TokenKind.OPERATOR
        found: list[Expression] = []
        while tokens[index].kind in _LITERALS:
            kind, text, _, _ = tokens[index + 1]
            if kind is not comma or text != ",":
                break
            found.append(Literal(tokens[index].value, position=tokens[index].position))
            index += 2
        self.index = index
        return found

    # -- operands ----------------------------------------------------------------------------------------------------

    def prefix(self) -> Expression:
        token = self.peek(0)
        if token.kind in _LITERALS:
            self.advance()
            return Literal(token.value, position=token.position)
        if token.kind is TokenKind.OPERATOR:
            return self.prefix_operator()
        if token.kind is TokenKind.QUOTED_NAME:
            self.advance()
            return Name((str(token.value),), True, position=token.position)
        if token.kind is TokenKind.NAME:
            return self.word()
        if token.kind is TokenKind.LITERALS:
            raise self.error(_NO_TUPLES)
        raise self.error("Expected an expression, found the end of the filter")

    def prefix_operator(self) -> Expression:
        token = self.peek(0)
        if self.accept("("):
            inner = self.expression(0)
            if self.peek(0).value == "," and self.peek(0).kind is TokenKind.OPERATOR:
                raise self.error(_NO_TUPLES, token)
            self.expect(")")
            return inner
        if self.accept("["):
            return Call("make_array", self.expressions("]"), position=token.position)
        if self.accept("-"):
            operand = self.expression(_MULTIPLY)
            number = operand.value if isinstance(operand, Literal) else None
            if isinstance(number, (int, Decimal)) and not isinstance(number, bool):
                return Literal(-number, position=token.position)
            return Negate(operand, position=token.position)
        self.reject_unsupported()
        raise self.error(f"Expected an expression, found {self.found()}")

    def word(self) -> Expression:
        token, following = self.peek(0), self.peek()
        keyword = token.keyword
        if keyword in ("NULL", "TRUE", "FALSE"):
            self.advance()
            return Literal({"NULL": None, "TRUE": True, "FALSE": False}[keyword], position=token.position)
        if keyword == "NOT":
            self.advance()
            return Not(self.expression(_NOT), position=token.position)
        called = following.kind is TokenKind.OPERATOR and following.value == "("
        if keyword in ("CAST", "TRY_CAST") and called:
            return self.cast(token, lenient=keyword == "TRY_CAST")
        if keyword in _TYPED_LITERALS and (following.kind is TokenKind.STRING or called):
            typed = self.typed_literal(token)
            if typed is not None:
                return typed
        if keyword == "INTERVAL" and self.is_interval(following):
            return self.interval(token)
        if keyword == "CASE" and self.is_case(following):
            self.advance()
            return self.case(token)
        if keyword in _RESERVED or (keyword in _UNSUPPORTED_KEYWORDS and self.is_unsupported_use(following)):
            self.reject_unsupported()
            raise self.error(f"Expected an expression, found {self.found()}; a column of this name needs back-ticks")
        self.advance()
        if called:
            return self.call(token)
        if keyword in _BARE_CALLS:
            return Call(token.text, (), position=token.position)
        return Name((token.text,), position=token.position)

    def is_interval(self, following: Token) -> bool:
        """Return True if INTERVAL begins a literal instead of being the name of a column."""
        if following.kind is TokenKind.STRING:
            return True
        amount = self.peek(2 if following.value == "-" else 1)
        return (
            amount.kind is TokenKind.INTEGER and self.peek(3 if following.value == "-" else 2).keyword in INTERVAL_UNITS
        )

    @staticmethod
    def is_case(following: Token) -> bool:
        """Return True if CASE begins an expression: a column of this name is followed by an operator, or by nothing."""
        if following.kind is TokenKind.OPERATOR:
            return following.value in ("(", "-")
        return following.kind is not TokenKind.END and following.keyword not in _KEYWORD_PRECEDENCE

    @staticmethod
    def is_unsupported_use(following: Token) -> bool:
        return following.kind in (TokenKind.NAME, TokenKind.STRING, TokenKind.QUOTED_NAME) or following.value == "("

    def call(self, token: Token) -> Expression:
        self.expect("(")
        if self.peek(0).keyword == "DISTINCT" or self.peek(0).value == "*":
            raise self.error(f"Aggregates such as {token.text} are not supported in filters", token)
        special = self.special_call(token)
        return special or Call(token.text, self.expressions(")"), position=token.position)

    def cast(self, token: Token, *, lenient: bool) -> Expression:
        self.advance()
        self.expect("(")
        operand = self.expression(0)
        self.expect_keyword("AS")
        target = self.type_name()
        self.expect(")")
        return Cast(operand, target, lenient, position=token.position)

    def typed_literal(self, token: Token) -> Expression | None:
        """Parse ``date '2024-01-01'`` and similar literals; None if the word is a name or a function."""
        start = self.index
        offset = 1
        if self.peek().value == "(":
            while self.peek(offset).value != ")":
                if self.peek(offset).kind is TokenKind.END:
                    return None
                offset += 1
            offset += 1
        if self.peek(offset).kind is not TokenKind.STRING:
            return None
        self.index = start
        target = self.type_name()
        value = self.advance()
        return Cast(Literal(value.value, position=value.position), target, position=token.position)

    def type_name(self) -> pa.DataType:
        token = self.peek(0)
        if token.kind is not TokenKind.NAME:
            raise self.error(f"Expected a type name, found {self.found()}")
        self.advance()
        unsigned = self.accept_keyword("UNSIGNED")
        if token.keyword == "DOUBLE":
            self.accept_keyword("PRECISION")
        parameters = self.type_parameters()
        target = sql_type(token.keyword, parameters, unsigned=unsigned)
        if target is None:
            known = token.keyword in SQL_TYPE_NAMES
            hint = "; its parameters are wrong" if known else nearest_name_hint(token.text, SQL_TYPE_NAMES)
            raise self.error(f"Unsupported data type {token.text!r}{hint}", token)
        return target

    def type_parameters(self) -> tuple[int, ...]:
        if not self.accept("("):
            return ()
        parameters: list[int] = []
        while True:
            token = self.advance()
            if not isinstance(token.value, int):
                raise self.error("Expected a number as parameter of the type", token)
            parameters.append(token.value)
            if not self.accept(","):
                break
        self.expect(")")
        return tuple(parameters)


def _comparison(token: Token, left: Expression, right: Expression) -> Expression:
    return Comparison(_COMPARISONS[token.text], left, right, position=token.position)


def _arithmetic(token: Token, left: Expression, right: Expression) -> Expression:
    return Arithmetic(token.text, left, right, position=token.position)


def _concatenation(token: Token, left: Expression, right: Expression) -> Expression:
    return Concatenation(left, right, position=token.position)


_BINARY.update(dict.fromkeys(_COMPARISONS, (_COMPARE, _comparison)))
_BINARY.update(
    {"<<": (_SHIFT, _arithmetic), ">>": (_SHIFT, _arithmetic), "+": (_ADD, _arithmetic), "-": (_ADD, _arithmetic)}
)
_BINARY.update(dict.fromkeys("*/%", (_MULTIPLY, _arithmetic)))
_BINARY["||"] = (_MULTIPLY, _concatenation)


def _with_backslashes(pattern: str, escape: str) -> str:
    """Return a LIKE pattern that escapes with a backslash instead of `escape`, which may be empty for no escapes."""
    plain: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            following = next(characters, "")
            plain.append("\\" + following if following else "\\" + escape)
        else:
            plain.append("\\\\" if character == "\\" else character)
    return "".join(plain)
