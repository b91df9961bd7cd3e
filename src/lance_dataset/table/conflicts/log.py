"""Conflict conditions on the MemWAL, whose generations are compacted into the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lance_dataset._proto import system_indices_pb2
from lance_dataset.table.conflicts.verdict import AffectedRows, Verdict
from lance_dataset.table.index_metadata import IndexDetails, IndexMetadata, uuid_from_proto, uuid_to_proto
from lance_dataset.table.indices.coverage import MEMORY_INDEX
from lance_dataset.table.messages import parse_message
from lance_dataset.table.operations import CompactedSsTable, CreateIndex, Operation, Update, UpdateMemWalState

__all__ = ["log_progress", "progresses_without_log_index", "takes_over_same_log", "with_log_progress"]

_OK, _RETRY, _NO = Verdict.COMPATIBLE, Verdict.RETRYABLE, Verdict.INCOMPATIBLE


def takes_over_same_log(ours: Operation, theirs: Operation, _rows: AffectedRows | None) -> Verdict:
    """Check condition w: both compacted generations of the same shard, and ours may repeat theirs."""
    done = _progress(theirs)
    verdict = _OK
    for shard, generation in _progress(ours).items():
        if shard in done:
            verdict = max(verdict, _NO if done[shard] >= generation else _RETRY)
    return verdict


def progresses_without_log_index(ours: CreateIndex, _theirs: UpdateMemWalState, _rows: AffectedRows | None) -> Verdict:
    """Check condition mw: the MemWAL index gets their progress, but any other index conflicts."""
    return _OK if any(index.name == MEMORY_INDEX for index in ours.new_indices) else _NO


def _progress(operation: Operation) -> dict[str, int]:
    """Return the generation that each shard has reached."""
    if isinstance(operation, Update | UpdateMemWalState):
        return _highest(operation.compacted_sstables)
    if isinstance(operation, CreateIndex):
        logs = [index for index in operation.new_indices if index.name == MEMORY_INDEX]
        return _highest(table for index in logs for table in log_progress(index))
    return {}


def _highest(tables: Iterable[CompactedSsTable]) -> dict[str, int]:
    found: dict[str, int] = {}
    for table in tables:
        found[table.shard_id] = max(table.generation, found.get(table.shard_id, table.generation))
    return found


def _details(index: IndexMetadata) -> system_indices_pb2.MemWalIndexDetails:
    data = index.details.value if index.details is not None else b""
    return parse_message(system_indices_pb2.MemWalIndexDetails, data, f"index {index.name!r}")


def log_progress(index: IndexMetadata) -> tuple[CompactedSsTable, ...]:
    """Return the compacted generation of each shard, as recorded in the MemWAL index.

    Raises
    ------
    CorruptFileError
        The details of the index are not MemWAL details.
    """
    tables = _details(index).compacted_sstables
    where = f"index {index.name!r}"
    return tuple(CompactedSsTable(uuid_from_proto(each.shard_id, where), each.generation) for each in tables)


def with_log_progress(index: IndexMetadata, tables: Iterable[CompactedSsTable]) -> IndexDetails:
    """Return the details of the MemWAL index with each shard's highest generation, from its own list and `tables`."""
    merged: Mapping[str, int] = _highest((*log_progress(index), *tables))
    message = _details(index)
    del message.compacted_sstables[:]
    for shard, generation in merged.items():
        message.compacted_sstables.add(shard_id=uuid_to_proto(shard), generation=generation)
    url = index.details.type_url if index.details is not None else "/lance.table.MemWalIndexDetails"
    return IndexDetails(url, message.SerializeToString())
