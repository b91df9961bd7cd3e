"""Small pages of fixed-width values without nulls, chosen and encoded by one call of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
from google.protobuf.message import Message

from lance_dataset.file.container import stored_encoding
from lance_dataset.file.options import EncodingOptions
from lance_dataset.file.structural.arrays import value_bits
from lance_dataset.file.structural.encodings.bitpacking import InlineBitpacking
from lance_dataset.file.structural.encodings.flat import Flat
from lance_dataset.file.structural.encodings.request import Bytes
from lance_dataset.file.structural.layout import FullZipLayout, Layer, MiniBlockLayout
from lance_dataset.file.structural.write.dictionary import sampled_rows
from lancecodec import word_pages

__all__ = ["SmallPage", "small_page", "word_bytes"]

#: Pages of more bytes are encoded with the other ones: for them it does not matter what the choice costs.
_MOST_BYTES = 256 << 10
_WORD_BITS = (8, 16, 32, 64)
_DEFAULTS = EncodingOptions()
_LAYERS = (Layer.ALL_VALID_ITEM,)


class SmallPage(NamedTuple):
    """A page without levels.

    Attributes
    ----------
    encoding
        Descriptor as it is stored.
    buffers
        The page buffers in order, each as a list of parts to be concatenated.
    """

    encoding: bytes
    buffers: list[list[Bytes]]


def word_bytes(arrow_type: pa.DataType, options: EncodingOptions) -> int:
    """Return the bytes of a value of a type of which `small_page` makes pages, 0 for other types and options."""
    bits = value_bits(arrow_type)
    return bits // 8 if bits in _WORD_BITS and options == _DEFAULTS else 0


def small_page(array: pa.Array, width: int, large: bool, to_message: Callable[[Any], Message]) -> SmallPage | None:
    """Encode some values as `LeafEncoder` would, if they are few and a kernel is sure of their smallest form.

    Parameters
    ----------
    array
        Values without nulls, at least one, of a type of which `word_bytes` is not 0.
    width
        Bytes of a value.
    large
        True if chunks are described with 32 bits, which is from 2.2 on.
    to_message
        Returns the message of the file version that describes a page.

    Returns
    -------
    SmallPage or None
        None if the values are to be encoded in another way.
    """
    count = len(array)
    if count * width > _MOST_BYTES:
        return None
    values, begin = array.buffers()[1], array.offset * width
    encoded = word_pages.encode(values, begin, count, width, large, *sampled_rows(count, width))
    if encoded is None:
        return None
    if encoded:
        return SmallPage(_packed_encoding(width, count, large, to_message), [[part] for part in encoded])
    return SmallPage(_plain_encoding(width, count, to_message), [[values.slice(begin, count * width)]])


@lru_cache(maxsize=64)
def _packed_encoding(width: int, count: int, large: bool, to_message: Callable[[Any], Message]) -> bytes:
    layout = MiniBlockLayout(InlineBitpacking(8 * width), _LAYERS, count, num_buffers=1, large=large)
    return stored_encoding(to_message(layout))


@lru_cache(maxsize=64)
def _plain_encoding(width: int, count: int, to_message: Callable[[Any], Message]) -> bytes:
    layout = FullZipLayout(Flat(8 * width), _LAYERS, count, count, bits=8 * width)
    return stored_encoding(to_message(layout))
