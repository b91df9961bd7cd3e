"""Transactions that made the versions of a table, as public records."""

from __future__ import annotations

from collections.abc import Iterator

from lance_dataset.read.location import TableLocation
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.conversion import from_table_transaction
from lance_dataset.records.operations import Transaction
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.transaction import Transaction as StoredTransaction
from lance_dataset.table.transaction import read_transaction
from lance_dataset.table.versions import list_versions, read_named

__all__ = ["stored_transactions_until", "transaction_of", "transactions_until"]


def transaction_of(location: TableLocation, manifest: Manifest) -> Transaction | None:
    """Return the transaction that made a version, or None if it is not known."""
    found = read_transaction(location.store, location.root, manifest)
    return None if found is None else from_table_transaction(found)


def transactions_until(snapshot: Snapshot) -> Iterator[Transaction | None]:
    """Yield the transaction that made a snapshot, then those of the versions before it, newest first."""
    for found in stored_transactions_until(snapshot):
        yield None if found is None else from_table_transaction(found)


def stored_transactions_until(snapshot: Snapshot) -> Iterator[StoredTransaction | None]:
    """Yield the same transactions as `transactions_until`, as they are stored."""
    place = snapshot.location
    yield read_transaction(place.store, place.root, snapshot.manifest)
    names = [name for name in list_versions(place.store, place.root) if name.version < snapshot.version]
    for name in sorted(names, key=lambda name: name.version, reverse=True):
        yield read_transaction(place.store, place.root, read_named(place.store, place.root, name))
