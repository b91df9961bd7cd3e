from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case
from lance_dataset.file.jsonb import encode_document
from lancecodec import json_text

COUNT = VALUES // 50


def texts() -> list[bytes]:
    rng = np.random.default_rng(4)
    scores = rng.random(COUNT).tolist()
    values = [{"id": row, "name": f"user {row}", "score": scores[row], "tags": ["a", "b"]} for row in range(COUNT)]
    return [json.dumps(value).encode() for value in values]


def case(kernel: Callable[..., int], pieces: list[bytes]) -> Case:
    data = b"".join(pieces)
    offsets = np.append(0, np.cumsum([len(each) for each in pieces])).view(np.uint8)
    out, ends = np.empty(6 * len(data) + 64, np.uint8), np.zeros(COUNT + 1, np.int64)
    return Case(lambda: kernel(data, offsets, True, b"", 0, out, ends), len(data))


CASES: dict[str, Callable[[], Case]] = {
    "json_text.encode, objects of 5 members": lambda: case(json_text.encode, texts()),
    "json_text.decode, objects of 5 members": lambda: case(
        json_text.decode, [encode_document(text.decode()) for text in texts()]
    ),
}
