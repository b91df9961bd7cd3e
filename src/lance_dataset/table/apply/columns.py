"""Operations on columns (add, drop, replace): whole files of fragments change, rows stay in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.apply.lineage import stamped, without_lineage
from lance_dataset.table.apply.numbering import check_file_versions, check_ids, new_fragments
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.fragment_list import FragmentList, edited
from lance_dataset.table.indices.changes import without_changed_columns, without_fragments
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import DataReplacement, Merge, Project
from lance_dataset.types.schema import Field, Schema

__all__ = ["merge", "project", "replace_data", "with_replaced_columns"]

#: Field id of a column that is no longer used. The hidden columns of row lineage have lower ids.
_TOMBSTONE = -2


def merge(base: Manifest, operation: Merge) -> Manifest:
    """Apply a Merge: set a new schema, and list the files of all fragments that match it."""
    present = set(base.fragment_list.ids.tolist())
    merged, new = [], []
    for fragment in operation.fragments:
        if fragment.id in present:
            present.remove(fragment.id)
            merged.append(_merged(base, fragment))
        else:
            new.append(fragment)
    if present:
        raise InvalidInputError(
            f"a Merge must list all fragments, but the fragments {sorted(present)} of version {base.version} are "
            "missing; removing rows is a Delete or an Update"
        )
    if base.uses_stable_row_ids and any(fragment.row_ids is not None for fragment in new):
        raise InvalidInputError(
            "a Merge lists a fragment twice, or a new one with row ids, which may conflict with other rows; leave "
            "row_id_meta out of new fragments, the commit assigns ids"
        )
    check_file_versions(base.storage_version, FragmentList.of(()), operation.fragments)
    added, next_row_id = new_fragments(base, new)
    merged += added
    _check_merged_schema(base, operation, merged)
    fragments = FragmentList.of(merged)
    check_ids(fragments)
    return replace(
        base,
        schema=_with_dictionaries(operation.schema, base),
        fragments=fragments,
        next_row_id=next_row_id,
        index_section=without_changed_columns(base, operation.schema, merged),
        max_allocated_field_id=_mark(base, operation.schema),
    )


def _merged(base: Manifest, fragment: Fragment) -> Fragment:
    """Return an existing fragment with its new files and its current row lineage."""
    current = base.fragment(fragment.id)
    if current is not None and current.physical_rows and fragment.physical_rows not in (0, None, current.physical_rows):
        raise InvalidInputError(
            f"a Merge changes columns, not rows, but it lists the fragment {fragment.id} with {fragment.physical_rows} "
            f"rows instead of {current.physical_rows}"
        )
    if not base.uses_stable_row_ids or current is None:
        return without_lineage(fragment)
    fragment = replace(
        fragment,
        row_ids=current.row_ids,
        created_at_versions=current.created_at_versions,
        last_updated_at_versions=current.last_updated_at_versions,
    )
    return fragment if fragment.files == current.files else stamped(fragment, base.version + 1)


def project(base: Manifest, operation: Project) -> Manifest:
    """Apply a Project: set a new schema over the same files, and drop files that hold none of its fields.

    A fragment keeps one file at least. Without any, neither this package nor the reference can read its rows, of which
    all columns are null then.
    """
    _check_projected_schema(base, operation)
    known = {node.id for node in operation.schema.walk()}
    changed = {}
    # a single file stays in any case
    for position in np.flatnonzero(base.fragment_list.columns.num_files > 1).tolist():
        fragment = base.fragments[position]
        files = tuple(file for file in fragment.files if _is_live(file, known)) or fragment.files[:1]
        if len(files) < len(fragment.files):
            changed[fragment.id] = replace(fragment, files=files)
    return replace(
        base,
        schema=_with_dictionaries(operation.schema, base),
        fragments=edited(base.fragments, updated=changed),
        max_allocated_field_id=_mark(base, operation.schema),
    )


def _is_live(file: DataFile, field_ids: set[int]) -> bool:
    """Return True if a file holds one of the fields, or a hidden column."""
    return any(field_id in field_ids or field_id < _TOMBSTONE for field_id in file.fields)


@dataclass(frozen=True)
class _Place:
    """A field and its position in its schema."""

    field: Field
    parent: int | None
    path: str

    def __str__(self) -> str:
        return f"{self.path!r} ({self.field.logical_type})"


def _places(fields: Sequence[Field], above: _Place | None = None) -> Iterator[tuple[int, _Place]]:
    """Yield every field with its id, parents first."""
    for node in fields:
        path = node.name if above is None else f"{above.path}.{node.name}"
        place = _Place(node, None if above is None else above.field.id, path)
        yield node.id, place
        yield from _places(node.children, place)


def _check_merged_schema(base: Manifest, operation: Merge, merged: Sequence[Fragment]) -> None:
    """Raise an error if the schema of a Merge would misread the files it keeps."""
    old, new = dict(_places(base.schema.fields)), dict(_places(operation.schema.fields))
    kept = _kept_ids(base, merged)
    for field_id, place in new.items():
        before = old.get(field_id)
        if before is None:
            if field_id in kept:
                raise _reuses(base, field_id, place, "Merge")
            continue
        rewritten = field_id not in kept and not (before.field.children or place.field.children)
        _check_meaning(field_id, before, place, "Merge", rewritten=rewritten)
        if before.field.name != place.field.name and not operation.moves_names:
            raise InvalidInputError(
                f"a Merge keeps names, but field id {field_id} is {before} and would become {place}; take the field "
                "ids from `dataset.lance_schema` (a plain Arrow schema is numbered from 0 on), and rename columns with "
                "a Project"
            )


def _kept_ids(base: Manifest, merged: Sequence[Fragment]) -> set[int]:
    """Return the field ids in files of a Merge that the base version has too."""
    known = {(file.path, file.base_id) for fragment in base.fragments for file in fragment.files}
    files = (file for fragment in merged for file in fragment.files if (file.path, file.base_id) in known)
    return {field_id for file in files for field_id in file.fields}


def _check_projected_schema(base: Manifest, operation: Project) -> None:
    """Raise an error if the schema of a Project would misread the files."""
    old, new = dict(_places(base.schema.fields)), dict(_places(operation.schema.fields))
    siblings = {(place.parent, place.field.name): field_id for field_id, place in old.items()}
    for field_id, place in new.items():
        before = old.get(field_id)
        if before is None:
            continue
        _check_meaning(field_id, before, place, "Project", rewritten=False)
        owner = siblings.get((place.parent, place.field.name), field_id)
        if owner != field_id and not operation.moves_names:
            raise InvalidInputError(
                f"a Project would rename field id {field_id} from {before} to {place}, which is the name of field id "
                f"{owner}: the schema seems to be numbered from scratch; take the field ids from "
                "`dataset.lance_schema`, or, if the name is to move, drop or rename the other field first, in two "
                "commits"
            )
    added = {field_id: place for field_id, place in new.items() if field_id not in old}
    if added and len(base.fragment_list):
        _check_added(base, added)


def _check_added(base: Manifest, added: Mapping[int, _Place]) -> None:
    """Raise an error if a new field of a Project would not be null in all rows."""
    held = _stored_ids(base)
    for field_id, place in added.items():
        if field_id in held:
            raise _reuses(base, field_id, place, "Project")
        if not place.field.nullable and place.parent not in added:
            raise InvalidInputError(
                f"a Project adds field id {field_id}, {place}, which is null in all existing rows; make it nullable, "
                "or add it with its values in a Merge"
            )


def _check_meaning(field_id: int, old: _Place, new: _Place, name: str, *, rewritten: bool) -> None:
    """Raise an error if a field id changes its type or its parent."""
    if not rewritten and not _same_type(old.field, new.field):
        raise InvalidInputError(
            f"a {name} keeps the types of stored columns, but field id {field_id} is {old} and would become {new}; "
            "take the field ids from `dataset.lance_schema`, and give a column of another type a new id and new files "
            "in a Merge"
        )
    if old.parent != new.parent:
        raise InvalidInputError(
            f"a {name} keeps columns in their place, but field id {field_id} is {old} and would become {new}, below "
            "another parent; take the field ids from `dataset.lance_schema`, and give a moved column a new id and new "
            "files in a Merge"
        )


def _same_type(old: Field, new: Field) -> bool:
    """Return True if two fields are stored in the same way. The type of a list of structs has two spellings."""
    return old.logical_type.removesuffix(".struct") == new.logical_type.removesuffix(".struct")


def _stored_ids(base: Manifest) -> set[int]:
    """Return the field ids in all data files."""
    return {field_id for fragment in base.fragments for file in fragment.files for field_id in file.fields}


def _reuses(base: Manifest, field_id: int, place: _Place, name: str) -> InvalidInputError:
    free = max(base.schema.max_field_id, base.max_allocated_field_id or -1, *_stored_ids(base)) + 1
    return InvalidInputError(
        f"a {name} gives field id {field_id} to the new field {place}, but data files hold a dropped column of that "
        f"id, which would be read in its place; use ids from {free} on for new fields"
    )


def _with_dictionaries(schema: Schema, base: Manifest) -> Schema:
    """Return the schema with the dictionary values of legacy tables, which are stored only in manifests."""
    known = {node.id: node.dictionary_values for node in base.schema.walk() if node.dictionary_values is not None}
    if not known:
        return schema

    def filled(node: Field) -> Field:
        values = known.get(node.id) if node.dictionary_values is None else node.dictionary_values
        return replace(node, dictionary_values=values, children=tuple(filled(child) for child in node.children))

    return replace(schema, fields=tuple(filled(top) for top in schema.fields))


def _mark(base: Manifest, schema: Schema) -> int | None:
    """Return the highest field id ever allocated, after a change of the schema."""
    if base.max_allocated_field_id is None:
        return None
    return max(base.max_allocated_field_id, schema.max_field_id)


def replace_data(base: Manifest, operation: DataReplacement) -> Manifest:
    """Apply a DataReplacement: set new files for some columns of some fragments."""
    fields = _common_fields(base, operation)
    updated: dict[int, Fragment] = {}
    for fragment_id, file in operation.replacements:
        current = base.fragment(fragment_id)
        if current is None:
            raise InvalidInputError(f"fragment {fragment_id} is not part of version {base.version}")
        if fragment_id in updated:
            raise InvalidInputError(
                f"the data of fragment {fragment_id} is replaced twice; give one file with all fields"
            )
        files = with_replaced_columns(current.files, file, in_place=True)
        if files == current.files:
            raise InvalidInputError(
                f"Expected to modify the fragment but no changes were made: fragment {fragment_id} has the file "
                f"{file.path!r} already"
            )
        fragment = replace(current, files=files)
        updated[fragment_id] = stamped(fragment, base.version + 1) if base.uses_stable_row_ids else fragment
    check_file_versions(base.storage_version, base.fragment_list, updated.values())
    return replace(
        base,
        fragments=edited(base.fragments, updated=updated),
        index_section=without_fragments(base, fields, updated.keys()),
    )


def _common_fields(base: Manifest, operation: DataReplacement) -> set[int]:
    """Return the field ids of the new files, which must be the same for all of them."""
    kinds = {file.fields for _, file in operation.replacements}
    if len(kinds) > 1:
        raise InvalidInputError(f"All new data files must have the same fields, but found different fields: {kinds}")
    fields = {field_id for field_ids in kinds for field_id in field_ids if field_id >= 0}
    unknown = sorted(fields - {node.id for node in base.schema.walk()})
    if unknown:
        raise InvalidInputError(
            f"the new files contain the fields {unknown}, which version {base.version} does not have"
        )
    return fields


def with_replaced_columns(
    files: tuple[DataFile, ...], new: DataFile, *, in_place: bool = False
) -> tuple[DataFile, ...]:
    """Return the data files of a fragment with a new file after those it takes columns from.

    Parameters
    ----------
    files
        The current files. Their fields that the new file has become tombstones. A file with nothing but tombstones is
        dropped.
    new
        The new file.
    in_place
        True if the new file takes the position of a file with exactly the same fields.

    Raises
    ------
    UnsupportedError
        A legacy (0.1) file would lose its first field. Readers number its other fields from that one.
    """
    for position, file in enumerate(files):
        if in_place and (file.fields, file.storage_version) == (new.fields, new.storage_version):
            return (*files[:position], new, *files[position + 1 :])
    taken = {field_id: _TOMBSTONE for field_id in new.fields if field_id >= 0}
    kept = [replace(file, fields=_renamed(file.fields, taken)) for file in files]
    for file, before in zip(kept, files, strict=True):
        live = {field_id for field_id in file.fields if field_id >= 0}
        if file.is_legacy and live and min(field_id for field_id in before.fields if field_id >= 0) not in live:
            raise UnsupportedError(
                f"data file {file.path!r} is of version 0.1: its first column cannot be replaced without the others; "
                "write all of its columns again"
            )
    return (*(file for file in kept if any(field_id != _TOMBSTONE for field_id in file.fields)), new)


def _renamed(fields: tuple[int, ...], names: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(names.get(field_id, field_id) for field_id in fields)
