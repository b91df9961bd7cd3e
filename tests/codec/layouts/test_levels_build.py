"""Tests of levels built from Arrow data, compared with the plain-Python model, and turned back."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages.level_model import (
    Step,
    UndoneLayer,
    arrow_layers,
    assemble,
    build_levels,
    leaf_paths,
    nulls_seen,
    project,
    random_array,
)

from lancecodec import CodecError
from lancecodec.level_builder import Levels, build
from lancecodec.level_unraveler import LevelUnraveler

seeds = st.integers(0, 2**32 - 1)
INT = pa.int32()


def struct(*types: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field(f"c{i}", kind) for i, kind in enumerate(types)])


types = st.recursive(
    st.just(INT),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        inner.map(struct),
        st.tuples(inner, inner).map(lambda pair: struct(*pair)),
        st.tuples(inner, st.integers(1, 3)).map(lambda pair: pa.list_(*pair)),
    ),
    max_leaves=4,
)
lengths = st.one_of(st.integers(0, 12), st.sampled_from([63, 64, 65, 130]))


def words(stream: bytes | None) -> list[int] | None:
    return None if stream is None else np.frombuffer(stream, "<u2").tolist()


def leaf_values(levels: Levels, leaf: pa.Array) -> list[Any]:
    indices = np.empty(levels.num_visible_items, np.int64)
    levels.slot_indices(indices)
    starts, counts = np.empty((2, levels.num_slot_ranges), np.int64)
    levels.slot_ranges(starts, counts)
    ranges = [range(start, start + count) for start, count in zip(starts, counts, strict=True)]
    assert indices.tolist() == [index for each in ranges for index in each]
    if levels.slot_range is not None:
        start, count = levels.slot_range
        assert indices.tolist() == list(range(start, start + count))
    else:
        assert len(ranges) > 1
        assert all(ranges[i].stop < ranges[i + 1].start for i in range(len(ranges) - 1))
    return leaf.take(pa.array(indices)).to_pylist()


def dimensions_of(path: list[Step]) -> list[int]:
    return [step.dimension for step in reversed(path)]


def unravel(levels: Levels, path: list[Step]) -> LevelUnraveler:
    return LevelUnraveler(levels.repetition, levels.definition, levels.num_items, levels.kinds, dimensions_of(path))


@given(types, lengths, seeds)
def test_build_is_the_model(kind: pa.DataType, length: int, seed: int) -> None:
    array = random_array(np.random.default_rng(seed), kind, length)
    for path in leaf_paths(kind):
        layers, leaf = arrow_layers(array, path)
        levels = build(length, layers)
        model = build_levels([project(row, path) for row in array.to_pylist()], path, nulls_seen(array, path))
        assert list(levels.kinds) == model.kinds
        assert words(levels.repetition) == model.repetition
        assert words(levels.definition) == model.definition
        assert levels.num_items == len(model.visible)
        assert levels.num_visible_items == sum(model.visible)
        assert levels.max_repetition == sum(step.kind == "list" for step in path)
        assert levels.max_definition == sum({1: 0, 2: 0, 6: 2}.get(kind, 1) for kind in model.kinds)
        shown = [level <= levels.max_visible_definition for level in model.definition or [0] * len(model.visible)]
        assert shown == model.visible
        got = leaf_values(levels, leaf)
        assert [value for value, wanted in zip(got, model.values, strict=True) if wanted is not None] == [
            value for value in model.values if value is not None
        ]


class Column:
    """Outputs of one column, filled page by page."""

    def __init__(self, pages: list[tuple[Levels, LevelUnraveler]], path: list[Step], wide: bool) -> None:
        self.path, self.wide = path, wide
        self.totals = [sum(levels.lengths[i] for _, levels in pages) for i in range(len(path))]
        self.bits = [np.full((3 + total + 7) // 8 + 1, 0xA5, np.uint8) for total in self.totals]
        self.offsets = [np.full(1 + total + 2, -7, np.int64 if wide else np.int32) for total in self.totals]
        self.at = [0] * len(path)
        self.base = [0] * len(path)
        self.nulls = [0] * len(path)

    def append(self, unraveler: LevelUnraveler) -> None:
        for i, step in enumerate(reversed(self.path)):
            unraveler.validity(i, self.bits[i], 3 + self.at[i])
            self.nulls[i] += unraveler.null_counts[i]
            if step.kind == "list":
                self.base[i] = unraveler.offsets(i, self.offsets[i], self.wide, 1 + self.at[i], self.base[i])
            self.at[i] += unraveler.lengths[i]

    def layers(self) -> list[UndoneLayer]:
        done = []
        for i, step in enumerate(reversed(self.path)):
            bits = np.unpackbits(self.bits[i], bitorder="little")
            valid = bits[3 : 3 + self.totals[i]].astype(bool).tolist()
            untouched = np.unpackbits(np.full(len(self.bits[i]), 0xA5, np.uint8), bitorder="little")
            assert bits[:3].tolist() == untouched[:3].tolist()
            assert bits[3 + self.totals[i] :].tolist() == untouched[3 + self.totals[i] :].tolist()
            assert valid.count(False) == self.nulls[i]
            spans: list[int] = []
            if step.kind == "list":
                assert self.offsets[i][0] == -7
                assert self.offsets[i][-1] == -7
                assert self.offsets[i][1] == (0 if self.at[i] or self.base[i] == 0 else -7)
                spans = np.diff(self.offsets[i][1:-1]).tolist()
            done.append(UndoneLayer(valid, spans))
        return done


@given(types, lengths, st.booleans(), seeds)
def test_pages_come_back_as_one_column(kind: pa.DataType, length: int, wide: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    array = random_array(rng, kind, length)
    bounds = [0, *sorted(rng.integers(0, length + 1, rng.integers(0, 4)).tolist()), length]
    for path in leaf_paths(kind):
        pages, values = [], []
        for start, stop in itertools.pairwise(bounds):
            layers, leaf = arrow_layers(array.slice(start, stop - start), path)
            levels = build(stop - start, layers)
            values += leaf_values(levels, leaf)
            pages.append((levels, unravel(levels, path)))
        column = Column(pages, path, wide)
        for _, unraveler in pages:
            column.append(unraveler)
        assert column.totals[-1] == length
        done = column.layers()
        rows = [project(row, path) for row in array.to_pylist()]
        assert assemble(done, path, values) == rows


def build_rows(rows: list[Any], kind: pa.DataType, leaf: int = 0) -> Levels:
    array = pa.array(rows, kind)
    path = list(leaf_paths(kind))[leaf]
    return build(len(rows), arrow_layers(array, path)[0])


GOLDEN: list[tuple[Any, ...]] = [
    (INT, [1, 2, None], [3], None, [0, 0, 1]),
    (INT, [1, 2], [1], None, None),
    (pa.list_(INT), [[1, 2], [], None, [None, 3]], [3, 6], [1, 0, 1, 1, 1, 0], [0, 0, 3, 2, 1, 0]),
    (pa.list_(INT), [[1], [], None, [None, 2]], [3, 6], [1, 1, 1, 1, 0], [0, 3, 2, 1, 0]),
    (
        pa.list_(pa.list_(INT)),
        [[[1], []], None, [None, [None]]],
        [3, 6, 4],
        [2, 1, 2, 2, 1],
        [0, 3, 4, 2, 1],
    ),
    (
        pa.list_(struct(pa.list_(INT))),
        [[{"c0": [1, 2]}, None, {"c0": []}], [], None, [{"c0": None}, {"c0": [None]}]],
        [3, 6, 3, 6],
        [2, 0, 1, 1, 2, 2, 2, 1],
        [0, 0, 4, 3, 6, 5, 2, 1],
    ),
    (pa.list_(INT), [[None], [None, None], None, []], [3, 6], [1, 1, 0, 1, 1], [1, 1, 1, 2, 3]),
    (
        pa.list_(struct(INT), 2),
        [[{"c0": 1}, {"c0": None}], None, [{"c0": 4}, None]],
        [3, 3, 3],
        None,
        [0, 1, 3, 3, 0, 2],
    ),
]


@pytest.mark.parametrize(("kind", "rows", "kinds", "repetition", "definition"), GOLDEN)
def test_golden(
    kind: pa.DataType, rows: list[Any], kinds: list[int], repetition: list[int] | None, definition: list[int] | None
) -> None:
    levels = build_rows(rows, kind)
    assert list(levels.kinds) == kinds
    assert words(levels.repetition) == repetition
    assert words(levels.definition) == definition


def test_null_type_below_null_structs() -> None:
    array = pa.array([{"c0": None}, None], struct(pa.null()))
    levels = build(2, arrow_layers(array, [Step("struct"), Step("leaf")])[0])
    assert (levels.kinds, words(levels.definition)) == ((3, 3), [1, 2])
    levels = build(3, [("null",)])
    assert (levels.kinds, words(levels.definition), levels.slot_range) == ((3,), [1, 1, 1], (0, 3))
    assert build(0, [("null",)]).kinds == (1,)


@pytest.mark.parametrize("masked", [[], [5], [None], None])
def test_lists_below_null_structs_count_as_null(masked: list[int] | None) -> None:
    """Lists below null structs are null, whether they have items or are empty, as in the files of the reference."""
    lists = pa.array([masked or [], [3], masked], pa.list_(INT))
    array = pa.Array.from_buffers(struct(pa.list_(INT)), 3, [pa.py_buffer(b"\x02")], children=[lists])
    levels = build(3, arrow_layers(array, next(leaf_paths(array.type)))[0])
    assert levels.kinds == (1, 4, 3)
    assert words(levels.repetition) == [1, 1, 1]
    assert words(levels.definition) == [2, 0, 2]
    assert levels.slot_range == (len(masked or []), 1)


@pytest.mark.parametrize("masked", [2, None])
def test_items_below_null_structs_count_as_null(masked: int | None) -> None:
    array = pa.Array.from_buffers(struct(INT), 3, [pa.py_buffer(b"\x05")], children=[pa.array([1, masked, 3], INT)])
    levels = build(3, arrow_layers(array, next(leaf_paths(array.type)))[0])
    assert levels.kinds == (3, 3)
    assert words(levels.definition) == [0, 2, 0]


def test_long_lists_and_many_layers() -> None:
    depth = 300
    layers: list[Any] = [("list", np.array([0, 1, 1], np.int32), False, b"\x03", 0)]
    layers += [("list", np.array([0, 1], np.int32), False, None, 0)] * (depth - 1)
    levels = build(2, [*layers, ("item", b"\x00", 0)])
    assert words(levels.repetition) == [depth, depth]
    assert words(levels.definition) == [1, 2]
    back = LevelUnraveler(levels.repetition, levels.definition, 2, levels.kinds)
    assert back.lengths == (1,) * depth + (2,)
    assert back.null_counts == (1,) + (0,) * depth
    offsets = np.array([0, 100_000, 100_000, 300_000], np.int64)
    levels = build(3, [("list", offsets, True, None, 0), ("item", None, 0)])
    assert levels.kinds == (1, 5)
    starts = np.flatnonzero(np.frombuffer(levels.repetition or b"", "<u2"))
    assert starts.tolist() == [0, 100_000, 100_001]


def test_too_many_layers() -> None:
    layers: list[Any] = [("list", np.array([0, 1], np.int32), False, None, 0)] * 65_536
    with pytest.raises(CodecError, match="65535 repetition"):
        build(1, [*layers, ("item", None, 0)])
    # one null of its own in each struct layer
    count = 65_600
    bits = np.full(count // 4 + 1, 0xFF, np.uint8)
    bits[count // 8] = 0xFE
    layers = [("item", bits, count - i) for i in range(65_536)]
    with pytest.raises(CodecError, match="65535 definition"):
        build(count, layers)


@pytest.mark.parametrize(
    ("rows", "layers"),
    [
        (-1, [("item", None, 0)]),
        (2**32, [("item", None, 0)]),
        (1, []),
        (1, [("list", bytes(8), False, None, 0)]),
        (1, [("item", None)]),
        (1, [("tree", None, 0)]),
        (9, [("item", b"\xff", 0)]),
        (1, [("item", b"\xff", 8)]),
        (1, [("item", b"\xff", -1)]),
        (1, [("item", b"\xff", 2**62)]),
        (2, [("list", bytes(8), False, None, 0), ("item", None, 0)]),
        (2, [("list", bytes(16), True, None, 0), ("item", None, 0)]),
        (2, [("list", np.array([0, 2, 1], np.int32), False, None, 0), ("item", None, 0)]),
        (2, [("list", np.array([-1, 2, 3], np.int32), False, None, 0), ("item", None, 0)]),
        (1, [("list", np.array([0, 2**40]), True, None, 0), ("item", None, 0)]),
        (3, [("list", np.array([0, 2**31, 2**32, 2**32 + 1]), True, None, 0), ("item", None, 0)]),
        (1, [("list", np.array([0, 9], np.int32), False, None, 0), ("item", b"\xff", 0)]),
        (1, [("list", np.array([7, 9], np.int32), False, None, 0), ("item", b"\xff", 0)]),
        (1, [("fixed_size_list", 0, None, 0), ("item", None, 0)]),
        (1, [("fixed_size_list", -2, None, 0), ("item", None, 0)]),
        (2**20, [("fixed_size_list", 2**13, None, 0), ("item", None, 0)]),
    ],
)
def test_build_rejects(rows: int, layers: list[Any]) -> None:
    with pytest.raises(CodecError):
        build(rows, layers)
