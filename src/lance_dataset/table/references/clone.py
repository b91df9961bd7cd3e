"""Clones: tables that begin as a copy of a version of another table, and share its files or copy them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from lance_dataset._proto import table_pb2
from lance_dataset._version import __version__
from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    LanceError,
    UnsupportedError,
)
from lance_dataset.file.options import is_blob_v2
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.flags import Feature, check_writable
from lance_dataset.table.fragment_list import FragmentList
from lance_dataset.table.indices.coverage import has_reliable_coverage, parse_indices, signature_for_unreliable_coverage
from lance_dataset.table.manifest import BasePath, Manifest
from lance_dataset.table.messages import parse_message
from lance_dataset.table.naming import Naming, is_detached, manifest_path
from lance_dataset.table.old_tables.completion import FragmentCompletion
from lance_dataset.table.old_tables.field_repair import with_unique_fields
from lance_dataset.table.operations import Clone
from lance_dataset.table.paths import FileLocator, is_in_memory
from lance_dataset.table.protocol import commit_protocol
from lance_dataset.table.publish import publish_version
from lance_dataset.table.references.clone_files import FileCopy, copy_files, files_of, remove_copies
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import find_latest, list_versions, locate_version
from lance_dataset.threads.progress import Progress

__all__ = ["CloneSource", "deep_clone", "publish_first", "shallow_clone", "shallow_manifest"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CloneSource:
    """A version to be cloned.

    Attributes
    ----------
    store, root
        Its table, which is that of the branch if it is on one.
    manifest
        The version.
    branch
        Name of the branch, None for the main one.
    locator
        Finds its files.
    """

    store: ObjectStore
    root: str
    manifest: Manifest
    branch: str | None
    locator: FileLocator

    def operation(self, *, is_shallow: bool, branch_name: str | None = None) -> Clone:
        """Return the operation for the history of the clone."""
        return Clone(is_shallow, self.manifest.version, self.store.uri(self.root), self.branch, branch_name)


_Renumbering: TypeAlias = Callable[[int | None], int | None]


def shallow_clone(source: CloneSource, store: ObjectStore, root: str) -> Manifest:
    """Create a table that shares the files of a version of another one. Its own changes go to its own files.

    Parameters
    ----------
    source
        The version. Its table keeps no record of the clone, so a cleanup of that table can break the clone.
    store, root
        Location of the clone.

    Returns
    -------
    Manifest
        The only version of the clone, which has the version number of the source. It is durable.

    Raises
    ------
    AlreadyExistsError
        A table already exists there.
    VersionNotFoundError
        The version was removed since it was opened, so its files may be gone.
    UnsupportedError
        The source uses a feature that a clone cannot maintain, or its files are in memory and the clone is not.
    """
    _check_free(store, root)
    manifest = shallow_manifest(source, store)
    locate_version(source.store, source.root, manifest.version)
    return publish_first(store, root, manifest, source.operation(is_shallow=True))


def deep_clone(source: CloneSource, store: ObjectStore, root: str, progress: Progress | None = None) -> Manifest:
    """Create a table with copies of the data, deletion and index files of a version of another one.

    The manifest is written last, so a clone that fails or is interrupted leaves no table. Its copied files are removed,
    or reused by the next clone of the version to this location.

    Parameters and errors are those of `shallow_clone`. Additional errors:

    Raises
    ------
    MissingFileError
        A file of the source is gone.
    CorruptFileError
        A file of the source does not have the size stated in the manifest, or two files have the same name.
    """
    _check_free(store, root)
    manifest = _prepared(source)
    copies = files_of(source.locator, manifest, store, root)
    made: list[FileCopy] = []
    try:
        copy_files(copies, made, progress)
        # references of blobs to objects below a base path stay valid
        has_blobs = any(is_blob_v2(node) for node in manifest.schema.walk())
        cloned = _with_bases(manifest, tuple(manifest.base_paths) if has_blobs else (), lambda _: None)
        return publish_first(store, root, cloned, source.operation(is_shallow=False))
    except BaseException:
        _remove_unused(store, root, made)
        raise


def _check_free(store: ObjectStore, root: str) -> None:
    if find_latest(store, root) is not None:
        raise AlreadyExistsError(f"Dataset already exists: {store.uri(root)}")


def _remove_unused(store: ObjectStore, root: str, copies: Iterable[FileCopy]) -> None:
    """Remove copies, unless a table now exists that may use them."""
    try:
        if find_latest(store, root) is None:
            remove_copies(copies)
    except (LanceError, OSError) as error:
        _log.debug("files of a failed clone are left in %s: %s", store.uri(root), error)


# -- manifests -------------------------------------------------------------------------------------------------------


def shallow_manifest(source: CloneSource, store: ObjectStore, branch: str | None = None) -> Manifest:
    """Return the manifest of a shallow clone, not yet signed.

    Parameters
    ----------
    source
        The version.
    store
        Store of the clone.
    branch
        Name of the branch if the clone is a branch, None for a separate table.
    """
    if is_in_memory(source.store) and not _shares_memory(store, source):
        raise UnsupportedError(
            f"{source.store.uri(source.root)} is in the memory of this process, so nothing elsewhere can refer to its "
            "files; use deep_clone, which copies them, or clone it to 'memory://...' in the same session"
        )
    manifest = _prepared(source)
    base = _base_of(source, manifest)
    known = {each.id for each in manifest.base_paths}
    bases = manifest.base_paths if base.id in known else (*manifest.base_paths, base)
    return replace(_with_bases(manifest, bases, lambda old: base.id if old is None else old), branch=branch)


def _shares_memory(store: ObjectStore, source: CloneSource) -> bool:
    return is_in_memory(store) and store.exists(source.manifest.path)


def _base_of(source: CloneSource, manifest: Manifest) -> BasePath:
    """Return a base path for the source, which its manifest may already list."""
    path = source.store.uri(source.root)
    for base in manifest.base_paths:
        if base.path == path and base.is_dataset_root:
            return base
    names = {base.name for base in manifest.base_paths}
    number = max((base.id for base in manifest.base_paths), default=-1) + 1
    return BasePath(number, path, None if source.branch in names else source.branch, is_dataset_root=True)


def _prepared(source: CloneSource) -> Manifest:
    """Return the manifest of the source with all counts, and without data specific to its commit."""
    manifest = source.manifest
    check_writable(manifest.writer_flags, manifest.path)
    if manifest.blob_dataset_version:
        raise UnsupportedError(
            f"{manifest.path}: the dataset keeps its blobs in a second table, as in some old releases; it cannot "
            "be cloned, write its rows into a new dataset instead"
        )
    if is_detached(manifest.version):
        raise UnsupportedError(f"version {manifest.version} is detached and cannot be cloned")
    if manifest.version == 0:
        raise InvalidInputError(f"{manifest.path}: version {manifest.version} cannot be cloned, versions count from 1")
    fragments = FragmentCompletion(source.store, source.root)(manifest.fragments, manifest.base_paths)
    reliable = has_reliable_coverage(manifest)
    return with_unique_fields(
        replace(
            manifest,
            fragments=fragments,
            index_section=manifest.index_section or None,
            branch=None,
            tag="",
            transaction_file="",
            inline_transaction=None,
            writer_version=None if reliable else signature_for_unreliable_coverage(__version__),
            path="",
            file_size=0,
        )
    )


def _with_bases(manifest: Manifest, bases: tuple[BasePath, ...], base_id: _Renumbering) -> Manifest:
    """Return the manifest with other base paths. `base_id` maps the old id of every file to its new one."""
    flags = Feature.BASE_PATHS if bases else Feature(0)
    if manifest.fragment_list.columns.has_deletions.any():
        flags |= Feature.DELETION_FILES
    recomputed = int(Feature.BASE_PATHS | Feature.DELETION_FILES | Feature.NO_TRANSACTION_FILE)
    return replace(
        manifest,
        fragments=_moved_fragments(manifest.fragment_list, base_id),
        index_section=_moved_indices(manifest.index_section, base_id),
        base_paths=bases,
        reader_flags=manifest.reader_flags & ~recomputed | int(flags),
        writer_flags=manifest.writer_flags & ~recomputed | int(flags),
    )


def _moved_fragments(fragments: FragmentList, base_id: _Renumbering) -> FragmentList:
    """Return the fragments with other base paths.

    They are changed as protobuf messages, which is faster because every one of them changes.
    """
    message = parse_message(table_pb2.Manifest, fragments.data, "fragments")
    for fragment in message.fragments:
        for file in fragment.files:
            _move(file, base_id)
        for overlay in fragment.overlays:
            _move(overlay.data_file, base_id)
        if fragment.HasField("deletion_file"):
            _move(fragment.deletion_file, base_id)
    return FragmentList(message.SerializeToString(), "cloned version")


def _moved_indices(section: bytes | None, base_id: _Renumbering) -> bytes | None:
    if not section:
        return None
    indices = parse_indices(section)
    for index in indices:
        _move(index, base_id)
    return table_pb2.IndexSection(indices=indices).SerializeToString()


def _move(file: table_pb2.DataFile | table_pb2.DeletionFile | table_pb2.IndexMetadata, base_id: _Renumbering) -> None:
    moved = base_id(file.base_id if file.HasField("base_id") else None)
    if moved is None:
        file.ClearField("base_id")
    else:
        file.base_id = moved


# -- publishing ------------------------------------------------------------------------------------------------------


def publish_first(store: ObjectStore, root: str, manifest: Manifest, operation: Clone) -> Manifest:
    """Write the first version of a clone.

    Raises
    ------
    AlreadyExistsError
        Another writer made the same version of a table there meanwhile.
    CommitConflictError
        Another writer made another version of a table there. This one is withdrawn.
    """
    try:
        made = publish_version(store, root, manifest, Transaction(manifest.version, operation), Naming.V2)
    except AlreadyExistsError as error:
        raise AlreadyExistsError(f"Dataset already exists: {store.uri(root)}") from error
    others = _other_versions(store, root, made.version)
    if others:
        commit_protocol(store).forget(store, root, [made.version])
        store.delete(manifest_path(root, made.version, Naming.V2))
        raise CommitConflictError(
            f"{store.uri(root)}: another writer created a table there at the same time, with version {others[0]}",
            retryable=True,
        )
    return made


def _other_versions(store: ObjectStore, root: str, version: int) -> list[int]:
    versions: Iterator[int] = (name.version for name in list_versions(store, root))
    return [each for each in versions if each != version]
