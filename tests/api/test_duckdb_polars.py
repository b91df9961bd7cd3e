"""Other libraries reading a dataset through pyarrow's dataset interface."""

from __future__ import annotations

from pathlib import Path

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
    """The same answer from the dataset as from its rows in memory."""
    kept = [name for name in dataset.schema.names if name != "void"]
    with duckdb.connect() as connection:
        data = dataset
        found = connection.sql(query).fetchall()
        data = dataset.to_table(kept)  # noqa: F841
        assert repr(found) == repr(connection.sql(query).fetchall())


def test_polars_scan(dataset: lance_dataset.LanceDataset) -> None:
    """Columns and filters are pushed down."""
    lazy = pl.scan_pyarrow_dataset(dataset)
    found = lazy.filter((pl.col("n") > 3) & pl.col("s").is_not_null()).select("id", "n").collect()
    expected = dataset.to_table(["id", "n"], "n > 3 and s is not null")
    assert found.to_dict(as_series=False) == expected.to_pydict()


def test_capsule(dataset: lance_dataset.LanceDataset) -> None:
    """Anything that reads Arrow streams reads a dataset."""
    found = pa.RecordBatchReader.from_stream(dataset).read_all()
    assert found.select(["id", "st"]) == dataset.to_table(["id", "st"])
    assert pl.DataFrame(lance_dataset.dataset(dataset.uri).scanner(["id"])).height == dataset.count_rows()
