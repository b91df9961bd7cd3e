"""Command that checks a whole dataset."""

from __future__ import annotations

from dataclasses import asdict

import typer

from lance_dataset.cli.guard import FAILED, guarded
from lance_dataset.cli.options import DatasetArgument, JsonOption

__all__ = ["doctor"]


@guarded
def doctor(uri: DatasetArgument, as_json: JsonOption = False) -> None:
    """Check a whole dataset, also one that cannot be opened, and say what mends it. Nothing is changed.

    The status is 1 if something is damaged.

    Example: lance-dataset doctor flights.lance
    """
    from lance_dataset.cli import output
    from lance_dataset.debug import diagnose

    found = diagnose(uri)
    output.tell({**asdict(found), "is_healthy": found.is_healthy}, str(found), as_json)
    if not found.is_healthy:
        raise typer.Exit(FAILED)
