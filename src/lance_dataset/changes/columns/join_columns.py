"""New columns from another table, whose rows are found by a key."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.columns.add_columns import add_transformed
from lance_dataset.changes.columns.new_fields import NewFields
from lance_dataset.changes.fragments.fragment_rows import live_batches, with_deleted_rows
from lance_dataset.changes.keys.key_index import LastRows
from lance_dataset.changes.keys.source import Source
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.changes.write.blob_files import with_checked_references
from lance_dataset.changes.write.input import ReaderLike, as_batches
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, nearest_name_hint
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS, FragmentReader
from lance_dataset.read.projection import project
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import LEGACY_VERSION
from lance_dataset.table.paths import FileLocator
from lance_dataset.threads.progress import Progress

__all__ = ["JoinTransform", "RightSide", "check_keys", "merge_columns"]


class RightSide:
    """Right table of a join with an index of its key, to be used as a context manager.

    Parameters
    ----------
    data
        Table in any form that `lance_dataset.write_dataset` takes.
    key
        Name of the key column.
    schema
        Schema, required if `data` is an iterable of batches; else None.
    locator
        Locator of the files of the left table.

    Raises
    ------
    FieldNotFoundError
        The table does not have the key column.
    InvalidInputError
        The table does not have another column, or `data` is an iterable without a schema.
    TypeError
        `data` is of an unsupported kind.
    """

    def __init__(self, data: ReaderLike, key: str, schema: pa.Schema | None, locator: FileLocator) -> None:
        arrow, batches = as_batches(data, schema)
        batches = with_checked_references(arrow, batches, locator)
        if key not in arrow.names:
            raise FieldNotFoundError(
                f"Column {key} does not exist in the right side dataset{nearest_name_hint(key, arrow.names)}"
            )
        self.columns = [name for name in arrow.names if name != key]
        if not self.columns:
            raise InvalidInputError(f"the right side has no column besides the key {key!r}, so nothing can be added")
        self.key_type = _compared_type(arrow.field(key).type)
        self.arrow = pa.schema([arrow.field(name) for name in self.columns], metadata=arrow.metadata)
        self._source = Source.collect(batches, arrow)
        try:
            self._last_rows = LastRows(self._source.column(key))
        except BaseException:
            self._source.close()
            raise

    def find(self, keys: pa.Array) -> NDArray[np.int64]:
        """Return the row of each key, or -1 for a missing key. Nulls match nulls; floats are compared bit by bit."""
        return self._last_rows.find(keys)

    def take(self, rows: NDArray[np.int64]) -> pa.RecordBatch:
        """Take the columns at rows; the values at -1 are null."""
        known = rows >= 0
        if known.all() and len(rows):
            return self._source.take(rows, self.columns)
        if not known.any():
            nulls = [pa.nulls(len(rows), field.type) for field in self.arrow]
            return pa.RecordBatch.from_arrays(nulls, schema=self.arrow)
        found = self._source.take(rows[known], self.columns)
        places = pa.array(np.cumsum(known) - 1, mask=~known)
        return pa.RecordBatch.from_arrays([column.take(places) for column in found.columns], schema=self.arrow)

    def __enter__(self) -> RightSide:
        return self

    def __exit__(self, *error: object) -> None:
        self._source.close()


class JoinTransform:
    """Transform that joins columns of another table by a key; rows without a match get nulls.

    Parameters
    ----------
    snapshot
        Version of the left table.
    left_on
        Name of its key column, which may be ``_rowid`` or ``_rowaddr``.
    right
        The right table.

    Raises
    ------
    FieldNotFoundError
        The snapshot does not have this column.
    InvalidInputError
        The key columns have different types, or a column is in both tables.
    """

    in_parallel = True

    def __init__(self, snapshot: Snapshot, left_on: str, right: RightSide) -> None:
        self._snapshot = snapshot
        self._right = right
        names = snapshot.manifest.schema.names
        if left_on not in names and left_on not in SYSTEM_COLUMNS:
            raise FieldNotFoundError(
                f"Column {left_on} does not exist in the left side dataset{nearest_name_hint(left_on, names)}"
            )
        self._projection = project(snapshot.scanned_schema, [left_on])
        found = _compared_type(self._projection.schema.field(0).type)
        if found != right.key_type:
            raise InvalidInputError(
                f"Index column type mismatch: the key of the right side has type {right.key_type}, {left_on!r} has "
                f"type {found}; cast one of them"
            )
        for name in right.columns:
            if name in names:
                raise InvalidInputError(f"Column {name} exists in both sides of the dataset")

    @property
    def arrow(self) -> pa.Schema:
        """Schema of the new columns."""
        return self._right.arrow

    def batches(self, fragment: FragmentReader, fields: NewFields) -> Iterator[pa.RecordBatch]:
        """Compute the values for all physical rows of a fragment."""
        return with_deleted_rows(fragment, fields.added, self._joined(fragment))

    def _joined(self, fragment: FragmentReader) -> Iterator[pa.RecordBatch]:
        for batch in live_batches(self._snapshot, fragment, self._projection):
            rows = self._right.find(batch.column(0))
            if self._is_legacy and (rows < 0).any():
                self._check_nulls()
            yield self._right.take(rows)

    @property
    def _is_legacy(self) -> bool:
        return self._snapshot.manifest.storage_version == LEGACY_VERSION

    def _check_nulls(self) -> None:
        """Raise InvalidInputError for columns whose nulls legacy files would lose."""
        for field in self._right.arrow:
            if not is_binary_like(_compared_type(field.type)):
                raise InvalidInputError(
                    f"Column {field.name!r} has null values of type {field.type} for rows without a match, but files "
                    "of storage version 0.1 cannot store them; give every row of the dataset a match"
                )


def merge_columns(
    snapshot: Snapshot,
    data: ReaderLike,
    left_on: str,
    right_on: str | None,
    schema: pa.Schema | None,
    progress: Progress | None = None,
) -> Snapshot:
    """Add columns by a join, in one commit; see `LanceDataset.merge`."""
    check_writable(snapshot.manifest.writer_flags, snapshot.manifest.path)
    check_keys(left_on, right_on)
    with RightSide(data, left_on if right_on is None else right_on, schema, snapshot.reader.locator) as right:
        return repeated_on_conflict(
            snapshot, lambda latest: add_transformed(latest, JoinTransform(latest, left_on, right), progress)
        )


def check_keys(left_on: object, right_on: object) -> None:
    """Raise TypeError for key columns that are not given by name."""
    for name, value in (("left_on", left_on), ("right_on", right_on)):
        if not isinstance(value, str) and (value is not None or name == "left_on"):
            raise TypeError(f"{name} must be the name of a column, not {type(value).__name__}")


def _compared_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which keys are compared, the same for all types with comparable values."""
    kinds = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _compared_type(kind.storage_type)
    if kinds.is_dictionary(kind):
        return _compared_type(kind.value_type)
    if kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return pa.string()
    if kinds.is_large_binary(kind) or kinds.is_binary_view(kind):
        return pa.binary()
    return kind
