"""Tests of streams: a sink in which each batch counts once, and a source of the rows that versions add."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance as reference
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.types import _parse_datatype_string

import lance_dataset
from lance_dataset.errors import InvalidInputError, SchemaError, UnsupportedError, VersionNotFoundError
from lance_dataset.spark import LanceDataSource, delete
from lance_dataset.spark.options import WriteOptions
from lance_dataset.spark.streaming.writer import BatchMessage, LanceStreamWriter

SCHEMA = "id bigint"


def values(uri):
    return sorted(reference.dataset(uri).to_table()["id"].to_pylist())


def reader(uri, **options):
    return LanceDataSource({"path": uri, **options}).streamReader(_parse_datatype_string(SCHEMA))


def read(source, first, last):
    found = []
    for partition in source.partitions({"version": first}, {"version": last}):
        for batch in source.read(partition):
            found += batch.column("id").to_pylist()
    return sorted(found)


def append(uri, *numbers):
    lance_dataset.write_dataset(pa.table({"id": pa.array(numbers, pa.int64())}), uri, mode="append")


def run(frame, uri, folder, **options):
    query = (
        frame.writeStream.format("lance").options(**options)
        .option("checkpointLocation", str(folder)).trigger(availableNow=True).start(uri)
    )  # fmt: skip
    query.awaitTermination()
    return query


def test_a_dataset_that_was_made_anew_is_not_taken_for_the_old_one(spark, uri):
    from pyspark.sql.streaming.datasource import ReadMaxFiles  # not in Spark 4.1

    append(uri, 1)
    append(uri, 2)
    first = reader(uri).latestOffset(None, ReadMaxFiles(1))
    append(uri, 3)
    source = reader(uri)
    assert source.latestOffset(first)["version"] == 3
    assert source.latestOffset({"version": 2})["version"] == 3, "offsets of older releases have no identity"
    lance_dataset.dataset(uri).cleanup_old_versions(retain_versions=1)
    assert source.latestOffset(first)["version"] == 3, "the version of the offset may be gone"
    lance_dataset.LanceDataset.drop(uri)
    append(uri, 4)
    message = "was dropped and created again: the stream has read version 2 of it, which"
    with pytest.raises(InvalidInputError, match=f"{message} does not exist, as its newest version is 1"):
        source.latestOffset(first)
    append(uri, 5)
    for use in (source.latestOffset, lambda start: source.partitions(start, {"version": 3})):
        with pytest.raises(InvalidInputError, match=f"{message} is another one now; start a new query"):
            use(first)
    with pytest.raises(InvalidInputError, match=message):
        source.partitions({"version": 1}, first)
    assert reader(uri).latestOffset(None)["version"] == 2


def test_a_query_on_a_dataset_that_was_made_anew_ends(spark, uri, tmp_path):
    target = str(tmp_path / "copy.lance")
    append(uri, 1, 2)
    run(spark.readStream.format("lance").load(uri), target, tmp_path / "checkpoint")
    lance_dataset.LanceDataset.drop(uri)
    append(uri, 3)
    append(uri, 4)
    with pytest.raises(StreamingQueryException, match="was dropped and created again"):
        run(spark.readStream.format("lance").load(uri), target, tmp_path / "checkpoint")
    assert values(target) == [1, 2]


def test_from_one_dataset_to_another_and_on_after_a_stop(spark, uri, tmp_path):
    target = str(tmp_path / "copy.lance")
    append(uri, 1, 2, 3)
    stream = spark.readStream.format("lance").option("maxVersionsPerTrigger", 1).load(uri)
    assert stream.isStreaming
    run(stream.selectExpr("id * 10 id"), target, tmp_path / "checkpoint")
    assert values(target) == [10, 20, 30]
    append(uri, 4)
    append(uri, 5)
    lance_dataset.dataset(uri).optimize.compact_files()
    run(stream.selectExpr("id * 10 id"), target, tmp_path / "checkpoint")
    assert values(target) == [10, 20, 30, 40, 50]
    batches = [t.transaction_properties.get("batchId") for t in reference.dataset(target).get_transactions()]
    assert batches == ["2", "1", "0"]
    run(stream.selectExpr("id * 10 id"), target, tmp_path / "checkpoint")
    assert len(values(target)) == 5
    # The query stopped after its last commit and before Spark noted it: the batch is written again, and counts once.
    for part in ("commits", "offsets"):
        assert Path(tmp_path, "checkpoint", part, "2").exists()
    Path(tmp_path, "checkpoint", "commits", "2").unlink()
    run(stream.selectExpr("id * 10 id"), target, tmp_path / "checkpoint")
    assert values(target) == [10, 20, 30, 40, 50]


def test_a_version_that_changed_rows_ends_the_query(spark, uri, tmp_path):
    append(uri, 1, 2, 3)
    lance_dataset.dataset(uri).delete("id = 2")
    stream = spark.readStream.format("lance").option("startingVersion", 2).load(uri)
    with pytest.raises(StreamingQueryException, match=r"Version 2 of .* changed or deleted rows \(Delete\)"):
        run(stream, str(tmp_path / "copy.lance"), tmp_path / "checkpoint")


@pytest.mark.usefixtures("session")
class TestSource:
    def test_what_each_version_added(self, uri):
        append(uri, 1, 2, 3)
        append(uri, 4, 5)
        lance_dataset.dataset(uri).create_scalar_index("id", "BTREE")
        lance_dataset.dataset(uri).optimize.compact_files()
        append(uri, 6)
        newest = lance_dataset.dataset(uri).version
        source = reader(uri, starting_version="1")
        assert source.initialOffset() == {"version": 0}
        assert read(source, 1, 2) == [4, 5]
        assert read(source, 2, newest) == [6]
        assert read(source, 0, newest) == [1, 2, 3, 4, 5, 6]
        assert read(source, 3, 3) == []
        assert read(reader(uri, filter="id % 2 = 0"), 0, newest) == [2, 4, 6]

    def test_limits_of_a_batch(self, uri):
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows  # not in Spark 4.1

        for first in (0, 10, 20, 30):
            append(uri, *range(first, first + 10))
        source = reader(uri, maxRowsPerTrigger="20")
        assert source.getDefaultReadLimit() == ReadMaxRows(20)
        assert reader(uri, max_versions_per_trigger="3").getDefaultReadLimit() == ReadMaxFiles(3)
        assert reader(uri).getDefaultReadLimit() == ReadAllAvailable()
        start = {"version": 1}
        assert [
            source.latestOffset(start, limit)["version"]
            for limit in (ReadMaxRows(20), ReadMaxRows(19), ReadMaxRows(5), ReadMaxFiles(1), ReadAllAvailable(), None)
        ] == [3, 2, 2, 2, 4, 4]
        assert source.latestOffset({"version": 4}, ReadMaxRows(5)) == {"version": 4}
        source.prepareForTriggerAvailableNow()
        append(uri, 1)
        assert source.latestOffset(start, ReadAllAvailable())["version"] == 4

    def test_where_to_start(self, uri):
        append(uri, 1)
        append(uri, 2)
        stamps = [entry["timestamp"] for entry in lance_dataset.dataset(uri).versions()]
        assert reader(uri, startingVersion="2").initialOffset() == {"version": 1}
        assert reader(uri, startingTimestamp=stamps[1].isoformat()).initialOffset() == {"version": 1}
        assert reader(uri, startingTimestamp="2100-01-01").initialOffset() == {"version": 2}
        with pytest.raises(InvalidInputError, match="not a moment in ISO format"):
            reader(uri, starting_timestamp="soon").initialOffset()

    def test_changed_rows_may_be_skipped(self, uri):
        append(uri, 1, 2)
        lance_dataset.dataset(uri).update({"id": "id + 10"}, where="id = 2")
        append(uri, 3)
        assert read(reader(uri, skip_changes="true"), 1, 3) == [3]
        with pytest.raises(UnsupportedError, match=r"\(Update\)"):
            read(reader(uri), 1, 3)

    def test_versions_that_are_gone(self, uri):
        append(uri, 1)
        append(uri, 2)
        append(uri, 3)
        lance_dataset.dataset(uri).cleanup_old_versions(retain_versions=1)
        with pytest.raises(VersionNotFoundError, match=r"needs version 2 of .* which a cleanup has removed"):
            read(reader(uri), 1, 3)

    def test_columns_that_are_gone(self, uri):
        append(uri, 1)
        lance_dataset.dataset(uri).add_columns({"x": "id"})
        lance_dataset.dataset(uri).drop_columns(["id"])
        with pytest.raises(SchemaError, match="has no column 'id'"):
            reader(uri).latestOffset()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"version": "1"}, "'version' does not go with readStream"),
            ({"limit": "1"}, "'limit' does not go with readStream"),
            ({"startingVersion": "1", "startingTimestamp": "2024-01-01"}, "not both"),
            ({"maxRowsPerTrigger": "0"}, "positive whole number"),
        ],
    )
    def test_wrong_options(self, uri, options, message):
        append(uri, 1)
        with pytest.raises(InvalidInputError, match=message):
            reader(uri, **options)
        if "startingVersion" in options:
            with pytest.raises(InvalidInputError, match="Unknown option 'startingVersion'"):
                LanceDataSource({"path": uri, **options}).reader(_parse_datatype_string(SCHEMA))


@pytest.mark.usefixtures("session")
class TestSink:
    @staticmethod
    def writer(uri, **options):
        return LanceStreamWriter(WriteOptions(uri, **options), _parse_datatype_string(SCHEMA), False)

    @staticmethod
    def message(writer, *numbers, query="q"):
        batch = pa.record_batch({"id": pa.array(numbers, pa.int64())})
        return BatchMessage(writer.write(iter([batch])).fragments, query)

    def test_a_batch_counts_once(self, uri, data_files):
        for _ in range(2):
            writer = self.writer(uri)
            writer.commit([self.message(writer, 1, 2), None, self.message(writer, 3)], 0)
        for _ in range(2):
            writer = self.writer(uri)
            writer.commit([self.message(writer, 4)], 1)
        writer.commit([self.message(writer, 5, query="other")], 1)
        assert values(uri) == [1, 2, 3, 4, 5]
        assert (reference.dataset(uri).version, len(data_files())) == (3, 4)

    def test_two_queries_create_at_once(self, uri):
        one, other = self.writer(uri), self.writer(uri)
        messages = self.message(one, 1, query="one"), self.message(other, 2, query="other")
        one.commit([messages[0]], 0)
        other.commit([messages[1]], 0)
        assert values(uri) == [1, 2]

    def test_another_writer_creates_the_dataset_with_another_order_of_columns(self, uri, data_files):
        schema = _parse_datatype_string("a bigint, b bigint")
        rows = pa.record_batch({"a": pa.array([1], pa.int64()), "b": pa.array([2], pa.int64())})
        writer = LanceStreamWriter(WriteOptions(uri), schema, False)
        lance_dataset.write_dataset(pa.table(rows).select(["b", "a"]), uri)
        message = BatchMessage(writer.write(iter([rows])).fragments, "q")
        with pytest.raises(SchemaError, match="start the query again"):
            writer.commit([message], 0)
        writer.abort([message], 0)
        assert len(data_files()) == 1
        writer = LanceStreamWriter(WriteOptions(uri), schema, False)
        writer.commit([BatchMessage(writer.write(iter([rows])).fragments, "q")], 0)
        assert lance_dataset.dataset(uri).to_table().to_pylist() == [{"b": 2, "a": 1}] * 2

    def test_a_query_appends_to_what_it_created(self, uri):
        """Fields of all types have the numbers that the query gave them."""
        text = "i int, s struct<x:int, l:array<struct<y:string>>>, d decimal(9,2), t timestamp, n void, v array<float>"
        writer = LanceStreamWriter(WriteOptions(uri, vector_length=(("v", 2),)), _parse_datatype_string(text), False)
        row = {"i": 1, "s": {"x": None, "l": [{"y": "z"}]}, "d": None, "t": None, "n": None, "v": [1.0, 2.0]}
        rows = pa.RecordBatch.from_pylist([row], writer.plan.schema)
        for number in range(2):
            writer.commit([BatchMessage(writer.write(iter([rows])).fragments, "q")], number)
        assert lance_dataset.dataset(uri).to_table().to_pylist() == [row, row]

    def test_empty_and_failed_batches_leave_nothing(self, uri, data_files):
        writer = self.writer(uri)
        writer.commit([BatchMessage((), "q")], 0)
        writer.abort([self.message(writer, 1), None], 0)
        assert data_files() == []
        assert not Path(uri, "_versions").exists()
        message = self.message(writer, 1)
        writer.commit([message], 0)
        writer.abort([message], 0)
        assert values(uri) == [1]

    def test_refusals(self, uri):
        schema = _parse_datatype_string(SCHEMA)
        with pytest.raises(UnsupportedError, match="output mode complete"):
            LanceStreamWriter(WriteOptions(uri), schema, True)
        with pytest.raises(InvalidInputError, match="'txn_id' does not go with writeStream"):
            LanceStreamWriter(WriteOptions(uri, txn_id="x"), schema, False)
        append(uri, 1)
        with pytest.raises(SchemaError, match="Column 'name' is not in the dataset"):
            LanceStreamWriter(WriteOptions(uri), _parse_datatype_string("name string"), False)


def test_two_jobs_and_a_stream_change_one_dataset_at_once(spark, uri, tmp_path):
    target = str(tmp_path / "shared.lance")
    for first in range(0, 50, 10):
        append(uri, *range(first, first + 10))
    spark.range(1000, 1010).write.format("lance").mode("append").save(target)
    stream = spark.readStream.format("lance").option("startingVersion", 1).load(uri)
    sink = stream.writeStream.format("lance").option("checkpointLocation", str(tmp_path / "checkpoint"))

    def job(number):
        for turn in range(2):
            first = 2000 + 100 * number + 10 * turn
            frame = spark.range(first, first + 10)
            frame.write.format("lance").mode("append").option("txn_id", f"{number} {turn}").save(target)
            delete(target, f"id = {first} OR id = {1000 + 2 * number + turn}")

    query = sink.trigger(availableNow=True).start(target)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(job, range(2)))
    query.awaitTermination()
    assert query.exception() is None
    jobs = [2000 + 100 * number + 10 * turn + n for number in range(2) for turn in range(2) for n in range(1, 10)]
    assert values(target) == sorted([*range(50), *range(1004, 1010), *jobs])
    assert reference.dataset(target).version == 1 + 1 + 4 + 4
    lance_dataset.dataset(target).validate()
