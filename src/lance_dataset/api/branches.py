"""Branches of a dataset: lines of versions besides the main one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from lance_dataset.arguments import check_order, check_texts
from lance_dataset.io.base import ObjectStore
from lance_dataset.records.results import Branch

if TYPE_CHECKING:
    from lance_dataset.table.references import catalog as references

__all__ = ["Branches"]

_Ordered: TypeAlias = list[tuple[str, Branch]]


class Branches:
    """Branches of a dataset other than the main branch. Get it from `LanceDataset.branches`.

    Create a branch with `LanceDataset.create_branch` and open it with ``checkout_version((branch, None))``. The methods
    describe a branch by a dictionary with these keys:

    - ``parent_branch`` (None for the main branch) and ``parent_version``: the version that the branch started from
    - ``branch_identifier``: for every branch on the path from the main branch, its start version and a unique id
    - ``create_at``: seconds since the epoch
    - ``manifest_size``: bytes
    - ``metadata``: a mapping of text to text

    Parameters
    ----------
    store, root
        Store and path of the main root of the dataset.
    """

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store = store
        self._root = root

    def list(self) -> dict[str, Branch]:
        """Return all branches by name.

        Raises
        ------
        CorruptFileError
            The file of a branch cannot be read.
        """
        from lance_dataset.table.references import catalog as references

        return {name: _as_dict(each) for name, each in references.list_branches(self._store, self._root).items()}

    def list_ordered(self, order: Literal["asc", "desc"] | None = None) -> _Ordered:
        """Return all branches with their names, ordered by the version they started from, then by name.

        Parameters
        ----------
        order
            ``desc`` (the default) for the newest version first, ``asc`` for the oldest first.

        Raises
        ------
        InvalidInputError
            `order` is not ``asc`` or ``desc``.
        """
        sign = 1 if check_order(order) == "asc" else -1
        return sorted(self.list().items(), key=lambda item: (sign * item[1]["parent_version"], item[0]))

    def replace_metadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Replace the metadata of a branch. Keys and values are text.

        Raises
        ------
        VersionNotFoundError
            The branch does not exist.
        """
        from lance_dataset.table.references import catalog as references

        references.replace_branch_metadata(self._store, self._root, branch, check_texts("metadata", metadata))

    @staticmethod
    def check_name(branch: str) -> None:
        """Raise InvalidInputError unless the name is valid for a new branch."""
        from lance_dataset.table.references.names import check_new_branch_name

        check_new_branch_name(branch)

    def delete(self, branch: str) -> None:
        """Delete a branch with its versions and the files that were written to it.

        This also removes the remains of a branch whose creation or deletion was interrupted.

        Raises
        ------
        VersionNotFoundError
            The branch does not exist.
        InvalidInputError
            A tag refers to the branch, another branch started from it, or the name is not valid for a branch.
        """
        from lance_dataset.table.references import branching

        branching.delete_branch(self._store, self._root, branch)


def _as_dict(branch: references.Branch) -> Branch:
    return {
        "parent_branch": branch.parent_branch,
        "branch_identifier": list(branch.identifier),
        "parent_version": branch.parent_version,
        "create_at": branch.created_at,
        "manifest_size": branch.manifest_size,
        "metadata": dict(branch.metadata),
    }
