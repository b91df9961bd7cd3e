"""Changes between two versions: schema, fragments, rows, commits, and the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lance_dataset.errors import InvalidInputError
from lance_dataset.reports.history import described_versions

if TYPE_CHECKING:
    from lance_dataset import LanceDataset
    from lance_dataset.schema import LanceField

__all__ = ["compare"]


def compare(before: LanceDataset, after: LanceDataset) -> dict[str, Any]:
    """Return the changes between two versions of a dataset.

    Raises
    ------
    InvalidInputError
        Both are versions of one branch, and the first is the later one.
    """
    is_line = before.uri == after.uri
    if is_line and before.version > after.version:
        raise InvalidInputError(f"version {before.version} is later than {after.version}")
    facts: dict[str, Any] = {
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
    return facts


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
    found = [each["version"] for each in after.versions() if begin < each["version"] <= after.version]
    names = ("version", "timestamp", "operation", "message")
    return [{name: each[name] for name in names} for each in described_versions(after, found)]
