"""Commits of changes that were computed against a snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.conflicts import AffectedRows
from lance_dataset.table.operations import Operation, Restore
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import latest_version

__all__ = ["commit_change", "restore_version"]


def commit_change(
    snapshot: Snapshot,
    operation: Operation,
    *,
    affected_rows: AffectedRows | None = None,
    properties: Mapping[str, str] | None = None,
) -> Snapshot:
    """Commit an operation that was computed against a snapshot.

    Parameters
    ----------
    snapshot
        Version that the operation was computed against.
    operation
        The change.
    affected_rows
        Physical offsets of the rows that the operation masks, by fragment id. Other writers may change other rows.
    properties
        Properties of the transaction.

    Returns
    -------
    Snapshot
        The new version. It includes what other writers committed in the meantime.

    Raises
    ------
    CommitConflictError
        Another writer's change conflicts with this one.
    """
    change = Transaction(snapshot.version, operation, properties=dict(properties or {}))
    manifest = commit_transaction(
        snapshot.store, snapshot.root, change, read_manifest=snapshot.manifest, affected_rows=affected_rows
    )
    return snapshot.followed_by(manifest)


def restore_version(snapshot: Snapshot) -> Snapshot:
    """Commit a snapshot as the newest version of its table.

    Raises
    ------
    CommitConflictError
        Every attempt lost against another writer.
    """
    store, root = snapshot.store, snapshot.root
    change = Transaction(latest_version(store, root).version, Restore(snapshot.version))
    return snapshot.followed_by(commit_transaction(store, root, change, read_manifest=snapshot.manifest))
