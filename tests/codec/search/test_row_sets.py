"""Tests of serialized sets of 64-bit numbers against plain Python and CRoaring."""

from __future__ import annotations

import struct

import numpy as np
import pyroaring
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError
from lancecodec.search import row_sets
from lancecodec.search.row_sets import RowSets

FORMS = [(8, False), (4, True)]


def numbers(seed: int) -> np.ndarray:
    """Return a set of numbers: sparse, or dense around some places."""
    rng = np.random.default_rng(seed)
    kind = seed % 4
    if kind == 0:
        return np.unique(rng.integers(0, 1 << 40, seed % 50, np.uint64))
    if kind == 1:
        return np.unique(rng.integers(0, 1 << 18, 9000, np.uint64)) + np.uint64(5 << 32)
    if kind == 2:
        return np.unique(
            np.concatenate([rng.integers(0, 1 << 17, 40_000, np.uint64), [1 << 63, (1 << 64) - 1]])
        ).astype(np.uint64)
    return np.arange(4095 + seed % 5, dtype=np.uint64) + np.uint64(65536 * (seed % 7))


def encoded(sets: list[np.ndarray], form: tuple[int, bool]) -> tuple[bytes, np.ndarray]:
    """Return sets, and their positions."""
    values = np.concatenate([np.empty(0, np.uint64), *sets])
    stops, bounds = np.cumsum([len(each) for each in sets], dtype=np.int64), np.empty(len(sets) + 1, np.int64)
    row_sets.measure(values, stops, *form, bounds)
    out = np.empty(int(bounds[-1]), np.uint8)
    row_sets.encode(values, stops, *form, bounds, out)
    return out.tobytes(), bounds


def bitmap(lower: list[int]) -> bytes:
    """Return a bitmap of 32-bit numbers without runs."""
    containers: dict[int, list[int]] = {}
    for each in lower:
        containers.setdefault(each >> 16, []).append(each & 0xFFFF)
    heads, contents = b"", b""
    offsets, position = b"", 8 + 8 * len(containers)
    for key, values in containers.items():
        bits = sum(1 << value for value in values).to_bytes(8192, "little") if len(values) > 4096 else b""
        content = bits or struct.pack(f"<{len(values)}H", *values)
        heads += struct.pack("<HH", key, len(values) - 1)
        offsets += struct.pack("<I", position + len(contents))
        contents += content
    return struct.pack("<II", 0x303A, len(containers)) + heads + offsets + contents


def model(values: np.ndarray, form: tuple[int, bool]) -> bytes:
    """Return the serialized set, whose bitmaps CRoaring reads."""
    keys = np.unique(values >> np.uint64(32)).tolist()
    parts = [struct.pack("<I" if form[0] == 4 else "<Q", len(keys))]
    for key in keys:
        lower = values[values >> np.uint64(32) == key].astype(np.uint32).tolist()
        data = bitmap(lower)
        assert pyroaring.BitMap.deserialize(data).to_array().tolist() == lower
        parts.append(struct.pack("<II", key, len(data)) if form[1] else struct.pack("<I", key))
        parts.append(data)
    return b"".join(parts)


def decoded(known: RowSets, count: int) -> list[list[int]]:
    """Return the numbers of all sets."""
    stops = np.empty(count, np.int64)
    counts = np.empty(known.describe(stops, np.empty(0, np.int64)), np.int64)
    known.describe(stops, counts)
    found = []
    for start, stop in zip([0, *stops.tolist()], stops.tolist(), strict=False):
        out = np.empty(int(counts[start:stop].sum()), np.uint64)
        known.decode(start, stop, out)
        found.append(out.tolist())
    return found


SEEDS = st.lists(st.integers(0, 400), max_size=6)


@given(SEEDS, st.sampled_from(FORMS))
def test_sets_are_written_and_read(seeds: list[int], form: tuple[int, bool]) -> None:
    sets = [numbers(seed) for seed in seeds]
    data, bounds = encoded(sets, form)
    for each, start, stop in zip(sets, bounds.tolist(), bounds[1:].tolist(), strict=False):
        assert data[start:stop] == model(each, form)
    assert decoded(RowSets(data, bounds, *form), len(sets)) == [each.tolist() for each in sets]


@given(SEEDS.filter(len), st.sampled_from(FORMS))
def test_intersections(seeds: list[int], form: tuple[int, bool]) -> None:
    sets = [numbers(seed) for seed in seeds]
    if len(sets) > 1:
        sets[1] = np.union1d(sets[0][::2], sets[1])
    expected = set.intersection(*(set(each.tolist()) for each in sets))
    out = np.empty(min(map(len, sets)), np.uint64)
    count = RowSets(*encoded(sets, form), *form).intersect(out)
    assert out[:count].tolist() == sorted(expected)


@given(SEEDS.filter(len), st.lists(st.lists(st.integers(0, 5), max_size=5), max_size=4), st.sampled_from(FORMS))
def test_unions(seeds: list[int], unions: list[list[int]], form: tuple[int, bool]) -> None:
    sets = [numbers(seed) for seed in seeds]
    groups = [[each % len(sets) for each in union] for union in unions]
    data, places = encoded(sets, form)
    order = np.array([each for group in groups for each in group], np.int64)
    stops, bounds = np.cumsum([len(group) for group in groups], dtype=np.int64), np.empty(len(groups) + 1, np.int64)
    out = np.empty(int(np.diff(places)[order].sum()) + 8 * len(groups), np.uint8)
    RowSets(data, places, *form).unite(order, stops, bounds, out)
    for group, start, stop in zip(groups, bounds.tolist(), bounds[1:].tolist(), strict=False):
        united = np.unique(np.concatenate([np.empty(0, np.uint64), *(sets[each] for each in group)]))
        assert out[start:stop].tobytes() == model(united, form)


def test_the_empty_intersection_and_positions() -> None:
    assert RowSets(b"", np.zeros(1, np.int64), 8, False).intersect(np.empty(0, np.uint64)) == 0
    for bounds in ([0, 9], [5, 2], [-1, 3]):
        with pytest.raises(CodecError, match="positions"):
            RowSets(bytes(8), np.array(bounds, np.int64), 8, False)
    with pytest.raises(CodecError, match="at least one"):
        RowSets(b"", np.empty(0, np.int64), 8, False)


@pytest.mark.parametrize("form", FORMS)
def test_cut_sets_are_errors(form: tuple[int, bool]) -> None:
    data, _ = encoded([numbers(1)], form)
    for size in [*range(60), len(data) - 1, len(data) // 2]:
        with pytest.raises(CodecError):
            RowSets(data[:size], np.array([0, size]), *form)
    with pytest.raises(CodecError):
        RowSets(data + b"\0", np.array([0, len(data) + 1]), *form)


def test_damaged_sets_are_errors_or_other_sets() -> None:
    """Whatever a byte is changed to, results are ascending numbers."""
    rng = np.random.default_rng(3)
    sets = [numbers(seed) for seed in (1, 2, 4, 7)]
    data, bounds = encoded(sets, (8, False))
    failed = 0
    for _ in range(400):
        changed = bytearray(data)
        low = int(bounds[rng.integers(0, 4)])
        changed[low + int(rng.integers(0, 40 if rng.random() < 0.5 else 8000)) % (len(data) - low)] ^= 1 << int(
            rng.integers(0, 8)
        )
        try:
            known = RowSets(bytes(changed), bounds, 8, False)
            for found in decoded(known, 4):
                assert found == sorted(set(found))
            known.unite(np.arange(4), np.array([4]), np.empty(2, np.int64), np.empty(len(data) + 8, np.uint8))
            known.intersect(np.empty(1 << 20, np.uint64))
        except CodecError:
            failed += 1
    assert failed > 100


def test_runs_are_not_known() -> None:
    runs = pyroaring.BitMap(range(9000))
    runs.run_optimize()
    data = struct.pack("<QI", 1, 0) + runs.serialize()
    with pytest.raises(CodecError, match="header"):
        RowSets(data, np.array([0, len(data)]), 8, False)


def test_wrong_arguments() -> None:
    values, bounds = np.array([3, 2], np.uint64), np.empty(2, np.int64)
    stops = np.array([2], np.int64)
    row_sets.measure(values, stops, 8, False, bounds)
    with pytest.raises(CodecError):
        row_sets.encode(values, stops, 8, False, bounds, np.empty(int(bounds[1]), np.uint8))
    with pytest.raises(CodecError):
        row_sets.encode(np.sort(values), stops, 8, False, bounds, np.empty(int(bounds[1]) - 1, np.uint8))
    with pytest.raises(CodecError, match="not those of their numbers"):
        row_sets.encode(np.sort(values), stops, 8, False, np.array([0, 9]), np.empty(9, np.uint8))
    with pytest.raises(CodecError, match="not supported"):
        row_sets.measure(values, stops, 5, False, bounds)
    with pytest.raises(CodecError):
        row_sets.measure(values, np.array([3]), 8, False, bounds)
    known = RowSets(*encoded([numbers(1)], (8, False)), 8, False)
    with pytest.raises(CodecError, match="out of range"):
        known.unite(np.array([1]), np.array([1]), np.empty(2, np.int64), np.empty(99, np.uint8))
    with pytest.raises(CodecError):
        known.unite(np.array([0]), np.array([1]), np.empty(2, np.int64), np.empty(9, np.uint8))
    with pytest.raises(CodecError, match="no containers"):
        known.decode(0, 99, np.empty(5, np.uint64))
    with pytest.raises(CodecError, match="places"):
        known.decode(0, 1, np.empty(5, np.uint64))
    with pytest.raises(CodecError):
        RowSets(*encoded([numbers(1), numbers(1)], (8, False)), 8, False).intersect(np.empty(1, np.uint64))
