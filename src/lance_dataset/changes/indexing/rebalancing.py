"""Decision whether the partitions of a vector index are to be split or joined."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from lance_dataset.index.segments import Segment
from lance_dataset.index.vector.searching.sources import open_source
from lance_dataset.index.vector.training.existing import rebalanced_size
from lance_dataset.index.vector.training.rebalancing import are_unbalanced

__all__ = ["needs_rebalancing"]


def needs_rebalancing(segments: Sequence[Segment], added: Collection[int]) -> bool:
    """Return True if partitions of an index became too large or too small.

    They are those of all segments together. Partitions are not touched if a number of them was asked for, or if
    segments have different ones: then their makers chose them.

    Parameters
    ----------
    segments
        The segments of the index that cover fragments.
    added
        Fragments that the index does not cover. Their rows are taken to be distributed like the others.

    Raises
    ------
    CorruptFileError, MissingFileError, UnsupportedError
        The files cannot be read, or are of a kind that this release does not build.
    """
    if not segments or not added:
        return False
    last = segments[-1]
    details = last.metadata.details
    wanted = rebalanced_size(b"" if details is None else details.value, last.folder)
    if wanted is None:
        return False
    sources = [open_source(each.folder) for each in segments]
    if not all(np.array_equal(each.centroids, sources[0].centroids) for each in sources):
        return False
    sizes = np.sum([each.lengths for each in sources], axis=0)
    more = [last.reader.fragment(each) for each in added]
    rows = sum(fragment.num_rows for fragment in more if fragment is not None)
    covered = sum(each.num_rows for each in segments)
    return are_unbalanced(sizes * (1 + rows / covered) if covered else sizes, wanted)
