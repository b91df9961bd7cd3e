"""`export`, `convert` and `query`: rows as files of other formats and back, and answers of queries."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import (
    ColumnsOption,
    DatasetArgument,
    DelimiterOption,
    JsonOption,
    NullValuesOption,
    TypesOption,
    VersionOption,
    open_dataset,
    read_options,
    split_names,
)

if TYPE_CHECKING:
    from lance_dataset.cli.sources.opening import SourceStream
    from lance_dataset.cli.sources.options import ReadOptions

__all__ = ["convert", "export", "query", "sql"]

FilterOption = Annotated[
    str | None, typer.Option("--filter", metavar="SQL", help="Write rows for which this is true, as: x > 3.")
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]


class TargetFormat(str, Enum):
    """Format that `convert` writes."""

    LANCE = "lance"
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    NDJSON = "ndjson"
    ARROW = "arrow"
    IMAGES = "images"
    HUGGINGFACE = "huggingface"


@guarded
def export(
    uri: DatasetArgument,
    target: Annotated[
        str, typer.Argument(metavar="FILE", help="File to write: .parquet, .csv, .json, .ndjson or .arrow.")
    ],
    row_filter: FilterOption = None,
    columns: ColumnsOption = None,
    version: VersionOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write rows to a Parquet, CSV, JSON, NDJSON or Arrow file. Blobs are written as bytes.

    Example: lance-dataset export flights.lance late.csv --filter "delay > 60"
    """
    from lance_dataset.cli import output
    from lance_dataset.cli.counter import RowCounter
    from lance_dataset.cli.sinks.files import SUFFIXES, file_suffix, write_file

    if file_suffix(target) is None:
        raise typer.BadParameter(f"{target!r} must end with one of {', '.join(SUFFIXES)}", param_hint="FILE")
    stream = _rows_of_dataset(uri, version, columns, row_filter)
    counter = RowCounter()
    write_file(target, stream.schema, counter.reader(stream), overwrite=overwrite)
    output.tell({"file": target, "rows": counter.rows}, f"{counter.rows:,} rows written to {target}", as_json)


def _rows_of_dataset(uri: str, version: str | None, columns: str | None, row_filter: str | None) -> SourceStream:
    from lance_dataset.cli.sources.opening import SourceStream

    dataset = open_dataset(uri, version)
    scanner = dataset.scanner(split_names(columns), filter=row_filter, blob_handling="all_binary")
    reader = scanner.to_reader()
    return SourceStream(reader.schema, dataset.count_rows() if row_filter is None else None, lambda: iter(reader))


@guarded
def convert(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="SRC... TARGET", help="A dataset, or files and folders; then what to write."),
    ],
    source_format: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help="parquet, csv, tsv, json, ndjson, arrow, images or huggingface. [default: by file name]",
        ),
    ] = None,
    target_format: Annotated[
        TargetFormat | None, typer.Option("--to", help="Format to write. [default: by file name, or lance]")
    ] = None,
    columns: ColumnsOption = None,
    row_filter: FilterOption = None,
    version: VersionOption = None,
    types: TypesOption = None,
    delimiter: DelimiterOption = None,
    null_values: NullValuesOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing file, or the rows of an existing dataset.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Convert files to a dataset, a dataset to files, or files to other files.

    Folders of images become rows of file_name, label and image, and are written from such rows. A folder with the
    Parquet files of a data set of Hugging Face (train-00000-of-00002.parquet) gets the column split, and is written
    by it.

    Example: lance-dataset convert photos/ photos.lance

    Example: lance-dataset convert photos.lance parquet/ --to huggingface
    """
    from lance_dataset.cli import output
    from lance_dataset.cli.counter import RowCounter
    from lance_dataset.cli.sources.files import is_dataset

    if len(paths) < 2:
        raise typer.BadParameter("expected at least one source, and what to write", param_hint="SRC... TARGET")
    *sources, target = paths
    kind = target_format or _format_of_target(target)
    if source_format is None and any(map(is_dataset, sources)):
        if len(sources) > 1 or kind is TargetFormat.LANCE:
            raise typer.BadParameter(
                "a dataset is converted alone, and to files: end their name with .parquet, .csv, .json, .ndjson or "
                ".arrow, or choose the format with --to",
                param_hint="SRC... TARGET",
            )
        _refuse("is for files, not for datasets", {"--types": types, "--delimiter": delimiter})
        stream = _rows_of_dataset(sources[0], version, columns, row_filter)
    else:
        _refuse("is for datasets, not for files", {"--filter": row_filter, "--version": version})
        options = read_options(
            source_format=source_format or _format_of_folders(sources),
            columns=columns,
            delimiter=delimiter,
            types=types,
            null_values=null_values,
            known={},
        )
        stream = _rows_of_files(sources, options)
    counter = RowCounter()
    _write(kind, target, stream, counter.reader(stream), overwrite)
    facts = {"target": target, "format": kind.value, "rows": counter.rows}
    output.tell(facts, f"{counter.rows:,} rows written to {target}", as_json)


def _refuse(why: str, options: dict[str, str | None]) -> None:
    for name, value in options.items():
        if value is not None:
            raise typer.BadParameter(why, param_hint=name)


def _format_of_target(target: str) -> TargetFormat:
    from lance_dataset.cli.sinks.files import file_suffix

    suffix = file_suffix(target)
    if suffix is None:
        return TargetFormat.LANCE
    return TargetFormat.NDJSON if suffix == ".jsonl" else TargetFormat(suffix.removeprefix("."))


def _format_of_folders(sources: list[str]) -> str | None:
    """Return the format of folders whose files are named as Hugging Face names them; None for others."""
    from pathlib import Path

    from lance_dataset.cli.sources.files import SourceFormat, find_files
    from lance_dataset.cli.sources.huggingface import has_named_splits

    if all(Path(source).expanduser().is_dir() for source in sources) and has_named_splits(find_files(sources)):
        return SourceFormat.HUGGINGFACE.value
    return None


def _rows_of_files(sources: list[str], options: ReadOptions) -> SourceStream:
    from lance_dataset.cli.sources.opening import open_sources

    return open_sources(sources, options)


def _write(kind: TargetFormat, target: str, stream: SourceStream, rows: Any, overwrite: bool) -> None:
    import lance_dataset
    from lance_dataset.cli.sinks.files import write_file
    from lance_dataset.cli.sinks.folders import write_huggingface, write_images

    if kind is TargetFormat.LANCE:
        lance_dataset.write_dataset(rows, target, mode="overwrite" if overwrite else "create")
    elif kind is TargetFormat.IMAGES:
        write_images(target, stream.schema, rows)
    elif kind is TargetFormat.HUGGINGFACE:
        write_huggingface(target, stream.schema, rows)
    else:
        write_file(target, stream.schema, rows, overwrite=overwrite, suffix=f".{kind.value}")


@guarded
def query(
    uri: DatasetArgument,
    text: Annotated[str, typer.Argument(metavar="SQL", help="Query of the table `dataset`.")],
    version: VersionOption = None,
    as_records: Annotated[bool, typer.Option("--record", help="Print one value a line, in full.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer an SQL query of the table `dataset`. The command sql is the same.

    Example: lance-dataset query flights.lance "select carrier, count(*) from dataset group by carrier"
    """
    from lance_dataset.cli import output

    reader: Any = open_dataset(uri, version).sql(text).build().to_stream_reader()
    output.print_batches(reader, reader.schema, as_json=as_json, as_records=as_records)


#: The name that the command had first.
sql = query
