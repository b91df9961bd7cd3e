"""Tags of a dataset: names of versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from lance_dataset.arguments import check_order, check_texts
from lance_dataset.io.base import ObjectStore
from lance_dataset.records.results import Tag

if TYPE_CHECKING:
    from lance_dataset.table.references import catalog as references
    from lance_dataset.table.references.catalog import Place, Reference

__all__ = ["Tags"]

_Ordered: TypeAlias = list[tuple[str, Tag]]


class Tags:
    """Tags of a dataset, shared by all its branches. Get it from `LanceDataset.tags`.

    A tagged version can be opened by its tag, and cleanups do not remove it. The methods describe a tag by a dictionary
    with these keys:

    - ``branch``: None for the main branch
    - ``version``
    - ``created_at`` and ``updated_at``: datetimes in UTC, None if an old release did not record them
    - ``manifest_size``: bytes
    - ``metadata``: a mapping of text to text

    Parameters
    ----------
    store, root
        Store and path of the main root of the dataset.
    here
        The open version.
    """

    def __init__(self, store: ObjectStore, root: str, here: Place) -> None:
        self._store = store
        self._root = root
        self._here = here

    def list(self) -> dict[str, Tag]:
        """Return all tags by name.

        Raises
        ------
        CorruptFileError
            The file of a tag cannot be read.
        """
        from lance_dataset.table.references import catalog as references

        return {name: _as_dict(tag) for name, tag in references.list_tags(self._store, self._root).items()}

    def list_ordered(self, order: Literal["asc", "desc"] | None = None) -> _Ordered:
        """Return all tags with their names, ordered by version, then by name.

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
        return sorted(self.list().items(), key=lambda item: (sign * item[1]["version"], item[0]))

    def get_version(self, tag: str) -> int:
        """Return the version number of a tag. `list` also returns its branch.

        Raises
        ------
        VersionNotFoundError
            The tag does not exist.
        InvalidInputError
            The name is not valid for a tag.
        """
        from lance_dataset.table.references import catalog as references

        return references.find_tag(self._store, self._root, tag).version

    @staticmethod
    def check_name(tag: str) -> None:
        """Raise InvalidInputError unless the name is valid for a new tag."""
        from lance_dataset.table.references.names import check_new_tag_name

        check_new_tag_name(tag)

    def create(self, tag: str, reference: Reference | None = None) -> None:
        """Create a tag. If several writers create the same tag, exactly one succeeds.

        Parameters
        ----------
        tag
            Name made of ASCII letters, digits, ``.``, ``-`` and ``_``. It must not start or end with a dot, contain two
            dots in a row, or end with ``.lock``.
        reference
            Version number on the open branch, another tag, or a pair of branch (None for the main branch) and version
            (None for the newest). The default is the open version.

        Raises
        ------
        ReferenceExistsError
            The tag already exists.
        VersionNotFoundError
            The version, tag or branch of `reference` does not exist.
        InvalidInputError
            The name is not valid for a tag.
        """
        from lance_dataset.table.references import catalog as references

        references.create_tag(self._store, self._root, tag, self._find(reference))

    def update(self, tag: str, reference: Reference | None = None) -> None:
        """Move a tag to another version. Parameters are those of `create`.

        Raises
        ------
        VersionNotFoundError
            The tag, or the version, tag or branch of `reference`, does not exist.
        """
        from lance_dataset.table.references import catalog as references

        references.update_tag(self._store, self._root, tag, self._find(reference))

    def replace_metadata(self, tag: str, metadata: Mapping[str, str]) -> None:
        """Replace the metadata of a tag. Keys and values are text.

        Raises
        ------
        VersionNotFoundError
            The tag does not exist.
        """
        from lance_dataset.table.references import catalog as references

        references.replace_tag_metadata(self._store, self._root, tag, check_texts("metadata", metadata))

    def delete(self, tag: str) -> None:
        """Delete a tag. Its version stays.

        Raises
        ------
        VersionNotFoundError
            The tag does not exist.
        """
        from lance_dataset.table.references import catalog as references

        references.delete_tag(self._store, self._root, tag)

    def _find(self, reference: Reference | None) -> Place:
        from lance_dataset.table.references import catalog as references

        return references.find_place(self._store, self._root, reference, self._here)


def _as_dict(tag: references.Tag) -> Tag:
    return {
        "branch": tag.branch,
        "version": tag.version,
        "created_at": tag.created_at,
        "updated_at": tag.updated_at,
        "manifest_size": tag.manifest_size,
        "metadata": dict(tag.metadata),
    }
