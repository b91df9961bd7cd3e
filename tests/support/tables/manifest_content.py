"""Content of a manifest, in a form in which two manifests of the same table compare equal."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from lance_dataset._proto import system_indices_pb2, table_pb2
from lance_dataset.io.local import LocalStore
from lance_dataset.table.fragment import Fragment, Lineage
from lance_dataset.table.indices.coverage import MEMORY_INDEX, coverage, parse_indices
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.row_versions import RowVersions
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.transaction import Transaction, read_transaction
from lance_dataset.table.versions import read_version

#: Fields that describe the commit, not the content.
_COMMIT = ("timestamp_nanos", "writer_version", "transaction_file", "inline_transaction", "path", "file_size")


def manifest_of(path: Path | str, version: int) -> Manifest:
    """Return a version of a table in the local file system."""
    return read_version(LocalStore(), str(path), version)


def transaction_of(path: Path | str, version: int) -> Transaction:
    """Return the transaction that made a version."""
    found = read_transaction(LocalStore(), str(path), manifest_of(path, version))
    assert found is not None
    return found


def manifest_content(manifest: Manifest) -> dict[str, Any]:
    """Return all fields of a manifest with decoded sequences and bitmaps, without those that differ between commits."""
    content = {field.name: getattr(manifest, field.name) for field in dataclasses.fields(manifest)}
    for name in _COMMIT:
        del content[name]
    content["fragments"] = [_fragment(fragment) for fragment in manifest.fragments]
    content["index_section"] = sorted(map(_index, parse_indices(manifest.index_section)), key=repr)
    content["schema"] = [_without_encoding(message) for message in manifest.schema.to_proto()]
    content["schema_metadata"] = dict(manifest.schema.metadata)
    return content


def _fragment(fragment: Fragment) -> dict[str, Any]:
    content = {field.name: getattr(fragment, field.name) for field in dataclasses.fields(fragment)}
    rows = fragment.physical_rows
    content["row_ids"] = _row_ids(fragment.row_ids, rows)
    for name in ("created_at_versions", "last_updated_at_versions"):
        content[name] = _versions(content[name], rows)
    return content


def _row_ids(lineage: Lineage, rows: int) -> object:
    return RowIds.decode(lineage, rows, "fragment").to_numpy().tolist() if isinstance(lineage, bytes) else lineage


def _versions(lineage: Lineage, rows: int) -> object:
    return RowVersions.decode(lineage, rows, "fragment").to_numpy().tolist() if isinstance(lineage, bytes) else lineage


def _index(message: table_pb2.IndexMetadata) -> dict[str, Any]:
    """Return an index; those of the log of a table get new ids and times at every commit."""
    content = {field.name: value for field, value in message.ListFields()}
    content["fragment_bitmap"] = sorted(covered) if (covered := coverage(message)) is not None else None
    for name in ("uuid", "index_details", "files"):
        content[name] = str(content.get(name))
    if message.name == MEMORY_INDEX:
        for name in ("uuid", "created_at"):
            del content[name]
        details = system_indices_pb2.MemWalIndexDetails.FromString(message.index_details.value)
        content["index_details"] = sorted(map(str, details.compacted_sstables))
    for name in ("fields", "covering_fields"):
        content[name] = list(content.get(name, ()))
    return content


def _without_encoding(message: Any) -> str:
    message.ClearField("encoding")
    message.ClearField("dictionary")
    return str(message)
