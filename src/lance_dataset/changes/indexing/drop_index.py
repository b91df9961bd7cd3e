"""Removal of an index."""

from __future__ import annotations

from lance_dataset.changes.commit import commit_change
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.errors import IndexNotFoundError, InvalidInputError, nearest_name_hint
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.flags import check_writable
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import is_system_index, parse_indices
from lance_dataset.table.operations import CreateIndex

__all__ = ["drop_index"]


def drop_index(snapshot: Snapshot, name: str) -> Snapshot:
    """Commit a version without an index. Its files stay until no version needs them.

    Raises
    ------
    TypeError
        The name is not text.
    IndexNotFoundError
        There is no such index.
    InvalidInputError
        The index belongs to the table itself.
    CommitConflictError
        Other writers changed the index, and the retries ran out.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of an index must be text, not {type(name).__name__}")
    return repeated_on_conflict(snapshot, lambda latest: _drop(latest, name))


def _drop(latest: Snapshot, name: str) -> Snapshot:
    check_writable(latest.manifest.writer_flags, latest.manifest.path)
    indices = [
        IndexMetadata.from_proto(index, latest.manifest.path) for index in parse_indices(latest.manifest.index_section)
    ]
    found = tuple(index for index in indices if index.name == name)
    if not found:
        hint = nearest_name_hint(name, dict.fromkeys(index.name for index in indices))
        raise IndexNotFoundError(f"Index {name!r} not found{hint}")
    if is_system_index(found[0]):
        raise InvalidInputError(f"the index {name!r} belongs to the table itself, and cannot be dropped")
    return commit_change(latest, CreateIndex(removed_indices=found))
