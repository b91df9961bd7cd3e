"""Creation and removal of branches."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from contextlib import suppress

from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    ReferenceExistsError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.protocol import commit_protocol
from lance_dataset.table.references.catalog import (
    Branch,
    Place,
    add_branch,
    check_kept,
    find_branch,
    has_branch_file,
    list_branches,
    list_tags,
    remove_branch_file,
)
from lance_dataset.table.references.clone import CloneSource, publish_first, shallow_manifest
from lance_dataset.table.references.names import (
    TABLE_FOLDERS,
    branch_root,
    check_branch_name,
    check_new_branch_name,
)
from lance_dataset.table.versions import list_versions

__all__ = ["create_branch", "delete_branch"]

#: Marker in the root of a branch while it is created or removed.
_MARKER = "_unfinished"


def create_branch(root: str, name: str, source: CloneSource) -> Manifest:
    """Create a branch that begins with a version of another one.

    The table of the branch is written first, its reference file last. A branch whose creation was interrupted does not
    exist. A marker at its location prevents others from creating a branch with that name meanwhile.

    Parameters
    ----------
    root
        Main root of the table.
    name
        Name of the branch.
    source
        The version.

    Returns
    -------
    Manifest
        The first version of the branch, which has the version number of the source. It is durable.

    Raises
    ------
    InvalidInputError
        The name is invalid for a new branch.
    ReferenceExistsError
        A branch with that name exists, has remains, or is being created.
    UnsupportedError
        The source uses a feature that a branch cannot maintain.
    CommitConflictError
        The source was removed by a cleanup or with its branch. The new branch does not exist then.
    """
    store = source.store
    there = branch_root(root, check_new_branch_name(name))
    _check_absent(store, root, name)
    parent = find_branch(store, root, source.branch).identifier if source.branch else ()
    version = source.manifest.version
    first = shallow_manifest(source, store, name)
    _mark(store, there, name)
    try:
        _check_absent(store, root, name)
        if list_versions(store, there):
            raise _unfinished(store, there, name)
    except BaseException:
        store.delete(f"{there}/{_MARKER}")
        raise
    # From here on the marker stays on failure, so that others do not take over files that may exist.
    made = publish_first(store, there, first, source.operation(is_shallow=True, branch_name=name))
    branch = Branch(
        name=name,
        parent_branch=source.branch,
        parent_version=version,
        created_at=int(time.time()),
        manifest_size=source.manifest.file_size,
        identifier=(*parent, (version, uuid.uuid4().hex)),
    )
    add_branch(store, root, branch)
    try:
        check_kept(store, root, Place(source.branch, version))
    except CommitConflictError:
        delete_branch(store, root, name)
        raise
    store.delete(f"{there}/{_MARKER}")
    return made


def _check_absent(store: ObjectStore, root: str, name: str) -> None:
    try:
        find_branch(store, root, name)
    except VersionNotFoundError:
        return
    raise ReferenceExistsError(f"Ref conflict error: branch {name} already exists")


def _mark(store: ObjectStore, there: str, name: str) -> None:
    """Start the creation of a branch, exclusively."""
    try:
        store.put_if_absent(f"{there}/{_MARKER}", b"")
    except AlreadyExistsError:
        raise _unfinished(store, there, name) from None


def _unfinished(store: ObjectStore, there: str, name: str) -> ReferenceExistsError:
    return ReferenceExistsError(
        f"{store.uri(there)} is in use, but branch {name} does not exist: it is being created right now, or its "
        f"creation or removal was interrupted; if so, remove the remains with branches.delete({name!r}), then create it"
    )


def delete_branch(store: ObjectStore, root: str, name: str) -> None:
    """Remove a branch with its versions and its own files. Files that it shares with others stay.

    Remains of an interrupted creation or removal of the branch are removed too.

    Parameters
    ----------
    store, root
        Main root of the table.
    name
        The branch.

    Raises
    ------
    InvalidInputError
        The name is not a valid branch name, or tags or other branches use versions of the branch.
    VersionNotFoundError
        The branch does not exist.
    UnsafePathError
        A folder of the branch is a link. Nothing is removed then.
    """
    check_branch_name(name)
    branches = list_branches(store, root)
    _check_unused(store, root, name, branches)
    there = branch_root(root, name)
    for folder in TABLE_FOLDERS:
        store.check_own(f"{there}/{folder}")
    marker = f"{there}/{_MARKER}"
    if not (has_branch_file(store, root, name) or store.exists(marker) or list_versions(store, there)):
        raise VersionNotFoundError(f"Ref not found error: Branch {name} does not exist in {store.uri(root)}")
    with suppress(AlreadyExistsError):  # blocks the name until all files of this branch are gone
        store.put_if_absent(marker, b"")
    remove_branch_file(store, root, name)
    _check_unused_still(store, root, name, branches)
    commit_protocol(store).forget(store, there, None)
    for folder in TABLE_FOLDERS:  # the versions folder first: without it the rest is not a table
        _remove_folder(store, f"{there}/{folder}", f"{name}/{folder}", branches)
    store.delete(marker)


def _check_unused(store: ObjectStore, root: str, name: str, branches: Mapping[str, Branch]) -> None:
    children = [(each.name, each.parent_version) for each in branches.values() if _descends(each, name, branches)]
    if children:
        raise InvalidInputError(
            f"Ref conflict error: Branch {name} is referenced by the branches {_pairs(children)}, can not delete; "
            "delete them first"
        )
    tags = [(tag.name, tag.version) for tag in list_tags(store, root).values() if tag.branch == name]
    if tags:
        raise InvalidInputError(
            f"Ref conflict error: Branch {name} is referenced by the tags {_pairs(tags)}, can not delete; delete or "
            "move them first"
        )


def _check_unused_still(store: ObjectStore, root: str, name: str, branches: Mapping[str, Branch]) -> None:
    """Check for references again, now that no new ones can be made, and restore the branch if there are any."""
    known = {name: branches[name]} if name in branches else {}
    try:
        _check_unused(store, root, name, {**list_branches(store, root), **known})
    except InvalidInputError:
        for branch in known.values():
            add_branch(store, root, branch)
            store.delete(f"{branch_root(root, name)}/{_MARKER}")
        raise


def _descends(branch: Branch, ancestor: str, branches: Mapping[str, Branch]) -> bool:
    """Return True if a branch uses files of another one."""
    above = branches.get(ancestor)
    if branch.name == ancestor:
        return False
    if above is not None and above.identifier and above.identifier_is_known and branch.identifier_is_known:
        return branch.identifier[: len(above.identifier)] == above.identifier
    # One of them was made by an old release. Then the names of the parents decide.
    seen: set[str] = set()
    parent = branch.parent_branch
    while parent is not None and parent not in seen:
        if parent == ancestor:
            return True
        seen.add(parent)
        parent = branches[parent].parent_branch if parent in branches else None
    return False


def _pairs(found: list[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ({version})" for name, version in found)


def _remove_folder(store: ObjectStore, folder: str, name: str, branches: Mapping[str, Branch]) -> None:
    """Remove a folder of a branch, but not a branch below it whose name begins with that path."""
    if any(each == name or each.startswith(f"{name}/") for each in branches):
        for info in store.list(folder):
            store.delete(info.path)
        store.sync(folder)
    else:
        store.delete_tree(folder)
