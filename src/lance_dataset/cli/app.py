"""The commands. Each opens the dataset, asks one question, and leaves the looks to `output`."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any

import typer

from lance_dataset.cli.guard import guarded

__all__ = ["app"]

app = typer.Typer(
    name="lance-dataset",
    help="Look into Lance datasets, and make them from Parquet, CSV and Arrow files.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

DatasetArgument = Annotated[str, typer.Argument(metavar="DATASET", help="Path or URI of the dataset.")]
VersionOption = Annotated[
    int | None, typer.Option("--version", metavar="NUMBER", min=1, help="Version to look at. [default: the newest]")
]
ColumnsOption = Annotated[str | None, typer.Option("--columns", metavar="A,B,...", help="Columns. [default: all]")]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON.")]


class Mode(str, Enum):
    """What `import` does when the dataset exists (or not)."""

    CREATE = "create"
    APPEND = "append"
    OVERWRITE = "overwrite"


def _print_version(asked: bool) -> None:
    if asked:
        from lance_dataset._version import __version__

        typer.echo(f"lance-dataset {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version of the program."),
    ] = False,
) -> None:
    """Nothing of its own; options before the command."""


def _open(uri: str, version: int | None = None) -> Any:
    import lance_dataset

    return lance_dataset.dataset(uri, version=version)


def _split(columns: str | None) -> list[str] | None:
    return None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]


def _print_table(table: Any, as_json: bool) -> None:
    import pyarrow as pa

    from lance_dataset.cli import output

    if as_json:
        output.print_json(table.to_pylist())
        return
    kinds = [column.type for column in table.columns]
    numeric = [pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) for kind in kinds]
    output.print_rows(table.column_names, (list(row.values()) for row in table.to_pylist()), numeric)


@app.command("import")
@guarded
def import_(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC... DATASET", help="Files, directories or glob patterns; last the dataset to write."
        ),
    ],
    mode: Annotated[Mode, typer.Option(help="Make a new dataset, add to one, or replace its content.")] = Mode.CREATE,
    source_format: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="parquet, csv, tsv or arrow. [default: by file name]")
    ] = None,
    columns: ColumnsOption = None,
    delimiter: Annotated[str | None, typer.Option(help="Separates the values of CSV files.")] = None,
    data_storage_version: Annotated[
        str | None, typer.Option(metavar="2.x", help="File format version. [default: that of the library or dataset]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write Parquet, CSV or Arrow files into a dataset, in one commit."""
    if len(paths) < 2:
        raise typer.BadParameter("needs at least one source and then the dataset", param_hint="SRC... DATASET")
    import pyarrow as pa

    import lance_dataset
    from lance_dataset.cli import output, sources

    *names, target = paths
    kind = None if source_format is None else _source_format(source_format)
    stream = sources.open_files(sources.find_files(names, kind), kind, _split(columns), delimiter)
    counter = _Counter()
    reader = pa.RecordBatchReader.from_batches(stream.schema, counter.counting(stream.batches(), stream.rows))
    dataset = lance_dataset.write_dataset(reader, target, mode=mode.value, data_storage_version=data_storage_version)
    if as_json:
        output.print_json({"uri": target, "rows": counter.rows, "version": dataset.version})
    else:
        typer.echo(f"{counter.rows:,} rows written to {target}, version {dataset.version}")


def _source_format(name: str) -> Any:
    from lance_dataset.cli.sources import SourceFormat

    try:
        return SourceFormat(name)
    except ValueError:
        known = ", ".join(kind.value for kind in SourceFormat)
        raise typer.BadParameter(f"{name!r} is none of {known}", param_hint="--format") from None


class _Counter:
    """Counts the rows that pass, and shows it on stderr when that is a terminal."""

    def __init__(self) -> None:
        self.rows = 0

    def counting(self, batches: Iterator[Any], total: int | None) -> Iterator[Any]:
        from rich.console import Console

        console = Console(stderr=True)
        for batch in self._shown(batches, total, console) if console.is_terminal else batches:
            yield batch
            self.rows += batch.num_rows

    def _shown(self, batches: Iterator[Any], total: int | None, console: Any) -> Iterator[Any]:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        looks = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*looks, console=console) as progress:
            task = progress.add_task("rows", total=total)
            for batch in batches:
                yield batch
                progress.advance(task, batch.num_rows)


@app.command()
@guarded
def info(uri: DatasetArgument, version: VersionOption = None, as_json: JsonOption = False) -> None:
    """Sizes and versions of a dataset."""
    dataset = _open(uri, version)
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
    if as_json:
        output.print_json(facts)
    else:
        output.print_pairs({name.replace("_", " "): value for name, value in facts.items()})


@app.command()
@guarded
def schema(uri: DatasetArgument, version: VersionOption = None, as_json: JsonOption = False) -> None:
    """Columns and their types."""
    found = _open(uri, version).schema
    from lance_dataset.cli import output

    if as_json:
        output.print_json(output.schema_as_json(found))
    else:
        output.print_schema(found)


@app.command()
@guarded
def explain(
    uri: Annotated[str, typer.Argument(metavar="DATASET", help="Path or URI of the dataset, or of one data file.")],
    columns: ColumnsOption = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Decode the values too: what would other encodings need?")
    ] = False,
    pages: Annotated[bool, typer.Option("--pages", help="One line per page instead of one per column.")] = False,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """How columns are stored: layouts, encodings, sizes, and (with --pages or --json) why."""
    report = _explained(uri, version).explain_encodings(_split(columns), deep=deep)
    from lance_dataset.cli import output

    if as_json:
        output.print_json(report.to_arrow().to_pylist())
    else:
        output.print_encodings(report, pages)


def _explained(uri: str, version: int | None) -> Any:
    """A dataset, or a reader of a file that is no dataset."""
    from pathlib import Path

    if "://" in uri or not Path(uri).is_file():
        return _open(uri, version)
    if version is not None:
        raise typer.BadParameter("a file has no versions", param_hint="--version")
    from lance_dataset.file import LanceFileReader

    return LanceFileReader(uri)


@app.command()
@guarded
def head(
    uri: DatasetArgument,
    rows: Annotated[int, typer.Option("--rows", "-n", min=0, help="How many.")] = 10,
    columns: ColumnsOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """The first rows."""
    _print_table(_open(uri, version).head(rows, columns=_split(columns)), as_json)


@app.command()
@guarded
def take(
    uri: DatasetArgument,
    rows: Annotated[list[int], typer.Argument(metavar="ROW...", min=0, help="Row numbers, the first row is 0.")],
    columns: ColumnsOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """The rows with the given numbers, in the given order."""
    _print_table(_open(uri, version).take(rows, columns=_split(columns)), as_json)


@app.command()
@guarded
def count(
    uri: DatasetArgument,
    row_filter: Annotated[
        str | None, typer.Option("--filter", metavar="SQL", help="Count the rows for which this is true, as: x > 3.")
    ] = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """The number of rows."""
    counted = _open(uri, version).count_rows(row_filter)
    from lance_dataset.cli import output

    if as_json:
        output.print_json({"rows": counted})
    else:
        typer.echo(counted)


@app.command()
@guarded
def versions(uri: DatasetArgument, as_json: JsonOption = False) -> None:
    """All versions, the oldest first."""
    found = _open(uri).versions()
    from lance_dataset.cli import output

    if as_json:
        output.print_json(found)
        return
    rows = [(entry["version"], entry["timestamp"].isoformat(sep=" ", timespec="seconds")) for entry in found]
    output.print_rows(["version", "time"], rows, [True, False])
