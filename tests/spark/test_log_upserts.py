"""Tests of streaming queries whose batches go to a shard of a MemWAL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import InvalidInputError
from lance_dataset.mem_wal import LsmScanner
from lance_dataset.spark import upsert_into

SHARD = "11111111-2222-4333-8444-555555555555"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"}),
        pa.field("x", pa.string()),
    ]
)


@pytest.fixture
def target(tmp_path: Path) -> str:
    """Return a dataset with a MemWAL."""
    path = str(tmp_path / "target.lance")
    lance_dataset.write_dataset(pa.table([[1, 2], ["base", "base"]], schema=SCHEMA), path).initialize_mem_wal()
    return path


def seen(path: str) -> dict[int, str]:
    dataset = lance_dataset.dataset(path)
    found = LsmScanner.from_snapshots(dataset, dataset.mem_wal_snapshots()).to_table()
    content = dict(zip(found["id"].to_pylist(), found["x"].to_pylist(), strict=True))
    assert len(content) == found.num_rows
    return content


def test_batches_of_a_query_count_once(spark, uri, target, tmp_path):
    """Changes of a dataset go to the shard of another, also the batch that Spark repeats."""
    source = lance_dataset.write_dataset(
        pa.table([[1, 5], ["one", "five"]], schema=SCHEMA), uri, enable_stable_row_ids=True
    )

    def run():
        feed = {"readChangeFeed": "true", "startingVersion": "1", "maxVersionsPerTrigger": "1"}
        stream = spark.readStream.format("lance").options(**feed)
        query = (
            stream.load(uri).writeStream.foreachBatch(upsert_into(target, "id", shard=SHARD, merge_every=3))
            .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        assert query.exception() is None

    source.update({"x": "'new'"}, where="id = 5")
    source.delete("id = 1")
    run()
    assert seen(target) == {2: "base", 5: "new"}
    merged = lance_dataset.dataset(target)
    assert dict(zip(*merged.to_table().to_pydict().values(), strict=True)) == {2: "base", 5: "new"}  # third batch
    generation = merged.mem_wal_status()[0].generation
    marks = sorted(Path(tmp_path, "checkpoint", "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for mark in (marks[-1], marks[-1].with_name(f".{marks[-1].name}.crc")):
        mark.unlink()
    run()
    assert seen(target) == {2: "base", 5: "new"}
    assert merged.mem_wal_status()[0].generation == generation


def test_the_latest_row_of_a_key_counts(spark, uri, target):
    frame = spark.createDataFrame([(1, "b"), (1, "c"), (3, "a")], "id bigint, x string")
    for number in (0, 0, 1):
        upsert_into(target, "id", latest_by="x", name="q", shard=SHARD)(frame, number)
    assert seen(target) == {1: "c", 2: "base", 3: "a"}
    assert lance_dataset.dataset(target).mem_wal_status()[0].sstables == 2
    with pytest.raises(InvalidInputError, match="a key occurs twice"):
        upsert_into(target, "id", name="q", shard=SHARD)(frame, 2)
    with pytest.raises(InvalidInputError, match=r"primary key \['id'\], not by \['x'\]"):
        upsert_into(target, "x", name="q", shard=SHARD)(frame, 2)
    with pytest.raises(InvalidInputError, match="merge_every"):
        upsert_into(target, "id", merge_every=2)
    with pytest.raises(InvalidInputError, match="at least 1"):
        upsert_into(target, "id", shard=SHARD, merge_every=0)
    with pytest.raises(InvalidInputError, match="enable_stable_row_ids"):
        upsert_into(target, "id", shard=SHARD, enable_stable_row_ids=True)
    with pytest.raises(InvalidInputError, match="must be a UUID"):
        upsert_into(target, "id", shard="x", name="q")(frame, 2)
