"""Removal of the files of a change that did not become a version, or whose files were superseded in the version.

The files of a change that did not become a version are removed unless its outcome is unknown. A commit can fail after
its manifest is in place, for example by an interrupt or a disk error. Its files must then stay. They also stay if the
outcome cannot be determined, because unreferenced files do no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from lance_dataset.errors import CommitConflictError, LanceError
from lance_dataset.io.base import ObjectStore, safe_join
from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.index_metadata import uuid_to_proto
from lance_dataset.table.indices.coverage import parse_indices
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import DATA_FOLDER, DataFolder, FileLocator, blob_folder
from lance_dataset.table.versions import list_versions, read_named

__all__ = ["ChangeFiles", "data_files_of", "fragments_in", "remove_superseded"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChangeFiles:
    """Files that were written for a change. Nothing refers to them until the change is a version.

    Attributes
    ----------
    store, root
        The table.
    data
        Data files.
    masked
        Fragments whose deletion files were written. May grow while the change is committed.
    folders
        Folders of the data files. Empty for the table's own folder.
    indices
        Ids of indices whose files were written. May grow while the change is made.
    """

    store: ObjectStore
    root: str
    data: Sequence[DataFile] = ()
    masked: Sequence[Fragment] = ()
    folders: Sequence[DataFolder] = ()
    indices: Sequence[str] = ()

    def remove(self) -> None:
        """Remove the files of a change that certainly is not a version. Failures only leave files behind."""
        self._remove_data()
        remove_superseded(self.store, self.root, self.masked, kept=())
        self._remove_indices()

    def remove_unless_committed(self, since: int) -> None:
        """Remove the files of a change whose commit failed, except those that a version uses or may use.

        Parameters
        ----------
        since
            Version that the change was computed against (0: none). Only later versions can contain the files.
        """
        if not self.data and not self.masked and not self.indices:
            return
        newer = self._versions_after(since)
        if newer is None:
            return
        if not _any_has(newer, self.data):
            self._remove_data()
        if not _any_lists(newer, self.indices):
            self._remove_indices()
        kept = [fragment for manifest in newer for fragment in fragments_in(manifest, self.masked)]
        remove_superseded(self.store, self.root, self.masked, kept)

    @contextmanager
    def taken_back(self, since: int) -> Iterator[None]:
        """Return a context for a commit that removes the files on failure, unless the change may be a version anyway.

        Parameters
        ----------
        since
            See `remove_unless_committed`.
        """
        try:
            yield
        except CommitConflictError as error:
            if error.retryable:  # so it is not a version, and nothing refers to the files
                self.remove()
            else:
                self.remove_unless_committed(since)
            raise
        except BaseException:
            self.remove_unless_committed(since)
            raise

    def _versions_after(self, since: int) -> list[Manifest] | None:
        try:
            names = [name for name in list_versions(self.store, self.root) if name.version > since]
            return [read_named(self.store, self.root, name) for name in names]
        except (LanceError, OSError) as error:
            place = self.store.uri(self.root)
            _log.debug("files of a failed commit are kept, because the versions of %s cannot be read: %s", place, error)
            return None

    def _remove_data(self) -> None:
        folders = self.folders or [DataFolder(self.store, f"{self.root}/{DATA_FOLDER}")]
        places = {folder.base_id: folder for folder in folders}
        for file in self.data:
            place = places.get(file.base_id)
            if place is not None:
                path = safe_join(place.path, file.path, what="data file")
                _remove(place.store, path)
                _remove_tree(place.store, blob_folder(path))

    def _remove_indices(self) -> None:
        locator = FileLocator(self.store, self.root)
        for index in self.indices:
            _, folder = locator.index_folder(index, None)
            _remove_tree(self.store, folder)


def data_files_of(fragments: Iterable[Fragment]) -> tuple[DataFile, ...]:
    """Return all data files of some fragments."""
    return tuple(file for fragment in fragments for file in fragment.files)


def fragments_in(manifest: Manifest, written: Iterable[Fragment]) -> list[Fragment]:
    """Return the fragments of a version that have the ids of the written ones."""
    found = (manifest.fragment(fragment_id) for fragment_id in {fragment.id for fragment in written})
    return [fragment for fragment in found if fragment is not None]


def remove_superseded(store: ObjectStore, root: str, written: Iterable[Fragment], kept: Iterable[Fragment]) -> None:
    """Remove deletion files of fragments that nothing else refers to. Failures only leave files behind.

    Parameters
    ----------
    store, root
        The table.
    written
        Fragments whose deletion files the caller wrote, so that no other writer can start to refer to them.
    kept
        Fragments of the versions that may refer to the files.
    """
    referenced = {_key(fragment) for fragment in kept}
    locator = FileLocator(store, root)
    for fragment in written:
        if fragment.deletion_file is None or _key(fragment) in referenced:
            continue
        _, path = locator.deletion_file(fragment.id, fragment.deletion_file)
        _remove(store, path)


def _remove(store: ObjectStore, path: str) -> None:
    try:
        store.delete(path)
    except (LanceError, OSError) as error:
        _log.debug("%s not removed: %s", store.uri(path), error)


def _remove_tree(store: ObjectStore, folder: str) -> None:
    try:
        store.delete_tree(folder)
    except (LanceError, OSError) as error:
        _log.debug("%s not removed: %s", store.uri(folder), error)


def _any_has(versions: Iterable[Manifest], data: Sequence[DataFile]) -> bool:
    ours = {file.path for file in data}
    return any(file.path in ours for made in versions for each in made.fragments for file in each.files)


def _any_lists(versions: Iterable[Manifest], indices: Sequence[str]) -> bool:
    ours = {uuid_to_proto(index).uuid for index in indices}
    return any(index.uuid.uuid in ours for made in versions for index in parse_indices(made.index_section))


def _key(fragment: Fragment) -> tuple[object, ...]:
    """Return the parts of a deletion file's name. Counts are left out, because they may be corrected later."""
    file = fragment.deletion_file
    return (fragment.id,) if file is None else (fragment.id, file.file_type, file.read_version, file.id)
