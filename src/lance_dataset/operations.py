"""Public operations and transactions, and what they are for the table layer."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.fragment_metadata import DataFile, FragmentMetadata
from lance_dataset.lance_schema import LanceSchema
from lance_dataset.schema import Schema
from lance_dataset.table import transaction as table
from lance_dataset.table.fragment import Fragment

__all__ = [
    "LanceOperation",
    "Transaction",
    "from_table_transaction",
    "to_table_operation",
    "to_table_transaction",
]


def _check_fragments(fragments: Any) -> None:
    if not isinstance(fragments, list):
        raise TypeError(f"fragments must be list[FragmentMetadata], got {type(fragments)}")
    for fragment in fragments:
        if not isinstance(fragment, FragmentMetadata):
            raise TypeError(f"fragments must be list[FragmentMetadata], got {type(fragment)}")


class LanceOperation:
    """The kinds of changes a commit can make.

    `Append`, `Overwrite`, `Delete` and `Restore` can be committed. The others describe what other writers did and are
    refused by a commit.
    """

    class BaseOperation:
        """Root of all operations."""

    @dataclass
    class Append(BaseOperation):
        """New fragments behind the existing ones.

        Parameters
        ----------
        fragments
            Fragments as `write_fragments` returns them; their ids are given at commit.
        """

        fragments: list[FragmentMetadata]

        def __post_init__(self) -> None:
            _check_fragments(self.fragments)

    @dataclass
    class Overwrite(BaseOperation):
        """A new schema and new fragments in place of all that is there; also creates datasets.

        Parameters
        ----------
        new_schema
            The schema; a pyarrow schema gets field ids depth first from 0, as `write_fragments` gives them.
        fragments
            All fragments.
        initial_bases
            Not supported: must be None.
        """

        new_schema: LanceSchema | pa.Schema
        fragments: list[FragmentMetadata]
        initial_bases: list[Any] | None = None

        def __post_init__(self) -> None:
            if not isinstance(self.new_schema, (LanceSchema, pa.Schema)):
                raise TypeError(f"new_schema must be pyarrow.Schema or LanceSchema, got {type(self.new_schema)}")
            _check_fragments(self.fragments)

    @dataclass
    class Delete(BaseOperation):
        """Rows are masked, and fragments without live rows dropped.

        Parameters
        ----------
        updated_fragments
            Fragments with their new deletion files.
        deleted_fragment_ids
            Fragments that go.
        predicate
            What was deleted, for information.
        """

        updated_fragments: list[FragmentMetadata]
        deleted_fragment_ids: list[int]
        predicate: str

        def __post_init__(self) -> None:
            _check_fragments(self.updated_fragments)

    @dataclass
    class Restore(BaseOperation):
        """The content of an older version again.

        Parameters
        ----------
        version
            The older version.
        """

        version: int

    @dataclass
    class Update(BaseOperation):
        """Rows rewritten, or columns of fragments. Not committable in this release."""

        removed_fragment_ids: list[int] = field(default_factory=list)
        updated_fragments: list[FragmentMetadata] = field(default_factory=list)
        new_fragments: list[FragmentMetadata] = field(default_factory=list)
        fields_modified: list[int] = field(default_factory=list)
        fields_for_preserving_frag_bitmap: list[int] = field(default_factory=list)
        update_mode: str = ""
        updated_fragment_offsets: dict[int, bytes] | None = None

        def __post_init__(self) -> None:
            _check_fragments(self.updated_fragments)
            _check_fragments(self.new_fragments)

    @dataclass
    class Merge(BaseOperation):
        """All fragments again, with added columns. Not committable in this release."""

        fragments: list[FragmentMetadata]
        schema: LanceSchema | pa.Schema
        preserves_nullability: bool = False

        def __post_init__(self) -> None:
            _check_fragments(self.fragments)

    @dataclass
    class Project(BaseOperation):
        """A new schema over the same files. Not committable in this release."""

        schema: LanceSchema
        preserves_nullability: bool = False

    @dataclass
    class RewriteGroup:
        """Fragments that others with the same rows replace.

        Parameters
        ----------
        old_fragments, new_fragments
            What goes and what comes.
        """

        old_fragments: list[FragmentMetadata]
        new_fragments: list[FragmentMetadata]

        def __post_init__(self) -> None:
            _check_fragments(self.old_fragments)
            _check_fragments(self.new_fragments)

    @dataclass
    class Rewrite(BaseOperation):
        """Compaction. Not committable in this release."""

        groups: list[LanceOperation.RewriteGroup]
        rewritten_indices: list[Any]

    @dataclass
    class DataReplacementGroup:
        """A fragment and the file that replaces its columns.

        Parameters
        ----------
        fragment_id, new_file
            The fragment and its new file.
        """

        fragment_id: int
        new_file: DataFile

    @dataclass
    class DataReplacement(BaseOperation):
        """Data files swapped. Not committable in this release."""

        replacements: list[LanceOperation.DataReplacementGroup]

    @dataclass
    class UpdateMap:
        """Changes of a map of settings.

        Parameters
        ----------
        updates
            New values; None removes a key.
        replace
            Whether other keys go.
        """

        updates: dict[str, str | None]
        replace: bool = False

    @dataclass
    class UpdateConfig(BaseOperation):
        """Changes of config and metadata. Not committable in this release."""

        config_updates: LanceOperation.UpdateMap | None = None
        table_metadata_updates: LanceOperation.UpdateMap | None = None
        schema_metadata_updates: LanceOperation.UpdateMap | None = None
        field_metadata_updates: dict[int, LanceOperation.UpdateMap] | None = None

    @dataclass
    class CreateIndex(BaseOperation):
        """Indices added and removed. Not committable in this release."""

        new_indices: list[Any]
        removed_indices: list[Any]

    @dataclass
    class Other(BaseOperation):
        """An operation another writer committed, of which this release knows no more than the kind.

        Parameters
        ----------
        name
            Name of the kind.
        """

        name: str


@dataclass
class Transaction:
    """A change, computed against a version and ready to be committed.

    Parameters
    ----------
    read_version
        Version the change was computed against.
    operation
        The change.
    uuid
        Unique id.
    transaction_properties
        Free properties stored with it.
    """

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    transaction_properties: dict[str, str] | None = field(default_factory=dict)


def to_table_operation(operation: LanceOperation.BaseOperation) -> table.Operation:
    """The operation as the table layer commits it.

    Raises
    ------
    UnsupportedError
        An operation this release cannot commit.
    InvalidInputError
        A value that is out of range.
    TypeError
        Not an operation.
    """
    if isinstance(operation, LanceOperation.Append):
        return table.Append(_fragments(operation.fragments))
    if isinstance(operation, LanceOperation.Overwrite):
        if operation.initial_bases:
            raise UnsupportedError("initial_bases is not supported: new datasets hold all their files themselves")
        return table.Overwrite(_schema(operation.new_schema), _fragments(operation.fragments))
    if isinstance(operation, LanceOperation.Delete):
        ids = tuple(_id(value) for value in operation.deleted_fragment_ids)
        return table.Delete(_fragments(operation.updated_fragments), ids, operation.predicate)
    if isinstance(operation, LanceOperation.Restore):
        if operation.version < 1:
            raise InvalidInputError(f"Restore needs a version from 1, not {operation.version}")
        return table.Restore(operation.version)
    if isinstance(operation, LanceOperation.BaseOperation):
        name = operation.name if isinstance(operation, LanceOperation.Other) else type(operation).__name__
        raise UnsupportedError(f"operation {name} cannot be committed by this release")
    raise TypeError(f"operation must be a LanceOperation, got {type(operation)}")


def to_table_transaction(transaction: Transaction) -> table.Transaction:
    """The transaction as the table layer commits it; raises as `to_table_operation`."""
    return table.Transaction(
        read_version=transaction.read_version,
        operation=to_table_operation(transaction.operation),
        uuid=transaction.uuid,
        properties=dict(transaction.transaction_properties or {}),
    )


def from_table_transaction(transaction: table.Transaction) -> Transaction:
    """The public record of a transaction; operations this release does not know become `LanceOperation.Other`.

    Raises
    ------
    UnsupportedError
        A fragment has overlays.
    """
    return Transaction(
        read_version=transaction.read_version,
        operation=_from_table_operation(transaction.operation),
        uuid=transaction.uuid,
        transaction_properties=dict(transaction.properties),
    )


def _from_table_operation(operation: table.Operation) -> LanceOperation.BaseOperation:
    if isinstance(operation, table.Append):
        return LanceOperation.Append(_records(operation.fragments))
    if isinstance(operation, table.Overwrite):
        return LanceOperation.Overwrite(LanceSchema(operation.schema), _records(operation.fragments))
    if isinstance(operation, table.Delete):
        updated = _records(operation.updated_fragments)
        return LanceOperation.Delete(updated, list(operation.deleted_fragment_ids), operation.predicate)
    if isinstance(operation, table.Restore):
        return LanceOperation.Restore(operation.version)
    return LanceOperation.Other(operation.name)


def _fragments(records: Iterable[FragmentMetadata]) -> tuple[Fragment, ...]:
    return tuple(record.to_fragment() for record in records)


def _records(fragments: Iterable[Fragment]) -> list[FragmentMetadata]:
    return [FragmentMetadata.from_fragment(fragment) for fragment in fragments]


def _schema(schema: LanceSchema | pa.Schema) -> Schema:
    return schema._schema if isinstance(schema, LanceSchema) else Schema.from_arrow(schema)


def _id(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise InvalidInputError(f"a fragment id must be a number from 0, not {value!r}")
    return value
