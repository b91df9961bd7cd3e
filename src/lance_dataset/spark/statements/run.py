"""Running a statement that Spark's parser does not know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lance_dataset.spark.statements import indices, references, rows, tables
from lance_dataset.spark.statements.cursor import Cursor
from lance_dataset.spark.statements.target import Action, Session

__all__ = ["lance_sql"]

_STATEMENTS: list[tuple[tuple[str, ...], Callable[[Cursor, Session], Action]]] = [
    (("OPTIMIZE",), tables.parse_optimize),
    (("VACUUM",), tables.parse_vacuum),
    (("VALIDATE",), tables.parse_validate),
    (("MAINTAIN",), tables.parse_maintain),
    (("ANALYZE",), tables.parse_analyze),
    (("REFRESH",), indices.parse_refresh_indices),
    (("ALTER",), tables.parse_alter),
    (("DESCRIBE", "HISTORY"), tables.parse_history),
    (("RESTORE",), tables.parse_restore),
    (("UPDATE",), rows.parse_update),
    (("DELETE", "FROM"), rows.parse_delete),
    (("MERGE", "INTO"), rows.parse_merge),
    (("CREATE", "INDEX"), indices.parse_create_index),
    (("DROP", "INDEX"), indices.parse_drop_index),
    (("SHOW", "INDEX"), indices.parse_show_indices),
    (("SHOW", "INDEXES"), indices.parse_show_indices),
    (("SHOW", "INDICES"), indices.parse_show_indices),
    (("CREATE", "TAG"), references.parse_create_tag),
    (("DROP", "TAG"), references.parse_drop_tag),
    (("SHOW", "TAGS"), references.parse_show_tags),
    (("CREATE", "BRANCH"), references.parse_create_branch),
    (("DROP", "BRANCH"), references.parse_drop_branch),
    (("SHOW", "BRANCHES"), references.parse_show_branches),
]


def lance_sql(
    spark: Any,
    statement: str,
    *,
    tables: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """Run a statement about a dataset, at once.

    Parameters
    ----------
    spark
        Spark session.
    statement
        OPTIMIZE, VACUUM, VALIDATE, MAINTAIN, ANALYZE TABLE, ALTER TABLE, UPDATE, DELETE, MERGE, RESTORE, DESCRIBE
        HISTORY, REFRESH INDEXES, or CREATE, DROP or SHOW of indices, tags or branches. A dataset is named by its path
        in quotes, as in ``OPTIMIZE '/data/t.lance'`` or ``OPTIMIZE lance.`/data/t.lance```.
    tables
        Paths or URIs of datasets by names that the statement may use.
    storage_options
        Settings of the object store.

    Returns
    -------
    pyspark.sql.DataFrame
        What is shown; or the numbers of changed rows or fragments; or the new version.

    Raises
    ------
    InvalidInputError
        The statement cannot be read; the message shows where. Nothing was done.
    """
    cursor, session = Cursor(statement), Session(spark, dict(tables or {}), storage_options)
    for words, parse in _STATEMENTS:
        if cursor.accept(*words):
            return spark.createDataFrame(parse(cursor, session)())
    known = ", ".join(" ".join(words) for words, _ in _STATEMENTS)
    raise cursor.error(f"expected one of {known} (spark.sql runs other statements)")
