"""From the manifest of a version and an operation to the manifest of the next version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from lance_dataset._version import __version__
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.v0_1.dictionaries import with_dictionaries, write_dictionaries
from lance_dataset.file.versions import DEFAULT_VERSION
from lance_dataset.schema import Field, Schema
from lance_dataset.table.checks import check_manifest, is_mixture
from lance_dataset.table.completion import Completion
from lance_dataset.table.field_repair import with_unique_fields
from lance_dataset.table.flags import STICKY, Feature, check_readable, check_writable
from lance_dataset.table.fragment import LEGACY_VERSION, DataFile, Fragment, Spilled
from lance_dataset.table.indices import (
    check_not_indexed,
    has_covering_index,
    has_reliable_coverage,
    signature_for_unreliable_coverage,
)
from lance_dataset.table.manifest import BasePath, Manifest, WriterVersion
from lance_dataset.table.row_ids import RowIds, RowVersions
from lance_dataset.table.transaction import (
    Append,
    Delete,
    Operation,
    Overwrite,
    ReserveFragments,
    Restore,
    Rewrite,
)

__all__ = ["first_manifest", "next_manifest"]


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
        base_paths=_numbered_bases(operation.initial_bases),
        reader_flags=int(Feature.STABLE_ROW_IDS) if stable_row_ids else 0,
    )
    return _finished(_overwrite(base, operation), base)


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
        Fills in row counts and file sizes that fragments lack; None leaves them as they are.

    Raises
    ------
    InvalidInputError
        The operation does not fit the table.
    UnsupportedError
        The table needs a feature this release cannot keep up, or the kind of operation cannot be applied.
    """
    check_writable(base.writer_flags, base.path)
    if isinstance(operation, Append):
        changed = _append(base, operation.fragments)
    elif isinstance(operation, Delete):
        changed = _delete(base, operation)
    elif isinstance(operation, Overwrite):
        changed = _overwrite(base, operation)
    elif isinstance(operation, Restore) and restored is not None:
        changed = _restore(base, restored)
    elif isinstance(operation, Rewrite):
        changed = _rewrite(base, operation)
    elif isinstance(operation, ReserveFragments):
        changed = _reserve(base, operation.num_fragments)
    else:
        raise UnsupportedError(f"this release cannot commit a {operation.name} transaction")
    return _finished(changed, base, complete)


def _finished(changed: Manifest, base: Manifest, complete: Completion | None = None) -> Manifest:
    """Fill in what every operation has in common, and check the result as a reader would."""
    highest = _highest_id(base.max_fragment_id, changed.max_fragment_id, (*base.fragments, *changed.fragments))
    fragments = tuple(sorted(changed.fragments, key=lambda fragment: fragment.id))
    if complete is not None:
        fragments = complete(fragments, changed.base_paths)
    manifest = replace(
        changed,
        version=base.version + 1,
        fragments=fragments,
        max_fragment_id=highest,
        index_section=changed.index_section or None,  # 0.5 wrote empty lists
        path="",
        file_size=0,
        tag="",
        transaction_file="",  # named, and the name checked, when the version is published
        inline_transaction=None,
        writer_version=_signature(changed),
    )
    manifest = with_unique_fields(_with_storage_version(manifest))
    manifest = _with_flags(_with_dictionaries(manifest), base)
    where = f"new version {manifest.version}"
    check_readable(manifest.reader_flags, manifest.writer_flags, manifest.max_allocated_field_id, where)
    base_ids = {path.id for path in manifest.base_paths}
    check_manifest(manifest.fragments, base_ids, manifest.reader_flags, manifest.storage_version, "", where)
    return manifest


def _signature(changed: Manifest) -> WriterVersion | None:
    """Signature that differs from the usual one; `changed` still has that of the version its indices are from."""
    if has_reliable_coverage(changed):
        return None
    return signature_for_unreliable_coverage(__version__)


def _with_storage_version(manifest: Manifest) -> Manifest:
    """The manifest with the storage version of its files, if it claims 0.1; refuses a mixture with later ones."""
    found = frozenset[str]().union(*(fragment.storage_versions for fragment in manifest.fragments))
    if is_mixture(found):
        raise UnsupportedError(
            f"the dataset would keep files of storage version 0.1 beside {sorted(found - {LEGACY_VERSION})}, which "
            "old releases (0.15, 0.16) mixed by mistake; it can be read, but not be changed like this: overwrite it, "
            "restore a version from before, or compact it into one version with "
            "optimize.compact_files(data_storage_version=...)"
        )
    if manifest.storage_version != LEGACY_VERSION or not found or LEGACY_VERSION in found:
        return manifest
    return replace(manifest, storage_version=max(found))


def _with_dictionaries(manifest: Manifest) -> Manifest:
    """The manifest with the dictionary values of a 0.1 table at its head, as it will be read back."""
    if manifest.storage_version == LEGACY_VERSION:
        blocks, schema = write_dictionaries(manifest.schema, 0)
        head = b"".join(blocks)
        return replace(manifest, schema=with_dictionaries(schema, head, "new manifest"), legacy_head=head)
    if any(node.dictionary_values is not None for node in manifest.schema.walk()):
        # Later files keep their dictionaries themselves.
        fields = tuple(_without_dictionary(top) for top in manifest.schema.fields)
        return replace(manifest, schema=replace(manifest.schema, fields=fields), legacy_head=b"")
    return manifest


def _without_dictionary(node: Field) -> Field:
    children = tuple(_without_dictionary(child) for child in node.children)
    return replace(node, children=children, dictionary=None, dictionary_values=None)


# -- operations ------------------------------------------------------------------------------------------------------


def _append(base: Manifest, fragments: Sequence[Fragment]) -> Manifest:
    _check_versions(base.storage_version, base.fragments, fragments)
    added, next_row_id = _new_fragments(base, fragments)
    _check_ids([fragment.id for fragment in (*base.fragments, *added)])
    return replace(base, fragments=(*base.fragments, *added), next_row_id=next_row_id)


def _delete(base: Manifest, operation: Delete) -> Manifest:
    removed = set(operation.deleted_fragment_ids)
    updated = {fragment.id: fragment for fragment in operation.updated_fragments}
    fragments = []
    for fragment in base.fragments:
        if fragment.id in removed:
            continue
        if fragment.id in updated:
            fragment = _with_deletions(fragment, updated[fragment.id])
        if fragment.num_rows != 0:
            fragments.append(fragment)
    return replace(base, fragments=tuple(fragments))


def _with_deletions(current: Fragment, updated: Fragment) -> Fragment:
    """The current fragment with the deletion file of the updated one; all else others may have changed since."""
    return replace(
        current,
        deletion_file=updated.deletion_file,
        physical_rows=current.physical_rows or updated.physical_rows,
    )


def _overwrite(base: Manifest, operation: Overwrite) -> Manifest:
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
    # Ids are never used again, so those of the caller do not count, as in the reference.
    added, next_row_id = _new_fragments(base, [replace(fragment, id=0) for fragment in fragments])
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


def _restore(base: Manifest, old: Manifest) -> Manifest:
    check_writable(old.writer_flags, old.path)
    if base.uses_stable_row_ids and not old.uses_stable_row_ids:
        raise InvalidInputError(
            f"version {old.version} has no stable row ids but version {base.version} has; restoring it would lose them"
        )
    if base.max_allocated_field_id is not None and old.max_allocated_field_id is None:
        raise InvalidInputError(
            f"version {old.version} is from before field ids were made non-reusable, it cannot be restored"
        )
    allocated = [mark for mark in (base.max_allocated_field_id, old.max_allocated_field_id) if mark is not None]
    return replace(
        old,
        max_fragment_id=_highest_id(base.max_fragment_id, old.max_fragment_id, (*base.fragments, *old.fragments)),
        next_row_id=max(base.next_row_id, old.next_row_id),
        max_allocated_field_id=max(allocated) if allocated else None,
    )


def _rewrite(base: Manifest, operation: Rewrite) -> Manifest:
    going = operation.old_ids
    missing = going.difference(fragment.id for fragment in base.fragments)
    if missing:
        raise InvalidInputError(
            f"fragments {sorted(missing)} are not part of version {base.version}, so nothing can replace them"
        )
    if base.uses_stable_row_ids and any(
        fragment.row_ids is None for group in operation.groups for fragment in group.new_fragments
    ):
        raise InvalidInputError(
            "a rewritten fragment has no row ids; with stable row ids it must have those of its rows"
        )
    check_not_indexed(base, going)
    added, next_row_id = _new_fragments(
        base, [fragment for group in operation.groups for fragment in group.new_fragments]
    )
    kept = tuple(fragment for fragment in base.fragments if fragment.id not in going)
    if operation.storage_version is None:
        _check_versions(base.storage_version, (*kept, *base.fragments), added)
    _check_ids([fragment.id for fragment in (*kept, *added)])
    storage_version = operation.storage_version or base.storage_version
    return replace(base, fragments=(*kept, *added), next_row_id=next_row_id, storage_version=storage_version)


def _reserve(base: Manifest, count: int) -> Manifest:
    highest = _highest_id(base.max_fragment_id, None, base.fragments)
    return replace(base, max_fragment_id=(highest or 0) + count)


# -- parts -----------------------------------------------------------------------------------------------------------


def _new_fragments(base: Manifest, fragments: Sequence[Fragment]) -> tuple[tuple[Fragment, ...], int]:
    """New fragments with ids and row lineage, and the next unused row id."""
    highest = _highest_id(base.max_fragment_id, None, base.fragments)
    next_id = 0 if highest is None else highest + 1
    next_row_id = base.next_row_id
    numbered = []
    for fragment in fragments:
        if fragment.physical_rows == 0:
            raise InvalidInputError("a new fragment has no rows, or does not say how many; leave it out")
        if fragment.id == 0:
            fragment = replace(fragment, id=next_id)
            next_id += 1
        if base.uses_stable_row_ids:
            fragment, next_row_id = _with_lineage(fragment, next_row_id, base.version + 1)
        else:
            fragment = replace(fragment, row_ids=None, created_at_versions=None, last_updated_at_versions=None)
        numbered.append(fragment)
    return tuple(numbered), next_row_id


def _check_ids(ids: Sequence[int]) -> None:
    """Refuse fragment ids that the caller gave and that are taken."""
    repeated = sorted(fragment_id for fragment_id, count in Counter(ids).items() if count > 1)
    if repeated:
        raise InvalidInputError(
            f"the fragment ids {repeated} would be used twice; give new fragments the id 0, the commit numbers them"
        )


def _with_lineage(fragment: Fragment, next_row_id: int, version: int) -> tuple[Fragment, int]:
    """A new fragment with an id for every row and the version that brings it, where it does not say them itself."""
    rows = fragment.physical_rows
    row_ids = fragment.row_ids
    if row_ids is None:
        row_ids = RowIds.from_range(next_row_id, rows).encode()
        next_row_id += rows
    elif isinstance(row_ids, bytes):
        given = RowIds.decode_partial(row_ids, rows, "new fragment")
        missing = rows - len(given)
        if missing:
            row_ids = given.extended(next_row_id, missing).encode()
            next_row_id += missing
    stamp = RowVersions.constant(rows, version).encode()
    lineage = replace(
        fragment,
        row_ids=row_ids,
        created_at_versions=fragment.created_at_versions if fragment.created_at_versions is not None else stamp,
        last_updated_at_versions=(
            fragment.last_updated_at_versions if fragment.last_updated_at_versions is not None else stamp
        ),
    )
    return lineage, next_row_id


def _highest_id(first: int | None, second: int | None, fragments: Iterable[Fragment]) -> int | None:
    marks = [mark for mark in (first, second) if mark is not None]
    return max([*marks, *(fragment.id for fragment in fragments)], default=None)


def _check_versions(storage_version: str, present: Sequence[Fragment], added: Sequence[Fragment]) -> None:
    old = {file.storage_version for fragment in present for file in fragment.files} or {storage_version}
    new = {file.storage_version for fragment in added for file in fragment.files}
    if new and LEGACY_VERSION in old | new and len(old | new) > 1:
        raise InvalidInputError(
            f"files of storage version {sorted(new)} cannot be added to a dataset of {sorted(old)}: version 0.1 never "
            "mixes with later ones; write the files in the version of the dataset, or overwrite it"
        )


def _numbered_bases(bases: Sequence[BasePath]) -> tuple[BasePath, ...]:
    """Base paths with an id for those that have none (0)."""
    numbered = []
    next_id = max((base.id for base in bases), default=0) + 1
    for base in bases:
        if base.id == 0:
            base = replace(base, id=next_id)
            next_id += 1
        numbered.append(base)
    for what, values in (("id", [base.id for base in bases if base.id]), ("path", [base.path for base in bases])):
        if len(values) != len(set(values)):
            raise InvalidInputError(f"two base paths have the same {what}: {values}")
    return tuple(numbered)


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


def _with_flags(manifest: Manifest, base: Manifest) -> Manifest:
    """Set the feature flags that the content needs, and those that are never taken back."""
    both = Feature(0)
    if any(fragment.deletion_file is not None for fragment in manifest.fragments):
        both |= Feature.DELETION_FILES
    if manifest.uses_stable_row_ids:
        both |= Feature.STABLE_ROW_IDS
    if manifest.base_paths:
        both |= Feature.BASE_PATHS
    if has_covering_index(manifest):
        both |= Feature.COVERED_INDEX
    if _is_mixed(manifest):
        both |= Feature.MIXED_FILE_VERSIONS
    if any(value is Spilled.COLUMN for fragment in manifest.fragments for value in _lineage(fragment)):
        both |= Feature.SPILLED_LINEAGE
    kept = (base.writer_flags | manifest.writer_flags) & int(STICKY)
    readers = int(both) | kept & ~int(Feature.NON_REUSABLE_FIELD_IDS)
    writers = int(both) | kept | manifest.writer_flags & int(Feature.V2_FORMAT)
    if manifest.config:
        writers |= int(Feature.TABLE_CONFIG)
    return replace(manifest, reader_flags=readers, writer_flags=writers)


def _lineage(fragment: Fragment) -> tuple[object, ...]:
    return fragment.row_ids, fragment.created_at_versions, fragment.last_updated_at_versions


def _is_mixed(manifest: Manifest) -> bool:
    versions = {file.storage_version for fragment in manifest.fragments for file in fragment.files}
    if manifest.storage_version != LEGACY_VERSION:
        versions.add(manifest.storage_version)
    return len(versions) > 1
