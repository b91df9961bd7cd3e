"""Segments of scalar indices, written from the rows of fragments."""

from __future__ import annotations

import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError, IndexedFieldNotFoundError
from lance_dataset.index.files import NewIndexFolder
from lance_dataset.index.scalar.sorting import entry_schema
from lance_dataset.index.trainer import OldSegment, Trainer, Training
from lance_dataset.memory import MemoryUse, memory_limit, share_of_memory
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import project, scalar_path
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.index_progress import IndexProgress
from lance_dataset.scan.page_release import Release
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.scan import scan_batches
from lance_dataset.table.index_metadata import IndexDetails, IndexMetadata
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.roaring import encode_bitmap
from lance_dataset.types.schema import Field, Schema

__all__ = [
    "ColumnEntries",
    "IndexDefinition",
    "Progress",
    "default_memory_limit",
    "indexed_field",
    "new_id",
    "new_segment",
]

Progress = Callable[[IndexProgress], object]
#: Names of the passes over the rows.
_STAGES = ("load_data", "encode_data")
#: Bytes of values after which mapped bytes are released.
_RELEASED_BYTES = 64 << 20
#: Memory that a scan for an index may work with. Larger windows would only wait for the training.
_SCAN_MEMORY = 128 << 20


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
    """Return a quarter of the memory of the machine, or the share of a limit of memory."""
    quarter = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    return share_of_memory(quarter, MemoryUse.INDEX)


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
    target: NewIndexFolder | None = None,
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
    target
        Where the files go; None for the folder of the segment.
    """
    trainer = definition.trainer
    if target is None:
        target = NewIndexFolder(*FileLocator(snapshot.store, snapshot.root).index_folder(segment_id, None))
    kind = definition.path[-1].storage_type
    left = [each for each in fragment_ids if each not in old_fragment_ids]
    entries: Iterable[pa.RecordBatch] = ColumnEntries(snapshot, definition, left, progress)
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


class ColumnEntries:
    """Values of a column with the rows they are of, in storage order; each iteration reads them again.

    Mapped bytes are released as they are read, except the last ones: a large table does not fill the memory.

    Parameters
    ----------
    snapshot
        The version.
    definition
        The index.
    fragment_ids
        Fragments to read.
    progress
        Is told how many rows have been read.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        definition: IndexDefinition,
        fragment_ids: Sequence[int],
        progress: Progress | None = None,
    ) -> None:
        self._snapshot, self._definition = snapshot, definition
        self._fragment_ids, self._progress = fragment_ids, progress
        self._passes = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        entries = _entries(self._snapshot, self._definition, self._fragment_ids) if self._fragment_ids else iter(())
        stage, self._passes = _STAGES[min(self._passes, len(_STAGES) - 1)], self._passes + 1
        return entries if self._progress is None else _counted(entries, stage, self._progress)


def _entries(snapshot: Snapshot, definition: IndexDefinition, fragment_ids: Sequence[int]) -> Iterator[pa.RecordBatch]:
    schema = snapshot.scanned_schema
    by_address = definition.trainer.uses_addresses
    name = ".".join(field.name for field in definition.path)
    projection = project(schema, [name], with_row_id=not by_address, with_row_address=by_address)
    fragments = snapshot.manifest.fragment_list
    positions = sorted(position for each in fragment_ids if (position := fragments.position(each)) is not None)
    request = ScanRequest(
        schema,
        projection,
        fragments=tuple(positions),
        batch_size=definition.trainer.batch_rows,
        memory_limit=min(memory_limit() or _SCAN_MEMORY, _SCAN_MEMORY),
    )
    columns = entry_schema(definition.path[-1].storage_type)
    read = _ReadFragments(snapshot.reader.fragments, positions, definition.path[0])
    for batch in scan_batches(snapshot.reader, request):
        values, rows = batch.columns
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        yield pa.RecordBatch.from_arrays([values, rows], schema=columns)
        read.advance(batch.num_rows, batch.nbytes)


class _ReadFragments:
    """Fragments of a scan in order, whose mapped bytes are released as their rows are used.

    Pages that are read ahead are released with the others; they are loaded again when they are used.
    """

    def __init__(self, fragments: Sequence[FragmentReader], positions: Sequence[int], field: Field) -> None:
        self._fragments, self._left = fragments, deque(positions)
        self._release = Release([field])
        self._rows = self._bytes = 0

    def advance(self, rows: int, size: int) -> None:
        """Take note of rows that were used, and of their bytes."""
        self._rows += rows
        self._bytes += size
        if self._bytes < _RELEASED_BYTES:
            return
        self._bytes = 0
        while self._left:
            fragment = self._fragments[self._left[0]]
            self._release.fragment(fragment)
            if self._rows < fragment.num_rows:
                break
            self._rows -= fragment.num_rows
            self._left.popleft()


def _counted(entries: Iterator[pa.RecordBatch], stage: str, progress: Progress) -> Iterator[pa.RecordBatch]:
    completed = 0
    progress(IndexProgress("start", stage, 0, None, "rows"))
    for batch in entries:
        yield batch
        completed += batch.num_rows
        progress(IndexProgress("progress", stage, completed, None, "rows"))
    progress(IndexProgress("complete", stage, completed, None, "rows"))
