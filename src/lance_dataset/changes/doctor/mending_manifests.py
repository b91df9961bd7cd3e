"""Steps of a repair for manifests, and for the files that name the newest one."""

from __future__ import annotations

from collections.abc import Iterator

from lance_dataset.changes.doctor.diagnosing import Examination
from lance_dataset.changes.doctor.manifests import ManifestLook, hinted_version
from lance_dataset.changes.doctor.quarantine import QUARANTINE_FOLDER
from lance_dataset.changes.doctor.replay import Replay, find_replays
from lance_dataset.changes.doctor.survey import BranchTable, UnreadVersion
from lance_dataset.changes.doctor.tasks import WRONG, Task, Workplace, done, left, quarantine_task
from lance_dataset.changes.doctor.transactions import TransactionLook
from lance_dataset.errors import CommitConflictError, LanceError, MissingFileError, StorageError
from lance_dataset.io.base import ObjectStore
from lance_dataset.records.diagnosis import DiagnosisCause, DiagnosisKind, Finding
from lance_dataset.records.repair import RepairAction, RepairStep
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.manifest import read_manifest
from lance_dataset.table.naming import (
    LATEST_COPY,
    VERSION_HINT,
    VERSIONS_FOLDER,
    Naming,
    latest_copy_path,
    named_path,
    parse_manifest_name,
)
from lance_dataset.table.protocol import commit_protocol
from lance_dataset.table.references.names import TREE_FOLDER
from lance_dataset.table.versions import latest_version

__all__ = ["blocked_branches", "manifest_tasks", "small_file_tasks"]

_ORPHANED = "files that only it needs are not protected from a cleanup any more"


def blocked_branches(examined: Examination) -> dict[str | None, str]:
    """Return the branches to which nothing can be committed, with the reasons."""
    blocked: dict[str | None, str] = {}
    for look in examined.manifests:
        if look.newest is None:
            blocked[look.table.branch] = "none of its versions can be opened"
            continue
        last = look.newest.manifest.version
        for unread in look.unread:
            later = unread.name.version > last and unread.name.naming is not Naming.DETACHED
            if later and unread.cause not in WRONG:
                blocked[look.table.branch] = f"version {unread.name.version} cannot be opened: {unread.reason}"
    return blocked


def manifest_tasks(examined: Examination, blocked: dict[str | None, str]) -> Iterator[Task]:
    """Yield the steps that make the versions of all branches readable; branches where that fails become blocked."""
    moved = _moved_manifests(examined)
    for look, history in zip(examined.manifests, examined.transactions, strict=True):
        branch, replays = look.table.branch, list[Task]()
        if look.newest is not None and branch not in blocked:
            try:
                replays += _replay_tasks(examined, look, history, moved)
            except (LanceError, OSError) as error:
                blocked[branch] = f"it is unknown whether the lost version can be committed again: {error}"
        for unread in look.unread:
            yield _unread_task(look, unread, blocked)
        yield from replays
    seen = {_relative(each.table, each.path) for look in examined.manifests for each in look.unread}
    for finding in examined.diagnosis.findings:
        is_double = finding.kind is DiagnosisKind.VERSION and finding.subject.cause is not DiagnosisCause.MISSING
        if is_double and finding.subject.path not in seen:
            yield left(finding.what, "it cannot be told which of the two is the right one", finding.subject.branch)


def _unread_task(look: ManifestLook, unread: UnreadVersion, blocked: dict[str | None, str]) -> Task:
    table, version = look.table, unread.name.version
    what = f"version {_named(table, version)} cannot be opened"
    if table.branch in blocked and unread.cause in WRONG:
        return left(what, f"its manifest stays where it is: {blocked[table.branch]}", table.branch)
    if unread.cause not in WRONG:
        return left(what, unread.reason, table.branch)
    others = [each.name for each in look.unread if each.name.version == version and each is not unread]
    is_only = not others and version not in look.versions and unread.name.naming is not Naming.DETACHED

    def is_still_wrong() -> bool:
        try:
            read_manifest(table.store, unread.path)
        except MissingFileError:
            return is_only  # it may still have an entry in an external table
        except LanceError:
            return True
        return False

    def forget() -> None:
        if is_only:
            commit_protocol(table.store).forget(table.store, table.root, [version])

    text = f"move the manifest of version {_named(table, version)}, which is damaged, to the quarantine; {_ORPHANED}"
    paths = [_relative(table, unread.path)]
    return quarantine_task(text, paths, "manifest", unread.reason, table.branch, is_still_wrong, forget)


def _moved_manifests(examined: Examination) -> list[str]:
    """Return the paths of manifests in the quarantine: a repair may have been interrupted after it moved one."""
    main = examined.main
    files = main.store.list_tree(f"{main.root}/{QUARANTINE_FOLDER}")
    return [info.path for info in files if parse_manifest_name(info.name) is not None]


def _replay_tasks(
    examined: Examination, look: ManifestLook, history: TransactionLook, moved: list[str]
) -> Iterator[Task]:
    """Yield the steps that make the lost versions after the newest readable one again."""
    assert look.newest is not None
    table, base = look.table, look.newest.manifest
    unread = [(each.name, each.path) for each in look.unread]
    folder = _relative(table, f"{table.root}/{VERSIONS_FOLDER}")
    start = len(f"{examined.main.root}/{QUARANTINE_FOLDER}/")
    for path in sorted(moved):
        # below the quarantine come the folder of a repair, and the path that the file had
        name = parse_manifest_name(path.rpartition("/")[2])
        if name is not None and path[start:].partition("/")[2] == f"{folder}/{name.name}":
            unread.append((name, path))
    lost = {
        name.version: _content(table.store, path)
        for name, path in unread
        if name.version > base.version and name.naming is not Naming.DETACHED
    }
    for finding in examined.diagnosis.findings:  # manifests that do not exist, but were hinted at
        subject = finding.subject
        is_lost = finding.kind is DiagnosisKind.VERSION and subject.cause is DiagnosisCause.MISSING
        if is_lost and subject.branch == table.branch and subject.newest:
            hinted = max(version for _, version in subject.versions)
            lost |= {each: b"" for each in range(base.version + 1, hinted + 1) if each not in lost}
    if not lost:
        return
    if not history.is_listed:
        raise StorageError(f"the transaction files of {table.store.uri(table.root)} cannot be listed")
    replays, reason = find_replays(table, base, lost, history.unreferenced, look.versions)
    for replay in replays:
        yield _replay_task(table, replay)
    for version in sorted(lost)[len(replays) :]:
        what = f"the changes of version {_named(table, version)} are not in the newest version"
        yield left(what, f"they cannot be committed again: {reason}", table.branch)


def _replay_task(table: BranchTable, replay: Replay) -> Task:
    transaction = replay.transaction
    how = "which its manifest names" if replay.is_named else "the only one that can have made it"
    number, name = _named(table, replay.version), transaction.operation.name
    what = f"commit version {number} again, by its transaction {transaction.uuid} ({name}), {how}"
    step = RepairStep(RepairAction.COMMIT_AGAIN, what, branch=table.branch)

    def run(work: Workplace) -> RepairStep:
        work.stopped.add(table.branch)  # another commit would take the number of the lost version
        base = table.location.read_manifest()
        if base.version != replay.version - 1:
            raise CommitConflictError(f"the newest version is {base.version} now", retryable=False)
        made = commit_transaction(table.store, table.root, transaction, read_manifest=base)
        work.stopped.discard(table.branch)
        work.quarantine.note("version committed again", what, branch=table.branch, version=made.version)
        return done(step, version=made.version)

    return Task(step, run)


def small_file_tasks(examined: Examination, blocked: dict[str | None, str]) -> Iterator[Task]:
    """Yield the steps that write hints and copies of the newest manifest again. They come after all new versions."""
    tables = {look.table.branch: look.table for look in examined.manifests}
    hints: set[str | None] = set()
    for finding in examined.diagnosis.findings:
        branch = finding.subject.branch
        if branch not in tables or branch in blocked:
            continue
        if finding.kind is DiagnosisKind.HINT or _is_of_newest(finding):
            hints.add(branch)
        elif finding.kind is DiagnosisKind.OLD_READER:
            yield _latest_copy_task(tables[branch])
    for branch, table in tables.items():
        if branch in hints and table.store.exists(f"{table.root}/{VERSIONS_FOLDER}/{VERSION_HINT}"):
            yield _hint_task(table)


def _is_of_newest(finding: Finding) -> bool:
    """Return True if the newest version of a branch is lost, so that the hint may name it."""
    return finding.kind is DiagnosisKind.VERSION and bool(finding.subject.newest)


def _hint_task(table: BranchTable) -> Task:
    path = _relative(table, f"{table.root}/{VERSIONS_FOLDER}/{VERSION_HINT}")
    what = f"write {path} again, which names the newest version"
    step = RepairStep(RepairAction.REWRITE, what, branch=table.branch, paths=(path,))

    def run(work: Workplace) -> RepairStep:
        newest = latest_version(table.store, table.root).version
        whole = f"{work.root}/{path}"
        try:
            if hinted_version(table.store.read(whole)) == newest:
                return done(step, "a commit has written it")
        except MissingFileError:
            pass
        work.quarantine.move([path], "version hint", "it does not name the newest version")
        table.store.put_hint(whole, b'{"version":%d}' % newest)
        return done(step)

    return Task(step, run)


def _latest_copy_task(table: BranchTable) -> Task:
    path = _relative(table, latest_copy_path(table.root))
    step = RepairStep(
        RepairAction.REWRITE, f"write {path} again, from the newest manifest", branch=table.branch, paths=(path,)
    )

    def run(work: Workplace) -> RepairStep:
        try:
            read_manifest(table.store, f"{work.root}/{path}")
        except (LanceError, OSError):
            work.quarantine.move([path], LATEST_COPY, "it cannot be read")
            newest = latest_version(table.store, table.root)
            table.store.put(f"{work.root}/{path}", table.store.read(named_path(table.root, newest)))
            return done(step)
        return done(step, "a commit has written it")

    return Task(step, run)


def _content(store: ObjectStore, path: str) -> bytes:
    try:
        return store.read(path)
    except (LanceError, OSError):
        return b""


def _relative(table: BranchTable, path: str) -> str:
    prefix = "" if table.branch is None else f"{TREE_FOLDER}/{table.branch}/"
    return prefix + path[len(table.root) + 1 :]


def _named(table: BranchTable, version: int) -> str:
    return str(version) if table.branch is None else f"{table.branch}:{version}"
