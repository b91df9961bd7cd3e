"""Transactions: the operation that made a version, and the version that it was computed against."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import field

from lance_dataset._proto import transaction_pb2
from lance_dataset.errors import InvalidInputError, MissingFileError
from lance_dataset.io.base import ObjectStore
from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.messages import parse_message
from lance_dataset.table.operation_messages import decode_operation, encode_operation
from lance_dataset.table.operations import Operation
from lance_dataset.table.paths import FileLocator

__all__ = ["Transaction", "read_transaction"]


@dataclass(frozen=True)
class Transaction:
    """A change to a table.

    Attributes
    ----------
    read_version
        Version that the change was computed against, 0 for the creation of the table.
    operation
        The change.
    uuid
        Unique id.
    tag
        Becomes the tag of the manifest.
    properties
        Custom properties, such as the commit message.
    """

    read_version: int
    operation: Operation
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    tag: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """Name of the transaction's own file."""
        return f"{self.read_version}-{self.uuid}.txn"

    def is_same_work(self, other: Transaction) -> bool:
        """Return True if `other` is this transaction, or another try of the job that its properties name.

        A job is named by the property ``txn_id``, or by the properties ``queryId`` and ``batchId``. So of the tries of
        a job that are committed at the same time, exactly one makes a version.
        """
        return other.uuid == self.uuid or bool(self._job and self._job == other._job)

    @property
    def _job(self) -> tuple[str, ...]:
        named = self.properties
        if named.get("txn_id"):
            return (named["txn_id"],)
        return (named["queryId"], named["batchId"]) if named.get("queryId") and named.get("batchId") else ()

    def check_uuid(self) -> None:
        """Raise an error if the id is not a UUID string. It becomes part of a file name.

        Raises
        ------
        InvalidInputError
            The id is not a UUID in lower case with hyphens.
        """
        try:
            canonical = str(uuid.UUID(self.uuid))
        except (ValueError, TypeError, AttributeError):
            canonical = None
        if canonical is None or canonical != self.uuid:
            raise InvalidInputError(
                f"the id {self.uuid!r} of a transaction is not a UUID in lower case with hyphens; "
                "leave it out to get a new one"
            )

    @classmethod
    def decode(cls, data: bytes, where: str) -> Transaction:
        """Read a serialized transaction.

        Raises
        ------
        CorruptFileError
            The bytes are not a transaction.
        """
        message = parse_message(transaction_pb2.Transaction, data, where)
        return cls(
            read_version=message.read_version,
            operation=decode_operation(message, where),
            uuid=message.uuid,
            tag=message.tag,
            properties=dict(message.transaction_properties),
        )

    def encode(self) -> bytes:
        """Serialize the transaction."""
        message = transaction_pb2.Transaction(
            read_version=self.read_version, uuid=self.uuid, tag=self.tag, transaction_properties=self.properties
        )
        encode_operation(self.operation, message)
        # The same transaction must have the same bytes in every process, even with several properties.
        return message.SerializeToString(deterministic=True)


def read_transaction(store: ObjectStore, root: str, manifest: Manifest) -> Transaction | None:
    """Read the transaction that made a version, from its manifest or else from a file.

    Parameters
    ----------
    store, root
        The table.
    manifest
        The version.

    Returns
    -------
    Transaction or None
        None if the version has no transaction, or if it was removed.

    Raises
    ------
    CorruptFileError
        The transaction exists but cannot be decoded.
    """
    if manifest.inline_transaction is not None:
        return Transaction.decode(manifest.inline_transaction, f"{manifest.path}: inline transaction")
    if not manifest.transaction_file:
        return None
    _, path = FileLocator(store, root).transaction_file(manifest.transaction_file)
    try:
        return Transaction.decode(store.read(path), path)
    except MissingFileError:
        return None
