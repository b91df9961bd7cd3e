"""Publication of a new version of a table."""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from dataclasses import replace

from lance_dataset._version import __version__
from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    DatasetNotFoundError,
    LanceError,
    MissingFileError,
    UnsupportedError,
    VersionNotFoundError,
)
from lance_dataset.events import emit
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.fragment import LEGACY_VERSION
from lance_dataset.table.manifest import Manifest, WriterVersion, encode_manifest, read_commit_id
from lance_dataset.table.naming import VERSION_HINT, VERSIONS_FOLDER, Naming, manifest_path
from lance_dataset.table.old_tables.latest_copy import update_latest_copy
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.protocol import commit_protocol
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import locate_version

__all__ = ["WRITER_VERSION", "committed_before", "publish_version"]

_log = logging.getLogger(__name__)

#: Readers compare this version with releases of the reference to find manifests with known mistakes (0.20 does so for
#: any library). Therefore it names the release whose rules are followed. The version of this library is build metadata.
WRITER_VERSION = WriterVersion("lance_dataset", "14.0.2", build_metadata=__version__)


def committed_before(transaction: Transaction, version: int) -> CommitConflictError:
    """Return the error for a transaction that was already committed."""
    return CommitConflictError(
        f"transaction {transaction.uuid} was committed already, as version {version}", retryable=False
    )


def publish_version(
    store: ObjectStore, root: str, manifest: Manifest, transaction: Transaction, naming: Naming
) -> Manifest:
    """Write the transaction file and the manifest of a new version.

    Parameters
    ----------
    store, root
        The table.
    manifest
        The version to make, without its timestamp and its transaction, which are set here.
    transaction
        The transaction that makes it.
    naming
        Naming scheme of the table's manifests, or `Naming.DETACHED` for a version that never becomes the newest.

    Returns
    -------
    Manifest
        The version as written. It is durable.

    Raises
    ------
    AlreadyExistsError
        Another writer has made the version.
    CommitConflictError
        The same transaction has already made it.
    """
    encoded = transaction.encode()
    signed = replace(
        manifest,
        timestamp_nanos=time.time_ns(),
        tag=transaction.tag,
        transaction_file=transaction.file_name,
        inline_transaction=encoded,
        writer_version=manifest.writer_version or WRITER_VERSION,
    )
    content = encode_manifest(signed)
    path = manifest_path(root, signed.version, naming)
    _, transaction_path = FileLocator(store, root).transaction_file(transaction.file_name)
    created = _put_transaction(store, transaction_path, encoded)
    try:
        commit_protocol(store).publish(store, root, signed.version, naming, content)
    except AlreadyExistsError:
        winner = _commit_id(store, root, signed.version)
        # A store client repeats a request whose answer was lost, and then finds its own manifest.
        if winner != signed.commit_id:
            # Another writer may have committed the same transaction, and then the file is theirs too.
            if winner is not None and winner[1] == transaction.file_name:
                raise committed_before(transaction, signed.version) from None
            if created:
                store.delete(transaction_path)
            raise
    except BaseException:
        if created and _is_not_made(store, root, signed):
            with suppress(LanceError, OSError):
                store.delete(transaction_path)
        raise
    if naming is not Naming.DETACHED:
        _write_hint(store, root, signed.version)
    if naming is Naming.V1 and signed.storage_version == LEGACY_VERSION:
        update_latest_copy(store, root, signed.version, content)
    emit("file_audit", mode="create", type="manifest", path=path)
    emit(
        "dataset_events",
        event="committed",
        uri=store.uri(root),
        read_version=transaction.read_version,
        committed_version=signed.version,
        detached=naming is Naming.DETACHED,
        operation=transaction.operation.name,
    )
    return replace(signed, path=path, file_size=len(content))


def _commit_id(store: ObjectStore, root: str, version: int) -> tuple[int, str] | None:
    """Return the identity of the commit of a version, or None if the version is gone."""
    try:
        return read_commit_id(store, locate_version(store, root, version))
    except (MissingFileError, DatasetNotFoundError, VersionNotFoundError):
        return None


def _is_not_made(store: ObjectStore, root: str, manifest: Manifest) -> bool:
    """Return True if a version whose manifest could not be written certainly does not exist, or is another writer's."""
    try:
        found = _commit_id(store, root, manifest.version)
    except (LanceError, OSError):
        return False
    return found is None or found[1] != manifest.transaction_file


def _put_transaction(store: ObjectStore, path: str, encoded: bytes) -> bool:
    """Write a transaction file. Return False if a writer of the same transaction already wrote it.

    The file need not be synced to disk, because the manifest contains a durable copy. Waiting for the disk twice would
    let faster writers win every time.
    """
    try:
        try:
            store.put_spare(path, encoded)
        except UnsupportedError:
            store.put_if_absent(path, encoded)
    except AlreadyExistsError:
        try:
            found = store.read(path)
        except MissingFileError:
            # That writer lost to a third one and removed its file. This one is about to lose as well.
            return False
        if len(found) < len(encoded) and encoded.startswith(found):
            # Remains of an earlier attempt after a power failure.
            store.put(path, encoded, durable=False)
        elif found != encoded:
            raise CommitConflictError(
                f"{store.uri(path)} contains another transaction with the same id; create one with its own id",
                retryable=False,
            ) from None
        return False
    return True


def _write_hint(store: ObjectStore, root: str, version: int) -> None:
    """Record the newest version if listings are not ordered. Nothing depends on this hint."""
    switch = os.environ.get("LANCE_USE_VERSION_HINT", "").strip().lower()
    if store.lists_in_order or switch in ("0", "false", "off"):
        return
    try:
        store.put_hint(f"{root}/{VERSIONS_FOLDER}/{VERSION_HINT}", b'{"version":%d}' % version)
    except OSError as error:
        _log.debug("version hint of %s not written: %s", store.uri(root), error)
