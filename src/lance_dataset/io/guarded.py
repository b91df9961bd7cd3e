"""Stores of tables whose commits are guarded: by an external manifest store, by a lock of the user, or by both."""

# ruff: noqa: D102 - the methods are documented in lance_dataset.io.base

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from lance_dataset.errors import AlreadyExistsError, UnsupportedError
from lance_dataset.io.base import InputFile, ObjectInfo, ObjectStore, OutputFile, Waiter
from lance_dataset.io.external.base import ExternalManifests

__all__ = [
    "CommitLock",
    "GuardedStore",
    "commit_lock_of",
    "external_manifests_of",
    "plain_store",
    "with_commit_lock",
    "with_manifests",
]

#: Called with a version number; returns a context in which no other process commits that version.
CommitLock = Callable[[int], AbstractContextManager[Any]]


class GuardedStore(ObjectStore):
    """Objects of another store, in which something other than the store decides which writer makes a version.

    So `put_if_absent` works in a store that cannot create an object only if it is absent. The guard keeps other writers
    away.

    Parameters
    ----------
    objects
        The other store.
    external_manifests
        Store that says which manifest is which version.
    commit_lock
        Called with a version number; returns a context in which no other process commits that version.
    """

    def __init__(
        self,
        objects: ObjectStore,
        external_manifests: ExternalManifests | None = None,
        commit_lock: CommitLock | None = None,
    ) -> None:
        self.objects = objects
        self.external_manifests = external_manifests
        self.commit_lock = commit_lock
        self.lists_in_order = objects.lists_in_order
        self.is_remote = objects.is_remote
        self.statistics = objects.statistics
        self.table_root = objects.table_root
        self.trusted_bases = objects.trusted_bases

    def __reduce__(self) -> tuple[Any, ...]:
        return GuardedStore, (self.objects, self.external_manifests, self.commit_lock)

    def for_table(self, root: str, trusted_bases: tuple[str, ...] | None = None) -> GuardedStore:
        objects = self.objects.for_table(root, trusted_bases)
        return GuardedStore(objects, self.external_manifests, self.commit_lock)

    def put_if_absent(self, path: str, data: bytes) -> None:
        try:
            self.objects.put_if_absent(path, data)
        except UnsupportedError:
            self._put_unconditionally(path, data)

    def put_spare(self, path: str, data: bytes) -> None:
        try:
            self.objects.put_spare(path, data)
        except UnsupportedError:
            self._put_unconditionally(path, data)

    def _put_unconditionally(self, path: str, data: bytes) -> None:
        if self.exists(path):
            raise AlreadyExistsError(f"{self.uri(path)} exists already")
        self.put(path, data)

    def open_input(self, path: str, size: int | None = None) -> InputFile:
        return self.objects.open_input(path, size)

    def open_whole(self, path: str, size: int) -> tuple[InputFile, Callable[[], None] | None]:
        return self.objects.open_whole(path, size)

    def open_own(self, path: str, size: int | None = None) -> InputFile:
        return self.objects.open_own(path, size)

    def check_own(self, path: str) -> None:
        self.objects.check_own(path)

    def open_output(self, path: str) -> OutputFile:
        return self.objects.open_output(path)

    def put_new(self, files: Iterable[tuple[str, bytes]], wait: Waiter | None = None) -> None:
        self.objects.put_new(files, wait)

    def read(self, path: str) -> bytes:
        return self.objects.read(path)

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.objects.put(path, data, durable=durable)

    def put_hint(self, path: str, data: bytes) -> None:
        self.objects.put_hint(path, data)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return self.objects.list(prefix)

    def list_names(self, prefix: str) -> Iterator[str]:
        return self.objects.list_names(prefix)

    def list_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        return self.objects.list_tree(prefix)

    def exists(self, path: str) -> bool:
        return self.objects.exists(path)

    def waits(self, prefix: str) -> bool:
        return self.objects.waits(prefix)

    def modified(self, path: str) -> float:
        return self.objects.modified(path)

    def delete(self, path: str) -> None:
        self.objects.delete(path)

    def delete_tree(self, prefix: str) -> None:
        self.objects.delete_tree(prefix)

    def delete_empty_folder(self, prefix: str) -> None:
        self.objects.delete_empty_folder(prefix)

    def sync(self, prefix: str) -> None:
        self.objects.sync(prefix)

    def copy(self, source: str, target: str, origin: ObjectStore | None = None) -> None:
        self.objects.copy(source, target, None if origin is None else plain_store(origin))

    def uri(self, path: str) -> str:
        return self.objects.uri(path)


def plain_store(store: ObjectStore) -> ObjectStore:
    """Return the store that has the objects of a guarded store; other stores are returned as they are."""
    return store.objects if isinstance(store, GuardedStore) else store


def external_manifests_of(store: ObjectStore) -> ExternalManifests | None:
    """Return the external manifest store that guards commits in a store, None if there is none."""
    return store.external_manifests if isinstance(store, GuardedStore) else None


def commit_lock_of(store: ObjectStore) -> CommitLock | None:
    """Return the lock that guards commits in a store, None if there is none."""
    return store.commit_lock if isinstance(store, GuardedStore) else None


def with_manifests(store: ObjectStore, manifests: ExternalManifests | None) -> ObjectStore:
    """Return the same objects guarded by an external manifest store; the given store stays as it is."""
    if manifests is None:
        return store
    return GuardedStore(plain_store(store), manifests, commit_lock_of(store))


def with_commit_lock(store: ObjectStore, lock: CommitLock | None) -> ObjectStore:
    """Return the same objects guarded by a lock of the user; the given store stays as it is.

    Raises
    ------
    TypeError
        The lock cannot be called.
    """
    if lock is None:
        return store
    if not callable(lock):
        raise TypeError(f"commit_lock must be a function, got {type(lock)}")
    return GuardedStore(plain_store(store), external_manifests_of(store), lock)
