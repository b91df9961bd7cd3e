"""Changes of the name, type or nullability of columns, all in one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.changes.columns.casts import can_cast, cast_values, with_items
from lance_dataset.changes.fragments.column_files import (
    commit_column_files,
    next_field_id,
    write_column_file,
    write_column_files,
)
from lance_dataset.changes.fragments.fragment_rows import batch_rows, live_batches, with_deleted_rows
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, SchemaError, UnsupportedError
from lance_dataset.file.families import family_of
from lance_dataset.file.options import is_blob, is_blob_v2, is_packed
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import OutputColumn, Projection
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.settings import AlterColumn
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.scan import scan_batches
from lance_dataset.table.apply.columns import with_replaced_columns
from lance_dataset.table.apply.keys import check_keys
from lance_dataset.table.field_paths import find_path
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import LEGACY_VERSION, DataFile, Fragment
from lance_dataset.table.indices.coverage import MEMORY_INDEX, parse_indices
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Merge, Project
from lance_dataset.threads.progress import Progress
from lance_dataset.types.schema import Field, Schema, numbered, unnumbered

__all__ = ["alter_columns"]

#: Number of rows in a batch that is searched for nulls.
_CHECK_ROWS = 1 << 16
#: File versions that keep all fields of a struct or list in one file.
_WHOLE_COLUMNS = (LEGACY_VERSION, "2.0")


@dataclass(frozen=True)
class _Alteration:
    """All changes of one field."""

    path: str
    field: Field
    above: tuple[Field, ...]
    name: str | None
    nullable: bool | None
    data_type: pa.DataType | None

    @property
    def tightens(self) -> bool:
        """True if the column must be searched for null values."""
        return self.nullable is False and self.field.nullable


def alter_columns(
    snapshot: Snapshot, alterations: Sequence[Mapping[str, Any]], progress: Progress | None = None
) -> Snapshot:
    """Change names, types or nullability of columns in one commit; see `LanceDataset.alter_columns`."""
    return repeated_on_conflict(snapshot, lambda latest: _altered_columns(latest, alterations, progress))


def _altered_columns(
    snapshot: Snapshot, alterations: Sequence[Mapping[str, Any]], progress: Progress | None
) -> Snapshot:
    manifest = snapshot.manifest
    check_writable(manifest.writer_flags, manifest.path)
    found = _read(manifest.schema, alterations)
    casts = {each.field.id: each for each in found if each.data_type is not None}
    tightened = [each for each in found if each.tightens]
    _check_shards(manifest, found)
    if casts and tightened:
        raise InvalidInputError(
            f"column {tightened[0].path!r} cannot be made non-nullable in the call that casts columns: apply the cast "
            "first, then the nullability change"
        )
    for each in casts.values():
        _check_cast(manifest, each)
    schema = _altered_schema(manifest, found, casts)
    _check_names(schema.fields, "")
    check_keys(schema)
    family_of(manifest.storage_version).check_schema(schema, manifest.storage_version)
    for each in tightened:
        _check_no_nulls(snapshot, each)
    preserves = _preserves_nullability(manifest.schema, schema)
    if not casts:
        return commit_column_files(snapshot, Project(schema, preserves, moves_names=True), ())
    fragments, files = _cast_fragments(snapshot, schema, progress)
    operation = Merge(tuple(fragments), schema, preserves, moves_names=True)
    return commit_column_files(snapshot, operation, files)


# -- reading the request -----------------------------------------------------------------------------------------


def _read(schema: Schema, alterations: Sequence[Mapping[str, Any]]) -> list[_Alteration]:
    """Return one alteration per field; later alterations of a field are merged into the earlier ones."""
    found: dict[int, _Alteration] = {}
    for given in alterations:
        each = _one(schema, given)
        before = found.get(each.field.id)
        if before is not None:
            if before.data_type is not None and each.data_type is not None:
                raise InvalidInputError(f"column {each.path!r} is cast twice in one call")
            each = replace(
                each,
                name=before.name if each.name is None else each.name,
                nullable=before.nullable if each.nullable is None else each.nullable,
                data_type=before.data_type if each.data_type is None else each.data_type,
            )
        found[each.field.id] = each
    return list(found.values())


def _one(schema: Schema, given: Mapping[str, Any]) -> _Alteration:
    if not isinstance(given, Mapping):
        raise TypeError(
            f"an alteration must be a dict of path, name, nullable and data_type, not {type(given).__name__}"
        )
    if "path" not in given:
        raise InvalidInputError("path is required: each alteration must name its column")
    unknown = [key for key in given if key not in AlterColumn.__annotations__]
    if unknown:
        raise InvalidInputError(f"Unknown key: {unknown[0]}. Valid keys are name, nullable, and data_type.")
    if len(given) == 1:
        raise InvalidInputError("At least one of name, nullable, or data_type must be specified")
    path, name, nullable, data_type = (given.get(key) for key in AlterColumn.__annotations__)
    if isinstance(data_type, pa.Field):
        data_type = data_type.type
    for key, value, kind in (("name", name, str), ("nullable", nullable, bool), ("data_type", data_type, pa.DataType)):
        if key in given and not isinstance(value, kind):
            raise TypeError(f"{key} of an alteration must be a {kind.__name__}, not {type(value).__name__}")
    *above, field = _find(schema, path)
    return _Alteration(str(path), field, tuple(above), name, nullable, data_type)


def _check_shards(manifest: Manifest, found: Sequence[_Alteration]) -> None:
    """Raise InvalidInputError if rows may be in shards to which a change would do harm."""
    if all(index.name != MEMORY_INDEX for index in parse_indices(manifest.index_section)):
        return
    for each in found:
        if each.data_type is not None:
            raise InvalidInputError(
                "cannot change a column's type on a table with a MemWAL attached: rows of its shards could not be read "
                f"with the new column {each.path!r}; add a column of the new type, and update it when the shards are "
                "merged"
            )
        if each.tightens:
            raise InvalidInputError(
                "cannot make a column non-nullable on a table with a MemWAL attached: rows of its shards may have no "
                f"value in the column {each.path!r}"
            )
        if each.name is not None and each.field.primary_key:
            raise InvalidInputError(
                "cannot rename a primary key column on a table with a MemWAL attached: open writers know the column "
                f"{each.path!r} by its old name"
            )


def _find(schema: Schema, path: Any) -> tuple[Field, ...]:
    try:
        return find_path(schema, path)
    except FieldNotFoundError as error:
        raise FieldNotFoundError(f"Column {path!r} does not exist in the dataset: {error}") from error


def _check_cast(manifest: Manifest, each: _Alteration) -> None:
    """Raise an error for a cast between unrelated types, or of a blob column or an indexed column."""
    wanted, field = each.data_type, each.field
    assert wanted is not None
    if isinstance(wanted, pa.BaseExtensionType):
        raise UnsupportedError(
            f"Cannot cast column {each.path!r} to the extension type {wanted}: give its storage type "
            f"{wanted.storage_type}, or add a column of that type with add_columns and a reader"
        )
    if any(is_blob(node) or is_blob_v2(node) for node in field.walk()):
        raise UnsupportedError(f"Cannot cast column {each.path!r}: this release does not cast blob columns")
    if not can_cast(field.storage_type, wanted):
        raise InvalidInputError(
            f"Cannot cast column {each.path!r} from {field.storage_type} to {wanted}: a type can only change within "
            "its family (integers, floats, decimals, strings, binaries, dates and times; lists by their items); add a "
            "column with an expression instead"
        )
    touched = {node.id for node in (*each.above, *field.walk())}
    if manifest.storage_version == LEGACY_VERSION:  # the whole column gets other ids
        touched |= {node.id for node in (*each.above, field)[0].walk()}
    names = sorted({index.name for index in parse_indices(manifest.index_section) if touched & set(index.fields)})
    if names:
        raise InvalidInputError(
            f"Cannot cast column {each.path!r}: it has the indices {names}, which would not match the new values; drop "
            "them with drop_index() first, and create them again afterwards"
        )


# -- schemas -----------------------------------------------------------------------------------------------------


def _altered_schema(manifest: Manifest, found: Sequence[_Alteration], casts: Mapping[int, _Alteration]) -> Schema:
    """Return the schema after all alterations. Cast fields get new ids and lose their metadata, as in the reference."""
    changes = {each.field.id: each for each in found}
    numbers = count(next_field_id(manifest))

    def altered(field: Field) -> Field:
        each = changes.get(field.id)
        if each is None:
            return replace(field, children=tuple(altered(child) for child in field.children))
        name = field.name if each.name is None else each.name
        nullable = field.nullable if each.nullable is None else each.nullable
        if field.id not in casts:
            children = tuple(altered(child) for child in field.children)
            return replace(field, name=name, nullable=nullable, children=children)
        if any(node.id in changes for child in field.children for node in child.walk()):
            raise InvalidInputError(
                f"column {each.path!r} is cast and a field below it is altered: make these changes in two calls"
            )
        cast = Schema.from_arrow(pa.schema([pa.field("cast", each.data_type, nullable)])).fields[0]
        return replace(numbered(unnumbered(cast), numbers), name=name)

    fields = []
    for top in manifest.schema.fields:
        each = altered(top)
        if manifest.storage_version == LEGACY_VERSION and any(node.id in casts for node in top.walk()):
            # Columns of legacy files cannot be replaced in part, so all of their fields get new ids.
            each = numbered(unnumbered(each), numbers)
        fields.append(each)
    return Schema(tuple(fields), manifest.schema.metadata)


def _check_names(fields: Sequence[Field], above: str) -> None:
    """Raise SchemaError for duplicate names, dots in top-level names, and maps with nullable keys."""
    seen: set[str] = set()
    for field in fields:
        if not above and "." in field.name:
            raise SchemaError(f"Top level field {field.name} cannot contain `.`. Maybe you meant a field of a struct?")
        if field.name in seen:
            raise SchemaError(
                f"Duplicate field name {field.name!r}{f' in {above!r}' if above else ''}: names must be unique"
            )
        seen.add(field.name)
        if field.logical_type == "map" and (field.children[0].nullable or field.children[0].children[0].nullable):
            raise SchemaError(f"column {field.name!r}: the entries and keys of a map must not be nullable")
        _check_names(field.children, f"{above}.{field.name}" if above else field.name)


def _preserves_nullability(old: Schema, new: Schema) -> bool:
    """Return True if all non-nullable fields of the new schema are non-nullable in the old one."""
    required = {node.id for node in old.walk() if not node.nullable}
    return all(node.nullable or node.id in required for node in new.walk())


# -- nulls -------------------------------------------------------------------------------------------------------


def _check_no_nulls(snapshot: Snapshot, each: _Alteration) -> None:
    """Raise InvalidInputError if a column that becomes required has null values in live rows.

    A value inside a null struct counts as null.
    """
    fields = (*each.above, each.field)
    node = each.field
    for parent in reversed(each.above):
        node = replace(parent, children=(node,)) if parent.logical_type != "map" else parent
    request = ScanRequest(snapshot.scanned_schema, _projection((node,)), batch_size=_CHECK_ROWS, use_statistics=False)
    for batch in scan_batches(snapshot.reader, request):
        if _holds_null(batch.column(0), fields[0], fields[1:]):
            raise InvalidInputError(f"Column {each.path!r} contains NULL values and cannot be made non-nullable")


def _projection(fields: Sequence[Field]) -> Projection:
    """Make a projection of top-level fields, which may be pruned."""
    columns = tuple(OutputColumn(field.to_arrow(), field) for field in fields)
    return Projection(columns, pa.schema([column.arrow for column in columns]))


def _holds_null(values: pa.Array, field: Field, below: Sequence[Field]) -> bool:
    """Return True if the last field of a path has null values. Missing list items and map entries do not count."""
    for child in below:
        if pa.types.is_struct(values.type):
            values = pc.struct_field(values, child.name)  # null where the struct is
        elif pa.types.is_map(values.type):
            values = pa.StructArray.from_arrays([values.keys, values.items], names=["key", "value"])
            return _entries_hold_null(values, field.children[0], below[1:])
        else:
            values = values.flatten()
        field = child
    return bool(values.null_count)


def _entries_hold_null(entries: pa.StructArray, field: Field, below: Sequence[Field]) -> bool:
    if not below:
        return False
    number = [child.id for child in field.children].index(below[0].id)
    return _holds_null(entries.field(number), below[0], below[1:])


# -- casts -------------------------------------------------------------------------------------------------------


def _cast_fragments(
    snapshot: Snapshot, schema: Schema, progress: Progress | None
) -> tuple[list[Fragment], list[DataFile]]:
    """Write the cast columns; return all fragments and the new files. Fragments without live rows get no file."""
    manifest = snapshot.manifest
    known = {node.id for node in manifest.schema.walk()}
    pairs = [
        (before, after)
        for before, after in zip(manifest.schema.fields, schema.fields, strict=True)
        if any(node.id not in known for node in after.walk())
    ]
    whole = _keeps_columns_whole(manifest)
    pruned = [pair if whole else _pruned(*pair, known) for pair in pairs]
    # Deleted rows get other values, and their lists other lengths, so all fields of a list must be written together.
    uncut = [pair if whole else _pruned(*pair, known, cuts_lists=False) for pair in pairs]
    live = {node.id for node in schema.walk()}
    readers = [fragment for fragment in snapshot.reader.fragments if fragment.num_rows]

    def write(fragment: FragmentReader) -> DataFile:
        return _cast_file(snapshot, fragment, uncut if len(fragment.deletions) else pruned)

    if progress is None:
        files = write_column_files(snapshot, readers, write)
    else:
        progress.expect(len(readers))
        files = write_column_files(snapshot, readers, write, progress.advance)
    changed = {}
    for fragment, file in zip(readers, files, strict=True):
        used = tuple(each for each in with_replaced_columns(fragment.fragment.files, file) if _is_used(each, live))
        changed[fragment.fragment.id] = replace(fragment.fragment, files=used, physical_rows=fragment.physical_rows)
    return [changed.get(fragment.id, fragment) for fragment in manifest.fragments], files


def _is_used(file: DataFile, live: set[int]) -> bool:
    """Return True if a file holds a field of the schema, or hidden columns."""
    return any(field_id in live or field_id < -2 for field_id in file.fields)


def _keeps_columns_whole(manifest: Manifest) -> bool:
    """Return True if all fields of a column must be in one file: in early versions, and in mixed ones."""
    versions = manifest.fragment_list.columns.storage_versions | {manifest.storage_version}
    return manifest.storage_version in _WHOLE_COLUMNS or len(versions) > 1


def _pruned(old: Field, new: Field, known: set[int], *, cuts_lists: bool = True) -> tuple[Field, Field]:
    """Prune a column, before and after the cast, to its cast fields as far as these can be stored alone."""
    if old.logical_type == "map" or is_packed(old) or new.id not in known:
        return old, new
    kind = old.logical_type.removesuffix(".struct")
    if kind == "large_list" or (kind == "list" and not cuts_lists):  # the reference never joins parts of large lists
        return old, new
    pairs = [
        _pruned(before, after, known, cuts_lists=cuts_lists)
        for before, after in zip(old.children, new.children, strict=True)
        if any(node.id not in known for node in after.walk())
    ]
    return (
        replace(old, children=tuple(before for before, _ in pairs)),
        replace(new, children=tuple(after for _, after in pairs)),
    )


def _cast_file(snapshot: Snapshot, fragment: FragmentReader, pairs: Sequence[tuple[Field, Field]]) -> DataFile:
    """Write the file of a fragment with the cast columns."""
    schema = Schema(tuple(new for _, new in pairs))
    stored = Schema(tuple(old for old, _ in pairs))

    def cast_batches() -> Iterator[pa.RecordBatch]:
        size = batch_rows(fragment, stored)
        for batch in live_batches(snapshot, fragment, _projection(stored.fields), size):
            columns = [_altered(column, *pair) for column, pair in zip(batch.columns, pairs, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema.storage_arrow)

    return write_column_file(snapshot, fragment, schema, with_deleted_rows(fragment, schema, cast_batches()))


def _altered(values: pa.Array, old: Field, new: Field, path: str = "") -> pa.Array:
    """Convert values of a field to its new type: cast them, or cast or rename fields below it."""
    wanted = new.storage_type
    path = f"{path}.{old.name}" if path else old.name
    if values.type == wanted:
        return values
    if not (old.children and old.logical_type == new.logical_type):
        return cast_values(values, wanted, path)
    if pa.types.is_struct(wanted):
        children = [
            _altered(child, *pair, path)
            for child, pair in zip(values.flatten(), zip(old.children, new.children, strict=True), strict=True)
        ]
        mask = pc.is_null(values) if values.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
    if pa.types.is_map(wanted):
        return _altered_map(values, old.children[0], new.children[0], wanted, path)
    return with_items(values, wanted, partial(_altered, old=old.children[0], new=new.children[0], path=path))


def _altered_map(values: pa.MapArray, old: Field, new: Field, wanted: pa.MapType, path: str) -> pa.Array:
    offsets = values.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    parts = [
        _altered(part.slice(first, last - first), *pair, path)
        for part, pair in zip((values.keys, values.items), zip(old.children, new.children, strict=True), strict=True)
    ]
    moved = pc.subtract(offsets, offsets[0])
    mask = pc.is_null(values) if values.null_count else None
    return pa.MapArray.from_arrays(moved, *parts, type=wanted, mask=mask)
