"""`diff`: changes between two versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import DatasetArgument, JsonOption, open_dataset, reference

__all__ = ["diff"]


@guarded
def diff(
    uri: DatasetArgument,
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="Version: a number, a tag, BRANCH:NUMBER, or BRANCH: for its newest.")
    ],
    new: Annotated[str | None, typer.Argument(metavar="NEW", help="The later version. [default: the newest]")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the changes between two versions: schema, fragments, rows, and the commits between them.

    Example: lance-dataset diff flights.lance 3 5
    """
    before, after = open_dataset(uri, reference(old)), open_dataset(uri, reference(new))
    if before.uri == after.uri and before.version > after.version:
        raise typer.BadParameter(f"version {before.version} is later than {after.version}", param_hint="OLD")
    from lance_dataset.cli import output
    from lance_dataset.reports.comparison import compare

    facts = {"uri": uri, **compare(before, after)}
    if as_json:
        output.print_json(facts)
    else:
        _show(facts)


def _show(facts: Mapping[str, Any]) -> None:
    from lance_dataset.cli import output

    output.print_pairs({"old version": facts["old_version"], "new version": facts["new_version"]})
    typer.echo("\nrows")
    output.print_pairs({f"  {name}": value for name, value in facts["rows"].items()})
    if "inserted" not in facts["rows"]:
        typer.echo("  changed rows are known only for versions of one branch with stable row ids")
    typer.echo("\nfragments")
    output.print_pairs({f"  {name.replace('_', ' ')}": value for name, value in facts["fragments"].items()})
    if facts["schema"]:
        typer.echo("\nschema")
        output.print_rows(["column", "change", "now", "before"], map(_schema_line, facts["schema"]))
    if facts.get("commits"):
        typer.echo("\ncommits")
        rows = (
            (each["version"], each["timestamp"].isoformat(sep=" ", timespec="seconds"), each["operation"] or "?")
            for each in facts["commits"]
        )
        output.print_rows(["version", "time", "operation"], rows, [True, False, False])


def _schema_line(change: Mapping[str, Any]) -> tuple[str, str, str, str]:
    now = {name: change[name] for name in ("column", "type", "nullable")}
    before = {name: change.get(f"old_{name}", value) for name, value in now.items()}
    what = change["change"]
    old = "" if what == "added" else _described(before, what == "changed")
    return change["column"], what, "" if what == "dropped" else _described(now, False), old


def _described(facts: Mapping[str, Any], named: bool) -> str:
    text = facts["type"] + ("" if facts["nullable"] else " not null")
    return f"{facts['column']}: {text}" if named else text
