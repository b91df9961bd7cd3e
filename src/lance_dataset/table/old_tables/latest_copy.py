"""Copy of the newest manifest for releases before 0.8.1, which open nothing else."""

from __future__ import annotations

import logging
from contextlib import suppress

from lance_dataset.errors import AlreadyExistsError, LanceError, MissingFileError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.manifest import decode_manifest, read_manifest
from lance_dataset.table.naming import ManifestName, Naming, latest_copy_path, manifest_name, manifest_path, named_path
from lance_dataset.table.versions import find_latest

__all__ = ["adopt_latest_copy", "remove_latest_copy", "update_latest_copy"]

_log = logging.getLogger(__name__)
_ATTEMPTS = 8


def update_latest_copy(store: ObjectStore, root: str, version: int, content: bytes) -> None:
    """Update the copy to the newest manifest. The version is already committed, so a failure is only logged.

    Parameters
    ----------
    store, root
        The table.
    version, content
        The manifest that was just committed.
    """
    path = latest_copy_path(root)
    try:
        for _ in range(_ATTEMPTS):
            if not _is_newer(store, path, version):
                store.put(path, content)
            # A writer of a later version may have written its copy in between, and this one replaced it.
            latest = find_latest(store, root)
            if latest is None or latest.version <= version:
                return
            version, content = latest.version, store.read(named_path(root, latest))
    except (LanceError, OSError) as error:
        _log.warning("%s is out of date: %s", store.uri(path), error)


def _is_newer(store: ObjectStore, path: str, version: int) -> bool:
    """Return True if the existing copy is of a later version."""
    try:
        return read_manifest(store, path).version > version
    except LanceError:
        return False


def adopt_latest_copy(store: ObjectStore, root: str) -> ManifestName:
    """Give a table that consists only of the copy a numbered manifest, so that another version can follow.

    Parameters
    ----------
    store, root
        The table.

    Returns
    -------
    ManifestName
        The numbered manifest. Its version is that of the current copy, which another writer may have replaced
        meanwhile.
    """
    copy = latest_copy_path(root)
    content = store.read(copy)
    version = decode_manifest(content, copy).version
    with suppress(AlreadyExistsError):  # another writer does the same
        store.put_if_absent(manifest_path(root, version, Naming.V1), content)
    return ManifestName(manifest_name(version, Naming.V1), version, Naming.V1)


def remove_latest_copy(store: ObjectStore, root: str) -> None:
    """Remove the copy if it would become outdated. The same manifest must exist under a version number."""
    path = latest_copy_path(root)
    with suppress(MissingFileError):
        content = store.read(path)
        version = read_manifest(store, path).version
        if store.read(manifest_path(root, version, Naming.V2)) == content:
            store.delete(path)
