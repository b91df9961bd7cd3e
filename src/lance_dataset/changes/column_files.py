"""Data files for some columns of a fragment: as many rows as it has, the deleted ones included, and the same order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_dataset.changes.fragment_rows import wrong_rows
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.families import family_of
from lance_dataset.file.storage import storage_batch
from lance_dataset.file.summary import DataFileSummary
from lance_dataset.file.threads import cpu_count
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.versions import resolve_version
from lance_dataset.file.writer import DataFileWriter, LegacyFileWriter
from lance_dataset.io.base import OutputFile
from lance_dataset.io.threads import SharedPool
from lance_dataset.query.chunks import sized_batches
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.pool import stream
from lance_dataset.schema import Schema
from lance_dataset.table.checks import is_mixture
from lance_dataset.table.commit.leftovers import ChangeFiles
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.fragment import LEGACY_VERSION, DataFile, Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Operation
from lance_dataset.table.transaction import Transaction
from lance_dataset.writer import new_data_file, written_file

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = [
    "commit_column_files",
    "next_field_id",
    "remove_column_files",
    "with_file",
    "write_column_file",
    "write_column_files",
]

#: Not the threads that encode pages: writing a file waits for those.
_writers = SharedPool("lance-columns", cpu_count)


def next_field_id(manifest: Manifest) -> int:
    """The id that the next new field of a table gets."""
    return manifest.max_field_id + 1


def with_file(fragment: FragmentReader, file: DataFile) -> Fragment:
    """The fragment with one more data file, for the list of a Merge."""
    return replace(fragment.fragment, files=(*fragment.fragment.files, file), physical_rows=fragment.physical_rows)


# -- writing -----------------------------------------------------------------------------------------------------


def write_column_file(
    dataset: LanceDataset,
    fragment: FragmentReader,
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    storage_version: str | None = None,
) -> DataFile:
    """Write a data file with more columns for a fragment; nothing refers to it until a commit does.

    Parameters
    ----------
    dataset
        The handle whose version the fragment is of.
    fragment
        The fragment.
    schema
        The columns of the file, field ids given.
    batches
        A value for every physical row of the fragment, in order, deleted rows included. Closed if it fails.
    storage_version
        File version, by default that of the table.

    Returns
    -------
    DataFile
        The file, complete and durable. If anything fails, it is removed again.

    Raises
    ------
    SchemaError
        A batch does not fit the schema.
    InvalidInputError
        Other than `fragment.physical_rows` rows, or 0.1 files beside later ones.
    """
    version = _file_version(dataset._manifest, fragment, storage_version)
    family_of(version).check_schema(schema, version)
    rows = _complete((storage_batch(batch, schema, fill_missing=False) for batch in batches), fragment)
    with new_data_file(dataset._store, dataset._root) as (name, output):
        if version == LEGACY_VERSION:
            summary = _write_legacy(output, schema, rows, fragment)
        else:
            summary = _write(output, schema, rows, version)
    return written_file(name, summary)


def _file_version(manifest: Manifest, fragment: FragmentReader, asked: str | None) -> str:
    """Version of a new file of a fragment."""
    version = resolve_version(manifest.storage_version if asked is None else asked)
    present = {file.storage_version for file in fragment.fragment.files}
    if not is_mixture(present | {version}):
        return version
    if asked is None:  # a table that release 0.16 called 0.1, with files of later versions
        return max(present)
    raise InvalidInputError(
        f"fragment {fragment.fragment.id} has data files of version {sorted(present)}; a file of version {version} "
        "cannot be added to it, as version 0.1 never mixes with later ones"
    )


def _write(output: OutputFile, schema: Schema, rows: Iterator[pa.RecordBatch], version: str) -> DataFileSummary:
    writer = DataFileWriter(output, schema, version)
    try:
        for batch in rows:
            writer.write_batch(batch)
        return writer.finish()
    except BaseException:
        writer.abort()
        raise


def _write_legacy(
    output: OutputFile, schema: Schema, rows: Iterator[pa.RecordBatch], fragment: FragmentReader
) -> DataFileSummary:
    """Write a legacy file in batches of the same rows as those of the other files of the fragment."""
    if any(node.logical_type.startswith("dict:") and node.dictionary_values is None for node in schema.walk()):
        raise UnsupportedError(
            "dictionary columns cannot be added to tables of storage version 0.1 by this release: pass plain values"
        )
    groups = _legacy_groups(fragment)
    writer = LegacyFileWriter(output, schema, max_rows_per_group=max(groups))
    for batch in sized_batches(rows, groups):
        writer.write_batch(batch)
        writer.end_batch()
    return writer.finish()


def _legacy_groups(fragment: FragmentReader) -> list[int]:
    """Rows of the batches of the legacy files of a fragment; the reference needs them to be the same in all."""
    for file in fragment.fragment.files:
        for field_id in file.fields:
            stored = fragment.stored(field_id) if field_id >= 0 else None
            if stored is not None and isinstance(stored[0], LegacyFile):
                return [int(rows) for rows in stored[0].batch_rows if rows]
    return [fragment.physical_rows]


def _complete(batches: Iterator[pa.RecordBatch], fragment: FragmentReader) -> Iterator[pa.RecordBatch]:
    """The batches, if they are as many rows as the fragment has."""
    wanted, rows = fragment.physical_rows, 0
    for batch in batches:
        rows += batch.num_rows
        if rows > wanted:
            break
        yield batch
    if rows != wanted:
        raise wrong_rows(fragment, rows, wanted, "physical rows, deleted ones included")


def write_column_files(
    dataset: LanceDataset, fragments: Sequence[FragmentReader], write: Callable[[FragmentReader], DataFile]
) -> list[DataFile]:
    """Write a file for each of some fragments, several at the same time.

    Parameters
    ----------
    dataset
        The handle whose version the fragments are of.
    fragments
        The fragments.
    write
        Writes the file of a fragment; called on several threads.

    Returns
    -------
    list of DataFile
        In the order of the fragments. If one fails, all are removed again.
    """
    made: dict[int, DataFile] = {}
    lock, stopped = threading.Lock(), threading.Event()

    def work(number: int) -> BaseException | None:
        if stopped.is_set():
            return None
        try:
            file = write(fragments[number])
        except BaseException as error:
            stopped.set()
            return error
        with lock:
            if not stopped.is_set():
                made[number] = file
                return None
        remove_column_files(dataset, [file])
        return None

    try:
        ahead = cpu_count() - 1 if len(fragments) > 1 else 0
        errors = [error for error in stream(work, range(len(fragments)), ahead=ahead, pool=_writers) if error]
        if errors:
            raise errors[0]
    except BaseException:
        with lock:  # a file that is finished later is removed by its thread
            stopped.set()
        remove_column_files(dataset, made.values())
        raise
    return [made[number] for number in range(len(fragments))]


# -- committing --------------------------------------------------------------------------------------------------


def commit_column_files(dataset: LanceDataset, operation: Operation, files: Sequence[DataFile]) -> Manifest:
    """Commit a change computed against the version that a handle shows; its new files are removed if that fails.

    Parameters
    ----------
    dataset
        The handle; it stays on its version.
    operation
        The change.
    files
        The data files that were written for it.

    Raises
    ------
    CommitConflictError
        Others changed the table meanwhile.
    """
    manifest = dataset._manifest
    change = Transaction(manifest.version, operation)
    with ChangeFiles(dataset._store, dataset._root, files).taken_back(manifest.version):
        return commit_transaction(dataset._store, dataset._root, change, read_manifest=manifest)


def remove_column_files(dataset: LanceDataset, files: Iterable[DataFile]) -> None:
    """Remove files that `write_column_file` made and no version refers to; failures only leave files behind."""
    ChangeFiles(dataset._store, dataset._root, tuple(files)).remove()
