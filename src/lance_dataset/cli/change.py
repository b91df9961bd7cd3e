"""Commands that change rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import (
    ColumnsOption,
    DatasetArgument,
    DelimiterOption,
    DryRunOption,
    FormatOption,
    JsonOption,
    NullValuesOption,
    TypesOption,
    WhereOption,
    open_dataset,
    read_options,
    split_names,
)

if TYPE_CHECKING:
    from lance_dataset import LanceDataset
    from lance_dataset.cli.sources.options import ReadOptions

__all__ = ["delete", "merge", "restore", "update"]


@guarded
def update(
    uri: DatasetArgument,
    assignments: Annotated[
        list[str],
        typer.Option("--set", metavar="COLUMN=SQL", help="New value of a column, as: price=price * 1.1. Repeatable."),
    ],
    where: WhereOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Update values of rows, in one commit. Without --where, all rows are updated.

    Example: lance-dataset update flights.lance --set "delay=0" --where "delay < 0" --dry-run
    """
    updates = dict(_assignment(text) for text in assignments)
    dataset = open_dataset(uri)
    with _changed(dataset, dry_run) as handle:
        rows = handle.update(updates, where)["num_rows_updated"]
        facts = {"updated": rows, "rows": handle.count_rows()}
    _tell(uri, handle, facts, f"{rows:,} rows", "updated", dry_run, as_json)


def _assignment(text: str) -> tuple[str, str]:
    column, equals, expression = text.partition("=")
    if not equals or not column.strip() or not expression.strip():
        raise typer.BadParameter(f"{text!r} is not COLUMN=SQL", param_hint="--set")
    return column.strip(), expression.strip()


@guarded
def restore(
    uri: DatasetArgument,
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Version: a number, a tag, or BRANCH:NUMBER.")],
    as_json: JsonOption = False,
) -> None:
    """Make an old version the newest one, in one commit. The versions between stay.

    Example: lance-dataset restore flights.lance 3
    """
    from lance_dataset.cli import output

    dataset = open_dataset(uri, version)
    rows = dataset.count_rows()
    dataset.restore()
    facts = {"uri": uri, "restored": version, "version": dataset.version, "rows": rows}
    output.tell(facts, f"version {version} is now version {dataset.version}, with {rows:,} rows", as_json)


@guarded
def delete(
    uri: DatasetArgument,
    where: Annotated[
        str, typer.Option("--where", metavar="SQL", help="Delete the rows for which this is true; 'true' for all.")
    ],
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete rows, in one commit. They are only marked as deleted, and older versions keep them; purge erases them.

    Example: lance-dataset delete flights.lance --where "carrier = 'XX'" --dry-run
    """
    dataset = open_dataset(uri)
    if dry_run:
        rows = dataset.count_rows(where)
        left = dataset.count_rows() - rows
    else:
        rows = dataset.delete(where)["num_deleted_rows"]
        left = dataset.count_rows()
    _tell(uri, dataset, {"deleted": rows, "rows": left}, f"{rows:,} rows", "deleted", dry_run, as_json)


class Matched(str, Enum):
    """Action of `merge` for rows of the dataset whose key is in the source."""

    UPDATE = "update"
    DELETE = "delete"
    FAIL = "fail"
    KEEP = "keep"


class NotMatched(str, Enum):
    """Action of `merge` for rows of the source whose key is not in the dataset."""

    INSERT = "insert"
    DROP = "drop"


@guarded
def merge(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC... DATASET",
            help="Files, directories or glob patterns, or another dataset; then the dataset to change.",
        ),
    ],
    on: Annotated[str, typer.Option("--on", metavar="A,B,...", help="Key columns.")],
    when_matched: Annotated[Matched, typer.Option(help="Action for rows whose key is in the source.")] = (
        Matched.UPDATE
    ),
    update_if: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Update only where this is true, as: source.time > target.time."),
    ] = None,
    when_not_matched: Annotated[NotMatched, typer.Option(help="Action for new rows of the source.")] = (
        NotMatched.INSERT
    ),
    delete_missing: Annotated[
        bool, typer.Option("--delete-missing", help="Delete rows whose key is not in the source.")
    ] = False,
    delete_missing_if: Annotated[
        str | None, typer.Option(metavar="SQL", help="Delete rows whose key is not in the source if this is true.")
    ] = None,
    source_format: FormatOption = None,
    columns: ColumnsOption = None,
    delimiter: DelimiterOption = None,
    types: TypesOption = None,
    null_values: NullValuesOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Update and insert rows by key, in one commit: source rows replace rows with the same key; others are inserted.

    Example: lance-dataset merge new.csv flights.lance --on id
    """
    if len(paths) < 2:
        raise typer.BadParameter("expected at least one source, followed by the dataset", param_hint="SRC... DATASET")
    if update_if is not None and when_matched is not Matched.UPDATE:
        raise typer.BadParameter("can only be used with --when-matched update", param_hint="--update-if")
    *sources, uri = paths
    dataset = open_dataset(uri)
    options = read_options(
        source_format=source_format,
        columns=columns,
        delimiter=delimiter,
        types=types,
        null_values=null_values,
        known={field.name: field.type for field in dataset.schema},
    )
    source = _source(sources, options)
    with _changed(dataset, dry_run) as handle:
        builder = handle.merge_insert(split_names(on))
        if when_matched is Matched.UPDATE:
            builder.when_matched_update_all(update_if)
        elif when_matched is Matched.DELETE:
            builder.when_matched_delete()
        elif when_matched is Matched.FAIL:
            builder.when_matched_fail()
        if when_not_matched is NotMatched.INSERT:
            builder.when_not_matched_insert_all()
        if delete_missing or delete_missing_if is not None:
            builder.when_not_matched_by_source_delete(delete_missing_if)
        done = builder.execute(source)
        facts = {
            "inserted": done["num_inserted_rows"],
            "updated": done["num_updated_rows"],
            "deleted": done["num_deleted_rows"],
        }
        rows = handle.count_rows()
    text = ", ".join(f"{count:,} {name}" for name, count in facts.items())
    _tell(uri, handle, {**facts, "rows": rows}, text, "", dry_run, as_json)


def _source(names: list[str], options: ReadOptions) -> Any:
    """Return the rows of files, or of a dataset."""
    from lance_dataset.cli.counter import RowCounter
    from lance_dataset.cli.sources.files import is_dataset
    from lance_dataset.cli.sources.opening import open_sources

    if len(names) == 1 and options.format is None and is_dataset(names[0]):
        columns = None if options.columns is None else list(options.columns)
        return open_dataset(names[0]).scanner(columns, blob_handling="all_binary").to_reader()
    return RowCounter().reader(open_sources(names, options))


@contextmanager
def _changed(dataset: LanceDataset, dry_run: bool) -> Iterator[LanceDataset]:
    """Yield the dataset to change; for a dry run, a clone in a temporary folder that shares its files."""
    if not dry_run:
        yield dataset
        return
    with tempfile.TemporaryDirectory(prefix="lance-dataset-") as folder:
        yield dataset.shallow_clone(f"{folder}/trial.lance", None)


def _tell(
    uri: str, changed: LanceDataset, facts: dict[str, Any], what: str, verb: str, dry_run: bool, as_json: bool
) -> None:
    """Report the result of a change, or of a dry run."""
    from lance_dataset.cli import output

    known = {} if dry_run else {"version": changed.version}
    done = " ".join(part for part in (what, "would be" if dry_run and verb else "", verb) if part)
    now = f"{uri} {'would have' if dry_run else 'has'} {facts['rows']:,} rows"
    text = f"{done}; {now}" if dry_run else f"{done}; {now}, version {changed.version}"
    output.tell({"uri": uri, "dry_run": dry_run, **facts, **known}, text, as_json)
