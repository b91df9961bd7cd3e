"""Changes from Spark: each is one version, and a job that is repeated changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance as reference
import pyarrow as pa
import pytest
from pyspark.sql.types import _parse_datatype_string

import lance_dataset
from lance_dataset.errors import CommitConflictError, FilterError, InvalidInputError, LanceError, SchemaError
from lance_dataset.spark import delete, merge_into, update
from lance_dataset.spark.jobs.fragment_commit import retried
from lance_dataset.spark.jobs.job_marks import JobMark
from lance_dataset.spark.options import WriteOptions
from lance_dataset.spark.writer import LanceWriter, plan_write


@pytest.fixture
def stored(uri):
    lance_dataset.write_dataset(
        pa.table({"id": range(10), "day": [i % 3 for i in range(10)]}), uri, max_rows_per_file=4
    )
    return uri


def rows(uri):
    table = reference.dataset(uri).to_table()
    return sorted(zip(table["id"].to_pylist(), table["day"].to_pylist(), strict=True))


def writer(uri, overwrite=False, **options):
    schema = _parse_datatype_string("id bigint, day bigint")
    return LanceWriter(plan_write(WriteOptions.parse({"path": uri, **options}), schema, overwrite))


def batch(*pairs):
    return iter([pa.record_batch({"id": [one for one, _ in pairs], "day": [other for _, other in pairs]})])


@pytest.mark.usefixtures("session")
class TestWriter:
    """The protocol of tasks and driver, called as Spark does."""

    def test_the_rows_of_a_condition_are_replaced(self, stored):
        one = writer(stored, True, replace_where="day = 1")
        one.commit([one.write(batch((1, 1), (40, 1)))])
        assert rows(stored) == sorted([(i, i % 3) for i in range(10) if i % 3 != 1] + [(1, 1), (40, 1)])
        assert reference.dataset(stored).version == 2

    def test_replacing_waits_for_no_one_and_loses_nothing(self, stored):
        one, other = writer(stored, True, replace_where="day = 1"), writer(stored, True, replace_where="day = 2")
        messages = one.write(batch((100, 1))), other.write(batch((200, 2)))
        lance_dataset.dataset(stored).delete("id = 0")
        one.commit([messages[0]])
        other.commit([messages[1]])
        assert rows(stored) == [(3, 0), (6, 0), (9, 0), (100, 1), (200, 2)]

    def test_replacing_with_nothing_deletes(self, stored):
        one = writer(stored, True, replace_where="id < 9")
        one.commit([one.write(iter([]))])
        assert rows(stored) == [(9, 0)]

    @pytest.mark.parametrize("overwrite", [False, True])
    def test_a_named_job_counts_once(self, stored, overwrite):
        first, second = (writer(stored, overwrite, txn_id="job 7") for _ in range(2))
        messages = first.write(batch((50, 0))), second.write(batch((50, 0)))
        first.commit([messages[0]])
        expected = rows(stored)
        second.commit([messages[1]])
        third = writer(stored, overwrite, txn_id="job 7")
        assert third.plan.action == "skip"
        third.commit([third.write(batch((50, 0)))])
        assert rows(stored) == expected
        assert reference.dataset(stored).version == 2
        assert len(list(Path(stored, "data").iterdir())) == 4
        other = writer(stored, overwrite, txn_id="job 8")
        other.commit([other.write(batch((51, 0)))])
        assert reference.dataset(stored).version == 3

    def test_a_named_creation_counts_once(self, uri):
        first, second = (writer(uri, txn_id="job") for _ in range(2))
        messages = first.write(batch((1, 1))), second.write(batch((1, 1)))
        first.commit([messages[0]])
        second.commit([messages[1]])
        assert rows(uri) == [(1, 1)]

    @pytest.mark.parametrize(("overwrite", "options"), [(False, {}), (True, {}), (True, {"replace_where": "day = 0"})])
    def test_of_two_runs_at_the_very_same_time_one_makes_a_version(self, stored, monkeypatch, overwrite, options):
        first, second = (writer(stored, overwrite, txn_id="job", **options) for _ in range(2))
        messages = first.write(batch((50, 0))), second.write(batch((50, 0)))
        monkeypatch.setattr(LanceWriter, "_has_committed", lambda *_: False)
        first.commit([messages[0]])
        second.commit([messages[1]])
        assert [pair for pair in rows(stored) if pair[0] == 50] == [(50, 0)]
        assert reference.dataset(stored).version == 2
        assert len(list(Path(stored, "data").iterdir())) == 4

    def test_many_runs_of_jobs_at_once(self, stored):
        runs = [(job, writer(stored, txn_id=f"job {job}")) for job in range(4) for _ in range(6)]
        messages = [one.write(batch((100 + job, 0))) for job, one in runs]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda run, message: run[1].commit([message]), runs, messages))
        assert [pair for pair in rows(stored) if pair[0] >= 100] == [(100 + job, 0) for job in range(4)]
        assert reference.dataset(stored).version == 5

    def test_rows_that_are_not_replaced_are_refused(self, stored, data_files):
        before = data_files()
        one = writer(stored, True, replace_where="day = 1")
        with pytest.raises(InvalidInputError, match=r"is not true for a row to write: {'id': 41, 'day': None}"):
            one.write(batch((40, 1), (41, None)))
        assert data_files() == before

    def test_wrong_options(self, stored):
        with pytest.raises(InvalidInputError, match="needs the mode overwrite"):
            writer(stored, replace_where="day = 1")
        with pytest.raises(LanceError, match="nix"):
            writer(stored, True, replace_where="nix = 1")
        with pytest.raises(LanceError, match="_rowid"):
            writer(stored, True, replace_where="_rowid = 1")


def test_batches_of_a_query_are_in_order(stored):
    for number in (0, 1, 2):
        transaction = lance_dataset.Transaction(
            reference.dataset(stored).version,
            lance_dataset.LanceOperation.Append(
                lance_dataset.write_fragments(pa.table({"id": [0], "day": [0]}), stored)
            ),
            transaction_properties=JobMark("query", number).properties,
        )
        lance_dataset.LanceDataset.commit(stored, transaction)
    dataset = lance_dataset.dataset(stored)
    assert [JobMark("query", number).committed_in(dataset) for number in range(4)] == [2, 3, 4, None]
    assert JobMark("other", 1).committed_in(dataset) is None
    assert JobMark("query", 0).committed_in(dataset, after=2) is None


def test_spark_passes_the_options(spark, stored):
    frame = spark.createDataFrame([(70, 1)], "id bigint, day bigint")
    for _ in range(2):
        named = frame.write.format("lance").mode("overwrite").option("txn_id", "x")
        named.option("replaceWhere", "day = 1").save(stored)
    assert [pair for pair in rows(stored) if pair[1] == 1] == [(70, 1)]
    assert reference.dataset(stored).version == 2


def test_merges_by_key(spark, stored):
    source = spark.createDataFrame([(9, 90), (10, 100), (11, 110)], "id bigint, day int")
    counts = merge_into(source, stored, "id", txn_id="merge 1")
    assert counts == {"num_inserted_rows": 2, "num_updated_rows": 1, "num_deleted_rows": 0}
    assert rows(stored)[-3:] == [(9, 90), (10, 100), (11, 110)]
    assert reference.dataset(stored).version == 2
    assert merge_into(source, stored, "id", txn_id="merge 1")["num_updated_rows"] == 0
    assert reference.dataset(stored).version == 2
    kept = merge_into(
        source.filter("id = 10"), stored, ["id"], when_matched="ignore", when_not_matched="ignore",
        when_not_matched_by_source="delete", by_source_condition="id > 5",
    )  # fmt: skip
    assert kept["num_deleted_rows"] == 5
    assert [pair[0] for pair in rows(stored)] == [0, 1, 2, 3, 4, 5, 10]
    assert [path.name for path in Path(stored).parent.iterdir()] == ["table.lance"]


def test_wrong_merges_do_not_start(spark, stored):
    source = spark.createDataFrame([(9, 90)], "id bigint, day int")
    for wrong, kind, message in (
        ({"when_matched": "replace"}, InvalidInputError, "when_matched must be one of 'update', 'delete'"),
        ({"when_matched": "delete", "when_matched_condition": "x"}, InvalidInputError, "needs when_matched='update'"),
        ({"by_source_condition": "x"}, InvalidInputError, "needs when_not_matched_by_source='delete'"),
        ({"on": "nix"}, LanceError, "nix"),
        ({"when_matched_condition": "source.day >"}, FilterError, "day"),
    ):
        with pytest.raises(kind, match=message):
            merge_into(source, stored, **{"on": "id", **wrong})
    with pytest.raises(SchemaError, match="Column 'other' is not in the dataset"):
        merge_into(source.withColumnRenamed("day", "other"), stored, "id")
    assert [path.name for path in Path(stored).parent.iterdir()] == ["table.lance"]


def test_updates_and_deletes(stored):
    assert update(stored, {"day": "day + 10"}, "id < 2") == 2
    assert rows(stored)[:3] == [(0, 10), (1, 11), (2, 2)]
    assert delete(stored, "id > 0") == 9
    assert rows(stored) == [(0, 10)]


def test_only_conflicts_that_can_be_solved_are_repeated():
    tries = []

    def attempt(retryable):
        tries.append(retryable)
        if len(tries) < 3:
            raise CommitConflictError("again", retryable=retryable)
        return "done"

    assert retried(lambda: attempt(True)) == "done"
    tries.clear()
    with pytest.raises(CommitConflictError):
        retried(lambda: attempt(False))
    assert tries == [False]
