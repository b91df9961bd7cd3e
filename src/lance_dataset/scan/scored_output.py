"""Output of a search: columns of the rows that it finds, their scores, and expressions of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_dataset.expr.compiled import BoundExpression, Filter, compile_expression, compile_filter, finished
from lance_dataset.properties import cached_property
from lance_dataset.read.empty_batches import rows_only
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.read.projection import OutputColumn, Projection, full_schema, project, with_blob_values
from lance_dataset.types.logical import user_schema
from lance_dataset.types.schema import Schema

__all__ = ["ScoredOutput", "named_apart", "scored_filter", "stored_columns"]


@dataclass(frozen=True)
class _Output:
    """Output column: one that is taken from storage, a value that was found (its name), or an expression of these."""

    arrow: pa.Field
    source: OutputColumn | BoundExpression | str


@dataclass(frozen=True)
class ScoredOutput:
    """Output columns of a search, in order.

    Attributes
    ----------
    outputs
        The columns.
    schema
        Arrow schema with storage types.
    found
        Names and types of the values that the search finds for each row; the last is the score.
    stored
        Schema of the dataset.
    """

    outputs: tuple[_Output, ...]
    schema: pa.Schema
    found: tuple[pa.Field, ...]
    stored: Schema

    @classmethod
    def of(
        cls, schema: Schema, score: pa.Field, options: Mapping[str, Any], leading: pa.Field | None = None
    ) -> ScoredOutput:
        """Resolve the columns that a user requests.

        The score is the last column before `_rowid` and `_rowaddr`, unless its name is among the columns.

        Parameters
        ----------
        schema
            Schema of the dataset.
        score
            Name and type of the score.
        options
            Options of the scan.
        leading
            Name and type of a value that is found too, and is always the first column.

        Raises
        ------
        FieldNotFoundError, FilterError, InvalidInputError
            See `project`.
        """
        found = (score,) if leading is None else (leading, score)
        return cls._of(schema, found, (score,), options, leading)

    @classmethod
    def of_values(cls, schema: Schema, found: Sequence[pa.Field], options: Mapping[str, Any]) -> ScoredOutput:
        """Resolve the columns that a user requests of a search that finds several values for each row.

        Those whose names are not among the columns are the last columns before `_rowid` and `_rowaddr`.

        Parameters
        ----------
        schema
            Schema of the dataset.
        found
            Names and types of the values.
        options
            Options of the scan.

        Raises
        ------
        FieldNotFoundError, FilterError, InvalidInputError
            See `project`.
        """
        return cls._of(schema, tuple(found), found, options, None)

    @classmethod
    def with_place(cls, schema: Schema, place: pa.Field, score: pa.Field, options: Mapping[str, Any]) -> ScoredOutput:
        """Resolve the columns that a user requests of a search that finds parts of rows: places, and scores.

        The place is always among the columns, before the score.

        Parameters
        ----------
        schema
            Schema of the dataset.
        place, score
            Names and types of what is found.
        options
            Options of the scan.

        Raises
        ------
        FieldNotFoundError, FilterError, InvalidInputError
            See `project`.
        """
        hidden = bool(options.get("disable_scoring_autoprojection"))
        given = {**options, "disable_scoring_autoprojection": False}
        return cls._of(schema, (place, score), (place,) if hidden else (place, score), given, None)

    @classmethod
    def _of(
        cls,
        schema: Schema,
        found: tuple[pa.Field, ...],
        appended: Sequence[pa.Field],
        options: Mapping[str, Any],
        leading: pa.Field | None,
    ) -> ScoredOutput:
        columns = options.get("columns")
        outputs = _requested(schema, found, columns, as_values=options.get("blob_handling") == "all_binary")
        named = {output.arrow.name for output in outputs}
        if not options.get("disable_scoring_autoprojection"):
            outputs.extend(_Output(each, each.name) for each in appended if each.name not in named)
        for name, option in (("_rowid", "with_row_id"), ("_rowaddr", "with_row_address")):
            if options.get(option):
                outputs = [output for output in outputs if output.arrow.name != name]
                outputs.append(_Output(SYSTEM_COLUMNS[name], OutputColumn(SYSTEM_COLUMNS[name], system=name)))
        if leading is not None:
            others = (output for output in outputs if output.arrow.name != leading.name)
            outputs = [_Output(leading, leading.name), *others]
        arrow = pa.schema([output.arrow for output in outputs], metadata=dict(schema.metadata) or None)
        return cls(tuple(outputs), arrow, found, schema)

    @property
    def score(self) -> pa.Field:
        """Name and type of the score."""
        return self.found[-1]

    @cached_property
    def projection(self) -> Projection:
        """Columns to take from storage: those of the output, then those that expressions with the score read."""
        plain = [output.source for output in self.outputs if isinstance(output.source, OutputColumn)]
        expressions = [output.source for output in self.outputs if isinstance(output.source, BoundExpression)]
        hidden = stored_columns(self.stored, self.found, expressions)
        columns = (*plain, *hidden)
        return Projection(columns, pa.schema([column.arrow for column in columns]))

    @cached_property
    def user_schema(self) -> pa.Schema:
        """Schema of the output as users see it."""
        return user_schema(self.schema)

    @cached_property
    def named_apart(self) -> Projection:
        """Projection with a different name for each column; reusing it saves takes the work of planning."""
        return named_apart(self.projection.columns)

    def assemble(self, taken: Sequence[pa.Array], found: pa.RecordBatch) -> pa.RecordBatch:
        """Return the output for rows.

        Parameters
        ----------
        taken
            Values of the columns of `projection`.
        found
            What the search found for the rows.
        """
        plain = iter(taken)
        known = self._known(taken, found) if self._computes else found
        columns = []
        for output in self.outputs:
            if isinstance(output.source, str):
                columns.append(found.column(output.source))
            elif isinstance(output.source, BoundExpression):
                columns.append(output.source.evaluate(known))
            else:
                columns.append(next(plain))
        if not columns:
            return rows_only(found.num_rows, self.schema)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    @cached_property
    def _computes(self) -> bool:
        """True if there are expressions."""
        return any(isinstance(output.source, BoundExpression) for output in self.outputs)

    def _known(self, taken: Sequence[pa.Array], found: pa.RecordBatch) -> pa.RecordBatch:
        """Return the values that expressions may read."""
        hidden = sum(isinstance(output.source, OutputColumn) for output in self.outputs)
        names = [column.arrow.name for column in self.projection.columns[hidden:]]
        return pa.RecordBatch.from_arrays([*taken[hidden:], *found.columns], names=[*names, *found.schema.names])


def named_apart(columns: Sequence[OutputColumn]) -> Projection:
    """Return a projection to columns, under numbers as names."""
    unique = [column.arrow.with_name(str(number)) for number, column in enumerate(columns)]
    renamed = (
        OutputColumn(field, column.field, column.path, column.system, column.expression)
        for field, column in zip(unique, columns, strict=True)
    )
    return Projection(tuple(renamed), pa.schema(unique))


def stored_columns(
    schema: Schema, found: Sequence[pa.Field], expressions: Sequence[BoundExpression]
) -> tuple[OutputColumn, ...]:
    """Return the columns that expressions read, apart from what a search finds."""
    known = {field.name for field in found}
    names = dict.fromkeys(name for expression in expressions for name in expression.columns if name not in known)
    fields = {name: schema.top_level(name) for name in names if name in schema.names}
    return tuple(
        OutputColumn(fields[name].to_arrow(), fields[name])
        if name in fields
        else OutputColumn(SYSTEM_COLUMNS[name], system=name)
        for name in names
    )


def scored_filter(schema: Schema, found: Sequence[pa.Field], filter: Any) -> Filter | None:
    """Compile a filter that may read what a search finds; None for no filter.

    Raises
    ------
    FilterError, FieldNotFoundError
        See `compile_filter`.
    """
    return None if filter is None else compile_filter(filter, _known(schema, found))


def _known(schema: Schema, found: Sequence[pa.Field]) -> pa.Schema:
    """Return the columns that expressions may read."""
    stored = full_schema(schema)
    names = {field.name for field in found}
    return pa.schema([*(field for field in stored if field.name not in names), *found], metadata=stored.metadata)


def _requested(schema: Schema, found: Sequence[pa.Field], columns: Any, *, as_values: bool) -> list[_Output]:
    """Return the outputs that a user names."""
    outputs: list[_Output] = []
    if columns is None or not any(_may_read(name, each, columns) for name in columns for each in found):
        outputs.extend(_Output(output.arrow, output) for output in _projected(schema, columns, as_values).columns)
        return outputs
    for name in columns:
        text = columns[name] if isinstance(columns, Mapping) else name
        same = next((each for each in found if each.name == text), None)
        if same is not None:
            outputs.append(_Output(same.with_name(name), same.name))
        elif not any(_may_read(name, each, columns) for each in found):
            part = {name: text} if isinstance(columns, Mapping) else [name]
            outputs.extend(_Output(output.arrow, output) for output in _projected(schema, part, as_values).columns)
        else:
            expression = finished(compile_expression(text, _known(schema, found)))
            outputs.append(_Output(pa.field(name, expression.type), expression))
    return outputs


def _may_read(name: str, found: pa.Field, columns: Any) -> bool:
    """Return True if a column may be a value that a search finds, or an expression of it."""
    return bool(found.name in (columns[name] if isinstance(columns, Mapping) else (name,)))


def _projected(schema: Schema, columns: Any, as_values: bool) -> Projection:
    projection = project(schema, columns)
    return with_blob_values(projection) if as_values else projection
