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
    """Facts that follow from a description.

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
        Minimum bits of a value in a chunk.
    is_scanned, is_taken
        True if `plain_array`, and `plain_taker`, can use the plan.
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
    is_taken: bool = True


#: Plans by the ids of layout and branch, which the entry keeps alive; None for pages that are not plain.
_plans: dict[tuple[int, int], tuple[Any, Any, _Plan | None]] = {}


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
    data = None if plan is None or not plan.is_taken else _chunks(page, plan)
    if plan is None or data is None:
        return None
    if plan.layout.dictionary is not None:
        return _indices_taker(page, data, plan, plan.layout.dictionary)
    required = not branch.leaf.nullable
    if plan.codec is None:
        return take_pages.text_chunks(
            data, plan.wide, symbol_table=plan.symbol_table, definition=plan.definition, required=required
        )
    return take_pages.fixed_chunks(data, plan.shape.width, *plan.codec, definition=plan.definition, required=required)


def _indices_taker(page: Page, data: Chunks, plan: _Plan, encoding: Encoding) -> PageTaker | None:
    """Open random access to a page with a dictionary, None if it is large or in a form that a page object must read."""
    count, stored, shape = plan.layout.dictionary_size, page.buffers[2][1], plan.shape
    if plan.codec is None or stored > _TAKEN_DICTIONARY or not count:
        return None
    try:
        block = encoding.taken_entries(page.read(2), count, max(8 * shape.width, 0), expanded_bytes(stored))
        return take_pages.indexed_chunks(
            data,
            shape.width,
            *plan.codec,
            block,
            count,
            wide=shape.wide,
            definition=plan.definition,
            required=not plan.branch.leaf.nullable,
        )
    except (CodecError, CorruptFileError, MemoryLimitError, UnsupportedError):
        return None


def plain_dictionary_bytes(page: Page, branch: Branch) -> tuple[float, float] | None:
    """Return what `ColumnReader.dictionary_bytes` tells, without decoding the dictionary; None for other pages."""
    plan = _known_plan(page.layout, branch)
    if plan is None or plan.codec is None or plan.layout.dictionary is None or len(page.buffers) != 3:
        return None
    index, encoding, size = plan.codec[1] / 8, plan.layout.dictionary, page.buffers[2][1]
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
    if plan is None or not plan.is_scanned or rows > _SMALL_ROWS:
        return None
    data = _chunks(page, plan, most_bytes=_SMALL_BYTES)
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


def _chunks(page: Page, plan: _Plan, most_bytes: int | None = None) -> Chunks | None:
    """Return all chunks of a page, None if they are not mapped, are too large, or do not fit the description."""
    layout, at_hand = plan.layout, page.is_viewable if most_bytes is None else page.is_mapped
    count = 2 if layout.dictionary is None else 3
    if len(page.buffers) != count or layout.num_items != page.length or not at_hand:
        return None
    chunks = page.buffers[1]
    if layout.num_items * plan.least_bits > 8 * chunks[1] or (most_bytes is not None and chunks[1] > most_bytes):
        return None
    words = page.source.read(*page.buffers[0]) if page.is_mapped else page.read(0)
    table = ChunkTable(words, layout.num_items, chunks[1], layout.large)
    return Chunks(table, layout.num_buffers, definition=plan.definition is not None, data=page.view(1))


def _known_plan(layout: Any, branch: Branch) -> _Plan | None:
    key = id(layout), id(branch)
    known = _plans.get(key)
    if known is None:
        if len(_plans) >= _REMEMBERED:
            _plans.clear()
        known = _plans[key] = layout, branch, _plan(layout, branch)
    return known[2]


def _plan(layout: object, branch: Branch) -> _Plan | None:
    if not isinstance(layout, MiniBlockLayout) or branch.above or is_pair(branch.leaf):
        return None
    shape, encoding = take_shape(branch.leaf.storage_type), layout.values
    if (
        shape is None
        or shape.dimensions
        or layout.layers not in ((Layer.ALL_VALID_ITEM,), (Layer.NULLABLE_ITEM,))
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
    least, kind = sum(encoding.least_bits), branch.leaf.storage_type
    if layout.dictionary is not None:
        codec = encoding.chunk_codec("")
        if codec[1] not in (8, 16, 32, 64) or not (shape.width or is_binary_like(kind)):
            return None
        return _Plan(layout, branch, codec, shape, False, None, definition, least, is_binary_like(kind))
    if encoding.is_text:
        if shape.width >= 0:
            return None
        wide, table = encoding.text_codec("")
        return _Plan(layout, branch, None, shape, wide, table, definition, least, is_binary_like(kind))
    codec = encoding.chunk_codec("")
    if shape.width < 0 or codec[1] != (8 * shape.width or 1):
        return None
    return _Plan(layout, branch, codec, shape, False, None, definition, least, codec[1] == value_bits(kind))
