"""Conversion of operations from and to protobuf messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError

from lance_dataset._proto import table_pb2, transaction_pb2
from lance_dataset.errors import CorruptFileError, InvalidInputError
from lance_dataset.table.checks import check_fields
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.index_metadata import (
    IndexDetails,
    IndexFile,
    IndexMetadata,
    uuid_from_proto,
    uuid_to_proto,
)
from lance_dataset.table.manifest import BasePath
from lance_dataset.table.operations import (
    Append,
    Clone,
    CompactedSsTable,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
    KeyFilter,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Unknown,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMap,
    UpdateMemWalState,
    UpdateMode,
)
from lance_dataset.table.roaring import encode_bitmap
from lance_dataset.types.schema import Schema

__all__ = ["decode_operation", "encode_operation"]

_Message = transaction_pb2.Transaction


def decode_operation(message: transaction_pb2.Transaction, where: str) -> Operation:
    """Decode the operation of a transaction. It is `Unknown` if this release does not know it.

    Parameters
    ----------
    message
        The transaction.
    where
        Its file, for error messages.

    Raises
    ------
    CorruptFileError
        The message contradicts the format.
    """
    kind = message.WhichOneof("operation")
    return Unknown() if kind is None else _DECODERS[kind](getattr(message, kind), where)


def encode_operation(operation: Operation, message: transaction_pb2.Transaction) -> None:
    """Encode an operation into the message of its transaction.

    Raises
    ------
    InvalidInputError
        It is `Unknown`, or a value does not fit the format.
    """
    encoder = _ENCODERS.get(type(operation))
    if encoder is None:
        raise InvalidInputError("an unknown operation cannot be written")
    try:
        encoder(operation, message)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"a value of the {operation.name} operation cannot be stored: {error}") from error


# -- parts -----------------------------------------------------------------------------------------------------------


def _fragments(messages: Iterable[table_pb2.DataFragment], where: str) -> tuple[Fragment, ...]:
    return tuple(Fragment.from_proto(message, where) for message in messages)


def _fragment_protos(fragments: Iterable[Fragment]) -> list[table_pb2.DataFragment]:
    return [fragment.to_proto() for fragment in fragments]


def _schema(fields: Any, metadata: Mapping[str, bytes], where: str) -> Schema:
    check_fields(fields, where)
    return Schema.from_proto(fields, metadata, where=where)


def _update_map(message: transaction_pb2.Transaction.UpdateMap) -> UpdateMap:
    updates = {entry.key: entry.value if entry.HasField("value") else None for entry in message.update_entries}
    return UpdateMap(updates, message.replace)


def _encode_update_map(update: UpdateMap, message: transaction_pb2.Transaction.UpdateMap) -> None:
    message.SetInParent()
    for key, value in update.updates.items():
        message.update_entries.add(key=key, value=value)
    message.replace = update.replace


def _details(message: AnyMessage) -> IndexDetails:
    return IndexDetails.from_proto(message)


def _sstables(messages: Iterable[Any], where: str) -> tuple[CompactedSsTable, ...]:
    return tuple(CompactedSsTable(uuid_from_proto(each.shard_id, where), each.generation) for each in messages)


def _encode_sstables(tables: Iterable[CompactedSsTable], messages: Any) -> None:
    for each in tables:
        messages.add(shard_id=uuid_to_proto(each.shard_id), generation=each.generation)


# -- decoding --------------------------------------------------------------------------------------------------------


def _append(message: Any, where: str) -> Append:
    return Append(_fragments(message.fragments, where))


def _delete(message: Any, where: str) -> Delete:
    return Delete(_fragments(message.updated_fragments, where), tuple(message.deleted_fragment_ids), message.predicate)


def _overwrite(message: Any, where: str) -> Overwrite:
    return Overwrite(
        schema=_schema(message.schema, message.schema_metadata, where),
        fragments=_fragments(message.fragments, where),
        config_upserts=dict(message.config_upsert_values),
        initial_bases=tuple(BasePath.from_proto(base) for base in message.initial_bases),
    )


def _create_index(message: Any, where: str) -> CreateIndex:
    return CreateIndex(
        tuple(IndexMetadata.from_proto(each, where) for each in message.new_indices),
        tuple(IndexMetadata.from_proto(each, where) for each in message.removed_indices),
    )


def _rewrite(message: Any, where: str) -> Rewrite:
    given = [(group.old_fragments, group.new_fragments) for group in message.groups]
    if message.old_fragments or message.new_fragments:  # up to 0.7 there was one group, not listed as such
        given.insert(0, (message.old_fragments, message.new_fragments))
    groups = tuple(RewriteGroup(_fragments(old, where), _fragments(new, where)) for old, new in given)
    return Rewrite(groups, tuple(_rewritten_index(each, where) for each in message.rewritten_indices))


def _rewritten_index(message: Any, where: str) -> RewrittenIndex:
    return RewrittenIndex(
        old_id=uuid_from_proto(message.old_id, f"{where}: rewritten index"),
        new_id=uuid_from_proto(message.new_id, f"{where}: rewritten index"),
        details=_details(message.new_index_details) if message.HasField("new_index_details") else None,
        index_version=message.new_index_version,
        files=tuple(IndexFile(file.path, file.size_bytes) for file in message.new_index_files),
    )


def _merge(message: Any, where: str) -> Merge:
    schema = _schema(message.schema, message.schema_metadata, where)
    return Merge(_fragments(message.fragments, where), schema, message.preserves_nullability)


def _update(message: Any, where: str) -> Update:
    offsets = {
        fragment_id: encode_bitmap(sorted(rows.values))
        for fragment_id, rows in message.updated_fragment_offsets.items()
    }
    return Update(
        removed_fragment_ids=tuple(message.removed_fragment_ids),
        updated_fragments=_fragments(message.updated_fragments, where),
        new_fragments=_fragments(message.new_fragments, where),
        fields_modified=tuple(message.fields_modified),
        compacted_sstables=_update_sstables(message, where),
        fields_for_preserving_bitmap=tuple(message.fields_for_preserving_frag_bitmap),
        mode=UpdateMode.REWRITE_COLUMNS
        if message.update_mode == UpdateMode.REWRITE_COLUMNS
        else UpdateMode.REWRITE_ROWS,
        inserted_rows=_key_filter(message.inserted_rows) if message.HasField("inserted_rows") else None,
        updated_offsets={**offsets, **message.updated_fragment_offset_bitmaps},
    )


def _update_sstables(message: Any, where: str) -> tuple[CompactedSsTable, ...]:
    """Return the compacted tables. An abandoned design of releases around 1.0 used the same field in another way."""
    try:
        return _sstables(message.compacted_sstables, where)
    except CorruptFileError:
        return ()


def _key_filter(message: transaction_pb2.Transaction.KeyExistenceFilter) -> KeyFilter:
    field_ids = tuple(message.field_ids)
    if message.WhichOneof("filter") == "exact":
        return KeyFilter(field_ids, frozenset(message.exact.key_hashes))
    bloom = message.bloom
    return KeyFilter(field_ids, None, bloom.bitmap, bloom.num_bits, bloom.number_of_items, bloom.probability)


def _project(message: Any, where: str) -> Project:
    return Project(_schema(message.schema, {}, where), message.preserves_nullability)


def _update_config(message: Any, where: str) -> UpdateConfig:
    config = _update_map(message.config_updates) if message.HasField("config_updates") else None
    schema = _update_map(message.schema_metadata_updates) if message.HasField("schema_metadata_updates") else None
    fields = {field_id: _update_map(update) for field_id, update in message.field_metadata_updates.items()}
    # Fields written by releases before 0.38.
    if message.upsert_values or message.delete_keys:
        config = UpdateMap({**dict.fromkeys(message.delete_keys), **message.upsert_values})
    if message.schema_metadata:
        schema = UpdateMap(dict(message.schema_metadata), replace=True)
    for field_id, replaced in message.field_metadata.items():
        fields[field_id] = UpdateMap(dict(replaced.metadata), replace=True)
    table = _update_map(message.table_metadata_updates) if message.HasField("table_metadata_updates") else None
    return UpdateConfig(config, table, schema, fields)


def _data_replacement(message: Any, where: str) -> DataReplacement:
    return DataReplacement(
        tuple((each.fragment_id, DataFile.from_proto(each.new_file)) for each in message.replacements)
    )


def _mem_wal(message: Any, where: str) -> UpdateMemWalState:
    return UpdateMemWalState(_sstables(message.compacted_sstables, where))


def _clone(message: Any, where: str) -> Clone:
    return Clone(
        is_shallow=message.is_shallow,
        ref_version=message.ref_version,
        ref_path=message.ref_path,
        ref_name=message.ref_name if message.HasField("ref_name") else None,
        branch_name=message.branch_name if message.HasField("branch_name") else None,
    )


def _update_bases(message: Any, where: str) -> UpdateBases:
    return UpdateBases(tuple(BasePath.from_proto(base) for base in message.new_bases))


def _data_overlay(message: Any, where: str) -> DataOverlay:
    return DataOverlay(
        tuple(
            (group.fragment_id, tuple(overlay.SerializeToString() for overlay in group.overlays))
            for group in message.groups
        )
    )


_DECODERS: Mapping[str, Callable[[Any, str], Operation]] = {
    "append": _append,
    "delete": _delete,
    "overwrite": _overwrite,
    "create_index": _create_index,
    "rewrite": _rewrite,
    "merge": _merge,
    "restore": lambda message, where: Restore(message.version),
    "reserve_fragments": lambda message, where: ReserveFragments(message.num_fragments),
    "update": _update,
    "project": _project,
    "update_config": _update_config,
    "data_replacement": _data_replacement,
    "update_mem_wal_state": _mem_wal,
    "clone": _clone,
    "update_bases": _update_bases,
    "data_overlay": _data_overlay,
}


# -- encoding --------------------------------------------------------------------------------------------------------


def _encode_append(operation: Append, message: _Message) -> None:
    message.append.SetInParent()
    message.append.fragments.extend(_fragment_protos(operation.fragments))


def _encode_delete(operation: Delete, message: _Message) -> None:
    message.delete.SetInParent()
    message.delete.updated_fragments.extend(_fragment_protos(operation.updated_fragments))
    message.delete.deleted_fragment_ids.extend(operation.deleted_fragment_ids)
    message.delete.predicate = operation.predicate


def _encode_overwrite(operation: Overwrite, message: _Message) -> None:
    target = message.overwrite
    target.SetInParent()
    target.fragments.extend(_fragment_protos(operation.fragments))
    target.schema.extend(operation.schema.to_proto())
    for key, value in operation.schema.metadata.items():
        target.schema_metadata[key] = value
    for name, setting in operation.config_upserts.items():
        target.config_upsert_values[name] = setting
    target.initial_bases.extend(base.to_proto() for base in operation.initial_bases)


def _encode_create_index(operation: CreateIndex, message: _Message) -> None:
    message.create_index.SetInParent()
    message.create_index.new_indices.extend(index.to_proto() for index in operation.new_indices)
    message.create_index.removed_indices.extend(index.to_proto() for index in operation.removed_indices)


def _encode_rewrite(operation: Rewrite, message: _Message) -> None:
    message.rewrite.SetInParent()
    for group in operation.groups:
        added = message.rewrite.groups.add()
        added.old_fragments.extend(_fragment_protos(group.old_fragments))
        added.new_fragments.extend(_fragment_protos(group.new_fragments))
    for index in operation.rewritten_indices:
        message.rewrite.rewritten_indices.add(
            old_id=uuid_to_proto(index.old_id),
            new_id=uuid_to_proto(index.new_id),
            new_index_details=None if index.details is None else index.details.to_proto(),
            new_index_version=index.index_version,
            new_index_files=[table_pb2.IndexFile(path=file.path, size_bytes=file.size_bytes) for file in index.files],
        )


def _encode_merge(operation: Merge, message: _Message) -> None:
    message.merge.SetInParent()
    message.merge.fragments.extend(_fragment_protos(operation.fragments))
    message.merge.schema.extend(operation.schema.to_proto())
    for key, value in operation.schema.metadata.items():
        message.merge.schema_metadata[key] = value
    message.merge.preserves_nullability = operation.preserves_nullability


def _encode_restore(operation: Restore, message: _Message) -> None:
    message.restore.SetInParent()
    message.restore.version = operation.version


def _encode_reserve(operation: ReserveFragments, message: _Message) -> None:
    message.reserve_fragments.SetInParent()
    message.reserve_fragments.num_fragments = operation.num_fragments


def _encode_update(operation: Update, message: _Message) -> None:
    target = message.update
    target.SetInParent()
    target.removed_fragment_ids.extend(operation.removed_fragment_ids)
    target.updated_fragments.extend(_fragment_protos(operation.updated_fragments))
    target.new_fragments.extend(_fragment_protos(operation.new_fragments))
    target.fields_modified.extend(operation.fields_modified)
    _encode_sstables(operation.compacted_sstables, target.compacted_sstables)
    target.fields_for_preserving_frag_bitmap.extend(operation.fields_for_preserving_bitmap)
    target.update_mode = int(operation.mode)  # type: ignore[assignment]
    if operation.inserted_rows is not None:
        _encode_key_filter(operation.inserted_rows, target.inserted_rows)
    for fragment_id, bitmap in operation.updated_offsets.items():
        target.updated_fragment_offset_bitmaps[fragment_id] = bitmap


def _encode_key_filter(keys: KeyFilter, message: transaction_pb2.Transaction.KeyExistenceFilter) -> None:
    message.SetInParent()
    message.field_ids.extend(keys.field_ids)
    if keys.key_hashes is not None:
        message.exact.SetInParent()
        message.exact.key_hashes.extend(sorted(keys.key_hashes))
        return
    message.bloom.bitmap = keys.bitmap
    message.bloom.num_bits = keys.num_bits
    message.bloom.number_of_items = keys.number_of_items
    message.bloom.probability = keys.probability


def _encode_project(operation: Project, message: _Message) -> None:
    message.project.SetInParent()
    message.project.schema.extend(operation.schema.to_proto())
    message.project.preserves_nullability = operation.preserves_nullability


def _encode_update_config(operation: UpdateConfig, message: _Message) -> None:
    target = message.update_config
    target.SetInParent()
    if operation.config is not None:
        _encode_update_map(operation.config, target.config_updates)
    if operation.table_metadata is not None:
        _encode_update_map(operation.table_metadata, target.table_metadata_updates)
    if operation.schema_metadata is not None:
        _encode_update_map(operation.schema_metadata, target.schema_metadata_updates)
    for field_id, update in operation.field_metadata.items():
        _encode_update_map(update, target.field_metadata_updates[field_id])


def _encode_data_replacement(operation: DataReplacement, message: _Message) -> None:
    message.data_replacement.SetInParent()
    for fragment_id, file in operation.replacements:
        message.data_replacement.replacements.add(fragment_id=fragment_id, new_file=file.to_proto())


def _encode_mem_wal(operation: UpdateMemWalState, message: _Message) -> None:
    message.update_mem_wal_state.SetInParent()
    _encode_sstables(operation.compacted_sstables, message.update_mem_wal_state.compacted_sstables)


def _encode_clone(operation: Clone, message: _Message) -> None:
    message.clone.CopyFrom(
        transaction_pb2.Transaction.Clone(
            is_shallow=operation.is_shallow,
            ref_name=operation.ref_name,
            ref_version=operation.ref_version,
            ref_path=operation.ref_path,
            branch_name=operation.branch_name,
        )
    )


def _encode_update_bases(operation: UpdateBases, message: _Message) -> None:
    message.update_bases.SetInParent()
    message.update_bases.new_bases.extend(base.to_proto() for base in operation.new_bases)


def _encode_data_overlay(operation: DataOverlay, message: _Message) -> None:
    message.data_overlay.SetInParent()
    for fragment_id, overlays in operation.groups:
        group = message.data_overlay.groups.add(fragment_id=fragment_id)
        for overlay in overlays:
            try:
                group.overlays.add().MergeFromString(overlay)
            except DecodeError as error:
                raise ValueError(f"an overlay of fragment {fragment_id} is not an overlay message") from error


_ENCODERS: Mapping[type, Callable[[Any, _Message], None]] = {
    Append: _encode_append,
    Delete: _encode_delete,
    Overwrite: _encode_overwrite,
    CreateIndex: _encode_create_index,
    Rewrite: _encode_rewrite,
    Merge: _encode_merge,
    Restore: _encode_restore,
    ReserveFragments: _encode_reserve,
    Update: _encode_update,
    Project: _encode_project,
    UpdateConfig: _encode_update_config,
    DataReplacement: _encode_data_replacement,
    UpdateMemWalState: _encode_mem_wal,
    Clone: _encode_clone,
    UpdateBases: _encode_update_bases,
    DataOverlay: _encode_data_overlay,
}
