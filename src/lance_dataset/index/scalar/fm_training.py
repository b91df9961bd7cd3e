"""Training of FM indices: texts are gathered into partitions, each of which is sorted on its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import InvalidIndexError, UnsupportedError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.scalar.fm import (
    SEPARATOR,
    SPACE,
    ZERO,
    Partition,
    Transform,
    document_addresses,
    open_partition,
    partition_name,
    partition_names,
    write_partition,
)
from lance_dataset.index.scalar.sorting import ROWS, VALUES
from lance_dataset.index.trainer import OldSegment, Trainer, Training
from lance_dataset.threads.pools import cpu_count
from lance_dataset.threads.streams import stream
from lancecodec.errors import CodecError
from lancecodec.search import suffixes

__all__ = ["TRAINER"]

#: Documents of a partition, and bytes of text from which on it is complete.
_MOST_DOCUMENTS = 10_000
_MOST_BYTES = 16 << 20
#: Partitions with less than this part of either are merged with others when their index is extended.
_SMALL = 0.5
#: Memory that sorting takes, for each byte of text.
_BYTE_MEMORY = 14
_MOST_SYMBOLS = (1 << 31) - 2

_Addresses = NDArray[np.uint64]


@dataclass
class _Documents:
    """Documents of one partition.

    Attributes
    ----------
    keeps_zeros
        True if their bytes 0 are known; False if they may have become spaces.
    texts
        Arrays of large binaries without nulls.
    addresses
        Addresses of their rows.
    count, size
        Number of documents, and of their bytes.
    """

    keeps_zeros: bool
    texts: list[pa.Array] = field(default_factory=list)
    addresses: list[_Addresses] = field(default_factory=list)
    count: int = 0
    size: int = 0

    def add(self, texts: pa.Array, addresses: _Addresses, size: int) -> None:
        """Add documents of some bytes."""
        self.texts.append(texts)
        self.addresses.append(addresses)
        self.count += len(texts)
        self.size += size

    @property
    def memory(self) -> int:
        """Bytes that sorting takes."""
        return _BYTE_MEMORY * (self.size + self.count)


def _gathered(
    parts: Iterable[tuple[pa.Array, _Addresses]], *, keeps_zeros: bool, most_bytes: int
) -> Iterator[_Documents]:
    """Yield the documents of each partition."""
    held = _Documents(keeps_zeros)
    for texts, addresses in parts:
        ends = np.cumsum(pc.binary_length(texts).to_numpy(zero_copy_only=False))
        start, before = 0, 0
        while start < len(texts):
            full = int(np.searchsorted(ends, before + most_bytes - held.size)) + 1
            stop = min(start + _MOST_DOCUMENTS - held.count, full, len(texts))
            held.add(texts.slice(start, stop - start), addresses[start:stop], int(ends[stop - 1]) - before)
            start, before = stop, int(ends[stop - 1])
            if held.count == _MOST_DOCUMENTS or held.size >= most_bytes:
                yield held
                held = _Documents(keeps_zeros)
    if held.count:
        yield held


def _valid(entries: Iterable[pa.RecordBatch], kind: pa.DataType) -> Iterator[tuple[pa.Array, _Addresses]]:
    """Yield the values that are not null as large binaries."""
    for batch in entries:
        values, rows = batch.column(VALUES), batch.column(ROWS)
        if values.null_count:
            values, rows = values.drop_null(), rows.filter(values.is_valid())
        if len(values):
            yield values.cast(_binary_of(kind)).cast(pa.large_binary()), rows.to_numpy(zero_copy_only=False)


def _binary_of(kind: pa.DataType) -> pa.DataType:
    return pa.binary() if kind in (pa.string(), pa.binary()) else pa.large_binary()


# -- transforms ------------------------------------------------------------------------------------------------------


def _transformed(documents: _Documents) -> Transform:
    """Sort the suffixes of documents."""
    texts = pa.concat_arrays(documents.texts)
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64, len(texts) + 1, 8 * texts.offset)
    size = documents.size + documents.count + 1
    if size > _MOST_SYMBOLS:
        raise UnsupportedError(
            f"an FM index cannot hold a text of {int(np.diff(ends).max()):,} bytes; the limit is 2 GiB. Index another "
            "column, or shorten the text"
        )
    text = np.empty(size, np.uint8)
    zero = ZERO if documents.keeps_zeros else SPACE
    suffixes.join_documents(b"" if data is None else data, ends.data, True, zero, SPACE, text.data)
    order = np.empty(size, np.int32)
    suffixes.suffix_array(text.data, order)
    found = np.empty(size, np.uint8)
    suffixes.transform(text.data, order, found.data)
    starts = ends[:-1] - ends[0] + np.arange(len(texts))
    return Transform(
        found,
        order,
        starts.astype(np.uint64),
        np.concatenate(documents.addresses),
        documents.keeps_zeros,
    )


def _write_partitions(target: NewIndexFolder, first: int, parts: Iterable[_Documents], memory_limit: int) -> None:
    """Write partitions with the numbers from `first` on, several at a time as far as memory allows."""

    def write(item: tuple[int, _Documents]) -> None:
        write_partition(target, item[0], _transformed(item[1]))

    numbers = count(first)
    work = ((number, part) for part, number in zip(parts, numbers, strict=False))
    written = 0
    for _ in stream(
        write,
        work,
        ahead=2 * cpu_count(),
        in_order=False,
        weight=lambda item: item[1].memory,
        budget=float(max(memory_limit, 1)),
        join=True,
    ):
        written += 1
    if not first + written:
        write_partition(target, 0, None)


def _most_bytes(memory_limit: int) -> int:
    """Return the bytes of text of a partition: fewer than usual if memory is scarce."""
    return max(min(_MOST_BYTES, memory_limit // _BYTE_MEMORY), 1)


def _keeps_zeros(kind: pa.DataType) -> bool:
    """Return True for types whose values have no byte that stands for byte 0."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _write(work: Training) -> bytes:
    most = _most_bytes(work.memory_limit)
    parts = _gathered(_valid(work.entries, work.kind), keeps_zeros=_keeps_zeros(work.kind), most_bytes=most)
    _write_partitions(work.target, 0, parts, work.memory_limit)
    return b""


# -- extension -------------------------------------------------------------------------------------------------------


def _extend(old: Sequence[OldSegment], work: Training) -> bytes:
    """Copy partitions whose rows are all still covered; make new ones of the texts of the others and the new rows."""
    reopened: list[_Reopened] = []
    copied = 0
    for segment in old:
        for name in partition_names(segment.folder):
            table = segment.folder.open(name)
            partition = open_partition(table)
            if partition is None:
                continue
            addresses = document_addresses(table)
            is_covered = segment.is_covered(addresses)
            if is_covered.all() and not _is_small(partition):
                work.target.copy(segment.folder.open_input(name), partition_name(copied))
                copied += 1
            elif is_covered.any():
                reopened.append(_Reopened(segment.folder, name, addresses, is_covered, partition.keeps_zeros))

    def parts() -> Iterator[_Documents]:
        most = _most_bytes(work.memory_limit)
        known, spaced = ([each for each in reopened if each.keeps_zeros is kept] for kept in (True, False))
        keeps = _keeps_zeros(work.kind)

        def fresh() -> Iterator[tuple[pa.Array, _Addresses]]:
            yield from (each.documents() for each in (known if keeps else spaced))
            yield from _valid(work.entries, work.kind)

        if keeps:
            yield from _gathered((each.documents() for each in spaced), keeps_zeros=False, most_bytes=most)
        yield from _gathered(fresh(), keeps_zeros=keeps, most_bytes=most)

    _write_partitions(work.target, copied, parts(), work.memory_limit)
    return b""


def _is_small(partition: Partition) -> bool:
    documents = partition.documents
    return documents.num_documents < _SMALL * _MOST_DOCUMENTS and documents.size < _SMALL * _MOST_BYTES


@dataclass(frozen=True)
class _Reopened:
    """A partition whose documents go into new ones.

    Attributes
    ----------
    folder, name
        Its file.
    addresses
        Addresses of the rows of its documents.
    is_covered
        Which of them go into new partitions.
    keeps_zeros
        True if it tells byte 0 apart from a space.
    """

    folder: IndexFolder
    name: str
    addresses: _Addresses
    is_covered: NDArray[np.bool_]
    keeps_zeros: bool

    def documents(self) -> tuple[pa.Array, _Addresses]:
        """Return its documents, as large binaries, and their addresses."""
        table = self.folder.open(self.name)
        partition = open_partition(table)
        if partition is None or partition.documents.num_documents != len(self.addresses):
            raise table.corrupt("changed while it was read")
        text = np.empty(partition.documents.size, np.uint8)
        try:
            partition.documents.text(text.data)
        except CodecError as error:
            raise table.corrupt(str(error)) from error
        is_separator = text == SEPARATOR
        ends = np.flatnonzero(is_separator)
        offsets = np.append(0, ends + 1) - np.arange(len(ends) + 1)
        content = text[:-1][~is_separator[:-1]]
        if self.keeps_zeros:
            content[content == ZERO] = 0
        if len(ends) != len(self.addresses) or text[-2] != SEPARATOR:
            raise table.corrupt(f"its text has {len(ends)} documents, not {len(self.addresses)}")
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
        texts = pa.Array.from_buffers(pa.large_binary(), len(ends), buffers)
        return texts.filter(pa.array(self.is_covered)), self.addresses[self.is_covered]


def _fits(kind: pa.DataType) -> bool:
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(storage) for test in tests)


TRAINER: Final = Trainer(
    "FM",
    "/lance.index.pb.FMIndexDetails",
    _fits,
    "str, large_str, binary, or large_binary",
    _write,
    version=10,
    stable_version=10,
    uses_addresses=True,
    extend=_extend,
    misfit=InvalidIndexError,
)
