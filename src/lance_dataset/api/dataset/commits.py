"""Commits of operations whose files are already written."""

from __future__ import annotations

import datetime as dt
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from lance_dataset.api.locations import find_target
from lance_dataset.io.catalogs import check_catalog_pair, describe_table
from lance_dataset.io.guarded import CommitLock
from lance_dataset.read.session import Session
from lance_dataset.read.shown import Shown
from lance_dataset.records.defaults import DEFAULT_COMMIT_TIMEOUT
from lance_dataset.records.operations import LanceOperation, Transaction

__all__ = ["Committed"]

_Self = TypeVar("_Self", bound="Committed")


class Committed(Shown):
    """Commits of operations whose files are already written."""

    @classmethod
    def commit(
        cls: type[_Self],
        base_uri: str | os.PathLike[str] | Shown,
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
        namespace_client: object = None,
        table_id: Sequence[str] | None = None,
        namespace_client_managed_versioning: bool = False,
        base_store_params: Mapping[str, Mapping[str, str]] | None = None,
        commit_timeout: dt.timedelta | None = DEFAULT_COMMIT_TIMEOUT,
        session: Session | None = None,
    ) -> _Self:
        """Commit an operation whose files are already written: the driver's half of a distributed write.

        Parameters
        ----------
        base_uri
            The dataset. An `Overwrite` may also create one.
        operation
            A `LanceOperation`, or a `Transaction` that holds one.
        read_version
            Version that the operation was computed from. Not required for Overwrite and Restore.
        commit_lock
            Lock to hold during the commit; see `lance_dataset.dataset`.
        storage_options
            Options of the store.
        enable_v2_manifest_paths, enable_stable_row_ids
            For new datasets: use the newer names of manifests, and row ids that stay the same when rows move.
        detached
            Create a version that never becomes the newest and can be opened only by its number.
        max_retries
            Number of retries if others commit at the same time. An Overwrite with 0 retries succeeds only if its
            version directly follows the version it read.
        commit_message
            Stored in the transaction. A `Transaction` has it in its properties instead.
        namespace_client, table_id
            Client of the catalog that has the dataset, and its id there; see `lance_dataset.dataset`. The catalog may
            lend storage options, and decide which versions exist.
        base_store_params
            Options of each base path, by its URI; see `lance_dataset.dataset`.
        namespace_client_managed_versioning
            True if the catalog decides which versions exist although it does not say so.
        commit_timeout
            Time after which no other attempt is started if other writers commit first. None for no limit.

        Returns
        -------
        LanceDataset
            Handle on the new version.

        Raises
        ------
        CommitConflictError
            The operation conflicts with a change of another writer.
        InvalidInputError
            `read_version` is missing, or the operation does not fit the dataset.
        UnsupportedError
            This release cannot commit the operation.
        """
        from lance_dataset.changes.write.committing import CommitSettings, commit_operation

        table = None
        if check_catalog_pair(namespace_client, table_id):
            table = describe_table(namespace_client, table_id or (), storage_options)
            table = replace(table, managed=table.managed or bool(namespace_client_managed_versioning))
        settings = CommitSettings(
            max_retries,
            commit_timeout,
            bool(detached),
            enable_v2_manifest_paths=enable_v2_manifest_paths is not False,
            enable_stable_row_ids=bool(enable_stable_row_ids),
        )
        target = find_target(
            base_uri, storage_options, session, commit_lock, table=table, base_store_params=base_store_params
        )
        made = commit_operation(target, operation, settings, read_version=read_version, message=commit_message)
        return cls.showing(made)

    @classmethod
    def _commit(
        cls: type[_Self],
        base_uri: str | os.PathLike[str],
        operation: LanceOperation.BaseOperation,
        read_version: int | None = None,
        commit_lock: CommitLock | None = None,
    ) -> _Self:
        """Commit an operation. Deprecated: use `commit`. Older programs of the reference call it."""
        warnings.warn(
            "LanceDataset._commit() is deprecated, use LanceDataset.commit() instead", DeprecationWarning, stacklevel=2
        )
        return cls.commit(base_uri, operation, read_version, commit_lock)
