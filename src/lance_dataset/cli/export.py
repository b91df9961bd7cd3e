"""`export` and `sql`: rows of a dataset as files of other formats, and answers of queries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING, Annotated, Any

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
    import pyarrow as pa

__all__ = ["export", "sql"]

_Write = Callable[["IO[bytes]", "pa.Schema", "Iterable[pa.RecordBatch]"], None]


@guarded
def export(
    uri: DatasetArgument,
    target: Annotated[str, typer.Argument(metavar="FILE", help="File to write: .parquet, .csv, .ndjson or .arrow.")],
    row_filter: Annotated[
        str | None, typer.Option("--filter", metavar="SQL", help="Write rows for which this is true, as: x > 3.")
    ] = None,
    columns: ColumnsOption = None,
    version: VersionOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write rows to a Parquet, CSV, NDJSON or Arrow file."""
    from lance_dataset.cli import output
    from lance_dataset.errors import AlreadyExistsError

    write = _writer_of(target)
    if os.path.lexists(target) and not overwrite:
        raise AlreadyExistsError(f"{target} exists already; replace it with --overwrite")
    reader = open_dataset(uri, version).scanner(split_names(columns), filter=row_filter).to_reader()
    rows = 0

    def counted() -> Iterable[pa.RecordBatch]:
        nonlocal rows
        for batch in reader:
            rows += batch.num_rows
            yield batch

    partial = f"{target}.partial"
    try:
        with open(partial, "wb") as opened:
            write(opened, reader.schema, counted())
        os.replace(partial, target)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
    output.tell({"file": target, "rows": rows}, f"{rows:,} rows written to {target}", as_json)


def _writer_of(target: str) -> _Write:
    suffix = os.path.splitext(target)[1].lower()
    if suffix not in _WRITERS:
        raise typer.BadParameter(f"{target!r} must end with one of {', '.join(_WRITERS)}", param_hint="FILE")
    return _WRITERS[suffix]


def _write_parquet(opened: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetWriter(opened, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_csv(opened: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    import pyarrow.csv

    from lance_dataset.errors import UnsupportedError

    nested = [field.name for field in schema if field.type.num_fields]
    if nested:
        raise UnsupportedError(
            f"CSV files cannot have nested columns ({', '.join(nested)}); leave them out, or use NDJSON"
        )
    with pyarrow.csv.CSVWriter(opened, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_lines(opened: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    from lance_dataset.cli.output import json_lines

    for batch in batches:
        opened.writelines(f"{row}\n".encode() for row in json_lines(batch))


def _write_arrow(opened: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(opened, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


_WRITERS: dict[str, _Write] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".ndjson": _write_lines,
    ".jsonl": _write_lines,
    ".arrow": _write_arrow,
}


@guarded
def sql(
    uri: DatasetArgument,
    query: Annotated[str, typer.Argument(metavar="SQL", help="Query of the table `dataset`.")],
    version: VersionOption = None,
    as_records: Annotated[bool, typer.Option("--record", help="Print one value a line, in full.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer an SQL query, as in: select city, count(*) from dataset group by city."""
    from lance_dataset.cli import output

    reader: Any = open_dataset(uri, version).sql(query).build().to_stream_reader()
    output.print_batches(reader, reader.schema, as_json=as_json, as_records=as_records)
