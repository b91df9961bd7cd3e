"""Values of new columns: by SQL expressions, by functions of batches, or from data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Protocol

import pyarrow as pa

from lance_dataset.changes.columns.new_fields import NewFields
from lance_dataset.changes.columns.udf import BatchUDF, BatchUDFCheckpoint, failed_function
from lance_dataset.changes.fragments.fragment_rows import fragment_batches, physical_batches, with_deleted_rows
from lance_dataset.errors import InvalidInputError, LanceError
from lance_dataset.expr.compiled import compile_expression
from lance_dataset.expr.nullability import may_be_null
from lance_dataset.expr.parse import parse
from lance_dataset.expr.tree import Cast, Column, Literal
from lance_dataset.file.blob_fields import described_blobs
from lance_dataset.file.extensions import with_extensions
from lance_dataset.properties import cached_property
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import OutputColumn, Projection, project_structs, with_blob_values
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.pruning.prune import may_fail
from lance_dataset.scan.request import ScanRequest
from lance_dataset.table.fragment import LEGACY_VERSION
from lance_dataset.types.schema import Schema

__all__ = ["DEFAULT_UDF_ROWS", "DataTransform", "FunctionTransform", "SqlTransform", "Transform"]

#: Number of rows in a batch for a UDF.
DEFAULT_UDF_ROWS = 1024
#: Approximate number of rows for which expressions are evaluated together.
_SQL_ROWS = 1 << 16


class Transform(Protocol):
    """Source of the values of new columns."""

    #: True if fragments may be computed concurrently and in any order.
    in_parallel: bool

    @property
    def arrow(self) -> pa.Schema:
        """Schema of the new columns."""
        ...

    def batches(self, fragment: FragmentReader, fields: NewFields) -> Iterator[pa.RecordBatch]:
        """Compute the values of the new fields for all physical rows of a fragment."""
        ...


class SqlTransform:
    """Transform by SQL expressions over existing columns. Only the columns that they use are read.

    Parameters
    ----------
    snapshot
        Version that the expressions are evaluated on.
    expressions
        Expressions by the names of the new columns.
    batch_size
        Number of rows for which they are evaluated together; None for the default.

    Attributes
    ----------
    needs_no_file
        True if a field of the schema says all about the new columns: each is ``CAST(NULL AS type)``, and files of the
        table may lack columns. As in the reference, other expressions without values are written.

    Raises
    ------
    FilterError, FieldNotFoundError
        An expression is invalid, or does not fit the schema.
    """

    in_parallel = True

    def __init__(self, snapshot: Snapshot, expressions: Mapping[str, str], batch_size: int | None = None) -> None:
        self._reader = snapshot.reader
        self._schema = described_blobs(snapshot.manifest.schema)  # blobs of version 1 as values
        self._batch_size = batch_size or _SQL_ROWS
        known = self._schema.storage_arrow
        outputs = [_output(self._schema, known, name, text) for name, text in expressions.items()]
        self._projection = Projection(tuple(outputs), pa.schema([output.arrow for output in outputs]))
        is_legacy = snapshot.manifest.storage_version == LEGACY_VERSION
        self.needs_no_file = not is_legacy and all(map(_is_typed_null, expressions.values()))
        # Values of deleted rows must not make an expression fail. Expressions that cannot fail may see them.
        self._sees_deleted = all(
            output.expression is not None
            and output.expression.tree is not None
            and not may_fail(output.expression.tree)
            for output in outputs
        )

    @property
    def arrow(self) -> pa.Schema:
        """Schema of the new columns."""
        return self._projection.schema

    def batches(self, fragment: FragmentReader, fields: NewFields) -> Iterator[pa.RecordBatch]:
        """Compute the values for all physical rows of a fragment.

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


def _is_typed_null(text: str) -> bool:
    """Return True for a NULL that is cast to a type, and nothing else."""
    tree = parse(text)
    return isinstance(tree, Cast) and tree.operand == Literal(None) and not tree.lenient


def _output(schema: Schema, known: pa.Schema, name: str, text: str) -> OutputColumn:
    """Make a new column by an expression over a schema, whose Arrow schema is `known`."""
    bound = compile_expression(text, known)
    nullable = bound.tree is None or may_be_null(bound.tree, known)
    if not isinstance(bound.tree, Column) or any("." in each for each in bound.tree.path):
        return OutputColumn(pa.field(name, bound.type, nullable), expression=bound)
    # Expressions decode dictionaries and widen half floats; a plain column keeps its type.
    top, *path = bound.tree.path
    pruned = schema.project([".".join(bound.tree.path)]).fields[0]
    column = OutputColumn(pa.field(top, pruned.storage_type), pruned, tuple(path))
    assert column.leaf is not None
    return replace(column, arrow=pa.field(name, column.leaf.storage_type, nullable))


class DataTransform:
    """Transform that takes new columns from a stream with one row for each live row, in order.

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
        """Schema of the new columns."""
        return self._schema

    def batches(self, fragment: FragmentReader, fields: NewFields) -> Iterator[pa.RecordBatch]:
        """Take the next rows of the stream as values for all physical rows of a fragment."""
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
        """Raise InvalidInputError if the stream has more rows than the fragments."""
        if (self._left is not None and self._left.num_rows) or any(batch.num_rows for batch in self._data):
            raise InvalidInputError(
                "Stream produced more values than expected for dataset: the data must have a row for each row of the "
                "dataset, in its order"
            )


class FunctionTransform:
    """Transform by a function that is called for batches of live rows, on the thread of the caller.

    Parameters
    ----------
    snapshot
        Version that the batches are read from.
    function
        The function.
    read_columns
        Names of the columns that it gets, which may be system columns; None for all columns.
    batch_size
        Number of rows in a batch, including deleted ones; None for 1024.
    plain
        True if the user passed a plain function, which may not take batches.
    only
        The only fragment to compute; None for all.

    Raises
    ------
    FieldNotFoundError, InvalidInputError
        `read_columns` does not fit.
    """

    in_parallel = False

    def __init__(
        self,
        snapshot: Snapshot,
        function: BatchUDF,
        read_columns: Sequence[str] | None = None,
        batch_size: int | None = None,
        *,
        plain: bool = False,
        only: FragmentReader | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._udf = function
        self._plain = plain
        self._fragments = snapshot.reader.fragments if only is None else (only,)
        self._batch_size = batch_size or DEFAULT_UDF_ROWS
        try:
            self._projection = with_blob_values(project_structs(snapshot.scanned_schema, read_columns))
        except LanceError as error:
            if plain:
                raise failed_function(function.func, error) from error
            raise
        if not self._projection.columns:
            raise InvalidInputError("read_columns is empty: a function needs at least one column to compute from")
        self._first: dict[tuple[int, int], pa.RecordBatch] = {}  # the result that the schema was taken from

    @cached_property
    def arrow(self) -> pa.Schema:
        """Schema of the new columns: the declared output schema, or that of the first result.

        Raises
        ------
        InvalidInputError
            The function does not declare a schema, and there are no rows.
        """
        known = self._udf.output_schema
        if known is None:
            known = self._first_schema()
        if not len(known):
            raise InvalidInputError("the function does not return any column to add")
        return known

    def _first_schema(self) -> pa.Schema:
        for fragment in self._fragments:
            for index, batch in self._inputs(fragment):
                made = self._result(fragment, index, batch, first=True)
                self._first[fragment.fragment.id, index] = made
                return made.schema
        unknown = InvalidInputError(
            "the dataset has no rows, so the schema that the function returns is not known: declare it with "
            "batch_udf(output_schema)"
        )
        raise failed_function(self._udf.func, unknown) if self._plain else unknown

    def batches(self, fragment: FragmentReader, fields: NewFields) -> Iterator[pa.RecordBatch]:
        """Compute the values for all physical rows of a fragment.

        Raises
        ------
        InvalidInputError
            The function fails, or returns columns that do not match the schema.
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
        """Yield batches of live rows as users see them, with their numbers. Batches without live rows are skipped."""
        rows = self._batch_size
        for index, batch in zip(count(), physical_batches(self._snapshot, fragment, self._projection, rows)):
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
                f"the UDF failed for a batch of fragment {fragment.fragment.id} that begins at row "
                f"{index * self._batch_size}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if cache is not None:
            cache.insert_batch(info, made)
        return made

    def _source(self, fragment: FragmentReader) -> str:
        """Return a checksum of all that the batches of a fragment depend on: files, deletions, columns, batch size."""
        facts = fragment.fragment
        columns = [[output.arrow.name, *(node.id for node in output.below)] for output in self._projection.columns]
        deletions = facts.deletion_file
        kept = [] if deletions is None else [deletions.read_version, deletions.id, deletions.num_deleted_rows]
        files = [[file.path, file.base_id, list(file.fields)] for file in facts.files]
        text = json.dumps([facts.id, files, kept, columns, self._batch_size])
        return hashlib.sha256(text.encode()).hexdigest()
