"""Measured tables, generated batch by batch from a seed: the same rows on every machine and in every process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

import lineitem

SEED = 20240607
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)

VECTOR_WIDTH = 128
WIDE_COLUMNS = 1_000


@dataclass(frozen=True)
class Comparison:
    """The filter ``column < bound``, which every contender expresses in its own language."""

    column: str
    bound: int


@dataclass(frozen=True)
class Dataset:
    """One measured table.

    Attributes
    ----------
    rows
        Number of rows at scale 1.
    batch_rows
        Rows of one generated batch.
    make_batch
        Function from a seeded random generator, the first row number and the row count to a batch.
    single_columns
        Columns that are also scanned alone; all columns if there are few.
    filter_column, filter_end
        Column that filters compare with a bound. Its values are uniform between 0 and the end; None for the row count.
    record_columns
        Columns of takes of single rows, like those of a program that shows a record: up to six.
    """

    name: str
    rows: int
    batch_rows: int
    schema: pa.Schema
    make_batch: Callable[[np.random.Generator, int, int], list[pa.Array]]
    single_columns: tuple[str, ...]
    filter_column: str
    filter_end: int | None
    record_columns: tuple[str, ...]

    def comparison(self, rows: int, share: float = 0.1) -> Comparison:
        """Return the filter that keeps about that share of the rows."""
        end = rows if self.filter_end is None else self.filter_end
        return Comparison(self.filter_column, max(1, round(end * share)))

    def only(self, column: str) -> Dataset:
        """Return one column as a table in memory; it cannot generate batches or be filtered by another column."""
        schema = pa.schema([self.schema.field(column)])
        return replace(
            self,
            name=f"{self.name}.{column}",
            schema=schema,
            single_columns=(),
            record_columns=(column,),
            make_batch=_unavailable,
        )

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the first `rows` rows; each batch depends only on its position."""
        for start in range(0, rows, self.batch_rows):
            rng = np.random.default_rng((SEED, start))
            count = min(self.batch_rows, rows - start)
            yield pa.RecordBatch.from_arrays(self.make_batch(rng, start, count), schema=self.schema)

    def reader(self, rows: int) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, self.batches(rows))

    def table(self, rows: int) -> pa.Table:
        return pa.Table.from_batches(self.batches(rows), self.schema)


def _unavailable(_rng: np.random.Generator, _start: int, _count: int) -> list[pa.Array]:
    raise NotImplementedError("a single column of a measured table is not generated alone; select it from the table")


def _offsets(lengths: np.ndarray) -> np.ndarray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _strings(rng: np.random.Generator, count: int) -> pa.Array:
    offsets = _offsets(rng.integers(12, 29, count))
    letters = _LETTERS[rng.integers(0, 26, int(offsets[-1]), np.uint8)]
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))


def _lists(rng: np.random.Generator, count: int) -> pa.Array:
    offsets = _offsets(rng.integers(0, 7, count))
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(rng.integers(0, 100_000, offsets[-1], np.int32)))


def _mixed(rng: np.random.Generator, start: int, count: int) -> list[pa.Array]:
    return [
        pa.array(np.arange(start, start + count, dtype=np.int64)),
        pa.array(rng.integers(0, 1_000_000, count, np.int32)),
        pa.array(rng.standard_normal(count)),
        _strings(rng, count),
        pa.array(rng.integers(-(2**40), 2**40, count), mask=rng.random(count) < 0.1),
        _lists(rng, count),
    ]


def _vectors(rng: np.random.Generator, start: int, count: int) -> list[pa.Array]:
    values = pa.array(rng.standard_normal(count * VECTOR_WIDTH, np.float32))
    return [
        pa.array(np.arange(start, start + count, dtype=np.int64)),
        pa.FixedSizeListArray.from_arrays(values, VECTOR_WIDTH),
    ]


def _wide(rng: np.random.Generator, _start: int, count: int) -> list[pa.Array]:
    return [
        pa.array(
            rng.standard_normal(count, np.float32)
            if pa.types.is_floating(field.type)
            else rng.integers(0, 1_000_000, count, np.int32)
        )
        for field in _WIDE_SCHEMA
    ]


def _wide_mixed(rng: np.random.Generator, _start: int, count: int) -> list[pa.Array]:
    makers = (_integers, _with_nulls, _flags, _reals, _words, _names)
    return [makers[number % len(makers)](rng, count) for number in range(WIDE_COLUMNS)]


def _integers(rng: np.random.Generator, count: int) -> pa.Array:
    return pa.array(rng.integers(0, 1_000_000, count, np.int32))


def _with_nulls(rng: np.random.Generator, count: int) -> pa.Array:
    return pa.array(rng.integers(-(2**40), 2**40, count), mask=rng.random(count) < 0.1)


def _flags(rng: np.random.Generator, count: int) -> pa.Array:
    return pa.array(rng.random(count) < 0.3)


def _reals(rng: np.random.Generator, count: int) -> pa.Array:
    return pa.array(rng.standard_normal(count))


def _words(rng: np.random.Generator, count: int) -> pa.Array:
    offsets = _offsets(rng.integers(4, 13, count))
    letters = _LETTERS[rng.integers(0, 26, int(offsets[-1]), np.uint8)]
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))


def _names(rng: np.random.Generator, count: int) -> pa.Array:
    few = pa.array([f"a name of {letter}" for letter in "abcdefghijklmnopqrst"])
    return few.take(pa.array(rng.integers(0, len(few), count, np.int32)))


_WIDE_SCHEMA = pa.schema([(f"c{i:03}", pa.int32() if i % 2 == 0 else pa.float32()) for i in range(WIDE_COLUMNS)])

MIXED = Dataset(
    name="mixed",
    rows=5_000_000,
    batch_rows=65_536,
    schema=pa.schema(
        [
            ("id", pa.int64()),
            ("i32", pa.int32()),
            ("f64", pa.float64()),
            ("text", pa.string()),
            ("nullable", pa.int64()),
            ("list", pa.list_(pa.int32())),
        ]
    ),
    make_batch=_mixed,
    single_columns=("id", "i32", "f64", "text", "nullable", "list"),
    filter_column="i32",
    filter_end=1_000_000,
    record_columns=("id", "i32", "f64", "text", "nullable", "list"),
)

VECTORS = Dataset(
    name="vectors",
    rows=200_000,
    batch_rows=8_192,
    schema=pa.schema([("id", pa.int64()), ("vector", pa.list_(pa.float32(), VECTOR_WIDTH))]),
    make_batch=_vectors,
    single_columns=("id", "vector"),
    filter_column="id",
    filter_end=None,
    record_columns=("id", "vector"),
)

WIDE = Dataset(
    name="wide",
    rows=10_000,
    batch_rows=10_000,
    schema=_WIDE_SCHEMA,
    make_batch=_wide,
    single_columns=("c000", "c501"),
    filter_column="c000",
    filter_end=1_000_000,
    record_columns=("c000", "c100", "c200", "c300", "c400", "c501"),
)

_MIXED_TYPES = (pa.int32(), pa.int64(), pa.bool_(), pa.float64(), pa.string(), pa.string())

WIDE_MIXED = replace(
    WIDE,
    name="wide-mixed",
    schema=pa.schema([(f"c{i:03}", _MIXED_TYPES[i % len(_MIXED_TYPES)]) for i in range(WIDE_COLUMNS)]),
    make_batch=_wide_mixed,
    single_columns=("c000", "c001", "c004", "c005"),
    record_columns=("c000", "c001", "c002", "c003", "c004", "c005"),
)

LINEITEM = Dataset(
    name="lineitem",
    rows=2_000_000,
    batch_rows=65_536,
    schema=lineitem.SCHEMA,
    make_batch=lineitem.make_batch,
    single_columns=tuple(lineitem.SCHEMA.names),
    filter_column="partkey",
    filter_end=lineitem.PARTS,
    record_columns=("orderkey", "partkey", "quantity", "shipdate", "shipmode", "comment"),
)

DATASETS = {dataset.name: dataset for dataset in (MIXED, VECTORS, WIDE, WIDE_MIXED, LINEITEM)}
