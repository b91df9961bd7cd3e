"""Tests that damaged datasets are repaired, or what is damaged is moved away; nothing is lost silently."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.processes.cli_runs import run, run_json
from support.stores.faulty_store import Crash, Failure, Fault, FaultyStore, copy_of, session_of
from support.stores.s3_server import S3Server
from support.tables.damaged_dataset import Damage, DatasetToDamage, damage_at_random, files_below

import lance_dataset
from lance_dataset.changes.doctor import manifests
from lance_dataset.changes.doctor.manifests import hinted_version
from lance_dataset.changes.doctor.repairing import repair as repair_at
from lance_dataset.changes.indexing import rebuild_index
from lance_dataset.debug import RepairOutcome, RepairReport, RepairStep, diagnose, repair
from lance_dataset.errors import InvalidInputError, StorageError
from lance_dataset.io.external.sql import sql_manifests
from lance_dataset.io.guarded import with_manifests
from lance_dataset.io.memory import MemoryStore
from lance_dataset.io.resolve import resolve
from lance_dataset.read.location import TableLocation
from lance_dataset.read.session import Session
from lance_dataset.table.manifest import encode_manifest

_DAMAGES = 200 if os.environ.get("LANCE_STRESS") else 12
_BRANCHES = (None, "side", "side/inner")
_HINT = "latest_version_hint.json"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> DatasetToDamage:
    """The dataset to damage."""
    return DatasetToDamage.make(tmp_path_factory.mktemp("repair"))


@pytest.fixture
def path(whole: DatasetToDamage) -> Path:
    """Path of the dataset, which is as it was."""
    return whole.restore()


def _contents(path: Path) -> dict[str, bytes]:
    return {name: (path / name).read_bytes() for name in files_below(path)}


def _check_nothing_deleted(path: Path, before: dict[str, bytes], report: RepairReport) -> None:
    """Check that each file is where it was, or in the quarantine, whose journal says where it was."""
    after = _contents(path)
    lost = {name for name, content in before.items() if after.get(name) != content and Path(name).name != _HINT}
    if report.quarantine is None:
        assert not lost
        return
    lines = [json.loads(line) for line in after[f"{report.quarantine}/journal.jsonl"].decode().splitlines()]
    moved = {line["from"]: line["to"] for line in lines if "from" in line}
    assert all(after[moved[name]] == before[name] for name in lost)
    assert all(line["why"] and line["what"] and line["time"] for line in lines)


def _check_rows(whole: DatasetToDamage, damage: Damage, report: RepairReport) -> None:
    """Check that each branch can be read, by pylance too, with all rows that were not in lost files."""
    gone = whole.data_files.get(damage.name)
    for branch in _BRANCHES:
        dataset = whole.open(branch)
        dataset.validate()
        rows = dataset.to_table(columns=["id"])["id"].to_pylist()
        old = whole.rows[branch]
        steps = [step for step in report.steps if step.branch == branch]
        if any(step.rows_lost for step in steps):
            assert gone is not None
            expected = [value for fragment, values in old.items() if fragment != gone for value in values]
            assert sum(step.rows_lost or 0 for step in steps) == len(old[gone])
        else:
            expected = [value for values in old.values() for value in values]
        assert len(rows) == len(expected) + sum(step.rows_restored or 0 for step in steps)
        assert set(expected) <= set(rows)
        opened = lance.dataset(str(whole.path))
        if branch is not None:
            opened = opened.checkout_version((branch, None))
        assert opened.to_table(columns=["id"])["id"].to_pylist() == rows


@pytest.mark.parametrize("seed", range(_DAMAGES))
def test_random_damages(whole: DatasetToDamage, path: Path, seed: int) -> None:
    """A damage is found, explained, and repaired; a plan changes nothing, and a repair deletes nothing."""
    damage = damage_at_random(path, random.Random(seed))
    if damage.kind == "add":
        os.utime(path / damage.name, (1e9, 1e9))
    before = _contents(path)
    plan = repair(path, drop_lost_rows=True, restore_deleted_rows=True)
    assert _contents(path) == before
    told = [str(finding) + str(finding.subject.path) for finding in plan.before.findings]
    assert any(damage.name in each for each in told), (damage, str(plan))
    assert plan.steps
    report = repair(path, execute=True, drop_lost_rows=True, restore_deleted_rows=True)
    assert {step.outcome.value for step in report.steps} <= {"done", "left"}, str(report)
    assert [step.action for step in plan.steps] == [step.action for step in report.steps]
    _check_nothing_deleted(path, before, report)
    _check_rows(whole, damage, report)
    assert report.after is not None
    for finding in report.after.findings:  # only old versions of which files are lost
        assert not finding.is_damage or (finding.subject.path == damage.name and not finding.subject.newest), str(
            report
        )
    again = repair(path, execute=True, drop_lost_rows=True, restore_deleted_rows=True)
    assert not [step for step in again.steps if step.outcome.value != "left"], str(again)


def _newest(path: Path) -> Path:
    """Return the newest manifest of a branch."""
    return min((path / "_versions").glob("*.manifest"))


def _outcomes(report: RepairReport) -> list[tuple[str, str]]:
    return [(step.action.value, step.outcome.value) for step in report.steps]


def _only(report: RepairReport, action: str) -> RepairStep:
    [step] = [step for step in report.steps if step.action == action]
    return step


# -- manifests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 0.9])
def test_torn_newest_version_is_committed_again(whole: DatasetToDamage, path: Path, kept: float) -> None:
    """The newest version is made again by its transaction, named by what is left of its manifest or the only one."""
    newest = _newest(path)
    content = newest.read_bytes()
    newest.write_bytes(content[: int(len(content) * kept)])
    report = repair(path, execute=True)
    step = _only(report, "commit again")
    assert (step.outcome, step.version) == (RepairOutcome.DONE, 8)
    assert ("which its manifest names" in step.what) == (kept > 0)
    assert report.is_healthy
    assert whole.rows_of(None) == whole.rows[None]
    assert lance_dataset.dataset(path, version="late").count_rows() == 597


def test_several_lost_versions(whole: DatasetToDamage, path: Path) -> None:
    """A chain of lost versions is committed again, an index among them; so is a manifest that is gone."""
    versions = sorted((path / "_versions").glob("*.manifest"))
    versions[0].unlink()
    versions[1].write_bytes(b"")
    report = repair(path, execute=True)
    assert [step.version for step in report.steps if step.action == "commit again"] == [7, 8]
    assert report.is_healthy
    assert [index.name for index in whole.open().describe_indices()] == ["id_idx", "name_idx", "vector_idx"]


def test_lost_transaction(path: Path) -> None:
    """Without its transaction, the changes of a lost version are gone, and the one before is opened."""
    _newest(path).write_bytes(b"")
    for file in (path / "_transactions").glob("7-*"):
        file.unlink()
    report = repair(path, execute=True)
    assert "the changes of version 8 are not in the newest version" in str(report)
    assert lance_dataset.dataset(path).version == lance.dataset(str(path)).version == 7
    assert report.is_healthy  # the tag of version 8 is in the quarantine
    assert list(lance_dataset.dataset(path).tags.list()) == ["first"]


def test_several_transactions_could_be_the_lost_one(path: Path) -> None:
    """If several transactions can have made a version, none is committed."""
    _newest(path).write_bytes(b"")
    [file] = (path / "_transactions").glob("7-*")
    (path / "_transactions" / "7-00000000-0000-4000-8000-000000000000.txn").write_bytes(file.read_bytes())
    report = repair(path, execute=True)
    assert "several transactions can have made version 8" in str(report)
    assert lance_dataset.dataset(path).version == 7


@pytest.mark.parametrize("state", ["torn", "empty", "without its file"])
def test_transaction_of_another_writer(tmp_path: Path, state: str) -> None:
    """A transaction of a writer who committed nothing is not taken for that of a lost version.

    The reference keeps the name of a transaction that starts from an older version.
    """
    path, copy = tmp_path / "t", tmp_path / "copy"
    lance.write_dataset(pa.table({"id": [1]}), path)
    lance.write_dataset(pa.table({"id": [2]}), path, mode="append")
    shutil.copytree(path, copy)
    lance.write_dataset(pa.table({"id": [99]}), copy, mode="append")
    shutil.copytree(copy / "data", path / "data", dirs_exist_ok=True)
    [left] = (copy / "_transactions").glob("2-*")
    shutil.copy(left, path / "_transactions")
    before = set((path / "_transactions").iterdir())
    added = lance.fragment.write_fragments(pa.table({"id": [3]}), path)
    lance.LanceDataset.commit(path, lance.LanceOperation.Append(added), read_version=1)
    [own] = set((path / "_transactions").iterdir()) - before
    assert own.name.startswith("1-")
    content = _newest(path).read_bytes()
    _newest(path).write_bytes(b"" if state == "empty" else content[:-4] + b"????")
    if state == "without its file":
        own.unlink()
    report = repair(path, execute=True)
    reasons = {
        "torn": f"the transaction {own.name} starts from version 1",
        "empty": "several transactions can have made version 3",
        "without its file": f"its manifest names {own.name}",
    }
    assert reasons[state] in str(report)
    assert lance_dataset.dataset(path).to_table()["id"].to_pylist() == [1, 2]


@pytest.mark.parametrize("content", [b"", None])
def test_older_damage_beside_a_lost_version(path: Path, content: bytes | None) -> None:
    """The transaction of an older version that is damaged or gone is not taken for one of the newest version."""
    older = sorted((path / "_versions").glob("*.manifest"))[-2]
    _newest(path).write_bytes(b"")
    if content is None:
        older.unlink()
    else:
        older.write_bytes(content)
    assert _only(repair(path, execute=True), "commit again").version == 8


def test_nothing_can_be_opened(path: Path) -> None:
    """If no version can be opened, manifests stay where they are."""
    for manifest in (path / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"")
    before = _contents(path)
    report = repair(path, execute=True)
    assert {step.outcome for step in report.steps if "version" in step.what and step.branch is None} == {"left"}
    assert {name for name in before if "_versions" in name and "tree" not in name} <= set(_contents(path))
    _check_nothing_deleted(path, before, report)


def test_later_format(path: Path) -> None:
    """A version of a later release is whole, so it stays, and nothing is committed after it."""
    manifest = lance_dataset.dataset(path).snapshot.manifest
    _newest(path).write_bytes(encode_manifest(dataclasses.replace(manifest, reader_flags=1 << 40)))
    for file in (path / "_indices").rglob("page_data.lance"):
        file.unlink()
    report = repair(path, execute=True)
    assert _newest(path).stat().st_size
    left = [step for step in report.steps if step.branch is None and step.outcome == "left"]
    assert len(left) == 3, str(report)  # the manifest, its tag, and the index


def test_manifests_of_an_external_table(tmp_path: Path) -> None:
    """A damaged version is forgotten by the external table, which names the version before it then."""
    store = with_manifests(MemoryStore(), sql_manifests(f"sqlite:///{tmp_path}/manifests.db"))
    location = TableLocation("/t", store, "/t", Session())
    dataset = _small(location)
    store.put(dataset.snapshot.manifest.path, b"")
    for info in store.list("/t/_transactions"):
        if info.name.startswith("1-"):
            store.delete(info.path)
    report = repair_at(location, execute=True)
    assert location.read_manifest().version == 1, str(report)
    assert report.is_healthy


def test_copy_for_old_releases(tmp_path: Path) -> None:
    """The copy of the newest manifest that old releases open is written again."""
    path = tmp_path / "old"
    lance_dataset.write_dataset(pa.table({"id": [1]}), path, data_storage_version="0.1", enable_v2_manifest_paths=False)
    (path / "_latest.manifest").write_bytes(b"torn")
    report = repair(path, execute=True)
    assert _outcomes(report) == [("rewrite", "done")]
    assert (path / "_latest.manifest").read_bytes() == (path / "_versions" / "1.manifest").read_bytes()


# -- rows ------------------------------------------------------------------------------------------------------------


def test_lost_rows_need_consent(whole: DatasetToDamage, path: Path) -> None:
    """Without consent, lost data files are only reported, with the number of rows; and indices wait for them."""
    [name] = [name for name, fragment in whole.data_files.items() if fragment == 1 and name.startswith("data/")][:1]
    (path / name).unlink()
    for file in (path / "_indices").rglob("page_data.lance"):
        file.unlink()
    report = repair(path, execute=True)
    lost = [step for step in report.steps if step.action == "drop rows"]
    assert {(step.branch, step.rows_lost, step.outcome.value) for step in lost} == {
        (branch, 100, "needs consent") for branch in _BRANCHES
    }
    assert {step.outcome for step in report.steps if step.action == "rebuild index"} == {RepairOutcome.LEFT}
    assert (report.rows_lost, whole.open().version) == (0, 8)
    dataset = whole.open()
    report = dataset.doctor(repair=True, execute=True, drop_lost_rows=True)
    assert (report.rows_lost, report.rows_restored) == (300, 0)
    assert (dataset.version, dataset.count_rows()) == (10, 497)  # without the rows, and with the index
    assert dataset.to_table(filter="id = 50").num_rows == 1


def test_lost_deletion_files_need_consent(path: Path) -> None:
    """The newest deletion file of before is used; without one, all rows return."""
    dataset = lance_dataset.dataset(path)
    dataset.delete("id in (20, 21)")
    newest = dataset.get_fragments()[0].metadata.deletion_file
    assert newest is not None
    (path / newest.path(0)).unlink()
    report = repair(path, execute=True, drop_lost_rows=True)
    assert _only(report, "restore rows").outcome == "needs consent"
    report = repair(path, execute=True, restore_deleted_rows=True)
    assert (report.rows_restored, report.rows_lost) == (2, 0)
    assert "with the deletion file of version 8" in _only(report, "restore rows").what
    assert lance_dataset.dataset(path).to_table(filter="id < 25")["id"].to_pylist() == [
        each for each in range(25) if each not in (3, 7)
    ]


def test_updated_rows_do_not_return_beside_their_new_state(tmp_path: Path) -> None:
    """With stable row ids, two rows of the same id would contradict each other, so the deletion file stays lost."""
    dataset = lance_dataset.write_dataset(pa.table({"id": [1, 2, 3]}), tmp_path / "t", enable_stable_row_ids=True)
    dataset.update({"id": "20"}, "id = 2")
    deletion = dataset.get_fragments()[0].metadata.deletion_file
    assert deletion is not None
    (tmp_path / "t" / deletion.path(0)).unlink()
    report = repair(tmp_path / "t", execute=True, restore_deleted_rows=True)
    assert _only(report, "restore rows").outcome == "failed"
    assert "cannot return beside their new state" in _only(report, "restore rows").reason
    assert lance_dataset.dataset(tmp_path / "t").version == dataset.version


@pytest.mark.parametrize("nullable", [True, False])
def test_lost_columns(tmp_path: Path, nullable: bool) -> None:
    """Columns that were added later become null if their file is lost, and their index no longer covers these rows."""
    path = tmp_path / "t"
    dataset = lance_dataset.write_dataset(pa.table({"id": [1, 2, 3, 4]}), path, max_rows_per_file=2)
    dataset.add_columns({"double": "id * 2"})
    if not nullable:
        dataset.alter_columns({"path": "double", "nullable": False})
    dataset.create_scalar_index("double", "BTREE")
    (path / "data" / dataset.get_fragments()[1].metadata.files[1].path).unlink()
    report = repair(path, execute=True, drop_lost_rows=True)
    expected = [2, 4, None, None] if nullable else [2, 4]
    assert (report.rows_emptied, report.rows_lost) == ((2, 0) if nullable else (0, 2))
    for opened in (lance_dataset.dataset(path), lance.dataset(str(path))):
        opened.validate()
        assert opened.to_table()["double"].to_pylist() == expected
        assert opened.to_table(filter="double = 6").num_rows == 0
        assert opened.to_table(filter="double = 4")["id"].to_pylist() == [2]
    dataset.checkout_latest()
    dataset.insert(pa.table({"id": [5], "double": [10]}, schema=dataset.schema))
    assert dataset.to_table(filter="double = 10")["id"].to_pylist() == [5]


def test_columns_that_are_back(tmp_path: Path) -> None:
    """Columns whose file was put back between the plan and the repair stay."""
    path = tmp_path / "t"
    dataset = lance_dataset.write_dataset(pa.table({"id": [1, 2, 3, 4]}), path, max_rows_per_file=2)
    dataset.add_columns({"double": "id * 2"})
    files = [path / "data" / fragment.metadata.files[1].path for fragment in dataset.get_fragments()]
    contents = [file.read_bytes() for file in files]

    def put_back(number: int) -> RepairReport:
        for file in files:
            file.unlink(missing_ok=True)

        def restore(plan: RepairReport) -> None:
            assert plan.rows_emptied == 4
            for file, content in list(zip(files, contents, strict=True))[:number]:
                file.write_bytes(content)

        return repair(path, execute=True, drop_lost_rows=True, on_plan=restore)

    report = put_back(2)
    assert (report.rows_emptied, report.is_healthy, lance_dataset.dataset(path).version) == (0, True, 2)
    assert put_back(1).rows_emptied == 2
    assert lance_dataset.dataset(path).to_table()["double"].to_pylist() == [2, 4, None, None]


def test_index_that_cannot_be_built_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged index is not dropped because the store fails while it is built again."""
    path = tmp_path / "t"
    lance_dataset.write_dataset(pa.table({"id": [1, 2, 3]}), path).create_scalar_index("id", "BTREE")
    for file in (path / "_indices").glob("*/*"):
        file.write_bytes(b"")
    for error in (StorageError("the store is down"), OSError(errno.ENOSPC, "no space left")):

        def fail(*_: object, error: Exception = error, **__: object) -> Any:
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(rebuild_index, "new_segment", fail)
            step = _only(repair(path, execute=True), "rebuild index")
        assert (step.outcome, str(error) in step.reason) == (RepairOutcome.FAILED, True)
        assert lance_dataset.dataset(path).version == 2
    assert _only(repair(path, execute=True), "rebuild index").outcome is RepairOutcome.DONE
    assert [index.name for index in lance_dataset.dataset(path).describe_indices()] == ["id_idx"]


def test_many_lost_files(tmp_path: Path) -> None:
    """More damages than a diagnosis names are repaired, too."""
    path = tmp_path / "t"
    lance_dataset.write_dataset(pa.table({"id": list(range(60))}), path, max_rows_per_file=1)
    for file in sorted((path / "data").iterdir())[:55]:
        file.unlink()
    report = repair(path, execute=True, drop_lost_rows=True)
    assert (report.rows_lost, lance_dataset.dataset(path).count_rows()) == (55, 5)
    lance_dataset.dataset(path).validate()


# -- branches, orphans and small files -------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", ["ours", "reference"])
def test_torn_file_of_a_branch(tmp_path: Path, writer: str) -> None:
    """The file of a branch is written again from its first version; children know its identifier."""
    package = lance_dataset if writer == "ours" else lance
    path = str(tmp_path / "t")
    dataset = package.write_dataset(pa.table({"id": [1, 2]}), path)
    dataset.create_branch("a", None).create_branch("a/b", None)
    file = tmp_path / "t" / "_refs" / "branches" / "a.json"
    known = json.loads(file.read_bytes())
    file.write_bytes(b"")
    report = repair(path, execute=True)
    assert report.is_healthy, str(report)
    made = json.loads(file.read_bytes())
    assert {key: made[key] for key in ("parentBranch", "parentVersion", "identifier")} == {
        key: known.get(key) for key in ("parentBranch", "parentVersion", "identifier")
    }
    assert set(lance.dataset(path).branches.list()) == {"a", "a/b"}


@pytest.mark.parametrize("name", ["_transactions", "tree", "_refs/tags", "data", "_indices"])
def test_links(path: Path, name: str) -> None:
    """Folders behind links may belong to something else: they are told, and nothing is moved or raised."""
    place = path / name
    place.rename(path / "moved")
    place.symlink_to(path / "moved")
    before = _contents(path)
    report = repair(path, execute=True)
    assert report.quarantine is None
    assert _contents(path) == before


def test_branch_without_versions(path: Path) -> None:
    """The file of a branch without versions, and a tag of it, are moved away; others can be removed then."""
    dataset = lance_dataset.dataset(path)
    dataset.tags.create("inner", ("side/inner", None))
    for manifest in (path / "tree" / "side" / "inner" / "_versions").iterdir():
        manifest.unlink()
    report = repair(path, execute=True)
    assert report.is_healthy, str(report)
    assert list(dataset.branches.list()) == ["side"]
    dataset.branches.delete("side")


def test_orphans(path: Path) -> None:
    """Old files that no version refers to are moved; young ones may belong to a running write."""
    names = [f"{number:024b}{'a' * 26}.lance" for number in range(4)]
    for name in names:
        (path / "data" / name).write_bytes(name.encode())
    for name in names[:3]:
        os.utime(path / "data" / name, (1e9, 1e9))
    report = repair(path, execute=True)
    assert _outcomes(report) == [("quarantine", "done"), ("leave", "left")]
    folder = path / str(report.quarantine) / "data"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {name: name.encode() for name in names[:3]}
    assert (path / "data" / names[3]).exists()
    lance_dataset.dataset(path).cleanup_old_versions(delete_unverified=True)
    assert len(list(folder.iterdir())) == 3
    dropped = shutil.copytree(path, path.parent / "dropped")
    lance_dataset.LanceDataset.drop(dropped)
    assert not dropped.exists()


def test_hint(path: Path) -> None:
    """A file that does not name a version is written again."""
    hint = path / "_versions" / _HINT
    hint.write_bytes(b"{")
    assert _outcomes(repair(path, execute=True)) == [("rewrite", "done")]
    assert json.loads(hint.read_bytes()) == {"version": 8}


def test_versions_that_are_committed_meanwhile(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that was committed after the manifests were listed is not missing, though the hint names it."""

    def late(_: bytes) -> int | None:
        monkeypatch.setattr(manifests, "hinted_version", hinted_version)
        lance.dataset(path).delete("id = 0")
        return hinted_version((path / "_versions" / _HINT).read_bytes())

    monkeypatch.setattr(manifests, "hinted_version", late)
    diagnosis = diagnose(path)
    assert (diagnosis.is_healthy, diagnosis.newest, lance.dataset(path).version) == (True, 8, 9)


def test_whole_dataset(path: Path) -> None:
    """There is nothing to repair in a whole dataset, ours or the reference's."""
    before = _contents(path)
    report = repair(path, execute=True)
    assert (report.steps, report.quarantine, report.is_healthy) == ((), None, True)
    assert _contents(path) == before
    assert "nothing to repair" in str(report)


# -- interruptions, stores and commands ------------------------------------------------------------------------------


def _small(location: TableLocation) -> lance_dataset.LanceDataset:
    """Write a dataset with two versions and an index, in which the second one deletes rows."""
    uri, session = "memory:///t", session_of(location.store)
    lance_dataset.write_dataset(pa.table({"id": [1, 2, 3, 4]}), uri, max_rows_per_file=2, session=session)
    dataset = lance_dataset.dataset(uri, session=session)
    dataset.delete("id = 2")
    return dataset


@pytest.mark.parametrize("kind", ["crash", "fail"])
def test_interrupted_repair(kind: str) -> None:
    """Whatever call stops a repair or fails, nothing is deleted, and another repair finishes it."""
    first = MemoryStore()
    dataset = _small(TableLocation("/t", first, "/t", Session()))
    dataset.create_scalar_index("id", "BTREE")
    dataset.insert(pa.table({"id": [5]}))
    first.put(dataset.snapshot.manifest.path, b"torn")
    first.delete(next(info.path for info in first.list_tree("/t/_indices")))
    before = {info.path: first.read(info.path) for info in first.list_tree("/t")}
    counting = FaultyStore(copy_of(first))
    repair_at(TableLocation("/t", counting, "/t", Session()), execute=True)
    calls = len(counting.calls)
    step = 1 if os.environ.get("LANCE_STRESS") else 9
    for number in range(0, calls, step):
        inner = copy_of(first)
        with contextlib.suppress(Crash, Failure):
            repair_at(TableLocation("/t", FaultyStore(inner, Fault(number, kind)), "/t", Session()), execute=True)
        after = {inner.read(info.path) for info in inner.list_tree("/t")}
        assert {content for path, content in before.items() if not path.endswith(_HINT)} <= after, number
        report = repair_at(TableLocation("/t", inner, "/t", Session()), execute=True)
        assert report.after is not None
        assert not [each for each in report.after.findings if each.is_damage and each.subject.newest], str(report)
        opened = lance_dataset.dataset("memory:///t", session=session_of(inner))
        assert opened.to_table()["id"].to_pylist() == [1, 3, 4, 5], number


def test_object_store(s3_server: S3Server) -> None:
    """A dataset in an object store is repaired in the same way."""
    uri, options = f"s3://{s3_server.new_bucket()}/t.lance", s3_server.options
    dataset = lance_dataset.write_dataset(pa.table({"id": [1, 2, 3]}), uri, storage_options=options)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id = 2")
    store, root = resolve(uri, options)
    store.put(dataset.snapshot.manifest.path, b"torn")
    store.put(next(info.path for info in store.list_tree(f"{root}/_indices")), b"torn")
    report = repair(uri, options, execute=True)
    assert {step.outcome for step in report.steps} == {RepairOutcome.DONE}, str(report)
    assert lance_dataset.dataset(uri, storage_options=options).to_table(filter="id < 9")["id"].to_pylist() == [1, 3]
    assert lance.dataset(uri, storage_options=options).version == 4
    assert not [each for each in diagnose(uri, options).findings if each.subject.newest]


def test_command(path: Path) -> None:
    """The command plans, does what it planned with --yes, and ends with status 1 as long as something is damaged."""
    _newest(path).write_bytes(b"")
    before = _contents(path)
    assert "planned: commit version 8 again" in run("doctor", path, "--repair", status=1).output
    assert _contents(path) == before
    output = run("doctor", path, "--repair", "--yes").output
    assert output.index("planned: commit version 8 again") < output.index("done: commit version 8 again")
    found = run_json("doctor", path, "--repair", "--yes")
    assert (found["executed"], found["steps"], found["after"]["versions"]) == (True, [], 8)
    run("doctor", path, "--yes", status=2)


def test_arguments(path: Path) -> None:
    """Arguments of a repair need one; a plan that is refused is not done; progress counts the steps, too."""
    dataset = lance_dataset.dataset(path)
    with pytest.raises(InvalidInputError, match="drop_lost_rows is for a repair"):
        dataset.doctor(drop_lost_rows=True)
    with pytest.raises(TypeError, match="execute must be True or False"):
        repair(path, execute="yes")  # type: ignore[arg-type]
    _newest(path).write_bytes(b"")
    told: list[tuple[int, int]] = []

    def refuse(plan: RepairReport) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repair(path, execute=True, on_plan=refuse)
    assert _newest(path).read_bytes() == b""
    repair(path, execute=True, progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1] > 20
