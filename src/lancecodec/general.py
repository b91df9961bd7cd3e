"""General compression (LZ4, Zstandard) of whole buffers, of the chunks of a page, or of each value on its own.

A compressed unit is framed the same way everywhere: LZ4 is the u32 length of the content and one LZ4 block; Zstandard
is the u64 length of the content and one frame of RFC 8878, or, from old writers, the frame alone. Nothing here is
compiled, as all the work happens inside the two libraries, which let other threads run meanwhile.

Lengths come from files: none is believed before it is compared with what the caller has room for and with the most that
the compressed bytes can stand for.
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
# The most that one byte can stand for: an LZ4 match length grows by 255 a byte, four bytes of Zstandard can repeat one
# byte 128 KiB times. The slack is for headers, whose cost does not grow.
_MAX_EXPANSION = {"lz4": 255, "zstd": 1 << 15}
_SLACK = 1 << 18
# Compressed bytes decoded at a time where the length of the content is unknown: bounds what a bomb does in one step.
_STEP = 1 << 9
_READ = 1 << 20


class _Contexts(threading.local):
    """Compression contexts are expensive to make and must not be used by two threads at once."""

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
        For Zstandard: up to 22, negative for speed, None or 0 for the default (3). LZ4 has none; it is ignored.
    data
        The content.

    Raises
    ------
    CodecError
        LZ4 cannot hold this much (2,113,929,216 bytes) in one unit.
    ValueError
        Unknown scheme, or a level above 22.
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
    """Compress and frame many units, each on its own: the chunks of a page, or the values of a column.

    Parameters
    ----------
    scheme, level
        As for `compress`.
    data
        The units back to back.
    ends
        int64: where unit i ends in `data`; ascending.
    out_ends
        int64, as many as `ends`: receives where compressed unit i ends in the result.
    start
        Where unit 0 begins in `data`.
    validity
        Bitmap; units whose bit is 0 are nulls and get no bytes, not even a frame.

    Returns
    -------
    bytes
        The compressed units back to back.

    Raises
    ------
    CodecError
        `ends` decrease or pass `data`, or `validity` or `out_ends` is too short.
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
    """Length of the content a unit claims to have, or None if only decompressing can tell (some old Zstandard frames).

    Raises
    ------
    CodecError
        The unit is too short to have a length, or its bytes cannot stand for so many.
    """
    return _claim(_known(scheme), _bytes_of(data))


def decompress(scheme: Scheme, data: Buffer, *, expected_size: int | None = None, max_size: int | None = None) -> bytes:
    """Content of one unit.

    Parameters
    ----------
    scheme
        ``"lz4"`` or ``"zstd"``.
    data
        The unit with its exact length.
    expected_size
        What the content must measure, where that is known.
    max_size
        The most the content may measure. One of the two must be given; nothing longer is ever allocated.

    Raises
    ------
    CodecError
        The unit is damaged, is followed by other bytes, or has another length than it claims or the caller expects.
    ValueError
        Unknown scheme, or no size given.
    """
    limit = expected_size if expected_size is not None else max_size
    if limit is None or limit < 0:
        raise ValueError("decompress needs an expected_size or a max_size of at least 0")
    content = _decompress(_known(scheme), _bytes_of(data), limit)
    if expected_size is not None and len(content) != expected_size:
        raise CodecError(f"a {scheme} unit holds {len(content)} bytes instead of {expected_size}")
    return content


def decompress_first(scheme: Scheme, data: Buffer, size: int) -> bytes:
    """First `size` bytes of the content of a unit, or all of it if there are fewer.

    For pages of version 2.0, whose buffers may hold more than the page has rows for. What follows the first `size`
    bytes is not checked.

    Raises
    ------
    CodecError
        The unit is damaged, or holds neither `size` bytes nor as many as it claims.
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
    """Where the contents of many units will end in an output, from what the units claim.

    Parameters
    ----------
    scheme
        ``"lz4"`` or ``"zstd"``.
    data
        The units back to back.
    ends
        int64: where unit i ends in `data`; ascending.
    out_ends
        int64, as many as `ends`: receives where the content of unit i ends, counted from 0.
    max_size
        The most all contents together may measure.
    start
        Where unit 0 begins in `data`.
    validity
        Bitmap; units whose bit is 0 are nulls and must have no bytes.

    Returns
    -------
    int
        Bytes of all contents, to allocate for `decompress_units`.

    Raises
    ------
    CodecError
        A unit has no length, claims more than its bytes can stand for, or the contents exceed `max_size`.
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
                raise CodecError(f"{scheme} unit {i} passes the {max_size} bytes that all units may have")
        elif end != begin:
            raise CodecError(f"{scheme} unit {i} is null but has {end - begin} bytes")
        places[i] = position
        begin = end
    return position


def decompress_units(scheme: Scheme, data: Buffer, ends: Buffer, out_ends: Buffer, out: Buffer, start: int = 0) -> None:
    """Contents of many units, back to back.

    Parameters
    ----------
    scheme, data, ends, start
        As given to `decompressed_ends`.
    out_ends
        What `decompressed_ends` has put there; a unit between equal ends that has no bytes itself is skipped.
    out
        Receives the contents; as many bytes as `decompressed_ends` returned.

    Raises
    ------
    CodecError
        A unit is damaged or has not the length it claims, or `out` is too small.
    """
    source, ends_in, places = _bytes_of(data), _int64s(ends, "ends"), _int64s(out_ends, "out_ends")
    target = _bytes_of(out)
    if target.readonly:
        raise BufferError("out cannot be written to")
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
    """The function that compresses and frames one unit."""
    if _known(scheme) == "lz4":
        return _compress_lz4
    run = _contexts.compressor(level or _ZSTD_DEFAULT_LEVEL).compress
    return lambda unit: len(unit).to_bytes(8, "little") + run(unit)


def _compress_lz4(unit: memoryview) -> bytes:
    if len(unit) > _LZ4_MAX_INPUT:
        raise CodecError(f"LZ4 holds at most {_LZ4_MAX_INPUT} bytes in a unit, not {len(unit)}; use zstd")
    return lz4.block.compress(unit, store_size=True)


def _claim(scheme: str, unit: memoryview) -> int | None:
    """The length in front of a unit or in its frame; None if there is none."""
    if scheme == "lz4":
        if len(unit) < 4:
            raise CodecError(f"{len(unit)} bytes are no LZ4 unit, which begins with a length of 4 bytes")
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
    """All of the content, which must have the length it claims and at most `limit` bytes."""
    claim = _claim(scheme, unit)
    if claim is not None and claim > limit:
        raise CodecError(f"a {scheme} unit claims {claim} bytes where at most {limit} belong")
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
        raise CodecError(f"a zstd unit claims {claim} bytes, its frame {size}")
    if claim:
        content = _contexts.decompressor.decompress(frame, max_output_size=claim, allow_extra_data=False)
    else:  # the library neither takes a frame of unknown length nor checks what follows an empty one
        content = _stream(frame, limit if claim is None else 0)
    if claim is not None and len(content) != claim:
        raise CodecError(f"a zstd unit holds {len(content)} bytes but claims {claim}")
    return content


def _stream(frame: memoryview, limit: int) -> bytes:
    """The content of a frame of at most `limit` bytes; more stops it early."""
    parts: list[bytes] = []
    size = 0
    feed = _contexts.decompressor.decompressobj()
    for at in range(0, len(frame), _STEP):
        if feed.eof:
            break
        parts.append(feed.decompress(frame[at : at + _STEP]))
        size += len(parts[-1])
        if size > limit:
            raise CodecError(f"a zstd unit holds more than the {limit} bytes it may")
    else:
        if feed.eof and not feed.unused_data:
            return b"".join(parts)
    raise CodecError("a zstd frame is followed by other bytes" if feed.eof else "a zstd frame ends too early")


def _content_size(frame: memoryview) -> int:
    """Length of the content as the frame header has it, or -1."""
    try:
        return zstandard.frame_content_size(frame)
    except zstandard.ZstdError as error:
        raise CodecError(f"a zstd unit has no valid frame header: {error}") from error


def _is_bare(unit: memoryview) -> bool:
    """Whether this is a frame without the length in front; a length may happen to begin like a frame."""
    return len(unit) < 8 or (unit[:4] == _ZSTD_MAGIC and not unit[4] & _UNUSED_HEADER_BIT)


def _known(scheme: str) -> str:
    if scheme not in _MAX_EXPANSION:
        raise ValueError(f"unknown compression {scheme!r}; known are {', '.join(_MAX_EXPANSION)}")
    return scheme


def _bytes_of(data: Buffer) -> memoryview:
    view = memoryview(data)
    if not view.nbytes:  # which memoryview refuses to cast
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
