"""FM indices: texts that can be searched for any part of them.

The files of a segment are partitions. A partition is the Burrows-Wheeler transform of the text made of its documents,
each followed by byte 255, and a byte 0 at the end. The transform is kept in a wavelet tree, whose bits are rows of the
file; everything else is in the metadata of the schema.

Two things are in the metadata besides those of the reference, which ignores them: the document that ends at each
separator, in the order of the suffixes, which saves most of the steps from a suffix to its document; and the byte that
stands for byte 0.

The reference stores the bytes 0 and 255 of documents as spaces. This package stores byte 0 of texts as 254, which no
text has, so that its files tell the two apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.index.files import WRITTEN_VERSION, IndexFolder, IndexTable, NewIndexFolder
from lance_dataset.types.schema import Schema
from lancecodec.errors import CodecError
from lancecodec.search import substrings, wavelet

__all__ = [
    "SPACE",
    "ZERO",
    "Partition",
    "Transform",
    "document_addresses",
    "document_starts",
    "open_partition",
    "partition_name",
    "partition_names",
    "position_samples",
    "ranks_of_blocks",
    "separator_documents",
    "write_partition",
]

#: Byte that replaces byte 0 of texts in files of this package, and the one in files of the reference.
ZERO: Final = 254
SPACE: Final = 32
#: Byte behind each document.
SEPARATOR: Final = 255
#: Every so many suffixes in their order, the position of one is stored.
SAMPLE_RATE: Final = 32

_NAME = re.compile(r"part_(0|[1-9][0-9]{0,17})_fm\.lance")
_BLOCK_WORDS = 4096
_SAMPLES = 0xFFFFFFFF
_ALPHABET = 256
_MOST_SYMBOLS = (1 << 31) - 2
#: Metadata that notes the byte that stands for byte 0.
_ZERO_KEY = "zero_byte"
#: Metadata with the document of each separator, for partitions with no more documents than u16 can number.
_OWNERS_KEY = "separator_documents"
_MOST_OWNERS = 1 << 16
_COLUMNS = ("node_id", "block_id", "words", "prefix_rank", "bit_len")
_SCHEMA = pa.schema(
    [
        pa.field(name, kind, nullable=False)
        for name, kind in zip(
            _COLUMNS, (pa.uint32(), pa.uint32(), pa.large_binary(), pa.uint64(), pa.uint64()), strict=True
        )
    ]
)
_Numbers = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Partition:
    """An open partition.

    Attributes
    ----------
    documents
        Its documents, named by the addresses of their rows.
    keeps_zeros
        True if byte 0 of texts is told apart from a space.
    """

    documents: substrings.Partition
    keeps_zeros: bool

    @property
    def zero(self) -> int:
        """Byte that stands for byte 0."""
        return ZERO if self.keeps_zeros else SPACE


@dataclass(frozen=True, eq=False)
class Transform:
    """Content of a partition to be written.

    Attributes
    ----------
    text
        Its transform.
    order
        Positions of the suffixes in their order.
    starts
        Position of each document.
    addresses
        Address of the row of each document.
    keeps_zeros
        True if `ZERO` stands for byte 0.
    """

    text: NDArray[np.uint8]
    order: NDArray[np.int32]
    starts: _Numbers
    addresses: _Numbers
    keeps_zeros: bool


def partition_name(number: int) -> str:
    """Return the name of the file of a partition."""
    return f"part_{number}_fm.lance"


def partition_names(folder: IndexFolder) -> list[str]:
    """Return the names of the files of the partitions in their order.

    Raises
    ------
    CorruptFileError
        There are none.
    """
    numbers = sorted(int(match[1]) for name in folder.names() if (match := _NAME.fullmatch(name)))
    if not numbers:
        raise CorruptFileError(f"{folder.uri('')}: the index has no file {partition_name(0)}")
    return [partition_name(number) for number in numbers]


# -- reading ---------------------------------------------------------------------------------------------------------


def document_addresses(table: IndexTable) -> _Numbers:
    """Return the addresses of the rows of the documents of a partition.

    Raises
    ------
    CorruptFileError
        The metadata contradict the format.
    """
    found: _Numbers = _hex(table, "row_ids").view("<u8")
    return found


def document_starts(table: IndexTable) -> _Numbers:
    """Return the positions of the documents of a partition. Errors are those of `document_addresses`."""
    found: _Numbers = _hex(table, "doc_start_positions").view("<u8")
    return found


def separator_documents(table: IndexTable) -> NDArray[np.uint16]:
    """Return the documents of the separators, none if the file does not have them."""
    found: NDArray[np.uint16] = _hex(table, _OWNERS_KEY).view("<u2")
    return found


def position_samples(table: IndexTable) -> tuple[int, _Numbers]:
    """Return the distance of the suffixes whose positions are stored, and the positions, of an open partition."""
    _, _, sampled = _bits(table, _number(table, "num_bwt_nodes"), _number(table, "sa_samples_len"))
    return _number(table, "sa_sample_rate"), np.frombuffer(sampled, "<u8")


def ranks_of_blocks(table: IndexTable) -> tuple[_Numbers, _Numbers]:
    """Return the stored number of ones before each block of an open partition, and the counted one."""
    batch = table.read(columns=("node_id", "words", "prefix_rank"))
    nodes, stored = batch.column(0).to_numpy(), batch.column(2).to_numpy()
    values, offsets = _values(batch.column(1))
    counted, ones, owner = np.zeros(len(nodes), np.uint64), 0, -1
    for row, node in enumerate(nodes.tolist()):
        if node == _SAMPLES:
            break
        ones = ones if node == owner else 0
        counted[row], owner = ones, node
        block = np.frombuffer(values[int(offsets[row]) : int(offsets[row + 1])], np.uint8)
        ones += int(np.unpackbits(block).sum(dtype=np.int64))
    return stored, counted


def open_partition(table: IndexTable) -> Partition | None:
    """Open a partition; None if it has no documents.

    Raises
    ------
    CorruptFileError
        The file contradicts the format.
    """
    size, rate = _number(table, "bwt_len"), _number(table, "sa_sample_rate")
    nodes, samples = _number(table, "num_bwt_nodes"), _number(table, "sa_samples_len")
    keeps_zeros = _keeps_zeros(table)
    if not size:
        if table.num_rows or len(document_addresses(table)):
            raise table.corrupt("bwt_len is 0, but the file has rows or documents")
        return None
    if size > _MOST_SYMBOLS or not rate or samples != -(-size // rate) or _number(table, "alphabet_size") != _ALPHABET:
        raise table.corrupt(f"{size} symbols, every {rate}th of {samples} sampled, contradict each other")
    sizes, words, sampled = _bits(table, nodes, samples)
    tree, starts, addresses = _hex(table, "tree_topology"), _hex(table, "doc_start_positions"), _hex(table, "row_ids")
    owners = _hex(table, _OWNERS_KEY)
    try:
        if wavelet.Tree.parse(tree.data).codes() != _hex(table, "huffman_codes").tobytes():
            raise table.corrupt("huffman_codes are not those of tree_topology")
        found = substrings.Partition(
            size, rate, tree.data, sizes.data, words, sampled, starts.data, addresses.data, owners.data
        )
    except CodecError as error:
        raise table.corrupt(str(error)) from error
    _check_counts(table, found)
    return Partition(found, keeps_zeros)


def _check_counts(table: IndexTable, found: substrings.Partition) -> None:
    counts = found.first_rows()
    if counts != _hex(table, "c_table").tobytes():
        raise table.corrupt("c_table is not that of its text")
    first = np.frombuffer(counts, "<u8")
    if int(first[SEPARATOR + 1] - first[SEPARATOR]) != found.num_documents or first[1] != 1:
        raise table.corrupt(f"{found.num_documents} documents do not have as many separators, or no single end")


def _bits(table: IndexTable, nodes: int, samples: int) -> tuple[_Numbers, pa.Buffer, pa.Buffer]:
    """Return the size in bits of each node, the words of all nodes, and the samples."""
    table.check_columns(_COLUMNS)
    batch = table.read(columns=_COLUMNS)
    if batch.schema.types != _SCHEMA.types:
        raise table.corrupt(f"its columns do not have the types {', '.join(map(str, _SCHEMA.types))}")
    if any(column.null_count for column in batch.columns):
        raise table.corrupt("a block of bits is null")
    node, block, bits = (batch.column(number).to_numpy() for number in (0, 1, 4))
    rows = np.flatnonzero(block[: np.searchsorted(node, _SAMPLES)] == 0)
    sizes = np.append(bits[rows], np.uint64(samples)).astype(np.int64)
    if nodes != len(rows) or (sizes < 0).any() or (sizes > _MOST_SYMBOLS).any():
        raise table.corrupt(f"has {len(rows)} nodes with bits, not {nodes}, or a node is too large")
    words = np.append((sizes[:-1] + 63) // 64, samples)
    blocks = -(-words // _BLOCK_WORDS)
    first = np.cumsum(blocks) - blocks
    if int(blocks.sum()) != batch.num_rows:
        raise table.corrupt(f"{batch.num_rows} blocks are not the {int(blocks.sum())} of its nodes")
    owners = np.repeat(np.arange(len(blocks)), blocks)
    inside = np.arange(len(owners)) - first[owners]
    lengths = np.minimum(words[owners] - inside * _BLOCK_WORDS, _BLOCK_WORDS)
    names = np.append(np.arange(nodes), _SAMPLES)
    values, offsets = _values(batch.column(2))
    if not (
        np.array_equal(node, names[owners])
        and np.array_equal(block, inside)
        and np.array_equal(bits, sizes[owners].astype(np.uint64))
        and np.array_equal(np.diff(offsets), 8 * lengths)
    ):
        raise table.corrupt("the blocks of its nodes are not complete and in order")
    start, middle, stop = (int(offsets[at]) for at in (0, first[-1], -1))
    return sizes[:-1].astype("<u8"), values[start:middle], values[middle:stop]


def _values(column: pa.Array) -> tuple[pa.Buffer, NDArray[np.int64]]:
    _, offsets, values = column.buffers()
    found = np.frombuffer(offsets, np.int64, len(column) + 1, 8 * column.offset)
    return (pa.py_buffer(b"") if values is None else values), found


def _hex(table: IndexTable, key: str) -> NDArray[np.uint8]:
    """Return bytes that the metadata have as hexadecimal digits."""
    digits = table.schema.metadata.get(key, b"")
    found = np.empty(len(digits) // 2, np.uint8)
    whole = 8 if key in ("row_ids", "doc_start_positions") else 1
    if len(digits) % (2 * whole):
        raise table.corrupt(f"{key} has {len(digits)} digits, not a multiple of {2 * whole}")
    try:
        substrings.decode_hex(digits, found.data)
    except CodecError:
        raise table.corrupt(f"{key} is not hexadecimal") from None
    return found


def _number(table: IndexTable, key: str) -> int:
    text = table.metadata.get(key, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise table.corrupt(f"{key} is {text[:40]!r}, not a number")
    return min(int(text), (1 << 63) - 1)


def _keeps_zeros(table: IndexTable) -> bool:
    text = table.metadata.get(_ZERO_KEY)
    if text not in (None, str(ZERO)):
        raise table.corrupt(f"{_ZERO_KEY} is {text[:40]!r}, not {ZERO}")
    return text is not None


# -- writing ---------------------------------------------------------------------------------------------------------


def write_partition(target: NewIndexFolder, number: int, content: Transform | None) -> None:
    """Write a partition; None for one without documents."""
    if content is None:
        batch, metadata = pa.RecordBatch.from_pylist([], schema=_SCHEMA), _metadata(None)
    else:
        batch, metadata = _written(content)
    target.write(partition_name(number), Schema.from_arrow(_SCHEMA), WRITTEN_VERSION, [batch], metadata)


def _written(content: Transform) -> tuple[pa.RecordBatch, dict[str, str]]:
    """Return the rows and the metadata of a partition."""
    counts = np.empty(_ALPHABET, np.int64)
    wavelet.count_symbols(content.text.data, counts)
    tree = wavelet.Tree.of_counts(counts)
    sizes = np.empty(tree.num_nodes, np.int64)
    tree.sizes(counts, sizes)
    words = (sizes + 63) // 64
    samples = content.order[::SAMPLE_RATE]
    data = np.empty(int(words.sum()) + len(samples), "<u8")
    tree.fill(content.text.data, counts, data[: len(data) - len(samples)].data)
    data[len(data) - len(samples) :] = samples
    batch = _blocks(sizes, np.append(words, len(samples)), data)
    metadata = _metadata(content)
    metadata |= {
        "bwt_len": str(len(content.text)),
        "num_bwt_nodes": str(tree.num_nodes),
        "sa_samples_len": str(len(samples)),
        "num_sa_blocks": str(-(-len(samples) // _BLOCK_WORDS)),
        "c_table": np.append(0, np.cumsum(counts)).astype("<u8").tobytes().hex(),
        "huffman_codes": tree.codes().hex(),
        "tree_topology": tree.to_bytes().hex(),
    }
    if len(content.starts) <= _MOST_OWNERS:
        ends = content.order[len(content.order) - int(counts[SEPARATOR]) :]
        metadata[_OWNERS_KEY] = _owners(content.starts, ends).hex()
    metadata["total_wavelet_rows"] = str(batch.num_rows - int(metadata["num_sa_blocks"]))
    return batch, metadata


def _owners(starts: _Numbers, separators: NDArray[np.int32]) -> bytes:
    """Return the documents that end at separators."""
    return (np.searchsorted(starts, separators.astype(np.uint64), side="right") - 1).astype("<u2").tobytes()


def _blocks(sizes: NDArray[np.int64], words: NDArray[np.int64], data: _Numbers) -> pa.RecordBatch:
    """Return rows of the words of all nodes and of the samples, which come last."""
    blocks = -(-words // _BLOCK_WORDS)
    first, ends = np.cumsum(blocks) - blocks, np.cumsum(words)
    owners = np.repeat(np.arange(len(words)), blocks)
    inside = np.arange(len(owners)) - first[owners]
    lengths = np.minimum(words[owners] - inside * _BLOCK_WORDS, _BLOCK_WORDS)
    ranks = np.zeros(len(owners), np.uint64)
    for node in range(len(sizes)):
        start = int(ends[node] - words[node])
        at = slice(int(first[node]), int(first[node] + blocks[node]))
        wavelet.block_ranks(data[start : int(ends[node])].data, _BLOCK_WORDS, ranks[at])
    offsets = np.append(0, np.cumsum(8 * lengths))
    names, bits = np.append(np.arange(len(sizes)), _SAMPLES), np.append(sizes, words[-1])
    columns = [
        pa.array(names[owners].astype(np.uint32)),
        pa.array(inside.astype(np.uint32)),
        pa.Array.from_buffers(pa.large_binary(), len(owners), [None, pa.py_buffer(offsets), pa.py_buffer(data)]),
        pa.array(ranks),
        pa.array(bits[owners].astype(np.uint64)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _metadata(content: Transform | None) -> dict[str, str]:
    """Return the metadata of a partition without those of its tree, for which those of an empty one stand."""
    numbers = ("bwt_len", "num_bwt_nodes", "total_wavelet_rows", "num_sa_blocks", "sa_samples_len")
    found = dict.fromkeys(numbers, "0") | {
        "sa_sample_rate": str(SAMPLE_RATE),
        "alphabet_size": str(_ALPHABET),
        "c_table": bytes(8 * (_ALPHABET + 1)).hex(),
        "huffman_codes": bytes(7 * _ALPHABET).hex(),
        "tree_topology": bytes(4).hex(),
        "row_ids": "",
        "doc_start_positions": "",
    }
    if content is not None:
        found["row_ids"] = content.addresses.astype("<u8").tobytes().hex()
        found["doc_start_positions"] = content.starts.astype("<u8").tobytes().hex()
    if content is None or content.keeps_zeros:
        found[_ZERO_KEY] = str(ZERO)
    return found
