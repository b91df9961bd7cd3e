"""Tests of unravelling, compared with the plain-Python model, and of streams that no writer makes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages.level_model import UndoneLayer, undo_levels

from lancecodec import CodecError
from lancecodec.level_unraveler import LevelUnraveler

LISTS = (2, 4, 5, 6)
USED = {1: 0, 2: 0, 3: 1, 4: 1, 5: 1, 6: 2}
kinds = st.lists(st.integers(1, 6), min_size=1, max_size=6)
seeds = st.integers(0, 2**32 - 1)


def stream(levels: list[int] | np.ndarray | None, skew: int = 0) -> memoryview | None:
    """Return levels at a chosen address."""
    if levels is None:
        return None
    return memoryview(b"." * skew + np.asarray(levels, "<u2").tobytes())[skew:]


def undone(unraveler: LevelUnraveler, layer_kinds: list[int]) -> list[UndoneLayer]:
    layers = []
    for i, kind in enumerate(layer_kinds):
        count = unraveler.lengths[i]
        bits, offsets = np.zeros((count + 7) // 8, np.uint8), np.zeros(count + 1, np.int32)
        unraveler.validity(i, bits)
        valid = np.unpackbits(bits, bitorder="little")[:count].astype(bool).tolist()
        assert valid.count(False) == unraveler.null_counts[i]
        lengths = []
        if kind in LISTS:
            assert unraveler.offsets(i, offsets, False) == offsets[-1]
            assert offsets[0] == 0
            lengths = np.diff(offsets).tolist()
        layers.append(UndoneLayer(valid, lengths))
    return layers


def random_levels(rng: np.random.Generator, layer_kinds: list[int], count: int) -> tuple[list[int], list[int]]:
    """Return random consistent levels: an item continues only a list of a layer that exists at its level."""
    lists = sum(kind in LISTS for kind in layer_kinds)
    inside = [0]  # list depth from which a level is meaningful
    for i, kind in enumerate(layer_kinds):
        depth = sum(inner in LISTS for inner in layer_kinds[: i + 1])
        inside += [depth] * USED[kind]
    definition = rng.choice(len(inside), count, p=weights(rng, len(inside)))
    repetition = []
    for i, level in enumerate(definition):
        low = min(inside[level], lists)
        repetition.append(lists if i == 0 else int(rng.integers(low, lists + 1)))
    return repetition, definition.tolist()


def weights(rng: np.random.Generator, count: int) -> np.ndarray:
    share = rng.random(count) * (rng.random(count) < 0.7)
    share[0] += rng.choice([0.01, 1, 30])
    return share / share.sum()


@given(kinds, st.sampled_from([0, 1, 5, 63, 64, 65, 200, 700]), st.integers(0, 3), seeds)
def test_unravel_is_the_model(layer_kinds: list[int], count: int, skew: int, seed: int) -> None:
    repetition, definition = random_levels(np.random.default_rng(seed), layer_kinds, count)
    rep = stream(repetition, skew) if any(kind in LISTS for kind in layer_kinds) else None
    defined = stream(definition, skew) if any(definition) or seed % 2 else None
    unraveler = LevelUnraveler(rep, defined, count, layer_kinds)
    model = undo_levels(repetition, definition, count, layer_kinds, [0] * len(layer_kinds))
    assert undone(unraveler, layer_kinds) == model


@given(kinds, st.sampled_from([1, 5, 64, 130]), seeds)
def test_damaged_levels_are_refused_or_mean_something(layer_kinds: list[int], count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    repetition, definition = random_levels(rng, layer_kinds, count)
    for levels in (repetition, definition):
        for _ in range(rng.integers(0, 3)):
            levels[rng.integers(0, count)] = int(rng.choice([0, 1, 2, 3, 5, 7, 9, 255, 65535]))
    has_lists = any(kind in LISTS for kind in layer_kinds)
    try:
        unraveler = LevelUnraveler(stream(repetition), stream(definition), count, layer_kinds)
    except CodecError:
        assert not consistent(repetition, definition, layer_kinds)
    else:
        assert consistent(repetition, definition, layer_kinds)
        model = undo_levels(repetition if has_lists else None, definition, count, layer_kinds, [0] * len(layer_kinds))
        assert undone(unraveler, layer_kinds) == model


def consistent(repetition: list[int], definition: list[int], layer_kinds: list[int]) -> bool:
    lists = sum(kind in LISTS for kind in layer_kinds)
    inside = [0]
    for i, kind in enumerate(layer_kinds):
        inside += [sum(inner in LISTS for inner in layer_kinds[: i + 1])] * USED[kind]
    if repetition[0] != lists or max(repetition) > lists or max(definition) >= len(inside):
        return False
    return all(rep >= inside[level] for rep, level in zip(repetition, definition, strict=True))


def test_spec_example_of_masked_layers() -> None:
    """Layers item, list, struct, list = 3, 6, 3, 6 give the streams of five rows."""
    unraveler = LevelUnraveler(stream([2, 0, 1, 1, 2, 2, 2, 1]), stream([0, 0, 4, 3, 6, 5, 2, 1]), 8, [3, 6, 3, 6])
    leaf, inner, middle, outer = undone(unraveler, [3, 6, 3, 6])
    assert leaf.valid == [True, True, False]
    assert (inner.lengths, inner.valid) == ([2, 0, 0, 0, 1], [True, False, True, False, True])
    assert middle.valid == [True, False, True, True, True]
    assert (outer.lengths, outer.valid) == ([3, 0, 0, 2], [True, True, False, True])


def test_fixed_size_lists_between_lists() -> None:
    """list<fixed_size_list<struct<list<int>>, 2>> [[[1, 2], []], null], [] is unravelled."""
    rep, definition = stream([2, 0, 1, 1, 1, 2]), stream([0, 0, 2, 4, 4, 5])
    unraveler = LevelUnraveler(rep, definition, 6, [1, 6, 3, 3, 5], [None, None, None, 2, None])
    assert unraveler.lengths == (2, 4, 4, 2, 2)
    assert unraveler.null_counts == (0, 2, 2, 1, 0)


@pytest.mark.parametrize(
    ("rep", "definition", "layer_kinds", "dimensions"),
    [
        ([0], [0], [1, 2], None),  # does not start with a row
        ([2], [0], [1, 2], None),  # more levels than there are lists
        (None, [0], [1, 2], None),  # no repetition stream
        ([1], [0], [1], None),  # repetition without lists
        ([0], [1], [1], None),  # a null in a layer without nulls
        ([1, 0], [0, 2], [3, 4], None),  # a null list continues a list
        ([2, 1], [0, 1], [1, 2, 4], None),  # a null outer list starts within an outer list
        ([1], [0], [0, 2], None),
        ([1], [0], [7, 2], None),
        ([], [], [], None),
        ([0, 0, 0], [0, 0, 0], [1, 1], [0, 2]),  # one and a half lists
        ([0], [0], [1, 1], [0, -1]),
        ([0], [0], [1, 1], [1, 0]),  # a leaf is not a fixed-size list
        ([0], [0], [1, 1], [0]),
        ([1], [0], [1, 2], [0, 1]),
        ([1, 1], [0, 0], [1, 1, 2], [0, 2, 0]),  # a list starts within a fixed-size list
        ([1, 1, 0], [0, 2, 0], [3, 1, 4], [0, 2, 0]),  # a null list within a fixed-size list
    ],
)
def test_contradictions(
    rep: list[int] | None, definition: list[int], layer_kinds: list[int], dimensions: list[int] | None
) -> None:
    with pytest.raises(CodecError):
        LevelUnraveler(stream(rep), stream(definition), len(definition), layer_kinds, dimensions)


@pytest.mark.parametrize("at", [1, 62, 63, 64, 65, 127, 128, 198, 199])
@pytest.mark.parametrize("wrong", ["rep", "def", "continues"])
def test_damage_anywhere(at: int, wrong: str) -> None:
    rep, definition = np.ones(200, np.uint16), np.zeros(200, np.uint16)
    LevelUnraveler(stream(rep), stream(definition), 200, [3, 6])
    if wrong == "rep":
        rep[at] = 2
    elif wrong == "def":
        definition[at] = 4
    else:
        rep[at], definition[at] = 0, 2
    with pytest.raises(CodecError, match="level does not exist"):
        LevelUnraveler(stream(rep), stream(definition), 200, [3, 6])


@pytest.mark.parametrize("size", [0, 3, 5, 6, 8])
def test_streams_of_another_length(size: int) -> None:
    with pytest.raises(CodecError, match="shorter or longer"):
        LevelUnraveler(None, bytes(size), 2, [3])
    with pytest.raises(CodecError, match="shorter or longer"):
        LevelUnraveler(bytes(size), None, 2, [1])


def test_no_items_and_no_streams() -> None:
    unraveler = LevelUnraveler(b"", b"", 0, [3, 6, 3])
    assert unraveler.lengths == (0, 0, 0)
    out = np.full(1, -1, np.int32)
    assert unraveler.offsets(1, out, False, 0, 41) == 41
    assert out.tolist() == [41]
    unraveler = LevelUnraveler(None, None, 10**6, [3, 3])
    assert unraveler.lengths == (10**6, 10**6)
    assert unraveler.null_counts == (0, 0)
    bits = np.zeros(125_000, np.uint8)
    unraveler.validity(0, bits)
    assert (bits == 255).all()
    with pytest.raises(CodecError):
        LevelUnraveler(None, None, -1, [3])
    with pytest.raises(CodecError):
        LevelUnraveler(None, None, 2**32, [3])


def test_outputs_are_checked() -> None:
    unraveler = LevelUnraveler(stream([1, 0, 1]), stream([0, 1, 2]), 3, [3, 4])
    assert unraveler.lengths == (2, 2)
    for layer, at, size in [(-1, 0, 9), (2, 0, 9), (0, 7, 1), (0, -1, 1), (0, 2**62, 1), (0, 0, 0)]:
        with pytest.raises(CodecError):
            unraveler.validity(layer, bytearray(size), at)
    for layer, at, size in [(0, 0, 99), (2, 0, 99), (1, 0, 11), (1, 1, 12), (1, -1, 12), (1, 2**62, 12)]:
        with pytest.raises(CodecError):
            unraveler.offsets(layer, bytearray(size), False, at)
    for base, wide in [(2**31 - 2, False), (-1, False), (2**63 - 2, True)]:
        with pytest.raises(CodecError, match="not fit"):
            unraveler.offsets(1, bytearray(24), wide, 0, base)
    out = np.zeros(3, np.int32)
    assert unraveler.offsets(1, out, False, 0, 2**31 - 3) == 2**31 - 1
    assert out.tolist() == [2**31 - 3, 2**31 - 1, 2**31 - 1]
    with pytest.raises(OverflowError):
        unraveler.offsets(1, out, True, 0, 2**63)
