"""Files that say 2.1 and were written before that version was stable (pylance 0.19 to 0.32).

Their page messages are translated into the layouts of today, where need be their chunks too, and then read by the
reader of file version 2.1. There is no writer.
"""

from __future__ import annotations

from lance_dataset.file.v2_1.pre.pages import PRE_PAGES

__all__ = ["PRE_PAGES"]
