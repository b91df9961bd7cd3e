from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import utf8


def validate(c: Chaos) -> object:
    pieces = ["plain", "é", "速度", "🚀", "a" * 40]
    data = "".join(c.random.choices(pieces, k=c.random.choice([1, 5, 300, 3000]))).encode()
    if c.random.random() < 0.5:
        data = data[: c.random.randint(0, len(data))] + bytes(c.buffer(c.random.randint(0, 4)))
    return utf8.validate(np.frombuffer(data, np.uint8).copy(), c.buffer(), c.random.random() < 0.5)


TARGETS: dict[str, Callable[[Chaos], object]] = {"utf8.validate": validate}
