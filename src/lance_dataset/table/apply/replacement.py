"""Operations that replace the whole content of a table, by new content or by that of an older version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_dataset.errors import InvalidInputError
from lance_dataset.table.apply.numbering import highest_id, new_fragments
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Overwrite
from lance_dataset.types.schema import Field, Schema

__all__ = ["overwrite", "restore"]


def overwrite(base: Manifest, operation: Overwrite) -> Manifest:
    """Apply an Overwrite: set a new schema and new fragments. Settings, base paths and all high-water marks stay."""
    if base.version and operation.initial_bases:
        raise InvalidInputError("base paths can be given when a dataset is created, not when it is overwritten")
    versions = {file.storage_version for fragment in operation.fragments for file in fragment.files}
    if len(versions) > 1:
        raise InvalidInputError(f"the new files have the different storage versions {sorted(versions)}")
    schema, fragments = operation.schema, operation.fragments
    max_allocated = base.max_allocated_field_id
    if max_allocated is not None:
        schema, fragments = _with_fresh_field_ids(schema, fragments, max_allocated + 1)
        max_allocated = max(max_allocated, schema.max_field_id)
    # Ids are never used again, so those given by the caller are ignored, as in the reference.
    added, next_row_id = new_fragments(base, [replace(fragment, id=0) for fragment in fragments])
    return replace(
        base,
        schema=schema,
        fragments=added,
        storage_version=versions.pop() if versions else operation.storage_version or base.storage_version,
        next_row_id=next_row_id,
        config={**base.config, **operation.config_upserts},
        max_allocated_field_id=max_allocated,
        index_section=None,
        legacy_head=b"",
        blob_dataset_version=0,
    )


def _with_fresh_field_ids(
    schema: Schema, fragments: Sequence[Fragment], start: int
) -> tuple[Schema, tuple[Fragment, ...]]:
    """Renumber all fields from `start`, in the schema and in the files."""
    fresh = {node.id: start + position for position, node in enumerate(schema.walk())}

    def renumber_field(node: Field) -> Field:
        return replace(node, id=fresh[node.id], children=tuple(renumber_field(child) for child in node.children))

    def renumber_file(file: DataFile) -> DataFile:
        return replace(file, fields=tuple(fresh.get(field_id, field_id) for field_id in file.fields))

    renumbered = tuple(
        replace(fragment, files=tuple(renumber_file(file) for file in fragment.files)) for fragment in fragments
    )
    return replace(schema, fields=tuple(renumber_field(top) for top in schema.fields)), renumbered


def restore(base: Manifest, old: Manifest) -> Manifest:
    """Restore an older version. Only the high-water marks, which never go back, are kept."""
    check_writable(old.writer_flags, old.path)
    if base.uses_stable_row_ids and not old.uses_stable_row_ids:
        raise InvalidInputError(
            f"version {old.version} has no stable row ids but version {base.version} has; restoring it would lose them"
        )
    if base.max_allocated_field_id is not None and old.max_allocated_field_id is None:
        raise InvalidInputError(
            f"version {old.version} is older than the change to non-reusable field ids, so it cannot be restored"
        )
    allocated = [mark for mark in (base.max_allocated_field_id, old.max_allocated_field_id) if mark is not None]
    return replace(
        old,
        max_fragment_id=highest_id(base, old),
        next_row_id=max(base.next_row_id, old.next_row_id),
        max_allocated_field_id=max(allocated) if allocated else None,
    )
