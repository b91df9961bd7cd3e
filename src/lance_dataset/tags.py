"""Tags: names for versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from lance_dataset.arguments import check_order, check_texts
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.references import catalog as references
from lance_dataset.table.references.catalog import Place, Reference

__all__ = ["Tags"]

_Ordered: TypeAlias = list[tuple[str, dict[str, Any]]]


class Tags:
    """The tags of a dataset, shared by all its branches; get it from `LanceDataset.tags`.

    A version with a tag can be opened by it, and is not removed by a cleanup. What is returned for a tag is a
    dictionary with ``branch`` (None for the main one), ``version``, ``created_at`` and ``updated_at`` (datetimes in
    UTC, None where an old release did not note them), ``manifest_size`` (bytes) and ``metadata``.

    Parameters
    ----------
    store, root
        Main root of the dataset.
    here
        The version that is open.
    """

    def __init__(self, store: ObjectStore, root: str, here: Place) -> None:
        self._store = store
        self._root = root
        self._here = here

    def list(self) -> dict[str, dict[str, Any]]:
        """All tags by name.

        Raises
        ------
        CorruptFileError
            The file of a tag cannot be read.
        """
        return {name: _as_dict(tag) for name, tag in references.list_tags(self._store, self._root).items()}

    def list_ordered(self, order: str | None = None) -> _Ordered:
        """All tags with their names in the order of their versions, those of the same version in the order of names.

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
        return sorted(self.list().items(), key=lambda item: (sign * item[1]["version"], item[0]))

    def get_version(self, tag: str) -> int:
        """The version of a tag; which branch it is of, `list` tells.

        Raises
        ------
        VersionNotFoundError
            There is no such tag.
        InvalidInputError
            No tag can have the name.
        """
        return references.find_tag(self._store, self._root, tag).version

    def create(self, tag: str, reference: Reference | None = None) -> None:
        """Make a tag. Of several writers that make the same tag exactly one succeeds.

        Parameters
        ----------
        tag
            Name: ASCII letters, digits, ``.``, ``-`` and ``_``; no dot at the ends, no two in a row, no ``.lock`` at
            the end.
        reference
            Version of the branch that is open, another tag, or a pair of branch (None: the main one) and version (None:
            the newest). By default the version that is open.

        Raises
        ------
        ReferenceExistsError
            There is such a tag.
        VersionNotFoundError
            There is no such version, tag or branch.
        InvalidInputError
            No tag can have the name.
        """
        references.create_tag(self._store, self._root, tag, self._find(reference))

    def update(self, tag: str, reference: Reference | None = None) -> None:
        """Move a tag to another version. Parameters as for `create`.

        Raises
        ------
        VersionNotFoundError
            There is no such tag, version or branch.
        """
        references.update_tag(self._store, self._root, tag, self._find(reference))

    def replace_metadata(self, tag: str, metadata: Mapping[str, str]) -> None:
        """Give a tag other metadata, names and values being text.

        Raises
        ------
        VersionNotFoundError
            There is no such tag.
        """
        references.replace_tag_metadata(self._store, self._root, tag, check_texts("metadata", metadata))

    def delete(self, tag: str) -> None:
        """Remove a tag; its version stays.

        Raises
        ------
        VersionNotFoundError
            There is no such tag.
        """
        references.delete_tag(self._store, self._root, tag)

    def _find(self, reference: Reference | None) -> Place:
        return references.find_place(self._store, self._root, reference, self._here)


def _as_dict(tag: references.Tag) -> dict[str, Any]:
    return {
        "branch": tag.branch,
        "version": tag.version,
        "created_at": tag.created_at,
        "updated_at": tag.updated_at,
        "manifest_size": tag.manifest_size,
        "metadata": dict(tag.metadata),
    }
