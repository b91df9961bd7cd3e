"""Steps of a repair that make new versions: without lost rows, with other deletion files, and with rebuilt indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from lance_dataset.changes.commit import commit_change
from lance_dataset.changes.doctor.diagnosing import Examination
from lance_dataset.changes.doctor.mending_columns import empty_columns, emptying_step, losable_files
from lance_dataset.changes.doctor.survey import BranchTable, OpenVersion, cause_of, read_versions
from lance_dataset.changes.doctor.tasks import WRONG, Consent, Task, Workplace, done, left
from lance_dataset.changes.indexing.rebuild_index import rebuild_or_drop_index
from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.read.session import Session
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.validation import validate_dataset, validate_fragment
from lance_dataset.records.diagnosis import DiagnosisKind, Finding, version_names
from lance_dataset.records.repair import RepairAction, RepairOutcome, RepairStep
from lance_dataset.table.apply import next_manifest
from lance_dataset.table.deletions import read_deletions
from lance_dataset.table.fragment import DataFile, DeletionFile, Fragment
from lance_dataset.table.indices.coverage import MEMORY_INDEX, REUSE_INDEX
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Delete
from lance_dataset.table.references.names import MAIN_BRANCH

__all__ = ["index_tasks", "row_tasks"]

_STOPPED = "a lost version must be committed again first"
_LOST = "drop_lost_rows=True (--drop-lost-rows) agrees to that"
_RETURNING = "restore_deleted_rows=True (--restore-deleted-rows) agrees to that"


def row_tasks(examined: Examination, blocked: Mapping[str | None, str], consent: Consent) -> Iterator[Task]:
    """Yield the steps for lost data files and deletion files. They come after those that make versions readable."""
    tables = {look.table.branch: look.table for look in examined.manifests}
    lost: dict[str | None, list[Finding]] = {}
    masks: dict[str | None, list[Finding]] = {}
    for finding in examined.damaged:
        subject = finding.subject
        if subject.cause not in WRONG:
            yield left(finding.what, "the file may be whole", subject.newest[0] if subject.newest else None)
        elif not subject.newest:
            yield left(finding.what, "no newest version needs it; the other rows of these versions can be read")
        for branch in subject.newest if subject.cause in WRONG else ():
            (lost if finding.kind is DiagnosisKind.DATA else masks).setdefault(branch, []).append(finding)
    for branch in dict.fromkeys((*lost, *masks)):
        if branch in blocked:
            for finding in (*lost.get(branch, ()), *masks.get(branch, ())):
                yield left(finding.what, blocked[branch], branch)
            continue
        yield from _branch_tasks(examined, tables[branch], lost.get(branch, []), masks.get(branch, []), consent)


def _branch_tasks(
    examined: Examination, table: BranchTable, lost: list[Finding], masks: list[Finding], consent: Consent
) -> Iterator[Task]:
    manifest = _newest(examined, table).manifest
    losable = losable_files(manifest, lost)
    if losable:
        yield _empty_task(table, manifest, losable, consent)
    gone = [finding for finding in lost if finding.subject.fragment not in losable]
    if gone:
        yield _drop_task(examined, table, gone, consent)
    dropped = {finding.subject.fragment for finding in gone}
    for finding in masks:
        if finding.subject.fragment not in dropped:
            yield _mask_task(examined, table, finding, consent)


def _empty_task(
    table: BranchTable, manifest: Manifest, losable: Mapping[int, Sequence[DataFile]], consent: Consent
) -> Task:
    """Return the step that commits a version in which lost columns are null."""
    step = emptying_step(table, manifest, losable)
    if not consent.drop_lost_rows:
        return Task(replace(step, outcome=RepairOutcome.NEEDS_CONSENT, reason=_LOST))
    return Task(step, _marking(step, lambda work: empty_columns(work, table, step, losable)))


def _drop_task(examined: Examination, table: BranchTable, findings: list[Finding], consent: Consent) -> Task:
    """Return the step that commits a version without the fragments whose data files are lost."""
    ids = sorted({finding.subject.fragment for finding in findings if finding.subject.fragment is not None})
    newest = _newest(examined, table)
    rows = _rows([newest.manifest.fragment(each) for each in ids])
    branch = table.branch or MAIN_BRANCH
    paths = tuple(dict.fromkeys(finding.subject.path for finding in findings if finding.subject.path is not None))
    what = (
        f"commit a version of the branch {branch!r} without the fragments {', '.join(map(str, ids))}, whose data files "
        f"are lost, and thereby without {_counted(rows)} rows"
    )
    step = RepairStep(RepairAction.DROP_ROWS, what, branch=table.branch, rows_lost=rows)
    if not consent.drop_lost_rows:
        return Task(replace(step, outcome=RepairOutcome.NEEDS_CONSENT, reason=_LOST))

    def run(work: Workplace) -> RepairStep:
        snapshot = Snapshot.of(table.location, table.location.read_manifest())
        gone = [
            fragment
            for each in ids
            if (fragment := snapshot.manifest.fragment(each)) is not None and _is_damaged(snapshot, fragment)
        ]
        if not gone:
            return replace(step, outcome=RepairOutcome.LEFT, reason="nothing is wrong with them any more", rows_lost=0)
        made = commit_change(snapshot, Delete((), tuple(fragment.id for fragment in gone), "false"))
        count = _rows(gone)
        work.quarantine.note("rows lost", what, branch=branch, version=made.version, rows=count, files=list(paths))
        return done(step, version=made.version, rows_lost=count)

    return Task(step, _marking(step, run))


def _mask_task(examined: Examination, table: BranchTable, finding: Finding, consent: Consent) -> Task:
    """Return the step that gives a fragment its deletion file of before, or none."""
    fragment_id = finding.subject.fragment
    assert fragment_id is not None
    manifest = _newest(examined, table).manifest
    fragment = manifest.fragment(fragment_id)
    assert fragment is not None
    found, version = _older_mask(table, manifest, fragment)
    deleted, known = fragment.num_deletions, 0 if found is None else found.num_deleted_rows
    returning = None if deleted is None or (found is not None and not known) else max(deleted - known, 0)
    branch = table.branch or MAIN_BRANCH
    source = "without a deletion file" if found is None else f"with the deletion file of version {version}"
    what = (
        f"commit a version of the branch {branch!r} with the fragment {fragment_id} {source}, as its own is lost; so "
        f"{_counted(returning)} rows return that were deleted, or updated and so exist twice"
    )
    step = RepairStep(RepairAction.RESTORE_ROWS, what, branch=table.branch, rows_restored=returning)
    if not consent.restore_deleted_rows:
        return Task(replace(step, outcome=RepairOutcome.NEEDS_CONSENT, reason=_RETURNING))

    def run(work: Workplace) -> RepairStep:
        snapshot = Snapshot.of(table.location, table.location.read_manifest())
        current = snapshot.manifest.fragment(fragment_id)
        if current is None or current.deletion_file != fragment.deletion_file or not _is_damaged(snapshot, current):
            return replace(step, outcome=RepairOutcome.LEFT, reason="it is not lost any more", rows_restored=0)
        operation = Delete((replace(current, deletion_file=found),), (), "false")
        _check_ids(snapshot, operation)
        made = commit_change(snapshot, operation)
        work.quarantine.note("rows restored", what, branch=branch, version=made.version, rows=returning)
        return done(step, version=made.version)

    return Task(step, _marking(step, run))


def _marking(step: RepairStep, run: Callable[[Workplace], RepairStep]) -> Callable[[Workplace], RepairStep]:
    """Return a function that notes the branch as damaged unless the step succeeds."""

    def marked(work: Workplace) -> RepairStep:
        work.unmended.add(step.branch)
        if step.branch in work.stopped:
            return replace(step, outcome=RepairOutcome.LEFT, reason=_STOPPED)
        result = run(work)
        work.unmended.discard(step.branch)
        return result

    return marked


def _check_ids(snapshot: Snapshot, operation: Delete) -> None:
    """Raise an error if rows would return whose stable ids other rows have, as those of updated rows."""
    manifest = snapshot.manifest
    if not manifest.uses_stable_row_ids:
        return
    built = Snapshot.of(replace(snapshot.location, session=Session()), next_manifest(manifest, operation))
    try:
        validate_dataset(built, files=False)
    except CorruptFileError as error:
        raise CorruptFileError(
            f"some of the rows were updated, and cannot return beside their new state: {error}"
        ) from error


def _older_mask(table: BranchTable, manifest: Manifest, fragment: Fragment) -> tuple[DeletionFile | None, int]:
    """Return the newest readable deletion file that a fragment had before, and its version; None for no deletions."""
    paths = [file.path for file in fragment.files[:1]]
    bases = {None, *(base.id for base in manifest.base_paths)}
    for version in read_versions(table):
        if not isinstance(version, OpenVersion):
            continue
        older = version.manifest.fragment(fragment.id)
        if older is None or [file.path for file in older.files[:1]] != paths or older.deletion_file is None:
            continue
        if older.deletion_file == fragment.deletion_file or older.deletion_file.base_id not in bases:
            continue
        try:
            read_deletions(version.table.location.locator(version.manifest), older)
        except (LanceError, OSError):
            continue
        return older.deletion_file, version.manifest.version
    return None, 0


def index_tasks(examined: Examination, blocked: Mapping[str | None, str]) -> Iterator[Task]:
    """Yield the steps for broken indices. They come after all others that change rows."""
    tables = {look.table.branch: look.table for look in examined.manifests}
    wanted: dict[tuple[str | None, str], Finding] = {}
    for finding in examined.diagnosis.findings:
        subject = finding.subject
        if finding.kind is not DiagnosisKind.INDEX or subject.index is None:
            continue
        if subject.cause not in WRONG:
            yield left(finding.what, "the file may be whole", subject.newest[0] if subject.newest else None)
        elif not subject.newest:
            yield left(finding.what, f"no newest version needs it; {version_names(subject.versions)} scan instead")
        elif subject.index in (REUSE_INDEX, MEMORY_INDEX):
            yield left(finding.what, "the index belongs to the table itself", subject.newest[0])
        else:
            wanted |= {(branch, subject.index): finding for branch in subject.newest}
    for (branch, name), finding in wanted.items():
        if branch in blocked:
            yield left(finding.what, blocked[branch], branch)
        else:
            yield _index_task(tables[branch], name, finding)


def _index_task(table: BranchTable, name: str, finding: Finding) -> Task:
    branch = table.branch or MAIN_BRANCH
    what = f"build the index {name!r} of the branch {branch!r} again, or drop it if that is impossible"
    step = RepairStep(RepairAction.REBUILD_INDEX, what, reason=finding.what, branch=table.branch)

    def run(work: Workplace) -> RepairStep:
        if table.branch in work.stopped:
            return replace(step, outcome=RepairOutcome.LEFT, reason=_STOPPED)
        if table.branch in work.unmended:
            return replace(step, outcome=RepairOutcome.LEFT, reason="it can be built again when the rows can be read")
        made, outcome = rebuild_or_drop_index(Snapshot.of(table.location, table.location.read_manifest()), name)
        work.quarantine.note("index", finding.what, branch=branch, version=made.version, outcome=outcome)
        return done(step, outcome, version=made.version)

    return Task(step, run)


def _is_damaged(snapshot: Snapshot, fragment: Fragment) -> bool:
    try:
        validate_fragment(snapshot, fragment)
    except (LanceError, OSError) as error:
        return cause_of(error) in WRONG
    return False


def _newest(examined: Examination, table: BranchTable) -> OpenVersion:
    newest = next(look.newest for look in examined.manifests if look.table is table)
    assert newest is not None
    return newest


def _rows(fragments: Sequence[Fragment | None]) -> int | None:
    """Return the number of live rows of fragments, None if it is not recorded."""
    counts = [fragment.num_rows for fragment in fragments if fragment is not None]
    return None if None in counts else sum(count for count in counts if count is not None)


def _counted(rows: int | None) -> str:
    return "an unknown number of" if rows is None else f"{rows:,}"
