"""Columns that come, go and change: what datasets offer to those who change the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pyarrow as pa

from lance_dataset.changes.add_columns import add_columns
from lance_dataset.changes.alter_columns import AlterColumn, alter_columns
from lance_dataset.changes.drop_columns import drop_columns
from lance_dataset.changes.join_columns import merge_columns
from lance_dataset.changes.retry import DEFAULT_CONFLICT_RETRIES, DEFAULT_RETRY_TIMEOUT, repeated_on_conflict
from lance_dataset.errors import UnsupportedError

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["AlterColumn", "SchemaEvolution"]


class SchemaEvolution:
    """A dataset whose columns can be changed."""

    def add_columns(
        self,
        transforms: Any,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Add columns in one commit; rows stay where they are, and this handle moves to the new version.

        Parameters
        ----------
        transforms
            Where the values come from:

            - a dict of names and SQL expressions over the columns there are; only what they need is read
            - a function of a record batch of live rows that returns the new columns (a record batch, or a pandas
              DataFrame), or a `lance_dataset.batch_udf`, which may keep its results in a checkpoint file
            - data, with a row for each row of the dataset, in its order: all that `lance_dataset.write_dataset` takes
              but dicts
            - a `pyarrow.Field`, a list of them, or a `pyarrow.Schema`, for columns that are null in all rows; this
              writes no data

            A struct that has the name of one that is there adds fields to it (file versions 2.2 and later).
        read_columns
            Columns that a function gets, ``_rowid`` and ``_rowaddr`` included; None for all columns.
        reader_schema
            Schema of an iterable of record batches.
        batch_size
            Rows of a batch, 1024 by default for functions.

        Raises
        ------
        InvalidInputError
            A column exists, an expression or function fails, data has more or fewer rows than the dataset, columns of
            nulls are not nullable.
        FilterError, FieldNotFoundError
            An expression, or `read_columns`, does not fit.
        SchemaError
            A name that no column can have, or data that contradicts its schema.
        UnsupportedError
            A type that the files of the dataset cannot hold.
        TypeError
            `transforms` is none of these.
        CommitConflictError
            Other writers changed the dataset meanwhile. Expressions are computed anew then, functions and data are not
            asked again.
        """
        add_columns(cast("LanceDataset", self), transforms, read_columns, reader_schema, batch_size)

    def merge(self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None) -> None:
        """Add the columns of another table by a left outer join, in one commit; this handle moves to the new version.

        Rows without a partner get nulls. Keys are equal bit by bit (NaN to NaN, null to null); of several rows with one
        key the last one counts.

        Parameters
        ----------
        data_obj
            The other table: all that `lance_dataset.write_dataset` takes.
        left_on
            Key column of this dataset; ``_rowid`` and ``_rowaddr`` are some too.
        right_on
            Key column of the other table, which is not added; None for the same name.
        schema
            Schema of an iterable of record batches.

        Raises
        ------
        FieldNotFoundError
            A key column does not exist.
        InvalidInputError
            The keys have different types, a column is in both tables, or there is none to add.
        SchemaError
            Rows without a partner, and a new column that is not nullable.
        CommitConflictError
            Other writers changed the dataset meanwhile, and computing it anew did not help.
        """
        merge_columns(cast("LanceDataset", self), data_obj, left_on, right_on, schema)

    def alter_columns(self, *alterations: AlterColumn | Mapping[str, Any]) -> None:
        """Give columns other names, types or nullability, all in one commit; this handle moves to the new version.

        Names and nullability cost no more than the commit. Columns that are cast are written anew, to a file more per
        fragment; they have other field ids then, and their field metadata is lost.

        Parameters
        ----------
        *alterations
            Dicts with these keys:

            - ``path``: the column, ``a``, ``struct.child`` or ``list.item`` (odd names in back-ticks)
            - ``name``: its new name; names may be swapped in one call
            - ``nullable``: whether its values may be null; that there are no nulls is checked
            - ``data_type``: its new Arrow type, of the same family: integers, floats, decimals, strings, binaries,
              dates and times, durations; lists change by their items, dictionaries by their values. Indices on the
              column have to be dropped before.

        Raises
        ------
        FieldNotFoundError
            There is no such column.
        InvalidInputError
            An unknown key, nulls in a column that must not have any, values that do not fit the new type, types of
            different families, an indexed column to be cast; or nullability is tightened together with a cast.
        SchemaError
            A name that another column has, or a dot in a top-level name.
        CommitConflictError
            Other writers changed the dataset, and computing it anew did not help.
        """
        repeated_on_conflict(
            cast("LanceDataset", self),
            lambda handle: alter_columns(handle, alterations),
            DEFAULT_CONFLICT_RETRIES,
            DEFAULT_RETRY_TIMEOUT,
        )

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drop columns in one commit that touches no data; this handle moves to the new version.

        Files that hold nothing else leave their fragments, indices on the columns go. Older versions still have both,
        until they are cleaned up.

        Parameters
        ----------
        columns
            Names; ``struct.child`` drops one field of a struct (odd names in back-ticks). A struct without fields
            goes, too.

        Raises
        ------
        FieldNotFoundError
            There is no such column.
        InvalidInputError
            All columns would go.
        TypeError
            `columns` is no list of names.
        CommitConflictError
            Other writers changed the dataset, and computing it anew did not help.
        """
        if isinstance(columns, str) or not isinstance(columns, Sequence):
            raise TypeError(f"columns must be a list of names, not {type(columns).__name__}")
        repeated_on_conflict(
            cast("LanceDataset", self),
            lambda handle: drop_columns(handle, columns),
            DEFAULT_CONFLICT_RETRIES,
            DEFAULT_RETRY_TIMEOUT,
        )

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Not offered, as in the reference: see `alter_columns` and `update_field_metadata`."""
        raise UnsupportedError(
            "replace_schema is not supported: names and types change with alter_columns, metadata with "
            "update_schema_metadata and update_field_metadata"
        )
