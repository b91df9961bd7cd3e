"""Conditions on texts that indices of parts of texts can answer: what a text must contain."""

from __future__ import annotations

import re

from lance_dataset.errors import LanceError
from lance_dataset.expr.characters import ALPHANUMERIC, runs_of
from lance_dataset.expr.functions.regex_syntax import translated
from lance_dataset.expr.kernels import literal_pieces
from lance_dataset.expr.tree import Call, Constant, Expression, IsNull, IsTruth, Like
from lance_dataset.index.scalar.conditions import AllTexts, CaselessTextCondition, Text, TextCondition, TextNeed
from lance_dataset.scan.indexed.regex_needs import need_of_regex, plain_runs

__all__ = ["text_condition"]

_LITERAL = {"contains", "starts_with", "ends_with"}
_REGEX = {"regexp_like", "regexp_match"}
#: Pattern of LIKE that is true for all texts that contain its text.
_INFIX = re.compile(r"%+(?:[^%_\\]|\\[\s\S])+%+")

_Found = tuple[Expression, TextCondition | CaselessTextCondition]


def text_condition(node: Expression) -> _Found | None:
    """Return the operand of a condition and what it must contain wherever the condition is true; None if unknown."""
    if isinstance(node, Like) and not node.negated:
        return _like(node)
    if isinstance(node, IsNull) and node.negated and isinstance(node.operand, Call):
        node = node.operand  # a match that is not null
        return _regex(node) if node.name == "regexp_match" else None
    if isinstance(node, IsTruth) and node.truth and not node.negated:
        node = node.operand
    if not isinstance(node, Call):
        return None
    if node.name in _REGEX:
        return _regex(node)
    if node.name in _LITERAL and len(node.arguments) == 2:
        text = _text(node.arguments[1])
        return (node.arguments[0], TextCondition(Text(text), node.name == "contains")) if text else None
    if node.name == "contains_tokens":
        return _words(node)
    return None


def _words(node: Call) -> _Found | None:
    text = _text(node.arguments[1])
    need = None if text is None else _all([Text(word) for word in dict.fromkeys(runs_of(ALPHANUMERIC).findall(text))])
    return None if need is None else (node.arguments[0], TextCondition(need, False))


def _text(node: Expression) -> str | None:
    value = node.value.as_py() if isinstance(node, Constant) else None
    return value if isinstance(value, str) else None


def _like(node: Like) -> _Found | None:
    pattern = _text(node.pattern)
    if pattern is None:
        return None
    pieces = [text for text, _, _ in literal_pieces(pattern) if text]
    if node.ignore_case:
        need = _all([part for text in pieces for part in plain_runs(text)])
        return None if need is None else (node.operand, CaselessTextCondition(need))
    need = _all([Text(text) for text in pieces])
    return None if need is None else (node.operand, TextCondition(need, _INFIX.fullmatch(pattern) is not None))


def _all(parts: list[Text]) -> TextNeed | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    return AllTexts(tuple(parts))


def _regex(node: Call) -> _Found | None:
    pattern, flags = _text(node.arguments[1]), _text(node.arguments[2]) if len(node.arguments) > 2 else ""
    if pattern is None or flags is None:
        return None
    try:
        written = translated(pattern, flags).text
    except (LanceError, ValueError):  # the scan reports what is wrong
        return None
    found = need_of_regex(written)
    if found is None:
        return None
    if found.is_caseless:
        return node.arguments[0], CaselessTextCondition(found.need)
    return node.arguments[0], TextCondition(found.need, found.is_literal)
