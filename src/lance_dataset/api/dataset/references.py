"""Tags, branches and clones of a dataset, and checkout of versions by reference."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from lance_dataset.api.branches import Branches
from lance_dataset.api.locations import open_dataset
from lance_dataset.api.scanner.progress import ProgressOption, reported_progress
from lance_dataset.api.tags import Tags
from lance_dataset.errors import InvalidInputError
from lance_dataset.read.location import TableLocation
from lance_dataset.read.opening import check_out, open_snapshot
from lance_dataset.read.shown import Shown
from lance_dataset.read.snapshot import Snapshot

if TYPE_CHECKING:
    from lance_dataset.api.version_history import VersionHistory
    from lance_dataset.table.references.catalog import Reference

__all__ = ["Referenced"]

_Self = TypeVar("_Self", bound="Referenced")
#: Clones the version that a reference of a snapshot refers to, to another location.
_Clone: TypeAlias = "Callable[[Snapshot, TableLocation, Reference | None], Snapshot]"


class Referenced(Shown):
    """Tags, branches and clones of a dataset, and checkout of versions by reference."""

    @property
    def tags(self) -> Tags:
        """Tags of the dataset: list, create, move and delete them."""
        from lance_dataset.table.references.catalog import place_of

        snapshot = self.snapshot
        return Tags(snapshot.store, self._main_root, place_of(snapshot.manifest, snapshot.root))

    def history(self, limit: int | None = None) -> VersionHistory:
        """Return the versions of this branch with what made them: operation, message, rows, tags.

        Parameters
        ----------
        limit
            Number of newest versions; None for all. Each is read from storage.

        Returns
        -------
        VersionHistory
            Sequence of `VersionEntry`, oldest first. It prints as a table, and ``plot()`` draws it.
        """
        from lance_dataset.api.version_history import read_history

        return read_history(self.snapshot, self.tags.list(), limit)

    @property
    def branches(self) -> Branches:
        """Branches of the dataset: list and delete them. Create one with `create_branch`."""
        return Branches(self.snapshot.store, self._main_root)

    @property
    def _main_root(self) -> str:
        from lance_dataset.table.references.names import main_root

        return main_root(self.snapshot.manifest, self.snapshot.root)

    def checkout_version(self: _Self, version: int | str | tuple[str | None, int | None]) -> _Self:
        """Return a new handle on a version.

        Parameters
        ----------
        version
            Version number on the open branch, name of a tag, or a pair of branch (None for the main branch) and version
            (None for the newest).

        Raises
        ------
        VersionNotFoundError
            The version, tag or branch does not exist.
        InvalidInputError
            `version` is not one of these.
        """
        if version is None:
            raise InvalidInputError("Version must be an int, a str or a (str, int) tuple, not None")
        return self.showing(check_out(self.snapshot, version))

    def create_branch(
        self: _Self,
        branch: str,
        reference: int | str | tuple[str | None, int | None] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> _Self:
        """Create a branch that starts from a version of this dataset. No data is copied.

        If several writers create the same branch, exactly one succeeds. The first version of the branch has the number
        of the version that it starts from.

        Parameters
        ----------
        branch
            Name made of segments of letters, digits, ``.``, ``-`` and ``_``, separated by ``/``, as in ``dev/alice``.
        reference
            As for `checkout_version`. The default is the open version.
        storage_options
            Options of the returned handle. The default is those of this handle.

        Returns
        -------
        LanceDataset
            Handle on the branch. Writes through it go to the branch.

        Raises
        ------
        ReferenceExistsError
            The branch already exists.
        VersionNotFoundError
            The version, tag or branch of `reference` does not exist.
        InvalidInputError
            The name is not valid for a branch.
        UnsupportedError
            The version uses a feature that a branch cannot maintain.
        """
        from lance_dataset.changes.cloning import make_branch

        made = make_branch(self.snapshot, branch, reference)
        if storage_options is not None:
            location = TableLocation.resolve(
                made.uri,
                storage_options,
                made.session,
                trusted_bases=made.store.trusted_bases,
                max_result_bytes=made.location.result_limit.max_bytes,
            )
            made = open_snapshot(location, made.version)
        return self.showing(made)

    def shallow_clone(
        self: _Self,
        target_path: str | os.PathLike[str],
        reference: int | str | tuple[str | None, int | None] | None,
        storage_options: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> _Self:
        """Create another dataset that starts from a version of this one and uses its files.

        Writes to the clone go to its own folder. This dataset does not know of the clone: the clone breaks if files of
        the version are cleaned up, or if this dataset is moved.

        Parameters
        ----------
        target_path
            Path or URI of the clone.
        reference
            As for `checkout_version`. None for the open version.
        storage_options
            Options of the store of the clone. The default is those of this dataset.
        **kwargs
            Other options of `lance_dataset.dataset` for the returned handle.

        Returns
        -------
        LanceDataset
            Handle on the clone. Its only version has the number of the version that it starts from.

        Raises
        ------
        AlreadyExistsError
            A dataset already exists at `target_path`.
        VersionNotFoundError
            The version, tag or branch of `reference` does not exist.
        UnsupportedError
            The version uses a feature that a clone cannot maintain, or is in memory and the clone is not.
        """
        from lance_dataset.changes.cloning import shallow_clone

        return self._cloned(shallow_clone, target_path, reference, storage_options, kwargs)

    def deep_clone(
        self: _Self,
        target_path: str | os.PathLike[str],
        reference: int | str | tuple[str | None, int | None] | None,
        storage_options: Mapping[str, str] | None = None,
        *,
        progress: ProgressOption = None,
        **kwargs: Any,
    ) -> _Self:
        """Create another dataset with copies of all files of a version of this one, indices included.

        The clone becomes visible only after all files are copied and durable. Other versions, tags and branches are not
        copied. Other parameters, result and errors are those of `shallow_clone`, plus:

        Parameters
        ----------
        progress
            True for a bar (tqdm), or a function of the numbers of files copied and in all.

        Raises
        ------
        MissingFileError, CorruptFileError
            A file of the version is missing, or has an unexpected size.
        """
        from lance_dataset.changes.cloning import deep_clone

        with reported_progress(progress, lambda: None, "clone", "file") as told:
            return self._cloned(partial(deep_clone, progress=told), target_path, reference, storage_options, kwargs)

    def _cloned(
        self: _Self,
        clone: _Clone,
        target_path: str | os.PathLike[str],
        reference: Reference | None,
        storage_options: Mapping[str, str] | None,
        opening: Mapping[str, Any],
    ) -> _Self:
        place = self.snapshot.location
        options = place.storage_options if storage_options is None else storage_options
        session = opening.get("session") or place.session
        target = TableLocation.resolve(target_path, options, session)
        made = clone(self.snapshot, target, reference)
        if not opening and place.store.trusted_bases is None and place.result_limit.max_bytes is None:
            return self.showing(made)
        kept = {"trusted_bases": _trust_of_clones(place), "max_result_bytes": place.result_limit.max_bytes}
        opening = {**kept, **opening}
        return self.showing(
            open_dataset(target.uri, made.version, **{**opening, "storage_options": options, "session": session})
        )


def _trust_of_clones(source: TableLocation) -> tuple[str, ...] | None:
    """Return the trusted base paths of a handle on a clone: those of the source, and the source."""
    trusted = source.store.trusted_bases
    return None if trusted is None else (*trusted, source.store.uri(source.store.table_root or source.root))
