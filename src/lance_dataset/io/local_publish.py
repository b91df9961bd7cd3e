"""Local files put in place atomically: new content or a copy, with or without replacing an existing file."""

from __future__ import annotations

import ctypes
import errno
import io
import os
import uuid
from contextlib import suppress

from lance_dataset.errors import AlreadyExistsError, UnsupportedError
from lance_dataset.io.durable import make_folders, settle_folder

__all__ = ["publish", "publish_copy", "publish_new"]

#: Errors of `link` if the file system has no hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL})
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_COPY_STEP = 8 << 20


def publish(path: str, data: bytes, *, durable: bool) -> None:
    """Write a file under a temporary name and move it to `path`, replacing an existing file."""
    temporary = _write_temporary(path, data, durable=durable)
    try:
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise
    if durable:
        settle_folder(os.path.dirname(path))


def publish_new(path: str, data: bytes, *, durable: bool) -> None:
    """Write a file under a temporary name and rename it to `path` unless that exists.

    Raises
    ------
    AlreadyExistsError
        `path` exists.
    UnsupportedError
        The file system can neither link nor rename without replacing.
    """
    temporary = _write_temporary(path, data, durable=durable)
    try:
        _link_new(temporary, path)
    finally:
        _remove(temporary)
    if durable:
        settle_folder(os.path.dirname(path))


def publish_copy(descriptor: int, path: str, *, durable: bool) -> None:
    """Copy an open file of any size under a temporary name and move it to `path`, replacing an existing file.

    Parameters
    ----------
    descriptor
        The file to copy, at its start; it is closed.
    path
        The new file; its folders are created.
    durable
        True for returning when the copy and its name are on the disk.
    """
    folder = os.path.dirname(path)
    temporary = _temporary_name(folder)
    with os.fdopen(descriptor, "rb", buffering=0) as source:
        make_folders(folder)
        try:
            target = os.open(temporary, _NEW_FILE, 0o666)
            try:
                _copy(source, target)
                if durable:
                    os.fsync(target)
            finally:
                os.close(target)
            os.replace(temporary, path)
        except BaseException:
            _remove(temporary)
            raise
    if durable:
        settle_folder(folder)


def _temporary_name(folder: str) -> str:
    return f"{folder}/.tmp_{uuid.uuid4().hex}"


def _copy(source: io.FileIO, target: int) -> None:
    while content := source.read(_COPY_STEP):
        _write_all(target, content)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _write_temporary(path: str, data: bytes, *, durable: bool) -> str:
    folder = os.path.dirname(path)
    temporary = _temporary_name(folder)
    try:
        descriptor = os.open(temporary, _NEW_FILE, 0o666)
    except FileNotFoundError:
        make_folders(folder)
        descriptor = os.open(temporary, _NEW_FILE, 0o666)
    try:
        try:
            _write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        _remove(temporary)
        raise
    return temporary


def _link_new(temporary: str, path: str) -> None:
    """Give the file the name `path`; the temporary name may remain."""
    try:
        if hasattr(os, "link"):
            os.link(temporary, path)
            return
    except FileExistsError as error:
        if os.path.exists(path) and _same_file(temporary, path):
            # a network file system repeated this request after its answer got lost
            return
        raise AlreadyExistsError(f"{path} exists already") from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    _rename_new(temporary, path)


def _same_file(first: str, second: str) -> bool:
    try:
        return os.path.samefile(first, second)
    except OSError:
        return False


def _rename_new(temporary: str, path: str) -> None:
    """Rename without replacing, for file systems that have no hard links."""
    if os.name == "nt":
        try:
            os.rename(temporary, path)
        except FileExistsError as error:
            raise AlreadyExistsError(f"{path} exists already") from error
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "renameat2"):
        source, target = os.fsencode(temporary), os.fsencode(path)
        failed = libc.renameat2(_AT_FDCWD, source, _AT_FDCWD, target, ctypes.c_uint(_RENAME_NOREPLACE))
    elif hasattr(libc, "renamex_np"):
        # RENAME_EXCL of macOS.
        failed = libc.renamex_np(os.fsencode(temporary), os.fsencode(path), ctypes.c_uint(4))
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


def _remove(temporary: str) -> None:
    with suppress(OSError):
        os.unlink(temporary)
