"""Commands that study the rows of a dataset and the space they take: `describe`, `sample`, `search`, `du`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import (
    ColumnsOption,
    DatasetArgument,
    JsonOption,
    VersionOption,
    open_dataset,
    split_names,
)

if TYPE_CHECKING:
    from lance_dataset.reports.statistics import ColumnStatistics
    from lance_dataset.reports.storage import Storage

__all__ = ["describe", "du", "sample", "search"]

_LONGEST_EXTREME = 18
_UNITS = ("B", "kB", "MB", "GB", "TB")
FilterOption = Annotated[
    str | None, typer.Option("--filter", metavar="SQL", help="Use rows for which this is true, as: x > 3.")
]
RecordOption = Annotated[bool, typer.Option("--record", help="Print one value a line, in full.")]


@guarded
def describe(
    uri: DatasetArgument,
    columns: ColumnsOption = None,
    row_filter: FilterOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show statistics of columns: nulls, distinct values, extremes, means; with --json also histograms.

    Columns of more than 20 million numbers, or 100,000 other values, are described by a sample of 100,000 rows.

    Example: lance-dataset describe flights.lance --columns delay,carrier
    """
    from lance_dataset.cli import output
    from lance_dataset.reports.statistics import column_statistics

    dataset = open_dataset(uri, version)
    names = split_names(columns)
    found = [
        column_statistics(dataset, name, row_filter) for name in (dataset.schema.names if names is None else names)
    ]
    if as_json:
        output.print_json([asdict(each) for each in found])
    else:
        output.print_rows(
            ["column", "nulls", "distinct", "minimum", "maximum", "mean"],
            map(_described, found),
            [False, True, True, False, False, True],
        )


def _described(found: ColumnStatistics) -> tuple[Any, ...]:
    return (
        found.column,
        f"{found.nulls:,}",
        "" if found.distinct is None else f"{found.distinct:,}",
        _cut(found.minimum),
        _cut(found.maximum),
        "" if found.mean is None else f"{found.mean:.6g}",
    )


def _cut(text: str | None) -> str:
    if text is None:
        return ""
    return text if len(text) <= _LONGEST_EXTREME else f"{text[: _LONGEST_EXTREME - 3]}..."


@guarded
def sample(
    uri: DatasetArgument,
    rows: Annotated[int, typer.Option("--rows", "-n", min=1, help="How many.")] = 10,
    columns: ColumnsOption = None,
    version: VersionOption = None,
    as_records: RecordOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show random rows, in the order of the dataset.

    Example: lance-dataset sample flights.lance -n 5
    """
    from lance_dataset.cli import output

    dataset = open_dataset(uri, version)
    wanted = min(rows, dataset.count_rows())
    table = dataset.sample(wanted, columns=split_names(columns), randomize_order=False)
    output.print_batches(table.to_batches(), table.schema, as_json=as_json, as_records=as_records)


@guarded
def search(
    uri: DatasetArgument,
    words: Annotated[str, typer.Argument(metavar="WORDS", help="Words to search for.")],
    text_columns: Annotated[
        str | None,
        typer.Option("--in", metavar="A,B,...", help="Columns to search. [default: all with a full-text index]"),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", "-n", min=1, help="How many.")] = 10,
    columns: ColumnsOption = None,
    row_filter: FilterOption = None,
    version: VersionOption = None,
    as_records: RecordOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the rows that are most relevant to some words.

    Example: lance-dataset search papers.lance "column store" --columns title
    """
    from lance_dataset.cli import output

    table = open_dataset(uri, version).search(
        words, columns=split_names(columns), text_columns=split_names(text_columns), filter=row_filter, k=rows
    )
    output.print_batches(table.to_batches(), table.schema, as_json=as_json, as_records=as_records)


@guarded
def du(uri: DatasetArgument, version: VersionOption = None, as_json: JsonOption = False) -> None:
    """Show how much space the columns and indices of a version take, the largest first.

    Example: lance-dataset du flights.lance
    """
    from lance_dataset.cli import output
    from lance_dataset.reports.storage import storage

    found = storage(open_dataset(uri, version))
    if as_json:
        output.print_json(asdict(found))
    else:
        output.print_rows(["size", "", "name"], _sizes(found), [True, False, False])
        for command in found.advice:
            typer.echo(f"to mend it: {command}")


def _sizes(found: Storage) -> list[tuple[str, str, str]]:
    parts = [(each.stored, "column", each.column) for each in found.columns]
    parts += [(each.bytes or 0, "index", each.name) for each in found.indices]
    lines = [(_size(size), kind, name) for size, kind, name in sorted(parts, key=lambda part: -part[0])]
    total = "all data files"
    return lines if found.data_bytes is None else [*lines, (_size(found.data_bytes), "", total)]


def _size(size: float) -> str:
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.3g} {unit}"
