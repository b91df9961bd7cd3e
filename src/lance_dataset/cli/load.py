"""`import`: write files into a dataset."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import (
    ColumnsOption,
    DelimiterOption,
    FormatOption,
    JsonOption,
    NoPartitionsOption,
    NullValuesOption,
    StrictOption,
    TypesOption,
    UnionOption,
    read_options,
)

__all__ = ["import_"]


class Mode(str, Enum):
    """Action of `import` if the dataset exists or does not exist."""

    CREATE = "create"
    APPEND = "append"
    OVERWRITE = "overwrite"


@guarded
def import_(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC... DATASET", help="Files, directories or glob patterns; then the dataset to write."
        ),
    ],
    mode: Annotated[Mode, typer.Option(help="Create a dataset, append to one, or replace its content.")] = Mode.CREATE,
    source_format: FormatOption = None,
    columns: ColumnsOption = None,
    delimiter: DelimiterOption = None,
    types: TypesOption = None,
    null_values: NullValuesOption = None,
    strict: StrictOption = False,
    union: UnionOption = False,
    no_partitions: NoPartitionsOption = False,
    data_storage_version: Annotated[
        str | None,
        typer.Option(metavar="2.x", help="File format version. [default: that of the library or dataset]"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write Parquet, CSV, JSON or Arrow files into a dataset, in one commit.

    Columns of CSV and JSON files get the type that all their values have, or are text. Directories that are named
    column=value, as Spark and Hive write them, become columns.

    Example: lance-dataset import parquet/*.parquet flights.lance
    """
    if len(paths) < 2:
        raise typer.BadParameter("expected at least one source, followed by the dataset", param_hint="SRC... DATASET")
    import lance_dataset
    from lance_dataset.cli import output
    from lance_dataset.cli.counter import RowCounter
    from lance_dataset.cli.sources.opening import open_sources

    *names, target = paths
    options = read_options(
        source_format=source_format,
        columns=columns,
        delimiter=delimiter,
        types=types,
        null_values=null_values,
        known=_existing_types(target) if mode is Mode.APPEND else {},
        strict=strict,
        union=union,
        partitions=not no_partitions,
    )
    counter = RowCounter()
    reader = counter.reader(open_sources(names, options))
    dataset = lance_dataset.write_dataset(reader, target, mode=mode.value, data_storage_version=data_storage_version)
    text = f"{counter.rows:,} rows written to {target}, version {dataset.version}"
    output.tell({"uri": target, "rows": counter.rows, "version": dataset.version}, text, as_json)


def _existing_types(uri: str) -> dict[str, Any]:
    """Return the types of the columns of the dataset to append to; none if it does not exist yet."""
    import lance_dataset

    try:
        return {field.name: field.type for field in lance_dataset.dataset(uri).schema}
    except lance_dataset.errors.DatasetNotFoundError:
        return {}
