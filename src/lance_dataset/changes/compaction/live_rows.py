"""Live rows of fragments, one fragment after another, in their storage types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.compaction.joined_files import JoinedFiles, LoadedFiles, is_joinable
from lance_dataset.errors import CorruptFileError
from lance_dataset.file.options import is_blob, is_blob_v2
from lance_dataset.read.concatenate import bisected, read_range
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import with_stored_blobs
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.request import DEFAULT_BATCH_SIZE
from lance_dataset.scan.resolving import resolve_request
from lance_dataset.scan.scan import scan_batches
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.threads.streams import stream

__all__ = ["live_rows"]

#: Size in bytes up to which files are loaded completely; mapping them, or reading parts of them, would take longer.
_SMALL_FILE = 4 << 20
#: Maximum number of rows that are read from such files at a time.
_TOGETHER_ROWS = 1 << 16
#: Number of groups of remote fragments to read ahead. Local ones would only compete with encoding.
_REMOTE_AHEAD = 16
#: Number of windows of local fragments to read ahead: more of them would only wait for encoding.
_LOCAL_AHEAD = 1


def live_rows(
    snapshot: Snapshot, fragments: Sequence[FragmentReader], batch_size: int | None
) -> Iterator[pa.RecordBatch]:
    """Read the live rows of fragments in batches of the table's storage types. Blobs are read as their values.

    Files are closed after reading. A few fragments are read ahead.

    Parameters
    ----------
    snapshot
        Version that the fragments belong to.
    fragments
        Fragments to read, in this order.
    batch_size
        Maximum number of rows in a batch; None for the fastest size.
    """
    manifest = snapshot.manifest
    has_blobs = any(is_blob(node) or is_blob_v2(node) for node in manifest.schema.walk())
    for whole, run in _runs(fragments, lambda reader: not has_blobs and _is_small(reader.fragment)):
        if whole:
            place = snapshot.location
            most_rows = min(batch_size or _TOGETHER_ROWS, _TOGETHER_ROWS)
            files = LoadedFiles(place.store, place.root, manifest.base_paths, place.storage_options, place.session)
            read = partial(_loaded, files, manifest, most_rows)
            ahead = _REMOTE_AHEAD if run[0].is_remote else 1
            for batches in stream(read, _groups(run, most_rows), ahead=ahead):
                yield from batches
        else:
            yield from _scanned(snapshot, run, batch_size or DEFAULT_BATCH_SIZE)


def _runs(
    fragments: Sequence[FragmentReader], test: Callable[[FragmentReader], bool]
) -> Iterator[tuple[bool, list[FragmentReader]]]:
    """Split the fragments into runs that all pass a test, or all fail it."""
    run: list[FragmentReader] = []
    passed = False
    for reader in fragments:
        if test(reader) != passed and run:
            yield passed, run
            run = []
        passed = test(reader)
        run.append(reader)
    if run:
        yield passed, run


# -- small files -----------------------------------------------------------------------------------------------------


def _is_small(fragment: Fragment) -> bool:
    sizes = [file.file_size_bytes for file in fragment.files]
    sound = all(sizes) and not any(file.is_legacy for file in fragment.files)
    return (
        sound and not fragment.overlays and sum(sizes) <= _SMALL_FILE and 0 < fragment.physical_rows <= _TOGETHER_ROWS
    )


def _groups(fragments: Sequence[FragmentReader], most_rows: int) -> Iterator[list[Fragment]]:
    """Yield groups of neighbouring fragments that are read together because their files hold the same columns."""
    group: list[Fragment] = []
    layout: object = None
    for fragment in (reader.fragment for reader in fragments):
        own = [(file.storage_version, file.fields, file.column_indices) for file in fragment.files]
        rows = sum(each.physical_rows for each in (*group, fragment))
        size = sum(file.file_size_bytes for each in (*group, fragment) for file in each.files)
        fits = own == layout and rows <= most_rows and size <= _SMALL_FILE and is_joinable(fragment)
        if group and not fits:
            yield group
            group = []
        layout = own
        group.append(fragment)
    if group:
        yield group


def _loaded(files: LoadedFiles, manifest: Manifest, most_rows: int, group: Sequence[Fragment]) -> list[pa.RecordBatch]:
    """Read the live rows of a group of fragments in batches."""
    if len(group) > 1:
        joined = JoinedFiles(files, group)
        with suppress(CorruptFileError):  # found again below, where the fragment is known
            whole = joined.join()
            if whole is not None:
                live = _live_rows(files, group)
                return list(_read(FragmentReader(joined, whole), manifest, most_rows, live))
    readers = [FragmentReader(files, fragment) for fragment in group]
    return [
        batch
        for reader in readers
        for batch in _read(reader, manifest, most_rows, reader.live_rows(0, reader.physical_rows))
    ]


def _live_rows(files: LoadedFiles, group: Sequence[Fragment]) -> NDArray[np.int64] | None:
    """Return the offsets of the live rows in the concatenation of fragments; None if all rows are live."""
    if all(fragment.deletion_file is None for fragment in group):
        return None
    found, before = [], 0
    for fragment in group:
        live = FragmentReader(files, fragment).live_rows(0, fragment.physical_rows)
        found.append((np.arange(fragment.physical_rows) if live is None else live) + before)
        before += fragment.physical_rows
    return np.concatenate(found)


def _read(
    reader: FragmentReader, manifest: Manifest, most_rows: int, live: NDArray[np.int64] | None
) -> Iterator[pa.RecordBatch]:
    """Read the live rows of a fragment in batches; `live` is None if all rows are live."""
    columns = [(reader.column(field), field.name) for field in manifest.schema.fields]
    schema = manifest.schema.storage_arrow

    def batch(start: int, stop: int) -> pa.RecordBatch:
        arrays = [read_range(column, start, stop, name) for column, name in columns]
        found = pa.RecordBatch.from_arrays(arrays, schema=schema)
        if live is None:
            return found
        low, high = np.searchsorted(live, [start, stop])
        return found if high - low == stop - start else found.take(pa.array(live[low:high] - start))

    for start in range(0, reader.physical_rows, most_rows):
        yield from bisected(batch, start, min(start + most_rows, reader.physical_rows))


# -- other files -----------------------------------------------------------------------------------------------------


def _scanned(snapshot: Snapshot, fragments: Sequence[FragmentReader], batch_size: int) -> Iterator[pa.RecordBatch]:
    ids = [reader.fragment.id for reader in fragments]
    request = resolve_request(snapshot, {"batch_size": batch_size, "fragments": ids})
    ahead = None if fragments[0].is_remote else _LOCAL_AHEAD
    request = replace(request, projection=with_stored_blobs(request.projection), batch_readahead=ahead)
    yield from scan_batches(snapshot.reader, request)
