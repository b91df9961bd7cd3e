"""Page layouts as frozen values; file versions differ in the messages that describe the layouts."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import TypeAlias

from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.late_dataclass import dataclass

__all__ = [
    "BlobLayout",
    "ConstantLayout",
    "FullZipLayout",
    "Layer",
    "Layout",
    "MiniBlockLayout",
    "list_depth",
    "max_definition",
    "max_visible_definition",
]


class Layer(IntEnum):
    """Nulls and empty lists that one nesting level of the type can have in one page."""

    ALL_VALID_ITEM = 1
    ALL_VALID_LIST = 2
    NULLABLE_ITEM = 3
    NULLABLE_LIST = 4
    EMPTYABLE_LIST = 5
    NULL_AND_EMPTY_LIST = 6

    @property
    def is_list(self) -> bool:
        """True for a list or map."""
        return self not in (Layer.ALL_VALID_ITEM, Layer.NULLABLE_ITEM)

    @property
    def levels(self) -> int:
        """Number of definition levels that the layer uses."""
        return 2 if self is Layer.NULL_AND_EMPTY_LIST else int(self > Layer.ALL_VALID_LIST)


@dataclass(frozen=True)
class MiniBlockLayout:
    """Layout of chunks of a few KiB; `num_items` counts visible items, `large` chunks have 32-bit sizes.

    Layers are inner-most first, here and in the other layouts.
    """

    values: Encoding
    layers: tuple[Layer, ...]
    num_items: int
    num_buffers: int
    rep: Encoding | None = None
    definition: Encoding | None = None
    dictionary: Encoding | None = None
    dictionary_size: int = 0
    indexed: bool = False
    large: bool = False


@dataclass(frozen=True)
class FullZipLayout:
    """Layout of consecutive items with their control words, and `bits` per value or `length_bits` in front of each."""

    values: Encoding
    layers: tuple[Layer, ...]
    num_items: int
    num_visible_items: int
    rep_bits: int = 0
    def_bits: int = 0
    bits: int | None = None
    length_bits: int | None = None

    def is_side_by_side(self, bits: int, rows: int) -> bool:
        """Return True if a page is nothing but one value of so many bits per row, without levels."""
        return (
            self.layers == (Layer.ALL_VALID_ITEM,)
            and not self.rep_bits + self.def_bits
            and self.bits == self.values.flat_bits == bits
            and self.num_items == self.num_visible_items == rows
        )


@dataclass(frozen=True)
class ConstantLayout:
    """Layout with one value, or null, in every visible item."""

    layers: tuple[Layer, ...]
    inline_value: bytes | None = None
    rep: Encoding | None = None
    definition: Encoding | None = None
    num_rep_values: int = 0
    num_def_values: int = 0


@dataclass(frozen=True)
class BlobLayout:
    """Layout of positions and sizes of values elsewhere in the file; the inner page has a layout of its own."""

    inner: MiniBlockLayout | FullZipLayout | ConstantLayout
    layers: tuple[Layer, ...]


Layout: TypeAlias = MiniBlockLayout | FullZipLayout | ConstantLayout | BlobLayout


@lru_cache(maxsize=1024)
def list_depth(layers: tuple[Layer, ...]) -> int:
    """Return the number of list layers, which is the largest repetition level."""
    return sum(layer.is_list for layer in layers)


@lru_cache(maxsize=1024)
def max_definition(layers: tuple[Layer, ...]) -> int:
    """Return the largest definition level."""
    return sum(layer.levels for layer in layers)


def max_visible_definition(layers: tuple[Layer, ...]) -> int:
    """Return the largest definition level of an item that owns a value: levels of the layers inside the first list."""
    total = 0
    for layer in layers:
        if layer.is_list:
            break
        total += layer.levels
    return total
