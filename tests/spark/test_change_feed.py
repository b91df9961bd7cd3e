"""Tests of reading changes: what versions inserted, updated and deleted, as a stream and as a table.

``LANCE_STRESS=1`` tries more histories.
"""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis.strategies as st
import lance as reference
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import lance_dataset
from lance_dataset.errors import (
    FieldNotFoundError,
    InvalidInputError,
    SchemaError,
    UnsupportedError,
    VersionNotFoundError,
)
from lance_dataset.spark import LanceDataSource, upsert_into
from lance_dataset.spark.streaming.reader import LanceStreamReader

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
KINDS = {"insert": "+", "update_preimage": "<", "update_postimage": ">", "delete": "-"}


def table(ids, value=0):
    return pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array([value] * len(ids), pa.int64())})


def create(uri, ids, library=lance_dataset):
    return library.write_dataset(table(ids), uri, enable_stable_row_ids=True, max_rows_per_file=4)


def source(uri, **options):
    return LanceDataSource({"path": uri, "readChangeFeed": "true", **options})


def reader(uri, **options) -> LanceStreamReader:
    made = source(uri, **options)
    return made.streamReader(made.schema())


def batch_reader(uri, **options):
    made = source(uri, **options)
    return made.reader(made.schema())


def rows_of(made, partitions):
    return [row for part in partitions for batch in made.read(part) for row in batch.to_pylist()]


def changes(uri, first, last, **options):
    """Return the changes of some versions as short texts."""
    made = reader(uri, startingVersion="1", **options)
    found = rows_of(made, made.partitions({"version": first}, {"version": last}))
    return sorted((row["_commit_version"], KINDS[row["_change_type"]], row["id"], row["x"]) for row in found)


@pytest.mark.parametrize("library", [lance_dataset, reference])
def test_what_each_kind_of_version_did(uri, library):
    ds = create(uri, range(1, 7), library)
    ds.update({"x": "7"}, where="id IN (2, 6)")
    ds.delete("id = 3")
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(table([1, 9], 5))
    ds = library.dataset(uri)
    ds.optimize.compact_files()
    ds.create_scalar_index("id", "BTREE")
    ds.add_columns({"y": "id"})
    newest = lance_dataset.dataset(uri).version
    assert changes(uri, 0, 1) == [(1, "+", n, 0) for n in range(1, 7)]
    assert changes(uri, 1, newest) == [
        (2, "<", 2, 0), (2, "<", 6, 0), (2, ">", 2, 7), (2, ">", 6, 7),
        (3, "-", 3, 0),
        (4, "+", 9, 5), (4, "<", 1, 0), (4, ">", 1, 5),
    ]  # fmt: skip
    ds = lance_dataset.dataset(uri)
    ds.update({"x": "8"}, where="id = 2")
    assert changes(uri, newest, newest + 1) == [(newest + 1, "<", 2, 7), (newest + 1, ">", 2, 8)]
    assert changes(uri, 1, newest, filter="x = 7") == [(2, ">", 2, 7), (2, ">", 6, 7)]


def test_versions_after_which_all_rows_are_others(uri):
    ds = create(uri, [1, 2])
    lance_dataset.write_dataset(table([5], 1), uri, mode="overwrite")
    ds.restore()
    assert changes(uri, 1, 3) == [
        (2, "+", 5, 1), (2, "-", 1, 0), (2, "-", 2, 0),
        (3, "+", 1, 0), (3, "+", 2, 0), (3, "-", 5, 1),
    ]  # fmt: skip


def test_a_query_starts_with_the_rows_that_there_are(uri):
    create(uri, [1, 2, 3]).delete("id = 2")
    made = reader(uri)
    assert made.initialOffset() == {"version": 0}
    found = rows_of(made, made.partitions({"version": 0}, {"version": 2}))
    assert sorted((row["id"], row["_change_type"], row["_commit_version"]) for row in found) == [
        (1, "insert", 2), (3, "insert", 2),
    ]  # fmt: skip


def test_columns_of_changes(uri):
    create(uri, [1])
    lance_dataset.dataset(uri).update({"x": "1"})
    assert source(uri).schema().simpleString() == (
        "struct<id:bigint,x:bigint,_change_type:string,_commit_version:bigint,_commit_timestamp:timestamp>"
    )
    made = batch_reader(uri, columns="_change_type,id,_rowid,_commit_timestamp", starting_version="2")
    found = rows_of(made, made.partitions())
    assert [(row["_change_type"], row["id"], row["_rowid"]) for row in found] == [
        ("update_preimage", 1, 0), ("update_postimage", 1, 0),
    ]  # fmt: skip
    stamp = lance_dataset.dataset(uri).versions()[1]["timestamp"].astimezone()
    assert {row["_commit_timestamp"] for row in found} == {stamp}


def test_a_range_of_versions_as_a_table(uri):
    ds = create(uri, [1])
    for number in (2, 3, 4):
        ds.insert(table([number]))

    def ids(**options):
        made = batch_reader(uri, **options)
        return [row["id"] for row in rows_of(made, made.partitions())]

    stamp = ds.versions()[2]["timestamp"].isoformat()
    assert ids() == [1, 2, 3, 4]
    assert ids(startingVersion="2", endingVersion="3") == [2, 3]
    assert ids(startingTimestamp=stamp) == [3, 4]
    assert ids(startingVersion="5") == []
    for options in ({"endingVersion": "9"}, {"startingVersion": "7"}):
        with pytest.raises(InvalidInputError, match=r"There are no versions . to . of .*, whose newest is 4"):
            ids(**options)


def test_columns_that_were_added_later_are_null(uri):
    ds = create(uri, [1])
    ds.update({"x": "1"})
    ds.add_columns({"y": "id * 10", "_z": "id"})
    ds.update({"x": "2"})
    made = reader(uri, startingVersion="1")
    found = rows_of(made, made.partitions({"version": 0}, {"version": 4}))
    assert [(row["_commit_version"], row["y"]) for row in found] == [(1, None), (2, None), (2, None), (4, 10), (4, 10)]
    assert [row["_z"] for row in found] == [None, None, None, 1, 1]


@pytest.mark.parametrize("version", [1, 2])
def test_a_clone_starts_with_the_rows_that_it_shows(uri, tmp_path, version):
    create(uri, [1, 2]).update({"x": "1"})
    clone = str(tmp_path / "clone.lance")
    first = lance_dataset.dataset(uri).shallow_clone(clone, version).version
    lance_dataset.dataset(clone).insert(table([3]))
    made = batch_reader(clone, startingVersion=str(first))
    found = rows_of(made, made.partitions())
    assert [(row["id"], row["_change_type"]) for row in found] == [(1, "insert"), (2, "insert"), (3, "insert")]
    assert reader(clone, startingVersion=str(first)).rows.size(first).rows == 2
    appended = LanceDataSource({"path": clone, "startingVersion": str(first)})
    stream = appended.streamReader(appended.schema())
    parts = stream.partitions({"version": first - 1}, {"version": first + 1})
    assert [row["id"] for row in rows_of(stream, parts)] == [1, 2, 3]


def test_limits_of_a_batch_count_changes(uri):
    ds = create(uri, range(10))
    ds.update({"x": "1"}, where="id < 3")
    ds.delete("id >= 8")
    ds.insert(table([20]))
    made = reader(uri, startingVersion="1", maxBytesPerTrigger="1")
    assert made.getDefaultReadLimit().max_bytes == 1
    sizes = [made.rows.size(version) for version in (1, 2, 3, 4)]
    assert [size.rows for size in sizes] == [10, 6, 2, 1]
    assert (sizes[2].bytes, sizes[0].bytes > sizes[3].bytes > 0) == (0, True)
    limit = reader(uri, startingVersion="1", maxRowsPerTrigger="8").getDefaultReadLimit()
    assert [made.latestOffset({"version": start}, limit)["version"] for start in (0, 1, 2, 3)] == [1, 3, 4, 4]
    by_bytes = made.getDefaultReadLimit()
    assert [made.latestOffset({"version": start}, by_bytes)["version"] for start in (0, 1, 2, 3)] == [1, 2, 3, 4]


def test_many_deleted_rows_are_shared_among_tasks(uri, monkeypatch):
    monkeypatch.setattr("lance_dataset.spark.streaming.changes._IDS_PER_TASK", 7)
    monkeypatch.setattr("lance_dataset.spark.streaming.changes._IDS_PER_SCAN", 3)
    create(uri, range(40)).delete("id % 2 = 0")
    made = reader(uri, startingVersion="1")
    parts = made.partitions({"version": 1}, {"version": 2})
    assert len(parts) == 3
    assert sorted(row["id"] for row in rows_of(made, parts)) == list(range(0, 40, 2))


def test_what_cannot_be_told_is_refused(uri, tmp_path):
    plain = str(tmp_path / "plain.lance")
    lance_dataset.write_dataset(table([1]), plain)
    with pytest.raises(InvalidInputError, match=r"Version 1 of .* has no stable row ids.*enable_stable_row_ids"):
        changes(plain, 0, 1)
    ds = create(uri, [1])
    ds.update({"x": "1"})
    ds.update({"x": "2"})
    ds.cleanup_old_versions(retain_versions=1)
    with pytest.raises(VersionNotFoundError, match=r"needs version 2 of .* which a cleanup has removed"):
        changes(uri, 2, 3)
    with pytest.raises(InvalidInputError, match="'skip_changes' contradicts 'read_change_feed'"):
        reader(uri, skipChanges="true")
    with pytest.raises(InvalidInputError, match="'ending_version' does not go with readStream"):
        reader(uri, endingVersion="1")
    with pytest.raises(InvalidInputError, match="'max_rows_per_trigger' does not go with a read of changes"):
        batch_reader(uri, maxRowsPerTrigger="1")
    ds.add_columns({"_change_type": "id"})
    with pytest.raises(SchemaError, match="has a column '_change_type', which is the name of a column of changes"):
        source(uri).schema()


def test_operations_whose_rows_are_unknown_are_refused(uri):
    create(uri, [1])
    rows = reader(uri).rows
    for operation, name in ((lance_dataset.LanceOperation.DataOverlay([]), "DataOverlay"), (None, "something")):
        with pytest.raises(UnsupportedError, match=f"Version 1 of .* made by {name} of which .* starting_version 2"):
            rows.checked(1, operation)


@settings(
    max_examples=300 if THOROUGH else 6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["insert", "update", "delete", "merge", "compact"]), st.integers(0, 12), st.integers(1, 5)
        ),
        max_size=6,
    )
)
def test_changes_applied_in_order_give_each_version(tmp_path_factory, steps):
    uri = str(tmp_path_factory.mktemp("changes") / "t.lance")
    ds = create(uri, range(6))
    for number, (step, first, count) in enumerate(steps, 1):
        ids = list(range(first, first + count))
        condition = f"id >= {first} AND id < {first + count}"
        if step == "insert":
            ds.insert(table([100 * number + n for n in ids], number))
        elif step == "update":
            ds.update({"x": str(number)}, where=condition)
        elif step == "delete":
            ds.delete(condition)
        elif step == "merge":
            ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(table(ids, number))
        else:
            ds.optimize.compact_files()
    made = reader(uri, startingVersion="1")
    state: list[tuple[int, int]] = []
    for version in range(1, ds.version + 1):
        found = rows_of(made, made.partitions({"version": version - 1}, {"version": version}))
        for row in sorted(found, key=lambda row: row["_change_type"] in ("insert", "update_postimage")):
            image = (row["id"], row["x"])
            if row["_change_type"] in ("insert", "update_postimage"):
                state.append(image)
            else:
                state.remove(image)
        stored = reference.dataset(uri, version=version).to_table(columns=["id", "x"])
        assert sorted(state) == sorted(zip(*stored.to_pydict().values(), strict=True))


def test_changes_of_one_dataset_keep_another_like_it(spark, uri, tmp_path):
    target = str(tmp_path / "copy.lance")
    ds = create(uri, range(6))

    def run():
        stream = spark.readStream.format("lance").option("readChangeFeed", "true").option("maxVersionsPerTrigger", 4)
        query = (
            stream.load(uri).writeStream.foreachBatch(upsert_into(target, "id", enable_stable_row_ids=True))
            .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        assert query.exception() is None

    def same():
        stored = [reference.dataset(each).to_table().sort_by("id").to_pylist() for each in (uri, target)]
        return stored[0] == stored[1]

    run()
    assert same()
    ds.update({"x": "3"}, where="id < 2")
    ds.update({"x": "4"}, where="id = 1")
    ds.delete("id = 5")
    ds.insert(table([7]))
    ds.delete("id = 7")
    ds.update({"id": "id + 100"}, where="id = 4")
    run()
    assert same()
    # Spark repeats the last batch if it stopped between the commit of the dataset and its own.
    version = lance_dataset.dataset(target).version
    marks = sorted(Path(tmp_path, "checkpoint", "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for mark in (marks[-1], marks[-1].with_name(f".{marks[-1].name}.crc")):
        mark.unlink()
    run()
    assert (same(), lance_dataset.dataset(target).version) == (True, version)


def test_the_latest_row_of_a_key_counts(spark, uri):
    frame = spark.createDataFrame([(1, 5), (1, 7), (1, None), (2, 1)], "id bigint, x bigint")
    for number in (0, 0, 1):
        upsert_into(uri, "id", latest_by="x", name="q")(frame, number)
    assert sorted(reference.dataset(uri).to_table().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "x": 7}, {"id": 2, "x": 1},
    ]  # fmt: skip
    assert reference.dataset(uri).version == 3
    with pytest.raises(FieldNotFoundError, match="no column 'idd' in the batch"):
        upsert_into(uri, "idd", name="q")(frame, 2)
    with pytest.raises(InvalidInputError, match="give upsert_into a name"):
        upsert_into(uri, "id")(frame, 2)
    with pytest.raises(InvalidInputError, match="at least one key"):
        upsert_into(uri, [])


def test_spark_reads_changes_as_a_table(spark, uri):
    create(uri, [1, 2]).update({"x": "9"}, where="id = 2")
    frame = spark.read.format("lance").option("readChangeFeed", "true").option("startingVersion", 2).load(uri)
    found = frame.select("id", "x", "_change_type", "_commit_version").orderBy("x").collect()
    assert [tuple(row) for row in found] == [(2, 0, "update_preimage", 2), (2, 9, "update_postimage", 2)]
