"""Trailer of a legacy (0.1) file: page table, statistics, dictionaries, schema, metadata, footer."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from lance_dataset._proto import file_pb2, table_pb2
from lance_dataset._version import __version__
from lance_dataset.file.v0_1.container import FOOTER, MAGIC
from lance_dataset.file.v0_1.dictionaries import write_dictionaries
from lance_dataset.file.v0_1.write.statistics import Statistics
from lance_dataset.io.base import OutputFile
from lance_dataset.types.schema import Schema

__all__ = ["write_trailer"]

_LENGTH = struct.Struct("<I")
#: Releases up to 14 read two version pairs; this is the one that they write.
_FOOTER_VERSION = (0, 2)
_STORAGE_VERSION = "0.1"
#: Release whose rules are followed; this package's version is build metadata, as in manifests.
_WRITER = table_pb2.WriterVersion(library="lance_dataset", version="14.0.2", build_metadata=__version__)


def write_trailer(
    output: OutputFile,
    schema: Schema,
    batch_offsets: Sequence[int],
    cells: NDArray[np.int64],
    statistics: Statistics,
) -> None:
    """Append everything that follows the pages.

    Parameters
    ----------
    output
        The file; stays open.
    schema
        Schema of the file, with the values of its dictionaries.
    batch_offsets
        First row of each batch, and the number of rows.
    cells
        Page table, int64[field id - smallest field id, batch, 2].
    statistics
        Statistics of the batches.
    """
    table_position = output.tell()
    output.write(np.ascontiguousarray(cells, "<i8").tobytes())
    described = statistics.write(output, cells.shape[1])
    blocks, placed = write_dictionaries(schema, output.tell())
    output.write_many(blocks)
    manifest_position = _write_message(output, _manifest(placed))
    metadata = file_pb2.Metadata(
        manifest_position=manifest_position,
        batch_offsets=batch_offsets,
        page_table_position=table_position,
        statistics=described,
    )
    position = _write_message(output, metadata)
    output.write(FOOTER.pack(position, *_FOOTER_VERSION, MAGIC))


def _manifest(schema: Schema) -> table_pb2.Manifest:
    """Return the schema in the form of a manifest without fragments."""
    message = table_pb2.Manifest(
        fields=schema.to_proto(),
        version=1,
        writer_version=_WRITER,
        data_format=table_pb2.DataStorageFormat(file_format="lance", version=_STORAGE_VERSION),
    )
    for key, value in schema.metadata.items():
        message.schema_metadata[key] = value
    return message


def _write_message(output: OutputFile, message: Message) -> int:
    """Append a message after its length; return its position."""
    position = output.tell()
    encoded = message.SerializeToString()
    output.write_many((_LENGTH.pack(len(encoded)), encoded))
    return position
