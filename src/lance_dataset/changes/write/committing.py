"""Commits of operations whose files are already written, which is the driver's part of a distributed write."""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from lance_dataset.arguments import check_count, check_duration, check_texts
from lance_dataset.changes.write.target import WriteTarget
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.versions import resolve_version
from lance_dataset.read.existing_files import check_replacements
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.conversion import to_table_operation
from lance_dataset.records.defaults import DEFAULT_COMMIT_TIMEOUT
from lance_dataset.records.operations import LANCE_COMMIT_MESSAGE_KEY, LanceOperation, Transaction, commit_properties
from lance_dataset.table import operations as table_operations
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.no_table import no_table
from lance_dataset.table.old_tables.legacy_dictionaries import check_dictionaries, with_file_dictionaries
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.transaction import Transaction as TableTransaction

__all__ = ["CommitSettings", "commit_operation", "merged_appends"]


@dataclass(frozen=True)
class CommitSettings:
    """Settings of a commit, see `LanceDataset.commit`.

    Attributes
    ----------
    max_retries, timeout
        Maximum number of retries, and time limit, when other writers commit concurrently.
    detached
        True to make a version that never becomes the newest one.
    enable_v2_manifest_paths, enable_stable_row_ids
        For new tables: naming scheme of manifests, and row ids that survive moves.

    Raises
    ------
    TypeError, OutOfRangeError, InvalidInputError
        `max_retries` is not a count, or `timeout` is not a positive duration.
    """

    max_retries: int = 20
    timeout: dt.timedelta | None = DEFAULT_COMMIT_TIMEOUT
    detached: bool = False
    enable_v2_manifest_paths: bool = True
    enable_stable_row_ids: bool = False

    def __post_init__(self) -> None:
        if self.max_retries is not None:
            check_count("max_retries", self.max_retries)
        if self.timeout is None:
            return
        check_duration("commit_timeout", self.timeout)
        if self.timeout <= dt.timedelta(0):
            raise InvalidInputError(f"commit_timeout must be positive, or None for no limit, not {self.timeout}")


def commit_operation(
    target: WriteTarget,
    operation: LanceOperation.BaseOperation | Transaction,
    settings: CommitSettings,
    *,
    read_version: int | None = None,
    message: str | None = None,
) -> Snapshot:
    """Commit an operation whose files are written.

    Parameters
    ----------
    target
        Table to commit to; an `Overwrite` may also create it.
    operation
        The operation, or a transaction that holds one.
    settings
        Settings of the commit.
    read_version
        Version that the operation was computed against; optional for Overwrite and Restore.
    message
        Commit message, for an operation without a transaction.

    Raises
    ------
    CommitConflictError
        Another writer's change conflicts with this one.
    InvalidInputError
        `read_version` is missing, or the operation does not fit the table.
    DatasetNotFoundError
        The table does not exist.
    UnsupportedError
        This release cannot commit the operation.
    """
    change = _transaction(target, operation, read_version, message)
    return target.opened(_commit(target, change, settings))


def _transaction(
    target: WriteTarget,
    operation: LanceOperation.BaseOperation | Transaction,
    read_version: int | None,
    message: str | None,
) -> TableTransaction:
    """Make the transaction to commit."""
    given: Mapping[str, str] | None = None
    identity: dict[str, Any] = {}
    if isinstance(operation, Transaction):
        if message is not None:
            raise InvalidInputError(
                "commit_message can only be used with an operation; put the message of a Transaction into its "
                f"transaction_properties, as {LANCE_COMMIT_MESSAGE_KEY!r}"
            )
        given = operation.transaction_properties
        read_version = operation.read_version if read_version is None else read_version
        identity = {"uuid": operation.uuid}
        operation = operation.operation
    stored = _with_dictionaries(to_table_operation(operation), target)
    if read_version is None:
        if not isinstance(stored, table_operations.Overwrite | table_operations.Restore):
            raise InvalidInputError(f"committing {stored.name} needs read_version, the version it was computed against")
        read_version = target.manifest.version if target.manifest is not None else 0
    check_count("read_version", read_version)
    if isinstance(stored, table_operations.DataReplacement) and target.manifest is not None:
        check_replacements(target.manifest, target.location.locator(target.manifest), stored)
    if not isinstance(message, str | None):
        raise TypeError(f"commit_message must be text, not {type(message).__name__}")
    properties = commit_properties(check_texts("transaction_properties", given or {}), message)
    return TableTransaction(int(read_version), stored, properties=properties, **identity)


def _with_dictionaries(operation: table_operations.Operation, target: WriteTarget) -> table_operations.Operation:
    """Add the dictionaries of legacy files to the schema of an overwrite; check those of an append."""
    manifest = target.manifest
    if isinstance(operation, table_operations.Overwrite):
        locator = FileLocator(target.store, target.root, operation.initial_bases)
        schema = with_file_dictionaries(operation.schema, operation.fragments, locator, manifest)
        return replace(operation, schema=schema)
    if isinstance(operation, table_operations.Append) and manifest is not None:
        locator = target.location.locator(manifest)
        check_dictionaries(manifest.schema, operation.fragments, locator)
    return operation


def _commit(target: WriteTarget, change: TableTransaction, settings: CommitSettings) -> Manifest:
    if target.manifest is not None:
        # The snapshot of a handle tells if the table is still the one that the change was computed against.
        read = target.manifest
        if target.shown is not None and target.shown.version == change.read_version <= read.version:
            read = read if settings.detached else target.shown.manifest
        return commit_transaction(
            target.store,
            target.root,
            change,
            read_manifest=read,
            max_retries=settings.max_retries,
            timeout=None if settings.timeout is None else settings.timeout.total_seconds(),
            detached=settings.detached,
        )
    if not isinstance(change.operation, table_operations.Overwrite):
        raise no_table(target.store, target.root)
    if settings.detached:
        raise UnsupportedError("a dataset cannot begin with a detached version; create it first")
    return create_table(
        target.store,
        target.root,
        change,
        storage_version=None if change.operation.fragments else resolve_version(None),
        enable_stable_row_ids=settings.enable_stable_row_ids,
        enable_v2_manifest_paths=settings.enable_v2_manifest_paths,
    )


def merged_appends(transactions: Sequence[Transaction]) -> Transaction:
    """Merge several appends into one transaction.

    Raises
    ------
    InvalidInputError
        There are no transactions, or one of them occurs twice.
    UnsupportedError
        One of them is not an append.
    """
    changes = list(transactions)
    if not changes:
        raise InvalidInputError("No transactions to commit")
    fragments, properties = [], {}
    for change in changes:
        if not isinstance(change, Transaction):
            raise TypeError(f"commit_batch requires transactions, not {type(change).__name__}")
        if not isinstance(change.operation, LanceOperation.Append):
            name = type(change.operation).__name__
            raise UnsupportedError(f"Only append transactions are supported in batch commits, not {name}")
        check_count("read_version", change.read_version)
        fragments += change.operation.fragments
        properties.update(check_texts("transaction_properties", change.transaction_properties or {}))
    oldest = min(change.read_version for change in changes)
    return Transaction(oldest, LanceOperation.Append(fragments), _merged_id(changes), properties)


def _merged_id(changes: Sequence[Transaction]) -> str:
    """Derive an id from those of the transactions, so that a repeated commit of the same batch is recognized.

    Raises
    ------
    InvalidInputError
        A transaction occurs twice.
    """
    ids = sorted(str(change.uuid) for change in changes)
    twice = next((one for one, other in pairwise(ids) if one == other), None)
    if twice is not None:
        raise InvalidInputError(f"transaction {twice} is in the batch more than once")
    return str(uuid.UUID(bytes=hashlib.sha256("\n".join(ids).encode()).digest()[:16], version=4))
