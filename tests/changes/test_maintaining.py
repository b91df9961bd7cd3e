"""Tests of maintenance by the policy of a dataset."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import lance as reference
import numpy as np
import pyarrow as pa
import pytest

# two processes run this file
sys.path.insert(0, str(Path(__file__).parents[1]))

from support.processes.together import begin_together, run_together
from support.stores.s3_server import S3Server

import lance_dataset as lance
from lance_dataset.dataset import MaintenancePolicy, MaintenanceReport, MaintenanceRunner
from lance_dataset.errors import InvalidInputError
from lance_dataset.table.lease import Lease, LeaseLostError

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
NOW = {"maintenance.cleanup.older_than": "0s"}


def ids(start: int, stop: int) -> pa.Table:
    return pa.table({"id": np.arange(start, stop)})


def made(uri: Any, **options: Any) -> lance.LanceDataset:
    """Return a dataset of 20 small fragments with an index that lacks two of them."""
    dataset = lance.write_dataset(ids(0, 900), uri, max_rows_per_file=50, **options)
    dataset.create_scalar_index("id", "BTREE")
    dataset.insert(ids(900, 1000), max_rows_per_file=50)
    return dataset


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    return made(tmp_path / "x.lance")


def outcomes(report: MaintenanceReport) -> list[str]:
    return [step.outcome for step in report.steps]


def data_files(dataset: lance.LanceDataset) -> set[str]:
    return {path.name for path in Path(dataset.uri, "data").iterdir()}


def check(dataset: lance.LanceDataset, stop: int = 1000) -> None:
    assert sorted(dataset.to_table()["id"].to_pylist()) == list(range(stop))
    assert dataset.count_rows("id = 950") == 1


def test_work_is_done_once(dataset: lance.LanceDataset) -> None:
    dry = dataset.maintain(dry_run=True)
    assert outcomes(dry) == ["due", "due", "nothing to do"]
    assert not Path(dataset.uri, "_maintenance").exists()
    report = dataset.maintain()
    assert outcomes(report) == ["done", "done", "nothing to do"]
    assert (report.read_version, report.version) == (3, dataset.version)
    assert report.has_changed
    assert not report.has_failed
    assert dict(report.steps[0].counts) == {"fragments_removed": 20, "fragments_added": 2}
    assert dict(report.steps[1].counts) == {"id_idx": 100}
    version = dataset.version
    again = dataset.maintain()
    assert outcomes(again) == ["nothing to do"] * 3
    assert not again.has_changed
    assert dataset.version == version == lance.dataset(dataset.uri).version
    check(dataset)
    assert json.loads(report.to_json()) == report.to_dict()
    assert report.to_dict()["steps"][0]["counts"] == {"fragments_removed": 20, "fragments_added": 2}
    assert "compact: done, 20 fragments can be joined, 16 suffice" in str(report)


def test_the_policy_decides(dataset: lance.LanceDataset) -> None:
    dataset.update_config({"maintenance.compact.min_fragments": "21", "maintenance.indices.uncovered_share": "0.2"})
    assert outcomes(dataset.maintain()) == ["nothing to do"] * 3
    dataset.update_config({"maintenance.indices.uncovered_rows": "100", "maintenance.cleanup.enabled": "false"})
    assert outcomes(dataset.maintain()) == ["nothing to do", "done", "off"]
    dataset.delete("id < 10")
    assert outcomes(dataset.maintain())[0] == "done"  # more than a tenth of a fragment
    dataset.update_config({"maintenance.compact.enabled": "false", "maintenance.indices.enabled": "false"})
    assert outcomes(dataset.maintain()) == ["off"] * 3


def test_shares_of_deleted_rows(dataset: lance.LanceDataset) -> None:
    dataset.update_config({"maintenance.compact.min_fragments": "100", "maintenance.compact.deleted_share": "0.5"})
    dataset.delete("id < 20")
    assert outcomes(dataset.maintain())[0] == "nothing to do"
    dataset.update_config({"maintenance.compact.deleted_share": "0.3"})
    report = dataset.maintain()
    assert report.steps[0].reason == "1 fragments have more than 0.3 of deleted rows"
    assert all(fragment.num_deletions == 0 for fragment in dataset.get_fragments())


def test_files_of_the_largest_size_are_not_rewritten_again(tmp_path: Path) -> None:
    values = [np.random.default_rng(number).bytes(10_000) for number in range(400)]
    dataset = lance.write_dataset(pa.table({"b": values}), tmp_path / "x", max_rows_per_file=10)
    dataset.update_config({"lance.compaction.max_bytes_per_file": "200000", "lance.compaction.batch_size": "5"})
    report = dataset.maintain()
    assert outcomes(report)[0] == "done"
    assert dict(report.steps[0].counts)["fragments_added"] >= 16
    assert outcomes(dataset.maintain())[0] == "nothing to do"
    dataset.delete("_rowoffset < 10")
    assert outcomes(dataset.maintain())[0] == "done"
    assert outcomes(dataset.maintain())[0] == "nothing to do"
    assert dataset.to_table()["b"].to_pylist() == values[10:]


def test_old_versions_go(dataset: lance.LanceDataset) -> None:
    dataset.tags.create("kept", 2)
    dataset.update_config({**NOW, "maintenance.cleanup.min_versions": "4", "maintenance.compact.enabled": "false"})
    dataset.update_config({"maintenance.indices.enabled": "false"})
    assert outcomes(dataset.maintain())[2] == "nothing to do"
    dataset.insert(ids(1000, 1001))
    assert outcomes(dataset.maintain(dry_run=True))[2] == "due"
    report = dataset.maintain()
    assert dict(report.steps[2].counts)["old_versions"] == 4
    assert [each["version"] for each in dataset.versions()] == [2, dataset.version]


@pytest.mark.parametrize("key", ["older_than", "retain_versions"])
def test_automatic_cleanup_is_not_contradicted(dataset: lance.LanceDataset, key: str) -> None:
    automatic = {"older_than": "30d", "retain_versions": "50"}[key]
    dataset.update_config({"lance.auto_cleanup.interval": "1000", f"lance.auto_cleanup.{key}": automatic})
    dataset.update_config({f"maintenance.cleanup.{key}": {"older_than": "0s", "retain_versions": "1"}[key]})
    assert outcomes(dataset.maintain())[2] == "nothing to do"
    dataset.update_config({"lance.auto_cleanup.interval": None})
    assert outcomes(dataset.maintain())[2] == "done"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("compact.min_fragment", "3", "unknown key 'maintenance.compact.min_fragment'.*min_fragments.*keys .* are"),
        ("compact.min_fragments", "0", "min_fragments is '0', but must be a whole number from 1"),
        ("compact.min_fragments", "-1", "but must be a whole number"),
        ("compact.deleted_share", "nan", "deleted_share is 'nan', but must be a number from 0 to 1"),
        ("compact.enabled", "True", "enabled is 'True', but must be 'true' or 'false'"),
        ("cleanup.older_than", "3", "older_than is '3', but must be a duration, such as '14d'.*needs a unit"),
        ("cleanup.older_than", "3000000y", "but must be a duration of less than"),
        ("lease", "2d", "lease is '2d', but must be a duration from 1 second to 1 day"),
    ],
)
def test_wrong_policies(tmp_path: Path, key: str, value: str, message: str) -> None:
    dataset = lance.write_dataset(ids(0, 3), tmp_path / "x")
    with pytest.raises(InvalidInputError, match=message):
        dataset.update_config({f"maintenance.{key}": value})
    assert dataset.version == 1
    reference.dataset(tmp_path / "x").update_config({f"maintenance.{key}": value})
    dataset.checkout_latest()
    with pytest.raises(InvalidInputError, match=message):
        dataset.maintain()
    dataset.update_config({f"maintenance.{key}": None})
    assert outcomes(dataset.maintain()) == ["nothing to do"] * 3


def test_policies_have_defaults() -> None:
    assert MaintenancePolicy.of({"maintenance.lease": "5m", "other": "x"}) == MaintenancePolicy(lease_seconds=300)


@pytest.mark.parametrize("indexed", [False, True])
def test_no_rows(tmp_path: Path, indexed: bool) -> None:
    dataset = lance.write_dataset(ids(0, 0), tmp_path / "x")
    if indexed:
        dataset.create_scalar_index("id", "BTREE")
    told: list[tuple[int, int]] = []
    assert outcomes(dataset.maintain(progress=lambda *done: told.append(done))) == ["nothing to do"] * 3
    assert told == [(0, 0)]


def test_older_versions_and_branches(dataset: lance.LanceDataset) -> None:
    old = lance.dataset(dataset.uri, version=1)
    branch = dataset.create_branch("b")
    branch.insert(ids(1000, 1100))
    report = branch.checkout_version(("b", 4)).maintain()
    assert report.branch == "b"
    assert outcomes(report)[:2] == ["done", "done"]
    check(branch.checkout_version(("b", None)), 1100)
    assert not Path(dataset.uri, "_maintenance").exists()
    assert Path(dataset.uri, "tree/b/_maintenance").exists()
    assert lance.dataset(dataset.uri).version == 3
    assert outcomes(old.maintain())[:2] == ["done", "done"]
    assert old.version == lance.dataset(dataset.uri).version > 3
    check(old)
    dataset.branches.delete("b")
    assert not Path(dataset.uri, "tree/b/_maintenance").exists()


def test_stable_row_ids_and_deferred_indices(tmp_path: Path) -> None:
    for name, options, config in (
        ("stable", {"enable_stable_row_ids": True}, {}),
        ("deferred", {}, {"lance.compaction.defer_index_remap": "true"}),
    ):
        dataset = made(tmp_path / name, **options)
        dataset.update_config(config)
        assert outcomes(dataset.maintain())[:2] == ["done", "done"]
        assert outcomes(dataset.maintain()) == ["nothing to do"] * 3
        check(dataset)


def test_the_reference_ignores_leases(dataset: lance.LanceDataset) -> None:
    dataset.create_branch("b")
    dataset.maintain()
    handle = reference.dataset(dataset.uri)
    assert handle.count_rows() == 1000
    handle.cleanup_old_versions(older_than=dt.timedelta(0), delete_unverified=True)
    handle.insert(ids(1000, 1010))
    assert list(handle.branches.list()) == ["b"]
    dataset.checkout_latest()
    assert dataset.cleanup_old_versions(dt.timedelta(0), delete_unverified=True).old_versions
    assert dataset.doctor().is_healthy
    assert outcomes(dataset.maintain())[0] == "nothing to do"
    lance.LanceDataset.drop(dataset.uri)
    assert not Path(dataset.uri).exists()


# -- other writers ---------------------------------------------------------------------------------------------------


def test_conflicts_are_retried(dataset: lance.LanceDataset) -> None:
    other = lance.dataset(dataset.uri)
    left = [1]

    def told(done: int, total: int) -> None:
        if left and left.pop():
            other.delete("id = 999 or id = 0")

    dataset.update_config({"maintenance.indices.enabled": "false"})
    assert outcomes(dataset.maintain(progress=told))[0] == "done"
    assert sorted(dataset.to_table()["id"].to_pylist()) == list(range(1, 999))
    used = {file.path for fragment in dataset.get_fragments() for file in fragment.data_files()}
    old = {
        file.path
        for fragment in lance.dataset(dataset.uri, version=3).get_fragments()
        for file in fragment.data_files()
    }
    assert data_files(dataset) == used | old  # those of the first attempt are gone


def test_conflicts_without_end_are_reported(dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_dataset.changes.maintaining.running._RETRIES", 0)
    other = lance.dataset(dataset.uri)
    before = data_files(dataset)

    def told(done: int, total: int) -> None:
        if other.count_rows("id = 0"):
            other.delete("id = 0")

    report = dataset.maintain(progress=told)
    assert outcomes(report) == ["conflict", "done", "nothing to do"]
    assert report.has_failed
    assert data_files(dataset) == before
    assert dataset.version == report.version == lance.dataset(dataset.uri).version


def test_errors_of_progress_leave_the_handle_at_its_newest_version(dataset: lance.LanceDataset) -> None:
    def told(done: int, total: int) -> None:
        if total > 1000:
            raise ZeroDivisionError

    before = dataset.version
    with pytest.raises(ZeroDivisionError):
        dataset.maintain(progress=told)
    assert before < dataset.version == lance.dataset(dataset.uri).version
    assert outcomes(dataset.maintain())[:2] == ["nothing to do", "done"]


def test_interrupts_leave_nothing(dataset: lance.LanceDataset) -> None:
    def told(done: int, total: int) -> None:
        raise KeyboardInterrupt

    before = data_files(dataset)
    with pytest.raises(KeyboardInterrupt):
        dataset.maintain(progress=told)
    assert data_files(dataset) == before
    assert dataset.maintain().held_by is None


def test_lost_leases_stop_the_work(dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    before = data_files(dataset)
    checks: list[int] = []

    def check_lease(lease: Lease) -> None:
        checks.append(1)
        if len(checks) > 1:
            raise LeaseLostError("lost")

    monkeypatch.setattr(Lease, "check", check_lease)
    report = dataset.maintain()
    assert outcomes(report) == ["stopped"] * 3
    assert report.has_failed
    assert dataset.version == 3
    assert data_files(dataset) == before


def test_held_leases_are_reported(dataset: lance.LanceDataset) -> None:
    store, root = dataset.snapshot.store, dataset.snapshot.root
    with Lease.take(store, root, 60):
        report = dataset.maintain()
        assert report.steps == ()
        assert report.held_by
        assert not report.has_failed
        assert f"{report.held_by} is at work" in str(report)
        assert dataset.maintain(dry_run=True).held_by == report.held_by
        assert dataset.maintain(wait=dt.timedelta(seconds=0.1)).held_by == report.held_by
    assert dataset.maintain().held_by is None
    with pytest.raises(TypeError, match=r"wait must be a datetime\.timedelta"):
        dataset.maintain(wait=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dry_run must be True or False"):
        dataset.maintain(dry_run="yes")  # type: ignore[arg-type]


def test_a_runner_does_the_work(dataset: lance.LanceDataset) -> None:
    called: list[object] = []

    class Runner(MaintenanceRunner):
        def compact(self, handle: Any, options: Mapping[str, Any]) -> None:
            called.append(dict(options))
            handle.optimize.compact_files(**options)

        def refresh_indices(self, handle: Any, names: list[str]) -> None:
            called.append(list(names))
            handle.optimize.optimize_indices(index_names=names)

    dataset.update_config({"maintenance.compact.deleted_share": "0.25"})
    assert outcomes(dataset.maintain(runner=Runner()))[:2] == ["done", "done"]
    assert called == [{"materialize_deletions_threshold": 0.25}, ["id_idx"]]
    check(dataset)


def test_results_can_be_discarded(dataset: lance.LanceDataset) -> None:
    from lance_dataset.optimize import Compaction

    before = data_files(dataset)
    plan = Compaction.plan(dataset, {})
    results = [task.execute(dataset) for task in plan.tasks]
    assert data_files(dataset) > before
    Compaction.discard(dataset, results)
    assert data_files(dataset) == before
    results = [task.execute(dataset) for task in plan.tasks]
    Compaction.commit(dataset, results)
    Compaction.discard(dataset, results)
    check(dataset)


# -- other processes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["local", "s3"] if THOROUGH else ["local"])
def test_two_processes_do_the_work_once(request: pytest.FixtureRequest, tmp_path: Path, store: str) -> None:
    uri, options = str(tmp_path / "x"), {}
    if store == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        uri, options = f"s3://{server.new_bucket()}/x", server.options
    dataset = made(uri, storage_options=options)
    log, _ = run_together(__file__, [{"uri": uri, "options": options, "library": "ours"}] * (4 if THOROUGH else 2))
    done = [[step["outcome"] for step in report["steps"][:2]] for report in log]
    assert sorted(done) == [["done", "done"], *[["nothing to do", "nothing to do"]] * (len(done) - 1)]
    dataset.checkout_latest()
    operations = [dataset.read_transaction(version).operation for version in range(4, dataset.version + 1)]
    assert [type(each).__name__ for each in operations].count("Rewrite") == 1
    assert [type(each).__name__ for each in operations].count("CreateIndex") == 1
    check(dataset)


KILLED = """
import sys, time
import lance_dataset

def told(done, total):
    print("working", flush=True)
    time.sleep(600)

lance_dataset.dataset(sys.argv[1]).maintain(progress=told)
"""


def test_killed_processes_are_followed(dataset: lance.LanceDataset) -> None:
    dataset.update_config({"maintenance.lease": "1s"})
    with subprocess.Popen([sys.executable, "-c", KILLED, dataset.uri], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"working\n"
        held = dataset.maintain()
        process.kill()
    assert held.held_by is not None
    report = dataset.maintain(wait=dt.timedelta(minutes=1))
    assert report.taken_over == held.held_by
    assert "took over from" in str(report)
    assert outcomes(report)[:2] == ["done", "done"]
    check(dataset)


LOOP = """
import sys
import lance_dataset
from lance_dataset.errors import LanceError

while True:
    try:
        print(lance_dataset.dataset(sys.argv[1]).maintain().to_json(), flush=True)
    except (LanceError, OSError) as error:
        print("error", type(error).__name__, error, file=sys.stderr, flush=True)
"""


@pytest.mark.parametrize("rounds", [120 if THOROUGH else 4])
def test_nothing_is_lost_while_maintainers_are_killed(dataset: lance.LanceDataset, tmp_path: Path, rounds: int) -> None:
    dataset.update_config({**NOW, "maintenance.lease": "1s", "maintenance.compact.min_fragments": "3"})
    choices = random.Random(1)
    errors = tmp_path / "errors"
    with errors.open("w") as log:
        command = [sys.executable, "-c", LOOP, dataset.uri]
        running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log) for _ in range(2)]
        try:
            for number in range(rounds):
                dataset.insert(ids(1000 + 10 * number, 1010 + 10 * number))
                dataset.delete(f"id = {1000 + 10 * number}")
                if number % 20 == 3:
                    victim = running.pop(choices.randrange(2))
                    victim.kill()
                    victim.wait()
                    running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log))
        finally:
            for process in running:
                process.kill()
                process.wait()
    assert errors.read_text() == ""
    report = dataset.maintain(wait=dt.timedelta(minutes=1))
    assert not report.has_failed
    wanted = [each for each in range(1000 + 10 * rounds) if each < 1000 or each % 10]
    assert sorted(dataset.to_table()["id"].to_pylist()) == wanted
    dataset.validate(indices=True)


def test_object_stores(s3_server: S3Server) -> None:
    uri = f"s3://{s3_server.new_bucket()}/x.lance"
    dataset = made(uri, storage_options=s3_server.options)
    dataset.update_config(NOW)
    with Lease.take(dataset.snapshot.store, dataset.snapshot.root, 60):
        assert dataset.maintain().held_by
    assert outcomes(dataset.maintain()) == ["done"] * 3
    assert outcomes(dataset.maintain())[:2] == ["nothing to do"] * 2
    check(dataset)
    assert reference.dataset(uri, storage_options=s3_server.options).count_rows() == 1000


def _work(given: Mapping[str, Any], begin: float, log: IO[str]) -> None:
    dataset = lance.dataset(given["uri"], storage_options=given["options"])
    time.sleep(max(0.0, begin - time.time()))
    report = dataset.maintain(wait=dt.timedelta(minutes=2))
    log.write(report.to_json() + "\n")


if __name__ == "__main__":
    begin_together(_work)
