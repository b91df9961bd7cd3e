"""Command that erases rows and their copies in old versions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import DatasetArgument, JsonOption, open_dataset, split_names

__all__ = ["purge"]


@guarded
def purge(
    uri: DatasetArgument,
    where: Annotated[
        str, typer.Option("--where", metavar="SQL", help="Erase the rows for which this is true, as in: id = 77777.")
    ],
    branches: Annotated[
        str | None,
        typer.Option("--branches", metavar="A,B,...", help="Branches to purge. [default: that of the dataset's path]"),
    ] = None,
    delete_unverified: Annotated[
        bool,
        typer.Option(
            "--delete-unverified", help="Also remove recent files that no version uses. Only safe while nobody writes!"
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Erase rows for good: delete them, rewrite the files that hold them, drop all indices, remove all old versions.

    If no version holds such rows, nothing changes. Versions with a tag stay and are reported.

    Example: lance-dataset purge people.lance --where "id = 77777"
    """
    from lance_dataset.cli import output

    dataset = open_dataset(uri)
    report = dataset.purge(where, branches=split_names(branches), delete_unverified=delete_unverified)
    text = f"{report}\n{uri} has version {dataset.version}"
    output.tell({"uri": uri, **asdict(report), "version": dataset.version}, text, as_json)
