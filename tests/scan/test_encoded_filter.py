"""Tests of filters over encoded columns: same rows and same errors as over decoded ones."""

from __future__ import annotations

import random
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.grammar.filters import Grammar
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset.expr.compiled import compile_filter
from lance_dataset.scan.encoded_column import EncodedColumn
from lance_dataset.scan.encoded_filter import mask_encoded

PREDICATES = [
    "s LIKE '%a%'",
    "s LIKE 'a%c'",
    "s NOT LIKE 'a_%' OR ls LIKE '%日%'",
    "ls IN ('a', 'A', NULL)",
    "ls NOT IN ('a', 'abc')",
    "s = ls AND i > 1",
    "lower(s) = lower(ls)",
    "upper(s) || 'x' = upper(ls) || 'x' OR d IS NULL",
    "i + 1 > i8 AND i IN (1, 2, 5)",
    "dec > 0.05 AND dec <= 1.5 AND i < 5 AND dec IS NOT NULL",
    "coalesce(i, 7) = coalesce(i8, 7)",
    "b OR b2 AND i > 1",
    "NOT (b AND (s = 'a' OR i8 = 5))",
    "(i > 1) IS DISTINCT FROM (i8 > 1)",
    "st.x > 1 AND s = 'a'",
    "i IS NULL AND s IS NOT NULL",
    "random() < 2 AND s != 'a'",
    "s = NULL OR i = 1",
    "true",
    "i > 1 AND true",
    "10 / 5 = 2",
    "_rowid > 3 AND s = 'a'",
]


def encodable(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind) and not pa.types.is_boolean(kind)


def encoded(values: pa.Array, rng: random.Random) -> list[pa.Array]:
    """Return the values in chunks, some of them dictionary arrays with unused and repeated entries."""
    if not encodable(values.type) or rng.random() < 0.3:
        return [values]
    cuts = sorted(rng.choices(range(len(values) + 1), k=rng.choice([0, 0, 1, 3])))
    chunks = []
    for start, stop in zip([0, *cuts], [*cuts, len(values)], strict=True):
        chunk = values.slice(start, stop - start)
        if rng.random() < 0.8:
            found = chunk.dictionary_encode()
            extra = (
                values.slice(rng.randrange(len(values)), 3).drop_null() if rng.random() < 0.4 else values.slice(0, 0)
            )
            entries = pa.concat_arrays([found.dictionary, extra])
            kind = rng.choice([pa.uint8(), pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint32()])
            chunk = pa.DictionaryArray.from_arrays(found.indices.cast(kind), entries)
        chunks.append(chunk)
    return chunks


def check(text: str, batch: pa.RecordBatch, seed: int) -> None:
    compiled = compile_filter(text, batch.schema)
    assert compiled is not None
    rng = random.Random(seed)
    # many rows of few values, so that there are fewer entries than rows
    rows = pa.array([row % batch.num_rows for row in range(batch.num_rows * rng.choice([1, 4]))])
    batch = batch.take(rows)
    columns = {name: encoded(batch.column(name), rng) for name in compiled.columns}
    expected = compiled.mask(batch)
    found = mask_encoded(compiled, columns, batch.num_rows)
    found.validate(full=True)
    assert found.null_count == 0
    assert found.to_pylist() == expected.to_pylist(), text


@pytest.fixture(scope="module")
def with_ids(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column("_rowid", pa.array(range(batch.num_rows), pa.uint64()))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("text", PREDICATES)
def test_hand_picked(text: str, with_ids: pa.RecordBatch, seed: int) -> None:
    check(text, with_ids, seed)


@given(st.integers(0, 10**6), st.integers(0, 3), st.integers(0, 10**6))
@settings(max_examples=150)
def test_generated(with_ids: pa.RecordBatch, seed: int, depth: int, shape: int) -> None:
    check(Grammar(seed).filter(depth), with_ids, shape)


def test_no_rows(batch: pa.RecordBatch) -> None:
    compiled = compile_filter("s = 'a' AND i > 1", batch.schema)
    assert compiled is not None
    empty = {"s": [], "i": []}
    for columns in (empty, {"s": [batch["s"].slice(0, 0).dictionary_encode()], "i": [batch["i"].slice(0, 0)]}):
        assert mask_encoded(compiled, columns, 0).to_pylist() == []


# -- failures ----------------------------------------------------------------------------------------------------


def dictionary(indices: list[int | None], entries: list[Any]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.uint8()), pa.array(entries))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAST(s AS INT) = 1", [True, False, False, True]),
        ("CAST(s AS INT) = 1 AND i > 0", [True, False, False, False]),
        ("10 / i < 6", [False, True, False, False]),
        ("10 / i < 6 OR CAST(s AS INT) = 1", [True, True, False, True]),
    ],
)
def test_entries_without_rows_do_not_fail(text: str, expected: list[bool]) -> None:
    schema = pa.schema([("s", pa.string()), ("i", pa.int64())])
    columns = {
        "s": [dictionary([0, 1, None, 0], ["1", "2", "no number"])],
        "i": [dictionary([1, 2, None, 1], [0, 1, 2])],
    }
    columns["i"] = [columns["i"][0].take(pa.array([0, 1, 2, 2]))]
    compiled = compile_filter(text, schema)
    assert compiled is not None
    assert mask_encoded(compiled, columns, 4).to_pylist() == expected


@pytest.mark.parametrize(
    "text", ["CAST(s AS INT) = 1", "CAST(s AS INT) = 1 AND i = 1", "10 / i = 1", "s = 'x' OR 10 % i = 1"]
)
def test_rows_fail_as_they_do_decoded(text: str) -> None:
    schema = pa.schema([("s", pa.string()), ("i", pa.int64())])
    s, i = dictionary([0, 1, 0, 0], ["1", "no number"]), dictionary([0, 1, 1, 1], [0, 1])
    compiled = compile_filter(text, schema)
    assert compiled is not None
    batch = pa.RecordBatch.from_arrays([s.dictionary_decode(), i.dictionary_decode()], schema=schema)
    with pytest.raises(Exception) as plain:
        compiled.mask(batch)
    with pytest.raises(type(plain.value)) as found:
        mask_encoded(compiled, {"s": [s], "i": [i]}, 4)
    assert str(found.value) == str(plain.value)


def test_expressions_of_pyarrow() -> None:
    schema = pa.schema([("s", pa.string()), ("i", pa.int64())])
    columns = {"s": [dictionary([0, 1, None], ["a", "b"])], "i": [pa.array([1, 2, 3])]}
    for expression in (pc.field("s") == "a", pc.utf8_upper(pc.field("s")) == "A", pc.field("i") < 2):
        compiled = compile_filter(expression, schema)
        assert compiled is not None
        assert mask_encoded(compiled, columns, 3).to_pylist() == [True, False, False]


# -- what is computed --------------------------------------------------------------------------------------------


class Counted(Mapping[str, Any]):
    """Columns that record which of them were requested."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._columns, self.asked = columns, []

    def __getitem__(self, name: str) -> Any:
        self.asked.append(name)
        return self._columns[name]

    def __iter__(self) -> Any:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def test_columns_are_looked_up_once() -> None:
    schema = pa.schema([("s", pa.string()), ("i", pa.int64())])
    compiled = compile_filter("s = 'a' AND i = 1 AND s != 'b'", schema)
    assert compiled is not None
    columns = Counted({"s": [dictionary([0, 1] * 4, ["a", "b"])], "i": [pa.array([1] * 8)]})
    assert mask_encoded(compiled, columns, 8).to_pylist() == [True, False] * 4
    assert sorted(columns.asked) == ["i", "s"]


# -- columns -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["s", "ls", "bin", "fsb", "i", "dec", "ts", "f", "st", "li"])
@pytest.mark.parametrize("seed", range(5))
def test_rows_of_encoded_columns(column: str, seed: int, batch: pa.RecordBatch) -> None:
    values, rng = batch.column(column), random.Random(seed)
    whole = EncodedColumn(encoded(values, rng), values.type, column)
    assert len(whole) == len(values)
    same(whole.decoded(), values)
    places = sorted(rng.sample(range(len(values)), 17))
    for wanted in (places, []):
        rows = pa.array(wanted, pa.int64())
        same(EncodedColumn(whole.chunks, values.type, column).take(rows), values.take(rows))
        same(whole.take(rows), values.take(rows))
    part = EncodedColumn(whole.chunks, values.type, column).slice(5, 20)
    rows = pa.array([0, 19])
    same(part.take(rows), values.slice(5, 20).take(rows))
    same(part.decoded(), values.slice(5, 20))


def same(found: pa.Array, expected: pa.Array) -> None:
    assert_same(pa.table({"a": found}), pa.table({"a": expected}))


# -- scans -------------------------------------------------------------------------------------------------------

WORDS = ["AIR", "RAIL", "SHIP", "TRUCK", None]
SCANS = [
    "mode = 'AIR'",
    "mode IS NULL OR price > 30",
    "mode IN ('AIR', 'SHIP') AND price <= 20.5 AND day > date '1970-01-20'",
    "mode LIKE '%R%' AND note LIKE '%7%'",
    "note LIKE '%77%' AND id % 2 = 0 AND mode != 'RAIL'",
    "CAST(number AS INT) > 5 AND mode = 'AIR'",
    "same = 'one' AND mode = 'AIR'",
    "same != 'one'",
    "upper(mode) = lower(mode)",
    "mode = number",
    "nothing IS NULL AND mode = 'SHIP'",
]


def scan_table() -> pa.Table:
    rows = 40_000
    numbers = [row * 2654435761 % 1009 for row in range(rows)]
    return pa.table(
        {
            "id": pa.array(range(rows)),
            "mode": pa.array([WORDS[number % 5] for number in numbers]),
            "price": pa.array([Decimal(number % 50) / 2 + 10 for number in numbers], pa.decimal128(12, 2)),
            "day": pa.array([number % 40 for number in numbers], pa.int32()).cast(pa.date32()),
            "note": pa.array([f"note {number} of {row}" for row, number in enumerate(numbers)]),
            "number": pa.array(["no number" if row == 17 else str(number % 9) for row, number in enumerate(numbers)]),
            "same": pa.array(["one"] * rows),
            "nothing": pa.nulls(rows, pa.string()),
        }
    )


@pytest.fixture(scope="module", params=["2.0", "2.2"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("scans") / request.param
    dataset = lance_dataset.write_dataset(
        scan_table(),
        path,
        data_storage_version=request.param,
        max_rows_per_file=15_000,
        storage_options={"local_fsync": "false"},
    )
    dataset.delete("id % 11 = 3 OR id = 17")  # and with it the only text that does not parse as a number
    return dataset


@pytest.mark.parametrize("text", SCANS)
def test_scans_of_encoded_columns(text: str, stored: Any) -> None:
    rows = stored.to_table()
    compiled = compile_filter(text, rows.schema)
    assert compiled is not None
    expected = rows.filter(compiled.mask(rows))
    assert_same(stored.to_table(filter=text), expected)
    assert stored.count_rows(filter=text) == expected.num_rows
    for columns in (["id"], ["mode", "note"], ["same", "price", "nothing"]):
        assert_same(stored.to_table(columns=columns, filter=text), expected.select(columns))
        assert_same(
            stored.to_table(columns=columns, filter=text, offset=70, limit=900), expected.select(columns).slice(70, 900)
        )
    found = stored.to_table(columns=["mode", "id"], filter=text, late_materialization=False)
    assert_same(found, expected.select(["mode", "id"]))
    assert stored.to_table(columns=["id"], filter=text, with_row_id=True).num_rows == expected.num_rows


def test_scans_fail_for_rows_that_are_there(stored: Any) -> None:
    with pytest.raises(pa.ArrowInvalid):
        stored.checkout_version(1).to_table(filter="CAST(number AS INT) > 5")
