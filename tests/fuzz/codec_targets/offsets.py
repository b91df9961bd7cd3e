from __future__ import annotations

from collections.abc import Callable

from codec_targets.chaos import Chaos
from lancecodec import offsets


def decode(c: Chaos) -> object:
    count, wide = c.size(), c.random.random() < 0.5
    start = c.number(count)
    rows = count - start if isinstance(start, int) and 0 <= start <= count else count
    limit = c.number(10**6)
    adjustment = limit + c.random.choice([0, 1, 100]) if isinstance(limit, int) else c.number()
    stop = count if c.random.random() < 0.7 else c.number(count)
    out, validity = c.out((rows + 1) * (8 if wide else 4)), c.out((rows + 7) // 8)
    return offsets.decode(c.out(8 * count), start, stop, adjustment, limit, wide, out, validity)


def encode(c: Chaos) -> object:
    count, wide, bit = c.size(), c.random.random() < 0.5, c.random.randint(0, 20)
    validity = c.out((count + bit + 7) // 8) if c.random.random() < 0.6 else None
    length = count if c.random.random() < 0.8 else c.number()
    bit_or_worse = bit if c.random.random() < 0.8 else c.number()
    source = c.out((count + 1) * (8 if wide else 4))
    adjustment = 2**63 - 1 if c.random.random() < 0.6 else c.number()
    return offsets.encode(source, wide, length, validity, bit_or_worse, c.number(), adjustment, c.out(8 * count))


TARGETS: dict[str, Callable[[Chaos], object]] = {"offsets.decode": decode, "offsets.encode": encode}
