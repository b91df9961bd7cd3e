"""Pages from before 2.1 was stable, read as nested arrays of their branch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.blob_fields import is_pair
from lance_dataset.file.structural.layout import (
    ConstantLayout,
    FullZipLayout,
    list_depth,
    max_definition,
    max_visible_definition,
)
from lance_dataset.file.structural.nesting import Branch, Nest
from lance_dataset.file.structural.read.constant import ConstantPage
from lance_dataset.file.structural.read.fullzip import FullZipPage
from lance_dataset.file.structural.read.leaf import LevelPage
from lance_dataset.file.structural.read.page import LeafPage, NestedPage, Page, PageGrammar
from lance_dataset.file.v2_1.pre.encodings import WRITERS
from lance_dataset.file.v2_1.pre.layout import PRE_LAYOUT, PreLayout, parse_page_layout
from lance_dataset.file.v2_1.pre.miniblock import EarlyMiniBlockPage, PreMiniBlockPage
from lance_dataset.types.logical import logical_from_arrow
from lance_dataset.types.schema import Field
from lancecodec.fullzip import ZipLayout

__all__ = ["PRE_PAGES"]


class ValidStructsPage:
    """A page without layers (written by 0.19 and 0.20), whose structs above the leaf are all read as valid.

    Definition levels tell which struct is null, but those releases read every null as a null leaf, and programs written
    for them rely on it. See `NestedPage`.

    Parameters
    ----------
    page
        The page, read with as many of the structs as it has levels for.
    depth
        Number of these structs.
    branch
        The leaf and all structs above it.
    """

    def __init__(self, page: NestedPage, depth: int, branch: Branch) -> None:
        self._page = page
        self._depth = depth
        self._branch = branch

    def read(self, start: int, stop: int) -> pa.Array:
        """See `NestedPage.read`."""
        return self._without_null_structs(self._page.read(start, stop))

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `NestedPage.take`."""
        return self._without_null_structs(self._page.take(rows))

    def _without_null_structs(self, array: pa.Array) -> pa.Array:
        for _ in range(self._depth):
            array = array.field(0)
        for kind in self._branch.types[1:]:
            array = pa.Array.from_buffers(kind, len(array), [None], 0, 0, [array])
        return array


def _open_page(page: Page, branch: Branch) -> NestedPage:
    if is_pair(branch.leaf):
        raise UnsupportedError(
            f"{page.where}: the values lie in the column itself, so there are no descriptions of them; "
            'read them with blob_handling="all_binary"'
        )
    stored: PreLayout = page.layout
    if not stored.has_layers:
        return _open_without_layers(page, branch, stored)
    return _open_levels(page, _expanded(branch, len(stored.layout.layers)), stored)


def _open_without_layers(page: Page, branch: Branch, stored: PreLayout) -> NestedPage:
    if any(nest.kind != "struct" for nest in branch.above):
        raise CorruptFileError(f"{page.where}: a page without layers inside {branch.arrow_type}")
    layout = stored.layout
    if isinstance(layout, ConstantLayout):
        alone = Branch(branch.leaf)
        return ValidStructsPage(_open_levels(page, alone, stored), 0, branch)
    layers = layout.layers * (1 + len(branch.above))
    levels = _open_levels(page, branch, replace(stored, layout=replace(layout, layers=layers)))
    return ValidStructsPage(levels, len(branch.above), branch)


def _expanded(branch: Branch, layers: int) -> Branch:
    """Return the branch with the item of a fixed-size list as leaf if the page has a layer for it (0.22 to 0.25)."""
    kind = branch.leaf.storage_type
    while layers > 1 + len(branch.above) and pa.types.is_fixed_size_list(kind):
        item = kind.value_field
        leaf = Field(item.name, -1, logical_from_arrow(item.type, branch.leaf.name), nullable=item.nullable)
        branch = Branch(leaf, (*branch.above, Nest(branch.leaf, "fixed_size_list", kind.list_size)))
        kind = item.type
    return branch


def _open_levels(page: Page, branch: Branch, stored: PreLayout) -> LevelPage:
    if branch.rows_per_value < 1:
        raise CorruptFileError(f"{page.where}: fixed-size lists of no items")
    return LevelPage(_leaf_page(page, branch, stored), branch)


def _leaf_page(page: Page, branch: Branch, stored: PreLayout) -> LeafPage:
    kind, count = branch.leaf.storage_type, branch.rows_per_value
    layout = stored.with_items(page.length * count)
    if isinstance(layout, ConstantLayout):
        return ConstantPage(page, layout, kind, count)
    if isinstance(layout, FullZipLayout):
        return FullZipPage(page, layout if layout.num_items else _counted(page, layout), kind, count)
    page_type = EarlyMiniBlockPage if stored.early_chunks else PreMiniBlockPage
    return page_type(page, layout, kind, count)


def _counted(page: Page, layout: FullZipLayout) -> FullZipLayout:
    """Return the layout of a list page of 0.22 with its number of items, which is counted in the page itself."""
    if len(page.buffers) < 2:
        raise UnsupportedError(
            f"{page.where}: pylance 0.21 wrote lists of wide values without their last items, which cannot be restored"
        )
    zipped = ZipLayout(
        bits_rep=layout.rep_bits,
        bits_def=layout.def_bits,
        max_repetition=list_depth(layout.layers),
        max_definition=max_definition(layout.layers),
        max_visible=max_visible_definition(layout.layers),
        width=None if layout.bits is None else layout.bits // 8,
    )
    items, visible, _, _ = zipped.count(page.read(0), np.array([0]), np.array([page.size_of(0)]))
    return replace(layout, num_items=items, num_visible_items=visible)


#: Pages of files marked as version 2.1, written by pylance 0.19 to 0.32.
PRE_PAGES = PageGrammar(f"({WRITERS}) 2.1", PRE_LAYOUT, parse_page_layout, _open_page)
