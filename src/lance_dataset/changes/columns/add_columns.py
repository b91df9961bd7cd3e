"""New columns of a table: one more data file for each fragment, and a schema with the new fields."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lance_dataset.arguments import checked_integer
from lance_dataset.changes.columns.new_fields import NewFields, new_fields
from lance_dataset.changes.columns.transforms import DataTransform, FunctionTransform, SqlTransform, Transform
from lance_dataset.changes.columns.udf import (
    BatchUDF,
    BatchUDFCheckpoint,
    ColumnValues,
    NewColumns,
    data_batches,
    expressions,
)
from lance_dataset.changes.fragments.column_files import (
    commit_column_files,
    remove_column_files,
    with_file,
    write_column_file,
    write_column_files,
)
from lance_dataset.changes.fragments.fragment_rows import physical_batches
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.changes.write.blob_files import with_checked_references
from lance_dataset.changes.write.input import ReaderLike
from lance_dataset.errors import InvalidInputError, LanceError, UnsupportedError
from lance_dataset.file.reader import open_metadata
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.fragment import FragmentMetadata
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import LEGACY_VERSION, DataFile, Fragment
from lance_dataset.table.indices.coverage import MEMORY_INDEX, parse_indices
from lance_dataset.table.operations import Merge
from lance_dataset.threads.progress import Progress
from lance_dataset.types.schema import Field, Schema

__all__ = ["add_columns", "add_transformed", "checked_batch_size", "fragment_with_columns", "merged_fragment"]

_log = logging.getLogger(__name__)


def checked_batch_size(batch_size: object) -> int | None:
    """Check a batch size that the user passed, and return it.

    Raises
    ------
    OutOfRangeError, InvalidInputError, TypeError
        It is not a positive number of rows.
    """
    if batch_size is None:
        return None
    size = checked_integer("batch_size", batch_size, bits=32)
    if size == 0:
        raise InvalidInputError("batch_size must be greater than zero, got 0")
    return size


def null_columns(transforms: object) -> pa.Schema | None:
    """Return the schema of new columns that are given by fields alone, which are null in all rows.

    Returns
    -------
    pyarrow.Schema or None
        None if the new columns are given in another form.

    Raises
    ------
    TypeError
        A list begins with a field, but does not hold fields only.
    """
    if isinstance(transforms, pa.Schema):
        return transforms
    fields = [transforms] if isinstance(transforms, pa.Field) else transforms
    if not isinstance(fields, list | tuple) or not fields or not isinstance(fields[0], pa.Field):
        return None
    for field in fields:
        if not isinstance(field, pa.Field):
            raise TypeError(f"a list of new columns must hold fields only, not {type(field).__name__}")
    return pa.schema(list(fields))


def add_columns(
    snapshot: Snapshot,
    transforms: NewColumns,
    read_columns: Sequence[str] | None,
    reader_schema: pa.Schema | None,
    batch_size: int | None,
    progress: Progress | None = None,
) -> Snapshot:
    """Add columns in one commit; see `LanceDataset.add_columns`. Progress counts fragments."""
    check_writable(snapshot.manifest.writer_flags, snapshot.manifest.path)
    rows = checked_batch_size(batch_size)
    nulls = null_columns(transforms)
    if nulls is not None:
        return repeated_on_conflict(snapshot, lambda latest: _add_nulls(latest, nulls))
    if isinstance(transforms, Mapping):
        texts = expressions(transforms)
        return repeated_on_conflict(snapshot, lambda latest: _add_computed(latest, texts, rows, progress))
    _check_no_shards(snapshot)
    # Functions and streams are not retried after a conflict.
    if callable(transforms):
        udf = transforms if isinstance(transforms, BatchUDF) else BatchUDF(transforms)
        return _add_by_function(snapshot, udf, read_columns, rows, progress, plain=udf is not transforms)
    schema, batches = data_batches(transforms, reader_schema)
    return add_transformed(
        snapshot, DataTransform(schema, with_checked_references(schema, batches, snapshot.reader.locator)), progress
    )


def _add_computed(
    snapshot: Snapshot, texts: Mapping[str, str], rows: int | None, progress: Progress | None
) -> Snapshot:
    """Add columns that are computed by SQL expressions."""
    transform = SqlTransform(snapshot, texts, rows)
    if transform.needs_no_file:
        return _add_nulls(snapshot, transform.arrow)
    _check_no_shards(snapshot)
    return add_transformed(snapshot, transform, progress)


def _check_no_shards(snapshot: Snapshot) -> None:
    """Raise InvalidInputError if rows may be in shards, which would not get the values of a new column."""
    if any(index.name == MEMORY_INDEX for index in parse_indices(snapshot.manifest.index_section)):
        raise InvalidInputError(
            "cannot add a computed column to a table with a MemWAL attached, as rows of its shards would not have "
            "values; add a column of nulls, and update it when the shards are merged"
        )


def _add_nulls(snapshot: Snapshot, arrow: pa.Schema) -> Snapshot:
    """Add columns to the schema only. No file has them, so all their values are null."""
    manifest = snapshot.manifest
    if manifest.storage_version == LEGACY_VERSION:
        raise UnsupportedError("Cannot add all-null columns to legacy dataset version: give the columns values")
    fields = new_fields(manifest, arrow)
    fields.check_nullable()
    return commit_column_files(snapshot, Merge(tuple(manifest.fragments), fields.schema, True), ())


def add_transformed(snapshot: Snapshot, transform: Transform, progress: Progress | None = None) -> Snapshot:
    """Write the new columns of all fragments and commit them."""
    fields = new_fields(snapshot.manifest, transform.arrow)
    fields.check_values()
    readers = list(snapshot.reader.fragments) if fields.roots else []

    def write(reader: FragmentReader) -> DataFile:
        return _written(snapshot, reader, fields, transform)

    def wrote() -> None:
        if progress is not None:
            progress.advance()

    files: list[DataFile] = []
    try:
        if transform.in_parallel:
            files = write_column_files(snapshot, readers, write, wrote)
        else:
            for reader in readers:
                files.append(write(reader))
                wrote()
            if isinstance(transform, DataTransform):
                transform.check_end()
    except BaseException:
        remove_column_files(snapshot, files)
        raise
    return _committed(snapshot, fields, readers, files, files)


def _written(snapshot: Snapshot, reader: FragmentReader, fields: NewFields, transform: Transform) -> DataFile:
    """Write the file with the new columns of a fragment."""
    version = snapshot.manifest.storage_version
    extended = {top.name for top in fields.added.fields if top not in fields.roots}
    for top in snapshot.manifest.schema.fields:
        stored = [reader.stored(node.id) for node in top.walk()] if top.name in extended else []
        versions = {found[0].version for found in stored if found is not None} - {version}
        if versions:
            raise UnsupportedError(
                f"column {top.name!r} of fragment {reader.fragment.id} is in a file of version {min(versions)}, to "
                f"which no field of version {version} can be added: compact the dataset first"
            )
    _check_required(snapshot, reader, fields)
    return write_column_file(snapshot, reader, fields.added, transform.batches(reader, fields))


def _check_required(snapshot: Snapshot, reader: FragmentReader, fields: NewFields) -> None:
    """Raise InvalidInputError if a struct that gets fields has null values and required fields.

    With values for the new fields, the null structs would become structs whose required fields are null.
    """
    added = {top.id: top for top in fields.added.fields if top not in fields.roots}
    for top in snapshot.manifest.schema.fields:
        if top.id not in added or not any(not child.nullable for node in top.walk() for child in node.children):
            continue
        # Deleted rows are checked too: they get values as well, and the reference reads them.
        for batch in physical_batches(snapshot, reader, [top.name]):
            name = _torn_field(batch.column(0), top, added[top.id])
            if name is not None:
                raise InvalidInputError(
                    f"column {top.name!r} of fragment {reader.fragment.id} has null structs, whose field {name!r} must "
                    "not be null where they get another field; make it nullable first (alter_columns)"
                )


def _torn_field(values: pa.Array, known: Field, added: Field) -> str | None:
    """Return the name of a required field of a struct that gets new fields and has null values, or None."""
    if not pa.types.is_struct(values.type):
        return None
    if values.null_count:
        required = next((child.name for child in known.children if not child.nullable), None)
        if required is not None:
            return required
    extended = {child.id: child for child in added.children}
    for child, inner in zip(known.children, values.flatten(), strict=True):
        found = _torn_field(inner, child, extended[child.id]) if child.id in extended else None
        if found is not None:
            return found
    return None


def _committed(
    snapshot: Snapshot,
    fields: NewFields,
    readers: Sequence[FragmentReader],
    files: Sequence[DataFile],
    written: Sequence[DataFile],
) -> Snapshot:
    """Commit a new file for each fragment. Remove the files of `written` if that fails."""
    fragments = tuple(with_file(reader, file) for reader, file in zip(readers, files, strict=True))
    if not readers:
        fragments = tuple(snapshot.manifest.fragments)
    return commit_column_files(snapshot, Merge(fragments, fields.schema, fields.preserves_nullability), written)


def fragment_with_columns(
    snapshot: Snapshot, reader: FragmentReader, transform: Transform
) -> tuple[FragmentMetadata, Schema]:
    """Write new columns of one fragment without a commit; return the fragment and the schema to commit with it."""
    check_writable(snapshot.manifest.writer_flags, snapshot.manifest.path)
    fields = new_fields(snapshot.manifest, transform.arrow)
    if not fields.roots or (isinstance(transform, SqlTransform) and transform.needs_no_file):
        return FragmentMetadata.from_fragment(reader.fragment), fields.schema
    fields.check_values()
    file = _written(snapshot, reader, fields, transform)
    if isinstance(transform, DataTransform):
        try:
            transform.check_end()
        except BaseException:
            remove_column_files(snapshot, [file])
            raise
    return FragmentMetadata.from_fragment(with_file(reader, file)), fields.schema


def merged_fragment(
    snapshot: Snapshot,
    reader: FragmentReader,
    value_func: ColumnValues | ReaderLike,
    columns: Sequence[str] | None,
    reader_schema: pa.Schema | None,
    batch_size: int | None,
) -> tuple[FragmentMetadata, Schema]:
    """Write new columns of one fragment without a commit; see `LanceFragment.merge_columns`."""
    rows = checked_batch_size(batch_size)
    if null_columns(value_func) is not None:
        raise TypeError(
            "transforms must be a BatchUDF, dict, map function, or ReaderLike  value.  Received "
            f"{type(value_func)}; use LanceDataset.add_columns for columns of nulls"
        )
    if isinstance(value_func, Mapping):
        return fragment_with_columns(snapshot, reader, SqlTransform(snapshot, expressions(value_func), rows))
    if callable(value_func):
        udf = value_func if isinstance(value_func, BatchUDF) else BatchUDF(value_func)
        if udf.cache is not None:
            raise InvalidInputError(
                "A checkpoint file cannot be used when applying a UDF with LanceFragment.merge_columns; keep the "
                "finished fragments instead"
            )
        transform = FunctionTransform(snapshot, udf, columns, rows, plain=udf is not value_func, only=reader)
        return fragment_with_columns(snapshot, reader, transform)
    schema, batches = data_batches(value_func, reader_schema)
    return fragment_with_columns(
        snapshot, reader, DataTransform(schema, with_checked_references(schema, batches, snapshot.reader.locator))
    )


# -- functions with a checkpoint file -----------------------------------------------------------------------------


def _add_by_function(
    snapshot: Snapshot,
    udf: BatchUDF,
    read_columns: Sequence[str] | None,
    rows: int | None,
    progress: Progress | None,
    *,
    plain: bool,
) -> Snapshot:
    if udf.cache is None:
        return add_transformed(snapshot, FunctionTransform(snapshot, udf, read_columns, rows, plain=plain), progress)
    made = _Backfill(snapshot, udf, udf.cache, FunctionTransform(snapshot, udf, read_columns, rows), progress).run()
    udf.cache.cleanup()
    return made


@dataclass(frozen=True)
class _Backfill:
    """Computation of new columns by a function with a checkpoint file.

    Files that the checkpoint lists are kept after any failure, even a conflict at the end, because most fragments are
    the same in the next run. If no run continues, `cleanup_old_versions` removes them.
    """

    snapshot: Snapshot
    udf: BatchUDF
    checkpoint: BatchUDFCheckpoint
    transform: FunctionTransform
    progress: Progress | None

    def run(self) -> Snapshot:
        """Compute the missing fragments and commit all of them."""
        readers = list(self.snapshot.reader.fragments)
        done = [self._finished(reader) for reader in readers]
        known = next((found.schema for found in done if found is not None), None)
        if known is not None and self.udf.output_schema is None:
            self.transform.arrow = known.file_arrow  # so that the function is not called for it
        fields = new_fields(self.snapshot.manifest, self.transform.arrow)
        fields.check_values()
        files: list[DataFile] = []
        for reader, found in zip(readers, done, strict=True):
            is_done = found is not None and found.holds(fields.added)
            files.append(found.file if found is not None and is_done else self._write(reader, fields))
            if self.progress is not None:
                self.progress.advance()
        return _committed(self.snapshot, fields, readers, files, ())

    def _write(self, reader: FragmentReader, fields: NewFields) -> DataFile:
        file = _written(self.snapshot, reader, fields, self.transform)
        kept = FragmentMetadata.from_fragment(with_file(reader, file)).to_json()
        try:
            self.checkpoint.insert_fragment(reader.fragment.id, json.dumps(kept))
        except BaseException:
            remove_column_files(self.snapshot, [file])
            raise
        return file

    def _finished(self, reader: FragmentReader) -> _Finished | None:
        """Return the file that the checkpoint lists for a fragment.

        None if there is no such file, if it cannot be read, or if the fragment has changed since.
        """
        text = self.checkpoint.get_fragment(reader.fragment.id)
        if text is None:
            return None
        try:
            kept = FragmentMetadata.from_json(text).to_fragment()
            if not kept.files or not _is_same(replace(kept, files=kept.files[:-1]), reader):
                return None
            file = kept.files[-1]
            store, path = self.snapshot.reader.locator.data_file(file)
            stored = open_metadata(store.open_input(path, file.file_size_bytes or None), file.fields)
            return _Finished(file, stored.schema) if stored.num_rows == reader.physical_rows else None
        except (LanceError, OSError) as error:
            _log.debug("fragment %d is computed again: %s", reader.fragment.id, error)
            return None


@dataclass(frozen=True)
class _Finished:
    """Data file of an earlier run, and the schema that it was written with."""

    file: DataFile
    schema: Schema

    def holds(self, added: Schema) -> bool:
        """Return True if the file was written for these fields."""
        return [_kind(node) for node in self.schema.walk()] == [_kind(node) for node in added.walk()]


def _kind(node: Field) -> tuple[object, ...]:
    return node.id, node.name, node.logical_type, node.nullable


def _is_same(kept: Fragment, reader: FragmentReader) -> bool:
    """Return True if a kept fragment equals that of the snapshot: same files, fields and deletions."""
    now = reader.fragment
    files = [[(file.path, file.base_id, file.fields) for file in fragment.files] for fragment in (kept, now)]
    return files[0] == files[1] and (kept.id, kept.deletion_file) == (now.id, now.deletion_file)
