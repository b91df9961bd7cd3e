"""Tests of checks and refreshed indices by tasks."""

from __future__ import annotations

from pathlib import Path

import lance as reference
import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException

import lance_dataset
from lance_dataset.errors import CommitConflictError, CorruptFileError, FieldNotFoundError, InvalidInputError
from lance_dataset.optimize import Compaction
from lance_dataset.reports.statistics import column_statistics as read_statistics
from lance_dataset.spark import (
    cleanup,
    column_statistics,
    compact,
    create_indices,
    lance_sql,
    maintain,
    refresh_indices,
    validate,
)


def rows(start, stop):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2 * start, 2 * stop), pa.float32()), 2)
    texts = [f"word{n % 5} common" for n in range(start, stop)]
    return pa.table({"n": range(start, stop), "text": texts, "v": vectors})


@pytest.fixture
def stored(uri):
    """Return a dataset of 60 rows in 3 fragments."""
    lance_dataset.write_dataset(rows(0, 60), uri, max_rows_per_file=20, enable_stable_row_ids=True)
    return uri


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def test_damage_is_found_by_tasks(spark, stored):
    dataset = lance_dataset.dataset(stored)
    dataset.delete("n = 3")
    assert validate(spark, stored, values=True) == {"fragments": 3, "rows": 59}
    assert validate(spark, stored, version=1) == {"fragments": 3, "rows": 60}
    (shown,) = lance_sql(spark, f"VALIDATE '{stored}' WITH (values = true)").collect()
    assert shown.asDict() == {"fragments": 3, "rows": 59}
    paths = [Path(stored, "data", fragment.data_files()[0].path) for fragment in dataset.get_fragments()]
    cut(paths[0])
    paths[2].unlink()
    with pytest.raises(CorruptFileError, match=r"Version 2 of .* is damaged: fragment 0: .*; fragment 2: "):
        validate(spark, stored)


def test_values_are_decoded_if_wanted(spark, stored):
    (first, *_) = lance_dataset.dataset(stored).get_fragments()
    path = Path(stored, "data", first.data_files()[0].path)
    content = bytearray(path.read_bytes())
    place = content.find(b"word1 common")  # the lengths of the texts are before it
    content[max(place - 64, 0) : place] = b"\xff" * (place - max(place - 64, 0))
    path.write_bytes(content)
    assert validate(spark, stored)["rows"] == 60
    with pytest.raises(CorruptFileError, match="fragment 0: "):
        validate(spark, stored, values=True)


def test_empty_datasets_are_valid_and_have_no_indices_to_refresh(spark, uri):
    lance_dataset.write_dataset(rows(0, 0), uri)
    assert validate(spark, uri) == {"fragments": 0, "rows": 0}
    assert refresh_indices(spark, uri) == {}


def test_indices_get_the_rows_they_lack(spark, stored):
    dataset = lance_dataset.dataset(stored)
    dataset.create_scalar_index("n", "BTREE", "by_n")
    dataset.create_scalar_index("text", "INVERTED", "words", base_tokenizer="whitespace")
    dataset.create_index("v", "IVF_FLAT", "near", num_partitions=2)
    lance_dataset.write_dataset(rows(60, 100), stored, mode="append", max_rows_per_file=20)
    before = lance_dataset.dataset(stored).version
    assert refresh_indices(spark, stored, ["by_n", "words"], segments=2) == {"by_n": 2, "words": 2}
    assert lance_dataset.dataset(stored).version == before + 1
    shown = lance_sql(spark, f"REFRESH INDEXES ON '{stored}'").collect()
    assert [tuple(row) for row in shown] == [("near", 1)]
    assert refresh_indices(spark, stored) == {}
    for each in (reference.dataset(stored), lance_dataset.dataset(stored)):
        assert [index.num_rows_indexed for index in each.describe_indices()] == [100, 100, 100]
        assert each.to_table(filter="n = 71 OR n = 5")["n"].to_pylist() == [5, 71]
        assert each.to_table(full_text_query="word1", columns=["n"]).num_rows == 20
        found = each.to_table(nearest={"column": "v", "q": [160.0, 161.0], "k": 1, "nprobes": 2}, columns=["n"])
        assert found["n"].to_pylist() == [80]
    lance_dataset.dataset(stored).validate(indices=True)


@pytest.mark.parametrize("statement", ["REFRESH INDEX nothing ON '{}'", "REFRESH TABLE '{}'"])
def test_wrong_statements(spark, stored, statement):
    with pytest.raises(InvalidInputError, match=r"has no index 'nothing'|expected INDEXES"):
        lance_sql(spark, statement.format(stored))


def small_files(uri):
    lance_dataset.write_dataset(rows(0, 160), uri, max_rows_per_file=10)
    dataset = lance_dataset.dataset(uri)
    dataset.create_scalar_index("n", "BTREE")
    dataset.insert(rows(160, 200))
    return dataset


def test_tasks_do_what_the_policy_says(spark, uri):
    dataset = small_files(uri)
    assert [step.outcome for step in maintain(spark, uri, dry_run=True).steps] == ["due", "due", "nothing to do"]
    report = maintain(spark, uri)
    assert [step.outcome for step in report.steps] == ["done", "done", "nothing to do"]
    dataset.checkout_latest()
    assert report.version == dataset.version
    assert len(dataset.get_fragments()) == 2
    assert [len(index.segments) for index in dataset.describe_indices()] == [2]
    assert dataset.count_rows("n = 170") == 1
    dataset.update_config({"maintenance.cleanup.older_than": "0s"})
    shown = {row.step: row for row in lance_sql(spark, f"MAINTAIN '{uri}'").collect()}
    assert {step: row.outcome for step, row in shown.items()} == {
        "compact": "nothing to do",
        "refresh indices": "nothing to do",
        "clean up": "done",
    }
    assert shown["clean up"].counts["old_versions"] > 3
    assert lance_sql(spark, f"MAINTAIN '{uri}' DRY RUN").count() == 3


def test_files_of_lost_compactions_are_removed(spark, uri, monkeypatch):
    dataset = small_files(uri)
    before = {path.name for path in Path(uri, "data").iterdir()}
    commit = Compaction.commit

    def overtaken(handle, *arguments):
        lance_dataset.dataset(uri).delete("n = 0")
        return commit(handle, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Compaction, "commit", overtaken)
        with pytest.raises(CommitConflictError):
            compact(spark, uri)
    assert {path.name for path in Path(uri, "data").iterdir()} == before
    assert maintain(spark, uri).steps[0].outcome == "done"
    dataset.checkout_latest()
    assert dataset.count_rows() == 199


def test_several_indices_are_one_commit(spark, stored):
    wanted = {
        "by_n": {"column": "n", "index_type": "BTREE"},
        "words": {"column": "text", "index_type": "INVERTED", "base_tokenizer": "whitespace"},
        "near": {"column": "v", "index_type": "IVF_FLAT", "num_partitions": 1},
    }
    assert create_indices(spark, stored, wanted, segments=2) == 2
    for each in (reference.dataset(stored), lance_dataset.dataset(stored)):
        assert {index.name: index.num_rows_indexed for index in each.describe_indices()} == dict.fromkeys(wanted, 60)
        assert each.to_table(filter="n = 5")["n"].to_pylist() == [5]
    with pytest.raises(InvalidInputError, match="has an index 'by_n' already"):
        create_indices(spark, stored, wanted)
    with pytest.raises(PythonException, match="index of column 'v'"):  # one that fails leaves the others unpublished
        create_indices(spark, stored, wanted | {"wrong": {"column": "v", "index_type": "BTREE"}}, replace=True)
    named = {"x": {"column": "n", "index_type": "BTREE", "name": "y"}}
    for wrong, message in (({"x": {"column": "n"}}, "needs index_type"), ({}, "no indices"), (named, "as the key")):
        with pytest.raises(InvalidInputError, match=message):
            create_indices(spark, stored, wrong)
    assert lance_dataset.dataset(stored).version == 2
    assert create_indices(spark, stored, wanted, segments=1, replace=True) == 3
    assert [len(index.segments) for index in lance_dataset.dataset(stored).describe_indices()] == [1, 1, 1]


def test_tasks_clean_up(spark, stored, tmp_path):
    dataset = lance_dataset.dataset(stored)
    dataset.create_scalar_index("n", "BTREE", "by_n")
    dataset.delete("n = 3")
    dataset.optimize.compact_files()
    Path(stored, "data", "left.lance").write_bytes(b"of a writer that died")
    explained = dataset.explain_cleanup_old_versions(retain_versions=1, delete_unverified=True).stats
    removed = cleanup(spark, stored, retain_versions=1, delete_unverified=True)
    assert (removed.data_files_removed, removed.deletion_files_removed, removed.old_versions) == (4, 1, 4)
    assert (removed, removed.failed_deletes) == (explained, 0)
    assert cleanup(spark, stored, retain_versions=1, delete_rate_limit=1000).bytes_removed == 0
    assert sorted(lance_dataset.dataset(stored).to_table()["n"].to_pylist()) == [n for n in range(60) if n != 3]
    lance_dataset.dataset(stored).validate(indices=True)
    with pytest.raises(InvalidInputError, match="tasks cannot reach"):
        cleanup(spark, "memory://x")


def test_failed_tasks_leave_a_cleanup_to_the_next(spark, stored):
    """Nothing is removed if listing fails."""
    dataset = lance_dataset.dataset(stored)
    dataset.delete("n = 3")

    def fails(shares):
        raise OSError(f"{len(shares)} shares")

    with pytest.raises(OSError, match="5 shares"):
        dataset.cleanup_old_versions(retain_versions=1, run_shares=fails)
    assert [each["version"] for each in dataset.versions()] == [1, 2]


def test_statistics_of_columns_are_those_of_one_process(spark, uri):
    moments = pa.array([None if n % 7 == 0 else n * 1001 for n in range(60)], pa.timestamp("ns"))
    floats = pa.array([[None, float("nan"), float("inf"), n / 3][n % 4] for n in range(60)], pa.float32())
    decimals = pa.array(range(60), pa.int16()).cast(pa.decimal128(20, 2))
    table = rows(0, 60).append_column("at", moments).append_column("f", floats).append_column("d", decimals)
    table = table.append_column("yes", pa.array([n % 3 == 0 for n in range(60)]))
    table = table.append_column('odd "name" x', pa.array([f"é{n % 9}" for n in range(60)]).dictionary_encode())
    table = table.append_column("void", pa.nulls(60, pa.int32())).append_column("l", pa.array([[n] for n in range(60)]))
    lance_dataset.write_dataset(table, uri, max_rows_per_file=7)
    dataset = lance_dataset.dataset(uri)
    for where in (None, "n >= 20", "n < 0"):
        found = column_statistics(spark, uri, where=where)
        assert list(found) == table.column_names
        for name, mine in found.items():
            whole = read_statistics(dataset, name, where)
            for fact in ("column", "type", "kind", "rows", "nulls", "nans", "distinct", "minimum", "maximum"):
                if whole.kind in ("number", "time", "text", "boolean") and whole.nulls < whole.rows:
                    assert getattr(mine, fact) == getattr(whole, fact), (name, fact)
            assert (mine.rows, mine.nulls) == (whole.rows, whole.nulls)
            assert (mine.mean, mine.deviation) == (pytest.approx(whole.mean), pytest.approx(whole.deviation))
    statement = f"ANALYZE TABLE '{uri}' COMPUTE STATISTICS FOR COLUMNS n, d WHERE n < 30"
    shown = [row.asDict() for row in lance_sql(spark, statement).collect()]
    assert [(row["column"], row["minimum"], row["maximum"], row["mean"]) for row in shown] == [
        ("n", "0", "29", 14.5),
        ("d", "0.00", "29.00", 14.5),
    ]
    with pytest.raises(FieldNotFoundError, match="'m'"):
        column_statistics(spark, uri, ["m"])


def test_statistics_of_no_rows_and_of_many_values(spark, uri):
    lance_dataset.write_dataset(rows(0, 0), uri)
    assert column_statistics(spark, uri)["n"].rows == 0
    lance_dataset.write_dataset(pa.table({"n": np.arange(150_000)}), uri, mode="overwrite")
    found = column_statistics(spark, uri)["n"]
    assert (found.distinct, found.maximum, found.rows) == (None, "149999", 150_000)
