"""Tags and branches of a table. Both are kept in the root of the main branch, also those that are about branches."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptFileError,
    DatasetNotFoundError,
    InvalidInputError,
    MissingFileError,
    ReferenceExistsError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.commit.protocol import put_new
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.references.files import (
    MAX_FILE_SIZE,
    Branch,
    Tag,
    decode_branch,
    decode_tag,
    encode_branch,
    encode_tag,
)
from lance_dataset.table.references.names import (
    BRANCHES_FOLDER,
    MAIN_BRANCH,
    TAGS_FOLDER,
    branch_of,
    branch_root,
    check_branch_name,
    check_new_tag_name,
    check_tag_name,
    main_root,
    reference_file_name,
    reference_name,
)
from lance_dataset.table.versions import latest_version, locate_version

__all__ = [
    "Branch",
    "Place",
    "Reference",
    "Tag",
    "add_branch",
    "branch_of",
    "branch_root",
    "check_kept",
    "create_tag",
    "delete_tag",
    "find_branch",
    "find_place",
    "find_tag",
    "has_branch_file",
    "list_branches",
    "list_tags",
    "main_root",
    "manifest_size",
    "place_of",
    "remove_branch_file",
    "replace_branch_metadata",
    "replace_tag_metadata",
    "update_tag",
]

#: A version number (of the branch at hand), the name of a tag, or a branch (None: the main one) and a version of it
#: (None: the newest).
Reference: TypeAlias = "int | str | tuple[str | None, int | None]"
_Value = TypeVar("_Value", Tag, Branch)


@dataclass(frozen=True)
class Place:
    """A version of a branch.

    Attributes
    ----------
    branch
        The branch, None for the main one.
    version
        The version.
    """

    branch: str | None
    version: int

    def __str__(self) -> str:
        return f"{self.branch or MAIN_BRANCH}:{self.version}"


def place_of(manifest: Manifest, root: str) -> Place:
    """The place of a version that is open."""
    return Place(branch_of(manifest, root), manifest.version)


# -- reading ---------------------------------------------------------------------------------------------------------


def list_tags(store: ObjectStore, root: str) -> dict[str, Tag]:
    """All tags of a table by name, in the order of names.

    Parameters
    ----------
    store, root
        Main root of the table, see `main_root`.

    Raises
    ------
    CorruptFileError
        One of the files is no tag. None is left out: versions with a tag must not be removed.
    """
    return dict(_listed(store, root, TAGS_FOLDER, check_tag_name, decode_tag))


def list_branches(store: ObjectStore, root: str) -> dict[str, Branch]:
    """All branches of a table but the main one, by name, in the order of names; parameters as for `list_tags`.

    Raises
    ------
    CorruptFileError
        One of the files is no branch.
    """
    return dict(_listed(store, root, BRANCHES_FOLDER, check_branch_name, decode_branch))


def find_tag(store: ObjectStore, root: str, name: str) -> Tag:
    """A tag of a table.

    Raises
    ------
    InvalidInputError
        No tag can have the name.
    VersionNotFoundError
        There is no such tag.
    CorruptFileError
        Its file is no tag.
    """
    path = _path(root, TAGS_FOLDER, check_tag_name(name))
    try:
        return decode_tag(_read(store, path), name, path)
    except MissingFileError:
        raise VersionNotFoundError(f"Ref not found error: tag {name} does not exist in {store.uri(root)}") from None


def find_branch(store: ObjectStore, root: str, name: str) -> Branch:
    """A branch of a table; errors as for `find_tag`."""
    path = _path(root, BRANCHES_FOLDER, check_branch_name(name))
    try:
        return decode_branch(_read(store, path), name, path)
    except MissingFileError:
        raise VersionNotFoundError(f"Ref not found error: branch {name} does not exist in {store.uri(root)}") from None


def _listed(
    store: ObjectStore,
    root: str,
    folder: str,
    check: Callable[[object], str],
    decode: Callable[[bytes, str, str], _Value],
) -> Iterator[tuple[str, _Value]]:
    for file_name in sorted(store.list_names(f"{root}/{folder}")):
        name = reference_name(file_name)
        if name is None:
            continue
        path = f"{root}/{folder}/{file_name}"
        try:
            check(name)
        except InvalidInputError as error:
            raise CorruptFileError(f"{store.uri(path)}: {error}; move the file away") from error
        try:
            yield name, decode(_read(store, path), name, store.uri(path))
        except MissingFileError:  # removed since the listing
            continue


def _path(root: str, folder: str, name: str) -> str:
    return f"{root}/{folder}/{reference_file_name(name)}"


def _read(store: ObjectStore, path: str) -> bytes:
    source = store.open_input(path)
    try:
        # One byte more than allowed, so that the reader of the content sees that it is too much.
        return source.read(0, min(source.size, MAX_FILE_SIZE + 1)).to_pybytes()
    finally:
        source.close()


# -- resolving -------------------------------------------------------------------------------------------------------


def find_place(store: ObjectStore, root: str, reference: Reference | None, here: Place) -> Place:
    """The version that a reference means.

    Parameters
    ----------
    store, root
        Main root of the table.
    reference
        See `Reference`; None is `here`.
    here
        Branch that plain numbers are versions of.

    Returns
    -------
    Place
        Whether it still has the version is not checked, unless the newest is asked for.

    Raises
    ------
    VersionNotFoundError
        There is no such tag or branch.
    InvalidInputError, TypeError
        The reference is of another type, or no tag or branch can have the name.
    """
    if reference is None:
        return here
    if isinstance(reference, str):
        tag = find_tag(store, root, reference)
        return Place(tag.branch, tag.version)
    if not isinstance(reference, tuple):
        return Place(here.branch, _number(reference))
    if len(reference) != 2:
        raise InvalidInputError(f"a reference {reference!r} has to be a pair of branch (or None) and version (or None)")
    branch, version = reference
    if branch is not None and not isinstance(branch, str):
        raise TypeError(f"a branch is text or None, not {type(branch).__name__}: {reference!r}")
    branch = None if branch == MAIN_BRANCH else branch
    if branch is not None:
        find_branch(store, root, branch)
    if version is None:
        return Place(branch, latest_version(store, branch_root(root, branch)).version)
    return Place(branch, _number(version))


def _number(version: object) -> int:
    try:
        number = None if isinstance(version, bool) else version.__index__()  # type: ignore[attr-defined]
    except AttributeError:
        number = None
    if number is None:
        raise InvalidInputError(f"Version must be an int, a str or a (str, int) tuple, not {version!r}")
    if number < 0:
        raise VersionNotFoundError(f"version {number} does not exist; versions count from 1")
    return int(number)


def manifest_size(store: ObjectStore, root: str, place: Place) -> int:
    """Size in bytes of the manifest of a version.

    Raises
    ------
    VersionNotFoundError
        There is no such version.
    """
    try:
        source = store.open_input(locate_version(store, branch_root(root, place.branch), place.version))
    except (VersionNotFoundError, DatasetNotFoundError, MissingFileError) as error:
        raise VersionNotFoundError(f"Version not found error: version {place} does not exist: {error}") from error
    try:
        return source.size
    finally:
        source.close()


# -- changing --------------------------------------------------------------------------------------------------------


def check_kept(store: ObjectStore, root: str, place: Place) -> None:
    """Check, after a reference to a version was written, that the version is still there.

    A cleanup looks for references again after it removed versions, and so does the removal of a branch: of two that
    meet, at least one sees the other.

    Raises
    ------
    CommitConflictError
        The version, or the branch it is of, was removed meanwhile; what refers to it has to be taken back.
    """
    try:
        is_there = place.branch is None or has_branch_file(store, root, place.branch)
        locate_version(store, branch_root(root, place.branch), place.version)
    except (VersionNotFoundError, DatasetNotFoundError):
        is_there = False
    if not is_there:
        raise CommitConflictError(
            f"version {place} of {store.uri(root)} was removed at the same moment, by a cleanup or with its branch, so "
            "nothing can refer to it any more; try again with another version",
            retryable=True,
        )


def _still_holds(store: ObjectStore, path: str, content: bytes) -> bool:
    try:
        return _read(store, path) == content
    except MissingFileError:
        return False


def create_tag(store: ObjectStore, root: str, name: str, place: Place) -> Tag:
    """Make a new tag; of several writers that do so at once exactly one succeeds.

    Parameters
    ----------
    store, root
        Main root of the table.
    name
        Name of the tag.
    place
        Version it is for, which must be there.

    Raises
    ------
    InvalidInputError
        No new tag can have the name.
    ReferenceExistsError
        There is a tag of that name.
    VersionNotFoundError
        There is no such version.
    CommitConflictError
        The version was removed at the same moment; there is no tag then.
    """
    path = _path(root, TAGS_FOLDER, check_new_tag_name(name))
    now = dt.datetime.now(dt.timezone.utc)
    if store.exists(path):
        raise _exists("tag", name)
    tag = Tag(name, place.branch, place.version, manifest_size(store, root, place), now, now)
    content = encode_tag(tag)
    try:
        put_new(store, path, content)
    except AlreadyExistsError:
        raise _exists("tag", name) from None
    try:
        check_kept(store, root, place)
    except CommitConflictError:
        if _still_holds(store, path, content):
            store.delete(path)
        raise
    return tag


def update_tag(store: ObjectStore, root: str, name: str, place: Place) -> Tag:
    """Move a tag to another version; its metadata stays. Parameters and errors as for `create_tag`."""
    tag = find_tag(store, root, name)
    path = _path(root, TAGS_FOLDER, name)
    size = manifest_size(store, root, place)
    now = dt.datetime.now(dt.timezone.utc)
    moved = replace(tag, branch=place.branch, version=place.version, manifest_size=size, updated_at=now)
    content = encode_tag(moved)
    store.put(path, content)
    try:
        check_kept(store, root, place)
    except CommitConflictError:
        if _still_holds(store, path, content):
            store.put(path, encode_tag(tag))
        raise
    return moved


def replace_tag_metadata(store: ObjectStore, root: str, name: str, metadata: Mapping[str, str]) -> Tag:
    """Give a tag other metadata; errors as for `find_tag`."""
    changed = replace(find_tag(store, root, name), metadata=dict(metadata))
    store.put(_path(root, TAGS_FOLDER, name), encode_tag(changed))
    return changed


def delete_tag(store: ObjectStore, root: str, name: str) -> None:
    """Remove a tag; the version stays.

    Raises
    ------
    InvalidInputError
        No tag can have the name.
    VersionNotFoundError
        There is no such tag.
    """
    path = _path(root, TAGS_FOLDER, check_tag_name(name))
    # A file that cannot be read can be removed all the same.
    if not store.exists(path):
        raise VersionNotFoundError(f"Ref not found error: tag {name} does not exist in {store.uri(root)}")
    store.delete(path)
    store.sync(f"{root}/{TAGS_FOLDER}")


def add_branch(store: ObjectStore, root: str, branch: Branch) -> None:
    """Write the file of a new branch, whose table is there already; of several writers exactly one succeeds.

    Raises
    ------
    ReferenceExistsError
        There is a branch of that name.
    """
    try:
        put_new(store, _path(root, BRANCHES_FOLDER, branch.name), encode_branch(branch))
    except AlreadyExistsError:
        raise _exists("branch", branch.name) from None


def replace_branch_metadata(store: ObjectStore, root: str, name: str, metadata: Mapping[str, str]) -> Branch:
    """Give a branch other metadata; errors as for `find_branch`."""
    changed = replace(find_branch(store, root, name), metadata=dict(metadata), identifier_is_known=True)
    store.put(_path(root, BRANCHES_FOLDER, name), encode_branch(changed))
    return changed


def has_branch_file(store: ObjectStore, root: str, name: str) -> bool:
    """Whether a branch has a file, which makes it a branch; what the file holds does not matter."""
    return store.exists(_path(root, BRANCHES_FOLDER, check_branch_name(name)))


def remove_branch_file(store: ObjectStore, root: str, name: str) -> None:
    """Remove the file of a branch, so that there is no such branch any more; one that is not there is no error."""
    store.delete(_path(root, BRANCHES_FOLDER, check_branch_name(name)))
    # What it stood for goes next; after a power failure in between there must not be a branch without a table.
    store.sync(f"{root}/{BRANCHES_FOLDER}")


def _exists(what: str, name: str) -> ReferenceExistsError:
    return ReferenceExistsError(f"Ref conflict error: {what} {name} already exists")
