"""Schema evolution of a dataset: add, alter and drop columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import pyarrow as pa

from lance_dataset.api.scannable import ScannableDataset, ScannableFragment
from lance_dataset.api.scanner.progress import ProgressOption, reported_progress
from lance_dataset.changes.columns.udf import (
    BatchUDF,
    ColumnValues,
    NewColumns,
    data_batches,
    expressions,
    failed_function,
)
from lance_dataset.changes.write.input import ReaderLike
from lance_dataset.errors import UnsupportedError
from lance_dataset.read.shown import Shown
from lance_dataset.records.settings import AlterColumn

__all__ = ["AlterColumn", "SchemaEvolution", "normalize_transform"]


class SchemaEvolution(Shown):
    """Schema evolution of a dataset: add, alter and drop columns."""

    def add_columns(
        self,
        transforms: NewColumns,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
        *,
        progress: ProgressOption = None,
    ) -> None:
        """Add columns in one commit without moving rows; move this handle to the new version.

        Parameters
        ----------
        transforms
            Source of the values:

            - a dict of names and SQL expressions over the existing columns; only the required columns are read
            - a function of a record batch of live rows that returns the new columns (a record batch, or a pandas
              DataFrame), or a `lance_dataset.batch_udf`, which may store its results in a checkpoint file
            - data with one row for each row of the dataset, in the same order: anything that
              `lance_dataset.write_dataset` accepts except dicts
            - a `pyarrow.Field`, a list of them, or a `pyarrow.Schema`, for columns that are null in all rows; no data
              is written

            A struct with the name of an existing one adds fields to it (file versions 2.2 and later).
        read_columns
            Columns that are passed to a function; they may include ``_rowid`` and ``_rowaddr``. None for all columns.
        reader_schema
            Schema of an iterable of record batches.
        batch_size
            Number of rows in a batch, 1024 by default for functions.
        progress
            True for a bar (tqdm), or a function of the numbers of fragments done and in all.

        Raises
        ------
        InvalidInputError
            A column already exists, an expression or function fails, the data has more or fewer rows than the dataset,
            or a column of nulls is not nullable.
        FilterError, FieldNotFoundError
            An expression is malformed or does not fit the schema, or a column of `read_columns` does not exist.
        SchemaError
            A name is not valid for a column, or data contradicts its schema.
        UnsupportedError
            The files of the dataset cannot hold a type.
        TypeError
            `transforms` is not one of these.
        CommitConflictError
            Other writers changed the dataset. Expressions are computed again before this is raised. Functions are not
            called again, and data is not read again.
        """
        from lance_dataset.changes.columns.add_columns import add_columns

        fragments = self.snapshot.manifest.fragment_list
        with reported_progress(progress, lambda: len(fragments), "columns", "fragment") as told:
            made = add_columns(self.snapshot, transforms, read_columns, reader_schema, batch_size, told)
            self.show(made)

    def merge(
        self,
        data_obj: ReaderLike,
        left_on: str,
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        progress: ProgressOption = None,
    ) -> None:
        """Add the columns of another table by a left outer join, in one commit; move this handle to the new version.

        Rows without a match get nulls. Keys are compared bit by bit (NaN matches NaN, null matches null). If several
        rows of the other table have the same key, the last one wins.

        Parameters
        ----------
        data_obj
            The other table: anything that `lance_dataset.write_dataset` accepts.
        left_on
            Key column of this dataset, ``_rowid`` or ``_rowaddr``.
        right_on
            Key column of the other table. It is not added. None for the same name as `left_on`.
        schema
            Schema of an iterable of record batches.
        progress
            True for a bar (tqdm), or a function of the numbers of fragments done and in all.

        Raises
        ------
        FieldNotFoundError
            A key column does not exist.
        InvalidInputError
            The keys have different types, a column exists in both tables, or the other table has only its key.
        SchemaError
            A row has no match, and a new column is not nullable.
        CommitConflictError
            Other writers changed the dataset, and all retries failed.
        """
        from lance_dataset.changes.columns.join_columns import merge_columns

        fragments = self.snapshot.manifest.fragment_list
        with reported_progress(progress, lambda: len(fragments), "columns", "fragment") as told:
            self.show(merge_columns(self.snapshot, data_obj, left_on, right_on, schema, told))

    def alter_columns(self, *alterations: AlterColumn | Mapping[str, object], progress: ProgressOption = None) -> None:
        """Change names, types or nullability of columns in one commit; move this handle to the new version.

        Changes of names and nullability write no data. A column that is cast is rewritten to one more file per
        fragment. It gets a new field id and loses its field metadata.

        Parameters
        ----------
        *alterations
            Dicts with these keys:

            - ``path``: the column, ``a``, ``struct.child`` or ``list.item`` (unusual names in back-ticks)
            - ``name``: its new name; names may be swapped in one call
            - ``nullable``: True if its values may be null; False checks that it has no nulls
            - ``data_type``: its new Arrow type, of the same family: integers, floats, decimals, strings, binaries,
              dates and times, durations. Lists change by their items, dictionaries by their values. Drop indices on the
              column first.
        progress
            True for a bar (tqdm), or a function of the numbers of fragments whose columns are cast, done and in all.

        Raises
        ------
        FieldNotFoundError
            A column does not exist.
        InvalidInputError
            A key is unknown, a column has nulls and must not have any, a value does not fit the new type, the types
            belong to different families, a column to cast has an index, or nullability is tightened together with a
            cast.
        SchemaError
            Another column has the new name, or a top-level name contains a dot.
        CommitConflictError
            Other writers changed the dataset, and all retries failed.
        """
        from lance_dataset.changes.columns.alter_columns import alter_columns

        with reported_progress(progress, lambda: None, "columns", "fragment") as told:
            self.show(alter_columns(self.snapshot, alterations, told))

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drop columns in one commit without writing data; move this handle to the new version.

        Files that hold only dropped columns are removed from their fragments, and indices on the columns are dropped.
        Older versions keep both until they are cleaned up.

        Parameters
        ----------
        columns
            Names; ``struct.child`` drops one field of a struct (unusual names in back-ticks). A struct that loses all
            its fields is dropped, too.

        Raises
        ------
        FieldNotFoundError
            A column does not exist.
        InvalidInputError
            No column would be left.
        TypeError
            `columns` is not a list of names.
        CommitConflictError
            Other writers changed the dataset, and all retries failed.
        """
        from lance_dataset.changes.columns.drop_columns import drop_columns

        if isinstance(columns, str) or not isinstance(columns, Sequence):
            raise TypeError(f"columns must be a list of names, not {type(columns).__name__}")
        self.show(drop_columns(self.snapshot, columns))

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Not supported, as in the reference; use `alter_columns` and `update_field_metadata`."""
        raise UnsupportedError(
            "replace_schema is not supported: names and types change with alter_columns, metadata with "
            "update_schema_metadata and update_field_metadata"
        )


def normalize_transform(
    udf_like: ColumnValues | ReaderLike,
    data_source: ScannableDataset | ScannableFragment,
    read_columns: Sequence[str] | None = None,
    reader_schema: pa.Schema | None = None,
) -> dict[str, str] | BatchUDF | pa.RecordBatchReader:
    """Convert new columns to the form in which `LanceDataset.add_columns` uses them.

    Parameters
    ----------
    udf_like
        A dict of SQL expressions, a `BatchUDF` or another function of a record batch, or data.
    data_source
        Dataset or fragment that gets the columns.
    read_columns
        Columns that a function gets.
    reader_schema
        Schema of an iterable of batches.

    Returns
    -------
    dict, BatchUDF or pyarrow.RecordBatchReader
        A function without an output schema is called for one row, to find its schema.

    Raises
    ------
    TypeError
        `udf_like` is of an unsupported kind, or a function that fails.
    InvalidInputError
        `udf_like` is an iterable of batches, but `reader_schema` is missing.
    """
    if isinstance(udf_like, Mapping):
        return expressions(udf_like)
    if isinstance(udf_like, BatchUDF) or callable(udf_like):
        udf = udf_like if isinstance(udf_like, BatchUDF) else BatchUDF(udf_like)
        if udf.output_schema is None:
            first = data_source.scanner(columns=read_columns, limit=1).to_table().combine_chunks().to_batches()
            try:
                udf.output_schema = udf.result(first[0]).schema
            except Exception as error:
                if udf is udf_like and first:
                    raise
                raise failed_function(udf_like, error) from error
        return udf
    schema, batches = data_batches(udf_like, reader_schema)
    return pa.RecordBatchReader.from_batches(schema, batches)
