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
    WhereOption,
    open_dataset,
    split_names,
)

if TYPE_CHECKING:
    from lance_dataset import LanceDataset

__all__ = ["delete", "merge", "update"]


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
    """Give rows new values, in one commit. Without --where all rows."""
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
def delete(
    uri: DatasetArgument,
    where: Annotated[
        str, typer.Option("--where", metavar="SQL", help="The rows for which this is true; 'true' for all.")
    ],
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete rows, in one commit. Older versions keep them until a cleanup."""
    dataset = open_dataset(uri)
    if dry_run:
        rows = dataset.count_rows(where)
        left = dataset.count_rows() - rows
    else:
        rows = dataset.delete(where)["num_deleted_rows"]
        left = dataset.count_rows()
    _tell(uri, dataset, {"deleted": rows, "rows": left}, f"{rows:,} rows", "deleted", dry_run, as_json)


class Matched(str, Enum):
    """What `merge` does with rows of the dataset whose key is in the source."""

    UPDATE = "update"
    DELETE = "delete"
    FAIL = "fail"
    KEEP = "keep"


class NotMatched(str, Enum):
    """What `merge` does with rows of the source whose key is not in the dataset."""

    INSERT = "insert"
    DROP = "drop"


@guarded
def merge(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC... DATASET",
            help="Files, directories or glob patterns, or one other dataset; last the dataset to change.",
        ),
    ],
    on: Annotated[str, typer.Option("--on", metavar="A,B,...", help="Columns of the key.")],
    when_matched: Annotated[Matched, typer.Option(help="What happens to rows whose key is in the source.")] = (
        Matched.UPDATE
    ),
    update_if: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Update only where this is true, as: source.time > target.time."),
    ] = None,
    when_not_matched: Annotated[NotMatched, typer.Option(help="What happens to new rows of the source.")] = (
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
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Update and insert rows by key, in one commit: rows of the source replace those with their key, others are new."""
    if len(paths) < 2:
        raise typer.BadParameter("needs at least one source and then the dataset", param_hint="SRC... DATASET")
    if update_if is not None and when_matched is not Matched.UPDATE:
        raise typer.BadParameter("goes only with --when-matched update", param_hint="--update-if")
    *sources, uri = paths
    dataset = open_dataset(uri)
    source = _source(sources, source_format, split_names(columns), delimiter, dataset.schema)
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
        facts = {name: done[f"num_{name}_rows"] for name in ("inserted", "updated", "deleted")}
        rows = handle.count_rows()
    text = ", ".join(f"{count:,} {name}" for name, count in facts.items())
    _tell(uri, handle, {**facts, "rows": rows}, text, "", dry_run, as_json)


def _source(
    names: list[str], source_format: str | None, columns: list[str] | None, delimiter: str | None, types: Any
) -> Any:
    """The rows of files, or of a dataset."""
    from lance_dataset.cli import sources
    from lance_dataset.cli.counter import RowCounter

    if len(names) == 1 and source_format is None and sources.is_dataset(names[0]):
        return open_dataset(names[0]).scanner(columns, blob_handling="all_binary").to_reader()
    return RowCounter().reader(sources.open_sources(names, source_format, columns, delimiter, types))


@contextmanager
def _changed(dataset: LanceDataset, dry_run: bool) -> Iterator[LanceDataset]:
    """The dataset to change; to try it out, a clone in a temporary folder that uses the files of the dataset."""
    if not dry_run:
        yield dataset
        return
    with tempfile.TemporaryDirectory(prefix="lance-dataset-") as folder:
        yield dataset.shallow_clone(f"{folder}/trial.lance", None)


def _tell(
    uri: str, changed: LanceDataset, facts: dict[str, Any], what: str, verb: str, dry_run: bool, as_json: bool
) -> None:
    """Say what was done, or would be."""
    from lance_dataset.cli import output

    known = {} if dry_run else {"version": changed.version}
    done = " ".join(part for part in (what, "would be" if dry_run and verb else "", verb) if part)
    now = f"{uri} {'would have' if dry_run else 'has'} {facts['rows']:,} rows"
    text = f"{done}; {now}" if dry_run else f"{done}; {now}, version {changed.version}"
    output.tell({"uri": uri, "dry_run": dry_run, **facts, **known}, text, as_json)
