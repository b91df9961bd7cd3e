"""Checks that the files of a version exist and agree with its manifest."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lance_dataset.errors import CorruptFileError, MissingFileError
from lance_dataset.io.base import safe_join
from lance_dataset.read.blob_checks import check_blob_files
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import parse_indices
from lance_dataset.table.lineage.segments import Runs
from lance_dataset.table.paths import FileLocator
from lance_dataset.threads.progress import Progress
from lance_dataset.threads.streams import stream

__all__ = ["validate_dataset", "validate_fragment", "validate_index_files"]

_AHEAD = 16


def validate_dataset(snapshot: Snapshot, progress: Progress | None = None, *, files: bool = True) -> None:
    """Check all fragments, the uniqueness of their row ids, and the files of indices.

    Files are opened again even if they are open already, and closed after each fragment.

    Parameters
    ----------
    snapshot
        Version to check.
    progress
        Told of each fragment that was checked.
    files
        False to open no data files.

    Raises
    ------
    CorruptFileError, MissingFileError
        A check failed.
    """
    manifest = snapshot.manifest
    locator = _new_locator(snapshot)

    def check(fragment: Fragment) -> Runs | None:
        if files:
            found = _check_fragment(snapshot, locator, fragment)
        else:
            found = _live_ids(FragmentReader(locator, fragment, elsewhere=snapshot.reader.elsewhere))
        if progress is not None:
            progress.advance()
        return found

    found = stream(check, manifest.fragment_list, ahead=_AHEAD)
    live = [runs for runs in found if runs is not None]
    if manifest.uses_stable_row_ids:
        _check_row_ids(live, manifest.next_row_id, manifest.path)
    for message in parse_indices(manifest.index_section):
        validate_index_files(IndexMetadata.from_proto(message, manifest.path), locator, manifest.path)


def validate_fragment(snapshot: Snapshot, fragment: Fragment) -> None:
    """Check one fragment. Errors are those of `validate_dataset`."""
    _check_fragment(snapshot, _new_locator(snapshot), fragment)


def _new_locator(snapshot: Snapshot) -> FileLocator:
    """Make a locator that does not share open files."""
    return snapshot.location.locator(snapshot.manifest)


def _check_fragment(snapshot: Snapshot, locator: FileLocator, fragment: Fragment) -> Runs | None:
    """Check the files, columns, deleted rows and row lineage of a fragment; return its live row ids, if any."""
    for file in fragment.files:
        if not file.is_legacy and file.file_size_bytes:  # releases around 1.0 recorded wrong sizes of legacy files
            store, path = locator.data_file(file)
            _check_size(store.open_input(path).size, file.file_size_bytes, path)
    reader = FragmentReader(locator, fragment, elsewhere=snapshot.reader.elsewhere)
    reader.open_files()
    reader.check_bounds()
    for field in snapshot.manifest.schema.fields:
        reader.column(field)
    check_blob_files(reader, snapshot.manifest.schema)
    _ = reader.created_versions, reader.updated_versions
    return _live_ids(reader)


def _live_ids(reader: FragmentReader) -> Runs | None:
    """Return the stable ids of the rows of a fragment that are not deleted; None if its rows have no such ids."""
    deletions, row_ids = reader.deletions, reader.row_ids
    if row_ids is None:
        return None
    return Runs.joined(segment.runs() for segment in row_ids.without(deletions).segments)


def _check_row_ids(live: Iterable[Runs], next_row_id: int, where: str) -> None:
    """Check that row ids are unique and below the next row id."""
    ids = Runs.joined(live).ascending()
    first, last = ids.first, ids.last
    twice = np.flatnonzero(first[1:] <= last[:-1])
    if len(twice):
        raise CorruptFileError(
            f"{where}: the row id {int(first[twice[0] + 1])} belongs to several rows, none of which is deleted"
        )
    if len(last) and int(last[-1]) >= next_row_id:
        raise CorruptFileError(
            f"{where}: a row has the id {int(last[-1])}, but the next row id is {next_row_id}, so ids would repeat"
        )


def validate_index_files(index: IndexMetadata, locator: FileLocator, where: str) -> None:
    """Check the files that an index lists. Errors are those of `validate_dataset`."""
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
