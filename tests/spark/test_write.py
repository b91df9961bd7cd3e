"""Tests of writing datasets from Spark."""

from __future__ import annotations

import os
import time
from decimal import Decimal
from pathlib import Path

import lance as reference
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import functions as F

import lance_dataset
from lance_dataset.errors import AlreadyExistsError, SchemaError, UnsupportedError
from lance_dataset.spark.batches import _check, check_storable
from lance_dataset.spark.options import WriteOptions
from lance_dataset.spark.write_schema import _nullable as _all_nullable
from lance_dataset.spark.write_schema import check_maps, stores_null_structs
from lance_dataset.spark.writer import FragmentsMessage, LanceWriter, plan_write


def save(frame, uri, mode, **options):
    frame.write.format("lance").mode(mode).options(**options).save(uri)


def values(uri, column="id"):
    """Return the values that the reference reads, sorted."""
    return sorted(reference.dataset(uri).to_table()[column].to_pylist())


def failing(spark, uri, rows=200):
    """Return a frame of two partitions, of which the second fails after the first was written for a while."""
    folder = os.path.join(uri, "data")
    before = len(os.listdir(folder)) if os.path.isdir(folder) else 0

    def explode(number: int) -> int:
        if number == rows - 10:
            give_up = time.monotonic() + 60
            while time.monotonic() < give_up and not (os.path.isdir(folder) and len(os.listdir(folder)) > before):
                time.sleep(0.1)
            time.sleep(2)
            raise RuntimeError("told to fail")
        return number

    return spark.range(0, rows, 1, 2).select(F.udf(explode, "bigint")("id").alias("id"))


def test_append_creates_and_appends_in_single_commits(spark, uri):
    save(spark.range(0, 100, 1, 4), uri, "append")
    first = reference.dataset(uri)
    assert (first.version, len(first.get_fragments()), values(uri)) == (1, 4, list(range(100)))
    save(spark.range(100, 150, 1, 2), uri, "append")
    assert (reference.dataset(uri).version, values(uri)) == (2, list(range(150)))
    assert lance_dataset.dataset(uri).count_rows() == 150


def test_overwrite_replaces_data_and_schema(spark, uri):
    save(spark.range(10), uri, "overwrite")
    save(spark.range(3).selectExpr("cast(id AS string) name"), uri, "overwrite")
    assert values(uri, "name") == ["0", "1", "2"]
    assert reference.dataset(uri).version == 2
    assert reference.dataset(uri, version=1).count_rows() == 10


def test_a_dataset_may_be_overwritten_with_itself(spark, uri):
    save(spark.range(0, 50, 1, 3), uri, "append")
    frame = spark.read.format("lance").load(uri)
    save(frame.filter("id % 2 = 0"), uri, "overwrite")
    assert values(uri) == list(range(0, 50, 2))
    save(spark.read.format("lance").load(uri), uri, "append")
    assert values(uri) == sorted(2 * list(range(0, 50, 2)))


@pytest.mark.parametrize("mode", ["error", "errorifexists", None])
def test_error_mode_creates_once(spark, uri, mode, data_files):
    writer = spark.range(5).write.format("lance")
    (writer.mode(mode) if mode else writer).save(uri)
    before = data_files()
    with pytest.raises(AnalysisException, match="Dataset already exists"):
        spark.range(5).write.save(uri, format="lance", mode=mode)
    assert (values(uri), reference.dataset(uri).version, data_files()) == (list(range(5)), 1, before)


def test_ignore_mode_leaves_an_existing_dataset_alone(spark, uri, data_files):
    save(spark.range(5), uri, "ignore")
    before = data_files()
    save(spark.range(5, 9000), uri, "ignore")
    save(spark.sql("SELECT 'other' other"), uri, "ignore")
    assert (values(uri), reference.dataset(uri).version, data_files()) == (list(range(5)), 1, before)


def test_other_formats_keep_their_save_modes(spark, tmp_path):
    path = str(tmp_path / "parquet")
    spark.range(3).write.parquet(path)
    spark.range(9).write.format("parquet").mode("ignore").save(path)
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        spark.range(3).write.save(path, format="parquet")
    assert spark.read.parquet(path).count() == 3


def test_empty_frames_and_empty_partitions(spark, uri):
    save(spark.range(0), uri, "append")
    assert (reference.dataset(uri).version, reference.dataset(uri).count_rows()) == (1, 0)
    assert reference.dataset(uri).schema.names == ["id"]
    save(spark.range(0), uri, "append")
    assert reference.dataset(uri).version == 1
    save(spark.range(0, 100, 1, 8).filter("id < 3"), uri, "append")
    assert (values(uri), len(reference.dataset(uri).get_fragments())) == ([0, 1, 2], 1)
    save(spark.range(0), uri, "overwrite")
    assert (reference.dataset(uri).version, reference.dataset(uri).count_rows()) == (3, 0)
    save(spark.range(0), uri, "overwrite", data_storage_version="2.0")
    assert reference.dataset(uri).data_storage_version == "2.0"


def test_max_rows_per_file_and_storage_version(spark, uri):
    save(spark.range(0, 1000, 1, 2), uri, "append", max_rows_per_file=200, data_storage_version="2.0")
    dataset = reference.dataset(uri)
    assert [fragment.count_rows() for fragment in dataset.get_fragments()] == [200, 200, 100] * 2
    assert dataset.data_storage_version == "2.0"
    save(spark.range(5), uri, "append")
    assert reference.dataset(uri).data_storage_version == "2.0"
    with pytest.raises(AnalysisException, match=r"2\.1"):
        save(spark.range(5), uri, "append", data_storage_version="2.1")
    with pytest.raises(AnalysisException, match=r"Unknown Lance storage version: 9\.9"):
        save(spark.range(5), uri, "overwrite", data_storage_version="9.9")
    assert reference.dataset(uri).version == 2


def test_overwriting_changes_the_storage_version(spark, uri):
    reference.write_dataset(pa.table({"id": [7]}), uri, data_storage_version="2.2")
    save(spark.range(5), uri, "overwrite", data_storage_version="2.0")
    assert reference.dataset(uri).data_storage_version == "2.0"
    assert values(uri) == list(range(5))


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_failed_job_changes_nothing_and_leaves_no_files(spark, uri, mode, data_files):
    save(spark.range(10), uri, "append")
    before = data_files()
    with pytest.raises(PythonException, match="told to fail"):
        save(failing(spark, uri), uri, mode)
    assert (reference.dataset(uri).version, values(uri)) == (1, list(range(10)))
    assert data_files() == before


def test_a_failed_creation_leaves_no_dataset(spark, uri, data_files):
    with pytest.raises(PythonException, match="told to fail"):
        save(failing(spark, uri), uri, "error")
    assert data_files() == []
    save(spark.range(4), uri, "error")
    assert values(uri) == list(range(4))


def test_columns_are_matched_by_name_and_filled(spark, uri):
    table = pa.table({"a": pa.array([1], pa.int32()), "b": pa.array(["x"], pa.large_string()), "c": pa.array([0.5])})
    lance_dataset.write_dataset(table, uri)
    save(spark.sql("SELECT 'y' b, cast(2 AS tinyint) a"), uri, "append")
    assert reference.dataset(uri).to_table().to_pylist() == [
        {"a": 1, "b": "x", "c": 0.5},
        {"a": 2, "b": "y", "c": None},
    ]


def test_appended_values_take_the_types_of_the_dataset(spark, uri):
    table = pa.table(
        {
            "u": pa.array([1], pa.uint64()),
            "s": pa.array([1], pa.uint8()),
            "v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)),
            "t": pa.array([0], pa.timestamp("ns", "Europe/Berlin")),
            "k": pa.array(["x"]).dictionary_encode(),
        }
    )
    lance_dataset.write_dataset(table, uri)
    sql = """SELECT cast({u} AS decimal(20,0)) u, cast({s} AS smallint) s, array(3.0f, 4.0f) v, 'y' k,
             timestamp'2024-07-01 08:00:00.000001' t"""
    save(spark.sql(sql.format(u=2**64 - 1, s=255)), uri, "append")
    row = reference.dataset(uri).to_table().slice(1).to_pydict()
    assert (row["u"], row["s"], row["v"], row["k"]) == ([2**64 - 1], [255], [[3.0, 4.0]], ["y"])
    assert row["t"][0].isoformat() == "2024-07-01T14:00:00.000001+02:00"
    for u, s, name in ((-1, 1, "u"), (1, 256, "s")):
        with pytest.raises(PythonException, match=f"Column '{name}' .* without loss"):
            save(spark.sql(sql.format(u=u, s=s)), uri, "append")
    assert reference.dataset(uri).count_rows() == 2


def test_numbers_of_other_types_are_appended_if_they_fit(spark, uri):
    table = pa.table(
        {
            "n": pa.array([1], pa.int32()),
            "d": pa.array([0.5]),
            "l": pa.array([[1]], pa.list_(pa.int16())),
            "s": pa.array([{"x": 1}], pa.struct([("x", pa.int64())])),
            "m": pa.array([Decimal("1.25")], pa.decimal128(10, 2)),
        }
    )
    lance_dataset.write_dataset(table, uri)
    sql = "SELECT cast({n} AS {kind}) n, 7L d, array(5L, null) l, struct(3 x) s, cast({m} AS decimal(12,3)) m"
    save(spark.sql(sql.format(n=2, kind="bigint", m="2.5")), uri, "append")
    save(spark.sql(sql.format(n=3.0, kind="double", m="null")), uri, "append")
    rows = reference.dataset(uri).to_table().to_pylist()
    assert rows[1] == {"n": 2, "d": 7.0, "l": [5, None], "s": {"x": 3}, "m": Decimal("2.50")}
    assert (rows[2]["n"], rows[2]["m"]) == (3, None)
    for n, kind, m, name in ((2**31, "bigint", "0", "n"), (2.5, "double", "0", "n"), (1, "int", "0.125", "m")):
        with pytest.raises(PythonException, match=f"Column '{name}' .* without loss"):
            save(spark.sql(sql.format(n=n, kind=kind, m=m)), uri, "append")
    assert reference.dataset(uri).version == 3


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT 1L idd", "Column 'idd' is not in the dataset; did you mean 'id'"),
        ("SELECT 'x' id", r"Column 'id' is string in the data, but int64 in the dataset; write df.withColumn\('id'"),
        ("SELECT 'x' name", "The data lacks the column 'id', which is not nullable"),
    ],
)
def test_data_that_does_not_fit_is_refused_before_any_task(spark, uri, sql, message, data_files):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    lance_dataset.write_dataset(pa.table({"id": [1], "name": ["a"]}, schema=schema), uri)
    before = data_files()
    with pytest.raises(AnalysisException, match=message):
        save(spark.sql(sql), uri, "append")
    assert data_files() == before


def test_nulls_in_a_column_that_is_not_nullable(spark, uri, data_files):
    items = pa.list_(pa.field("item", pa.int32(), nullable=False))
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("l", items)])
    lance_dataset.write_dataset(pa.table({"id": [1], "l": [[1]]}, schema=schema), uri)
    before = data_files()
    save(spark.sql("SELECT 2L id, array(5) l"), uri, "append")
    for sql, name in (
        ("SELECT cast(null AS bigint) id, array(1) l", "id"),
        ("SELECT 1L id, array(1, null) l", r"l\[\]"),
    ):
        with pytest.raises(PythonException, match=f"Column '{name}' is not nullable"):
            save(spark.sql(sql), uri, "append")
    assert len(data_files()) == len(before) + 1


def test_null_structs_and_maps_need_newer_files(spark, uri, data_files):
    structs = spark.sql(
        "SELECT 1 id, named_struct('x', named_struct('y', 1)) s UNION ALL SELECT 2, named_struct('x', null)"
    )
    with pytest.raises(PythonException, match=r"Column 's\.x' has null structs, which files of version 2\.0"):
        save(structs.coalesce(1), uri, "append", data_storage_version="2.0")
    with pytest.raises(AnalysisException, match=r"Column 'm' holds maps, which files of version 2\.0"):
        save(spark.sql("SELECT map('a', 1) m"), uri, "overwrite", data_storage_version="2.0")
    assert data_files() == []


def test_what_each_file_version_has_room_for():
    assert [stores_null_structs(version) for version in ("0.1", "2.0", "2.1", "2.3")] == [False, False, True, True]
    maps = pa.schema([("l", pa.list_(pa.map_(pa.string(), pa.int32())))])
    for version in ("0.1", "2.0", "2.1"):
        with pytest.raises(UnsupportedError, match=f"Column 'l' holds maps, which files of version {version}"):
            check_maps(maps, version)
    check_maps(maps, "2.2")


def test_nulls_are_found_at_any_depth():
    inner = pa.struct([pa.field("n", pa.int32(), nullable=False)])
    for arrow, value, path in (
        (pa.list_(inner), [{"n": None}], r"x\[\]\.n"),
        (pa.map_(pa.string(), inner), [("k", {"n": None})], r"x\[\]\.value\.n"),
        (pa.struct([("s", pa.list_(inner))]), {"s": [{"n": None}]}, r"x\.s\[\]\.n"),
    ):
        loose = pa.array([value, None], _all_nullable(arrow))
        batch = pa.RecordBatch.from_arrays([loose], schema=pa.schema([("x", _all_nullable(arrow))]))
        check_storable(batch, null_structs=True)
        with pytest.raises(SchemaError, match=f"Column '{path}' is not nullable"):
            _check(loose, pa.field("x", arrow), "x", True)


def test_wrong_write_options(spark, uri):
    for options, message in (
        ({"max_rows_per_fil": 3}, "did you mean 'max_rows_per_file'"),
        ({"max_rows_per_file": -1}, "positive whole number"),
        ({"if_exists": "replace"}, "must be 'error' or 'ignore'"),
    ):
        with pytest.raises(AnalysisException, match=message):
            save(spark.range(3), uri, "append", **options)
    with pytest.raises(AnalysisException, match="cannot be combined with the mode overwrite"):
        save(spark.range(3), uri, "overwrite", if_exists="error")
    assert not Path(uri).exists()


# -- the protocol of tasks and driver, without Spark: retries, races, aborts -------------------------------------------


def writer_for(uri, frame_schema="id bigint", overwrite=False, **options) -> LanceWriter:
    from pyspark.sql.types import _parse_datatype_string

    schema = _parse_datatype_string(frame_schema)
    return LanceWriter(plan_write(WriteOptions(uri, **options), schema, overwrite))


def batches(*numbers):
    return iter([pa.record_batch({"id": pa.array([number], pa.int64())}) for number in numbers])


def test_only_messages_that_arrive_are_committed(spark, uri):
    writer = writer_for(uri)
    writer.write(batches(1, 2))  # an attempt whose message was lost, then its repetition
    message = writer.write(batches(1, 2))
    writer.commit([message, None, writer.write(batches(3))])
    assert values(uri) == [1, 2, 3]


def test_a_creation_never_replaces_a_dataset_made_meanwhile(spark, uri, data_files):
    slow, ignoring, fast = writer_for(uri), writer_for(uri, if_exists="ignore"), writer_for(uri)
    slow_message, ignoring_message = slow.write(batches(1)), ignoring.write(batches(2))
    fast.commit([fast.write(batches(7))])
    with pytest.raises(AlreadyExistsError):
        slow.commit([slow_message])
    slow.abort([slow_message])
    ignoring.commit([ignoring_message])
    assert values(uri) == [7]
    assert len(data_files()) == 1


def test_concurrent_appends_both_count(spark, uri):
    writer_for(uri).commit([FragmentsMessage(())])
    one, two = writer_for(uri), writer_for(uri)
    messages = one.write(batches(1)), two.write(batches(2))
    one.commit([messages[0]])
    two.commit([messages[1]])
    assert (values(uri), reference.dataset(uri).version) == ([1, 2], 3)


def test_an_abort_after_a_commit_that_went_through_removes_nothing(spark, uri):
    writer = writer_for(uri)
    message = writer.write(batches(1, 2))
    writer.commit([message])
    writer.abort([message])
    assert values(uri) == [1, 2]


def test_a_failing_task_removes_the_files_it_finished(spark, uri, data_files):
    writer = writer_for(uri, max_rows_per_file=1)

    def broken():
        yield from batches(1, 2, 3)
        raise RuntimeError("told to fail")

    with pytest.raises(RuntimeError, match="told to fail"):
        writer.write(broken())
    assert data_files() == []


def test_errors_of_the_plan(spark, uri):
    with pytest.raises(UnsupportedError, match="Column 'm' holds maps"):
        writer_for(uri, "m map<string,int>", data_storage_version="2.0")
    writer_for(uri).commit([FragmentsMessage(())])
    with pytest.raises(SchemaError, match="Column 'x' is not in the dataset"):
        writer_for(uri, "x int")
