"""Queries of searches."""

from __future__ import annotations

from lance_dataset.late_dataclass import dataclass

__all__ = ["MinHashQuery"]


@dataclass
class MinHashQuery:
    """Search for texts that are similar to another one, in a column with a MinHash index.

    The result has a column `_distance`, which is 1 minus the estimated Jaccard similarity of the texts, and is in
    ascending order by it. It has as many rows as the limit of the scan allows, 10 by default.

    Parameters
    ----------
    text
        The other text. It is divided into tokens like those of the column.
    column
        Name of the column.
    """

    text: str
    column: str
