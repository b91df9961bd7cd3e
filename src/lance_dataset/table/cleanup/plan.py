"""Plan of a cleanup: the versions and files to remove, and those to keep."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.io.base import ObjectInfo, ObjectStore
from lance_dataset.io.guarded import external_manifests_of, plain_store
from lance_dataset.io.local import LocalStore
from lance_dataset.table.cleanup.branch_usage import BranchUsage
from lance_dataset.table.cleanup.file_usage import (
    FileKind,
    FileUsage,
    VersionFiles,
    VersionUsage,
    detached_versions,
    read_usage,
)
from lance_dataset.table.cleanup.shares import Listing, ShareRunner, run_here
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.naming import VERSIONS_FOLDER, final_manifest_name, named_path, parse_manifest_name
from lance_dataset.table.paths import DATA_FOLDER, DELETIONS_FOLDER, INDICES_FOLDER, TRANSACTIONS_FOLDER
from lance_dataset.table.references.catalog import branch_of, list_tags, main_root
from lance_dataset.table.references.names import TABLE_FOLDERS, TREE_FOLDER
from lance_dataset.table.versions import list_manifests, list_versions

__all__ = ["Candidate", "CleanupPlan", "CleanupPolicy", "OldVersion", "plan_cleanup", "tagged_versions"]

#: Files that no version refers to may belong to a commit in progress until they are this old.
UNVERIFIED_SECONDS = 7 * 24 * 3600
_REUSE_MAPS_FOLDER = "_fri"
_TEMPORARY = ".tmp"
_DEFAULT_AGE = dt.timedelta(days=14)
_NANOS = 1_000_000_000

#: Suffixes of the files that may be removed from a folder. None for all.
_SUFFIXES: Mapping[str, tuple[FileKind, tuple[str, ...] | None]] = {
    DATA_FOLDER: (FileKind.DATA, (".lance", ".blob")),
    DELETIONS_FOLDER: (FileKind.DELETION, (".arrow", ".bin")),
    TRANSACTIONS_FOLDER: (FileKind.TRANSACTION, (".txn",)),
    INDICES_FOLDER: (FileKind.INDEX, None),
    _REUSE_MAPS_FOLDER: (FileKind.INDEX, (".lance",)),
}
#: If no version refers to them, these are kept unless they are older than every version that stays.
_BRIEF = frozenset({FileKind.TRANSACTION, FileKind.DELETION, FileKind.TEMPORARY_MANIFEST})


@dataclass(frozen=True)
class CleanupPolicy:
    """Conditions for old versions, and options of their removal. A version is old if all given conditions hold.

    Attributes
    ----------
    before_nanos
        Old versions were committed before this time, in nanoseconds since the epoch.
    before_version
        Old versions have a smaller number than this.
    retain_versions
        Number of newest versions that are not old.
    versions
        Numbers of the versions that may be old.
    delete_unverified
        True to also remove young files that no version refers to.
    error_if_tagged
        True to raise an error if an old version has a tag. Such versions are kept in any case.
    delete_rate_limit
        Maximum number of removals per second, None for no limit.
    delete_concurrency
        Number of concurrent removals, None for the default.
    clock_lead
        Seconds by which the clock of this machine is ahead of the one that dates the files.
    """

    before_nanos: int | None = None
    before_version: int | None = None
    retain_versions: int | None = None
    versions: frozenset[int] | None = None
    delete_unverified: bool = False
    error_if_tagged: bool = True
    delete_rate_limit: int | None = None
    delete_concurrency: int | None = None
    clock_lead: float = 0.0

    @classmethod
    def of(
        cls,
        older_than: dt.timedelta | None = None,
        retain_versions: int | None = None,
        versions: Sequence[int] | None = None,
        *,
        delete_unverified: bool | None = None,
        error_if_tagged_old_versions: bool | None = None,
        delete_rate_limit: int | None = None,
        delete_concurrency: int | None = None,
    ) -> CleanupPolicy:
        """Check the arguments of `LanceDataset.cleanup_old_versions`, and make the policy that they ask for.

        Raises
        ------
        TypeError, OutOfRangeError, InvalidInputError
            An argument has the wrong type or is out of range.
        """
        if older_than is not None and not isinstance(older_than, dt.timedelta):
            raise TypeError(f"older_than must be a datetime.timedelta, not {type(older_than).__name__}")
        if versions is not None and (
            isinstance(versions, str | bytes) or not isinstance(versions, Sequence | np.ndarray)
        ):
            raise TypeError(f"versions must be a list of version numbers, not {type(versions).__name__}")
        if older_than is None and retain_versions is None and versions is None:
            older_than = _DEFAULT_AGE
        age = None if older_than is None else older_than // dt.timedelta(microseconds=1) * 1000
        switches = {
            "delete_unverified": delete_unverified,
            "error_if_tagged_old_versions": error_if_tagged_old_versions,
        }
        for name, value in switches.items():
            if not isinstance(value, bool | np.bool_ | None):
                raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
        return cls(
            delete_rate_limit=_limit("delete_rate_limit", delete_rate_limit),
            delete_concurrency=_limit("delete_concurrency", delete_concurrency),
            before_nanos=None if age is None else time.time_ns() - age,
            retain_versions=_limit("retain_versions", retain_versions),
            versions=None if versions is None else frozenset(checked_integer("versions", each) for each in versions),
            delete_unverified=bool(delete_unverified),
            error_if_tagged=error_if_tagged_old_versions is None or bool(error_if_tagged_old_versions),
        )

    def by_clock(self, lead: float) -> CleanupPolicy:
        """Return the policy for ages by a clock that is behind the one of this machine.

        Parameters
        ----------
        lead
            Seconds by which the clock of this machine is ahead.
        """
        before = self.before_nanos
        return replace(self, clock_lead=lead, before_nanos=None if before is None else before - int(lead * _NANOS))

    @property
    def unverified_before(self) -> float:
        """Files that no version refers to may be removed if they were written before, in seconds since the epoch."""
        return time.time() - self.clock_lead - UNVERIFIED_SECONDS

    def __post_init__(self) -> None:
        if self.retain_versions is not None and self.retain_versions < 1:
            raise InvalidInputError(f"retain_versions must be greater than 0, got {self.retain_versions}")
        if self.versions is not None and not self.versions:
            raise InvalidInputError("versions must not be empty when specified")
        if self.delete_rate_limit is not None and self.delete_rate_limit < 1:
            raise InvalidInputError(f"delete_rate_limit must be greater than 0, got {self.delete_rate_limit}")
        if self.delete_concurrency is not None and not 1 <= self.delete_concurrency < 1 << 61:
            raise InvalidInputError(
                f"delete_concurrency must be between 1 and {(1 << 61) - 1}, got {self.delete_concurrency}"
            )


def _limit(name: str, value: int | None) -> int | None:
    return None if value is None else checked_integer(name, value)


@dataclass(frozen=True)
class Candidate:
    """A file to remove.

    Attributes
    ----------
    kind
        Its purpose.
    path
        Full path in the store.
    size
        Size in bytes.
    unverified
        True if no version refers to it, False if only old ones do.
    modified
        Time when it was written, in seconds since the epoch; 0.0 if that was not asked for.
    """

    kind: FileKind
    path: str
    size: int
    unverified: bool = False
    modified: float = 0.0


@dataclass(frozen=True)
class OldVersion:
    """A version to remove.

    Attributes
    ----------
    version
        Its number.
    manifests
        Its manifest. Listed under both names during a migration of names.
    """

    version: int
    manifests: tuple[Candidate, ...]


@dataclass
class CleanupPlan:
    """Versions and files that a cleanup removes.

    Attributes
    ----------
    read_version
        The version that the cleanup starts from. It stays, and so do later ones.
    old
        Old versions, oldest first.
    branches
        Branches that began from this table, and the files of it that they use.
    files
        Files to remove unless a kept version uses them.
    used
        Files used by kept versions and by branches.
    kept
        Numbers of the versions that stay.
    """

    read_version: int
    old: list[OldVersion]
    branches: BranchUsage
    files: list[Candidate]
    used: FileUsage
    kept: frozenset[int]

    def removable(self, root: str) -> list[Candidate]:
        """Return the files that no kept version uses."""
        return [file for file in self.files if not self.used.uses(file.path[len(root) + 1 :])]


def plan_cleanup(
    store: ObjectStore, root: str, manifest: Manifest, policy: CleanupPolicy, run_shares: ShareRunner | None = None
) -> CleanupPlan:
    """Plan a cleanup without changing anything.

    Files are listed before manifests are read, so that files committed meanwhile are seen to be in use.

    Parameters
    ----------
    store, root
        The table, or a branch of it.
    manifest
        The version to start from.
    policy
        Conditions for old versions.
    run_shares
        Function that lists folders, perhaps in other processes; None for this one.

    Raises
    ------
    CorruptFileError, UnsupportedError
        A manifest, a tag or a branch cannot be read, so its files are not known.
    InvalidInputError
        An old version has a tag, and that is an error. Or a branch was opened through a link.
    UnsafePathError
        A folder of the table is a link.
    """
    _check_spelling(store, root, manifest)
    store.check_own(f"{root}/{VERSIONS_FOLDER}")
    listed = list(_scan(store, root, run_shares or run_here))
    branches = BranchUsage(store, main_root(manifest, root), branch_of(manifest, root))
    branches.refresh()
    listed = [(kind, info) for kind, info in listed if not branches.owns(info.path)]
    tags = tagged_versions(store, root, manifest)
    names = list_versions(store, root)
    is_old = _Rule(policy, manifest, [name.version for name in names])
    newest = names[-1].version if names else 0
    used, old_files = FileUsage(), FileUsage()
    old: list[int] = []
    tagged: dict[str, int] = {}
    oldest_kept = manifest.timestamp_nanos
    for each in read_usage(store, root, names):
        files = each.files
        if not is_old(each):
            used.add(files)
            oldest_kept = min(oldest_kept, each.timestamp_nanos)
        elif each.version in tags:
            tagged.update(dict.fromkeys(tags[each.version], each.version))
            used.add(files)
            oldest_kept = min(oldest_kept, each.timestamp_nanos)
        elif branches.holds(each.version, files):
            used.add(_without_transaction(files) if each.has_inline_transaction else files)
            old_files.add(files)
        else:
            old_files.add(files)
            old.append(each.version)
    if tagged and policy.error_if_tagged:
        raise InvalidInputError(
            f"Cleanup error: {len(tagged)} tagged version(s) have been marked for cleanup; nothing was removed. Pass "
            f"error_if_tagged_old_versions=False to keep them, or delete these tags: {tagged}"
        )
    for each in read_usage(store, root, detached_versions(store, root)):
        used.add(each.files)
    branches.add_to(used)
    return CleanupPlan(
        read_version=manifest.version,
        old=_old_versions(store, root, old),
        branches=branches,
        files=[*_candidates(listed, root, old_files, policy, oldest_kept), *_dead_staging(store, root, newest, policy)],
        used=used,
        kept=frozenset(name.version for name in names) - set(old),
    )


def _check_spelling(store: ObjectStore, root: str, manifest: Manifest) -> None:
    """Raise an error if a branch was opened through a link: its tags and child branches would not be found."""
    if (
        manifest.branch is None
        or branch_of(manifest, root) is not None
        or not isinstance(plain_store(store), LocalStore)
    ):
        return
    real = os.path.realpath(root)
    if branch_of(manifest, real) is not None:
        raise InvalidInputError(f"{root} is a link to the branch {manifest.branch!r}; open it as {real} to clean it up")


class _Rule:
    """Predicate that is true for old versions. Call it for the versions in their order.

    A version is not older than those before it. So one that was dated by a clock that is behind counts as old only if
    they are old too. Dates in the future say nothing about later versions.
    """

    def __init__(self, policy: CleanupPolicy, manifest: Manifest, versions: Sequence[int]) -> None:
        self._policy = policy
        self._now = time.time_ns() - int(policy.clock_lead * _NANOS)
        self._latest = 0
        # The number of a detached version does not tell which versions are later.
        self._before = min(manifest.version, versions[-1] if versions else 0)
        if policy.before_version is not None:
            self._before = min(self._before, policy.before_version)
        if policy.retain_versions is not None:
            retained = versions[-policy.retain_versions :]
            self._before = min(self._before, retained[0] if retained else 0)

    def __call__(self, manifest: VersionUsage) -> bool:
        before, versions = self._policy.before_nanos, self._policy.versions
        if manifest.timestamp_nanos <= self._now:
            self._latest = max(self._latest, manifest.timestamp_nanos)
        return (
            manifest.version < self._before
            and (before is None or max(self._latest, manifest.timestamp_nanos) < before)
            and (versions is None or manifest.version in versions)
        )


def tagged_versions(store: ObjectStore, root: str, manifest: Manifest) -> dict[int, list[str]]:
    """Return the tags of a table or branch by version."""
    here = branch_of(manifest, root)
    found: dict[int, list[str]] = {}
    for name, tag in list_tags(store, main_root(manifest, root)).items():
        if tag.branch == here:
            found.setdefault(tag.version, []).append(name)
    return found


def _without_transaction(files: VersionFiles) -> VersionFiles:
    """Return the files of a version kept for a branch, whose manifest has the transaction itself."""
    return replace(files, own=frozenset(path for path in files.own if not path.startswith(f"{TRANSACTIONS_FOLDER}/")))


def _old_versions(store: ObjectStore, root: str, versions: Sequence[int]) -> list[OldVersion]:
    if not versions:
        return []
    sizes = {info.name: info.size for info in store.list(f"{root}/{VERSIONS_FOLDER}")}
    found: dict[int, list[Candidate]] = {version: [] for version in versions}
    for name in list_manifests(store, root):
        if name.version in found:
            path = named_path(root, name)
            found[name.version].append(Candidate(FileKind.MANIFEST, path, sizes.get(name.name, 0)))
    return [OldVersion(version, tuple(manifests)) for version, manifests in sorted(found.items()) if manifests]


def _scan(store: ObjectStore, root: str, run_shares: ShareRunner) -> Iterator[tuple[FileKind, ObjectInfo]]:
    """Yield the files that a cleanup may remove if they are not in use, except manifests."""
    found = run_shares([Listing(store, f"{root}/{folder}") for folder in _SUFFIXES])
    for (kind, suffixes), infos in zip(_SUFFIXES.values(), found, strict=True):
        for info in _own_files(infos, len(root)):
            if suffixes is None or info.name.endswith(suffixes):
                yield kind, info
            elif info.name.startswith(_TEMPORARY):
                yield FileKind.TEMPORARY_MANIFEST, info
    for path in (root, f"{root}/{VERSIONS_FOLDER}"):
        for info in store.list(path):
            if info.name.startswith(_TEMPORARY):
                yield FileKind.TEMPORARY_MANIFEST, info


def _own_files(infos: Sequence[ObjectInfo], start: int) -> Iterator[ObjectInfo]:
    """Yield the files that do not belong to another table inside a folder of this one."""
    versions = f"/{VERSIONS_FOLDER}/"
    inner = {info.path[:at] for info in infos if (at := info.path.find(versions, start)) >= 0}
    folders = tuple(f"{table}/{folder}/" for table in inner for folder in (*TABLE_FOLDERS, TREE_FOLDER, "_refs"))
    return (info for info in infos if not info.path.startswith(folders)) if folders else iter(infos)


def _dead_staging(store: ObjectStore, root: str, newest: int, policy: CleanupPolicy) -> Iterator[Candidate]:
    """Yield leftover staged manifests of writers that died.

    The writer died either before the external manifest store had an entry for its manifest, or after the store accepted
    another writer's. Such manifests can be recognized only if the dataset was opened with that store. A manifest that
    would be the next version stays, in case the wrong store was given.
    """
    manifests = external_manifests_of(store)
    if manifests is None:
        return
    young = policy.unverified_before
    for info in store.list(f"{root}/{VERSIONS_FOLDER}"):
        final = final_manifest_name(info.name)
        name = parse_manifest_name(final) if final and final != info.name else None
        if name is None or name.version > newest or info.modified >= young:
            continue
        entry = manifests.get(manifests.key(store.uri(root), root), name.version)
        if entry is None or entry.path != f"{VERSIONS_FOLDER}/{info.name}":
            yield Candidate(FileKind.TEMPORARY_MANIFEST, info.path, info.size, unverified=True)


def _candidates(
    listed: Sequence[tuple[FileKind, ObjectInfo]],
    root: str,
    old: FileUsage,
    policy: CleanupPolicy,
    oldest_kept: int,
) -> Iterator[Candidate]:
    young = policy.unverified_before
    for kind, info in listed:
        if old.uses(info.path[len(root) + 1 :]):
            yield Candidate(kind, info.path, info.size, modified=info.modified)
        elif kind in _BRIEF and info.modified * _NANOS >= oldest_kept:
            continue
        elif policy.delete_unverified or info.modified < young:
            yield Candidate(kind, info.path, info.size, unverified=True, modified=info.modified)
