"""What a cleanup would remove, and why the rest stays."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lance_dataset.errors import InvalidInputError
from lance_dataset.io.base import ObjectInfo, ObjectStore
from lance_dataset.io.local import LocalStore
from lance_dataset.table.cleanup.branch_usage import BranchUsage
from lance_dataset.table.cleanup.file_usage import FileKind, FileUsage, VersionFiles, detached_versions, read_usage
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.naming import VERSIONS_FOLDER, final_manifest_name, named_path, parse_manifest_name
from lance_dataset.table.paths import DATA_FOLDER, DELETIONS_FOLDER, INDICES_FOLDER, TRANSACTIONS_FOLDER
from lance_dataset.table.references.catalog import branch_of, list_tags, main_root
from lance_dataset.table.references.names import TABLE_FOLDERS, TREE_FOLDER
from lance_dataset.table.versions import list_manifests, list_versions

__all__ = ["Candidate", "CleanupPlan", "CleanupPolicy", "OldVersion", "plan_cleanup", "tagged_versions"]

#: Files that no version refers to may belong to a commit that is under way, until they are this old.
UNVERIFIED_SECONDS = 7 * 24 * 3600
_REUSE_MAPS_FOLDER = "_fri"
_TEMPORARY = ".tmp"
_NANOS = 1_000_000_000

#: Suffixes of the files that may be removed from a folder; None for all.
_SUFFIXES: Mapping[str, tuple[FileKind, tuple[str, ...] | None]] = {
    DATA_FOLDER: (FileKind.DATA, (".lance", ".blob")),
    DELETIONS_FOLDER: (FileKind.DELETION, (".arrow", ".bin")),
    TRANSACTIONS_FOLDER: (FileKind.TRANSACTION, (".txn",)),
    INDICES_FOLDER: (FileKind.INDEX, None),
    _REUSE_MAPS_FOLDER: (FileKind.INDEX, (".lance",)),
}
#: Without a version that refers to them these are left alone unless they are older than every version that stays.
_BRIEF = frozenset({FileKind.TRANSACTION, FileKind.DELETION, FileKind.TEMPORARY_MANIFEST})


@dataclass(frozen=True)
class CleanupPolicy:
    """Which versions are old, and how they are removed. A version is old if all conditions that are given hold.

    Attributes
    ----------
    before_nanos
        It was committed before this time, nanoseconds since the epoch.
    before_version
        Its number is smaller.
    retain_versions
        It is none of so many newest versions.
    versions
        It is one of these.
    delete_unverified
        Whether young files that no version refers to go as well.
    error_if_tagged
        Whether an old version with a tag is an error; such versions are kept in any case.
    delete_rate_limit
        Most removals per second, None for no limit.
    delete_concurrency
        Removals at the same time, None for the default.
    """

    before_nanos: int | None = None
    before_version: int | None = None
    retain_versions: int | None = None
    versions: frozenset[int] | None = None
    delete_unverified: bool = False
    error_if_tagged: bool = True
    delete_rate_limit: int | None = None
    delete_concurrency: int | None = None

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


@dataclass(frozen=True)
class Candidate:
    """A file to remove.

    Attributes
    ----------
    kind
        What it is for.
    path
        Full path in the store.
    size
        In bytes.
    unverified
        Whether no version refers to it, rather than only old ones.
    """

    kind: FileKind
    path: str
    size: int
    unverified: bool = False


@dataclass(frozen=True)
class OldVersion:
    """A version to remove.

    Attributes
    ----------
    version
        Its number.
    manifests
        Its manifest, under both names while a migration of names is under way.
    """

    version: int
    manifests: tuple[Candidate, ...]


@dataclass
class CleanupPlan:
    """What is to go.

    Attributes
    ----------
    read_version
        The version that the cleanup starts from; it and later ones stay.
    old
        Versions, oldest first.
    branches
        Branches that began from this table, and what they use of it.
    files
        Files that may go where no version that is kept uses them.
    used
        What is used by versions that stay, and by branches.
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
        """Files that no version which is kept uses."""
        return [file for file in self.files if not self.used.uses(file.path[len(root) + 1 :])]


def plan_cleanup(store: ObjectStore, root: str, manifest: Manifest, policy: CleanupPolicy) -> CleanupPlan:
    """Look at everything and decide; nothing is changed.

    Files are listed before manifests are read: what is committed meanwhile is seen to be in use.

    Parameters
    ----------
    store, root
        The table, or a branch of it.
    manifest
        The version to start from.
    policy
        What is old.

    Raises
    ------
    CorruptFileError, UnsupportedError
        A manifest, a tag or a branch cannot be read, so what it needs is not known.
    InvalidInputError
        An old version has a tag, and that is an error; or a branch was opened by way of a link.
    """
    _check_spelling(store, root, manifest)
    listed = list(_scan(store, root))
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
    for each, files in read_usage(store, root, names):
        if not is_old(each):
            used.add(files)
            oldest_kept = min(oldest_kept, each.timestamp_nanos)
        elif each.version in tags:
            tagged.update(dict.fromkeys(tags[each.version], each.version))
            used.add(files)
            oldest_kept = min(oldest_kept, each.timestamp_nanos)
        elif branches.holds(each.version, files):
            used.add(_without_transaction(each, files))
            old_files.add(files)
        else:
            old_files.add(files)
            old.append(each.version)
    if tagged and policy.error_if_tagged:
        raise InvalidInputError(
            f"Cleanup error: {len(tagged)} tagged version(s) have been marked for cleanup; nothing was removed. Pass "
            f"error_if_tagged_old_versions=False to keep them, or delete these tags: {tagged}"
        )
    for _, files in read_usage(store, root, detached_versions(store, root)):
        used.add(files)
    branches.add_to(used)
    return CleanupPlan(
        read_version=manifest.version,
        old=_old_versions(store, root, old),
        branches=branches,
        files=[*_candidates(listed, root, old_files, policy, oldest_kept), *_dead_staging(store, root, newest)],
        used=used,
        kept=frozenset(name.version for name in names) - set(old),
    )


def _check_spelling(store: ObjectStore, root: str, manifest: Manifest) -> None:
    """Refuse a branch that does not look like one, as its tags and the branches made of it would not be found."""
    if manifest.branch is None or branch_of(manifest, root) is not None or not isinstance(store, LocalStore):
        return
    real = os.path.realpath(root)
    if branch_of(manifest, real) is not None:
        raise InvalidInputError(f"{root} is a link to the branch {manifest.branch!r}; open it as {real} to clean it up")


class _Rule:
    """Whether a version is old."""

    def __init__(self, policy: CleanupPolicy, manifest: Manifest, versions: Sequence[int]) -> None:
        self._policy = policy
        # Of a detached version the number does not say what came after it.
        self._before = min(manifest.version, versions[-1] if versions else 0)
        if policy.before_version is not None:
            self._before = min(self._before, policy.before_version)
        if policy.retain_versions is not None:
            retained = versions[-policy.retain_versions :]
            self._before = min(self._before, retained[0] if retained else 0)

    def __call__(self, manifest: Manifest) -> bool:
        before, versions = self._policy.before_nanos, self._policy.versions
        return (
            manifest.version < self._before
            and (before is None or manifest.timestamp_nanos < before)
            and (versions is None or manifest.version in versions)
        )


def tagged_versions(store: ObjectStore, root: str, manifest: Manifest) -> dict[int, list[str]]:
    """Tags of the versions of a table or branch."""
    here = branch_of(manifest, root)
    found: dict[int, list[str]] = {}
    for name, tag in list_tags(store, main_root(manifest, root)).items():
        if tag.branch == here:
            found.setdefault(tag.version, []).append(name)
    return found


def _without_transaction(manifest: Manifest, files: VersionFiles) -> VersionFiles:
    """What a version needs that is kept for a branch: its transaction only where the manifest lacks it."""
    if manifest.inline_transaction is None:
        return files
    transaction = f"{TRANSACTIONS_FOLDER}/{manifest.transaction_file}"
    return replace(files, own=files.own - {transaction})


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


def _scan(store: ObjectStore, root: str) -> Iterator[tuple[FileKind, ObjectInfo]]:
    """Files that a cleanup may remove if they are not in use; manifests are not among them."""
    for folder, (kind, suffixes) in _SUFFIXES.items():
        for info in _own_files(list(store.list_tree(f"{root}/{folder}")), len(root)):
            if suffixes is None or info.name.endswith(suffixes):
                yield kind, info
            elif info.name.startswith(_TEMPORARY):
                yield FileKind.TEMPORARY_MANIFEST, info
    for path in (root, f"{root}/{VERSIONS_FOLDER}"):
        for info in store.list(path):
            if info.name.startswith(_TEMPORARY):
                yield FileKind.TEMPORARY_MANIFEST, info


def _own_files(infos: Sequence[ObjectInfo], start: int) -> Iterator[ObjectInfo]:
    """Files that are none of another table, which somebody put into a folder of this one."""
    versions = f"/{VERSIONS_FOLDER}/"
    inner = {info.path[:at] for info in infos if (at := info.path.find(versions, start)) >= 0}
    folders = tuple(f"{table}/{folder}/" for table in inner for folder in (*TABLE_FOLDERS, TREE_FOLDER, "_refs"))
    return (info for info in infos if not info.path.startswith(folders)) if folders else iter(infos)


def _dead_staging(store: ObjectStore, root: str, newest: int) -> Iterator[Candidate]:
    """Manifests of writers that died before the external manifest store knew of them, or after it took another's.

    Who has not opened the dataset with that store cannot tell which are needed. One that would be the next version
    stays, in case the wrong store was given.
    """
    manifests = store.external_manifests
    if manifests is None:
        return
    young = time.time() - UNVERIFIED_SECONDS
    for info in store.list(f"{root}/{VERSIONS_FOLDER}"):
        final = final_manifest_name(info.name)
        name = parse_manifest_name(final) if final and final != info.name else None
        if name is None or name.version > newest or info.modified >= young:
            continue
        entry = manifests.get(manifests.key(store, root), name.version)
        if entry is None or entry.path != f"{VERSIONS_FOLDER}/{info.name}":
            yield Candidate(FileKind.TEMPORARY_MANIFEST, info.path, info.size, unverified=True)


def _candidates(
    listed: Sequence[tuple[FileKind, ObjectInfo]],
    root: str,
    old: FileUsage,
    policy: CleanupPolicy,
    oldest_kept: int,
) -> Iterator[Candidate]:
    young = time.time() - UNVERIFIED_SECONDS
    for kind, info in listed:
        if old.uses(info.path[len(root) + 1 :]):
            yield Candidate(kind, info.path, info.size)
        elif kind in _BRIEF and info.modified * _NANOS >= oldest_kept:
            continue
        elif policy.delete_unverified or info.modified < young:
            yield Candidate(kind, info.path, info.size, unverified=True)
