"""Pages of 2.1 and 2.2 files, read as nested arrays of their branch."""

from __future__ import annotations

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.blob_fields import is_pair
from lance_dataset.file.structural.layout import BlobLayout, FullZipLayout, Layout, MiniBlockLayout
from lance_dataset.file.structural.nesting import Branch
from lance_dataset.file.structural.read.blob import DESCRIPTION_BRANCH, BlobPage
from lance_dataset.file.structural.read.constant import ConstantPage
from lance_dataset.file.structural.read.fullzip import FullZipPage
from lance_dataset.file.structural.read.leaf import LevelPage
from lance_dataset.file.structural.read.miniblock import MiniBlockPage
from lance_dataset.file.structural.read.page import LeafPage, Page, PageGrammar
from lance_dataset.file.v2_1.messages import PAGE_LAYOUT, parse_page_layout

__all__ = ["LEVEL_PAGES"]


def _open_page(page: Page, branch: Branch) -> LevelPage:
    return LevelPage(_leaf_page(page, page.layout, branch), branch)


def _leaf_page(page: Page, layout: Layout, branch: Branch) -> LeafPage:
    arguments = branch.leaf.storage_type, branch.rows_per_value
    if isinstance(layout, BlobLayout):
        return BlobPage(page, layout, _leaf_page(page, layout.inner, DESCRIPTION_BRANCH), branch.leaf.storage_type)
    if is_pair(branch.leaf):
        raise UnsupportedError(
            f"{page.where}: the values lie in the column itself, so there are no descriptions of them; "
            'read them with blob_handling="all_binary"'
        )
    if isinstance(layout, MiniBlockLayout):
        return MiniBlockPage(page, layout, *arguments)
    if isinstance(layout, FullZipLayout):
        return FullZipPage(page, layout, *arguments)
    return ConstantPage(page, layout, *arguments)


#: Pages of 2.1 and 2.2 files.
LEVEL_PAGES = PageGrammar("2.1 or 2.2", PAGE_LAYOUT, parse_page_layout, _open_page, is_plain=True)
