"""General compression (LZ4, Zstandard) of whole buffers, of the chunks of a page, or of each value on its own.

A compressed unit always has the same frame. An LZ4 unit is the u32 length of the content and one LZ4 block. A Zstandard
unit is the u64 length of the content and one frame of RFC 8878; old writers stored the frame alone. This module is not
compiled, because the work happens in the libraries `lz4` and `zstandard`, which release the GIL.

Lengths come from files. They are not trusted until they are compared with the room of the caller and with the largest
content that the compressed bytes can stand for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import lz4.block
import zstandard

from lancecodec.errors import CodecError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "Scheme",
    "compress",
    "compress_units",
    "decompress",
    "decompress_first",
    "decompress_units",
    "decompressed_ends",
    "decompressed_size",
]

Scheme = Literal["lz4", "zstd"]

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_UNUSED_HEADER_BIT = 0x10
_ZSTD_DEFAULT_LEVEL = 3
_LZ4_MAX_INPUT = 0x7E000000
# The largest content per compressed byte: an LZ4 match length grows by 255 per byte, and four bytes of Zstandard can
# repeat one byte 128 KiB times. The slack is for headers, whose size is constant.
_MAX_EXPANSION = {"lz4": 255, "zstd": 1 << 15}
_SLACK = 1 << 18
# Compressed bytes per step if the length of the content is unknown. It limits what a decompression bomb can allocate.
_STEP = 1 << 9
_READ = 1 << 20


class _Contexts(threading.local):
    """Compression contexts per thread: they are expensive to create and must not be shared by threads."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor = zstandard.ZstdDecompressor()

    def compressor(self, level: int) -> zstandard.ZstdCompressor:
        if level not in self.compressors:
            self.compressors[level] = zstandard.ZstdCompressor(level=level, write_content_size=True)
        return self.compressors[level]


_contexts = _Contexts()


def compress(scheme: Scheme, level: int | None, data: Buffer) -> bytes:
    """Compress and frame one unit.

    Parameters
    ----------
    scheme
        ``"lz4"`` or ``"zstd"``.
    level
        Level of Zstandard: up to 22, negative for speed, None or 0 for the default (3). It is ignored for LZ4.
    data
        The content.

    Returns
    -------
    bytes
        The compressed unit.

    Raises
    ------
    CodecError
        The content exceeds the limit of an LZ4 unit (2,113,929,216 bytes).
    ValueError
        The scheme is unknown, or the level is above 22.
    """
    return _compressor(scheme, level)(_bytes_of(data))


def compress_units(
    scheme: Scheme,
    level: int | None,
    data: Buffer,
    ends: Buffer,
    out_ends: Buffer,
    start: int = 0,
    validity: Buffer | None = None,
) -> bytes:
    """Compress and frame many units separately: the chunks of a page, or the values of a column.

    Parameters
    ----------
    scheme, level
        As for `compress`.
    data
        The units back to back.
    ends
        int64 array with the byte offset of the end of each unit in `data`, ascending.
    out_ends
        Output int64 array, at least as long as `ends`: the end of each compressed unit in the result.
    start
        Byte offset of the first unit in `data`.
    validity
        Bitmap, or None. A unit whose bit is 0 is null and gets no bytes, not even a frame.

    Returns
    -------
    bytes
        The compressed units back to back.

    Raises
    ------
    CodecError
        `ends` decrease or exceed `data`, `validity` or `out_ends` is too short, or a unit is too large for LZ4.
    TypeError
        `ends` or `out_ends` is not an array of 64-bit integers.
    ValueError
        The scheme is unknown, or the level is above 22.
    """
    run = _compressor(scheme, level)
    source, ends_in, places = _bytes_of(data), _int64s(ends, "ends"), _int64s(out_ends, "out_ends")
    present = _presence(validity, len(ends_in))
    _check_ends(ends_in, start, len(source), len(places))
    parts: list[bytes] = []
    position, begin = 0, start
    for i, end in enumerate(ends_in):
        if present is None or present[i >> 3] >> (i & 7) & 1:
            part = run(source[begin:end])
            parts.append(part)
            position += len(part)
        places[i] = position
        begin = end
    return b"".join(parts)


def decompressed_size(scheme: Scheme, data: Buffer) -> int | None:
    """Read the length of the content from the header of a unit.

    Parameters
    ----------
    scheme
        ``"lz4"`` or ``"zstd"``.
    data
        The unit.

    Returns
    -------
    int or None
        Length in bytes, as the unit claims it. None if only decompression can tell (some old Zstandard frames).

    Raises
    ------
    CodecError
        The unit is too short for a length, or its bytes cannot stand for so much content.
    ValueError
        The scheme is unknown.
    """
    return _claim(_known(scheme), _bytes_of(data))


def decompress(scheme: Scheme, data: Buffer, *, expected_size: int | None = None, max_size: int | None = None) -> bytes:
    """Decompress one unit.

    Parameters
    ----------
    scheme
        ``"lz4"`` or ``"zstd"``.
    data
        The unit in its exact size.
    expected_size
        Exact size of the content in bytes, if known.
    max_size
        Largest size of the content in bytes. One of the two sizes is required; no larger content is allocated.

    Returns
    -------
    bytes
        The content.

    Raises
    ------
    CodecError
        The unit is damaged, is followed by other bytes, or its content does not have the claimed or expected size.
    ValueError
        The scheme is unknown, or no size is given.
    """
    limit = expected_size if expected_size is not None else max_size
    if limit is None or limit < 0:
        raise ValueError("decompress needs an expected_size or a max_size of at least 0")
    content = _decompress(_known(scheme), _bytes_of(data), limit)
    if expected_size is not None and len(content) != expected_size:
        raise CodecError(f"a {scheme} unit holds {len(content)} bytes instead of {expected_size}")
    return content


def decompress_first(scheme: Scheme, data: Buffer, size: int) -> bytes:
    """Decompress the first bytes of a unit.

    This is for pages of version 2.0, whose buffers may hold more than the rows of the page. The rest of the content is
    not checked.

    Parameters
    ----------
    scheme
        ``"lz4"`` or ``"zstd"``.
    data
        The unit in its exact size.
    size
        Number of bytes of content to return.

    Returns
    -------
    bytes
        The first `size` bytes of the content, or all of it if there are fewer.

    Raises
    ------
    CodecError
        The unit is damaged, or holds neither `size` bytes nor as many as it claims.
    ValueError
        The scheme is unknown.
    """
    unit = _bytes_of(data)
    claim = _claim(_known(scheme), unit)
    if claim is not None and (scheme == "lz4" or claim <= size):
        return _decompress(scheme, unit, claim)[: max(size, 0)]
    frame = unit if _is_bare(unit) else unit[8:]
    parts: list[bytes] = []
    room = size
    try:
        with _contexts.decompressor.stream_reader(frame) as reader:
            while room > 0 and (part := reader.read(min(room, _READ))):
                parts.append(part)
                room -= len(part)
    except zstandard.ZstdError as error:
        raise CodecError(f"a zstd unit cannot be decompressed: {error}") from error
    if claim is not None and size - room < min(claim, size):
        raise CodecError(f"a zstd unit holds {size - room} bytes but claims {claim}")
    return b"".join(parts)


def decompressed_ends(
    scheme: Scheme,
    data: Buffer,
    ends: Buffer,
    out_ends: Buffer,
    max_size: int,
    start: int = 0,
    validity: Buffer | None = None,
) -> int:
    """Compute the end of the content of each unit in an output, from the lengths that the units claim.

    Parameters
    ----------
    scheme
        ``"lz4"`` or ``"zstd"``.
    data
        The units back to back.
    ends
        int64 array with the byte offset of the end of each unit in `data`, ascending.
    out_ends
        Output int64 array, at least as long as `ends`: the end of the content of each unit, counted from 0.
    max_size
        Largest size of all contents together in bytes.
    start
        Byte offset of the first unit in `data`.
    validity
        Bitmap, or None. A unit whose bit is 0 is null and must be empty.

    Returns
    -------
    int
        Size of all contents in bytes, to allocate the output of `decompress_units`.

    Raises
    ------
    CodecError
        A unit is too short for a length or claims more than its bytes can stand for, the contents exceed `max_size`,
        or `ends` are not valid.
    TypeError
        `ends` or `out_ends` is not an array of 64-bit integers.
    ValueError
        The scheme is unknown.
    """
    source, ends_in, places = _bytes_of(data), _int64s(ends, "ends"), _int64s(out_ends, "out_ends")
    present = _presence(validity, len(ends_in))
    _known(scheme)
    _check_ends(ends_in, start, len(source), len(places))
    position, begin = 0, start
    for i, end in enumerate(ends_in):
        if present is None or present[i >> 3] >> (i & 7) & 1:
            unit = source[begin:end]
            claim = _claim(scheme, unit)
            position += len(_decompress(scheme, unit, max_size - position)) if claim is None else claim
            if position > max_size:
                raise CodecError(f"{scheme} unit {i} exceeds the limit of {max_size} bytes for all units")
        elif end != begin:
            raise CodecError(f"{scheme} unit {i} is null but has {end - begin} bytes")
        places[i] = position
        begin = end
    return position


def decompress_units(scheme: Scheme, data: Buffer, ends: Buffer, out_ends: Buffer, out: Buffer, start: int = 0) -> None:
    """Decompress many units, back to back.

    Parameters
    ----------
    scheme, data, ends, start
        As for `decompressed_ends`.
    out_ends
        The ends that `decompressed_ends` wrote. An empty unit with an empty content is skipped.
    out
        Output of as many bytes as `decompressed_ends` returned.

    Raises
    ------
    BufferError
        `out` is read-only.
    CodecError
        A unit is damaged, its content does not have the expected length, or `out` is too small.
    TypeError
        `ends` or `out_ends` is not an array of 64-bit integers.
    ValueError
        The scheme is unknown.
    """
    source, ends_in, places = _bytes_of(data), _int64s(ends, "ends"), _int64s(out_ends, "out_ends")
    target = _bytes_of(out)
    if target.readonly:
        raise BufferError("out is read-only")
    _known(scheme)
    _check_ends(ends_in, start, len(source), len(places))
    _check_ends(places[: len(ends_in)], 0, len(target), len(ends_in))
    begin, place = start, 0
    for i, end in enumerate(ends_in):
        stop = places[i]
        if begin != end or place != stop:
            content = _decompress(scheme, source[begin:end], stop - place)
            if len(content) != stop - place:
                raise CodecError(f"{scheme} unit {i} holds {len(content)} bytes instead of {stop - place}")
            target[place:stop] = content
        begin, place = end, stop


def _compressor(scheme: str, level: int | None) -> Callable[[memoryview], bytes]:
    """Return the function that compresses and frames one unit."""
    if _known(scheme) == "lz4":
        return _compress_lz4
    run = _contexts.compressor(level or _ZSTD_DEFAULT_LEVEL).compress
    return lambda unit: len(unit).to_bytes(8, "little") + run(unit)


def _compress_lz4(unit: memoryview) -> bytes:
    if len(unit) > _LZ4_MAX_INPUT:
        raise CodecError(f"LZ4 holds at most {_LZ4_MAX_INPUT} bytes in a unit, not {len(unit)}; use zstd")
    return lz4.block.compress(unit, store_size=True)


def _claim(scheme: str, unit: memoryview) -> int | None:
    """Return the length in front of a unit or in its frame, or None if there is no length."""
    if scheme == "lz4":
        if len(unit) < 4:
            raise CodecError(f"{len(unit)} bytes are not an LZ4 unit, which must begin with a length of 4 bytes")
        claim = int.from_bytes(unit[:4], "little")
    elif not unit:
        return 0
    elif _is_bare(unit):
        claim = _content_size(unit)
        if claim < 0:
            return None
    else:
        claim = int.from_bytes(unit[:8], "little")
    if claim > len(unit) * _MAX_EXPANSION[scheme] + _SLACK or (scheme == "lz4" and claim >= 1 << 31):
        raise CodecError(f"{len(unit)} bytes of {scheme} cannot hold the {claim} bytes they claim")
    return claim


def _decompress(scheme: str, unit: memoryview, limit: int) -> bytes:
    """Return the whole content, which must have the claimed length and at most `limit` bytes."""
    claim = _claim(scheme, unit)
    if claim is not None and claim > limit:
        raise CodecError(f"a {scheme} unit claims {claim} bytes, but at most {limit} are expected")
    try:
        if scheme == "lz4":
            return lz4.block.decompress(unit)
        return _decompress_zstd(unit, claim, limit)
    except (lz4.block.LZ4BlockError, zstandard.ZstdError) as error:
        raise CodecError(f"a {scheme} unit cannot be decompressed: {error}") from error


def _decompress_zstd(unit: memoryview, claim: int | None, limit: int) -> bytes:
    if not unit:
        return b""
    bare = _is_bare(unit)
    frame = unit if bare else unit[8:]
    size = claim if bare else _content_size(frame)
    if size is not None and 0 <= size != claim:
        raise CodecError(f"a zstd unit claims {claim} bytes, but its frame claims {size}")
    if claim:
        content = _contexts.decompressor.decompress(frame, max_output_size=claim, allow_extra_data=False)
    else:  # the library does not support frames of unknown length, and does not check the bytes behind an empty one
        content = _stream(frame, limit if claim is None else 0)
    if claim is not None and len(content) != claim:
        raise CodecError(f"a zstd unit holds {len(content)} bytes but claims {claim}")
    return content


def _stream(frame: memoryview, limit: int) -> bytes:
    """Decompress a frame of at most `limit` bytes. A larger one is stopped early."""
    parts: list[bytes] = []
    size = 0
    feed = _contexts.decompressor.decompressobj()
    for at in range(0, len(frame), _STEP):
        if feed.eof:
            break
        parts.append(feed.decompress(frame[at : at + _STEP]))
        size += len(parts[-1])
        if size > limit:
            raise CodecError(f"a zstd unit holds more than the limit of {limit} bytes")
    else:
        if feed.eof and not feed.unused_data:
            return b"".join(parts)
    raise CodecError("a zstd frame is followed by other bytes" if feed.eof else "a zstd frame ends too early")


def _content_size(frame: memoryview) -> int:
    """Return the length of the content in the frame header, or -1."""
    try:
        return zstandard.frame_content_size(frame)
    except zstandard.ZstdError as error:
        raise CodecError(f"a zstd unit has no valid frame header: {error}") from error


def _is_bare(unit: memoryview) -> bool:
    """Check for a frame without the length in front. A length may look like the begin of a frame."""
    return len(unit) < 8 or (unit[:4] == _ZSTD_MAGIC and not unit[4] & _UNUSED_HEADER_BIT)


def _known(scheme: str) -> str:
    if scheme not in _MAX_EXPANSION:
        raise ValueError(f"unknown compression {scheme!r}; known are {', '.join(_MAX_EXPANSION)}")
    return scheme


def _bytes_of(data: Buffer) -> memoryview:
    view = memoryview(data)
    if not view.nbytes:  # an empty memoryview cannot be cast
        return memoryview(b"" if view.readonly else bytearray())
    return view.cast("B")


def _int64s(values: Buffer, name: str) -> memoryview:
    view = memoryview(values)
    if view.itemsize != 8 or view.format not in ("l", "q") or view.ndim != 1:
        raise TypeError(f"{name} must be an array of 64-bit integers, not {view.ndim}-dimensional {view.format!r}")
    return view.cast("B").cast("q") if len(view) else memoryview(b"").cast("q")


def _presence(validity: Buffer | None, count: int) -> memoryview | None:
    if validity is None:
        return None
    bits = _bytes_of(validity)
    if len(bits) * 8 < count:
        raise CodecError(f"a validity bitmap of {len(bits)} bytes is too short for {count} values")
    return bits


def _check_ends(ends: memoryview, start: int, size: int, room: int) -> None:
    if room < len(ends):
        raise CodecError(f"out_ends has {room} entries for {len(ends)} units")
    previous = start
    if start < 0:
        raise CodecError(f"units cannot start at byte {start}")
    for i, end in enumerate(ends):
        if end < previous:
            raise CodecError(f"unit {i} ends at byte {end}, before it begins at {previous}")
        previous = end
    if previous > size:
        raise CodecError(f"the units end at byte {previous} of {size}")
