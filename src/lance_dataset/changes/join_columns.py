"""New columns out of another table, whose rows are found by a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.add_columns import add_transformed
from lance_dataset.changes.fragment_rows import live_batches, with_deleted_rows
from lance_dataset.changes.merge.key_index import LastRows
from lance_dataset.changes.merge.source import Source
from lance_dataset.changes.new_fields import NewFields
from lance_dataset.changes.retry import DEFAULT_CONFLICT_RETRIES, DEFAULT_RETRY_TIMEOUT, repeated_on_conflict
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, nearest_name_hint
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.input import as_batches
from lance_dataset.query.fragment_reader import SYSTEM_COLUMNS, FragmentReader
from lance_dataset.query.projection import project
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import LEGACY_VERSION

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["JoinTransform", "RightSide", "check_keys", "merge_columns"]


class RightSide:
    """The table that columns come from, with an index of its key; a context manager.

    Parameters
    ----------
    data
        What `lance_dataset.write_dataset` takes.
    key
        Name of its key column.
    schema
        Schema of an iterable of batches.

    Raises
    ------
    FieldNotFoundError
        It has no such column.
    InvalidInputError
        It has no other column, or an iterable no schema.
    TypeError
        Data of an unknown kind.
    """

    def __init__(self, data: Any, key: str, schema: pa.Schema | None = None) -> None:
        arrow, batches = as_batches(data, schema)
        if key not in arrow.names:
            raise FieldNotFoundError(
                f"Column {key} does not exist in the right side dataset{nearest_name_hint(key, arrow.names)}"
            )
        self.columns = [name for name in arrow.names if name != key]
        if not self.columns:
            raise InvalidInputError(f"the right side has no column besides the key {key!r}, so there is none to add")
        self.key_type = _compared_type(arrow.field(key).type)
        self.arrow = pa.schema([arrow.field(name) for name in self.columns], metadata=arrow.metadata)
        self._source = Source.collect(batches, arrow)
        try:
            self._last_rows = LastRows(self._source.column(key))
        except BaseException:
            self._source.close()
            raise

    def find(self, keys: pa.Array) -> NDArray[np.int64]:
        """Row of each key, -1 where there is none; a null finds a null, floats are compared bit by bit."""
        return self._last_rows.find(keys)

    def take(self, rows: NDArray[np.int64]) -> pa.RecordBatch:
        """The columns at rows; null at -1."""
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
    """New columns for the rows of a table: those of the row of another table that has the same key, else nulls.

    Parameters
    ----------
    dataset
        The version.
    left_on
        Name of its key column; ``_rowid`` and ``_rowaddr`` are some too.
    right
        The other table.

    Raises
    ------
    FieldNotFoundError
        The version has no such column.
    InvalidInputError
        The key columns have different types, or a column is in both tables.
    """

    in_parallel = True

    def __init__(self, dataset: LanceDataset, left_on: str, right: RightSide) -> None:
        self._dataset = dataset
        self._right = right
        names = dataset._manifest.schema.names
        if left_on not in names and left_on not in SYSTEM_COLUMNS:
            raise FieldNotFoundError(
                f"Column {left_on} does not exist in the left side dataset{nearest_name_hint(left_on, names)}"
            )
        self._projection = project(dataset._scanned_schema, [left_on])
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
        """The new columns."""
        return self._right.arrow

    def batches(self, fragment: FragmentReader, fields: NewFields) -> Iterator[pa.RecordBatch]:
        """Values for all physical rows of a fragment."""
        return with_deleted_rows(fragment, fields.added, self._joined(fragment))

    def _joined(self, fragment: FragmentReader) -> Iterator[pa.RecordBatch]:
        for batch in live_batches(self._dataset, fragment, self._projection):
            rows = self._right.find(batch.column(0))
            if self._is_legacy and (rows < 0).any():
                self._check_nulls()
            yield self._right.take(rows)

    @property
    def _is_legacy(self) -> bool:
        return self._dataset._manifest.storage_version == LEGACY_VERSION

    def _check_nulls(self) -> None:
        """Refuse columns whose nulls legacy files would lose."""
        for field in self._right.arrow:
            if not is_binary_like(_compared_type(field.type)):
                raise InvalidInputError(
                    f"Column {field.name!r} has null values of type {field.type}, for rows without a partner, but "
                    "files of storage version 0.1 cannot store them; give every row of the dataset a partner"
                )


def merge_columns(
    dataset: LanceDataset, data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None
) -> None:
    """See `LanceDataset.merge`."""
    check_writable(dataset._manifest.writer_flags, dataset._manifest.path)
    check_keys(left_on, right_on)
    with RightSide(data, left_on if right_on is None else right_on, schema) as right:
        repeated_on_conflict(
            dataset,
            lambda handle: (add_transformed(handle, JoinTransform(handle, left_on, right)), None),
            DEFAULT_CONFLICT_RETRIES,
            DEFAULT_RETRY_TIMEOUT,
        )


def check_keys(left_on: object, right_on: object) -> None:
    """Refuse (TypeError) key columns that are not given by name."""
    for name, value in (("left_on", left_on), ("right_on", right_on)):
        if not isinstance(value, str) and (value is not None or name == "left_on"):
            raise TypeError(f"{name} must be the name of a column, not {type(value).__name__}")


def _compared_type(kind: pa.DataType) -> pa.DataType:
    """The type that stands for all those whose values are compared with its own."""
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
