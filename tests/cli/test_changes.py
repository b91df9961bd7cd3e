"""Tests of commands that change rows, files and references, and that compare versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from support.processes.cli_runs import run, run_json

import lance_dataset as lance


def stock(**columns: list[Any]) -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
    return pa.table(columns, schema=schema)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a dataset of four rows in two fragments."""
    table = stock(id=[1, 2, 3, 4], name=["nut", "bolt", None, "gear"], price=[1.0, 2.0, 3.0, 4.0])
    lance.write_dataset(table, tmp_path / "stock.lance", max_rows_per_file=2, enable_stable_row_ids=True)
    return tmp_path / "stock.lance"


def content(path: Path) -> dict[int, tuple[str | None, float]]:
    rows = lance.dataset(path).to_table().to_pylist()
    return {row["id"]: (row["name"], row["price"]) for row in rows}


def files(path: Path) -> set[tuple[Path, int]]:
    return {(file, file.stat().st_mtime_ns) for file in path.rglob("*") if file.is_file()}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a file with one existing and one new row."""
    pa.csv.write_csv(stock(id=[2, 9], name=["BOLT", "nail"], price=[2.5, 0.1]), tmp_path / "new.csv")
    return tmp_path / "new.csv"


# -- rows ----------------------------------------------------------------------------------------------------------


def test_update(path: Path) -> None:
    arguments = ("update", path, "--set", "price=price * 10", "--set", "name = upper(name)", "--where", "id > 2")
    before = files(path)
    assert run_json(*arguments, "--dry-run") == {"uri": str(path), "dry_run": True, "updated": 2, "rows": 4}
    assert "2 rows would be updated" in run(*arguments, "--dry-run").stdout
    assert files(path) == before
    assert run_json(*arguments) == {"uri": str(path), "dry_run": False, "updated": 2, "rows": 4, "version": 2}
    assert content(path) == {1: ("nut", 1.0), 2: ("bolt", 2.0), 3: (None, 30.0), 4: ("GEAR", 40.0)}
    assert "4 rows updated" in run("update", path, "--set", "name='x = y'").stdout
    assert {name for name, _ in content(path).values()} == {"x = y"}


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_update_mistakes(path: Path, dry: tuple[str, ...]) -> None:
    assert "nme" in run("update", path, "--set", "nme='x'", *dry, status=1).stderr
    assert "abc" in run("update", path, "--set", "price='abc'", *dry, status=1).stderr
    run("update", path, "--set", "price", *dry, status=2)
    run("update", path, *dry, status=2)
    assert lance.dataset(path).version == 1


def test_delete(path: Path) -> None:
    before = files(path)
    arguments = ("delete", path, "--where", "price < 2.5")
    assert run_json(*arguments, "--dry-run") == {"uri": str(path), "dry_run": True, "deleted": 2, "rows": 2}
    assert files(path) == before
    assert run(*arguments, "--dry-run").stdout.startswith("2 rows would be deleted")
    assert run_json(*arguments) == {"uri": str(path), "dry_run": False, "deleted": 2, "rows": 2, "version": 2}
    assert list(content(path)) == [3, 4]
    assert "id >" in run("delete", path, "--where", "id >", status=1).stderr
    run("delete", path, status=2)


def test_merge_of_files(path: Path, source: Path) -> None:
    before = files(path)
    arguments = ("merge", source, path, "--on", "id")
    counts = {"inserted": 1, "updated": 1, "deleted": 0, "rows": 5}
    assert run_json(*arguments, "--dry-run") == {"uri": str(path), "dry_run": True, **counts}
    assert "1 inserted, 1 updated, 0 deleted" in run(*arguments, "--dry-run").stdout
    assert files(path) == before
    assert run_json(*arguments) == {"uri": str(path), "dry_run": False, **counts, "version": 2}
    assert content(path)[2] == ("BOLT", 2.5)
    assert content(path)[9] == ("nail", 0.1)


def test_types_of_text(path: Path, tmp_path: Path) -> None:
    """A CSV file is read with the column types of the dataset, whatever its values look like."""
    (tmp_path / "whole.csv").write_text("id,name,price\n1,17,5\n2,,\n")
    assert run_json("merge", tmp_path / "whole.csv", path, "--on", "id")["updated"] == 2
    assert content(path) | {2: None} == {1: ("17", 5.0), 2: None, 3: (None, 3.0), 4: ("gear", 4.0)}
    (tmp_path / "more.csv").write_text("id,name,price\n5,18,6\n")
    run("import", tmp_path / "more.csv", path, "--mode", "append")
    run("import", tmp_path / "more.csv", tmp_path / "new.lance", "--mode", "append")
    assert content(path)[5] == ("18", 6.0)
    (tmp_path / "wrong.csv").write_text("id,name,price\n5,18,cheap\n")
    assert "'cheap'" in run("merge", tmp_path / "wrong.csv", path, "--on", "id", status=1).output


def test_merge_of_a_dataset(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.lance"
    lance.write_dataset(stock(id=[4, 5], name=["GEAR", "cog"], price=[0.5, 0.6]), other)
    run("merge", other, path, "--on", "id", "--when-matched", "keep")
    assert (content(path)[4], content(path)[5]) == (("gear", 4.0), ("cog", 0.6))


def test_clauses_of_merge(path: Path, source: Path) -> None:
    assert run_json("merge", source, path, "--on", "id", "--update-if", "source.price < target.price")["updated"] == 0
    assert run_json("merge", source, path, "--on", "id", "--when-matched", "delete")["deleted"] == 2
    found = run_json("merge", source, path, "--on", "id", "--when-not-matched", "drop", "--delete-missing")
    assert (found["inserted"], found["deleted"]) == (0, 3)
    assert content(path) == {}


def test_merge_deletes_what_is_missing_if(path: Path, source: Path) -> None:
    run("merge", source, path, "--on", "id,name", "--delete-missing-if", "price > 2")
    assert set(content(path)) == {1, 2, 9}


def test_mistakes_of_merge(path: Path, source: Path) -> None:
    run("merge", source, path, "--on", "id", "--when-matched", "fail", status=1)
    assert "no_key" in run("merge", source, path, "--on", "no_key", status=1).stderr
    run("merge", path, "--on", "id", status=2)
    run("merge", source, path, "--on", "id", "--when-matched", "delete", "--update-if", "true", status=2)
    assert lance.dataset(path).version == 1


# -- files ---------------------------------------------------------------------------------------------------------


def test_compact(path: Path) -> None:
    before = files(path)
    plan = run_json("compact", path, "--dry-run")
    assert plan["dry_run"]
    assert [(task["fragments"], task["rows"], task["deleted_rows"]) for task in plan["tasks"]] == [([0, 1], 4, 0)]
    assert "2 of 2 fragments" in run("compact", path, "--dry-run").stdout
    assert files(path) == before
    done = run_json("compact", path)
    assert (done["fragments_removed"], done["fragments_added"]) == (2, 1)
    assert len(lance.dataset(path).get_fragments()) == 1
    assert run_json("compact", path, "--dry-run")["tasks"] == []
    assert run("compact", path, "--dry-run").stdout == "nothing to do\n"
    assert run("compact", path).stdout.startswith("nothing to do")


def test_options_of_compact(path: Path) -> None:
    assert run_json("compact", path, "--target-rows", 2, "--dry-run")["tasks"] == []
    lance.dataset(path).delete("id = 1")
    plan = run_json("compact", path, "--target-rows", 2, "--deleted-share", 0.4, "--dry-run")
    assert [task["fragments"] for task in plan["tasks"]] == [[0]]
    run("compact", path, "--data-storage-version", "9.9", status=1)


def test_cleanup(path: Path) -> None:
    lance.dataset(path).delete("id = 1")
    lance.dataset(path).optimize.compact_files()
    before = files(path)
    arguments = ("cleanup", path, "--older-than", "0", "--retain", "1")
    plan = run_json(*arguments, "--dry-run", "--files")
    assert files(path) == before
    assert plan["dry_run"]
    assert plan["old_versions"] >= 2
    assert {file["kind"] for file in plan["files"]} >= {"manifest", "data"}
    text = run(*arguments, "--dry-run", "--files").stdout
    assert "nothing was removed" in text
    assert ".lance" in text
    done = run_json(*arguments)
    del plan["files"]
    assert {**done, "dry_run": True} == plan
    assert len(lance.dataset(path).versions()) == 1
    assert content(path).keys() == {2, 3, 4}


def test_cleanup_and_tags(path: Path) -> None:
    run("tags", "create", path, "first", "--version", 1)
    lance.dataset(path).delete("id = 1")
    assert "tagged" in run("cleanup", path, "--older-than", "0", "--dry-run", status=1).stderr
    assert run_json("cleanup", path, "--older-than", "0s", "--keep-tagged")["old_versions"] == 0
    assert "unit" in run("cleanup", path, "--older-than", "5 parsecs", status=1).stderr
    run("cleanup", path, "--files", status=2)


def test_validate(path: Path) -> None:
    assert run_json("validate", path) == {"uri": str(path), "version": 1, "fragments": 2, "valid": True}
    assert "2 fragments are valid" in run("validate", path).stdout
    facts = run_json("validate", path, "--indices")
    assert (facts["valid"], facts["indices"], facts["warnings"]) == (True, 0, [])
    file = next((path / "data").iterdir())
    file.unlink()
    assert file.name in run("validate", path, status=1).stderr


# -- references ----------------------------------------------------------------------------------------------------


def test_tags(path: Path) -> None:
    lance.dataset(path).delete("id = 1")
    before = files(path)
    assert run_json("tags", "create", path, "v1", "--version", 1, "--dry-run")["dry_run"]
    assert files(path) == before
    assert run_json("tags", "create", path, "v1", "--version", 1)["version"] == 1
    assert run("tags", "create", path, "new").stdout == "tag new is version 2 of main\n"
    assert [(tag["name"], tag["version"]) for tag in run_json("tags", "list", path)] == [("new", 2), ("v1", 1)]
    assert [line.split()[:3] for line in run("tags", "list", path).stdout.strip().splitlines()[-2:]] == [
        ["new", "main", "2"],
        ["v1", "main", "1"],
    ]
    assert "would be version 2" in run("tags", "update", path, "v1", "--version", 2, "--dry-run").stdout
    assert lance.dataset(path).tags.get_version("v1") == 1
    run("tags", "update", path, "v1", "--version", "new")
    assert lance.dataset(path).tags.get_version("v1") == 2
    assert "would be removed" in run("tags", "delete", path, "v1", "--dry-run").stdout
    run("tags", "delete", path, "v1")
    assert set(lance.dataset(path).tags.list()) == {"new"}
    for dry in ((), ("--dry-run",)):
        run("tags", "create", path, "new", *dry, status=1)
        run("tags", "create", path, "no/tag", *dry, status=1)
        run("tags", "create", path, "other", "--version", 99, *dry, status=1)
        run("tags", "update", path, "v1", *dry, status=1)
        run("tags", "delete", path, "v1", *dry, status=1)


def test_branches(path: Path) -> None:
    before = files(path)
    assert "would start at version 1 of main" in run("branches", "create", path, "dev", "--dry-run").stdout
    assert files(path) == before
    made = run_json("branches", "create", path, "dev")
    assert (made["parent_branch"], made["parent_version"]) == ("main", 1)
    lance.dataset(made["uri"]).delete("id = 1")
    assert run_json("branches", "create", path, "dev2", "--version", "dev:2")["parent_branch"] == "dev"
    assert [branch["name"] for branch in run_json("branches", "list", path)] == ["dev2", "dev"]
    assert "began from" in run("branches", "list", path).stdout
    assert "branch dev2 need" in run("branches", "delete", path, "dev", "--dry-run").stdout
    run("branches", "delete", path, "dev", status=1)
    run("branches", "delete", path, "dev2")
    plan = run_json("branches", "delete", path, "dev", "--dry-run")
    assert (plan["versions"], plan["held_by"]) == (2, [])
    assert plan["files"] >= 3
    assert "would be removed: 2 versions" in run("branches", "delete", path, "dev", "--dry-run").stdout
    run("branches", "delete", path, "dev")
    assert lance.dataset(path).branches.list() == {}
    for dry in ((), ("--dry-run",)):
        run("branches", "delete", path, "dev", *dry, status=1)
        run("branches", "create", path, "main", *dry, status=1)


# -- differences ---------------------------------------------------------------------------------------------------


def test_diff(path: Path) -> None:
    dataset = lance.dataset(path)
    dataset.tags.create("first", 1)
    dataset.delete("id = 1")
    dataset.insert(stock(id=[7], name=["cog"], price=[7.0]))
    dataset.update({"price": "0.0"}, "id = 2")
    dataset.drop_columns(["price"])
    dataset.alter_columns({"path": "name", "name": "label"})
    found = run_json("diff", path, "first")
    assert (found["old_version"], found["new_version"]) == (1, 6)
    assert found["rows"] == {"old": 4, "new": 4, "inserted": 1, "updated": 1, "deleted": 1}
    assert found["fragments"] == {
        "old": 2,
        "new": 3,
        "added": 2,
        "removed": 1,
        "with_other_columns": 0,
        "with_other_deletions": 0,
    }
    assert [(change["column"], change["change"]) for change in found["schema"]] == [
        ("price", "dropped"),
        ("label", "changed"),
    ]
    assert found["schema"][1]["old_column"] == "name"
    operations = ["Delete", "Append", "Update", "Project", "Project"]
    assert [commit["operation"] for commit in found["commits"]] == operations
    text = run("diff", path, 1).stdout
    for part in ("inserted", "Append", "label", "name: string", "dropped"):
        assert part in text
    part = run_json("diff", path, 2, 3)
    assert part["rows"] == {"old": 3, "new": 4, "inserted": 1, "updated": 0, "deleted": 0}
    run("diff", path, 3, 2, status=2)
    run("diff", path, 3, 99, status=1)
    run("diff", path, "main:x", status=2)


def test_diff_of_casts_and_nested_columns(tmp_path: Path) -> None:
    table = pa.table({"a": [1], "s": [{"x": 1, "y": "t"}]})
    dataset = lance.write_dataset(table, tmp_path / "t.lance")
    dataset.alter_columns({"path": "a", "data_type": pa.int32()})
    dataset.drop_columns(["s.y"])
    dataset.add_columns({"b": "a + 1"})
    found = run_json("diff", tmp_path / "t.lance", 1)
    assert {(change["column"], change["change"]) for change in found["schema"]} == {
        ("a", "changed"),
        ("s.y", "dropped"),
        ("b", "added"),
    }
    cast = next(change for change in found["schema"] if change["column"] == "a")
    assert (cast["old_type"], cast["type"]) == ("int64", "int32")
    assert found["rows"] == {"old": 1, "new": 1}
    assert "stable row ids" in run("diff", tmp_path / "t.lance", 1).stdout


def test_diff_of_branches(path: Path) -> None:
    branch = lance.dataset(path).create_branch("dev")
    branch.delete("id < 3")
    found = run_json("diff", path, 1, "dev:")
    assert found["rows"] == {"old": 4, "new": 2}
    assert "commits" not in found
    assert run_json("diff", path, "dev:1", "dev:")["rows"]["deleted"] == 2
