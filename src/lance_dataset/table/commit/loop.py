"""Commit of new versions: atomic, durable, and safe with concurrent writers."""

from __future__ import annotations

from dataclasses import replace

from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    MissingFileError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.apply import first_manifest, next_manifest
from lance_dataset.table.commit.backoff import Backoff
from lance_dataset.table.commit.history import read_transaction_of
from lance_dataset.table.commit.leftovers import ChangeFiles, fragments_in, remove_superseded
from lance_dataset.table.commit.lost_history import compare_states
from lance_dataset.table.commit.rebase import (
    check_overlaid_rows,
    check_reuse_index,
    check_rewritten_indices,
    rebase_index,
    rebase_rows,
)
from lance_dataset.table.commit.source_versions import check_source_kept
from lance_dataset.table.conflicts import AffectedRows, check_columns_kept, check_conflict
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.manifest import Manifest, read_commit_id
from lance_dataset.table.naming import ManifestName, Naming, is_detached, named_path, random_detached_version
from lance_dataset.table.no_table import no_table
from lance_dataset.table.old_tables.completion import FragmentCompletion
from lance_dataset.table.old_tables.latest_copy import adopt_latest_copy
from lance_dataset.table.operations import (
    Append,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Restore,
    Rewrite,
    Update,
)
from lance_dataset.table.publish import committed_before, publish_version
from lance_dataset.table.transaction import Transaction, read_transaction
from lance_dataset.table.versions import find_latest, find_latest_to_follow, read_named, read_version

__all__ = ["commit_transaction", "create_table"]

#: Number of random version numbers tried for a detached version.
_DRAWS = 3


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
        Location of the new table.
    transaction
        An `Overwrite` with read version 0. Its data files are already written.
    storage_version
        Storage version of the table. None takes that of the files, or the default.
    enable_stable_row_ids
        True if rows keep their ids when they move.
    enable_v2_manifest_paths
        True to name manifests so that the newest is listed first.

    Returns
    -------
    Manifest
        The new version, which is durable.

    Raises
    ------
    AlreadyExistsError
        The table already exists, or another writer created it at the same time.
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
        return publish_version(store, root, manifest, replace(transaction, read_version=0), naming)
    except AlreadyExistsError as error:
        raise AlreadyExistsError(f"Dataset already exists: {store.uri(root)}") from error


def commit_transaction(
    store: ObjectStore,
    root: str,
    transaction: Transaction,
    *,
    read_manifest: Manifest | None = None,
    affected_rows: AffectedRows | None = None,
    max_retries: int | None = None,
    timeout: float | None = None,
    detached: bool = False,
) -> Manifest:
    """Commit a change on top of the newest version of a table.

    The change is checked against the changes committed since `transaction.read_version`. If they are compatible, it is
    rebased on top of them.

    Parameters
    ----------
    store, root
        The table.
    transaction
        The change. Its files are already written.
    read_manifest
        The version that the change was computed against, if available. Saves a read.
    affected_rows
        For a `Delete` or `Update`: offsets of the rows that it newly deletes, by fragment id. With them, two changes in
        one fragment are compatible if they delete different rows.
    max_retries
        Maximum number of attempts while other writers commit at the same time. None tries at least 20 times, and for at
        least a minute. An `Overwrite` with 0 is strict: it succeeds only as the version directly after the one it read.
    timeout
        Seconds after which no further attempt begins. None for no limit.
    detached
        True to make a detached version on top of the version that the change was computed against. It never becomes the
        newest version and is opened only by its number.

    Returns
    -------
    Manifest
        The new version, which is durable.

    Raises
    ------
    CommitConflictError
        The change conflicts with that of another writer. `retryable` says whether to compute it again. Also raised if
        the transaction or its job was committed before, or if the dataset was replaced by another.
    DatasetNotFoundError
        The table does not exist.
    UnsupportedError
        The table uses a feature that this release cannot maintain.
    """
    transaction.check_uuid()
    if detached:
        return _commit_detached(store, root, transaction, read_manifest)
    commit = _Commit(store, root, transaction, read_manifest, affected_rows, max_retries, timeout)
    with ChangeFiles(store, root, masked=commit.rewritten).taken_back(transaction.read_version):
        made = commit.run()
    remove_superseded(store, root, commit.rewritten, fragments_in(made, commit.rewritten))
    # Imported here, because it depends on the commit modules.
    from lance_dataset.table.cleanup.auto import auto_cleanup

    auto_cleanup(store, root, made)
    return made


_UNCOMPARABLE = (
    "Dataset version {} does not have a transaction file, so this change cannot be compared with what was committed "
    "in the meantime; open the newest version and repeat the change there"
)


class _CleanedUp(CommitConflictError):
    """Raised if a version that the change must be compared with was removed."""


class _Commit:
    """A change that is being committed. Every attempt builds on the results of the one before.

    Attributes
    ----------
    rewritten
        Fragments that got another deletion file during the commit.
    """

    def __init__(
        self,
        store: ObjectStore,
        root: str,
        transaction: Transaction,
        read_manifest: Manifest | None,
        affected_rows: AffectedRows | None,
        max_retries: int | None,
        timeout: float | None,
    ) -> None:
        self._store = store
        self._root = root
        self._given = transaction
        self._transaction = transaction
        self._known = read_manifest
        self._read = read_manifest
        self._identified = False
        self._affected_rows = affected_rows
        self._timeout = timeout
        self._attempts = None if max_retries is None else max(max_retries, 1)
        self._strict = max_retries == 0 and isinstance(transaction.operation, Overwrite)
        self.rewritten: list[Fragment] = []

    def run(self) -> Manifest:
        """Try until the commit succeeds or turns out to be impossible."""
        backoff = Backoff(self._attempts, self._timeout)
        complete = FragmentCompletion(self._store, self._root)
        while backoff.start():
            latest = self._find_latest()
            base = self._base(latest)
            self._check_order(base, latest)
            if self._rebase(base, latest) and self._find_latest().version != base.version:
                # Files had to be written and another writer was faster, so this attempt would fail.
                backoff.lost += 1
                continue
            operation = self._transaction.operation
            manifest = next_manifest(base, operation, self._restored(operation), complete=complete)
            try:
                made = publish_version(self._store, self._root, manifest, self._transaction, latest.naming)
            except AlreadyExistsError:
                backoff.sleep()
                continue
            if isinstance(operation, Restore):
                check_source_kept(self._store, self._root, operation.version, made)
            return made
        raise CommitConflictError(
            f"Retryable commit conflict for version {self._transaction.read_version + 1}: other writers were faster "
            f"{backoff.lost} times; try again when fewer of them are active",
            retryable=True,
        )

    def _find_latest(self) -> ManifestName:
        latest = find_latest_to_follow(self._store, self._root)
        if latest is None:
            raise no_table(self._store, self._root)
        if latest.naming is Naming.LATEST_COPY:
            latest = adopt_latest_copy(self._store, self._root)
        if self._known is not None and not self._identified:
            self._check_not_replaced(self._known, latest)
        self._identified = True
        return latest

    def _check_not_replaced(self, known: Manifest, latest: ManifestName) -> None:
        """Raise an error if a manifest is not of this table, which may have been dropped and created again."""
        current = named_path(self._root, latest) if known.version == latest.version else known.path
        try:
            is_within = known.version <= latest.version or is_detached(known.version)
            same = is_within and read_commit_id(self._store, current) == known.commit_id
        except MissingFileError:
            # Old versions may have been removed. Then the transactions of the newer ones decide.
            same = True
        if not same:
            raise CommitConflictError(
                f"{self._store.uri(self._root)}: version {known.version} is no longer the one this change was computed "
                "against; the dataset was replaced, open it again and repeat the change",
                retryable=False,
            )

    def _base(self, latest: ManifestName) -> Manifest:
        """Return the newest version."""
        if self._known is None or self._known.version != latest.version:
            self._known = read_named(self._store, self._root, latest)
        return self._known

    def _check_order(self, base: Manifest, latest: ManifestName) -> None:
        """Raise an error if the change read a version newer than `base`, or a strict one read an older version."""
        transaction = self._transaction
        read, following = transaction.read_version, transaction.read_version + 1
        if is_detached(read):
            raise InvalidInputError(
                f"{self._store.uri(self._root)}: the change was computed against the detached version {read}, which "
                "only detached versions can follow; commit it with detached=True, or restore it first"
            )
        if read > base.version:
            raise VersionNotFoundError(
                f"{self._store.uri(self._root)}: the change was computed against version {read}, "
                f"but the newest version is {base.version}"
            )
        if not self._strict or read == base.version:
            return
        if transaction.is_same_work(self._committed(following, base, latest.naming)):
            raise committed_before(transaction, following)
        raise CommitConflictError(
            f"Retryable commit conflict for version {following}: it already exists, and this "
            f"{transaction.operation.name} must directly follow version {read}",
            retryable=True,
        )

    def _rebase(self, base: Manifest, latest: ManifestName) -> bool:
        """Rebase the transaction on `base`, after a check of the versions committed since the last attempt.

        Returns True if files had to be written for that.
        """
        transaction = self._transaction
        if transaction.read_version == base.version:
            return False
        marked: set[int] = set()
        operation = transaction.operation
        lost: CommitConflictError | None = None
        for version in range(transaction.read_version + 1, base.version + 1):
            try:
                theirs = self._committed(version, base, latest.naming)
            except _CleanedUp as error:
                lost = lost or error
                continue
            if transaction.is_same_work(theirs):
                raise committed_before(transaction, version)
            marked |= check_conflict(transaction, theirs, version, affected_rows=self._affected_rows)
            if isinstance(operation, CreateIndex):
                read = self._read_manifest() if isinstance(theirs.operation, Merge) else None
                operation = rebase_index(operation, theirs.operation, version, read)
        if lost is not None:
            marked |= self._judged_by_state(operation, base, lost)
        count = len(self.rewritten)
        operation = self._rebased_files(operation, marked, base)
        self._transaction = replace(transaction, read_version=base.version, operation=operation)
        return len(self.rewritten) > count

    def _judged_by_state(self, operation: Operation, base: Manifest, lost: CommitConflictError) -> frozenset[int]:
        """Return fragments whose rows must be compared, judged by the versions because their transactions are gone."""
        read = self._read_manifest()
        marked = None if read is None else compare_states(operation, read, base)
        if marked is None or (marked and self._affected_rows is None):
            raise CommitConflictError(str(lost), retryable=True)
        return marked

    def _rebased_files(self, operation: Operation, marked: set[int], base: Manifest) -> Operation:
        """Return the operation with files that fit the newest version. Raises an error if that is impossible."""
        if isinstance(operation, Append | Rewrite | Update | DataReplacement | DataOverlay):
            read = self._read_manifest()
            if read is not None:
                check_columns_kept(operation, read.schema, base.schema, base.version)
        if isinstance(operation, CreateIndex | Rewrite):
            check_reuse_index(operation, self._read_manifest, base)
        if isinstance(operation, Rewrite):
            check_rewritten_indices(operation, base)
        if not marked:
            return operation
        if isinstance(operation, DataOverlay):
            check_overlaid_rows(self._store, self._root, operation, marked, self._read_manifest(), base)
        if isinstance(operation, Delete | Update) and self._affected_rows is not None:
            changed = rebase_rows(self._store, self._root, operation, marked, base, self._affected_rows)
            before = {fragment.id: fragment for fragment in operation.updated_fragments}
            self.rewritten += [each for each in changed.updated_fragments if before.get(each.id) != each]
            return changed
        return operation

    def _read_manifest(self) -> Manifest | None:
        """Return the version that the change was computed against, or None if it was removed.

        Without it, only the transactions can be compared.
        """
        version = self._given.read_version
        if self._read is None or self._read.version != version:
            try:
                self._read = read_version(self._store, self._root, version)
            except (VersionNotFoundError, MissingFileError):
                return None
        return self._read

    def _committed(self, version: int, base: Manifest, naming: Naming) -> Transaction:
        """Return the transaction of a version."""
        try:
            if version == base.version:
                transaction = read_transaction(self._store, self._root, base)
            else:
                transaction = read_transaction_of(self._store, self._root, version, naming)
        except (VersionNotFoundError, MissingFileError):
            raise _CleanedUp(_UNCOMPARABLE.format(version), retryable=True) from None
        if transaction is None:
            raise CommitConflictError(_UNCOMPARABLE.format(version), retryable=True)
        return transaction

    def _restored(self, operation: Operation) -> Manifest | None:
        # Read again in every attempt, because a cleanup may have removed it together with its files.
        return read_version(self._store, self._root, operation.version) if isinstance(operation, Restore) else None


def _commit_detached(
    store: ObjectStore, root: str, transaction: Transaction, read_manifest: Manifest | None
) -> Manifest:
    """Make a detached version."""
    base = read_manifest
    if base is None or base.version != transaction.read_version:
        base = read_version(store, root, transaction.read_version)
    operation = transaction.operation
    restored = read_version(store, root, operation.version) if isinstance(operation, Restore) else None
    manifest = next_manifest(base, operation, restored, complete=FragmentCompletion(store, root))
    if base.max_allocated_field_id is not None and manifest.schema.fields != base.schema.fields:
        raise InvalidInputError(
            f"{store.uri(root)}: a detached version cannot change the schema of a dataset whose field ids are never "
            "used again, because other versions would not know the ids that it uses"
        )
    for _ in range(_DRAWS):
        numbered = replace(manifest, version=random_detached_version())
        try:
            made = publish_version(store, root, numbered, transaction, Naming.DETACHED)
        except AlreadyExistsError:
            continue
        check_source_kept(store, root, base.version if restored is None else restored.version, made)
        return made
    raise AlreadyExistsError(f"{store.uri(root)}: found no free number for a detached version; try again")
