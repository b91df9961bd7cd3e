"""Which versions a table has, and where their manifests are."""

from __future__ import annotations

import datetime as dt
from typing import Any

from lance_dataset.errors import (
    CorruptFileError,
    DatasetNotFoundError,
    MissingFileError,
    UnsupportedError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.manifest import Manifest, read_manifest
from lance_dataset.table.naming import (
    LATEST_COPY,
    VERSIONS_FOLDER,
    ManifestName,
    Naming,
    is_detached,
    latest_copy_path,
    manifest_path,
    named_path,
    parse_manifest_name,
)

__all__ = [
    "find_latest",
    "find_latest_to_follow",
    "latest_version",
    "list_manifests",
    "list_versions",
    "locate_version",
    "read_latest",
    "read_named",
    "read_version",
    "version_as_of",
    "version_info",
]


def list_manifests(store: ObjectStore, root: str) -> list[ManifestName]:
    """Names of all numbered manifests by version; a version has two while a migration of names is under way."""
    names = (parse_manifest_name(name) for name in store.list_names(f"{root}/{VERSIONS_FOLDER}"))
    return sorted(
        (name for name in names if name is not None and name.naming is not Naming.DETACHED),
        key=lambda name: (name.version, name.naming.value),
    )


def list_versions(store: ObjectStore, root: str) -> list[ManifestName]:
    """Versions of a table in ascending order, without detached ones; empty when there is no table.

    Raises
    ------
    CorruptFileError
        A version is there under two names with different content.
    """
    return _versions(store, root, list_manifests(store, root))


def _versions(store: ObjectStore, root: str, names: list[ManifestName]) -> list[ManifestName]:
    """One name for each version: the new one where a migration left both."""
    found: dict[int, ManifestName] = {}
    for name in names:
        if name.version in found:
            _check_same(store, root, name.version)
        found[name.version] = name
    if not found and store.exists(latest_copy_path(root)):
        manifest = read_manifest(store, latest_copy_path(root))
        return [ManifestName(LATEST_COPY, manifest.version, Naming.LATEST_COPY)]
    return list(found.values())


def _check_same(store: ObjectStore, root: str, version: int) -> None:
    """Compare the two manifests of a version; one that is gone by now was the same."""
    paths = [manifest_path(root, version, naming) for naming in (Naming.V1, Naming.V2)]
    try:
        contents = {store.read(path) for path in paths}
    except MissingFileError:
        return
    if len(contents) > 1:
        raise CorruptFileError(
            f"{store.uri(root)}: version {version} is there twice with different content, as {paths[0]} and as "
            f"{paths[1]}; move the one away that is not part of this dataset"
        )


def find_latest(store: ObjectStore, root: str) -> ManifestName | None:
    """The newest version, None when there is no table."""
    versions = list_versions(store, root)
    return versions[-1] if versions else None


def find_latest_to_follow(store: ObjectStore, root: str) -> ManifestName | None:
    """The newest version, to commit another one behind it; None when there is no table.

    Raises
    ------
    UnsupportedError
        The manifests are named in different ways, so there is no name for the next one that every reader would find.
    """
    names = list_manifests(store, root)
    if len({name.naming for name in names}) > 1:
        raise UnsupportedError(
            f"{store.uri(root)}: Found multiple manifest naming schemes in {VERSIONS_FOLDER!r}, so nothing can be "
            "committed: a migration was interrupted, or another program went on with the old names; run "
            "migrate_manifest_paths_v2() to finish it"
        )
    versions = _versions(store, root, names)
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
    try:
        return read_manifest(store, named_path(root, name))
    except MissingFileError:
        if name.naming is Naming.V1:
            renamed = manifest_path(root, name.version, Naming.V2)
            if store.exists(renamed):  # by a migration, since the listing
                return read_manifest(store, renamed)
        raise


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
    CorruptFileError
        It is there under two names with different content.
    """
    schemes = (Naming.DETACHED,) if is_detached(version) else (Naming.V2, Naming.V1)
    if 0 <= version < 1 << 64:
        paths = [manifest_path(root, version, naming) for naming in schemes]
        there = [path for path in paths if store.exists(path)]
        if len(there) > 1:
            _check_same(store, root, version)
        if there:
            return there[0]
    latest = latest_version(store, root)
    if latest.naming is Naming.LATEST_COPY and latest.version == version:
        return latest_copy_path(root)
    raise VersionNotFoundError(
        f"Dataset at path {store.uri(root)} was not found in version {version}; the latest version is {latest.version}"
    )


def read_version(store: ObjectStore, root: str, version: int) -> Manifest:
    """The manifest of a version by its number, detached ones included; raises what `locate_version` raises."""
    try:
        return read_manifest(store, locate_version(store, root, version))
    except MissingFileError:  # renamed by a migration between the two steps
        return read_manifest(store, locate_version(store, root, version))


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
