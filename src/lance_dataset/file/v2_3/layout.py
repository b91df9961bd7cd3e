"""Page layouts of 2.3 files as frozen values: structure and values in separate planes.

A page with levels is translated to the layout of 2.2 with the same bytes. A sparse page has its own layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.layout import ConstantLayout, FullZipLayout, MiniBlockLayout

__all__ = [
    "DictionaryLayout",
    "PlanarLayout",
    "SparseFixedSizeList",
    "SparseLayer",
    "SparseLayout",
    "SparseList",
    "SparseValidity",
    "SparseValues",
    "StoredSequence",
    "ValiditySet",
]


@dataclass(frozen=True)
class StoredSequence:
    """Stored sequence of `length` unsigned 64-bit integers."""

    encoding: Encoding
    length: int


@dataclass(frozen=True)
class ValiditySet:
    """Null slots of a layer: those at `positions`, or all others if `lists_valid`."""

    positions: StoredSequence
    lists_valid: bool


@dataclass(frozen=True)
class SparseValidity:
    """Layer of a struct, or of the leaf."""

    validity: ValiditySet


@dataclass(frozen=True)
class SparseList:
    """Layer of a list or map: the slots that have items, with the number of items. Other slots are empty or null."""

    positions: StoredSequence
    counts: StoredSequence
    num_child_slots: int
    validity: ValiditySet


@dataclass(frozen=True)
class SparseFixedSizeList:
    """Layer of a fixed-size list of structs."""

    dimension: int
    validity: ValiditySet


SparseLayer: TypeAlias = SparseValidity | SparseList | SparseFixedSizeList


@dataclass(frozen=True)
class DictionaryLayout:
    """Distinct values, with an index into them for each slot, including nulls."""

    indices: Encoding
    items: FullZipLayout


SparseValues: TypeAlias = MiniBlockLayout | FullZipLayout | ConstantLayout | DictionaryLayout


@dataclass(frozen=True)
class SparseLayout:
    """A page without levels.

    Attributes
    ----------
    layers
        Outermost first; the last is the leaf.
    values
        The layout of the values of the leaf slots, as in a page of 2.2 without lists and nulls. Chunks and dictionaries
        have a value for every slot, full-zip values only for valid slots. `num_items` is 0 here for chunks, as the
        layers tell it. A `ConstantLayout` without a value means that no values are stored.
    """

    layers: tuple[SparseLayer, ...]
    values: SparseValues


PlanarLayout: TypeAlias = MiniBlockLayout | FullZipLayout | ConstantLayout | SparseLayout
