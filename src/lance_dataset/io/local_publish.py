"""Local files put in place atomically: new content or a copy, with or without replacing an existing file."""

from __future__ import annotations

import ctypes
import errno
import io
import os
import sys
import uuid
from contextlib import suppress

from lance_dataset.errors import AlreadyExistsError, UnsupportedError
from lance_dataset.io.anchored import Place, open_place
from lance_dataset.io.durable import settle_folder

__all__ = ["publish", "publish_copy", "publish_new"]

#: Errors of `link` if the file system has no hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL})
#: The current folder, for paths that are absolute anyway.
_AT_FDCWD = -2 if sys.platform == "darwin" else -100
_RENAME_NOREPLACE = 1
#: The same flag of macOS.
_RENAME_EXCL = 4
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_COPY_STEP = 8 << 20
#: Arguments of `link` for a link in the place of the temporary file not to be followed.
_LINK_ITSELF: dict[str, bool] = (
    {"follow_symlinks": False} if getattr(os, "link", 0) in os.supports_follow_symlinks else {}
)


def publish(path: str, root: str | None, data: bytes, *, durable: bool) -> None:
    """Write a file under a temporary name and move it to `path`, replacing an existing file.

    Parameters
    ----------
    path
        The file; its folders are created.
    root
        Root of the table, below which no links are followed; None for any path.
    data
        Its content.
    durable
        True for returning when the file and its name are on the disk.
    """
    with open_place(path, root, create=True) as place:
        temporary = _write_temporary(place, data, durable=durable)
        try:
            _replace(place, temporary)
        except BaseException:
            _remove(place, temporary)
            raise
    if durable:
        settle_folder(os.path.dirname(path))


def publish_new(path: str, root: str | None, data: bytes, *, durable: bool) -> None:
    """Write a file under a temporary name and rename it to `path` unless that exists. Parameters: see `publish`.

    Raises
    ------
    AlreadyExistsError
        `path` exists.
    UnsupportedError
        The file system can neither link nor rename without replacing.
    """
    with open_place(path, root, create=True) as place:
        temporary = _write_temporary(place, data, durable=durable)
        try:
            _link_new(place, temporary, path)
        finally:
            _remove(place, temporary)
    if durable:
        settle_folder(os.path.dirname(path))


def publish_copy(descriptor: int, path: str, root: str | None, *, durable: bool) -> None:
    """Copy an open file of any size under a temporary name and move it to `path`, replacing an existing file.

    Parameters
    ----------
    descriptor
        The file to copy, at its start; it is closed.
    path, root, durable
        The new file, see `publish`.
    """
    with os.fdopen(descriptor, "rb", buffering=0) as source, open_place(path, root, create=True) as place:
        temporary = _temporary_name(place)
        try:
            target = os.open(temporary, _NEW_FILE, 0o666, dir_fd=place.folder)
            try:
                _copy(source, target)
                if durable:
                    os.fsync(target)
            finally:
                os.close(target)
            _replace(place, temporary)
        except BaseException:
            _remove(place, temporary)
            raise
    if durable:
        settle_folder(os.path.dirname(path))


def _temporary_name(place: Place) -> str:
    return place.beside(f".tmp_{uuid.uuid4().hex}")


def _replace(place: Place, temporary: str) -> None:
    os.replace(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)


def _copy(source: io.FileIO, target: int) -> None:
    while content := source.read(_COPY_STEP):
        _write_all(target, content)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _write_temporary(place: Place, data: bytes, *, durable: bool) -> str:
    temporary = _temporary_name(place)
    descriptor = os.open(temporary, _NEW_FILE, 0o666, dir_fd=place.folder)
    try:
        try:
            _write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        _remove(place, temporary)
        raise
    return temporary


def _link_new(place: Place, temporary: str, path: str) -> None:
    """Give the file the name of the place; the temporary name may remain."""
    try:
        if hasattr(os, "link"):
            os.link(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder, **_LINK_ITSELF)
            return
    except FileExistsError as error:
        if _same_file(place, temporary):
            # a network file system repeated this request after its answer got lost
            return
        raise AlreadyExistsError(f"{path} exists already") from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    _rename_new(place, temporary, path)


def _same_file(place: Place, temporary: str) -> bool:
    try:
        statuses = [os.stat(name, dir_fd=place.folder, follow_symlinks=False) for name in (temporary, place.name)]
    except OSError:
        return False
    return os.path.samestat(*statuses)


def _rename_new(place: Place, temporary: str, path: str) -> None:
    """Rename without replacing, for file systems that have no hard links."""
    if os.name == "nt":
        try:
            os.rename(temporary, place.name)
        except FileExistsError as error:
            raise AlreadyExistsError(f"{path} exists already") from error
        return
    libc = ctypes.CDLL(None, use_errno=True)
    folder = _AT_FDCWD if place.folder is None else place.folder
    source, target = os.fsencode(temporary), os.fsencode(place.name)
    if hasattr(libc, "renameat2"):
        failed = libc.renameat2(folder, source, folder, target, ctypes.c_uint(_RENAME_NOREPLACE))
    elif hasattr(libc, "renameatx_np"):
        failed = libc.renameatx_np(folder, source, folder, target, ctypes.c_uint(_RENAME_EXCL))
    else:
        failed, code = -1, errno.ENOSYS
        ctypes.set_errno(code)
    if not failed:
        return
    code = ctypes.get_errno()
    if code == errno.EEXIST:
        raise AlreadyExistsError(f"{path} exists already")
    if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        raise UnsupportedError(
            f"the file system of {path} can neither create hard links nor rename without replacing, so a commit there "
            "cannot be made safe against other writers; keep the dataset on another file system"
        )
    raise OSError(code, os.strerror(code), path)


def _remove(place: Place, temporary: str) -> None:
    with suppress(OSError):
        os.unlink(temporary, dir_fd=place.folder)
