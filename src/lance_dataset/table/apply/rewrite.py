"""Compaction: replaces fragments by others with the same rows."""

from __future__ import annotations

from dataclasses import replace

from lance_dataset.errors import InvalidInputError
from lance_dataset.table.apply.identity import check_carried_ids
from lance_dataset.table.apply.lineage import RowSources
from lance_dataset.table.apply.numbering import check_file_versions, check_ids, new_fragments
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.fragment_list import edited
from lance_dataset.table.indices.changes import rewritten
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.old_tables.completion import Completion
from lance_dataset.table.operations import Rewrite

__all__ = ["rewrite"]


def rewrite(base: Manifest, operation: Rewrite, files: Completion | None) -> Manifest:
    """Apply a Rewrite: replace old fragments by new ones, and make the indices cover the new ones."""
    going = operation.old_ids
    listed = [each.id for group in operation.groups for each in group.old_fragments]
    repeated = sorted({each for each in listed if listed.count(each) > 1}) if len(listed) > len(going) else []
    if repeated:
        raise InvalidInputError(f"the fragments {repeated} are replaced more than once; list each in one group, once")
    missing = going.difference(base.fragment_list.ids.tolist())
    if missing:
        raise InvalidInputError(
            f"fragments {sorted(missing)} are not part of version {base.version}, so nothing can replace them"
        )
    new = [each for group in operation.groups for each in group.new_fragments]
    added, next_row_id = new_fragments(base, new, RowSources(base, going, files), carried=True)
    if base.uses_stable_row_ids:
        check_carried_ids([each for each in map(base.fragment, listed) if each is not None], added)
    if operation.storage_version is None:
        check_file_versions(base.storage_version, base.fragment_list, added)
    fragments = edited(base.fragments, removed=going, added=added)
    check_ids(fragments)
    return replace(
        base,
        fragments=fragments,
        next_row_id=next_row_id,
        storage_version=operation.storage_version or base.storage_version,
        index_section=rewritten(base, operation, _replacements(operation, added)),
    )


def _replacements(operation: Rewrite, added: tuple[Fragment, ...]) -> tuple[tuple[frozenset[int], frozenset[int]], ...]:
    """Return the ids of the old and of the new fragments of every group."""
    numbered = iter(added)
    pairs = []
    for group in operation.groups:
        new = frozenset(next(numbered).id for _ in group.new_fragments)
        pairs.append((frozenset(fragment.id for fragment in group.old_fragments), new))
    return tuple(pairs)
