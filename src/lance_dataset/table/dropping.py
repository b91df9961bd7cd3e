"""Removal of a whole table. What was in its folder before, or came later from someone else, stays."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from urllib.parse import unquote

from lance_dataset.io.base import ObjectStore, is_plain_path
from lance_dataset.table.naming import VERSIONS_FOLDER
from lance_dataset.table.protocol import commit_protocol

__all__ = ["drop_table", "foreign_paths", "log_other_names"]

_log = logging.getLogger(__name__)
_BRANCHES_FOLDER = "_refs/branches"
_TREE = "tree/"
_DATA = "data"
#: Folders that only a table has. The versions come last: without them, an interrupted removal cannot be repeated.
_WHOLE_FOLDERS = (
    *("_mem_wal", "_fri", "_blobs", "_maintenance", "_quarantine", "_indices", "_deletions", "_transactions", "_refs"),
    VERSIONS_FOLDER,
)
_DATA_SUFFIXES = (".lance", ".blob")
#: Beginnings of the names of files beside these folders.
_FILES = ("_latest", ".tmp", ".lance-reserved", ".lance-deregistered")
_TEMPORARY = ".tmp"
#: Paths that a log message names.
_NAMED = 10


def drop_table(store: ObjectStore, root: str) -> list[str]:
    """Remove a table with its branches, and its entries in an external table.

    Returns
    -------
    list of str
        Paths of the files in its folder that do not belong to it, which stay.
    """
    protocol = commit_protocol(store)
    roots = [root, *(f"{root}/{_TREE}{name}" for name in _branch_names(store, root))]
    for each in roots:
        protocol.forget(store, each, None)
    foreign = _remove_files(store, root)
    for each in roots:  # entries that readers inserted meanwhile
        protocol.forget(store, each, None)
    if foreign:
        _log.warning("%s was dropped; files that do not belong to it stay: %s", store.uri(root), _listed(foreign))
    return foreign


def foreign_paths(paths: Iterable[str], branches: Collection[str] = ()) -> list[str]:
    """Return those of the paths below the folder of a table that do not belong to it, ascending.

    Parameters
    ----------
    paths
        Relative paths.
    branches
        Names of the branches. Others are recognised by their versions.
    """
    known = sorted(paths)
    mark = f"/{VERSIONS_FOLDER}/"
    tables = {path[: path.index(mark)] for path in known if mark in path}
    owners = {each for each in tables if _is_branch(each)} | {f"{_TREE}{name}" for name in branches}
    inner = tuple(f"{each}/" for each in tables - owners)
    return [path for path in known if not _belongs(path, owners, inner)]


def log_other_names(store: ObjectStore, root: str) -> None:
    """Log what a folder has in which a table is created, if it is not of a table. Object stores are not asked."""
    if "://" in store.uri(root):
        return
    others = sorted({*store.list_names(root)} - {*_WHOLE_FOLDERS, *_FILES, _DATA, _TREE.rstrip("/")})
    if others:
        _log.warning("%s is created in a folder that has other files: %s", store.uri(root), _listed(others))


def _is_branch(table: str) -> bool:
    """Return True for the place of a branch, False for that of a table inside the folders of another one."""
    first, _, rest = table.partition("/")
    return f"{first}/" == _TREE and not {*rest.split("/")[1:]} & {*_WHOLE_FOLDERS, _DATA}


def _belongs(path: str, branches: Collection[str], inner: tuple[str, ...]) -> bool:
    """Return True for a file as tables have them, outside of other tables in their folders."""
    owner = max((each for each in branches if path.startswith(f"{each}/")), key=len, default="")
    folder, slash, rest = path[len(owner) :].lstrip("/").partition("/")
    if not slash:
        return folder.startswith(_FILES)
    if folder != _DATA or path.startswith(inner):
        return folder in _WHOLE_FOLDERS
    name = rest.rpartition("/")[2]
    return name.endswith(_DATA_SUFFIXES) or name.startswith(_TEMPORARY)


def _remove_files(store: ObjectStore, root: str) -> list[str]:
    """Remove the files of a table and the folders that are empty then; return the paths of the others."""
    paths = [info.path[len(root) + 1 :] for info in store.list_tree(root)]
    foreign = foreign_paths(paths, _branch_names(store, root))
    if not foreign:
        store.delete_tree(root)
        return []
    kept = set(foreign)
    own = sorted((path for path in paths if path not in kept), key=_rank)
    for path in own:
        store.delete(f"{root}/{path}")
    folders = {path[:at] for path in own for at, letter in enumerate(path) if letter == "/"}
    for folder in sorted({*folders, _DATA}, key=lambda each: -each.count("/")):
        store.delete_empty_folder(f"{root}/{folder}")
    return foreign


def _rank(path: str) -> tuple[int, str]:
    """Order files so that an interrupted removal can be repeated: the versions of the table itself go last."""
    return (path.startswith(f"{VERSIONS_FOLDER}/"), path)


def _branch_names(store: ObjectStore, root: str) -> list[str]:
    """Return the names of branches that have a file. Other kinds of names would be those of other tables."""
    suffix = ".json"
    files = [name for name in store.list_names(f"{root}/{_BRANCHES_FOLDER}") if name.endswith(suffix)]
    names = (unquote(name[: -len(suffix)]) for name in files)
    return [name for name in names if is_plain_path(name)]


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more
