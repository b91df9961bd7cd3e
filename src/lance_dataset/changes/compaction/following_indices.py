"""Indices that follow the rows of rewritten fragments: made anew before the rewrite is committed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lance_dataset._proto import table_pb2
from lance_dataset.index.remap import remap_index
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.indices.moved_rows import MovedRows, Relocation
from lance_dataset.table.indices.reuse import RewrittenRows, find_reuse_index, relocation
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import RewrittenIndex
from lance_dataset.table.paths import FileLocator

__all__ = ["indices_made_anew"]


def indices_made_anew(
    store: ObjectStore,
    root: str,
    locator: FileLocator,
    read: Manifest,
    indices: Sequence[table_pb2.IndexMetadata],
    moved: Sequence[RewrittenRows],
) -> Iterator[RewrittenIndex]:
    """Make indices anew, with the addresses that rows have in new fragments.

    Indices that were left as they were by earlier rewrites catch up with these first.

    Parameters
    ----------
    store, root
        The table, which gets the files.
    locator
        Finds the files of the version.
    read
        The version that is rewritten.
    indices
        Those of it that have to follow.
    moved
        Which rows are where.

    Yields
    ------
    RewrittenIndex
        One for each, once its files are durable; those of one that fails are removed again.

    Raises
    ------
    UnsupportedError
        An index cannot follow its rows.
    CorruptFileError
        The files of an index contradict the format.
    """
    if not indices:
        return
    reuse = find_reuse_index(read)
    earlier = () if reuse is None else relocation(reuse, locator).steps
    steps = Relocation((*earlier, MovedRows([each.group for each in moved], "the rewritten rows")))
    for index in indices:
        yield remap_index(store, root, locator, index, read.schema, steps)
