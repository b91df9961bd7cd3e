"""Page of a 2.0 column: its buffers and its encoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, MemoryLimitError, UnsupportedError
from lance_dataset.file.buffers import allocate, octets, private_copy
from lance_dataset.file.cache import EXPANDED, PageCache, is_expanded
from lance_dataset.file.container import ColumnMetadata, PageMetadata
from lance_dataset.file.page_encodings import PageMemory
from lance_dataset.file.v2_0.compression import claimed_size, decompress, zstd_range
from lance_dataset.file.v2_0.nodes import (
    PAGE_ENCODING,
    BufferRef,
    Flat,
    Node,
    buffer_refs,
    parse_page_encoding,
    unwrapped,
)
from lance_dataset.io.base import InputFile
from lance_dataset.limits import check_memory, memory_allowance

__all__ = ["Page", "first_node", "open_pages", "page_node", "part_of"]

#: Far more than any writer puts into a column, and small enough for sums and products to fit in 64 bits.
_MAX_ROWS = 2**40


@dataclass(frozen=True)
class Page:
    """Page bound to its file.

    Attributes
    ----------
    source
        The file.
    where
        File, column and page, for error messages.
    start
        Number of values of the column before this page.
    length
        Number of values.
    node
        The encoding tree.
    buffers, column_buffers, file_buffers
        (position, size) of the buffers that the tree may refer to.
    cache
        Decoded parts of the column's pages.
    """

    source: InputFile
    where: str
    start: int
    length: int
    node: Node
    buffers: Sequence[tuple[int, int]]
    column_buffers: Sequence[tuple[int, int]] = ()
    file_buffers: Sequence[tuple[int, int]] = ()
    cache: PageCache = field(default_factory=PageCache, repr=False, compare=False)

    def locate(self, ref: BufferRef) -> tuple[int, int]:
        """Return (position, size) of a buffer."""
        owned = {"page": self.buffers, "column": self.column_buffers, "file": self.file_buffers}[ref.owner]
        if ref.index >= len(owned):
            raise CorruptFileError(f"{self.where}: refers to {ref.owner} buffer {ref.index} of {len(owned)}")
        return owned[ref.index]

    def read_part(self, ref: BufferRef, first: int, last: int, values: int) -> pa.Buffer:
        """Read bytes ``[first, last)`` of a buffer, which must be long enough to hold `values` values."""
        position, length = self._place(ref, first, last, values)
        return self._read(position, length)

    def view_part(self, ref: BufferRef, last: int, values: int) -> pa.Buffer:
        """Return bytes ``[0, last)`` of a buffer of a mapped file for random access: the system loads what is used."""
        return self.source.read(*self._place(ref, 0, last, values))

    def _place(self, ref: BufferRef, first: int, last: int, values: int) -> tuple[int, int]:
        """Return (position, size) of bytes ``[first, last)`` of a buffer."""
        position, size = self.locate(ref)
        if last > size:
            raise CorruptFileError(
                f"{self.where}: buffer {ref.index} has {size} bytes, but its {values} values need {last}"
            )
        return position + first, last - first

    def _read(self, position: int, size: int) -> pa.Buffer:
        """Read bytes of the file that are needed as a whole, so that a mapped file is loaded in large parts."""
        data = self.source.read(position, size)
        if self.source.mapped is not None:
            self.source.will_need([(position, size)])
        return data

    def read_flat(self, flat: Flat, start: int, stop: int, total: int) -> pa.Buffer:
        """Read the bytes of values ``[start, stop)`` of a flat node; for bitmaps, `start` must be a multiple of 8.

        Parameters
        ----------
        total
            Number of values in the whole node; a compressed buffer must hold exactly this many.
        """
        first, last = start * flat.bits // 8, (stop * flat.bits + 7) // 8
        if flat.scheme:
            size = (total * flat.bits + 7) // 8
            if self.is_streamed(flat, size):
                return self.decompress_range(flat, first, last)
            data = self.decompress(flat, size)
            if last > data.size:
                raise CorruptFileError(f"{self.where}: decompressed buffer has {data.size} bytes instead of {last}")
            return part_of(data, first, last)
        return self.read_part(flat.buffer, first, last, stop)

    def view_flat(self, flat: Flat, total: int) -> pa.Buffer:
        """Return all values of a flat node for random access.

        If the file has blocks, the values must be loaded before they are looked at; see `InputFile.blocks`.
        """
        position, size = self.locate(flat.buffer)
        needed = (total * flat.bits + 7) // 8
        if not flat.scheme and self.source.mapped is not None:
            return self.view_part(flat.buffer, needed, total)
        if flat.scheme or needed > size:
            return self.read_flat(flat, 0, total, total)
        return self.view(position, needed)

    def view(self, position: int, size: int) -> pa.Buffer:
        """Return bytes of the file for random access; see `view_flat`."""
        blocks = self.source.blocks()
        if blocks is None or position < 0 or size < 0 or position + size > self.source.size:
            return self.source.read(position, size)
        return pa.py_buffer(blocks).slice(position, size)

    def decompress(self, flat: Flat, size: int, exact: bool = True) -> pa.Buffer:
        """Return the content of a compressed flat buffer: `size` bytes, or at most `size` bytes unless `exact`.

        Raises
        ------
        CorruptFileError, MemoryLimitError
            The content has another size, or takes too much memory.
        """
        position, stored = self.locate(flat.buffer)

        def make() -> pa.Buffer:
            content = self._read(position, stored).to_pybytes()
            needed = size if exact else min(size, claimed_size(content, flat.scheme))
            check_memory(needed, stored, f"{self.where}: a buffer of compressed values")
            return pa.py_buffer(decompress(content, flat.scheme, size, exact, self.where))

        key = self.cache.key, position, stored, flat.scheme, size, exact
        cache = EXPANDED if is_expanded(size, stored) else self.cache
        return cache.get(key, make, lambda content: content.size)

    def is_streamed(self, flat: Flat, size: int) -> bool:
        """Return whether a compressed buffer has too many bytes to be kept, so that parts are decompressed alone."""
        return flat.scheme == "zstd" and 2 * size > memory_allowance(self.locate(flat.buffer)[1])

    def decompress_range(self, flat: Flat, first: int, last: int) -> pa.Buffer:
        """Return bytes ``[first, last)`` of the content of a buffer compressed with Zstandard, keep nothing else."""
        content = self._read(*self.locate(flat.buffer)).to_pybytes()
        most = claimed_size(content, flat.scheme)
        if last <= most:
            out = allocate(last - first)
            most = first + zstd_range(content, first, octets(out), self.where)
        if last > most:
            raise CorruptFileError(f"{self.where}: a decompressed buffer has {most} bytes instead of {last}")
        return out


def part_of(content: pa.Buffer, first: int, last: int) -> pa.Buffer:
    """Return bytes ``[first, last)`` of decompressed content, as a copy if they are too few to keep all of it."""
    part = content.slice(first, last - first)
    return private_copy(part) if is_expanded(content.size, part.size) else part


def open_pages(
    source: InputFile, metadata: ColumnMetadata, name: str, file_buffers: Sequence[tuple[int, int]] = ()
) -> list[Page]:
    """Bind the pages of a column to their file; pages without values are left out.

    Parameters
    ----------
    file_buffers
        (position, size) of the global buffers of the file.

    Raises
    ------
    CorruptFileError, UnsupportedError
        A page is invalid or not supported. The message names file, column and page.
    """
    pages: list[Page] = []
    cache = PageCache()
    memory = PageMemory(f"{source.path}, column {metadata.index} ({name!r})")
    start = shared = 0
    for number, stored in enumerate(metadata.pages):
        where = f"{source.path}, column {metadata.index} ({name!r}), page {number}"
        node = page_node(stored, where)
        memory.add(stored.encoding, node, parse_page_encoding)
        if stored.length > _MAX_ROWS - start:
            raise CorruptFileError(f"{where}: claims {stored.length} values")
        if stored.length:
            page = Page(
                source, where, start, stored.length, node, stored.buffers, metadata.buffers, file_buffers, cache
            )
            shared += sum(page.locate(ref)[1] for ref in buffer_refs(node) if ref.owner != "page")
            if shared > source.size:  # as for page buffers, or a few bytes could decode to any number of values
                raise CorruptFileError(f"{where}: its pages share more bytes than the {source.size} of the file")
            pages.append(page)
        start += stored.length
    return pages


def page_node(stored: PageMetadata, where: str) -> Node:
    """Return the encoding tree of a page.

    Raises
    ------
    CorruptFileError, UnsupportedError
        The encoding is invalid or not supported. The message contains `where`.
    """
    if stored.type_name != PAGE_ENCODING:
        raise CorruptFileError(f"{where}: encoding {stored.type_name!r} does not belong in a 2.0 file")
    try:
        return parse_page_encoding(stored.encoding)
    except (CorruptFileError, MemoryLimitError, UnsupportedError) as error:
        raise type(error)(f"{where}: {error}") from error


def first_node(metadata: ColumnMetadata, where: str) -> Node | None:
    """Return the tree of a column's first page below wrappers for nulls; None without a page or values.

    Raises
    ------
    CorruptFileError, UnsupportedError
        The encoding is invalid or not supported. The message contains `where`.
    """
    return unwrapped(page_node(metadata.pages[0], f"{where}, page 0")) if metadata.pages else None
