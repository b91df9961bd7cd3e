"""Description of the pages of legacy (0.1) files, taken from the page table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.explain.facts import Facts, plain_size
from lance_dataset.file.explain.report import StoredBuffer
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.v0_1.layout import PageKind, bits_per_row, page_kind
from lance_dataset.types.schema import Field

__all__ = ["describe_batches"]


def describe_batches(file: LegacyFile, field: Field, where: str) -> Iterator[Facts]:
    """Yield the facts about the page of a field in each batch; read at most the first and last offset of strings.

    Raises
    ------
    CorruptFileError
        A page lies outside the file.
    """
    if page_kind(field) is PageKind.NONE:
        return
    positions, lengths = file.pages.cells(field.id)
    for position, length in zip(positions.tolist(), lengths.tolist(), strict=True):
        yield _describe(file, field, position, length, where)


def _describe(file: LegacyFile, field: Field, position: int, length: int, where: str) -> Facts:
    kind, arrow_type = page_kind(field), field.storage_type
    if kind is PageKind.LIST:
        size = length * (4 if pa.types.is_list(arrow_type) else 8)
        return _facts("list", max(length - 1, 0), (StoredBuffer("offsets", size),), size)
    if kind is PageKind.BINARY:
        data = _bytes_between(file, position, length, where)
        parts = (StoredBuffer("bytes", data), StoredBuffer("offsets", (length + 1) * 8))
        return _facts("binary", length, parts, plain_size(arrow_type, length, data))
    if kind is PageKind.NULL:
        return _facts("null", length, (), 0)
    stored = arrow_type.index_type if kind is PageKind.DICTIONARY else arrow_type
    buffers = (StoredBuffer("values", (length * bits_per_row(stored) + 7) // 8),)
    if kind is PageKind.FIXED:
        return _facts("plain", length, buffers, buffers[0].size)
    values = field.dictionary_values
    return Facts(
        layout="batch",
        encoding="dictionary",
        values=length,
        buffers=buffers,
        why="dictionary columns keep their values beside the schema",
        dictionary_entries=None if values is None else len(values),
        value_bytes=buffers[0].size,
        plain_bytes=None if values is None else plain_size(arrow_type, length),
    )


def _facts(encoding: str, values: int, buffers: tuple[StoredBuffer, ...], plain: int | None) -> Facts:
    return Facts(
        layout="batch",
        encoding=encoding,
        values=values,
        buffers=buffers,
        why="legacy files compress nothing",
        is_plain=True,
        value_bytes=sum(buffer.size for buffer in buffers),
        plain_bytes=plain,
    )


def _bytes_between(file: LegacyFile, position: int, length: int, where: str) -> int:
    if length > (file.source.size - position) // 8 - 1:
        raise CorruptFileError(f"{where}: a page of {length} strings at byte {position} is not within the file")
    ends = [bytes(file.source.read(at, 8)) for at in (position, position + length * 8)]
    first, last = np.frombuffer(b"".join(ends), "<i8").tolist()
    return max(last - first, 0)
