"""Repetition and definition levels in plain Python, slow and literal, and layers of an Arrow array for `build`.

`build_levels` and `undo_levels` work on Python values and lists and share nothing with the compiled code. A *path* is
the way from a column to one of its leaves, as a list of steps, outermost first; `leaf_paths` finds them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = [
    "LevelStreams",
    "Step",
    "UndoneLayer",
    "arrow_layers",
    "assemble",
    "build_levels",
    "leaf_paths",
    "nulls_seen",
    "project",
    "random_array",
    "undo_levels",
]

_USED = {1: 0, 2: 0, 3: 1, 4: 1, 5: 1, 6: 2}
_LISTS = (2, 4, 5, 6)


@dataclass(frozen=True)
class Step:
    """Layer of a path: kind is struct, list, fixed or leaf; `child` is the field of a struct, `dimension` of a list."""

    kind: str
    child: int = 0
    dimension: int = 0


@dataclass(frozen=True)
class LevelStreams:
    kinds: list[int]
    repetition: list[int] | None
    definition: list[int] | None
    visible: list[bool]
    values: list[Any]  # of the visible items


@dataclass
class _Entry:
    repetition: int | None
    value: Any
    state: tuple[int, str] | None = None  # None: open; else (layer, null or empty)
    hidden: bool = False


@dataclass
class UndoneLayer:
    valid: list[bool] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)  # of a list layer


def leaf_paths(data_type: pa.DataType) -> Iterator[list[Step]]:
    """Return the paths to the leaves, in column order; every fixed-size list counts as structural."""
    if pa.types.is_struct(data_type):
        for child in range(data_type.num_fields):
            for path in leaf_paths(data_type.field(child).type):
                yield [Step("struct", child), *path]
    elif pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        for path in leaf_paths(data_type.value_type):
            yield [Step("list"), *path]
    elif pa.types.is_fixed_size_list(data_type):
        for path in leaf_paths(data_type.value_type):
            yield [Step("fixed", dimension=data_type.list_size), *path]
    else:
        yield [Step("leaf")]


def project(value: Any, path: list[Step]) -> Any:
    """Reduce a Python value to the leaf of `path`; a struct becomes a tuple of one."""
    if value is None or path[0].kind == "leaf":
        return value
    if path[0].kind == "struct":
        return (project(list(value.values())[path[0].child], path[1:]),)
    return [project(item, path[1:]) for item in value]


def nulls_seen(array: pa.Array, path: list[Step]) -> set[tuple[int, str]]:
    """Return layers with a null that no null list drops; everything below a null struct counts as null."""
    seen: set[tuple[int, str]] = set()
    slots = [(index, False) for index in range(len(array))]
    inherited = False  # from a struct, though not through a fixed-size list
    for layer, step in enumerate(path):
        valid = array.is_valid().to_pylist()
        masked_list = step.kind == "list" and any(masked for _, masked in slots)
        inherited = inherited or masked_list or any(not valid[index] for index, _ in slots)
        if inherited:
            seen.add((layer, "null"))
        slots = [(index, masked or not valid[index]) for index, masked in slots]
        if step.kind in ("list", "fixed"):
            inherited = False
        if step.kind == "list":
            ends = array.offsets.to_pylist()
            slots = [(k, False) for i, masked in slots if not masked for k in range(ends[i], ends[i + 1])]
            array = array.values
        elif step.kind == "fixed":
            size = step.dimension
            slots = [(index * size + k, masked) for index, masked in slots for k in range(size)]
            array = array.values.slice(array.offset * size)
        elif step.kind == "struct":
            array = array.field(step.child)
    return seen


def build_levels(rows: list[Any], path: list[Step], declared: set[tuple[int, str]] | None = None) -> LevelStreams:
    """Build levels of projected rows by the rules of the format, one entry at a time.

    `declared` are the layers that have nulls; the rows alone do not tell if something is masked.
    """
    entries = [_Entry(None, row) for row in rows]
    depth = sum(step.kind == "list" for step in path)
    for layer, step in enumerate(path):
        if step.kind == "list":
            entries = [new for entry in entries for new in _enter_list(entry, layer, depth)]
            depth -= 1
            continue
        for entry in entries:
            if entry.state is None and entry.value is None:
                entry.state = (layer, "null")
            if step.kind == "struct" and entry.state is None:
                entry.value = entry.value[0]
        if step.kind == "fixed":
            entries = [new for entry in entries for new in _repeat(entry, step.dimension)]
    return _number(entries, path, declared or set())


def _enter_list(entry: _Entry, layer: int, number: int) -> list[_Entry]:
    if entry.hidden:
        return [entry]
    repetition = number if entry.repetition is None else entry.repetition
    if entry.state is not None:
        return [_Entry(repetition, None, entry.state, True)]
    if not entry.value:
        return [_Entry(repetition, None, (layer, "null" if entry.value is None else "empty"), True)]
    return [_Entry(None if place else repetition, item) for place, item in enumerate(entry.value)]


def _repeat(entry: _Entry, dimension: int) -> list[_Entry]:
    if entry.hidden:
        return [entry]
    items = entry.value if entry.state is None else [None] * dimension
    return [_Entry(None if place else entry.repetition, item, entry.state) for place, item in enumerate(items)]


def _number(entries: list[_Entry], path: list[Step], declared: set[tuple[int, str]]) -> LevelStreams:
    seen = declared | {entry.state for entry in entries}
    kinds, level_of, level = [], {None: 0}, 0
    for layer in reversed(range(len(path))):
        null, empty = (layer, "null") in seen, (layer, "empty") in seen
        of_list = {(False, False): 2, (True, False): 4, (False, True): 5, (True, True): 6}[null, empty]
        kinds.append(of_list if path[layer].kind == "list" else 1 + 2 * null)
        for state in [(layer, "null")] * null + [(layer, "empty")] * empty:
            level += 1
            level_of[state] = level
    has_lists = any(step.kind == "list" for step in path)
    return LevelStreams(
        kinds,
        [entry.repetition or 0 for entry in entries] if has_lists else None,
        [level_of[entry.state] for entry in entries] if level else None,
        [not entry.hidden for entry in entries],
        [None if entry.state else entry.value for entry in entries if not entry.hidden],
    )


def undo_levels(
    repetition: list[int] | None, definition: list[int] | None, count: int, kinds: list[int], dimensions: list[int]
) -> list[UndoneLayer]:
    """Return layers, innermost first, by the rules of the format."""
    work = list(zip(repetition or [0] * count, definition or [0] * count, strict=True))
    visible_depth, depth = [0], 0
    for kind in kinds:
        depth += kind in _LISTS
        visible_depth += [depth] * _USED[kind]
    base = depth = 0
    layers = []
    for index, kind in enumerate(kinds):
        layer = UndoneLayer()
        if kind in _LISTS:
            work = _undo_list(work, kinds, index, base, layer)
            depth += 1
        else:
            if dimensions[index]:
                work = _keep_first(work, visible_depth, depth, dimensions[index])
            slots = [level for _, level in work if visible_depth[level] <= depth]
            layer.valid = [kind == 1 or level <= base for level in slots]
        base += _USED[kind]
        layers.append(layer)
    return layers


def _undo_list(
    work: list[tuple[int, int]], kinds: list[int], index: int, base: int, layer: UndoneLayer
) -> list[tuple[int, int]]:
    kind = kinds[index]
    high = base + _USED[kind]
    null = base + 1 if kind in (4, 6) else None
    top = high
    for outer in kinds[index + 1 :]:
        if outer in _LISTS:
            break
        top += _USED[outer]
    kept = []
    for rep, level in work:
        if rep == 0:
            layer.lengths[-1] += 1
            continue
        kept.append((rep - 1, level))
        if level <= top:
            layer.lengths.append(1 if level <= base else 0)
            layer.valid.append(not (level == null or level > high))
    return kept


def _keep_first(
    work: list[tuple[int, int]], visible_depth: list[int], depth: int, dimension: int
) -> list[tuple[int, int]]:
    kept, inside = [], 0
    for rep, level in work:
        if visible_depth[level] <= depth:
            inside += 1
            if inside % dimension != 1 % dimension:
                continue
        kept.append((rep, level))
    return kept


def assemble(layers: list[UndoneLayer], path: list[Step], values: list[Any]) -> list[Any]:
    """Assemble projected rows from layers (innermost first) and leaf values."""
    for layer, step in zip(layers, reversed(path), strict=True):
        if step.kind == "list":
            ends = np.cumsum(layer.lengths, dtype=np.int64).tolist()
            parts: list[Any] = [values[end - n : end] for end, n in zip(ends, layer.lengths, strict=True)]
        elif step.kind == "fixed":
            parts = [values[i : i + step.dimension] for i in range(0, len(values), step.dimension)]
        else:
            parts = [(value,) for value in values] if step.kind == "struct" else values
        values = [part if valid else None for part, valid in zip(parts, layer.valid, strict=True)]
    return values


def arrow_layers(array: pa.Array, path: list[Step]) -> tuple[list[tuple[Any, ...]], pa.Array]:
    """Return layers as `lancecodec.level_builder.build` takes them, and the leaf array that its slots refer to."""
    layers: list[tuple[Any, ...]] = []
    for step in path:
        validity, bit = array.buffers()[0], array.offset
        if step.kind == "list":
            wide = pa.types.is_large_list(array.type)
            offsets = array.buffers()[1]
            if offsets is not None:
                offsets = memoryview(offsets)[array.offset * (8 if wide else 4) :]
            layers.append(("list", offsets if offsets is not None else b"", wide, validity, bit))
            array = array.values
        elif step.kind == "fixed":
            layers.append(("fixed_size_list", step.dimension, validity, bit))
            array = array.values.slice(array.offset * step.dimension)
        elif pa.types.is_null(array.type):
            layers.append(("null",))
        else:
            layers.append(("item", validity, bit))
            if step.kind == "struct":
                array = array.field(step.child)
    return layers, array


def random_array(rng: np.random.Generator, data_type: pa.DataType, length: int) -> pa.Array:
    """Return an array as Arrow allows it: sliced, with any first offset and elements under nulls; leaves are int32."""
    before, after = (int(n) for n in rng.choice([0, 0, 1, 9], 2))
    count = before + length + after
    share = rng.choice([0.0, 0.0, 0.1, 0.5, 1.0])
    valid = None if share == 0.0 and rng.random() < 0.7 else rng.random(count) >= share
    bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    if pa.types.is_struct(data_type):
        children = [random_array(rng, data_type.field(i).type, count) for i in range(data_type.num_fields)]
        array = pa.Array.from_buffers(data_type, count, [bitmap], children=children)
    elif pa.types.is_fixed_size_list(data_type):
        child = random_array(rng, data_type.value_type, count * data_type.list_size)
        array = pa.Array.from_buffers(data_type, count, [bitmap], children=[child])
    elif pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        lengths = rng.integers(0, rng.choice([1, 2, 4, 13]), count) + rng.choice([0, 0, 1])
        offsets = np.concatenate([[0], np.cumsum(lengths)]) + rng.choice([0, 3])
        child = random_array(rng, data_type.value_type, int(offsets[-1]) + int(rng.choice([0, 5])))
        offsets = offsets.astype(np.int64 if pa.types.is_large_list(data_type) else np.int32)
        array = pa.Array.from_buffers(data_type, count, [bitmap, pa.py_buffer(offsets.tobytes())], children=[child])
    else:
        values = pa.py_buffer(rng.integers(-(2**31), 2**31, count).astype(np.int32).tobytes())
        array = pa.Array.from_buffers(data_type, count, [bitmap, values])
    return array.slice(before, length)
