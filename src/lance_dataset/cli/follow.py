"""`tail`: the newest versions, and those that come."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import DatasetArgument, JsonOption, open_dataset

if TYPE_CHECKING:
    from lance_dataset import LanceDataset

__all__ = ["tail"]


@guarded
def tail(
    uri: DatasetArgument,
    count: Annotated[int, typer.Option("--versions", "-n", min=0, help="How many of the newest.")] = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for new versions, until Ctrl-C.")] = False,
    seconds: Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.05, help="How often to look.")] = 1.0,
    most: Annotated[
        int | None, typer.Option("--until", metavar="VERSION", min=1, help="Version after which to stop waiting.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the newest versions, oldest first, one a line; with --follow also those that are made from now on.

    Example: lance-dataset tail flights.lance --follow
    """
    from lance_dataset.cli.output import json_value
    from lance_dataset.reports.history import described_versions

    def show(dataset: LanceDataset, versions: list[int]) -> None:
        for entry in described_versions(dataset, versions):
            typer.echo(json.dumps(json_value(entry), ensure_ascii=False) if as_json else _line(entry))

    dataset = open_dataset(uri)
    shown = [entry["version"] for entry in dataset.versions()][-count:] if count else []
    show(dataset, shown)
    newest = dataset.version
    while follow and (most is None or newest < most):
        time.sleep(seconds)
        dataset.checkout_latest()
        if dataset.version > newest:
            show(dataset, list(range(newest + 1, dataset.version + 1)))
            newest = dataset.version


def _line(entry: dict[str, Any]) -> str:
    rows = "?" if entry["rows"] is None else f"{entry['rows']:,}"
    moment = entry["timestamp"].astimezone().strftime("%Y-%m-%d %H:%M:%S%z")
    message = f"  {entry['message']}" if entry["message"] else ""
    return f"{entry['version']:>6}  {moment}  {entry['operation'] or '?':<12}  {rows:>14} rows{message}"
