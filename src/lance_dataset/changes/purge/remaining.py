"""Copies of purged rows that stay inside a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lance_dataset.changes.purge.finding import Holding, Matcher, versions_with_rows
from lance_dataset.read.opening import open_place
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.purge import RemainingCopy
from lance_dataset.table.cleanup.plan import CleanupPolicy, plan_cleanup, tagged_versions
from lance_dataset.table.fragment import LEGACY_VERSION
from lance_dataset.table.references.catalog import find_place, list_branches, place_of
from lance_dataset.table.references.names import MAIN_BRANCH, main_root

__all__ = ["remaining_copies"]


def remaining_copies(
    purged: Mapping[str | None, Snapshot], before: Mapping[str | None, Holding], matcher: Matcher
) -> Iterator[RemainingCopy]:
    """Yield what still holds the rows, or may hold them.

    Parameters
    ----------
    purged
        Newest version of each purged branch, None for the main one.
    before
        Versions that held the rows before the purge.
    matcher
        Finds the rows.
    """
    for name, head in purged.items():
        yield from _versions(name, head, before[name], versions_with_rows(head, matcher))
        if before[name].with_rows:
            yield from _dictionaries(name, head)
    head = next(iter(purged.values()))
    main = main_root(head.manifest, head.root)
    for name in (None, *sorted(list_branches(head.store, main))):
        if name not in purged:
            yield from _branch(head, name, matcher)
    bases = {base.path: base for each in purged.values() for base in each.manifest.base_paths}
    own = head.store.uri(main)
    for path in sorted(bases):
        if path not in (main, own) and not path.startswith((f"{main}/", f"{own}/")):
            yield RemainingCopy("base path", path, "its files are never removed, and may hold the rows")
    for name, each in purged.items():
        yield from _unverified(name, each)


def _versions(name: str | None, head: Snapshot, before: Holding, now: Holding) -> Iterator[RemainingCopy]:
    """Yield the versions of a purged branch that stay and hold the rows, or come from a time when it held them."""
    branch = name or MAIN_BRANCH
    tags = tagged_versions(head.store, head.root, head.manifest)
    for version in now.versions:
        older = version < head.version and version in before.versions and bool(before.with_rows)
        if version in now.with_rows:
            what = "holds the rows"
        elif older:
            what = "does not hold the rows in its data files, but its index files and transaction may hold values"
        else:
            continue
        if version in tags:
            for tag in tags[version]:
                yield RemainingCopy(
                    "tag", tag, f"version {version} of {branch} {what}; delete the tag, then purge again"
                )
        elif version >= head.version:
            yield RemainingCopy("version", f"{branch}:{version}", f"{what}; purge again")
        else:
            why = "a branch started from it, or it could not be removed"
            yield RemainingCopy("version", f"{branch}:{version}", f"{what}; {why}")


def _dictionaries(name: str | None, head: Snapshot) -> Iterator[RemainingCopy]:
    """Yield the columns whose dictionaries were not pruned."""
    schema = head.manifest.schema
    legacy = head.manifest.storage_version == LEGACY_VERSION
    pruned = set() if legacy else {field.id for field in schema.fields}
    for node in schema.walk():
        if node.logical_type.startswith("dict:") and node.id not in pruned:
            detail = f"the dictionary of this column of {name or MAIN_BRANCH} keeps values that only erased rows had; "
            yield RemainingCopy("dictionary", node.name, detail + "write the data into a new dataset to drop them")


def _branch(head: Snapshot, name: str | None, matcher: Matcher) -> Iterator[RemainingCopy]:
    place = find_place(
        head.store, main_root(head.manifest, head.root), (name, None), place_of(head.manifest, head.root)
    )
    found = versions_with_rows(open_place(head, place), matcher)
    text = ", ".join(map(str, sorted(found.with_rows)))
    if found.with_rows:
        detail = f"version {text} holds the rows; name the branch in `branches`"
        yield RemainingCopy("branch", name or MAIN_BRANCH, detail)
    elif found.unknown:
        detail = "versions of it lack a column of the condition, so it is not known whether they hold the rows"
        yield RemainingCopy("branch", name or MAIN_BRANCH, detail)


def _unverified(name: str | None, head: Snapshot) -> Iterator[RemainingCopy]:
    policy = CleanupPolicy(before_version=0, delete_unverified=True, error_if_tagged=False)
    files = plan_cleanup(head.store, head.root, head.manifest, policy).removable(head.root)
    if files:
        yield RemainingCopy(
            "files",
            str(len(files)),
            f"no version of {name or MAIN_BRANCH} refers to them; they may belong to a running or interrupted write; "
            "purge with delete_unverified=True while nobody writes",
        )
