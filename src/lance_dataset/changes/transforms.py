"""How the values of new columns come about: by SQL expressions, by functions of batches, or out of data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from lance_dataset.changes.fragment_rows import fragment_batches, physical_batches, with_deleted_rows
from lance_dataset.changes.new_fields import NewFields
from lance_dataset.errors import InvalidInputError, LanceError
from lance_dataset.file.extensions import with_extensions
from lance_dataset.query.expr import compile_expression
from lance_dataset.query.expr.nullability import may_be_null
from lance_dataset.query.expr.tree import Column
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.projection import OutputColumn, Projection, project_structs, with_blob_values
from lance_dataset.query.prune import may_fail
from lance_dataset.query.request import ScanRequest
from lance_dataset.schema import Schema
from lance_dataset.udf import BatchUDF, BatchUDFCheckpoint, failed_function

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["DEFAULT_UDF_ROWS", "DataTransform", "FunctionTransform", "SqlTransform", "Transform"]

#: Rows of a batch for a UDF.
DEFAULT_UDF_ROWS = 1024
#: Rows that expressions are evaluated for together, about.
_SQL_ROWS = 1 << 16


class Transform(Protocol):
    """What makes the values of new columns."""

    #: Whether fragments may be computed at the same time, in any order.
    in_parallel: bool

    @property
    def arrow(self) -> pa.Schema:
        """The new columns."""
        ...

    def batches(self, fragment: FragmentReader, fields: NewFields) -> Iterator[pa.RecordBatch]:
        """Values of the new fields for all physical rows of a fragment."""
        ...


class SqlTransform:
    """New columns by SQL expressions over those that are there; what is not needed is not read.

    Parameters
    ----------
    dataset
        The version.
    expressions
        Expressions by the names of the new columns.
    batch_size
        Rows that they are evaluated for together; None for many.

    Raises
    ------
    FilterError, FieldNotFoundError
        An expression that does not fit.
    """

    in_parallel = True

    def __init__(self, dataset: LanceDataset, expressions: Mapping[str, str], batch_size: int | None = None) -> None:
        self._reader = dataset._reader
        self._schema = dataset._manifest.schema  # blobs as values
        self._batch_size = batch_size or _SQL_ROWS
        known = self._schema.storage_arrow
        outputs = [_output(self._schema, known, name, text) for name, text in expressions.items()]
        self._projection = Projection(tuple(outputs), pa.schema([output.arrow for output in outputs]))
        # What deleted rows hold must not make an expression fail; one that cannot fail may as well see them.
        self._sees_deleted = all(
            output.expression is not None
            and output.expression.tree is not None
            and not may_fail(output.expression.tree)
            for output in outputs
        )

    @property
    def arrow(self) -> pa.Schema:
        """The new columns."""
        return self._projection.schema

    def batches(self, fragment: FragmentReader, fields: NewFields) -> Iterator[pa.RecordBatch]:
        """Values for all physical rows of a fragment.

        Raises
        ------
        InvalidInputError
            An expression fails for some value.
        """
        request = ScanRequest(
            self._schema,
            self._projection,
            batch_size=self._batch_size,
            include_deleted=self._sees_deleted,
            use_statistics=False,
        )
        found = self._evaluated(fragment, request)
        return found if self._sees_deleted else with_deleted_rows(fragment, fields.added, found)

    def _evaluated(self, fragment: FragmentReader, request: ScanRequest) -> Iterator[pa.RecordBatch]:
        try:
            yield from fragment_batches(self._reader, fragment, request)
        except pa.ArrowException as error:
            computed = [output for output in self._projection.columns if output.expression is not None]
            texts = ", ".join(f"{output.arrow.name} = {output.expression}" for output in computed)
            raise InvalidInputError(f"the new columns ({texts}) cannot be computed for all rows: {error}") from error


def _output(schema: Schema, known: pa.Schema, name: str, text: str) -> OutputColumn:
    """A new column by an expression over a schema, whose Arrow schema is `known`."""
    bound = compile_expression(text, known)
    nullable = bound.tree is None or may_be_null(bound.tree, known)
    if not isinstance(bound.tree, Column) or any("." in each for each in bound.tree.path):
        return OutputColumn(pa.field(name, bound.type, nullable), expression=bound)
    # Expressions decode dictionaries and widen half floats; a column by itself stays what it is.
    top, *path = bound.tree.path
    pruned = schema.project([".".join(bound.tree.path)]).fields[0]
    column = OutputColumn(pa.field(top, pruned.storage_type), pruned, tuple(path))
    assert column.leaf is not None
    return replace(column, arrow=pa.field(name, column.leaf.storage_type, nullable))


class DataTransform:
    """New columns out of a stream that has a row for each live row, in order.

    Parameters
    ----------
    schema
        Schema of the stream.
    data
        The stream.
    """

    in_parallel = False

    def __init__(self, schema: pa.Schema, data: Iterable[pa.RecordBatch]) -> None:
        self._schema = schema
        self._data = iter(data)
        self._left: pa.RecordBatch | None = None

    @property
    def arrow(self) -> pa.Schema:
        """The new columns."""
        return self._schema

    def batches(self, fragment: FragmentReader, fields: NewFields) -> Iterator[pa.RecordBatch]:
        """Values for all physical rows of a fragment: the next rows of the stream."""
        return with_deleted_rows(fragment, fields.added, self._next_rows(fragment.num_rows))

    def _next_rows(self, rows: int) -> Iterator[pa.RecordBatch]:
        while rows:
            batch, self._left = self._left, None
            if batch is None:
                batch = next(self._data, None)
            if batch is None:
                raise InvalidInputError(
                    "Stream ended before producing values for all rows in dataset: the data must have a row for each "
                    "row of the dataset, in its order"
                )
            if batch.num_rows > rows:
                self._left = batch.slice(rows)
                batch = batch.slice(0, rows)
            rows -= batch.num_rows
            yield batch

    def check_end(self) -> None:
        """Refuse (InvalidInputError) rows behind those of the last fragment."""
        if (self._left is not None and self._left.num_rows) or any(batch.num_rows for batch in self._data):
            raise InvalidInputError(
                "Stream produced more values than expected for dataset: the data must have a row for each row of the "
                "dataset, in its order"
            )


class FunctionTransform:
    """New columns by a function that is called for batches of live rows, on the thread of the caller.

    Parameters
    ----------
    dataset
        The version.
    function
        The function.
    read_columns
        Names of what it gets, system columns included; None for all columns.
    batch_size
        Rows of a batch, deleted ones counted; None for 1024.
    plain
        Whether the user gave a plain function, which may be none of batches.
    only
        The one fragment that there will be batches of; None for all.

    Raises
    ------
    FieldNotFoundError, InvalidInputError
        `read_columns` does not fit.
    """

    in_parallel = False

    def __init__(
        self,
        dataset: LanceDataset,
        function: BatchUDF,
        read_columns: Sequence[str] | None = None,
        batch_size: int | None = None,
        *,
        plain: bool = False,
        only: FragmentReader | None = None,
    ) -> None:
        self._dataset = dataset
        self._udf = function
        self._plain = plain
        self._fragments = dataset._reader.fragments if only is None else (only,)
        self._batch_size = batch_size or DEFAULT_UDF_ROWS
        try:
            self._projection = with_blob_values(project_structs(dataset._scanned_schema, read_columns))
        except LanceError as error:
            if plain:
                raise failed_function(function.func, error) from error
            raise
        if not self._projection.columns:
            raise InvalidInputError("read_columns is empty: a function needs a column to compute others from")
        self._first: dict[tuple[int, int], pa.RecordBatch] = {}  # the result that the schema was taken from

    @cached_property
    def arrow(self) -> pa.Schema:
        """The new columns: what the function says it returns, else what it returns first.

        Raises
        ------
        InvalidInputError
            It does not say, and there are no rows.
        """
        known = self._udf.output_schema
        if known is None:
            known = self._first_schema()
        if not len(known):
            raise InvalidInputError("the function returns no column, so there is none to add")
        return known

    def _first_schema(self) -> pa.Schema:
        for fragment in self._fragments:
            for index, batch in self._inputs(fragment):
                made = self._result(fragment, index, batch, first=True)
                self._first[fragment.fragment.id, index] = made
                return made.schema
        unknown = InvalidInputError(
            "the dataset has no rows, so what the function returns is not known: give it with batch_udf(output_schema)"
        )
        raise failed_function(self._udf.func, unknown) if self._plain else unknown

    def batches(self, fragment: FragmentReader, fields: NewFields) -> Iterator[pa.RecordBatch]:
        """Values for all physical rows of a fragment.

        Raises
        ------
        InvalidInputError
            The function fails, or returns something else than it should.
        """
        return with_deleted_rows(fragment, fields.added, self._results(fragment))

    def _results(self, fragment: FragmentReader) -> Iterator[pa.RecordBatch]:
        for index, batch in self._inputs(fragment):
            known = self._first.pop((fragment.fragment.id, index), None)
            made = self._result(fragment, index, batch) if known is None else known
            if sorted(made.schema.names) != sorted(self.arrow.names):
                raise InvalidInputError(
                    "Output schema of function does not match the expected schema. Expected:\n"
                    f"{self.arrow}\nGot:\n{made.schema}"
                )
            yield made

    def _inputs(self, fragment: FragmentReader) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of live rows as users see them, with their numbers; those without live rows are left out."""
        rows = self._batch_size
        for index, batch in zip(count(), physical_batches(self._dataset, fragment, self._projection, rows)):
            live = fragment.live_rows(index * rows, index * rows + batch.num_rows)
            if live is not None:
                batch = batch.take(pa.array(live - index * rows))
            if batch.num_rows:
                yield index, with_extensions(batch, self._projection.user_schema)

    def _result(
        self, fragment: FragmentReader, index: int, batch: pa.RecordBatch, *, first: bool = False
    ) -> pa.RecordBatch:
        cache = self._udf.cache
        info = BatchUDFCheckpoint.BatchInfo(fragment.fragment.id, index, self._source(fragment))
        made = None if cache is None else cache.get_batch(info)
        if made is not None and made.num_rows == batch.num_rows:
            return made
        try:
            made = self._udf.result(batch)
        except LanceError:
            raise
        except Exception as error:
            if first and self._plain:
                raise failed_function(self._udf.func, error) from error
            if first:
                raise
            raise InvalidInputError(
                f"the UDF failed for rows from {index * self._batch_size} on of fragment {fragment.fragment.id}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if cache is not None:
            cache.insert_batch(info, made)
        return made

    def _source(self, fragment: FragmentReader) -> str:
        """What the batches of a fragment are made from: a checksum of its files, its deletions and what is read."""
        facts = fragment.fragment
        columns = [[output.arrow.name, *(node.id for node in output.below)] for output in self._projection.columns]
        deletions = facts.deletion_file
        kept = [] if deletions is None else [deletions.read_version, deletions.id, deletions.num_deleted_rows]
        files = [[file.path, file.base_id, list(file.fields)] for file in facts.files]
        text = json.dumps([facts.id, files, kept, columns, self._batch_size])
        return hashlib.sha256(text.encode()).hexdigest()
