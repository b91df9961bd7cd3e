"""`maintain`: what the policy of a dataset says is due, once or again and again."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lance_dataset.cli.guard import FAILED, guarded
from lance_dataset.cli.options import DatasetArgument, DryRunOption, JsonOption, open_dataset
from lance_dataset.errors import InvalidInputError, LanceError

if TYPE_CHECKING:
    from lance_dataset.dataset import MaintenanceReport

__all__ = ["maintain"]


@guarded
def maintain(
    uri: DatasetArgument,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Branch. [default: that of the dataset's path]")
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--every", metavar="TIME", help="Do it again and again with this pause, until Ctrl-C, as in: 10m."
        ),
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="TIME", help="How long to wait if another process is at work. [default: 0]"),
    ] = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compact, refresh indices and remove old versions, if the policy in the dataset's config says that it is due.

    Several processes may run this: only one at a time works on a dataset. The policy are the keys maintenance.* of the
    config, which update_config sets in Python. The status is 1 if a step failed. With --every, such steps and errors
    of the storage are told, and tried again in the next round; with --json, each round is a line.

    Example: lance-dataset maintain flights.lance --dry-run
    """
    pause = None if every is None else _duration(every, "--every")
    patience = None if wait is None else _duration(wait, "--wait")

    def run() -> MaintenanceReport:
        dataset = open_dataset(uri, None if branch is None else (branch, None))
        with _progress() as told:
            return dataset.maintain(dry_run=dry_run, wait=patience, progress=told)

    with _stopped_like_ctrl_c():
        report = run()
        _show(report, as_json, in_lines=pause is not None)
        if pause is not None:
            _repeat(run, pause.total_seconds(), as_json)
        elif report.has_failed:
            raise typer.Exit(FAILED)


def _repeat(run: Callable[[], MaintenanceReport], seconds: float, as_json: bool) -> None:
    while True:
        try:
            time.sleep(seconds)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
            return
        try:
            report = run()
        except (LanceError, OSError) as error:
            typer.echo(f"error: {error}", err=True)
        else:
            _show(report, as_json, in_lines=True)


def _show(report: MaintenanceReport, as_json: bool, *, in_lines: bool) -> None:
    if not as_json:
        typer.echo(str(report))
    else:
        typer.echo(json.dumps(report.to_dict(), indent=None if in_lines else 2, ensure_ascii=False))


def _duration(text: str, option: str) -> timedelta:
    from lance_dataset.util import parse_duration

    try:
        return timedelta(microseconds=parse_duration(text) // 1000)
    except (InvalidInputError, OverflowError) as error:
        reason = f"{text!r} is too long" if isinstance(error, OverflowError) else str(error)
        raise typer.BadParameter(reason, param_hint=option) from None


@contextmanager
def _stopped_like_ctrl_c() -> Iterator[None]:
    """Let a request to end, as service managers send it, remove unfinished files and release the lease."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], Any] | None]:
    """Show a bar on stderr if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("maintenance", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
