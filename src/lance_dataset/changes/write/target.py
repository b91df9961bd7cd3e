"""Target of a write: the table that exists there, if any, and the commit on top of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import pyarrow as pa

from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    SchemaError,
)
from lance_dataset.file.blob_fields import check_table_blobs, version_for_blobs
from lance_dataset.file.families import family_of
from lance_dataset.file.options import is_blob_v2
from lance_dataset.file.versions import resolve_version
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.guarded import CommitLock, with_commit_lock
from lance_dataset.late_dataclass import dataclass
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.read.location import TableLocation
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.settings import DatasetBasePath
from lance_dataset.table import operations as table_operations
from lance_dataset.table.append_schema import check_append_schema
from lance_dataset.table.commit.backoff import Backoff
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.fragment import LEGACY_VERSION
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.old_tables.legacy_dictionaries import (
    is_extension,
    replaced_fields,
    without_dictionaries,
)
from lance_dataset.table.transaction import Transaction as TableTransaction
from lance_dataset.table.versions import latest_version, read_latest, read_newest
from lance_dataset.types.schema import Field, Schema

__all__ = ["CommitOptions", "WriteTarget", "stored_columns"]


@dataclass(frozen=True)
class CommitOptions:
    """Options of the commit of a write. All but `properties` are for a table that it creates.

    Attributes
    ----------
    properties
        Properties of the transaction.
    config
        Config of a new table.
    initial_bases
        Base paths of a new table; None for none. An existing table does not accept any.
    v2_paths, stable_row_ids
        True for the newer names of manifests, and for row ids that stay the same when rows move.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    initial_bases: Sequence[DatasetBasePath] | None = None
    v2_paths: bool = True
    stable_row_ids: bool = False


@dataclass(frozen=True)
class WriteTarget:
    """Location that a write goes to, and the table that exists there.

    Attributes
    ----------
    location
        Location of the table.
    manifest
        Manifest of the newest version, or of the snapshot that the write is based on; None if the table does not exist.
    shown
        Snapshot that the user passed; None for a path or URI.
    """

    location: TableLocation
    manifest: Manifest | None
    shown: Snapshot | None = None

    @classmethod
    def at(cls, location: TableLocation) -> WriteTarget:
        """Find the newest version of the table at a location, if there is one."""
        return cls(location, read_latest(location.store, location.root))

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        storage_options: Mapping[str, str] | None,
        commit_lock: CommitLock | None,
        *,
        as_shown: bool,
    ) -> WriteTarget:
        """Make the target of a write to the table of a snapshot.

        Parameters
        ----------
        snapshot
            The snapshot.
        storage_options
            Options of the store; None for those of the snapshot.
        commit_lock
            Lock that commits hold.
        as_shown
            True to write on top of the snapshot, so that later commits count as concurrent; False to write on top of
            the newest version.
        """
        location = replace(
            snapshot.location,
            store=with_commit_lock(snapshot.store, commit_lock),
            storage_options=storage_options or snapshot.location.storage_options,
        )
        return cls(location, snapshot.manifest if as_shown else location.read_manifest(), snapshot)

    @property
    def store(self) -> ObjectStore:
        """Object store of the table."""
        return self.location.store

    @property
    def root(self) -> str:
        """Path of the table in its store."""
        return self.location.root

    def opened(self, manifest: Manifest) -> Snapshot:
        """Open a committed version at the location of the handle, or else at that of the target."""
        return Snapshot.of(self.location if self.shown is None else self.shown.location, manifest)

    def version(self, mode: str, asked: str | None) -> str:
        """Return the version of new files."""
        if asked is None and self.manifest is not None:
            asked = self.manifest.storage_version
            if mode == "append":
                asked = version_for_blobs(self.manifest.schema, asked)
        return resolve_version(asked)

    def plan(self, arrow: pa.Schema, mode: str, version: str | None) -> tuple[Schema, str]:
        """Check the schema of new data; return its schema with field ids and the version of the new files."""
        existing = self.manifest
        if mode == "append" and existing is not None:
            check_append_schema(arrow, existing.schema)
            chosen = self.version(mode, version)
            if (chosen == LEGACY_VERSION) != (existing.storage_version == LEGACY_VERSION):
                raise InvalidInputError(
                    f"the dataset stores data in version {existing.storage_version}; data of version {chosen} cannot "
                    "be appended, because version 0.1 cannot be mixed with later ones"
                )
            whole = without_dictionaries(existing.schema) if _lacks_dictionaries(existing) else existing.schema
            schema, version = _with_blob_ranges(stored_columns(whole, arrow), arrow), chosen
            if version == LEGACY_VERSION:
                _check_complete(schema, whole)
            family_of(version).check_schema(schema, version)
            check_table_blobs(schema, version)
            return schema, version
        if existing is not None and version is None:
            version = existing.storage_version
        _check_names(arrow)
        schema, version = Schema.from_arrow(arrow), resolve_version(version)
        family_of(version).check_schema(schema, version)
        check_table_blobs(schema, version)
        return schema, version

    def commit(self, mode: str, overwrite: table_operations.Overwrite, options: CommitOptions) -> Manifest:
        """Commit the new fragments of an overwrite in the given mode. If the table does not exist, create it.

        The config and the base paths of the overwrite are for a new table.
        """
        later = replace(overwrite, config_upserts={}, initial_bases=())
        if self.manifest is not None:
            return self._follow(self.manifest, mode, later, options.properties)
        try:
            return create_table(
                self.store,
                self.root,
                TableTransaction(0, overwrite, properties=options.properties),
                storage_version=overwrite.storage_version,
                enable_stable_row_ids=options.stable_row_ids,
                enable_v2_manifest_paths=options.v2_paths,
            )
        except AlreadyExistsError:
            if mode == "create":
                raise
            return self._follow_creation(mode, later, options.properties)

    def _follow(
        self, existing: Manifest, mode: str, overwrite: table_operations.Overwrite, properties: Mapping[str, str]
    ) -> Manifest:
        """Commit on top of an existing table."""
        retries: int | None = None
        operation: table_operations.Operation = overwrite
        if mode == "append" and _lacks_dictionaries(existing):
            # An append cannot add dictionaries. This overwrite only replaces the version without rows, not a later one.
            retries, operation = 0, replace(overwrite, schema=replaced_fields(existing.schema, overwrite.schema))
        elif mode == "append":
            operation = table_operations.Append(overwrite.fragments)
        change = TableTransaction(existing.version, operation, properties=properties)
        return commit_transaction(self.store, self.root, change, read_manifest=existing, max_retries=retries)

    def _follow_creation(
        self, mode: str, overwrite: table_operations.Overwrite, properties: Mapping[str, str]
    ) -> Manifest:
        """Commit on top of a table that another writer created in the meantime.

        The new data does not depend on that table, so this is repeated if the table is replaced once more.
        """
        backoff = Backoff()
        while backoff.start():
            newest = read_newest(self.store, self.root)
            if mode == "append":
                self._check_made_alike(newest, overwrite.schema, overwrite.storage_version or newest.storage_version)
            try:
                return self._follow(newest, mode, overwrite, properties)
            except CommitConflictError:
                if latest_version(self.store, self.root).version == newest.version:
                    raise
                backoff.sleep()
        raise CommitConflictError(
            f"{self.store.uri(self.root)}: other writers replaced the new dataset {backoff.lost} times in the "
            "meantime; try again when there are fewer concurrent writers",
            retryable=True,
        )

    def _check_made_alike(self, existing: Manifest, schema: Schema, version: str) -> None:
        """Raise an error unless the new files fit the table that another writer created in the meantime."""
        check_append_schema(schema.storage_arrow, existing.schema)
        if _columns(existing.schema) != _columns(schema) or existing.storage_version != version:
            raise CommitConflictError(
                f"{self.store.uri(self.root)}: another writer created the dataset in the meantime, with other columns, "
                f"another column order or another storage version ({existing.storage_version}); append the data again",
                retryable=True,
            )
        dictionaries = {node.id: node.dictionary_values for node in existing.schema.walk()}
        for node in schema.walk():
            if not is_extension(dictionaries[node.id], node.dictionary_values):
                raise CommitConflictError(
                    f"{self.store.uri(self.root)}: another writer created the dataset in the meantime, with another "
                    f"dictionary of {node.name!r}; append the data again",
                    retryable=True,
                )


def _lacks_dictionaries(manifest: Manifest) -> bool:
    """Return True if a legacy table does not have its dictionaries yet, because these come with its first rows."""
    if manifest.storage_version != LEGACY_VERSION or manifest.fragments:
        return False
    return any(len(node.dictionary_values or ()) == 0 for node in manifest.schema.walk() if node.dictionary is not None)


def _check_complete(given: Schema, existing: Schema) -> None:
    """Raise SchemaError if data lacks a column, because the reference cannot change legacy tables with such files."""
    missing = {node.id for node in existing.walk()} - {node.id for node in given.walk()}
    if missing:
        names = ", ".join(node.name for node in existing.walk() if node.id in missing)
        raise SchemaError(
            f"Append with different schema: fields did not match, missing=[{names}]; tables of storage version 0.1 "
            "need all columns, so pass nulls"
        )


def _columns(schema: Schema) -> set[tuple[str, int, str]]:
    """Return the path, id and type of every field, which data files depend on."""

    def below(path: str, node: Field) -> Iterator[tuple[str, int, str]]:
        yield path, node.id, node.logical_type
        for child in node.children:
            yield from below(f"{path}\0{child.name}", child)

    return {column for top in schema.fields for column in below(top.name, top)}


def stored_columns(existing: Schema, given: pa.Schema) -> Schema:
    """Return the columns of an appended file. Columns that the data lacks are omitted, and are read as null."""
    names = set(given.names)
    return Schema(tuple(top for top in existing.fields if top.name in names), existing.metadata)


def _with_blob_ranges(schema: Schema, given: pa.Schema) -> Schema:
    """Return the schema of a file whose blobs may be ranges of objects, as in the data, even if the table has none."""
    wide = {node.name: node for node in Schema.from_arrow(given).fields if is_blob_v2(node) and len(node.children) == 4}

    def widened(top: Field) -> Field:
        if top.name not in wide or not is_blob_v2(top) or len(top.children) == 4:
            return top
        # files do not store the ids of children of blobs
        more = tuple(replace(child, id=-1) for child in wide[top.name].children[2:])
        return replace(top, children=(*top.children, *more))

    return Schema(tuple(map(widened, schema.fields)), schema.metadata) if wide else schema


def _check_names(arrow: pa.Schema) -> None:
    """Raise SchemaError for names of the system columns of scans."""
    taken = [name for name in arrow.names if name in SYSTEM_COLUMNS]
    if taken:
        raise SchemaError(
            f"column name {taken[0]!r} is reserved for columns that scans compute; rename or drop the column"
        )
