"""Indices that follow the rows of rewritten fragments. They are rebuilt before the rewrite is committed."""

from __future__ import annotations

import uuid
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
    base: Manifest,
    indices: Sequence[table_pb2.IndexMetadata],
    moved: Sequence[RewrittenRows],
    made: list[str],
) -> Iterator[RewrittenIndex]:
    """Rebuild indices with the addresses that rows have in the new fragments.

    Earlier rewrites whose remapping was deferred are applied first.

    Parameters
    ----------
    store, root
        Store and path of the table, where the files are written.
    base
        Version that the rewrite is based on.
    indices
        Its indices that must follow.
    moved
        Rows that the rewrite moved.
    made
        List that gets the id of each new index before any of its files is written, so that the caller can remove them.

    Yields
    ------
    RewrittenIndex
        The new index for each old one, once its files are durable.

    Raises
    ------
    UnsupportedError
        An index cannot follow its rows.
    CorruptFileError
        The files of an index contradict the format.
    """
    if not indices:
        return
    locator = FileLocator(store, root, base.base_paths)
    reuse = find_reuse_index(base)
    earlier = () if reuse is None else relocation(reuse, locator).steps
    steps = Relocation((*earlier, MovedRows([each.group for each in moved], "the rewritten rows")))
    for index in indices:
        made.append(str(uuid.uuid4()))
        yield remap_index(store, root, locator, index, base.schema, steps, made[-1])
