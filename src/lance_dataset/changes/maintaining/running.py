"""A run of maintenance: take the lease, compact, refresh indices, clean up, and report.

Every step is an ordinary commit, or an ordinary cleanup. A step that conflicts with another writer, or that this
release cannot do, is reported, and the next one follows.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from typing import Protocol

from lance_dataset.changes.compaction.running import compact
from lance_dataset.changes.compaction.settings import CompactionSettings
from lance_dataset.changes.indexing.optimize_indices import optimize_indices
from lance_dataset.changes.maintaining.due import (
    cleanup_policy,
    compaction_options,
    due_compaction,
    due_indices,
)
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.errors import CommitConflictError, UnsupportedError
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.maintenance import MaintenanceReport, MaintenanceStep, StepOutcome
from lance_dataset.records.maintenance_policy import MaintenancePolicy
from lance_dataset.table.cleanup.plan import plan_cleanup
from lance_dataset.table.cleanup.removal import Removed, cleanup, planned_removal
from lance_dataset.table.flags import check_writable
from lance_dataset.table.lease import Lease, LeaseHeldError, LeaseLostError, LeaseState, read_lease
from lance_dataset.table.references.names import MAIN_BRANCH, branch_of
from lance_dataset.threads.progress import Progress

__all__ = ["Local", "Worker", "maintain"]

#: Compactions that are computed again after a conflict. Each costs as much as the first.
_RETRIES = 3
#: Seconds between two looks at the lease of another process.
_PAUSE = 0.5


class Worker(Protocol):
    """Does the work of the two expensive steps, in this process or elsewhere."""

    def compact(self, snapshot: Snapshot, policy: MaintenancePolicy, progress: Progress) -> Snapshot:
        """Compact a table, and return the version that has it."""

    def refresh(self, snapshot: Snapshot, names: list[str], progress: Progress) -> Snapshot:
        """Add the rows that indices lack, and return the version that has it."""


class Local:
    """Work in this process."""

    def compact(self, snapshot: Snapshot, policy: MaintenancePolicy, progress: Progress) -> Snapshot:
        """Compact a table; a compaction that conflicts with another writer is planned and computed again."""

        def attempt(latest: Snapshot) -> Snapshot:
            settings = CompactionSettings.of(compaction_options(latest, policy), latest.manifest.config)
            return compact(latest, settings, progress)[0]

        return repeated_on_conflict(snapshot, attempt, _RETRIES)

    def refresh(self, snapshot: Snapshot, names: list[str], progress: Progress) -> Snapshot:
        """Add the rows that indices lack."""
        return optimize_indices(snapshot, names=names, progress=progress)


def maintain(
    snapshot: Snapshot,
    *,
    dry_run: bool = False,
    wait: dt.timedelta | None = None,
    worker: Worker | None = None,
    progress: Progress | None = None,
    show: Callable[[Snapshot], object] = lambda _: None,
) -> MaintenanceReport:
    """Do what the policy in the config of a table says is due, on the newest version of the branch.

    Parameters
    ----------
    snapshot
        Any version of the branch.
    dry_run
        True to change nothing, and only report what is due.
    wait
        How long to wait if another process has the lease.
    worker
        What does the work; None for this process.
    progress
        Is told of rows that are rewritten, rows that are indexed and files that are removed.
    show
        Is called with every version that is made, even if a later step fails.

    Raises
    ------
    InvalidInputError
        The policy has an unknown key or an invalid value.
    StorageError, CorruptFileError, OSError
        A step failed for another reason than a conflict or something that this release cannot do.
    """
    started = time.monotonic()
    newest = snapshot.newest()
    policy = MaintenancePolicy.of(newest.manifest.config)
    check_writable(newest.manifest.writer_flags, newest.manifest.path)
    branch = branch_of(newest.manifest, newest.root) or MAIN_BRANCH
    report = MaintenanceReport(snapshot.uri, branch, dry_run, None, None, newest.version, newest.version, (), 0.0)
    with ExitStack() as stack:
        lease = None
        if dry_run:
            report = replace(report, held_by=_holder(read_lease(newest.store, newest.root)))
        else:
            try:
                lease = stack.enter_context(_taken(newest, policy, wait))
            except LeaseHeldError as error:
                return replace(report, held_by=error.state.owner, seconds=time.monotonic() - started)
            newest = newest.newest()  # what the last owner of the lease did need not be done again
            report = replace(report, taken_over=lease.taken_over, read_version=newest.version)
            show(newest)
        run = _Run(
            newest, MaintenancePolicy.of(newest.manifest.config), dry_run, worker or Local(), lease, progress, show
        )
        steps = tuple(run.steps())
        return replace(report, version=run.newest.version, steps=steps, seconds=time.monotonic() - started)


def _taken(snapshot: Snapshot, policy: MaintenancePolicy, wait: dt.timedelta | None) -> Lease:
    deadline = time.monotonic() + (0.0 if wait is None else wait.total_seconds())
    while True:
        try:
            return Lease.take(snapshot.store, snapshot.root, policy.lease_seconds)
        except LeaseHeldError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE)


def _holder(state: LeaseState | None) -> str | None:
    return None if state is None or state.released else state.owner


@dataclass(frozen=True)
class _Found:
    """Result of a step."""

    outcome: StepOutcome
    reason: str
    counts: tuple[tuple[str, int], ...] = ()


class _Run:
    """The steps of a run.

    Attributes
    ----------
    newest
        The newest version that the run knows.
    """

    def __init__(
        self,
        newest: Snapshot,
        policy: MaintenancePolicy,
        dry_run: bool,
        worker: Worker,
        lease: Lease | None,
        progress: Progress | None,
        show: Callable[[Snapshot], object],
    ) -> None:
        self.newest = newest
        self._policy, self._dry_run, self._worker = policy, dry_run, worker
        self._lease, self._show = lease, show
        self._told = _Told(lease, progress)

    def steps(self) -> list[MaintenanceStep]:
        """Do all steps, and return what they did."""
        policy = self._policy
        return [
            self._step("compact", "compact", policy.compact_enabled, self._compact),
            self._step("refresh indices", "indices", policy.indices_enabled, self._refresh),
            self._step("clean up", "cleanup", policy.cleanup_enabled, self._clean_up),
        ]

    def _step(self, name: str, key: str, enabled: bool, do: Callable[[], _Found]) -> MaintenanceStep:
        if not enabled:
            return MaintenanceStep(name, "off", f"maintenance.{key}.enabled is 'false'")
        try:
            self._told.check()
            found = do()
        except LeaseLostError as error:
            found = _Found("stopped", str(error))
        except CommitConflictError as error:
            found = _Found("conflict", str(error))
        except UnsupportedError as error:
            found = _Found("refused", str(error))
        return MaintenanceStep(name, found.outcome, found.reason, found.counts)

    def _move(self, made: Snapshot) -> None:
        self.newest = made
        self._show(made)

    def _compact(self) -> _Found:
        before = self.newest
        due = due_compaction(before, self._policy)
        counts = (("fragments", due.num_fragments), ("rows", due.num_rows))
        if not due.is_due:
            return _Found("nothing to do", due.reason)
        if self._dry_run:
            return _Found("due", due.reason, counts)
        self._move(self._worker.compact(before, self._policy, self._told.step()))
        known = set(before.manifest.fragment_list.columns.ids.tolist())
        left = set(self.newest.manifest.fragment_list.columns.ids.tolist())
        return _Found(
            "done", due.reason, (("fragments_removed", len(known - left)), ("fragments_added", len(left - known)))
        )

    def _refresh(self) -> _Found:
        due = due_indices(self.newest, self._policy)
        refused = "; ".join(due.refused.values())
        counts = tuple(due.lacking.items())
        if not due.lacking:
            return _Found("refused", refused) if refused else _Found("nothing to do", "no index lacks enough rows")
        reason = f"{', '.join(due.lacking)} lacked rows"
        if self._dry_run:
            return _Found("due", "; ".join(filter(None, [reason, refused])), counts)
        self._move(self._worker.refresh(self.newest, list(due.lacking), self._told.step()))
        if refused:
            return _Found("refused", f"{refused}; done: {reason}", counts)
        return _Found("done", reason, counts)

    def _clean_up(self) -> _Found:
        latest = self.newest
        rule, words = cleanup_policy(latest, self._policy)
        least = self._policy.cleanup_min_versions
        if self._dry_run or least > 1:
            planned, files = planned_removal(
                plan_cleanup(latest.store, latest.root, latest.manifest, rule), latest.root
            )
            enough = planned.old_versions >= least or any(file.unverified for file in files)
            if not enough:
                return _Found("nothing to do", f"{planned.old_versions:,} versions are {words}, {least:,} are needed")
            if self._dry_run:
                return _Found("due", f"old versions are {words}", _counts(planned))
        removed = cleanup(latest.store, latest.root, latest.manifest, rule, self._told.step())
        if removed == Removed():
            return _Found("nothing to do", f"no version is {words}")
        return _Found("done", f"old versions are {words}", _counts(removed))


def _counts(removed: Removed) -> tuple[tuple[str, int], ...]:
    counts = ((field.name, int(getattr(removed, field.name))) for field in fields(removed))
    return tuple((name, count) for name, count in counts if count)


class _Told:
    """Progress of all steps together. It also stops work whose lease is lost, before anything is committed."""

    def __init__(self, lease: Lease | None, progress: Progress | None) -> None:
        self._lease, self._progress = lease, progress
        self._base = self._last = 0

    def check(self) -> None:
        """Raise LeaseLostError if the lease is lost."""
        if self._lease is not None:
            self._lease.check()

    def step(self) -> Progress:
        """Return the progress of the next step."""
        self._base += self._last
        self._last = 0
        return Progress(self._tell, None)

    def _tell(self, done: int, total: int) -> None:
        self.check()
        if self._progress is not None:
            self._progress.expect(total - self._last)
            self._last = total
            self._progress.reach(self._base + done)
