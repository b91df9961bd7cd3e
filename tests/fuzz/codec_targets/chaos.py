"""Source of the random arguments of the fuzz targets."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

__all__ = ["NUMBERS", "Chaos"]

NUMBERS = [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 1023, 1024, 1025, 2**31 - 1, 2**31, 2**32, 2**56, 2**60, 2**61, 2**62]
NUMBERS += [2**63 - 8, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -1, -2, -8, -(2**31), -(2**63), -(2**63) - 1]


class Chaos:
    """A source of mostly plausible arguments, as a call that fails its first check tests nothing else."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)

    def number(self, plausible: int = 40) -> Any:
        kind = self.random.random()
        if kind < 0.8:
            return self.random.randint(0, max(plausible, 0))
        return self.random.choice(NUMBERS) if kind < 0.99 else self.random.choice([None, "x", 1.5])

    def size(self) -> int:
        return self.random.choice([0, 1, 2, 7, 8, 9, self.random.randint(0, 64), self.random.randint(0, 9000)])

    def content(self, size: int) -> np.ndarray:
        """Return bytes: noise, ascending integers of some width, small integers, or all the same."""
        kind = self.random.randint(0, 3)
        if kind == 0:
            return self.rng.integers(0, 256, size, np.uint8)
        if kind == 1:
            return np.full(size, self.random.choice([0, 1, 0x7F, 0x80, 0xFF]), np.uint8)
        dtype = self.random.choice([np.uint8, np.uint16, np.int32, np.int64])
        values = self.rng.integers(0, self.random.choice([2, 5, 40]), size // np.dtype(dtype).itemsize + 1)
        if kind == 3:
            values = np.cumsum(values)
            if self.random.random() < 0.3:
                values[self.random.randrange(len(values))] = self.random.choice([-1, 2**40, -(2**63), 2**63 - 1])
        return np.resize(values.astype(dtype).view(np.uint8), size)

    def buffer(self, size: int | None = None) -> Any:
        """Return heap memory of the exact size, so that a sanitizer sees the first byte past it; some at odd places."""
        if self.random.random() < 0.01:
            return self.random.choice([None, 5, "text", np.zeros(9, np.uint8)[::2]])
        size = self.size() if size is None else max(size, 0)
        skew = self.random.choice([0, 0, 1, 3])
        data = np.empty(size + skew, np.uint8)
        data[skew:] = self.content(size)
        return bytes(data) if skew == 0 and self.random.random() < 0.2 else data[skew:]

    def out(self, plausible: int) -> Any:
        """Return an output that usually suffices, exactly or nearly."""
        slack = self.random.choice([0, 0, 0, 1, 8, -1])
        return self.buffer(plausible + slack) if self.random.random() < 0.95 else self.buffer()

    def integers(self, top: int, count: int | None = None) -> Any:
        count = self.random.choice([0, 1, 8, 9, self.random.randint(0, 300)]) if count is None else max(count, 0)
        values = self.rng.integers(0, max(top, 1), count)
        if count and self.random.random() < 0.15:
            values[self.random.randrange(count)] = self.random.choice([-1, top, 2**62, 2**63 - 1, -(2**63)])
        if self.random.random() < 0.3:
            values.sort()
        if self.random.random() < 0.02:
            return values.astype(self.random.choice([np.int32, np.uint64, np.float64]))
        return values

    def flag(self, probability: float = 0.5) -> bool:
        return self.random.random() < probability

    def damaged(self, encoded: Any, probability: float = 0.7) -> Any:
        """Return a valid encoding, usually with changed, missing or additional bytes, in exactly sized heap memory."""
        data = np.frombuffer(encoded, np.uint8).copy()
        if not self.flag(probability):
            return data
        kind = self.random.randint(0, 4)
        if kind == 0 or not len(data):
            return np.concatenate([data, self.content(self.random.randint(1, 9))])
        if kind == 1:
            return data[: self.random.randrange(len(data))].copy()
        for _ in range(self.random.choice([1, 1, 2, 8])):
            top = min(len(data), 16) if kind == 2 else len(data)  # headers and first entries decide most
            data[self.random.randrange(top)] = self.random.choice([0, 1, 0x7F, 0x80, 0xFF, self.random.randrange(256)])
        return data
