"""Repair of a dataset: a plan of steps, and their execution. Nothing is deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from lance_dataset.changes.doctor.diagnosing import Examination, Look, diagnose, examine, unreferenced_files
from lance_dataset.changes.doctor.mending_manifests import blocked_branches, manifest_tasks, small_file_tasks
from lance_dataset.changes.doctor.mending_references import reference_tasks, transaction_tasks
from lance_dataset.changes.doctor.mending_rows import index_tasks, row_tasks
from lance_dataset.changes.doctor.quarantine import Quarantine
from lance_dataset.changes.doctor.tasks import Consent, Task, Workplace, done, left
from lance_dataset.errors import LanceError
from lance_dataset.read.location import TableLocation
from lance_dataset.records.diagnosis import DiagnosisKind
from lance_dataset.records.repair import RepairAction, RepairOutcome, RepairReport, RepairStep
from lance_dataset.table.cleanup.clock import clock_lead
from lance_dataset.table.cleanup.plan import Candidate, CleanupPolicy
from lance_dataset.threads.progress import Progress

__all__ = ["Consent", "repair"]


def repair(
    location: TableLocation,
    *,
    execute: bool = False,
    consent: Consent | None = None,
    on_plan: Callable[[RepairReport], object] | None = None,
    progress: Progress | None = None,
    look: Look | None = None,
) -> RepairReport:
    """Repair the dataset at a location, with all its branches.

    Parameters
    ----------
    location
        Location of the dataset, or of a branch of it. It need not be possible to open it.
    execute
        False to only plan the repair.
    consent
        Losses that the user agrees to; None for none.
    on_plan
        Is called with the plan before it is done; if it raises, nothing is done.
    progress
        Is told of versions and fragments that were looked at, and of steps.
    look
        See `diagnose`. What it finds is not mended.

    Raises
    ------
    DatasetNotFoundError
        There is no dataset, not even a damaged one.
    """
    examined = examine(location, progress, look)
    tasks = list(_tasks(examined, consent or Consent(), execute=execute))
    before = examined.diagnosis
    plan = RepairReport(before.uri, False, tuple(task.step for task in tasks), before)
    if not execute:
        return plan
    if on_plan is not None:
        on_plan(plan)
    if not any(task.run for task in tasks):
        return replace(plan, executed=True, after=before)
    main = examined.main
    work = Workplace(main.store, main.root, Quarantine(main.store, main.root))
    work.unmended |= {task.step.branch for task in tasks if task.step.outcome is RepairOutcome.NEEDS_CONSENT}
    if progress is not None:
        progress.expect(len(tasks))
    steps: list[RepairStep] = []
    for task in tasks:
        steps.append(_run(task, work))
        if progress is not None:
            progress.advance()
    after = diagnose(location, progress, look)
    return RepairReport(before.uri, execute, tuple(steps), before, after, work.quarantine.folder)


def _tasks(examined: Examination, consent: Consent, *, execute: bool) -> Iterator[Task]:
    """Yield the steps of a repair in their order: first versions become readable, then come new versions."""
    blocked = blocked_branches(examined)
    yield from manifest_tasks(examined, blocked)
    yield from reference_tasks(examined)
    yield from row_tasks(examined, blocked, consent)
    yield from index_tasks(examined, blocked)
    yield from small_file_tasks(examined, blocked)
    yield from transaction_tasks(examined)
    yield from _orphan_tasks(examined, execute=execute)
    for finding in examined.diagnosis.findings:
        if finding.kind is DiagnosisKind.FILES and finding.subject.versions:
            yield left(finding.what, "the check must be finished first", finding.subject.branch)
        elif finding.kind is DiagnosisKind.SHARD and finding.is_damage:
            yield left(finding.what, f"shards stay as they are: {finding.remedy}", finding.subject.branch)


def _orphan_tasks(examined: Examination, *, execute: bool) -> Iterator[Task]:
    """Yield the steps for files that no version refers to: old ones are moved, young ones may belong to a writer."""
    if not examined.orphans:
        return
    main = examined.main
    lead = clock_lead(main.store, main.root) if execute else 0.0  # it is measured with a file
    before = CleanupPolicy().by_clock(lead).unverified_before
    old = [file for file in examined.orphans if file.modified < before]
    young = len(examined.orphans) - len(old)
    if old:
        yield _orphan_task(examined, old)
    if young:
        what = f"no version refers to {young:,} files that are younger than seven days"
        yield left(what, "they may belong to a running write")


def _orphan_task(examined: Examination, files: list[Candidate]) -> Task:
    size, start = sum(file.size for file in files), len(examined.main.root) + 1
    what = f"move {len(files):,} files with {size:,} bytes, over seven days old and in no version, to the quarantine"
    paths = tuple(file.path[start:] for file in files)
    step = RepairStep(RepairAction.QUARANTINE, what, paths=paths)

    def run(work: Workplace) -> RepairStep:
        unused: set[str] = set()
        for look in examined.manifests:  # a version that was committed meanwhile may use them
            if look.newest is not None:
                table = look.table
                found = unreferenced_files(table, table.location.read_manifest())
                unused |= {file.path[start:] for file in found}
        moved = work.quarantine.move([path for path in paths if path in unused], "orphan", "no version refers to it")
        return done(step, paths=tuple(moved))

    return Task(step, run)


def _run(task: Task, work: Workplace) -> RepairStep:
    if task.run is None:
        return task.step
    try:
        return task.run(work)
    except (LanceError, OSError) as error:
        return replace(task.step, outcome=RepairOutcome.FAILED, reason=str(error))
