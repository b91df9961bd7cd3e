"""Command line application: each command opens the dataset and does one thing; `output` formats the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from lance_dataset.cli import (
    catalog,
    change,
    compare,
    doctor,
    export,
    follow,
    load,
    look,
    maintain,
    purge,
    references,
    show,
    study,
    upkeep,
    wal,
)

__all__ = ["app"]

app = typer.Typer(
    name="lance-dataset",
    help="Inspect Lance datasets, import and export files, change and maintain datasets.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


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
    """Handle the options before the command."""


_COMMANDS: tuple[Callable[..., None], ...] = (
    *(look.info, look.schema, look.explain, look.head, look.take, look.count, look.versions, compare.diff),
    *(study.describe, study.sample, study.search, study.du, follow.tail),
    *(export.query, export.convert, export.export, change.update, change.delete, change.merge, change.restore),
    *(maintain.maintain, purge.purge, upkeep.compact, upkeep.cleanup, upkeep.validate, show.view),
    *(doctor.doctor, catalog.serve_namespace),
)
app.command("import")(load.import_)
app.command("sql")(export.sql)
for _command in _COMMANDS:
    app.command()(_command)
app.add_typer(references.tags, name="tags")
app.add_typer(references.branches, name="branches")
app.add_typer(wal.wal, name="wal")
