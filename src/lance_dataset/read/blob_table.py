"""Blob columns of some old releases (about 0.18 to 0.37), stored in a second table inside the dataset: ``_blobs``.

Rows of the two tables are matched by stable row id.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import LanceError, MissingFileError
from lance_dataset.file.column import ColumnReader
from lance_dataset.limits import UNLIMITED, ResultLimit
from lance_dataset.properties import cached_property
from lance_dataset.read.projection import project
from lance_dataset.read.table_reader import TableReader
from lance_dataset.read.take import take_rows
from lance_dataset.table.manifest import Manifest, read_manifest
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.versions import locate_version
from lance_dataset.types.schema import Field

__all__ = ["BLOB_TABLE", "BlobTable", "open_table"]

#: Folder of the second table.
BLOB_TABLE = "_blobs"
_STORAGE_CLASS = "lance-schema:storage-class"


def open_table(
    locator: FileLocator, manifest: Manifest, previous: TableReader | None = None, limit: ResultLimit = UNLIMITED
) -> TableReader:
    """Open a version of a table, including blob columns stored in its second table, if any.

    Parameters
    ----------
    locator, manifest, previous, limit
        See `TableReader`.
    """
    if not manifest.blob_dataset_version:
        return TableReader(locator, manifest, previous=previous, limit=limit)
    blobs = BlobTable(locator, manifest.blob_dataset_version)

    def elsewhere(field: Field, row_ids: NDArray[np.uint64]) -> ColumnReader | None:
        return blobs.column(field, row_ids) if field.metadata.get(_STORAGE_CLASS) == b"blob" else None

    return TableReader(locator, manifest, elsewhere, previous, limit)


class BlobTable:
    """Second table of a dataset, which holds its blob columns.

    Parameters
    ----------
    locator
        Locator of the files of the dataset.
    version
        Version of the second table that belongs to the version of the dataset.
    """

    def __init__(self, locator: FileLocator, version: int) -> None:
        self._locator = locator
        self._version = version

    @cached_property
    def _reader(self) -> TableReader:
        store, root = self._locator.inner_table(BLOB_TABLE)
        try:
            manifest = read_manifest(store, locate_version(store, root, self._version))
        except LanceError as error:
            raise MissingFileError(
                f"the blob columns of the dataset lie in version {self._version} of the table {store.uri(root)}, which "
                f"cannot be opened: {error}"
            ) from error
        return TableReader(FileLocator(store, root, manifest.base_paths), manifest)

    @cached_property
    def _row_ids(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Row ids of the second table, ascending, and the row number of each."""
        found = [np.empty(0, np.uint64)]
        for fragment in self._reader.fragments:
            live = np.setdiff1d(np.arange(fragment.physical_rows), fragment.deletions, assume_unique=True)
            found.append(np.asarray(fragment.system_column("_rowid", live)))
        ids = np.concatenate(found)
        order = np.argsort(ids, kind="stable")
        return ids[order], order

    def column(self, field: Field, row_ids: NDArray[np.uint64]) -> ColumnReader:
        """Return a reader of a field for the given row ids. Ids that the second table does not have are null."""
        return _BlobTableColumn(self, field, row_ids)

    def take(self, field: Field, row_ids: NDArray[np.uint64]) -> pa.Array:
        """Take values of a field by row id."""
        known, numbers = self._row_ids
        places = np.searchsorted(known, row_ids)
        held = places < len(known)
        held[held] = known[places[held]] == row_ids[held]
        schema = self._reader.manifest.schema
        batch = take_rows(self._reader, numbers[places[held]], project(schema, [field.name]), schema)
        values = batch.column(0)
        if held.all():
            return values
        positions = np.cumsum(held) - 1
        return values.take(pa.array(positions, mask=~held))


class _BlobTableColumn(ColumnReader):
    def __init__(self, table: BlobTable, field: Field, row_ids: NDArray[np.uint64]) -> None:
        self.arrow_type = field.storage_type
        self.num_rows = len(row_ids)
        self._table = table
        self._field = field
        self._ids = row_ids

    def read(self, start: int, stop: int) -> pa.Array:
        """Read values; see `ColumnReader.read`."""
        return self._table.take(self._field, self._ids[start:stop])

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Read values as one array."""
        return [self.read(start, stop)] if start < stop else []

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """Take values; see `ColumnReader.take`."""
        return self._table.take(self._field, self._ids[rows])
