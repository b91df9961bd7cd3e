"""Local files below the root of a table, reached without following symbolic links.

A folder may come from somebody else, with links in it that lead elsewhere, and another process may put links in while
it is used. So what changes or copies files opens one folder after the other, relative to the one above and without
following links, and acts relative to the last one. The path of the root itself was given by the user, and may have
links. Systems without these calls (Windows) look for links first, so a link made in between is followed there.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress

from lance_dataset.errors import UnsafePathError
from lance_dataset.io.durable import forget_folders, make_folders

__all__ = ["Place", "check_place", "open_file", "open_place", "remove_file", "remove_tree", "walk_files"]

#: True if the system can act relative to an open folder.
HAS_FOLDER_CALLS = (
    {os.open, os.unlink, os.mkdir, os.rmdir, os.stat, os.rename} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
    and hasattr(os, "O_NOFOLLOW")
)
_READ = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
#: Flags that open a folder to go through it, without the permission to list it where the system can do that.
_PASS = _READ | getattr(os, "O_PATH", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
#: Errors of `open` for a link that must not be followed.
_LINK_ERRORS = frozenset({errno.ELOOP, errno.ENOTDIR, getattr(errno, "EMLINK", errno.ELOOP)})
#: Folders in folders; names of branches may have many segments.
_MAX_DEPTH = 256


class Place:
    """Name in an open folder, for calls with ``dir_fd``. Close it, or use it in a `with` statement.

    Attributes
    ----------
    folder
        Descriptor of the folder, None if the system has no such calls.
    name
        Name in the folder; the whole path if `folder` is None.

    Parameters
    ----------
    folder, name
        See the attributes.
    above
        Path of the folder, for errors.
    """

    __slots__ = ("_above", "folder", "name")

    def __init__(self, folder: int | None, name: str, above: str) -> None:
        self.folder = folder
        self.name = name
        self._above = above

    def beside(self, name: str) -> str:
        """Return the name to use for another file of the folder."""
        return name if self.folder is not None else f"{os.path.dirname(self.name)}/{name}"

    def is_link(self) -> bool:
        """Return True if there is a symbolic link of this name."""
        return _is_link(self.name, self.folder)

    def close(self) -> None:
        """Close the folder."""
        if self.folder is not None:
            os.close(self.folder)
            self.folder = None

    def __enter__(self) -> Place:
        """Return the place."""
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Close the folder. Errors of the system that name a file in it get its whole path."""
        self.close()
        _name_whole(error, self._above)


def open_place(path: str, root: str | None, *, create: bool = False) -> Place:
    """Open the folder of a path, without following links below the root.

    Parameters
    ----------
    path
        Absolute path of a file or folder, which need not exist.
    root
        Root of the table. Links in its own path are followed. If `path` is not below it, the folders that both have in
        common count as the root. None for any path: then the folder of `path` counts as the root.
    create
        True for making missing folders.

    Raises
    ------
    UnsafePathError
        A folder below the root is a link, or `path` has a segment ``.`` or ``..`` there.
    FileNotFoundError, NotADirectoryError
        A folder does not exist, or is a file.
    """
    start, names = _split(path, root)
    if not HAS_FOLDER_CALLS:
        _check_links(start, names[:-1])
        if create:
            make_folders(os.path.dirname(path))
        return Place(None, path, start)
    try:
        folder = os.open(start or "/", _PASS)
    except FileNotFoundError:
        if not create:
            raise
        make_folders(start)
        folder = os.open(start or "/", _PASS)
    passed = start
    try:
        for name in names[:-1]:
            passed = f"{passed}/{name}"
            inner = _enter(folder, name, passed, root, create=create)
            os.close(folder)
            folder = inner
    except BaseException as error:
        os.close(folder)
        _name_whole(error, passed.rpartition("/")[0])
        raise
    return Place(folder, names[-1], passed)


def check_place(path: str, root: str | None) -> None:
    """Raise UnsafePathError if a path is a link or leads through one; do nothing if it does not exist."""
    with suppress(FileNotFoundError, NotADirectoryError), open_place(path, root) as place:
        if path != root and place.is_link():
            raise _link_error(path, root)


def open_file(path: str, root: str | None, flags: int, mode: int = 0o666) -> int:
    """Open or create a file without following links below the root. Errors are those of `open_place` and `os.open`."""
    with open_place(path, root, create=bool(flags & os.O_CREAT)) as place:
        try:
            return os.open(place.name, flags | _NO_LINK, mode, dir_fd=place.folder)
        except OSError as error:
            if error.errno in _LINK_ERRORS and place.is_link():
                raise _link_error(path, root) from error
            raise


def remove_file(path: str, root: str | None) -> None:
    """Remove a file, or a link as such. Errors are those of `open_place` and `os.unlink`."""
    with open_place(path, root) as place:
        os.unlink(place.name, dir_fd=place.folder)


def walk_files(prefix: str, root: str | None) -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and status of the files below a folder; nothing if it does not exist.

    Links to folders are not followed. Links to files are listed with their own status.

    Raises
    ------
    UnsafePathError
        The folder is a link or lies behind one, or folders are nested too deeply.
    """
    folders = [prefix]
    limit = prefix.count("/") + _MAX_DEPTH
    while folders:
        folder = folders.pop()
        if folder.count("/") > limit:
            raise _depth_error(folder)
        for name, status in _entries(folder, root):
            path = f"{folder}/{name}"
            if stat.S_ISDIR(status.st_mode):
                folders.append(path)
            else:
                yield path, status


def remove_tree(path: str, root: str | None) -> None:
    """Remove a folder with everything in it; links are removed as such. Do nothing if it does not exist.

    If the root itself is a link that the user gave, only that link is removed, as the reference does.

    Raises
    ------
    UnsafePathError
        The folder is a link or lies behind one, or folders are nested too deeply.
    """
    with suppress(FileNotFoundError, NotADirectoryError), open_place(path, root) as place:
        if place.is_link():
            if path != root:
                raise _link_error(path, root)
            os.unlink(place.name, dir_fd=place.folder)
        elif place.folder is None:
            # a file that vanishes meanwhile must not end the removal of the others
            shutil.rmtree(path, onerror=lambda _function, _path, failure: _unless_missing(failure[1]))
        else:
            _remove_folder(place.folder, place.name, path, _MAX_DEPTH)


def _remove_folder(above: int, name: str, path: str, depth: int) -> None:
    """Remove a folder by the descriptor of the one above; what is not there any more does not matter."""
    if depth == 0:
        raise _depth_error(path)
    try:
        folder = os.open(name, _READ | _NO_LINK, dir_fd=above)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in _LINK_ERRORS:
            raise
        _unlink(above, name)  # not a folder any more
        return
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for inner, is_folder in found:
            if is_folder:
                _remove_folder(folder, inner, f"{path}/{inner}", depth - 1)
            else:
                _unlink(folder, inner)
    except OSError as error:
        _name_whole(error, path)
        raise
    finally:
        os.close(folder)
    with suppress(FileNotFoundError, NotADirectoryError):
        os.rmdir(name, dir_fd=above)


def _unlink(folder: int, name: str) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(name, dir_fd=folder)


def _entries(path: str, root: str | None) -> list[tuple[str, os.stat_result]]:
    """Return folders, files, and links that are not to folders, with their own status."""
    found = []
    with suppress(FileNotFoundError, NotADirectoryError):
        opened = _open_folder(path, root)
        try:
            with os.scandir(opened) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):  # a file may vanish after it was listed
                        status = entry.stat(follow_symlinks=False)
                        kind = stat.S_IFMT(status.st_mode)
                        if kind in (stat.S_IFREG, stat.S_IFDIR) or (
                            kind == stat.S_IFLNK and not _leads_to_folder(entry)
                        ):
                            found.append((entry.name, status))
        finally:
            if isinstance(opened, int):
                os.close(opened)
    return found


def _leads_to_folder(link: os.DirEntry[str]) -> bool:
    try:
        return link.is_dir()
    except OSError:  # a circle of links, or too long a path
        return False


def _open_folder(path: str, root: str | None) -> int | str:
    """Return a descriptor with which a folder can be listed, or its path where the system cannot do that."""
    with open_place(path, root) as place:
        if place.folder is None:
            if path != root and place.is_link():
                raise _link_error(path, root)
            return path
        # the user gave the path of the root, which may be a link
        flags = _READ if path == root or not place.name else _READ | _NO_LINK
        try:
            return os.open(place.name or "/", flags, dir_fd=place.folder)
        except OSError as error:
            if error.errno in _LINK_ERRORS and place.is_link():
                raise _link_error(path, root) from error
            raise


def _name_whole(error: BaseException | None, folder: str) -> None:
    """Complete the names of files in an error of the system, which are relative to an open folder."""
    if isinstance(error, OSError):
        for attribute in ("filename", "filename2"):
            name = getattr(error, attribute)
            if isinstance(name, str) and not os.path.isabs(name):
                setattr(error, attribute, f"{folder}/{name}")


def _split(path: str, root: str | None) -> tuple[str, Sequence[str]]:
    """Return the folder that counts as the root of a path, and the names below it."""
    if root is None or path == root:
        start, _, name = path.rpartition("/")
        return start, (name,)
    if path.startswith(f"{root}/"):
        start = root
    else:
        common = 0
        ours, theirs = root.split("/"), path.split("/")[:-1]
        while common < min(len(ours), len(theirs)) and ours[common] == theirs[common]:
            common += 1
        start = "/".join(theirs[:common])
    names = path[len(start) + 1 :].split("/")
    if any(name in ("", ".", "..") for name in names):
        raise UnsafePathError(f"{path!r} is not a plain path below {start or '/'}: it has a segment '', '.' or '..'")
    return start, names


def _enter(folder: int, name: str, path: str, root: str | None, *, create: bool) -> int:
    """Return a descriptor of a folder in another one."""
    try:
        return os.open(name, _PASS | _NO_LINK, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    except OSError as error:
        if error.errno in _LINK_ERRORS and _is_link(name, folder):
            raise _link_error(path, root) from error
        raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
        forget_folders(path)
    return _enter(folder, name, path, root, create=False)


def _check_links(start: str, names: Sequence[str]) -> None:
    path = start
    for name in names:
        path = f"{path}/{name}"
        if _is_link(path, None):
            raise _link_error(path, start)


def _is_link(name: str, folder: int | None) -> bool:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    # junctions of Windows lead elsewhere as links do
    return stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) == getattr(
        stat, "IO_REPARSE_TAG_MOUNT_POINT", -1
    )


def _link_error(path: str, root: str | None) -> UnsafePathError:
    below = f" in the dataset {root}" if root is not None else ""
    return UnsafePathError(
        f"{path}{below} is a symbolic link, and files behind it may belong to something else, so they are neither "
        "changed nor copied; put the folder or file itself in its place (files elsewhere belong in base paths)"
    )


def _depth_error(path: str) -> UnsafePathError:
    return UnsafePathError(f"{path[:200]}... lies in more than {_MAX_DEPTH} folders; no dataset is that deep")


def _unless_missing(error: BaseException) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
