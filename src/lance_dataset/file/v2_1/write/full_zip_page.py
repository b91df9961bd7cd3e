"""Pages of items one after another, each with its levels in front."""

from __future__ import annotations

from lance_dataset.file.buffers import allocate
from lance_dataset.file.v2_1.compressive import FixedSizeList, Flat
from lance_dataset.file.v2_1.layout import FullZipLayout
from lance_dataset.file.v2_1.write.encoded import Bytes, EncodedChunks, EncodedItems
from lance_dataset.file.v2_1.write.page_levels import PageLevels
from lance_dataset.file.v2_1.write.written import WrittenPage
from lancecodec import levels as level_codec
from lancecodec.fullzip import ZipLayout

__all__ = ["full_zip_page", "plain_page"]


def full_zip_page(levels: PageLevels, items: EncodedItems) -> WrittenPage:
    """Zip the levels and values of a page.

    Parameters
    ----------
    levels
        Of the page.
    items
        Its visible values.
    """
    rep_bits = 0 if levels.repetition is None else levels.max_repetition.bit_length()
    def_bits = _definition_bits(levels.definition)
    layout = FullZipLayout(
        values=items.encoding,
        layers=levels.layers,
        num_items=levels.num_items,
        num_visible_items=levels.num_visible_items,
        rep_bits=rep_bits,
        def_bits=def_bits,
        bits=None if items.width is None else 8 * items.width,
        length_bits=items.offset_bits,
    )
    if rep_bits == 0 and def_bits == 0 and items.width is not None:
        return WrittenPage(layout, [[items.values]], items.reason)  # nothing to zip them with
    return WrittenPage(layout, _zip(levels, items, rep_bits, def_bits), items.reason)


def plain_page(levels: PageLevels, chunks: EncodedChunks) -> WrittenPage:
    """A page without levels, all of whose chunks are values of whole bytes side by side."""
    encoding, bits = chunks.encoding, 1
    while isinstance(encoding, FixedSizeList):
        bits *= encoding.dimension
        encoding = encoding.values
    if not isinstance(encoding, Flat):
        raise ValueError(f"values encoded as {encoding} do not lie side by side")
    layout = FullZipLayout(
        values=chunks.encoding,
        layers=levels.layers,
        num_items=levels.num_items,
        num_visible_items=levels.num_visible_items,
        rep_bits=0,
        def_bits=0,
        bits=bits * encoding.bits,
        length_bits=None,
    )
    return WrittenPage(layout, [[chunks.buffers[0][0]]], chunks.reason)


def _definition_bits(definition: bytes | None) -> int:
    """Bits of a definition level; at least 1 where the page has a stream, though its levels may all be 0."""
    return 0 if definition is None else max(1, level_codec.max_level(definition).bit_length())


def _zip(levels: PageLevels, items: EncodedItems, rep_bits: int, def_bits: int) -> list[list[Bytes]]:
    zipping = ZipLayout(
        bits_rep=rep_bits,
        bits_def=def_bits,
        max_repetition=levels.max_repetition,
        max_definition=levels.max_definition,
        max_visible=levels.max_visible_definition,
        width=items.width,
        offset_bits=items.offset_bits,
    )
    repetition = levels.repetition if rep_bits else None
    definition = levels.definition if def_bits else None
    size, rows, _ = zipping.zipped_size(
        levels.num_items,
        items.values,
        repetition=repetition,
        definition=definition,
        offsets=items.offsets,
        wide=items.wide,
    )
    out = allocate(size)
    width = _position_width(size) if items.width is None or rep_bits else 0
    index = allocate((rows + 1) * width) if width else None
    zipping.zip_items(
        levels.num_items,
        items.values,
        out,
        index,
        width,
        repetition=repetition,
        definition=definition,
        offsets=items.offsets,
        wide=items.wide,
    )
    return [[out]] if index is None else [[out], [index]]


def _position_width(size: int) -> int:
    """Bytes of a position of up to `size`: 1, 2, 4 or 8."""
    return next(width for width in (1, 2, 4, 8) if size < 1 << (8 * width))
