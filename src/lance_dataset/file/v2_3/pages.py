"""Pages of 2.3 files, read as nested arrays of their branch."""

from __future__ import annotations

from lance_dataset.file.structural.layout import FullZipLayout, MiniBlockLayout
from lance_dataset.file.structural.nesting import Branch
from lance_dataset.file.structural.read.constant import ConstantPage
from lance_dataset.file.structural.read.fullzip import FullZipPage
from lance_dataset.file.structural.read.leaf import LevelPage
from lance_dataset.file.structural.read.page import NestedPage, Page, PageGrammar
from lance_dataset.file.v2_3.layout import SparseLayout
from lance_dataset.file.v2_3.messages import PLANAR_LAYOUT, parse_planar_layout
from lance_dataset.file.v2_3.miniblock import PlanarMiniBlockPage
from lance_dataset.file.v2_3.sparse import SparsePage

__all__ = ["PLANAR_PAGES"]


def _open_page(page: Page, branch: Branch) -> NestedPage:
    layout = page.layout
    if isinstance(layout, SparseLayout):
        return SparsePage(page, layout, branch)
    arguments = branch.leaf.storage_type, branch.rows_per_value
    if isinstance(layout, MiniBlockLayout):
        return LevelPage(PlanarMiniBlockPage(page, layout, *arguments), branch)
    if isinstance(layout, FullZipLayout):
        return LevelPage(FullZipPage(page, layout, *arguments), branch)
    return LevelPage(ConstantPage(page, layout, *arguments), branch)


#: Pages of 2.3 files.
PLANAR_PAGES = PageGrammar("2.3", PLANAR_LAYOUT, parse_planar_layout, _open_page)
