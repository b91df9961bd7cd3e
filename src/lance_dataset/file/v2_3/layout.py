"""Page layouts of 2.3 files as frozen values: structure and values in planes of their own.

A page with levels is translated to the layout of 2.2 whose bytes it has; a sparse page has a layout of its own.
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
    """`length` unsigned integers of 64 bits."""

    encoding: Encoding
    length: int


@dataclass(frozen=True)
class ValiditySet:
    """The null slots of a layer: those at `positions`, or (`lists_valid`) all others."""

    positions: StoredSequence
    lists_valid: bool


@dataclass(frozen=True)
class SparseValidity:
    """A struct, or the leaf."""

    validity: ValiditySet


@dataclass(frozen=True)
class SparseList:
    """A list or map: which slots have items, and how many each; the others are empty or null."""

    positions: StoredSequence
    counts: StoredSequence
    num_child_slots: int
    validity: ValiditySet


@dataclass(frozen=True)
class SparseFixedSizeList:
    """A fixed-size list of structs."""

    dimension: int
    validity: ValiditySet


SparseLayer: TypeAlias = SparseValidity | SparseList | SparseFixedSizeList


@dataclass(frozen=True)
class DictionaryLayout:
    """Distinct values, and an index into them for each slot, null ones included."""

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
        The layout that a page of 2.2 without lists and nulls would have for the values of the leaf's slots: a value
        per slot in chunks (`num_items` is 0 here, as the layers tell it) or behind a dictionary, per valid slot if
        zipped; a `ConstantLayout` without value stands for no values at all.
    """

    layers: tuple[SparseLayer, ...]
    values: SparseValues


PlanarLayout: TypeAlias = MiniBlockLayout | FullZipLayout | ConstantLayout | SparseLayout
