from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import variable


@dataclass(frozen=True)
class Strings:
    """Plausible Arrow values, and the arguments that describe them."""

    offsets: np.ndarray
    wide: bool
    data: np.ndarray

    @property
    def length(self) -> int:
        return len(self.offsets) - 1

    def damaged(self, c: Chaos) -> np.ndarray:
        return c.damaged(self.offsets, 0.4)


def strings(c: Chaos) -> Strings:
    wide, count = c.flag(), c.random.choice([0, 1, 2, 3, 60, 600])
    lengths = c.rng.integers(0, c.random.choice([1, 5, 40, 300]), count)
    offsets = np.cumsum([c.random.choice([0, 0, 9]), *lengths.tolist()])
    return Strings(offsets.astype(np.int64 if wide else np.int32), wide, c.content(int(offsets[-1])))


def size_of(wide: bool) -> int:
    return 8 if wide else 4


def planned(s: Strings, wide: bool, target: int = 4096) -> tuple[np.ndarray, np.ndarray]:
    counts, ends = np.zeros((2, variable.plan_bound(s.length)), np.int64)
    chunks = variable.plan(s.offsets, s.wide, s.length, wide, counts, ends, target)
    return counts[:chunks].copy(), ends[:chunks].copy()


def chunks_of(s: Strings, wide: bool, target: int = 4096) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counts, ends = planned(s, wide, target)
    out = np.empty(ends[-1] if len(ends) else 0, np.uint8)
    variable.encode(s.offsets, s.wide, s.data, s.length, wide, counts, ends, out)
    return out, counts, ends


def dent(c: Chaos, values: np.ndarray) -> np.ndarray:
    """Return the integers, one of them possibly changed."""
    values = values.copy()
    if len(values) and c.flag(0.3):
        number = c.number(5000)
        if isinstance(number, int) and -(2**63) <= number < 2**63:
            values[c.random.randrange(len(values))] = number
    return values


def length_or_worse(c: Chaos, length: int) -> object:
    return length if c.flag(0.9) else c.number(length + 2)


def plan(c: Chaos) -> object:
    s = strings(c)
    counts, ends = np.zeros((2, variable.plan_bound(s.length) - c.flag(0.1)), np.int64)
    target, most = c.random.choice([4096, 0, 64, c.number(9000)]), c.random.choice([4096, 2, 32768, c.number()])
    return variable.plan(s.damaged(c), s.wide, length_or_worse(c, s.length), c.flag(), counts, ends, target, most)


def encode(c: Chaos) -> object:
    s, wide = strings(c), c.flag()
    counts, ends = planned(s, wide, c.random.choice([4096, 64]))
    out = c.out(int(ends[-1]) if len(ends) else 0)
    length = length_or_worse(c, s.length)
    return variable.encode(
        s.damaged(c), s.wide, c.damaged(s.data, 0.2), length, wide, dent(c, counts), dent(c, ends), out
    )


def decode(c: Chaos) -> object:
    s, wide, out_wide = strings(c), c.flag(), c.flag()
    data, counts, ends = chunks_of(s, wide, c.random.choice([4096, 64]))
    offsets = c.out((s.length + 1) * size_of(out_wide))
    out = c.out(variable.decode_bound(len(data), s.length, len(counts), wide))
    length = length_or_worse(c, s.length)
    return variable.decode(c.damaged(data), wide, dent(c, counts), dent(c, ends), length, out_wide, offsets, out)


def decode_chunk(c: Chaos) -> object:
    s, wide, out_wide = strings(c), c.flag(), c.flag()
    data, counts, ends = chunks_of(s, wide)
    chunk, count = (data[: ends[0]], int(counts[0])) if len(ends) else (data, 0)
    damaged, offsets = c.damaged(chunk), c.out((count + 1) * size_of(out_wide))
    base = c.random.choice([0, 7, c.number(2**40)])
    begin, size = variable.decode_chunk(damaged, length_or_worse(c, count), wide, out_wide, offsets, base)
    return damaged[begin : begin + size].sum()


def chunk_value(c: Chaos) -> object:
    s, wide = strings(c), c.flag()
    data, counts, ends = chunks_of(s, wide)
    chunk, count = (data[: ends[0]], int(counts[0])) if len(ends) else (data, 0)
    begin, size = variable.chunk_value(c.damaged(chunk), length_or_worse(c, count), wide, c.number(count))
    return begin + size


def decode_generic(c: Chaos) -> object:
    s, out_wide = strings(c), c.flag()
    coded = s.offsets - s.offsets[0]
    size = int(coded[-1]) if c.flag(0.9) else c.number()
    places = c.out((s.length + 1) * size_of(out_wide))
    length = length_or_worse(c, s.length)
    return variable.decode_generic(c.damaged(coded, 0.4), s.wide, length, size, out_wide, places, c.number())


def rebase(c: Chaos) -> object:
    s, out_wide = strings(c), c.flag()
    out = c.out((s.length + 1) * size_of(out_wide))
    return variable.rebase(s.damaged(c), s.wide, length_or_worse(c, s.length), out_wide, out, c.number())


def encode_block(c: Chaos) -> object:
    s, wide = strings(c), c.flag()
    out = c.out(variable.block_bound(s.length, int(s.offsets[-1] - s.offsets[0]), wide))
    return variable.encode_block(s.damaged(c), s.wide, s.data, length_or_worse(c, s.length), wide, out)


def decode_block(c: Chaos) -> object:
    s, wide, out_wide = strings(c), c.flag(), c.flag()
    block = np.empty(variable.block_bound(s.length, int(s.offsets[-1] - s.offsets[0]), wide), np.uint8)
    variable.encode_block(s.offsets, s.wide, s.data, s.length, wide, block)
    if c.flag(0.2):  # the old header
        width = size_of(wide)
        head = np.array([s.length, 1 + width * (s.length + 3)], f"<u{width}").tobytes()
        block = np.frombuffer(bytes([8 * width]) + head + block[2 * width :].tobytes(), np.uint8)
    damaged, places = c.damaged(block), c.out((s.length + 1) * size_of(out_wide))
    begin, size = variable.decode_block(damaged, length_or_worse(c, s.length), out_wide, places)
    return damaged[begin : begin + size].sum()


def select(c: Chaos) -> object:
    s, out_wide = strings(c), c.flag()
    index, offsets = c.integers(s.length), s.damaged(c)
    places = c.out((len(index) + 1) * size_of(out_wide))
    size = variable.select_offsets(offsets, s.wide, s.length, index, out_wide, places)
    return variable.select_bytes(offsets, s.wide, c.damaged(s.data, 0.2), s.length, index, c.out(min(size, 10**6)))


def measure(c: Chaos) -> object:
    s = strings(c)
    return variable.measure(s.damaged(c), s.wide, length_or_worse(c, s.length))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "variable.plan": plan,
    "variable.encode": encode,
    "variable.decode": decode,
    "variable.decode_chunk": decode_chunk,
    "variable.chunk_value": chunk_value,
    "variable.decode_generic": decode_generic,
    "variable.rebase": rebase,
    "variable.encode_block": encode_block,
    "variable.decode_block": decode_block,
    "variable.select": select,
    "variable.measure": measure,
    "variable.bounds": lambda c: (
        variable.plan_bound(c.number()),
        variable.block_bound(c.number(), c.number(), c.flag()),
        variable.decode_bound(c.number(), c.number(), c.number(), c.flag()),
    ),
}
