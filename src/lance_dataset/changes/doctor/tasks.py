"""Steps of a repair with the functions that do them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lance_dataset.changes.doctor.quarantine import Quarantine
from lance_dataset.io.base import ObjectStore
from lance_dataset.records.diagnosis import DiagnosisCause
from lance_dataset.records.repair import RepairAction, RepairOutcome, RepairStep

__all__ = ["WRONG", "Consent", "Task", "Workplace", "done", "left", "quarantine_task"]

#: Causes of damage. Files that cannot be read for another reason may be whole.
WRONG = frozenset({DiagnosisCause.MISSING, DiagnosisCause.EMPTY, DiagnosisCause.CORRUPT})


@dataclass(frozen=True)
class Consent:
    """Losses that the user agreed to.

    Attributes
    ----------
    drop_lost_rows
        Newest versions may lose the rows of fragments with lost data files.
    restore_deleted_rows
        Rows whose deletion file is lost may return.
    """

    drop_lost_rows: bool = False
    restore_deleted_rows: bool = False


@dataclass
class Workplace:
    """A repair that is being done.

    Attributes
    ----------
    store, root
        The main branch.
    quarantine
        Place for the files that are moved away.
    unmended
        Branches whose rows could not be mended.
    stopped
        Branches to which nothing may be committed, as a lost version could not be committed again.
    """

    store: ObjectStore
    root: str
    quarantine: Quarantine
    unmended: set[str | None] = field(default_factory=set)
    stopped: set[str | None] = field(default_factory=set)


@dataclass(frozen=True)
class Task:
    """A step, and the function that does it and returns its outcome; None if nothing is to be done."""

    step: RepairStep
    run: Callable[[Workplace], RepairStep] | None = None


def left(
    what: str, reason: str, branch: str | None = None, outcome: RepairOutcome = RepairOutcome.LEFT, **facts: int | None
) -> Task:
    """Return a step that changes nothing, with the reason."""
    return Task(RepairStep(RepairAction.LEAVE, what, outcome, reason, branch, **facts))  # type: ignore[arg-type]


def done(step: RepairStep, reason: str = "", **facts: object) -> RepairStep:
    """Return a step that was done."""
    return replace(step, outcome=RepairOutcome.DONE, reason=reason or step.reason, **facts)  # type: ignore[arg-type]


def quarantine_task(
    what: str,
    paths: Sequence[str],
    kind: str,
    reason: str,
    branch: str | None,
    is_still_wrong: Callable[[], bool] = lambda: True,
    before: Callable[[], object] = lambda: None,
) -> Task:
    """Return a step that moves files to the quarantine.

    Parameters
    ----------
    what
        Description of the step.
    paths
        The files, below the root of the main branch.
    kind, reason
        Kind of the files and reason, for the journal.
    branch
        Branch of the files.
    is_still_wrong
        Returns False if nothing is wrong with the files any more.
    before
        Is called before the files are moved.
    """
    step = RepairStep(RepairAction.QUARANTINE, what, reason=reason, branch=branch, paths=tuple(paths))

    def run(work: Workplace) -> RepairStep:
        if not is_still_wrong():
            return replace(step, outcome=RepairOutcome.LEFT, reason="nothing is wrong with it any more")
        before()
        moved = work.quarantine.move(step.paths, kind, reason)
        return done(step, paths=tuple(moved))

    return Task(step, run)
