"""How a version of a table comes into being: exactly once, and never half."""

from __future__ import annotations

import abc
import copy
import logging
import uuid
import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from urllib.parse import unquote

from lance_dataset.errors import (
    AlreadyExistsError,
    CorruptFileError,
    LanceError,
    MissingFileError,
    StorageError,
    UnsupportedError,
)
from lance_dataset.io.base import CommitLock, ObjectStore
from lance_dataset.io.external.base import ExternalManifests, ManifestEntry
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

__all__ = ["CommitProtocol", "commit_protocol", "drop_table", "put_new", "with_commit_lock"]

_log = logging.getLogger(__name__)
_BRANCHES_FOLDER = "_refs/branches"


class CommitProtocol(abc.ABC):
    """How versions of tables in a store are found and added."""

    @abc.abstractmethod
    def newest(self, store: ObjectStore, root: str) -> list[ManifestName]:
        """Names that tell the newest version: its own last, all others before it where they matter.

        They matter where names of both kinds are there. Without any table the list is empty.
        """

    def latest(self, store: ObjectStore, root: str) -> ManifestName | None:
        """Name of the newest version, None if there is no numbered manifest."""
        return next(reversed(self.newest(store, root)), None)

    def names(self, store: ObjectStore, root: str) -> list[ManifestName]:
        """Names of all numbered manifests by version; a version has two while a migration of names is under way."""
        return sorted_names(store.list_names(f"{root}/{VERSIONS_FOLDER}"))

    def locate(self, store: ObjectStore, root: str, version: int, naming: Naming | None = None) -> list[ManifestName]:
        """Names under which a version is there.

        Parameters
        ----------
        store, root
            The table.
        version
            The version, a detached one perhaps.
        naming
            How it is probably named; if it is, no other name is looked for.
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
        """Put the manifest of a version in place; when this returns, every reader finds it.

        Raises
        ------
        AlreadyExistsError
            Another writer has made the version.
        """

    def renamed(self, store: ObjectStore, root: str, version: int, naming: Naming) -> None:
        """Note that a version is there under another name now, before its old name goes."""
        return

    def forget(self, store: ObjectStore, root: str, versions: Iterable[int] | None) -> None:
        """Note that some versions are going to be removed, or all of them."""
        return


class DirectProtocol(CommitProtocol):
    """The name of a manifest is the version: whoever creates the object has made the version."""

    def newest(self, store: ObjectStore, root: str) -> list[ManifestName]:
        folder = f"{root}/{VERSIONS_FOLDER}"
        return newest_names(
            store.list_names(folder),
            in_order=store.lists_in_order,
            exists=lambda name: store.exists(f"{folder}/{name}"),
        )

    def publish(self, store: ObjectStore, root: str, version: int, naming: Naming, content: bytes) -> None:
        put_new(store, manifest_path(root, version, naming), content)


class LockedProtocol(CommitProtocol):
    """Another protocol under a lock of the user, for stores that cannot create an object only if it is absent.

    Parameters
    ----------
    inner
        What is done while the lock is held.
    lock
        Called with the version; returns a context.
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
        # What the lock makes of an error must not hide it: a lock that swallows it would turn it into success.
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
                # The version is there; an error now would make the caller commit it a second time.
                warnings.warn(
                    f"version {version} is committed, but its lock could not be released: {failed}",
                    RuntimeWarning,
                    stacklevel=2,
                )


class ExternalProtocol(CommitProtocol):
    """An external table says which manifest is which version; objects follow.

    A writer puts the manifest under a staging name, inserts an entry that refers to it (from then on the version
    exists), copies it to its final name, refers to that, and removes the staging object. Whoever meets an entry with a
    staging name completes it, so a writer may end at any point. The final name has the last word where a program that
    does not know of the table made the version at the same time.

    Parameters
    ----------
    manifests
        The external table.
    """

    def __init__(self, manifests: ExternalManifests) -> None:
        self._manifests = manifests
        self._direct = DirectProtocol()

    def newest(self, store: ObjectStore, root: str) -> list[ManifestName]:
        key = self._manifests.key(store, root)
        entry = self._manifests.get_latest(key)
        if entry is None:
            return self._direct.newest(store, root)
        return [self._completed(store, root, key, entry)]

    def names(self, store: ObjectStore, root: str) -> list[ManifestName]:
        # Only the newest one can lack its final name.
        newest = self.latest(store, root)
        found = self._direct.names(store, root)
        if newest is not None and (not found or found[-1].version < newest.version):
            found.append(newest)
        return found

    def locate(self, store: ObjectStore, root: str, version: int, naming: Naming | None = None) -> list[ManifestName]:
        if is_detached(version):
            return self._direct.locate(store, root, version, naming)
        key = self._manifests.key(store, root)
        entry = self._manifests.get(key, version)
        if entry is not None:
            name = self._completed(store, root, key, entry)
            # Programs exist that remove versions without their entries.
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
        key = self._manifests.key(store, root)
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
            # The version exists since the entry does; the next one to look at it does the rest.
            _log.warning("%s: version %d is to be completed by the next reader: %s", store.uri(root), version, error)
            return
        self._refer(store, root, key, _entry(version, final, len(content) if ours else None), staging)
        if not ours:
            raise AlreadyExistsError(f"version {version} of {store.uri(root)} exists already")

    def renamed(self, store: ObjectStore, root: str, version: int, naming: Naming) -> None:
        key = self._manifests.key(store, root)
        entry = self._manifests.get(key, version)
        if entry is not None:
            self._manifests.put_if_exists(key, _entry(version, manifest_name(version, naming), entry.size))

    def forget(self, store: ObjectStore, root: str, versions: Iterable[int] | None) -> None:
        self._manifests.delete(self._manifests.key(store, root), versions)

    def _insert(self, store: ObjectStore, root: str, key: str, entry: ManifestEntry, content: bytes) -> None:
        try:
            self._manifests.put_if_absent(key, entry)
        except (AlreadyExistsError, StorageError):
            # Perhaps it is there: clients repeat a request whose answer was lost. A reader may have completed it.
            found = self._manifests.get(key, entry.version)
            if found is None or not (found.path == entry.path or _holds(store, f"{root}/{found.path}", content)):
                raise

    def _completed(self, store: ObjectStore, root: str, key: str, entry: ManifestEntry) -> ManifestName:
        """The final name of an entry, after the work of its writer is done.

        Where this process may only read, it is the staging name; it cannot commit another version behind it anyway.
        """
        folder, _, listed = entry.path.rpartition("/")
        final = final_manifest_name(listed)
        name = None if final is None or folder != VERSIONS_FOLDER else parse_manifest_name(final)
        if name is None or name.version != entry.version:
            raise CorruptFileError(
                f"{store.uri(root)}: {self._manifests!r} says that version {entry.version} is in {entry.path!r}, which "
                "is no name of its manifest"
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
                    f"but there is neither that nor {store.uri(path)}; if the dataset was removed, remove the entry too"
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
        """Refer to the final name, then remove the staging object, in this order; if it fails, others will do it."""
        try:
            if entry.size is None:
                entry = _sized(store, root, entry)
            with suppress(MissingFileError):  # the version, or the whole table, was removed meanwhile
                self._manifests.put_if_exists(key, entry)
            store.delete(f"{root}/{VERSIONS_FOLDER}/{staging}")
        except (LanceError, OSError) as error:
            _log.debug("entry of version %d of %s not updated: %s", entry.version, store.uri(root), error)

    def _note(self, store: ObjectStore, root: str, key: str, name: ManifestName) -> None:
        """Insert the missing entry of an old version, unless that made it the newest one."""
        try:
            latest = self._manifests.get_latest(key)
            if latest is not None and latest.version > name.version:
                entry = _sized(store, root, _entry(name.version, name.name, None))
                self._manifests.put_if_absent(key, entry)
        except (LanceError, OSError) as error:
            _log.debug("entry of version %d of %s not inserted: %s", name.version, store.uri(root), error)


def commit_protocol(store: ObjectStore) -> CommitProtocol:
    """How versions of tables in a store are found and added: what the user gave with the store decides."""
    manifests = store.external_manifests
    protocol = DirectProtocol() if manifests is None else ExternalProtocol(manifests)
    return protocol if store.commit_lock is None else LockedProtocol(protocol, store.commit_lock)


def with_commit_lock(store: ObjectStore, lock: CommitLock | None) -> ObjectStore:
    """The same store where commits hold a lock of the user; others that use the store do not get to know of it.

    Raises
    ------
    TypeError
        The lock cannot be called.
    """
    if lock is None:
        return store
    if not callable(lock):
        raise TypeError(f"commit_lock must be a function, got {type(lock)}")
    locked = copy.copy(store)
    locked.commit_lock = lock
    return locked


def put_new(store: ObjectStore, path: str, content: bytes) -> None:
    """Create an object; where the store cannot do that, a lock or an external table has to keep others away.

    Raises
    ------
    AlreadyExistsError
        The object exists.
    UnsupportedError
        The store cannot do it, and there is neither a lock nor an external table.
    """
    try:
        store.put_if_absent(path, content)
        return
    except UnsupportedError:
        if store.commit_lock is None and store.external_manifests is None:
            raise
    if store.exists(path):
        raise AlreadyExistsError(f"{store.uri(path)} exists already")
    store.put(path, content)


def drop_table(store: ObjectStore, root: str) -> None:
    """Remove a table with its branches, and what an external table knows of it."""
    protocol = commit_protocol(store)
    names = [name for name in store.list_names(f"{root}/{_BRANCHES_FOLDER}") if name.endswith(".json")]
    roots = [root, *(f"{root}/tree/{unquote(name[: -len('.json')])}" for name in names)]
    for each in roots:
        protocol.forget(store, each, None)
    store.delete_tree(root)
    for each in roots:  # those that readers inserted meanwhile
        protocol.forget(store, each, None)


def _entry(version: int, name: str, size: int | None) -> ManifestEntry:
    return ManifestEntry(version, f"{VERSIONS_FOLDER}/{name}", size)


def _sized(store: ObjectStore, root: str, entry: ManifestEntry) -> ManifestEntry:
    source = store.open_input(f"{root}/{entry.path}")
    try:
        return replace(entry, size=source.size)
    finally:
        source.close()


def _settle(store: ObjectStore, path: str, content: bytes) -> bool:
    """Make a manifest be there under its final name; False if another one is there already."""
    try:
        put_new(store, path, content)
    except AlreadyExistsError:
        return store.read(path) == content
    return True


def _holds(store: ObjectStore, path: str, content: bytes) -> bool:
    try:
        return store.read(path) == content
    except MissingFileError:
        return False
