"""Object store of the local file system."""

# ruff: noqa: D102 - the methods are documented in lance_dataset.io.base

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from lance_dataset.errors import (
    AlreadyExistsError,
    CorruptFileError,
    InvalidInputError,
    LanceError,
    MissingFileError,
    UnsafePathError,
)
from lance_dataset.io.anchored import check_place, open_file, open_place, remove_file, remove_tree, walk_files
from lance_dataset.io.base import InputFile, ObjectInfo, ObjectStore, OutputFile, Waiter
from lance_dataset.io.durable import forget_folders, sync_folder
from lance_dataset.io.local_input import MappedInput, PlainInput
from lance_dataset.io.local_output import LocalOutput, write_together
from lance_dataset.io.local_publish import publish, publish_copy, publish_new
from lance_dataset.io.mounts import is_network_file
from lance_dataset.io.option_values import lenient_bool
from lance_dataset.limits import check_file_size

__all__ = ["LocalStore"]

#: Errors of `open` that mean "the file does not exist" for a path from a manifest.
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EISDIR})
#: Errors of `open` for writing if there is no file that could be written in place: none at all, or a pipe.
_NOT_THERE = frozenset({errno.ENOENT, errno.ENXIO})
_READ_STEP = 1 << 20
#: Errors of `mmap` for files that can still be read.
_UNMAPPABLE = frozenset({errno.ENOMEM, errno.ENODEV})
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
#: Opening a pipe must not wait for its other end.
_READING = os.O_RDONLY | _BINARY | getattr(os, "O_NONBLOCK", 0)
_WRITING = os.O_WRONLY | _BINARY | getattr(os, "O_NONBLOCK", 0)


#: Files up to which it is checked whether they changed.
_MOST_CHECKED = 1 << 10


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _is_same(path: str, known: tuple[int, int, int, int]) -> bool:
    try:
        return _identity(os.stat(path)) == known
    except OSError:
        return False


class LocalStore(ObjectStore):
    """Files below slash-separated absolute paths.

    Parameters
    ----------
    mmap
        True for memory mapping files. With None the environment variable ``LANCE_MMAP`` decides (``0`` for plain
        reads); if it is not set, a file is mapped unless it lies on a network file system.
    fsync
        True for syncing files and directories to the disk before a write returns.
    """

    def __init__(self, *, mmap: bool | None = None, fsync: bool = True) -> None:
        if mmap is None and (text := os.environ.get("LANCE_MMAP")):
            mmap = lenient_bool(text) is not False
        self._mmap = mmap
        self._fsync = fsync

    def open_input(self, path: str, size: int | None = None) -> InputFile:
        return self._opened(path, _open_regular(path), size)

    def open_own(self, path: str, size: int | None = None) -> InputFile:
        return self._opened(path, self._open_own(path), size)

    def _note(self, path: str, status: os.stat_result) -> None:
        opened = self.statistics.opened
        if len(opened) <= _MOST_CHECKED:  # with one more, nothing is said of them
            opened[path] = _identity(status)

    def is_unchanged(self) -> bool:
        """Return True if all files that were opened for reading are still the same, as far as they were few."""
        opened = list(self.statistics.opened.items())
        return len(opened) <= _MOST_CHECKED and all(_is_same(path, known) for path, known in opened)

    def check_own(self, path: str) -> None:
        check_place(_checked(path).rstrip("/"), self.table_root)

    def _opened(self, path: str, opened: tuple[int, os.stat_result], size: int | None) -> InputFile:
        descriptor, status = opened
        self._note(path, status)
        try:
            if size is not None and size != status.st_size:
                raise CorruptFileError(f"{path}: has {status.st_size} bytes, but its manifest says {size}")
            is_networked = is_network_file(descriptor, status.st_dev)
            self.statistics.is_networked |= is_networked
            remote = self._mmap is not True and is_networked
            if self._mmap or (self._mmap is None and not remote):
                try:
                    return MappedInput(path, descriptor, status.st_size, self.statistics)
                except OSError as error:
                    # too many mappings for a process, or a file system without mappings
                    if self._mmap or error.errno not in _UNMAPPABLE:
                        raise
            made = PlainInput(path, descriptor, status.st_size, self.statistics, remote=remote)
            descriptor = -1
            return made
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _open_own(self, path: str) -> tuple[int, os.stat_result]:
        """Return descriptor and status of a regular file that is not reached through a link."""
        return _regular(path, lambda: open_file(_checked(path), self.table_root, _READING))

    def open_output(self, path: str) -> OutputFile:
        with _kinds_checked(path, self.table_root):
            return LocalOutput(_checked(path), self.table_root, durable=self._fsync, counter=self.statistics)

    def put_new(self, files: Iterable[tuple[str, bytes]], wait: Waiter | None = None) -> None:
        with _kinds_checked(self.table_root or "", self.table_root):
            write_together(
                ((_checked(path), data) for path, data in files),
                self.table_root,
                durable=self._fsync,
                counter=self.statistics,
                wait=wait,
            )

    def read(self, path: str) -> bytes:
        descriptor, status = _open_regular(path)
        self._note(path, status)
        try:
            check_file_size(status.st_size, path)
            # ask for one byte more than expected: if it is missing, this is the whole content
            content = os.read(descriptor, status.st_size + 1)
            if len(content) != status.st_size:
                content += _read_rest(descriptor)
        finally:
            os.close(descriptor)
        self.statistics.add_read(len(content))
        return content

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        with _kinds_checked(path, self.table_root):
            publish(_checked(path), self.table_root, data, durable=durable and self._fsync)
        self.statistics.add_write(len(data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        with _kinds_checked(path, self.table_root):
            publish_new(_checked(path), self.table_root, data, durable=self._fsync)
        self.statistics.add_write(len(data))

    def put_spare(self, path: str, data: bytes) -> None:
        with _kinds_checked(path, self.table_root):
            publish_new(_checked(path), self.table_root, data, durable=False)
        self.statistics.add_write(len(data))

    def put_hint(self, path: str, data: bytes) -> None:
        # in place: some file systems write a file to the disk when another one is renamed over it
        try:
            descriptor = open_file(_checked(path), self.table_root, _WRITING)
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise
            self.put(path, data, durable=False)
            return
        try:
            status = os.fstat(descriptor)
            # a file with another name may belong to something else
            in_place = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            if in_place:
                self.statistics.add_write(os.write(descriptor, data))
                if status.st_size > len(data):
                    os.ftruncate(descriptor, len(data))
        finally:
            os.close(descriptor)
        if not in_place:
            self.put(path, data, durable=False)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        folder = _checked(prefix).rstrip("/")
        try:
            entries = os.scandir(folder or "/")
        except OSError as error:
            if error.errno in _MISSING:
                return
            raise
        with entries:
            for entry in entries:
                status = _status(entry)
                if status is not None and stat.S_ISREG(status.st_mode):
                    yield ObjectInfo(f"{folder}/{entry.name}", status.st_size, status.st_mtime)

    def list_names(self, prefix: str) -> Iterator[str]:
        try:
            return iter(os.listdir(_checked(prefix).rstrip("/") or "/"))
        except OSError as error:
            if error.errno in _MISSING:
                return iter(())
            raise

    def list_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        for path, status in walk_files(_checked(prefix).rstrip("/"), self.table_root):
            yield ObjectInfo(path, status.st_size, status.st_mtime)

    def waits(self, prefix: str) -> bool:
        try:
            descriptor = os.open(_checked(prefix), os.O_RDONLY | _BINARY)
        except OSError:  # there is nothing to wait for, or a system that does not open folders
            return False
        try:
            return is_network_file(descriptor, os.fstat(descriptor).st_dev)
        finally:
            os.close(descriptor)

    def exists(self, path: str) -> bool:
        return os.path.isfile(_checked(path))

    def modified(self, path: str) -> float:
        try:
            return os.stat(_checked(path)).st_mtime
        except (FileNotFoundError, NotADirectoryError) as error:
            raise MissingFileError(f"{path} does not exist") from error

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError, NotADirectoryError):
            with _kinds_checked(path, self.table_root):
                remove_file(_checked(path), self.table_root)

    def delete_tree(self, prefix: str) -> None:
        folder = _checked(prefix).rstrip("/")
        with _kinds_checked(folder, self.table_root):
            remove_tree(folder, self.table_root)
        forget_folders(folder)
        if self._fsync:
            with suppress(FileNotFoundError):
                sync_folder(os.path.dirname(folder))

    def delete_empty_folder(self, prefix: str) -> None:
        folder = _checked(prefix).rstrip("/")
        with suppress(OSError), open_place(folder, self.table_root) as place:
            os.rmdir(place.name, dir_fd=place.folder)
            forget_folders(folder)

    def sync(self, prefix: str) -> None:
        if self._fsync:
            with suppress(FileNotFoundError, NotADirectoryError):
                sync_folder(_checked(prefix).rstrip("/"))

    def copy(self, source: str, target: str, origin: ObjectStore | None = None) -> None:
        opener = origin if isinstance(origin, LocalStore) else self
        descriptor, _ = opener._open_own(source)
        with _kinds_checked(target, self.table_root):
            publish_copy(descriptor, _checked(target), self.table_root, durable=self._fsync)

    def uri(self, path: str) -> str:
        return path


def _checked(path: str) -> str:
    if "\0" in path or not os.path.isabs(path or "/"):
        raise InvalidInputError(f"{path!r} is not a path of the local store: it must be absolute and without NUL")
    return path


@contextmanager
def _kinds_checked(path: str, root: str | None = None) -> Iterator[None]:
    """Report a file in place of a folder, a folder in place of a file, and the like as damage of the dataset.

    Other errors name the path. If the root of the table or a folder above it is a file, there is no dataset.
    """
    try:
        yield
    except (LanceError, FileNotFoundError):
        raise
    except OSError as error:
        if error.errno not in _MISSING:
            error.filename = error.filename or path
            raise
        file = None if root is None else _file_in_path(root)
        if file is not None:
            raise AlreadyExistsError(
                f"{file} is a file, and a dataset needs a folder of its own: choose another path, or remove the file"
            ) from error
        place = error.filename2 or error.filename or path
        raise CorruptFileError(
            f"{place}: {error.strerror}; a file or folder of the dataset is of the wrong kind"
        ) from error


def _file_in_path(root: str) -> str | None:
    """Return the root or the folder above it that is a file."""
    while root and not os.path.isdir(root):
        if os.path.lexists(root):
            return root
        root = root.rpartition("/")[0]
    return None


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Return the status of a listed file, None if it vanished meanwhile or is a link that leads nowhere."""
    try:
        return entry.stat()
    except OSError as error:
        if error.errno in _MISSING:
            return None
        raise


def _read_rest(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, _READ_STEP):
        parts.append(part)
    return b"".join(parts)


def _open_regular(path: str) -> tuple[int, os.stat_result]:
    """Return descriptor and status of a regular file; anything else is reported as missing."""
    return _regular(path, lambda: os.open(_checked(path), _READING))


def _regular(path: str, opened: Callable[[], int]) -> tuple[int, os.stat_result]:
    try:
        descriptor = opened()
    except UnsafePathError:
        raise
    except OSError as error:
        if error.errno in _MISSING:
            raise MissingFileError(f"{path} does not exist") from error
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise MissingFileError(f"{path} is not a regular file")
    return descriptor, status
