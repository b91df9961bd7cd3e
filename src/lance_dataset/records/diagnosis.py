"""Findings of a check of a whole dataset."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Diagnosis", "Finding"]


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a dataset, or wastes space or time.

    Attributes
    ----------
    kind
        ``version``, ``data``, ``index``, ``reference`` and ``files`` for damage; ``orphans``, ``coverage``,
        ``fragments`` and ``old tag`` for what only costs space or time.
    what
        Description, with the place.
    remedy
        What mends it: Python code for a dataset ``ds``, or words.
    is_damage
        True if something cannot be read.
    """

    kind: str
    what: str
    remedy: str
    is_damage: bool = True

    def __str__(self) -> str:
        return f"{'damage' if self.is_damage else 'advice'}: {self.kind}: {self.what}\n  to mend it: {self.remedy}"


@dataclass(frozen=True)
class Diagnosis:
    """Result of a check of a whole dataset. ``str`` makes a text of it.

    Attributes
    ----------
    uri
        Location of the dataset.
    versions
        Number of versions that can be opened.
    newest
        Newest version that can be opened; None if none can.
    findings
        What was found, damage first.
    """

    uri: str
    versions: int
    newest: int | None
    findings: tuple[Finding, ...]

    @property
    def is_healthy(self) -> bool:
        """True if nothing is damaged."""
        return not any(finding.is_damage for finding in self.findings)

    def __str__(self) -> str:
        state = "no damage was found" if self.is_healthy else "the dataset is damaged"
        lines = [f"{self.uri}: {self.versions:,} versions can be opened; {state}"]
        return "\n".join([*lines, *(str(finding) for finding in self.findings)])
