"""Survey of a dataset: its branches, and the manifests of all their versions, newest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from lance_dataset.changes.doctor.sizes import known_size
from lance_dataset.errors import CorruptFileError, LanceError, MissingFileError, UnsupportedError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.guarded import external_manifests_of
from lance_dataset.properties import cached_property
from lance_dataset.read.location import TableLocation
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.diagnosis import DiagnosisCause, VersionPlace
from lance_dataset.table.cleanup.file_usage import VersionFiles, detached_versions, version_files
from lance_dataset.table.manifest import Manifest, read_manifest
from lance_dataset.table.naming import (
    LATEST_COPY,
    VERSIONS_FOLDER,
    ManifestName,
    Naming,
    latest_copy_path,
    named_path,
    parse_manifest_name,
)
from lance_dataset.table.references.names import BRANCHES_FOLDER, TREE_FOLDER, branch_root, main_root, reference_name
from lance_dataset.table.versions import list_manifests
from lance_dataset.threads.pools import storage_pool
from lance_dataset.threads.streams import stream

__all__ = ["BranchTable", "OpenVersion", "UnreadVersion", "branch_tables", "cause_of", "main_location", "read_versions"]

#: Manifests that are read at the same time, or held in memory, as each may be large.
_READERS = 16


@dataclass(frozen=True)
class BranchTable:
    """The table of a branch.

    Attributes
    ----------
    location
        Its location.
    branch
        Its name, None for the main branch.
    """

    location: TableLocation
    branch: str | None

    @property
    def store(self) -> ObjectStore:
        """Object store of the table."""
        return self.location.store

    @property
    def root(self) -> str:
        """Path of the table in its store."""
        return self.location.root


@dataclass(frozen=True)
class OpenVersion:
    """A version whose manifest can be read.

    Attributes
    ----------
    table
        Its branch.
    name
        Name of its manifest.
    manifest
        Its manifest.
    is_newest
        True for the newest version of the branch that can be read.
    """

    table: BranchTable
    name: ManifestName
    manifest: Manifest
    is_newest: bool

    @property
    def place(self) -> VersionPlace:
        """Branch and version."""
        return self.table.branch, self.manifest.version

    @cached_property
    def snapshot(self) -> Snapshot:
        """The version, opened."""
        return Snapshot.of(self.table.location, self.manifest)

    @cached_property
    def files(self) -> VersionFiles:
        """Files that the version refers to. Raises CorruptFileError if the manifest contradicts the format."""
        return version_files(self.manifest)


@dataclass(frozen=True)
class UnreadVersion:
    """A version whose manifest cannot be read.

    Attributes
    ----------
    table
        Its branch.
    name
        Name of its manifest.
    cause, reason
        What is wrong.
    """

    table: BranchTable
    name: ManifestName
    cause: DiagnosisCause
    reason: str = field(compare=False)

    @property
    def path(self) -> str:
        """Path of the manifest in the store."""
        return named_path(self.table.root, self.name)


Version: TypeAlias = "OpenVersion | UnreadVersion"


def cause_of(error: Exception, size: int | None = None) -> DiagnosisCause:
    """Return what is wrong with a file that could not be read.

    Parameters
    ----------
    error
        What reading raised.
    size
        Size of the file, if known.
    """
    if isinstance(error, FileNotFoundError):
        return DiagnosisCause.MISSING
    if isinstance(error, UnsupportedError):
        return DiagnosisCause.UNSUPPORTED
    if isinstance(error, CorruptFileError):
        return DiagnosisCause.EMPTY if size == 0 else DiagnosisCause.CORRUPT
    return DiagnosisCause.UNREADABLE


def main_location(location: TableLocation) -> TableLocation:
    """Return the location of the main branch of a dataset, of which a branch may be given."""
    if f"/{TREE_FOLDER}/" not in location.root:
        return location
    for version in read_versions(BranchTable(location, None)):
        if isinstance(version, OpenVersion):
            root = main_root(version.manifest, location.root)
            return location if root == location.root else replace(location, uri=location.store.uri(root), root=root)
    # no manifest can be read: the folders tell
    root = location.root.rpartition(f"/{TREE_FOLDER}/")[0]
    is_table = any(parse_manifest_name(name) for name in location.store.list_names(f"{root}/{VERSIONS_FOLDER}"))
    return replace(location, uri=location.store.uri(root), root=root) if is_table else location


def branch_tables(main: TableLocation) -> list[BranchTable]:
    """Return the main branch, and all others that have a file, which need not be readable."""
    names = map(reference_name, sorted(main.store.list_names(f"{main.root}/{BRANCHES_FOLDER}")))
    tables = [BranchTable(main, None)]
    for name in names:
        if name is not None and not {"", ".", ".."} & set(name.split("/")):
            root = branch_root(main.root, name)
            tables.append(BranchTable(replace(main, uri=main.store.uri(root), root=root), name))
    return tables


def read_versions(table: BranchTable) -> Iterator[Version]:
    """Read the versions of a branch, newest first, then the detached ones. What a cleanup removes is left out."""
    newest_found = False
    for name, found in stream(
        lambda each: (each, _read(table, each)), _names(table), ahead=_READERS - 1, pool=storage_pool, join=True
    ):
        if isinstance(found, Manifest):
            is_newest = not newest_found and name.naming is not Naming.DETACHED
            newest_found = newest_found or is_newest
            yield OpenVersion(table, name, found, is_newest)
        elif found is not None:
            yield found


def _names(table: BranchTable) -> list[ManifestName]:
    """Return the names of manifests, newest first. A version has two while its manifests are renamed."""
    store, root = table.store, table.root
    names = list_manifests(store, root)[::-1]
    if not names and store.exists(latest_copy_path(root)):
        return [ManifestName(LATEST_COPY, 0, Naming.LATEST_COPY)]
    # the names of a version follow each other, the plain number last; equal ones are the same version
    kept: list[ManifestName] = []
    for name in names:
        if kept and kept[-1].version == name.version and _is_same(store, root, kept[-1], name):
            continue
        kept.append(name)
    return [*kept, *detached_versions(store, root)]


def _is_same(store: ObjectStore, root: str, first: ManifestName, second: ManifestName) -> bool:
    try:
        return store.read(named_path(root, first)) == store.read(named_path(root, second))
    except (LanceError, OSError):
        return False


def _read(table: BranchTable, name: ManifestName) -> Manifest | UnreadVersion | None:
    path = named_path(table.root, name)
    try:
        return read_manifest(table.store, path)
    except MissingFileError as error:
        if external_manifests_of(table.store) is None:  # removed by a cleanup, or renamed, since the listing
            return None
        return UnreadVersion(table, name, DiagnosisCause.MISSING, str(error))
    except (LanceError, OSError) as error:
        return UnreadVersion(table, name, cause_of(error, known_size(table.store, path)), str(error))
