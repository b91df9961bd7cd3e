"""Data files with some columns of a fragment. They hold all its physical rows in order, including deleted ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace

import pyarrow as pa

from lance_dataset.changes.commit import commit_change
from lance_dataset.changes.fragments.fragment_rows import wrong_rows
from lance_dataset.changes.write.blob_files import BlobPolicy
from lance_dataset.changes.write.fragment_files import new_data_file, written_file
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.blob_fields import version_for_blobs
from lance_dataset.file.blob_writing import BlobOutput
from lance_dataset.file.families import family_of
from lance_dataset.file.goals import StorageGoal, configured_goal
from lance_dataset.file.legacy import LegacyFile
from lance_dataset.file.storage import storage_batch
from lance_dataset.file.summary import DataFileSummary
from lance_dataset.file.versions import resolve_version
from lance_dataset.file.writer import DataFileWriter, LegacyFileWriter
from lance_dataset.io.base import OutputFile
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.batches import sized_batches
from lance_dataset.table.checks import is_mixture
from lance_dataset.table.commit.leftovers import ChangeFiles
from lance_dataset.table.fragment import LEGACY_VERSION, DataFile, Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Operation
from lance_dataset.table.paths import DATA_FOLDER
from lance_dataset.threads.pools import cpu_count, job_pool, one_of_many
from lance_dataset.threads.streams import stream
from lance_dataset.types.schema import Schema

__all__ = [
    "commit_column_files",
    "next_field_id",
    "remove_column_files",
    "with_file",
    "write_column_file",
    "write_column_files",
]

#: Separate from the threads that encode pages, because writing a file waits for those.


def next_field_id(manifest: Manifest) -> int:
    """Return the id that the next new field of a table gets."""
    return manifest.max_field_id + 1


def with_file(fragment: FragmentReader, file: DataFile) -> Fragment:
    """Return the fragment with one more data file, for a `Merge`."""
    return replace(fragment.fragment, files=(*fragment.fragment.files, file), physical_rows=fragment.physical_rows)


# -- writing -----------------------------------------------------------------------------------------------------


def write_column_file(
    snapshot: Snapshot,
    fragment: FragmentReader,
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    storage_version: str | None = None,
) -> DataFile:
    """Write a data file with more columns of a fragment. Nothing refers to it until a commit.

    Parameters
    ----------
    snapshot
        Version that the fragment belongs to.
    fragment
        The fragment.
    schema
        Columns of the file, with field ids.
    batches
        A value for every physical row of the fragment in order, including deleted rows.
    storage_version
        File version, by default that of the table.

    Returns
    -------
    DataFile
        The file, complete and durable. If anything fails, it is removed.

    Raises
    ------
    SchemaError
        A batch does not fit the schema.
    InvalidInputError
        The number of rows is not `fragment.physical_rows`, or files of 0.1 and later versions would be mixed.
    """
    version = _file_version(snapshot.manifest, fragment, schema, storage_version)
    family_of(version).check_schema(schema, version)
    rows = _complete((storage_batch(batch, schema, fill_missing=False) for batch in batches), fragment)
    with new_data_file(snapshot.store, snapshot.root) as (name, output):
        if version == LEGACY_VERSION:
            summary = _write_legacy(output, schema, rows, fragment)
        else:
            blobs = BlobPolicy(snapshot.reader.locator)
            path = f"{snapshot.root}/{DATA_FOLDER}/{name}"
            goal = configured_goal(snapshot.manifest.config)
            summary = _write(output, schema, rows, version, blobs.beside(snapshot.store, path), goal)
    return written_file(name, summary)


def _file_version(manifest: Manifest, fragment: FragmentReader, schema: Schema, asked: str | None) -> str:
    """Return the version for a new file of a fragment."""
    version = resolve_version(version_for_blobs(schema, manifest.storage_version) if asked is None else asked)
    present = {file.storage_version for file in fragment.fragment.files}
    if not is_mixture(present | {version}):
        return version
    if asked is None:  # a table that release 0.16 called 0.1, with files of later versions
        return max(present)
    raise InvalidInputError(
        f"fragment {fragment.fragment.id} has data files of version {sorted(present)}; a file of version {version} "
        "cannot be added to it, because version 0.1 cannot be mixed with later ones"
    )


def _write(
    output: OutputFile,
    schema: Schema,
    rows: Iterator[pa.RecordBatch],
    version: str,
    blobs: BlobOutput,
    goal: StorageGoal | None,
) -> DataFileSummary:
    writer = DataFileWriter(output, schema, version, blobs=blobs, goal=goal, bounds=True)
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
    """Write a legacy file with the same batch sizes as the other files of the fragment."""
    if any(node.logical_type.startswith("dict:") and node.dictionary_values is None for node in schema.walk()):
        raise UnsupportedError(
            "this release cannot add dictionary columns to tables of storage version 0.1: pass plain values"
        )
    groups = _legacy_groups(fragment)
    writer = LegacyFileWriter(output, schema, max_rows_per_group=max(groups))
    for batch in sized_batches(rows, groups):
        writer.write_batch(batch)
        writer.end_batch()
    return writer.finish()


def _legacy_groups(fragment: FragmentReader) -> list[int]:
    """Return the batch sizes of the legacy files of a fragment. The reference requires the same sizes in all files."""
    for file in fragment.fragment.files:
        for field_id in file.fields:
            stored = fragment.stored(field_id) if field_id >= 0 else None
            if stored is not None and isinstance(stored[0], LegacyFile):
                return [int(rows) for rows in stored[0].batch_rows if rows] or [1]
    return [max(fragment.physical_rows, 1)]


def _complete(batches: Iterator[pa.RecordBatch], fragment: FragmentReader) -> Iterator[pa.RecordBatch]:
    """Pass on the batches; raise InvalidInputError unless they have as many rows as the fragment."""
    wanted, rows = fragment.physical_rows, 0
    for batch in batches:
        rows += batch.num_rows
        if rows > wanted:
            break
        yield batch
    if rows != wanted:
        raise wrong_rows(fragment, rows, wanted, "physical rows, deleted ones included")


def write_column_files(
    snapshot: Snapshot,
    fragments: Sequence[FragmentReader],
    write: Callable[[FragmentReader], DataFile],
    wrote: Callable[[], object] = lambda: None,
) -> list[DataFile]:
    """Write one file for each fragment, several of them concurrently.

    Parameters
    ----------
    snapshot
        Version that the fragments belong to.
    fragments
        The fragments.
    write
        Writes the file of a fragment; called on several threads.
    wrote
        Called on the caller's thread after each file.

    Returns
    -------
    list of DataFile
        Files in the order of the fragments. If one fails, all of them are removed.
    """
    made: dict[int, DataFile] = {}
    lock, stopped = threading.Lock(), threading.Event()
    threads = cpu_count()
    together = len(fragments) // threads * threads  # the last ones, if they are fewer, have processors to themselves

    def work(number: int) -> BaseException | None:
        if stopped.is_set():
            return None
        try:
            with one_of_many() if number < together else nullcontext():
                file = write(fragments[number])
        except BaseException as error:
            stopped.set()
            return error
        with lock:
            if not stopped.is_set():
                made[number] = file
                return None
        remove_column_files(snapshot, [file])
        return None

    try:
        ahead = threads - 1 if len(fragments) > 1 else 0
        errors: list[BaseException] = []
        for error in stream(work, range(len(fragments)), ahead=ahead, pool=job_pool):
            if error is not None:
                errors.append(error)
            elif not errors:
                wrote()
        if errors:
            raise errors[0]
    except BaseException:
        with lock:  # a thread that finishes its file later removes it
            stopped.set()
        remove_column_files(snapshot, made.values())
        raise
    return [made[number] for number in range(len(fragments))]


# -- committing --------------------------------------------------------------------------------------------------


def commit_column_files(snapshot: Snapshot, operation: Operation, files: Sequence[DataFile]) -> Snapshot:
    """Commit a change that was computed against a snapshot. If that fails, remove its new files.

    Parameters
    ----------
    snapshot
        Version that the change was computed against.
    operation
        The change.
    files
        Data files that were written for it.

    Returns
    -------
    Snapshot
        The new version.

    Raises
    ------
    CommitConflictError
        Other writers made conflicting changes in the meantime.
    """
    with ChangeFiles(snapshot.store, snapshot.root, files).taken_back(snapshot.version):
        return commit_change(snapshot, operation)


def remove_column_files(snapshot: Snapshot, files: Iterable[DataFile]) -> None:
    """Remove files of `write_column_file` that no version refers to. Files that cannot be removed are left behind."""
    ChangeFiles(snapshot.store, snapshot.root, tuple(files)).remove()
