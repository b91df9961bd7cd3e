"""Filters given as `pyarrow.compute.Expression`: find the columns they read, and run them on a batch.

An Arrow expression does not expose its structure, so it is probed from outside: an expression that still binds to a
schema without some columns does not read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import FieldNotFoundError, FilterError, nearest_name_hint

__all__ = ["columns_read", "expression_type", "run_expression"]


def expression_type(expression: pc.Expression, schema: pa.Schema) -> pa.DataType:
    """Return the type of an expression over a schema.

    Raises
    ------
    FieldNotFoundError
        The expression names a column that the schema lacks.
    FilterError
        The expression does not fit the types of the schema.
    """
    try:
        return _project(expression, schema.empty_table()).type
    except pa.ArrowException as error:
        missing = _missing_path(str(error))
        if missing:
            known = _names_beside(missing, schema)
            hint = nearest_name_hint(missing[-1], known) if known else ""
            raise FieldNotFoundError(f"No field named {'.'.join(missing)!r} in filter {expression}{hint}") from error
        raise FilterError(f"The filter {expression} does not fit the schema: {error}") from error


def _missing_path(message: str) -> list[str]:
    """Return the names in the path of the column that Arrow did not find; empty if the error is a different one."""
    _, found, after = message.partition("No match for FieldRef.")
    return re.findall(r"Name\(([^)]*)\)", after.partition(" in ")[0]) if found else []


def _names_beside(path: Sequence[str], schema: pa.Schema) -> list[str]:
    """Return the names available where the lookup of a path failed."""
    kind = pa.struct(list(schema))
    for name in path:
        names = [kind.field(place).name for place in range(kind.num_fields)] if pa.types.is_struct(kind) else []
        if name not in names or name == path[-1]:
            return names
        kind = kind.field(names.index(name)).type
    return []


def columns_read(expression: pc.Expression, schema: pa.Schema) -> tuple[str, ...]:
    """Return the names of the columns an expression reads, in schema order; all if it refers to some by position."""
    if not _is_by_name(expression):
        return tuple(schema.names)
    needed = _needed(list(schema.names), set(schema.names), lambda names: _binds(expression, schema, names))
    return tuple(name for name in schema.names if name in needed)


def _is_by_name(expression: pc.Expression) -> bool:
    try:
        expression.__reduce__()
    except pa.ArrowNotImplementedError:
        return False
    return True


def _binds(expression: pc.Expression, schema: pa.Schema, names: set[str]) -> bool:
    kept = pa.schema([field for field in schema if field.name in names])
    try:
        _project(expression, kept.empty_table())
    except pa.ArrowException:
        return False
    return True


def _needed(candidates: Sequence[str], present: set[str], binds: Callable[[set[str]], bool]) -> set[str]:
    """Return the candidates that cannot be left out, found by halving."""
    if binds(present - set(candidates)):
        return set()
    if len(candidates) == 1:
        return set(candidates)
    middle = len(candidates) // 2
    return _needed(candidates[:middle], present, binds) | _needed(candidates[middle:], present, binds)


def run_expression(expression: pc.Expression, columns: tuple[str, ...]) -> Callable[[pa.RecordBatch], Any]:
    """Return a function from a record batch to the value of an expression that reads `columns`."""
    names = list(columns)

    def run(batch: pa.RecordBatch) -> pa.Array:
        if names:
            table = pa.Table.from_batches([batch.select(names)])
        else:
            table = pa.table({"": pa.nulls(batch.num_rows)})
        return _project(expression, table).combine_chunks()

    return run


def _project(expression: pc.Expression, table: pa.Table) -> pa.ChunkedArray:
    from pyarrow import acero  # slow to import, and most filters are text

    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["value"]), inputs=[source])
    return project.to_table(use_threads=False).column(0)
