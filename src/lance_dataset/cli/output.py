"""Formatting of results: aligned tables for people, JSON for programs."""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from lance_dataset.file import EncodingReport

__all__ = [
    "json_value",
    "print_encodings",
    "print_json",
    "print_pairs",
    "print_rows",
    "print_schema",
    "schema_as_json",
    "tell",
]

# Longer values are cut in tables for people; JSON has them in full.
LONGEST_CELL = 80
# Wide enough never to wrap: output piped into a file or a pager must not depend on the width of a terminal.
UNLIMITED_WIDTH = 1_000_000


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else UNLIMITED_WIDTH, highlight=False)


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


def _cell(value: Any) -> Text:
    if value is None:
        return Text("null", style="dim")
    text = value if isinstance(value, str) else str(value)
    text = text.replace("\n", "\\n")
    return Text(text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 3] + "...")


def print_rows(names: Sequence[str], rows: Iterable[Sequence[Any]], numeric: Sequence[bool] | None = None) -> None:
    """Print a table with a header line; numeric columns are aligned to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, name in enumerate(names):
        right = numeric is not None and numeric[position]
        table.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    _console().print(table)


def print_pairs(pairs: Mapping[str, Any]) -> None:
    """Print one line per name and value."""
    grid = Table.grid(padding=(0, 2))
    for name, value in pairs.items():
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        grid.add_row(Text(name, style="bold"), Text(shown))
    _console().print(grid)


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
