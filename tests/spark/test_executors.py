"""Tests of the work of executors: new columns, compaction, segments of indices, joins by search."""

from __future__ import annotations

import lance as reference
import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException

import lance_dataset
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, LanceError, SchemaError
from lance_dataset.spark import (
    add_columns,
    add_columns_from,
    compact,
    create_index,
    nearest_join,
    register_nearest,
    register_search,
    search_join,
)

COLORS = ("red", "green", "blue")


@pytest.fixture
def stored(uri):
    """Return a dataset of 60 rows in 3 fragments."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(120), pa.float32()), 2)
    table = pa.table({"n": range(60), "text": [f"{COLORS[i % 3]} x{i}" for i in range(60)], "v": vectors})
    lance_dataset.write_dataset(table, uri, max_rows_per_file=20)
    return uri


def doubled(batch):
    import pyarrow.compute as pc

    return pa.record_batch({"twice": pc.multiply(batch.column("n"), 2)})


def test_columns_are_added_by_fragment_in_one_commit(spark, stored):
    assert add_columns(spark, stored, {"next": "n + 1"}) == 2
    assert add_columns(spark, stored, doubled, "twice bigint", read_columns=["n"], batch_size=7) == 3
    found = reference.dataset(stored).to_table().to_pydict()
    assert found["next"] == [n + 1 for n in range(60)]
    assert found["twice"] == [2 * n for n in range(60)]
    lance_dataset.dataset(stored).validate()


def test_a_backfill_goes_on_where_it_failed(spark, stored, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()

    def broken(batch):
        first = batch.column("n")[0].as_py()
        (marks / f"{first}-{len(list(marks.glob(f'{first}-*')))}").touch()
        if first == 40 and len(list(marks.glob("40-*"))) == 1:
            raise RuntimeError("told to fail")
        return pa.record_batch({"new": batch.column("n")})

    arguments = {"read_columns": ["n"], "checkpoint": tmp_path / "checkpoint"}
    with pytest.raises(PythonException, match=r"The task of fragment 2 of version 1 .* failed: .*told to fail"):
        add_columns(spark, stored, broken, "new bigint", **arguments)
    assert reference.dataset(stored).version == 1
    add_columns(spark, stored, broken, "new bigint", **arguments)
    assert reference.dataset(stored).to_table()["new"].to_pylist() == list(range(60))
    assert len(list(marks.glob("20-*"))) == 1


def test_columns_are_added_from_a_frame(spark, stored):
    frame = spark.range(0, 60, 2).selectExpr("id AS key", "concat('t', id) AS tag")
    assert add_columns_from(frame, stored, "n", right_on="key") == 2
    tags = reference.dataset(stored).to_table()["tag"].to_pylist()
    assert tags == [f"t{n}" if n % 2 == 0 else None for n in range(60)]


def test_wrong_backfills_start_no_task(spark, stored, uri):
    for values, schema, kind, message in (
        (doubled, None, InvalidInputError, "needs the parameter schema"),
        (doubled, "n bigint", SchemaError, "'n' exists already"),
        ({"x": "nix + 1"}, None, LanceError, "nix"),
    ):
        with pytest.raises(kind, match=message):
            add_columns(spark, stored, values, schema)
    with pytest.raises(SchemaError, match="'text' exists already"):
        add_columns_from(spark.sql("SELECT 1L n, 'x' text"), stored, "n")
    with pytest.raises(PythonException, match="must return a record batch of 20 rows"):
        add_columns(spark, stored, lambda batch: batch.slice(1), "x bigint")
    assert reference.dataset(uri).version == 1


def test_compaction(spark, stored):
    lance_dataset.dataset(stored).delete("n % 5 = 0")
    counts = compact(spark, stored, target_rows_per_fragment=1000)
    assert (counts["fragments_removed"], counts["fragments_added"]) == (3, 1)
    assert reference.dataset(stored).to_table()["n"].to_pylist() == [n for n in range(60) if n % 5]
    assert compact(spark, stored, target_rows_per_fragment=1000)["fragments_removed"] == 0
    with pytest.raises(LanceError):
        compact(spark, stored, target_rows_per_fragment=-1)


def test_indices_are_built_as_segments(spark, stored):
    assert create_index(spark, stored, "n", "BTREE") == "n_idx"
    assert create_index(spark, stored, "v", "IVF_FLAT", "near", num_partitions=1, segments=3) == "near"
    indices = {index.name: index for index in lance_dataset.dataset(stored).describe_indices()}
    assert len(indices["n_idx"].segments) == 2
    assert len(indices["near"].segments) == 3
    assert all(index.num_rows_indexed == 60 for index in indices.values())
    assert reference.dataset(stored).to_table(filter="n = 33")["n"].to_pylist() == [33]
    with pytest.raises(InvalidInputError, match="has an index 'n_idx' already"):
        create_index(spark, stored, "n", "BTREE")
    assert create_index(spark, stored, "n", "BITMAP", "n_idx", replace=True, segments=1) == "n_idx"
    with pytest.raises(PythonException, match="The task of the BTREE index of column 'v'"):
        create_index(spark, stored, "v", "BTREE", "wrong")


def test_joins_with_the_nearest_rows(spark, stored):
    queries = spark.sql(
        "SELECT 'a' q, array(20f, 21f) w UNION ALL SELECT 'b', array(0f, 1f) UNION ALL SELECT 'c', null"
    )
    found = nearest_join(queries, stored, "v", "w", 2, ["n"])
    assert found.columns == ["q", "w", "n", "_distance"]
    rows = sorted((row.q, row.n, row._distance) for row in found.collect())
    assert rows == [("a", 9, 8.0), ("a", 10, 0.0), ("b", 0, 0.0), ("b", 1, 8.0)]
    far = nearest_join(queries.coalesce(1), stored, "v", "w", 1, ["n"], filter="n > 50").collect()
    assert [row.n for row in far] == [51, 51]


def test_joins_with_the_best_matches(spark, stored):
    lance_dataset.dataset(stored).create_scalar_index("text", "INVERTED")
    queries = spark.sql("SELECT 'x7' q UNION ALL SELECT 'blue' UNION ALL SELECT null UNION ALL SELECT 'nothing'")
    found = search_join(queries, stored, "q", 3, ["n"], text_columns=["text"]).collect()
    assert sorted((row.q, row.n % 3) for row in found) == [("blue", 2)] * 3 + [("x7", 1)]
    assert all(row._score > 0 for row in found)


def test_wrong_joins_are_found_at_once(spark, stored):
    queries = spark.sql("SELECT 'a' q, array(20f, 21f) w, array(1f) short")
    for call, kind, message in (
        (lambda: nearest_join(queries, stored, "v", "ww"), FieldNotFoundError, "no column 'ww'"),
        (lambda: nearest_join(queries, stored, "v", "q"), SchemaError, "must be an array of numbers"),
        (lambda: nearest_join(queries, stored, "v", 1), TypeError, "query must be the name of a column"),
        (lambda: nearest_join(queries, stored, "n", "w"), FieldNotFoundError, "no column of vectors 'n'"),
        (lambda: nearest_join(queries, stored, "v", "w", 0), InvalidInputError, "k must be positive"),
        (lambda: nearest_join(queries, stored, "v", "w", filter="nix"), LanceError, "nix"),
        (lambda: nearest_join(queries.withColumnRenamed("q", "n"), stored, "v", "w"), SchemaError, "'n' is both"),
        (lambda: search_join(queries, stored, "w"), SchemaError, "must be a text"),
        (lambda: search_join(queries, stored, "q"), LanceError, "index"),
    ):
        with pytest.raises(kind, match=message):
            call()
    with pytest.raises(PythonException, match="'short' has 1 numbers, but the dataset's have 2"):
        nearest_join(queries, stored, "v", "short").collect()


def test_searches_in_sql(spark, stored):
    lance_dataset.dataset(stored).create_scalar_index("text", "INVERTED")
    register_nearest(spark, "near", stored, "v", 2, ["n"])
    register_search(spark, "matching", stored, 3, ["n", "text"], filter="n < 50")
    queries = spark.createDataFrame(
        [("a", [20.0, 21.0], "x7"), ("b", [80.0, 81.0], "green x7"), ("c", None, None)],
        "name string, v array<float>, words string",
    )
    found = spark.sql("SELECT q.name, f.n FROM {q} q, LATERAL near(q.v) f ORDER BY q.name, f._distance", q=queries)
    assert [tuple(row) for row in found.collect()] == [("a", 10), ("a", 9), ("b", 40), ("b", 39)]
    found = spark.sql("SELECT q.name, f.* FROM {q} q, LATERAL matching(q.words) f", q=queries).collect()
    assert [(row.name, row.n) for row in found if row.text.endswith("x7")] == [("a", 7), ("b", 7)]
    assert {row.name: sum(row.name == each.name for each in found) for row in found} == {"a": 1, "b": 3}
    with pytest.raises(PythonException, match="A vector of the query has 3 numbers, but the dataset's have 2"):
        spark.sql("SELECT * FROM near(array(1.0f, 2.0f, 3.0f))").collect()
    with pytest.raises(FieldNotFoundError, match="no column of vectors 'n'"):
        register_nearest(spark, "near", stored, "n")
    with pytest.raises(InvalidInputError, match="k must be positive"):
        register_search(spark, "matching", stored, 0)
