"""Branches: lines of versions beside the main one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from lance_dataset.arguments import check_order, check_texts
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.references import branching
from lance_dataset.table.references import catalog as references

__all__ = ["Branches"]

_Ordered: TypeAlias = list[tuple[str, dict[str, Any]]]


class Branches:
    """The branches of a dataset but the main one; get it from `LanceDataset.branches`.

    A branch is made with `LanceDataset.create_branch` and opened with ``checkout_version((branch, None))``. What is
    returned for a branch is a dictionary with ``parent_branch`` (None for the main one) and ``parent_version``, the
    version it began from; ``branch_identifier``, for every branch on the way from the main one the version it began
    from and a unique id; ``create_at`` (seconds since the epoch), ``manifest_size`` (bytes) and ``metadata``.

    Parameters
    ----------
    store, root
        Main root of the dataset.
    """

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store = store
        self._root = root

    def list(self) -> dict[str, dict[str, Any]]:
        """All branches by name.

        Raises
        ------
        CorruptFileError
            The file of a branch cannot be read.
        """
        return {name: _as_dict(each) for name, each in references.list_branches(self._store, self._root).items()}

    def list_ordered(self, order: str | None = None) -> _Ordered:
        """All branches with their names in the order of the versions they began from, then in the order of names.

        Parameters
        ----------
        order
            ``desc`` (the default) begins with the newest version, ``asc`` with the oldest.

        Raises
        ------
        InvalidInputError
            Another order.
        """
        sign = 1 if check_order(order) == "asc" else -1
        return sorted(self.list().items(), key=lambda item: (sign * item[1]["parent_version"], item[0]))

    def replace_metadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Give a branch other metadata, names and values being text.

        Raises
        ------
        VersionNotFoundError
            There is no such branch.
        """
        references.replace_branch_metadata(self._store, self._root, branch, check_texts("metadata", metadata))

    def delete(self, branch: str) -> None:
        """Remove a branch with its versions and the files that were written to it.

        What is left of a branch whose creation or removal was interrupted is removed too.

        Raises
        ------
        VersionNotFoundError
            There is no such branch.
        InvalidInputError
            A tag is on the branch, or another branch began from it; or no branch can have the name.
        """
        branching.delete_branch(self._store, self._root, branch)


def _as_dict(branch: references.Branch) -> dict[str, Any]:
    return {
        "parent_branch": branch.parent_branch,
        "branch_identifier": list(branch.identifier),
        "parent_version": branch.parent_version,
        "create_at": branch.created_at,
        "manifest_size": branch.manifest_size,
        "metadata": dict(branch.metadata),
    }
