"""Row counts and file sizes that old releases left out, filled in when the next version is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.reader import open_metadata
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.deletions import read_deletions
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.fragment_list import FragmentList, edited
from lance_dataset.table.lineage.hidden import read_hidden_column
from lance_dataset.table.manifest import BasePath
from lance_dataset.table.paths import FileLocator
from lance_dataset.threads.streams import map_parallel

__all__ = ["Completion", "FragmentCompletion"]


class Completion(Protocol):
    """Access to the files that the manifest of a new version depends on."""

    def __call__(self, fragments: Sequence[Fragment], bases: Sequence[BasePath]) -> FragmentList:
        """Return the fragments with all counts and sizes."""

    def hidden_column(self, fragment: Fragment, name: str, bases: Sequence[BasePath]) -> NDArray[np.uint64]:
        """Return row lineage of a fragment that is stored in one of its files, see `read_hidden_column`."""

    def locator(self, bases: Sequence[BasePath]) -> FileLocator:
        """Return a locator of the files."""


class FragmentCompletion:
    """Reads the files of fragments whose row counts or file sizes are unknown. Every file is read once.

    Parameters
    ----------
    store, root
        The table.
    """

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store = store
        self._root = root
        self._known: dict[tuple[object, ...], Fragment] = {}

    def locator(self, bases: Sequence[BasePath]) -> FileLocator:
        """Return a locator of the files."""
        return FileLocator(self._store, self._root, bases)

    def __call__(self, fragments: Sequence[Fragment], bases: Sequence[BasePath]) -> FragmentList:
        """Return the fragments with all counts and sizes. Those without live rows are left out.

        Raises
        ------
        MissingFileError
            A file of such a fragment is gone.
        CorruptFileError
            A file contradicts the format, or more rows are deleted than exist.
        """
        listed = FragmentList.of(fragments)
        columns = listed.columns
        lacking = [listed[position] for position in np.flatnonzero(~columns.is_complete).tolist()]
        unknown = [each for each in lacking if _key(each) not in self._known]
        if unknown:
            locator = FileLocator(self._store, self._root, bases)
            known = map_parallel(partial(_completed, locator), unknown, parallel=True)
            self._known |= zip(map(_key, unknown), known, strict=True)
        filled = {each.id: _filled(each, self._known[_key(each)]) for each in lacking}
        listed = edited(listed, updated=filled)
        columns = listed.columns
        gone = columns.ids[(columns.physical_rows == 0) | (columns.num_rows == 0)]
        return edited(listed, removed=set(gone.tolist()))

    def hidden_column(self, fragment: Fragment, name: str, bases: Sequence[BasePath]) -> NDArray[np.uint64]:
        """Return lineage of a fragment that is stored in one of its files, with the errors of `read_hidden_column`."""
        return read_hidden_column(FileLocator(self._store, self._root, bases), fragment, name)


def _key(fragment: Fragment) -> tuple[object, ...]:
    """Return the values that counts and sizes depend on."""
    return fragment.id, fragment.files, fragment.deletion_file, fragment.physical_rows


def _filled(fragment: Fragment, known: Fragment) -> Fragment:
    return replace(fragment, files=known.files, deletion_file=known.deletion_file, physical_rows=known.physical_rows)


def _completed(locator: FileLocator, fragment: Fragment) -> Fragment:
    where = f"fragment {fragment.id}"
    if not fragment.files:
        raise CorruptFileError(f"{where}: has no data files and does not state its number of rows")
    rows = fragment.physical_rows or _count_rows(locator, fragment.files[0])
    files = tuple(file if file.file_size_bytes else _sized(locator, file) for file in fragment.files)
    complete = replace(fragment, physical_rows=rows, files=files)
    if complete.num_deletions is None and complete.deletion_file is not None:
        count = len(read_deletions(locator, complete, rows))
        deletion_file = replace(complete.deletion_file, num_deleted_rows=count) if count else None
        complete = replace(complete, deletion_file=deletion_file)
    return complete


def _count_rows(locator: FileLocator, file: DataFile) -> int:
    store, path = locator.data_file(file)
    source = store.open_input(path)
    try:
        return open_metadata(source, file.fields, legacy=file.is_legacy).num_rows
    finally:
        source.close()


def _sized(locator: FileLocator, file: DataFile) -> DataFile:
    store, path = locator.data_file(file)
    source = store.open_input(path)
    try:
        return replace(file, file_size_bytes=source.size)
    finally:
        source.close()
