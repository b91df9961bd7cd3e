"""Making a new version: atomic, durable, safe next to other writers."""

from __future__ import annotations

import logging
import os
import random
import time
from dataclasses import replace

from lance_dataset._version import __version__
from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    DatasetNotFoundError,
    InvalidInputError,
    MissingFileError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.apply import first_manifest, next_manifest
from lance_dataset.table.completion import FragmentCompletion
from lance_dataset.table.conflicts import check_columns_kept, check_conflict
from lance_dataset.table.fragment import LEGACY_VERSION, Fragment
from lance_dataset.table.latest_copy import adopt_latest_copy, update_latest_copy
from lance_dataset.table.leftovers import remove_superseded, remove_uncommitted
from lance_dataset.table.manifest import Manifest, WriterVersion, encode_manifest, read_commit_id
from lance_dataset.table.naming import VERSIONS_FOLDER, ManifestName, Naming, manifest_path, named_path
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.rebase import AffectedRows, rebase_delete
from lance_dataset.table.transaction import (
    Append,
    Delete,
    Operation,
    Overwrite,
    Restore,
    Rewrite,
    Transaction,
    read_transaction,
)
from lance_dataset.table.versions import find_latest, find_latest_to_follow, read_named, read_version

__all__ = ["WRITER_VERSION", "commit_transaction", "create_table"]

_log = logging.getLogger(__name__)

#: Readers compare the version with releases of the reference to find manifests with known mistakes (0.20 does so for
#: any library), so it names the release whose rules are followed; our own version is build metadata.
WRITER_VERSION = WriterVersion("lance_dataset", "14.0.2", build_metadata=__version__)
_HINT_NAME = "latest_version_hint.json"
_FIRST_SLOTS = 4
_MAX_SLOTS = 128
_MAX_SLEEP = 5.0


def create_table(
    store: ObjectStore,
    root: str,
    transaction: Transaction,
    *,
    storage_version: str | None = None,
    enable_stable_row_ids: bool = False,
    enable_v2_manifest_paths: bool = True,
) -> Manifest:
    """Write version 1 of a new table.

    Parameters
    ----------
    store, root
        Where the table will be.
    transaction
        An `Overwrite` with read version 0; its data files are written already.
    storage_version
        Storage version of the table; None takes that of the files, or the default.
    enable_stable_row_ids
        Whether rows get ids that stay when they move.
    enable_v2_manifest_paths
        Whether manifests are named so that the newest is listed first.

    Returns
    -------
    Manifest
        The new version, which is durable.

    Raises
    ------
    AlreadyExistsError
        There is a table already, or another writer created one at the same time.
    """
    operation = transaction.operation
    if not isinstance(operation, Overwrite):
        raise InvalidInputError(f"a dataset is created by an Overwrite transaction, not by {operation.name}")
    transaction.check_uuid()
    if find_latest(store, root) is not None:
        raise AlreadyExistsError(f"Dataset already exists: {store.uri(root)}")
    manifest = first_manifest(operation, storage_version=storage_version, stable_row_ids=enable_stable_row_ids)
    naming = Naming.V2 if enable_v2_manifest_paths else Naming.V1
    try:
        return _publish(store, root, manifest, replace(transaction, read_version=0), naming)
    except AlreadyExistsError as error:
        raise AlreadyExistsError(f"Dataset already exists: {store.uri(root)}") from error


def commit_transaction(
    store: ObjectStore,
    root: str,
    transaction: Transaction,
    *,
    read_manifest: Manifest | None = None,
    affected_rows: AffectedRows | None = None,
    max_retries: int = 20,
) -> Manifest:
    """Commit a change on top of the newest version of a table.

    Changes that others committed since `transaction.read_version` are checked; where they allow it, ours is put on top
    of them.

    Parameters
    ----------
    store, root
        The table.
    transaction
        The change; its files are written already.
    read_manifest
        The version the change was computed against, if at hand; spares a read.
    affected_rows
        For a `Delete`: offsets of the rows it newly deletes, by fragment id. With them two deletes in one fragment go
        together when they delete different rows.
    max_retries
        How many times to try when others commit at the same moment. An `Overwrite` with 0 is strict: it succeeds only
        as the very next version after the one it read.

    Returns
    -------
    Manifest
        The new version, which is durable.

    Raises
    ------
    CommitConflictError
        Another writer's change does not go together with ours; `retryable` tells whether to compute it again. Or the
        transaction was committed before, or the dataset was replaced by another.
    DatasetNotFoundError
        There is no table.
    UnsupportedError
        The table needs a feature that this release cannot keep up.
    """
    transaction.check_uuid()
    rewritten: list[Fragment] = []
    try:
        made = _commit(store, root, transaction, read_manifest, affected_rows, max_retries, rewritten)
    except BaseException:
        remove_uncommitted(store, root, rewritten, transaction.read_version)
        raise
    remove_superseded(store, root, rewritten, made.fragments)
    return made


def _commit(
    store: ObjectStore,
    root: str,
    transaction: Transaction,
    read_manifest: Manifest | None,
    affected_rows: AffectedRows | None,
    max_retries: int,
    rewritten: list[Fragment],
) -> Manifest:
    """Try until it works; fragments that got another deletion file on the way are added to `rewritten`."""
    strict = max_retries == 0 and isinstance(transaction.operation, Overwrite)
    known = read_manifest
    backoff = _Backoff()
    complete = FragmentCompletion(store, root)
    for _ in range(max(max_retries, 1)):
        latest = find_latest_to_follow(store, root)
        if latest is None:
            raise DatasetNotFoundError(f"Dataset at path {store.uri(root)} was not found")
        if latest.naming is Naming.LATEST_COPY:
            latest = adopt_latest_copy(store, root)
        if known is not None:
            _check_not_replaced(store, root, known, latest)
        if strict and latest.version != transaction.read_version:
            break
        base = known if known is not None and known.version == latest.version else read_named(store, root, latest)
        given = transaction
        transaction = _rebased(store, root, given, base, affected_rows)
        rewritten += _rewritten(given.operation, transaction.operation)
        if given.read_version < base.version:
            _check_columns(store, root, given, base, read_manifest)
        restored = _restored(store, root, transaction)
        manifest = next_manifest(base, transaction.operation, restored, complete=complete)
        try:
            return _publish(store, root, manifest, transaction, latest.naming)
        except AlreadyExistsError:
            known = None
            backoff.sleep()
    raise CommitConflictError(
        f"Retryable commit conflict for version {transaction.read_version + 1}: other writers were faster "
        f"{max(max_retries, 1)} times; try again when fewer of them are at work",
        retryable=True,
    )


def _check_not_replaced(store: ObjectStore, root: str, known: Manifest, latest: ManifestName) -> None:
    """Refuse a manifest that is not of this table: somebody may have dropped the table and made another."""
    current = named_path(root, latest) if known.version == latest.version else known.path
    try:
        same = known.version <= latest.version and read_commit_id(store, current) == known.commit_id
    except MissingFileError:
        # Old versions may be removed; then the transactions of the newer ones have to tell.
        same = True
    if not same:
        raise CommitConflictError(
            f"{store.uri(root)}: version {known.version} is no longer the one this change was computed against; the "
            "dataset was replaced, open it again and repeat the change",
            retryable=False,
        )


def _restored(store: ObjectStore, root: str, transaction: Transaction) -> Manifest | None:
    if not isinstance(transaction.operation, Restore):
        return None
    return read_version(store, root, transaction.operation.version)


def _rebased(
    store: ObjectStore, root: str, transaction: Transaction, base: Manifest, affected_rows: AffectedRows | None
) -> Transaction:
    """The transaction as one computed against `base`, after a check of all that was committed in between."""
    if transaction.read_version > base.version:
        raise InvalidInputError(
            f"{store.uri(root)}: the change was computed against version {transaction.read_version}, but the newest "
            f"version is {base.version}"
        )
    marked: set[int] = set()
    for version in range(transaction.read_version + 1, base.version + 1):
        theirs = _committed(store, root, version, base)
        if theirs.uuid == transaction.uuid:
            raise _committed_before(transaction, version)
        marked |= check_conflict(transaction, theirs, version, rows_known=affected_rows is not None)
    operation = transaction.operation
    if marked and isinstance(operation, Delete) and affected_rows is not None:
        operation = rebase_delete(store, root, operation, marked, base, affected_rows)
    return replace(transaction, read_version=base.version, operation=operation)


def _check_columns(
    store: ObjectStore, root: str, transaction: Transaction, base: Manifest, read_manifest: Manifest | None
) -> None:
    """Check new files against changes of the schema since they were written."""
    if not isinstance(transaction.operation, Append | Rewrite):
        return
    read = read_manifest
    if read is None or read.version != transaction.read_version:
        try:
            read = read_version(store, root, transaction.read_version)
        except (VersionNotFoundError, MissingFileError):  # removed; then only transactions can tell
            return
    check_columns_kept(transaction.operation, read.schema, base.schema, base.version)


def _rewritten(before: Operation, after: Operation) -> list[Fragment]:
    """Fragments of a delete that got another deletion file."""
    if before is after or not isinstance(before, Delete) or not isinstance(after, Delete):
        return []
    return [fragment for fragment in after.updated_fragments if fragment not in before.updated_fragments]


def _committed(store: ObjectStore, root: str, version: int, base: Manifest) -> Transaction:
    """The transaction of a version."""
    try:
        manifest = base if version == base.version else read_version(store, root, version)
        transaction = read_transaction(store, root, manifest)
    except (VersionNotFoundError, MissingFileError):
        transaction = None
    if transaction is None:
        raise CommitConflictError(
            f"Dataset version {version} does not have a transaction file, so this change cannot be compared with what "
            "was committed meanwhile; repeat it on the newest version",
            retryable=True,
        )
    return transaction


def _committed_before(transaction: Transaction, version: int) -> CommitConflictError:
    return CommitConflictError(
        f"transaction {transaction.uuid} was committed already, as version {version}", retryable=False
    )


def _publish(store: ObjectStore, root: str, manifest: Manifest, transaction: Transaction, naming: Naming) -> Manifest:
    """Write the transaction file and the manifest of a new version, which must not exist."""
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
        store.put_if_absent(path, content)
    except AlreadyExistsError:
        # Another writer may have committed the very same transaction, and then the file is theirs too.
        _, winner = read_commit_id(store, path)
        if winner == transaction.file_name:
            raise _committed_before(transaction, signed.version) from None
        if created:
            store.delete(transaction_path)
        raise
    _write_hint(store, root, signed.version)
    if naming is Naming.V1 and signed.storage_version == LEGACY_VERSION:
        update_latest_copy(store, root, signed.version, content)
    return replace(signed, path=path, file_size=len(content))


def _put_transaction(store: ObjectStore, path: str, encoded: bytes) -> bool:
    """Write a transaction file; False if a writer of the same transaction did it before."""
    try:
        store.put_if_absent(path, encoded)
    except AlreadyExistsError:
        try:
            same = store.read(path) == encoded
        except MissingFileError:
            # That writer lost against a third one and took its file away; this one is about to lose as well.
            return False
        if not same:
            raise CommitConflictError(
                f"{store.uri(path)} holds another transaction with the same id; make a new transaction with its own id",
                retryable=False,
            ) from None
        return False
    return True


def _write_hint(store: ObjectStore, root: str, version: int) -> None:
    """Note the newest version where a listing is not ordered; nobody depends on it."""
    switch = os.environ.get("LANCE_USE_VERSION_HINT", "").strip().lower()
    if store.lists_in_order or switch in ("0", "false", "off"):
        return
    try:
        store.put(f"{root}/{VERSIONS_FOLDER}/{_HINT_NAME}", b'{"version":%d}' % version, durable=False)
    except OSError as error:
        _log.debug("version hint of %s not written: %s", store.uri(root), error)


class _Backoff:
    """Waits a random number of time slots, as long as one attempt each; more slots after every wait."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._unit = 0.0
        self._slots = _FIRST_SLOTS

    def sleep(self) -> None:
        self._unit = self._unit or 1.1 * (time.monotonic() - self._started)
        time.sleep(min(_MAX_SLEEP, random.randrange(self._slots) * self._unit))
        self._slots = min(_MAX_SLOTS, 2 * self._slots)
