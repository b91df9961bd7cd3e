"""Writing the new fragments of a task, which nothing refers to yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np
import pyarrow as pa

from lance_dataset.changes.compaction.live_rows import live_rows
from lance_dataset.changes.compaction.page_copy import copy_pages, why_not_copied
from lance_dataset.changes.compaction.planning import Task
from lance_dataset.changes.compaction.settings import CompactionSettings
from lance_dataset.changes.write.blob_files import BlobPolicy
from lance_dataset.changes.write.fragment_files import (
    WriteOptions,
    new_data_file,
    write_fragment_files,
    written_fragment,
)
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.blob_fields import check_table_blobs, version_for_blobs
from lance_dataset.file.families import family_of
from lance_dataset.file.goals import configured_goal
from lance_dataset.index.remap import indices_to_remap
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.defaults import DEFAULT_MAX_BYTES_PER_FILE
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.row_versions import RowVersions
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.old_tables.legacy_dictionaries import check_dictionaries_kept
from lance_dataset.table.operations import RewriteGroup
from lance_dataset.table.roaring import encode_bitmap, encode_treemap

__all__ = ["Rewritten", "rewrite_task"]


@dataclass(frozen=True)
class Rewritten:
    """Result of a task.

    Attributes
    ----------
    read_version
        Version that the old fragments belong to.
    group
        The old fragments, and the new ones, which do not have ids yet.
    surviving
        Old addresses of the rows that were written, as a serialized 64-bit roaring bitmap; None if indices do not need
        them.
    """

    read_version: int
    group: RewriteGroup
    surviving: bytes | None = None


def rewrite_task(
    snapshot: Snapshot, task: Task, version: str, settings: CompactionSettings, *, prune_dictionaries: bool = False
) -> Rewritten:
    """Write the live rows of a task's fragments to new fragments. If that fails, all new files are removed.

    Parameters
    ----------
    snapshot
        Version that the fragments belong to.
    task
        The fragments.
    version
        File version of the new fragments.
    settings
        Options of the compaction.
    prune_dictionaries
        True to leave values that no row has out of the dictionaries of columns.

    Returns
    -------
    Rewritten
        The old fragments and the new ones.

    Raises
    ------
    UnsupportedError
        The file version cannot hold the data, or pages must be copied and cannot be.
    CorruptFileError
        The fragments do not have the rows that they should have.
    """
    manifest = snapshot.manifest
    version = version_for_blobs(manifest.schema, version)
    family_of(version).check_schema(manifest.schema, version)
    check_table_blobs(manifest.schema, version)
    old = tuple(replace(reader.fragment, physical_rows=reader.physical_rows) for reader in task.fragments)
    written: list[Fragment] = []
    try:
        if task.num_rows:
            written += _written(snapshot, task, version, settings, prune_dictionaries)
        rows = sum(fragment.physical_rows for fragment in written)
        if rows != task.num_rows:
            raise _wrong_rows(task)
        new = _with_lineage(task, written, manifest)
        surviving = _surviving(task) if _moves_matter(manifest, settings) else None
        return Rewritten(manifest.version, RewriteGroup(old, new), surviving)
    except BaseException:
        ChangeFiles(snapshot.store, snapshot.root, data_files_of(written)).remove()
        raise


def _moves_matter(manifest: Manifest, settings: CompactionSettings) -> bool:
    """Return True if an index needs to know the new addresses of rows."""
    if manifest.uses_stable_row_ids:
        return bool(indices_to_remap(manifest))
    return settings.defer_index_remap or bool(manifest.index_section)


def _written(
    snapshot: Snapshot, task: Task, version: str, settings: CompactionSettings, prune_dictionaries: bool
) -> list[Fragment]:
    if settings.copies_pages and not prune_dictionaries:
        reason = why_not_copied(task.fragments, snapshot.manifest.schema, version)
        if settings.optimize is not None:
            reason = f"optimize={settings.optimize!r} encodes pages anew"
        if reason is None:
            return _copied(snapshot, task, version, settings)
        if settings.must_copy_pages:
            raise UnsupportedError(f"binary copy is not supported: {reason}; use another compaction_mode to re-encode")
    return _encoded(snapshot, task, version, settings, prune_dictionaries)


# -- re-encoding -----------------------------------------------------------------------------------------------------


def _encoded(
    snapshot: Snapshot, task: Task, version: str, settings: CompactionSettings, prune_dictionaries: bool
) -> list[Fragment]:
    store, root, schema = snapshot.store, snapshot.root, snapshot.manifest.schema
    sizes = _part_sizes(task.num_rows, settings.target_rows_per_fragment)
    writing = WriteOptions(
        version,
        max_rows_per_file=max(sizes),
        max_bytes_per_file=max(1, settings.max_bytes_per_file or DEFAULT_MAX_BYTES_PER_FILE),
        max_rows_per_group=max(1, settings.max_rows_per_group),
        blobs=BlobPolicy(snapshot.reader.locator),
        goal=configured_goal(snapshot.manifest.config, settings.optimize),
    )
    batches = live_rows(snapshot, task.fragments, max(1, settings.batch_size) if settings.batch_size else None)
    if prune_dictionaries:
        batches = map(_pruned, batches)
    written: list[Fragment] = []
    try:
        for part in _parts(batches, sizes):
            fragments, found = write_fragment_files(store, root, schema, part, writing)
            written += fragments
            check_dictionaries_kept(schema, found)
        if next(batches, None) is not None:
            raise _wrong_rows(task)
    except BaseException:
        ChangeFiles(store, root, data_files_of(written)).remove()
        raise
    return written


def _pruned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Leave values that no row has out of the dictionaries of columns."""
    columns = [
        column.dictionary_decode().dictionary_encode().cast(column.type)
        if isinstance(column, pa.DictionaryArray)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _part_sizes(rows: int, target_rows: int) -> list[int]:
    """Return the number of rows of each new fragment: as many even parts as reach the target."""
    parts = max(1, rows // target_rows) if target_rows else 1
    size, larger = divmod(rows, parts)
    return [size + 1] * larger + [size] * (parts - larger)


def _parts(batches: Iterator[pa.RecordBatch], sizes: Sequence[int]) -> Iterator[Iterator[pa.RecordBatch]]:
    """Cut a stream into streams of the given numbers of rows. Each must be consumed before the next one."""
    left: list[pa.RecordBatch] = []

    def part(size: int) -> Iterator[pa.RecordBatch]:
        while size > 0:
            batch = left.pop() if left else next(batches, None)
            if batch is None:
                return
            if batch.num_rows > size:
                left.append(batch.slice(size))
                batch = batch.slice(0, size)
            size -= batch.num_rows
            yield batch

    return map(part, sizes)


def _wrong_rows(task: Task) -> CorruptFileError:
    """Return the error for a task that read or wrote another number of rows than its fragments have."""
    return CorruptFileError(
        f"fragments {[each.fragment.id for each in task.fragments]} should have {task.num_rows} rows, but another "
        "number was read; the dataset is left as it is"
    )


# -- copying pages ---------------------------------------------------------------------------------------------------


def _copied(snapshot: Snapshot, task: Task, version: str, settings: CompactionSettings) -> list[Fragment]:
    store, root, schema = snapshot.store, snapshot.root, snapshot.manifest.schema
    written: list[Fragment] = []
    try:
        for run in _whole_parts(task.fragments, settings):
            with new_data_file(store, root) as (name, output):
                summary = copy_pages(run, schema, version, output, settings.copied_at_once)
                output.close()
            written.append(written_fragment(name, summary))
    except BaseException:
        ChangeFiles(store, root, data_files_of(written)).remove()
        raise
    return written


def _whole_parts(fragments: Sequence[FragmentReader], settings: CompactionSettings) -> Iterator[list[FragmentReader]]:
    """Yield runs of whole fragments that just reach the target number of rows."""
    run: list[FragmentReader] = []
    for reader in fragments:
        large = sum(each.num_bytes for each in run) >= (settings.max_bytes_per_file or DEFAULT_MAX_BYTES_PER_FILE)
        if run and (large or sum(each.num_rows for each in run) >= max(settings.target_rows_per_fragment, 1)):
            yield run
            run = []
        run.append(reader)
    yield run


# -- row ids and row versions ----------------------------------------------------------------------------------------


def _with_lineage(task: Task, written: Sequence[Fragment], manifest: Manifest) -> tuple[Fragment, ...]:
    """Give the new fragments the row ids and versions that their rows had."""
    if not manifest.uses_stable_row_ids:
        return tuple(written)
    ids = RowIds.concatenated(_row_ids(reader).without(reader.deletions) for reader in task.fragments)
    created, updated = (
        RowVersions.concatenated(versions(reader).without(reader.deletions) for reader in task.fragments)
        for versions in (attrgetter("created_versions"), attrgetter("updated_versions"))
    )
    fragments = []
    start = 0
    for fragment in written:
        stop = start + fragment.physical_rows
        fragments.append(
            replace(
                fragment,
                row_ids=ids.slice(start, stop).encode(),
                created_at_versions=created.slice(start, stop).encode(),
                last_updated_at_versions=updated.slice(start, stop).encode(),
            )
        )
        start = stop
    return tuple(fragments)


def _row_ids(reader: FragmentReader) -> RowIds:
    if reader.row_ids is None:
        raise CorruptFileError(f"fragment {reader.fragment.id} has no row ids, but the table has stable ones")
    return reader.row_ids


def _surviving(task: Task) -> bytes:
    """Encode the addresses of the live rows."""
    bitmaps = {}
    for reader in task.fragments:
        live = reader.live_rows(0, reader.physical_rows)
        if reader.num_rows:
            bitmaps[reader.fragment.id] = encode_bitmap(np.arange(reader.physical_rows) if live is None else live)
    return encode_treemap(bitmaps)
