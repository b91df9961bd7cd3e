"""Effects of table changes on the list of indices in the manifest, and on the fragments that they cover.

An index is not rebuilt when data changes. Readers scan the fragments that it does not cover. Therefore a fragment for
which an index is no longer correct must be removed from its bitmap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from lance_dataset._proto import table_pb2
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.index_metadata import IndexMetadata, uuid_to_proto
from lance_dataset.table.indices.coverage import (
    MEMORY_INDEX,
    REUSE_INDEX,
    check_coverage,
    coverage,
    encode_indices,
    files_kind,
    has_reliable_coverage,
    is_system_index,
    parse_indices,
    set_coverage,
)
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Rewrite, RewrittenIndex
from lance_dataset.types.schema import Field, Schema

__all__ = [
    "holds_addresses",
    "pruned",
    "rewritten",
    "stores_addresses",
    "with_created",
    "with_moved_rows",
    "without_changed_columns",
    "without_fragments",
]

#: Kinds of indices that store addresses of rows instead of row ids, and the format version from which on they do.
_ADDRESSES_FROM = {"btree": 1, "zonemap": 0, "bloomfilter": 0, "fm": 0, "bitmap": 1, "ngram": 1, "rtree": 1} | {
    "labellist": 2,
    "minhashlsh": 1,
}

#: Ids of old fragments, and of those that replaced them.
Replacement = tuple[frozenset[int], frozenset[int]]


def with_created(base: Manifest, new: Sequence[IndexMetadata], removed: Sequence[IndexMetadata]) -> bytes | None:
    """Return the list without removed indices and with new ones. A new index also replaces one with the same id.

    Raises
    ------
    InvalidInputError
        Two new indices have the same id.
    """
    ids = [index.uuid for index in new]
    if len(ids) != len(set(ids)):
        raise InvalidInputError(f"two new indices have the same id: {sorted(ids)}")
    gone = {uuid_to_proto(index.uuid).uuid for index in (*new, *removed)}
    kept = [index for index in parse_indices(base.index_section) if index.uuid.uuid not in gone]
    return encode_indices([*kept, *(index.to_proto() for index in new)])


def pruned(manifest: Manifest, *, reliable: bool) -> bytes | None:
    """Return the list of a manifest without indices on missing fields and without empty segments.

    Segments of an index that no longer cover any fragment are removed. If all would be, the oldest one stays as the
    definition of the index.

    Parameters
    ----------
    manifest
        A version that is being made.
    reliable
        True if the coverage recorded for its indices is correct.
    """
    if not manifest.index_section:
        return None
    fields = {node.id for node in manifest.schema.walk()}
    indices = parse_indices(manifest.index_section)
    kept = [index for index in indices if is_system_index(index) or fields.issuperset(index.fields)]
    if reliable:
        kept = _without_empty_segments(kept, manifest.fragments)
    return manifest.index_section if len(kept) == len(indices) else encode_indices(kept)


def _without_empty_segments(
    indices: Sequence[table_pb2.IndexMetadata], fragments: Iterable[Fragment]
) -> list[table_pb2.IndexMetadata]:
    segments: dict[str, list[table_pb2.IndexMetadata]] = {}
    for index in indices:
        segments.setdefault(index.name, []).append(index)
    if all(len(each) == 1 or is_system_index(each[0]) for each in segments.values()):
        return list(indices)
    present = {fragment.id for fragment in fragments}
    empty: set[bytes] = set()
    for name, each in segments.items():
        if len(each) == 1 or name in (REUSE_INDEX, MEMORY_INDEX):
            continue
        dead = [index for index in each if _covers_none(index, present)]
        if len(dead) == len(each):
            dead.remove(min(dead, key=lambda index: index.dataset_version))
        empty.update(index.uuid.uuid for index in dead)
    return [index for index in indices if index.uuid.uuid not in empty]


def _covers_none(index: table_pb2.IndexMetadata, fragment_ids: set[int]) -> bool:
    covered = coverage(index)
    return covered is not None and fragment_ids.isdisjoint(covered)


# -- columns ---------------------------------------------------------------------------------------------------------


def without_fragments(base: Manifest, field_ids: Collection[int], fragment_ids: Collection[int]) -> bytes | None:
    """Return the list after columns of fragments got other values. Indices on them no longer cover these fragments.

    Raises
    ------
    UnsupportedError
        An index does not state its coverage.
    """
    if not base.index_section or not field_ids or not fragment_ids:
        return base.index_section
    changed = _with_relatives(base.schema, field_ids)
    return _uncovered(base, dict.fromkeys(fragment_ids, changed))


def without_changed_columns(base: Manifest, schema: Schema, fragments: Sequence[Fragment]) -> bytes | None:
    """Return the list after many files changed.

    An index no longer covers fragments in which one of its fields has another file.

    Parameters
    ----------
    base
        The version before.
    schema
        The schema after the change.
    fragments
        The fragments after the change.
    """
    if not base.index_section:
        return None
    before = {fragment.id: fragment for fragment in base.fragments}
    changed: dict[int, set[int]] = {}
    for fragment in fragments:
        old = before.get(fragment.id)
        if old is None or old.files == fragment.files:
            continue
        held, held_before = _holders(fragment), _holders(old)
        fields = {each for each in held.keys() | held_before.keys() if held.get(each) != held_before.get(each)}
        changed[fragment.id] = _with_relatives(base.schema, fields) | _with_relatives(schema, fields)
    return _uncovered(base, changed)


def _holders(fragment: Fragment) -> dict[int, tuple[object, ...]]:
    """Return the location of each field of a fragment. If several files list a field, the last one has it."""
    return {
        field_id: (file.path, file.base_id, column)
        for file in fragment.files
        for field_id, column in file.columns
        if field_id >= 0
    }


def _uncovered(base: Manifest, changed: Mapping[int, Collection[int]]) -> bytes | None:
    """Return the list without coverage of the changed fields, which are given by fragment id."""
    indices = parse_indices(base.index_section)
    reliable = has_reliable_coverage(base)
    for index in indices:
        touched = {fragment_id for fragment_id, fields in changed.items() if not set(fields).isdisjoint(index.fields)}
        if not touched:
            continue
        covered = coverage(index) if reliable else None
        if covered is None:
            raise UnsupportedError(
                f"the index {index.name!r} does not reliably state which fragments it covers, and values it was built "
                "from would change; drop the index first and create it again afterwards"
            )
        if not covered.isdisjoint(touched):
            set_coverage(index, covered - touched)
    return encode_indices(indices)


def _with_relatives(schema: Schema, field_ids: Collection[int]) -> set[int]:
    """Return fields with all their descendants and ancestors."""
    given, found = set(field_ids), set(field_ids)

    def visit(node: Field, above: tuple[int, ...]) -> None:
        if node.id in given:
            found.update(above, (below.id for below in node.walk()))
        for child in node.children:
            visit(child, (*above, node.id))

    for top in schema.fields:
        visit(top, ())
    return found


# -- rows ------------------------------------------------------------------------------------------------------------


def with_moved_rows(
    base: Manifest, moved: Collection[int], sources: Collection[int], changed_fields: Collection[int]
) -> bytes | None:
    """Return the list after rows with stable ids moved to new fragments.

    Indices of row ids on unchanged fields still cover these rows.

    Parameters
    ----------
    base
        The version before.
    moved
        Ids of new fragments that contain only existing rows.
    sources
        Fragments that the rows come from.
    changed_fields
        Fields that may have other values now. If empty, the changed fields are unknown.
    """
    if not base.index_section or not moved or not sources or not changed_fields or not has_reliable_coverage(base):
        return base.index_section
    changed = _with_relatives(base.schema, changed_fields)
    indices = parse_indices(base.index_section)
    for index in indices:
        covered = coverage(index)
        if covered is None or is_system_index(index) or stores_addresses(index):
            continue
        if changed.isdisjoint(index.fields) and covered.issuperset(sources):
            set_coverage(index, covered.union(moved))
    return encode_indices(indices)


def stores_addresses(index: table_pb2.IndexMetadata) -> bool:
    """Return True if an index stores addresses even with stable row ids. Unknown kinds are assumed to do so."""
    kind = files_kind(index)
    if kind is None:  # older than recorded kinds; those did not store addresses, as stable row ids came later
        return False
    return holds_addresses(kind, index.index_version)


def holds_addresses(kind: str, version: int | None) -> bool:
    """Return True if the files of a kind of index hold addresses even with stable row ids."""
    first = _ADDRESSES_FROM.get(kind)
    if first is None:
        return kind not in ("vector", "inverted", "json")
    return (version or 0) >= first


def rewritten(base: Manifest, operation: Rewrite, replacements: Sequence[Replacement]) -> bytes | None:
    """Return the list after a rewrite of fragments.

    Indices that were rebuilt replace their old versions. With stable row ids, the other indices also cover the rows in
    their new fragments, unless they store addresses. An index to which neither applies keeps the removed fragments in
    its bitmap, so the new ones are scanned.

    Parameters
    ----------
    base
        The version before.
    operation
        The rewrite.
    replacements
        Old and new fragments of its groups.

    Raises
    ------
    InvalidInputError
        An index covers only a part of a group, or a rebuilt index does not exist.
    UnsupportedError
        An index does not state its coverage.
    """
    indices = parse_indices(base.index_section)
    anew = {uuid_to_proto(each.old_id).uuid: each for each in operation.rewritten_indices}
    missing = anew.keys() - {index.uuid.uuid for index in indices}
    if missing:
        names = sorted(each.old_id for old_id, each in anew.items() if old_id in missing)
        raise InvalidInputError(f"the rewritten indices {names} are not part of version {base.version}")
    if operation.old_ids:
        check_coverage(base)
    for index in indices:
        if is_system_index(index) or not operation.old_ids:
            continue
        made = anew.get(index.uuid.uuid)
        if made is not None:
            _replace_index(index, made)
        if made is not None or (base.uses_stable_row_ids and not stores_addresses(index)):
            _move_coverage(index, replacements)
        elif base.uses_stable_row_ids:
            _reduce_coverage(index, operation.old_ids)
    if operation.reuse_index is not None:
        indices = [index for index in indices if index.name != REUSE_INDEX]
        indices.append(operation.reuse_index.to_proto())
    return encode_indices(indices)


def _replace_index(index: table_pb2.IndexMetadata, made: RewrittenIndex) -> None:
    index.uuid.CopyFrom(uuid_to_proto(made.new_id))
    index.ClearField("base_id")  # the new files are in the table itself, wherever the old ones were
    if made.details is not None and index.HasField("index_details"):  # as the reference does it
        index.index_details.CopyFrom(made.details.to_proto())
    index.index_version = made.index_version
    del index.files[:]
    index.files.extend(table_pb2.IndexFile(path=file.path, size_bytes=file.size_bytes) for file in made.files)


def _move_coverage(index: table_pb2.IndexMetadata, replacements: Sequence[Replacement]) -> None:
    covered = coverage(index) or frozenset()
    for old, new in replacements:
        if covered.isdisjoint(old):
            continue
        if not covered.issuperset(old):
            raise InvalidInputError(
                f"the index {index.name!r} covers the fragments {sorted(covered & old)} of the rewritten group "
                f"{sorted(old)}, but not the others; rewrite the fragments that an index covers separately from others"
            )
        covered = (covered - old) | new
    set_coverage(index, covered)


def _reduce_coverage(index: table_pb2.IndexMetadata, gone: Collection[int]) -> None:
    covered = coverage(index) or frozenset()
    if not covered.isdisjoint(gone):
        set_coverage(index, covered.difference(gone))
