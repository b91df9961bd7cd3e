"""Arguments and options that commands share, and parsing of version references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lance_dataset import LanceDataset

__all__ = [
    "ColumnsOption",
    "DatasetArgument",
    "DelimiterOption",
    "DryRunOption",
    "FormatOption",
    "JsonOption",
    "VersionOption",
    "WhereOption",
    "open_dataset",
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
    str | None, typer.Option("--format", metavar="NAME", help="parquet, csv, tsv or arrow. [default: by file name]")
]
DelimiterOption = Annotated[str | None, typer.Option(help="Separator of the values in CSV files.")]
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


def reference(text: str | None) -> int | str | tuple[str, int | None] | None:
    """Parse a version reference of the command line.

    ``7`` is a version number, ``dev:7`` a version of a branch, ``dev:`` the newest version of a branch, and everything
    else is a tag.
    """
    if text is None:
        return None
    branch, colon, number = text.rpartition(":")
    if not colon:
        return int(text) if text.isdecimal() else text
    if number and not number.isdecimal():
        raise typer.BadParameter(f"{text!r}: expected a version number or nothing after the colon")
    return branch, int(number) if number else None
