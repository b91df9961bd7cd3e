"""Tests that the check of a whole dataset finds every damage, and says where it is."""

from __future__ import annotations

import os
import random
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from support.processes.cli_runs import run, run_json

import lance_dataset
from lance_dataset.debug import diagnose
from lance_dataset.errors import DatasetNotFoundError
from lance_dataset.table.manifest import encode_manifest

_DAMAGES = 200 if os.environ.get("LANCE_STRESS") else 12


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Dataset with several versions and fragments, deleted rows, an index, a tag and a branch; and its copy.

    A branch names the place of its dataset, so that a copy elsewhere would read the files of the original.
    """
    path = tmp_path_factory.mktemp("doctor") / "whole"
    rows = pa.table({"id": list(range(200)), "name": [f"name {each}" for each in range(200)]})
    dataset = lance_dataset.write_dataset(rows, path, max_rows_per_file=100)
    dataset.tags.create("first", 1)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id = 3")
    dataset.create_branch("side").delete("id = 5")
    dataset.insert(rows)
    return path, Path(shutil.copytree(path, path.parent / "copy"))


@pytest.fixture
def path(template: tuple[Path, Path]) -> Path:
    """The dataset as it was."""
    path, copy = template
    shutil.rmtree(path)
    return Path(shutil.copytree(copy, path))


def _users(path: Path) -> dict[str, set[tuple[str | None, int]]]:
    """Return the versions that need each file, by its path below the dataset; pairs of branch and version."""
    users: dict[str, set[tuple[str | None, int]]] = {}
    main = lance_dataset.dataset(path)
    for branch, dataset in [(None, main), ("side", main.checkout_version(("side", None)))]:
        for file in dataset.tracked_files().read_all().to_pylist():
            place = Path(file["base_uri"]) / file["path"]
            users.setdefault(str(place.relative_to(path)), set()).add((branch, file["version"]))
    return users


def _damage(path: Path, choice: random.Random) -> tuple[str, set[tuple[str | None, int]]]:
    """Remove, empty, or cut a file that some version needs; return its name and those versions."""
    users = {name: versions for name, versions in _users(path).items() if not name.endswith(".txn")}
    name = choice.choice(sorted(users))
    file = path / name
    kind = choice.choice(["remove", "empty", "cut"])
    if kind == "remove" and file.suffix != ".manifest":  # a version that is gone does not damage those that stay
        file.unlink()
    elif kind == "empty":
        file.write_bytes(b"")
    else:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return name, users[name]


@pytest.mark.parametrize("seed", range(_DAMAGES))
def test_random_damages(path: Path, seed: int) -> None:
    """A removed, empty or cut file is found and named, with the versions that need it, and what mends it."""
    name, versions = _damage(path, random.Random(seed))
    found = diagnose(path)
    assert not found.is_healthy
    [finding] = [each for each in found.findings if each.is_damage and each.kind != "reference"]
    assert finding.subject.path == name
    assert set(finding.subject.versions) == versions
    assert finding.subject.cause in {"missing", "empty", "corrupt"}
    assert Path(name).name in finding.what or Path(name).name in finding.remedy
    assert all(each.remedy for each in found.findings)


def test_whole_dataset(path: Path) -> None:
    """A whole dataset has no damage; that the index does not cover new rows is only an advice."""
    found = lance_dataset.dataset(path).doctor()
    assert (found.is_healthy, found.versions, found.newest) == (True, 4, 4)
    assert [(finding.kind, finding.is_damage) for finding in found.findings] == [("coverage", False)]
    assert found.branches == (("side", 2),)
    exec(found.findings[0].remedy, {"ds": lance_dataset.dataset(path)})
    assert diagnose(path).findings == ()


def test_datasets_of_all_releases() -> None:
    """Nothing is found in whole datasets that releases of the reference wrote."""
    manifests = (Path(__file__).parents[1] / "fixtures" / "datasets").rglob("_versions")
    datasets = sorted(folder.parent for folder in manifests)
    assert len(datasets) > 20
    assert {str(path): diagnose(path).findings for path in datasets} == {str(path): () for path in datasets}


def test_newest_version_is_lost(path: Path, tmp_path: Path) -> None:
    """If the newest manifest is empty, its version is named, and moving it away makes the one before it the newest."""
    newest = min((path / "_versions").glob("*.manifest"))
    newest.write_bytes(b"")
    found = diagnose(path)
    assert (found.versions, found.newest) == (3, 3)
    assert "version 4 cannot be opened" in found.findings[0].what
    assert str(newest) in found.findings[0].remedy
    newest.rename(tmp_path / "away")
    assert lance_dataset.dataset(path).version == 3


def test_lost_data_is_given_up(path: Path, tmp_path: Path) -> None:
    """The remedy for a lost data file gives up the rows of its fragment, and keeps all others."""
    fragment = lance_dataset.dataset(path).get_fragments()[1]
    (path / "data" / fragment.metadata.files[0].path).unlink()
    [finding] = [finding for finding in diagnose(path).findings if finding.is_damage]
    assert finding.subject.newest == (None, "side")
    dataset = lance_dataset.dataset(path)
    remedy = finding.remedy.partition("up: ")[2]
    names = {"LanceDataset": lance_dataset.LanceDataset, "LanceOperation": lance_dataset.LanceOperation, "ds": dataset}
    eval(remedy, names)
    assert lance_dataset.dataset(path).count_rows() == 299
    [finding] = [finding for finding in diagnose(path).findings if finding.is_damage]
    assert finding.subject.newest == ("side",)
    assert set(finding.subject.versions) == {(None, version) for version in (1, 2, 3, 4)} | {("side", 3), ("side", 4)}


def test_orphans(path: Path, tmp_path: Path) -> None:
    """Files that no version refers to are counted."""
    name = "0" * 24 + "a" * 26 + ".lance"
    (path / "data" / name).write_bytes(b"x" * 1000)
    [finding] = [finding for finding in diagnose(path).findings if finding.kind == "orphans"]
    assert not finding.is_damage
    assert name in finding.what


def test_references_to_nothing(path: Path, tmp_path: Path) -> None:
    """A tag whose version is gone, and a branch without versions, are damage."""
    max((path / "_versions").glob("*.manifest")).unlink()
    shutil.rmtree(path / "tree")
    found = [finding for finding in diagnose(path).findings if finding.kind == "reference"]
    assert [finding.remedy for finding in found] == ["ds.tags.delete('first')", "ds.branches.delete('side')"]


def test_torn_references(path: Path) -> None:
    """The files of tags and branches are read one by one, so each that is torn is found."""
    (path / "_refs" / "tags" / "first.json").write_bytes(b"")
    branch = path / "_refs" / "branches" / "side.json"
    branch.write_bytes(branch.read_bytes()[:20])
    found = [finding.subject for finding in diagnose(path).findings if finding.kind == "reference"]
    assert [(each.tag, each.branch, each.cause, each.path) for each in found] == [
        ("first", None, "empty", "_refs/tags/first.json"),
        (None, "side", "corrupt", "_refs/branches/side.json"),
    ]


def test_branch_without_file(path: Path) -> None:
    """A folder of a branch that has no file holds space."""
    (path / "_refs" / "branches" / "side.json").unlink()
    [finding] = [finding for finding in diagnose(path).findings if finding.kind == "old branch"]
    assert (finding.subject.branch, finding.is_damage) == ("side", False)
    assert finding.subject.size == sum(file.stat().st_size for file in (path / "tree").rglob("*") if file.is_file())


def test_forgotten_references(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old tags and branches are found, with the bytes that only they hold."""
    dataset = lance_dataset.dataset(path)
    dataset.optimize.compact_files()
    later = time.time() + 100 * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    found = {finding.kind.value: finding for finding in diagnose(path).findings}
    first = dataset.checkout_version(1).get_fragments()
    held = sum(file.file_size_bytes or 0 for fragment in first for file in fragment.metadata.files)
    assert (found["old tag"].subject.tag, found["old tag"].subject.size) == ("first", held)
    assert (found["old branch"].subject.branch, found["old branch"].is_damage) == ("side", False)


def test_transaction_files(path: Path) -> None:
    """Lost and torn transaction files are only an advice, as manifests have copies."""
    first, second, *_ = sorted((path / "_transactions").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:5])
    found = diagnose(path)
    assert found.is_healthy
    causes = {
        finding.subject.path: finding.subject.cause for finding in found.findings if finding.kind == "transaction"
    }
    assert causes == {f"_transactions/{first.name}": "missing", f"_transactions/{second.name}": "corrupt"}


def test_hint(path: Path) -> None:
    """A hint that is later than all versions tells of a lost manifest; other content is only an advice."""
    newest = min((path / "_versions").glob("*.manifest"))
    content = newest.read_bytes()
    newest.unlink()
    [finding] = [finding for finding in diagnose(path).findings if finding.is_damage]
    assert (finding.kind, finding.subject.cause) == ("version", "missing")
    assert finding.subject.versions == ((None, 4),)
    newest.write_bytes(content)
    (path / "_versions" / "latest_version_hint.json").write_bytes(b"{")
    assert [finding.kind for finding in diagnose(path).findings] == ["hint", "coverage"]


def test_double_version(path: Path) -> None:
    """A version with two different manifests is found; one with two equal ones is a version that is being renamed."""
    newest, before, *_ = sorted((path / "_versions").glob("*.manifest"))
    double = path / "_versions" / "4.manifest"
    shutil.copy(newest, double)
    found = diagnose(path)
    assert (found.versions, found.is_healthy) == (4, True)
    double.write_bytes(before.read_bytes())  # its version is not that of its name
    [finding] = [finding for finding in diagnose(path).findings if finding.is_damage]
    assert finding.subject.path == "_versions/4.manifest"


def test_later_format(path: Path) -> None:
    """A version with a feature of a later release is not corrupt, only unsupported."""
    table = lance_dataset.dataset(path)
    newest = min((path / "_versions").glob("*.manifest"))
    manifest = replace(table.snapshot.manifest, reader_flags=1 << 40)
    newest.write_bytes(encode_manifest(manifest))
    [finding] = [finding for finding in diagnose(path).findings if finding.is_damage]
    assert finding.subject.cause == "unsupported"


def test_lost_column_file(path: Path) -> None:
    """A file that holds only some columns is found with their names."""
    dataset = lance_dataset.dataset(path)
    dataset.add_columns({"double": "id * 2"})
    file = dataset.get_fragments()[0].metadata.files[-1].path
    (path / "data" / file).unlink()
    [finding] = [finding for finding in diagnose(path).findings if finding.is_damage]
    assert (finding.subject.column, finding.subject.fragment) == ("double", 0)
    assert finding.subject.versions == ((None, 5),)


def test_progress(path: Path) -> None:
    """Versions and fragments are counted."""
    told: list[tuple[int, int]] = []
    lance_dataset.dataset(path).doctor(progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (10, 10)  # six versions, and fragments with four sets of files


def test_many_small_fragments(tmp_path: Path) -> None:
    """Thousands of small fragments are an advice."""
    rows = pa.table({"id": list(range(1001))})
    lance_dataset.write_dataset(rows, tmp_path / "small", max_rows_per_file=1)
    [finding] = diagnose(tmp_path / "small").findings
    assert finding.remedy == "ds.optimize.compact_files()"


def test_command(path: Path, tmp_path: Path) -> None:
    """The command ends with status 1 for a damaged dataset, also one that cannot be opened, and writes JSON."""
    assert run_json("doctor", path)["is_healthy"]
    for manifest in (path / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"")
    assert "0 versions can be opened" in run("doctor", path, status=1).output
    with pytest.raises(DatasetNotFoundError):
        diagnose(tmp_path / "none")
