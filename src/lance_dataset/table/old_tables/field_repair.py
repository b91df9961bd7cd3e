"""Repair of tables in which several data files of a fragment claim the same field.

Releases around 0.10.5 gave the ids of dropped columns to new ones. The values of such a field are in the last file of a
fragment that lists it. This library reads them from there, but the reference reads the first such file. Therefore the
field gets a new id, which no other file has.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.indices.coverage import without_fields
from lance_dataset.table.manifest import Manifest
from lance_dataset.types.schema import Field, Schema

__all__ = ["with_unique_fields"]

_log = logging.getLogger(__name__)


def with_unique_fields(manifest: Manifest) -> Manifest:
    """Return the manifest with new ids for all fields that two files of one fragment claim.

    Files that are left without any field of the schema are dropped. So are indices on such fields, because they were
    built from the wrong values. In legacy files, pages are found by field id. If new ids would break that, the manifest
    stays unchanged.
    """
    shared = manifest.fragment_list.with_shared_fields().tolist()
    held_twice = set[int]().union(*(_held_twice(manifest.fragments[position]) for position in shared))
    if not held_twice:
        return manifest
    repeated = sorted(node.id for node in manifest.schema.walk() if _is_repeated(node, held_twice))
    if not repeated:
        return manifest
    first = manifest.max_field_id + 1
    fresh = {field_id: first + position for position, field_id in enumerate(repeated)}
    fragments = tuple(_renumbered(fragment, fresh) for fragment in manifest.fragments)
    old_files = (file for fragment in manifest.fragments for file in fragment.files)
    new_files = (file for fragment in fragments for file in fragment.files)
    if not all(map(_keeps_pages, old_files, new_files)):
        _log.warning("fields %s are in several files of a fragment, and cannot get other ids in legacy files", repeated)
        return manifest
    schema = _with_ids(manifest.schema, fresh)
    kept = {node.id for node in schema.walk()}
    mark = manifest.max_allocated_field_id
    return replace(
        manifest,
        schema=schema,
        fragments=tuple(_without_dead_files(fragment, kept) for fragment in fragments),
        index_section=without_fields(manifest.index_section, fresh.keys()),
        max_allocated_field_id=None if mark is None else max(mark, *fresh.values()),
    )


def _held_twice(fragment: Fragment) -> set[int]:
    """Return the field ids that more than one file of the fragment contains."""
    counts = Counter(field_id for file in fragment.files for field_id in _held(file))
    return {field_id for field_id, count in counts.items() if count > 1}


def _held(file: DataFile) -> set[int]:
    return {field_id for field_id, column in file.columns if field_id >= 0 and column >= 0}


def _is_repeated(node: Field, held_twice: set[int]) -> bool:
    """Return True if two files contain a field with all its leaves.

    A struct alone may be in two files, each with some of its fields.
    """
    leaves = (below.id for below in node.walk() if not below.children)
    return node.id in held_twice and all(leaf in held_twice for leaf in leaves)


def _renumbered(fragment: Fragment, fresh: Mapping[int, int]) -> Fragment:
    """Return the fragment with new ids in the last file that contains each field."""
    left = dict(fresh)
    files: list[DataFile] = []
    for file in reversed(fragment.files):
        held = _held(file)
        own = {old: new for old, new in left.items() if old in held}
        left = {old: new for old, new in left.items() if old not in own}
        files.append(replace(file, fields=tuple(own.get(field_id, field_id) for field_id in file.fields)))
    return replace(fragment, files=tuple(reversed(files)))


def _keeps_pages(old: DataFile, new: DataFile) -> bool:
    """Return True if the pages of a file are found under its new ids.

    In legacy files, pages are found by the distance of their field id from the first.
    """
    if not old.is_legacy:
        return True
    shifts = {after - before for before, after in zip(old.fields, new.fields, strict=True) if before >= 0}
    return len(shifts) <= 1


def _with_ids(schema: Schema, fresh: Mapping[int, int]) -> Schema:
    def renumbered(node: Field) -> Field:
        children = tuple(renumbered(child) for child in node.children)
        return replace(node, id=fresh.get(node.id, node.id), children=children)

    return replace(schema, fields=tuple(renumbered(top) for top in schema.fields))


def _without_dead_files(fragment: Fragment, live: set[int]) -> Fragment:
    files = tuple(file for file in fragment.files if not live.isdisjoint(file.fields) or _has_hidden(file))
    return replace(fragment, files=files or fragment.files[-1:])


def _has_hidden(file: DataFile) -> bool:
    """Return True if a file contains lineage columns."""
    return any(field_id < -2 for field_id in file.fields)
