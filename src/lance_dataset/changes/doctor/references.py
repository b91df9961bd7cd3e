"""Look at tags and branches: their files, what they refer to, and the space that forgotten ones hold."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lance_dataset.changes.doctor.survey import OpenVersion, cause_of
from lance_dataset.errors import InvalidInputError, LanceError, VersionNotFoundError
from lance_dataset.io.base import ObjectStore
from lance_dataset.records.diagnosis import DiagnosisCause, DiagnosisKind, Finding, FindingSubject, VersionPlace
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.naming import VERSIONS_FOLDER, parse_manifest_name
from lance_dataset.table.references.catalog import Branch, Tag, find_branch, find_tag
from lance_dataset.table.references.names import BRANCHES_FOLDER, TAGS_FOLDER, TREE_FOLDER, reference_name

__all__ = ["ReferenceLook"]

_OLD_SECONDS = 90 * 86_400


@dataclass(frozen=True)
class _Newest:
    """Newest version of a branch: its files by path, with their sizes, and its time."""

    sizes: Mapping[bytes, int]
    time: float


class ReferenceLook:
    """Look at the tags and branches of a dataset.

    Parameters
    ----------
    store, root
        The main branch.
    """

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store = store
        self._root = root
        self._findings: list[Finding] = []
        self._tags: dict[str, Tag] = {}
        self._branches: dict[str, Branch] = {}
        self._names = {name for _, name in self._named(BRANCHES_FOLDER)}
        self._newest: dict[str | None, _Newest] = {}
        self._there: set[VersionPlace] = set()
        self._held: dict[VersionPlace, tuple[float, int]] = {}
        self._read_files()

    def _named(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the path below the root and the name of each file of tags or branches."""
        for file_name in sorted(self._store.list_names(f"{self._root}/{folder}")):
            name = reference_name(file_name)
            if name is not None:
                yield f"{folder}/{file_name}", name

    def _read_files(self) -> None:
        for path, name in self._named(TAGS_FOLDER):
            try:
                self._tags[name] = find_tag(self._store, self._root, name)
            except VersionNotFoundError:  # removed since the listing
                continue
            except (LanceError, OSError) as error:
                self._unread("tag", name, path, error)
        for path, name in self._named(BRANCHES_FOLDER):
            try:
                self._branches[name] = find_branch(self._store, self._root, name)
            except VersionNotFoundError:  # removed since the listing
                continue
            except (LanceError, OSError) as error:
                self._unread("branch", name, path, error)

    def _unread(self, what: str, name: str, path: str, error: Exception) -> None:
        try:
            size = len(self._store.read(f"{self._root}/{path}"))
        except (LanceError, OSError):
            size = None
        invalid = isinstance(error, InvalidInputError)  # the file is not named like a tag or branch
        subject = FindingSubject(
            cause=DiagnosisCause.CORRUPT if invalid else cause_of(error, size),
            path=path,
            tag=name if what == "tag" else None,
            branch=name if what == "branch" else None,
        )
        remedy = "move the file away" if invalid else f"ds.{'tags' if what == 'tag' else 'branches'}.delete({name!r})"
        text = f"the {what} {name!r} cannot be read from {path}: {error}"
        self._findings.append(Finding(DiagnosisKind.REFERENCE, text, remedy, subject=subject))

    def visit(self, version: OpenVersion) -> None:
        """Take note of a version: whether it is the newest one, or has a tag."""
        place = version.place
        self._there.add(place)
        is_tagged = any((tag.branch, tag.version) == place for tag in self._tags.values())
        if version.is_newest:
            self._newest[place[0]] = _Newest(_sizes(version.manifest), version.manifest.timestamp_nanos / 1e9)
        elif is_tagged:
            newest = self._newest.get(place[0])
            sizes = _sizes(version.manifest)
            held = sum(size for path, size in sizes.items() if newest is None or path not in newest.sizes)
            self._held[place] = version.manifest.timestamp_nanos / 1e9, held

    def findings(self, unread: frozenset[VersionPlace]) -> Iterator[Finding]:
        """Yield what was found.

        Parameters
        ----------
        unread
            Versions whose manifests exist, but cannot be read.
        """
        yield from self._findings
        for name, tag in self._tags.items():
            yield from self._tag(name, tag, unread)
        for name, branch in self._branches.items():
            yield from self._branch(name, branch, unread)
        yield from self._folders()

    def _tag(self, name: str, tag: Tag, unread: frozenset[VersionPlace]) -> Iterator[Finding]:
        place = tag.branch, tag.version
        remedy = f"ds.tags.delete({name!r})"
        if place not in self._there:
            where = f"version {tag.version}" if tag.branch is None else f"version {tag.branch}:{tag.version}"
            state = "cannot be opened" if place in unread else "does not exist"
            cause = DiagnosisCause.CORRUPT if place in unread else DiagnosisCause.MISSING
            subject = FindingSubject(cause, f"{TAGS_FOLDER}/{name}.json", (place,), branch=tag.branch, tag=name)
            what = f"the tag {name!r} names {where}, which {state}"
            yield Finding(DiagnosisKind.REFERENCE, what, remedy, subject=subject)
            return
        made, held = self._held.get(place, (0.0, 0))
        age = time.time() - made
        if made and age > _OLD_SECONDS:
            what = (
                f"{name!r} has kept version {tag.version} for {age / 86_400:.0f} days, and with it {held:,} bytes of "
                "data files that the newest version does not need"
            )
            subject = FindingSubject(versions=(place,), branch=tag.branch, tag=name, size=held)
            yield Finding(DiagnosisKind.OLD_TAG, what, remedy, is_damage=False, subject=subject)

    def _branch(self, name: str, branch: Branch, unread: frozenset[VersionPlace]) -> Iterator[Finding]:
        remedy = f"ds.branches.delete({name!r})"
        newest = self._newest.get(name)
        if newest is None:
            if any(place[0] == name for place in unread):
                return  # the finding is that of its manifests
            what = f"the branch {name!r}, which began with version {branch.parent_version}, has no versions"
            path = f"{BRANCHES_FOLDER}/{name.replace('/', '%2F')}.json"
            subject = FindingSubject(DiagnosisCause.MISSING, path, branch=name)
            yield Finding(DiagnosisKind.REFERENCE, what, remedy, subject=subject)
            return
        age = time.time() - newest.time
        if age > _OLD_SECONDS:
            held = sum(newest.sizes.values())
            days = f"{age / 86_400:.0f} days"
            what = f"the branch {name!r} has had no new version for {days}, and has {held:,} bytes of data files"
            subject = FindingSubject(branch=name, size=held)
            yield Finding(DiagnosisKind.OLD_BRANCH, what, remedy, is_damage=False, subject=subject)

    def _folders(self) -> Iterator[Finding]:
        """Find folders with versions that no branch has: their branch was half removed, or its file was lost."""
        prefix = f"{self._root}/{TREE_FOLDER}/"
        sizes: dict[str, int] = {}
        manifests: set[str] = set()
        for info in self._store.list_tree(prefix.rstrip("/")):
            folder, mark, name = info.path[len(prefix) :].partition(f"/{VERSIONS_FOLDER}/")
            if mark and parse_manifest_name(name) is not None:
                manifests.add(folder)
            sizes[info.path[len(prefix) :]] = info.size
        for name in sorted(manifests - self._names):
            size = sum(size for path, size in sizes.items() if path.startswith(f"{name}/"))
            what = f"the folder {TREE_FOLDER}/{name} has versions and {size:,} bytes, but there is no branch {name!r}"
            remedy = f"ds.branches.delete({name!r}), if it was removed on purpose"
            subject = FindingSubject(DiagnosisCause.MISSING, f"{TREE_FOLDER}/{name}", branch=name, size=size)
            yield Finding(DiagnosisKind.OLD_BRANCH, what, remedy, is_damage=False, subject=subject)


def _sizes(manifest: Manifest) -> dict[bytes, int]:
    """Return the sizes of the data files of a version that are its own, as far as they are recorded."""
    columns = manifest.fragment_list.columns
    paths = manifest.fragment_list.file_paths()
    values = zip(paths, columns.file_sizes.tolist(), columns.file_base_ids.tolist(), strict=True)
    return {path: max(size, 0) for path, size, base in values if base < 0}
