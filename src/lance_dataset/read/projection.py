"""Projection of a scan: its output columns, their names and the expressions that compute them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, nearest_name_hint
from lance_dataset.file.blob_fields import as_values, is_described, undescribed
from lance_dataset.file.extensions import with_extensions
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.types.logical import user_schema
from lance_dataset.types.schema import EXTENSION_NAME, Field, Schema

if TYPE_CHECKING:
    from lance_dataset.expr.compiled import BoundExpression

__all__ = [
    "OutputColumn",
    "Projection",
    "full_schema",
    "located_projection",
    "project",
    "project_structs",
    "scalar_path",
    "with_blob_values",
    "with_stored_blobs",
    "with_system_columns",
]

#: Name of an additional address column; the user may have requested `_rowaddr` itself.
_ADDRESS = "_rowaddr of the row"

Columns: TypeAlias = "Sequence[str] | Mapping[str, str] | None"


@dataclass(frozen=True)
class OutputColumn:
    """Column of the output.

    Attributes
    ----------
    arrow
        Name and storage type in the output.
    field
        Stored top-level field that is the source of the column, pruned to the required children; None if the column is
        not stored.
    path
        Names below `field` down to the value; empty for the field itself.
    system
        Name of the system column, if it is one.
    expression
        Expression that computes the column, if it is computed.
    """

    arrow: pa.Field
    field: Field | None = None
    path: tuple[str, ...] = ()
    system: str | None = None
    expression: BoundExpression | None = None

    @property
    def leaf(self) -> Field | None:
        """Stored field at the end of `path`, if any."""
        found = self.field
        for name in self.path:
            found = None if found is None else found.child(name)
        return found

    @property
    def below(self) -> Iterator[Field]:
        """The field at the end of `path` and all its descendants."""
        return iter(()) if self.leaf is None else self.leaf.walk()


@dataclass(frozen=True)
class Projection:
    """Output columns of a scan, in order.

    Attributes
    ----------
    columns
        The columns.
    schema
        Arrow schema with storage types.
    """

    columns: tuple[OutputColumn, ...]
    schema: pa.Schema

    @cached_property
    def has_extensions(self) -> bool:
        """True if an output field has an Arrow extension type."""
        return any(_has_extension(field) for field in self.schema)

    def for_user(self, data: pa.RecordBatch) -> pa.Table:
        """Convert output to the form that users see, with registered extension types."""
        table = pa.Table.from_batches([data])
        return with_extensions(table, self.user_schema) if self.has_extensions else table

    @cached_property
    def user_schema(self) -> pa.Schema:
        """Schema that users see, with registered extension types."""
        return user_schema(self.schema) if self.has_extensions else self.schema


def _has_extension(field: pa.Field) -> bool:
    if field.metadata and EXTENSION_NAME.encode() in field.metadata:
        return True
    return any(_has_extension(field.type.field(i)) for i in range(field.type.num_fields))


def full_schema(schema: Schema) -> pa.Schema:
    """Return the schema of names in expressions: columns of the dataset (as storage types) and system columns.

    It is the same object each time, as what is known of filters is known by the schema object.
    """
    found = schema.companions.get("expressions")
    if found is None:
        made = pa.schema([*schema.storage_arrow, *SYSTEM_COLUMNS.values()])
        found = schema.companions.setdefault("expressions", made)
    return found


def project(
    schema: Schema, columns: Columns, *, with_row_id: bool = False, with_row_address: bool = False
) -> Projection:
    """Resolve the columns requested by a user.

    Parameters
    ----------
    schema
        Schema of the dataset.
    columns
        Names (nested ones dotted, system columns included), or a mapping from output names to SQL expressions; None for
        all columns.
    with_row_id, with_row_address
        Append `_rowid` and `_rowaddr` unless `columns` contains them.

    Raises
    ------
    FieldNotFoundError
        A column does not exist.
    InvalidInputError
        A name occurs twice, or an expression is not text.
    TypeError
        `columns` is not a list of names or a mapping, or an item is not a name.
    """
    if columns is None:
        outputs = list(map(OutputColumn, schema.storage_arrow, schema.fields))
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
    """Resolve columns like `project`, but keep the structs around dotted names. Names in the same struct share it."""
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
    """Return the projection with bytes instead of descriptions for every blob column of the output."""
    return _with_form(projection, as_values)


def with_stored_blobs(projection: Projection) -> Projection:
    """Return the projection with blob columns in the form that writers take; external objects stay references."""
    return _with_form(projection, undescribed)


def _with_form(projection: Projection, form: Callable[[Field], Field]) -> Projection:
    outputs = tuple(_in_form(output, form) for output in projection.columns)
    return Projection(outputs, pa.schema([output.arrow for output in outputs], metadata=projection.schema.metadata))


def located_projection(projection: Projection) -> Projection:
    """Return the projection with the row address as an additional last column."""
    address = OutputColumn(SYSTEM_COLUMNS["_rowaddr"].with_name(_ADDRESS), system="_rowaddr")
    return Projection((*projection.columns, address), projection.schema.append(address.arrow))


def with_system_columns(projection: Projection, names: Sequence[str]) -> Projection:
    """Return the projection with some system columns appended."""
    outputs = (*projection.columns, *(OutputColumn(SYSTEM_COLUMNS[name], system=name) for name in names))
    return Projection(outputs, pa.schema([output.arrow for output in outputs], metadata=projection.schema.metadata))


def _in_form(output: OutputColumn, form: Callable[[Field], Field]) -> OutputColumn:
    leaf = output.leaf
    if leaf is None or form(leaf) is leaf:
        return output
    assert output.field is not None
    arrow = form(leaf).to_arrow().with_name(output.arrow.name)
    return replace(output, arrow=arrow, field=form(output.field))


def _projection(schema: Schema, outputs: Sequence[OutputColumn]) -> Projection:
    metadata = dict(schema.metadata) or None
    return Projection(tuple(outputs), pa.schema([output.arrow for output in outputs], metadata=metadata))


def _checked_names(columns: Sequence[str]) -> list[str]:
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise TypeError(f"columns must be a list of names or a mapping of names to expressions, not {columns!r}")
    names, known = list(columns), set[str]()
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"columns contains {name!r}, which is not a name")
        if name in known:
            raise InvalidInputError(f"Duplicate column name: {name}")
        known.add(name)
    return names


def scalar_path(schema: Schema, name: str, purpose: str = "", others: Iterable[str] = ()) -> tuple[Field, ...]:
    """Return the fields from the top level down to the field of a dotted name, which must have one value per row.

    Parameters
    ----------
    schema
        Schema of the table.
    name
        Dotted name. Back-ticks around its parts are ignored.
    purpose
        Purpose of the field, used in error messages.
    others
        Other names that error messages may suggest, in addition to those of the schema.

    Raises
    ------
    FieldNotFoundError
        The field does not exist, or it is inside a list.
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
    if any(is_described(node) for node in path[:-1]):
        arrow = arrow.with_nullable(True)  # a null blob has no location
    return OutputColumn(arrow, pruned, tuple(node.name for node in path[1:]))


def _computed(schema: Schema, name: str, text: str) -> OutputColumn:
    if not isinstance(name, str) or not isinstance(text, str):
        raise InvalidInputError(f"columns maps names to SQL expressions, not {name!r} to {text!r}")
    if text in schema.names:
        field = schema.top_level(text)
        return OutputColumn(field.to_arrow().with_name(name), field)
    known = full_schema(schema)
    from lance_dataset.expr.compiled import compile_expression, finished
    from lance_dataset.expr.nullability import may_be_null

    expression = finished(compile_expression(text, known))
    metadata = None if expression.tree is None else expression.tree.metadata
    nullable = expression.tree is None or may_be_null(expression.tree, known)
    return OutputColumn(pa.field(name, expression.type, nullable, metadata), expression=expression)
