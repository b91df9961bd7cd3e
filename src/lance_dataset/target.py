"""The place a write goes to: what is there already, and the commit on top of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    DatasetNotFoundError,
    InvalidInputError,
    LanceError,
    SchemaError,
)
from lance_dataset.file.blob_fields import check_table_blobs
from lance_dataset.file.families import family_of
from lance_dataset.file.versions import resolve_version
from lance_dataset.input import check_append_schema
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.resolve import resolve
from lance_dataset.operations import LanceOperation, Transaction, to_table_operation
from lance_dataset.query.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.schema import Field, Schema
from lance_dataset.session import Session
from lance_dataset.table import transaction as table_transaction
from lance_dataset.table.commit import commit_transaction, create_table
from lance_dataset.table.fragment import LEGACY_VERSION, Fragment
from lance_dataset.table.legacy_dictionaries import (
    check_dictionaries,
    is_extension,
    replaced_fields,
    with_file_dictionaries,
    without_dictionaries,
)
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.versions import latest_version, list_versions, read_latest, read_named

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["WriteTarget", "commit_operation", "commit_properties", "stored_columns"]

_COMMIT_MESSAGE = "__lance_commit_message"
_RETRIES = 20


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
    """

    def __init__(self, store: ObjectStore, root: str, session: Session, manifest: Manifest | None) -> None:
        self.store = store
        self.root = root
        self.session = session
        self.manifest = manifest

    @classmethod
    def find(
        cls,
        uri: str | Path | LanceDataset,
        storage_options: Mapping[str, str] | None,
        session: Session | None,
    ) -> WriteTarget:
        """Look at what is at a location."""
        if not isinstance(uri, str | os.PathLike):
            return cls(uri._store, uri._root, uri._session, uri._load(None))
        owner = session or Session()
        store, root = resolve(os.fspath(uri), storage_options, owner)
        return cls(store, root, owner, read_latest(store, root))

    def plan(self, arrow: pa.Schema, mode: str, version: str | None) -> tuple[Schema, str]:
        """Schema with field ids and file version of the new files."""
        existing = self.manifest
        if mode == "append" and existing is not None:
            check_append_schema(arrow, existing.schema)
            if version is not None and resolve_version(version) != existing.storage_version:
                raise InvalidInputError(
                    f"the dataset stores data in version {existing.storage_version}; appending in version {version} "
                    "is not supported"
                )
            whole = without_dictionaries(existing.schema) if _lacks_dictionaries(existing) else existing.schema
            schema, version = stored_columns(whole, arrow), resolve_version(existing.storage_version)
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
        operation: table_transaction.Operation = table_transaction.Overwrite(
            schema, tuple(fragments), storage_version=version
        )
        if existing is None:
            change = table_transaction.Transaction(0, operation, properties=properties)
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
                # Somebody created the dataset meanwhile: append to it or overwrite it after all.
                existing = self.manifest = read_named(self.store, self.root, latest_version(self.store, self.root))
                if mode == "append":
                    self._check_made_alike(existing, schema, version)
        retries = _RETRIES
        if mode == "append" and _lacks_dictionaries(existing):
            # An append cannot bring dictionaries along; this replaces the version that has no rows, and no later one.
            retries, filled = 0, replaced_fields(existing.schema, schema)
            operation = table_transaction.Overwrite(filled, tuple(fragments), storage_version=version)
        elif mode == "append":
            operation = table_transaction.Append(tuple(fragments))
        change = table_transaction.Transaction(existing.version, operation, properties=properties)
        return commit_transaction(self.store, self.root, change, read_manifest=existing, max_retries=retries)

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

    def holds(self, fragments: Sequence[Fragment]) -> bool:
        """Whether a version made since `find` has files of these fragments; True where that cannot be found out.

        A commit that failed (an interrupt, a disk error) may have failed after its manifest was in place. Its files
        must stay then; files that nobody refers to do no harm.
        """
        ours = {file.path for fragment in fragments for file in fragment.files}
        first = 1 if self.manifest is None else self.manifest.version + 1
        try:
            newer = [name for name in list_versions(self.store, self.root) if name.version >= first]
            manifests = (read_named(self.store, self.root, name) for name in newer)
            return any(file.path in ours for made in manifests for each in made.fragments for file in each.files)
        except (LanceError, OSError):
            return True


def _lacks_dictionaries(manifest: Manifest) -> bool:
    """Whether dictionaries of a legacy table are still to come, with its first rows."""
    if manifest.storage_version != LEGACY_VERSION or manifest.fragments:
        return False
    return any(len(node.dictionary_values or ()) == 0 for node in manifest.schema.walk() if node.dictionary is not None)


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


def commit_properties(given: Mapping[str, str] | None, message: str | None) -> dict[str, str]:
    """Transaction properties, the commit message among them."""
    properties = dict(given or {})
    if message is not None:
        properties[_COMMIT_MESSAGE] = message
    return properties


def commit_operation(
    target: WriteTarget,
    operation: LanceOperation.BaseOperation | Transaction,
    read_version: int | None,
    *,
    enable_v2_manifest_paths: bool,
    max_retries: int,
    commit_message: str | None,
    enable_stable_row_ids: bool,
) -> Manifest:
    """Commit a public operation, see `LanceDataset.commit`."""
    given: Mapping[str, str] | None = None
    identity: dict[str, Any] = {}
    if isinstance(operation, Transaction):
        given = operation.transaction_properties
        read_version = operation.read_version if read_version is None else read_version
        identity = {"uuid": operation.uuid}
        operation = operation.operation
    stored = _with_dictionaries(to_table_operation(operation), target)
    if read_version is None:
        if not isinstance(stored, table_transaction.Overwrite | table_transaction.Restore):
            raise InvalidInputError(f"committing {stored.name} needs read_version, the version it was computed against")
        read_version = target.manifest.version if target.manifest is not None else 0
    properties = commit_properties(given, commit_message)
    change = table_transaction.Transaction(read_version, stored, properties=properties, **identity)
    if target.manifest is not None:
        return commit_transaction(
            target.store, target.root, change, read_manifest=target.manifest, max_retries=max_retries
        )
    if not isinstance(stored, table_transaction.Overwrite):
        raise DatasetNotFoundError(f"Dataset at path {target.store.uri(target.root)} was not found")
    return create_table(
        target.store,
        target.root,
        change,
        storage_version=None if stored.fragments else resolve_version(None),
        enable_stable_row_ids=enable_stable_row_ids,
        enable_v2_manifest_paths=enable_v2_manifest_paths,
    )


def _with_dictionaries(operation: table_transaction.Operation, target: WriteTarget) -> table_transaction.Operation:
    """The operation with the dictionaries of its legacy files, or a check of them."""
    manifest = target.manifest
    if isinstance(operation, table_transaction.Overwrite):
        locator = FileLocator(target.store, target.root, operation.initial_bases)
        schema = with_file_dictionaries(operation.schema, operation.fragments, locator, manifest)
        return replace(operation, schema=schema)
    if isinstance(operation, table_transaction.Append) and manifest is not None:
        locator = FileLocator(target.store, target.root, manifest.base_paths)
        check_dictionaries(manifest.schema, operation.fragments, locator)
    return operation


def _check_names(arrow: pa.Schema) -> None:
    """Refuse columns that the system columns of scans would hide."""
    taken = [name for name in arrow.names if name in SYSTEM_COLUMNS]
    if taken:
        raise SchemaError(f"column name {taken[0]!r} is reserved for what scans compute; rename or drop the column")
