"""Requests of the optimizer's rule, read by the tasks of a scan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds

from lance_dataset.spark.batches import with_unscaled_decimals
from lance_dataset.spark.pushdown import translate

__all__ = ["REQUEST_COLUMN", "WIDE_COLUMN", "Request"]

#: Name of the column that marks a scan to the rule, and of the one that the rule puts in its place.
WIDE_COLUMN, REQUEST_COLUMN = "lance_scan", "lance_request"

_TWO: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        ds.EqualTo, ds.EqualNullSafe, ds.GreaterThan, ds.GreaterThanOrEqual, ds.LessThan, ds.LessThanOrEqual,
    )
}  # fmt: skip
_TEXTS: dict[str, Any] = {
    "StartsWith": ds.StringStartsWith,
    "EndsWith": ds.StringEndsWith,
    "Contains": ds.StringContains,
}
_ONE: dict[str, Any] = {"IsNull": ds.IsNull, "IsNotNull": ds.IsNotNull}
#: The comparison with its sides exchanged.
_MIRRORED = {
    "EqualTo": "EqualTo",
    "EqualNullSafe": "EqualNullSafe",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
}


@dataclass(frozen=True)
class Request:
    """Columns, conditions and number of rows that a query needs of a scan.

    Attributes
    ----------
    columns
        Positions of the columns among those of the frame, in order.
    conditions
        Trees of expressions. Only rows for which all are true are needed; others do no harm.
    values
        Literals of the conditions.
    limit
        Number of rows that are needed at most; negative for all.
    unscaled
        True if decimals of at most 18 digits are delivered as int64, without their scale.
    """

    columns: tuple[int, ...]
    conditions: tuple[Mapping[str, Any], ...]
    values: tuple[Any, ...]
    limit: int
    unscaled: bool

    @classmethod
    def read(cls, batch: pa.RecordBatch) -> Request | None:
        """Read the request from a task's row; None if the query needs all."""
        if REQUEST_COLUMN not in batch.schema.names or not batch.num_rows:
            return None
        text, *values = batch.column(REQUEST_COLUMN).flatten()
        request = json.loads(text[0].as_py())
        literals = tuple(_value(column) for column in values)
        return cls(
            tuple(request["columns"]),
            tuple(request["conditions"]),
            literals,
            int(request["limit"]),
            bool(request["unscaled"]),
        )

    def shown(self, columns: pa.Schema) -> pa.Schema:
        """Return those of the columns of a frame that are needed."""
        return pa.schema([columns.field(position) for position in self.columns])

    def delivered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch as the rule expects it.

        Raises
        ------
        UnsupportedError
            A decimal has more digits than its type says.
        """
        return with_unscaled_decimals(batch) if self.unscaled else batch

    def few(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield as many rows as are needed."""
        left = self.limit
        for batch in batches:
            if left < 0:
                yield batch
                continue
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)
            if not left:
                return

    def filters(self, shown: pa.Schema, stored: pa.Schema) -> list[str]:
        """Return those conditions in Lance's SQL that have exactly the same meaning there.

        Parameters
        ----------
        shown
            Columns of the frame, to which positions refer.
        stored
            Schema of the dataset.
        """
        texts = (_text(tree, self.values, shown, stored) for tree in self.conditions)
        return [text for text in texts if text is not None]


class _Unknown:
    """A literal that Python has no value for, such as a date after the year 9999."""


def _value(column: pa.Array) -> Any:
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp("us", "UTC"))  # Python does not know all names of Java's time zones
    try:
        return column[0].as_py()
    except (ValueError, OverflowError):
        return _Unknown()


def _text(tree: Mapping[str, Any], values: Sequence[Any], shown: pa.Schema, stored: pa.Schema) -> str | None:
    call = tree.get("call")
    if call in ("And", "Or"):
        left, right = (_text(side, values, shown, stored) for side in tree["arguments"])
        return None if left is None or right is None else f"({left}) {call.upper()} ({right})"
    if call == "Not":
        inner = _text(tree["arguments"][0], values, shown, stored)
        return None if inner is None else f"NOT ({inner})"
    condition = _condition(tree, values, shown)
    return None if condition is None else translate(condition, stored)


def _condition(tree: Mapping[str, Any], values: Sequence[Any], shown: pa.Schema) -> Any:
    """Return a filter of Spark's data sources, or None."""
    call, arguments = tree.get("call"), tree.get("arguments", ())
    if call is None:  # a column of truth values
        path = _path(tree, shown)
        return ds.EqualTo(path, True) if path else None
    first = _path(arguments[0], shown) if arguments else None
    if call in _ONE:
        return _ONE[call](first) if first else None
    if call in ("In", "InSet"):
        members = [_literal(argument, values) for argument in arguments[1:]]
        return ds.In(first, tuple(members)) if first and not _unknown(members) else None
    if len(arguments) != 2:
        return None
    if first is None and call in _MIRRORED:
        call, arguments = _MIRRORED[call], arguments[::-1]
        first = _path(arguments[0], shown)
    kind, value = (_TWO | _TEXTS).get(call), _literal(arguments[1], values)
    return kind(first, value) if kind and first and not _unknown([value]) else None


def _path(tree: Mapping[str, Any], shown: pa.Schema) -> tuple[str, ...] | None:
    """Return the names of a column, or of a field of a struct."""
    positions = []
    while "of" in tree:
        positions.append(tree["field"])
        tree = tree["of"]
    if tree.get("column", -1) < 0:
        return None
    field = shown.field(tree["column"])
    names = [field.name]
    for position in reversed(positions):
        field = field.type.field(position)
        names.append(field.name)
    return tuple(names)


def _literal(tree: Mapping[str, Any], values: Sequence[Any]) -> Any:
    number = tree.get("value", -1)
    return values[number] if number >= 0 else _Unknown()


def _unknown(values: Sequence[Any]) -> bool:
    return any(isinstance(value, _Unknown) for value in values)
