"""Tests that thousands of generated expressions have the values that the reference, or DuckDB, computes.

Every pair of an expression and a table counts once. The tables have nulls, no nulls, and no rows; several fragments
with deletions; and each of the stable file versions. The grammar leaves out intended differences:

* ``log(x, x)``, ``regexp_instr`` with a group and an occurrence: the reference folds the one to 1 for every x, and
  takes the first occurrence in the other.
* ``coalesce`` and similar functions of decimals beside floats, ``power`` of decimals: the reference rounds to a
decimal.
* The precision of decimals: smaller beside number literals here; products of 128 and 256 bits have fewer places.
* Zeros of both signs: equal here, as in SQL; different in the reference, except in comparisons with literals.
* ``nvl2``: the reference converts the results to the type of the test.
* Timestamps of two time zones, dates beside timestamps, views and dictionaries: other types, the same values.
* Number literals with a point beside integers and decimals, ``CAST('1e2' AS DECIMAL)``: the reference refuses them.
* Float16 columns: computed as float32 here, and as float64 in most of the reference.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import duckdb
import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.grammar.expressions import DuckGrammar, ExpressionGrammar

import lance_dataset
from lance_dataset.expr.compiled import compile_expression

SEED = int(os.environ.get("CORPUS_SEED", "1"))
#: Number of expressions for each of the four tables. A few of them fail in the reference and do not count.
EXPRESSIONS = int(os.environ.get("CORPUS_EXPRESSIONS", "800"))
AT_ONCE = 50
#: Types treated as equal: the reference returns views in places, also of large strings.
PLAIN = {pa.string_view(): pa.string(), pa.large_string(): pa.string(), pa.binary_view(): pa.binary()}


@dataclass(frozen=True)
class Pair:
    """A table as the reference and as this library sees it."""

    reference: lance.LanceDataset
    ours: lance_dataset.LanceDataset


def _without_nulls(table: pa.Table) -> pa.Table:
    columns = []
    for column in table.columns:
        known = column.combine_chunks().drop_null()
        if pa.types.is_struct(known.type):  # 2.0 has no null structs
            known = known.filter(pc.is_valid(known.field("in")))
        columns.append(known.take(pa.array([row % len(known) for row in range(table.num_rows)])))
    return pa.Table.from_arrays(columns, schema=table.schema)


@pytest.fixture(scope="module")
def tables(table, tmp_path_factory) -> dict[str, Pair]:
    folder = tmp_path_factory.mktemp("corpus")
    made = {
        "nulls": (table, "2.1", True),
        "full": (_without_nulls(table), "2.0", False),
        "deleted": (table.take(pc.sort_indices(table["i"])), "2.2", True),
        "empty": (table.slice(0, 0), "2.1", False),
    }
    pairs = {}
    for name, (data, version, deletions) in made.items():
        uri = str(folder / f"{name}.lance")
        reference = lance.write_dataset(data, uri, data_storage_version=version, max_rows_per_file=19)
        if deletions:
            reference.delete("id % 7 = 3 OR id = 20")
        pairs[name] = Pair(lance.dataset(uri), lance_dataset.dataset(uri))
    return pairs


def _distinct(generate: Callable[[], str], count: int) -> list[str]:
    texts: dict[str, None] = {}
    while len(texts) < count:
        texts[generate()] = None
    return list(texts)


def _columns(dataset, texts: Iterable[str]) -> list[pa.ChunkedArray]:
    """Return the values of expressions, of many in one scan unless one of them fails."""
    named = {f"c{place}": text for place, text in enumerate(texts)}
    data = dataset.to_table(columns={"id": "id", **named})
    return [data[name] for name in named]


def _values(dataset, texts: list[str]) -> Iterator[pa.ChunkedArray | Exception]:
    try:
        yield from _columns(dataset, texts)
    except Exception as error:
        if len(texts) == 1:
            yield error
            return
        half = len(texts) // 2
        yield from _values(dataset, texts[:half])
        yield from _values(dataset, texts[half:])


def same_value(left, right) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=1e-6, abs_tol=1e-300)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    return left == right


def _rows(values: pa.ChunkedArray) -> list[object]:
    """Return Python values, or numbers for values without a Python type."""
    arrow = values.type
    if pa.types.is_timestamp(arrow) or pa.types.is_duration(arrow) or pa.types.is_time64(arrow):
        return values.cast(pa.int64()).to_pylist()
    if pa.types.is_date32(arrow):
        return values.cast(pa.int32()).to_pylist()
    return values.to_pylist()


def _difference(expected: pa.ChunkedArray | Exception, found: pa.ChunkedArray | Exception) -> object | None:
    """Return the difference, or None if there is none or the reference refuses what this library computes."""
    if isinstance(expected, Exception):
        data_error = "ArrowInvalid" in type(expected).__name__
        other_class = isinstance(found, Exception) and data_error and not isinstance(found, pa.ArrowInvalid)
        return repr(found) if other_class else None
    if isinstance(found, Exception):
        return repr(found)
    both_decimal = pa.types.is_decimal(expected.type) and pa.types.is_decimal(found.type)
    if PLAIN.get(expected.type, expected.type) != PLAIN.get(found.type, found.type) and not both_decimal:
        return expected.type, found.type
    rows = list(zip(_rows(expected), _rows(found), strict=True))
    return next(((at, *row) for at, row in enumerate(rows) if not same_value(*row)), None)


@pytest.mark.parametrize("name", ["nulls", "full", "deleted", "empty"])
def test_against_the_reference(name, tables):
    grammar = ExpressionGrammar(SEED * 10 + len(name))
    texts = _distinct(grammar.expression, EXPRESSIONS)
    pair = tables[name]
    different, equal = [], 0
    for start in range(0, len(texts), AT_ONCE):
        part = texts[start : start + AT_ONCE]
        expected, found = _values(pair.reference, part), _values(pair.ours, part)
        for text, one, other in zip(part, expected, found, strict=True):
            difference = _difference(one, other)
            if difference is not None:
                different.append((text, difference))
            equal += difference is None and not isinstance(one, Exception)
    assert different == []
    assert equal >= 0.95 * EXPRESSIONS


def test_filters_against_the_reference(tables):
    grammar = ExpressionGrammar(SEED * 10 + 7)
    different, kept = [], 0
    for number in range(EXPRESSIONS // 3):
        text, pair = grammar.boolean(3), tables[("nulls", "full", "deleted")[number % 3]]
        try:
            expected = pair.reference.to_table(columns=["id"], filter=text)["id"]
        except ValueError:
            continue
        if expected != (found := pair.ours.to_table(columns=["id"], filter=text)["id"]):
            different.append((text, expected.to_pylist(), found.to_pylist()))
        kept += len(expected)
    assert different == []
    assert kept


def test_against_duckdb(table):
    grammar = DuckGrammar(SEED)
    data = table.select(["id", "i", "i8", "i16", "big", "u8", "f", "s", "ls", "b", "b2", "d", "ts", "dec"])
    texts = _distinct(grammar.expression, EXPRESSIONS // 2)
    different = []
    for text in texts:
        expected = duckdb.sql(f"SELECT {text} AS value FROM data ORDER BY id").arrow()
        expected = (expected.read_all() if isinstance(expected, pa.RecordBatchReader) else expected)["value"]
        found = compile_expression(text, data.schema).evaluate(data)
        rows = zip(_comparable(expected), _comparable(found), strict=True)
        wrong = next((row for row in rows if not same_value(*row)), None)
        if wrong is not None:
            different.append((text, *wrong))
    assert different == []


def _comparable(values: pa.ChunkedArray) -> list[object]:
    """Return Python values without the widths of numbers and the units of time."""
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us")).to_pylist()
    return values.to_pylist()
