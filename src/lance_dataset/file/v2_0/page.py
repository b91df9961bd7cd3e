"""A page of a 2.0 column: where its buffers are, and what it encodes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import lz4.block
import pyarrow as pa
import zstandard

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.container import ColumnMetadata
from lance_dataset.file.v2_0.nodes import PAGE_ENCODING, BufferRef, Flat, Node, parse_page_encoding
from lance_dataset.io.base import InputFile

__all__ = ["Page", "open_pages"]

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_UNUSED_HEADER_BIT = 0x10
# The most a block of each codec can expand: more is a forged length.
_MAX_EXPANSION = {"zstd": 1 << 16, "lz4": 256}
_EXPANSION_SLACK = 1 << 10
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
    """

    source: InputFile
    where: str
    start: int
    length: int
    node: Node
    buffers: Sequence[tuple[int, int]]
    column_buffers: Sequence[tuple[int, int]]

    def locate(self, ref: BufferRef) -> tuple[int, int]:
        """(position, size) of a buffer."""
        buffers = self.column_buffers if ref.column else self.buffers
        if ref.index >= len(buffers):
            raise CorruptFileError(f"{self.where}: names buffer {ref.index} of {len(buffers)}")
        return buffers[ref.index]

    def read_flat(self, flat: Flat, start: int, stop: int, total: int | None = None) -> pa.Buffer:
        """Bytes of values ``[start, stop)`` of a flat node; for bitmaps `start` must be a multiple of 8.

        Parameters
        ----------
        total
            Number of values in the whole node, where that is known; a compressed buffer must hold exactly these.
        """
        first, last = start * flat.bits // 8, (stop * flat.bits + 7) // 8
        if flat.scheme:
            data = self.decompress(flat, total)
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

    def decompress(self, flat: Flat, total: int | None) -> pa.Buffer:
        """The whole content of a compressed flat buffer."""
        position, size = self.locate(flat.buffer)
        stored = self.source.read(position, size).to_pybytes()
        content = _decompress(stored, flat.scheme, self.where)
        if total is not None and len(content) != total * flat.bits // 8:
            raise CorruptFileError(
                f"{self.where}: a {flat.scheme} buffer decompresses to {len(content)} bytes instead of "
                f"{total * flat.bits // 8}"
            )
        return pa.py_buffer(content)


def _decompress(stored: bytes, scheme: str, where: str) -> bytes:
    try:
        if scheme == "lz4":
            (length,) = struct.unpack_from("<I", stored)
            _check_expansion(length, len(stored), scheme, where)
            return lz4.block.decompress(stored[4:], uncompressed_size=length)
        return _decompress_zstd(stored, where)
    except (struct.error, lz4.block.LZ4BlockError, zstandard.ZstdError, ValueError, MemoryError) as error:
        if isinstance(error, CorruptFileError):
            raise
        raise CorruptFileError(f"{where}: a {scheme} buffer cannot be decompressed: {error}") from error


def _decompress_zstd(stored: bytes, where: str) -> bytes:
    """Both forms in the world: a bare frame (0.18 to 0.25), or a u64 length before the frame."""
    if not stored:
        return b""
    bare = len(stored) < 8 or (stored[:4] == _ZSTD_MAGIC and not stored[4] & _UNUSED_HEADER_BIT)
    frame = stored if bare else stored[8:]
    if bare:
        length = zstandard.get_frame_parameters(frame).content_size
        if length == zstandard.CONTENTSIZE_UNKNOWN:
            return _decompress_unsized(frame, where)
    else:
        (length,) = struct.unpack_from("<Q", stored)
    _check_expansion(length, len(stored), "zstd", where)
    content = zstandard.ZstdDecompressor().decompress(frame, max_output_size=length) if length else b""
    if not bare and len(content) != length:
        raise CorruptFileError(f"{where}: a zstd buffer holds {len(content)} bytes but claims {length}")
    return content


def _decompress_unsized(frame: bytes, where: str) -> bytes:
    """A frame that does not tell its length; what it can expand to is bounded by the zstd format itself."""
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    content = decompressor.decompress(frame)
    if not decompressor.eof:
        raise CorruptFileError(f"{where}: a zstd buffer ends within its frame")
    return content


def _check_expansion(length: int, stored: int, scheme: str, where: str) -> None:
    if length > stored * _MAX_EXPANSION[scheme] + _EXPANSION_SLACK:
        raise CorruptFileError(f"{where}: {stored} bytes of {scheme} cannot hold the {length} bytes they claim")


def open_pages(source: InputFile, metadata: ColumnMetadata, name: str) -> list[Page]:
    """Bind the pages of a column to their file; pages without values are left out.

    Raises
    ------
    CorruptFileError, UnsupportedError
        With file, column and page in the message.
    """
    pages: list[Page] = []
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
            pages.append(Page(source, where, start, stored.length, node, stored.buffers, metadata.buffers))
        start += stored.length
    return pages
