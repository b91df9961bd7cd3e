from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import zstandard

from codec_targets.chaos import Chaos
from lancecodec import general


def scheme_of(c: Chaos) -> Any:
    return c.random.choice(["lz4", "zstd"]) if c.flag(0.98) else c.random.choice([None, "snappy", 5])


def unit_of(c: Chaos, scheme: Any, content: bytes) -> bytes:
    """Return a unit in any of the forms that writers produce."""
    if scheme != "zstd" or c.flag():
        return general.compress("zstd" if scheme == "zstd" else "lz4", None, content)
    writer = zstandard.ZstdCompressor(write_content_size=c.flag(), write_checksum=c.flag())
    return (len(content).to_bytes(8, "little") if c.flag() else b"") + writer.compress(content)


def round_trip(c: Chaos) -> object:
    scheme, content = scheme_of(c), c.buffer()
    unit = general.compress(scheme, c.random.choice([None, 0, 1, -1, 5, c.number()]), content)
    back = general.decompress(scheme, unit, expected_size=len(content))
    if back != bytes(content):
        raise AssertionError("what comes back is not what was compressed")
    return back


def decompress(c: Chaos) -> object:
    scheme, content = scheme_of(c), c.content(c.size()).tobytes() * c.random.choice([1, 1, 30])
    unit = c.damaged(unit_of(c, scheme, content))
    if c.flag(0.2):
        return general.decompress_first(scheme, unit, c.number(len(content)))
    size: Any = len(content) if c.flag(0.8) else c.number()
    if isinstance(size, int):
        size = min(size, 1 << 30)
    back = general.decompress(scheme, unit, **{c.random.choice(["expected_size", "max_size"]): size})
    if len(back) > size:
        raise AssertionError(f"{len(back)} bytes where {size} were allowed")
    return back


def units(c: Chaos) -> object:
    scheme, count = scheme_of(c), c.random.choice([0, 1, 9, 40])
    contents = [c.content(c.random.choice([0, 1, 40, 300])).tobytes() for _ in range(count)]
    bits = c.rng.random(count) < 0.8
    stored = [unit_of(c, scheme, content) if bit else b"" for content, bit in zip(contents, bits, strict=True)]
    data: Any = c.damaged(b"".join(stored), 0.3)
    ends: Any = np.cumsum([len(unit) for unit in stored], dtype=np.int64) if c.flag(0.9) else c.integers(300, count)
    validity = np.packbits(bits, bitorder="little") if c.flag(0.9) else c.out((count + 7) // 8)
    out_ends, room = np.empty(count, np.int64), c.random.choice([20_000, 20_000, 20_000, 500])
    start = 0 if c.flag(0.9) else c.number()
    total = general.decompressed_ends(scheme, data, ends, out_ends, room, start, validity)
    if total > room:
        raise AssertionError(f"{total} bytes where {room} were allowed")
    if c.flag(0.1):
        out_ends = c.integers(total, count)
    return general.decompress_units(scheme, data, ends, out_ends, c.out(total), start)


def compress_units(c: Chaos) -> object:
    ends = np.sort(c.integers(300))
    room, validity = c.integers(9, len(ends)), c.out((len(ends) + 7) // 8) if c.flag() else None
    return general.compress_units(scheme_of(c), None, c.buffer(), ends, room, c.number(3), validity)


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "general.compress": round_trip,
    "general.compress_units": compress_units,
    "general.decompress": decompress,
    "general.decompress_units": units,
}
