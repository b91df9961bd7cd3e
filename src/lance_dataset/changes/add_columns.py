"""New columns for a table: a data file more for each fragment, and a schema that has them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_dataset.arguments import checked_integer
from lance_dataset.changes.column_files import (
    commit_column_files,
    remove_column_files,
    with_file,
    write_column_file,
    write_column_files,
)
from lance_dataset.changes.fragment_rows import physical_batches
from lance_dataset.changes.new_fields import NewFields, new_fields
from lance_dataset.changes.retry import DEFAULT_CONFLICT_RETRIES, DEFAULT_RETRY_TIMEOUT, repeated_on_conflict
from lance_dataset.changes.transforms import DataTransform, FunctionTransform, SqlTransform, Transform
from lance_dataset.errors import InvalidInputError, LanceError, UnsupportedError
from lance_dataset.file.reader import open_metadata
from lance_dataset.fragment_metadata import FragmentMetadata
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.schema import Field, Schema
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import LEGACY_VERSION, DataFile, Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Merge
from lance_dataset.udf import BatchUDF, BatchUDFCheckpoint, data_batches, expressions

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["add_columns", "add_transformed", "checked_batch_size", "fragment_with_columns", "merged_fragment"]

_log = logging.getLogger(__name__)


def checked_batch_size(batch_size: object) -> int | None:
    """A number of rows given by a user; InvalidInputError or TypeError for what is none."""
    if batch_size is None:
        return None
    size = checked_integer("batch_size", batch_size, bits=32)
    if size == 0:
        raise InvalidInputError("batch_size must be greater than zero, got 0")
    return size


def null_columns(transforms: object) -> pa.Schema | None:
    """New columns that are given by fields alone, which are null in all rows; None for what is something else."""
    if isinstance(transforms, pa.Schema):
        return transforms
    fields = [transforms] if isinstance(transforms, pa.Field) else transforms
    if not isinstance(fields, list | tuple) or not fields or not isinstance(fields[0], pa.Field):
        return None
    for field in fields:
        if not isinstance(field, pa.Field):
            raise TypeError(f"a list of new columns holds fields only, not {type(field).__name__}")
    return pa.schema(list(fields))


def add_columns(
    dataset: LanceDataset,
    transforms: Any,
    read_columns: Sequence[str] | None,
    reader_schema: pa.Schema | None,
    batch_size: int | None,
) -> None:
    """See `LanceDataset.add_columns`."""
    check_writable(dataset._manifest.writer_flags, dataset._manifest.path)
    rows = checked_batch_size(batch_size)
    nulls = null_columns(transforms)
    if nulls is not None:
        _repeated(dataset, lambda handle: _add_nulls(handle, nulls), DEFAULT_CONFLICT_RETRIES)
    elif isinstance(transforms, Mapping):
        texts = expressions(transforms)
        _repeated(
            dataset, lambda handle: add_transformed(handle, SqlTransform(handle, texts, rows)), DEFAULT_CONFLICT_RETRIES
        )
    elif callable(transforms):
        udf = transforms if isinstance(transforms, BatchUDF) else BatchUDF(transforms)
        plain = udf is not transforms
        _repeated(dataset, lambda handle: _add_by_function(handle, udf, read_columns, rows, plain=plain), 0)
    else:
        schema, batches = data_batches(transforms, reader_schema)
        _repeated(dataset, lambda handle: add_transformed(handle, DataTransform(schema, batches)), 0)


def _repeated(dataset: LanceDataset, change: Any, retries: int) -> None:
    """Commit a change; functions and streams are not asked again where others were faster."""
    repeated_on_conflict(dataset, lambda handle: (change(handle), None), retries, DEFAULT_RETRY_TIMEOUT)


def _add_nulls(dataset: LanceDataset, arrow: pa.Schema) -> Manifest:
    """Add columns that no file has, which are null therefore."""
    manifest = dataset._manifest
    if manifest.storage_version == LEGACY_VERSION:
        raise UnsupportedError("Cannot add all-null columns to legacy dataset version: give the columns values")
    fields = new_fields(manifest, arrow)
    fields.check_nullable()
    return commit_column_files(dataset, Merge(tuple(manifest.fragments), fields.schema, True), ())


def add_transformed(dataset: LanceDataset, transform: Transform) -> Manifest:
    """Write the new columns of all fragments, and commit them."""
    fields = new_fields(dataset._manifest, transform.arrow)
    fields.check_values()
    readers = list(dataset._reader.fragments) if fields.roots else []

    def write(reader: FragmentReader) -> DataFile:
        return _written(dataset, reader, fields, transform)

    files: list[DataFile] = []
    try:
        if transform.in_parallel:
            files = write_column_files(dataset, readers, write)
        else:
            for reader in readers:
                files.append(write(reader))
            if isinstance(transform, DataTransform):
                transform.check_end()
    except BaseException:
        remove_column_files(dataset, files)
        raise
    return _committed(dataset, fields, readers, files, files)


def _written(dataset: LanceDataset, reader: FragmentReader, fields: NewFields, transform: Transform) -> DataFile:
    """Write the new columns of a fragment."""
    version = dataset._manifest.storage_version
    extended = {top.name for top in fields.added.fields if top not in fields.roots}
    for top in dataset._manifest.schema.fields:
        stored = [reader.stored(node.id) for node in top.walk()] if top.name in extended else []
        versions = {found[0].version for found in stored if found is not None} - {version}
        if versions:
            raise UnsupportedError(
                f"column {top.name!r} of fragment {reader.fragment.id} is in a file of version {min(versions)}, to "
                f"which no field of version {version} can be added: compact the dataset first"
            )
    _check_required(dataset, reader, fields)
    return write_column_file(dataset, reader, fields.added, transform.batches(reader, fields))


def _check_required(dataset: LanceDataset, reader: FragmentReader, fields: NewFields) -> None:
    """Refuse values for a struct that is null somewhere and has required fields, which would be null in a struct."""
    added = {top.id: top for top in fields.added.fields if top not in fields.roots}
    for top in dataset._manifest.schema.fields:
        if top.id not in added or not any(not child.nullable for node in top.walk() for child in node.children):
            continue
        # deleted rows too: they get values as well, and the reference reads them
        for batch in physical_batches(dataset, reader, [top.name]):
            name = _torn_field(batch.column(0), top, added[top.id])
            if name is not None:
                raise InvalidInputError(
                    f"column {top.name!r} of fragment {reader.fragment.id} has null structs, whose field {name!r} must "
                    "not be null where they get another field; make it nullable first (alter_columns)"
                )


def _torn_field(values: pa.Array, known: Field, added: Field) -> str | None:
    """Name of a required field of a struct that gets others, and is null somewhere."""
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
    dataset: LanceDataset,
    fields: NewFields,
    readers: Sequence[FragmentReader],
    files: Sequence[DataFile],
    written: Sequence[DataFile],
) -> Manifest:
    """Commit a new file for each fragment; those of `written` are removed if that fails."""
    fragments = tuple(with_file(reader, file) for reader, file in zip(readers, files, strict=True))
    if not readers:
        fragments = tuple(dataset._manifest.fragments)
    return commit_column_files(dataset, Merge(fragments, fields.schema, fields.preserves_nullability), written)


def fragment_with_columns(
    dataset: LanceDataset, reader: FragmentReader, transform: Transform
) -> tuple[FragmentMetadata, Schema]:
    """A fragment with new columns that is not committed, and the schema to commit with it."""
    check_writable(dataset._manifest.writer_flags, dataset._manifest.path)
    fields = new_fields(dataset._manifest, transform.arrow)
    fields.check_values()
    if not fields.roots:
        return FragmentMetadata.from_fragment(reader.fragment), fields.schema
    file = _written(dataset, reader, fields, transform)
    if isinstance(transform, DataTransform):
        try:
            transform.check_end()
        except BaseException:
            remove_column_files(dataset, [file])
            raise
    return FragmentMetadata.from_fragment(with_file(reader, file)), fields.schema


def merged_fragment(
    dataset: LanceDataset,
    reader: FragmentReader,
    value_func: Any,
    columns: Sequence[str] | None,
    reader_schema: pa.Schema | None,
    batch_size: int | None,
) -> tuple[FragmentMetadata, Schema]:
    """See `LanceFragment.merge_columns`."""
    rows = checked_batch_size(batch_size)
    if null_columns(value_func) is not None:
        raise TypeError(
            "transforms must be a BatchUDF, dict, map function, or ReaderLike  value.  Received "
            f"{type(value_func)}; columns of nulls need no fragments: use LanceDataset.add_columns"
        )
    if isinstance(value_func, Mapping):
        return fragment_with_columns(dataset, reader, SqlTransform(dataset, expressions(value_func), rows))
    if callable(value_func):
        udf = value_func if isinstance(value_func, BatchUDF) else BatchUDF(value_func)
        if udf.cache is not None:
            raise InvalidInputError(
                "A checkpoint file cannot be used when applying a UDF with LanceFragment.merge_columns; keep the "
                "fragments that are done instead"
            )
        transform = FunctionTransform(dataset, udf, columns, rows, plain=udf is not value_func, only=reader)
        return fragment_with_columns(dataset, reader, transform)
    schema, batches = data_batches(value_func, reader_schema)
    return fragment_with_columns(dataset, reader, DataTransform(schema, batches))


# -- functions, whose results may be kept in a file ---------------------------------------------------------------


def _add_by_function(
    dataset: LanceDataset, udf: BatchUDF, read_columns: Sequence[str] | None, rows: int | None, *, plain: bool
) -> Manifest:
    if udf.cache is None:
        return add_transformed(dataset, FunctionTransform(dataset, udf, read_columns, rows, plain=plain))
    made = _Backfill(dataset, udf, udf.cache, FunctionTransform(dataset, udf, read_columns, rows)).run()
    udf.cache.cleanup()
    return made


@dataclass(frozen=True)
class _Backfill:
    """New columns by a function, with a file that keeps what is done.

    Files that the checkpoint knows stay when something fails, also a conflict at the end: most fragments are the same
    in the next run. Those of a run that nobody takes up are removed by `cleanup_old_versions`.
    """

    dataset: LanceDataset
    udf: BatchUDF
    checkpoint: BatchUDFCheckpoint
    transform: FunctionTransform

    def run(self) -> Manifest:
        """Compute what is missing, and commit all."""
        readers = list(self.dataset._reader.fragments)
        done = [self._finished(reader) for reader in readers]
        known = next((found.schema for found in done if found is not None), None)
        if known is not None and self.udf.output_schema is None:
            self.transform.arrow = known.file_arrow  # so that the function is not called for it
        fields = new_fields(self.dataset._manifest, self.transform.arrow)
        fields.check_values()
        files = [
            found.file if found is not None and found.holds(fields.added) else self._write(reader, fields)
            for reader, found in zip(readers, done, strict=True)
        ]
        return _committed(self.dataset, fields, readers, files, ())

    def _write(self, reader: FragmentReader, fields: NewFields) -> DataFile:
        file = _written(self.dataset, reader, fields, self.transform)
        kept = FragmentMetadata.from_fragment(with_file(reader, file)).to_json()
        try:
            self.checkpoint.insert_fragment(reader.fragment.id, json.dumps(kept))
        except BaseException:
            remove_column_files(self.dataset, [file])
            raise
        return file

    def _finished(self, reader: FragmentReader) -> _Finished | None:
        """The file that the checkpoint has for a fragment, if the fragment is still the same and the file there."""
        text = self.checkpoint.get_fragment(reader.fragment.id)
        if text is None:
            return None
        try:
            kept = FragmentMetadata.from_json(text).to_fragment()
            if not kept.files or not _is_same(replace(kept, files=kept.files[:-1]), reader):
                return None
            file = kept.files[-1]
            store, path = self.dataset._reader.locator.data_file(file)
            stored = open_metadata(store.open_input(path, file.file_size_bytes or None), file.fields)
            return _Finished(file, stored.schema) if stored.num_rows == reader.physical_rows else None
        except (LanceError, OSError) as error:
            _log.debug("fragment %d is computed again: %s", reader.fragment.id, error)
            return None


@dataclass(frozen=True)
class _Finished:
    """A new file of an earlier run, and the schema that it was written with."""

    file: DataFile
    schema: Schema

    def holds(self, added: Schema) -> bool:
        """Whether these are the fields it was written for."""
        return [_kind(node) for node in self.schema.walk()] == [_kind(node) for node in added.walk()]


def _kind(node: Field) -> tuple[object, ...]:
    return node.id, node.name, node.logical_type, node.nullable


def _is_same(kept: Fragment, reader: FragmentReader) -> bool:
    """Whether a fragment is the one of a version: the same rows in the same files, as many of them deleted."""
    now = reader.fragment
    files = [[(file.path, file.base_id, file.fields) for file in fragment.files] for fragment in (kept, now)]
    return files[0] == files[1] and (kept.id, kept.deletion_file) == (now.id, now.deletion_file)
