from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from codec_targets.jsonb import value
from lance_dataset.file.jsonb import encode_document
from lancecodec import json_text


def called(c: Chaos, kernel: Callable[..., int], pieces: list[np.ndarray]) -> object:
    """Call a kernel with texts or documents, and usually with enough space."""
    n = len(pieces)
    data = np.concatenate([np.empty(0, np.uint8), *pieces])
    offsets = np.cumsum([0, *(len(each) for each in pieces)], dtype=np.int64)
    if c.flag(0.1):
        offsets = c.integers(int(offsets[-1]) + 1, n + 1)
    wide = c.flag()
    given = offsets if wide or not isinstance(offsets, np.ndarray) else (offsets & 0x7FFFFFFF).astype(np.int32)
    out = c.out(c.random.choice([6 * len(data) + 60 * n, c.random.randint(0, 200)]))
    ends = np.zeros(n + 1 if c.flag(0.95) else c.number(), np.int64)
    skip = c.rng.integers(0, 2, c.random.choice([0, n, n, c.random.randint(0, 3)]), np.uint8)
    row = c.random.choice([0, 0, 0, c.number(n)])
    done = kernel(data, given, wide, skip, row, out, ends)
    row = int(row)
    assert row <= done <= n
    assert (np.diff(ends[row : done + 1]) >= 0).all()
    assert ends[done] <= len(out)
    return done


def encode(c: Chaos) -> object:
    texts = [json.dumps(value(c), ensure_ascii=c.flag()).encode() for _ in range(c.random.randint(0, 6))]
    return called(c, json_text.encode, [c.damaged(text, 0.3) for text in texts])


def decode(c: Chaos) -> object:
    documents = [encode_document(json.dumps(value(c))) for _ in range(c.random.randint(0, 6))]
    return called(c, json_text.decode, [c.damaged(document, 0.3) for document in documents])


TARGETS: dict[str, Callable[[Chaos], object]] = {"json_text.encode": encode, "json_text.decode": decode}
