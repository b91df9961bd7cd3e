"""Creation of indices."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lance_dataset.changes.commit import commit_change
from lance_dataset.changes.indexing.recall import with_curve
from lance_dataset.changes.indexing.segments import IndexDefinition, Progress, indexed_field, new_id, new_segment
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.errors import InvalidIndexError, InvalidInputError, UnsupportedError
from lance_dataset.index.trainer import Trainer
from lance_dataset.index.training import check_column, trainer_of_kind, trainer_of_plugin
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.index_config import IndexConfig
from lance_dataset.table.commit.leftovers import ChangeFiles
from lance_dataset.table.flags import check_writable
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import MEMORY_INDEX, REUSE_INDEX, kind_of_details, parse_indices
from lance_dataset.table.operations import CreateIndex

__all__ = ["NewIndex", "check_free_id", "create_index", "definition_of"]


@dataclass(frozen=True)
class NewIndex:
    """Index that a user asks for.

    Attributes
    ----------
    column
        Name of the column; dotted for a field of a struct.
    kind
        Name of the kind, or kind and parameters; or the training of another kind than scalar indices.
    name
        Name of the index; None for one derived from the column.
    replace
        True if an index of the same name and column may be replaced.
    parameters
        Parameters of a kind that is given by its name.
    """

    column: str
    kind: str | IndexConfig | Trainer
    name: str | None = None
    replace: bool = True
    parameters: Mapping[str, Any] | None = None


def create_index(
    snapshot: Snapshot,
    wanted: NewIndex,
    *,
    train: bool = True,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    segment_id: str | None = None,
) -> Snapshot:
    """Build an index of the newest version and commit it.

    Parameters
    ----------
    snapshot
        Version to build it of.
    wanted
        The index.
    train
        False for an empty index, which the first optimization trains.
    memory_limit, progress
        See `new_segment`.
    segment_id
        Id of its only segment; None for a new one.

    Raises
    ------
    TypeError, IndexedFieldNotFoundError, InvalidIndexError, UnsupportedError
        The index does not fit the table.
    InvalidInputError
        A segment has the id already.
    CommitConflictError
        Other writers changed the indexed rows, and the retries ran out.
    """
    return repeated_on_conflict(
        snapshot, lambda latest: _create(latest, wanted, train, memory_limit, progress, segment_id)
    )


def check_free_id(snapshot: Snapshot, segment_id: str) -> None:
    """Raise InvalidInputError if an index of a version has a segment with an id."""
    if any(index.uuid == segment_id for index in _indices(snapshot)):
        raise InvalidInputError(f"an index has a segment with the id {segment_id} already")


def _create(
    latest: Snapshot,
    wanted: NewIndex,
    train: bool,
    memory_limit: int | None,
    progress: Progress | None,
    segment_id: str | None,
) -> Snapshot:
    check_writable(latest.manifest.writer_flags, latest.manifest.path)
    definition = definition_of(latest, wanted)
    replaced = tuple(index for index in _indices(latest) if index.name == definition.name)
    if segment_id is not None:
        check_free_id(latest, segment_id)
    made = segment_id or new_id()
    with ChangeFiles(latest.store, latest.root, indices=[made]).taken_back(latest.version):
        fragment_ids = latest.manifest.fragment_list.columns.ids.tolist() if train and latest.reader.num_rows else []
        start = time.perf_counter()
        segment = new_segment(
            latest, definition, made, fragment_ids=fragment_ids, memory_limit=memory_limit, progress=progress
        )
        segment = with_curve(latest, segment, seconds=time.perf_counter() - start, memory_limit=memory_limit)
        return commit_change(latest, CreateIndex((segment,), replaced))


def definition_of(snapshot: Snapshot, wanted: NewIndex) -> IndexDefinition:
    """Check an index against a version, and find its name.

    Raises
    ------
    TypeError, IndexedFieldNotFoundError, InvalidIndexError, UnsupportedError
        See `create_index`.
    """
    parameters: Mapping[str, Any]
    if isinstance(wanted.kind, Trainer):
        trainer, parameters = wanted.kind, wanted.parameters or {}
    elif isinstance(wanted.kind, IndexConfig):
        trainer, parameters = trainer_of_plugin(wanted.kind.index_type), wanted.kind.parameters
    else:
        trainer, parameters = trainer_of_kind(wanted.kind), wanted.parameters or {}
    if trainer.specialize is not None:
        trainer = trainer.specialize(_checked_mapping(parameters))
    path = indexed_field(snapshot.scanned_schema, wanted.column)
    check_column(trainer, wanted.column, path[-1].to_arrow())
    if trainer.stable_refusal is not None and snapshot.manifest.uses_stable_row_ids:
        raise UnsupportedError(f"a table with stable row ids cannot have this index: {trainer.stable_refusal}")
    stem = ".".join(field.name for field in path) + trainer.name_suffix
    name = _name(snapshot, wanted, path[-1].id, stem, trainer.type_url)
    return IndexDefinition(name, path, trainer, trainer.checked(_checked_mapping(parameters)))


def _checked_mapping(parameters: Any) -> Mapping[str, Any]:
    if not isinstance(parameters, Mapping):
        raise TypeError(f"the parameters of an IndexConfig must be a dict, not {type(parameters).__name__}")
    return parameters


def _indices(snapshot: Snapshot) -> list[IndexMetadata]:
    manifest = snapshot.manifest
    return [IndexMetadata.from_proto(index, manifest.path) for index in parse_indices(manifest.index_section)]


def _name(snapshot: Snapshot, wanted: NewIndex, field_id: int, column: str, type_url: str) -> str:
    """Return the name of the index. One of the same name is replaced if it is of the same column.

    A derived name that an index of another kind has gets a number.
    """
    known = {index.name: index for index in _indices(snapshot)}
    if wanted.name is not None:
        if wanted.name in (REUSE_INDEX, MEMORY_INDEX):
            raise InvalidIndexError(f"Index name {wanted.name!r} is reserved, please specify a different name")
        _check_free(known.get(wanted.name), field_id, wanted)
        return wanted.name
    name, number = f"{column}_idx", 2
    while name in known and not _is_alike(known[name], field_id, type_url):
        name, number = f"{column}_idx_{number}", number + 1
    _check_free(known.get(name), field_id, wanted)
    return name


def _is_alike(index: IndexMetadata, field_id: int, type_url: str) -> bool:
    """Return True if an index is of a field and a kind; the kind of an old one may be unknown."""
    if field_id not in index.fields:
        return False
    return index.details is None or kind_of_details(index.details.type_url) == kind_of_details(type_url)


def _check_free(index: IndexMetadata | None, field_id: int, wanted: NewIndex) -> None:
    """Raise InvalidIndexError if an index has the name and must not be replaced."""
    if index is None:
        return
    if field_id not in index.fields:
        raise InvalidIndexError(
            f"Index name {index.name!r} already exists with different fields, please specify a different name"
        )
    if not wanted.replace:
        raise InvalidIndexError(
            f"Index name {index.name!r} already exists, please specify a different name or use replace=True"
        )
