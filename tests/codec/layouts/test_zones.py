"""Bounds of zones: of values, floats and texts, against Python; and what they say about tests."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lancecodec import CodecError
from lancecodec.intervals import ALL_PASS, FLOAT, NONE_PASS, SIGNED, SOME_PASS, UNSIGNED, IntervalTest
from lancecodec.zones import BOUNDED, HAS_NAN, HAS_NULL, HAS_VALID, ZoneBounds

TYPES = [
    *((kind, bits) for kind in "ui" for bits in (8, 16, 32, 64, 128)),
    *(("f", bits) for bits in (32, 64)),
]
ORDERS = {"u": UNSIGNED, "i": SIGNED, "f": FLOAT}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan]


def random_values(kind: str, bits: int, n: int, rng: np.random.Generator) -> tuple[bytes, list[int], list[bool]]:
    """Return values, their keys, and which of them are NaN."""
    if kind == "f":
        values = rng.normal(size=n).astype(f"f{bits // 8}")
        values[rng.random(n) < 0.3] = rng.choice(np.array(SPECIAL, values.dtype))
        words = values.view(f"u{bits // 8}").tolist()
        nan = np.isnan(values).tolist()
    else:
        words = [int.from_bytes(rng.bytes(bits // 8), "little") >> int(rng.integers(0, bits)) for _ in range(n)]
        nan = [False] * n
    sign, top = 1 << (bits - 1), (1 << bits) - 1
    keys = [word if kind == "u" else word ^ (top if kind == "f" and word & sign else sign) for word in words]
    return b"".join(word.to_bytes(bits // 8, "little") for word in words), keys, nan


def written(bounds: ZoneBounds) -> list[tuple[int, int, int]]:
    count = len(bounds)
    low, high, flags = np.empty((count, 2), np.uint64), np.empty((count, 2), np.uint64), np.empty(count, np.uint8)
    bounds.write(low.data, high.data, flags.data)
    joined = [[word | top << 64 for word, top in keys.tolist()] for keys in (low, high)]
    return list(zip(*joined, flags.tolist(), strict=True))


def expected(keys: list[int], valid: list[bool], nan: list[bool], rows: int) -> list[tuple[int, int, int]]:
    found = []
    for start in range(0, len(keys), rows):
        places = range(start, min(start + rows, len(keys)))
        numbers = [keys[at] for at in places if valid[at] and not nan[at]]
        flags = HAS_NULL * any(not valid[at] for at in places) | HAS_VALID * any(valid[at] for at in places)
        flags |= HAS_NAN * any(valid[at] and nan[at] for at in places) | BOUNDED * bool(numbers)
        found.append((min(numbers, default=0), max(numbers, default=0), flags))
    return found


def mask_of(valid: list[bool], bit: int) -> NDArray[np.uint8]:
    return np.packbits([True] * bit + valid, bitorder="little")


@pytest.mark.parametrize(("kind", "bits"), TYPES)
def test_values(kind: str, bits: int) -> None:
    rng = np.random.default_rng(bits)
    for rows in (1, 64, 150):
        bounds, keys, valid, nan = ZoneBounds(rows), [], [], []
        for _ in range(4):
            n, share, bit = int(rng.integers(0, 300)), rng.choice([0.0, 0.05, 0.5, 1.0]), int(rng.integers(0, 9))
            data, some_keys, some_nan = random_values(kind, bits, n, rng)
            some_valid = (rng.random(n) >= share).tolist()
            if rng.integers(0, 2):
                some_valid = [True] * n
            mask = None if all(some_valid) and rng.integers(0, 2) else mask_of(some_valid, bit)
            bounds.add_fixed(data, bits, ORDERS[kind], mask, bit)
            keys, valid, nan = keys + some_keys, valid + some_valid, nan + some_nan
        assert bounds.num_rows == len(keys)
        assert written(bounds) == expected(keys, valid, nan, rows)
        bounds.halve()
        assert written(bounds) == expected(keys, valid, nan, 2 * rows)


@pytest.mark.parametrize("wide", [False, True])
def test_texts(wide: bool) -> None:
    rng = np.random.default_rng(3)
    for rows in (3, 50):
        bounds, keys, valid = ZoneBounds(rows), [], []
        for _ in range(4):
            texts = [rng.bytes(int(size)) for size in rng.integers(0, 25, int(rng.integers(0, 80)))]
            texts = [bytes(byte % 3 for byte in text) if rng.integers(0, 2) else text for text in texts]
            some_valid = (rng.random(len(texts)) < 0.8).tolist()
            offsets = np.cumsum([0, *map(len, texts)]).astype("i8" if wide else "i4")
            bounds.add_texts(b"".join(texts), offsets.data, wide, mask_of(some_valid, 2), 2)
            keys += [int.from_bytes(text[:16].ljust(16, b"\0"), "big") for text in texts]
            valid += some_valid
        assert written(bounds) == expected(keys, valid, [False] * len(keys), rows)


def test_verdicts_hold_for_all_values() -> None:
    rng = np.random.default_rng(6)
    seen = set()
    for case in range(150):
        kind, bits = TYPES[case % len(TYPES)]
        rows = int(rng.integers(1, 6))
        data, keys, nan = random_values(kind, bits, 40, rng)
        valid = (rng.random(40) < rng.choice([0.5, 1.0])).tolist()
        bounds = ZoneBounds(rows)
        bounds.add_fixed(data, bits, ORDERS[kind], mask_of(valid, 0))
        ends = sorted({0, 1 << bits, *rng.choice(np.array(keys, object), 4).tolist()})[: int(rng.integers(0, 3)) * 2]
        pairs = [(low, high - 1) for low, high in zip(ends[::2], ends[1::2], strict=True)]
        test = IntervalTest(bits, ORDERS[kind], pairs, null=bool(rng.integers(0, 2)))
        passes = [
            any(low <= key <= high for low, high in pairs) if known else test.null
            for key, known in zip(keys, valid, strict=True)
        ]
        count = len(bounds)
        low, high, flags = np.empty((count, 2), np.uint64), np.empty((count, 2), np.uint64), np.empty(count, np.uint8)
        bounds.write(low.data, high.data, flags.data)
        out = np.empty(count, np.uint8)
        test.verdicts(low.data, high.data, flags.data, out.data)
        for zone, verdict in enumerate(out.tolist()):
            inside = passes[zone * rows : (zone + 1) * rows]
            has_nan = any(nan[zone * rows : (zone + 1) * rows])
            certain = {True: ALL_PASS, False: NONE_PASS}.get(all(inside) if len(set(inside)) == 1 else None, SOME_PASS)
            assert verdict in (SOME_PASS, certain)
            if rows == 1 and not has_nan:
                assert verdict == certain
            seen.add(verdict)
    assert seen == {ALL_PASS, NONE_PASS, SOME_PASS}


def test_impossible_arguments() -> None:
    with pytest.raises(CodecError):
        ZoneBounds(0)
    bounds = ZoneBounds(4)
    for arguments in ((bytes(5), 16, SIGNED), (b"", 24, SIGNED), (b"", 16, FLOAT), (b"", 8, 9), (bytes(9), 8, 0, b"1")):
        with pytest.raises(CodecError):
            bounds.add_fixed(*arguments)
    with pytest.raises(CodecError):
        bounds.add_fixed(bytes(8), 8, UNSIGNED, b"1", -1)
    with pytest.raises(CodecError):
        bounds.add_texts(b"", b"", False)
    with pytest.raises(CodecError):
        ZoneBounds(4).add_texts(b"abc", np.array([0, 4], np.int32).data, False)
    with pytest.raises(CodecError):
        ZoneBounds(4).add_texts(b"abc", np.array([2, 1], np.int64).data, True)
    bounds.add_fixed(bytes(9), 8, UNSIGNED)
    with pytest.raises(CodecError):
        bounds.write(bytearray(48), bytearray(47), bytearray(3))
    with pytest.raises(CodecError):
        IntervalTest(8, UNSIGNED, []).verdicts(bytes(16), bytes(15), bytes(1), bytearray(1))
