"""Outcomes of the same call on two implementations, and their comparison."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset

Call = Callable[[Any, Any], Any]

RECORD = pa.struct(
    [("x", pa.int32()), ("y", pa.string()), ("deep", pa.struct([("z", pa.float64()), ("w", pa.list_(pa.int8()))]))]
)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata={"unit": "none"}),
        pa.field("n", pa.int32()),
        pa.field("f", pa.float64()),
        pa.field("flag", pa.bool_()),
        pa.field("s", pa.string(), metadata={b"note": "ä".encode()}),
        pa.field("big", pa.large_string()),
        pa.field("raw", pa.binary()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("day", pa.date32()),
        pa.field("st", RECORD),
        pa.field("li", pa.list_(pa.field("item", pa.int64()))),
        pa.field("vec", pa.list_(pa.float32(), 4)),
        pa.field("With Space", pa.int8()),
        pa.field("cat", pa.dictionary(pa.int8(), pa.string())),
        pa.field("void", pa.null()),
    ],
    metadata={"made": "here", "k": "v"},
)
ROWS = 60


def build_table(rows: int = ROWS, start: int = 0) -> pa.Table:
    """Return rows whose values follow from their number; every nullable column has nulls."""

    def some(period: int, make: Callable[[int], Any]) -> list[Any]:
        return [None if row % period == period - 1 else make(row) for row in range(start, start + rows)]

    columns = [
        list(range(start, start + rows)),
        some(7, lambda row: (row * 37) % 11),
        some(9, lambda row: float("nan") if row % 13 == 5 else row / 4),
        some(5, lambda row: row % 2 == 0),
        some(6, lambda row: f"text {row % 8}"),
        some(8, lambda row: "ü" * (row % 4)),
        some(10, lambda row: bytes([row % 256]) * (row % 3)),
        some(4, lambda row: dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(hours=row)),
        some(11, lambda row: dt.date(2024, 1, 1) + dt.timedelta(days=row)),
        # file version 2.0 cannot hold null structs
        [
            {"x": row, "y": None if row % 6 == 5 else f"y{row}", "deep": {"z": row / 2, "w": [1] * (row % 4)}}
            for row in range(start, start + rows)
        ],
        some(5, lambda row: list(range(row % 4))),
        some(12, lambda row: [row, 1.0, 2.0, 3.0]),
        some(3, lambda row: row % 100),
        some(7, lambda row: ("red", "green", "blue")[row % 3]),
        [None] * rows,
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


@dataclass(frozen=True)
class Outcome:
    """Outcome of a call: a value, or the exception it raised."""

    value: Any = None
    error: BaseException | None = None

    @classmethod
    def of(cls, call: Call, library: Any, dataset: Any) -> Outcome:
        """Run a call; lazy results are read to the end."""
        try:
            return cls(plain(call(library, dataset)))
        except (Exception, pa.ArrowException) as error:
            return cls(error=error)
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            return cls(error=error)


def plain(value: Any) -> Any:
    """Return a value as built-in objects that compare by content: NaN equals NaN, schemas count, chunks do not."""
    if isinstance(value, pa.Table | pa.RecordBatch):
        value.validate(full=True)
        return {"schema": plain(value.schema), "rows": value.num_rows, "columns": repr(value.to_pydict())}
    if isinstance(value, pa.Schema):
        return [(str(field), plain(field)) for field in value], value.metadata
    if isinstance(value, pa.Field):
        below = [plain(value.type.field(i)) for i in range(value.type.num_fields)]
        return value.name, str(value.type), value.nullable, value.metadata, below
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return str(value.type), repr(value.to_pylist())
    if isinstance(value, pa.RecordBatchReader):
        return plain(value.read_all())
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | Iterator):
        return [plain(item) for item in value]
    if hasattr(value, "to_dict") and type(value).__module__.startswith("pandas"):
        return repr(value.to_dict("list")), [str(kind) for kind in value.dtypes]
    if isinstance(value, np.generic):
        return value.item()
    return value


def built_in(error: BaseException) -> type[BaseException]:
    """Return the built-in class that handlers of an exception of the reference name."""
    for base in type(error).__mro__:
        if base.__module__ == "builtins" or base.__module__ == "pyarrow.lib":
            return base
    return BaseException


def assert_same_outcome(ours: Outcome, theirs: Outcome) -> None:
    """Assert the same value, or an exception that handlers written for the reference catch."""
    if theirs.error is None:
        if ours.error is not None:
            raise ours.error
        assert ours.value == theirs.value
        return
    assert ours.error is not None, f"no error, but the reference raises {theirs.error!r}"
    if type(theirs.error).__name__ == "PanicException":
        assert isinstance(ours.error, lance_dataset.LanceError)
        return
    assert isinstance(ours.error, built_in(theirs.error)), f"{ours.error!r} is not a {built_in(theirs.error).__name__}"


def check_call(call: Call, both: tuple[Any, Any], *, different: bool = False) -> None:
    """Run a call on both. One that is listed as different must work or raise our own error, and still differ."""
    ours, theirs = Outcome.of(call, lance_dataset, both[0]), Outcome.of(call, lance, both[1])
    if not different:
        assert_same_outcome(ours, theirs)
        return
    assert ours.error is None or isinstance(ours.error, lance_dataset.LanceError | TypeError), ours.error
    try:
        assert_same_outcome(ours, theirs)
    except Exception:
        return
    pytest.fail("no longer different from the reference: take it from the list")
