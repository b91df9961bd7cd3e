"""Building of an index again, of which files are lost."""

from __future__ import annotations

from collections.abc import Sequence

from lance_dataset.changes.commit import commit_change
from lance_dataset.changes.indexing.drop_index import drop_index
from lance_dataset.changes.indexing.optimize_indices import definition_like
from lance_dataset.changes.indexing.segments import IndexDefinition, indexed_field, new_id, new_segment
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.errors import CommitConflictError, LanceError, MemoryLimitError, StorageError, UnsupportedError
from lance_dataset.index.describing import details_of
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.training import TRAINERS, check_column
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.commit.leftovers import ChangeFiles
from lance_dataset.table.flags import check_writable
from lance_dataset.table.operations import CreateIndex

__all__ = ["rebuild_or_drop_index"]

#: Kinds whose parameters only decide how the index is cut into pieces, or are in the manifest.
_RECORDED = {
    **dict.fromkeys(("btree", "zonemap", "bloomfilter", "rtree"), "with default sizes, as its own are lost"),
    **dict.fromkeys(("bitmap", "labellist", "ngram"), ""),
    "inverted": "as its manifest describes it; stop words of the user, if it had any, are lost",
}


def rebuild_or_drop_index(snapshot: Snapshot, name: str) -> tuple[Snapshot, str]:
    """Build an index of the newest version again, with its old parameters, or drop it if that is impossible.

    Parameters
    ----------
    snapshot
        Any version of the branch.
    name
        The index. Its files may be damaged or missing.

    Returns
    -------
    tuple
        The new version, and what was done.

    Raises
    ------
    CommitConflictError
        Other writers changed the indexed rows, and the retries ran out.
    InvalidInputError
        The index belongs to the table itself.
    StorageError, MemoryLimitError, OSError
        A store failed, or a limit was too small, so that the index can be built another time.
    """
    return repeated_on_conflict(snapshot, lambda latest: _rebuild_or_drop(latest, name))


def _rebuild_or_drop(latest: Snapshot, name: str) -> tuple[Snapshot, str]:
    check_writable(latest.manifest.writer_flags, latest.manifest.path)
    segments = [segment for segment in index_segments(latest.reader) if segment.name == name]
    made = new_id()
    files = ChangeFiles(latest.store, latest.root, indices=[made])
    with files.taken_back(latest.version):
        try:
            definition, note = _definition(segments)
            ids = latest.manifest.fragment_list.columns.ids.tolist() if latest.reader.num_rows else []
            segment = new_segment(latest, definition, made, fragment_ids=ids)
        except (LanceError, OSError, TypeError) as error:
            if _may_pass(error):
                raise
            reason = f"it was dropped, as it could not be built again: {error}"
            files.remove()
        else:
            replaced = tuple(each.metadata for each in segments)
            return commit_change(latest, CreateIndex((segment,), replaced)), f"it was built again {note}".rstrip()
    return drop_index(latest, name), reason


def _may_pass(error: Exception) -> bool:
    """Return True if the reason why an index could not be built may be gone at the next attempt."""
    if isinstance(error, LanceError):
        return isinstance(error, StorageError | MemoryLimitError | CommitConflictError)
    return isinstance(error, OSError) and not isinstance(error, FileNotFoundError)


def _definition(segments: Sequence[Segment]) -> tuple[IndexDefinition, str]:
    """Return the definition of an index, and a note about its parameters.

    They are those of the first segment whose files tell them. If no file does, the manifest decides.
    """
    problem: Exception = UnsupportedError("this release does not know its kind")
    for segment in segments:
        try:
            return definition_like(segment, retrain=True), ""
        except (LanceError, OSError) as error:
            problem = error
    for segment in segments[-1:]:
        if segment.kind in _RECORDED and len(segment.column_names) == 1:
            return _recorded_definition(segment, segment.column_names[0]), _RECORDED[segment.kind]
    raise problem


def _recorded_definition(segment: Segment, column: str) -> IndexDefinition:
    """Return the definition of an index as far as the manifest tells it."""
    trainer = TRAINERS[segment.kind or ""]
    path = indexed_field(segment.reader.scanned_schema, column)
    check_column(trainer, column, path[-1].to_arrow())
    return IndexDefinition(segment.name, path, trainer, trainer.checked(details_of(segment)))
