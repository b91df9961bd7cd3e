"""Commit protocols: a version of a table is created exactly once, and never in part."""

from __future__ import annotations

import abc
import logging
import uuid
import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

from lance_dataset.errors import (
    AlreadyExistsError,
    CorruptFileError,
    LanceError,
    MissingFileError,
    StorageError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.external.base import ExternalManifests, ManifestEntry
from lance_dataset.io.guarded import CommitLock, GuardedStore
from lance_dataset.table.naming import (
    VERSIONS_FOLDER,
    ManifestName,
    Naming,
    final_manifest_name,
    is_detached,
    manifest_name,
    manifest_path,
    newest_names,
    parse_manifest_name,
    sorted_names,
)

__all__ = ["CommitProtocol", "commit_protocol"]

_log = logging.getLogger(__name__)


class CommitProtocol(abc.ABC):
    """Protocol for finding and adding versions of tables in a store."""

    @abc.abstractmethod
    def newest(self, store: ObjectStore, root: str) -> list[ManifestName]:
        """Return the names that determine the newest version: its own name last, and all others before it if needed.

        The others are needed if the table has names of both schemes. The list is empty if the table does not exist.
        """

    def latest(self, store: ObjectStore, root: str) -> ManifestName | None:
        """Return the name of the newest version, or None without numbered manifests."""
        return next(reversed(self.newest(store, root)), None)

    def names(self, store: ObjectStore, root: str) -> list[ManifestName]:
        """Return the names of all numbered manifests by version.

        A version has two names while its manifests are being migrated to the other naming scheme.
        """
        return sorted_names(store.list_names(f"{root}/{VERSIONS_FOLDER}"))

    def locate(self, store: ObjectStore, root: str, version: int, naming: Naming | None = None) -> list[ManifestName]:
        """Return the existing names of a version.

        Parameters
        ----------
        store, root
            The table.
        version
            The version, which may be a detached one.
        naming
            Its probable naming scheme. If a manifest of that scheme exists, no other name is looked up.
        """
        kinds = (Naming.DETACHED,) if is_detached(version) else (Naming.V2, Naming.V1)
        there = []
        for kind in sorted(kinds, key=lambda kind: kind is not naming):
            name = ManifestName(manifest_name(version, kind), version, kind)
            if store.exists(f"{root}/{VERSIONS_FOLDER}/{name.name}"):
                there.append(name)
                if kind is naming:
                    break
        return there

    @abc.abstractmethod
    def publish(self, store: ObjectStore, root: str, version: int, naming: Naming, content: bytes) -> None:
        """Publish the manifest of a version. When this returns, every reader finds it.

        Raises
        ------
        AlreadyExistsError
            Another writer has made the version.
        """

    def renamed(self, store: ObjectStore, root: str, version: int, naming: Naming) -> None:
        """Record that a version now has another name, before its old name is removed."""
        return

    def forget(self, store: ObjectStore, root: str, versions: Iterable[int] | None) -> None:
        """Record that some versions, or all if `versions` is None, are about to be removed."""
        return


class DirectProtocol(CommitProtocol):
    """Protocol in which the writer that creates the manifest object has made the version."""

    def newest(self, store: ObjectStore, root: str) -> list[ManifestName]:
        folder = f"{root}/{VERSIONS_FOLDER}"
        return newest_names(
            store.list_names(folder),
            in_order=store.lists_in_order,
            exists=lambda name: store.exists(f"{folder}/{name}"),
        )

    def publish(self, store: ObjectStore, root: str, version: int, naming: Naming, content: bytes) -> None:
        store.put_if_absent(manifest_path(root, version, naming), content)


class LockedProtocol(CommitProtocol):
    """Wraps another protocol in a commit lock of the user, for stores without an atomic create.

    Parameters
    ----------
    inner
        Protocol that runs while the lock is held.
    lock
        Called with the version. Returns a context manager.
    """

    def __init__(self, inner: CommitProtocol, lock: CommitLock) -> None:
        self._inner = inner
        self._lock = lock

    def newest(self, store: ObjectStore, root: str) -> list[ManifestName]:
        return self._inner.newest(store, root)

    def names(self, store: ObjectStore, root: str) -> list[ManifestName]:
        return self._inner.names(store, root)

    def locate(self, store: ObjectStore, root: str, version: int, naming: Naming | None = None) -> list[ManifestName]:
        return self._inner.locate(store, root, version, naming)

    def publish(self, store: ObjectStore, root: str, version: int, naming: Naming, content: bytes) -> None:
        held = self._acquire(version)
        error: BaseException | None = None
        try:
            if self._inner.locate(store, root, version):
                raise AlreadyExistsError(f"version {version} of {store.uri(root)} exists already")
            self._inner.publish(store, root, version, naming, content)
        except BaseException as raised:
            error = raised
        # The lock's handling of an error must not hide it. A lock that swallows it would turn it into success.
        self._release(held, version, error)
        if error is not None:
            raise error

    def renamed(self, store: ObjectStore, root: str, version: int, naming: Naming) -> None:
        self._inner.renamed(store, root, version, naming)

    def forget(self, store: ObjectStore, root: str, versions: Iterable[int] | None) -> None:
        self._inner.forget(store, root, versions)

    def _acquire(self, version: int) -> AbstractContextManager[object]:
        try:
            held = self._lock(version)
            held.__enter__()
        except OSError:
            raise
        except Exception as error:
            raise StorageError(
                f"the commit lock of version {version} could not be taken, so nothing was committed: "
                f"{type(error).__name__}: {error}"
            ) from error
        return held

    def _release(self, held: AbstractContextManager[object], version: int, error: BaseException | None) -> None:
        try:
            held.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
        except Exception as failed:
            if failed is not error and error is None:
                # The version exists. An error now would make the caller commit it a second time.
                warnings.warn(
                    f"version {version} is committed, but its lock could not be released: {failed}",
                    RuntimeWarning,
                    stacklevel=2,
                )


class ExternalProtocol(CommitProtocol):
    """Protocol in which an external table maps versions to manifests, and the objects follow.

    A writer first puts the manifest under a staging name. It then inserts an entry that refers to it. From then on the
    version exists. The writer copies the manifest to its final name, updates the entry, and removes the staging object.
    Every reader that finds an entry with a staging name completes it, so a writer may stop at any point. If a program
    that does not use the external table made the version at the same time, the final name decides.

    Parameters
    ----------
    manifests
        The external table.
    """

    def __init__(self, manifests: ExternalManifests) -> None:
        self._manifests = manifests
        self._direct = DirectProtocol()

    def newest(self, store: ObjectStore, root: str) -> list[ManifestName]:
        key = self._key(store, root)
        entry = self._manifests.get_latest(key)
        if entry is None:
            return self._direct.newest(store, root)
        return [self._completed(store, root, key, entry)]

    def names(self, store: ObjectStore, root: str) -> list[ManifestName]:
        # Only the newest version can lack its final name.
        newest = self.latest(store, root)
        found = self._direct.names(store, root)
        if newest is not None and (not found or found[-1].version < newest.version):
            found.append(newest)
        return found

    def locate(self, store: ObjectStore, root: str, version: int, naming: Naming | None = None) -> list[ManifestName]:
        if is_detached(version):
            return self._direct.locate(store, root, version, naming)
        key = self._key(store, root)
        entry = self._manifests.get(key, version)
        if entry is not None:
            name = self._completed(store, root, key, entry)
            # Some programs remove versions without their entries.
            return [name] if store.exists(f"{root}/{VERSIONS_FOLDER}/{name.name}") else []
        found = self._direct.locate(store, root, version, naming)
        if len(found) == 1:
            self._note(store, root, key, found[0])
        return found

    def publish(self, store: ObjectStore, root: str, version: int, naming: Naming, content: bytes) -> None:
        if naming is Naming.DETACHED:
            # Its name is random, and an entry would make it the newest version for some readers.
            self._direct.publish(store, root, version, naming, content)
            return
        key = self._key(store, root)
        final = manifest_name(version, naming)
        staging = f"{final}-{uuid.uuid4()}"
        store.put(f"{root}/{VERSIONS_FOLDER}/{staging}", content)
        try:
            self._insert(store, root, key, _entry(version, staging, len(content)), content)
        except AlreadyExistsError:
            with suppress(LanceError, OSError):
                store.delete(f"{root}/{VERSIONS_FOLDER}/{staging}")
            raise
        try:
            ours = _settle(store, f"{root}/{VERSIONS_FOLDER}/{final}", content)
        except (LanceError, OSError) as error:
            # The version exists because its entry does. The next reader completes it.
            _log.warning("%s: version %d will be completed by the next reader: %s", store.uri(root), version, error)
            return
        self._refer(store, root, key, _entry(version, final, len(content) if ours else None), staging)
        if not ours:
            raise AlreadyExistsError(f"version {version} of {store.uri(root)} exists already")

    def renamed(self, store: ObjectStore, root: str, version: int, naming: Naming) -> None:
        key = self._key(store, root)
        entry = self._manifests.get(key, version)
        if entry is not None:
            self._manifests.put_if_exists(key, _entry(version, manifest_name(version, naming), entry.size))

    def forget(self, store: ObjectStore, root: str, versions: Iterable[int] | None) -> None:
        self._manifests.delete(self._key(store, root), versions)

    def _key(self, store: ObjectStore, root: str) -> str:
        return self._manifests.key(store.uri(root), root)

    def _insert(self, store: ObjectStore, root: str, key: str, entry: ManifestEntry, content: bytes) -> None:
        try:
            self._manifests.put_if_absent(key, entry)
        except (AlreadyExistsError, StorageError):
            # The entry may exist: clients repeat a request whose answer was lost. A reader may already have completed
            # it.
            found = self._manifests.get(key, entry.version)
            if found is None or not (found.path == entry.path or _holds(store, f"{root}/{found.path}", content)):
                raise

    def _completed(self, store: ObjectStore, root: str, key: str, entry: ManifestEntry) -> ManifestName:
        """Return the final name of an entry, after completing the work of its writer.

        If this process may only read, it is the staging name. Such a process cannot commit another version after it
        anyway.
        """
        folder, _, listed = entry.path.rpartition("/")
        final = final_manifest_name(listed)
        name = None if final is None or folder != VERSIONS_FOLDER else parse_manifest_name(final)
        if name is None or name.version != entry.version:
            raise CorruptFileError(
                f"{store.uri(root)}: {self._manifests!r} says that version {entry.version} is in {entry.path!r}, which "
                "is not a name of its manifest"
            )
        if listed == name.name:
            return name
        path = f"{root}/{VERSIONS_FOLDER}/{name.name}"
        try:
            content = store.read(f"{root}/{entry.path}")
        except MissingFileError:
            if not store.exists(path):
                raise CorruptFileError(
                    f"{store.uri(root)}: {self._manifests!r} says that version {entry.version} is in {entry.path!r}, "
                    f"but neither that nor {store.uri(path)} exists; if the dataset was removed, remove the entry too"
                ) from None
            size = entry.size
        else:
            try:
                size = len(content) if _settle(store, path, content) else None
            except PermissionError:
                return replace(name, name=listed)
        self._refer(store, root, key, _entry(entry.version, name.name, size), listed)
        return name

    def _refer(self, store: ObjectStore, root: str, key: str, entry: ManifestEntry, staging: str) -> None:
        """Make the entry refer to the final name, then remove the staging object. If this fails, others will do it."""
        try:
            if entry.size is None:
                entry = _sized(store, root, entry)
            with suppress(MissingFileError):  # the version, or the whole table, was removed meanwhile
                self._manifests.put_if_exists(key, entry)
            store.delete(f"{root}/{VERSIONS_FOLDER}/{staging}")
        except (LanceError, OSError) as error:
            _log.debug("entry of version %d of %s not updated: %s", entry.version, store.uri(root), error)

    def _note(self, store: ObjectStore, root: str, key: str, name: ManifestName) -> None:
        """Insert the missing entry of an old version, unless that would make it the newest one."""
        try:
            latest = self._manifests.get_latest(key)
            if latest is not None and latest.version > name.version:
                entry = _sized(store, root, _entry(name.version, name.name, None))
                self._manifests.put_if_absent(key, entry)
        except (LanceError, OSError) as error:
            _log.debug("entry of version %d of %s not inserted: %s", name.version, store.uri(root), error)


def commit_protocol(store: ObjectStore) -> CommitProtocol:
    """Return the protocol that finds and adds versions of tables in a store: its guards decide."""
    if not isinstance(store, GuardedStore):
        return DirectProtocol()
    manifests, lock = store.external_manifests, store.commit_lock
    protocol = DirectProtocol() if manifests is None else ExternalProtocol(manifests)
    return protocol if lock is None else LockedProtocol(protocol, lock)


def _entry(version: int, name: str, size: int | None) -> ManifestEntry:
    return ManifestEntry(version, f"{VERSIONS_FOLDER}/{name}", size)


def _sized(store: ObjectStore, root: str, entry: ManifestEntry) -> ManifestEntry:
    source = store.open_input(f"{root}/{entry.path}")
    try:
        return replace(entry, size=source.size)
    finally:
        source.close()


def _settle(store: ObjectStore, path: str, content: bytes) -> bool:
    """Put a manifest under its final name. Return False if another one already exists there."""
    try:
        store.put_if_absent(path, content)
    except AlreadyExistsError:
        return store.read(path) == content
    return True


def _holds(store: ObjectStore, path: str, content: bytes) -> bool:
    try:
        return store.read(path) == content
    except MissingFileError:
        return False
