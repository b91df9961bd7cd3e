"""The manifest of a new version: what the operation changes, then what all operations have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.versions import DEFAULT_VERSION
from lance_dataset.table.apply.columns import merge, project, replace_data
from lance_dataset.table.apply.finish import finished
from lance_dataset.table.apply.replacement import overwrite, restore
from lance_dataset.table.apply.rewrite import rewrite
from lance_dataset.table.apply.rows import append, delete, update
from lance_dataset.table.apply.settings import (
    create_index,
    numbered_bases,
    reserve_fragments,
    update_bases,
    update_config,
    update_mem_wal_state,
)
from lance_dataset.table.flags import Feature, check_writable
from lance_dataset.table.indices.system import with_current_coverage, with_true_catch_up
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.old_tables.completion import Completion
from lance_dataset.table.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)

__all__ = ["first_manifest", "next_manifest"]

_CHANGES: Mapping[type[Any], Callable[[Manifest, Any], Manifest]] = {
    Append: append,
    CreateIndex: create_index,
    DataReplacement: replace_data,
    Delete: delete,
    Merge: merge,
    Overwrite: overwrite,
    Project: project,
    ReserveFragments: reserve_fragments,
    UpdateBases: update_bases,
    UpdateConfig: update_config,
    UpdateMemWalState: update_mem_wal_state,
}


def first_manifest(operation: Overwrite, *, storage_version: str | None, stable_row_ids: bool) -> Manifest:
    """Version 1 of a new table.

    Parameters
    ----------
    operation
        Schema and fragments.
    storage_version
        Storage version; None takes that of the files, or the default without files.
    stable_row_ids
        Whether rows get ids that stay when they move.

    Raises
    ------
    InvalidInputError
        The fragments do not go together.
    """
    base = Manifest(
        version=0,
        schema=operation.schema,
        storage_version=storage_version or DEFAULT_VERSION,
        base_paths=numbered_bases(operation.initial_bases, ()),
        reader_flags=int(Feature.STABLE_ROW_IDS) if stable_row_ids else 0,
    )
    return finished(overwrite(base, operation), base)


def next_manifest(
    base: Manifest, operation: Operation, restored: Manifest | None = None, *, complete: Completion | None = None
) -> Manifest:
    """The version after `base`, without time and transaction; signed only where the usual signature would mislead.

    Parameters
    ----------
    base
        Newest version.
    operation
        What to change.
    restored
        For a `Restore`, the version to restore.
    complete
        Fills in row counts and file sizes that fragments lack, and reads row lineage from files; without it they stay
        as they are, and lineage in files that is needed is refused.

    Raises
    ------
    InvalidInputError
        The operation does not fit the table.
    UnsupportedError
        The table needs a feature this release cannot keep up, or the kind of operation cannot be applied.
    """
    check_writable(base.writer_flags, base.path)
    if isinstance(operation, Restore):
        if restored is None:
            raise InvalidInputError(f"version {operation.version} is to be restored, but it was not read")
        return finished(restore(base, restored), base, complete)
    locator = None if complete is None else complete.locator(base.base_paths)
    current = with_current_coverage(base.index_section, locator)
    changed = _changed(replace(base, index_section=current), operation, complete)
    section = with_true_catch_up(base.index_section, changed.index_section, base.version + 1)
    return finished(replace(changed, index_section=section), base, complete)


def _changed(base: Manifest, operation: Operation, complete: Completion | None) -> Manifest:
    if isinstance(operation, Update):
        return update(base, operation, complete)
    if isinstance(operation, Rewrite):
        return rewrite(base, operation, complete)
    change = _CHANGES.get(type(operation))
    if change is None:
        raise UnsupportedError(f"this release cannot commit a {operation.name} transaction")
    return change(base, operation)
