"""Conversion of public operations to those of the table layer, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.records.fragment import DataFile, FragmentMetadata
from lance_dataset.records.index import Index, IndexFile
from lance_dataset.records.operations import LanceOperation, Transaction
from lance_dataset.records.schema import LanceSchema
from lance_dataset.records.settings import DatasetBasePath
from lance_dataset.table import operations as table
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.index_metadata import IndexDetails
from lance_dataset.table.overlays import Overlay
from lance_dataset.table.transaction import Transaction as TableTransaction
from lance_dataset.types.schema import Schema

__all__ = ["from_table_operation", "from_table_transaction", "to_table_operation", "to_table_transaction"]

_Record = TypeVar("_Record")

_MODES = {"rewrite_rows": table.UpdateMode.REWRITE_ROWS, "rewrite_columns": table.UpdateMode.REWRITE_COLUMNS}
_MODE_NAMES = {mode: name for name, mode in _MODES.items()}


def to_table_operation(operation: LanceOperation.BaseOperation) -> table.Operation:
    """Convert an operation to the form that the table layer commits.

    Raises
    ------
    UnsupportedError
        This release cannot commit the operation.
    InvalidInputError
        A value is out of range.
    TypeError
        `operation` is not an operation, or a part of it has the wrong type.
    """
    found = _BY_RECORD.get(type(operation))
    if found is not None and found.to_table is not None:
        try:
            return found.to_table(operation)
        except (AttributeError, TypeError) as error:  # the types of the parts are not checked before
            name = type(operation).__name__
            raise TypeError(f"LanceOperation.{name} has a part of the wrong type: {error}") from error
    if isinstance(operation, LanceOperation.BaseOperation):
        name = operation.name if isinstance(operation, LanceOperation.Other) else type(operation).__name__
        raise UnsupportedError(f"this release cannot commit the operation {name}")
    raise TypeError(f"operation must be a LanceOperation, got {type(operation)}")


def from_table_operation(operation: table.Operation) -> LanceOperation.BaseOperation:
    """Convert an operation to its public record, or to `LanceOperation.Other` if it does not have one.

    Raises
    ------
    UnsupportedError
        A fragment has overlays.
    """
    found = _BY_VALUE.get(type(operation))
    return LanceOperation.Other(operation.name) if found is None else found.from_table(operation)


def to_table_transaction(transaction: Transaction) -> TableTransaction:
    """Convert a transaction to the form that the table layer commits; raises like `to_table_operation`."""
    return TableTransaction(
        read_version=transaction.read_version,
        operation=to_table_operation(transaction.operation),
        uuid=transaction.uuid,
        properties=dict(transaction.transaction_properties or {}),
    )


def from_table_transaction(transaction: TableTransaction) -> Transaction:
    """Convert a transaction to its public record; raises like `from_table_operation`."""
    return Transaction(
        read_version=transaction.read_version,
        operation=from_table_operation(transaction.operation),
        uuid=transaction.uuid,
        transaction_properties=dict(transaction.properties),
    )


# -- parts -----------------------------------------------------------------------------------------------------------


def _fragments(records: Iterable[FragmentMetadata]) -> tuple[Fragment, ...]:
    return tuple(record.to_fragment() for record in records)


def _records(fragments: Iterable[Fragment]) -> list[FragmentMetadata]:
    return [FragmentMetadata.from_fragment(fragment) for fragment in fragments]


def _schema(schema: LanceSchema | pa.Schema) -> Schema:
    if isinstance(schema, LanceSchema):
        return schema._schema
    if isinstance(schema, pa.Schema):
        return Schema.from_arrow(schema)
    raise TypeError(f"a schema must be a pyarrow.Schema or a LanceSchema, not {type(schema).__name__}")


def _ids(values: Iterable[Any], what: str = "fragment id") -> tuple[int, ...]:
    ids = tuple(values)
    for value in ids:
        if not isinstance(value, int) or value < 0:
            raise InvalidInputError(f"a {what} must be a non-negative integer, not {value!r}")
    return ids


def _records_of(record: type[_Record], values: Iterable[Any], what: str) -> Iterator[_Record]:
    """Yield the values; raise TypeError for a value that is not such a record."""
    for value in values:
        if not isinstance(value, record):
            raise TypeError(f"{what} must be {record.__qualname__}, not {type(value).__name__}")
        yield value


def _to_map(change: LanceOperation.UpdateMap | None) -> table.UpdateMap | None:
    if change is None:
        return None
    if not isinstance(change, LanceOperation.UpdateMap) or not isinstance(change.updates, Mapping):
        raise TypeError(f"changes of settings and metadata must be an UpdateMap of a dict, not {change!r}")
    for key, value in change.updates.items():
        if not isinstance(key, str) or not isinstance(value, str | None):
            raise InvalidInputError(f"settings and metadata must be text, not {key!r}: {value!r}")
    return table.UpdateMap(dict(change.updates), change.replace)


def _from_map(change: table.UpdateMap | None) -> LanceOperation.UpdateMap | None:
    return None if change is None else LanceOperation.UpdateMap(dict(change.updates), change.replace)


# -- kinds of operations ---------------------------------------------------------------------------------------------


def _to_overwrite(operation: LanceOperation.Overwrite) -> table.Overwrite:
    bases = tuple(base.to_table() for base in operation.initial_bases or ())
    return table.Overwrite(_schema(operation.new_schema), _fragments(operation.fragments), initial_bases=bases)


def _from_overwrite(operation: table.Overwrite) -> LanceOperation.Overwrite:
    bases = [DatasetBasePath.from_table(base) for base in operation.initial_bases] or None
    return LanceOperation.Overwrite(LanceSchema(operation.schema), _records(operation.fragments), bases)


def _to_delete(operation: LanceOperation.Delete) -> table.Delete:
    return table.Delete(
        _fragments(operation.updated_fragments), _ids(operation.deleted_fragment_ids), operation.predicate
    )


def _to_restore(operation: LanceOperation.Restore) -> table.Restore:
    if isinstance(operation.version, bool) or not isinstance(operation.version, int):
        raise TypeError(f"the version to restore must be an integer, not {type(operation.version).__name__}")
    if operation.version < 1:
        raise InvalidInputError(f"Restore needs a version from 1, not {operation.version}")
    return table.Restore(operation.version)


def _to_update(operation: LanceOperation.Update) -> table.Update:
    mode = _MODES.get(operation.update_mode or "rewrite_rows")
    if mode is None:
        raise InvalidInputError(f"update_mode must be one of {', '.join(_MODES)}, not {operation.update_mode!r}")
    return table.Update(
        removed_fragment_ids=_ids(operation.removed_fragment_ids),
        updated_fragments=_fragments(operation.updated_fragments),
        new_fragments=_fragments(operation.new_fragments),
        fields_modified=_ids(operation.fields_modified, "field id"),
        compacted_sstables=operation._compacted,
        fields_for_preserving_bitmap=_ids(operation.fields_for_preserving_frag_bitmap, "field id"),
        mode=mode,
        inserted_rows=operation._inserted_rows,
        updated_offsets=dict(operation.updated_fragment_offsets or {}),
    )


def _from_update(operation: table.Update) -> LanceOperation.Update:
    record = LanceOperation.Update(
        removed_fragment_ids=list(operation.removed_fragment_ids),
        updated_fragments=_records(operation.updated_fragments),
        new_fragments=_records(operation.new_fragments),
        fields_modified=list(operation.fields_modified),
        fields_for_preserving_frag_bitmap=list(operation.fields_for_preserving_bitmap),
        update_mode=_MODE_NAMES[operation.mode],
        updated_fragment_offsets=dict(operation.updated_offsets) or None,
    )
    record._inserted_rows = operation.inserted_rows
    record._compacted = operation.compacted_sstables
    return record


def _to_rewrite(operation: LanceOperation.Rewrite) -> table.Rewrite:
    groups = (
        table.RewriteGroup(_fragments(group.old_fragments), _fragments(group.new_fragments))
        for group in _records_of(LanceOperation.RewriteGroup, operation.groups, "groups")
    )
    indices = (
        table.RewrittenIndex(
            old_id=index.old_id,
            new_id=index.new_id,
            details=IndexDetails(index.new_details_type_url, index.new_details_value),
            index_version=index.new_index_version,
            files=tuple(file.to_table() for file in index._files),
        )
        for index in _records_of(LanceOperation.RewrittenIndex, operation.rewritten_indices, "rewritten indices")
    )
    return table.Rewrite(tuple(groups), tuple(indices))


def _from_rewrite(operation: table.Rewrite) -> LanceOperation.Rewrite:
    groups = [
        LanceOperation.RewriteGroup(_records(group.old_fragments), _records(group.new_fragments))
        for group in operation.groups
    ]
    return LanceOperation.Rewrite(groups, [_from_rewritten(index) for index in operation.rewritten_indices])


def _from_rewritten(index: table.RewrittenIndex) -> LanceOperation.RewrittenIndex:
    details = index.details or IndexDetails("", b"")
    record = LanceOperation.RewrittenIndex(
        index.old_id, index.new_id, details.type_url, details.value, index.index_version
    )
    record._files = tuple(IndexFile.from_table(file) for file in index.files)
    return record


def _to_config(operation: LanceOperation.UpdateConfig) -> table.UpdateConfig:
    fields = {field: _to_map(change) for field, change in (operation.field_metadata_updates or {}).items()}
    return table.UpdateConfig(
        config=_to_map(operation.config_updates),
        table_metadata=_to_map(operation.table_metadata_updates),
        schema_metadata=_to_map(operation.schema_metadata_updates),
        field_metadata={field: change for field, change in fields.items() if change is not None},
    )


def _from_config(operation: table.UpdateConfig) -> LanceOperation.UpdateConfig:
    fields = {field: _from_map(change) for field, change in operation.field_metadata.items()}
    return LanceOperation.UpdateConfig(
        config_updates=_from_map(operation.config),
        table_metadata_updates=_from_map(operation.table_metadata),
        schema_metadata_updates=_from_map(operation.schema_metadata),
        field_metadata_updates={field: change for field, change in fields.items() if change is not None} or None,
    )


def _from_overlays(operation: table.DataOverlay) -> LanceOperation.DataOverlay:
    groups = [
        LanceOperation.DataOverlayGroup(fragment_id, [_from_overlay(message) for message in overlays])
        for fragment_id, overlays in operation.groups
    ]
    return LanceOperation.DataOverlay(groups)


def _from_overlay(message: bytes) -> LanceOperation.DataOverlayFile:
    overlay = Overlay.decode(message)
    offsets: list[Iterable[int]] = [values.tolist() for values in overlay.offsets]
    return LanceOperation.DataOverlayFile(DataFile.from_table(overlay.file), offsets, overlay.committed_version or None)


def _from_clone(operation: table.Clone) -> LanceOperation.Clone:
    return LanceOperation.Clone(
        operation.is_shallow, operation.ref_name, operation.ref_version, operation.ref_path, operation.branch_name
    )


# -- table of all kinds ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """Kind of operation: its public record, its value in the table layer, and the conversions between them.

    `to_table` is None if this release cannot commit it.
    """

    record: type[LanceOperation.BaseOperation]
    value: type[Any]
    to_table: Callable[[Any], table.Operation] | None
    from_table: Callable[[Any], LanceOperation.BaseOperation]


def _to_replacement(operation: LanceOperation.DataReplacement) -> table.DataReplacement:
    groups = list(_records_of(LanceOperation.DataReplacementGroup, operation.replacements, "replacements"))
    ids = _ids(group.fragment_id for group in groups)
    files = _records_of(DataFile, (group.new_file for group in groups), "a new file")
    return table.DataReplacement(tuple(zip(ids, (file.to_table() for file in files), strict=True)))


def _to_create_index(operation: LanceOperation.CreateIndex) -> table.CreateIndex:
    new, removed = (
        tuple(index.to_table() for index in _records_of(Index, given, "indices"))
        for given in (operation.new_indices, operation.removed_indices)
    )
    return table.CreateIndex(new, removed)


def _from_replacement(operation: table.DataReplacement) -> LanceOperation.DataReplacement:
    return LanceOperation.DataReplacement(
        [LanceOperation.DataReplacementGroup(each, DataFile.from_table(file)) for each, file in operation.replacements]
    )


_KINDS = (
    _Kind(
        LanceOperation.Append,
        table.Append,
        lambda record: table.Append(_fragments(record.fragments)),
        lambda value: LanceOperation.Append(_records(value.fragments)),
    ),
    _Kind(LanceOperation.Overwrite, table.Overwrite, _to_overwrite, _from_overwrite),
    _Kind(
        LanceOperation.Delete,
        table.Delete,
        _to_delete,
        lambda value: LanceOperation.Delete(
            _records(value.updated_fragments), list(value.deleted_fragment_ids), value.predicate
        ),
    ),
    _Kind(LanceOperation.Restore, table.Restore, _to_restore, lambda value: LanceOperation.Restore(value.version)),
    _Kind(LanceOperation.Update, table.Update, _to_update, _from_update),
    _Kind(
        LanceOperation.Merge,
        table.Merge,
        lambda record: table.Merge(_fragments(record.fragments), _schema(record.schema), record.preserves_nullability),
        lambda value: LanceOperation.Merge(
            _records(value.fragments), LanceSchema(value.schema), value.preserves_nullability
        ),
    ),
    _Kind(
        LanceOperation.Project,
        table.Project,
        lambda record: table.Project(_schema(record.schema), record.preserves_nullability),
        lambda value: LanceOperation.Project(LanceSchema(value.schema), value.preserves_nullability),
    ),
    _Kind(LanceOperation.Rewrite, table.Rewrite, _to_rewrite, _from_rewrite),
    _Kind(
        LanceOperation.DataReplacement,
        table.DataReplacement,
        _to_replacement,
        _from_replacement,
    ),
    _Kind(LanceOperation.UpdateConfig, table.UpdateConfig, _to_config, _from_config),
    _Kind(
        LanceOperation.CreateIndex,
        table.CreateIndex,
        _to_create_index,
        lambda value: LanceOperation.CreateIndex(
            [Index.from_table(index) for index in value.new_indices],
            [Index.from_table(index) for index in value.removed_indices],
        ),
    ),
    _Kind(LanceOperation.DataOverlay, table.DataOverlay, None, _from_overlays),
    _Kind(LanceOperation.Clone, table.Clone, None, _from_clone),
)
_BY_RECORD: Mapping[type[Any], _Kind] = {kind.record: kind for kind in _KINDS}
_BY_VALUE: Mapping[type[Any], _Kind] = {kind.value: kind for kind in _KINDS}
