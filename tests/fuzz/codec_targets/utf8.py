from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import utf8


def text(c: Chaos) -> np.ndarray:
    pieces = ["plain", "é", "速度", "🚀", "a" * 40]
    data = "".join(c.random.choices(pieces, k=c.random.choice([1, 5, 300, 3000]))).encode()
    if c.random.random() < 0.5:
        data = data[: c.random.randint(0, len(data))] + bytes(c.buffer(c.random.randint(0, 4)))
    return np.frombuffer(data, np.uint8).copy()


def validate(c: Chaos) -> object:
    return utf8.validate(text(c), c.buffer(), c.random.random() < 0.5)


def copy(c: Chaos) -> object:
    data = text(c)
    return utf8.copy(
        data, c.buffer(), c.random.random() < 0.5, bytearray(max(len(data) - c.random.choice([0, 0, 0, 1]), 0))
    )


TARGETS: dict[str, Callable[[Chaos], object]] = {"utf8.validate": validate, "utf8.copy": copy}
