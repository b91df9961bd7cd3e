"""Manifest of a new version: the changes of its operation, then the steps common to all operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.versions import DEFAULT_VERSION
from lance_dataset.table.apply.columns import merge, project, replace_data
from lance_dataset.table.apply.finish import finished, with_section
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
from lance_dataset.table.indices.coverage import MEMORY_INDEX
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
    """Return the manifest of version 1 of a new table.

    Parameters
    ----------
    operation
        Schema and fragments.
    storage_version
        Storage version. None takes that of the files, or the default without files.
    stable_row_ids
        True if rows keep their ids when they move.

    Raises
    ------
    InvalidInputError
        The fragments do not fit together.
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
    """Return the manifest of the version after `base`, without its timestamp and transaction.

    It carries a writer signature only if the usual signature would be misleading.

    Parameters
    ----------
    base
        Newest version.
    operation
        Change to apply.
    restored
        The version to restore, for a `Restore`.
    complete
        Fills in row counts and file sizes that fragments lack, and reads row lineage from files. Without it, fragments
        stay as they are, and an operation that needs lineage from files is rejected.

    Raises
    ------
    InvalidInputError
        The operation does not fit the table.
    UnsupportedError
        The table uses a feature that this release cannot maintain, or this kind of operation cannot be applied.
    """
    check_writable(base.writer_flags, base.path)
    if isinstance(operation, Restore):
        if restored is None:
            raise InvalidInputError(f"version {operation.version} is to be restored, but was not read")
        return finished(restore(base, restored), base, complete)
    locator = None if complete is None else complete.locator(base.base_paths)
    current = with_current_coverage(base.index_section, locator)
    changed = _changed(with_section(base, current), operation, complete)
    section = with_true_catch_up(base.index_section, changed.index_section, base.version + 1, _fragment_ids(base))
    return finished(with_section(changed, section), base, complete)


def _fragment_ids(base: Manifest) -> list[int]:
    """Return the ids of all fragments if there is a MemWAL, whose progress depends on them; none otherwise."""
    has_log = base.index_section is not None and MEMORY_INDEX.encode() in base.index_section
    return base.fragment_list.columns.ids.tolist() if has_log else []


def _changed(base: Manifest, operation: Operation, complete: Completion | None) -> Manifest:
    if isinstance(operation, Update):
        return update(base, operation, complete)
    if isinstance(operation, Rewrite):
        return rewrite(base, operation, complete)
    change = _CHANGES.get(type(operation))
    if change is None:
        raise UnsupportedError(f"this release cannot commit a {operation.name} transaction")
    return change(base, operation)
