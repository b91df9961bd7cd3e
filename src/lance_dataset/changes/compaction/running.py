"""Compactions that one process plans, executes and commits."""

from __future__ import annotations

from collections.abc import Collection

from lance_dataset.changes.compaction.committing import check_deferral, commit_rewritten
from lance_dataset.changes.compaction.planning import Plan, plan_compaction, plan_rewrite
from lance_dataset.changes.compaction.rewriting import Rewritten, rewrite_task
from lance_dataset.changes.compaction.settings import CompactionSettings
from lance_dataset.events import emit
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of
from lance_dataset.table.flags import check_writable
from lance_dataset.threads.pools import job_pool
from lance_dataset.threads.progress import Progress
from lance_dataset.threads.waiting import map_waiting

__all__ = ["compact", "planned", "rewrite_fragments"]


def planned(snapshot: Snapshot, settings: CompactionSettings) -> Plan:
    """Choose the fragments of a snapshot to compact.

    Raises
    ------
    UnsupportedError
        The table cannot be compacted with these settings.
    """
    manifest = snapshot.manifest
    check_writable(manifest.writer_flags, manifest.path)
    check_deferral(manifest, settings.defer_index_remap)
    return plan_compaction(
        snapshot.reader, settings.limits, settings.data_storage_version, deferred=settings.defer_index_remap
    )


def compact(
    snapshot: Snapshot, settings: CompactionSettings, progress: Progress | None = None
) -> tuple[Snapshot, list[Rewritten]]:
    """Compact a table in one commit. If that fails, all new files are removed.

    Parameters
    ----------
    snapshot, settings
        The table, and what to do.
    progress
        Is told of the rows of each task.

    Returns
    -------
    snapshot : Snapshot
        The new version, or the same one if there is nothing to compact.
    rewritten : list of Rewritten
        Results of the tasks.

    Raises
    ------
    UnsupportedError
        The table cannot be compacted with these settings.
    CommitConflictError
        Other writers changed the same fragments or their columns in the meantime.
    """
    plan = planned(snapshot, settings)
    if not plan.tasks and plan.storage_version is None:
        return snapshot, []
    emit("dataset_events", event="compacting", uri=snapshot.store.uri(snapshot.root))
    return _run(snapshot, plan, settings, progress)


def rewrite_fragments(
    snapshot: Snapshot, fragment_ids: Collection[int], progress: Progress | None = None
) -> tuple[Snapshot, int]:
    """Rewrite the live rows of the given fragments, each by itself, in one commit; tell the progress of the rows.

    Returns
    -------
    snapshot : Snapshot
        The new version, or the same one if there are no such fragments.
    num_fragments : int
        Number of fragments that were rewritten.

    Raises
    ------
    UnsupportedError
        The fragments cannot be rewritten, or an index cannot follow their rows.
    CommitConflictError
        Other writers changed the same fragments or their columns in the meantime.
    """
    check_writable(snapshot.manifest.writer_flags, snapshot.manifest.path)
    plan = plan_rewrite(snapshot.reader, fragment_ids)
    if not plan.tasks:
        return snapshot, 0
    made, rewritten = _run(snapshot, plan, CompactionSettings(), progress)
    return made, len(rewritten)


def _run(
    snapshot: Snapshot, plan: Plan, settings: CompactionSettings, progress: Progress | None = None
) -> tuple[Snapshot, list[Rewritten]]:
    """Execute a plan and commit it. If that fails, all new files are removed."""
    rewritten: list[Rewritten] = []
    try:
        _execute(snapshot, plan, settings, rewritten, progress)
        made = commit_rewritten(
            snapshot, rewritten, deferred=settings.defer_index_remap, storage_version=plan.storage_version
        )
    except BaseException:
        written = data_files_of(fragment for each in rewritten for fragment in each.group.new_fragments)
        ChangeFiles(snapshot.store, snapshot.root, written).remove_unless_committed(snapshot.manifest.version)
        raise
    return made, rewritten


def _execute(
    snapshot: Snapshot,
    plan: Plan,
    settings: CompactionSettings,
    rewritten: list[Rewritten],
    progress: Progress | None,
) -> None:
    """Execute all tasks, and append their results to the list in order, even if one of them fails."""
    done: dict[int, Rewritten] = {}
    if progress is not None:
        progress.expect(sum(task.num_rows for task in plan.tasks))

    def execute(number: int) -> None:
        task = plan.tasks[number]
        done[number] = rewrite_task(snapshot, task, plan.version, settings, prune_dictionaries=plan.prunes_dictionaries)
        if progress is not None:
            progress.advance(task.num_rows)

    try:
        map_waiting(
            execute, range(len(plan.tasks)), workers=settings.num_threads or 1, stop_at_error=True, pool=job_pool
        )
    finally:
        rewritten.extend(done[number] for number in sorted(done))
