"""Files of a full-text index: what they are called, and what the first of them says of the others.

An index consists of partitions, each with a dictionary of words, a table of documents, and a posting list for each
word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lance_dataset.errors import UnsupportedError
from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.text.posting_blocks import BlockFormat
from lance_dataset.table.roaring import decode_bitmap

__all__ = ["DELETED_FRAGMENTS", "METADATA_FILE", "InvertedLayout", "PartitionFiles"]

METADATA_FILE = "metadata.lance"
DELETED_FRAGMENTS = "deleted_fragments"

_BLOCK_SIZES = ("128", "256")
_TOKEN_SETS = ("fst", "arrow")
_TAILS = ("fixed32_v1", "varint_delta_v1")
_POSITIONS = ("packed_delta_v1", "varint_doc_delta_v2")
_FORMATS = ("1", "2", "3")
_SHARED_POSITIONS = "shared_stream_v2"
_MAX_FRAGMENTS = 1 << 32


@dataclass(frozen=True)
class PartitionFiles:
    """Names of the files of a partition.

    Attributes
    ----------
    number
        Its id.
    """

    number: int

    @property
    def tokens(self) -> str:
        """Its dictionary."""
        return f"part_{self.number}_tokens.lance"

    @property
    def documents(self) -> str:
        """Its documents."""
        return f"part_{self.number}_docs.lance"

    @property
    def postings(self) -> str:
        """Its posting lists."""
        return f"part_{self.number}_invert.lance"


@dataclass(frozen=True)
class InvertedLayout:
    """What the metadata of a full-text index say.

    Attributes
    ----------
    partitions
        Its partitions.
    blocks
        How blocks of postings are laid out.
    fst
        Whether dictionaries are finite state transducers, not tables of tokens.
    packed_positions
        Whether full groups of positions are packed, where positions are kept in blocks.
    ignored_fragments
        Fragments whose documents are in the index, but are not to be found.
    """

    partitions: tuple[PartitionFiles, ...]
    blocks: BlockFormat
    fst: bool
    packed_positions: bool
    ignored_fragments: frozenset[int]

    @classmethod
    def read(cls, folder: IndexFolder) -> InvertedLayout:
        """Read the metadata of an index.

        Raises
        ------
        CorruptFileError
            They contradict the format.
        UnsupportedError
            They name a format that is not known.
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
    """A parameter that has one of some values."""
    value = metadata.get(key) or default
    if value != default and value not in known:
        raise UnsupportedError(f"{table.where}: {key} is {value!r}; this release knows {', '.join(known)}")
    return value


def _partitions(table: IndexTable) -> list[int]:
    """Ids of the partitions."""
    try:
        ids: Any = json.loads(table.metadata["partitions"])
    except (KeyError, ValueError, RecursionError) as error:
        raise table.corrupt(f"does not say which partitions there are: {error}") from error
    if not isinstance(ids, list) or any(type(each) is not int or not 0 <= each < 1 << 64 for each in ids):
        raise table.corrupt("its partitions are no list of numbers")
    if len(set(ids)) != len(ids):
        raise table.corrupt("names a partition twice")
    return ids


def _ignored_fragments(table: IndexTable) -> frozenset[int]:
    """Fragments whose documents are ignored; early releases wrote no such column."""
    if all(field.name != DELETED_FRAGMENTS for field in table.schema.fields):
        return frozenset()
    if table.num_rows > 1:
        raise table.corrupt(f"has {table.num_rows} rows instead of one")
    values = table.read(columns=[DELETED_FRAGMENTS]).column(0)
    data = values[0].as_py() if len(values) else None
    if data is None:
        return frozenset()
    if not isinstance(data, bytes):
        raise table.corrupt(f"{DELETED_FRAGMENTS} has the type {values.type}")
    return frozenset(decode_bitmap(data, _MAX_FRAGMENTS, table.where).tolist())
