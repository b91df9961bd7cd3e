"""Segments of scalar indices, written from the rows of fragments."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError, IndexedFieldNotFoundError
from lance_dataset.index.files import NewIndexFolder
from lance_dataset.index.scalar.sorting import entry_schema
from lance_dataset.index.trainer import OldSegment, Trainer, Training
from lance_dataset.read.projection import project, scalar_path
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.index_progress import IndexProgress
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.scan import scan_batches
from lance_dataset.table.index_metadata import IndexDetails, IndexMetadata
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.roaring import encode_bitmap
from lance_dataset.types.schema import Field, Schema

__all__ = ["IndexDefinition", "Progress", "default_memory_limit", "indexed_field", "new_id", "new_segment"]

Progress = Callable[[IndexProgress], object]


@dataclass(frozen=True)
class IndexDefinition:
    """Column, kind and parameters of an index.

    Attributes
    ----------
    name
        Its name.
    path
        Fields from the top level of the schema down to the indexed one.
    trainer
        Its kind.
    parameters
        Parameters of the kind, complete and checked.
    """

    name: str
    path: tuple[Field, ...]
    trainer: Trainer
    parameters: Mapping[str, Any]


def indexed_field(schema: Schema, column: str) -> tuple[Field, ...]:
    """Return the fields from the top level down to the one of a dotted name.

    Raises
    ------
    IndexedFieldNotFoundError
        There is no such field, or it is inside a list.
    """
    try:
        return scalar_path(schema, column, "to index")
    except FieldNotFoundError as error:
        raise IndexedFieldNotFoundError(str(error)) from None


def default_memory_limit() -> int:
    """Return a quarter of the memory of the machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4


def new_segment(
    snapshot: Snapshot,
    definition: IndexDefinition,
    segment_id: str,
    *,
    fragment_ids: Sequence[int],
    memory_limit: int | None = None,
    progress: Progress | None = None,
    old: Sequence[OldSegment] = (),
    old_fragment_ids: Collection[int] = (),
) -> IndexMetadata:
    """Write the files of a segment; they are durable on return. If this fails, the caller removes them.

    Parameters
    ----------
    snapshot
        The version to index.
    definition
        The index.
    segment_id
        Id of the segment, which names its folder.
    fragment_ids
        Fragments whose rows are indexed; without any, the segment is empty and is trained later.
    memory_limit
        Maximum number of bytes to work with, approximately; None for a quarter of the memory of the machine.
    progress
        Is told how many rows have been read.
    old
        Segments of some of these fragments, whose content is taken over instead of reading the rows again. The kind
        of the index must be able to.
    old_fragment_ids
        Fragments that they cover.
    """
    trainer = definition.trainer
    store, path = FileLocator(snapshot.store, snapshot.root).index_folder(segment_id, None)
    target = NewIndexFolder(store, path)
    kind = definition.path[-1].storage_type
    left = [each for each in fragment_ids if each not in old_fragment_ids]
    entries = _entries(snapshot, definition, left) if left else iter(())
    if progress is not None:
        entries = _counted(entries, progress)
    limit = default_memory_limit() if memory_limit is None else memory_limit
    work = Training(entries, kind, target, definition.parameters, limit)
    details = trainer.extend(old, work) if old and trainer.extend is not None else trainer.write(work)
    stable = snapshot.manifest.uses_stable_row_ids
    return IndexMetadata(
        uuid=segment_id,
        name=definition.name,
        fields=(definition.path[-1].id,),
        dataset_version=snapshot.version,
        fragment_bitmap=encode_bitmap(fragment_ids if target.files else ()),  # without files it was not trained
        details=IndexDetails(trainer.type_url, details),
        index_version=trainer.stable_version if stable else trainer.version,
        created_at=time.time_ns() // 1_000_000,
        files=target.files,
    )


def new_id() -> str:
    """Return an id for a segment."""
    return str(uuid.uuid4())


def _entries(snapshot: Snapshot, definition: IndexDefinition, fragment_ids: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Yield the values of the column with the rows they are of, in storage order."""
    schema = snapshot.scanned_schema
    by_address = definition.trainer.uses_addresses
    name = ".".join(field.name for field in definition.path)
    projection = project(schema, [name], with_row_id=not by_address, with_row_address=by_address)
    fragments = snapshot.manifest.fragment_list
    positions = sorted(position for each in fragment_ids if (position := fragments.position(each)) is not None)
    request = ScanRequest(schema, projection, fragments=tuple(positions), batch_size=definition.trainer.batch_rows)
    columns = entry_schema(definition.path[-1].storage_type)
    for batch in scan_batches(snapshot.reader, request):
        values, rows = batch.columns
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        yield pa.RecordBatch.from_arrays([values, rows], schema=columns)


def _counted(entries: Iterator[pa.RecordBatch], progress: Progress) -> Iterator[pa.RecordBatch]:
    completed = 0
    progress(IndexProgress("start", "load_data", 0, None, "rows"))
    for batch in entries:
        yield batch
        completed += batch.num_rows
        progress(IndexProgress("progress", "load_data", completed, None, "rows"))
    progress(IndexProgress("complete", "load_data", completed, None, "rows"))
