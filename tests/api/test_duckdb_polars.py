"""Tests of other libraries that read a dataset through pyarrow's dataset interface."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import lance_dataset

QUERIES = [
    "select count(*) from data",
    "select sum(id) from data where n > 3",
    "select id, s from data where s = 'text 2' order by id",
    "select id from data where n is null order by id",
    "select id from data where n in (1, 2) or id < 4 order by id",
    "select id from data where day > date '2024-01-20' and flag order by id",
    "select id from data where raw = '\\x07'::blob order by id",
    "select st.x from data where st.x > 50 order by id",
    "select n, count(*) from data group by n order by n nulls last",
    "select id from data where f > 5 order by f desc, id limit 3",
]


@pytest.fixture(scope="module")
def dataset(reference_path: Path) -> lance_dataset.LanceDataset:
    return lance_dataset.dataset(reference_path)


@pytest.mark.parametrize("query", QUERIES)
def test_duckdb(dataset: lance_dataset.LanceDataset, query: str) -> None:
    """DuckDB answers the same from the dataset as from its rows in memory."""
    kept = [name for name in dataset.schema.names if name != "void"]
    with duckdb.connect() as connection:
        data = dataset
        found = connection.sql(query).fetchall()
        data = dataset.to_table(kept)  # noqa: F841
        assert repr(found) == repr(connection.sql(query).fetchall())


def test_polars_scan(dataset: lance_dataset.LanceDataset) -> None:
    """Polars pushes columns and filters down."""
    lazy = pl.scan_pyarrow_dataset(dataset)
    found = lazy.filter((pl.col("n") > 3) & pl.col("s").is_not_null()).select("id", "n").collect()
    expected = dataset.to_table(["id", "n"], "n > 3 and s is not null")
    assert found.to_dict(as_series=False) == expected.to_pydict()


def test_capsule(dataset: lance_dataset.LanceDataset) -> None:
    """Libraries that read Arrow streams can read a dataset."""
    found = pa.RecordBatchReader.from_stream(dataset).read_all()
    assert found.select(["id", "st"]) == dataset.to_table(["id", "st"])
    assert pl.DataFrame(lance_dataset.dataset(dataset.uri).scanner(["id"])).height == dataset.count_rows()


# -- bytes read --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wide_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of four fragments with a narrow and a wide column."""
    path = tmp_path_factory.mktemp("wide") / "data.lance"
    rows, random = 8000, Random(0)
    table = pa.table(
        {
            "id": range(rows),
            "key": pa.array([row % 1000 for row in range(rows)], pa.int32()),
            "wide": [random.randbytes(200) for _ in range(rows)],
            "unused": [float(row * 31 % 977) for row in range(rows)],
        }
    )
    lance_dataset.write_dataset(table, path, max_rows_per_file=2000)
    return path


Query = Callable[[lance_dataset.LanceDataset], int]


def duckdb_rows(text: str) -> Query:
    def run(data: lance_dataset.LanceDataset) -> int:
        with duckdb.connect() as connection:
            return len(connection.sql(text).fetchall())

    return run


def polars_rows(make: Callable[[pl.LazyFrame], pl.LazyFrame]) -> Query:
    return lambda data: make(pl.scan_pyarrow_dataset(data)).collect().height


def bytes_read(path: Path, query: Query, monkeypatch: pytest.MonkeyPatch, rows: int) -> int:
    """Return the number of bytes that a query reads on a new handle, over a store that does not map files."""
    monkeypatch.setenv("LANCE_MMAP", "0")
    data = lance_dataset.dataset(path)
    data.snapshot.store.statistics.incremental()
    assert query(data) == rows
    return data.snapshot.store.statistics.snapshot().read_bytes


ENGINES: dict[str, tuple[Query, Query, Query, Query]] = {
    "duckdb": (
        duckdb_rows("select * from data"),
        duckdb_rows("select id from data"),
        duckdb_rows("select wide from data where key = 3"),
        duckdb_rows("select id from data where key in (3, 4)"),
    ),
    "polars": (
        polars_rows(lambda lazy: lazy),
        polars_rows(lambda lazy: lazy.select("id")),
        polars_rows(lambda lazy: lazy.filter(pl.col("key") == 3).select("wide")),
        polars_rows(lambda lazy: lazy.filter(pl.col("key").is_in([3, 4])).select("id")),
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_pushdown_reads_less(wide_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """Unused columns are not read, and of the other columns hardly more than the matching rows."""
    everything, projected, filtered, both = ENGINES[engine]
    whole = bytes_read(wide_path, everything, monkeypatch, 8000)
    assert whole > 8000 * 100
    assert bytes_read(wide_path, projected, monkeypatch, 8000) < whole / 50
    assert bytes_read(wide_path, filtered, monkeypatch, 8) < whole / 10
    assert bytes_read(wide_path, both, monkeypatch, 16) < whole / 30
