"""Commits of changes whose files are written already, and the transactions that made the versions of a dataset."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from lance_dataset.arguments import check_count, check_duration, check_texts, refuse, version_number
from lance_dataset.changes.existing_files import check_replacements
from lance_dataset.delta import DatasetDelta, delta_range
from lance_dataset.errors import DatasetNotFoundError, InvalidInputError, UnsupportedError
from lance_dataset.file.versions import resolve_version
from lance_dataset.io.base import CommitLock, ObjectStore
from lance_dataset.operations import LanceOperation, Transaction, from_table_transaction, to_table_operation
from lance_dataset.session import Session
from lance_dataset.table import operations as table_operations
from lance_dataset.table import transaction as table_transaction
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.old_tables.legacy_dictionaries import check_dictionaries, with_file_dictionaries
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.transaction import Transaction as TableTransaction
from lance_dataset.table.versions import list_versions, read_named
from lance_dataset.target import WriteTarget

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["BulkCommitResult", "Committing", "commit_properties"]

_COMMIT_MESSAGE = "__lance_commit_message"
_TIMEOUT = dt.timedelta(seconds=1800)


class BulkCommitResult(TypedDict):
    """What `LanceDataset.commit_batch` returns.

    Attributes
    ----------
    dataset
        A handle on the new version.
    merged
        The transaction that was committed.
    """

    dataset: LanceDataset
    merged: Transaction


class Committing:
    """Changes of a dataset by what is written down about them."""

    _manifest: Manifest
    _store: ObjectStore
    _root: str

    if TYPE_CHECKING:

        def _load(self, version: int | None) -> Manifest: ...

    @staticmethod
    def commit(
        base_uri: str | Path | LanceDataset,
        operation: LanceOperation.BaseOperation | Transaction,
        read_version: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: Mapping[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        *,
        commit_message: str | None = None,
        enable_stable_row_ids: bool | None = None,
        namespace_client: Any = None,
        table_id: Any = None,
        namespace_client_managed_versioning: bool = False,
        base_store_params: Any = None,
        commit_timeout: dt.timedelta | None = _TIMEOUT,
        session: Session | None = None,
    ) -> LanceDataset:
        """Commit an operation whose files are written: the driver's half of a distributed write.

        Parameters
        ----------
        base_uri
            The dataset; an `Overwrite` may also create one.
        operation
            A `LanceOperation`, or a `Transaction` that holds one.
        read_version
            Version the operation was computed against; may be left out for Overwrite and Restore.
        commit_lock
            Held while the version is made, see `dataset`.
        storage_options
            Options of the store.
        enable_v2_manifest_paths, enable_stable_row_ids
            For new datasets: manifest naming, and row ids that survive moves.
        detached
            Make a version that never becomes the newest and is opened by its number only.
        max_retries
            How often to try when others commit at the same moment. An Overwrite with 0 succeeds only as the very next
            version after the one it read.
        commit_message
            Stored in the transaction; a `Transaction` has it in its properties instead.
        commit_timeout
            After how long no other attempt is begun when other writers are faster, None for no such limit.

        Returns
        -------
        LanceDataset
            A handle on the new version.

        Raises
        ------
        CommitConflictError
            Another writer's change does not go together with this one.
        InvalidInputError
            `read_version` is missing, or the operation does not fit the dataset.
        UnsupportedError
            An operation that this release cannot commit.
        """
        refuse(
            "commit",
            namespace_client=namespace_client,
            table_id=table_id,
            namespace_client_managed_versioning=namespace_client_managed_versioning or None,
            base_store_params=base_store_params,
        )
        _check_limits(max_retries, commit_timeout)
        target = WriteTarget.find(base_uri, storage_options, session, commit_lock)
        change = _transaction(target, operation, read_version, commit_message)
        manifest = _commit(
            target,
            change,
            enable_v2_manifest_paths=enable_v2_manifest_paths is not False,
            enable_stable_row_ids=bool(enable_stable_row_ids),
            max_retries=max_retries,
            timeout=commit_timeout,
            detached=bool(detached),
        )
        return _opened(base_uri, target, manifest, storage_options)

    @staticmethod
    def commit_batch(
        dest: str | Path | LanceDataset,
        transactions: Sequence[Transaction],
        commit_lock: CommitLock | None = None,
        storage_options: Mapping[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        base_store_params: Any = None,
        commit_timeout: dt.timedelta | None = _TIMEOUT,
        session: Session | None = None,
    ) -> BulkCommitResult:
        """Commit several appends as one version.

        Parameters
        ----------
        dest
            The dataset.
        transactions
            Transactions of `LanceOperation.Append`. The merged one counts from the oldest version any of them read;
            properties of later ones replace those of earlier ones.
        commit_lock, storage_options, detached, max_retries, commit_timeout
            As for `commit`.
        enable_v2_manifest_paths
            Has no effect, as the dataset exists.

        Returns
        -------
        BulkCommitResult
            A dict of ``dataset``, a handle on the new version, and ``merged``, the transaction that made it.

        Raises
        ------
        InvalidInputError
            There are no transactions, or one is there twice.
        UnsupportedError
            One that is no append.
        CommitConflictError
            As for `commit`; or the very same transactions were committed as a batch before.
        DatasetNotFoundError
            As for `commit`.
        """
        refuse("commit_batch", base_store_params=base_store_params)
        _check_limits(max_retries, commit_timeout)
        merged = _merged(transactions)
        target = WriteTarget.find(dest, storage_options, session, commit_lock)
        change = _transaction(target, merged, None, None)
        manifest = _commit(
            target,
            change,
            enable_v2_manifest_paths=enable_v2_manifest_paths is not False,
            enable_stable_row_ids=False,
            max_retries=max_retries,
            timeout=commit_timeout,
            detached=bool(detached),
        )
        return {"dataset": _opened(dest, target, manifest, storage_options), "merged": merged}

    def read_transaction(self, version: int) -> Transaction | None:
        """The transaction that made a version, None if it is not known.

        Raises
        ------
        VersionNotFoundError
            There is no such version.
        """
        return self._transaction_of(self._load(version_number(version)))

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """The transactions that made this version and those before it, newest first.

        Parameters
        ----------
        recent_transactions
            How many at most.

        Returns
        -------
        list
            None for a version whose transaction is not known.
        """
        check_count("recent_transactions", recent_transactions)
        names = [each for each in list_versions(self._store, self._root) if each.version < self._manifest.version]
        names = sorted(names, key=lambda name: name.version, reverse=True)
        older = (read_named(self._store, self._root, name) for name in names)
        return [self._transaction_of(each) for each in islice(chain([self._manifest], older), recent_transactions)]

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
    ) -> DatasetDelta:
        """What changed between two versions of this branch: transactions, and rows that came, changed and went.

        Parameters
        ----------
        compared_against
            An older version, to compare the one that is open with.
        begin_version, end_version
            Instead of it: the range to look at. Changes that made `begin_version` are not part of it, those that made
            `end_version` are; 0 is the time before the first version.

        Returns
        -------
        DatasetDelta
            Nothing is read before it is asked.

        Raises
        ------
        InvalidInputError
            Neither `compared_against` nor the pair is given, or both.
        TypeError, OutOfRangeError
            A version is no number, or negative.
        """
        dataset = cast("LanceDataset", self)
        return DatasetDelta(dataset, *delta_range(dataset.version, compared_against, begin_version, end_version))

    def _transaction_of(self, manifest: Manifest) -> Transaction | None:
        found = table_transaction.read_transaction(self._store, self._root, manifest)
        return None if found is None else from_table_transaction(found)


def commit_properties(given: Mapping[str, str] | None, message: str | None) -> dict[str, str]:
    """Transaction properties, the commit message among them."""
    properties = dict(given or {})
    if message is not None:
        properties[_COMMIT_MESSAGE] = message
    return properties


def _check_limits(max_retries: int | None, timeout: dt.timedelta | None) -> None:
    if max_retries is not None:
        check_count("max_retries", max_retries)
    if timeout is None:
        return
    check_duration("commit_timeout", timeout)
    if timeout <= dt.timedelta(0):
        raise InvalidInputError(f"commit_timeout must be positive, or None for no limit, not {timeout}")


def _transaction(
    target: WriteTarget,
    operation: LanceOperation.BaseOperation | Transaction,
    read_version: int | None,
    message: str | None,
) -> TableTransaction:
    """The transaction to commit."""
    given: Mapping[str, str] | None = None
    identity: dict[str, Any] = {}
    if isinstance(operation, Transaction):
        if message is not None:
            raise InvalidInputError(
                "commit_message goes together with an operation; put the message of a Transaction into its "
                f"transaction_properties, as {_COMMIT_MESSAGE!r}"
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
        check_replacements(target.manifest, FileLocator(target.store, target.root, target.manifest.base_paths), stored)
    if not isinstance(message, str | None):
        raise TypeError(f"commit_message must be text, not {type(message).__name__}")
    properties = commit_properties(check_texts("transaction_properties", given or {}), message)
    return TableTransaction(int(read_version), stored, properties=properties, **identity)


def _with_dictionaries(operation: table_operations.Operation, target: WriteTarget) -> table_operations.Operation:
    """The operation with the dictionaries of its legacy files, or a check of them."""
    manifest = target.manifest
    if isinstance(operation, table_operations.Overwrite):
        locator = FileLocator(target.store, target.root, operation.initial_bases)
        schema = with_file_dictionaries(operation.schema, operation.fragments, locator, manifest)
        return replace(operation, schema=schema)
    if isinstance(operation, table_operations.Append) and manifest is not None:
        locator = FileLocator(target.store, target.root, manifest.base_paths)
        check_dictionaries(manifest.schema, operation.fragments, locator)
    return operation


def _commit(
    target: WriteTarget,
    change: TableTransaction,
    *,
    enable_v2_manifest_paths: bool,
    enable_stable_row_ids: bool,
    max_retries: int,
    timeout: dt.timedelta | None,
    detached: bool,
) -> Manifest:
    if target.manifest is not None:
        # A handle tells whether the dataset is still the one that the change was computed against.
        shown = target.shown
        has_read = shown is not None and shown.version == change.read_version <= target.manifest.version
        return commit_transaction(
            target.store,
            target.root,
            change,
            read_manifest=shown if has_read and not detached else target.manifest,
            max_retries=max_retries,
            timeout=None if timeout is None else timeout.total_seconds(),
            detached=detached,
        )
    if not isinstance(change.operation, table_operations.Overwrite):
        raise DatasetNotFoundError(f"Dataset at path {target.store.uri(target.root)} was not found")
    if detached:
        raise UnsupportedError("a dataset cannot begin with a detached version; create it first")
    return create_table(
        target.store,
        target.root,
        change,
        storage_version=None if change.operation.fragments else resolve_version(None),
        enable_stable_row_ids=enable_stable_row_ids,
        enable_v2_manifest_paths=enable_v2_manifest_paths,
    )


def _opened(
    uri: str | Path | LanceDataset,
    target: WriteTarget,
    manifest: Manifest,
    storage_options: Mapping[str, str] | None,
) -> LanceDataset:
    """A handle on a version that was committed."""
    from lance_dataset.dataset import LanceDataset

    if not isinstance(uri, str | os.PathLike):
        return uri._at(manifest)
    return LanceDataset(
        uri,
        storage_options=storage_options,
        session=target.session,
        _manifest=manifest,
        _store=(target.store, target.root),
    )


def _merged(transactions: Sequence[Transaction]) -> Transaction:
    """One append instead of several."""
    changes = list(transactions)
    if not changes:
        raise InvalidInputError("No transactions to commit")
    fragments, properties = [], {}
    for change in changes:
        if not isinstance(change, Transaction):
            raise TypeError(f"commit_batch takes transactions, not {type(change).__name__}")
        if not isinstance(change.operation, LanceOperation.Append):
            name = type(change.operation).__name__
            raise UnsupportedError(f"Only append transactions are supported in batch commits, not {name}")
        check_count("read_version", change.read_version)
        fragments += change.operation.fragments
        properties.update(check_texts("transaction_properties", change.transaction_properties or {}))
    oldest = min(change.read_version for change in changes)
    return Transaction(oldest, LanceOperation.Append(fragments), _merged_id(changes), properties)


def _merged_id(changes: Sequence[Transaction]) -> str:
    """The same id for the same transactions: a batch that is repeated because its fate is unknown must not count twice.

    Raises
    ------
    InvalidInputError
        One of them is there twice.
    """
    ids = sorted(str(change.uuid) for change in changes)
    twice = next((one for one, other in pairwise(ids) if one == other), None)
    if twice is not None:
        raise InvalidInputError(f"transaction {twice} is in the batch more than once")
    return str(uuid.UUID(bytes=hashlib.sha256("\n".join(ids).encode()).digest()[:16], version=4))
