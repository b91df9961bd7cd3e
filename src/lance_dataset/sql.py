"""SQL queries over a dataset: DataFusion plans and runs them, columns and conditions are pushed into our scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from lance_dataset.errors import InvalidInputError, LanceError, UnsupportedError
from lance_dataset.query.expr.functions.registry import find_function
from lance_dataset.scanner.options import checked_option

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset
    from lance_dataset.scanner import LanceScanner

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
    """An SQL query in the making; get it with `LanceDataset.sql`. Every method but `build` returns the builder.

    Parameters
    ----------
    dataset
        What is queried: the version that it shows now, wherever the handle moves.
    sql
        One statement.
    """

    def __init__(self, dataset: LanceDataset, sql: str) -> None:
        if not isinstance(sql, str):
            raise TypeError(f"sql must be text, not {type(sql).__name__}")
        self._dataset = dataset._snapshot()
        self._sql = sql
        self._table_name = _DEFAULT_TABLE
        self._options: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"SqlQueryBuilder({self._sql!r})"

    def table_name(self, table_name: str) -> SqlQueryBuilder:
        """Call the table something other than ``dataset``."""
        if not isinstance(table_name, str):
            raise TypeError(f"table_name must be text, not {type(table_name).__name__}")
        self._table_name = table_name
        return self

    def with_row_id(self, with_row_id: bool = True) -> SqlQueryBuilder:
        """Whether the table has the column ``_rowid``."""
        return self._set("with_row_id", with_row_id)

    def with_row_addr(self, with_row_addr: bool = True) -> SqlQueryBuilder:
        """Whether the table has the column ``_rowaddr``."""
        return self._set("with_row_address", with_row_addr)

    def batch_size(self, batch_size: int) -> SqlQueryBuilder:
        """Most rows of a batch of the scan."""
        return self._set("batch_size", batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> SqlQueryBuilder:
        """About as many bytes as a batch of the scan may have."""
        return self._set("batch_size_bytes", batch_size_bytes)

    def blob_handling(self, blob_handling: str) -> SqlQueryBuilder:
        """How blob columns come: ``all_binary``, ``blobs_descriptions`` (the default) or ``all_descriptions``."""
        return self._set("blob_handling", blob_handling)

    def build(self) -> SqlQuery:
        """The query, which has not been looked at yet: errors come when it runs."""
        return SqlQuery(self._dataset, self._sql, self._table_name, dict(self._options))

    def _set(self, name: str, value: Any) -> SqlQueryBuilder:
        if value is None:
            raise TypeError(f"{name} needs a value")
        self._options[name] = checked_option(name, value)
        return self


class FFILanceTableProvider:
    """A dataset as DataFusion's own kind of table, which needs compiled code for its release; not available.

    Raises
    ------
    UnsupportedError
        Always; `LanceDataset.sql` runs queries.
    """

    def __init__(self, dataset: LanceDataset, *, with_row_id: bool = False, with_row_addr: bool = False) -> None:
        raise UnsupportedError(
            "FFILanceTableProvider is not supported by this release: use dataset.sql(...), which has with_row_id() and "
            "with_row_addr(), or register the result of a scan with SessionContext.from_arrow"
        )


class SqlQuery:
    """An SQL query over one version of a dataset, which can run any number of times. Made by `SqlQueryBuilder`.

    Parameters
    ----------
    dataset
        The version.
    sql
        One statement.
    table_name
        What the statement calls the dataset.
    options
        Keywords of the scanner.
    """

    def __init__(self, dataset: LanceDataset, sql: str, table_name: str, options: dict[str, Any]) -> None:
        self._dataset = dataset
        self._sql = sql
        self._table_name = table_name
        self._options = options

    def __repr__(self) -> str:
        return f"SqlQuery({self._sql!r})"

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """Run and collect.

        Returns
        -------
        list of pyarrow.RecordBatch
            Those with rows.

        Raises
        ------
        InvalidInputError
            The statement is wrong, or failed.
        UnsupportedError
            DataFusion is not installed.
        LanceError
            What the scan raised.
        """
        return [batch for batch in self._run()[1] if batch.num_rows]

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """Run as a stream: the statement is checked, planned and started at once, rows are read as they are asked for.

        Raises
        ------
        InvalidInputError, UnsupportedError, LanceError
            As of `to_batch_records`; errors of rows come from the reader.
        """
        return pa.RecordBatchReader.from_batches(*self._run())

    def _run(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        source = _Source(self._dataset, self._options)
        context = _context(self._options.get("batch_size"))
        try:
            context.register_dataset(self._table_name, source)
            frame = context.sql(self._sql)
            batches = (batch.to_pyarrow() for batch in frame.execute_stream())
            first = next(batches, None)
        except Exception as error:
            raise source.cause(error) from error
        schema = _result_schema(frame.schema(), first)
        return schema, _batches(schema, first, batches, source)


def _context(batch_size: int | None) -> Any:
    try:
        from datafusion import SessionConfig, SessionContext
    except ModuleNotFoundError as error:
        raise UnsupportedError("SQL queries need the package datafusion: pip install lance-dataset[sql]") from error
    # rows stay in the order of the scan, which runs in parallel by itself
    config = SessionConfig().set("datafusion.optimizer.enable_round_robin_repartition", "false")
    context = SessionContext(config if batch_size is None else config.with_batch_size(batch_size))
    for function in _own_functions():
        context.register_udf(function)
    return context


@cache
def _own_functions() -> list[Any]:
    """Functions of filters that DataFusion does not have: they take text, JSON columns included."""
    from datafusion import udf

    made = []
    for name in _OWN_FUNCTIONS:
        function = find_function(name)
        if function is None:
            raise UnsupportedError(f"the function {name} is not there")
        types = [pa.string()] * len(function.parameters)
        result = function.kernel(*(pa.array([], each) for each in types)).type
        made.append(udf(partial(_computed, function.kernel, result), types, result, "immutable", name))
    return made


def _computed(kernel: Callable[..., Any], result: pa.DataType, *arguments: pa.Array) -> pa.Array:
    found = kernel(*arguments)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.repeat(found.cast(result), len(arguments[0]))


def _result_schema(planned: pa.Schema, first: pa.RecordBatch | None) -> pa.Schema:
    """The schema of a result: types of the batches, since those of a union are planned wrongly by DataFusion."""
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
    """A dataset as DataFusion sees it: one partition, so that rows come in order and our scan runs in parallel.

    Parameters
    ----------
    dataset
        The version.
    options
        Keywords of the scanner.
    """

    def __init__(self, dataset: LanceDataset, options: dict[str, Any]) -> None:
        self._dataset = dataset
        self._options = options
        self._schema = dataset.scanner(**options).projected_schema
        self._failure: LanceError | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def get_fragments(self, filter: pc.Expression | None = None) -> list[_Partition]:
        """The only partition."""
        return [_Partition(self)]

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **tuning: Any
    ) -> _Scan:
        """The scan of some columns, of the rows where a pushed condition holds."""
        kept = {name: value for name, value in self._options.items() if not name.startswith("with_row_")}
        names = self._schema.names if columns is None else list(columns)
        return _Scan(self, self._dataset.scanner(columns=names, filter=filter, **kept))

    def cause(self, error: Exception) -> Exception:
        """What to tell the user of an error: that of the scan, as it was, or that of DataFusion, as one of ours."""
        if self._failure is not None:
            return self._failure
        if isinstance(error, LanceError):
            return error
        return InvalidInputError(f"SQL: {error}")


class _Partition:
    """All rows of a source."""

    def __init__(self, source: _Source) -> None:
        self._source = source

    def scanner(self, schema: pa.Schema | None = None, **options: Any) -> _Scan:
        """As that of the source, with the schema that is expected."""
        return self._source.scanner(**options)


class _Scan:
    """A scanner that remembers the error that DataFusion makes a text of."""

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
