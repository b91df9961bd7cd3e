"""Findings of a check of a whole dataset."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

__all__ = ["Diagnosis", "DiagnosisCause", "DiagnosisKind", "Finding", "FindingSubject", "VersionPlace", "version_names"]

#: Branch (None for the main one) and version, as `LanceDataset.checkout_version` takes them.
VersionPlace: TypeAlias = "tuple[str | None, int]"

#: Versions that a text names one by one.
_NAMED = 12


class DiagnosisKind(str, Enum):
    """Kind of a finding.

    The first ones are damage: ``version`` (a manifest), ``data`` (data files and what belongs to them), ``deletion``
    (files of deleted rows), ``index``, ``reference`` (tags and branches), ``shard`` (of a MemWAL; files that nobody
    needs are only an advice) and ``files`` (a check that cannot go on). The others only cost space or time: ``hint``
    (files that name the newest version), ``transaction`` files, ``orphans`` (files that nothing refers to),
    ``coverage`` of indices, many small ``fragments``, ``old tag``, ``old branch`` and ``old reader`` (the copy of the
    manifest for releases before 0.8.1).
    """

    VERSION = "version"
    DATA = "data"
    DELETION = "deletion"
    INDEX = "index"
    REFERENCE = "reference"
    SHARD = "shard"
    FILES = "files"
    HINT = "hint"
    TRANSACTION = "transaction"
    ORPHANS = "orphans"
    COVERAGE = "coverage"
    FRAGMENTS = "fragments"
    OLD_TAG = "old tag"
    OLD_BRANCH = "old branch"
    OLD_READER = "old reader"


class DiagnosisCause(str, Enum):
    """Cause of damage.

    A file is ``missing``, ``empty``, or ``corrupt``: shorter than it should be, or with content that contradicts
    itself or the manifest. Nothing is known to be wrong with files that are ``unsupported`` by this release, or
    ``unreadable`` because of the store or the permissions.
    """

    MISSING = "missing"
    EMPTY = "empty"
    CORRUPT = "corrupt"
    UNSUPPORTED = "unsupported"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class FindingSubject:
    """Subject of a finding, for programs. Members that do not apply are None or empty.

    Attributes
    ----------
    cause
        What is wrong with the file.
    path
        The file: its path below the root of the main branch, or its URI if it is in a base path elsewhere.
    versions
        Pairs of branch (None for the main one) and version that need the file, newest first.
    newest
        Branches (None for the main one) whose newest version needs it.
    branch, tag, index, column
        Names.
    fragment
        Id of the fragment.
    files, size
        Number of files, and their bytes.
    shard
        Id of the shard of a MemWAL.
    """

    cause: DiagnosisCause | None = None
    path: str | None = None
    versions: tuple[VersionPlace, ...] = ()
    newest: tuple[str | None, ...] = ()
    branch: str | None = None
    tag: str | None = None
    index: str | None = None
    column: str | None = None
    fragment: int | None = None
    files: int | None = None
    size: int | None = None
    shard: str | None = None


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a dataset, or wastes space or time.

    Attributes
    ----------
    kind
        See `DiagnosisKind`; it compares equal to its text.
    what
        Description, with the place.
    remedy
        What mends it: Python code for a dataset ``ds``, or words.
    is_damage
        True if something cannot be read.
    subject
        What it is about, for programs.
    """

    kind: DiagnosisKind
    what: str
    remedy: str
    is_damage: bool = True
    subject: FindingSubject = FindingSubject()

    def __str__(self) -> str:
        label = "damage" if self.is_damage else "advice"
        return f"{label}: {self.kind.value}: {self.what}\n  to mend it: {self.remedy}"


@dataclass(frozen=True)
class Diagnosis:
    """Result of a check of a whole dataset. ``str`` makes a text of it.

    Attributes
    ----------
    uri
        Location of the dataset.
    versions
        Number of versions of the main branch that can be opened.
    newest
        Newest of them; None if none can.
    findings
        What was found, damage first.
    branches
        Number of versions that can be opened, by branch other than the main one.
    """

    uri: str
    versions: int
    newest: int | None
    findings: tuple[Finding, ...]
    branches: tuple[tuple[str, int], ...] = ()

    @property
    def is_healthy(self) -> bool:
        """True if nothing is damaged."""
        return not any(finding.is_damage for finding in self.findings)

    def __str__(self) -> str:
        state = "no damage was found" if self.is_healthy else "the dataset is damaged"
        more = "".join(f", {count:,} of the branch {name!r}" for name, count in self.branches)
        lines = [f"{self.uri}: {self.versions:,} versions can be opened{more}; {state}"]
        return "\n".join([*lines, *(str(finding) for finding in self.findings)])


def version_names(places: tuple[VersionPlace, ...]) -> str:
    """Return a text that names versions, such as ``version 4`` or ``versions 1 to 3, side:5``; not for none."""
    by_branch: dict[str | None, list[int]] = {}
    for branch, version in places:
        by_branch.setdefault(branch, []).append(version)
    names: list[str] = []
    for branch, versions in sorted(by_branch.items(), key=lambda item: item[0] or ""):
        prefix = "" if branch is None else f"{branch}:"
        names += [f"{prefix}{text}" for text in _runs(sorted(set(versions)))]
    more = f" and {len(names) - _NAMED:,} more ranges" if len(names) > _NAMED else ""
    return f"{'version' if len(places) == 1 else 'versions'} {', '.join(names[:_NAMED])}{more}"


def _runs(versions: list[int]) -> list[str]:
    """Return ascending numbers as text, with runs of three and more as ranges."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and runs[-1][-1] == version - 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    texts: list[str] = []
    for run in runs:
        texts += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
    return texts
