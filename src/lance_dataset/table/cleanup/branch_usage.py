"""Files that branches use of the table or branch they began from."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from lance_dataset.io.base import ObjectStore
from lance_dataset.table.cleanup.file_usage import FileUsage, VersionFiles, detached_versions, read_usage
from lance_dataset.table.references.catalog import Branch, branch_root, list_branches
from lance_dataset.table.references.names import TABLE_FOLDERS
from lance_dataset.table.versions import list_versions

__all__ = ["BranchUsage", "ReferencedBranch"]


@dataclass(frozen=True)
class ReferencedBranch:
    """A branch that began, perhaps through other branches, from the current table.

    Attributes
    ----------
    name
        Its name.
    referenced_version
        Version of the current table that it began from.
    """

    name: str
    referenced_version: int


class BranchUsage:
    """Files of a table or branch that other branches need.

    Parameters
    ----------
    store, root
        The main table.
    here
        The branch that owns the files, None for the main one.
    """

    def __init__(self, store: ObjectStore, root: str, here: str | None) -> None:
        self._store = store
        self._root = root
        self._here = here
        self._seen: dict[str, Hashable] = {}
        self._files: list[VersionFiles] = []
        self._by_version: dict[int, FileUsage] = {}
        self._main_is_seen = here is None
        self.referenced: list[ReferencedBranch] = []

    def refresh(self) -> list[ReferencedBranch]:
        """Read the branches that were made since the last call.

        Returns
        -------
        list of ReferencedBranch
            Those of them that began from the current branch.

        Raises
        ------
        CorruptFileError, UnsupportedError
            A branch cannot be read, so its files are not known.
        """
        branches = list_branches(self._store, self._root)
        ids = {name: _identity(branch) for name, branch in branches.items() if name != self._here}
        new = [name for name, each in ids.items() if self._seen.get(name) != each]
        self._seen.update(ids)
        found = []
        if not self._main_is_seen:  # it may use a branch as a base path
            self._files += self._read(None)
            self._main_is_seen = True
        for name in new:
            files = self._read(name)
            self._files += files
            version = self._origin(branches, name)
            if version is None:
                continue
            usage = self._by_version.setdefault(version, FileUsage())
            for each in files:
                usage.add_foreign(each)
            found.append(ReferencedBranch(name, version))
        self.referenced += found
        return found

    def owns(self, path: str) -> bool:
        """Return True if a file is in a folder of another branch, as those of ``a/data`` are inside ``a``'s data."""
        mine = branch_root(self._root, self._here) if self._here else self._root
        roots = (branch_root(self._root, name) for name in self._seen)
        inner = (f"{root}/" for root in roots if root.startswith(f"{mine}/"))
        return any(path.startswith(root) and path[len(root) :].partition("/")[0] in TABLE_FOLDERS for root in inner)

    def add_to(self, used: FileUsage) -> None:
        """Add the files that all branches need."""
        for files in self._files:
            used.add_foreign(files)

    def holds(self, version: int, files: VersionFiles) -> bool:
        """Return True if a branch began from a version and still needs a file of it."""
        usage = self._by_version.get(version)
        return usage is not None and usage.uses_any(files)

    def _origin(self, branches: dict[str, Branch], name: str) -> int | None:
        """Return the version of the current branch that another one comes from, None if it does not come from it."""
        passed: set[str] = set()
        while name in branches and name not in passed:
            passed.add(name)
            branch = branches[name]
            if branch.parent_branch == self._here:
                return branch.parent_version
            if branch.parent_branch is None:
                return None
            name = branch.parent_branch
        return None

    def _read(self, name: str | None) -> list[VersionFiles]:
        root = branch_root(self._root, name)
        names = [*list_versions(self._store, root), *detached_versions(self._store, root)]
        return [each.files for each in read_usage(self._store, root, names) if each.files.in_bases]


def _identity(branch: Branch) -> Hashable:
    """Return the values that distinguish a branch from an earlier one with the same name."""
    return branch.parent_branch, branch.parent_version, branch.created_at, branch.identifier
