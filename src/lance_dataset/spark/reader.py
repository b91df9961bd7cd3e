"""Reading: the driver plans once, and tasks scan slices of fragments of one version."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition

from lance_dataset import ColumnOrdering
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, SchemaError, nearest_name_hint
from lance_dataset.spark.batches import conform_batch
from lance_dataset.spark.jobs.shipping import Shipped
from lance_dataset.spark.narrowing.requests import Request
from lance_dataset.spark.options import ReadOptions
from lance_dataset.spark.partitions import RowPartition, RowSlice, WholeTable, partition_count, plan_partitions
from lance_dataset.spark.pushdown import translate
from lance_dataset.spark.snapshot import Snapshot
from lance_dataset.spark.types import arrow_schema, spark_schema

__all__ = ["ROW_COLUMNS", "LanceReader", "PushdownReader", "checked_scan", "delivered", "scan_slice", "select_fields"]

#: Columns that describe a row; unsigned in Lance, bigint in Spark.
ROW_COLUMNS = ("_rowid", "_rowaddr", "_fragid", "_row_created_at_version", "_row_last_updated_at_version")
_FRAGMENT_ID = "_fragid"
_FIRST_ROWS = 1024
_BATCH_ROWS = 32 * 1024
_BATCH_BYTES = 4 * 1024 * 1024
_FEW_ROWS = 64 * 1024


def select_fields(schema: pa.Schema, options: ReadOptions) -> pa.Schema:
    """Return the requested fields, by default all columns and the distance or score of a search.

    Raises
    ------
    FieldNotFoundError
        The dataset has no column of that name.
    """
    ranked = _ranked_by(options)
    if options.columns is None:
        return schema.append(ranked) if ranked else schema
    fields = []
    for name in options.columns:
        if name == "*":
            fields += list(schema)
        elif name in schema.names:
            fields.append(schema.field(name))
        elif name in ROW_COLUMNS:
            fields.append(pa.field(name, pa.int64()))
        elif ranked is not None and name == ranked.name:
            fields.append(ranked)
        else:
            hint = nearest_name_hint(name, [*schema.names, *ROW_COLUMNS])
            raise FieldNotFoundError(f"The dataset has no column {name!r}{hint}")
    return pa.schema(fields)


def _ranked_by(options: ReadOptions) -> pa.Field | None:
    if options.nearest:
        return pa.field("_distance", pa.float32())
    return pa.field("_score", pa.float32()) if options.full_text else None


def checked_scan(dataset: Any, options: ReadOptions, names: Iterable[str], filters: Iterable[str] = ()) -> Any:
    """Return a scanner of the whole dataset; making it checks all options against the dataset.

    Parameters
    ----------
    dataset
        Version to read.
    options
        Options of ``spark.read``.
    names
        Columns to read.
    filters
        Filters besides that of the options.

    Raises
    ------
    LanceError, TypeError
        A filter, a column or a search does not fit the dataset.
    """
    arguments: dict[str, Any] = {}
    if options.limit:
        arguments["limit"] = options.limit
    if options.order_by:
        arguments["order_by"] = [
            ColumnOrdering(name.lstrip("-"), not name.startswith("-")) for name in options.order_by
        ]
    if options.nearest:
        arguments["nearest"] = _parsed("nearest", options.nearest)
        if not isinstance(arguments["nearest"], dict):
            raise InvalidInputError(f"The option 'nearest' must be a JSON object: {options.nearest}")
    if options.full_text:
        text = options.full_text
        arguments["full_text_query"] = _parsed("full_text", text) if text.lstrip().startswith("{") else text
    if filters or options.filter:
        arguments["prefilter"] = True
    return dataset.scanner(
        columns=_stored_names(names),
        filter=_conjunction([*([options.filter] if options.filter else []), *filters]),
        **arguments,
        **_batch_limits(options),
    )


def _ordering(name: str) -> ColumnOrdering:
    return ColumnOrdering(name.removeprefix("-"), ascending=not name.startswith("-"))


def _parsed(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"The option {option!r} is not JSON ({error}): {text!r}") from None


def _conjunction(filters: list[str]) -> str | None:
    return " AND ".join(f"({text})" for text in filters) or None


def _stored_names(names: Iterable[str]) -> list[str]:
    """Return the columns to scan; the fragment of a row is known by its address."""
    return list(dict.fromkeys("_rowaddr" if name == _FRAGMENT_ID else name for name in names))


def _batch_limits(options: ReadOptions) -> dict[str, int]:
    if options.batch_size:
        return {"batch_size": options.batch_size}
    return {"batch_size": _BATCH_ROWS, "batch_size_bytes": _BATCH_BYTES}


class LanceReader(Shipped, DataSourceReader):
    """Reads one version of a dataset.

    Parameters
    ----------
    snapshot
        Version to read.
    dataset
        The same version, opened; used for planning only.
    options
        Options of ``spark.read``.
    schema
        Spark schema to deliver: that of the data source, or one given by the user, which may omit columns.
    """

    def __init__(self, snapshot: Snapshot, dataset: Any, options: ReadOptions, schema: Any) -> None:
        self.snapshot = snapshot
        self.options = options
        self.target = arrow_schema(schema)
        self.filters: list[str] = []
        self._dataset = dataset
        fields = select_fields(dataset.schema, options)
        missing = [name for name in schema.fieldNames() if name not in fields.names]
        if missing:
            raise FieldNotFoundError(
                f"The dataset has no column {missing[0]!r}{nearest_name_hint(missing[0], fields.names)}"
            )
        _check_types(schema, pa.schema([fields.field(name) for name in schema.fieldNames()]))

    def partitions(self) -> list[InputPartition]:
        """Return equal shares of the rows, in row order, or the whole table if that is one small task."""
        if self.options.at_once or self._is_looked_up():
            return [WholeTable()]
        sizes = [(fragment.fragment_id, fragment.physical_rows) for fragment in self._dataset.get_fragments()]
        return list(plan_partitions(sizes, partition_count(sum(size for _, size in sizes), self.options)))

    def _is_looked_up(self) -> bool:
        """Return True if indices find the rows, and they are few."""
        if not (self.filters or self.options.filter):
            return False
        scanner = checked_scan(self._dataset, self.options, self.target.names, self.filters)
        return "ScalarIndexQuery: query=" in scanner.explain_plan() and scanner.count_rows() <= _FEW_ROWS

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Scan the slices of one partition; a small batch comes first, for queries that need only some rows."""
        return self.read_narrowed(partition, None)

    def read_narrowed(self, partition: InputPartition, request: Request | None) -> Iterator[pa.RecordBatch]:
        """Scan the slices of one partition for what a query needs of them; None for all."""
        dataset = self.snapshot.open()
        if request is None:
            yield from self._read(dataset, partition, self.target, self.filters)
            return
        filters = [] if self.options.at_once else request.filters(self.target, dataset.schema)
        target = request.shown(self.target)
        for batch in request.few(self._read(dataset, partition, target, [*self.filters, *filters])):
            yield request.delivered(batch)

    def _read(
        self, dataset: Any, partition: InputPartition, target: pa.Schema, filters: list[str]
    ) -> Iterator[pa.RecordBatch]:
        first = True
        for fitted in delivered(self._batches(dataset, partition, target.names, filters), target):
            if first and fitted.num_rows > _FIRST_ROWS:
                yield fitted.slice(0, _FIRST_ROWS)
                fitted = fitted.slice(_FIRST_ROWS)
            first = False
            yield fitted

    def _batches(
        self, dataset: Any, partition: InputPartition, names: list[str], filters: list[str]
    ) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, RowPartition):
            for row_slice in partition.slices:
                yield from scan_slice(dataset, row_slice, self.options, names, filters)
        else:
            yield from checked_scan(dataset, self.options, names, filters).to_batches()

    def _shipped_state(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_dataset"}


class PushdownReader(LanceReader):
    """Reader that accepts filters of the query; a separate class because Spark checks whether the method exists.

    It is used only on request, because Spark keeps the outcome of the last pushdown with the loaded relation. Spark
    then uses it for every other scan of that relation, even with other filters or none.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Accept the filters that Lance evaluates exactly like Spark; return the others."""
        rest = []
        for condition in filters:
            text = None if self.options.at_once else translate(condition, self._dataset.schema)
            if text is None:
                rest.append(condition)
            else:
                self.filters.append(text)
        return rest


def scan_slice(
    dataset: Any, row_slice: RowSlice, options: ReadOptions, names: Iterable[str], filters: Iterable[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Return the batches of a slice of a fragment.

    Parameters
    ----------
    dataset
        Version to read.
    row_slice
        Physical rows of a fragment.
    options
        Options of ``spark.read``.
    names
        Columns to read.
    filters
        Filters besides that of the options.
    """
    fragment = dataset.get_fragment(row_slice.fragment_id)
    extent = {} if row_slice.whole else {"row_range": (row_slice.start, row_slice.stop)}
    scanner = fragment.scanner(
        columns=_stored_names(names),
        filter=_conjunction([*([options.filter] if options.filter else []), *filters]),
        **_batch_limits(options),
        **extent,
    )
    return iter(scanner.to_batches())


def delivered(batches: Iterable[pa.RecordBatch], target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the batches that have rows in the layout of a Spark schema."""
    for batch in batches:
        if batch.num_rows:
            yield conform_batch(_with_fragments(batch, target), target, "read into Spark")


def _with_fragments(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the fragment ids that the target schema asks for."""
    if _FRAGMENT_ID not in target.names:
        return batch
    fragments = pc.shift_right(batch.column("_rowaddr"), pa.scalar(32, pa.uint64()))
    return batch.append_column(_FRAGMENT_ID, fragments)


def _check_types(wanted: Any, fields: pa.Schema) -> None:
    """Check that a schema given by the user has the Spark types of the columns."""
    for asked, found in zip(wanted.fields, spark_schema(fields).fields, strict=True):
        if asked.dataType.simpleString() != found.dataType.simpleString():
            raise SchemaError(
                f"Column {asked.name!r} is read as {found.dataType.simpleString()}, not as "
                f"{asked.dataType.simpleString()}; leave out .schema(...) and cast the column afterwards"
            )
        if found.nullable and not asked.nullable:
            raise SchemaError(f"Column {asked.name!r} may hold nulls; declare it nullable")
