"""Conditions that are tested on the stored values of a column: the same rows as the filter over decoded values.

``LANCE_STRESS=1`` tries 20,000 random filters, ``LANCE_STRESS_SEED`` sets the seed.
"""

from __future__ import annotations

import os
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_dataset
from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.expr.compiled import compile_filter
from lance_dataset.file.structural.read.fullzip import FullZipPage
from lance_dataset.file.structural.read.miniblock import MiniBlockPage
from lance_dataset.scan import costs, filtering, interval_tests
from lance_dataset.scan.interval_tests import interval_test
from lance_dataset.scan.selection import Selection

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
SEED = int(os.environ.get("LANCE_STRESS_SEED", "11"))
#: Random tables, and filters of each.
TABLES, FILTERS = (80, 250) if THOROUGH else (4, 60)
ROWS = 5_000

#: Values that compare in unusual ways.
FLOATS = [0.0, -0.0, 1.5, -1.5, float("nan"), -float("nan"), float("inf"), -float("inf"), 5e-324, 1e300]


def integers(rng: np.random.Generator, low: int, high: int) -> np.ndarray:
    """Return integers, some of them at the ends of their range, some in runs, some ascending."""
    kind = rng.integers(0, 4)
    values = rng.integers(low, high, ROWS, endpoint=True)
    if kind == 1:
        return np.sort(values)
    if kind == 2:
        return np.repeat(values, rng.integers(1, 40, ROWS))[:ROWS]
    if kind == 3:
        return rng.choice([low, high, *values[:5].tolist()], ROWS)
    return values


def with_nulls(values: Any, kind: pa.DataType, rng: np.random.Generator) -> pa.Array:
    share = rng.choice([0.0, 0.0, 0.1, 0.9, 1.0])
    return pa.array(values, kind, mask=rng.random(ROWS) < share)


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    days = integers(rng, -30, 30).astype(np.int32)
    floats = np.where(rng.random(ROWS) < 0.2, rng.choice(FLOATS, ROWS), rng.normal(0, 2, ROWS))
    single = np.clip(floats, -1e30, 1e30).astype(np.float32)  # NaN stays
    columns = {
        "i8": with_nulls(integers(rng, -128, 127).astype(np.int8), pa.int8(), rng),
        "u8": with_nulls(integers(rng, 0, 9).astype(np.uint8), pa.uint8(), rng),
        "i16": with_nulls(integers(rng, -300, 300).astype(np.int16), pa.int16(), rng),
        "u32": with_nulls(integers(rng, 0, 2**32 - 1).astype(np.uint32), pa.uint32(), rng),
        "i32": with_nulls(integers(rng, 0, 1000).astype(np.int32), pa.int32(), rng),
        "i64": with_nulls(integers(rng, -(2**63), 2**63 - 1), pa.int64(), rng),
        "u64": with_nulls(integers(rng, 0, 2**20).astype(np.uint64), pa.uint64(), rng),
        "f32": with_nulls(single, pa.float32(), rng),
        "f64": with_nulls(floats, pa.float64(), rng),
        "day": with_nulls(days, pa.int32(), rng).cast(pa.date32()),
        "at": with_nulls(days.astype(np.int64) * 10**9, pa.int64(), rng).cast(pa.timestamp("us")),
        "text": with_nulls(rng.integers(0, 50, ROWS).astype(str), pa.string(), rng),
        "many": with_nulls(rng.integers(0, 900, ROWS).astype(str), pa.large_string(), rng),
        "long": with_nulls([f"{number} of many" for number in rng.integers(0, 10**9, ROWS)], pa.string(), rng),
        "price": with_nulls(
            [Decimal(int(cents)) / 4 for cents in rng.integers(0, 50, ROWS)], pa.decimal128(12, 2), rng
        ),
        "cents": with_nulls(
            [Decimal(int(cents)) / 4 for cents in rng.integers(-(2**62), 2**62, ROWS)], pa.decimal128(38, 2), rng
        ),
        "word": with_nulls(rng.integers(0, 7, ROWS).astype(str), pa.string(), rng).dictionary_encode(),
        "same": with_nulls(np.full(ROWS, 7), pa.int64(), rng),
    }
    return pa.table(columns)


LITERALS = {
    "i8": ["-128", "127", "0", "-1", "5"],
    "u8": ["0", "3", "9", "255"],
    "i16": ["-300", "0", "7", "299", "-32768"],
    "u32": ["0", "4294967295", "2000000000"],
    "i32": ["0", "500", "999", "-1"],
    "i64": ["-9223372036854775807", "0", "9223372036854775807", "123456789012"],
    "u64": ["0", "1000", "524288"],
    "f32": ["0.0", "-0.0", "1.5", "-1.5", "0.1", "CAST('NaN' AS FLOAT)"],
    "f64": ["0.0", "-0.0", "1.5", "-0.25", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)"],
    "day": ["date '1970-01-01'", "date '1970-01-10'", "date '1969-12-20'"],
    "at": ["timestamp '1970-01-01 00:00:00'", "timestamp '1970-01-01 03:00:00'"],
    "text": ["'1'", "'30'", "'x'"],
    "many": ["'1'", "'300'", "'77'", "'x'"],
    "long": ["'1'", "'500000000 of many'"],
    "price": ["0.0", "12.25", "3.75", "100.0"],
    "cents": ["0.0", "-1.25", "500000000000000000", "-1e30"],
    "word": ["'0'", "'3'", "'7'"],
    "same": ["7", "8", "6"],
}


def condition(rng: random.Random, name: str) -> str:
    literals = LITERALS[name]
    if name in ("text", "many", "long") and rng.random() < 0.2:
        return f"{name} {rng.choice(['', 'NOT '])}LIKE '{rng.choice(['%1%', '3%', '_', '%x'])}'"
    pick = lambda: rng.choice(literals)  # noqa: E731
    form = rng.randrange(8)
    if form == 0:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if form == 1:
        return f"{name} {rng.choice(['', 'NOT '])}IN ({', '.join(pick() for _ in range(rng.randint(1, 4)))})"
    if form == 2:
        return f"{name} {rng.choice(['', 'NOT '])}BETWEEN {pick()} AND {pick()}"
    if form == 3:
        return f"{name} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {pick()}"
    if form == 4:
        return f"{pick()} {rng.choice(['<', '>='])} {name}"
    return f"{name} {rng.choice(['<', '<=', '>', '>=', '=', '!='])} {pick()}"


def random_filter(rng: random.Random, depth: int = 2) -> str:
    if depth == 0 or rng.random() < 0.4:
        return condition(rng, rng.choice(list(LITERALS)))
    joined = f" {rng.choice(['AND', 'AND', 'OR'])} ".join(
        random_filter(rng, depth - 1) for _ in range(rng.randint(2, 3))
    )
    return f"NOT ({joined})" if rng.random() < 0.2 else f"({joined})"


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search small fragments too, and compare what is found with the decoded values."""
    monkeypatch.setattr(costs, "_LEAST_SEARCHED", 1)
    monkeypatch.setenv("LANCE_CHECK_SCANS", "1")


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("number", range(TABLES))
def test_random_filters(tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some values of each type at their limits, in several fragments, some with deleted rows, in all file versions."""
    rng = random.Random(SEED * 1000 + number)
    searches = 0
    search = MiniBlockPage.search

    def counted(self: MiniBlockPage, *arguments: Any) -> pa.Buffer:
        nonlocal searches
        searches += 1
        return search(self, *arguments)

    monkeypatch.setattr(MiniBlockPage, "search", counted)
    rows = rng.choice([ROWS, 2_500])
    version = ["2.1", "2.2", "2.2", "2.0", "2.1", "2.2", "legacy"][number % 7]
    dataset = lance_dataset.write_dataset(
        table(rng.randrange(1 << 30)), tmp_path, data_storage_version=version, max_rows_per_file=rows
    )
    if number % 2:
        dataset.delete("u8 = 3 OR i32 < 100")
    plain = dataset.to_table(with_row_id=True)
    for step in range(FILTERS):
        text = random_filter(rng)
        compiled = compile_filter(text, plain.schema)
        assert compiled is not None
        expected = plain.filter(compiled.mask(plain))["_rowid"]
        assert dataset.to_table(filter=text, columns=[], with_row_id=True)["_rowid"].equals(expected), text
        if step % 4 == 0:
            assert dataset.count_rows(filter=text) == len(expected), text
    assert (searches > 0) == (version in ("2.1", "2.2"))


def test_all_paths_return_the_same_columns(tmp_path: Path) -> None:
    """The searched column is read for the rows that are kept, in each of the ways to read it."""
    rows = 100_000
    rng = np.random.default_rng(3)
    data = pa.table({"a": rng.integers(0, 10_000, rows), "b": rng.normal(size=rows), "c": np.arange(rows)})
    dataset = lance_dataset.write_dataset(data, tmp_path, data_storage_version="2.2")
    for bound in (0, 5, 200, 3_000, 9_990, 10_000):
        expected = data.filter(pc.and_(pc.less(data["a"], bound), pc.greater_equal(data["c"], 20_000)))
        assert dataset.to_table(filter=f"a < {bound} AND c >= 20000").equals(expected)
        batches = dataset.to_batches(filter=f"a < {bound} AND c >= 20000", batch_size=1000)
        assert pa.Table.from_batches(list(batches), data.schema).equals(expected)
        for late in (True, False, ["b"]):
            found = dataset.scanner(filter=f"a < {bound} AND c >= 20000", late_materialization=late).to_table()
            assert found.equals(expected)


def test_chunks_whose_range_is_known_are_not_looked_at(tmp_path: Path) -> None:
    rows = 200_000
    data = pa.table({"a": np.arange(rows) * 3})
    dataset = lance_dataset.write_dataset(data, tmp_path, data_storage_version="2.2")
    column = dataset._snapshot.reader.fragments[0].column(dataset._snapshot.scanned_schema.top_level("a"))
    expected = data.filter(pc.less(data["a"], 3000)).num_rows
    count = lambda text: dataset.scanner(filter=text, use_stats=False).count_rows()  # noqa: E731
    assert count("a < 3000") == expected
    for page in column._opened.values():
        ranges = page._page._ranges
        known = [ranges[chunk] for chunk in range(len(ranges))]
        assert all(known)
        lows = [low for low, _ in known]
        assert lows == sorted(lows)
    # every chunk is now decided by its range, except for the one with the bound, whose bytes are not loaded either
    for name in ("a >= 0", "a < 0", "a IS NULL", "a < 3000"):
        assert count(name) == {"a >= 0": rows, "a < 3000": expected}.get(name, 0)


def test_plans_name_the_columns(tmp_path: Path) -> None:
    rows = 40_000
    rng = np.random.default_rng(5)
    data = pa.table({"a": rng.integers(0, 10_000, rows), "t": pa.array(rng.integers(0, 9, rows)).cast(pa.string())})
    dataset = lance_dataset.write_dataset(data, tmp_path, data_storage_version="2.2")
    scanner = dataset.scanner(filter="a < 50 AND t = '1'")
    assert "FilterExec: a < 50 AND t = '1', encoded=[t, a]" in scanner.explain_plan()
    assert f"encoded={2 * rows}" in scanner.analyze_plan()
    for options in ({"filter": "a + 1 < 50"}, {"filter": "a < 50", "late_materialization": False}):
        scanner = dataset.scanner(**options)
        assert "encoded" not in scanner.explain_plan() + scanner.analyze_plan()


def test_a_wrong_search_is_an_error_of_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pa.table({"a": np.arange(50_000)})
    dataset = lance_dataset.write_dataset(data, tmp_path, data_storage_version="2.2")
    monkeypatch.setattr(filtering._Search, "found", lambda search: Selection(search._window))
    monkeypatch.delenv("LANCE_CHECK_SCANS", raising=False)
    count = dataset.scanner(filter="a < 10", use_stats=False).count_rows
    assert count() == 50_000
    monkeypatch.setenv("LANCE_CHECK_SCANS", "1")
    with pytest.raises(LanceError, match=r"'a < 10' adds 49990 rows of fragment 0, at the offsets 10, 11"):
        count()


@pytest.mark.parametrize(
    ("text", "kind", "is_test"),
    [
        ("x < 5", pa.int64(), True),
        ("5 > x AND x != 3 AND x IS NOT NULL", pa.int32(), True),
        ("NOT (x IN (1, 2, 3) OR x IS NULL)", pa.uint8(), True),
        ("x < 2.5", pa.float32(), True),
        ("x + 1 < 5", pa.int64(), False),
        ("x < 5 OR x IN (7.25, 9)", pa.decimal128(10, 2), True),
        ("x < 5.125", pa.decimal128(10, 2), False),
        ("x < 5", pa.decimal256(40, 2), False),
        ("x < 5", pa.float16(), False),
        ("x < 'a'", pa.string(), False),
        ("x", pa.bool_(), False),
        ("x % 2 = 1", pa.int64(), False),
        (f"x IN ({', '.join(str(3 * n) for n in range(17))})", pa.int64(), False),
        (f"x IN ({', '.join(map(str, range(200)))})", pa.int64(), True),
        (f"x IN ({', '.join(map(str, range(300)))})", pa.int64(), False),
        (" AND ".join(f"x != {3 * n}" for n in range(7)), pa.int64(), True),
        (" AND ".join(f"x != {3 * n}" for n in range(17)), pa.int64(), False),
        (" AND ".join(f"x > {3 * n}" for n in range(17)), pa.int64(), True),
    ],
)
def test_conditions_that_are_interval_tests(text: str, kind: pa.DataType, is_test: bool) -> None:
    schema = pa.schema([("x", kind), ("y", pa.int64())])
    compiled = compile_filter(text, schema)
    assert compiled is not None
    assert (interval_test(compiled, kind) is not None) == is_test


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), ["-128", "-1", "0", "127"]),
        (pa.uint8(), ["0", "1", "255"]),
        (pa.int64(), [str(-(2**63)), "7", str(2**63 - 1)]),
        (pa.uint64(), ["0", "9", str(2**64 - 1)]),
        (pa.decimal128(9, 2), ["-0.01", "0.00", "1234567.89"]),
        (pa.date32(), ["date '1969-12-31'", "date '2020-01-01'"]),
        (pa.timestamp("us"), ["timestamp '1960-01-01 00:00:00'", "timestamp '2020-01-01 10:00:00'"]),
    ],
)
def test_intervals_of_comparisons_are_those_between_the_points(
    kind: pa.DataType, values: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[object] = []
    monkeypatch.setattr(interval_tests, "IntervalTest", lambda *given, **null: found.append((*given, null)))
    schema = pa.schema([("x", kind)])
    plain = [f"x {operator} {value}" for operator in ("=", "!=", "<", "<=", ">", ">=") for value in values]
    texts = [*plain, *(f"{one} AND {two}" for one in plain for two in plain[::3]), f"NOT ({plain[0]})"]
    for text in texts:
        compiled = compile_filter(text, schema)
        assert compiled is not None
        interval_tests.interval_test(compiled, kind)
    quick = found.copy()
    found.clear()
    monkeypatch.setattr(interval_tests, "_plain", lambda *_: None)
    for text in texts:
        compiled = compile_filter(text, schema)
        assert compiled is not None
        interval_tests.interval_test(compiled, kind)
    assert [text for text, one, two in zip(texts, quick, found, strict=True) if one != two] == []


def test_two_columns_are_no_interval_test() -> None:
    compiled = compile_filter("x < y", pa.schema([("x", pa.int64()), ("y", pa.int64())]))
    assert compiled is not None
    assert interval_test(compiled, pa.int64()) is None


def test_damaged_chunks_are_named(tmp_path: Path) -> None:
    data = pa.table({"a": np.random.default_rng(1).integers(0, 1 << 20, 60_000)})
    dataset = lance_dataset.write_dataset(data, tmp_path, data_storage_version="2.2")
    (path,) = (tmp_path / "data").iterdir()
    column = dataset._snapshot.reader.fragments[0].column(dataset._snapshot.scanned_schema.top_level("a"))
    position, _ = column._pages[0].buffers[1]
    content = bytearray(path.read_bytes())
    content[position : position + 8] = b"\xff" * 8  # the header of the first chunk
    path.write_bytes(bytes(content))
    with pytest.raises(CorruptFileError, match=r"'a'\).*chunk 0"):
        lance_dataset.dataset(tmp_path).count_rows("a < 1000")


def _full_zip_table() -> pa.Table:
    rng = np.random.default_rng(8)
    pick = lambda values: pa.array(values, mask=rng.random(ROWS) < 0.2)  # noqa: E731
    columns = {
        "i64": pa.array(integers(rng, -(2**63), 2**63 - 1)),
        "f64": pick(np.where(rng.random(ROWS) < 0.2, rng.choice(FLOATS, ROWS), rng.normal(0, 2, ROWS))),
        "price": pa.array([Decimal(int(n)) / 4 for n in rng.integers(-900, 900, ROWS)], pa.decimal128(12, 2)),
        "cents": pa.array([None if n % 7 == 0 else Decimal(n) for n in range(-9, ROWS - 9)], pa.decimal128(38, 2)),
        "small": pick(rng.integers(0, 9, ROWS).astype(np.int8)),
        "long": pick([f"{n} of many" for n in range(ROWS)]),
    }
    metadata = {b"lance-encoding:structural-encoding": b"fullzip"}
    return pa.table(
        list(columns.values()),
        schema=pa.schema([pa.field(name, values.type, metadata=metadata) for name, values in columns.items()]),
    )


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_full_zip_pages(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_LEAST_SEARCHED", 1)
    monkeypatch.setenv("LANCE_CHECK_SCANS", "1")
    searched: list[str] = []
    search = FullZipPage.search
    monkeypatch.setattr(FullZipPage, "search", lambda page, *given: searched.append("") or search(page, *given))
    data = _full_zip_table()
    dataset = lance_dataset.write_dataset(data, tmp_path, data_storage_version=version, max_page_bytes=30_000)
    dataset.delete("i64 % 11 = 3")
    rows, rng = dataset.to_table(), random.Random(5)
    texts = [condition(rng, name) for name in ("i64", "f64", "price", "cents") for _ in range(12)]
    texts += ["small > 3", "small IS NULL OR small = 0", "small = 1 AND f64 > 0", "long IS NULL", "long IS NOT NULL"]
    for text in texts:
        compiled = compile_filter(text, rows.schema)
        assert compiled is not None
        expected = rows.filter(compiled.mask(rows)).drop_columns("f64")  # NaN does not equal itself
        assert dataset.to_table(filter=text, columns=expected.column_names).equals(expected), text
    assert searched


def test_damaged_levels_of_full_zip_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_LEAST_SEARCHED", 1)
    data = _full_zip_table().select(["f64", "long"])
    dataset = lance_dataset.write_dataset(data, tmp_path)
    fragment = dataset._snapshot.reader.fragments[0]
    (path,) = (tmp_path / "data").iterdir()
    content = bytearray(path.read_bytes())
    for name in ("f64", "long"):
        page = fragment.column(dataset._snapshot.scanned_schema.top_level(name))._pages[0]
        content[page.buffers[0][0]] = 2
    path.write_bytes(bytes(content))
    damaged = lance_dataset.dataset(tmp_path)
    for text in ("f64 IS NULL", "f64 > 1", "long IS NULL"):
        with pytest.raises(CorruptFileError, match="level"):
            damaged.count_rows(filter=text)


def test_filters_of_a_dataset_that_is_opened_again_are_known_but_not_its_rows(tmp_path: Path) -> None:
    path, filter = str(tmp_path / "t"), "a > 10 AND b >= '0' AND a < 90"
    table = pa.table({"a": pa.array(range(40_000), pa.int32()), "b": pa.array([None, "x"] * 20_000)})
    lance_dataset.write_dataset(table, path)
    first = lance_dataset.dataset(path)
    assert first.count_rows(filter=filter) == 40
    again = lance_dataset.dataset(path)
    assert compiled(again, filter) is compiled(first, filter)
    lance_dataset.write_dataset(table.slice(0, 20), path, mode="append")
    longer = lance_dataset.dataset(path)
    assert longer.count_rows(filter=filter) == longer.to_table(filter=filter).num_rows == 45
    changed = pa.table({"a": pa.array(range(40_000), pa.float64()), "b": pa.array(["1", None] * 20_000)})
    lance_dataset.write_dataset(changed, path, mode="overwrite")
    assert lance_dataset.dataset(path).to_table(filter=filter)["a"].to_pylist() == list(range(12, 90, 2))
    assert first.count_rows(filter=filter) == 40


def compiled(dataset: lance_dataset.LanceDataset, filter: str) -> object:
    return compile_filter(filter, dataset._snapshot.reader.expression_schema)
