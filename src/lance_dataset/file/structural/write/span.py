"""Arrow data of a column in the form that the writer needs: levels, and the values of the items that own one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import SchemaError
from lance_dataset.file.buffers import allocate, bitmap_at_zero
from lance_dataset.file.kinds import is_binary_like, is_text, is_wide
from lance_dataset.file.structural.nesting import Branch, Nest
from lance_dataset.file.structural.write.levels import PageLevels, page_levels
from lance_dataset.late_dataclass import dataclass
from lance_dataset.types.schema import Field
from lancecodec import bitmap, level_builder, statistics, utf8
from lancecodec import levels as level_codec

__all__ = ["Span", "leaf_span"]

_NO_LISTS = np.zeros(1, np.int64)


@dataclass(frozen=True)
class Span:
    """Rows of one column.

    Attributes
    ----------
    levels
        Levels of the rows.
    values
        One value per visible item; its own nulls are ignored. Strings have no bytes where `validity` is clear, and
        dictionary indices are within their dictionary.
    validity
        Bitmap, from bit 0 on, of visible items that are valid themselves and in all fields above; None if all are
        valid.
    num_valid
        Number of set bits of `validity`.
    """

    levels: PageLevels
    values: pa.Array
    validity: pa.Buffer | None
    num_valid: int


def leaf_span(branch: Branch, array: pa.Array, path: str) -> Span:
    """Return the levels and visible values of a leaf.

    Parameters
    ----------
    branch
        The leaf and the fields above it.
    array
        Rows of the top-level field, of its storage type, sliced or not.
    path
        Path of the column, for error messages.

    Raises
    ------
    SchemaError
        A required field is null, text is not UTF-8, or an index is outside its dictionary.
    """
    layers, leaf = _descend(branch, array)
    if isinstance(leaf.type, pa.DictionaryType):
        leaf = _plain_dictionary(leaf)
    layers.append(("null",) if pa.types.is_null(leaf.type) else _item(leaf))
    levels = level_builder.build(len(array), layers)
    _check_required(branch, levels, path)
    num_valid = levels.num_visible_items
    if levels.definition is not None:
        num_valid = level_codec.count_visible(levels.definition, 0, levels.num_items, 0)
    page = page_levels(levels, branch)
    if num_valid == 0:
        return Span(page, leaf.slice(0, 0), None, 0)
    values = _visible(leaf, levels)
    validity = None if num_valid == levels.num_visible_items else _validity(values, levels)
    return Span(page, _normal(values, validity, path), validity, num_valid)


# -- walk down to the leaf ---------------------------------------------------------------------------------------


def _descend(branch: Branch, array: pa.Array) -> tuple[list[Any], pa.Array]:
    """Return the layers above the leaf in the form of `level_builder.build`, and the leaf."""
    layers: list[Any] = []
    below = [*(nest.field for nest in branch.above), branch.leaf][1:]
    for nest, child in zip(branch.above, below, strict=True):
        if nest.kind == "struct":
            layers.append(_item(array))
            array = array.field(_position(nest, child))
        elif nest.kind == "fixed_size_list":
            validity = array.buffers()[0] if array.null_count else None
            layers.append(("fixed_size_list", nest.dimension, validity, array.offset))
            array = array.values.slice(array.offset * nest.dimension, len(array) * nest.dimension)
        else:
            layers.append(_list(array))
            array = array.values  # for a map, its entries
    return layers, array


def _position(nest: Nest, child: Field) -> int:
    return next(number for number, field in enumerate(nest.field.children) if field is child)


def _item(array: pa.Array) -> tuple[Any, ...]:
    return ("item", array.buffers()[0] if array.null_count else None, array.offset)


def _list(array: pa.Array) -> tuple[Any, ...]:
    validity, offsets = array.buffers()[:2]
    wide = is_wide(array.type)
    if len(array) == 0 or offsets is None:
        return ("list", _NO_LISTS, wide, None, 0)
    offsets = offsets.slice(array.offset * (8 if wide else 4))
    return ("list", offsets, wide, validity if array.null_count else None, array.offset)


def _check_required(branch: Branch, levels: level_builder.Levels, path: str) -> None:
    """Raise SchemaError if a required field has nulls of its own, not inherited from above."""
    fields = [branch.leaf, *(nest.field for nest in reversed(branch.above))]
    base = 0
    for field, kind in zip(fields, levels.kinds, strict=True):
        if not field.nullable and kind in (3, 4, 6) and levels.definition is not None:
            definition = np.frombuffer(levels.definition, np.uint16)
            if bool(np.any(definition == base + 1)):
                where = path if field is fields[-1] else f"{path} (field {field.name})"
                raise SchemaError(f"column {where!r} is declared not nullable, but its data holds nulls")
        base += 2 if kind == 6 else int(kind > 2)


# -- values ------------------------------------------------------------------------------------------------------


def _visible(leaf: pa.Array, levels: level_builder.Levels) -> pa.Array:
    if levels.slot_range is not None:
        return leaf.slice(*levels.slot_range)
    slots = np.empty(levels.num_visible_items, np.int64)
    levels.slot_indices(slots)
    if pa.types.is_fixed_size_list(leaf.type) and leaf.offset:
        # pyarrow takes wrong values from slices of fixed-size lists with one item
        slots += leaf.offset
        leaf = pa.Array.from_buffers(
            leaf.type, leaf.offset + len(leaf), [leaf.buffers()[0]], -1, 0, children=[leaf.values]
        )
    return leaf.take(pa.array(slots))


def _validity(values: pa.Array, levels: level_builder.Levels) -> pa.Buffer:
    count = len(values)
    if _only_leaf_is_null(levels.kinds):
        return bitmap_at_zero(values.buffers()[0], values.offset, count).slice(0, (count + 7) // 8)
    definition = np.frombuffer(levels.definition or b"", np.uint16)
    if levels.max_visible_definition < levels.max_definition:
        definition = definition[definition <= levels.max_visible_definition]
    bits = allocate((count + 7) // 8)
    bitmap.pack((definition == 0).view(np.uint8), bits)
    return bits


def _only_leaf_is_null(kinds: Sequence[int]) -> bool:
    """Return whether only the leaf makes a visible item null."""
    for kind in kinds[1:]:
        if kind not in (1, 3):
            return True
        if kind == 3:
            return False
    return True


def _normal(values: pa.Array, validity: pa.Buffer | None, path: str) -> pa.Array:
    kind = values.type
    if isinstance(kind, pa.DictionaryType):
        _check_text(values.dictionary, path)
        return _with_valid_indices(values, validity, path)
    if is_binary_like(kind):
        values = _without_hidden_bytes(values, validity)
    _check_text(values, path)
    return values


def _without_hidden_bytes(values: pa.Array, validity: pa.Buffer | None) -> pa.Array:
    """Return the values with empty nulls and without offset."""
    wide = is_wide(values.type)
    width = 8 if wide else 4
    offsets = values.buffers()[1].slice(values.offset * width, (len(values) + 1) * width)
    data = values.buffers()[2] or pa.py_buffer(b"")
    plain = pa.Array.from_buffers(values.type, len(values), [validity, offsets, data], -1, 0)
    if validity is None:
        return plain
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32)
    if int(ends[-1]) - int(ends[0]) == statistics.variable(data, offsets, wide, validity).total_length:
        return plain
    # Taking every value copies only the visible bytes.
    return plain.take(pa.array(np.arange(len(plain), dtype=np.int64)))


def _check_text(values: pa.Array, path: str) -> None:
    """Raise an error if strings, also those in packed structs, are not UTF-8."""
    kind = values.type
    if pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            _check_text(values.field(number), path)
        return
    if not is_text(kind) or len(values) == 0:
        return
    wide = is_wide(kind)
    width = 8 if wide else 4
    offsets = values.buffers()[1].slice(values.offset * width, (len(values) + 1) * width)
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32)
    first, last = int(ends[0]), int(ends[-1])
    if last > first:
        content = values.buffers()[2].slice(first, last - first)
        utf8.validate(content, offsets if first == 0 else pa.py_buffer(ends - first), wide)


# -- dictionaries ------------------------------------------------------------------------------------------------


def _plain_dictionary(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the values with nulls of the dictionary moved to the indices; indices outside it stay outside."""
    dictionary, indices = array.dictionary, array.indices
    if dictionary.null_count == 0:
        return array
    valid = dictionary.is_valid()
    renumber = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    moved = pc.if_else(valid, renumber, pa.scalar(None, pa.int64())).cast(indices.type)
    inside = pc.and_(pc.greater_equal(indices, 0), pc.less(indices, len(dictionary)))
    indices = pc.if_else(inside, moved.take(pc.if_else(inside, indices, 0)), indices)
    return pa.DictionaryArray.from_arrays(indices, dictionary.drop_null(), safe=False)


def _with_valid_indices(values: pa.DictionaryArray, validity: pa.Buffer | None, path: str) -> pa.DictionaryArray:
    """Return the values with index 0 for nulls."""
    width = values.type.index_type.bit_width // 8
    data = values.indices.buffers()[1].slice(values.indices.offset * width, len(values) * width)
    indices = pa.Array.from_buffers(values.type.index_type, len(values), [validity, data])
    bounds = pc.min_max(indices)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low < 0 or high >= len(values.dictionary):
        raise SchemaError(
            f"column {path!r}: dictionary index {low if low < 0 else high} is outside the "
            f"{len(values.dictionary)} items of its dictionary"
        )
    if validity is not None:
        indices = pc.fill_null(indices, 0)
    return pa.DictionaryArray.from_arrays(indices, values.dictionary, safe=False)
