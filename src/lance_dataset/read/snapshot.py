"""Open version of a table: `Snapshot`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import NoneType
from typing import Any, TypeAlias

from lance_dataset.io.base import ObjectStore
from lance_dataset.io.guarded import CommitLock, commit_lock_of
from lance_dataset.io.places import is_absolute
from lance_dataset.late_dataclass import dataclass
from lance_dataset.read.location import TableLocation
from lance_dataset.read.projection import Projection, project_structs
from lance_dataset.read.session import Session
from lance_dataset.read.table_reader import TableReader
from lance_dataset.table.manifest import Manifest
from lance_dataset.types.schema import Schema

__all__ = ["Columns", "Snapshot"]

Columns: TypeAlias = "Sequence[str] | Mapping[str, str] | None"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Open version of a table. It never changes; a commit makes another snapshot.

    Create it with `Snapshot.of` or `lance_dataset.read.opening.open_snapshot`. A snapshot can be pickled: the process
    that loads it opens the version again.

    Attributes
    ----------
    location
        Location of the table.
    manifest
        Manifest of the version.
    reader
        Reader of its fragments. Data files are opened when they are read, and stay open.
    scanned_schema
        Schema that scans see, in which blobs are descriptions.
    """

    location: TableLocation
    manifest: Manifest
    reader: TableReader = field(repr=False)
    scanned_schema: Schema = field(repr=False)

    @classmethod
    def of(cls, location: TableLocation, manifest: Manifest, previous: TableReader | None = None) -> Snapshot:
        """Open a version.

        Parameters
        ----------
        location
            Location of the table.
        manifest
            Manifest of the version.
        previous
            Reader of an earlier version, whose index of row ids may be reused.
        """
        reader = location.session.metadata.open_table(
            location.store,
            location.root,
            manifest,
            location.storage_options,
            location.session,
            previous,
            location.result_limit,
        )
        return cls(location, manifest, reader, reader.scanned_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        place = self.location
        uri = place.uri if is_absolute(place.uri) else place.store.uri(place.root)
        options = place.storage_options, place.scan_options, commit_lock_of(place.store)
        limits = place.store.trusted_bases, place.result_limit.max_bytes
        return _reopened, (uri, self.version, *options, *limits)

    # -- other versions of the table -----------------------------------------------------------------------------

    def at(self, version: int) -> Snapshot:
        """Open another version of the table. Return this snapshot if it is the same version.

        Raises
        ------
        VersionNotFoundError
            The version does not exist.
        """
        return self if version == self.version else Snapshot.of(self.location, self.location.read_manifest(version))

    def newest(self) -> Snapshot:
        """Open the newest version in storage. Return this snapshot if it is the newest one."""
        manifest = self.location.read_manifest()
        known = self.manifest
        same = (manifest.version, manifest.commit_id) == (known.version, known.commit_id)
        return self if same else self.followed_by(manifest)

    def followed_by(self, manifest: Manifest) -> Snapshot:
        """Open the version that a commit made."""
        return Snapshot.of(self.location, manifest, self.reader)

    # -- properties ----------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """Version number."""
        return self.manifest.version

    @property
    def uri(self) -> str:
        """Location of the table as the user gave it."""
        return self.location.uri

    @property
    def store(self) -> ObjectStore:
        """Object store of the table."""
        return self.location.store

    @property
    def root(self) -> str:
        """Path of the table in its store."""
        return self.location.root

    @property
    def session(self) -> Session:
        """Session of the table."""
        return self.location.session

    def projection(self, columns: Columns) -> Projection:
        """Return the projection of a take, in which a dotted name stands for the struct around the field.

        Parameters
        ----------
        columns
            Names, or SQL expressions by output name; None for all columns.

        Raises
        ------
        FieldNotFoundError, FilterError
            A name or an expression does not fit the schema.
        """
        if not isinstance(columns, list | tuple | NoneType):
            return project_structs(self.scanned_schema, columns)
        key = None if columns is None else tuple(columns)
        projections = self.reader.projections  # shared by the snapshots of a version in one session
        known = projections.get(key)
        if known is None:
            known = projections[key] = project_structs(self.scanned_schema, columns)
        return known


def _reopened(
    uri: str,
    version: int,
    storage_options: Mapping[str, str],
    scan_options: Mapping[str, Any],
    commit_lock: CommitLock | None,
    trusted_bases: tuple[str, ...] | None = None,
    max_result_bytes: int | None = None,
) -> Snapshot:
    location = TableLocation.resolve(
        uri,
        storage_options,
        scan_options=scan_options,
        commit_lock=commit_lock,
        trusted_bases=trusted_bases,
        max_result_bytes=max_result_bytes,
    )
    return Snapshot.of(location, location.read_manifest(version))
