"""Manifests in the form of old releases."""

from __future__ import annotations

import struct

from lance_dataset._proto import table_pb2
from lance_dataset.table.manifest import Manifest, decode_manifest


def wrapped(message: table_pb2.Manifest, head: bytes = b"") -> bytes:
    encoded = message.SerializeToString()
    return head + struct.pack("<I", len(encoded)) + encoded + struct.pack("<qHH4s", len(head), 0, 1, b"LANC")


def message(
    *fragments: table_pb2.DataFragment, signed: bool = True, data_format: str | None = None
) -> table_pb2.Manifest:
    """Return a manifest of one int64 column, as short as the oldest ones."""
    made = table_pb2.Manifest(version=1, fragments=fragments)
    made.fields.add(name="a", parent_id=-1, logical_type="int64", nullable=True)
    if signed:
        made.writer_version.library, made.writer_version.version = "lance", "0.16.1"
    if data_format is not None:
        made.data_format.file_format, made.data_format.version = "lance", data_format
    return made


def stored(*versions: tuple[int, int], fragment_id: int = 0, rows: int = 3, **values: object) -> table_pb2.DataFragment:
    """Return a fragment with one file per pair of version numbers."""
    made = table_pb2.DataFragment(id=fragment_id, physical_rows=rows, **values)  # type: ignore[arg-type]
    for position, (major, minor) in enumerate(versions):
        file = made.files.add(path=f"{fragment_id}-{position}.lance", fields=[position])
        file.file_major_version, file.file_minor_version = major, minor
        if (major, minor) > (0, 2):
            file.column_indices.append(0)
    return made


def decoded(made: table_pb2.Manifest, head: bytes = b"") -> Manifest:
    return decode_manifest(wrapped(made, head), "m")


def with_dictionary(values: bytes, offset: int, length: int, logical_type: str = "dict:string:int32:false") -> bytes:
    made = message(stored((0, 2)))
    made.fields[0].logical_type = logical_type
    made.fields[0].dictionary.offset, made.fields[0].dictionary.length = offset, length
    return wrapped(made, values)


TWO = b"pq" + struct.pack("<qqq", 0, 1, 2)
