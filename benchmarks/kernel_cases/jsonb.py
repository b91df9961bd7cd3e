from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case
from lance_dataset.file.jsonb import encode_document
from lancecodec import jsonb

#: Distinct documents, which are repeated.
DOCUMENTS = 1000
COUNT = VALUES // 10


def find(path: list[str], members: int) -> Case:
    documents = [
        encode_document(json.dumps({f"key{n}": {"id": row, "name": f"user {row}"} for n in range(members)}))
        for row in range(DOCUMENTS)
    ]
    data = b"".join(documents) * (COUNT // DOCUMENTS)
    offsets = np.append(0, np.cumsum([len(each) for each in documents] * (COUNT // DOCUMENTS))).view(np.uint8)
    ends = np.cumsum([len(key) for key in path])
    steps = np.array([(end - len(key), end, -1) for key, end in zip(path, ends, strict=True)], np.int64).ravel()
    kinds, words, ranges = np.empty(COUNT, np.uint8), np.empty(COUNT, np.int64), np.empty(2 * COUNT, np.int64)
    keys = "".join(path).encode()
    return Case(lambda: jsonb.find(data, offsets, True, keys, steps, kinds, words, ranges), len(data))


CASES: dict[str, Callable[[], Case]] = {
    "jsonb.find, 1 member": lambda: find(["key0"], 1),
    "jsonb.find, 20 members": lambda: find(["key9"], 20),
    "jsonb.find, inner key": lambda: find(["key9", "id"], 20),
}
