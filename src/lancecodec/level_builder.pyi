"""Nested Arrow data -> repetition and definition levels of one page."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

#: Leaf or struct: validity bitmap or None, bit of array slot 0.
ItemLayer: TypeAlias = tuple[Literal["item"], Buffer | None, int]
#: List or map: offsets (entry 0 is slot 0's begin), 64-bit or 32-bit, validity bitmap or None, bit of array slot 0.
ListLayer: TypeAlias = tuple[Literal["list"], Buffer, bool, Buffer | None, int]
#: Structural fixed-size list: dimension, validity bitmap or None, bit of array slot 0.
FixedSizeListLayer: TypeAlias = tuple[Literal["fixed_size_list"], int, Buffer | None, int]
#: Leaf of Arrow's null type: every slot is null.
NullLayer: TypeAlias = tuple[Literal["null"]]

class Levels:
    """Levels of a page as `build` makes them.

    Attributes
    ----------
    kinds
        One number (1 to 6, as page descriptors have them) per layer, inner-most first.
    repetition, definition
        16-bit little-endian levels, one per item; None where the page has no such stream.
    num_items
        Entries of the streams (with no stream: number of values).
    num_visible_items
        Items that own a value of the leaf, valid or null.
    max_repetition
        Number of list layers; rows start where the repetition level has this value.
    max_definition
        Highest definition level of the layers; it need not occur in the page.
    max_visible_definition
        Items with a higher definition level own no value.
    num_slot_ranges
        Number of ranges of the leaf array that hold the values.
    slot_range
        ``(start, count)`` of the values in the leaf array, None if they are several ranges.
    """

    @property
    def kinds(self) -> tuple[int, ...]: ...
    @property
    def repetition(self) -> bytes | None: ...
    @property
    def definition(self) -> bytes | None: ...
    @property
    def num_items(self) -> int: ...
    @property
    def num_visible_items(self) -> int: ...
    @property
    def max_repetition(self) -> int: ...
    @property
    def max_definition(self) -> int: ...
    @property
    def max_visible_definition(self) -> int: ...
    @property
    def num_slot_ranges(self) -> int: ...
    @property
    def slot_range(self) -> tuple[int, int] | None: ...
    def slot_ranges(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        """Write the ranges of the leaf array that hold the values, in order, each `num_slot_ranges` entries."""

    def slot_indices(self, out: NDArray[np.int64]) -> None:
        """Write the index of every value in the leaf array, in order; `out` has `num_visible_items` entries."""

def build(rows: int, layers: Iterable[ItemLayer | ListLayer | FixedSizeListLayer | NullLayer]) -> Levels:
    """Build the levels of one page of a leaf column of any nesting.

    What lies under a null list is dropped; what lies under a null struct or a null fixed-size list is masked: lists
    become entries without a value, values stay. The kind of a layer follows from what is not dropped: it has nulls if
    a slot is null or below a null struct, and a list layer has empties if an empty list is not masked, as in the files
    of the reference. Levels are numbered as Lance 2.1 does, from the leaf outwards.

    Parameters
    ----------
    rows
        Rows of the page: slots 0 to rows - 1 of the outermost layer.
    layers
        Outermost layer first, the leaf (an item layer) last. Slots of a layer count from the place that its offsets and
        its bit offset give: the children of struct slot k are slots k, the elements of list slot k are slots
        ``offsets[k]`` to ``offsets[k + 1] - 1`` (offsets are taken as they are, whatever the first one is), those of
        fixed-size list slot k are slots ``k * dimension`` to ``(k + 1) * dimension - 1``. So a sliced struct or
        fixed-size list asks for children sliced alike, a sliced list for the whole of its child.

    Raises
    ------
    CodecError
        A buffer is too short for its slots, offsets decrease, or the page has more than 2**32 - 1 items.
    """
