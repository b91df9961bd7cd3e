"""Command that checks a whole dataset, and repairs it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from lance_dataset.cli.guard import FAILED, guarded
from lance_dataset.cli.options import DatasetArgument, JsonOption

__all__ = ["doctor"]


@guarded
def doctor(
    uri: DatasetArgument,
    repair: Annotated[bool, typer.Option("--repair", help="Plan a repair; nothing is changed without --yes.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do the repair.")] = False,
    drop_lost_rows: Annotated[
        bool, typer.Option("--drop-lost-rows", help="Let newest versions lose the rows whose data files are lost.")
    ] = False,
    restore_deleted_rows: Annotated[
        bool, typer.Option("--restore-deleted-rows", help="Let deleted rows return whose deletion file is lost.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a whole dataset, also one that cannot be opened, and say what mends it; with --repair, mend it.

    A repair deletes nothing: damaged files that cannot be made again are moved to the folder _quarantine of the
    dataset, with a journal. The plan is printed before anything is done. The status is 1 if something is damaged, after
    a repair: still damaged.

    Example: lance-dataset doctor flights.lance --repair
    """
    from lance_dataset.cli import output
    from lance_dataset.debug import diagnose
    from lance_dataset.debug import repair as mend

    for option, is_given in (
        ("--yes", yes),
        ("--drop-lost-rows", drop_lost_rows),
        ("--restore-deleted-rows", restore_deleted_rows),
    ):
        if is_given and not repair:
            raise typer.BadParameter("can only be used with --repair", param_hint=option)
    if not repair:
        found = diagnose(uri)
        output.tell({**asdict(found), "is_healthy": found.is_healthy}, str(found), as_json)
        is_healthy = found.is_healthy
    else:
        report = mend(
            uri,
            execute=yes,
            drop_lost_rows=drop_lost_rows,
            restore_deleted_rows=restore_deleted_rows,
            on_plan=None if as_json else typer.echo,
        )
        output.tell(report.to_dict(), str(report), as_json)
        is_healthy = report.is_healthy
    if not is_healthy:
        raise typer.Exit(FAILED)
