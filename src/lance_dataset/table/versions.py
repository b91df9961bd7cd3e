"""Which versions a table has, and where their manifests are."""

from __future__ import annotations

import datetime as dt
from typing import Any

from lance_dataset.errors import CorruptFileError, DatasetNotFoundError, VersionNotFoundError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.manifest import Manifest, read_manifest
from lance_dataset.table.naming import (
    VERSIONS_FOLDER,
    ManifestName,
    Naming,
    is_detached,
    manifest_name,
    parse_manifest_name,
)

__all__ = [
    "find_latest",
    "latest_version",
    "list_versions",
    "locate_version",
    "manifest_path",
    "read_latest",
    "read_named",
    "version_as_of",
    "version_info",
]


def manifest_path(root: str, version: int, naming: Naming) -> str:
    """Path of the manifest of a version."""
    return f"{root}/{VERSIONS_FOLDER}/{manifest_name(version, naming)}"


def list_versions(store: ObjectStore, root: str) -> list[ManifestName]:
    """Versions of a table in ascending order, without detached ones; empty when there is no table.

    Raises
    ------
    CorruptFileError
        The manifests are named in different ways.
    """
    names = (parse_manifest_name(name) for name in store.list_names(f"{root}/{VERSIONS_FOLDER}"))
    found = sorted(
        (name for name in names if name is not None and name.naming is not Naming.DETACHED),
        key=lambda name: name.version,
    )
    if len({name.naming for name in found}) > 1:
        raise CorruptFileError(
            f"{store.uri(root)}: Found multiple manifest naming schemes in {VERSIONS_FOLDER!r}; a migration between "
            "them was interrupted, run it again"
        )
    return found


def find_latest(store: ObjectStore, root: str) -> ManifestName | None:
    """The newest version, None when there is no table."""
    versions = list_versions(store, root)
    return versions[-1] if versions else None


def latest_version(store: ObjectStore, root: str) -> ManifestName:
    """The newest version.

    Raises
    ------
    DatasetNotFoundError
        There is no table.
    """
    latest = find_latest(store, root)
    if latest is None:
        raise DatasetNotFoundError(f"Dataset at path {store.uri(root)} was not found")
    return latest


def read_named(store: ObjectStore, root: str, name: ManifestName) -> Manifest:
    """The manifest of a listed version."""
    return read_manifest(store, f"{root}/{VERSIONS_FOLDER}/{name.name}")


def read_latest(store: ObjectStore, root: str) -> Manifest | None:
    """The manifest of the newest version, None when there is no table."""
    latest = find_latest(store, root)
    return None if latest is None else read_named(store, root, latest)


def locate_version(store: ObjectStore, root: str, version: int) -> str:
    """Path of the manifest of a version, detached ones included.

    Raises
    ------
    DatasetNotFoundError
        There is no table.
    VersionNotFoundError
        The table does not have the version.
    """
    if is_detached(version):
        candidates = [manifest_path(root, version, Naming.DETACHED)]
    else:
        candidates = [manifest_path(root, version, Naming.V2), manifest_path(root, version, Naming.V1)]
    if 0 <= version < 1 << 64:
        for path in candidates:
            if store.exists(path):
                return path
    latest = latest_version(store, root)
    raise VersionNotFoundError(
        f"Dataset at path {store.uri(root)} was not found in version {version}; the latest version is {latest.version}"
    )


def version_as_of(store: ObjectStore, root: str, moment: dt.datetime) -> Manifest:
    """The newest version that was committed before a time, as the reference counts: not at it.

    Parameters
    ----------
    store, root
        The table.
    moment
        The time; one without time zone is local time.

    Raises
    ------
    DatasetNotFoundError
        There is no table.
    VersionNotFoundError
        The time is not after the first version.
    """
    latest_version(store, root)
    for name in reversed(list_versions(store, root)):
        manifest = read_named(store, root, name)
        if manifest.timestamp < moment.astimezone(dt.timezone.utc):
            return manifest
    raise VersionNotFoundError(
        f"{moment.isoformat()} is earlier than the first version of this dataset ({store.uri(root)})"
    )


def version_info(manifest: Manifest) -> dict[str, Any]:
    """Number, time (naive, local) and counters (as text) of a version."""
    fragments = manifest.fragments
    files = [file for fragment in fragments for file in fragment.files]
    deletions = [fragment.deletion_file for fragment in fragments if fragment.deletion_file is not None]
    physical = sum(fragment.physical_rows for fragment in fragments)
    deleted = sum(file.num_deleted_rows for file in deletions)
    counters = {
        "total_data_file_rows": physical,
        "total_data_files": len(files),
        "total_deletion_file_rows": deleted,
        "total_deletion_files": len(deletions),
        "total_files_size": sum(file.file_size_bytes for file in files),
        "total_fragments": len(fragments),
        "total_rows": physical - deleted,
    }
    return {
        "version": manifest.version,
        "timestamp": manifest.timestamp.astimezone().replace(tzinfo=None),
        "metadata": {name: str(value) for name, value in counters.items()},
    }
