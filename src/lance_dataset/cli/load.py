"""`import`: write files into a dataset."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import ColumnsOption, DelimiterOption, FormatOption, JsonOption, split_names

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
    data_storage_version: Annotated[
        str | None,
        typer.Option(metavar="2.x", help="File format version. [default: that of the library or dataset]"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write Parquet, CSV or Arrow files into a dataset, in one commit."""
    if len(paths) < 2:
        raise typer.BadParameter("expected at least one source, followed by the dataset", param_hint="SRC... DATASET")
    import lance_dataset
    from lance_dataset.cli import output, sources
    from lance_dataset.cli.counter import RowCounter

    *names, target = paths
    counter = RowCounter()
    types = _existing_schema(target) if mode is Mode.APPEND else None
    reader = counter.reader(sources.open_sources(names, source_format, split_names(columns), delimiter, types))
    dataset = lance_dataset.write_dataset(reader, target, mode=mode.value, data_storage_version=data_storage_version)
    text = f"{counter.rows:,} rows written to {target}, version {dataset.version}"
    output.tell({"uri": target, "rows": counter.rows, "version": dataset.version}, text, as_json)


def _existing_schema(uri: str) -> Any:
    """Return the columns of the dataset to append to; None if it does not exist yet."""
    import lance_dataset

    try:
        return lance_dataset.dataset(uri).schema
    except lance_dataset.errors.DatasetNotFoundError:
        return None
