"""Transactions: what a version changed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from google.protobuf.message import Message

from lance_dataset._proto import table_pb2, transaction_pb2
from lance_dataset.errors import CorruptFileError, InvalidInputError, MissingFileError
from lance_dataset.io.base import ObjectStore
from lance_dataset.schema import Schema
from lance_dataset.table.checks import check_fields
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.manifest import BasePath, Manifest
from lance_dataset.table.messages import parse_message
from lance_dataset.table.paths import FileLocator

__all__ = [
    "UNKNOWN",
    "Append",
    "Delete",
    "Foreign",
    "Operation",
    "Overwrite",
    "ReserveFragments",
    "Restore",
    "Rewrite",
    "RewriteGroup",
    "Transaction",
    "read_transaction",
]

#: Name of an operation that this release has never heard of.
UNKNOWN = "Unknown"

_NAMES = {
    "append": "Append",
    "delete": "Delete",
    "overwrite": "Overwrite",
    "create_index": "CreateIndex",
    "rewrite": "Rewrite",
    "merge": "Merge",
    "restore": "Restore",
    "reserve_fragments": "ReserveFragments",
    "update": "Update",
    "project": "Project",
    "update_config": "UpdateConfig",
    "data_replacement": "DataReplacement",
    "update_mem_wal_state": "UpdateMemWalState",
    "clone": "Clone",
    "update_bases": "UpdateBases",
    "data_overlay": "DataOverlay",
}


@dataclass(frozen=True)
class Append:
    """New fragments behind the existing ones.

    Attributes
    ----------
    fragments
        New fragments; with id 0 they get their ids at commit.
    """

    fragments: tuple[Fragment, ...]

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Append"


@dataclass(frozen=True)
class Delete:
    """Rows are masked, and fragments without live rows dropped.

    Attributes
    ----------
    updated_fragments
        Fragments with their new deletion file.
    deleted_fragment_ids
        Fragments that go.
    predicate
        What was deleted, as SQL text; for information.
    """

    updated_fragments: tuple[Fragment, ...] = ()
    deleted_fragment_ids: tuple[int, ...] = ()
    predicate: str = ""

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Delete"


@dataclass(frozen=True)
class Overwrite:
    """A new schema and new fragments in place of all that is there; also creates tables.

    Attributes
    ----------
    schema
        The new schema, field ids given.
    fragments
        All fragments.
    config_upserts
        Settings to add to the config.
    initial_bases
        Base paths of a new table.
    storage_version
        File version of the table when there are no new files that would tell it; by default it stays as it is. Not part
        of the stored transaction.
    """

    schema: Schema
    fragments: tuple[Fragment, ...] = ()
    config_upserts: Mapping[str, str] = field(default_factory=dict)
    initial_bases: tuple[BasePath, ...] = ()
    storage_version: str | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Overwrite"


@dataclass(frozen=True)
class Restore:
    """The content of an older version again.

    Attributes
    ----------
    version
        The older version.
    """

    version: int

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Restore"


@dataclass(frozen=True)
class RewriteGroup:
    """Fragments, and those that have the same live rows in the same order.

    Attributes
    ----------
    old_fragments
        Fragments that go.
    new_fragments
        Fragments that take their place; with id 0 they get their ids at commit.
    """

    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]


@dataclass(frozen=True)
class Rewrite:
    """Fragments are replaced by others with the same rows: compaction.

    Attributes
    ----------
    groups
        What replaces what.
    rewritten_indices
        Serialized messages about indices that were adapted, carried along.
    storage_version
        File version of the table from now on, when all its files are rewritten in another one; by default it stays as
        it is. Not part of the stored transaction.
    """

    groups: tuple[RewriteGroup, ...]
    rewritten_indices: tuple[bytes, ...] = ()
    storage_version: str | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Rewrite"

    @property
    def old_ids(self) -> frozenset[int]:
        """Ids of the fragments that go."""
        return frozenset(fragment.id for group in self.groups for fragment in group.old_fragments)


@dataclass(frozen=True)
class ReserveFragments:
    """Fragment ids are set aside for fragments that a later change brings.

    Attributes
    ----------
    num_fragments
        How many.
    """

    num_fragments: int

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "ReserveFragments"


@dataclass(frozen=True)
class Foreign:
    """An operation of another writer that this release takes into account but does not apply.

    Attributes
    ----------
    name
        Name of the kind of operation, `UNKNOWN` for an unheard-of one.
    message
        Its protobuf message, None for an unheard-of one.
    """

    name: str
    message: Message | None = field(repr=False)


Operation = Append | Delete | Overwrite | Restore | Rewrite | ReserveFragments | Foreign


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
            operation=_decode_operation(message, where),
            uuid=message.uuid,
            tag=message.tag,
            properties=dict(message.transaction_properties),
        )

    def encode(self) -> bytes:
        """The serialized transaction."""
        message = transaction_pb2.Transaction(
            read_version=self.read_version, uuid=self.uuid, tag=self.tag, transaction_properties=self.properties
        )
        _encode_operation(self.operation, message)
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


def _decode_operation(message: transaction_pb2.Transaction, where: str) -> Operation:
    kind = message.WhichOneof("operation")
    if kind == "append":
        return Append(_fragments(message.append.fragments, where))
    if kind == "delete":
        delete = message.delete
        return Delete(_fragments(delete.updated_fragments, where), tuple(delete.deleted_fragment_ids), delete.predicate)
    if kind == "overwrite":
        return _decode_overwrite(message.overwrite, where)
    if kind == "restore":
        return Restore(message.restore.version)
    if kind == "rewrite":
        return _decode_rewrite(message.rewrite, where)
    if kind == "reserve_fragments":
        return ReserveFragments(message.reserve_fragments.num_fragments)
    if kind is None:
        return Foreign(UNKNOWN, None)
    return Foreign(_NAMES[kind], getattr(message, kind))


def _fragments(messages: Iterable[table_pb2.DataFragment], where: str) -> tuple[Fragment, ...]:
    return tuple(Fragment.from_proto(message, where) for message in messages)


def _decode_overwrite(message: transaction_pb2.Transaction.Overwrite, where: str) -> Overwrite:
    check_fields(message.schema, where)
    return Overwrite(
        schema=Schema.from_proto(message.schema, message.schema_metadata, where=where),
        fragments=_fragments(message.fragments, where),
        config_upserts=dict(message.config_upsert_values),
        initial_bases=tuple(BasePath.from_proto(base) for base in message.initial_bases),
    )


def _decode_rewrite(message: transaction_pb2.Transaction.Rewrite, where: str) -> Rewrite:
    given = [(group.old_fragments, group.new_fragments) for group in message.groups]
    if message.old_fragments or message.new_fragments:  # up to 0.7 there was one group, not listed as such
        given.insert(0, (message.old_fragments, message.new_fragments))
    groups = tuple(RewriteGroup(_fragments(old, where), _fragments(new, where)) for old, new in given)
    return Rewrite(groups, tuple(index.SerializeToString() for index in message.rewritten_indices))


def _encode_operation(operation: Operation, message: transaction_pb2.Transaction) -> None:
    if isinstance(operation, Append):
        message.append.SetInParent()
        message.append.fragments.extend(fragment.to_proto() for fragment in operation.fragments)
    elif isinstance(operation, Delete):
        message.delete.SetInParent()
        message.delete.updated_fragments.extend(fragment.to_proto() for fragment in operation.updated_fragments)
        message.delete.deleted_fragment_ids.extend(operation.deleted_fragment_ids)
        message.delete.predicate = operation.predicate
    elif isinstance(operation, Overwrite):
        _encode_overwrite(operation, message.overwrite)
    elif isinstance(operation, Restore):
        message.restore.SetInParent()
        message.restore.version = operation.version
    elif isinstance(operation, Rewrite):
        _encode_rewrite(operation, message.rewrite)
    elif isinstance(operation, ReserveFragments):
        message.reserve_fragments.SetInParent()
        message.reserve_fragments.num_fragments = operation.num_fragments
    elif operation.message is not None:
        kind = next(kind for kind, name in _NAMES.items() if name == operation.name)
        getattr(message, kind).CopyFrom(operation.message)
    else:
        raise CorruptFileError("an operation that is not known cannot be written")


def _encode_overwrite(operation: Overwrite, message: transaction_pb2.Transaction.Overwrite) -> None:
    message.SetInParent()
    message.fragments.extend(fragment.to_proto() for fragment in operation.fragments)
    message.schema.extend(operation.schema.to_proto())
    for key, value in operation.schema.metadata.items():
        message.schema_metadata[key] = value
    for name, setting in operation.config_upserts.items():
        message.config_upsert_values[name] = setting
    message.initial_bases.extend(base.to_proto() for base in operation.initial_bases)


def _encode_rewrite(operation: Rewrite, message: transaction_pb2.Transaction.Rewrite) -> None:
    message.SetInParent()
    for group in operation.groups:
        added = message.groups.add()
        added.old_fragments.extend(fragment.to_proto() for fragment in group.old_fragments)
        added.new_fragments.extend(fragment.to_proto() for fragment in group.new_fragments)
    for index in operation.rewritten_indices:
        message.rewritten_indices.add().MergeFromString(index)
