"""Datasets that a statement names, and results of statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lance_dataset import dataset as open_dataset
from lance_dataset.spark.statements.cursor import Cursor

__all__ = ["Action", "Target", "counted", "done", "named_target"]


@dataclass(frozen=True)
class Target:
    """A dataset that a statement is about.

    Attributes
    ----------
    spark
        Spark session.
    uri
        Path or URI of the dataset.
    settings
        Settings of the object store.
    """

    spark: Any
    uri: str
    settings: Mapping[str, str] | None = field(default=None, repr=False)

    def open(self) -> Any:
        """Open the newest version."""
        return open_dataset(self.uri, storage_options=dict(self.settings) if self.settings else None)


#: What a statement does, after all of it was read without an error.
Action = Callable[[], pa.Table]


@dataclass(frozen=True)
class Session:
    """Setting in which statements run: a Spark session, names of datasets, and options of their object store."""

    spark: Any
    tables: Mapping[str, str]
    settings: Mapping[str, str] | None = field(default=None, repr=False)


def named_target(cursor: Cursor, session: Session) -> Target:
    """Read the name of a dataset: a path in quotes, ``lance.`path```, or a name that the caller gave."""
    token = cursor.peek()
    if token is not None and token.kind == "string":
        cursor.position += 1
        return Target(session.spark, token.value, session.settings)
    if token is not None and token.text.lower() == "lance" and cursor.peek(1) and cursor.peek(2):
        quoted = cursor.peek(2)
        if cursor.peek(1).text == "." and quoted is not None and quoted.kind == "quoted":  # type: ignore[union-attr]
            cursor.position += 3
            return Target(session.spark, quoted.value, session.settings)
    quoted_name = token is not None and token.kind == "quoted"
    before = cursor.position
    name = cursor.name("a dataset: its path in quotes, or a name of the parameter tables")
    if name in session.tables:
        return Target(session.spark, session.tables[name], session.settings)
    if quoted_name:
        return Target(session.spark, name, session.settings)
    cursor.position = before
    raise cursor.error(
        "expected a dataset: its path in quotes, such as '/data/t.lance', or a name of the parameter tables"
    )


def counted(counts: Mapping[str, int]) -> pa.Table:
    """Return one row of numbers."""
    return pa.table({name: pa.array([value], pa.int64()) for name, value in counts.items()})


def done(version: int) -> pa.Table:
    """Return the version that a statement made."""
    return counted({"version": version})
