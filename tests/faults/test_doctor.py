"""Tests that the check of a whole dataset finds every damage, and says where it is."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from support.processes.cli_runs import run, run_json

import lance_dataset
from lance_dataset.debug import Diagnosis, diagnose
from lance_dataset.errors import DatasetNotFoundError

_DAMAGES = 200 if os.environ.get("LANCE_STRESS") else 40


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dataset with several versions and fragments, deleted rows, an index, a tag and a branch."""
    path = tmp_path_factory.mktemp("doctor") / "whole"
    rows = pa.table({"id": list(range(200)), "name": [f"name {each}" for each in range(200)]})
    dataset = lance_dataset.write_dataset(rows, path, max_rows_per_file=100)
    dataset.tags.create("first", 1)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id = 3")
    dataset.create_branch("side").delete("id = 5")
    dataset.insert(rows)
    return path


def _copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def _damage(path: Path, choice: random.Random) -> str:
    """Remove, empty, or cut a file that the newest version needs, or a manifest; return its name."""
    needed = {file["path"] for file in lance_dataset.dataset(path).tracked_files(min_version=4).read_all().to_pylist()}
    files = sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and "tree" not in file.parts
        and (file.suffix == ".manifest" or str(file.relative_to(path)) in needed)
        and file.suffix != ".txn"
    )
    file = choice.choice(files)
    kind = choice.choice(["remove", "empty", "cut"])
    if kind == "remove" and file.suffix != ".manifest":  # a version that is gone is no damage of those that stay
        file.unlink()
    elif kind == "empty":
        file.write_bytes(b"")
    else:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return file.name


@pytest.mark.parametrize("seed", range(_DAMAGES))
def test_random_damages(whole: Path, tmp_path: Path, seed: int) -> None:
    """A removed, empty or cut file is found and named, with what mends it."""
    path = _copy(whole, tmp_path)
    name = _damage(path, random.Random(seed))
    found = diagnose(path)
    assert not found.is_healthy
    damage = [finding for finding in found.findings if finding.is_damage]
    assert any(name in finding.what or name in finding.remedy for finding in damage), (name, str(found))
    assert all(finding.remedy for finding in found.findings)


def test_whole_dataset(whole: Path) -> None:
    """A whole dataset has no damage; that the index does not cover new rows is only an advice."""
    found = lance_dataset.dataset(whole).doctor()
    assert (found.is_healthy, found.versions, found.newest) == (True, 4, 4)
    assert [(finding.kind, finding.is_damage) for finding in found.findings] == [("coverage", False)]
    mended = _mended(whole, found)
    assert mended.findings == ()


def _mended(whole: Path, found: Diagnosis) -> Diagnosis:
    path = _copy(whole, whole.parent / "mended")
    for finding in found.findings:
        exec(finding.remedy, {"ds": lance_dataset.dataset(path)})
    return diagnose(path)


def test_newest_version_is_lost(whole: Path, tmp_path: Path) -> None:
    """If the newest manifest is empty, its version is named, and moving it away makes the one before it the newest."""
    path = _copy(whole, tmp_path)
    newest = min((path / "_versions").glob("*.manifest"))
    newest.write_bytes(b"")
    found = diagnose(path)
    assert (found.versions, found.newest) == (3, 3)
    assert "version 4 cannot be opened" in found.findings[0].what
    assert str(newest) in found.findings[0].remedy
    newest.rename(tmp_path / "away")
    assert lance_dataset.dataset(path).version == 3


def test_lost_data_is_given_up(whole: Path, tmp_path: Path) -> None:
    """The remedy for a lost data file gives up the rows of its fragment, and keeps all others."""
    path = _copy(whole, tmp_path)
    fragment = lance_dataset.dataset(path).get_fragments()[1]
    (path / "data" / fragment.metadata.files[0].path).unlink()
    [finding] = [finding for finding in diagnose(path).findings if finding.is_damage]
    dataset = lance_dataset.dataset(path)
    remedy = finding.remedy.partition("up: ")[2]
    names = {"LanceDataset": lance_dataset.LanceDataset, "LanceOperation": lance_dataset.LanceOperation, "ds": dataset}
    eval(remedy, names)
    assert lance_dataset.dataset(path).count_rows() == 299
    assert diagnose(path).is_healthy


def test_orphans(whole: Path, tmp_path: Path) -> None:
    """Files that no version refers to are counted."""
    path = _copy(whole, tmp_path)
    name = "0" * 24 + "a" * 26 + ".lance"
    (path / "data" / name).write_bytes(b"x" * 1000)
    [finding] = [finding for finding in diagnose(path).findings if finding.kind == "orphans"]
    assert not finding.is_damage
    assert name in finding.what


def test_references_to_nothing(whole: Path, tmp_path: Path) -> None:
    """A tag whose version is gone, and a branch without versions, are damage."""
    path = _copy(whole, tmp_path)
    max((path / "_versions").glob("*.manifest")).unlink()
    shutil.rmtree(path / "tree")
    found = [finding for finding in diagnose(path).findings if finding.kind == "reference"]
    assert [finding.remedy for finding in found] == ["ds.tags.delete('first')", "ds.branches.delete('side')"]


def test_many_small_fragments(tmp_path: Path) -> None:
    """Thousands of small fragments are an advice."""
    rows = pa.table({"id": list(range(1001))})
    lance_dataset.write_dataset(rows, tmp_path / "small", max_rows_per_file=1)
    [finding] = diagnose(tmp_path / "small").findings
    assert finding.remedy == "ds.optimize.compact_files()"


def test_command(whole: Path, tmp_path: Path) -> None:
    """The command ends with status 1 for a damaged dataset, also one that cannot be opened, and writes JSON."""
    assert run_json("doctor", whole)["is_healthy"]
    path = _copy(whole, tmp_path)
    for manifest in (path / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"")
    assert "0 versions can be opened" in run("doctor", path, status=1).output
    with pytest.raises(DatasetNotFoundError):
        diagnose(tmp_path / "none")
