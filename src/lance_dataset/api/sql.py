"""SQL queries over a dataset. DataFusion plans and runs them; projections and filters are pushed down to the scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from lance_dataset.api.scanner.builder import make_scanner
from lance_dataset.api.scanner.scanner import LanceScanner
from lance_dataset.api.sql_plain import PlainQuery, plain_query
from lance_dataset.api.sql_plans import aggregates_freely, first_rows, text_condition
from lance_dataset.errors import InvalidInputError, LanceError, UnsupportedError
from lance_dataset.read.shown import Shown
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.batches import limited_batches
from lance_dataset.scan.options import BlobHandling, checked_option

__all__ = ["FFILanceTableProvider", "SqlQuery", "SqlQueryBuilder"]

_DEFAULT_TABLE = "dataset"
_OWN_FUNCTIONS = (
    "contains_tokens",
    "json_array_contains",
    "json_array_length",
    "json_exists",
    "json_extract",
    "json_get",
    "json_get_bool",
    "json_get_float",
    "json_get_int",
    "json_get_string",
)


class SqlQueryBuilder:
    """Builder of an SQL query. Get it with `LanceDataset.sql`. Every method but `build` returns the builder.

    Parameters
    ----------
    snapshot
        Version to query.
    sql
        One SQL statement.
    """

    def __init__(self, snapshot: Snapshot, sql: str) -> None:
        if not isinstance(sql, str):
            raise TypeError(f"sql must be text, not {type(sql).__name__}")
        self._snapshot = snapshot
        self._sql = sql
        self._table_name = _DEFAULT_TABLE
        self._options: dict[str, Any] = {}
        self._read_only = False

    def __repr__(self) -> str:
        return f"SqlQueryBuilder({self._sql!r})"

    def table_name(self, table_name: str) -> SqlQueryBuilder:
        """Set the name of the table in the statement (``dataset`` by default)."""
        if not isinstance(table_name, str):
            raise TypeError(f"table_name must be text, not {type(table_name).__name__}")
        self._table_name = table_name
        return self

    def with_row_id(self, with_row_id: bool = True) -> SqlQueryBuilder:
        """Add the column ``_rowid`` to the table, or leave it out."""
        return self._set("with_row_id", with_row_id)

    def with_row_addr(self, with_row_addr: bool = True) -> SqlQueryBuilder:
        """Add the column ``_rowaddr`` to the table, or leave it out."""
        return self._set("with_row_address", with_row_addr)

    def batch_size(self, batch_size: int) -> SqlQueryBuilder:
        """Set the maximum number of rows in a batch of the scan."""
        return self._set("batch_size", batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> SqlQueryBuilder:
        """Set the approximate maximum size of a batch of the scan in bytes."""
        return self._set("batch_size_bytes", batch_size_bytes)

    def blob_handling(self, blob_handling: BlobHandling) -> SqlQueryBuilder:
        """Set the form of blob columns: ``all_binary``, ``blobs_descriptions`` (default) or ``all_descriptions``."""
        return self._set("blob_handling", blob_handling)

    def read_only(self, read_only: bool = True) -> SqlQueryBuilder:
        """Refuse statements that are not queries, such as COPY and CREATE EXTERNAL TABLE, which reach other files."""
        if not isinstance(read_only, bool):
            raise TypeError(f"read_only must be True or False, not {read_only!r}")
        self._read_only = read_only
        return self

    def build(self) -> SqlQuery:
        """Return the query. Its statement is not checked before it runs."""
        return SqlQuery(self._snapshot, self._sql, self._table_name, dict(self._options), self._read_only)

    def _set(self, name: str, value: Any) -> SqlQueryBuilder:
        if value is None:
            raise TypeError(f"{name} needs a value")
        self._options[name] = checked_option(name, value)
        return self


class FFILanceTableProvider:
    """Dataset as a table provider of DataFusion. Not available: it needs code compiled for a DataFusion release.

    Raises
    ------
    UnsupportedError
        Always. Use `LanceDataset.sql` to run queries.
    """

    def __init__(self, dataset: Shown, *, with_row_id: bool = False, with_row_addr: bool = False) -> None:
        raise UnsupportedError(
            "FFILanceTableProvider is not supported by this release: use dataset.sql(...), which has with_row_id() and "
            "with_row_addr(), or register the result of a scan with SessionContext.from_arrow"
        )


class SqlQuery:
    """SQL query over one version of a dataset. It can run any number of times. `SqlQueryBuilder` makes it.

    Parameters
    ----------
    snapshot
        Version to query.
    sql
        One SQL statement.
    table_name
        Name of the dataset in the statement.
    options
        Keywords of the scanner.
    read_only
        Whether statements that are not queries are refused.
    """

    def __init__(
        self, snapshot: Snapshot, sql: str, table_name: str, options: dict[str, Any], read_only: bool = False
    ) -> None:
        self._snapshot = snapshot
        self._sql = sql
        self._table_name = table_name
        self._options = options
        self._read_only = read_only

    def __repr__(self) -> str:
        return f"SqlQuery({self._sql!r})"

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """Run the query and collect its batches.

        Returns
        -------
        list of pyarrow.RecordBatch
            All batches that are not empty.

        Raises
        ------
        InvalidInputError
            The statement is invalid, or it failed.
        UnsupportedError
            DataFusion is not installed.
        MemoryLimitError
            The result is larger than the `max_result_bytes` of the dataset.
        LanceError
            The scan failed.
        """
        meter = self._snapshot.location.result_limit.meter("the result of the SQL query")
        batches = []
        for batch in self._run()[1]:
            if batch.num_rows:
                meter.add(batch.nbytes)
                batches.append(batch)
        return batches

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """Run the query as a stream.

        The statement is checked, planned and started immediately. Rows are read on demand.

        Raises
        ------
        InvalidInputError, UnsupportedError, LanceError
            As for `to_batch_records`. The reader raises errors that occur while rows are read.
        """
        return pa.RecordBatchReader.from_batches(*self._run())

    def _run(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        source = _Source(self._snapshot, self._options)
        plain = plain_query(self._sql, self._table_name, source.schema)
        try:
            planned, batches = self._planned(source) if plain is None else source.answer(plain)
            first = next(batches, None)
        except Exception as error:
            raise source.cause(error) from error
        schema = _result_schema(planned, first)
        limit = self._snapshot.location.result_limit
        return schema, limited_batches(_batches(schema, first, batches, source), limit)

    def _planned(self, source: _Source) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Let DataFusion plan and start the query."""
        context = _context(self._options.get("batch_size"))
        context.register_dataset(self._table_name, source)
        frame = context.sql(self._sql, _only_queries()) if self._read_only else context.sql(self._sql)
        plan = frame.logical_plan()
        if plan.display().startswith("Limit:"):
            source.most_rows = first_rows(frame.optimized_logical_plan())
        if "LIKE" in self._sql.upper():
            source.condition = text_condition(frame.optimized_logical_plan(), source.schema)
        if aggregates_freely(plan):
            context.sql("SET datafusion.optimizer.enable_round_robin_repartition = true")
            frame = context.create_dataframe_from_logical_plan(plan)
        return frame.schema(), (batch.to_pyarrow() for batch in frame.execute_stream())


def _context(batch_size: int | None) -> Any:
    try:
        from datafusion import SessionConfig, SessionContext
    except ModuleNotFoundError as error:
        raise UnsupportedError("SQL queries need the package datafusion: pip install lance-dataset[sql]") from error
    # keeps rows in the order of the scan, which already runs in parallel; see aggregates_freely
    config = SessionConfig().set("datafusion.optimizer.enable_round_robin_repartition", "false")
    context = SessionContext(config if batch_size is None else config.with_batch_size(batch_size))
    for function in _own_functions():
        context.register_udf(function)
    return context


def _only_queries() -> Any:
    from datafusion import SQLOptions

    return SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)


@cache
def _own_functions() -> list[Any]:
    """Make the filter functions that DataFusion does not have. They take text, including JSON columns."""
    from datafusion import udf

    from lance_dataset.expr.functions.registry import find_function

    made = []
    for name in _OWN_FUNCTIONS:
        function = find_function(name)
        if function is None:
            raise UnsupportedError(f"the function {name} does not exist")
        types = [pa.string()] * len(function.parameters)
        result = function.kernel(*(pa.array([], each) for each in types)).type
        made.append(udf(partial(_computed, function.kernel, result), types, result, "immutable", name))
    return made


def _computed(kernel: Callable[..., Any], result: pa.DataType, *arguments: pa.Array) -> pa.Array:
    first = arguments[0].storage if isinstance(arguments[0], pa.ExtensionArray) else arguments[0]
    found = kernel(first, *map(_as_constant, arguments[1:]))
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.repeat(found.cast(result), len(arguments[0]))


def _as_constant(values: pa.Array) -> pa.Array | pa.Scalar:
    """Return the only value of an argument, of which DataFusion makes an array. Functions are faster with it."""
    if not len(values) or values.null_count or not pc.all(pc.equal(values, values[0])).as_py():
        return values
    return values[0]


def _result_schema(planned: pa.Schema, first: pa.RecordBatch | None) -> pa.Schema:
    """Return the schema of a result, with the types of the batches, since DataFusion plans those of a union wrongly."""
    if first is None:
        return planned
    return pa.schema(
        [made.with_nullable(made.nullable or plan.nullable) for plan, made in zip(planned, first.schema, strict=True)],
        first.schema.metadata,
    )


def _batches(
    schema: pa.Schema, first: pa.RecordBatch | None, rest: Iterator[pa.RecordBatch], source: _Source
) -> Iterator[pa.RecordBatch]:
    if first is None:
        return
    try:
        for batch in chain([first], rest):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
    except Exception as error:
        raise source.cause(error) from error


class _Source(pads.Dataset):
    """Dataset that is registered with DataFusion. It has one partition: rows stay in order, and the scan is parallel.

    Parameters
    ----------
    snapshot
        Version to query.
    options
        Keywords of the scanner.

    Attributes
    ----------
    most_rows
        Rows of a scan that the query can use; None for all.
    condition
        What rows of the scan must meet besides the filter that DataFusion passes; None for nothing.
    """

    def __init__(self, snapshot: Snapshot, options: dict[str, Any]) -> None:
        self._snapshot = snapshot
        self._options = options
        self._schema = make_scanner(snapshot, options).projected_schema
        self._failure: LanceError | None = None
        self.most_rows: int | None = None
        self.condition: pc.Expression | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def get_fragments(self, filter: pc.Expression | None = None) -> list[_Partition]:
        """Return the only partition."""
        return [_Partition(self)]

    def scanner(
        self, columns: Sequence[str] | Mapping[str, str] | None = None, filter: Any = None, **tuning: Any
    ) -> _Scan:
        """Make the scan for a pushed-down projection and filter."""
        kept = {name: value for name, value in self._options.items() if not name.startswith("with_row_")}
        if self.most_rows is not None and kept.get("limit") is None:
            kept["limit"] = self.most_rows
        if self.condition is not None:
            filter = self.condition if filter is None else filter & self.condition
        names = self._schema.names if columns is None else columns
        return _Scan(self, make_scanner(self._snapshot, {**kept, "columns": names, "filter": filter}))

    def answer(self, query: PlainQuery) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Answer a statement that needs no planner, with the schema and the batches that DataFusion gives."""
        if query.columns:
            self.most_rows = query.limit
            scan = self.scanner(query.columns if query.has_calls else list(query.columns), query.condition)
            return scan.schema, scan.to_batches()
        schema = pa.schema([pa.field(query.name, pa.int64(), nullable=False)], self._schema.metadata)
        options = {**self._options, "columns": [], "filter": query.condition}
        number = make_scanner(self._snapshot, options).count_rows()
        return schema, iter([pa.record_batch([pa.array([number])], schema)])

    def cause(self, error: Exception) -> Exception:
        """Return the error to raise: the original error of the scan, or that of DataFusion as an InvalidInputError."""
        if self._failure is not None:
            return self._failure
        if isinstance(error, LanceError):
            return error
        return InvalidInputError(f"SQL: {error}")


class _Partition:
    """Partition with all rows of a source."""

    def __init__(self, source: _Source) -> None:
        self._source = source

    def scanner(self, schema: pa.Schema | None = None, **options: Any) -> _Scan:
        """Make the scan of the source, which has the expected schema."""
        return self._source.scanner(**options)


class _Scan:
    """Scanner that keeps the original error of the scan, which DataFusion turns into text."""

    def __init__(self, source: _Source, scanner: LanceScanner) -> None:
        self._source = source
        self._scanner = scanner

    @property
    def schema(self) -> pa.Schema:
        return self._scanner.projected_schema

    @property
    def projected_schema(self) -> pa.Schema:
        return self._scanner.projected_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scanner.to_batches()
        except LanceError as error:
            self._source._failure = error
            raise
