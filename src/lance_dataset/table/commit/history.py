"""Transactions of versions, read without decoding the versions themselves."""

from __future__ import annotations

from lance_dataset.errors import MissingFileError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.guarded import external_manifests_of
from lance_dataset.table.manifest_file import manifest_parts, read_section, transaction_position
from lance_dataset.table.naming import Naming, manifest_path
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import locate_version

__all__ = ["read_transaction_of"]


def read_transaction_of(
    store: ObjectStore, root: str, version: int, naming: Naming | None = None
) -> Transaction | None:
    """Read the transaction that made a version, without decoding the fragments and columns of its manifest.

    Parameters
    ----------
    store, root
        The table.
    version
        The version.
    naming
        Naming scheme of the table's manifests, if known.

    Returns
    -------
    Transaction or None
        None if the version has no transaction, or if it was removed.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        The version does not exist.
    CorruptFileError
        The manifest or the transaction cannot be decoded.
    """
    path, data = _read(store, root, version, naming)
    message = manifest_parts(data, path).message
    inline = read_section(data, transaction_position(message), "transaction", path)
    if inline is not None:
        return Transaction.decode(inline, f"{path}: inline transaction")
    if not message.transaction_file:
        return None
    _, transaction_path = FileLocator(store, root).transaction_file(message.transaction_file)
    try:
        return Transaction.decode(store.read(transaction_path), transaction_path)
    except MissingFileError:
        return None


def _read(store: ObjectStore, root: str, version: int, naming: Naming | None) -> tuple[str, bytes]:
    if naming in (Naming.V1, Naming.V2) and external_manifests_of(store) is None:
        path = manifest_path(root, version, naming)
        try:
            return path, store.read(path)
        except MissingFileError:  # renamed by a migration
            pass
    path = locate_version(store, root, version)
    return path, store.read(path)
