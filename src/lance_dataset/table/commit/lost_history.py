"""Conflict check against versions whose transactions are gone, by comparing the table before and after them.

A cleanup removes old versions. A handle that was opened before still has its version. The versions in between can no
longer be read, but their combined effect can. That is enough for changes that touch little.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lance_dataset.table.conflicts import touched_fragments
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import (
    Append,
    Delete,
    Operation,
    ReserveFragments,
    UpdateBases,
    UpdateConfig,
    UpdateMap,
)
from lance_dataset.types.schema import Schema

__all__ = ["compare_states"]


def compare_states(operation: Operation, read: Manifest, latest: Manifest) -> frozenset[int] | None:
    """Check a change against the difference between two versions.

    Parameters
    ----------
    operation
        The change.
    read, latest
        The version that it was computed against, and the newest one.

    Returns
    -------
    frozenset of int or None
        Fragments in which other rows were deleted, which must be compared with the rows of the change. None if the two
        versions do not prove that the change still means the same.
    """
    if isinstance(operation, ReserveFragments | UpdateBases):
        return frozenset()
    if isinstance(operation, Append):
        return frozenset() if _goes_on(read, latest) else None
    if isinstance(operation, UpdateConfig):
        return frozenset() if _keeps_settings(operation, read, latest) else None
    if isinstance(operation, Delete):
        return _other_deletions(operation, read, latest)
    return None


def _goes_on(read: Manifest, latest: Manifest) -> bool:
    """Return True if the columns are equal and some fragments survive, so that the table was not overwritten."""
    survivors = np.isin(read.fragment_list.ids, latest.fragment_list.ids)
    return read.schema.fields == latest.schema.fields and bool(survivors.any())


def _keeps_settings(operation: UpdateConfig, read: Manifest, latest: Manifest) -> bool:
    maps = (
        (operation.config, read.config, latest.config),
        (operation.table_metadata, read.table_metadata, latest.table_metadata),
        (operation.schema_metadata, read.schema.metadata, latest.schema.metadata),
    )
    before, now = _field_metadata(read.schema), _field_metadata(latest.schema)
    untouched = all(update is None or _keeps(update, old, new) for update, old, new in maps)
    return untouched and all(before.get(each) == now.get(each) for each in operation.field_metadata)


def _keeps(update: UpdateMap, before: Mapping[str, object], now: Mapping[str, object]) -> bool:
    if update.replace:
        return dict(before) == dict(now)
    return all(before.get(key) == now.get(key) for key in update.updates)


def _field_metadata(schema: Schema) -> dict[int, Mapping[str, bytes]]:
    return {node.id: node.metadata for node in schema.walk()}


def _other_deletions(operation: Delete, read: Manifest, latest: Manifest) -> frozenset[int] | None:
    changed = set()
    for fragment_id in touched_fragments(operation):
        before, now = read.fragment(fragment_id), latest.fragment(fragment_id)
        if before is None or now is None or before.files != now.files:
            return None
        if before.deletion_file != now.deletion_file:
            changed.add(fragment_id)
    removed = changed.intersection(operation.deleted_fragment_ids)
    return None if removed else frozenset(changed)
