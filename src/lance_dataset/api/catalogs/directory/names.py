"""Names of tables and namespaces, and the folders that tables get."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from urllib.parse import quote

from lance_dataset.api.catalogs.packages import errors
from lance_dataset.io.base import is_plain_path

__all__ = [
    "DELIMITER",
    "ENTRIES_FOLDER",
    "check_id",
    "child_location",
    "is_table_folder",
    "new_folder",
    "object_id",
    "register_location",
]

DELIMITER = "$"
#: Folder of the dataset with the entries of a catalog, which is not a table of it.
ENTRIES_FOLDER = "__manifest"
_SUFFIX = ".lance"
_MOST_BYTES = 200


def check_id(parts: Sequence[str], what: str) -> None:
    """Raise InvalidInputError unless each name can be part of a folder's name, whatever the store.

    The reference accepts names such as ``..`` or ``a/b``, which lead out of the folder of the catalog.
    """
    if not parts:
        raise errors.InvalidInputError(f"Invalid input: {what.capitalize()} ID is required")
    for part in parts:
        _check_name(part, what)
    if len(object_id(parts).encode()) > _MOST_BYTES:
        raise errors.InvalidInputError(f"Invalid input: the id of a {what} has at most {_MOST_BYTES} bytes in UTF-8")


def _check_name(name: str, what: str) -> None:
    bad = sorted({each for each in name if each in "/\\$" or ord(each) < 32 or ord(each) == 127})
    try:
        name.encode()
    except UnicodeEncodeError:
        bad.append("a lone surrogate")
    if bad:
        raise errors.InvalidInputError(
            f"Invalid input: the name {name!r} of a {what} contains {', '.join(map(repr, bad))}, which is not allowed"
        )
    if not name.strip() or name.strip(".") == "":
        raise errors.InvalidInputError(f"Invalid input: {name!r} is not a name of a {what}")


def object_id(parts: Sequence[str]) -> str:
    """Return the id of an object as text."""
    return DELIMITER.join(parts)


def new_folder(parts: Sequence[str], *, plain: bool) -> str:
    """Return the folder of a new table.

    Parameters
    ----------
    parts
        Its id.
    plain
        True if tables at the root are found by the names of their folders.
    """
    if plain and len(parts) == 1:
        return f"{parts[0]}{_SUFFIX}"
    return f"{uuid.uuid4().hex[:8]}_{object_id(parts)}"


def register_location(location: str) -> str:
    """Check the location of a table to register, which is a path below the folder of the catalog.

    Raises
    ------
    InvalidInputError
        It is absolute, a URI, or leads out of the folder.
    """
    inside = "Location must be a relative path within the root directory"
    if "://" in location:
        raise errors.InvalidInputError(
            f"Invalid input: Absolute URIs are not allowed for register_table. {inside}: {location}"
        )
    if location.startswith("/"):
        raise errors.InvalidInputError(
            f"Invalid input: Absolute paths are not allowed for register_table. {inside}: {location}"
        )
    if not is_plain_path(location.rstrip("/")):
        raise errors.InvalidInputError(f"Invalid input: Path traversal is not allowed. {inside}: {location}")
    if not is_table_folder(location.rstrip("/")):
        raise errors.InvalidInputError(f"Invalid input: {location} belongs to the catalog itself. {inside}")
    return location.rstrip("/")


def is_table_folder(location: str) -> bool:
    """Return True if a path is inside the folder of a catalog, and not that of its entries."""
    return is_plain_path(location) and location.partition("/")[0].lower() != ENTRIES_FOLDER


def child_location(root: str, folder: str) -> str:
    """Return the URI of a folder below the root of a catalog."""
    if "://" in root:
        return f"{root}/{quote(folder)}"
    return f"file://{quote(root, safe='/$')}/{quote(folder, safe='/$')}"
