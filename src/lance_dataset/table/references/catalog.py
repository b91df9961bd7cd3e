"""Tags and branches of a table. All of them are stored in the root of the main branch."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
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
    nearest_name_hint,
)
from lance_dataset.io.base import ObjectStore
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

#: A version number (of the current branch), the name of a tag, or a pair of a branch (None: the main one) and a
#: version of it (None: the newest).
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
    """Return the place of an open version."""
    return Place(branch_of(manifest, root), manifest.version)


# -- reading ---------------------------------------------------------------------------------------------------------


def list_tags(store: ObjectStore, root: str) -> dict[str, Tag]:
    """Return all tags of a table by name, ordered by name.

    Parameters
    ----------
    store, root
        Main root of the table, see `main_root`.

    Raises
    ------
    CorruptFileError
        A file is not a tag. It is not skipped, because versions with a tag must not be removed.
    """
    return dict(_listed(store, root, TAGS_FOLDER, check_tag_name, decode_tag))


def list_branches(store: ObjectStore, root: str) -> dict[str, Branch]:
    """Return all branches of a table except the main one by name, ordered by name.

    The parameters are those of `list_tags`.

    Raises
    ------
    CorruptFileError
        A file is not a branch.
    """
    return dict(_listed(store, root, BRANCHES_FOLDER, check_branch_name, decode_branch))


def find_tag(store: ObjectStore, root: str, name: str) -> Tag:
    """Return a tag of a table.

    Raises
    ------
    InvalidInputError
        The name is not a valid tag name.
    VersionNotFoundError
        The tag does not exist.
    CorruptFileError
        Its file is not a tag.
    """
    path = _path(root, TAGS_FOLDER, check_tag_name(name))
    try:
        return decode_tag(_read(store, path), name, path)
    except MissingFileError:
        text = f"Ref not found error: tag {name} does not exist in {store.uri(root)}"
        raise VersionNotFoundError(f"{text}{_instead_of_tag(store, root, name)}") from None


def _instead_of_tag(store: ObjectStore, root: str, name: str) -> str:
    """Return the end of a message about a missing tag: what else has this name, or a similar tag."""
    with suppress(InvalidInputError):
        if has_branch_file(store, root, name):
            return f"; {name} is a branch, whose newest version is version=({name!r}, None)"
    names = (reference_name(each) for each in store.list_names(f"{root}/{TAGS_FOLDER}"))
    return nearest_name_hint(name, (each for each in names if each is not None))


def find_branch(store: ObjectStore, root: str, name: str) -> Branch:
    """Return a branch of a table. Raises the errors of `find_tag`."""
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
        # One byte more than allowed, so that the decoder detects a file that is too large.
        return source.read(0, min(source.size, MAX_FILE_SIZE + 1)).to_pybytes()
    finally:
        source.close()


# -- resolving -------------------------------------------------------------------------------------------------------


def find_place(store: ObjectStore, root: str, reference: Reference | None, here: Place) -> Place:
    """Return the version that a reference means.

    Parameters
    ----------
    store, root
        Main root of the table.
    reference
        See `Reference`. None is `here`.
    here
        Branch to which plain version numbers belong.

    Returns
    -------
    Place
        The version. Its existence is not checked, unless the newest one is requested.

    Raises
    ------
    VersionNotFoundError
        The tag or branch does not exist.
    InvalidInputError, TypeError
        The reference has another type, or is not a valid name of a tag or branch.
    """
    if reference is None:
        return here
    if isinstance(reference, str):
        tag = find_tag(store, root, reference)
        return Place(tag.branch, tag.version)
    if not isinstance(reference, tuple):
        return Place(here.branch, _number(reference))
    if len(reference) != 2:
        raise InvalidInputError(f"a reference {reference!r} must be a pair of branch (or None) and version (or None)")
    branch, version = reference
    if branch is not None and not isinstance(branch, str):
        raise TypeError(f"a branch must be a string or None, not {type(branch).__name__}: {reference!r}")
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
    """Return the size in bytes of the manifest of a version.

    Raises
    ------
    VersionNotFoundError
        The version does not exist.
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
    """Check, after a reference to a version was written, that the version still exists.

    A cleanup looks for references again after it removed versions, and so does the removal of a branch. If both run at
    the same time, at least one sees the other.

    Raises
    ------
    CommitConflictError
        The version or its branch was removed meanwhile. The caller must remove the reference again.
    """
    try:
        is_there = place.branch is None or has_branch_file(store, root, place.branch)
        locate_version(store, branch_root(root, place.branch), place.version)
    except (VersionNotFoundError, DatasetNotFoundError):
        is_there = False
    if not is_there:
        raise CommitConflictError(
            f"version {place} of {store.uri(root)} was removed at the same time, by a cleanup or with its branch, so "
            "nothing can refer to it any more; try again with another version",
            retryable=True,
        )


def _still_holds(store: ObjectStore, path: str, content: bytes) -> bool:
    try:
        return _read(store, path) == content
    except MissingFileError:
        return False


def create_tag(store: ObjectStore, root: str, name: str, place: Place) -> Tag:
    """Create a tag. If several writers create it at the same time, exactly one succeeds.

    Parameters
    ----------
    store, root
        Main root of the table.
    name
        Name of the tag.
    place
        Version that the tag refers to. It must exist.

    Raises
    ------
    InvalidInputError
        The name is invalid for a new tag.
    ReferenceExistsError
        A tag with that name already exists.
    VersionNotFoundError
        The version does not exist.
    CommitConflictError
        The version was removed at the same time. The tag does not exist then.
    """
    path = _path(root, TAGS_FOLDER, check_new_tag_name(name))
    now = dt.datetime.now(dt.timezone.utc)
    if store.exists(path):
        raise _exists("tag", name)
    tag = Tag(name, place.branch, place.version, manifest_size(store, root, place), now, now)
    content = encode_tag(tag)
    try:
        store.put_if_absent(path, content)
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
    """Move a tag to another version. Its metadata stays. Parameters and errors are those of `create_tag`."""
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
    """Replace the metadata of a tag. Raises the errors of `find_tag`."""
    changed = replace(find_tag(store, root, name), metadata=dict(metadata))
    store.put(_path(root, TAGS_FOLDER, name), encode_tag(changed))
    return changed


def delete_tag(store: ObjectStore, root: str, name: str) -> None:
    """Remove a tag. The version stays.

    Raises
    ------
    InvalidInputError
        The name is not a valid tag name.
    VersionNotFoundError
        The tag does not exist.
    """
    path = _path(root, TAGS_FOLDER, check_tag_name(name))
    # A file that cannot be decoded can be removed anyway.
    if not store.exists(path):
        raise VersionNotFoundError(f"Ref not found error: tag {name} does not exist in {store.uri(root)}")
    store.delete(path)
    store.sync(f"{root}/{TAGS_FOLDER}")


def add_branch(store: ObjectStore, root: str, branch: Branch) -> None:
    """Write the file of a new branch whose table already exists. Of several writers, exactly one succeeds.

    Raises
    ------
    ReferenceExistsError
        A branch with that name already exists.
    """
    try:
        store.put_if_absent(_path(root, BRANCHES_FOLDER, branch.name), encode_branch(branch))
    except AlreadyExistsError:
        raise _exists("branch", branch.name) from None


def replace_branch_metadata(store: ObjectStore, root: str, name: str, metadata: Mapping[str, str]) -> Branch:
    """Replace the metadata of a branch. Raises the errors of `find_branch`."""
    changed = replace(find_branch(store, root, name), metadata=dict(metadata), identifier_is_known=True)
    store.put(_path(root, BRANCHES_FOLDER, name), encode_branch(changed))
    return changed


def has_branch_file(store: ObjectStore, root: str, name: str) -> bool:
    """Return True if a branch has a file, which makes it a branch. The content does not matter."""
    return store.exists(_path(root, BRANCHES_FOLDER, check_branch_name(name)))


def remove_branch_file(store: ObjectStore, root: str, name: str) -> None:
    """Remove the file of a branch, so that the branch no longer exists. A missing file is ignored."""
    store.delete(_path(root, BRANCHES_FOLDER, check_branch_name(name)))
    # The branch's table is removed next. After a power failure in between, no branch may be without a table.
    store.sync(f"{root}/{BRANCHES_FOLDER}")


def _exists(what: str, name: str) -> ReferenceExistsError:
    return ReferenceExistsError(f"Ref conflict error: {what} {name} already exists")
