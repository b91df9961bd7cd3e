"""Commands that inspect a dataset."""

from __future__ import annotations

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
    from datetime import datetime
__all__ = ["count", "explain", "head", "info", "schema", "take", "versions"]


#: Name of the Arrow type of blob columns.
_BLOB_EXTENSION = "lance.blob.v2"
#: Rows that are formatted at a time.
_BATCH_ROWS = 2048
RecordOption = Annotated[bool, typer.Option("--record", help="Print one value a line, in full.")]


@guarded
def info(uri: DatasetArgument, version: VersionOption = None, as_json: JsonOption = False) -> None:
    """Show the sizes and versions of a dataset.

    Example: lance-dataset info flights.lance
    """
    dataset = open_dataset(uri, version)
    from lance_dataset.cli import output

    fragments = dataset.get_fragments()
    files = [file for fragment in fragments for file in fragment.data_files()]
    sizes = [file.file_size_bytes for file in files]
    facts: dict[str, Any] = {
        "uri": uri,
        "version": dataset.version,
        "latest_version": dataset.latest_version,
        "data_storage_version": dataset.data_storage_version,
        "rows": dataset.count_rows(),
        "deleted_rows": sum(fragment.num_deletions for fragment in fragments),
        "columns": len(dataset.schema.names),
        "fragments": len(fragments),
        "data_files": len(files),
    }
    if None not in sizes:
        facts["data_bytes"] = sum(sizes)
    blobs = [field.name for field in dataset.schema if getattr(field.type, "extension_name", "") == _BLOB_EXTENSION]
    if blobs:
        facts["blob_columns"] = ", ".join(blobs)
    if as_json:
        output.print_json(facts)
    else:
        output.print_pairs({name.replace("_", " "): value for name, value in facts.items()})


@guarded
def schema(uri: DatasetArgument, version: VersionOption = None, as_json: JsonOption = False) -> None:
    """Show the columns and their types.

    Example: lance-dataset schema flights.lance
    """
    found = open_dataset(uri, version).schema
    from lance_dataset.cli import output

    if as_json:
        output.print_json(output.schema_as_json(found))
    else:
        output.print_schema(found)


@guarded
def explain(
    uri: Annotated[str, typer.Argument(metavar="DATASET", help="Path or URI of the dataset, or of one data file.")],
    columns: ColumnsOption = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also decode the values and estimate the sizes of other encodings.")
    ] = False,
    pages: Annotated[bool, typer.Option("--pages", help="Print one line per page instead of one per column.")] = False,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how columns are stored: layouts, encodings, sizes, and (with --pages or --json) the reasons.

    Example: lance-dataset explain flights.lance --columns delay --pages
    """
    report = _explained(uri, version).explain_encodings(split_names(columns), deep=deep)
    from lance_dataset.cli import output

    if as_json:
        output.print_json(report.to_arrow().to_pylist())
    else:
        output.print_encodings(report, pages)


def _explained(uri: str, version: str | None) -> Any:
    """Open a dataset, or a reader of a file that is not a dataset."""
    from pathlib import Path

    if "://" in uri or not Path(uri).is_file():
        return open_dataset(uri, version)
    if version is not None:
        raise typer.BadParameter("a file has no versions", param_hint="--version")
    from lance_dataset.file import LanceFileReader

    return LanceFileReader(uri)


@guarded
def head(
    uri: DatasetArgument,
    rows: Annotated[int, typer.Option("--rows", "-n", min=0, help="How many.")] = 10,
    row_filter: Annotated[
        str | None, typer.Option("--filter", metavar="SQL", help="Show rows for which this is true, as: x > 3.")
    ] = None,
    columns: ColumnsOption = None,
    version: VersionOption = None,
    as_records: RecordOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the first rows. Columns that do not fit the terminal are left out.

    Example: lance-dataset head flights.lance -n 5 --filter "delay > 60"
    """
    from lance_dataset.cli import output

    dataset = open_dataset(uri, version)
    scanner = dataset.scanner(split_names(columns), filter=row_filter, limit=rows, batch_size=_BATCH_ROWS)
    reader = scanner.to_reader()
    output.print_batches(reader, reader.schema, as_json=as_json, as_records=as_records)


@guarded
def take(
    uri: DatasetArgument,
    rows: Annotated[list[int], typer.Argument(metavar="ROW...", min=0, help="Row numbers, starting at 0.")],
    columns: ColumnsOption = None,
    version: VersionOption = None,
    as_records: RecordOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the rows with the given numbers, in the given order.

    Example: lance-dataset take flights.lance 0 99 --columns carrier,delay
    """
    from lance_dataset.cli import output

    table = open_dataset(uri, version).take(rows, columns=split_names(columns))
    output.print_batches(table.to_batches(), table.schema, as_json=as_json, as_records=as_records)


@guarded
def count(
    uri: DatasetArgument,
    row_filter: Annotated[
        str | None, typer.Option("--filter", metavar="SQL", help="Count the rows for which this is true, as: x > 3.")
    ] = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the rows.

    Example: lance-dataset count flights.lance --filter "delay > 60"
    """
    counted = open_dataset(uri, version).count_rows(row_filter)
    from lance_dataset.cli import output

    output.tell({"rows": counted}, str(counted), as_json)


@guarded
def versions(uri: DatasetArgument, as_json: JsonOption = False) -> None:
    """List all versions, oldest first: time, operation and rows. The times have their zone.

    Example: lance-dataset versions flights.lance
    """
    dataset = open_dataset(uri)
    from lance_dataset.cli import output
    from lance_dataset.reports.history import described_versions

    made = {each["version"]: each for each in described_versions(dataset)}
    found: list[Any] = [
        {**entry, **{name: made[entry["version"]][name] for name in ("operation", "rows")}}
        for entry in dataset.versions()
    ]

    if as_json:
        output.print_json([{**entry, "timestamp": entry["timestamp"].astimezone()} for entry in found])
        return
    rows = [(entry["version"], _moment(entry["timestamp"]), entry["operation"], entry["rows"]) for entry in found]
    output.print_rows(["version", "time", "operation", "rows"], rows, [True, False, False, True])


def _moment(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S%z")
