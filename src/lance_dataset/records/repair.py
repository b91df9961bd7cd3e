"""Repair of a dataset: its steps, planned or done."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from lance_dataset.records.diagnosis import Diagnosis

__all__ = ["RepairAction", "RepairOutcome", "RepairReport", "RepairStep"]


class RepairAction(str, Enum):
    """Kind of a step of a repair.

    ``quarantine`` moves files to a folder below ``_quarantine``; ``commit again`` makes a lost version from its
    transaction; ``rewrite`` writes a small file from what is there; ``drop rows`` and ``restore rows`` are new versions
    without the rows of lost data files, or with rows whose deletion file is lost; ``empty columns`` is one with null in
    place of lost values of columns that were added later; ``rebuild index`` is a new version
    with the index built again, or without it; ``leave`` changes nothing.
    """

    QUARANTINE = "quarantine"
    COMMIT_AGAIN = "commit again"
    REWRITE = "rewrite"
    DROP_ROWS = "drop rows"
    EMPTY_COLUMNS = "empty columns"
    RESTORE_ROWS = "restore rows"
    REBUILD_INDEX = "rebuild index"
    LEAVE = "leave"


class RepairOutcome(str, Enum):
    """Outcome of a step: ``planned``, ``done``, ``left`` as it is, ``needs consent``, or ``failed``."""

    PLANNED = "planned"
    DONE = "done"
    LEFT = "left"
    NEEDS_CONSENT = "needs consent"
    FAILED = "failed"


@dataclass(frozen=True)
class RepairStep:
    """Step of a repair.

    Attributes
    ----------
    action
        What is done.
    what
        Description.
    outcome
        Whether it was done.
    reason
        Why nothing can be done, or what happened; empty if there is nothing to say.
    branch
        Branch that the step is about, None for the main one.
    paths
        Files that it moves or writes, below the root of the main branch.
    rows_lost, rows_emptied, rows_restored
        Number of rows that the newest version of the branch loses, of which it loses values of columns, or that return;
        None if unknown.
    version
        Version that the step made.
    """

    action: RepairAction
    what: str
    outcome: RepairOutcome = RepairOutcome.PLANNED
    reason: str = ""
    branch: str | None = None
    paths: tuple[str, ...] = ()
    rows_lost: int | None = 0
    rows_emptied: int | None = 0
    rows_restored: int | None = 0
    version: int | None = None

    def __str__(self) -> str:
        more = f": {self.reason}" if self.reason else ""
        made = "" if self.version is None else f" (version {self.version})"
        return f"{self.outcome.value}: {self.what}{made}{more}"


@dataclass(frozen=True)
class RepairReport:
    """Repair of a dataset, planned or done. ``str`` makes a text of it, `to_json` JSON.

    Attributes
    ----------
    uri
        Location of the dataset.
    executed
        False if this is only a plan.
    steps
        Steps in their order.
    before
        What was found before the repair.
    after
        What is found after it; None for a plan.
    quarantine
        Folder, below the root of the main branch, with the files that were moved away and ``journal.jsonl``, which says
        for each of them where it was and why it was moved, and names new versions; None if it was not needed.
    """

    uri: str
    executed: bool
    steps: tuple[RepairStep, ...]
    before: Diagnosis
    after: Diagnosis | None = None
    quarantine: str | None = None

    @property
    def rows_lost(self) -> int:
        """Number of rows that newest versions lose, as far as it is known."""
        return sum(step.rows_lost or 0 for step in self._counted)

    @property
    def rows_emptied(self) -> int:
        """Number of rows of which newest versions lose values of columns, as far as it is known."""
        return sum(step.rows_emptied or 0 for step in self._counted)

    @property
    def rows_restored(self) -> int:
        """Number of deleted rows that return to newest versions, as far as it is known."""
        return sum(step.rows_restored or 0 for step in self._counted)

    @property
    def is_healthy(self) -> bool:
        """True if nothing is damaged: after the repair, or now if it is only a plan."""
        return (self.after or self.before).is_healthy

    @property
    def _counted(self) -> list[RepairStep]:
        wanted = RepairOutcome.DONE if self.executed else RepairOutcome.PLANNED
        return [step for step in self.steps if step.outcome is wanted]

    def to_dict(self) -> dict[str, Any]:
        """Return all values as plain ones."""
        counts = {name: getattr(self, name) for name in ("rows_lost", "rows_emptied", "rows_restored")}
        return {**asdict(self), **counts}

    def to_json(self) -> str:
        """Return all values as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        if not self.steps:
            return f"{self.uri}: there is nothing to repair"
        lines = [f"{self.uri}: {'repair' if self.executed else 'plan of a repair; nothing was changed'}"]
        lines += [f"  {step}" for step in self.steps]
        if self.quarantine is not None:
            lines.append(f"{self.quarantine}/journal.jsonl says what was done, and where the moved files were")
        if self.after is not None:
            lines.append(str(self.after))
        return "\n".join(lines)
