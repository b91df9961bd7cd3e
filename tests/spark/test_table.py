"""Queries that tell the dataset what they need: by options, or through a table."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import lance_dataset
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, LanceError
from lance_dataset.spark import LanceDataSource, table
from lance_dataset.spark.options import ReadOptions
from lance_dataset.spark.partitions import WholeTable
from lance_dataset.spark.reader import LanceReader
from lance_dataset.spark.snapshot import pin
from lance_dataset.spark.types import spark_schema

WORDS = ("red", "green", "blue")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return a dataset of 300 rows in 3 fragments with vectors, texts, an index of each, a tag and a branch."""
    uri = str(tmp_path_factory.mktemp("table") / "table.lance")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(600), pa.float32()), 2)
    ids = list(range(300))
    texts = [f"{WORDS[i % 3]} thing {i}" for i in ids]
    dataset = lance_dataset.write_dataset(
        pa.table({"id": ids, "text": texts, "v": vectors}), uri, max_rows_per_file=100
    )
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("text", "INVERTED")
    dataset.tags.create("before", dataset.version)
    dataset.delete("id >= 290")
    return uri


@pytest.fixture(scope="module")
def branched(tmp_path_factory):
    uri = str(tmp_path_factory.mktemp("branched") / "table.lance")
    main = lance_dataset.write_dataset(pa.table({"id": [1, 2]}), uri)
    side = main.create_branch("side")
    side.insert(pa.table({"id": [3]}))
    return uri


def load(spark, uri, **options):
    return spark.read.format("lance").options(**options).load(uri)


def ids(frame):
    return [row.id for row in frame.select("id").collect()]


def test_columns_filter_order_and_limit_reach_the_dataset(spark, stored):
    query = table(spark, stored).where("id > 100").where("id % 2 = 0").select("id", "text").order_by("-id").limit(3)
    frame = query.df()
    assert frame.columns == ["id", "text"]
    assert ids(frame) == [288, 286, 284]
    assert frame.rdd.getNumPartitions() == 1
    assert query.count() == 3
    assert "id > 100" in query.explain()


def test_counts_without_spark(spark, stored):
    whole = table(spark, stored)
    assert whole.count() == 290
    assert whole.where("id < 17").count() == 17
    assert whole.limit(5).count() == 5
    assert whole.order_by("id").count() == 290
    assert table(spark, stored, version="before").count() == 300


def test_one_table_may_be_narrowed_in_many_ways(spark, stored):
    whole = table(spark, stored).select("id")
    low, high = whole.where("id < 3"), whole.where("id >= 288")
    assert sorted(ids(low.df().union(high.df()))) == [0, 1, 2, 288, 289]
    assert ids(whole.df().filter("id = 5 OR id = 7")) == [5, 7]


def test_rows_described_by_columns(spark, stored):
    found = (
        table(spark, stored).where("id in (5, 105, 205)").select("id", "_fragid", "_rowaddr", "_rowid").df().collect()
    )
    assert [(row.id, row._fragid, row._rowaddr) for row in found] == [
        (5, 0, 5), (105, 1, 2**32 + 5), (205, 2, 2**33 + 5)
    ]  # fmt: skip
    frame = load(spark, stored, columns="*,_fragid,_row_created_at_version,_row_last_updated_at_version", filter="id=0")
    assert frame.columns == ["id", "text", "v", "_fragid", "_row_created_at_version", "_row_last_updated_at_version"]
    assert tuple(frame.collect()[0])[3:] == (0, 1, 1)


def test_searches(spark, stored):
    near = table(spark, stored).nearest("v", [20, 21], k=3).select("id", "_distance").df().collect()
    assert [(row.id, row._distance) for row in near] == [(10, 0.0), (9, 8.0), (11, 8.0)]
    found = load(spark, stored, full_text="blue", filter="id > 280", columns="id,_score").collect()
    assert sorted(row.id for row in found) == [281, 284, 287]
    assert all(row._score > 0 for row in found)
    options = {"full_text": json.dumps({"query": "thing", "columns": ["text"]}), "limit": 4}
    assert len(load(spark, stored, **options).collect()) == 4
    assert table(spark, stored).full_text("green", ["text"]).count() == 97
    query = json.dumps({"column": "v", "q": [0, 1], "k": 2})
    assert load(spark, stored, nearest=query).columns == ["id", "text", "v", "_distance"]


def test_versions_tags_moments_and_branches(spark, stored, branched):
    tagged = lance_dataset.dataset(stored).tags.list()["before"]["version"]
    assert load(spark, stored, tag="before").count() == 300
    assert load(spark, stored, version=tagged).count() == 300
    now = dt.datetime.now(dt.timezone.utc) + dt.timedelta(minutes=1)
    assert load(spark, stored, timestamp=now.isoformat()).count() == 290
    with pytest.raises(AnalysisException, match="2001"):
        load(spark, stored, timestamp="2001-01-01")
    assert ids(load(spark, branched)) == [1, 2]
    assert ids(load(spark, branched, branch="side")) == [1, 2, 3]
    assert ids(table(spark, branched, branch="side").where("id > 1").df()) == [2, 3]


def test_a_few_rows_found_by_an_index_are_one_task(stored):
    snapshot, dataset = pin(stored, None, ())
    for condition, tasks in (("id = 7", 1), ("id % 7 = 1", 3)):
        options = ReadOptions(stored, filter=condition, num_partitions=3)
        parts = LanceReader(snapshot, dataset, options, spark_schema(dataset.schema)).partitions()
        assert len(parts) == tasks
        assert isinstance(parts[0], WholeTable) == (tasks == 1)


def test_the_first_batch_is_small(stored):
    snapshot, dataset = pin(stored, None, ())
    table_of_3000 = lance_dataset.write_dataset(pa.table({"id": range(3000)}), stored + ".large")
    for opened, sizes in ((dataset, [300]), (table_of_3000, [1024, 1976])):
        snapshot, opened = pin(opened.uri, 1, ())
        reader = LanceReader(snapshot, opened, ReadOptions(opened.uri, num_partitions=1), spark_schema(opened.schema))
        batches = list(reader.read(reader.partitions()[0]))
        assert sum(batch.num_rows for batch in batches) == sum(sizes)
        assert batches[0].num_rows <= 1024


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": "1", "tag": "before"}, "'version' and 'tag', not both"),
        ({"timestamp": "2024-01-01", "branch": "b"}, "goes with a version number only"),
        ({"timestamp": "yesterday"}, "not an ISO date"),
        ({"limit": "-1"}, "positive whole number"),
        ({"nearest": "{"}, "is not JSON"),
        ({"nearest": "[1]"}, "must be a JSON object"),
        ({"nearest": '{"column": "v", "q": [1], "k": 2}'}, "does not match the size 2"),
        ({"nearest": '{"q": [1]}'}, "needs the parameter 'column'"),
        ({"nearest": '{"column": "v", "q": [1, 2]}', "full_text": "x"}, "not both"),
        ({"full_text": "x", "order_by": "id"}, "ordered by distance or score"),
        ({"full_text": '{"query": "x", "columns": ["txt"]}'}, "did you mean 'text'"),
        ({"order_by": "idd"}, "idd"),
        ({"columns": "_distance"}, "no column '_distance'"),
    ],
)
def test_mistakes_are_found_when_the_schema_is_asked_for(stored, options, message):
    with pytest.raises((LanceError, TypeError), match=message):
        LanceDataSource({"path": stored, **options}).schema()


def test_mistakes_in_a_table(spark, stored):
    whole = table(spark, stored)
    for mistake in (
        lambda: whole.where("nix = 3"),
        lambda: whole.select("nix"),
        lambda: whole.order_by("nix"),
        lambda: whole.limit(0),
        lambda: whole.nearest("v", [1, 2, 3]),
        lambda: whole.option("nix", 3),
        lambda: table(spark, stored + ".nix"),
        lambda: table(spark, stored, version=99),
    ):
        with pytest.raises(LanceError):
            mistake()
    with pytest.raises(InvalidInputError, match="either a timestamp, or a version"):
        table(spark, stored, version=1, timestamp="2024-01-01")
    with pytest.raises(FieldNotFoundError, match="did you mean 'text'"):
        whole.select("txt")
