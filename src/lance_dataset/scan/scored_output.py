"""Output of a search: columns of the rows that it finds, their scores, and expressions of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_dataset.expr.compiled import BoundExpression, Filter, compile_expression, compile_filter, finished
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.read.projection import OutputColumn, Projection, full_schema, project, with_blob_values
from lance_dataset.types.schema import Schema

__all__ = ["ScoredOutput", "scored_filter", "stored_columns"]


@dataclass(frozen=True)
class _Output:
    """Output column: one that is taken from storage, or (None) the score, or an expression with the score."""

    arrow: pa.Field
    source: OutputColumn | BoundExpression | None


@dataclass(frozen=True)
class ScoredOutput:
    """Output columns of a search, in order.

    Attributes
    ----------
    outputs
        The columns.
    schema
        Arrow schema with storage types.
    score
        Name and type of the score.
    stored
        Schema of the dataset.
    """

    outputs: tuple[_Output, ...]
    schema: pa.Schema
    score: pa.Field
    stored: Schema

    @classmethod
    def of(cls, schema: Schema, score: pa.Field, options: Mapping[str, Any]) -> ScoredOutput:
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

        Raises
        ------
        FieldNotFoundError, FilterError, InvalidInputError
            See `project`.
        """
        columns = options.get("columns")
        outputs = _requested(schema, score, columns, as_values=options.get("blob_handling") == "all_binary")
        named = any(output.arrow.name == score.name for output in outputs)
        if not named and not options.get("disable_scoring_autoprojection"):
            outputs.append(_Output(score, None))
        for name, option in (("_rowid", "with_row_id"), ("_rowaddr", "with_row_address")):
            if options.get(option):
                outputs = [output for output in outputs if output.arrow.name != name]
                outputs.append(_Output(SYSTEM_COLUMNS[name], OutputColumn(SYSTEM_COLUMNS[name], system=name)))
        arrow = pa.schema([output.arrow for output in outputs], metadata=dict(schema.metadata) or None)
        return cls(tuple(outputs), arrow, score, schema)

    @property
    def projection(self) -> Projection:
        """Columns to take from storage: those of the output, then those that expressions with the score read."""
        plain = [output.source for output in self.outputs if isinstance(output.source, OutputColumn)]
        expressions = [output.source for output in self.outputs if isinstance(output.source, BoundExpression)]
        hidden = stored_columns(self.stored, self.score.name, expressions)
        columns = (*plain, *hidden)
        return Projection(columns, pa.schema([column.arrow for column in columns]))

    def assemble(self, taken: pa.RecordBatch, scores: pa.Array) -> pa.RecordBatch:
        """Return the output for rows.

        Parameters
        ----------
        taken
            Columns of `projection`.
        scores
            Scores of the rows.
        """
        plain = iter(taken.columns)
        hidden = sum(isinstance(output.source, OutputColumn) for output in self.outputs)
        known = pa.RecordBatch.from_arrays(
            [*taken.columns[hidden:], scores], names=[*taken.schema.names[hidden:], self.score.name]
        )
        columns = []
        for output in self.outputs:
            if output.source is None:
                columns.append(scores)
            elif isinstance(output.source, BoundExpression):
                columns.append(output.source.evaluate(known))
            else:
                columns.append(next(plain))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def stored_columns(schema: Schema, score: str, expressions: Sequence[BoundExpression]) -> tuple[OutputColumn, ...]:
    """Return the columns that expressions read, apart from the score."""
    names = dict.fromkeys(name for expression in expressions for name in expression.columns if name != score)
    fields = {name: schema.top_level(name) for name in names if name in schema.names}
    return tuple(
        OutputColumn(fields[name].to_arrow(), fields[name])
        if name in fields
        else OutputColumn(SYSTEM_COLUMNS[name], system=name)
        for name in names
    )


def scored_filter(schema: Schema, score: pa.Field | None, filter: Any) -> Filter | None:
    """Compile a filter that may read the score; None for no filter.

    Raises
    ------
    FilterError, FieldNotFoundError
        See `compile_filter`.
    """
    known = full_schema(schema)
    return compile_filter(filter, known if score is None else known.append(score))


def _requested(schema: Schema, score: pa.Field, columns: Any, *, as_values: bool) -> list[_Output]:
    """Return the outputs that a user names."""
    found: list[_Output] = []
    if columns is None or not any(_reads_score(name, score, columns) for name in columns):
        found.extend(_Output(output.arrow, output) for output in _projected(schema, columns, as_values).columns)
        return found
    for name in columns:
        text = columns[name] if isinstance(columns, Mapping) else name
        if text == score.name:
            found.append(_Output(score.with_name(name), None))
        elif not _reads_score(name, score, columns):
            part = {name: text} if isinstance(columns, Mapping) else [name]
            found.extend(_Output(output.arrow, output) for output in _projected(schema, part, as_values).columns)
        else:
            expression = finished(compile_expression(text, full_schema(schema).append(score)))
            found.append(_Output(pa.field(name, expression.type), expression))
    return found


def _reads_score(name: str, score: pa.Field, columns: Any) -> bool:
    """Return True if a column may be the score or an expression of it."""
    return bool(score.name in (columns[name] if isinstance(columns, Mapping) else (name,)))


def _projected(schema: Schema, columns: Any, as_values: bool) -> Projection:
    projection = project(schema, columns)
    return with_blob_values(projection) if as_values else projection
