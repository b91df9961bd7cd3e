from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import levels
from lancecodec.level_builder import Levels, build
from lancecodec.level_unraveler import LevelUnraveler


@dataclass(frozen=True)
class Shape:
    """Layers of a page, outermost first, in the form of the builder."""

    rows: int
    layers: list[tuple[Any, ...]]


def item_layer(random: np.random.Generator, count: int, nulls: float) -> tuple[Any, ...]:
    return ("item", np.packbits(random.random(count) >= nulls, bitorder="little") if nulls else None, 0)


def list_layer(
    random: np.random.Generator, lists: int, mean: int, holes: float, under_nulls: bool = False
) -> tuple[int, tuple[Any, ...]]:
    """Return lists of 1 to twice `mean` elements, minus one; `holes` is the share of null and of empty lists."""
    valid = random.random(lists) >= holes
    lengths = random.integers(1, 2 * mean, lists) * (random.random(lists) >= holes) * (valid | under_nulls)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return int(offsets[-1]), ("list", offsets, False, np.packbits(valid, bitorder="little") if holes else None, 0)


def struct(nulls: float) -> Shape:
    random = rng()
    return Shape(VALUES, [item_layer(random, VALUES, nulls), item_layer(random, VALUES, nulls)])


def lists(mean: int, holes: float, nulls: float, under_nulls: bool = False) -> Shape:
    random, rows = rng(), 2 * VALUES // (mean + 1)
    count, layer = list_layer(random, rows, mean, holes, under_nulls)
    return Shape(rows, [layer, item_layer(random, count, nulls)])


def nested(mean: int, holes: float, with_struct: bool, under_nulls: bool = False) -> Shape:
    random, rows = rng(), 2 * VALUES // (mean + 1) ** 2
    middle, outer = list_layer(random, rows, mean, holes, under_nulls)
    count, inner = list_layer(random, middle, mean, holes, under_nulls)
    between = [item_layer(random, middle, 0.1)] if with_struct else []
    return Shape(rows, [outer, *between, inner, item_layer(random, count, 0.1)])


def stream_bytes(page: Levels) -> int:
    return sum(len(stream) for stream in (page.repetition, page.definition) if stream is not None)


def building(make: Callable[[], Shape]) -> Case:
    shape = make()
    return Case(lambda: build(shape.rows, shape.layers), stream_bytes(build(shape.rows, shape.layers)))


def unravelling(make: Callable[[], Shape]) -> Case:
    shape = make()
    page = build(shape.rows, shape.layers)
    sizes = LevelUnraveler(page.repetition, page.definition, page.num_items, page.kinds).lengths
    bits = [np.zeros(size // 8 + 1, np.uint8) for size in sizes]
    ends = [np.zeros(size + 1, np.int32) for size in sizes]
    list_layers = [i for i, kind in enumerate(page.kinds) if kind in (2, 4, 5, 6)]

    def work() -> None:
        unraveler = LevelUnraveler(page.repetition, page.definition, page.num_items, page.kinds)
        for i, nulls in enumerate(unraveler.null_counts):
            if nulls:
                unraveler.validity(i, bits[i])
        for i in list_layers:
            unraveler.offsets(i, ends[i], False)

    return Case(work, stream_bytes(page))


def list_page() -> Levels:
    shape = lists(5, 0.1, 0.1)
    return build(shape.rows, shape.layers)


def cutting() -> Case:
    page = list_page()
    counts = np.full(page.num_visible_items // 1024, 1024)
    counts[-1] += page.num_visible_items - counts.sum()
    ends, out = np.zeros_like(counts), np.zeros(2 * len(counts), np.uint64)
    assert page.definition is not None
    definition, repetition = page.definition, page.repetition
    assert repetition is not None

    def work() -> None:
        levels.cut(definition, page.num_items, page.max_visible_definition, counts, ends)
        levels.repetition_index(repetition, page.max_repetition, ends, out)

    return Case(work, stream_bytes(page))


def rows() -> Case:
    page = list_page()
    repetition = page.repetition
    assert repetition is not None
    out = np.zeros(levels.count_rows(repetition, 1), np.int64)
    return Case(lambda: levels.row_starts(repetition, 1, out), len(repetition))


def words(unpack: bool) -> Case:
    page = list_page()
    out = np.zeros(page.num_items, np.uint8)
    streams = np.zeros((2, page.num_items), np.uint16)
    if unpack:
        return Case(
            lambda: levels.unpack_control_words(out, page.num_items, 1, 2, streams[0], streams[1]), streams.nbytes
        )
    return Case(
        lambda: levels.pack_control_words(page.repetition, page.definition, page.num_items, 1, 2, out), streams.nbytes
    )


SHAPES: dict[str, Callable[[], Shape]] = {
    "nullable item": lambda: Shape(VALUES, [item_layer(rng(), VALUES, 0.1)]),
    "struct<item>, nulls in both": partial(struct, 0.1),
    "list<item> of 5, no nulls": partial(lists, 5, 0.0, 0.0),
    "list<item> of 5, null items": partial(lists, 5, 0.0, 0.1),
    "list<item> of 5, null and empty lists": partial(lists, 5, 0.1, 0.0),
    "list<item> of 5, null and empty lists, null items": partial(lists, 5, 0.1, 0.1),
    "list<item> of 1, mostly null or empty": partial(lists, 1, 0.8, 0.1),
    "list<item> of 100, null and empty lists, null items": partial(lists, 100, 0.1, 0.1),
    "list<list<item>> of 5": partial(nested, 5, 0.1, False),
    "list<struct<list<item>>> of 5": partial(nested, 5, 0.1, True),
    "list<item> of 5, elements under null lists": partial(lists, 5, 0.1, 0.1, True),
    "list<list<item>> of 5, elements under null lists": partial(nested, 5, 0.1, False, True),
}

CASES: dict[str, Callable[[], Case]] = {
    **{f"levels.build, {name}": partial(building, shape) for name, shape in SHAPES.items()},
    **{f"levels.unravel, {name}": partial(unravelling, shape) for name, shape in SHAPES.items()},
    "levels.cut, repetition_index": cutting,
    "levels.row_starts": rows,
    "levels.control words, pack": partial(words, False),
    "levels.control words, unpack": partial(words, True),
}
