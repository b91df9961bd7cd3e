"""CREATE, DROP, SHOW and OPTIMIZE of indices."""

from __future__ import annotations

import json

import pyarrow as pa

from lance_dataset.spark.changes.maintenance import create_index
from lance_dataset.spark.changes.upkeep import refresh_indices
from lance_dataset.spark.statements.cursor import Cursor
from lance_dataset.spark.statements.target import Action, Session, Target, done, named_target

__all__ = [
    "parse_create_index",
    "parse_drop_index",
    "parse_optimize_indices",
    "parse_refresh_indices",
    "parse_show_indices",
]


def parse_create_index(cursor: Cursor, session: Session, target: Target | None = None) -> Action:
    """``CREATE [OR REPLACE] INDEX name ON table USING kind (column) [WITH (...)]``, or within ALTER TABLE."""
    name = cursor.name("the name of the index")
    if target is None:
        cursor.expect("ON")
        target = named_target(cursor, session)
    cursor.expect("USING")
    kind = cursor.name("the kind of the index, such as BTREE")
    columns = cursor.names("a column")
    if len(columns) > 1:
        raise cursor.error("expected one column")
    options = cursor.options()
    cursor.end()
    place = target

    def run() -> pa.Table:
        settings = place.settings
        create_index(place.spark, place.uri, columns[0], kind.upper(), name, storage_options=settings, **options)
        return done(int(place.open().version))

    return run


def parse_drop_index(cursor: Cursor, session: Session, target: Target | None = None) -> Action:
    """``DROP INDEX name ON table``, or within ALTER TABLE."""
    name = cursor.name("the name of the index")
    if target is None:
        cursor.expect("ON")
        target = named_target(cursor, session)
    cursor.end()
    place = target

    def run() -> pa.Table:
        dataset = place.open()
        dataset.drop_index(name)
        return done(int(dataset.version))

    return run


def parse_show_indices(cursor: Cursor, session: Session) -> Action:
    """``SHOW INDEXES FROM table``."""
    if not cursor.accept_any("FROM", "IN", "ON"):
        raise cursor.error("expected FROM")
    target = named_target(cursor, session)
    cursor.end()

    def run() -> pa.Table:
        found = target.open().describe_indices()
        return pa.table(
            {
                "name": pa.array([index.name for index in found], pa.string()),
                "kind": pa.array([index.index_type for index in found], pa.string()),
                "columns": pa.array([list(index.field_names) for index in found], pa.list_(pa.string())),
                "segments": pa.array([len(index.segments) for index in found], pa.int64()),
                "indexed_rows": pa.array([index.num_rows_indexed for index in found], pa.int64()),
                "bytes": pa.array([index.total_size_bytes for index in found], pa.int64()),
                "details": pa.array([json.dumps(index.details, default=str) for index in found], pa.string()),
            }
        )

    return run


def parse_optimize_indices(cursor: Cursor, session: Session) -> Action:
    """``OPTIMIZE INDEX[ES] [name, ...] ON table [WITH (...)]``."""
    names = None if cursor.accept("ON") else cursor.names("the name of an index")
    if names is not None:
        cursor.expect("ON")
    target = named_target(cursor, session)
    options = cursor.options()
    cursor.end()

    def run() -> pa.Table:
        dataset = target.open()
        dataset.optimize.optimize_indices(index_names=names, **options)
        return done(int(dataset.version))

    return run


def parse_refresh_indices(cursor: Cursor, session: Session) -> Action:
    """``REFRESH INDEX[ES] [name, ...] ON table [WITH (segments = n)]``."""
    if not cursor.accept_any("INDEX", "INDEXES", "INDICES"):
        raise cursor.error("expected INDEXES (spark.sql runs other statements)")
    names = None if cursor.accept("ON") else cursor.names("the name of an index")
    if names is not None:
        cursor.expect("ON")
    target = named_target(cursor, session)
    options = cursor.options()
    cursor.end()

    def run() -> pa.Table:
        made = refresh_indices(target.spark, target.uri, names, storage_options=target.settings, **options)
        return pa.table(
            {"name": pa.array(list(made), pa.string()), "new_segments": pa.array(list(made.values()), pa.int64())}
        )

    return run
