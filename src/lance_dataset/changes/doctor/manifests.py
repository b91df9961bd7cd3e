"""Look at the manifests of all versions and branches, and at the files that name the newest one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from lance_dataset.changes.doctor.survey import BranchTable, OpenVersion, UnreadVersion
from lance_dataset.errors import LanceError, MissingFileError
from lance_dataset.records.diagnosis import DiagnosisCause, DiagnosisKind, Finding, FindingSubject
from lance_dataset.table.manifest import read_manifest
from lance_dataset.table.naming import (
    LATEST_COPY,
    VERSION_HINT,
    VERSIONS_FOLDER,
    ManifestName,
    Naming,
    latest_copy_path,
    manifest_name,
)
from lance_dataset.table.versions import list_manifests

__all__ = ["ManifestLook", "hinted_version"]

_REMEDIES = {
    DiagnosisCause.UNSUPPORTED: "open the dataset with a newer release, which knows this version",
    DiagnosisCause.UNREADABLE: "find out why the store does not give the file, and check again",
}
_REPAIR = "`lance-dataset doctor URI --repair`"


@dataclass
class ManifestLook:
    """Look at the manifests of a branch.

    Parameters
    ----------
    table
        The branch.
    """

    table: BranchTable
    newest: OpenVersion | None = None
    unread: list[UnreadVersion] = field(default_factory=list)
    count: int = 0
    _names: dict[int, ManifestName] = field(default_factory=dict)
    _doubles: list[OpenVersion] = field(default_factory=list)

    def visit(self, version: OpenVersion) -> None:
        """Take note of a version that can be read."""
        if version.is_newest:
            self.newest = version
        if version.manifest.version in self._names:
            self._doubles.append(version)
            return
        self._names[version.manifest.version] = version.name
        self.count += version.name.naming is not Naming.DETACHED

    @property
    def versions(self) -> frozenset[int]:
        """Numbers of the versions that can be read."""
        return frozenset(self._names)

    def findings(self) -> Iterator[Finding]:
        """Yield what was found."""
        for unread in self.unread:
            yield self._unread(unread)
        for double in self._doubles:
            yield self._double(double)
        if self.newest is not None and self.newest.name.naming is not Naming.LATEST_COPY:
            yield from self._hint(self.newest)
            yield from self._latest_copy(self.newest)

    def _relative(self, path: str) -> str:
        prefix = "" if self.table.branch is None else f"tree/{self.table.branch}/"
        return prefix + path[len(self.table.root) + 1 :]

    def _named(self, version: int) -> str:
        return str(version) if self.table.branch is None else f"{self.table.branch}:{version}"

    def _unread(self, unread: UnreadVersion) -> Finding:
        last = 0 if self.newest is None else self.newest.manifest.version
        version = unread.name.version
        detached = unread.name.naming is Naming.DETACHED
        kept = (
            f"then version {last} is the newest"
            if version > last and last and not detached
            else "the other versions do not need it"
        )
        remedy = _REMEDIES.get(
            unread.cause,
            f"put a copy of {self.table.store.uri(unread.path)} back, or {_REPAIR}, which commits the version again or "
            f"moves the file away; {kept}",
        )
        subject = FindingSubject(
            cause=unread.cause,
            path=self._relative(unread.path),
            versions=((self.table.branch, version),),
            newest=(self.table.branch,) if version > last and not detached else (),
            branch=self.table.branch,
        )
        what = f"version {self._named(version)} cannot be opened: {unread.reason}"
        return Finding(DiagnosisKind.VERSION, what, remedy, subject=subject)

    def _double(self, double: OpenVersion) -> Finding:
        first, second = self._names[double.manifest.version].name, double.name.name
        what = (
            f"version {self._named(double.manifest.version)} exists twice with different content, as {first} and "
            f"as {second}"
        )
        subject = FindingSubject(
            cause=DiagnosisCause.CORRUPT,
            path=self._relative(f"{self.table.root}/{VERSIONS_FOLDER}/{second}"),
            versions=(double.place,),
            branch=self.table.branch,
        )
        return Finding(
            DiagnosisKind.VERSION, what, "move the one away that is not part of this dataset", subject=subject
        )

    def _hint(self, newest: OpenVersion) -> Iterator[Finding]:
        """Compare the hint of the newest version with the manifests. Older numbers are allowed."""
        path = f"{self.table.root}/{VERSIONS_FOLDER}/{VERSION_HINT}"
        try:
            hinted = hinted_version(self.table.store.read(path))
        except MissingFileError:
            return
        last = max([newest.manifest.version, *(each.name.version for each in self._numbered_unread())])
        if hinted is None:
            subject = FindingSubject(DiagnosisCause.CORRUPT, self._relative(path), branch=self.table.branch)
            what = f"{VERSION_HINT} does not name a version"
            remedy = "nothing needs to be done, as readers ignore it, and the next commit replaces it"
            yield Finding(DiagnosisKind.HINT, what, remedy, is_damage=False, subject=subject)
        elif hinted > last and not self._is_there(hinted):
            yield self._lost(hinted, newest)

    def _is_there(self, version: int) -> bool:
        """Return True if a version, or a later one, was committed since the manifests were listed."""
        return any(name.version >= version for name in list_manifests(self.table.store, self.table.root))

    def _numbered_unread(self) -> list[UnreadVersion]:
        return [each for each in self.unread if each.name.naming is not Naming.DETACHED]

    def _lost(self, hinted: int, newest: OpenVersion) -> Finding:
        """Return the finding for a manifest that the hint names, and that is gone."""
        name = manifest_name(hinted, newest.name.naming)
        subject = FindingSubject(
            cause=DiagnosisCause.MISSING,
            path=self._relative(f"{self.table.root}/{VERSIONS_FOLDER}/{name}"),
            versions=((self.table.branch, hinted),),
            newest=(self.table.branch,),
            branch=self.table.branch,
        )
        what = (
            f"version {self._named(hinted)} is missing: {VERSION_HINT} says that it was committed, but its manifest "
            f"{name} does not exist, so version {newest.manifest.version} is the newest"
        )
        return Finding(
            DiagnosisKind.VERSION,
            what,
            f"put a copy of the manifest back, or {_REPAIR}",
            subject=subject,
        )

    def _latest_copy(self, newest: OpenVersion) -> Iterator[Finding]:
        """Check the copy of the newest manifest that releases before 0.8.1 open."""
        path = latest_copy_path(self.table.root)
        if not self.table.store.exists(path):
            return
        try:
            read_manifest(self.table.store, path)
        except (LanceError, OSError) as error:
            subject = FindingSubject(DiagnosisCause.CORRUPT, self._relative(path), branch=self.table.branch)
            what = f"{LATEST_COPY}, the copy of the newest manifest for releases before 0.8.1, cannot be read: {error}"
            remedy = "nothing needs to be done, as the next commit replaces it"
            yield Finding(DiagnosisKind.OLD_READER, what, remedy, is_damage=False, subject=subject)


def hinted_version(content: bytes) -> int | None:
    """Return the version that a hint names; None if it names none."""
    try:
        value = json.loads(content)
    except ValueError:
        return None
    version = value.get("version") if isinstance(value, dict) else None
    return version if type(version) is int and version >= 0 else None
