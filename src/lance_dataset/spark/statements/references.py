"""CREATE, DROP and SHOW of tags and branches."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.spark.statements.cursor import Cursor
from lance_dataset.spark.statements.target import Action, Session, Target, done, named_target

__all__ = [
    "create_branch_of",
    "create_tag_of",
    "parse_create_branch",
    "parse_create_tag",
    "parse_drop_branch",
    "parse_drop_tag",
    "parse_show_branches",
    "parse_show_tags",
]


def parse_create_tag(cursor: Cursor, session: Session) -> Action:
    """``CREATE TAG name ON table [AS OF VERSION n]``."""
    name = cursor.name("a tag")
    cursor.expect("ON")
    return _create_tag(cursor, named_target(cursor, session), name)


def create_tag_of(cursor: Cursor, target: Target) -> Action:
    """``ALTER TABLE table CREATE TAG name [AS OF VERSION n]``."""
    return _create_tag(cursor, target, cursor.name("a tag"))


def _create_tag(cursor: Cursor, target: Target, name: str) -> Action:
    version = _version(cursor)
    cursor.end()

    def run() -> pa.Table:
        dataset = target.open()
        tagged = int(dataset.version) if version is None else version
        dataset.tags.create(name, tagged)
        return done(tagged)

    return run


def parse_create_branch(cursor: Cursor, session: Session) -> Action:
    """``CREATE BRANCH name ON table [AS OF VERSION n]``."""
    name = cursor.name("a branch")
    cursor.expect("ON")
    return _create_branch(cursor, named_target(cursor, session), name)


def create_branch_of(cursor: Cursor, target: Target) -> Action:
    """``ALTER TABLE table CREATE BRANCH name [AS OF VERSION n]``."""
    return _create_branch(cursor, target, cursor.name("a branch"))


def _create_branch(cursor: Cursor, target: Target, name: str) -> Action:
    version = _version(cursor)
    cursor.end()
    return lambda: done(int(target.open().create_branch(name, version).version))


def _version(cursor: Cursor) -> int | None:
    if cursor.accept("AS", "OF", "VERSION") or cursor.accept("VERSION", "AS", "OF"):
        return cursor.whole_number("a version number")
    return None


def parse_drop_tag(cursor: Cursor, session: Session) -> Action:
    """``DROP TAG name ON table``."""
    name, target = _dropped(cursor, session, "a tag")
    return lambda: _after(target, lambda dataset: dataset.tags.delete(name))


def parse_drop_branch(cursor: Cursor, session: Session) -> Action:
    """``DROP BRANCH name ON table``."""
    name, target = _dropped(cursor, session, "a branch")
    return lambda: _after(target, lambda dataset: dataset.branches.delete(name))


def _dropped(cursor: Cursor, session: Session, what: str) -> tuple[str, Target]:
    name = cursor.name(what)
    cursor.expect("ON")
    target = named_target(cursor, session)
    cursor.end()
    return name, target


def _after(target: Target, change: object) -> pa.Table:
    dataset = target.open()
    assert callable(change)
    change(dataset)
    return done(int(dataset.version))


def parse_show_tags(cursor: Cursor, session: Session) -> Action:
    """``SHOW TAGS FROM table``."""
    target = _shown(cursor, session)

    def run() -> pa.Table:
        found = target.open().tags.list()
        return pa.table(
            {
                "name": pa.array(list(found), pa.string()),
                "version": pa.array([int(tag["version"]) for tag in found.values()], pa.int64()),
                "branch": pa.array([tag.get("branch") for tag in found.values()], pa.string()),
            }
        )

    return run


def parse_show_branches(cursor: Cursor, session: Session) -> Action:
    """``SHOW BRANCHES FROM table``."""
    target = _shown(cursor, session)

    def run() -> pa.Table:
        found = target.open().branches.list()
        return pa.table(
            {
                "name": pa.array(list(found), pa.string()),
                "parent_branch": pa.array([branch.get("parent_branch") for branch in found.values()], pa.string()),
                "parent_version": pa.array([branch.get("parent_version") for branch in found.values()], pa.int64()),
            }
        )

    return run


def _shown(cursor: Cursor, session: Session) -> Target:
    if not cursor.accept_any("FROM", "IN", "ON"):
        raise cursor.error("expected FROM")
    target = named_target(cursor, session)
    cursor.end()
    return target
