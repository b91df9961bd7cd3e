"""Statements that need no planner: all rows of some columns, the first of them, or their number."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lance_dataset.late_dataclass import dataclass

__all__ = ["PlainQuery", "plain_query"]

_NAME = r"[A-Z_]\w*"
_STATEMENT = re.compile(
    rf"""
    \s* SELECT \s+
    (?: COUNT \s* \( \s* \* \s* \) (?: \s+ AS \s+ (?P<alias>{_NAME}) )?
      | (?P<columns> \* | {_NAME} (?: \s* , \s* {_NAME} )* ) )
    \s+ FROM \s+ (?P<table>{_NAME})
    (?: \s+ LIMIT \s+ (?P<limit>\d{{1,18}}) )?
    \s* ;? \s*
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
#: Names that SQL takes for something else than a column.
_KEYWORDS = frozenset(
    (
        *("all", "any", "array", "as", "case", "cast", "connect_by_root", "distinct", "exists", "extract", "from"),
        *("false", "interval", "into", "lateral", "limit", "map", "match", "not", "null", "prior", "select", "some"),
        *("struct", "top", "true", "unnest", "user", "where", "with", "current_catalog", "current_date"),
        *("current_role", "current_schema", "current_time", "current_timestamp", "current_user", "localtime"),
        *("localtimestamp", "session_user", "system_user"),
    )
)


@dataclass(frozen=True)
class PlainQuery:
    """A statement without conditions and expressions.

    Attributes
    ----------
    columns
        Names of the columns; empty for the number of rows.
    limit
        Maximum number of rows; None for all.
    name
        Name of the number of rows.
    """

    columns: tuple[str, ...]
    limit: int | None
    name: str = "count(*)"


def plain_query(sql: str, table: str, names: Sequence[str]) -> PlainQuery | None:
    """Return what a statement asks for; None if it has to be planned, or is an error.

    Parameters
    ----------
    sql
        The statement.
    table
        Name of the only table.
    names
        Columns of the table.
    """
    found = _STATEMENT.fullmatch(sql)
    if found is None or found["table"].lower() != table:
        return None
    limit = None if found["limit"] is None else int(found["limit"])
    if limit == 0:
        return None
    if found["columns"] is None:
        name = (found["alias"] or "count(*)").lower()
        return None if name in _KEYWORDS else PlainQuery((), limit, name)
    if found["columns"] == "*":
        return PlainQuery(tuple(names), limit) if names else None
    columns = tuple(column.strip().lower() for column in found["columns"].split(","))
    if len(set(columns)) < len(columns) or not _KEYWORDS.isdisjoint(columns) or not set(columns).issubset(names):
        return None
    return PlainQuery(columns, limit)
