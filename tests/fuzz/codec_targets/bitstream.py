from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import bitstream


def sound(c: Chaos) -> tuple[int, int, bool, np.ndarray]:
    """Return a value size, a width, True if values are signed, and values that fit."""
    bits, signed = c.random.choice([8, 16, 32, 64]), c.flag()
    width, n = c.random.randint(1, bits), c.size()
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    values = c.rng.integers(low, high, n, f"<{'i' if signed else 'u'}{bits // 8}", endpoint=True)
    return bits, width, signed, values.view(np.uint8)


def nearly(c: Chaos, number: int) -> Any:
    """Return the number, rarely another one."""
    return number if c.flag(0.85) else c.number(2 * number + 2)


def width(c: Chaos) -> object:
    return bitstream.width(c.buffer(c.size() * 8), c.random.choice([8, 16, 32, 64, c.number()]), c.flag())


def encode(c: Chaos) -> object:
    bits, width, signed, values = sound(c)
    out = c.out(bitstream.encoded_size(len(values) * 8 // bits, width))
    return bitstream.encode(values, bits, nearly(c, width), signed if c.flag(0.9) else not signed, out)


def stream(c: Chaos) -> tuple[int, int, bool, int, Any]:
    bits, width, signed, values = sound(c)
    n = len(values) * 8 // bits
    data = np.zeros(bitstream.encoded_size(n, width), np.uint8)
    bitstream.encode(values, bits, width, signed, data)
    return bits, width, signed, n, c.damaged(data, 0.4)


def decode(c: Chaos) -> object:
    bits, width, signed, n, data = stream(c)
    start, stop = c.number(n), c.number(n) if c.flag() else n
    plausible = all(isinstance(x, int) and 0 <= x <= 20_000 for x in (start, stop)) and stop >= start
    rows = stop - start if plausible else n
    return bitstream.decode(data, bits, nearly(c, width), signed, start, stop, c.out(rows * bits // 8))


def select(c: Chaos) -> object:
    bits, width, signed, n, data = stream(c)
    positions = c.integers(n)
    return bitstream.select(data, bits, nearly(c, width), signed, positions, c.out(len(positions) * bits // 8))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "bitstream.width": width,
    "bitstream.encode": encode,
    "bitstream.decode": decode,
    "bitstream.select": select,
    "bitstream.encoded_size": lambda c: bitstream.encoded_size(c.number(5000), c.number(64)),
}
