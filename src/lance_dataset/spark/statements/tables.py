"""OPTIMIZE, VACUUM, VALIDATE, MAINTAIN, ANALYZE, ALTER TABLE, DESCRIBE HISTORY and RESTORE."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from lance_dataset.spark.changes.backfill import add_columns, add_columns_from
from lance_dataset.spark.changes.maintenance import compact
from lance_dataset.spark.changes.policy import maintain
from lance_dataset.spark.changes.statistics import column_statistics
from lance_dataset.spark.changes.upkeep import cleanup, validate
from lance_dataset.spark.statements.cursor import Cursor
from lance_dataset.spark.statements.indices import parse_create_index, parse_drop_index, parse_optimize_indices
from lance_dataset.spark.statements.references import create_branch_of, create_tag_of
from lance_dataset.spark.statements.target import Action, Session, Target, counted, done, named_target
from lance_dataset.spark.write_schema import created_schema

__all__ = [
    "parse_alter",
    "parse_analyze",
    "parse_history",
    "parse_maintain",
    "parse_optimize",
    "parse_restore",
    "parse_vacuum",
    "parse_validate",
]

_UNITS = {"HOURS": "hours", "DAYS": "days", "MINUTES": "minutes"}


def parse_optimize(cursor: Cursor, session: Session) -> Action:
    """``OPTIMIZE table [WITH (...)]``, or ``OPTIMIZE INDEX[ES]``."""
    if cursor.accept_any("INDEX", "INDEXES", "INDICES"):
        return parse_optimize_indices(cursor, session)
    target = named_target(cursor, session)
    options = cursor.options()
    cursor.end()
    return lambda: counted(compact(target.spark, target.uri, storage_options=target.settings, **options))


def parse_vacuum(cursor: Cursor, session: Session) -> Action:
    """``VACUUM table [RETAIN n HOURS | DAYS | MINUTES | VERSIONS] [WITH (...)]``."""
    target = named_target(cursor, session)
    arguments: dict[str, Any] = {}
    if cursor.accept("RETAIN"):
        number = cursor.whole_number("a number")
        if cursor.accept("VERSIONS"):
            arguments["retain_versions"] = number
        else:
            unit = next((_UNITS[word] for word in _UNITS if cursor.accept(word)), None)
            if unit is None:
                raise cursor.error("expected MINUTES, HOURS, DAYS or VERSIONS")
            arguments["older_than"] = dt.timedelta(**{unit: number})
    arguments.update(cursor.options())
    cursor.end()

    def run() -> pa.Table:
        stats = cleanup(target.spark, target.uri, storage_options=target.settings, **arguments)
        return counted({"bytes_removed": int(stats.bytes_removed), "old_versions": int(stats.old_versions)})

    return run


def parse_validate(cursor: Cursor, session: Session) -> Action:
    """``VALIDATE table [WITH (values = true, version = n)]``."""
    target = named_target(cursor, session)
    options = cursor.options()
    cursor.end()
    return lambda: counted(validate(target.spark, target.uri, storage_options=target.settings, **options))


def parse_maintain(cursor: Cursor, session: Session) -> Action:
    """``MAINTAIN table [DRY RUN]``."""
    target = named_target(cursor, session)
    dry_run = cursor.accept("DRY", "RUN")
    cursor.end()

    def run() -> pa.Table:
        report = maintain(target.spark, target.uri, dry_run=dry_run, storage_options=target.settings)
        rows: list[tuple[str, str, str, list[tuple[str, int]]]]
        rows = [(step.name, step.outcome, step.reason, list(step.counts)) for step in report.steps]
        if report.held_by is not None and not dry_run:
            rows = [("lease", "held", f"{report.held_by} is at work", [])]
        names = ("step", "outcome", "reason", "counts")
        kinds = (pa.string(), pa.string(), pa.string(), pa.map_(pa.string(), pa.int64()))
        columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
        return pa.table(dict(zip(names, columns, strict=True)))

    return run


def parse_analyze(cursor: Cursor, session: Session) -> Action:
    """``ANALYZE TABLE table COMPUTE STATISTICS FOR COLUMNS name, ... | FOR ALL COLUMNS [WHERE condition]``."""
    cursor.expect("TABLE")
    target = named_target(cursor, session)
    cursor.expect("COMPUTE", "STATISTICS", "FOR")
    names: list[str] | None = None
    if not cursor.accept("ALL", "COLUMNS"):
        cursor.expect("COLUMNS")
        names = cursor.names("a column")
    condition = cursor.expression("a condition") if cursor.accept("WHERE") else None
    cursor.end()

    def run() -> pa.Table:
        found = column_statistics(
            target.spark, target.uri, names, where=condition, storage_options=target.settings
        ).values()
        shown = {"column": pa.string(), "type": pa.string(), "rows": pa.int64(), "nulls": pa.int64()}
        shown |= {"nans": pa.int64(), "distinct": pa.int64(), "minimum": pa.string(), "maximum": pa.string()}
        shown |= {"mean": pa.float64(), "deviation": pa.float64()}
        return pa.table({name: pa.array([getattr(each, name) for each in found], kind) for name, kind in shown.items()})

    return run


def parse_history(cursor: Cursor, session: Session) -> Action:
    """``DESCRIBE HISTORY table``."""
    target = named_target(cursor, session)
    cursor.end()

    def run() -> pa.Table:
        dataset = target.open()
        rows = []
        for entry in dataset.versions():
            version = int(entry["version"])
            transaction = dataset.read_transaction(version)
            operation = type(transaction.operation).__name__ if transaction is not None else None
            rows.append((version, entry["timestamp"].astimezone(dt.timezone.utc), operation))
        return pa.table(
            {
                "version": pa.array([row[0] for row in rows], pa.int64()),
                "timestamp": pa.array([row[1] for row in rows], pa.timestamp("us", "UTC")),
                "operation": pa.array([row[2] for row in rows], pa.string()),
            }
        )

    return run


def parse_restore(cursor: Cursor, session: Session) -> Action:
    """``RESTORE [TABLE] table TO VERSION [AS OF] n | TAG name``."""
    cursor.accept("TABLE")
    target = named_target(cursor, session)
    cursor.expect("TO")
    reference: int | str
    if cursor.accept("TAG"):
        reference = cursor.name("a tag")
    else:
        cursor.expect("VERSION")
        cursor.accept("AS", "OF")
        reference = cursor.whole_number("a version number")
    cursor.end()

    def run() -> pa.Table:
        dataset = target.open().checkout_version(reference)
        dataset.restore()
        return done(int(dataset.version))

    return run


def parse_alter(cursor: Cursor, session: Session) -> Action:
    """``ALTER TABLE table ...``."""
    cursor.expect("TABLE")
    target = named_target(cursor, session)
    if cursor.accept("CREATE", "INDEX"):
        return parse_create_index(cursor, session, target)
    if cursor.accept("DROP", "INDEX"):
        return parse_drop_index(cursor, session, target)
    if cursor.accept("CREATE", "TAG"):
        return create_tag_of(cursor, target)
    if cursor.accept("CREATE", "BRANCH"):
        return create_branch_of(cursor, target)
    if cursor.accept("ADD"):
        return _add(cursor, session, target)
    if cursor.accept("DROP"):
        return _drop(cursor, target)
    if cursor.accept("RENAME"):
        return _rename(cursor, target)
    if cursor.accept_any("ALTER", "CHANGE"):
        return _change(cursor, target)
    raise cursor.error("expected ADD, DROP, RENAME or ALTER of a COLUMN, CREATE or DROP of an INDEX, or CREATE TAG")


def _add(cursor: Cursor, session: Session, target: Target) -> Action:
    """Read new columns: by type, by an expression, or from a view."""
    if not cursor.accept_any("COLUMN", "COLUMNS"):
        raise cursor.error("expected COLUMN")
    inside = cursor.accept("(")
    expressions: dict[str, str] = {}
    types: list[str] = []
    names: list[str] = []
    while True:
        name = cursor.name("a column")
        names.append(name)
        if cursor.accept("AS"):
            expressions[name] = cursor.expression("an expression", ",")
        elif (token := cursor.peek()) is not None and token.text != "," and token.text.upper() != "FROM":
            types.append(f"`{name}` {cursor.expression('a type', ',')}")
        if not cursor.accept(","):
            break
    if inside:
        cursor.expect(")")
    if cursor.accept("FROM"):
        return _add_from(cursor, session, target, names)
    cursor.end()
    if expressions and not types and len(expressions) == len(names):
        return lambda: done(add_columns(target.spark, target.uri, expressions, storage_options=target.settings))
    if types and not expressions and len(types) == len(names):
        return lambda: _with_nulls(target, ", ".join(types))
    raise cursor.error("expected a type for every column, or AS and an expression for every column, or FROM and a view")


def _with_nulls(target: Target, ddl: str) -> pa.Table:
    from pyspark.sql.types import StructType

    dataset = target.open()
    dataset.add_columns(created_schema(StructType.fromDDL(ddl)))
    return done(int(dataset.version))


def _add_from(cursor: Cursor, session: Session, target: Target, names: list[str]) -> Action:
    view = cursor.name("a view")
    cursor.expect("ON")
    key = cursor.name("a key column")
    cursor.end()
    return lambda: done(
        add_columns_from(
            session.spark.table(view).select(key, *names), target.uri, key, storage_options=target.settings
        )
    )


def _drop(cursor: Cursor, target: Target) -> Action:
    if not cursor.accept_any("COLUMN", "COLUMNS"):
        raise cursor.error("expected COLUMN or INDEX")
    names = cursor.names("a column")
    cursor.end()

    def run() -> pa.Table:
        dataset = target.open()
        dataset.drop_columns(names)
        return done(int(dataset.version))

    return run


def _rename(cursor: Cursor, target: Target) -> Action:
    cursor.expect("COLUMN")
    old = cursor.name("a column")
    cursor.expect("TO")
    new = cursor.name("a name")
    cursor.end()
    return lambda: _altered(target, {"path": old, "name": new})


def _change(cursor: Cursor, target: Target) -> Action:
    cursor.expect("COLUMN")
    column = cursor.name("a column")
    if cursor.accept("DROP", "NOT", "NULL"):
        change: dict[str, Any] = {"nullable": True}
    elif cursor.accept("SET", "NOT", "NULL"):
        change = {"nullable": False}
    else:
        cursor.accept("SET", "DATA")
        cursor.expect("TYPE")
        change = {"type": cursor.expression("a type")}
    cursor.end()

    def run() -> pa.Table:
        if "type" not in change:
            return _altered(target, {"path": column, **change})
        from pyspark.sql.types import StructType

        kind = created_schema(StructType.fromDDL(f"x {change['type']}")).field(0).type
        return _altered(target, {"path": column, "data_type": kind})

    return run


def _altered(target: Target, change: dict[str, Any]) -> pa.Table:
    dataset = target.open()
    dataset.alter_columns(change)
    return done(int(dataset.version))
