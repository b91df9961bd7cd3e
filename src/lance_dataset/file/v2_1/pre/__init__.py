"""Files marked as version 2.1 that were written before that version was stable (pylance 0.19 to 0.32).

Their page messages are translated into the stable layouts, and so are their chunks if necessary. The reader of file
version 2.1 then reads them. There is no writer.
"""

from __future__ import annotations

from lance_dataset.file.v2_1.pre.pages import PRE_PAGES

__all__ = ["PRE_PAGES"]
