"""Report of a run of maintenance."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["MaintenanceReport", "MaintenanceStep", "StepOutcome"]

#: ``done``; ``due`` in a dry run; ``nothing to do``; ``off`` by the policy; ``conflict`` with other writers, until the
#: retries ran out; ``refused``, as this release cannot do it; ``stopped``, as the lease was lost.
StepOutcome: TypeAlias = Literal["done", "due", "nothing to do", "off", "conflict", "refused", "stopped"]

_FAILED = frozenset({"conflict", "refused", "stopped"})


@dataclass(frozen=True)
class MaintenanceStep:
    """A step of maintenance.

    Attributes
    ----------
    name
        ``compact``, ``refresh indices`` or ``clean up``.
    outcome
        ``done``, ``due``, ``nothing to do``, ``off``, ``conflict``, ``refused`` or ``stopped``.
    reason
        Why.
    counts
        Names and numbers of what was done, or is due.
    """

    name: str
    outcome: StepOutcome
    reason: str
    counts: tuple[tuple[str, int], ...] = ()

    @property
    def has_failed(self) -> bool:
        """True if something is due that was not done."""
        return self.outcome in _FAILED

    def __str__(self) -> str:
        counts = "; ".join(f"{name.replace('_', ' ')}: {count:,}" for name, count in self.counts)
        return f"{self.name}: {self.outcome}, {self.reason}" + (f"\n  {counts}" if counts else "")


@dataclass(frozen=True)
class MaintenanceReport:
    """Report of a run of `LanceDataset.maintain`. ``str`` makes a text of it.

    Attributes
    ----------
    uri
        The dataset.
    branch
        The branch that was maintained, ``main`` for the main one.
    dry_run
        True if nothing was changed.
    held_by
        The process that has the lease, if this one therefore did nothing: its machine, number and a random name.
    taken_over
        The process that had the lease before and let it expire, such as one that was killed.
    read_version, version
        The newest version before and after the run.
    steps
        What was done. None if another process has the lease.
    seconds
        Duration of the run.
    """

    uri: str
    branch: str
    dry_run: bool
    held_by: str | None
    taken_over: str | None
    read_version: int
    version: int
    steps: tuple[MaintenanceStep, ...]
    seconds: float

    @property
    def has_failed(self) -> bool:
        """True if a step that is due was not done. It is False if another process has the lease."""
        return any(step.has_failed for step in self.steps)

    @property
    def has_changed(self) -> bool:
        """True if something was done."""
        return any(step.outcome == "done" for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON has."""
        steps = [{**asdict(step), "counts": dict(step.counts)} for step in self.steps]
        return {**asdict(self), "steps": steps, "has_failed": self.has_failed, "has_changed": self.has_changed}

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def __str__(self) -> str:
        place = self.uri if self.branch == "main" else f"{self.uri}, branch {self.branch}"
        if self.held_by is not None and not self.dry_run:
            return f"{place}: nothing was done, as {self.held_by} is at work"
        lines = [f"{place}: version {self.read_version:,} became {self.version:,} in {self.seconds:.1f} s"]
        if self.read_version == self.version:
            lines = [f"{place}: version {self.version:,}" + (", nothing was changed" if self.dry_run else "")]
        if self.held_by is not None:
            lines.append(f"{self.held_by} is at work")
        if self.taken_over is not None:
            lines.append(f"took over from {self.taken_over}, whose lease expired")
        return "\n".join([*lines, *map(str, self.steps)])
