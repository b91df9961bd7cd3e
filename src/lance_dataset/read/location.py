"""Location of a table, and the means to reach it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import OutOfRangeError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.catalogs import CatalogTable
from lance_dataset.io.external.catalog import CatalogManifests
from lance_dataset.io.guarded import CommitLock, with_commit_lock, with_manifests
from lance_dataset.io.resolve import check_options
from lance_dataset.io.secrets import redacted
from lance_dataset.io.vended import VendedOptions
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import UNLIMITED, ResultLimit
from lance_dataset.read.session import Session
from lance_dataset.table.base_access import checked_trust
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.versions import read_newest, read_version

__all__ = ["TableLocation"]


@dataclass(frozen=True)
class TableLocation:
    """Location of a table, and the means to reach it.

    Attributes
    ----------
    uri
        Location as the user gave it.
    store, root
        Object store, and path of the table in it.
    session
        Metadata cache and ``memory://`` data, shared with other tables.
    storage_options
        Options of the store.
    scan_options
        Default keywords of every scan.
    result_limit
        Limit of the memory of each result.
    """

    uri: str
    store: ObjectStore
    root: str
    session: Session
    storage_options: Mapping[str, str] = field(default_factory=dict)
    scan_options: Mapping[str, Any] = field(default_factory=dict)
    result_limit: ResultLimit = UNLIMITED

    def __repr__(self) -> str:
        return f"TableLocation({redacted(self.uri)!r})"

    @classmethod
    def resolve(
        cls,
        uri: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        session: Session | None = None,
        *,
        scan_options: Mapping[str, object] | None = None,
        commit_lock: CommitLock | None = None,
        trusted_bases: object = None,
        max_result_bytes: object = None,
    ) -> TableLocation:
        """Find the store of a path or URI. Create a new session if `session` is None.

        Raises
        ------
        UnsupportedError, InvalidInputError
            As for `lance_dataset.io.resolve.resolve`.
        TypeError
            `commit_lock` is not callable, `trusted_bases` is not a list of text, or `max_result_bytes` is not an
            integer.
        OutOfRangeError
            `max_result_bytes` is less than 1.
        """
        text = os.fspath(uri)
        check_options(storage_options)
        options = storage_options if isinstance(storage_options, VendedOptions) else dict(storage_options or {})
        owner = session or Session()
        store, root = owner.resolve(text, options, checked_trust(trusted_bases))
        store, limit = with_commit_lock(store, commit_lock), _checked_limit(max_result_bytes)
        return cls(text, store, root, owner, options, dict(scan_options or {}), limit)

    def managed_by(self, table: CatalogTable) -> TableLocation:
        """Return the location with commits through the catalog of the table, if that manages its versions."""
        if not table.managed:
            return self
        manifests = CatalogManifests(table.client, table.table_id, self.root)
        return replace(self, store=with_manifests(self.store, manifests))

    def read_manifest(self, version: int | None = None) -> Manifest:
        """Read the manifest of a version; None for the newest one.

        Raises
        ------
        DatasetNotFoundError, VersionNotFoundError
            The table does not exist, or does not have this version.
        CorruptFileError, UnsupportedError
            The manifest cannot be read.
        """
        decode = self.session.metadata.decode
        if version is None:
            return read_newest(self.store, self.root, decode)
        return read_version(self.store, self.root, version, decode=decode)

    def locator(self, manifest: Manifest) -> FileLocator:
        """Return a new locator for the files of a version. It does not share open files with other locators."""
        return FileLocator(self.store, self.root, manifest.base_paths, self.storage_options, self.session)


def _checked_limit(max_result_bytes: object) -> ResultLimit:
    if max_result_bytes is None:
        return UNLIMITED
    most = checked_integer("max_result_bytes", max_result_bytes)
    if most < 1:
        raise OutOfRangeError("max_result_bytes must be at least 1, or None for no limit")
    return ResultLimit(most)
