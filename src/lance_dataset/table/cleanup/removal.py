"""Removal of versions that are no longer needed, and of their files.

The order keeps this safe. Manifests are removed durably before any other file. Therefore every listed version is
complete at every moment, and an interrupted run leaves only files that the next run removes. New tags, branches and
versions are looked for before and after manifests are removed. A version that got a tag or a branch in between is
restored.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress

from lance_dataset.errors import AlreadyExistsError, MissingFileError
from lance_dataset.events import emit
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.cleanup.clock import clock_lead
from lance_dataset.table.cleanup.file_usage import FileKind, detached_versions, read_usage
from lance_dataset.table.cleanup.plan import (
    Candidate,
    CleanupPlan,
    CleanupPolicy,
    OldVersion,
    plan_cleanup,
    tagged_versions,
)
from lance_dataset.table.cleanup.shares import Pace, Removal, ShareRunner
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.naming import VERSIONS_FOLDER
from lance_dataset.table.paths import INDICES_FOLDER
from lance_dataset.table.protocol import commit_protocol
from lance_dataset.table.versions import list_versions
from lance_dataset.threads.progress import Progress

__all__ = ["CleanupPolicy", "Removed", "cleanup", "planned_removal"]

_CONCURRENCY = 16
#: More threads than this only slow each other down.
_MAX_CONCURRENCY = 64
#: Files that show how fast a disk is, and the seconds that a slow one takes for each.
_TRIED = 4
_SLOW = 2e-4
#: Manifests removed between two checks of tags and branches. Their content is kept in memory for that time.
_STEP = 64
_STEP_BYTES = 64 << 20
#: Files that one share of the work removes.
_SHARE_FILES = 2000


@dataclass(frozen=True)
class Removed:
    """Counts of a cleanup.

    Attributes
    ----------
    bytes_removed
        Size of all removed files, including manifests.
    old_versions
        Number of removed versions.
    data_files_removed, transaction_files_removed, index_files_removed, deletion_files_removed
        Number of removed files by kind.
    failed_deletes
        Number of files that could not be removed. They are not counted elsewhere.
    """

    bytes_removed: int = 0
    old_versions: int = 0
    data_files_removed: int = 0
    transaction_files_removed: int = 0
    index_files_removed: int = 0
    deletion_files_removed: int = 0
    failed_deletes: int = 0


_COUNTERS = {
    FileKind.DATA: "data_files_removed",
    FileKind.TRANSACTION: "transaction_files_removed",
    FileKind.INDEX: "index_files_removed",
    FileKind.DELETION: "deletion_files_removed",
}


def planned_removal(plan: CleanupPlan, root: str) -> tuple[Removed, list[Candidate]]:
    """Return the counts and files of a cleanup if nothing changes until then. Manifests are listed last."""
    files = plan.removable(root)
    manifests = [manifest for old in plan.old for manifest in old.manifests]
    return _counted(len(plan.old), [*files, *manifests]), [*files, *manifests]


def cleanup(
    store: ObjectStore,
    root: str,
    manifest: Manifest,
    policy: CleanupPolicy,
    progress: Progress | None = None,
    run_shares: ShareRunner | None = None,
) -> Removed:
    """Remove old versions, and files that no version needs.

    Parameters
    ----------
    store, root
        The table, or a branch of it.
    manifest
        The version to start from. It stays, and so do all later ones.
    policy
        Conditions for old versions.
    progress
        Progress of the files, manifests included; None to tell nobody.
    run_shares
        Function that lists folders and removes files, perhaps in other processes; None for this one. Manifests are
        read and removed here in any case.

    Returns
    -------
    Removed
        Counts of removed versions and files.

    Raises
    ------
    CorruptFileError, UnsupportedError
        A manifest, a tag or a branch cannot be read, so its files are not known.
    InvalidInputError
        An old version has a tag, and the policy makes that an error.
    UnsafePathError
        A folder of the table is a link. Nothing is removed then.
    """
    emit("dataset_events", event="cleaning", uri=store.uri(root))
    return _Cleanup(store, root, manifest, policy, progress, run_shares).run()


class _Cleanup:
    """A single run of a cleanup."""

    def __init__(
        self,
        store: ObjectStore,
        root: str,
        manifest: Manifest,
        policy: CleanupPolicy,
        progress: Progress | None,
        run_shares: ShareRunner | None,
    ) -> None:
        self._progress = progress
        self._store = store
        self._root = root
        self._manifest = manifest
        self._policy = policy
        self._run_shares = run_shares
        self._pace = Pace(policy.delete_rate_limit)
        #: Files to remove at the same time, None for a disk of this machine that was not tried yet.
        self._workers = policy.delete_concurrency or (_CONCURRENCY if store.waits(root) else None)
        if self._workers is not None:
            self._workers = min(self._workers, _MAX_CONCURRENCY)
        self._failed = 0
        self._removed: list[Candidate] = []
        self._versions = 0
        self._new_parents: set[int] = set()

    def run(self) -> Removed:
        plan = self._plan()
        if self._progress is not None:
            self._progress.expect(len(plan.removable(self._root)) + sum(len(old.manifests) for old in plan.old))
        for step in _steps(plan.old):
            self._remove_versions(plan, step)
        if plan.files:
            self._look_again(plan)
            files = plan.removable(self._root)
            stride = _STEP if self._run_shares is None else max(1, len(files))
            for start in range(0, len(files), stride):
                self._advance(len(self._remove(files[start : start + stride], self._run_shares)))
            self._remove_index_folders()
        return replace(_counted(self._versions, self._removed), failed_deletes=self._failed)

    def _plan(self) -> CleanupPlan:
        """Plan the cleanup; by the clock of the store if this machine's is ahead of it."""
        policy = self._policy
        plan = plan_cleanup(self._store, self._root, self._manifest, policy, self._run_shares)
        aged_versions = plan.old and policy.before_nanos is not None
        aged_files = not policy.delete_unverified and any(file.unverified for file in plan.files)
        lead = clock_lead(self._store, self._root) if aged_versions or aged_files else 0.0
        if not lead:
            return plan
        return plan_cleanup(self._store, self._root, self._manifest, policy.by_clock(lead), self._run_shares)

    def _remove(self, files: Sequence[Candidate], run_shares: ShareRunner | None = None) -> list[Candidate]:
        """Remove files, and return those that were removed."""
        paths = [file.path for file in files]
        if run_shares is None or self._policy.delete_rate_limit is not None:  # several processes would not keep a rate
            tried = self._tried(paths) if self._workers is None else []
            done = tried + Removal(self._store, paths[len(tried) :], self._workers or 1)(self._pace)
        else:
            starts = range(0, len(paths), _SHARE_FILES)
            shares = [Removal(self._store, paths[each : each + _SHARE_FILES], self._workers or 1) for each in starts]
            done = [gone for share in run_shares(shares) for gone in share]
        gone = list(compress(files, done))
        for file in gone:
            emit("file_audit", mode="delete", type=file.kind.name.lower(), path=file.path)
        self._removed += gone
        self._failed += len(files) - len(gone)
        return gone

    def _tried(self, paths: Sequence[str]) -> list[bool]:
        """Remove a few files one after the other, to see if the disk keeps callers waiting.

        Most disks remove a file in less time than threads take turns. Those that erase its space at once do not.
        """
        start = time.perf_counter()
        done = Removal(self._store, paths[:_TRIED], 1)(self._pace)
        if len(done) == _TRIED:
            self._workers = _CONCURRENCY if time.perf_counter() - start > _SLOW * _TRIED else 1
        return done

    def _advance(self, files: int) -> None:
        if self._progress is not None:
            self._progress.advance(files)

    def _remove_index_folders(self) -> None:
        """Remove the folders of indices whose files were removed. Each index has its own, which is never reused."""
        folders = {file.path.rpartition("/")[0] for file in self._removed if file.kind is FileKind.INDEX}
        for folder in folders - {f"{self._root}/{INDICES_FOLDER}"}:
            self._store.delete_empty_folder(folder)

    # -- versions --------------------------------------------------------------------------------------------------

    def _remove_versions(self, plan: CleanupPlan, step: Sequence[OldVersion]) -> None:
        """Remove manifests, except those that got a tag or a branch since the plan was made."""
        held = self._held(plan)
        going = [old for old in step if old.version not in held]
        contents: dict[str, bytes] = {}
        for file in (file for old in going for file in old.manifests):
            with suppress(MissingFileError):  # removed by another cleanup
                contents[file.path] = self._store.read(file.path)
        files = [file for old in going for file in old.manifests if file.path in contents]
        commit_protocol(self._store).forget(self._store, self._root, [old.version for old in going])
        gone = {file.path for file in self._remove(files)}
        self._store.sync(f"{self._root}/{VERSIONS_FOLDER}")
        held = self._held(plan)
        for old in going:
            there = [file for file in old.manifests if file.path in gone]
            if old.version in held:
                self._put_back(there, contents)
            elif there:
                self._versions += 1
        self._advance(len(files))  # last: a report may raise, and what got a tag must be restored before

    def _held(self, plan: CleanupPlan) -> set[int]:
        """Return the versions that now have a tag, or from which branches began since the plan was made."""
        self._new_parents |= {branch.referenced_version for branch in plan.branches.refresh()}
        return self._new_parents | set(tagged_versions(self._store, self._root, self._manifest))

    def _put_back(self, files: Sequence[Candidate], contents: Mapping[str, bytes]) -> None:
        for file in files:
            with suppress(AlreadyExistsError):
                self._store.put_if_absent(file.path, contents[file.path])
        paths = {file.path for file in files}
        self._removed = [file for file in self._removed if file.path not in paths]

    def _look_again(self, plan: CleanupPlan) -> None:
        """Add files used by versions and branches made since the plan, and by versions that could not be removed."""
        names = [name for name in list_versions(self._store, self._root) if name.version not in plan.kept]
        for each in read_usage(self._store, self._root, [*names, *detached_versions(self._store, self._root)]):
            plan.used.add(each.files)
        plan.branches.refresh()
        plan.branches.add_to(plan.used)


def _steps(versions: Sequence[OldVersion]) -> Iterator[list[OldVersion]]:
    """Yield groups of versions to remove together, limited in number and in total size of their manifests."""
    step: list[OldVersion] = []
    size = 0
    for old in versions:
        added = sum(file.size for file in old.manifests)
        if step and (len(step) == _STEP or size + added > _STEP_BYTES):
            yield step
            step, size = [], 0
        step.append(old)
        size += added
    if step:
        yield step


def _counted(versions: int, files: Sequence[Candidate]) -> Removed:
    counts = dict.fromkeys(_COUNTERS.values(), 0)
    for file in files:
        if file.kind in _COUNTERS:
            counts[_COUNTERS[file.kind]] += 1
    return Removed(bytes_removed=sum(file.size for file in files), old_versions=versions, **counts)
