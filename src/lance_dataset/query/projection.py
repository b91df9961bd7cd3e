"""What a scan returns: which columns, computed how, under which names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, nearest_name_hint
from lance_dataset.file.blob_fields import undescribed
from lance_dataset.file.extensions import with_extensions
from lance_dataset.query.expr import BoundExpression, compile_expression
from lance_dataset.query.expr.nullability import may_be_null
from lance_dataset.query.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.schema import EXTENSION_NAME, Field, Schema
from lance_dataset.types import user_schema

__all__ = [
    "OutputColumn",
    "Projection",
    "full_schema",
    "located_projection",
    "project",
    "project_structs",
    "scalar_path",
    "with_blob_values",
    "with_system_columns",
]

#: Besides `_rowaddr` itself, which the user may have asked for.
_ADDRESS = "_rowaddr of the row"

Columns: TypeAlias = "Sequence[str] | Mapping[str, str] | None"


@dataclass(frozen=True)
class OutputColumn:
    """One column of the output.

    Attributes
    ----------
    arrow
        Name and storage type in the output.
    field
        The stored top-level field it comes from (pruned to what is needed), if any.
    path
        Names below `field` down to the value; empty for the field itself.
    system
        Name of the system column it is, if any.
    expression
        What computes it, if it is computed.
    """

    arrow: pa.Field
    field: Field | None = None
    path: tuple[str, ...] = ()
    system: str | None = None
    expression: BoundExpression | None = None

    @property
    def leaf(self) -> Field | None:
        """The stored field at the end of `path`, if any."""
        found = self.field
        for name in self.path:
            found = None if found is None else found.child(name)
        return found

    @property
    def below(self) -> Iterator[Field]:
        """That field and all below it."""
        return iter(()) if self.leaf is None else self.leaf.walk()


@dataclass(frozen=True)
class Projection:
    """The output columns of a scan, in order.

    Attributes
    ----------
    columns
        The columns.
    schema
        Arrow schema over storage types.
    """

    columns: tuple[OutputColumn, ...]
    schema: pa.Schema

    @cached_property
    def has_extensions(self) -> bool:
        """Whether an output field carries an Arrow extension type."""
        return any(_has_extension(field) for field in self.schema)

    def for_user(self, data: pa.RecordBatch) -> pa.Table:
        """Output as users see it."""
        table = pa.Table.from_batches([data])
        return with_extensions(table, self.user_schema) if self.has_extensions else table

    @cached_property
    def user_schema(self) -> pa.Schema:
        """The schema as users see it, registered extension types resolved."""
        return user_schema(self.schema) if self.has_extensions else self.schema


def _has_extension(field: pa.Field) -> bool:
    if field.metadata and EXTENSION_NAME.encode() in field.metadata:
        return True
    return any(_has_extension(field.type.field(i)) for i in range(field.type.num_fields))


def full_schema(schema: Schema) -> pa.Schema:
    """What expressions may name: the columns of the dataset (as storage types) and the system columns."""
    return pa.schema([*schema.storage_arrow, *SYSTEM_COLUMNS.values()])


def project(
    schema: Schema, columns: Columns, *, with_row_id: bool = False, with_row_address: bool = False
) -> Projection:
    """Resolve what a user asked for.

    Parameters
    ----------
    schema
        Schema of the dataset.
    columns
        Names (nested ones dotted, system columns included), or output name -> SQL expression; None for all.
    with_row_id, with_row_address
        Append `_rowid` and `_rowaddr` unless they are there.

    Raises
    ------
    FieldNotFoundError
        Unknown column.
    InvalidInputError
        A name twice, or something that is no name.
    """
    if columns is None:
        outputs = [OutputColumn(field.to_arrow(), field) for field in schema.fields]
    elif isinstance(columns, Mapping):
        outputs = [_computed(schema, name, text) for name, text in columns.items()]
    else:
        outputs = [_named(schema, name) for name in _checked_names(columns)]
    for name, wanted in (("_rowid", with_row_id), ("_rowaddr", with_row_address)):
        if wanted:
            outputs = [output for output in outputs if output.arrow.name != name]
            outputs.append(OutputColumn(SYSTEM_COLUMNS[name], system=name))
    return _projection(schema, outputs)


def project_structs(schema: Schema, columns: Columns) -> Projection:
    """As `project`, but dotted names keep the structs around them; those with one struct in common share it."""
    plain = project(schema, columns)
    if not any(output.path for output in plain.columns):
        return plain
    assert columns is not None
    stored = [name for name, output in zip(columns, plain.columns, strict=True) if output.field is not None]
    pruned = schema.project(sorted(stored, key=lambda name: [node.id for node in schema.resolve(name)]))
    outputs: dict[str, OutputColumn] = {}
    for output in plain.columns:
        if output.field is not None:
            field = pruned.top_level(output.field.name)
            output = OutputColumn(field.to_arrow(), field)
        outputs[output.arrow.name] = output
    return _projection(schema, list(outputs.values()))


def with_blob_values(projection: Projection) -> Projection:
    """The projection with every blob that is an output as its values instead of as descriptions."""
    outputs = tuple(_with_values(output) for output in projection.columns)
    return Projection(outputs, pa.schema([output.arrow for output in outputs], metadata=projection.schema.metadata))


def located_projection(projection: Projection) -> Projection:
    """The projection with the row address as one more column at the end."""
    address = OutputColumn(SYSTEM_COLUMNS["_rowaddr"].with_name(_ADDRESS), system="_rowaddr")
    return Projection((*projection.columns, address), projection.schema.append(address.arrow))


def with_system_columns(projection: Projection, names: Sequence[str]) -> Projection:
    """The projection with some system columns at the end."""
    outputs = (*projection.columns, *(OutputColumn(SYSTEM_COLUMNS[name], system=name) for name in names))
    return Projection(outputs, pa.schema([output.arrow for output in outputs], metadata=projection.schema.metadata))


def _with_values(output: OutputColumn) -> OutputColumn:
    leaf = output.leaf
    if leaf is None or undescribed(leaf) is leaf:
        return output
    assert output.field is not None
    arrow = undescribed(leaf).to_arrow().with_name(output.arrow.name)
    return replace(output, arrow=arrow, field=undescribed(output.field))


def _projection(schema: Schema, outputs: Sequence[OutputColumn]) -> Projection:
    metadata = dict(schema.metadata) or None
    return Projection(tuple(outputs), pa.schema([output.arrow for output in outputs], metadata=metadata))


def _checked_names(columns: Sequence[str]) -> list[str]:
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise TypeError(f"columns must be a list of names or a mapping of names to expressions, not {columns!r}")
    names = list(columns)
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"columns holds {name!r}, which is no name")
        if name in names[:position]:
            raise InvalidInputError(f"Duplicate column name: {name}")
    return names


def scalar_path(schema: Schema, name: str, purpose: str = "", others: Iterable[str] = ()) -> tuple[Field, ...]:
    """The field of a dotted name that has one value per row, and those around it, outermost first.

    Parameters
    ----------
    schema
        Schema of the table.
    name
        The name; back-ticks around its parts do not count.
    purpose
        What the field is for, as messages say it.
    others
        Names besides those of the schema that messages may suggest.

    Raises
    ------
    FieldNotFoundError
        There is no such field, or it is inside a list.
    """
    missing = f"No field named {name} {purpose}".rstrip()
    try:
        path = schema.resolve(name.replace("`", ""))
    except FieldNotFoundError as error:
        raise FieldNotFoundError(f"{missing}{nearest_name_hint(name, [*schema.names, *others])}") from error
    if any(node.logical_type != "struct" for node in path[:-1]):
        raise FieldNotFoundError(f"{missing}: a field inside a list has several values per row")
    return path


def _named(schema: Schema, name: str) -> OutputColumn:
    if name in SYSTEM_COLUMNS:
        return OutputColumn(SYSTEM_COLUMNS[name], system=name)
    path = scalar_path(schema, name, others=SYSTEM_COLUMNS)
    if len(path) == 1:
        return OutputColumn(path[0].to_arrow(), path[0])
    pruned = schema.project([name]).fields[0]
    arrow = path[-1].to_arrow().with_name(name)
    return OutputColumn(arrow, pruned, tuple(node.name for node in path[1:]))


def _computed(schema: Schema, name: str, text: str) -> OutputColumn:
    if not isinstance(name, str) or not isinstance(text, str):
        raise InvalidInputError(f"columns maps names to SQL expressions, not {name!r} to {text!r}")
    if text in schema.names:
        field = schema.top_level(text)
        return OutputColumn(field.to_arrow().with_name(name), field)
    known = full_schema(schema)
    expression = compile_expression(text, known)
    nullable = expression.tree is None or may_be_null(expression.tree, known)
    return OutputColumn(pa.field(name, expression.type, nullable), expression=expression)
