"""Random access to values of a 2.0 page: in place in a mapped file, else cut out of ranges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.buffers import allocate, concat_arrays
from lance_dataset.file.kinds import is_binary_like, is_text, is_wide
from lance_dataset.file.v2_0.arrays import (
    binary_ends,
    end_limit,
    equal_offsets,
    expand_codes,
    fixed_width,
    list_size,
    masked,
    nulls_of,
    raw_type,
    read_content,
    read_node,
    unfit,
)
from lance_dataset.file.v2_0.dictionaries import index_type, over_items, trimmed
from lance_dataset.file.v2_0.nodes import (
    Binary,
    Dictionary,
    Fixed,
    FixedSizeBinary,
    FixedSizeList,
    Flat,
    Fsst,
    Node,
    Nullable,
    plain_fixed,
)
from lance_dataset.file.v2_0.page import Page
from lance_dataset.file.v2_0.values import num_stored, read_values, take_values
from lancecodec import OffsetOverflowError, utf8
from lancecodec.pages import EndsPages

if TYPE_CHECKING:
    from lancecodec.pages import EndsTable

__all__ = ["ends_table", "nested_array", "take_page"]

#: Rows closer than this are read as one range if the file is not mapped.
_COALESCE_ROWS = 1024


def take_page(page: Page, arrow_type: pa.DataType, rows: NDArray[np.int64]) -> pa.Array:
    """Take the values at some ascending positions of a page.

    Raises
    ------
    CodecError, CorruptFileError
        The content contradicts the encoding. A CodecError does not name the place.
    OffsetOverflowError
        The values have more bytes than 32-bit offsets can address.
    """
    array = _take(page, page.node, page.length, arrow_type, rows)
    return trimmed(array) if pa.types.is_dictionary(arrow_type) else array


def _take(page: Page, node: Node, total: int, arrow_type: pa.DataType, rows: NDArray[np.int64]) -> pa.Array:
    """Take values of a node; `total` is the number of values of the whole node."""
    if isinstance(node, Dictionary):
        indices = _take(page, node.indices, total, index_type(page, node, arrow_type), rows)
        return over_items(page, node, arrow_type, indices, read_node)
    if page.source.mapped is None:
        return _take_ranges(page, node, total, arrow_type, rows)
    if isinstance(node, Nullable):
        return _take_nullable(page, node, total, arrow_type, rows)
    if isinstance(node, Fixed):
        fixed_width(page, node, arrow_type)
        return pa.Array.from_buffers(arrow_type, len(rows), [None, take_values(page, node, rows, total)])
    if isinstance(node, FixedSizeList):
        return _take_lists(page, node, total, arrow_type, rows)
    if isinstance(node, Binary):
        return _take_binary(page, node, total, arrow_type, rows)
    if isinstance(node, FixedSizeBinary):
        return _take_fixed_size_binary(page, node, total, arrow_type, rows)
    if isinstance(node, Fsst):
        codes = _take(page, node.codes, total, raw_type(page, node, arrow_type), rows)
        return expand_codes(codes, node.table, arrow_type)
    raise unfit(page, node, arrow_type)


def _take_ranges(page: Page, node: Node, total: int, arrow_type: pa.DataType, rows: NDArray[np.int64]) -> pa.Array:
    pieces = []
    for group in np.split(rows, np.flatnonzero(np.diff(rows) > _COALESCE_ROWS) + 1):
        if len(group) == 0:
            continue
        try:
            run = read_node(page, node, total, arrow_type, int(group[0]), int(group[-1]) + 1)
            pieces.append(run if len(run) == len(group) else run.take(pa.array(group - group[0])))
        except OffsetOverflowError:  # perhaps caused by values between the requested ones
            pieces.extend(read_node(page, node, total, arrow_type, row, row + 1) for row in group.tolist())
    return concat_arrays(pieces, arrow_type)


def _take_nullable(
    page: Page, node: Nullable, total: int, arrow_type: pa.DataType, rows: NDArray[np.int64]
) -> pa.Array:
    if node.values is None:
        return nulls_of(page, len(rows), arrow_type)
    values = _take(page, node.values, total, arrow_type, rows)
    if node.validity is None:
        return values
    validity = take_values(page, node.validity, rows, total)
    if isinstance(node.values, Fixed):
        return pa.Array.from_buffers(arrow_type, len(rows), [validity, values.buffers()[1]])
    if isinstance(node.values, FixedSizeList):
        return pa.Array.from_buffers(arrow_type, len(rows), [validity], children=[values.values])
    return masked(values, validity)


def _take_lists(
    page: Page, node: FixedSizeList, total: int, arrow_type: pa.DataType, rows: NDArray[np.int64]
) -> pa.Array:
    size = list_size(page, node, arrow_type)
    flat = plain_fixed(node.items)
    if isinstance(flat, Flat) and flat.bits % 8 == 0 and not pa.types.is_fixed_size_list(arrow_type.value_type):
        fixed_width(page, flat, arrow_type.value_type)
        values = take_values(page, replace(flat, bits=flat.bits * size), rows, total)
        return nested_array(arrow_type, len(rows), None, values)
    items = (rows[:, np.newaxis] * size + np.arange(size)).reshape(-1)
    children = [_take(page, node.items, total * size, arrow_type.value_type, items)]
    return pa.Array.from_buffers(arrow_type, len(rows), [None], children=children)


def nested_array(arrow_type: pa.DataType, count: int, validity: pa.Buffer | None, values: pa.Buffer) -> pa.Array:
    """Build an array of fixed-width values, or of (nested) fixed-size lists over their flattened values."""
    if not pa.types.is_fixed_size_list(arrow_type):
        return pa.Array.from_buffers(arrow_type, count, [validity, values])
    items = nested_array(arrow_type.value_type, count * arrow_type.list_size, None, values)
    return pa.Array.from_buffers(arrow_type, count, [validity], children=[items])


def _take_binary(page: Page, node: Binary, total: int, arrow_type: pa.DataType, rows: NDArray[np.int64]) -> pa.Array:
    if not is_binary_like(arrow_type):
        raise unfit(page, node, arrow_type)
    if len(rows) == 0:
        return pa.array([], arrow_type)
    count, wide = len(rows), is_wide(arrow_type)
    pages = EndsPages([0, total], [ends_table(page, node, total)])
    offsets, validity = allocate((count + 1) * (8 if wide else 4)), allocate((count + 7) // 8)
    size, nulls = pages.take_offsets(rows, wide, offsets, validity)
    data = allocate(size)
    pages.take_bytes(rows, wide, offsets, data)
    if is_text(arrow_type):
        utf8.validate(data, offsets, wide)
    return pa.Array.from_buffers(arrow_type, count, [validity if nulls else None, offsets, data], nulls)


def ends_table(page: Page, node: Binary, total: int, codes: pa.Buffer | None = None) -> EndsTable:
    """Return a node of `total` binary values as a table for `EndsPages`, with one-byte `codes` if given."""
    ends_node = binary_ends(page, node) if total else None
    if ends_node is None:
        ends = pa.py_buffer(b"")
    elif isinstance(ends_node, Flat):
        ends = page.view_flat(ends_node, total)
    else:
        ends = _kept(page, ends_node, total)
    limit, content = read_content(page, node, total) if total else (0, None)
    if content is not None:
        data = content
    elif node.data is None or total == 0:
        data = pa.py_buffer(b"")
    elif isinstance(node.data, Flat):
        data = page.view(*page.locate(node.data.buffer))
    else:
        available = num_stored(page, node.data)
        limit, data = end_limit(node, available), _kept(page, node.data, available)
    return ends, node.adjustment, limit, 0, data, codes, total if codes is not None else 0


def _kept(page: Page, node: Fixed, total: int) -> pa.Buffer:
    """Return all values of a packed node, cached for the next rows."""
    return page.cache.get(
        (page.start, node, total), lambda: read_values(page, node, 0, total, total), lambda values: values.size
    )


def _take_fixed_size_binary(
    page: Page, node: FixedSizeBinary, total: int, arrow_type: pa.DataType, rows: NDArray[np.int64]
) -> pa.Array:
    offsets = equal_offsets(page, node, arrow_type, len(rows))
    per = node.per_value
    if isinstance(node.data, Flat):
        data = take_values(page, replace(node.data, bits=8 * node.width), rows, total)
    else:
        data = take_values(page, node.data, (rows[:, np.newaxis] * per + np.arange(per)).reshape(-1), total * per)
    if is_text(arrow_type):
        utf8.validate(data, offsets, is_wide(arrow_type))
    return pa.Array.from_buffers(arrow_type, len(rows), [None, offsets, data])
