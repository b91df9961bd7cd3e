from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import levels
from lancecodec.level_builder import Levels, build
from lancecodec.level_unraveler import LevelUnraveler


def bitmap(c: Chaos, slots: int) -> tuple[Any, int]:
    bit = c.random.choice([0, 0, 3, 8, 17])
    if c.random.random() < 0.4:
        return None, bit
    bits = np.zeros((slots + bit + 7) // 8 + c.random.choice([0, 0, 1]), np.uint8)
    bits[:] = c.rng.integers(0, 256, len(bits)) | c.random.choice([0, 0xFF, 0x77])
    if c.random.random() < 0.02:
        bits = bits[:-1]
    return bits, bit if c.random.random() < 0.98 else c.number()


def offsets(c: Chaos, slots: int) -> tuple[np.ndarray, bool, int]:
    wide = c.random.random() < 0.4
    values = np.cumsum(c.rng.integers(0, c.random.choice([1, 2, 6]), slots + 1)) + c.random.choice([0, 5])
    elements = int(values[-1])
    if c.random.random() < 0.03:
        wrong = c.random.choice([-1, 2**40, -(2**63), 2**63 - 1, 2**31 - 1])
        # 2^31 elements would be valid at the end, and need gigabytes of levels
        values[c.random.randrange(slots if wrong == 2**31 - 1 and slots else slots + 1)] = wrong
    with np.errstate(over="ignore"):
        return values.astype(np.int64 if wide else np.int32), wide, elements


def small_or_too_large(c: Chaos) -> Any:
    """Return any number except valid ones that need gigabytes of levels."""
    number = c.number()
    return 2**33 if isinstance(number, int) and 10**6 < number < 2**33 else number


def page(c: Chaos) -> Levels:
    """Return a page of random layers, some of which do not fit together."""
    rows = c.random.choice([0, 1, 5, 63, 64, 65, 200])
    slots, layers = rows, list[tuple[Any, ...]]()
    for _ in range(c.random.randint(0, 4)):
        kind = c.random.choice(["item", "list", "list", "fixed_size_list"])
        if kind == "list":
            ends, wide, elements = offsets(c, slots)
            layers.append((kind, ends, wide, *bitmap(c, slots)))
            slots = elements
        elif kind == "item":
            layers.append((kind, *bitmap(c, slots)))
        else:
            dimension = c.random.choice([1, 2, 3])
            wrong = dimension if c.random.random() < 0.97 else small_or_too_large(c)
            layers.append((kind, wrong, *bitmap(c, slots)))
            slots *= dimension
    layers.append(("item", *bitmap(c, slots)) if c.random.random() < 0.95 else ("null",))
    if c.random.random() < 0.02:
        rows = small_or_too_large(c)
    built = build(rows, layers)
    if built.num_items > 10**6:  # only rows without a bitmap: valid, and too much work for a fuzzer
        raise ValueError("too many rows")
    return built


def building(c: Chaos) -> object:
    built = page(c)
    indices = np.empty(built.num_visible_items, np.int64)
    built.slot_indices(indices)
    starts, lengths = np.empty((2, built.num_slot_ranges), np.int64)
    return built.slot_ranges(starts, lengths)


def stream(c: Chaos, levels_: bytes | None) -> Any:
    """Return the stream in separate heap memory, sometimes with other levels or another length."""
    if levels_ is None:
        return None
    values = np.frombuffer(levels_, np.uint16).copy()
    if len(values) and c.random.random() < 0.15:
        values[c.random.randrange(len(values))] = c.random.choice([0, 1, 2, 5, 65_535])
    data = values.view(np.uint8)
    if c.random.random() < 0.03:
        data = data[:-1].copy()
    return data


def unravel(c: Chaos) -> object:
    built = page(c)
    kinds = list(built.kinds)
    if c.random.random() < 0.1:
        kinds[c.random.randrange(len(kinds))] = c.random.choice([0, 1, 2, 3, 4, 5, 6, 7])
    dimensions = [c.random.choice([0, 0, 0, 1, 2, c.number()]) for _ in kinds] if c.random.random() < 0.2 else None
    count = built.num_items if c.random.random() < 0.97 else c.number()
    if isinstance(count, int) and 10**6 < count < 2**32:
        count = 2**32
    unraveler = LevelUnraveler(stream(c, built.repetition), stream(c, built.definition), count, kinds, dimensions)
    for i, length in enumerate(unraveler.lengths):
        at = c.random.choice([0, 1, 9])
        unraveler.validity(i, c.out((length + at + 7) // 8), at)
        wide = c.random.random() < 0.5
        if kinds[i] in (2, 4, 5, 6):
            base = c.number() if c.random.random() < 0.1 else 0
            unraveler.offsets(i, c.out((at + length + 1) * (8 if wide else 4)), wide, at, base)
    return unraveler.null_counts


def chunks(c: Chaos) -> object:
    built = page(c)
    definition, repetition = stream(c, built.definition), stream(c, built.repetition)
    parts = np.unique([0, built.num_visible_items, *c.rng.integers(0, built.num_visible_items + 1, 3)])
    counts = np.diff(parts) if c.random.random() < 0.9 else c.integers(9)
    ends = np.zeros(len(counts), np.int64)
    levels.cut(definition, built.num_items, built.max_visible_definition, counts, ends)
    if repetition is None:
        return None
    if c.random.random() < 0.1:
        ends = c.integers(built.num_items + 1)
    return levels.repetition_index(repetition, built.max_repetition, ends, c.out(16 * len(ends)))


def rows(c: Chaos) -> object:
    source, level = c.buffer(2 * c.size()), c.random.choice([0, 1, 2, c.number()])
    count = levels.count_rows(source, level)
    levels.row_starts(source, level, np.empty(count + c.random.choice([0, 0, 0, 0, 1, -1]), np.int64))
    levels.max_level(source)
    if c.random.random() < 0.5:
        return levels.count_visible(source, *sorted([c.number(20), c.number(90)]), level)
    return levels.row_items(source, level, *sorted([c.number(count), c.number(count)]))


def control_words(c: Chaos) -> object:
    built = page(c)
    count = built.num_items
    rep, definition = built.max_repetition.bit_length(), built.max_definition.bit_length() + c.random.choice([0, 0, 8])
    if c.random.random() < 0.05:
        rep, definition = c.number(16), c.number(16)
    words = c.buffer(count * levels.control_width(rep, definition))
    levels.pack_control_words(stream(c, built.repetition), stream(c, built.definition), count, rep, definition, words)
    levels.unpack_control_words(words, count, rep, definition, c.buffer(2 * count), c.buffer(2 * count))
    return words


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "levels.build": building,
    "levels.chunks": chunks,
    "levels.control_words": control_words,
    "levels.rows": rows,
    "levels.unravel": unravel,
}
