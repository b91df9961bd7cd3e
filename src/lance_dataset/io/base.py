"""The interface of an object store: what the rest of the package may ask of storage, and nothing more."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from lance_dataset.io.statistics import IOCounter

if TYPE_CHECKING:
    from lance_dataset.io.external.base import ExternalManifests

__all__ = ["CommitLock", "InputFile", "ObjectInfo", "ObjectStore", "OutputFile"]

#: What a user gives where the store cannot create an object only if it is absent.
CommitLock = Callable[[int], AbstractContextManager[Any]]


@dataclass(frozen=True)
class ObjectInfo:
    """One object of a listing.

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
    """An immutable object opened for ranged reads. Safe to use from several threads."""

    @property
    def path(self) -> str:
        """Path of the object, for error messages."""

    @property
    def size(self) -> int:
        """Size in bytes, fixed at open."""

    @property
    def mapped(self) -> pa.Buffer | None:
        """The whole object as one zero-copy buffer, or None where it is not memory mapped."""

    @property
    def is_remote(self) -> bool:
        """Whether each read waits for the answer of another machine, so that many at a time are best."""

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Return exactly `length` bytes at `offset`.

        Raises
        ------
        CorruptFileError
            The range is not inside the object.
        """

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        """Return one buffer per (offset, length); near ranges may be fetched together."""

    def scatter(self, scattered: bool) -> None:
        """Say whether readers announce with `will_need` what they read much of at once.

        Of a mapped file then nothing is loaded but what is announced or touched. Without this call the system loads
        what lies around as well, for readers that announce nothing: up to megabytes for one row.
        """

    def will_need(self, ranges: Sequence[tuple[int, int]]) -> bool:
        """Say that these (offset, length), inside of the object, are going to be read.

        What is slow to reach and need not be asked for, as the memory pages of a mapped file, is loaded meanwhile.

        Returns
        -------
        bool
            Whether that is so for any of it, as far as a sample tells.
        """

    def discard(self, offset: int, length: int) -> None:
        """Say that these bytes were used and are not kept: memory that only caches them may go. They stay readable."""

    def close(self) -> None:
        """Release the handle. Buffers already returned stay valid."""


class OutputFile(Protocol):
    """A new object being written from its start to its end."""

    def write(self, data: bytes | memoryview | pa.Buffer) -> None:
        """Append bytes."""

    def write_many(self, parts: Sequence[bytes | memoryview | pa.Buffer]) -> None:
        """Append several buffers in one call (one vectored system call where the store has it)."""

    def tell(self) -> int:
        """Bytes written so far."""

    def close(self) -> None:
        """Finish: when this returns the object is complete and durable."""

    def abort(self) -> None:
        """Drop the object; nothing stays behind. Does nothing after `close`."""


class ObjectStore(abc.ABC):
    """Flat objects under slash-separated paths. Every path is absolute inside the store."""

    #: Whether listings come in the order of the names.
    lists_in_order = False
    #: Says which manifest is which version, where the objects alone do not.
    external_manifests: ExternalManifests | None = None
    #: Called with a version number, returns a context in which no other process commits that version.
    commit_lock: CommitLock | None = None

    @cached_property
    def statistics(self) -> IOCounter:
        """Counts of what is read and written through this object, and through copies that share them."""
        return IOCounter()

    @abc.abstractmethod
    def open_input(self, path: str, size: int | None = None) -> InputFile:
        """Open an object for reading.

        Parameters
        ----------
        path
            The object.
        size
            Expected size in bytes, if known (from a manifest).

        Raises
        ------
        MissingFileError
            There is no such object.
        CorruptFileError
            `size` is given and differs from the object's size.
        """

    @abc.abstractmethod
    def open_output(self, path: str) -> OutputFile:
        """Start a new object, replacing none: names are unique by construction (UUIDs)."""

    @abc.abstractmethod
    def read(self, path: str) -> bytes:
        """Whole content of a small object. Raises MissingFileError."""

    @abc.abstractmethod
    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Write a small object atomically, replacing an existing one; durably unless told otherwise."""

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
        """Write a small object that repeats what another one holds, unless it exists.

        As `put_if_absent`, but a power failure may take it where lasting costs time, or leave it empty.
        """
        self.put_if_absent(path, data)

    def put_hint(self, path: str, data: bytes) -> None:
        """Write a small object that nobody relies on, replacing an existing one, as cheaply as possible.

        It need not last, and a reader may see it half written.
        """
        self.put(path, data, durable=False)

    @abc.abstractmethod
    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Objects directly under the folder `prefix` (not deeper), in any order; empty if there is no such folder."""

    def list_names(self, prefix: str) -> Iterator[str]:
        """Names of what lies directly under the folder `prefix`; may be cheaper than `list`, may name folders too."""
        return (info.name for info in self.list(prefix))

    @abc.abstractmethod
    def list_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        """Objects below the folder `prefix` at any depth, in any order; empty if there is no such folder."""

    @abc.abstractmethod
    def exists(self, path: str) -> bool:
        """Whether the object exists."""

    @abc.abstractmethod
    def delete(self, path: str) -> None:
        """Remove an object; one that is not there is no error."""

    @abc.abstractmethod
    def delete_tree(self, prefix: str) -> None:
        """Remove every object below the folder `prefix`, and the folder."""

    def sync(self, prefix: str) -> None:
        """Make the removals of objects directly under the folder `prefix` outlast a power failure.

        `delete` alone does not on a local disk, where syncing takes a step of its own: what must be gone before
        something else is done needs this in between. Elsewhere it does nothing.
        """
        return

    def copy(self, source: str, target: str) -> None:
        """Copy an object inside the store; a target that exists is replaced, at once and durably.

        Raises
        ------
        MissingFileError
            There is no such object.
        """
        self.put(target, self.read(source))

    @abc.abstractmethod
    def uri(self, path: str) -> str:
        """Public spelling of `path`: what a user would pass to open it."""
