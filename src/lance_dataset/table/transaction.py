"""Transactions: what a version changed, and against which version it was computed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from lance_dataset._proto import transaction_pb2
from lance_dataset.errors import InvalidInputError, MissingFileError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.messages import parse_message
from lance_dataset.table.operation_messages import decode_operation, encode_operation
from lance_dataset.table.operations import Operation
from lance_dataset.table.paths import FileLocator

__all__ = ["Transaction", "read_transaction"]


@dataclass(frozen=True)
class Transaction:
    """One change of a table.

    Attributes
    ----------
    read_version
        Version the change was computed against, 0 for the creation of the table.
    operation
        What is changed.
    uuid
        Unique id.
    tag
        Ends up as the tag of the manifest.
    properties
        Free properties, such as the commit message.
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

    def check_uuid(self) -> None:
        """Refuse an id that is not a UUID as text: it becomes part of a file name.

        Raises
        ------
        InvalidInputError
            It is not one in lower case with hyphens.
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
            The bytes are no transaction.
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
        """The serialized transaction."""
        message = transaction_pb2.Transaction(
            read_version=self.read_version, uuid=self.uuid, tag=self.tag, transaction_properties=self.properties
        )
        encode_operation(self.operation, message)
        # The same transaction must have the same bytes in every process, also with several properties.
        return message.SerializeToString(deterministic=True)


def read_transaction(store: ObjectStore, root: str, manifest: Manifest) -> Transaction | None:
    """The transaction that made a version: from its manifest, else from a file.

    Parameters
    ----------
    store, root
        The table.
    manifest
        The version.

    Returns
    -------
    Transaction or None
        None when the version has none (any more).

    Raises
    ------
    CorruptFileError
        The transaction is there but cannot be decoded.
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
