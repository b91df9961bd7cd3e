"""Schemas, manifests, fragments and transactions as records with the names of the reference."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from enum import Enum
from itertools import accumulate
from typing import Any

import numpy as np

from lance_dataset.api.debug_text import Bare, Record, Wrapped, optional
from lance_dataset.table import operations
from lance_dataset.table.fragment import (
    LEGACY_VERSION,
    DataFile,
    DeletionFile,
    DeletionFileType,
    Fragment,
    Lineage,
    Spilled,
)
from lance_dataset.table.index_metadata import IndexDetails, IndexFile, IndexMetadata
from lance_dataset.table.manifest import BasePath, Manifest
from lance_dataset.table.roaring import decode_bitmap
from lance_dataset.table.transaction import Transaction
from lance_dataset.types.schema import Field, Schema, stated_encoding

__all__ = ["fragment_record", "manifest_record", "schema_record", "transaction_record"]

_ENCODINGS = {1: "Plain", 2: "VarBinary", 3: "Dictionary", 4: "RLE"}
#: Bitmaps with fewer values are listed.
_FEW = 16


def schema_record(schema: Schema) -> Record:
    """Return the record of a schema."""
    return Record("Schema", [("fields", [_field(each, -1) for each in schema.fields]), ("metadata", _texts(schema))])


def manifest_record(manifest: Manifest) -> Record:
    """Return the record of a version. The places of its sections are shown as their sizes."""
    writer = manifest.writer_version
    version = manifest.storage_version
    stored = "V1" if version == LEGACY_VERSION else f"V{version.replace('.', '_')}"
    fragments = list(manifest.fragments)
    return Record(
        "Manifest",
        [
            ("schema", schema_record(manifest.schema)),
            ("version", manifest.version),
            ("branch", optional(manifest.branch)),
            ("writer_version", optional(None if writer is None else _writer(writer))),
            ("fragments", [_fragment(each) for each in fragments]),
            ("version_aux_data", 0),
            ("index_section", optional(_size(manifest.index_section))),
            ("timestamp_nanos", manifest.timestamp_nanos),
            ("tag", optional(manifest.tag or None)),
            ("reader_feature_flags", manifest.reader_flags),
            ("writer_feature_flags", manifest.writer_flags),
            ("max_fragment_id", optional(manifest.max_fragment_id)),
            ("max_allocated_field_id", optional(manifest.max_allocated_field_id)),
            ("transaction_file", optional(manifest.transaction_file or None)),
            ("transaction_section", optional(_size(manifest.inline_transaction))),
            ("fragment_offsets", list(accumulate((each.num_rows or 0 for each in fragments), initial=0))),
            ("next_row_id", manifest.next_row_id),
            ("data_storage_format", Record("DataStorageFormat", [("file_format", "lance"), ("version", Bare(stored))])),
            ("config", dict(manifest.config)),
            ("table_metadata", dict(manifest.table_metadata)),
            ("base_paths", {each.id: _base_path(each) for each in manifest.base_paths}),
        ],
    )


def fragment_record(fragment: Fragment, schema: Schema) -> Record:
    """Return the record of a fragment, with the fields that each of its data files holds."""
    files = [
        Record(
            "PrettyPrintableDataFile",
            [
                ("path", file.path),
                ("fields", file.fields),
                ("column_indices", file.column_indices),
                ("schema", schema_record(Schema(_held(schema.fields, set(file.fields)), schema.metadata))),
                ("major_version", file.file_major_version),
                ("minor_version", file.file_minor_version),
            ],
        )
        for file in fragment.files
    ]
    deletions = fragment.deletion_file
    return Record(
        "PrettyPrintableFragment",
        [
            ("id", fragment.id),
            ("files", files),
            ("deletion_file", optional(None if deletions is None else _deletion_file(deletions))),
            ("physical_rows", optional(fragment.physical_rows)),
        ],
    )


def transaction_record(transaction: Transaction) -> Record:
    """Return the record of a transaction."""
    return Record(
        "Transaction",
        [
            ("read_version", transaction.read_version),
            ("uuid", transaction.uuid),
            ("operation", _operation(transaction.operation)),
            ("tag", optional(transaction.tag or None)),
            ("transaction_properties", optional(dict(transaction.properties) or None)),
        ],
    )


# -- schemas ---------------------------------------------------------------------------------------------------------


def _field(node: Field, parent: int) -> Record:
    encoding = _ENCODINGS.get(stated_encoding(node.logical_type))
    return Record(
        "Field",
        [
            ("name", node.name),
            ("id", node.id),
            ("parent_id", parent),
            ("logical_type", Wrapped("LogicalType", [node.logical_type])),
            ("metadata", _texts(node)),
            ("encoding", optional(None if encoding is None else Bare(encoding))),
            ("nullable", node.nullable),
            ("children", [_field(child, node.id) for child in node.children]),
            ("dictionary", optional(_dictionary(node))),
            ("unenforced_primary_key_position", optional(node.primary_key_position if node.primary_key else None)),
            ("unenforced_clustering_key_position", optional(node.clustering_key_position or None)),
        ],
    )


def _dictionary(node: Field) -> Record | None:
    if node.dictionary is None:
        return None
    values = None if node.dictionary_values is None else node.dictionary_values.to_pylist()
    offset, length = node.dictionary
    return Record("Dictionary", [("offset", offset), ("length", length), ("values", optional(values))])


def _texts(owner: Schema | Field) -> dict[str, str]:
    return {key: bytes(value).decode(errors="replace") for key, value in owner.metadata.items()}


def _held(fields: Sequence[Field], ids: Collection[int]) -> tuple[Field, ...]:
    """Return the fields with these ids, and those that contain them."""
    found = [dataclasses.replace(node, children=_held(node.children, ids)) for node in fields]
    return tuple(node for node in found if node.children or node.id in ids)


# -- manifests -------------------------------------------------------------------------------------------------------


def _writer(writer: Any) -> Record:
    return Record(
        "WriterVersion",
        [
            ("library", writer.library),
            ("version", writer.version),
            ("prerelease", optional(writer.prerelease)),
            ("build_metadata", optional(writer.build_metadata)),
        ],
    )


def _size(section: bytes | None) -> Bare | None:
    return Bare(f"<{len(section)} bytes>") if section else None


def _base_path(base: BasePath) -> Record:
    name = optional(base.name)
    fields = [("id", base.id), ("name", name), ("is_dataset_root", base.is_dataset_root), ("path", base.path)]
    return Record("BasePath", fields)


def _fragment(fragment: Fragment) -> Record:
    deletions = fragment.deletion_file
    return Record(
        "Fragment",
        [
            ("id", fragment.id),
            ("files", [_data_file(each) for each in fragment.files]),
            ("overlays", [Bare(f"<{len(each)} bytes>") for each in fragment.overlays]),
            ("deletion_file", optional(None if deletions is None else _deletion_file(deletions))),
            ("row_id_meta", _lineage(fragment.row_ids, as_numbers=False)),
            ("physical_rows", optional(fragment.physical_rows)),
            ("last_updated_at_version_meta", _lineage(fragment.last_updated_at_versions)),
            ("created_at_version_meta", _lineage(fragment.created_at_versions)),
        ],
    )


def _lineage(sequence: Lineage, *, as_numbers: bool = True) -> Wrapped | None:
    if sequence is None:
        return None
    if isinstance(sequence, Spilled):
        return optional(Bare("Column"))
    return optional(Wrapped("Inline", [list(sequence) if as_numbers else sequence]))


def _data_file(file: DataFile) -> Record:
    return Record(
        "DataFile",
        [
            ("path", file.path),
            ("fields", file.fields),
            ("column_indices", file.column_indices),
            ("file_major_version", file.file_major_version),
            ("file_minor_version", file.file_minor_version),
            ("file_size_bytes", Wrapped("CachedFileSize", [file.file_size_bytes])),
            ("base_id", optional(file.base_id)),
        ],
    )


def _deletion_file(file: DeletionFile) -> Record:
    kind = "Array" if file.file_type is DeletionFileType.ARROW_ARRAY else "Bitmap"
    return Record(
        "DeletionFile",
        [
            ("read_version", file.read_version),
            ("id", file.id),
            ("file_type", Bare(kind)),
            ("num_deleted_rows", optional(file.num_deleted_rows or None)),
            ("base_id", optional(file.base_id)),
        ],
    )


# -- transactions ----------------------------------------------------------------------------------------------------


def _operation(operation: operations.Operation) -> Record:
    return Record(operation.name, [(name, value) for name, value in _fields(operation).items()])


def _fields(operation: operations.Operation) -> dict[str, Any]:
    """Return the fields of an operation, in the order of the reference."""
    match operation:
        case operations.Overwrite():
            bases = [_base_path(each) for each in operation.initial_bases]
            return {
                "fragments": [_fragment(each) for each in operation.fragments],
                "schema": schema_record(operation.schema),
                "config_upsert_values": optional(dict(operation.config_upserts) or None),
                "initial_bases": optional(bases or None),
            }
        case operations.Rewrite():
            reused = operation.reuse_index
            return {
                "groups": [_rewrite_group(each) for each in operation.groups],
                "rewritten_indices": [_rewritten(each) for each in operation.rewritten_indices],
                "frag_reuse_index": optional(None if reused is None else _index(reused)),
            }
        case operations.Merge() | operations.Project():
            known = _generic(operation)
            names = ("fragments", "schema", "preserves_nullability")
            return {name: known[name] for name in names if name in known}
        case operations.Update():
            return _update(operation)
        case operations.UpdateConfig():
            return {
                "config_updates": optional(_update_map(operation.config)),
                "table_metadata_updates": optional(_update_map(operation.table_metadata)),
                "schema_metadata_updates": optional(_update_map(operation.schema_metadata)),
                "field_metadata_updates": {key: _update_map(each) for key, each in operation.field_metadata.items()},
            }
        case operations.DataReplacement():
            groups = operation.replacements
            return {"replacements": [Wrapped("DataReplacementGroup", [key, _data_file(file)]) for key, file in groups]}
        case operations.Clone():
            return {
                "is_shallow": operation.is_shallow,
                "ref_name": optional(operation.ref_name),
                "ref_version": operation.ref_version,
                "ref_path": operation.ref_path,
                "branch_name": optional(operation.branch_name),
            }
        case _:
            return _generic(operation)


def _update(operation: operations.Update) -> dict[str, Any]:
    mode = "RewriteRows" if operation.mode is operations.UpdateMode.REWRITE_ROWS else "RewriteColumns"
    return {
        "removed_fragment_ids": operation.removed_fragment_ids,
        "updated_fragments": [_fragment(each) for each in operation.updated_fragments],
        "new_fragments": [_fragment(each) for each in operation.new_fragments],
        "fields_modified": operation.fields_modified,
        "compacted_sstables": [_shown(each) for each in operation.compacted_sstables],
        "fields_for_preserving_frag_bitmap": operation.fields_for_preserving_bitmap,
        "update_mode": optional(Bare(mode)),
        "inserted_rows_filter": optional(_shown(operation.inserted_rows)),
        "updated_fragment_offsets": optional(dict(operation.updated_offsets) or None),
    }


def _update_map(changes: operations.UpdateMap | None) -> Record | None:
    if changes is None:
        return None
    entries = [
        Record("UpdateMapEntry", [("key", key), ("value", optional(value))]) for key, value in changes.updates.items()
    ]
    return Record("UpdateMap", [("update_entries", entries), ("replace", changes.replace)])


def _rewrite_group(group: operations.RewriteGroup) -> Record:
    old, new = [_fragment(each) for each in group.old_fragments], [_fragment(each) for each in group.new_fragments]
    return Record("RewriteGroup", [("old_fragments", old), ("new_fragments", new)])


def _rewritten(index: operations.RewrittenIndex) -> Record:
    return Record(
        "RewrittenIndex",
        [
            ("old_id", Bare(index.old_id)),
            ("new_id", Bare(index.new_id)),
            ("new_index_details", _details(index.details or IndexDetails("", b""))),
            ("new_index_version", index.index_version),
            ("new_index_files", _index_files(index.files)),
        ],
    )


def _index(index: IndexMetadata) -> Record:
    created = None
    if index.created_at is not None:
        moment = datetime.fromtimestamp(index.created_at / 1000, timezone.utc)
        created = Bare(moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    covered = index.fragment_bitmap
    return Record(
        "IndexMetadata",
        [
            ("uuid", Bare(index.uuid)),
            ("fields", index.fields),
            ("covering_fields", index.covering_fields),
            ("name", index.name),
            ("dataset_version", index.dataset_version),
            ("fragment_bitmap", optional(_bitmap(covered, index.name) if covered else None)),
            ("index_details", optional(None if index.details is None else _details(index.details))),
            ("index_version", index.index_version or 0),
            ("created_at", optional(created)),
            ("base_id", optional(index.base_id)),
            ("files", _index_files(index.files)),
        ],
    )


def _bitmap(data: bytes, where: str) -> Bare:
    values = decode_bitmap(data, 1 << 32, where)
    if len(values) < _FEW:
        return Bare(f"RoaringBitmap<{values.tolist()}>")
    containers = 1 + np.count_nonzero(np.diff(values >> np.uint32(16)))
    return Bare(f"RoaringBitmap<{len(values)} values between {values[0]} and {values[-1]} in {containers} containers>")


def _details(details: IndexDetails) -> Record:
    return Record("Any", [("type_url", details.type_url), ("value", list(details.value))])


def _index_files(files: Sequence[IndexFile]) -> Wrapped | None:
    found = [Record("IndexFile", [("path", each.path), ("size_bytes", each.size_bytes)]) for each in files]
    return optional(found or None)


# -- anything else ---------------------------------------------------------------------------------------------------


def _generic(value: Any) -> dict[str, Any]:
    return {each.name: _shown(getattr(value, each.name)) for each in dataclasses.fields(value)}


def _shown(value: Any) -> Any:
    """Return the record of a value by its type, or by the fields that it has here."""
    for kind, record in _RECORDS.items():
        if isinstance(value, kind):
            return record(value)
    if dataclasses.is_dataclass(value):
        return Record(type(value).__name__, list(_generic(value).items()))
    if isinstance(value, Mapping):
        return {key: _shown(each) for key, each in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [_shown(each) for each in value]
    return Bare(value.name) if isinstance(value, Enum) else value


_RECORDS: dict[type, Any] = {
    Fragment: _fragment,
    DataFile: _data_file,
    IndexMetadata: _index,
    BasePath: _base_path,
    Schema: schema_record,
}
