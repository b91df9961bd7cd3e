"""A compaction as a whole: planned, executed and committed by one process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lance_dataset.changes.compaction.committing import check_deferral, commit_rewritten
from lance_dataset.changes.compaction.planning import Plan, Task, plan_compaction
from lance_dataset.changes.compaction.rewriting import Rewritten, rewrite_task
from lance_dataset.changes.compaction.settings import CompactionSettings
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of
from lance_dataset.table.flags import check_writable

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["compact", "planned"]


def planned(dataset: LanceDataset, settings: CompactionSettings) -> Plan:
    """What is to be compacted of the version that a handle shows.

    Raises
    ------
    UnsupportedError
        The dataset cannot be compacted like that.
    """
    manifest = dataset._manifest
    check_writable(manifest.writer_flags, manifest.path)
    check_deferral(manifest, settings.defer_index_remap)
    return plan_compaction(
        dataset._reader, settings.limits, settings.data_storage_version, deferred=settings.defer_index_remap
    )


def compact(dataset: LanceDataset, settings: CompactionSettings) -> list[Rewritten]:
    """Compact a dataset; the handle moves to the new version.

    Returns
    -------
    list of Rewritten
        What the tasks made; nothing, and no commit, if nothing needs to be done. If anything fails, all files are
        removed again.

    Raises
    ------
    UnsupportedError
        The dataset cannot be compacted like that.
    CommitConflictError
        Others changed the same fragments or their columns meanwhile.
    """
    plan = planned(dataset, settings)
    if not plan.tasks and plan.storage_version is None:
        return []
    rewritten: list[Rewritten] = []
    try:
        _execute(dataset, plan, settings, rewritten)
        made = commit_rewritten(
            dataset, rewritten, deferred=settings.defer_index_remap, storage_version=plan.storage_version
        )
    except BaseException:
        written = data_files_of(fragment for each in rewritten for fragment in each.group.new_fragments)
        ChangeFiles(dataset._store, dataset._root, written).remove_unless_committed(dataset._manifest.version)
        raise
    dataset._show(made)
    return rewritten


def _execute(dataset: LanceDataset, plan: Plan, settings: CompactionSettings, rewritten: list[Rewritten]) -> None:
    """Execute all tasks; what they made is added to the list in their order, also if one fails."""
    handle = dataset._snapshot()

    def execute(task: Task) -> Rewritten:
        return rewrite_task(handle, task, plan.version, settings)

    workers = min(settings.num_threads or 1, len(plan.tasks))
    if workers < 2:
        rewritten.extend(map(execute, plan.tasks))
        return
    failed: BaseException | None = None
    with ThreadPoolExecutor(workers, thread_name_prefix="lance-compact") as pool:
        futures = [pool.submit(execute, task) for task in plan.tasks]
        for future in futures:
            try:
                if failed is None or not future.cancel():
                    rewritten.append(future.result())
            except BaseException as error:
                failed = failed or error
    if failed is not None:
        raise failed
