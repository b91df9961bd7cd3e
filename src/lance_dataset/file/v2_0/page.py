"""A page of a 2.0 column: where its buffers are, and what it encodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.cache import PageCache
from lance_dataset.file.container import ColumnMetadata
from lance_dataset.file.v2_0.compression import decompress
from lance_dataset.file.v2_0.nodes import PAGE_ENCODING, BufferRef, Flat, Node, parse_page_encoding
from lance_dataset.io.base import InputFile

__all__ = ["Page", "open_pages"]

#: Far more than any writer puts into a column, and small enough that sums and products stay 64 bits wide.
_MAX_ROWS = 2**40
_DISCARD_BYTES = 1 << 20


@dataclass(frozen=True)
class Page:
    """One page, bound to its file.

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
    buffers, column_buffers
        (position, size) of the buffers the tree may refer to.
    cache
        Decoded parts of the column's pages.
    """

    source: InputFile
    where: str
    start: int
    length: int
    node: Node
    buffers: Sequence[tuple[int, int]]
    column_buffers: Sequence[tuple[int, int]]
    cache: PageCache = field(default_factory=PageCache, repr=False, compare=False)

    def locate(self, ref: BufferRef) -> tuple[int, int]:
        """(position, size) of a buffer."""
        buffers = self.column_buffers if ref.column else self.buffers
        if ref.index >= len(buffers):
            raise CorruptFileError(f"{self.where}: names buffer {ref.index} of {len(buffers)}")
        return buffers[ref.index]

    def read_flat(self, flat: Flat, start: int, stop: int, total: int) -> pa.Buffer:
        """Bytes of values ``[start, stop)`` of a flat node; for bitmaps `start` must be a multiple of 8.

        Parameters
        ----------
        total
            Number of values in the whole node; a compressed buffer must hold exactly these.
        """
        first, last = start * flat.bits // 8, (stop * flat.bits + 7) // 8
        if flat.scheme:
            data = self.decompress(flat, (total * flat.bits + 7) // 8)
            if last > data.size:
                raise CorruptFileError(f"{self.where}: decompressed buffer has {data.size} bytes, {last} are needed")
            return data.slice(first, last - first)
        position, size = self.locate(flat.buffer)
        if last > size:
            raise CorruptFileError(
                f"{self.where}: buffer {flat.buffer.index} has {size} bytes, its {stop} values need {last}"
            )
        return self.source.read(position + first, last - first)

    def discard_flat(self, flat: Flat, start: int, stop: int) -> None:
        """Let go of a range that was decoded into something else, where it is large enough to matter."""
        first, last = start * flat.bits // 8, stop * flat.bits // 8
        if not flat.scheme and last - first >= _DISCARD_BYTES:
            self.source.discard(self.locate(flat.buffer)[0] + first, last - first)

    def decompress(self, flat: Flat, size: int, exact: bool = True) -> pa.Buffer:
        """The content of a compressed flat buffer: `size` bytes, or unless `exact` no more than these."""
        position, stored = self.locate(flat.buffer)

        def make() -> pa.Buffer:
            content = self.source.read(position, stored).to_pybytes()
            return pa.py_buffer(decompress(content, flat.scheme, size, exact, self.where))

        return self.cache.get((position, stored, flat.scheme, size, exact), make, lambda content: content.size)


def open_pages(source: InputFile, metadata: ColumnMetadata, name: str) -> list[Page]:
    """Bind the pages of a column to their file; pages without values are left out.

    Raises
    ------
    CorruptFileError, UnsupportedError
        With file, column and page in the message.
    """
    pages: list[Page] = []
    cache = PageCache()
    start = 0
    for number, stored in enumerate(metadata.pages):
        where = f"{source.path}, column {metadata.index} ({name!r}), page {number}"
        if stored.type_name != PAGE_ENCODING:
            raise CorruptFileError(f"{where}: encoding {stored.type_name!r} does not belong into a 2.0 file")
        try:
            node = parse_page_encoding(stored.encoding)
        except (CorruptFileError, UnsupportedError) as error:
            raise type(error)(f"{where}: {error}") from error
        if stored.length > _MAX_ROWS - start:
            raise CorruptFileError(f"{where}: claims {stored.length} values")
        if stored.length:
            pages.append(Page(source, where, start, stored.length, node, stored.buffers, metadata.buffers, cache))
        start += stored.length
    return pages
