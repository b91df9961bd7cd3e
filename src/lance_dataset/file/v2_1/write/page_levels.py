"""Levels of a page as they are written."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lance_dataset.file.v2_1.layout import Layer
from lance_dataset.file.v2_1.nesting import Branch
from lancecodec import level_builder

__all__ = ["PageLevels", "page_levels"]


@dataclass(frozen=True)
class PageLevels:
    """Levels of a page, as `level_builder.Levels` has them.

    Attributes
    ----------
    layers
        Inner-most first.
    repetition, definition
        16-bit levels, one per item; None where the page has no such stream.
    num_items
        Entries of the streams (with no stream: number of values).
    num_visible_items
        Items that own a value of the leaf, valid or null.
    max_repetition
        Number of list layers.
    max_definition
        Highest definition level of the layers.
    max_visible_definition
        Items with a higher definition level own no value.
    """

    layers: tuple[Layer, ...]
    repetition: bytes | None
    definition: bytes | None
    num_items: int
    num_visible_items: int
    max_repetition: int
    max_definition: int
    max_visible_definition: int

    @property
    def has_streams(self) -> bool:
        """Whether there are levels to store."""
        return self.repetition is not None or self.definition is not None


def page_levels(levels: level_builder.Levels, branch: Branch) -> PageLevels:
    """Levels as `level_builder.build` found them, with some layers declared nullable in every page.

    The reference (14.0.2 and before) reads wrong values, or stops with an error, where one batch comes from pages that
    differ in whether a struct above a list, or a fixed-size list of structs, is nullable, or whose list below a
    nullable struct uses no level.
    """
    page = PageLevels(
        tuple(Layer(kind) for kind in levels.kinds),
        levels.repetition,
        levels.definition,
        levels.num_items,
        levels.num_visible_items,
        levels.max_repetition,
        levels.max_definition,
        levels.max_visible_definition,
    )
    return _declare(page, _uniform_layers(page.layers, branch))


def _uniform_layers(layers: tuple[Layer, ...], branch: Branch) -> tuple[Layer, ...]:
    """The layers of a page as all pages can have them.

    Structs above lists and fixed-size lists of structs, with the structs inside them, are nullable wherever the schema
    allows it, and lists below such structs use a level.
    """
    nests = list(reversed(branch.above))
    first = next((depth for depth, nest in enumerate(nests) if nest.kind != "struct"), len(nests))
    if first < len(nests) and nests[first].kind == "fixed_size_list":
        first = 0
    items = [depth for depth in range(first, len(nests)) if nests[depth].kind != "list" and nests[depth].field.nullable]
    if not items:
        return layers
    uniform = list(layers)
    for depth in range(items[-1] + 1):
        position = depth + 1  # behind the leaf
        if depth in items:
            uniform[position] = Layer.NULLABLE_ITEM
        elif layers[position] is Layer.ALL_VALID_LIST:
            uniform[position] = Layer.EMPTYABLE_LIST
    return tuple(uniform)


def _declare(page: PageLevels, layers: tuple[Layer, ...]) -> PageLevels:
    """The same items with levels for what layers now allow though it does not occur."""
    if layers == page.layers:
        return page
    numbers = [0]
    below = visible = 0
    in_list = False
    for old, new in zip(page.layers, layers, strict=True):
        numbers.extend(below + number for number in range(1, old.levels + 1))
        in_list = in_list or new.is_list
        below += new.levels
        visible += 0 if in_list else new.levels
    if page.definition is None:
        definition = bytes(2 * page.num_items)
    else:
        definition = np.array(numbers, np.uint16)[np.frombuffer(page.definition, np.uint16)].tobytes()
    return replace(page, layers=layers, definition=definition, max_definition=below, max_visible_definition=visible)
