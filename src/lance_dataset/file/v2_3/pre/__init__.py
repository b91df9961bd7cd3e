"""Files marked as 2.3 from before the planar layout: pages as in 2.2 (pylance 4 to 13), and sparse ones (10 to 13)."""

from __future__ import annotations

from lance_dataset.file.v2_3.pre.pages import PRE_PAGES

__all__ = ["PRE_PAGES"]
