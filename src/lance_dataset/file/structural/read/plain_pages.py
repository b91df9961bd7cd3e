"""Reading of the simplest pages with minimal work per page.

A take or scan of thousands of small fragments opens thousands of pages with equal descriptions. The consequences of
a description are computed once. If a page does not fit its description, `MiniBlockPage` or `FullZipPage` reads it and
reports the error.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, MemoryLimitError, UnsupportedError
from lance_dataset.file.blob_fields import is_pair
from lance_dataset.file.buffers import aligned, allocate
from lance_dataset.file.cache import expanded_bytes
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.structural.arrays import BinaryDictionary, binary_array, fixed_array, value_bits
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.layout import (
    FullZipLayout,
    Layer,
    MiniBlockLayout,
    max_definition,
    max_visible_definition,
)
from lance_dataset.file.structural.nesting import Branch
from lance_dataset.file.structural.read.levels import LeafValues, assemble, level_codec
from lance_dataset.file.structural.read.page import Page
from lance_dataset.file.take_shape import TakeShape, take_shape
from lance_dataset.late_dataclass import dataclass
from lancecodec import CodecError, take_pages
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_levels import Levels
from lancecodec.miniblock_values import FixedValues, VariableValues
from lancecodec.take_pages import PageTaker

__all__ = ["plain_array", "plain_dictionary_bytes", "plain_taker"]

_REMEMBERED = 1 << 10
#: Pages with more values or bytes are worth a page object that stays, and that releases what it has read.
_SMALL_ROWS = 1 << 15
_SMALL_BYTES = 1 << 20
#: Larger dictionaries, in bytes, are worth keeping in decoded form.
_SMALL_DICTIONARY = 16 << 10
#: Larger dictionaries, in bytes, are worth sharing between takes and other reads.
_TAKEN_DICTIONARY = 64 << 10
_MEMORY_PAGE = 4096
#: Bytes in front of the offsets of a block of texts.
_BLOCK_HEADER = 8


@dataclass(frozen=True, eq=False)
class _Plan:
    """Facts that follow from the description of mini-block pages.

    Attributes
    ----------
    layout, branch
        The description, and the branch of the page.
    codec
        Kind and width of the values in the numbering of the kernels; None for strings and binaries.
    shape
        Shape of the values for random access.
    wide, symbol_table
        True if stored offsets of strings and binaries have 64 bits, and their FSST symbol table.
    definition
        Codec of the definition levels.
    least_bits
        Minimum bits of all values in the chunks.
    is_scanned
        True if `plain_array` can use the plan.
    entries
        Encoding of the entries of the dictionary; None without one.
    required
        True if a null is damage.
    """

    layout: MiniBlockLayout
    branch: Branch
    codec: tuple[int, int] | None
    shape: TakeShape
    wide: bool
    symbol_table: bytes | None
    definition: tuple[int, int] | None
    least_bits: float
    is_scanned: bool
    entries: Encoding | None
    required: bool


@dataclass(frozen=True, eq=False)
class _ZippedPlan:
    """Facts that follow from the description of pages of values side by side.

    Attributes
    ----------
    items
        Number of values.
    width
        Bytes of a value.
    required
        True if a null is damage.
    """

    items: int
    width: int
    required: bool


#: Plans by the ids of layout and branch, which the entry keeps alive; None for pages that are not plain.
_plans: dict[tuple[int, int], tuple[Any, Any, _Plan | _ZippedPlan | None]] = {}


def plain_taker(page: Page, branch: Branch) -> PageTaker | None:
    """Open random access to a page of values without lists and compression, perhaps with a small dictionary.

    Returns
    -------
    PageTaker or None
        None for all other pages.

    Raises
    ------
    CodecError
        The page contradicts its description.
    """
    plan = _known_plan(page.layout, branch)
    if plan is None:
        return None
    if isinstance(plan, _ZippedPlan):
        return _zipped_taker(page, plan)
    data = _chunks(page, plan)
    if data is None:
        return None
    if plan.entries is not None:
        return _indices_taker(page, data, plan, plan.entries)
    definition, required = plan.definition, plan.required
    if plan.codec is None:
        return take_pages.text_chunks(
            data, plan.wide, symbol_table=plan.symbol_table, definition=definition, required=required
        )
    return take_pages.fixed_chunks(data, plan.shape.width, *plan.codec, definition=definition, required=required)


def _zipped_taker(page: Page, plan: _ZippedPlan) -> PageTaker | None:
    """Open random access to values side by side, None if the page does not fit its description or is not mapped."""
    rows, buffers = page.length, page.buffers
    if rows != plan.items or len(buffers) != 1 or buffers[0][1] != rows * plan.width or not page.is_mapped:
        return None
    return take_pages.zipped(page.source.read(*buffers[0]), rows, plan.width, required=plan.required)


def _indices_taker(page: Page, data: Chunks, plan: _Plan, encoding: Encoding) -> PageTaker | None:
    """Open random access to a page with a dictionary, None if it is large or in a form that a page object must read."""
    source, place, (width, wide, *_) = page.source, page.buffers[2], plan.shape
    stored, count = place[1], plan.layout.dictionary_size
    if plan.codec is None or stored > _TAKEN_DICTIONARY or not count:
        return None
    try:
        content = page.read(2) if source.mapped is None else source.read(*place)
        block = encoding.taken_entries(content, count, max(8 * width, 0), expanded_bytes(stored))
        return take_pages.indexed_chunks(
            data,
            width,
            *plan.codec,
            block,
            count,
            wide=wide,
            definition=plan.definition,
            required=plan.required,
        )
    except (CodecError, CorruptFileError, MemoryLimitError, UnsupportedError):
        return None


def plain_dictionary_bytes(page: Page, branch: Branch) -> tuple[float, float] | None:
    """Return what `ColumnReader.dictionary_bytes` tells, without decoding the dictionary; None for other pages."""
    plan = _known_plan(page.layout, branch)
    if not isinstance(plan, _Plan) or plan.codec is None or plan.entries is None or len(page.buffers) != 3:
        return None
    index, encoding, size = plan.codec[1] / 8, plan.entries, page.buffers[2][1]
    if plan.shape.width > 0:
        return index, float(plan.shape.width)
    if encoding.inner is not encoding:
        try:
            claim = encoding.decompressed_size(page.read(2).to_pybytes())
        except CodecError:
            return None
        if claim is None:
            return None
        size = claim
    return index, max(size - _BLOCK_HEADER, 0) / max(plan.layout.dictionary_size, 1)


def plain_array(page: Page, branch: Branch) -> pa.Array | None:
    """Return all rows of a small mapped page of uncompressed values without lists, or of texts with a small dictionary.

    Values of whole bytes side by side are used in place.

    Returns
    -------
    pyarrow.Array or None
        None for all other pages.

    Raises
    ------
    CodecError, CorruptFileError
        The page contradicts its description.
    """
    if isinstance(page.layout, FullZipLayout):
        return _in_place(page, page.layout, branch)
    rows, plan = page.length, _known_plan(page.layout, branch)
    if not isinstance(plan, _Plan) or not plan.is_scanned or rows > _SMALL_ROWS:
        return None
    if not page.is_mapped or len(page.buffers) < 2 or page.buffers[1][1] > _SMALL_BYTES:
        return None
    data = _chunks(page, plan)
    if data is None or (plan.layout.dictionary is not None and page.buffers[2][1] > _SMALL_DICTIONARY):
        return None
    if page.buffers[1][1] > _MEMORY_PAGE:
        page.source.will_need(page.buffers[1:])
    values = _scan(data, plan, rows) if plan.layout.dictionary is None else _resolved(page, data, plan)
    if plan.definition is None:
        return values
    layers, definition = plan.layout.layers, allocate(2 * rows)
    levels = Levels(
        data,
        repetition=None,
        definition=plan.definition,
        max_repetition=0,
        max_definition=max_definition(layers),
        max_visible=max_visible_definition(layers),
    )
    levels.scan(0, data.table.num_chunks, None, definition)
    return assemble(LeafValues(values, rows, None, definition), layers, branch)


def _in_place(page: Page, layout: FullZipLayout, branch: Branch) -> pa.Array | None:
    """Return values that lie side by side, without levels, as a view of the mapped page."""
    bits, rows, kind = layout.bits, page.length, branch.leaf.storage_type
    if (
        not bits
        or branch.above
        or rows > _SMALL_ROWS
        or value_bits(kind) != bits
        or not layout.is_side_by_side(bits, rows)
        or len(page.buffers) != 1
        or page.size_of(0) * 8 != rows * bits
        or not page.is_mapped
    ):
        return None
    return fixed_array(kind, rows, aligned(page.read(0), bits // 8))


def _scan(data: Chunks, plan: _Plan, rows: int) -> pa.Array:
    kind = plan.branch.leaf.storage_type
    if plan.codec is not None:
        out = allocate((rows * plan.codec[1] + 7) // 8)
        FixedValues(data, *plan.codec).scan(0, rows, out)
        return fixed_array(kind, rows, out)
    wide, values = is_wide(kind), VariableValues(data, plan.wide, plan.symbol_table)
    offsets, content = allocate((rows + 1) * (8 if wide else 4)), allocate(values.size(0, rows))
    values.scan(0, rows, wide, offsets, content, exact=True)
    return binary_array(kind, rows, offsets, content)


def _resolved(page: Page, data: Chunks, plan: _Plan) -> pa.Array:
    """Return the texts to which the indices of a page point."""
    rows, kind, layout = page.length, plan.branch.leaf.storage_type, plan.layout
    if layout.dictionary is None or plan.codec is None:
        raise CodecError("a page without a dictionary")
    stored, where = page.source.read(*page.buffers[2]), page.place
    entries = layout.dictionary.entries(stored, layout.dictionary_size, kind, where)
    indices = allocate(rows * plan.codec[1] // 8)
    FixedValues(data, *plan.codec).scan(0, rows, indices)
    return BinaryDictionary(entries).resolve(indices, plan.codec[1], rows, None)


def _chunks(page: Page, plan: _Plan) -> Chunks | None:
    """Return all chunks of a page, None if they are not viewable or do not fit the description."""
    layout, source, buffers = plan.layout, page.source, page.buffers
    if len(buffers) != (2 if plan.entries is None else 3) or layout.num_items != page.length:
        return None
    size = buffers[1][1]
    if plan.least_bits > 8 * size:
        return None
    if source.mapped is not None:
        words, data = source.read(*buffers[0]), source.read(*buffers[1])
    elif page.is_viewable:
        words, data = page.read(0), page.view(1)
    else:
        return None
    table = ChunkTable(words, layout.num_items, size, layout.large)
    return Chunks(table, layout.num_buffers, definition=plan.definition is not None, data=data)


def _known_plan(layout: Any, branch: Branch) -> _Plan | _ZippedPlan | None:
    key = id(layout), id(branch)
    known = _plans.get(key)
    if known is None:
        if len(_plans) >= _REMEMBERED:
            _plans.clear()
        known = _plans[key] = layout, branch, _plan(layout, branch)
    return known[2]


def _zipped_plan(layout: FullZipLayout, branch: Branch, shape: TakeShape) -> _ZippedPlan | None:
    items, width = layout.num_items, shape.width
    if width <= 0 or not layout.is_side_by_side(8 * width, items):
        return None
    return _ZippedPlan(items, width, not branch.leaf.nullable)


def _plan(layout: object, branch: Branch) -> _Plan | _ZippedPlan | None:
    shape = take_shape(branch.leaf.storage_type)
    if branch.above or is_pair(branch.leaf) or shape is None or shape.dimensions:
        return None
    if isinstance(layout, FullZipLayout):
        return _zipped_plan(layout, branch, shape)
    if not isinstance(layout, MiniBlockLayout):
        return None
    encoding = layout.values
    if (
        layout.layers not in ((Layer.ALL_VALID_ITEM,), (Layer.NULLABLE_ITEM,))
        or layout.rep is not None
        or layout.indexed
        or encoding.inner is not encoding
        or layout.num_buffers != encoding.num_buffers
    ):
        return None
    try:
        definition = level_codec(layout.definition, "")
        if definition is not None and not max_definition(layout.layers):
            return None  # levels that the layers do not have
        return _plan_of_values(layout, branch, shape, encoding, definition)
    except (CorruptFileError, UnsupportedError):
        return None


def _plan_of_values(
    layout: MiniBlockLayout,
    branch: Branch,
    shape: TakeShape,
    encoding: Encoding,
    definition: tuple[int, int] | None,
) -> _Plan | None:
    kind, least, entries = branch.leaf.storage_type, layout.num_items * sum(encoding.least_bits), layout.dictionary
    wide, table, codec = False, None, None
    if entries is None and encoding.is_text:
        wide, table = encoding.text_codec("")
        fits, is_scanned = shape.width < 0, is_binary_like(kind)
    else:
        codec = encoding.chunk_codec("")
        if entries is None:
            fits, is_scanned = shape.width >= 0 and codec[1] == (8 * shape.width or 1), codec[1] == value_bits(kind)
        else:
            fits, is_scanned = shape.width != 0 and codec[1] in (8, 16, 32, 64), is_binary_like(kind)
    required = not branch.leaf.nullable
    if not fits:
        return None
    return _Plan(layout, branch, codec, shape, wide, table, definition, least, is_scanned, entries, required)
