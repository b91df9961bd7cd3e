"""Interface of an object store, through which the rest of the package uses storage."""

from __future__ import annotations

import abc
import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias, TypeVar

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, LanceError, MissingFileError
from lance_dataset.io.statistics import IOCounter
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lancecodec.blocks import FileBlocks

__all__ = ["InputFile", "ObjectInfo", "ObjectStore", "OutputFile", "Waiter", "is_plain_path", "safe_join"]

_Store = TypeVar("_Store", bound="ObjectStore")


@dataclass(frozen=True)
class ObjectInfo:
    """Object in a listing.

    Attributes
    ----------
    path
        Full path of the object inside its store.
    size
        Size in bytes.
    modified
        Modification time, seconds since the epoch.
    """

    path: str
    size: int
    modified: float

    @property
    def name(self) -> str:
        """Last segment of the path."""
        return self.path.rsplit("/", 1)[-1]


class InputFile(Protocol):
    """Immutable object, opened for ranged reads. Safe to use from several threads."""

    @property
    def path(self) -> str:
        """Path of the object, for error messages."""

    @property
    def size(self) -> int:
        """Size in bytes, fixed at open."""

    @property
    def mapped(self) -> pa.Buffer | None:
        """Buffer of the whole object, without a copy; None if it is not memory mapped."""

    @property
    def is_remote(self) -> bool:
        """True if each read waits for another machine, so that many reads should run at the same time."""

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Return exactly `length` bytes at `offset`.

        Raises
        ------
        CorruptFileError
            The range lies outside the object.
        """

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        """Return one buffer per (offset, length) pair; near ranges may be fetched together."""

    def scatter(self, scattered: bool) -> None:
        """Set whether readers announce large reads with `will_need`.

        If they do, the system loads only those parts of a mapped file that are announced or touched. Otherwise it also
        loads the surroundings, for readers that announce nothing: up to megabytes for one row.
        """

    def will_need(self, ranges: Sequence[tuple[int, int]]) -> bool:
        """Announce that these (offset, length) ranges inside the object are going to be read.

        The memory pages of a mapped file are loaded in the meantime.

        Returns
        -------
        bool
            True if something has to be loaded, judging by a sample.
        """

    def hold(self, ranges: Sequence[tuple[int, int]]) -> Callable[[], None] | None:
        """Fetch ranges with few requests, and read from memory inside of them until the returned function is called.

        Return None and fetch nothing if the file is not on another machine.
        """

    def holds(self, offset: int, length: int) -> bool:
        """Return True if `hold` keeps a range in memory."""

    def blocks(self) -> FileBlocks | None:
        """Return memory that keeps blocks of the file for random access, None if the file is mapped.

        Also None if the system does not support it, or a limit does not allow it.
        """

    def discard(self, offset: int, length: int) -> None:
        """Release memory that only caches these bytes, which will not be read again soon. They stay readable."""

    def close(self) -> None:
        """Release the handle. Buffers already returned stay valid."""


class OutputFile(Protocol):
    """New object that is written from start to end."""

    def write(self, data: bytes | memoryview | pa.Buffer) -> None:
        """Append bytes."""

    def write_many(self, parts: Sequence[bytes | memoryview | pa.Buffer]) -> None:
        """Append several buffers in one call (one vectored system call if the store has it)."""

    def tell(self) -> int:
        """Return the number of bytes written so far."""

    def close(self) -> None:
        """Finish the object: when this returns, it is complete and durable."""

    def abort(self) -> None:
        """Drop the object and leave nothing behind. Do nothing after `close`."""


#: Makes all of some calls, and returns when they have ended. Raises the error of one that failed.
Waiter: TypeAlias = Callable[[Sequence[Callable[[], None]]], object]


class ObjectStore(abc.ABC):
    """Flat objects under slash-separated paths. Every path is absolute inside the store."""

    #: True if listings are ordered by name.
    lists_in_order = False
    #: True if every object is on another machine.
    is_remote = False
    #: Root of the table that the store was opened for, None if it is not known. Changes and copies of files below it do
    #: not follow links.
    table_root: str | None = None
    #: Prefixes of the base paths that the table may have, None for any.
    trusted_bases: tuple[str, ...] | None = None

    @cached_property
    def statistics(self) -> IOCounter:
        """Counts of reads and writes through this object, and through copies that share the counts."""
        return IOCounter()

    def __copy__(self: _Store) -> _Store:
        copied = object.__new__(type(self))
        copied.__dict__ |= self.__dict__
        return copied

    def waits(self, prefix: str) -> bool:
        """Return True if reads below a folder may wait for another machine, so that it pays to do several at a time."""
        return self.is_remote

    def for_table(self: _Store, root: str, trusted_bases: tuple[str, ...] | None = None) -> _Store:
        """Return a store of the same objects, with the same counts, that knows the root and the trust of a table."""
        _ = self.statistics  # made here, so that both have it
        store = copy.copy(self)
        store.table_root = root
        store.trusted_bases = trusted_bases
        return store

    @abc.abstractmethod
    def open_input(self, path: str, size: int | None = None) -> InputFile:
        """Open an object for reading.

        Parameters
        ----------
        path
            Path of the object.
        size
            Expected size in bytes, if known (from a manifest).

        Raises
        ------
        MissingFileError
            The object does not exist.
        CorruptFileError
            `size` is given and differs from the object's size.
        """

    def open_whole(self, path: str, size: int) -> tuple[InputFile, Callable[[], None] | None]:
        """Open an object for reading, and fetch all of it at once if that needs no more requests.

        Parameters and errors are those of `open_input`.

        Returns
        -------
        tuple
            The object; and the function that ends `InputFile.hold` for its content, None if that was not fetched.
        """
        return self.open_input(path, size), None

    def open_own(self, path: str, size: int | None = None) -> InputFile:
        """Open an object that is to be copied, like `open_input`, but not through a link below the root of the table.

        Raises
        ------
        UnsafePathError
            The path is a link or leads through one.
        """
        return self.open_input(path, size)

    def check_own(self, path: str) -> None:
        """Check that a file or folder below the root of the table is not reached through a link; it need not exist.

        Raises
        ------
        UnsafePathError
            The path is a link or leads through one.
        """
        return

    @abc.abstractmethod
    def open_output(self, path: str) -> OutputFile:
        """Start a new object. It replaces none, as names are unique by construction (UUIDs)."""

    def put_new(self, files: Iterable[tuple[str, bytes]], wait: Waiter | None = None) -> None:
        """Write small objects durably, together where that is faster. If one fails, none of them remains.

        Parameters
        ----------
        files
            Paths and contents. They replace no objects, as names are unique by construction.
        wait
            Makes calls that wait for a disk, several at the same time, and returns when all have ended; None for one
            after the other.
        """
        written: list[str] = []
        try:
            for path, data in files:
                output = self.open_output(path)
                try:
                    output.write(data)
                    output.close()
                except BaseException:
                    output.abort()
                    raise
                written.append(path)
        except BaseException:
            for path in written:
                with suppress(LanceError, OSError):  # what failed first is reported, and the others are removed
                    self.delete(path)
            raise

    @abc.abstractmethod
    def read(self, path: str) -> bytes:
        """Return the whole content of a small object. Raises MissingFileError."""

    @abc.abstractmethod
    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Write a small object atomically, replacing an existing one; durable unless `durable` is False."""

    @abc.abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write a small object atomically and durably unless it exists.

        A reader sees the whole object or none; of several concurrent callers exactly one succeeds.

        Raises
        ------
        AlreadyExistsError
            The object exists.
        """

    def put_spare(self, path: str, data: bytes) -> None:
        """Write a small object with a copy of information in another one, unless it exists.

        Like `put_if_absent`, but where durability costs time, a power failure may remove the object or leave it empty.
        """
        self.put_if_absent(path, data)

    def put_hint(self, path: str, data: bytes) -> None:
        """Write a small object that nobody relies on, replacing an existing one, as cheaply as possible.

        It is not durable, and a reader may see it half written.
        """
        self.put(path, data, durable=False)

    @abc.abstractmethod
    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Iterate over the objects directly in the folder `prefix`, in any order; empty if it does not exist."""

    def list_names(self, prefix: str) -> Iterator[str]:
        """Iterate over the names directly in the folder `prefix`; may be cheaper than `list`, may include folders."""
        return (info.name for info in self.list(prefix))

    @abc.abstractmethod
    def list_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        """Iterate over the objects below the folder `prefix`, in any order; empty if it does not exist.

        Links to folders are not followed, and links to files are listed as such.

        Raises
        ------
        UnsafePathError
            The folder is a link below the root of the table, or lies behind one.
        """

    @abc.abstractmethod
    def exists(self, path: str) -> bool:
        """Return whether the object exists."""

    def modified(self, path: str) -> float:
        """Return when an object was last written, in seconds since the epoch, by the clock of the store.

        Raises
        ------
        MissingFileError
            The object does not exist.
        """
        for info in self.list(path.rpartition("/")[0]):
            if info.path == path:
                return info.modified
        raise MissingFileError(f"{self.uri(path)} does not exist")

    @abc.abstractmethod
    def delete(self, path: str) -> None:
        """Remove an object; do nothing if it does not exist."""

    @abc.abstractmethod
    def delete_tree(self, prefix: str) -> None:
        """Remove every object below the folder `prefix`, and the folder. Links are removed as such.

        Raises
        ------
        UnsafePathError
            The folder is a link below the root of the table, or lies behind one.
        """

    def delete_empty_folder(self, prefix: str) -> None:
        """Remove the folder `prefix` if it exists and is empty, in stores where folders are more than parts of names.

        No writer may be about to use it.
        """
        return

    def sync(self, prefix: str) -> None:
        """Make removals of objects directly in the folder `prefix` durable.

        On a local disk `delete` alone is not durable. Call this before a step that relies on the removals. Other stores
        do nothing.
        """
        return

    def copy(self, source: str, target: str, origin: ObjectStore | None = None) -> None:
        """Copy an object inside the store; an existing target is replaced atomically and durably.

        Parameters
        ----------
        source, target
            Paths of the object and of the copy.
        origin
            Store of another table, with the same objects, through which `source` is opened; None for this one.

        Raises
        ------
        MissingFileError
            The object does not exist.
        UnsafePathError
            A path leads through a link below the root of its table.
        """
        self.put(target, self.read(source))

    @abc.abstractmethod
    def uri(self, path: str) -> str:
        """Return the URI of `path`, as a user would pass it to open it."""


def is_plain_path(relative: str) -> bool:
    """Return True if a path has no backslash, NUL, ``.``, ``..`` or empty segment, so that it stays below a folder."""
    return "\\" not in relative and "\0" not in relative and not {"", ".", ".."} & set(relative.split("/"))


def safe_join(root: str, relative: str, *, what: str = "path") -> str:
    """Join a path read from a file of the dataset to the folder that it has to stay in.

    Parameters
    ----------
    root
        Folder in the store, without trailing slash.
    relative
        Slash-separated path below `root`, as found in a manifest or another file.
    what
        Noun for the path, for the error message.

    Raises
    ------
    CorruptFileError
        `relative` could leave `root`: it is empty or absolute, or has empty, ``.`` or ``..`` segments, a backslash or a
        NUL.
    """
    if not is_plain_path(relative):
        raise CorruptFileError(
            f"{what} {relative!r} below {root!r} is not a plain relative path (no '..', '\\', NUL or empty segments); "
            "the dataset may not refer to files outside its folder"
        )
    return f"{root}/{relative}"
