"""General compression of the buffers of a 2.0 page, with limits on the expansion."""

from __future__ import annotations

import struct

import lz4.block
import zstandard

from lance_dataset.errors import CorruptFileError

__all__ = ["decompress"]

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_UNUSED_HEADER_BIT = 0x10
# Maximum expansion of a block of each codec; a larger claim is a forged length.
_MAX_EXPANSION = {"zstd": 1 << 15, "lz4": 255}
_EXPANSION_SLACK = 1 << 18
_CHUNK = 1 << 20


def decompress(stored: bytes, scheme: str, size: int, exact: bool, where: str) -> bytes:
    """Return the content of a compressed buffer.

    Parameters
    ----------
    stored
        The buffer as stored in the file.
    scheme
        ``"zstd"`` or ``"lz4"``.
    size
        Number of bytes that the page needs.
    exact
        True if the content must have exactly `size` bytes. Otherwise, only its first `size` bytes are used, and there
        may be fewer.
    where
        File, column and page, for error messages.

    Raises
    ------
    CorruptFileError
        The content has another length, or cannot be decompressed.
    """
    if exact:
        _check_claim(size, len(stored), scheme, size, exact, where)
    try:
        content = _lz4(stored, size, exact, where) if scheme == "lz4" else _zstd(stored, size, exact, where)
    except (struct.error, lz4.block.LZ4BlockError, zstandard.ZstdError, ValueError, MemoryError) as error:
        if isinstance(error, CorruptFileError):
            raise
        raise CorruptFileError(f"{where}: a {scheme} buffer cannot be decompressed: {error}") from error
    if exact and len(content) != size:
        raise CorruptFileError(f"{where}: a {scheme} buffer decompresses to {len(content)} bytes instead of {size}")
    return content


def claimed_size(stored: bytes, scheme: str) -> int:
    """Return the length that a compressed buffer claims for its content, the largest possible if it has none."""
    most = len(stored) * _MAX_EXPANSION[scheme] + _EXPANSION_SLACK
    if scheme == "lz4":
        return min(int.from_bytes(stored[:4], "little"), most)
    if len(stored) >= 8 and not _is_bare(stored):
        return min(int.from_bytes(stored[:8], "little"), most)
    return most


def zstd_range(stored: bytes, first: int, out: memoryview, where: str) -> int:
    """Write the content of a Zstandard buffer from byte `first` on to `out`; return the number of bytes written.

    Raises
    ------
    CorruptFileError
        The content cannot be decompressed.
    """
    frame, size = stored if _is_bare(stored) else stored[8:], 0
    try:
        with zstandard.ZstdDecompressor().stream_reader(frame) as reader:
            while first > 0 and (part := reader.read(min(first, _CHUNK))):
                first -= len(part)
            while size < len(out) and (done := reader.readinto(out[size : size + _CHUNK])):
                size += done
    except zstandard.ZstdError as error:
        raise CorruptFileError(f"{where}: a zstd buffer cannot be decompressed: {error}") from error
    return size


def _is_bare(stored: bytes) -> bool:
    """Return whether a Zstandard buffer is a frame alone (0.18 to 0.25), without a length before it."""
    return len(stored) < 8 or (stored[:4] == _ZSTD_MAGIC and not stored[4] & _UNUSED_HEADER_BIT)


def _lz4(stored: bytes, size: int, exact: bool, where: str) -> bytes:
    (length,) = struct.unpack_from("<I", stored)
    _check_claim(length, len(stored), "lz4", size, exact, where)
    return lz4.block.decompress(stored[4:], uncompressed_size=length)


def _zstd(stored: bytes, size: int, exact: bool, where: str) -> bytes:
    """Decompress either existing form: a bare frame (0.18 to 0.25), or a u64 length before the frame."""
    if not stored:
        return b""
    frame, length = stored, None
    if not _is_bare(stored):
        frame, (length,) = stored[8:], struct.unpack_from("<Q", stored)
        _check_claim(length, len(stored), "zstd", size, exact, where)
        if not length:
            return b""
    in_frame = zstandard.get_frame_parameters(frame).content_size
    if in_frame != zstandard.CONTENTSIZE_UNKNOWN:
        _check_claim(in_frame, len(stored), "zstd", size, exact, where)
        if length is not None and in_frame != length:
            raise CorruptFileError(f"{where}: a zstd buffer holds {in_frame} bytes but claims {length}")
        if in_frame <= size:
            return zstandard.ZstdDecompressor().decompress(frame)
    content = _first_bytes(frame, size + 1 if exact else size)
    if length is not None and len(content) < min(length, size):
        raise CorruptFileError(f"{where}: a zstd buffer holds {len(content)} bytes but claims {length}")
    return content


def _first_bytes(frame: bytes, size: int) -> bytes:
    """Return at most `size` bytes of a frame. If no length can be trusted, nothing beyond them is decompressed."""
    parts: list[bytes] = []
    with zstandard.ZstdDecompressor().stream_reader(frame) as reader:
        while size and (part := reader.read(min(size, _CHUNK))):
            parts.append(part)
            size -= len(part)
    return b"".join(parts)


def _check_claim(length: int, stored: int, scheme: str, size: int, exact: bool, where: str) -> None:
    """Check a length before anything is allocated for it."""
    if length > stored * _MAX_EXPANSION[scheme] + _EXPANSION_SLACK:
        raise CorruptFileError(f"{where}: {stored} bytes of {scheme} cannot hold the {length} bytes they claim")
    if exact and length != size:
        raise CorruptFileError(f"{where}: a {scheme} buffer claims {length} bytes instead of {size}")
