"""Page of a 2.0 column: its buffers and its encoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.cache import PageCache
from lance_dataset.file.container import ColumnMetadata, PageMetadata
from lance_dataset.file.v2_0.compression import decompress
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

__all__ = ["Page", "first_node", "open_pages", "page_node"]

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
        position, size = self.locate(ref)
        if last > size:
            raise CorruptFileError(
                f"{self.where}: buffer {ref.index} has {size} bytes, but its {values} values need {last}"
            )
        return self.source.read(position + first, last - first)

    def read_flat(self, flat: Flat, start: int, stop: int, total: int) -> pa.Buffer:
        """Read the bytes of values ``[start, stop)`` of a flat node; for bitmaps, `start` must be a multiple of 8.

        Parameters
        ----------
        total
            Number of values in the whole node; a compressed buffer must hold exactly this many.
        """
        first, last = start * flat.bits // 8, (stop * flat.bits + 7) // 8
        if flat.scheme:
            data = self.decompress(flat, (total * flat.bits + 7) // 8)
            if last > data.size:
                raise CorruptFileError(f"{self.where}: decompressed buffer has {data.size} bytes instead of {last}")
            return data.slice(first, last - first)
        return self.read_part(flat.buffer, first, last, stop)

    def view_flat(self, flat: Flat, total: int) -> pa.Buffer:
        """Return all values of a flat node for random access.

        If the file has blocks, the values must be loaded before they are looked at; see `InputFile.blocks`.
        """
        position, size = self.locate(flat.buffer)
        needed = (total * flat.bits + 7) // 8
        if flat.scheme or needed > size or self.source.mapped is not None:
            return self.read_flat(flat, 0, total, total)
        return self.view(position, needed)

    def view(self, position: int, size: int) -> pa.Buffer:
        """Return bytes of the file for random access; see `view_flat`."""
        blocks = self.source.blocks()
        if blocks is None or position < 0 or size < 0 or position + size > self.source.size:
            return self.source.read(position, size)
        return pa.py_buffer(blocks).slice(position, size)

    def decompress(self, flat: Flat, size: int, exact: bool = True) -> pa.Buffer:
        """Return the content of a compressed flat buffer: `size` bytes, or at most `size` bytes unless `exact`."""
        position, stored = self.locate(flat.buffer)

        def make() -> pa.Buffer:
            content = self.source.read(position, stored).to_pybytes()
            return pa.py_buffer(decompress(content, flat.scheme, size, exact, self.where))

        return self.cache.get((position, stored, flat.scheme, size, exact), make, lambda content: content.size)


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
    start = shared = 0
    for number, stored in enumerate(metadata.pages):
        where = f"{source.path}, column {metadata.index} ({name!r}), page {number}"
        node = page_node(stored, where)
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
    except (CorruptFileError, UnsupportedError) as error:
        raise type(error)(f"{where}: {error}") from error


def first_node(metadata: ColumnMetadata, where: str) -> Node | None:
    """Return the tree of a column's first page below wrappers for nulls; None without a page or values.

    Raises
    ------
    CorruptFileError, UnsupportedError
        The encoding is invalid or not supported. The message contains `where`.
    """
    return unwrapped(page_node(metadata.pages[0], f"{where}, page 0")) if metadata.pages else None
