from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.search import minhash


def signer(c: Chaos) -> object:
    signing = minhash.Signer(c.number(40), c.number(5))
    count, texts = c.random.randint(0, 20), c.random.randint(0, 9)
    offsets = np.cumsum(np.append(0, c.rng.integers(0, 9, count)))
    ends = np.cumsum(c.rng.integers(0, 9, texts))
    codes = c.rng.integers(0, max(count, 1), int(ends[-1]) if texts else 0).astype(np.int32)
    data = c.buffer(int(offsets[-1]))
    out = c.out(2 * 40 * texts)
    return signing.sign(
        c.damaged(offsets.tobytes(), 0.1), data, c.damaged(codes, 0.1), c.damaged(ends.tobytes(), 0.1), out
    )


def band_keys(c: Chaos) -> object:
    bands, count = c.number(8), c.random.randint(0, 20)
    plausible = bands if isinstance(bands, int) and 0 < bands < 99 else 4
    hashes = plausible * c.random.randint(1, 4) if c.flag(0.9) else c.number(8)
    size = 2 * hashes * count if isinstance(hashes, int) and 0 <= hashes < 500 else 30
    return minhash.band_keys(c.buffer(size), hashes, bands, c.out(8 * plausible * count))


def count_equal(c: Chaos) -> object:
    hashes, count = c.number(40), c.random.randint(0, 20)
    size = hashes if isinstance(hashes, int) and 0 <= hashes < 99 else 9
    return minhash.count_equal(c.buffer(2 * size * count), hashes, c.out(2 * size), c.out(4 * count))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "minhash.Signer": signer,
    "minhash.band_keys": band_keys,
    "minhash.count_equal": count_equal,
}
