from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lance_dataset.file.jsonb import encode_document
from lancecodec import jsonb


def value(c: Chaos, depth: int = 0) -> Any:
    kind = c.random.randint(0, 7 if depth < 4 else 5)
    if kind < 6:
        return [None, True, "text", 1.5, c.random.choice([0, -1, 300, 2**40, 2**64 - 1]), "é" * 40][kind]
    inner = [value(c, depth + 1) for _ in range(c.random.randint(0, 4))]
    return inner if kind == 6 else dict(zip("xyz0", inner, strict=False))


def find(c: Chaos) -> object:
    documents = [c.damaged(encode_document(json.dumps(value(c))), 0.3) for _ in range(c.random.randint(0, 6))]
    n = len(documents)
    offsets = np.cumsum([0, *(len(each) for each in documents)], dtype=np.int64)
    if c.flag(0.1):
        offsets = c.integers(int(offsets[-1]) + 1, n + 1)
    wide = c.flag()
    ends = offsets if wide or not isinstance(offsets, np.ndarray) else (offsets & 0x7FFFFFFF).astype(np.int32)
    steps = c.integers(5, 3 * c.random.randint(0, 3)) - c.random.choice([0, 1])
    data = np.concatenate([np.empty(0, np.uint8), *documents])
    kinds, words, ranges = np.empty(n, np.uint8), np.empty(n, np.int64), np.empty(2 * n, np.int64)
    result = jsonb.find(data, ends, wide, b"xyz0"[: c.random.randint(3, 4)], steps, kinds, words, ranges)
    assert (kinds <= jsonb.OTHER).all()
    assert (np.diff(ranges) >= 0).all()
    assert not n or (ranges[0] >= 0 and ranges[-1] <= len(data))
    return result


def walk(c: Chaos) -> object:
    """Follow, count and expand ranges that may be wrong, and write the values as documents."""
    data = c.damaged(encode_document(json.dumps(value(c))), 0.3)
    n = c.random.randint(0, 3)
    kinds, words = c.rng.integers(0, jsonb.OTHER + 1, n).astype(np.uint8), np.zeros(n, np.int64)
    ranges = c.integers(len(data) + 1, 2 * n)
    if c.flag(0.7):
        kinds[:] = c.random.choice([jsonb.ARRAY, jsonb.OBJECT])
        ranges[::2], ranges[1::2] = 0, len(data)
    objects = c.flag()
    if c.flag():
        jsonb.follow(data, b"xyz0", np.array([0, c.number(4), c.number(3)]), kinds, words, ranges)
    if c.flag(0.2):
        jsonb.strings(data, kinds, ranges, c.out(n * len(data)), np.empty(n + 1, np.int64))
        jsonb.digits(data, kinds, words, ranges)
    counts = np.zeros(n, np.int64)
    jsonb.count(data, objects, c.random.randint(0, 1), kinds, ranges, counts)
    if c.flag(0.1):
        counts = c.integers(5, n)
    total = int(np.maximum(counts, 0).sum()) if c.flag(0.95) else c.number()
    found = np.empty(total, np.uint8), np.empty(total, np.int64), np.empty(2 * total, np.int64)
    jsonb.children(data, objects, kinds, words, ranges, counts, *found)
    ends = np.empty(total + 1, np.int64)
    return jsonb.documents(data, found[0], found[2], c.out(8 * total + n * len(data)), ends)


def test(c: Chaos) -> object:
    """Run a program that may be none on values that may lie anywhere."""
    data = c.damaged(encode_document(json.dumps(value(c))), 0.3)
    n, steps = c.random.randint(0, 3), c.random.randint(0, 2)
    kinds, words = c.rng.integers(0, jsonb.OTHER + 1, n).astype(np.uint8), c.integers(9, n)
    ranges = c.integers(len(data) + 1, 2 * n)
    if c.flag(0.7):
        kinds[:] = c.random.choice([jsonb.ARRAY, jsonb.OBJECT])
        ranges[::2], ranges[1::2] = 0, len(data)
    tests = []
    for _ in range(c.random.randint(1, 3)):
        operation = c.random.choice([jsonb.EXISTS, *range(jsonb.EQUAL, jsonb.STARTS_WITH + 1)])
        tests += [operation, 0, c.random.randint(0, steps), c.random.randint(0, 8)]
        tests += [c.random.randint(jsonb.NULL_VALUE, jsonb.TRUE), c.number(), 0, c.random.randint(0, 4)]
    if len(tests) > 8 or c.flag(0.2):
        tests += [c.random.choice([jsonb.AND, jsonb.OR]), 0, len(tests) // 8, 0, 0, 0, 0, 0]
    program = np.array(tests, np.int64)
    if c.flag(0.2):
        program[c.random.randrange(len(program))] = c.number()
    described = np.array([[0, 1, -1], [-1, -1, 1]][:steps], np.int64).ravel()
    verdicts = np.empty(n, np.uint8)
    result = jsonb.test(data, b"xyz0", described, program, kinds, words, ranges, verdicts)
    assert (verdicts <= jsonb.LEFT).all()
    return result


TARGETS: dict[str, Callable[[Chaos], object]] = {"jsonb.find": find, "jsonb.test": test, "jsonb.walk": walk}
