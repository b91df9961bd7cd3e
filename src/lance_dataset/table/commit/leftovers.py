"""Taking back the files of a change that became no version, or became one with other files in their place.

Files of a change that did not become a version are removed, unless its fate is unknown: a commit can fail (an
interrupt, a disk error) after its manifest is in place. Its files must stay then, and also where that cannot be found
out; files that nobody refers to do no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lance_dataset.errors import CommitConflictError, LanceError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.indices.coverage import parse_indices
from lance_dataset.table.indices.metadata import uuid_to_proto
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import DATA_FOLDER, DataFolder, FileLocator
from lance_dataset.table.versions import list_versions, read_named

__all__ = ["ChangeFiles", "data_files_of", "fragments_in", "remove_superseded"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChangeFiles:
    """Files that were written for a change; nothing refers to them until it is a version.

    Attributes
    ----------
    store, root
        The table.
    data
        Data files.
    masked
        Fragments whose deletion files were written; may grow while the change is committed.
    folders
        Where the data files are; nothing for the table itself.
    indices
        Ids of indices whose files were written; may grow while the change is made.
    """

    store: ObjectStore
    root: str
    data: Sequence[DataFile] = ()
    masked: Sequence[Fragment] = ()
    folders: Sequence[DataFolder] = ()
    indices: Sequence[str] = ()

    def remove(self) -> None:
        """Remove the files of a change that surely is no version; failures only leave files behind."""
        self._remove_data()
        remove_superseded(self.store, self.root, self.masked, kept=())
        self._remove_indices()

    def remove_unless_committed(self, since: int) -> None:
        """Remove the files of a change whose commit failed, but those that a version has or may have.

        Parameters
        ----------
        since
            Version the change was computed against (0: none); only later ones can have the files.
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
        """Context of a commit: if that fails, the files are removed, unless it may be a version all the same.

        Parameters
        ----------
        since
            As of `remove_unless_committed`.
        """
        try:
            yield
        except CommitConflictError as error:
            if error.retryable:  # so it is no version, and nobody knows of the files
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
            _log.debug("files of a failed commit stay, the versions of %s cannot be read: %s", place, error)
            return None

    def _remove_data(self) -> None:
        folders = self.folders or [DataFolder(self.store, f"{self.root}/{DATA_FOLDER}")]
        places = {folder.base_id: folder for folder in folders}
        for file in self.data:
            place = places.get(file.base_id)
            if place is not None:
                _remove(place.store, f"{place.path}/{file.path}")

    def _remove_indices(self) -> None:
        locator = FileLocator(self.store, self.root)
        for index in self.indices:
            _, folder = locator.index_folder(index, None)
            try:
                self.store.delete_tree(folder)
            except (LanceError, OSError) as error:
                _log.debug("%s not removed: %s", self.store.uri(folder), error)


def data_files_of(fragments: Iterable[Fragment]) -> tuple[DataFile, ...]:
    """All data files of some fragments."""
    return tuple(file for fragment in fragments for file in fragment.files)


def fragments_in(manifest: Manifest, written: Iterable[Fragment]) -> list[Fragment]:
    """The fragments of a version with the ids of those that were written."""
    found = (manifest.fragment(fragment_id) for fragment_id in {fragment.id for fragment in written})
    return [fragment for fragment in found if fragment is not None]


def remove_superseded(store: ObjectStore, root: str, written: Iterable[Fragment], kept: Iterable[Fragment]) -> None:
    """Remove the deletion files of some fragments that others do not refer to; failures only leave files behind.

    Parameters
    ----------
    store, root
        The table.
    written
        Fragments whose deletion files the caller wrote, so that nobody else can come to refer to them.
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


def _any_has(versions: Iterable[Manifest], data: Sequence[DataFile]) -> bool:
    ours = {file.path for file in data}
    return any(file.path in ours for made in versions for each in made.fragments for file in each.files)


def _any_lists(versions: Iterable[Manifest], indices: Sequence[str]) -> bool:
    ours = {uuid_to_proto(index).uuid for index in indices}
    return any(index.uuid.uuid in ours for made in versions for index in parse_indices(made.index_section))


def _key(fragment: Fragment) -> tuple[object, ...]:
    """What the name of a deletion file is made of; counts are left out, they may be corrected later."""
    file = fragment.deletion_file
    return (fragment.id,) if file is None else (fragment.id, file.file_type, file.read_version, file.id)
