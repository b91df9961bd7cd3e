"""Columns of a fragment that get other values in some rows: a new data file beside the old ones, rows stay in place.

What a merge and `LanceFragment.update_columns` have in common. The old files keep the columns, under the id of a
tombstone; rows that are not named keep their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.column_files import write_column_file
from lance_dataset.changes.fragment_rows import batch_rows, live_batches, with_deleted_rows
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.blob_fields import described_schema
from lance_dataset.file.options import is_blob_v2
from lance_dataset.file.storage import storage_batch
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.join import take_chunked
from lance_dataset.query.projection import project, with_blob_values
from lance_dataset.schema import Field, Schema
from lance_dataset.table.apply.columns import with_replaced_columns
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.roaring import encode_bitmap

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["ColumnRewrite", "rewrite_columns"]

#: New values of some of the rows that change: of those from a first number up to another one, in order.
NewValues: TypeAlias = "Callable[[int, int], pa.RecordBatch]"


@dataclass(frozen=True)
class ColumnRewrite:
    """Columns of a fragment that were written anew; nothing refers to the file until a commit does.

    Attributes
    ----------
    fragment
        The fragment with the new file, for the `updated_fragments` of an Update that rewrites columns. Old files have
        tombstones for the columns; those with nothing else are gone.
    file
        The new file; `column_files.remove_column_files` takes it away again.
    fields_modified
        Field ids of the columns that were asked for, as far as they are stored by themselves.
    offsets
        Physical offsets of the changed rows, as a serialized roaring bitmap.
    """

    fragment: Fragment
    file: DataFile
    fields_modified: tuple[int, ...]
    offsets: bytes


def rewrite_columns(
    dataset: LanceDataset,
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
    dataset
        The handle whose version the fragment is of.
    fragment
        The fragment.
    schema
        The columns, top-level fields of the schema of the version with all below them.
    offsets
        Physical offsets of the rows that change, ascending; deleted rows among them have no effect.
    new_values
        Called with `first` and `stop` (places in `offsets`, in ascending ranges that do not overlap), returns the new
        values of these rows: a batch of ``stop - first`` rows with the columns of `schema` by name, over storage or
        user types. So no more than a batch of them has to be in memory.
    storage_version
        File version of the new file, None for that of the table.

    Returns
    -------
    ColumnRewrite
        What to commit. If anything fails, the file is removed again.

    Raises
    ------
    SchemaError
        New values that do not fit the schema, or are null where they must not be.
    UnsupportedError
        A column with blobs in files of their own.
    InvalidInputError
        The fragment has no live row, or offsets are outside of it.
    """
    if len(offsets) and not 0 <= offsets[0] <= offsets[-1] < fragment.physical_rows:
        raise InvalidInputError(
            f"offsets of changed rows are from {offsets[0]} to {offsets[-1]}, but fragment {fragment.fragment.id} has "
            f"{fragment.physical_rows} rows"
        )
    for node in schema.walk():
        if is_blob_v2(node):
            raise UnsupportedError(
                f"column {node.name!r}: blobs of version 2 cannot be changed in place by this release"
            )
    live = offsets[fragment.is_live(offsets)]
    written = _with_companions(fragment.fragment, schema, dataset._manifest.schema)
    columns = with_blob_values(project(described_schema(written), None))
    stored = live_batches(dataset, fragment, columns, batch_rows(fragment, written))
    rows = with_deleted_rows(fragment, written, _replaced(stored, fragment, schema, offsets, new_values))
    file = write_column_file(dataset, fragment, written, rows, storage_version=storage_version)
    whole = replace(fragment.fragment, physical_rows=fragment.physical_rows)
    asked = {node.id for node in schema.walk()}
    return ColumnRewrite(
        fragment=replace(whole, files=with_replaced_columns(whole.files, file)),
        file=file,
        fields_modified=tuple(field_id for field_id in file.fields if field_id in asked),
        offsets=encode_bitmap(live),
    )


def _with_companions(fragment: Fragment, schema: Schema, known: Schema) -> Schema:
    """The columns, and those that have to be written anew with them, for legacy (0.1) files to be read right.

    Columns of such a file are found by their distance from its first field, which therefore has to stay.
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
    """Batches of live rows with the new values in place of the stored ones."""
    done = 0
    for batch in stored:
        rows = fragment.physical(np.arange(done, done + batch.num_rows))
        done += batch.num_rows
        first, stop = np.searchsorted(offsets, [rows[0], rows[-1] + 1]).tolist()
        if first < stop:
            places = np.searchsorted(rows, offsets[first:stop])
            matching = rows[places] == offsets[first:stop]  # others are deleted
            new = storage_batch(new_values(first, stop), schema, fill_missing=False)
            changed = _mixed(batch.select(schema.names), new, places[matching], np.flatnonzero(matching))
            kept = batch.columns[len(schema.names) :]
            batch = pa.RecordBatch.from_arrays([*changed.columns, *kept], schema=batch.schema)
        yield batch


def _mixed(
    stored: pa.RecordBatch, new: pa.RecordBatch, places: NDArray[np.int64], numbers: NDArray[np.int64]
) -> pa.RecordBatch:
    """The stored rows, but at some places those of the new ones that have these numbers."""
    picked = np.arange(stored.num_rows)
    picked[places] = stored.num_rows + numbers
    return _picked(stored, new, picked)


def _picked(first: pa.RecordBatch, second: pa.RecordBatch, rows: NDArray[np.int64]) -> pa.RecordBatch:
    """Rows of two batches by their number, those of the second one behind those of the first."""
    columns = []
    for left, right, field in zip(first.columns, second.columns, first.schema, strict=True):
        taken = take_chunked(pa.chunked_array([left, right], field.type), rows, field.name)
        columns.append(taken[0] if len(taken) == 1 else pa.concat_arrays(taken))
    return pa.RecordBatch.from_arrays(columns, schema=first.schema)
