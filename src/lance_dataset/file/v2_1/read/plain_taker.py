"""Opening the plainest mini-block pages for random access alone, with next to nothing done per page.

A take from thousands of small fragments opens thousands of pages, whose descriptions are all the same: what follows
from the description is found out once. A page that is not what its description says is left to `MiniBlockPage`, which
tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.blob_fields import is_described
from lance_dataset.file.take_shape import TakeShape, take_shape
from lance_dataset.file.v2_1.compressive import Encoding, Flat, Fsst, General, Variable
from lance_dataset.file.v2_1.layout import Layer, MiniBlockLayout
from lance_dataset.file.v2_1.nesting import Branch
from lance_dataset.file.v2_1.read.chunk_values import count_buffers, fixed_codec, stored_bits
from lance_dataset.file.v2_1.read.miniblock import stream_codec
from lance_dataset.file.v2_1.read.page import Page
from lancecodec import take_pages
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.take_pages import PageTaker

__all__ = ["plain_taker"]

_REMEMBERED = 1 << 10


@dataclass(frozen=True, eq=False)
class _Plan:
    """What a description says of a page.

    Attributes
    ----------
    layout, branch
        What it is for.
    codec
        Kind and width of the values as the kernels number them; None for strings and binaries.
    shape
        Shape of the values.
    wide, symbol_table
        Those of strings and binaries as stored.
    definition
        Codec of the definition levels.
    least_bits
        Bits that a value has at least in a chunk.
    """

    layout: MiniBlockLayout
    branch: Branch
    codec: tuple[int, int] | None
    shape: TakeShape
    wide: bool
    symbol_table: bytes | None
    definition: tuple[int, int] | None
    least_bits: float


#: By the identities of layout and branch, which the plan keeps alive; None for pages that are not plain.
_plans: dict[tuple[int, int], tuple[Any, Any, _Plan | None]] = {}


def plain_taker(page: Page, branch: Branch) -> PageTaker | None:
    """What takes rows of a mapped page of values without lists, dictionary and compression; None for all others.

    Raises
    ------
    CodecError
        The page contradicts its description.
    """
    layout = page.layout
    key = id(layout), id(branch)
    known = _plans.get(key)
    if known is None:
        if len(_plans) >= _REMEMBERED:
            _plans.clear()
        known = _plans[key] = layout, branch, _plan(layout, branch)
    plan = known[2]
    if plan is None or len(page.buffers) != 2 or layout.num_items != page.length or page.source.mapped is None:
        return None
    source, (words, chunks) = page.source, page.buffers
    if layout.num_items * plan.least_bits > 8 * chunks[1]:
        return None
    table = ChunkTable(source.read(*words), layout.num_items, chunks[1], layout.large)
    data = Chunks(table, layout.num_buffers, definition=plan.definition is not None, data=source.read(*chunks))
    required = not branch.leaf.nullable
    if plan.codec is None:
        return take_pages.text_chunks(
            data, plan.wide, symbol_table=plan.symbol_table, definition=plan.definition, required=required
        )
    return take_pages.fixed_chunks(data, plan.shape.width, *plan.codec, definition=plan.definition, required=required)


def _plan(layout: object, branch: Branch) -> _Plan | None:
    if not isinstance(layout, MiniBlockLayout) or branch.above or is_described(branch.leaf):
        return None
    shape, encoding = take_shape(branch.leaf.storage_type), layout.values
    if (
        shape is None
        or shape.dimensions
        or layout.layers not in ((Layer.ALL_VALID_ITEM,), (Layer.NULLABLE_ITEM,))
        or layout.dictionary is not None
        or layout.rep is not None
        or layout.indexed
        or isinstance(encoding, General)
        or layout.num_buffers != count_buffers(encoding)
    ):
        return None
    try:
        definition = stream_codec(layout.definition, "")
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
    least = sum(stored_bits(encoding))
    if isinstance(encoding, Variable | Fsst):
        stored = encoding.values if isinstance(encoding, Fsst) else encoding
        if shape.width >= 0 or not isinstance(stored.offsets, Flat):
            return None
        table = encoding.symbol_table if isinstance(encoding, Fsst) else None
        return _Plan(layout, branch, None, shape, stored.wide, table, definition, least)
    codec = fixed_codec(encoding, "")
    if shape.width < 0 or codec[1] != (8 * shape.width or 1):
        return None
    return _Plan(layout, branch, codec, shape, False, None, definition, least)
