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


def test() -> Case:
    """Compare a member of each of many values with a number."""
    data = b"".join(encode_document(json.dumps({"id": row, "name": f"user {row}"})) for row in range(DOCUMENTS))
    sizes = [len(encode_document(json.dumps({"id": row, "name": f"user {row}"}))) for row in range(DOCUMENTS)]
    ends = np.cumsum(sizes)
    ranges = np.tile(np.stack([ends - sizes, ends], axis=1), (COUNT // DOCUMENTS, 1)).ravel()
    kinds, words, verdicts = (
        np.full(COUNT, jsonb.OBJECT, np.uint8),
        np.zeros(COUNT, np.int64),
        np.empty(COUNT, np.uint8),
    )
    steps, tests = np.array([0, 2, -1]), np.array([jsonb.GREATER, 0, 1, 1, jsonb.INTEGER, 500, 2, 2])
    moved = len(data) * (COUNT // DOCUMENTS)
    return Case(lambda: jsonb.test(data, b"id", steps, tests, kinds, words, ranges, verdicts), moved)


CASES: dict[str, Callable[[], Case]] = {
    "jsonb.find, 1 member": lambda: find(["key0"], 1),
    "jsonb.find, 20 members": lambda: find(["key9"], 20),
    "jsonb.find, inner key": lambda: find(["key9", "id"], 20),
    "jsonb.test, a member and a number": test,
}
