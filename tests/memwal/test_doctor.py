"""Tests that the check of a whole dataset finds damaged shards, names their files, and leaves whole ones alone."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.memwal.shards import OTHER, SHARD, keys, new_table, rows, values
from support.processes.cli_runs import run

import lance_dataset
from lance_dataset.debug import Finding, diagnose
from lance_dataset.errors import CorruptFileError, MissingFileError
from lance_dataset.memwal.examining.shards import examine_shards
from lance_dataset.memwal.places import bits_name

NOW = dt.timedelta(0)
#: Files that no reader needs, so that a check may leave their damage out, or call it an advice.
UNNEEDED = ("version_hint.json", "latest_version_hint.json", ".txn", "bloom_filter.bin")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table with an index and a shard of two SSTables, one with a key twice, and with rows in the log."""
    path = tmp_path_factory.mktemp("doctor") / "t"
    dataset = lance_dataset.write_dataset(rows({0: "base", 1: "base"}), path)
    dataset.create_scalar_index("v", "BTREE")
    dataset.initialize_mem_wal(maintained_indexes=["v_idx"])
    writer = dataset.mem_wal_writer(SHARD)
    writer.put(rows({1: "one", 2: "one"}))
    writer.put(rows({2: "two"}))
    writer.flush()
    writer.delete(keys(0))
    writer.flush()
    writer.put(rows({3: "log"}))
    writer.put(rows({4: "log"}))
    writer.abort()
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "t"))


def damages(path: Path) -> list[Finding]:
    return [finding for finding in diagnose(path).findings if finding.is_damage]


def entry(path: Path, position: int) -> Path:
    return path / "_mem_wal" / SHARD / "wal" / f"{bits_name(position)}.arrow"


def manifests(path: Path) -> list[Path]:
    """Return the manifests of the shard, the oldest first."""
    folder = path / "_mem_wal" / SHARD / "manifest"
    return sorted(folder.glob("*.binpb"), key=lambda file: int(file.stem[::-1], 2))


def test_a_whole_shard(path: Path) -> None:
    """It has no damage; that entries of the log are in SSTables is an advice, until a collection removes them."""
    found = lance_dataset.dataset(path).doctor()
    [finding] = found.findings
    assert (found.is_healthy, finding.kind, finding.subject.shard, finding.subject.files) == (True, "shard", SHARD, 3)
    assert finding.remedy.startswith(f"ds.collect_mem_wal('{SHARD}')")
    lance_dataset.dataset(path).collect_mem_wal(older_than=NOW)
    assert lance_dataset.dataset(path).doctor().findings == ()


def removed(file: Path) -> None:
    file.unlink()


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flipped(file: Path) -> None:
    """Change the first byte of messages and streams, and the last one of files with a footer."""
    content = bytearray(file.read_bytes())
    content[0 if file.suffix in (".binpb", ".bin") or file.parent.name == "wal" else -1] ^= 0xFF
    file.write_bytes(content)


DAMAGES = [removed, emptied, cut, flipped]


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_file(path: Path, damage: Callable[[Path], None]) -> None:
    """Damage of any file that a reader or writer needs is found, with its name; nothing is found in the others."""
    snapshot = lance_dataset.dataset(path).snapshot
    covered = [entry(path, number) for number in (1, 2, 3)]
    newest, last = manifests(path)[-1], entry(path, 5)  # no file tells that there was this entry
    files = [file for file in sorted((path / "_mem_wal").rglob("*")) if file.is_file()]
    assert len(files) > 25
    for file in files:
        content = file.read_bytes()
        damage(file)
        found = [finding for finding in examine_shards(snapshot) if finding.is_damage]
        unneeded = file.name.endswith(UNNEEDED) or file in covered or (file.suffix == ".binpb" and file != newest)
        if unneeded or (file == last and damage is removed):
            assert found == [], file
        else:
            assert len(found) == 1, (file, found)
            [finding] = found
            where = str(file.relative_to(path))
            assert finding.kind == "shard"
            assert finding.subject.shard == SHARD
            assert finding.subject.path is not None
            assert where == finding.subject.path or where.startswith(f"{finding.subject.path}/"), finding
            assert file.name in finding.what or file.parent.name in finding.what, finding
        file.write_bytes(content)
    assert damages(path) == []


def test_validation(path: Path) -> None:
    """`validate` raises an error for damage, which names the file; an advice raises nothing."""
    for file, error in ((entry(path, 4), MissingFileError), (manifests(path)[-1], CorruptFileError)):
        content = file.read_bytes()
        (removed if error is MissingFileError else cut)(file)
        with pytest.raises(error, match=file.name):
            lance_dataset.dataset(path).validate()
        file.write_bytes(content)
    cut(manifests(path)[0])
    lance_dataset.dataset(path).validate()


@pytest.mark.parametrize("damage", DAMAGES)
def test_unneeded_files(path: Path, damage: Callable[[Path], None]) -> None:
    """Damage of the filter of keys, or of an older manifest, is an advice that names the file."""
    for file in [*(path / "_mem_wal").rglob("bloom_filter.bin"), manifests(path)[0]]:
        content = file.read_bytes()
        damage(file)
        if damage is flipped and file.suffix == ".bin":
            file.write_bytes(bytes(len(content)))
        found = lance_dataset.dataset(path).doctor()
        named = [each for each in found.findings if each.subject.path == str(file.relative_to(path))]
        assert found.is_healthy
        assert [each.is_damage for each in named] == [False]
        file.write_bytes(content)


def test_lost_manifests(path: Path) -> None:
    """A gap hides what was published later; a lost newest manifest is known from the hint, or from the log."""
    files = manifests(path)
    kept = {file: file.read_bytes() for file in files}
    hint = files[0].with_name("version_hint.json")
    files[1].unlink()
    hint.write_text('{"version":1}')
    [finding] = [each for each in damages(path) if "hidden" in each.what]
    assert finding.subject.path == str(files[1].relative_to(path))
    files[1].write_bytes(kept[files[1]])
    hint.write_text(f'{{"version":{len(files)}}}')
    files[-1].unlink()
    [finding] = [each for each in damages(path) if "hidden" in each.what]
    assert finding.subject.path == str(files[-1].relative_to(path))
    for file in files[1:]:
        file.unlink(missing_ok=True)
    hint.unlink()
    with lance_dataset.dataset(path).mem_wal_writer(SHARD) as writer:  # replays what is in the log
        assert values(writer.lsm_scanner().to_table())[4] == "log"
    for file in manifests(path):
        file.unlink()
    [finding] = damages(path)
    assert "has no manifests" in finding.what
    assert "entries of its log" in finding.what


def test_epochs(path: Path) -> None:
    """An entry of a later claim than that of the newest manifest shows that manifests are missing."""
    for _ in range(2):
        lance_dataset.dataset(path).mem_wal_writer(SHARD).abort()
    for file in manifests(path)[3:]:
        file.unlink()
    manifests(path)[0].with_name("version_hint.json").unlink()
    assert any("is of epoch 3, but the newest manifest of 1" in each.what for each in damages(path))


def test_the_log_ends_early(path: Path) -> None:
    """The last entry that the manifest knows is missing; a writer that takes its number again would lose its rows."""
    for position in (3, 4, 5):
        entry(path, position).unlink()
    [finding] = damages(path)
    assert "may use its number again" in finding.what
    assert finding.subject.path == str(entry(path, 3).relative_to(path))


def test_merges_of_lost_shards(path: Path) -> None:
    """A merged shard that lost its files is damage; a branch, which has none from the start, is not damaged."""
    lance_dataset.dataset(path).merge_mem_wal()
    branch = lance_dataset.dataset(path).create_branch("dev")
    with branch.mem_wal_writer(OTHER) as writer:
        writer.put(rows({5: "branch"}))
    report = lance_dataset.dataset(path).doctor()
    assert report.is_healthy
    advice = [each for each in report.findings if "has no files" in each.what]
    assert [(each.subject.branch, each.subject.shard) for each in advice] == [("dev", SHARD)]
    log = path / "tree/dev/_mem_wal" / OTHER
    shutil.rmtree(log / "manifest")
    [finding] = damages(path)
    assert (finding.subject.branch, finding.subject.shard) == ("dev", OTHER)
    shutil.rmtree(log)
    shutil.rmtree(path / "_mem_wal" / SHARD)
    [finding] = damages(path)
    assert (finding.subject.branch, finding.subject.shard) == (None, SHARD)
    assert "rows that were not merged are lost" in finding.what


def test_progress_beyond_the_shard(path: Path) -> None:
    """A backup of a shard that is older than the table is found."""
    lance_dataset.dataset(path).merge_mem_wal()
    for file in manifests(path)[1:]:
        file.unlink()
    manifests(path)[0].with_name("version_hint.json").unlink()
    assert any("generation 2 is in the table, but the next one" in each.what for each in damages(path))


def test_overwritten(path: Path) -> None:
    """Shards of a table that was overwritten are an advice, as their rows may be wanted."""
    lance_dataset.write_dataset(rows({1: "new"}), path, mode="overwrite")
    found = lance_dataset.dataset(path).doctor()
    assert found.is_healthy
    assert [each.subject.shard for each in found.findings if "has no MemWAL" in each.what] == [SHARD]


def test_repair_leaves_shards_alone(path: Path) -> None:
    """A repair says that it does nothing about a shard, and changes none of its files."""
    table = next((path / "_mem_wal").rglob("*_gen_1"))
    next((table / "data").iterdir()).write_bytes(b"")
    before = {file: file.read_bytes() for file in (path / "_mem_wal").rglob("*") if file.is_file()}
    report = lance_dataset.dataset(path).doctor(repair=True, execute=True)
    assert not report.is_healthy
    [step] = [step for step in report.steps if "shard" in step.what]
    assert (step.outcome, step.reason.startswith("shards stay as they are")) == ("left", True)
    assert before == {file: file.read_bytes() for file in (path / "_mem_wal").rglob("*") if file.is_file()}


def test_the_command(path: Path) -> None:
    entry(path, 4).write_bytes(b"")
    found = json.loads(run("doctor", path, "--json", status=1).stdout)
    damaged = [each for each in found["findings"] if each["is_damage"]]
    assert [(each["kind"], each["subject"]["shard"], each["subject"]["cause"]) for each in damaged] == [
        ("shard", SHARD, "empty")
    ]


def test_an_index_of_other_keys(path: Path) -> None:
    """The index of the keys of an SSTable must have each row under its key."""
    first, second = (next((path / "_mem_wal").rglob(f"*_gen_{number}")) for number in (1, 2))
    for file in (second / "_pk_index").iterdir():
        shutil.copy(file, first / "_pk_index" / file.name)
    [finding] = damages(path)
    assert "does not have each of the 3 rows once" in finding.what
    assert "pylance needs this index" in finding.what


def test_a_shard_of_a_new_table(tmp_path: Path) -> None:
    """Tables without shards, and without a MemWAL, have no findings."""
    assert new_table(tmp_path / "t").doctor().findings == ()
    assert lance_dataset.write_dataset(rows({}), tmp_path / "u").doctor().findings == ()
