"""Lists of the files of a table, as record batches that are made on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import pyarrow as pa

from lance_dataset.read.location import TableLocation
from lance_dataset.table.cleanup.file_usage import read_manifests
from lance_dataset.table.cleanup.tracked_files import TrackedFiles
from lance_dataset.table.versions import list_versions

__all__ = ["all_files", "tracked_files"]

_BATCH_ROWS = 8192
_ALL_FILES = pa.schema(
    [
        pa.field("base_uri", pa.dictionary(pa.int32(), pa.utf8()), nullable=False),
        pa.field("path", pa.utf8(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("last_modified", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
_TRACKED_FILES = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("base_uri", pa.dictionary(pa.int32(), pa.utf8()), nullable=False),
        pa.field("path", pa.utf8(), nullable=False),
        pa.field("type", pa.dictionary(pa.int8(), pa.utf8()), nullable=False),
    ]
)


def all_files(place: TableLocation) -> pa.RecordBatchReader:
    """List all files below a location; see `LanceDataset.all_files`."""
    return _reader(
        _ALL_FILES,
        (
            (place.uri, info.path[len(place.root) + 1 :], info.size, round(info.modified * 1_000_000))
            for info in place.store.list_tree(place.root)
        ),
    )


def tracked_files(
    place: TableLocation, min_version: int | None, progress: Callable[[int, int | None], object] | None
) -> pa.RecordBatchReader:
    """List the files that versions of a table refer to; see `LanceDataset.tracked_files`."""
    names = list_versions(place.store, place.root)
    names = [name for name in names if min_version is None or name.version >= min_version]
    tracked = TrackedFiles(place.store, place.root, place.uri, place.storage_options, place.session)

    def rows() -> Iterator[tuple[object, ...]]:
        for done, (manifest, files) in enumerate(read_manifests(place.store, place.root, names), 1):
            for row in tracked.of_version(manifest, files):
                yield manifest.version, *row
            if progress is not None:
                progress(done, len(names))

    return _reader(_TRACKED_FILES, rows())


def _reader(schema: pa.Schema, rows: Iterator[tuple[object, ...]]) -> pa.RecordBatchReader:
    """Return a reader that makes batches of the rows on demand."""

    def batches() -> Iterator[pa.RecordBatch]:
        while part := list(islice(rows, _BATCH_ROWS)):
            columns = zip(zip(*part, strict=True), schema.types, strict=True)
            yield pa.record_batch([pa.array(values, type_) for values, type_ in columns], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
