"""Statements that need no planner: columns and JSON functions of rows that meet simple conditions, or their number."""

from __future__ import annotations

import re

import pyarrow as pa

from lance_dataset.late_dataclass import dataclass

__all__ = ["PlainQuery", "plain_query"]

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+(?:\.\d+)?)|(?P<word>[A-Z_]\w*)|(?P<sign><=|>=|<>|!=|[=<>(),*;]))",
    re.IGNORECASE | re.ASCII,
)
_SIGNS = ("=", "!=", "<>", "<", "<=", ">", ">=")
_MAX_DIGITS = 18
#: Names that SQL takes for something else than a column.
_KEYWORDS = frozenset(
    (
        *(
            "all",
            "and",
            "any",
            "array",
            "as",
            "between",
            "case",
            "cast",
            "connect_by_root",
            "distinct",
            "exists",
            "extract",
            "from",
            "in",
            "is",
            "like",
            "or",
        ),
        *("false", "interval", "into", "lateral", "limit", "map", "match", "not", "null", "prior", "select", "some"),
        *("struct", "top", "true", "unnest", "user", "where", "with", "current_catalog", "current_date"),
        *("current_role", "current_schema", "current_time", "current_timestamp", "current_user", "localtime"),
        *("localtimestamp", "session_user", "system_user"),
    )
)
#: Functions of a JSON column, the number of their other arguments, and what the results can be compared with.
_FUNCTIONS = {
    "json_get": (1, None),
    "json_get_string": (1, pa.string()),
    "json_get_int": (1, pa.int64()),
    "json_get_float": (1, None),
    "json_get_bool": (1, None),
    "json_extract": (1, pa.string()),
    "json_exists": (1, pa.bool_()),
    "json_array_contains": (2, pa.bool_()),
    "json_array_length": (1, pa.int64()),
}


@dataclass(frozen=True)
class PlainQuery:
    """A statement that a scan answers.

    Attributes
    ----------
    columns
        Names and expressions of the columns; empty for the number of rows.
    limit
        Maximum number of rows; None for all.
    condition
        What the rows must meet; None for nothing.
    name
        Name of the number of rows.
    """

    columns: dict[str, str]
    limit: int | None
    condition: str | None = None
    name: str = "count(*)"

    @property
    def has_calls(self) -> bool:
        """Return whether there are columns that are computed."""
        return any(expression != _quoted(name) for name, expression in self.columns.items())


def plain_query(sql: str, table: str, schema: pa.Schema) -> PlainQuery | None:
    """Return what a statement asks for; None if it has to be planned, or is an error.

    Parameters
    ----------
    sql
        The statement.
    table
        Name of the only table.
    schema
        Columns of the table.
    """
    tokens = _tokens(sql)
    if tokens is None:
        return None
    try:
        return _Statement(tokens, table, schema).query()
    except _OtherStatementError:
        return None


class _OtherStatementError(Exception):
    """The statement has to be planned."""


def _tokens(sql: str) -> list[tuple[str, str]] | None:
    """Split a statement into kinds and texts of its words; None if there are others."""
    found, at = [], 0
    end = len(sql.rstrip())
    while at < end:
        match = _TOKEN.match(sql, at)
        if match is None or match.lastgroup is None:
            return None
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


def _quoted(name: str) -> str:
    return f"`{name}`"


class _Statement:
    """Reader of the words of a statement."""

    def __init__(self, tokens: list[tuple[str, str]], table: str, schema: pa.Schema) -> None:
        self.tokens = tokens
        self.table = table
        self.schema = schema
        self.at = 0

    def query(self) -> PlainQuery:
        self.need("select")
        counted = self.counted()
        columns = {} if counted is not None else self.columns()
        self.need("from")
        self.check(self.word() == self.table)
        condition = self.conditions() if self.taken("where") else None
        limit = self.limit() if self.taken("limit") else None
        self.taken(";")
        self.check(self.at == len(self.tokens))
        return PlainQuery(columns, limit, condition, counted or "count(*)")

    # -- words

    def check(self, is_plain: bool) -> None:
        if not is_plain:
            raise _OtherStatementError

    def next(self, kind: str) -> str | None:
        """Take a word of a kind."""
        if self.at == len(self.tokens) or self.tokens[self.at][0] != kind:
            return None
        self.at += 1
        return self.tokens[self.at - 1][1]

    def taken(self, *words: str) -> bool:
        """Take some words if they are the next."""
        following = [text.lower() for _, text in self.tokens[self.at : self.at + len(words)]]
        if following != list(words):
            return False
        self.at += len(words)
        return True

    def need(self, *words: str) -> None:
        self.check(self.taken(*words))

    def word(self) -> str:
        found = self.next("word")
        if found is None:
            raise _OtherStatementError
        return found.lower()

    def name(self) -> str:
        """Take a name that is not a keyword."""
        found = self.word()
        self.check(found not in _KEYWORDS)
        return found

    # -- columns

    def counted(self) -> str | None:
        """Take ``count(*)``, and return its name."""
        if not self.taken("count", "(", "*", ")"):
            return None
        return self.name() if self.taken("as") else "count(*)"

    def columns(self) -> dict[str, str]:
        if self.taken("*"):
            self.check(bool(self.schema.names))
            return {name: _quoted(name) for name in self.schema.names}
        found: dict[str, str] = {}
        while True:
            name, expression, _ = self.value()
            if expression != _quoted(name) and self.taken("as"):
                name = self.name()
            self.check(name not in found)
            found[name] = expression
            if not self.taken(","):
                return found

    def value(self) -> tuple[str, str, pa.DataType | None]:
        """Take a column or the call of a function: its name, expression, and the type to compare it with."""
        name = self.name()
        if name in _FUNCTIONS and self.taken("("):
            return self.call(name)
        self.check(self.schema.names.count(name) == 1)
        return name, _quoted(name), self.compared_type(name)

    def call(self, function: str) -> tuple[str, str, pa.DataType | None]:
        count, result = _FUNCTIONS[function]
        column = self.name()
        self.check(self.schema.names.count(column) == 1 and isinstance(self.schema.field(column).type, pa.JsonType))
        texts = []
        for _ in range(count):
            self.need(",")
            texts.append(self.text())
        self.need(")")
        shown = "".join(f',Utf8("{text[1:-1].replace(_TWO_QUOTES, _QUOTE)}")' for text in texts)
        name = f"{function}({self.table}.{column}{shown})"
        return name, f"{function}({', '.join([_quoted(column), *texts])})", result

    def compared_type(self, name: str) -> pa.DataType | None:
        """Return the type of a column if the scan compares it as the planner does."""
        field = self.schema.field(name)
        if pa.types.is_integer(field.type) and field.type != pa.uint64():
            return field.type
        is_text = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        return pa.string() if is_text and not field.metadata else None

    # -- conditions

    def conditions(self) -> str:
        found = [self.condition()]
        while self.taken("and"):
            found.append(self.condition())
        return " AND ".join(found)

    def condition(self) -> str:
        _, expression, kind = self.value()
        if self.taken("is", "null"):
            return f"{expression} IS NULL"
        if self.taken("is", "not", "null"):
            return f"{expression} IS NOT NULL"
        self.check(kind is not None)
        if kind == pa.bool_():
            return expression
        sign = self.next("sign") or ""
        self.check(sign in _SIGNS)
        return f"{expression} {sign} {self.text() if kind == pa.string() else self.integer(kind)}"

    def text(self) -> str:
        found = self.next("text")
        if found is None:
            raise _OtherStatementError
        return found

    def integer(self, kind: pa.DataType) -> str:
        """Take an integer that a type has."""
        found = self.next("number")
        if found is None or len(found) > _MAX_DIGITS or "." in found:
            raise _OtherStatementError
        bits = kind.bit_width - pa.types.is_signed_integer(kind)
        lowest = -(1 << bits) if pa.types.is_signed_integer(kind) else 0
        self.check(lowest <= int(found) < 1 << bits)
        return found

    def limit(self) -> int:
        found = self.next("number")
        if found is None or not found.isdigit() or len(found) > _MAX_DIGITS or int(found) == 0:
            raise _OtherStatementError
        return int(found)


_QUOTE, _TWO_QUOTES = "'", "''"
