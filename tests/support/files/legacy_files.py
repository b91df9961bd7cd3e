"""Legacy files as this package writes them, and their messages."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_dataset
from lance_dataset._proto import file_pb2
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.writer import open_writer
from lance_dataset.io.local_output import LocalOutput
from lance_dataset.io.resolve import resolve
from lance_dataset.types.schema import Schema


def write(table: pa.Table, path: Path, **options: Any) -> bytes:
    """Write a legacy file of the table and return its content."""
    writer = open_writer(LocalOutput(str(path), durable=False), Schema.from_arrow(table.schema), "legacy", **options)
    try:
        for batch in table.to_batches():
            writer.write_batch(batch)
        summary = writer.finish()
    except BaseException:
        writer.abort()
        raise
    assert (summary.num_rows, summary.size) == (table.num_rows, path.stat().st_size)
    assert (summary.column_indices, summary.major, summary.minor) == ((), 0, 2)
    return path.read_bytes()


def framed(content: bytes, position: int, kind: Any) -> Any:
    (length,) = struct.unpack_from("<I", content, position)
    return kind.FromString(content[position + 4 : position + 4 + length])


def metadata(content: bytes) -> file_pb2.Metadata:
    position, *version, magic = struct.unpack("<qhh4s", content[-16:])
    assert (version, magic) == ([0, 2], b"LANC")
    return framed(content, position, file_pb2.Metadata)


def write_dataset_file(path: Path, table: pa.Table, **options: int) -> Path:
    """Write a legacy dataset of one data file and return the path of that file."""
    lance_dataset.write_dataset(table, path, data_storage_version="legacy", **options)
    (file,) = (path / "data").iterdir()
    return file


def open_file(file: Path, mapped: str = "true") -> LegacyFile:
    """Open a legacy file, mapped or with plain reads."""
    store, path = resolve(str(file), {"mmap": mapped})
    return LegacyFile(store.open_input(path))
