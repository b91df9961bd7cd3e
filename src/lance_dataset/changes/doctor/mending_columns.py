"""Step of a repair that keeps rows of which only columns are lost that were added later: these become null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lance_dataset.changes.commit import commit_change
from lance_dataset.changes.doctor.files import data_problem
from lance_dataset.changes.doctor.survey import BranchTable, cause_of
from lance_dataset.changes.doctor.tasks import WRONG, Workplace, done
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.diagnosis import Finding
from lance_dataset.records.repair import RepairAction, RepairOutcome, RepairStep
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Merge
from lance_dataset.table.references.names import MAIN_BRANCH

__all__ = ["empty_columns", "emptying_step", "losable_files"]


def losable_files(manifest: Manifest, findings: Sequence[Finding]) -> dict[int, tuple[DataFile, ...]]:
    """Return the lost files without which fragments can be read, by fragment: their columns become null then.

    Parameters
    ----------
    manifest
        The version.
    findings
        All findings of lost data files that the version needs.
    """
    paths: dict[int, list[str | None]] = {}
    for finding in findings:
        if finding.subject.fragment is not None:
            paths.setdefault(finding.subject.fragment, []).append(finding.subject.path)
    found: dict[int, tuple[DataFile, ...]] = {}
    for fragment_id, named in paths.items():
        fragment = manifest.fragment(fragment_id)
        if fragment is None or None in named:  # its files contradict each other
            continue
        known = [path for path in named if path is not None]
        lost = tuple(file for file in fragment.files if any(path.endswith(f"/{file.path}") for path in known))
        if len(lost) == len(known) and _can_be_lost(manifest, fragment, lost):
            found[fragment_id] = lost
    return found


def _can_be_lost(manifest: Manifest, fragment: Fragment, lost: Sequence[DataFile]) -> bool:
    """Return True if all other columns of a fragment can be read, and those of the lost files can be null.

    The first file is that which the rows were written with.
    """
    if fragment.files[0] in lost or fragment.overlays or any(file.is_legacy for file in fragment.files):
        return False
    gone = {each for file in lost for each in file.fields}
    kept = {each for file in fragment.files if file not in lost for each in file.fields}
    if min(gone, default=0) < -2:  # hidden columns, without which row ids or versions of rows are lost
        return False
    for top in manifest.schema.fields:
        ids = {node.id for node in top.walk()}
        if ids & gone and (ids & kept or not top.nullable):
            return False
    return True


def emptying_step(table: BranchTable, manifest: Manifest, lost: Mapping[int, Sequence[DataFile]]) -> RepairStep:
    """Return the step that makes a version without lost files."""
    gone = {each for files in lost.values() for file in files for each in file.fields}
    fields = manifest.schema.fields
    columns = [top.name for top in fields if any(node.id in gone for node in top.walk())]
    fragments = [manifest.fragment(each) for each in lost]
    rows = _sum([None if each is None else each.num_rows for each in fragments])
    what = (
        f"commit a version of the branch {table.branch or MAIN_BRANCH!r} in which the columns {', '.join(columns)} are "
        f"null in {'an unknown number of' if rows is None else f'{rows:,}'} rows of the fragments "
        f"{', '.join(map(str, lost))}, as their data files are lost"
    )
    return RepairStep(RepairAction.EMPTY_COLUMNS, what, branch=table.branch, rows_emptied=rows)


def empty_columns(
    work: Workplace, table: BranchTable, step: RepairStep, lost: Mapping[int, Sequence[DataFile]]
) -> RepairStep:
    """Do the step that `emptying_step` describes."""
    snapshot = Snapshot.of(table.location, table.location.read_manifest())
    fragments = list(snapshot.manifest.fragment_list)
    gone: list[DataFile] = []
    counts: list[int | None] = []
    for position, fragment in enumerate(fragments):
        mine = [file for file in fragment.files if file in lost.get(fragment.id, ())]
        mine = [file for file in mine if _is_lost(snapshot, fragment, file)]
        if mine:
            gone += mine
            counts.append(fragment.num_rows)
            fragments[position] = replace(fragment, files=tuple(file for file in fragment.files if file not in mine))
    if not gone:
        reason = "nothing is wrong with these files any more, or no fragment has them"
        return replace(step, outcome=RepairOutcome.LEFT, reason=reason, rows_emptied=0)
    operation = Merge(tuple(fragments), snapshot.manifest.schema, preserves_nullability=True)
    made = commit_change(snapshot, operation)
    files = [file.path for file in gone]
    work.quarantine.note("columns emptied", step.what, branch=table.branch, version=made.version, files=files)
    return done(step, version=made.version, rows_emptied=_sum(counts))


def _sum(counts: Sequence[int | None]) -> int | None:
    return None if None in counts else sum(count for count in counts if count is not None)


def _is_lost(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> bool:
    problem = data_problem(snapshot, snapshot.location.locator(snapshot.manifest), fragment, file)
    return problem is not None and cause_of(problem) in WRONG
