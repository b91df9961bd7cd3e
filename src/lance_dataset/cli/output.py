"""Formatting of results: aligned tables for people, JSON for programs."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import typer

from lance_dataset.cli.rows import batch_table, records, row_table, terminal_width
from lance_dataset.reports.cells import python_values

if TYPE_CHECKING:
    from lance_dataset.file import EncodingReport

__all__ = [
    "json_lines",
    "print_batches",
    "print_encodings",
    "print_json",
    "print_pairs",
    "print_rows",
    "print_schema",
    "schema_as_json",
    "tell",
]

#: Lines that are written at a time.
_LINES = 500


def json_value(value: Any) -> Any:
    """Convert a Python value of an Arrow table to a JSON value.

    Bytes become base64 text, times ISO 8601 text, durations seconds, and decimals text. NaN and infinities, which JSON
    cannot express, become null.
    """
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)


def print_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    typer.echo(json.dumps(json_value(value), indent=2, ensure_ascii=False))


def tell(facts: Mapping[str, Any], text: str, as_json: bool) -> None:
    """Print facts as JSON for a program, or as a line of text for people."""
    if as_json:
        print_json(facts)
    else:
        typer.echo(text)


def print_rows(names: Sequence[str], rows: Iterable[Sequence[Any]], numeric: Sequence[bool] | None = None) -> None:
    """Print a table with a header line; numeric columns are aligned to the right."""
    _print_lines(row_table(names, rows, numeric, terminal_width()))


def print_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, as_json: bool, as_records: bool) -> None:
    """Print rows as they are read: as a table that fits the terminal, as records, or as JSON."""
    if as_json:
        _print_json_rows(batches)
    elif as_records:
        rows = (row for batch in batches for row in zip(*map(python_values, batch.columns), strict=True))
        _print_lines(records(schema.names, rows))
    else:
        _print_lines(batch_table(schema, batches, terminal_width()))


def json_lines(batch: pa.RecordBatch) -> Iterator[str]:
    """Yield the rows of a batch as JSON objects, each on one line."""
    names = batch.schema.names
    for row in zip(*map(_json_values, batch.columns), strict=True):
        yield json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)


def _json_values(column: pa.Array) -> list[Any]:
    values = python_values(column)
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return values
    return list(map(json_value, values))


def _print_json_rows(batches: Iterable[pa.RecordBatch]) -> None:
    """Write a JSON list of rows, one row a line."""
    between = "["
    for batch in batches:
        rows = iter(json_lines(batch))
        while block := list(islice(rows, _LINES)):
            typer.echo(between + "\n  " + ",\n  ".join(block), nl=False)
            between = ","
    typer.echo("[]" if between == "[" else "\n]")


def _print_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout, many at a time."""
    given = iter(lines)
    while block := list(islice(given, _LINES)):
        typer.echo("\n".join(block))


def print_pairs(pairs: Mapping[str, Any]) -> None:
    """Print one line per name and value."""
    longest = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        typer.echo(f"{name:<{longest}}  {shown}")


def print_encodings(report: EncodingReport, pages: bool) -> None:
    """Print one line per column, or per page; unlike other cells, these are never cut."""
    typer.echo(str(report if pages else report.columns))


def schema_as_json(schema: pa.Schema) -> dict[str, Any]:
    """Return the fields of a schema, nested ones under ``fields``, with their metadata as text."""

    def metadata(raw: Mapping[bytes, bytes] | None) -> dict[str, str]:
        return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in (raw or {}).items()}

    def field(item: pa.Field) -> dict[str, Any]:
        described: dict[str, Any] = {"name": item.name, "type": str(item.type), "nullable": item.nullable}
        if item.metadata:
            described["metadata"] = metadata(item.metadata)
        if item.type.num_fields:
            described["fields"] = [field(item.type.field(i)) for i in range(item.type.num_fields)]
        return described

    return {"fields": [field(item) for item in schema], "metadata": metadata(schema.metadata)}


def print_schema(schema: pa.Schema) -> None:
    """Print one line per field: name, type and nullability."""
    rows = [(item.name, str(item.type), "" if item.nullable else "not null") for item in schema]
    print_rows(["column", "type", ""], rows)
