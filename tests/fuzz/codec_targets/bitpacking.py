from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import bitpacking


def form(c: Chaos) -> tuple[Any, Any]:
    """Return a value size and a width."""
    bits = c.random.choice([8, 16, 32, 64])
    width = c.random.randint(0, bits) if c.flag(0.95) else c.number(80)
    return (bits if c.flag(0.97) else c.number(80)), width


def sound(c: Chaos) -> tuple[int, int, np.ndarray]:
    """Return a value size, a width, and values that fit it."""
    bits = c.random.choice([8, 16, 32, 64])
    width = c.random.randint(0, bits)
    n = c.random.choice([0, 1, 1023, 1024, 1025, c.random.randint(0, 3000)])
    values = np.frombuffer(c.rng.bytes(n * bits // 8), f"<u{bits // 8}")
    return bits, width, values & values.dtype.type(2**width - 1)


def nearly(c: Chaos, number: int) -> Any:
    """Return the number, rarely another one."""
    return number if c.flag(0.85) else c.number(2 * number + 2)


def small(n: Any, plausible: int) -> int:
    return n if isinstance(n, int) and 0 <= n <= 10_000 else plausible


def widths(c: Chaos) -> object:
    bits, _ = form(c)
    values = c.buffer(c.size() * 8)
    if c.flag():
        return bitpacking.width(values, bits)
    return bitpacking.block_widths(values, bits, c.out(c.random.choice([1, 9, 80])))


def pack(c: Chaos) -> object:
    if c.flag(0.3):
        return bitpacking.pack(c.buffer(c.size() * 8), *form(c), c.buffer())
    bits, width, values = sound(c)
    out = c.out(bitpacking.packed_size(len(values), width))
    return bitpacking.pack(values.view(np.uint8).copy(), bits, width, out)


def packed(c: Chaos) -> tuple[int, int, int, Any]:
    bits, width, values = sound(c)
    out = np.zeros(bitpacking.packed_size(len(values), width), np.uint8)
    bitpacking.pack(values.view(np.uint8), bits, width, out)
    return bits, width, -(-len(values) // 1024) * 1024, c.damaged(out, 0.3)


def unpack(c: Chaos) -> object:
    bits, width, n, data = packed(c)
    start = c.number(n)
    stop = c.number(n) if c.flag() else n
    rows = small(stop, n) - small(start, 0)
    return bitpacking.unpack(data, bits, nearly(c, width), start, stop, c.out(max(rows, 0) * bits // 8))


def select(c: Chaos) -> object:
    bits, width, n, data = packed(c)
    positions = c.integers(n)
    return bitpacking.select(data, bits, nearly(c, width), positions, c.out(len(positions) * bits // 8))


def inline_encode(c: Chaos) -> object:
    bits, _, values = sound(c)
    ends = c.integers(5, -(-len(values) // 1024) + c.random.choice([0, 0, 0, 1, -1]))
    return bitpacking.inline_encode(
        values.view(np.uint8).copy(), bits, c.out(bitpacking.inline_bound(len(values), bits)), ends
    )


def inline(c: Chaos) -> tuple[int, int, Any, np.ndarray]:
    bits, _, values = sound(c)
    ends = np.zeros(-(-len(values) // 1024), np.int64)
    out = np.zeros(bitpacking.inline_bound(len(values), bits), np.uint8)
    size = bitpacking.inline_encode(values.view(np.uint8), bits, out, ends)
    return bits, len(values), out[:size], ends


def inline_decode(c: Chaos) -> object:
    bits, n, data, ends = inline(c)
    if len(ends) and c.flag(0.2):
        ends[c.random.randrange(len(ends))] = c.random.choice([-1, 0, 5, 128, 2**62, -(2**63)])
    n = nearly(c, n)
    return bitpacking.inline_decode(c.damaged(data, 0.5), ends, bits, n, c.out(small(n, 9) * bits // 8))


def inline_block(c: Chaos) -> object:
    bits, n, data, ends = inline(c)
    chunk = c.damaged(data[: ends[0]] if len(ends) else data, 0.5)
    n = c.random.randint(0, min(n, 1024)) if c.flag() else nearly(c, min(n, 1024))
    if c.flag():
        return bitpacking.inline_block_decode(chunk, bits, n, c.out(small(n, 9) * bits // 8))
    positions = c.integers(small(n, 9))
    return bitpacking.inline_block_select(chunk, bits, n, positions, c.out(len(positions) * bits // 8))


def out_of_line_encode(c: Chaos) -> object:
    bits, width, values = sound(c)
    out = c.out(bitpacking.out_of_line_size(len(values), bits, width))
    return bitpacking.out_of_line_encode(values.view(np.uint8).copy(), bits, nearly(c, width), out)


def out_of_line(c: Chaos) -> object:
    bits, width, values = sound(c)
    data = np.zeros(bitpacking.out_of_line_size(len(values), bits, width), np.uint8)
    bitpacking.out_of_line_encode(values.view(np.uint8), bits, width, data)
    chunk, n, width = c.damaged(data, 0.4), nearly(c, len(values)), nearly(c, width)
    if c.flag():
        return bitpacking.out_of_line_decode(chunk, bits, width, n, c.out(small(n, 9) * bits // 8))
    positions = c.integers(small(n, 9))
    return bitpacking.out_of_line_select(chunk, bits, width, n, positions, c.out(len(positions) * bits // 8))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "bitpacking.width": widths,
    "bitpacking.pack": pack,
    "bitpacking.unpack": unpack,
    "bitpacking.select": select,
    "bitpacking.inline_encode": inline_encode,
    "bitpacking.inline_decode": inline_decode,
    "bitpacking.inline_block": inline_block,
    "bitpacking.out_of_line_encode": out_of_line_encode,
    "bitpacking.out_of_line": out_of_line,
    "bitpacking.sizes": lambda c: (
        bitpacking.packed_size(c.number(5000), c.number(64)),
        bitpacking.inline_bound(c.number(5000), c.random.choice([8, 64])),
        bitpacking.out_of_line_size(c.number(5000), *form(c)),
    ),
}
