"""Files of a full-text index: their names, and the metadata that describes them.

An index consists of partitions. Each has a dictionary of words, a table of documents, and a posting list for each
word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.text.posting_blocks import BlockFormat
from lance_dataset.table.indices.coverage import MAX_FRAGMENTS
from lance_dataset.table.roaring import decode_bitmap, encode_bitmap

__all__ = ["DELETED_FRAGMENTS", "METADATA_FILE", "InvertedLayout", "PartitionFiles", "metadata_batch"]

METADATA_FILE = "metadata.lance"
DELETED_FRAGMENTS = "deleted_fragments"

_BLOCK_SIZES = ("128", "256")
_TOKEN_SETS = ("fst", "arrow")
_TAILS = ("fixed32_v1", "varint_delta_v1")
_POSITIONS = ("packed_delta_v1", "varint_doc_delta_v2")
_FORMATS = ("1", "2", "3")
_SHARED_POSITIONS = "shared_stream_v2"


@dataclass(frozen=True)
class PartitionFiles:
    """Names of the files of a partition.

    Attributes
    ----------
    number
        Id of the partition.
    """

    number: int

    @property
    def tokens(self) -> str:
        """Name of the dictionary."""
        return f"part_{self.number}_tokens.lance"

    @property
    def documents(self) -> str:
        """Name of the table of documents."""
        return f"part_{self.number}_docs.lance"

    @property
    def postings(self) -> str:
        """Name of the file of posting lists."""
        return f"part_{self.number}_invert.lance"


@dataclass(frozen=True)
class InvertedLayout:
    """Metadata of a full-text index.

    Attributes
    ----------
    partitions
        Files of its partitions.
    blocks
        Layout of blocks of postings.
    fst
        True if dictionaries are finite state transducers, False if they are tables of tokens.
    packed_positions
        True if full groups of positions are packed, where positions are kept in blocks.
    ignored_fragments : uint32[n]
        Fragments whose documents are in the index, but must not be found.
    """

    partitions: tuple[PartitionFiles, ...]
    blocks: BlockFormat
    fst: bool
    packed_positions: bool
    ignored_fragments: NDArray[np.uint32]

    @classmethod
    def read(cls, folder: IndexFolder) -> InvertedLayout:
        """Read the metadata of an index.

        Raises
        ------
        CorruptFileError
            The metadata contradict the format.
        UnsupportedError
            The metadata name an unknown format.
        """
        table = folder.open(METADATA_FILE)
        metadata = table.metadata
        block_size = _choice(table, metadata, "posting_block_size", _BLOCK_SIZES, "128")
        tail = _choice(table, metadata, "posting_tail_codec", _TAILS, "fixed32_v1")
        version = _choice(table, metadata, "format_version", _FORMATS, "")
        _choice(table, metadata, "positions_layout", (_SHARED_POSITIONS,), _SHARED_POSITIONS)
        if block_size == "256" and (tail != "varint_delta_v1" or version not in ("", "3")):
            raise table.corrupt(f"blocks of 256 documents with {tail} in format version {version}")
        return cls(
            tuple(map(PartitionFiles, _partitions(table))),
            BlockFormat(int(block_size), tail == "fixed32_v1"),
            _choice(table, metadata, "token_set_format", _TOKEN_SETS, "arrow") == "fst",
            _choice(table, metadata, "positions_codec", _POSITIONS, "varint_doc_delta_v2") == "packed_delta_v1",
            _ignored_fragments(table),
        )


def _choice(table: IndexTable, metadata: Mapping[str, str], key: str, known: tuple[str, ...], default: str) -> str:
    """Return a parameter; raise UnsupportedError unless it has a known value."""
    value = metadata.get(key) or default
    if value != default and value not in known:
        raise UnsupportedError(f"{table.where}: {key} is {value!r}; this release knows {', '.join(known)}")
    return value


def _partitions(table: IndexTable) -> list[int]:
    """Return the ids of the partitions."""
    try:
        ids: Any = parse_json(table.metadata["partitions"])
    except (KeyError, ValueError, RecursionError) as error:
        raise table.corrupt(f"does not say which partitions there are: {error}") from error
    if not isinstance(ids, list) or any(type(each) is not int or not 0 <= each < 1 << 64 for each in ids):
        raise table.corrupt("its partitions are not a list of numbers")
    if len(set(ids)) != len(ids):
        raise table.corrupt("names a partition twice")
    return ids


def _ignored_fragments(table: IndexTable) -> NDArray[np.uint32]:
    """Return the ids of fragments whose documents are ignored; early releases wrote no such column."""
    if all(field.name != DELETED_FRAGMENTS for field in table.schema.fields):
        return np.empty(0, np.uint32)
    if table.num_rows > 1:
        raise table.corrupt(f"has {table.num_rows} rows instead of one")
    values = table.read(columns=[DELETED_FRAGMENTS]).column(0)
    data = values[0].as_py() if len(values) else None
    if data is None:
        return np.empty(0, np.uint32)
    if not isinstance(data, bytes):
        raise table.corrupt(f"{DELETED_FRAGMENTS} has type {values.type}")
    return decode_bitmap(data, MAX_FRAGMENTS, table.where)


def metadata_batch() -> pa.RecordBatch:
    """Return the row of the metadata of a new index, none of whose fragments is ignored."""
    nothing = pa.array([encode_bitmap(np.empty(0, np.uint32))], pa.binary())
    schema = pa.schema([pa.field(DELETED_FRAGMENTS, pa.binary(), nullable=False)])
    return pa.RecordBatch.from_arrays([nothing], schema=schema)
