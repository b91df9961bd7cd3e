"""Tests of checks and refreshed indices by tasks."""

from __future__ import annotations

from pathlib import Path

import lance as reference
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import CommitConflictError, CorruptFileError, InvalidInputError
from lance_dataset.optimize import Compaction
from lance_dataset.spark import compact, lance_sql, maintain, refresh_indices, validate


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
    assert refresh_indices(spark, stored, ["by_n", "words"], segments=2) == {"by_n": 2, "words": 2}
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
