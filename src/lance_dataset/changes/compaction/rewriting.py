"""Writing the new fragments of a task; nothing refers to them yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_dataset.changes.compaction.live_rows import live_rows
from lance_dataset.changes.compaction.page_copy import copy_pages, why_not_copied
from lance_dataset.changes.compaction.planning import Task
from lance_dataset.changes.compaction.settings import CompactionSettings
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.blob_fields import check_table_blobs
from lance_dataset.file.families import family_of
from lance_dataset.index.remap import indices_to_remap
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.row_versions import RowVersions
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.old_tables.legacy_dictionaries import check_dictionaries_kept
from lance_dataset.table.operations import RewriteGroup
from lance_dataset.table.roaring import encode_bitmap, encode_treemap
from lance_dataset.writer import (
    DEFAULT_MAX_BYTES_PER_FILE,
    WriteOptions,
    new_data_file,
    write_fragment_files,
    written_fragment,
)

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["Rewritten", "rewrite_task"]


@dataclass(frozen=True)
class Rewritten:
    """What a task made.

    Attributes
    ----------
    read_version
        The version that the old fragments are of.
    group
        The old fragments and the new ones, which have no ids yet.
    surviving
        Addresses of the rows that were written, in form of a serialized 64-bit roaring bitmap; None where no index
        needs to know them.
    """

    read_version: int
    group: RewriteGroup
    surviving: bytes | None = None


def rewrite_task(dataset: LanceDataset, task: Task, version: str, settings: CompactionSettings) -> Rewritten:
    """Write the live rows of the fragments of a task into new ones.

    Parameters
    ----------
    dataset
        The version that the fragments are of.
    task
        The fragments.
    version
        File version of the new fragments.
    settings
        How to write.

    Returns
    -------
    Rewritten
        If anything fails, all files are removed again.

    Raises
    ------
    UnsupportedError
        The file version cannot hold the data, or pages must be copied and cannot be.
    CorruptFileError
        The fragments do not have the rows that they should have.
    """
    manifest = dataset._manifest
    family_of(version).check_schema(manifest.schema, version)
    check_table_blobs(manifest.schema, version)
    old = tuple(replace(reader.fragment, physical_rows=reader.physical_rows) for reader in task.fragments)
    written: list[Fragment] = []
    try:
        if task.num_rows:
            written += _written(dataset, task, version, settings)
        rows = sum(fragment.physical_rows for fragment in written)
        if rows != task.num_rows:
            raise _wrong_rows(task)
        new = _with_lineage(task, written, manifest)
        surviving = _surviving(task) if _moves_matter(manifest, settings) else None
        return Rewritten(manifest.version, RewriteGroup(old, new), surviving)
    except BaseException:
        ChangeFiles(dataset._store, dataset._root, data_files_of(written)).remove()
        raise


def _moves_matter(manifest: Manifest, settings: CompactionSettings) -> bool:
    """Whether somebody will ask which rows went where."""
    if manifest.uses_stable_row_ids:
        return bool(indices_to_remap(manifest))
    return settings.defer_index_remap or bool(manifest.index_section)


def _written(dataset: LanceDataset, task: Task, version: str, settings: CompactionSettings) -> list[Fragment]:
    if settings.copies_pages:
        reason = why_not_copied(task.fragments, dataset._manifest.schema, version)
        if reason is None:
            return _copied(dataset, task, version, settings)
        if settings.must_copy_pages:
            raise UnsupportedError(f"binary copy is not supported: {reason}; another compaction_mode encodes anew")
    return _encoded(dataset, task, version, settings)


# -- encoding anew ---------------------------------------------------------------------------------------------------


def _encoded(dataset: LanceDataset, task: Task, version: str, settings: CompactionSettings) -> list[Fragment]:
    store, root, schema = dataset._store, dataset._root, dataset._manifest.schema
    sizes = _part_sizes(task.num_rows, settings.target_rows_per_fragment)
    writing = WriteOptions(
        version,
        max_rows_per_file=max(sizes),
        max_bytes_per_file=max(1, settings.max_bytes_per_file or DEFAULT_MAX_BYTES_PER_FILE),
        max_rows_per_group=max(1, settings.max_rows_per_group),
    )
    batches = live_rows(dataset, task.fragments, max(1, settings.batch_size) if settings.batch_size else None)
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


def _part_sizes(rows: int, target_rows: int) -> list[int]:
    """Rows of each new fragment: even parts, as many as can have the target."""
    parts = max(1, rows // target_rows) if target_rows else 1
    size, larger = divmod(rows, parts)
    return [size + 1] * larger + [size] * (parts - larger)


def _parts(batches: Iterator[pa.RecordBatch], sizes: Sequence[int]) -> Iterator[Iterator[pa.RecordBatch]]:
    """The stream cut into streams of so many rows, each to be used up before the next."""
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
    """A last look before rows are replaced: as many have to be written as there are."""
    return CorruptFileError(
        f"fragments {[each.fragment.id for each in task.fragments]} should have {task.num_rows} rows, but another "
        "number was read; the dataset is left as it is"
    )


# -- copying pages ---------------------------------------------------------------------------------------------------


def _copied(dataset: LanceDataset, task: Task, version: str, settings: CompactionSettings) -> list[Fragment]:
    store, root, schema = dataset._store, dataset._root, dataset._manifest.schema
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
    """Runs of fragments with the target number of rows or a little more, none of them cut."""
    run: list[FragmentReader] = []
    for reader in fragments:
        large = sum(each.num_bytes for each in run) >= (settings.max_bytes_per_file or DEFAULT_MAX_BYTES_PER_FILE)
        if run and (large or sum(each.num_rows for each in run) >= max(settings.target_rows_per_fragment, 1)):
            yield run
            run = []
        run.append(reader)
    yield run


# -- what rows carry along -------------------------------------------------------------------------------------------


def _with_lineage(task: Task, written: Sequence[Fragment], manifest: Manifest) -> tuple[Fragment, ...]:
    """The new fragments with the row ids and versions that their rows had."""
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
    """Addresses of the live rows."""
    bitmaps = {}
    for reader in task.fragments:
        live = reader.live_rows(0, reader.physical_rows)
        if reader.num_rows:
            bitmaps[reader.fragment.id] = encode_bitmap(np.arange(reader.physical_rows) if live is None else live)
    return encode_treemap(bitmaps)
