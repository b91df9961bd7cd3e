"""The place a write goes to: what is there already, and the commit on top of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    SchemaError,
)
from lance_dataset.file.blob_fields import check_table_blobs
from lance_dataset.file.families import family_of
from lance_dataset.file.versions import resolve_version
from lance_dataset.input import check_append_schema
from lance_dataset.io.base import CommitLock, ObjectStore
from lance_dataset.io.resolve import resolve
from lance_dataset.query.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.schema import Field, Schema
from lance_dataset.session import Session
from lance_dataset.table import operations as table_operations
from lance_dataset.table.commit.backoff import Backoff
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.commit.protocol import with_commit_lock
from lance_dataset.table.fragment import LEGACY_VERSION, Fragment
from lance_dataset.table.manifest import BasePath, Manifest
from lance_dataset.table.old_tables.legacy_dictionaries import (
    is_extension,
    replaced_fields,
    without_dictionaries,
)
from lance_dataset.table.transaction import Transaction as TableTransaction
from lance_dataset.table.versions import latest_version, read_latest, read_newest

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["WriteTarget", "stored_columns"]


class WriteTarget:
    """Where a write goes, and what is there.

    Attributes
    ----------
    store, root
        The table.
    session
        Session of the handles on it.
    manifest
        Newest version, None if there is no dataset yet.
    shown
        The version that the given handle shows, None without a handle.
    new_config
        Config of a dataset that `commit` creates; one that is there already keeps its own.
    new_bases
        Base paths of a dataset that `commit` creates.
    """

    def __init__(self, store: ObjectStore, root: str, session: Session, manifest: Manifest | None) -> None:
        self.store = store
        self.root = root
        self.session = session
        self.manifest = manifest
        self.shown: Manifest | None = None
        self.new_config: Mapping[str, str] = {}
        self.new_bases: tuple[BasePath, ...] = ()

    @classmethod
    def find(
        cls,
        uri: str | Path | LanceDataset,
        storage_options: Mapping[str, str] | None,
        session: Session | None,
        commit_lock: CommitLock | None = None,
        *,
        as_shown: bool = False,
    ) -> WriteTarget:
        """Look at what is at a location.

        Parameters
        ----------
        as_shown
            A write through a handle starts from the version it shows, not from the newest one: what others did since
            then counts as done at the same time.

        Raises
        ------
        TypeError
            Neither a location nor a dataset.
        """
        from lance_dataset.dataset import LanceDataset

        if isinstance(uri, LanceDataset):
            manifest = uri._manifest if as_shown else uri._load(None)
            target = cls(with_commit_lock(uri._store, commit_lock), uri._root, uri._session, manifest)
            target.shown = uri._manifest
            return target
        if not isinstance(uri, str | os.PathLike):
            raise TypeError(f"a dataset is given by a path, a URI or a LanceDataset, not {type(uri).__name__}")
        owner = session or Session()
        store, root = resolve(os.fspath(uri), storage_options, owner)
        store = with_commit_lock(store, commit_lock)
        return cls(store, root, owner, read_latest(store, root))

    def plan(self, arrow: pa.Schema, mode: str, version: str | None) -> tuple[Schema, str]:
        """Schema with field ids and file version of the new files."""
        existing = self.manifest
        if mode == "append" and existing is not None:
            check_append_schema(arrow, existing.schema)
            chosen = resolve_version(existing.storage_version if version is None else version)
            if (chosen == LEGACY_VERSION) != (existing.storage_version == LEGACY_VERSION):
                raise InvalidInputError(
                    f"the dataset stores data in version {existing.storage_version}; data of version {chosen} cannot "
                    "be appended, as version 0.1 never mixes with later ones"
                )
            whole = without_dictionaries(existing.schema) if _lacks_dictionaries(existing) else existing.schema
            schema, version = stored_columns(whole, arrow), chosen
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

    def commit(
        self,
        mode: str,
        schema: Schema,
        fragments: Sequence[Fragment],
        version: str,
        properties: Mapping[str, str],
        v2_paths: bool,
        stable_row_ids: bool,
    ) -> Manifest:
        """Commit new fragments in the given mode; the first version is created if there is none."""
        existing = self.manifest
        overwrite = table_operations.Overwrite(schema, tuple(fragments), storage_version=version)
        if existing is None:
            first = replace(overwrite, config_upserts=self.new_config, initial_bases=self.new_bases)
            change = TableTransaction(0, first, properties=properties)
            try:
                return create_table(
                    self.store,
                    self.root,
                    change,
                    storage_version=version,
                    enable_stable_row_ids=stable_row_ids,
                    enable_v2_manifest_paths=v2_paths,
                )
            except AlreadyExistsError:
                if mode == "create":
                    raise
                return self._follow_creation(mode, overwrite, properties)
        return self._follow(existing, mode, overwrite, properties)

    def _follow(
        self, existing: Manifest, mode: str, overwrite: table_operations.Overwrite, properties: Mapping[str, str]
    ) -> Manifest:
        """Commit on top of a dataset that is there."""
        retries: int | None = None
        operation: table_operations.Operation = overwrite
        if mode == "append" and _lacks_dictionaries(existing):
            # An append cannot bring dictionaries along; this replaces the version that has no rows, and no later one.
            retries, operation = 0, replace(overwrite, schema=replaced_fields(existing.schema, overwrite.schema))
        elif mode == "append":
            operation = table_operations.Append(overwrite.fragments)
        change = TableTransaction(existing.version, operation, properties=properties)
        return commit_transaction(self.store, self.root, change, read_manifest=existing, max_retries=retries)

    def _follow_creation(
        self, mode: str, overwrite: table_operations.Overwrite, properties: Mapping[str, str]
    ) -> Manifest:
        """Commit on top of what others created since we looked, and perhaps replaced: our data depend on none of it."""
        backoff = Backoff()
        while backoff.start():
            newest = self.manifest = read_newest(self.store, self.root)
            if mode == "append":
                self._check_made_alike(newest, overwrite.schema, overwrite.storage_version or newest.storage_version)
            try:
                return self._follow(newest, mode, overwrite, properties)
            except CommitConflictError:
                if latest_version(self.store, self.root).version == newest.version:
                    raise
                backoff.sleep()
        raise CommitConflictError(
            f"{self.store.uri(self.root)}: other writers replaced the new dataset {backoff.lost} times meanwhile; try "
            "again when fewer of them are at work",
            retryable=True,
        )

    def _check_made_alike(self, existing: Manifest, schema: Schema, version: str) -> None:
        """Whether files written for a new dataset fit into the one that somebody else created meanwhile."""
        check_append_schema(schema.storage_arrow, existing.schema)
        if _columns(existing.schema) != _columns(schema) or existing.storage_version != version:
            raise CommitConflictError(
                f"{self.store.uri(self.root)}: another writer created the dataset meanwhile, with other columns, "
                f"another order of them or another storage version ({existing.storage_version}); append the data again",
                retryable=True,
            )
        dictionaries = {node.id: node.dictionary_values for node in existing.schema.walk()}
        for node in schema.walk():
            if not is_extension(dictionaries[node.id], node.dictionary_values):
                raise CommitConflictError(
                    f"{self.store.uri(self.root)}: another writer created the dataset meanwhile, with another "
                    f"dictionary of {node.name!r}; append the data again",
                    retryable=True,
                )


def _lacks_dictionaries(manifest: Manifest) -> bool:
    """Whether dictionaries of a legacy table are still to come, with its first rows."""
    if manifest.storage_version != LEGACY_VERSION or manifest.fragments:
        return False
    return any(len(node.dictionary_values or ()) == 0 for node in manifest.schema.walk() if node.dictionary is not None)


def _check_complete(given: Schema, existing: Schema) -> None:
    """Refuse data without some column: the reference does not change legacy tables whose files lack one."""
    missing = {node.id for node in existing.walk()} - {node.id for node in given.walk()}
    if missing:
        names = ", ".join(node.name for node in existing.walk() if node.id in missing)
        raise SchemaError(
            f"Append with different schema: fields did not match, missing=[{names}]; tables of storage version 0.1 "
            "need all columns, so give nulls"
        )


def _columns(schema: Schema) -> set[tuple[str, int, str]]:
    """Path, id and type of every field: what data files depend on."""

    def below(path: str, node: Field) -> Iterator[tuple[str, int, str]]:
        yield path, node.id, node.logical_type
        for child in node.children:
            yield from below(f"{path}\0{child.name}", child)

    return {column for top in schema.fields for column in below(top.name, top)}


def stored_columns(existing: Schema, given: pa.Schema) -> Schema:
    """The columns of an appended file: a column that the data lacks is left out, and so reads as null."""
    names = set(given.names)
    return Schema(tuple(top for top in existing.fields if top.name in names), existing.metadata)


def _check_names(arrow: pa.Schema) -> None:
    """Refuse columns that the system columns of scans would hide."""
    taken = [name for name in arrow.names if name in SYSTEM_COLUMNS]
    if taken:
        raise SchemaError(f"column name {taken[0]!r} is reserved for what scans compute; rename or drop the column")
