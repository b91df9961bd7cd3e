"""Look at the data files and deletion files of all versions and branches. Files that versions share are read once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from lance_dataset.changes.doctor.sizes import known_size
from lance_dataset.changes.doctor.survey import OpenVersion, cause_of
from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.io.base import ObjectStore
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.validation import validate_fragment
from lance_dataset.records.diagnosis import (
    DiagnosisCause,
    DiagnosisKind,
    Finding,
    FindingSubject,
    VersionPlace,
    version_names,
)
from lance_dataset.table.deletions import read_deletions
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.fragment_list import FragmentList
from lance_dataset.table.paths import DATA_FOLDER, DELETIONS_FOLDER, FileLocator, deletion_name
from lance_dataset.threads.progress import Progress
from lance_dataset.threads.streams import stream

__all__ = ["FileLook", "data_problem"]

_AHEAD = 16
_DELETIONS = f"{DELETIONS_FOLDER}/"
#: Findings of one kind; if there are more, their number is told.
_NAMED = 50


@dataclass
class _Damage:
    """A damaged file, or a fragment whose files contradict each other."""

    kind: DiagnosisKind
    path: str | None
    fragment: int
    columns: tuple[str, ...]
    cause: DiagnosisCause
    reason: str
    versions: list[VersionPlace] = field(default_factory=list)
    newest: list[str | None] = field(default_factory=list)


@dataclass
class _Known:
    """Files of a branch that were looked at: by what its manifests call them."""

    seen: set[Hashable] = field(default_factory=set)
    bad: dict[Hashable, list[_Damage]] = field(default_factory=dict)


class FileLook:
    """Look at the data files and deletion files of all versions.

    Parameters
    ----------
    store, root
        The main branch.
    progress
        Is told of each fragment that was looked at.
    """

    def __init__(self, store: ObjectStore, root: str, progress: Progress | None = None) -> None:
        self._store = store
        self._root = root
        self._progress = progress
        self._known: dict[str, _Known] = {}
        self._damages: dict[Hashable, _Damage] = {}
        #: Places of the files of fragments in which nothing is wrong. Branches share them with the main one.
        self._sound: set[tuple[str, ...]] = set()

    def visit(self, version: OpenVersion) -> None:
        """Look at the files of a version that no version before has shown. Versions come newest first."""
        known = self._known.setdefault(version.table.root, _Known())
        files = version.files
        others = (name for name in files.own if name.startswith(_DELETIONS))
        current: set[Hashable] = {*files.data, *others, *files.in_bases}
        new = current - known.seen
        if new:
            self._check(version, new, known)
            known.seen |= new
        found = {id(damage): damage for name in known.bad.keys() & current for damage in known.bad[name]}
        for damage in found.values():
            if version.place not in damage.versions:
                damage.versions.append(version.place)
            if version.is_newest and version.table.branch not in damage.newest:
                damage.newest.append(version.table.branch)

    def _check(self, version: OpenVersion, new: set[Hashable], known: _Known) -> None:
        fragments = [version.manifest.fragment_list[each] for each in _positions(version.manifest.fragment_list, new)]
        locator = version.table.location.locator(version.manifest)
        if version.table.branch is not None:
            fragments = [each for each in fragments if _places(locator, each) not in self._sound]
        if self._progress is not None:
            self._progress.expect(len(fragments))

        def check(fragment: Fragment) -> list[tuple[Hashable, _Damage]]:
            found = list(self._damages_of(version.snapshot, fragment))
            if not found:
                self._sound.add(_places(locator, fragment))
            if self._progress is not None:
                self._progress.advance()
            return found

        for found in stream(check, fragments, ahead=_AHEAD):
            for name, damage in found:
                key: Hashable = damage.path or (version.table.root, damage.fragment, name)
                known.bad.setdefault(name, []).append(self._damages.setdefault((damage.kind, key), damage))

    def _damages_of(self, snapshot: Snapshot, fragment: Fragment) -> Iterator[tuple[Hashable, _Damage]]:
        """Yield what is damaged of a fragment, each with the name by which manifests refer to it."""
        try:
            validate_fragment(snapshot, fragment)
            return
        except (LanceError, OSError) as error:
            problem: Exception = error
        locator = snapshot.location.locator(snapshot.manifest)
        is_known = False
        for file in fragment.files:
            wrong = data_problem(snapshot, locator, fragment, file)
            if wrong is not None:
                is_known = True
                store, path = _placed(locator, file)
                columns = _columns(snapshot, file)
                yield _data_name(file), self._damage(DiagnosisKind.DATA, fragment, store, path, wrong, columns)
        deletion = fragment.deletion_file
        if deletion is not None:
            try:
                read_deletions(locator, fragment)
            except (LanceError, OSError) as error:
                is_known = True
                store, path = locator.deletion_file(fragment.id, deletion)
                yield _deletion_name(fragment), self._damage(DiagnosisKind.DELETION, fragment, store, path, error)
        if not is_known:
            name = _data_name(fragment.files[0]) if fragment.files else fragment.id
            yield name, self._damage(DiagnosisKind.DATA, fragment, None, None, problem)

    def _damage(
        self,
        kind: DiagnosisKind,
        fragment: Fragment,
        store: ObjectStore | None,
        path: str | None,
        error: Exception,
        columns: tuple[str, ...] = (),
    ) -> _Damage:
        size, shown = None, None
        if store is not None and path is not None:
            size = known_size(store, path)
            place = store.uri(path)
            root = f"{self._store.uri(self._root)}/"
            shown = place[len(root) :] if place.startswith(root) else place
        return _Damage(kind, shown, fragment.id, columns, cause_of(error, size), str(error))

    def all_findings(self) -> list[Finding]:
        """Return what was found, damage of newest versions first."""
        return [_finding(damage) for damage in sorted(self._damages.values(), key=lambda damage: not damage.newest)]

    def findings(self) -> Iterator[Finding]:
        """Yield what was found, damage of newest versions first, and the number of further damages."""
        found = self.all_findings()
        yield from found[:_NAMED]
        if len(found) > _NAMED:
            what = f"{len(found) - _NAMED:,} more files are damaged"
            yield Finding(DiagnosisKind.FILES, what, "mend these first, and check again")


def _finding(damage: _Damage) -> Finding:
    versions = tuple(damage.versions)
    columns = f" (columns {', '.join(damage.columns)})" if damage.columns else ""
    what = f"fragment {damage.fragment}{columns} of {version_names(versions)}: {damage.reason}"
    subject = FindingSubject(
        cause=damage.cause,
        path=damage.path,
        versions=versions,
        newest=tuple(damage.newest),
        fragment=damage.fragment,
        column=damage.columns[0] if len(damage.columns) == 1 else None,
    )
    return Finding(damage.kind, what, _remedy(damage), subject=subject)


def _remedy(damage: _Damage) -> str:
    if damage.cause is DiagnosisCause.UNSUPPORTED:
        return "read it with a newer release"
    if damage.cause is DiagnosisCause.UNREADABLE:
        return "find out why the store does not give the file, and check again"
    if not damage.newest:
        numbers = sorted(version for branch, version in damage.versions if branch is None)
        if len(numbers) == len(damage.versions):
            return (
                f"put a copy of the file back, or remove the old versions: ds.cleanup_old_versions(versions={numbers})"
            )
        return "put a copy of the file back; no newest version needs it"
    if damage.kind is DiagnosisKind.DELETION:
        return (
            "put a copy of the file back, or let the deleted rows return: ds.doctor(repair=True, execute=True, "
            "restore_deleted_rows=True)"
        )
    branch = damage.newest[0]
    start = "" if branch is None else f"(with ds = ds.checkout_version(({branch!r}, None))) "
    version = next(version for place, version in damage.versions if place == branch)
    return (
        f"put a copy of the file back, or give the rows of the fragment up: {start}LanceDataset.commit(ds, "
        f"LanceOperation.Delete([], [{damage.fragment}], 'false'), read_version={version})"
    )


def _positions(fragments: FragmentList, names: set[Hashable]) -> list[int]:
    """Return the positions of the fragments that have a file of these names; few fragments are decoded for that."""
    columns = fragments.columns
    bases = columns.file_base_ids.tolist()
    found = set(np.flatnonzero(columns.has_overlays).tolist())  # the names of their overlays are not among the columns
    for owner, path, base in zip(columns.file_owners.tolist(), fragments.file_paths(), bases, strict=True):
        name: Hashable = path if base < 0 else (base, f"{DATA_FOLDER}/{path.decode(errors='replace')}")
        if name in names:
            found.add(owner)
    if any(not isinstance(name, bytes) for name in names):
        masked = np.flatnonzero(columns.has_deletions).tolist()
        found.update(each for each in masked if _deletion_name(fragments[each]) in names)
    return sorted(found)


def _places(locator: FileLocator, fragment: Fragment) -> tuple[str, ...]:
    """Return the URIs of the files of a fragment; none if a path or base path is invalid."""
    try:
        found = [locator.data_file(file) for file in fragment.files]
        if fragment.deletion_file is not None:
            found.append(locator.deletion_file(fragment.id, fragment.deletion_file))
    except (LanceError, OSError):
        return ()
    return tuple(store.uri(path) for store, path in found)


def _data_name(file: DataFile) -> Hashable:
    """Return the name of a data file as in `VersionFiles`."""
    return file.path.encode() if file.base_id is None else (file.base_id, f"{DATA_FOLDER}/{file.path}")


def _deletion_name(fragment: Fragment) -> Hashable:
    deletion = fragment.deletion_file
    assert deletion is not None
    path = f"{DELETIONS_FOLDER}/{deletion_name(fragment.id, deletion)}"
    return path if deletion.base_id is None else (deletion.base_id, path)


def data_problem(snapshot: Snapshot, locator: FileLocator, fragment: Fragment, file: DataFile) -> Exception | None:
    """Return what is wrong with a data file alone, None for nothing."""
    try:
        store, path = locator.data_file(file)
        source = store.open_input(path)
        try:
            size = source.size
        finally:
            source.close()
        if file.file_size_bytes and not file.is_legacy and size != file.file_size_bytes:
            return CorruptFileError(f"{path}: has {size} bytes, but its manifest says {file.file_size_bytes}")
        alone = replace(fragment, files=(file,), deletion_file=None)
        FragmentReader(locator, alone, elsewhere=snapshot.reader.elsewhere).open_files()
    except (LanceError, OSError) as error:
        return error
    return None


def _placed(locator: FileLocator, file: DataFile) -> tuple[ObjectStore | None, str | None]:
    try:
        return locator.data_file(file)
    except (LanceError, OSError):
        return None, None


def _columns(snapshot: Snapshot, file: DataFile) -> tuple[str, ...]:
    """Return the names of the columns that a file holds, if it does not hold all."""
    held = set(file.fields)
    fields = snapshot.manifest.schema.fields
    names = tuple(each.name for each in fields if any(node.id in held for node in each.walk()))
    return names if len(names) < len(fields) else ()
