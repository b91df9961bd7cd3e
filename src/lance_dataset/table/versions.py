"""Which versions a table has, and where their manifests are."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from typing import Any

from lance_dataset.errors import (
    CorruptFileError,
    DatasetNotFoundError,
    MissingFileError,
    UnsupportedError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.commit.protocol import commit_protocol
from lance_dataset.table.manifest import Decode, Manifest, read_manifest
from lance_dataset.table.naming import (
    LATEST_COPY,
    VERSIONS_FOLDER,
    ManifestName,
    Naming,
    latest_copy_path,
    manifest_path,
    named_path,
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
    "read_newest",
    "read_version",
    "version_as_of",
    "version_info",
]


def list_manifests(store: ObjectStore, root: str) -> list[ManifestName]:
    """Names of all numbered manifests by version; a version has two while a migration of names is under way."""
    return commit_protocol(store).names(store, root)


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
    versions = _versions(store, root, commit_protocol(store).newest(store, root))
    return versions[-1] if versions else None


def find_latest_to_follow(store: ObjectStore, root: str) -> ManifestName | None:
    """The newest version, to commit another one behind it; None when there is no table.

    Raises
    ------
    UnsupportedError
        The manifests are named in different ways, so there is no name for the next one that every reader would find.
    """
    names = commit_protocol(store).newest(store, root)
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
        raise _no_table(store, root)
    return latest


def _no_table(store: ObjectStore, root: str) -> DatasetNotFoundError:
    return DatasetNotFoundError(f"Dataset at path {store.uri(root)} was not found")


def read_named(store: ObjectStore, root: str, name: ManifestName, decode: Decode | None = None) -> Manifest:
    """The manifest of a listed version; `decode` as of `read_manifest`."""
    try:
        return read_manifest(store, named_path(root, name), decode)
    except MissingFileError:
        if name.naming is Naming.V1:
            renamed = manifest_path(root, name.version, Naming.V2)
            if store.exists(renamed):  # by a migration, since the listing
                return read_manifest(store, renamed, decode)
        if store.external_manifests is not None:
            raise MissingFileError(
                f"{store.external_manifests!r} lists version {name.version} of {store.uri(root)}, but its manifest "
                f"{store.uri(named_path(root, name))} does not exist; if another program removed the dataset, "
                "LanceDataset.drop removes what it left"
            ) from None
        raise


def read_latest(store: ObjectStore, root: str, decode: Decode | None = None) -> Manifest | None:
    """The manifest of the newest version, None when there is no table; `decode` as of `read_manifest`."""
    latest = find_latest(store, root)
    while latest is not None:
        try:
            return read_named(store, root, latest, decode)
        except MissingFileError:
            # Others may have committed and cleaned up between the two steps; if nothing is newer, it is lost.
            seen, latest = latest, find_latest(store, root)
            if latest == seen:
                raise
    return None


def read_newest(store: ObjectStore, root: str, decode: Decode | None = None) -> Manifest:
    """The manifest of the newest version; `decode` as of `read_manifest`.

    Raises
    ------
    DatasetNotFoundError
        There is no table.
    """
    manifest = read_latest(store, root, decode)
    if manifest is None:
        raise _no_table(store, root)
    return manifest


def locate_version(store: ObjectStore, root: str, version: int, naming: Naming | None = None) -> str:
    """Path of the manifest of a version, detached ones included.

    Parameters
    ----------
    store, root
        The table.
    version
        Its version.
    naming
        How manifests of the table are named, if that is known: the store is asked for that name first.

    Raises
    ------
    DatasetNotFoundError
        There is no table.
    VersionNotFoundError
        The table does not have the version.
    CorruptFileError
        It is there under two names with different content.
    """
    if 0 <= version < 1 << 64:
        there = commit_protocol(store).locate(store, root, version, naming)
        if len(there) > 1:
            _check_same(store, root, version)
        if there:
            return named_path(root, there[0])
    latest = latest_version(store, root)
    if latest.naming is Naming.LATEST_COPY and latest.version == version:
        return latest_copy_path(root)
    raise VersionNotFoundError(
        f"Dataset at path {store.uri(root)} was not found in version {version}; the latest version is {latest.version}"
    )


def read_version(
    store: ObjectStore, root: str, version: int, naming: Naming | None = None, decode: Decode | None = None
) -> Manifest:
    """The manifest of a version by its number, detached ones included.

    Arguments and errors as of `locate_version`, `decode` as of `read_manifest`.
    """
    if naming is not None and store.external_manifests is None:
        with suppress(MissingFileError):
            return read_manifest(store, manifest_path(root, version, naming), decode)
    try:
        return read_manifest(store, locate_version(store, root, version), decode)
    except MissingFileError:  # renamed by a migration between the two steps
        return read_manifest(store, locate_version(store, root, version), decode)


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
    versions = list_versions(store, root)
    if not versions:
        raise _no_table(store, root)
    for name in reversed(versions):
        try:
            manifest = read_named(store, root, name)
        except MissingFileError:  # cleaned up since the listing
            continue
        if manifest.timestamp < moment.astimezone(dt.timezone.utc):
            return manifest
    raise VersionNotFoundError(
        f"{moment.isoformat()} is earlier than the first version of this dataset ({store.uri(root)})"
    )


def version_info(manifest: Manifest) -> dict[str, Any]:
    """Number, time (naive, local) and counters (as text) of a version."""
    columns = manifest.fragment_list.columns
    # Sums of Python's numbers, which do not overflow.
    physical, deleted = sum(columns.physical_rows.tolist()), sum(columns.num_deleted_rows.tolist())
    counters = {
        "total_data_file_rows": physical,
        "total_data_files": len(columns.file_sizes),
        "total_deletion_file_rows": deleted,
        "total_deletion_files": int(columns.has_deletions.sum()),
        "total_files_size": sum(columns.file_sizes.tolist()),
        "total_fragments": len(columns.ids),
        "total_rows": physical - deleted,
    }
    return {
        "version": manifest.version,
        "timestamp": manifest.timestamp.astimezone().replace(tzinfo=None),
        "metadata": {name: str(value) for name, value in counters.items()},
    }
