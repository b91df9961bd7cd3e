"""Versions of a table, and the locations of their manifests."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar, overload

from lance_dataset.errors import (
    CorruptFileError,
    MissingFileError,
    UnsupportedError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.guarded import external_manifests_of
from lance_dataset.table.manifest import Decode, Manifest, Numbered, decode_manifest, read_manifest
from lance_dataset.table.manifest_summary import summarized
from lance_dataset.table.naming import (
    LATEST_COPY,
    VERSIONS_FOLDER,
    ManifestName,
    Naming,
    latest_copy_path,
    manifest_path,
    named_path,
)
from lance_dataset.table.no_table import no_table
from lance_dataset.table.protocol import commit_protocol

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
    "read_version_info",
    "version_as_of",
    "version_info",
]


_Content = TypeVar("_Content", bound=Numbered)


def list_manifests(store: ObjectStore, root: str) -> list[ManifestName]:
    """Return the names of all numbered manifests by version. A version has two during a migration of names."""
    return commit_protocol(store).names(store, root)


def list_versions(store: ObjectStore, root: str) -> list[ManifestName]:
    """Return the versions of a table in ascending order, without detached ones. Empty if the table does not exist.

    Raises
    ------
    CorruptFileError
        A version exists under two names with different content.
    """
    return _versions(store, root, list_manifests(store, root))


def _versions(store: ObjectStore, root: str, names: list[ManifestName]) -> list[ManifestName]:
    """Return one name for each version: the V2 name if a migration left both."""
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
    """Compare the two manifests of a version. If one was removed meanwhile, they are assumed to be equal."""
    paths = [manifest_path(root, version, naming) for naming in (Naming.V1, Naming.V2)]
    try:
        contents = {store.read(path) for path in paths}
    except MissingFileError:
        return
    if len(contents) > 1:
        raise CorruptFileError(
            f"{store.uri(root)}: version {version} exists twice with different content, as {paths[0]} and as "
            f"{paths[1]}; move the one away that is not part of this dataset"
        )


def find_latest(store: ObjectStore, root: str) -> ManifestName | None:
    """Return the newest version, None if the table does not exist."""
    versions = _versions(store, root, commit_protocol(store).newest(store, root))
    return versions[-1] if versions else None


def find_latest_to_follow(store: ObjectStore, root: str) -> ManifestName | None:
    """Return the newest version for a commit on top of it, None if the table does not exist.

    Raises
    ------
    UnsupportedError
        The manifests use several naming schemes, so not every reader would find the next version.
    """
    names = commit_protocol(store).newest(store, root)
    if len({name.naming for name in names}) > 1:
        raise UnsupportedError(
            f"{store.uri(root)}: Found multiple manifest naming schemes in {VERSIONS_FOLDER!r}, so nothing can be "
            "committed: a migration was interrupted, or another program continued with the old names; run "
            "migrate_manifest_paths_v2() to finish it"
        )
    versions = _versions(store, root, names)
    return versions[-1] if versions else None


def latest_version(store: ObjectStore, root: str) -> ManifestName:
    """Return the newest version.

    Raises
    ------
    DatasetNotFoundError
        The table does not exist.
    """
    latest = find_latest(store, root)
    if latest is None:
        raise no_table(store, root)
    return latest


@overload
def read_named(store: ObjectStore, root: str, name: ManifestName, decode: Decode | None = None) -> Manifest: ...
@overload
def read_named(
    store: ObjectStore, root: str, name: ManifestName, decode: Callable[[bytes, str], _Content]
) -> _Content: ...
def read_named(store: ObjectStore, root: str, name: ManifestName, decode: Any = None) -> Any:
    """Read the manifest of a listed version. For `decode`, see `read_manifest`."""
    try:
        return read_manifest(store, named_path(root, name), decode)
    except MissingFileError:
        if name.naming is Naming.V1:
            renamed = manifest_path(root, name.version, Naming.V2)
            if store.exists(renamed):  # renamed by a migration since the listing
                return read_manifest(store, renamed, decode)
        manifests = external_manifests_of(store)
        if manifests is not None:
            raise MissingFileError(
                f"{manifests!r} lists version {name.version} of {store.uri(root)}, but its manifest "
                f"{store.uri(named_path(root, name))} does not exist; if another program removed the dataset, "
                "LanceDataset.drop removes what it left"
            ) from None
        raise


def read_latest(store: ObjectStore, root: str, decode: Decode | None = None) -> Manifest | None:
    """Read the manifest of the newest version, None if the table does not exist. For `decode`, see `read_manifest`."""
    latest = find_latest(store, root)
    while latest is not None:
        try:
            return read_named(store, root, latest, decode)
        except MissingFileError:
            # Others may have committed and cleaned up between the two steps. Without a newer version, it is lost.
            seen, latest = latest, find_latest(store, root)
            if latest == seen:
                raise
    return None


def read_newest(store: ObjectStore, root: str, decode: Decode | None = None) -> Manifest:
    """Read the manifest of the newest version. For `decode`, see `read_manifest`.

    Raises
    ------
    DatasetNotFoundError
        The table does not exist.
    """
    manifest = read_latest(store, root, decode)
    if manifest is None:
        raise no_table(store, root)
    return manifest


def locate_version(store: ObjectStore, root: str, version: int, naming: Naming | None = None) -> str:
    """Return the path of the manifest of a version, which may be a detached one.

    Parameters
    ----------
    store, root
        The table.
    version
        Its version.
    naming
        Naming scheme of the table's manifests, if known. That name is tried first.

    Raises
    ------
    DatasetNotFoundError
        The table does not exist.
    VersionNotFoundError
        The table does not have the version.
    CorruptFileError
        The version exists under two names with different content.
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
    """Read the manifest of a version by its number, which may be a detached one.

    Arguments and errors are those of `locate_version`. For `decode`, see `read_manifest`.
    """
    if naming is not None and external_manifests_of(store) is None:
        with suppress(MissingFileError):
            return read_manifest(store, manifest_path(root, version, naming), decode)
    try:
        return read_manifest(store, locate_version(store, root, version), decode)
    except MissingFileError:  # renamed by a migration between the two steps
        return read_manifest(store, locate_version(store, root, version), decode)


def version_as_of(store: ObjectStore, root: str, moment: dt.datetime) -> Manifest:
    """Return the newest version that was committed strictly before a time, as in the reference.

    Parameters
    ----------
    store, root
        The table.
    moment
        The time. Without a time zone, it is local time.

    Raises
    ------
    DatasetNotFoundError
        The table does not exist.
    VersionNotFoundError
        The time is not after the first version.
    """
    versions = list_versions(store, root)
    if not versions:
        raise no_table(store, root)
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


def read_version_info(store: ObjectStore, root: str, name: ManifestName) -> dict[str, Any]:
    """Read what `version_info` returns of a listed version."""
    return read_named(store, root, name, _Info.read).info


class _Info(NamedTuple):
    version: int
    info: dict[str, Any]

    @classmethod
    def read(cls, data: bytes, path: str) -> _Info:
        summary = summarized(data, path)
        if summary is None:
            manifest = decode_manifest(data, path)
            return cls(manifest.version, version_info(manifest))
        counters = {
            "total_data_file_rows": summary.rows,
            "total_data_files": len(summary.data_files),
            "total_deletion_file_rows": summary.deleted_rows,
            "total_deletion_files": len(summary.deletion_files),
            "total_files_size": summary.file_bytes,
            "total_fragments": summary.fragments,
            "total_rows": summary.rows - summary.deleted_rows,
        }
        return cls(summary.version, _info(summary.version, summary.timestamp, counters))


def version_info(manifest: Manifest) -> dict[str, Any]:
    """Return the number, time (naive, local) and counters (as strings) of a version."""
    columns = manifest.fragment_list.columns
    # Sums of Python integers, which do not overflow.
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
    return _info(manifest.version, manifest.timestamp, counters)


def _info(version: int, timestamp: dt.datetime, counters: Mapping[str, int]) -> dict[str, Any]:
    return {
        "version": version,
        "timestamp": timestamp.astimezone().replace(tzinfo=None),
        "metadata": {name: str(value) for name, value in counters.items()},
    }
