"""Masking rows of fragments: new deletion files are written, but not committed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.events import emit
from lance_dataset.io.base import ObjectStore
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.table.commit.leftovers import remove_superseded
from lance_dataset.table.deletions import new_deletions, united, write_deletions
from lance_dataset.table.fragment import DeletionFile, Fragment
from lance_dataset.threads.waiting import map_waiting

__all__ = ["Masks", "mask_rows", "write_masks"]

#: Files that show how fast a disk is, and the seconds that a slow one takes to create each.
_TRIED = 8
_SLOW = 5e-4

#: Fragments with the offsets to mask, by fragment id.
_Hit: TypeAlias = Mapping[int, tuple[FragmentReader, NDArray[np.int64]]]


@dataclass(frozen=True)
class Masks:
    """Fragments in which rows were masked. Their deletion files are written.

    Attributes
    ----------
    updated
        Fragments with their new deletion file.
    removed
        Ids of fragments without any live row left, which do not get a file.
    affected_rows
        Newly masked physical offsets by fragment id.
    """

    updated: tuple[Fragment, ...]
    removed: tuple[int, ...]
    affected_rows: dict[int, NDArray[np.uint32]]

    @property
    def num_rows(self) -> int:
        """Number of rows that were masked."""
        return sum(len(rows) for rows in self.affected_rows.values())


def write_masks(
    store: ObjectStore, root: str, hits: Iterable[tuple[FragmentReader, NDArray[np.int64]]], version: int
) -> Masks:
    """Write new deletion files for rows to mask. If that fails, remove them.

    Parameters
    ----------
    store, root
        Store and path of the table.
    hits
        Fragments, and the ascending physical offsets of the live rows to mask. Fragments without such rows are skipped.
    version
        Version that the fragments belong to.
    """
    hit = {fragment.fragment.id: (fragment, rows) for fragment, rows in hits if len(rows)}
    written = _written_apart(store, root, hit, version) if store.waits(root) else _written(store, root, hit, version)
    return Masks(
        tuple(changed for changed in map(written.get, hit) if changed is not None),
        tuple(fragment_id for fragment_id in hit if written[fragment_id] is None),
        {fragment_id: rows.astype(np.uint32) for fragment_id, (_, rows) in hit.items()},
    )


def _written(store: ObjectStore, root: str, hit: _Hit, version: int) -> dict[int, Fragment | None]:
    """Write the deletion files of fragments one after the other, and bring them to the disk together.

    If the disk keeps the first ones waiting before they exist, all others are written several at the same time.
    """
    written: dict[int, Fragment | None] = {}
    paths: list[str] = []

    def contents() -> Iterator[tuple[str, bytes]]:
        start = time.perf_counter()
        for fragment_id, (fragment, rows) in hit.items():
            if len(paths) == _TRIED and time.perf_counter() - start > _SLOW * _TRIED:
                return
            written[fragment_id] = None
            offsets = united(fragment.deletions, rows)
            if len(offsets) < fragment.physical_rows:
                file, path, data = new_deletions(store, root, fragment_id, version, offsets)
                written[fragment_id] = _masked(fragment, file)
                paths.append(path)
                yield path, data

    store.put_new(contents(), lambda calls: map_waiting(lambda call: call(), calls))
    for path in paths:
        emit("file_audit", mode="create", type="deletion", path=path)
    left = {fragment_id: each for fragment_id, each in hit.items() if fragment_id not in written}
    try:
        return written | _written_apart(store, root, left, version)
    except BaseException:
        remove_superseded(store, root, filter(None, written.values()), kept=())
        raise


def _written_apart(store: ObjectStore, root: str, hit: _Hit, version: int) -> dict[int, Fragment | None]:
    """Write the deletion files of fragments to a store that is waited for, several at the same time."""
    written: dict[int, Fragment | None] = {}

    def write(fragment_id: int) -> None:
        written[fragment_id] = mask_rows(store, root, *hit[fragment_id], version)

    try:
        map_waiting(write, list(hit))
    except BaseException:
        remove_superseded(store, root, filter(None, written.values()), kept=())
        raise
    return written


def mask_rows(
    store: ObjectStore, root: str, fragment: FragmentReader, rows: NDArray[np.int64], version: int
) -> Fragment | None:
    """Write a deletion file that masks more rows of a fragment; return the new metadata, or None if no row is left."""
    offsets = united(fragment.deletions, rows)
    if len(offsets) == fragment.physical_rows:
        return None
    file = write_deletions(store, root, fragment.fragment.id, version, offsets)
    return _masked(fragment, file)


def _masked(fragment: FragmentReader, file: DeletionFile) -> Fragment:
    return replace(fragment.fragment, deletion_file=file, physical_rows=fragment.physical_rows)
