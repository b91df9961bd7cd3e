"""Special forms of the grammar: CASE, intervals, and functions whose arguments are separated by words.

Most of them are SQL that the reference rejects. They have no other meaning in the dialect, so filters that the
reference accepts are not affected.
"""

from __future__ import annotations

from abc import abstractmethod

from lance_dataset.errors import FilterError
from lance_dataset.expr.interval_text import INTERVAL_UNITS, parse_interval
from lance_dataset.expr.lexer import Token, TokenKind
from lance_dataset.expr.tree import Call, Case, Comparison, Expression, Literal

__all__ = ["IN_STRENGTH", "SpecialForms"]

#: Precedence of IN and the comparisons, before which POSITION(a IN b) has to stop.
IN_STRENGTH = 20
_TRIM_SIDES = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}


class SpecialForms:
    """Parsing rules for special forms."""

    text: str

    @abstractmethod
    def peek(self, offset: int = 1) -> Token:
        """Return a token ahead."""

    @abstractmethod
    def advance(self) -> Token:
        """Consume and return the current token."""

    @abstractmethod
    def accept(self, operator: str) -> bool:
        """Consume an operator if it is there."""

    @abstractmethod
    def expect(self, operator: str) -> None:
        """Consume an operator that must be there."""

    @abstractmethod
    def accept_keyword(self, *keywords: str) -> bool:
        """Consume keywords if they are there."""

    @abstractmethod
    def expect_keyword(self, keyword: str) -> None:
        """Consume a keyword that must be there."""

    @abstractmethod
    def found(self) -> str:
        """Describe the current token."""

    @abstractmethod
    def error(self, message: str, token: Token | None = None) -> FilterError:
        """Return an error at a token."""

    @abstractmethod
    def expression(self, precedence: int) -> Expression:
        """Parse an expression of operators stronger than `precedence`."""

    @abstractmethod
    def expressions(self, closing: str) -> tuple[Expression, ...]:
        """Parse comma-separated expressions up to a bracket."""

    def case(self, token: Token) -> Expression:
        """Parse ``CASE [operand] WHEN ... THEN ... [ELSE ...] END`` after CASE."""
        operand = None if self.peek(0).keyword == "WHEN" else self.expression(0)
        conditions: list[Expression] = []
        results: list[Expression] = []
        while self.peek(0).keyword == "WHEN":
            when = self.advance()
            condition = self.expression(0)
            if operand is not None:
                condition = Comparison("=", operand, condition, position=when.position)
            conditions.append(condition)
            self.expect_keyword("THEN")
            results.append(self.expression(0))
        if not conditions:
            raise self.error(f"Expected WHEN, found {self.found()}")
        otherwise = self.expression(0) if self.accept_keyword("ELSE") else None
        self.expect_keyword("END")
        return Case(tuple(conditions), tuple(results), otherwise, position=token.position)

    def interval(self, token: Token) -> Expression:
        """Parse an interval literal, starting at INTERVAL."""
        self.advance()
        negative = self.accept("-")
        value = self.advance()
        text = ("-" if negative else "") + str(value.value)
        if self.peek(0).keyword in INTERVAL_UNITS:
            text += " " + self.advance().text
        parsed = parse_interval(text)
        if parsed is None:
            raise self.error("Expected an interval such as '1 day', '15 minutes' or '1 month 2 days'", value)
        return Literal(parsed, position=token.position)

    def special_call(self, token: Token) -> Expression | None:
        """Parse a call with arguments separated by words, after the opening bracket; None for an ordinary call."""
        form = _FORMS.get(token.keyword)
        return None if form is None else form(self, token)

    def _case_of_arguments(self, token: Token, first: Expression) -> Expression:
        """Parse the rest of an ordinary call whose first argument is already parsed."""
        rest = self.expressions(")") if self.accept(",") else ()
        if not rest:
            self.expect(")")
        return Call(token.text, (first, *rest), position=token.position)

    def _substring(self, token: Token) -> Expression | None:
        if self.accept(")"):
            return Call(token.text, (), position=token.position)
        value = self.expression(0)
        if not self.accept_keyword("FROM"):
            if not self.accept_keyword("FOR"):
                return self._case_of_arguments(token, value)
            length = self.expression(0)
            self.expect(")")
            return Call("substr", (value, Literal(1, position=token.position), length), position=token.position)
        arguments = [value, self.expression(0)]
        if self.accept_keyword("FOR"):
            arguments.append(self.expression(0))
        self.expect(")")
        return Call("substr", tuple(arguments), position=token.position)

    def _trim(self, token: Token) -> Expression | None:
        if self.accept(")"):
            return Call(token.text, (), position=token.position)
        side = next((side for side in _TRIM_SIDES if self.accept_keyword(side)), None)
        name = _TRIM_SIDES[side or "BOTH"]
        if side is not None and self.accept_keyword("FROM"):
            arguments: tuple[Expression, ...] = (self.expression(0),)
        else:
            first = self.expression(0)
            if side is not None or self.peek(0).keyword == "FROM":
                if not self.accept_keyword("FROM"):
                    raise self.error(f"Expected FROM, found {self.found()}")
                arguments = (self.expression(0), first)
            else:
                return self._case_of_arguments(token, first)
        self.expect(")")
        return Call(name, arguments, position=token.position)

    def _position(self, token: Token) -> Expression | None:
        if self.accept(")"):
            return Call(token.text, (), position=token.position)
        wanted = self.expression(IN_STRENGTH)
        if not self.accept_keyword("IN"):
            return self._case_of_arguments(token, wanted)
        value = self.expression(0)
        self.expect(")")
        return Call("strpos", (value, wanted), position=token.position)

    def _extract(self, token: Token) -> Expression | None:
        unit = self.peek(0)
        if unit.kind not in (TokenKind.NAME, TokenKind.STRING) or self.peek().keyword != "FROM":
            return None
        self.advance()
        self.advance()
        value = self.expression(0)
        self.expect(")")
        part = Literal(str(unit.value), position=unit.position)
        return Call("date_part", (part, value), position=token.position)

    def _overlay(self, token: Token) -> Expression | None:
        if self.accept(")"):
            return Call(token.text, (), position=token.position)
        value = self.expression(0)
        if not self.accept_keyword("PLACING"):
            return self._case_of_arguments(token, value)
        arguments = [value, self.expression(0)]
        self.expect_keyword("FROM")
        arguments.append(self.expression(0))
        if self.accept_keyword("FOR"):
            arguments.append(self.expression(0))
        self.expect(")")
        return Call("overlay", tuple(arguments), position=token.position)


_FORMS = {
    "SUBSTRING": SpecialForms._substring,
    "SUBSTR": SpecialForms._substring,
    "TRIM": SpecialForms._trim,
    "POSITION": SpecialForms._position,
    "EXTRACT": SpecialForms._extract,
    "OVERLAY": SpecialForms._overlay,
}
