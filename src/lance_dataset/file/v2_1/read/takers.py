"""Pages as compiled random access wants them."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.take_shape import TakeShape, take_shape
from lance_dataset.file.v2_1.compressive import Encoding, FixedSizeList, Flat, Fsst, Variable
from lance_dataset.file.v2_1.layout import Layer
from lance_dataset.file.v2_1.read.arrays import FixedSizeListShape, value_bits
from lance_dataset.file.v2_1.read.chunk_values import fixed_codec
from lancecodec import CodecError, take_pages
from lancecodec.miniblock import Chunks
from lancecodec.take_pages import PageTaker

__all__ = ["Levels", "chunks_taker", "list_levels", "zipped_width"]

#: Codec of the definition levels, as the kernels number it, and how rows are lists.
Levels: TypeAlias = "tuple[tuple[int, int] | None, take_pages.Lists | None]"


def chunks_taker(
    encoding: Encoding,
    chunks: Chunks,
    value_type: pa.DataType,
    dictionary: pa.Array | None,
    levels: Levels,
    required: bool,
    where: str,
) -> PageTaker | None:
    """What takes rows out of chunks, None for what is left to `LeafPage.take`.

    Parameters
    ----------
    encoding, value_type, where
        See `open_values`.
    chunks
        All chunks of the page.
    dictionary
        The entries, if the values are indices.
    levels
        The codec of the definition levels as the kernels number it, and how rows are lists, if they are.
    required
        Whether nulls are damage.

    Raises
    ------
    CodecError, CorruptFileError, UnsupportedError
        As for `open_values`.
    """
    shape = take_shape(value_type)
    if shape is None:
        return None
    if dictionary is not None:
        return _indices_taker(encoding, chunks, shape, dictionary, levels, required, where)
    if isinstance(encoding, Variable | Fsst):
        stored = encoding.values if isinstance(encoding, Fsst) else encoding
        if not is_binary_like(value_type) or not isinstance(stored.offsets, Flat):
            return None
        table = encoding.symbol_table if isinstance(encoding, Fsst) else None
        return take_pages.text_chunks(
            chunks, stored.wide, symbol_table=table, definition=levels[0], lists=levels[1], required=required
        )
    items = _items(encoding, value_type, where)
    if items is None:
        return None
    kind, bits = fixed_codec(items, where)
    return take_pages.fixed_chunks(
        chunks, shape.width, kind, bits, definition=levels[0], lists=levels[1], required=required
    )


def _items(encoding: Encoding, value_type: pa.DataType, where: str) -> Encoding | None:
    """The values of a type as one encoding; lists of flat items are wide flat values."""
    if not isinstance(encoding, FixedSizeList):
        return None if pa.types.is_fixed_size_list(value_type) else encoding
    dimensions = []
    inner: Encoding = encoding
    while isinstance(inner, FixedSizeList):
        if inner.has_validity:
            return None
        dimensions.append(inner.dimension)
        inner = inner.values
    lists = FixedSizeListShape(value_type, dimensions, [False] * len(dimensions), where)
    if not isinstance(inner, Flat) or inner.bits != value_bits(lists.item_type):
        return None
    return Flat(inner.bits * lists.counts[-1])


def _indices_taker(
    encoding: Encoding,
    chunks: Chunks,
    shape: TakeShape,
    dictionary: pa.Array,
    levels: Levels,
    required: bool,
    where: str,
) -> PageTaker | None:
    kind, bits = fixed_codec(encoding, where)
    if bits not in (8, 16, 32, 64) or shape.dimensions or shape.width == 0:
        return None
    count = len(dictionary)
    if shape.width > 0:
        values = dictionary.buffers()[1]
        entries = b"" if values is None else values.slice(dictionary.offset * shape.width, count * shape.width)
        return take_pages.fixed_chunks(
            chunks,
            shape.width,
            kind,
            bits,
            definition=levels[0],
            entries=entries,
            count=count,
            lists=levels[1],
            required=required,
        )
    wide = is_wide(dictionary.type)
    _, offsets, data = dictionary.buffers()
    size = 8 if wide else 4
    ends = bytes(size) if offsets is None else offsets.slice(dictionary.offset * size, (count + 1) * size)
    return take_pages.fixed_chunks(
        chunks,
        shape.width,
        kind,
        bits,
        definition=levels[0],
        entries=b"" if data is None else data,
        offsets=ends,
        wide=wide,
        count=count,
        lists=levels[1],
        required=required,
    )


def list_levels(
    layers: tuple[Layer, ...], repetition: tuple[int, int] | None, started: memoryview, required: bool
) -> take_pages.Lists:
    """How the rows of a page with an item and a list layer are lists; CodecError if they are not.

    Parameters
    ----------
    layers
        The layers, inner-most first.
    repetition
        The codec of the repetition levels as the kernels number it.
    started
        See `RepetitionIndex`.
    required
        Whether a null list is damage.
    """
    if len(layers) != 2 or repetition is None:
        raise CodecError(f"layers {list(layers)} are no lists of values")
    items, lists = layers
    return take_pages.Lists(
        started,
        repetition,
        null_items=items is Layer.NULLABLE_ITEM,
        null_lists=lists in (Layer.NULLABLE_LIST, Layer.NULL_AND_EMPTY_LIST),
        empty_lists=lists in (Layer.EMPTYABLE_LIST, Layer.NULL_AND_EMPTY_LIST),
        required=required,
    )


def zipped_width(encoding: Encoding, value_type: pa.DataType, stored: int) -> int | None:
    """The width (see `TakeShape`) of zipped values of `stored` bytes, None for what is left to `LeafPage.take`."""
    shape = take_shape(value_type)
    if shape is None or shape.width < 0:
        return None
    if isinstance(encoding, Flat) and encoding.bits == 8 and shape.width == 0:
        return 0
    items = _items(encoding, value_type, "")
    if not isinstance(items, Flat) or items.bits != 8 * shape.width or shape.width != stored or stored == 0:
        return None
    return shape.width
