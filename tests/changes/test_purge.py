"""Tests of purges: no file keeps a value of the erased rows, and what stays is reported."""

from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import lance as reference
import pyarrow as pa
import pytest
from support.processes.cli_runs import run, run_json

import lance_dataset as lance
from lance_dataset.changes.purge import purging
from lance_dataset.errors import InvalidInputError, LanceError, VersionNotFoundError
from lance_dataset.records.purge import PurgeReport

#: Values without common parts, which no encoding shortens.
NEEDLE = "NEEDLE" + uuid.UUID(int=0x8F14E45FCEEA467A9C3D21B07E5A6B12).hex
WHERE = f"name = '{NEEDLE}'"
ROWS = 40


def people(path: Path, **options: Any) -> lance.LanceDataset:
    """Write 40 rows, by default in fragments of ten; that with the id 7 has the needle."""
    words = [NEEDLE if row == 7 else uuid.uuid5(uuid.NAMESPACE_OID, str(row)).hex for row in range(ROWS)]
    table = pa.table({"id": pa.array(range(ROWS), pa.int64()), "name": words})
    reference.write_dataset(table, path, **{"max_rows_per_file": 10, **options})
    return lance.dataset(path)


def files_with(path: Path, text: str = NEEDLE) -> list[str]:
    return [str(file.relative_to(path)) for file in path.rglob("*") if text.encode() in _bytes(file)]


def _bytes(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""


def readable(path: Path) -> set[str | None]:
    """Return the names in all versions, deleted rows included."""
    found: set[str | None] = set()
    for each in lance.dataset(path).versions():
        table = lance.dataset(path, version=each["version"]).to_table(with_row_id=True, include_deleted_rows=True)
        found |= set(table["name"].to_pylist())
    return found


def kinds(report: PurgeReport) -> list[tuple[str, str]]:
    return [(copy.kind, copy.name) for copy in report.remaining]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_no_file_keeps_the_value(tmp_path: Path, version: str, stable: bool) -> None:
    path = tmp_path / "t"
    people(path, max_rows_per_file=20, data_storage_version=version, enable_stable_row_ids=stable)
    indexed = reference.dataset(path)
    indexed.create_scalar_index("name", "BITMAP", name="names")
    indexed.create_scalar_index("id", "BTREE", name="ids")
    dataset = lance.dataset(path)
    dataset.update({"id": "id + 1000"}, "id = 7")  # the row moves; its old place is marked as deleted
    dataset.delete("id = 3")
    dataset.delete(WHERE)
    dataset.optimize.compact_files(target_rows_per_fragment=1)  # as if the fragments were large
    dataset.cleanup_old_versions(older_than=dt.timedelta(0))
    assert NEEDLE in readable(path)  # what people do by hand does not erase the row
    report = dataset.purge(WHERE)
    assert (report.rows_deleted, report.rows_erased, report.fragments_rewritten) == (0, 1, 1)
    assert set(report.indices_dropped) == {"names", "ids"}
    assert report.remaining == ()
    assert files_with(path) == []
    assert NEEDLE not in readable(path)
    dataset.validate()
    left = reference.dataset(path)
    assert left.version == dataset.version
    assert left.to_table().sort_by("id") == dataset.to_table().sort_by("id")
    assert sorted(left.to_table()["id"].to_pylist()) == [row for row in range(ROWS) if row not in (3, 7)]


def test_visible_rows_and_whole_fragments(tmp_path: Path) -> None:
    dataset = people(tmp_path / "t")
    report = dataset.purge("id >= 5 and id < 20")
    assert (report.rows_deleted, report.rows_erased, report.fragments_rewritten) == (15, 15, 1)
    assert report.versions_removed == 3
    assert report.files_removed > 0
    assert report.bytes_removed > 0
    assert dataset.count_rows() == 25
    assert "erased 15 rows" in str(report)
    assert "clones" in str(report)
    assert dataset.purge("true").rows_deleted == 25
    assert dataset.count_rows() == reference.dataset(tmp_path / "t").count_rows() == 0


def test_rows_that_only_old_versions_hold(tmp_path: Path) -> None:
    """The newest transaction holds the text of the delete, so it must not stay the newest."""
    path = tmp_path / "t"
    dataset = people(path)
    dataset.delete("id < 10")
    dataset.update({"name": f"'{NEEDLE}'"}, "id = 20")
    dataset.delete(f"id >= 20 and name = '{NEEDLE}'")  # removes the fragment as a whole
    assert files_with(path)
    dataset.purge(WHERE)
    assert files_with(path) == []
    again = people(tmp_path / "u")
    again.insert(pa.table({"id": [100], "name": [NEEDLE]}))
    again.delete("id = 7")
    again.purge(WHERE)
    assert files_with(tmp_path / "u") == []
    only = lance.write_dataset(pa.table({"id": [1], "name": [NEEDLE]}), tmp_path / "v")
    only.delete(WHERE)
    assert only.purge(WHERE).rows_erased == 0
    assert files_with(tmp_path / "v") == []


def test_no_match_changes_nothing(tmp_path: Path) -> None:
    dataset = people(tmp_path / "t")
    dataset.delete("id = 1")
    before = {(file, file.stat().st_mtime_ns) for file in tmp_path.rglob("*")}
    report = dataset.purge("id = 12345")
    assert (report.rows_erased, report.versions_removed, report.remaining) == (0, 0, ())
    assert {(file, file.stat().st_mtime_ns) for file in tmp_path.rglob("*")} == before
    for wrong in ("id =", "nothing = 1"):
        with pytest.raises(LanceError):
            dataset.purge(wrong)
    with pytest.raises(TypeError, match="condition"):
        dataset.purge(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="branches"):
        dataset.purge("true", branches=[])
    with pytest.raises(TypeError, match="branches"):
        dataset.purge("true", branches="main")
    with pytest.raises(VersionNotFoundError):
        dataset.purge("true", branches=["none"])
    assert {(file, file.stat().st_mtime_ns) for file in tmp_path.rglob("*")} == before


def test_tags_and_branches_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "t"
    dataset = people(path)
    dataset.tags.create("keep", 1)
    branch = dataset.create_branch("dev")
    branch.insert(pa.table({"id": [50], "name": [NEEDLE]}))
    report = dataset.purge(WHERE)
    assert ("tag", "keep") in kinds(report)
    assert ("branch", "dev") in kinds(report)
    assert lance.dataset(path, version="keep").count_rows(WHERE) == 1
    assert branch.checkout_version(("dev", None)).count_rows(WHERE) == 2
    dataset.tags.delete("keep")
    report = dataset.purge(WHERE)
    # The branch uses files of the version that it started from, which therefore stays.
    assert kinds(report) == [("version", "main:1"), ("branch", "dev")]
    report = dataset.purge(WHERE, branches=["main", "dev"])
    assert report.branches == ("dev", "main")
    assert report.rows_deleted == 2
    assert branch.checkout_version(("dev", None)).count_rows() == ROWS - 1
    assert reference.dataset(path).checkout_version(("dev", None)).count_rows() == ROWS - 1
    assert report.remaining == ()
    assert files_with(path) == []


@pytest.mark.parametrize("order", [["main", "child", "grandchild"], ["grandchild", "main", "child"]])
def test_branches_that_share_files_with_their_parents(tmp_path: Path, order: list[str]) -> None:
    """The versions that branches started from go too: the branches get files of their own."""
    path = tmp_path / "t"
    people(path)
    main = lance.dataset(path)
    child = main.create_branch("child")
    child.delete("id = 12")
    grandchild = child.create_branch("grandchild")
    grandchild.delete("id = 22")
    main.delete(WHERE)
    report = main.purge(WHERE, branches=order)
    assert report.remaining == ()
    assert files_with(path) == []
    for branch, gone in ((None, {7}), ("child", {7, 12}), ("grandchild", {7, 12, 22})):
        dataset = lance.dataset(path, version=(branch, None)) if branch else lance.dataset(path)
        dataset.validate()
        assert set(dataset.to_table()["id"].to_pylist()) == set(range(ROWS)) - gone
    theirs = reference.dataset(path).checkout_version(("grandchild", None))
    assert theirs.count_rows() == ROWS - 3
    again = lance.dataset(path).purge(WHERE, branches=order)
    assert (again.fragments_rewritten, again.versions_removed) == (0, 0)


def test_dictionaries(tmp_path: Path) -> None:
    words = [NEEDLE, *(uuid.uuid5(uuid.NAMESPACE_URL, str(row)).hex for row in range(9))]
    codes = pa.array([row % 10 for row in range(ROWS)], pa.int8())
    table = pa.table({"id": list(range(ROWS)), "word": pa.DictionaryArray.from_arrays(codes, words)})
    for version in ("2.0", "2.2"):
        dataset = lance.write_dataset(table, tmp_path / version, data_storage_version=version)
        assert dataset.purge("id % 10 = 0").remaining == ()
        assert files_with(tmp_path / version) == []
        assert reference.dataset(tmp_path / version).to_table() == dataset.to_table()
        assert dataset.to_table()["word"].to_pylist() == [words[row % 10] for row in range(ROWS) if row % 10]
    legacy = lance.write_dataset(table, tmp_path / "0.1", data_storage_version="0.1")
    assert kinds(legacy.purge("id % 10 = 0")) == [("dictionary", "word")]


@pytest.mark.parametrize("step", ["rewrite_fragments", "cleanup"])
def test_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    path = tmp_path / "t"
    dataset = people(path)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(purging, step, stop)
        with pytest.raises(KeyboardInterrupt):
            dataset.purge(WHERE)
    assert lance.dataset(path).count_rows() == ROWS - 1
    lance.dataset(path).purge(WHERE)
    assert files_with(path) == []


def test_another_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of the same fragment between the delete and the rewrite makes the purge start again."""
    path = tmp_path / "t"
    dataset = people(path)
    rewrite, calls = purging.rewrite_fragments, []

    def after_another(latest: Any, fragment_ids: Any, progress: Any) -> Any:
        if not calls:
            reference.dataset(path).delete("id = 4")
        calls.append(latest.version)
        return rewrite(latest, fragment_ids, progress)

    monkeypatch.setattr(purging, "rewrite_fragments", after_another)
    report = dataset.purge(WHERE)
    assert len(calls) == 2
    assert (report.rows_deleted, report.rows_erased, report.fragments_rewritten) == (1, 1, 1)
    assert files_with(path) == []
    assert reference.dataset(path).count_rows() == ROWS - 2


def test_files_that_no_version_refers_to(tmp_path: Path) -> None:
    path = tmp_path / "t"
    dataset = people(path)
    for manifest in (path / "_versions").iterdir():
        lost = manifest.read_bytes()
    dataset.insert(pa.table({"id": [99], "name": [NEEDLE]}))
    newest = min((path / "_versions").iterdir())
    if newest.read_bytes() != lost:
        newest.unlink()  # as if the writer had died before its commit
    dataset = lance.dataset(path)
    report = dataset.purge(WHERE)
    assert [kind for kind, _ in kinds(report)] == ["files"]
    assert files_with(path) != []
    assert dataset.purge(WHERE, delete_unverified=True).remaining == ()
    assert files_with(path) == []


def test_command(tmp_path: Path) -> None:
    path = tmp_path / "t"
    people(path).tags.create("keep", 1)
    facts = run_json("purge", path, "--where", "id = 7")
    assert (facts["rows_deleted"], facts["fragments_rewritten"], facts["branches"]) == (1, 1, ["main"])
    assert facts["remaining"][0]["name"] == "keep"
    text = run("purge", path, "--where", "id = 8", "--branches", "main").stdout
    assert "erased 1 rows" in text
    assert "tag keep" in text
