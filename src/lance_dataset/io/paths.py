"""Paths inside a store."""

from __future__ import annotations

from lance_dataset.errors import CorruptFileError

__all__ = ["safe_join"]


def safe_join(root: str, relative: str, *, what: str = "path") -> str:
    """Join a path that comes out of a file of the dataset to the folder it has to stay in.

    Parameters
    ----------
    root
        Folder in the store, without trailing slash.
    relative
        Slash-separated path below `root`, as found in a manifest or another file.
    what
        What the path names, for the error message.

    Raises
    ------
    CorruptFileError
        `relative` is empty, absolute, has empty, ``.`` or ``..`` segments, a backslash or a NUL, so it could leave
        `root`.
    """
    if "\\" in relative or "\0" in relative or any(part in ("", ".", "..") for part in relative.split("/")):
        raise CorruptFileError(
            f"{what} {relative!r} below {root!r} is not a plain relative path (no '..', '\\', NUL or empty segments); "
            "the dataset may not refer to files outside its folder"
        )
    return f"{root}/{relative}"
