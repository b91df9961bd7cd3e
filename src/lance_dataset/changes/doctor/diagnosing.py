"""Check of a whole dataset: versions, files, indices, references, and what wastes space. Nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lance_dataset.changes.doctor.files import FileLook
from lance_dataset.changes.doctor.indices import IndexLook
from lance_dataset.changes.doctor.manifests import ManifestLook
from lance_dataset.changes.doctor.references import ReferenceLook
from lance_dataset.changes.doctor.survey import (
    BranchTable,
    OpenVersion,
    UnreadVersion,
    branch_tables,
    cause_of,
    main_location,
    read_versions,
)
from lance_dataset.changes.doctor.transactions import TransactionLook
from lance_dataset.errors import LanceError
from lance_dataset.read.location import TableLocation
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.diagnosis import Diagnosis, DiagnosisKind, Finding, FindingSubject
from lance_dataset.table.cleanup.plan import Candidate, CleanupPolicy, plan_cleanup
from lance_dataset.table.manifest import Manifest
from lance_dataset.threads.progress import Progress

__all__ = ["Examination", "Look", "diagnose", "examine", "unreferenced_files"]

#: Fragments with fewer rows are small; more of them than this make scans slow.
_SMALL_ROWS, _MANY_SMALL = 10_000, 1_000

#: A look at the newest version of each branch, of a room above this one.
Look: TypeAlias = "Callable[[Snapshot], Iterator[Finding]]"


@dataclass(frozen=True)
class Examination:
    """A diagnosis, and what its looks know beyond it.

    Attributes
    ----------
    main
        Location of the main branch.
    diagnosis
        The diagnosis.
    manifests, transactions
        The looks at each branch, the main one first.
    damaged
        All findings of damaged data files and deletion files, of which the diagnosis has the first ones.
    orphans
        Files that no version refers to.
    """

    main: TableLocation
    diagnosis: Diagnosis
    manifests: tuple[ManifestLook, ...]
    transactions: tuple[TransactionLook, ...]
    damaged: tuple[Finding, ...]
    orphans: tuple[Candidate, ...]


def diagnose(location: TableLocation, progress: Progress | None = None, look: Look | None = None) -> Diagnosis:
    """Check the dataset at a location, with all its branches.

    Parameters
    ----------
    location
        Location of the dataset, or of a branch of it.
    progress
        Is told of versions and fragments that were looked at.
    look
        Finds more in the newest version of each branch; None for nothing.

    Raises
    ------
    DatasetNotFoundError
        There is no dataset, not even a damaged one.
    """
    return examine(location, progress, look).diagnosis


def examine(location: TableLocation, progress: Progress | None = None, look: Look | None = None) -> Examination:
    """Check the dataset at a location. Parameters and errors are those of `diagnose`."""
    main = main_location(location)
    store, root = main.store, main.root
    failures: list[Finding] = []
    references = ReferenceLook(store, root)
    files, indices = FileLook(store, root, progress), IndexLook(store, root)
    manifests: list[ManifestLook] = []
    transactions: list[TransactionLook] = []
    small: list[Finding] = []
    for table in branch_tables(main):
        versions, history = ManifestLook(table), TransactionLook(table)
        manifests.append(versions)
        transactions.append(history)
        for version in read_versions(table):
            if isinstance(version, UnreadVersion):
                versions.unread.append(version)
            else:
                for visited in (versions, history, files, indices, references):
                    failures += _visited(visited, version)
                small += _small_fragments(version)
            if progress is not None:
                progress.expect(1)
                progress.advance()
        failures += _finished(history.check(), table.branch)
        if look is not None and versions.newest is not None:
            failures += _finished(look(versions.newest.snapshot), table.branch)
    if not manifests[0].count and not manifests[0].unread:
        main.read_manifest()  # raises: there is no dataset
    unread = frozenset((each.table.branch, each.name.version) for known in manifests for each in known.unread)
    findings = [finding for known in manifests for finding in _finished(known.findings(), known.table.branch)]
    findings += [*files.findings(), *indices.findings(), *failures, *_finished(references.findings(unread)), *small]
    orphans = _orphans(manifests, findings)
    findings.sort(key=lambda finding: not finding.is_damage)
    newest = manifests[0].newest
    branches = tuple((look.table.branch, look.count) for look in manifests if look.table.branch is not None)
    diagnosis = Diagnosis(
        main.uri, manifests[0].count, None if newest is None else newest.manifest.version, tuple(findings), branches
    )
    return Examination(main, diagnosis, tuple(manifests), tuple(transactions), tuple(files.all_findings()), orphans)


def _visited(
    look: ManifestLook | TransactionLook | FileLook | IndexLook | ReferenceLook, version: OpenVersion
) -> list[Finding]:
    """Show a version to a look. If it cannot go on, that is a finding, too."""
    try:
        look.visit(version)
    except (LanceError, OSError) as error:
        what = f"a check of version {version.manifest.version} could not be finished: {error}"
        subject = FindingSubject(versions=(version.place,), branch=version.table.branch)
        remedy = "mend the other damage, and check again"
        return [Finding(DiagnosisKind.FILES, what, remedy, subject=subject)]
    return []


def _finished(found: Iterator[Finding], branch: str | None = None) -> list[Finding]:
    """Return findings; a look that cannot go on is a finding, too."""
    findings: list[Finding] = []
    try:
        findings.extend(found)
    except (LanceError, OSError) as error:
        what, remedy = f"a check could not be finished: {error}", "mend the other damage, and check again"
        subject = FindingSubject(cause_of(error), branch=branch)
        findings.append(Finding(DiagnosisKind.FILES, what, remedy, subject=subject))
    return findings


def _small_fragments(version: OpenVersion) -> Iterator[Finding]:
    """Find thousands of small fragments of a newest version."""
    if not version.is_newest:
        return
    small = sum((fragment.physical_rows or 0) < _SMALL_ROWS for fragment in version.manifest.fragment_list)
    if small > _MANY_SMALL:
        what = f"{small:,} fragments have fewer than {_SMALL_ROWS:,} rows, so scans and commits are slow"
        subject = FindingSubject(versions=(version.place,), branch=version.table.branch, files=small)
        yield Finding(DiagnosisKind.FRAGMENTS, what, "ds.optimize.compact_files()", is_damage=False, subject=subject)


def _orphans(manifests: list[ManifestLook], findings: list[Finding]) -> tuple[Candidate, ...]:
    """Find files that no version refers to, as far as all versions, tags and branches can be read."""
    unknown = {DiagnosisKind.VERSION, DiagnosisKind.REFERENCE}
    if any(finding.kind in unknown and finding.subject.cause is not None for finding in findings):
        what = "files that no version refers to were not looked for, as not all versions and references can be read"
        findings.append(Finding(DiagnosisKind.ORPHANS, what, "mend the damage, and check again", is_damage=False))
        return ()
    found: list[Candidate] = []
    for look in manifests:
        if look.newest is None:
            continue
        try:
            files = unreferenced_files(look.table, look.newest.manifest)
        except (LanceError, OSError) as error:
            what = f"files that no version refers to could not be looked for: {error}"
            findings.append(Finding(DiagnosisKind.FILES, what, "mend the damage named above, and check again"))
            continue
        if files:
            findings.append(_orphan_finding(files, look.table.branch))
            found += files
    return tuple(found)


def unreferenced_files(table: BranchTable, newest: Manifest) -> list[Candidate]:
    """Return the files of a branch that no version refers to.

    Raises
    ------
    CorruptFileError, UnsupportedError
        A version, tag or branch cannot be read, so the files that it needs are unknown.
    """
    policy = CleanupPolicy.of(None, 1 << 31, None, delete_unverified=True, error_if_tagged_old_versions=False)
    plan = plan_cleanup(table.store, table.root, newest, policy)
    return [file for file in plan.removable(table.root) if file.unverified]


def _orphan_finding(files: list[Candidate], branch: str | None) -> Finding:
    size = sum(file.size for file in files)
    where = "" if branch is None else f" of the branch {branch!r}"
    what = f"no version{where} refers to {len(files):,} files with {size:,} bytes, such as {files[0].path}"
    remedy = "ds.cleanup_old_versions(), which removes them after seven days, as a running write may need them"
    subject = FindingSubject(branch=branch, files=len(files), size=size)
    return Finding(DiagnosisKind.ORPHANS, what, remedy, is_damage=False, subject=subject)
