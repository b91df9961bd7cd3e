"""Columns of a merge's source compared with the table, and updated rows that combine the values of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.changes.merge.clauses import MergeClauses, WhenMatched, WriteMode, named_alike
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, SchemaError
from lance_dataset.file.options import is_blob, is_blob_v2
from lance_dataset.file.storage import storage_batch
from lance_dataset.properties import cached_property
from lance_dataset.read.empty_batches import empty_batch
from lance_dataset.table.append_schema import check_append_schema
from lance_dataset.types.schema import Field, Schema

__all__ = ["MergeColumns", "empty_source"]


@dataclass(frozen=True)
class MergeColumns:
    """Relation between the columns of a source and those of a table.

    Attributes
    ----------
    table
        Schema of the table.
    keys
        Key columns as the table spells them.
    source_keys
        Key columns as the source spells them.
    given
        Columns of the table that the source has; structs have only those fields that the source has. None if values of
        the source are not written, so its other columns do not matter.
    """

    table: Schema
    keys: tuple[str, ...]
    source_keys: tuple[str, ...]
    given: Schema | None

    @classmethod
    def of(cls, table: Schema, source: pa.Schema, clauses: MergeClauses) -> MergeColumns:
        """Compare the schemas of a table and of a source.

        Raises
        ------
        SchemaError
            The source has columns that the table lacks, or columns of other types.
        FieldNotFoundError
            The source lacks a key column.
        InvalidInputError
            The source lacks columns that inserted rows need.
        """
        source_keys = tuple(_source_key(source, name) for name in clauses.on)
        if not clauses.writes_source:
            return cls(table, clauses.on, source_keys, None)
        given = _given(table, source)
        check_append_schema(source, given)
        # Fields inside lists cannot come from the table, because the items of the two lists cannot be paired.
        storage_batch(empty_batch(source), given, fill_missing=clauses.matched is not WhenMatched.UPDATE)
        columns = cls(table, clauses.on, source_keys, given)
        missing = list(_required(table.fields, given.fields, ""))
        if clauses.inserts and missing:
            raise InvalidInputError(
                f"Cannot insert rows with a partial-schema source: target column(s) {missing} are non-nullable and not "
                "provided by the source. Either add them to the source or leave out when_not_matched_insert_all"
            )
        return columns

    @cached_property
    def kept(self) -> Schema | None:
        """Schema of the collected source: like `given`, but everything is nullable until it is written."""
        if self.given is None:
            return None
        return Schema(tuple(replace(field, nullable=True) for field in self.given.fields), self.given.metadata)

    def collected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of a source batch that the merge needs, in storage types."""
        if self.kept is None:
            return batch.select(list(self.source_keys))
        # Use exactly this schema; that of the batch may differ in nullability and metadata.
        return pa.RecordBatch.from_arrays(storage_batch(batch, self.kept).columns, schema=self._kept_arrow)

    def collected_schema(self, source: pa.Schema) -> pa.Schema:
        """Return the Arrow schema of collected batches."""
        return pa.schema([source.field(name) for name in self.source_keys]) if self.kept is None else self._kept_arrow

    @property
    def _kept_arrow(self) -> pa.Schema:
        assert self.kept is not None
        return self.kept.storage_arrow

    @cached_property
    def target_columns(self) -> tuple[str, ...]:
        """Columns of the table that the source lacks completely or in part. Updated rows keep them."""
        assert self.given is not None
        known = {field.name: field for field in self.given.fields}
        return tuple(field.name for field in self.table.fields if not _is_whole(known.get(field.name), field))

    @cached_property
    def changed(self) -> Schema:
        """Columns of the table that the source has completely or in part, without the keys, which do not change."""
        assert self.given is not None
        names = {field.name for field in self.given.fields} - set(self.keys)
        return Schema(tuple(field for field in self.table.fields if field.name in names), self.table.metadata)

    @property
    def changes_blobs(self) -> bool:
        """True if the source has values of blob columns."""
        return any(is_blob(node) or is_blob_v2(node) for node in self.changed.walk())

    def updated(self, source: pa.RecordBatch, target: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
        """Combine rows of the source with the values of the table that the source lacks.

        Parameters
        ----------
        source
            Rows of the collected source.
        target
            The matching rows of the table with those `target_columns` that `schema` has, blobs as their values.
        schema
            Columns of the result.
        """
        assert self.given is not None
        given = {field.name: field for field in self.given.fields}
        mine, kept = (dict(zip(batch.schema.names, batch.columns, strict=True)) for batch in (source, target))
        names = [field.name for field in schema.fields]
        fields = zip(names, schema.fields, strict=True)
        arrays = [_combined(mine.get(name), kept.get(name), given.get(name), field) for name, field in fields]
        return pa.RecordBatch.from_arrays(arrays, names=names)


def empty_source(table: Schema, source: pa.Schema, clauses: MergeClauses) -> pa.Schema:
    """Return the schema to assume for a source without rows, because an empty DataFrame does not have useful types.

    It has all columns of the table. If the merge must rewrite columns in place, it has only the columns that the source
    names or that the merge needs.
    """
    if clauses.write_mode is not WriteMode.COLUMNS:
        return table.arrow
    needed = {*clauses.on, *(field.name for field in table.fields if not field.nullable)}
    return pa.schema([field for field in table.arrow if field.name in needed or field.name in source.names])


def _source_key(source: pa.Schema, name: str) -> str:
    found = named_alike(source.names, name)
    if found is None:
        raise FieldNotFoundError(f"Schema error: No field named {name}; the source lacks this key column")
    if source.names.count(found) > 1:
        raise SchemaError(f"Duplicate field name {found!r} in the source; names must be unique")
    return found


def _given(table: Schema, source: pa.Schema) -> Schema:
    """Return the columns and fields of the table that the source has."""
    for name, count in Counter(source.names).items():
        if count > 1:
            raise SchemaError(f"Duplicate field name {name!r} in the source; names must be unique")
    return Schema(tuple(_pruned(table.fields, Schema.from_arrow(source).fields)), table.metadata)


def _pruned(fields: tuple[Field, ...], source: tuple[Field, ...]) -> Iterator[Field]:
    known = {field.name: field for field in source}
    for field in fields:
        mine = known.get(field.name)
        if mine is None:
            continue
        if field.logical_type == mine.logical_type == "struct" and field.children:
            children = tuple(_pruned(field.children, mine.children))
            # Compare by identity: an equal field would lose the Arrow type that is kept with it.
            if children and [id(child) for child in children] != [id(child) for child in field.children]:
                field = replace(field, children=children)
        yield field


def _required(fields: tuple[Field, ...], given: tuple[Field, ...], prefix: str) -> Iterator[str]:
    """Yield the paths of non-nullable fields that the source lacks."""
    known = {field.name: field for field in given}
    for field in fields:
        mine = known.get(field.name)
        if mine is None:
            if not field.nullable:
                yield prefix + field.name
        elif mine is not field and field.logical_type == "struct":
            yield from _required(field.children, mine.children, f"{prefix}{field.name}.")


def _is_whole(given: Field | None, field: Field) -> bool:
    if given is None or given is field:
        return given is not None
    return len(list(given.walk())) == len(list(field.walk()))


# -- rows --------------------------------------------------------------------------------------------------------


def _combined(source: pa.Array | None, target: pa.Array | None, given: Field | None, field: Field) -> pa.Array:
    """Combine the values of a column of updated rows."""
    if source is None or given is None:
        assert target is not None
        return target
    if target is None or _is_whole(given, field):
        return source
    mine, kept = _children(source), _children(target)
    known = {child.name: child for child in given.children}
    parts = [
        _combined(mine.get(child.name), kept.get(child.name), known.get(child.name), child) for child in field.children
    ]
    # A struct is null only if it is null on both sides, because each side has some of its fields.
    missing = pc.and_(source.is_null(), target.is_null())
    fields = list(field.storage_type)
    return pa.StructArray.from_arrays(parts, fields=fields, mask=missing)


def _children(struct: pa.StructArray) -> dict[str, pa.Array]:
    """Return the fields of a struct array by name; they are null where the struct is null."""
    names = [struct.type.field(position).name for position in range(struct.type.num_fields)]
    return dict(zip(names, struct.flatten(), strict=True))
