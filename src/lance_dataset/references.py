"""Tags, branches and clones of the dataset that is open, and the versions that references mean."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lance_dataset.branches import Branches
from lance_dataset.errors import InvalidInputError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.resolve import resolve
from lance_dataset.session import Session
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.references import clone
from lance_dataset.table.references.branching import create_branch
from lance_dataset.table.references.catalog import Place, Reference, find_place, place_of
from lance_dataset.table.references.names import TREE_FOLDER, branch_of, branch_root, main_root
from lance_dataset.table.versions import latest_version, read_newest, read_version
from lance_dataset.tags import Tags

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["Referenced", "open_reference"]


def open_reference(store: ObjectStore, root: str, uri: str, reference: Reference) -> tuple[str, str, Manifest]:
    """The version that a tag or a pair of branch and version means.

    Parameters
    ----------
    store, root
        The table, which may be one of a branch.
    uri
        How the user spells its location.
    reference
        See `lance_dataset.table.references.catalog.Reference`.

    Returns
    -------
    uri, root
        Of the table that has the version.
    manifest
        The version.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        There is no table, or no such tag, branch or version.
    """
    main, here = root, Place(None, 0)
    if f"/{TREE_FOLDER}/" in root:  # a branch perhaps; it says so itself
        latest = read_newest(store, root)
        main, here = main_root(latest, root), place_of(latest, root)
    try:
        place = find_place(store, main, reference, here)
    except (InvalidInputError, FileNotFoundError):
        latest_version(store, root)  # without a table the reference is not what is wrong
        raise
    there = branch_root(main, place.branch)
    found = read_version(store, there, place.version)
    return _uri_of_branch(store, main, uri, here.branch, place.branch), there, found


def _uri_of_branch(store: ObjectStore, main: str, uri: str, current: str | None, branch: str | None) -> str:
    """Location of a branch, spelled like that of another one of the dataset."""
    if branch == current:
        return uri
    location, mark, query = uri.partition("?") if "://" in uri else (uri, "", "")
    location = location.rstrip("/") or location
    ending = f"/{TREE_FOLDER}/{current}"
    if current is not None:
        location = location[: -len(ending)] if location.endswith(ending) else store.uri(main)
    return f"{branch_root(location, branch)}{mark}{query}"


class Referenced:
    """A dataset whose versions can have names and lines of versions of their own."""

    _manifest: Manifest
    _store: ObjectStore
    _root: str
    _uri: str
    _storage_options: dict[str, str]
    _session: Session

    if TYPE_CHECKING:

        def _at(self, manifest: Manifest, uri: str | None = None, root: str | None = None) -> LanceDataset: ...

    @property
    def tags(self) -> Tags:
        """Names of versions: list, create, move and delete them."""
        return Tags(self._store, self._main_root, place_of(self._manifest, self._root))

    @property
    def branches(self) -> Branches:
        """Branches of the dataset: list and delete them; `create_branch` makes one."""
        return Branches(self._store, self._main_root)

    @property
    def _main_root(self) -> str:
        return main_root(self._manifest, self._root)

    def checkout_version(self, version: int | str | tuple[str | None, int | None]) -> LanceDataset:
        """A new handle on a version.

        Parameters
        ----------
        version
            Number of a version of the branch that is open, name of a tag, or a pair of branch (None: the main one) and
            version (None: the newest).

        Raises
        ------
        VersionNotFoundError
            There is no such version, tag or branch.
        InvalidInputError
            Something else was given.
        """
        if version is None:
            raise InvalidInputError("Version must be an int, a str or a (str, int) tuple, not None")
        return self._checked_out(self._find(version))

    def create_branch(
        self,
        branch: str,
        reference: int | str | tuple[str | None, int | None] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> LanceDataset:
        """Make a branch that begins with a version of this dataset. No data is copied.

        Of several writers that make the same branch exactly one succeeds. The first version of the branch has the
        number of the version it begins with.

        Parameters
        ----------
        branch
            Name: segments of letters, digits, ``.``, ``-`` and ``_`` with a ``/`` between them, as in ``dev/alice``.
        reference
            As for `checkout_version`; by default the version that is open.
        storage_options
            Options for the handle that is returned, by default those of this one.

        Returns
        -------
        LanceDataset
            A handle on the branch; what is written through it goes to the branch.

        Raises
        ------
        ReferenceExistsError
            There is such a branch.
        VersionNotFoundError
            There is no such version, tag or branch.
        InvalidInputError
            No branch can have the name.
        UnsupportedError
            The version needs a feature that a branch cannot keep up.
        """
        source = self._clone_source(reference)
        made = create_branch(self._main_root, branch, source)
        opened = self._checked_out(Place(branch, made.version), made)
        if storage_options is not None:
            return type(opened)(opened.uri, made.version, storage_options=storage_options, session=self._session)
        return opened

    def shallow_clone(
        self,
        target_path: str | Path,
        reference: int | str | tuple[str | None, int | None] | None,
        storage_options: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> LanceDataset:
        """Make another dataset that begins with a version of this one and uses its files.

        What is written to the clone goes to its own folder. This dataset does not get to know of it: the clone breaks
        when files of the version are cleaned up, or when this dataset is moved.

        Parameters
        ----------
        target_path
            Path or URI of the clone.
        reference
            As for `checkout_version`; None is the version that is open.
        storage_options
            Options of the store of the clone, by default those of this dataset.
        **kwargs
            Other options of `lance_dataset.dataset` for the handle that is returned.

        Returns
        -------
        LanceDataset
            The clone. Its only version has the number of the version it begins with.

        Raises
        ------
        AlreadyExistsError
            There is a dataset already.
        VersionNotFoundError
            There is no such version, tag or branch.
        UnsupportedError
            The version needs a feature that a clone cannot keep up, or is in memory and the clone is not.
        """
        return self._cloned(clone.shallow_clone, target_path, reference, storage_options, kwargs)

    def deep_clone(
        self,
        target_path: str | Path,
        reference: int | str | tuple[str | None, int | None] | None,
        storage_options: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> LanceDataset:
        """Make another dataset with copies of all files of a version of this one, indices included.

        The clone is there when all files are copied and durable, or not at all. Other versions, tags and branches are
        not copied. Parameters, result and errors are those of `shallow_clone`; besides:

        Raises
        ------
        MissingFileError, CorruptFileError
            A file of the version is gone, or has another size than it should.
        """
        return self._cloned(clone.deep_clone, target_path, reference, storage_options, kwargs)

    def _cloned(
        self,
        make: clone.Maker,
        target_path: str | Path,
        reference: Reference | None,
        storage_options: Mapping[str, str] | None,
        opening: Mapping[str, Any],
    ) -> LanceDataset:
        from lance_dataset.opening import dataset

        uri = os.fspath(target_path)
        options = self._storage_options if storage_options is None else dict(storage_options)
        session = opening.get("session") or self._session
        store, root = resolve(uri, options, session)
        made = make(self._clone_source(reference), store, root)
        return dataset(uri, made.version, **{**opening, "storage_options": options, "session": session})

    def _find(self, reference: Reference | None) -> Place:
        return find_place(self._store, self._main_root, reference, place_of(self._manifest, self._root))

    def _version_at(self, place: Place) -> tuple[str, Manifest]:
        """Root and manifest of a version."""
        if place == place_of(self._manifest, self._root):
            return self._root, self._manifest
        root = branch_root(self._main_root, place.branch)
        return root, read_version(self._store, root, place.version)

    def _checked_out(self, place: Place, manifest: Manifest | None = None) -> LanceDataset:
        """A handle on a version."""
        root = branch_root(self._main_root, place.branch)
        if manifest is None:
            manifest = read_version(self._store, root, place.version)
        current = branch_of(self._manifest, self._root)
        uri = _uri_of_branch(self._store, self._main_root, self._uri, current, place.branch)
        return self._at(manifest, uri, root)

    def _clone_source(self, reference: Reference | None) -> clone.CloneSource:
        place = self._find(reference)
        root, manifest = self._version_at(place)
        bases = manifest.base_paths
        locator = FileLocator(self._store, root, bases, self._storage_options, self._session)
        return clone.CloneSource(self._store, root, manifest, place.branch, locator)
