"""Purge: delete rows, rewrite the fragments that hold them, and remove the versions before.

A branch gets files of its own if the version that it started from holds the rows, so that this can go.
Every step is an ordinary commit or an ordinary cleanup. If a purge is interrupted, the next one continues: it searches
the data files of all versions, so it finds the rows that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow.compute as pc

from lance_dataset.changes.commit import commit_change
from lance_dataset.changes.compaction.running import rewrite_fragments
from lance_dataset.changes.purge.finding import Holding, Matcher, Matches, versions_with_rows
from lance_dataset.changes.purge.remaining import remaining_copies
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.changes.rows.delete import delete_matches
from lance_dataset.errors import InvalidInputError
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.opening import open_place
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.purge import PurgeReport
from lance_dataset.table.cleanup.removal import CleanupPolicy, Removed, cleanup
from lance_dataset.table.flags import check_writable
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import is_system_index, parse_indices
from lance_dataset.table.operations import CreateIndex, ReserveFragments
from lance_dataset.table.references.catalog import find_place, list_branches, place_of
from lance_dataset.table.references.names import MAIN_BRANCH, branch_of, main_root
from lance_dataset.threads.progress import Progress

__all__ = ["purge"]


@dataclass
class _Tally:
    """Counts over all branches and all repetitions of a change.

    Attributes
    ----------
    made
        Is called with each version that is made, as a later step may fail.
    """

    made: Callable[[Snapshot], object]
    rows_deleted: int = 0
    rows_erased: int = 0
    fragments_rewritten: int = 0
    indices_dropped: dict[str, None] = field(default_factory=dict)


def purge(
    snapshot: Snapshot,
    where: str | pc.Expression,
    branches: Sequence[str] | None,
    *,
    delete_unverified: bool,
    show: Callable[[Snapshot], object],
    progress: Progress | None = None,
) -> PurgeReport:
    """Erase rows from branches, and remove the versions that hold them.

    Parameters
    ----------
    snapshot
        Version of the current branch.
    where
        SQL text or a pyarrow expression that is true for the rows to erase.
    branches
        Names of the branches, ``main`` for the main one; None for the current one.
    delete_unverified
        True to also remove files that no version refers to.
    show
        Is called with each version of the current branch that is made, even if a later step fails.
    progress
        Progress of the rows that are rewritten; None to tell nobody.

    Returns
    -------
    PurgeReport
        What was removed, and what still holds the rows.

    Raises
    ------
    FilterError, FieldNotFoundError, TypeError
        The condition does not fit the schema of a branch.
    VersionNotFoundError, InvalidInputError
        A branch does not exist, or none is given.
    UnsupportedError
        The fragments cannot be rewritten.
    CommitConflictError
        Other writers changed the same fragments, and the retries ran out.
    """
    here = branch_of(snapshot.manifest, snapshot.root)
    names = _ordered(snapshot, _checked_names(snapshot, branches))
    heads = {name: _newest(snapshot, name) for name in names}
    matcher = Matcher(where)
    for head in heads.values():
        check_writable(head.manifest.writer_flags, head.manifest.path)
        matcher.find(head)  # all conditions are checked before anything changes
    before = {name: versions_with_rows(head, matcher) for name, head in heads.items()}
    tally = _Tally(lambda made: show(made) if made.root == snapshot.root else None)
    if here in heads:
        show(heads[here])
    known = list_branches(snapshot.store, main_root(snapshot.manifest, snapshot.root))
    for name in names:
        if before[name].with_rows:
            heads[name] = _erased(heads[name], matcher, tally, progress)
        if name is not None and name in known:
            parent = before.get(known[name].parent_branch)
            if parent is not None and known[name].parent_version in parent.with_rows:
                heads[name] = _detached_from_parent(heads[name], tally, progress)
    removed = [_cleaned(heads[name], before[name], delete_unverified) for name in names]
    report = PurgeReport(
        branches=tuple(name or MAIN_BRANCH for name in names),
        rows_deleted=tally.rows_deleted,
        rows_erased=tally.rows_erased,
        fragments_rewritten=tally.fragments_rewritten,
        indices_dropped=tuple(tally.indices_dropped),
        versions_removed=sum(each.old_versions for each in removed),
        files_removed=sum(map(_num_files, removed)),
        bytes_removed=sum(each.bytes_removed for each in removed),
        failed_deletes=sum(each.failed_deletes for each in removed),
    )
    purged = {name: heads[name] for name in names}
    return replace(report, remaining=tuple(remaining_copies(purged, before, matcher)))


def _checked_names(snapshot: Snapshot, branches: Sequence[str] | None) -> list[str | None]:
    """Return the branches to purge, None for the main one."""
    manifest, root, store = snapshot.manifest, snapshot.root, snapshot.store
    if branches is None:
        return [branch_of(manifest, root)]
    if isinstance(branches, str | bytes) or not isinstance(branches, Sequence):
        raise TypeError(f"branches must be a list of names of branches, not {type(branches).__name__}")
    if not branches:
        raise InvalidInputError("branches must not be empty; leave it out to purge the current branch")
    main, here = main_root(manifest, root), place_of(manifest, root)
    return list(dict.fromkeys(find_place(store, main, (name, None), here).branch for name in branches))


def _ordered(snapshot: Snapshot, names: Sequence[str | None]) -> list[str | None]:
    """Order branches so that each comes before the one it started from, whose files it may use until it is purged."""
    known = list_branches(snapshot.store, main_root(snapshot.manifest, snapshot.root))

    def depth(name: str | None) -> int:
        steps = 0
        while name is not None and name in known and steps <= len(known):
            name, steps = known[name].parent_branch, steps + 1
        return steps

    return sorted(names, key=depth, reverse=True)


def _newest(snapshot: Snapshot, branch: str | None) -> Snapshot:
    manifest, root = snapshot.manifest, snapshot.root
    if branch == branch_of(manifest, root):
        return snapshot.newest()
    place = find_place(snapshot.store, main_root(manifest, root), (branch, None), place_of(manifest, root))
    return open_place(snapshot, place)


# -- commits ---------------------------------------------------------------------------------------------------------


def _erased(head: Snapshot, matcher: Matcher, tally: _Tally, progress: Progress | None) -> Snapshot:
    """Commit versions of a branch until the newest one does not hold the rows, and return that one."""
    made = repeated_on_conflict(head, lambda latest: _erase(latest, matcher, tally, progress))
    if made.version == head.version:
        # Only older versions held the rows. The transaction of this one may hold the text of a condition, and it can
        # be removed only if it is not the newest.
        made = commit_change(made, ReserveFragments(1))
        tally.made(made)
    return made


def _erase(latest: Snapshot, matcher: Matcher, tally: _Tally, progress: Progress | None) -> Snapshot:
    hits = matcher.find(latest)
    live = [(reader, np.setdiff1d(rows, reader.deletions, assume_unique=True)) for reader, rows in hits]
    live = [(reader, rows) for reader, rows in live if len(rows)]
    if live:
        # The condition is not recorded: its text names what it erases.
        latest, count = delete_matches(latest, live, "")
        tally.made(latest)
        tally.rows_deleted += count
        tally.rows_erased += _rows_gone(latest, hits)
    latest = _without_indices(latest, tally)
    left = {reader.fragment.id: (reader, rows) for reader, rows in hits if _has(latest, reader)}
    latest, count = rewrite_fragments(latest, left.keys(), progress)
    tally.made(latest)
    tally.fragments_rewritten += count
    tally.rows_erased += sum(len(rows) for _, rows in left.values())
    return latest


def _has(snapshot: Snapshot, reader: FragmentReader) -> bool:
    return snapshot.manifest.fragment(reader.fragment.id) is not None


def _rows_gone(latest: Snapshot, hits: Matches) -> int:
    """Return the number of rows in fragments that a delete removed as a whole."""
    return sum(len(rows) for reader, rows in hits if not _has(latest, reader))


def _without_indices(latest: Snapshot, tally: _Tally) -> Snapshot:
    """Drop all indices. Their files keep values of rows that were deleted, even when the rows move."""
    found = [index for index in parse_indices(latest.manifest.index_section) if not is_system_index(index)]
    if not found:
        return latest
    dropped = tuple(IndexMetadata.from_proto(index, "index section") for index in found)
    made = commit_change(latest, CreateIndex(removed_indices=dropped))
    tally.made(made)
    tally.indices_dropped.update(dict.fromkeys(sorted({index.name for index in found})))
    return made


def _detached_from_parent(head: Snapshot, tally: _Tally, progress: Progress | None) -> Snapshot:
    """Rewrite the fragments of a branch whose files lie elsewhere in the dataset.

    The version that the branch started from holds the rows, and cannot be removed while the branch needs its files.
    """
    main = main_root(head.manifest, head.root)
    places = (main, head.store.uri(main))

    def rewritten(latest: Snapshot) -> Snapshot:
        inside = {base.id for base in latest.manifest.base_paths if _is_inside(base.path, places)}
        inherited = {
            reader.fragment.id
            for reader in latest.reader.fragments
            if any(file.base_id in inside for file in reader.fragment.files)
        }
        made, count = rewrite_fragments(latest, inherited, progress)
        tally.made(made)
        tally.fragments_rewritten += count
        return made

    return repeated_on_conflict(head, rewritten)


def _is_inside(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


# -- cleanup ---------------------------------------------------------------------------------------------------------


def _cleaned(head: Snapshot, before: Holding, delete_unverified: bool) -> Removed:
    """Remove all versions before the newest one if any held the rows."""
    if not before.with_rows and not delete_unverified:
        return Removed()
    policy = CleanupPolicy(
        before_version=None if before.with_rows else 0, delete_unverified=delete_unverified, error_if_tagged=False
    )
    return cleanup(head.store, head.root, head.manifest, policy)


def _num_files(removed: Removed) -> int:
    return (
        removed.data_files_removed
        + removed.transaction_files_removed
        + removed.index_files_removed
        + removed.deletion_files_removed
        + removed.old_versions
    )
