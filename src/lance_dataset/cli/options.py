"""Arguments and options that commands share, and parsing of version references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lance_dataset import LanceDataset
    from lance_dataset.cli.sources.options import ReadOptions

__all__ = [
    "ColumnsOption",
    "DatasetArgument",
    "DelimiterOption",
    "DryRunOption",
    "FormatOption",
    "JsonOption",
    "NoPartitionsOption",
    "NullValuesOption",
    "StrictOption",
    "TypesOption",
    "UnionOption",
    "VersionOption",
    "WhereOption",
    "open_dataset",
    "read_options",
    "reference",
    "split_names",
]

DatasetArgument = Annotated[str, typer.Argument(metavar="DATASET", help="Path or URI of the dataset.")]
VersionOption = Annotated[
    str | None,
    typer.Option(
        "--version",
        metavar="VERSION",
        help="Version to open: a number, a tag, BRANCH:NUMBER, or BRANCH: for its newest. [default: the newest]",
    ),
]
ColumnsOption = Annotated[str | None, typer.Option("--columns", metavar="A,B,...", help="Columns. [default: all]")]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="parquet, csv, tsv, json, ndjson, arrow, images or huggingface. [default: by file name]",
    ),
]
DelimiterOption = Annotated[str | None, typer.Option(help="Separator of the values in CSV files.")]
TypesOption = Annotated[
    str | None,
    typer.Option(
        metavar="A=TYPE,B=TYPE,...",
        help="Types of columns, as: zip=string,price=decimal(10,2). [default: by the values]",
    ),
]
NullValuesOption = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="Texts of CSV files that are null, as: NA,NULL. [default: no text at all]"),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Refuse columns that have several types, in a CSV file or in several files.")
]
UnionOption = Annotated[
    bool, typer.Option("--union", help="Accept files with different columns; values that are missing become null.")
]
NoPartitionsOption = Annotated[
    bool, typer.Option("--no-partitions", help="Make no columns of directories that are named column=value.")
]
WhereOption = Annotated[
    str | None,
    typer.Option("--where", metavar="SQL", help="Select the rows for which this is true, as in: x > 3."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Report what would happen, and change nothing.")]


def open_dataset(uri: str, version: Any = None) -> LanceDataset:
    """Open a version of a dataset by text or by what `reference` returns; the newest by default."""
    import lance_dataset

    return lance_dataset.dataset(uri, version=reference(version) if isinstance(version, str) else version)


def split_names(names: str | None) -> list[str] | None:
    """Split names that are separated by commas."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def read_options(
    *,
    source_format: str | None,
    columns: str | None,
    delimiter: str | None,
    types: str | None,
    null_values: str | None,
    known: Mapping[str, Any],
    strict: bool = False,
    union: bool = False,
    partitions: bool = True,
) -> ReadOptions:
    """Return how sources are read; `known` are the types of the columns of the dataset that gets the rows."""
    from lance_dataset.cli.sources.files import SourceFormat
    from lance_dataset.cli.sources.options import ReadOptions, parse_types

    formats = [kind.value for kind in SourceFormat]
    if source_format is not None and source_format not in formats:
        raise typer.BadParameter(f"{source_format!r} is not one of {', '.join(formats)}", param_hint="--format")
    names = split_names(columns)
    return ReadOptions(
        format=None if source_format is None else SourceFormat(source_format),
        columns=None if names is None else tuple(names),
        delimiter=None if delimiter is None else delimiter.replace("\\t", "\t"),
        types=parse_types(types),
        known_types=known,
        null_values=tuple(split_names(null_values) or ()),
        strict=strict,
        union=union,
        partitions=partitions,
    )


def reference(text: str | None) -> int | str | tuple[str, int | None] | None:
    """Parse a version reference of the command line, as `parse_reference` does."""
    from lance_dataset.errors import InvalidInputError
    from lance_dataset.reports.references import parse_reference

    if text is None:
        return None
    try:
        return parse_reference(text)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error)) from None
