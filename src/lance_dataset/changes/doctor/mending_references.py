"""Steps of a repair for tags, branches and transaction files."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from lance_dataset.changes.doctor.diagnosing import Examination
from lance_dataset.changes.doctor.survey import BranchTable
from lance_dataset.changes.doctor.tasks import WRONG, Task, Workplace, done, left, quarantine_task
from lance_dataset.errors import CorruptFileError, DatasetNotFoundError, LanceError, VersionNotFoundError
from lance_dataset.io.base import ObjectStore
from lance_dataset.records.diagnosis import DiagnosisKind, Finding
from lance_dataset.records.repair import RepairAction, RepairOutcome, RepairStep
from lance_dataset.table.manifest import read_manifest
from lance_dataset.table.operations import Clone
from lance_dataset.table.paths import TRANSACTIONS_FOLDER
from lance_dataset.table.references.catalog import Branch, Place, add_branch, find_branch, find_tag, manifest_size
from lance_dataset.table.references.names import TREE_FOLDER, branch_root
from lance_dataset.table.transaction import read_transaction
from lance_dataset.table.versions import list_versions, locate_version, read_named

__all__ = ["reference_tasks", "transaction_tasks"]


def reference_tasks(examined: Examination) -> Iterator[Task]:
    """Yield the steps for tags and branches. They come after the steps that make versions readable."""
    for finding in examined.diagnosis.findings:
        if finding.kind is not DiagnosisKind.REFERENCE:
            continue
        if finding.subject.cause not in WRONG or finding.subject.path is None:
            yield left(finding.what, "it may be whole", finding.subject.branch)
        elif finding.subject.tag is not None:
            yield _tag_task(examined, finding)
        else:
            yield _branch_task(examined, finding)


def _tag_task(examined: Examination, finding: Finding) -> Task:
    subject = finding.subject
    store, root, name = examined.main.store, examined.main.root, str(subject.tag)

    def is_still_wrong() -> bool:
        try:
            tag = find_tag(store, root, name)
            locate_version(store, branch_root(root, tag.branch), tag.version)
        except (LanceError, ValueError):
            return True
        return False

    what = f"move the tag {name!r} to the quarantine, unless its version is there again"
    task = quarantine_task(what, [str(subject.path)], "tag", finding.what, subject.branch, is_still_wrong)
    move = task.run

    def run(work: Workplace) -> RepairStep:
        if subject.branch in work.stopped or move is None:
            return replace(task.step, outcome=RepairOutcome.LEFT, reason="its version may still be committed again")
        return move(work)

    return replace(task, run=run)


def _branch_task(examined: Examination, finding: Finding) -> Task:
    store, root, name = examined.main.store, examined.main.root, str(finding.subject.branch)
    path = str(finding.subject.path)
    table = next((look.table for look in examined.manifests if look.table.branch == name), None)
    branch = None if table is None else _rebuilt(examined, table)
    if branch is None:
        what = f"move the file of the branch {name!r} to the quarantine"
        return quarantine_task(what, [path], "branch", finding.what, name, _unread_branch(store, root, name))
    made = branch
    origin = f"{branch.parent_branch or 'main'}:{branch.parent_version}"
    what = f"write the file of the branch {name!r} again, which began from {origin} by its first version"
    step = RepairStep(RepairAction.REWRITE, what, reason=finding.what, branch=name, paths=(path,))

    def run(work: Workplace) -> RepairStep:
        if not _unread_branch(store, root, name)():
            return replace(step, outcome=RepairOutcome.LEFT, reason="nothing is wrong with it any more")
        work.quarantine.move([path], "branch", finding.what)
        add_branch(store, root, made)
        return done(step, "its metadata is only in the old file, if at all")

    return Task(step, run)


def _unread_branch(store: ObjectStore, root: str, name: str) -> Callable[[], bool]:
    """Return a function that is true if the file of a branch cannot be read, or the branch has no versions."""

    def is_still_wrong() -> bool:
        try:
            find_branch(store, root, name)
        except (LanceError, ValueError):
            return True
        return not list_versions(store, branch_root(root, name))

    return is_still_wrong


def _rebuilt(examined: Examination, table: BranchTable) -> Branch | None:
    """Return a branch as the transaction of its first version tells; None if that is gone."""
    store, root, name = examined.main.store, examined.main.root, table.branch
    others = [
        look.table.branch for look in examined.manifests if look.table.branch is not None and look.table.branch != name
    ]
    try:
        names = list_versions(store, table.root)
        if not names or name is None:
            return None
        first = read_named(store, table.root, names[0])
        transaction = read_transaction(store, table.root, first)
        operation = None if transaction is None else transaction.operation
        if not isinstance(operation, Clone) or operation.branch_name != name:
            return None
        _, mark, parent = operation.ref_path.rstrip("/").rpartition(f"/{TREE_FOLDER}/")
        parent_branch = parent if mark and operation.ref_name == parent else None
        return Branch(
            name=name,
            parent_branch=parent_branch,
            parent_version=operation.ref_version,
            created_at=first.timestamp_nanos // 1_000_000_000,
            manifest_size=_parent_size(store, root, Place(parent_branch, operation.ref_version)) or first.file_size,
            identifier=_identifier(store, root, name, parent_branch, operation.ref_version, others),
        )
    except (LanceError, OSError):
        return None


def _parent_size(store: ObjectStore, root: str, place: Place) -> int | None:
    try:
        return manifest_size(store, root, place)
    except (VersionNotFoundError, DatasetNotFoundError):
        return None


def _identifier(
    store: ObjectStore, root: str, name: str, parent: str | None, version: int, others: Iterable[str]
) -> tuple[tuple[int, str], ...]:
    """Return the identifier of a branch: that which the branches know that began from it, or else a new one."""
    for each in others:
        with suppress(LanceError, OSError):
            child = find_branch(store, root, each)
            if child.parent_branch == name and child.identifier_is_known:
                return child.identifier[:-1]
    before = find_branch(store, root, parent).identifier if parent is not None else ()
    return (*before, (version, uuid.uuid4().hex))


def transaction_tasks(examined: Examination) -> Iterator[Task]:
    """Yield the steps that write missing and torn transaction files again, from the copies in manifests."""
    for look, history in zip(examined.manifests, examined.transactions, strict=True):
        for manifest, name, version in history.to_rewrite:
            yield _transaction_task(look.table, manifest, name, version)


def _transaction_task(table: BranchTable, manifest: str, name: str, version: int) -> Task:
    prefix = "" if table.branch is None else f"{TREE_FOLDER}/{table.branch}/"
    path = f"{prefix}{TRANSACTIONS_FOLDER}/{name}"
    what = f"write {path} again, of which the manifest of version {version} has a copy"
    step = RepairStep(RepairAction.REWRITE, what, branch=table.branch, paths=(path,))

    def run(work: Workplace) -> RepairStep:
        content = read_manifest(table.store, manifest).inline_transaction
        if content is None:
            raise CorruptFileError(f"{manifest}: has no copy of its transaction any more")
        work.quarantine.move([path], "transaction", "it is missing or torn")
        table.store.put(f"{work.root}/{path}", content)
        return done(step)

    return Task(step, run)
