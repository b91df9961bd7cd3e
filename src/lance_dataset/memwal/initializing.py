"""Initialization of the MemWAL of a table."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence

from lance_dataset.changes.commit import commit_change
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.errors import InvalidInputError
from lance_dataset.memwal.details import MemWalDetails, find_details, index_entry
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.maintained import check_maintained
from lance_dataset.memwal.places import MEM_WAL_FOLDER, list_shards
from lance_dataset.memwal.schemas import check_columns
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.flags import check_writable
from lance_dataset.table.indices.coverage import is_system_index, parse_indices
from lance_dataset.table.operations import CreateIndex

__all__ = ["initialize_mem_wal"]

_log = logging.getLogger(__name__)


def initialize_mem_wal(snapshot: Snapshot, details: MemWalDetails, hnsw_indices: Sequence[str] = ()) -> Snapshot:
    """Add a MemWAL to a table.

    Parameters
    ----------
    snapshot
        The table.
    details
        Settings of the MemWAL.
    hnsw_indices
        Names of indices that have parameters.

    Raises
    ------
    InvalidInputError
        The table has a MemWAL, an index does not exist, or the primary key is of an unsupported type.
    """

    def change(latest: Snapshot) -> Snapshot:
        manifest = latest.manifest
        check_writable(manifest.writer_flags, manifest.path)
        if find_details(manifest) is not None:
            raise InvalidInputError("Invalid user input: MemWAL is already initialized on this dataset")
        known = {index.name for index in parse_indices(manifest.index_section) if not is_system_index(index)}
        for name in (*details.maintained_indexes, *hnsw_indices):
            if name not in known:
                raise InvalidInputError(f"Invalid user input: index {name!r} does not exist; known are {sorted(known)}")
        check_maintained(latest, details)
        _tell_of_shards(latest)
        check_columns(manifest.schema)
        KeyColumns.of(manifest.schema)
        entry = index_entry(str(uuid.uuid4()), details, latest.version, time.time_ns() // 1_000_000)
        return commit_change(latest, CreateIndex((entry,), ()))

    return repeated_on_conflict(snapshot, change)


def _tell_of_shards(snapshot: Snapshot) -> None:
    """Log a warning if there are shards already, as after a table with a MemWAL was overwritten."""
    shards = list_shards(snapshot.store, snapshot.root)
    if shards:
        _log.warning(
            "%s has shards of an earlier MemWAL, whose rows will be read and merged: %s; remove %s/ before if they "
            "belong to rows that were replaced",
            snapshot.store.uri(snapshot.root),
            ", ".join(shards),
            MEM_WAL_FOLDER,
        )
