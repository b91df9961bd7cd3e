"""UPDATE, DELETE and MERGE."""

from __future__ import annotations

from typing import Any

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.spark.changes.merge import delete, merge_into, update
from lance_dataset.spark.statements.cursor import Cursor
from lance_dataset.spark.statements.target import Action, Session, counted, named_target

__all__ = ["parse_delete", "parse_merge", "parse_update"]


def parse_update(cursor: Cursor, session: Session) -> Action:
    """``UPDATE table SET column = expression, ... [WHERE condition]``."""
    target = named_target(cursor, session)
    cursor.expect("SET")
    assignments: dict[str, str] = {}
    while True:
        column = cursor.name("a column")
        cursor.expect("=")
        assignments[column] = cursor.expression("an expression", ",", "WHERE")
        if not cursor.accept(","):
            break
    where = cursor.expression("a condition") if cursor.accept("WHERE") else None
    cursor.end()
    return lambda: counted(
        {"num_updated_rows": update(target.uri, assignments, where, storage_options=target.settings)}
    )


def parse_delete(cursor: Cursor, session: Session) -> Action:
    """``DELETE FROM table [WHERE condition]``."""
    target = named_target(cursor, session)
    where = cursor.expression("a condition") if cursor.accept("WHERE") else "true"
    cursor.end()
    return lambda: counted({"num_deleted_rows": delete(target.uri, where, storage_options=target.settings)})


def parse_merge(cursor: Cursor, session: Session) -> Action:
    """``MERGE INTO table [AS t] USING view | (query) [AS s] ON t.key = s.key [AND ...] WHEN ...``."""
    target = named_target(cursor, session)
    target_alias = _alias(cursor) or "target"
    cursor.expect("USING")
    if cursor.accept("("):
        query = cursor.expression("a query")
        cursor.expect(")")
        source_name = ""
    else:
        source_name, query = cursor.name("a view, or a query in parentheses"), ""
    source_alias = _alias(cursor) or source_name or "source"
    cursor.expect("ON")
    aliases = {target_alias.lower(): "target", source_alias.lower(): "source"}
    keys = [_key(cursor, aliases)]
    while cursor.accept("AND"):
        keys.append(_key(cursor, aliases))
    actions: dict[str, Any] = {"when_matched": "ignore", "when_not_matched": "ignore"}
    if cursor.peek() is None:
        raise cursor.error("expected WHEN MATCHED or WHEN NOT MATCHED")
    while cursor.accept("WHEN"):
        _clause(cursor, aliases, actions)
    cursor.end()

    def run() -> Any:
        frame = session.spark.sql(query) if query else session.spark.table(source_name)
        return counted(merge_into(frame, target.uri, keys, storage_options=target.settings, **actions))

    return run


def _alias(cursor: Cursor) -> str:
    if cursor.accept("AS"):
        return cursor.name("an alias")
    token = cursor.peek()
    if token is not None and token.kind == "word" and token.text.upper() not in ("USING", "ON"):
        return cursor.name("an alias")
    return ""


def _key(cursor: Cursor, aliases: dict[str, str]) -> str:
    sides = [_side(cursor, aliases)]
    cursor.expect("=")
    sides.append(_side(cursor, aliases))
    if {side for side, _ in sides} != {"source", "target"} or sides[0][1] != sides[1][1]:
        raise UnsupportedError(
            "MERGE compares columns of the same name, such as t.id = s.id; rename the key in the source: "
            "USING (SELECT key AS id, ... FROM ...) AS s"
        )
    return sides[0][1]


def _side(cursor: Cursor, aliases: dict[str, str]) -> tuple[str, str]:
    alias, _, column = cursor.name("a key such as t.id = s.id").partition(".")
    if alias.lower() not in aliases or not column:
        raise InvalidInputError(f"{alias!r} is neither the table nor the source of the MERGE: {', '.join(aliases)}")
    return aliases[alias.lower()], column


def _clause(cursor: Cursor, aliases: dict[str, str], actions: dict[str, Any]) -> None:
    if cursor.accept("MATCHED"):
        condition = _condition(cursor, aliases)
        cursor.expect("THEN")
        if cursor.accept("DELETE"):
            actions["when_matched"] = "delete"
        else:
            cursor.expect("UPDATE", "SET", "*")
            actions["when_matched"] = "update"
        if condition is not None:
            actions["when_matched_condition"] = condition
        return
    cursor.expect("NOT", "MATCHED")
    if cursor.accept("BY", "SOURCE"):
        condition = _condition(cursor, aliases)
        cursor.expect("THEN", "DELETE")
        actions["when_not_matched_by_source"] = "delete"
        if condition is not None:
            actions["by_source_condition"] = condition.replace("target.", "")
        return
    cursor.accept("BY", "TARGET")
    cursor.expect("THEN", "INSERT", "*")
    actions["when_not_matched"] = "insert"


def _condition(cursor: Cursor, aliases: dict[str, str]) -> str | None:
    """Return a condition with the names that merges know: ``source.column`` and ``target.column``."""
    if not cursor.accept("AND"):
        return None
    first = cursor.position
    cursor.expression("a condition", "THEN")
    parts, last = [], cursor.tokens[first].start
    for position in range(first, cursor.position):
        token = cursor.tokens[position]
        following = cursor.tokens[position + 1] if position + 1 < len(cursor.tokens) else None
        known = aliases.get(token.value.lower()) if token.kind in ("word", "quoted") else None
        if known and following is not None and following.text == ".":
            parts += [cursor.statement[last : token.start], known]
            last = token.stop
    return "".join([*parts, cursor.statement[last : cursor.tokens[cursor.position - 1].stop]])
