"""Look at the files of the indices of all versions and branches, and at the fragments that indices cover."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lance_dataset.changes.doctor.survey import OpenVersion, cause_of
from lance_dataset.errors import LanceError, MissingFileError
from lance_dataset.io.base import ObjectStore, safe_join
from lance_dataset.read.validation import validate_index_files
from lance_dataset.records.diagnosis import (
    DiagnosisCause,
    DiagnosisKind,
    Finding,
    FindingSubject,
    VersionPlace,
    version_names,
)
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import coverage, is_system_index, parse_indices
from lance_dataset.table.paths import FileLocator

__all__ = ["IndexLook"]


@dataclass
class _Broken:
    """A segment of an index with a damaged file."""

    name: str
    uuid: str
    path: str
    cause: DiagnosisCause
    reason: str
    is_system: bool
    versions: list[VersionPlace] = field(default_factory=list)
    newest: list[str | None] = field(default_factory=list)


class IndexLook:
    """Look at the indices of all versions.

    Parameters
    ----------
    store, root
        The main branch.
    """

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store = store
        self._root = root
        self._segments: dict[str, _Broken | None] = {}
        self._uncovered: list[Finding] = []

    def visit(self, version: OpenVersion) -> None:
        """Look at the indices of a version. Versions come newest first."""
        manifest = version.manifest
        locator = version.table.location.locator(manifest)
        covered: dict[str, set[int]] = {}
        for message in parse_indices(manifest.index_section):
            index = IndexMetadata.from_proto(message, manifest.path)
            if index.uuid not in self._segments:
                self._segments[index.uuid] = self._broken(index, locator, manifest.path, bool(coverage(message)))
            broken = self._segments[index.uuid]
            if broken is not None:
                broken.versions.append(version.place)
                broken.newest += [version.table.branch] if version.is_newest else []
            if version.is_newest and not is_system_index(message):
                covered.setdefault(index.name, set()).update(coverage(message) or ())
        if covered:
            self._uncovered += _uncovered(version, covered)

    def _broken(self, index: IndexMetadata, locator: FileLocator, where: str, has_rows: bool) -> _Broken | None:
        """Return what is wrong with a segment, None for nothing."""
        try:
            validate_index_files(index, locator, where)
            store, folder = locator.index_folder(index.uuid, index.base_id)
            if not index.files and has_rows and not is_system_index(index) and not any(store.list_tree(folder)):
                raise MissingFileError(f"{store.uri(folder)}: has no files")
        except (LanceError, OSError) as error:
            path, size = self._culprit(index, locator, where)
            cause = cause_of(error, size)
            return _Broken(index.name, index.uuid, path, cause, str(error), is_system_index(index))
        return None

    def _culprit(self, index: IndexMetadata, locator: FileLocator, where: str) -> tuple[str, int | None]:
        """Return the path of the first file of a segment that is not as listed, and its size."""
        try:
            store, folder = locator.index_folder(index.uuid, index.base_id)
        except (LanceError, OSError):
            return f"_indices/{index.uuid}", None
        place, root = store.uri(folder), f"{self._store.uri(self._root)}/"
        shown = place[len(root) :] if place.startswith(root) else place
        for file in index.files:
            try:
                source = store.open_input(safe_join(folder, file.path, what=where))
            except (LanceError, OSError):
                return f"{shown}/{file.path}", None
            size = source.size
            source.close()
            if size != file.size_bytes:
                return f"{shown}/{file.path}", size
        return shown, None

    def findings(self) -> Iterator[Finding]:
        """Yield what was found."""
        for broken in self._segments.values():
            if broken is not None:
                yield _finding(broken)
        yield from self._uncovered


def _finding(broken: _Broken) -> Finding:
    versions = tuple(broken.versions)
    what = f"segment {broken.uuid} of the index {broken.name!r} of {version_names(versions)}: {broken.reason}"
    remedy = f"ds.drop_index({broken.name!r}), and build it again"
    if broken.is_system:
        remedy = "put a copy of the file back; the index belongs to the table itself"
    elif not broken.newest:
        remedy = "put a copy of the file back; no newest version needs it"
    subject = FindingSubject(
        cause=broken.cause,
        path=broken.path,
        versions=versions,
        newest=tuple(broken.newest),
        index=broken.name,
    )
    return Finding(DiagnosisKind.INDEX, what, remedy, subject=subject)


def _uncovered(version: OpenVersion, covered: dict[str, set[int]]) -> Iterator[Finding]:
    ids = set(version.manifest.fragment_list.ids.tolist())
    branch = version.table.branch
    where = "" if branch is None else f" of the branch {branch!r}"
    for name, fragments in covered.items():
        missing = len(ids - fragments)
        if missing:
            what = f"the index {name!r}{where} does not cover {missing:,} of {len(ids):,} fragments, which are scanned"
            remedy = f"ds.optimize.optimize_indices(index_names=[{name!r}])"
            subject = FindingSubject(versions=(version.place,), newest=(branch,), branch=branch, index=name)
            yield Finding(DiagnosisKind.COVERAGE, what, remedy, is_damage=False, subject=subject)
