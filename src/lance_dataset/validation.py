"""Checks that the files of a version are there and agree with its manifest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from lance_dataset.errors import CorruptFileError, MissingFileError
from lance_dataset.io.paths import safe_join
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.pool import stream
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.indices.coverage import parse_indices
from lance_dataset.table.indices.metadata import IndexMetadata
from lance_dataset.table.lineage.segments import Runs
from lance_dataset.table.paths import FileLocator

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["validate_dataset", "validate_fragment"]

_AHEAD = 16


def validate_dataset(dataset: LanceDataset) -> None:
    """Check all fragments, the row ids of all of them together, and the files of indices.

    Files are opened anew, whatever is open already, and closed again after each fragment.

    Raises
    ------
    CorruptFileError, MissingFileError
        Something is wrong.
    """
    manifest = dataset._manifest
    locator = _new_locator(dataset)

    def check(fragment: Fragment) -> Runs | None:
        return _check_fragment(dataset, locator, fragment)

    found = stream(check, manifest.fragment_list, ahead=_AHEAD)
    live = [runs for runs in found if runs is not None]
    if manifest.uses_stable_row_ids:
        _check_row_ids(live, manifest.next_row_id, manifest.path)
    for message in parse_indices(manifest.index_section):
        _check_index(IndexMetadata.from_proto(message, manifest.path), locator, manifest.path)


def validate_fragment(dataset: LanceDataset, fragment: Fragment) -> None:
    """Check one fragment; raises as `validate_dataset`."""
    _check_fragment(dataset, _new_locator(dataset), fragment)


def _new_locator(dataset: LanceDataset) -> FileLocator:
    """A way to the files that knows of none that is open."""
    bases = dataset._manifest.base_paths
    return FileLocator(dataset._store, dataset._root, bases, dataset._storage_options, dataset._session)


def _check_fragment(dataset: LanceDataset, locator: FileLocator, fragment: Fragment) -> Runs | None:
    """Check the files of a fragment, its columns, deleted rows and row lineage; returns its live row ids, if any."""
    for file in fragment.files:
        if not file.is_legacy and file.file_size_bytes:  # releases around 1.0 recorded wrong sizes of legacy files
            store, path = locator.data_file(file)
            _check_size(store.open_input(path).size, file.file_size_bytes, path)
    reader = FragmentReader(locator, fragment, elsewhere=dataset._reader.elsewhere)
    reader.open_files()
    for field in dataset._manifest.schema.fields:
        reader.column(field)
    _ = reader.created_versions, reader.updated_versions
    deletions, row_ids = reader.deletions, reader.row_ids
    if row_ids is None:
        return None
    return Runs.joined(segment.runs() for segment in row_ids.without(deletions).segments)


def _check_row_ids(live: Iterable[Runs], next_row_id: int, where: str) -> None:
    """Check that no two rows have an id in common, and none one that is still to be given."""
    ids = Runs.joined(live).ascending()
    first, last = ids.first, ids.last
    twice = np.flatnonzero(first[1:] <= last[:-1])
    if len(twice):
        raise CorruptFileError(
            f"{where}: the row id {int(first[twice[0] + 1])} belongs to several rows, none of which is deleted"
        )
    if len(last) and int(last[-1]) >= next_row_id:
        raise CorruptFileError(
            f"{where}: a row has the id {int(last[-1])}, but the next row is to get {next_row_id}, so ids would repeat"
        )


def _check_index(index: IndexMetadata, locator: FileLocator, where: str) -> None:
    """Check the files that an index lists."""
    store, folder = locator.index_folder(index.uuid, index.base_id)
    for file in index.files:
        path = safe_join(folder, file.path, what=f"{where}: file of index {index.name!r}")
        try:
            size = store.open_input(path).size
        except MissingFileError as error:
            raise MissingFileError(f"a file of index {index.name!r} is missing: {error}") from error
        _check_size(size, file.size_bytes, path)


def _check_size(found: int, stated: int, path: str) -> None:
    if found != stated:
        raise CorruptFileError(f"{path}: has {found} bytes, but its manifest says {stated}")
