"""Rewrites of columns of a fragment: some rows get new values, in a new data file beside the old ones.

Merges and `LanceFragment.update_columns` share this code. Rows stay in place, and all other rows keep their values. In
the old files the ids of the rewritten columns become tombstones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.fragments.column_files import write_column_file
from lance_dataset.changes.fragments.fragment_rows import batch_rows, live_batches, with_deleted_rows
from lance_dataset.errors import InvalidInputError
from lance_dataset.file.blob_fields import described_schema
from lance_dataset.file.storage import storage_batch
from lance_dataset.read.concatenate import take_chunked
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import project, with_stored_blobs
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.apply.columns import with_replaced_columns
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.roaring import encode_bitmap
from lance_dataset.types.schema import Field, Schema

__all__ = ["ColumnRewrite", "rewrite_columns"]

#: Returns the new values of the changed rows with numbers from a first one up to (excluding) another one, in order.
NewValues: TypeAlias = "Callable[[int, int], pa.RecordBatch]"


@dataclass(frozen=True)
class ColumnRewrite:
    """Rewritten columns of a fragment. Nothing refers to the new file until a commit.

    Attributes
    ----------
    fragment
        The fragment with the new file, for the `updated_fragments` of an `Update` that rewrites columns. Old files have
        tombstones for the columns; files without any other column are dropped.
    file
        The new file, which `column_files.remove_column_files` can remove.
    fields_modified
        Field ids of the requested columns, as far as these have stored values of their own.
    offsets
        Physical offsets of the changed rows, as a serialized roaring bitmap.
    """

    fragment: Fragment
    file: DataFile
    fields_modified: tuple[int, ...]
    offsets: bytes


def rewrite_columns(
    snapshot: Snapshot,
    fragment: FragmentReader,
    schema: Schema,
    offsets: NDArray[np.int64],
    new_values: NewValues,
    *,
    storage_version: str | None = None,
) -> ColumnRewrite:
    """Write new values of some columns for some rows of a fragment.

    Parameters
    ----------
    snapshot
        Version that the fragment belongs to.
    fragment
        The fragment.
    schema
        Columns to rewrite: complete top-level fields of the schema of the snapshot.
    offsets
        Ascending physical offsets of the rows that change. Deleted rows among them are ignored.
    new_values
        Called with `first` and `stop` (positions in `offsets`, in ascending ranges that do not overlap). Returns the
        new values of these rows: a batch of ``stop - first`` rows with the columns of `schema` by name, in storage
        types or user types. Therefore only one batch of new values needs to be in memory.
    storage_version
        File version of the new file; None for that of the table.

    Returns
    -------
    ColumnRewrite
        The rewrite to commit. If anything fails, the file is removed.

    Raises
    ------
    SchemaError
        New values do not fit the schema, or are null in a column that is not nullable.
    InvalidInputError
        The fragment has no live rows, or offsets are out of range.
    """
    if len(offsets) and not 0 <= offsets[0] <= offsets[-1] < fragment.physical_rows:
        raise InvalidInputError(
            f"offsets of changed rows range from {offsets[0]} to {offsets[-1]}, but fragment {fragment.fragment.id} "
            f"has {fragment.physical_rows} rows"
        )
    live = offsets[fragment.is_live(offsets)]
    written = _with_companions(fragment.fragment, schema, snapshot.manifest.schema)
    columns = with_stored_blobs(project(described_schema(written), None))
    stored = live_batches(snapshot, fragment, columns, batch_rows(fragment, written))
    rows = with_deleted_rows(fragment, written, _replaced(stored, fragment, schema, offsets, new_values))
    file = write_column_file(snapshot, fragment, written, rows, storage_version=storage_version)
    whole = replace(fragment.fragment, physical_rows=fragment.physical_rows)
    asked = {node.id for node in schema.walk()}
    return ColumnRewrite(
        fragment=replace(whole, files=with_replaced_columns(whole.files, file)),
        file=file,
        fields_modified=tuple(field_id for field_id in file.fields if field_id in asked),
        offsets=encode_bitmap(live),
    )


def _with_companions(fragment: Fragment, schema: Schema, known: Schema) -> Schema:
    """Add the columns of legacy (0.1) files that must be rewritten together with the given ones.

    A reader finds the columns of such a file by their distance from its first field. If that field is rewritten, all
    other columns of the file must be rewritten too.
    """
    written = {node.id for node in schema.walk()}
    companions: list[Field] = []
    for file in fragment.files:
        held = {field_id for field_id in file.fields if field_id >= 0}
        if file.is_legacy and held and min(held) in written:
            more = [top for top in known.fields if top.id not in written and held & {node.id for node in top.walk()}]
            written |= {node.id for top in more for node in top.walk()}
            companions += more
    return Schema((*schema.fields, *companions), schema.metadata) if companions else schema


def _replaced(
    stored: Iterable[pa.RecordBatch],
    fragment: FragmentReader,
    schema: Schema,
    offsets: NDArray[np.int64],
    new_values: NewValues,
) -> Iterator[pa.RecordBatch]:
    """Yield batches of live rows, in which new values replace the stored ones."""
    done = 0
    for batch in stored:
        rows = fragment.physical(np.arange(done, done + batch.num_rows))
        done += batch.num_rows
        first, stop = np.searchsorted(offsets, [rows[0], rows[-1] + 1]).tolist()
        if first < stop:
            places = np.searchsorted(rows, offsets[first:stop])
            matching = rows[places] == offsets[first:stop]  # the others are deleted
            new = storage_batch(new_values(first, stop), schema, fill_missing=False)
            changed = _mixed(batch.select(schema.names), new, places[matching], np.flatnonzero(matching))
            kept = batch.columns[len(schema.names) :]
            batch = pa.RecordBatch.from_arrays([*changed.columns, *kept], schema=batch.schema)
        yield batch


def _mixed(
    stored: pa.RecordBatch, new: pa.RecordBatch, places: NDArray[np.int64], numbers: NDArray[np.int64]
) -> pa.RecordBatch:
    """Replace the stored rows at some places by the new rows with these numbers."""
    picked = np.arange(stored.num_rows)
    picked[places] = stored.num_rows + numbers
    return _picked(stored, new, picked)


def _picked(first: pa.RecordBatch, second: pa.RecordBatch, rows: NDArray[np.int64]) -> pa.RecordBatch:
    """Take rows of two batches by number; rows of the second batch are numbered after those of the first."""
    columns = []
    for left, right, field in zip(first.columns, second.columns, first.schema, strict=True):
        taken = take_chunked(pa.chunked_array([left, right], field.type), rows, field.name)
        columns.append(taken[0] if len(taken) == 1 else pa.concat_arrays(taken))
    return pa.RecordBatch.from_arrays(columns, schema=first.schema)
