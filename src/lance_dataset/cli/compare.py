"""`diff`: changes between two versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import DatasetArgument, JsonOption, open_dataset, reference

if TYPE_CHECKING:
    from lance_dataset import LanceDataset
    from lance_dataset.schema import LanceField

__all__ = ["diff"]

_COMMIT_MESSAGE = "__lance_commit_message"


@guarded
def diff(
    uri: DatasetArgument,
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="Version: a number, a tag, BRANCH:NUMBER, or BRANCH: for its newest.")
    ],
    new: Annotated[str | None, typer.Argument(metavar="NEW", help="The later version. [default: the newest]")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the changes between two versions: schema, fragments, rows, and the commits between them."""
    before = open_dataset(uri, reference(old))
    after = open_dataset(uri, reference(new))
    is_line = before.uri == after.uri
    if is_line and before.version > after.version:
        raise typer.BadParameter(f"version {before.version} is later than {after.version}", param_hint="OLD")
    facts: dict[str, Any] = {
        "uri": uri,
        "old_version": before.version,
        "new_version": after.version,
        "schema": _schema_changes(before.lance_schema.fields(), after.lance_schema.fields()),
        "fragments": _fragment_changes(before, after),
        "rows": {"old": before.count_rows(), "new": after.count_rows()},
    }
    if is_line:
        delta = after.delta(compared_against=before.version)
        if before.has_stable_row_ids and after.has_stable_row_ids:
            facts["rows"] |= asdict(delta.counts())
        facts["commits"] = _commits(after, before.version)
    from lance_dataset.cli import output

    if as_json:
        output.print_json(facts)
    else:
        _show(facts)


# -- schema --------------------------------------------------------------------------------------------------------


def _schema_changes(before: Sequence[LanceField], after: Sequence[LanceField]) -> list[dict[str, Any]]:
    """Return the changes of columns. Fields are matched by id, and columns that were cast by name."""
    old, new = dict(_columns(before)), dict(_columns(after))
    old_names = {facts["column"] for facts in old.values()}
    new_names = {facts["column"] for facts in new.values()}
    changes = [
        {"change": "added", **facts}
        for field_id, facts in new.items()
        if field_id not in old and facts["column"] not in old_names
    ]
    changes += [
        {"change": "dropped", **facts}
        for field_id, facts in old.items()
        if field_id not in new and facts["column"] not in new_names
    ]
    earlier = {facts["column"]: facts for field_id, facts in old.items() if field_id not in new}
    for field_id, facts in new.items():
        was = old.get(field_id) or earlier.get(facts["column"])
        if was is not None and was != facts:
            changed = {f"old_{name}": was[name] for name in facts if was[name] != facts[name]}
            changes.append({"change": "changed", **facts, **changed})
    return changes


def _columns(fields: Sequence[LanceField], above: str = "") -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield all fields by id: name, type (of a nested field only its kind) and nullability."""
    for field in fields:
        arrow, children = field.to_arrow(), field.children()
        kind = str(arrow.type).partition("<")[0] if children else str(arrow.type)
        yield field.id(), {"column": f"{above}{field.name()}", "type": kind, "nullable": arrow.nullable}
        yield from _columns(children, f"{above}{field.name()}.")


# -- fragments and commits -----------------------------------------------------------------------------------------


def _fragment_changes(before: LanceDataset, after: LanceDataset) -> dict[str, int]:
    old = {fragment.fragment_id: fragment.metadata for fragment in before.get_fragments()}
    new = {fragment.fragment_id: fragment.metadata for fragment in after.get_fragments()}
    both = old.keys() & new.keys()
    return {
        "old": len(old),
        "new": len(new),
        "added": len(new.keys() - both),
        "removed": len(old.keys() - both),
        "with_other_columns": sum(old[each].files != new[each].files for each in both),
        "with_other_deletions": sum(old[each].deletion_file != new[each].deletion_file for each in both),
    }


def _commits(after: LanceDataset, begin: int) -> list[dict[str, Any]]:
    """Return the versions after `begin` that have not been cleaned up."""
    found = []
    for entry in after.versions():
        if begin < entry["version"] <= after.version:
            transaction = after.read_transaction(entry["version"])
            known = {} if transaction is None else transaction.transaction_properties or {}
            found.append(
                {
                    "version": entry["version"],
                    "timestamp": entry["timestamp"],
                    "operation": None if transaction is None else type(transaction.operation).__name__,
                    "message": known.get(_COMMIT_MESSAGE),
                }
            )
    return found


# -- text ----------------------------------------------------------------------------------------------------------


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
