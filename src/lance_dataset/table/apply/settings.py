"""Operations that change no rows: settings, metadata, base paths, indices, and high-water marks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lance_dataset.errors import CommitConflictError, InvalidInputError
from lance_dataset.table.apply.keys import check_keys, with_metadata
from lance_dataset.table.apply.numbering import highest_id
from lance_dataset.table.base_access import check_new_base
from lance_dataset.table.indices.changes import with_created
from lance_dataset.table.indices.system import with_generations
from lance_dataset.table.manifest import BasePath, Manifest
from lance_dataset.table.operations import (
    CompactedSsTable,
    CreateIndex,
    ReserveFragments,
    UpdateBases,
    UpdateConfig,
    UpdateMap,
    UpdateMemWalState,
)
from lance_dataset.types.schema import Field, Schema

__all__ = [
    "create_index",
    "numbered_bases",
    "reserve_fragments",
    "update_bases",
    "update_config",
    "update_mem_wal_state",
    "with_compacted",
]


def create_index(base: Manifest, operation: CreateIndex) -> Manifest:
    """Apply a CreateIndex: add and remove indices."""
    known = {node.id for node in base.schema.walk()}
    for index in operation.new_indices:
        unknown = sorted(set(index.fields) - known)
        if unknown:
            raise InvalidInputError(
                f"the index {index.name!r} is on the fields {unknown}, which version {base.version} does not have"
            )
    return replace(base, index_section=with_created(base, operation.new_indices, operation.removed_indices))


def reserve_fragments(base: Manifest, operation: ReserveFragments) -> Manifest:
    """Reserve fragment ids: the last ones below the new high-water mark."""
    highest = (highest_id(base, base) or 0) + operation.num_fragments
    if highest >= 1 << 32:
        raise InvalidInputError(f"{operation.num_fragments} more fragment ids would exceed 32 bits")
    return replace(base, max_fragment_id=highest)


# -- settings and metadata -------------------------------------------------------------------------------------------


def update_config(base: Manifest, operation: UpdateConfig) -> Manifest:
    """Apply an UpdateConfig: change settings, and the metadata of the table, its schema and its fields."""
    schema = base.schema
    if operation.field_metadata:
        schema = _with_field_metadata(base, operation.field_metadata)
    if operation.schema_metadata is not None:
        schema = replace(schema, metadata=_updated_bytes(schema.metadata, operation.schema_metadata))
    config, table_metadata = operation.config, operation.table_metadata
    return replace(
        base,
        schema=schema,
        config=base.config if config is None else _updated(base.config, config),
        table_metadata=base.table_metadata if table_metadata is None else _updated(base.table_metadata, table_metadata),
    )


def _updated(current: Mapping[str, str], change: UpdateMap) -> dict[str, str]:
    """Return a map after a change. A key with the value None is removed."""
    found = {} if change.replace else dict(current)
    for key, value in change.updates.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = value
    return found


def _updated_bytes(current: Mapping[str, bytes], change: UpdateMap) -> dict[str, bytes]:
    # Values that are not text cannot be set this way, but existing ones are kept.
    given = {key: value for key, value in change.updates.items() if value is not None}
    kept = {} if change.replace else {key: value for key, value in current.items() if key not in change.updates}
    return {**kept, **{key: value.encode() for key, value in given.items()}}


def _with_field_metadata(base: Manifest, changes: Mapping[int, UpdateMap]) -> Schema:
    unknown = sorted(set(changes) - {node.id for node in base.schema.walk()})
    if unknown:
        raise InvalidInputError(f"Field with id {unknown[0]} does not exist in version {base.version}")

    def changed(node: Field) -> Field:
        children = tuple(changed(child) for child in node.children)
        change = changes.get(node.id)
        if change is not None:
            node = with_metadata(node, _updated_bytes(node.metadata, change), base.schema)
        return replace(node, children=children)

    schema = replace(base.schema, fields=tuple(changed(top) for top in base.schema.fields))
    check_keys(schema)
    return schema


# -- base paths ------------------------------------------------------------------------------------------------------


def update_bases(base: Manifest, operation: UpdateBases) -> Manifest:
    """Apply an UpdateBases: add base paths."""
    return replace(base, base_paths=numbered_bases(base.base_paths, operation.new_bases))


def numbered_bases(present: Sequence[BasePath], new: Sequence[BasePath]) -> tuple[BasePath, ...]:
    """Return base paths with ids. Those without one (0) get the smallest unused id.

    Parameters
    ----------
    present
        Base paths of the table.
    new
        Base paths to add.

    Raises
    ------
    InvalidInputError
        Two base paths have the same id, path or name, or a new one is relative.
    """
    for base in new:
        check_new_base(base)
    taken = {base.id for base in (*present, *new)}
    unused = (number for number in itertools.count(1) if number not in taken)
    numbered = [*present, *(base if base.id else replace(base, id=next(unused)) for base in new)]
    kinds: dict[str, list[object]] = {
        "id": [base.id for base in numbered],
        "path": [base.location for base in numbered],
        "name": [base.name for base in numbered if base.name is not None],
    }
    for what, values in kinds.items():
        repeated = sorted({str(value) for value in values if values.count(value) > 1})
        if repeated:
            raise InvalidInputError(f"two base paths have the same {what}: {', '.join(repeated)}")
    return tuple(numbered)


# -- MemWAL of a table -----------------------------------------------------------------------------------------------


def update_mem_wal_state(base: Manifest, operation: UpdateMemWalState) -> Manifest:
    """Apply an UpdateMemWalState: record the compacted generations of the log."""
    return with_compacted(base, operation.compacted_sstables)


def with_compacted(base: Manifest, compacted: Sequence[CompactedSsTable]) -> Manifest:
    """Return the manifest with compacted generations of the log recorded.

    Raises
    ------
    CommitConflictError
        Another writer compacted the same generation, or a later one.
    InvalidInputError
        The table has no MemWAL.
    """
    if not compacted:
        return base
    stale, section = with_generations(base, compacted)
    if stale is not None:
        raise CommitConflictError(
            f"Stale SSTable compaction for shard {stale.shard_id}: proposed generation {stale.generation} is not "
            "greater than the recorded generation; leave this generation out",
            retryable=False,
        )
    return replace(base, index_section=section)
