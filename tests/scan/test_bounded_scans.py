"""Filters on files with bounds of values: the same rows, and only the pages that matter are read."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_dataset
from lance_dataset.expr.compiled import compile_filter
from lance_dataset.file.structural.read.leaf import LevelPage
from lance_dataset.scan import costs, windows

ROWS = 70_000


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    places = np.arange(ROWS)
    near = lambda scale: np.sort(places + rng.integers(0, scale, ROWS))  # noqa: E731
    floats = near(300) / 100 - 200.0
    floats[rng.random(ROWS) < 0.0001] = np.nan
    floats[floats == 0] = -0.0
    some = lambda values, share: pc.if_else(pa.array(rng.random(ROWS) < share), None, values)  # noqa: E731
    return pa.table(
        {
            "id": pa.array(places),
            "day": pa.array((near(5000) // 1000).astype(np.int32)).cast(pa.date32()),
            "n": some(pa.array(near(10)), 0.0001),
            "f": pa.array(floats),
            "f4": pc.if_else(pa.array(places < 30_000), None, pa.array(floats.astype(np.float32))),
            "price": pa.array([Decimal(int(n)) / 4 for n in near(1000) - 35_000], pa.decimal128(12, 2)),
            "text": some(pa.array([f"{n:06}" for n in near(3000)]), 0.0001),
            "flag": pa.array(places > 50_000),
            "other": pa.array(rng.integers(0, 100, ROWS)),
        }
    )


LITERALS = {
    "id": ["-1", "0", "8192", "30000", "69999", "70000"],
    "day": ["date '1970-01-01'", "date '1970-01-30'", "date '1970-03-16'", "date '1971-01-01'"],
    "n": ["0", "20000", "70008", "70009", "-5"],
    "f": ["0.0", "-0.0", "-199.5", "300.25", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)"],
    "f4": ["0.0", "-0.0", "120.5", "CAST('NaN' AS FLOAT)"],
    "price": ["-8750.0", "0.0", "1000.25", "9000.0"],
    "text": ["'000000'", "'04'", "'069999'", "'x'", "''"],
    "other": ["3", "200"],
}


def condition(rng: random.Random) -> str:
    name = rng.choice(list(LITERALS))
    pick = lambda: rng.choice(LITERALS[name])  # noqa: E731
    form = rng.randrange(7)
    if form == 0:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if form == 1:
        return f"{name} {rng.choice(['', 'NOT '])}IN ({pick()}, {pick()})"
    if form == 2:
        return f"{name} {rng.choice(['', 'NOT '])}BETWEEN {pick()} AND {pick()}"
    if form == 3:
        return f"{name} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {pick()}"
    if form == 4 and name == "text":
        return f"text LIKE '{rng.choice(['00%', '05%', '%9', 'x%'])}'"
    return f"{name} {rng.choice(['<', '<=', '>', '>=', '=', '!='])} {pick()}"


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.3"])
def test_the_same_rows(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_CHECK_SCANS", "1")
    monkeypatch.setattr(costs, "_LEAST_SEARCHED", 1)
    monkeypatch.setattr(windows, "_GAP_BYTES", 0)
    data = table(len(version))
    dataset = lance_dataset.write_dataset(
        data, tmp_path, data_storage_version=version, max_rows_per_file=40_000, max_page_bytes=100_000
    )
    dataset.delete("id % 1000 = 3 OR id BETWEEN 20000 AND 29000")
    rows, rng = dataset.to_table(), random.Random(7)
    for _ in range(30):
        text = f" {rng.choice(['AND', 'AND', 'OR'])} ".join(condition(rng) for _ in range(rng.randint(1, 3)))
        compiled = compile_filter(text, rows.schema)
        assert compiled is not None
        expected = rows.filter(compiled.mask(rows))["id"]
        fresh = lance_dataset.dataset(tmp_path)
        assert fresh.count_rows(text) == len(expected), text
        assert dataset.to_table(filter=text, columns=["id"])["id"].equals(expected), text


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("id < 5000", 8192),
        ("id >= 0", 0),
        ("id < 40000", 8192),
        ("day >= date '1970-03-15'", 3 * 8192),
        ("price = 0", 2 * 8192),
        ("f4 IS NULL", 8192),
        ("id = 60000 AND other = 3", 2 * 8192),
        ("n > 100000", 0),
    ],
)
def test_other_rows_are_not_looked_at(text: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANCE_CHECK_SCANS", raising=False)
    monkeypatch.setattr(windows, "_GAP_BYTES", 0)
    data = table(1)
    lance_dataset.write_dataset(data, tmp_path, data_storage_version="2.2", max_page_bytes=100_000)
    looked: list[int] = []
    search, read = LevelPage.search, LevelPage.read

    def searched(page: Any, test: Any, start: int, stop: int, kept: Any) -> Any:
        looked.append(stop - start)
        return search(page, test, start, stop, kept)

    def was_read(page: Any, start: int, stop: int) -> Any:
        looked.append(stop - start)
        return read(page, start, stop)

    monkeypatch.setattr(LevelPage, "search", searched)
    monkeypatch.setattr(LevelPage, "read", was_read)
    compiled = compile_filter(text, data.schema)
    assert compiled is not None
    assert lance_dataset.dataset(tmp_path).count_rows(text) == pc.sum(compiled.mask(data)).as_py()
    assert sum(looked) <= most
    looked.clear()
    lance_dataset.dataset(tmp_path).scanner(filter=text, use_stats=False).count_rows()
    assert sum(looked) >= ROWS


def test_texts_are_pruned(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(table(1), tmp_path, data_storage_version="2.2")
    for text in ("text < '000100'", "text LIKE '0699%'", "text > 'x'"):
        scanner = dataset.scanner(filter=text, use_stats=False)
        assert dataset.count_rows(text) == scanner.count_rows()
