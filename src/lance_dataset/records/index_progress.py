"""Progress of building an index, as callbacks see it."""

from __future__ import annotations

from lance_dataset.late_dataclass import dataclass

__all__ = ["IndexProgress"]


@dataclass(frozen=True)
class IndexProgress:
    """One report of progress.

    Attributes
    ----------
    event
        ``start``, ``progress`` or ``complete``.
    stage
        Name of the stage, such as ``load_data``.
    completed, total
        Units that are done, and units of the stage; None if unknown.
    unit
        Name of the unit, such as ``rows``.
    """

    event: str
    stage: str
    completed: int | None = None
    total: int | None = None
    unit: str = ""

    @property
    def fraction(self) -> float | None:
        """Share of the stage that is done; None if unknown."""
        if self.completed is None or not self.total:
            return None
        return self.completed / self.total
