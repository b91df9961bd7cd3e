"""Names of tags and branches: their syntax, and the locations of their files."""

from __future__ import annotations

from urllib.parse import quote, unquote

from lance_dataset.errors import InvalidInputError
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.naming import VERSIONS_FOLDER
from lance_dataset.table.paths import DATA_FOLDER, DELETIONS_FOLDER, INDICES_FOLDER, TRANSACTIONS_FOLDER

__all__ = [
    "BRANCHES_FOLDER",
    "MAIN_BRANCH",
    "TABLE_FOLDERS",
    "TAGS_FOLDER",
    "TREE_FOLDER",
    "branch_of",
    "branch_root",
    "check_branch_name",
    "check_new_branch_name",
    "check_new_tag_name",
    "check_tag_name",
    "main_root",
    "reference_file_name",
    "reference_name",
]

#: Name of the main branch, which has no branch file.
MAIN_BRANCH = "main"
TAGS_FOLDER = "_refs/tags"
BRANCHES_FOLDER = "_refs/branches"
#: Folder with the tables of the branches.
TREE_FOLDER = "tree"
#: Folders in the root of a table. Branches of branches lie beside them.
TABLE_FOLDERS = (
    VERSIONS_FOLDER,
    TRANSACTIONS_FOLDER,
    DATA_FOLDER,
    DELETIONS_FOLDER,
    INDICES_FOLDER,
    "_fri",
    "_blobs",
    "_maintenance",
    "_quarantine",
)

_SUFFIX = ".json"
_LOCK_SUFFIX = ".lock"
#: Maximum length of a file name, short enough for the temporary names that local stores write first.
_MAX_FILE_NAME = 240


def check_tag_name(name: object) -> str:
    """Return a valid tag name.

    Raises
    ------
    TypeError
        The name is not a string.
    InvalidInputError
        It contains characters other than letters, digits, ``.``, ``-`` and ``_``, or has misplaced dots.
    """
    text = _text(name, "tag")
    problem = _tag_problem(text)
    if problem:
        raise InvalidInputError(f"Ref is invalid: {problem}: {text!r}")
    return text


def check_new_tag_name(name: object) -> str:
    """Return a name that a new tag may have: a valid one that every reader can find.

    Raises
    ------
    TypeError, InvalidInputError
        See `check_tag_name`. The name may also be too long, or have letters outside ASCII, with which the reference
        could no longer list the tags of the dataset.
    """
    text = check_tag_name(name)
    if not text.isascii():
        raise InvalidInputError(
            f"Ref is invalid: a new tag may have ASCII letters only, not {text!r}: pylance cannot list the tags of a "
            "dataset that has others"
        )
    return _check_length(text)


def check_branch_name(name: object) -> str:
    """Return a valid branch name.

    Raises
    ------
    TypeError
        The name is not a string.
    InvalidInputError
        It does not consist of segments separated by ``/``, each of letters, digits, ``.``, ``-`` and ``_``. Or it could
        leave the folder of branches, or it is the name of the main branch.
    """
    text = _text(name, "branch")
    problem = _branch_problem(text)
    if problem:
        raise InvalidInputError(f"Ref is invalid: {problem}: {text!r}")
    return text


def check_new_branch_name(name: object) -> str:
    """Return a name that a new branch may have: a valid one whose files do not mix with those of another branch.

    Raises
    ------
    TypeError, InvalidInputError
        See `check_branch_name`. The name may also be too long, or have a segment after the first that is the name of a
        folder that every table has.
    """
    text = check_branch_name(name)
    taken = [segment for segment in text.split("/")[1:] if segment in TABLE_FOLDERS]
    if taken:
        raise InvalidInputError(
            f"Ref is invalid: the segment {taken[0]!r} of the branch name {text!r} is the name of a folder that the "
            f"branch {text.split('/' + taken[0], 1)[0]!r} has"
        )
    return _check_length(text)


def _text(name: object, what: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a {what} must be a string, not {type(name).__name__}")
    return name


def _check_length(name: str) -> str:
    if len(reference_file_name(name)) > _MAX_FILE_NAME:
        raise InvalidInputError(f"Ref is invalid: the name {name[:40]!r}... is too long for the name of a file")
    return name


def _tag_problem(name: str) -> str | None:
    if not name:
        return "Ref cannot be empty"
    if name.startswith("."):
        return "Ref cannot begin with a dot"
    if name.endswith("."):
        return "Ref cannot end with a dot"
    if name.endswith(_LOCK_SUFFIX):
        return "Ref cannot end with .lock"
    if ".." in name:
        return "Ref cannot have two consecutive dots"
    if not _is_plain(name):
        return "Ref characters must be either alphanumeric, '.', '-' or '_'"
    return None


def _branch_problem(name: str) -> str | None:
    if not name:
        return "Branch name cannot be empty"
    if name == MAIN_BRANCH:
        return '"main" is reserved for the default branch; use a different branch name'
    if name.startswith("/") or name.endswith("/"):
        return "Branch name cannot start or end with a '/'"
    if "//" in name:
        return "Branch name cannot contain consecutive '/'"
    if ".." in name or "\\" in name:
        return "Branch name cannot contain '..' or '\\'"
    if name.endswith(_LOCK_SUFFIX):
        return "Branch name cannot end with '.lock'"
    for segment in name.split("/"):
        if segment == "." or not _is_plain(segment):
            return (
                f"Branch segment {segment!r} contains invalid characters. Only alphanumeric, '.', '-', '_' are allowed."
            )
    return None


def _is_plain(text: str) -> bool:
    return all(character.isalnum() or character in ".-_" for character in text)


def reference_file_name(name: str) -> str:
    """Return the file name of a tag or branch: ``/`` is written as ``%2F``, and characters outside ASCII likewise."""
    return quote(name, safe="") + _SUFFIX


def reference_name(file_name: str) -> str | None:
    """Return the name of the tag or branch of a file, None for other files. The name is not checked."""
    return unquote(file_name[: -len(_SUFFIX)]) if file_name.endswith(_SUFFIX) else None


def branch_root(root: str, name: str | None) -> str:
    """Return the root of the table of a branch.

    Parameters
    ----------
    root
        Root of the main branch.
    name
        The branch. None or ``main`` is the main one.
    """
    return root if name is None or name == MAIN_BRANCH else f"{root}/{TREE_FOLDER}/{name}"


def branch_of(manifest: Manifest, root: str) -> str | None:
    """Return the branch of a table, None for the main one.

    A table records its own branch. A table at another location, to which it was copied, is a main branch.
    """
    name = manifest.branch
    if name is None or name == MAIN_BRANCH or not root.endswith(f"/{TREE_FOLDER}/{name}"):
        return None
    return name


def main_root(manifest: Manifest, root: str) -> str:
    """Return the root of the main branch, which contains the tags and branches.

    Parameters
    ----------
    manifest
        A version of the table, which may be one of a branch.
    root
        Root of that table.
    """
    name = branch_of(manifest, root)
    return root if name is None else root[: -len(f"/{TREE_FOLDER}/{name}")]
