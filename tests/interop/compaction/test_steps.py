"""Tests of compaction in three steps, each by either library, and of indices whose update is deferred."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import lance as reference
import lance.optimize
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.tables.equality import assert_same

import lance_dataset as lance_ours
from lance_dataset.errors import CommitConflictError, CorruptFileError, InvalidInputError, UnsupportedError
from lance_dataset.optimize import Compaction, CompactionMetrics, CompactionPlan, CompactionTask, RewriteResult
from lance_dataset.table.indices.reuse import find_reuse_index
from lance_dataset.table.roaring import decode_treemap, encode_bitmap, encode_treemap

BOTH: list[ModuleType] = [lance_ours, reference]
STEPS = {lance_ours: lance_ours.optimize, reference: reference.optimize}
SAMPLE_COLUMNS = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def rows(start: int, stop: int) -> pa.Table:
    numbers = np.arange(start, stop)
    return pa.table({"id": numbers, "text": [f"row {number}" for number in numbers]})


def made(path: Path, *counts: int, version: str = "2.1", **options: Any) -> str:
    start = 0
    for count in counts:
        reference.write_dataset(
            rows(start, start + count), path, mode="append", data_storage_version=version, **options
        )
        start += count
    return str(path)


def files(folder: str) -> set[str]:
    return {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()}


def sizes(dataset: Any) -> list[tuple[int, int]]:
    return [(each.fragment_id, each.count_rows()) for each in dataset.get_fragments()]


# -- steps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("planner", BOTH, ids=["we plan", "they plan"])
@pytest.mark.parametrize("worker", BOTH, ids=["we work", "they work"])
@pytest.mark.parametrize("committer", BOTH, ids=["we commit", "they commit"])
def test_every_step_by_either(
    tmp_path: Path, planner: ModuleType, worker: ModuleType, committer: ModuleType, stable: bool
) -> None:
    table = made(tmp_path / "t.lance", 10, 10, 10, 10, enable_stable_row_ids=stable)
    reference.dataset(table).delete("id in (3, 4, 38)")
    expected = reference.dataset(table).to_table(columns=["id", "text", *(SAMPLE_COLUMNS if stable else [])])
    options = {"target_rows_per_fragment": 15, "num_threads": 2, "data_storage_version": "2.2"}
    plan = STEPS[planner].Compaction.plan(planner.dataset(table), options)
    assert plan.num_tasks() == 2
    tasks = [STEPS[worker].CompactionTask.from_json(task.json()) for task in plan.tasks]
    results = [task.execute(worker.dataset(table)) for task in tasks]
    told = [STEPS[committer].RewriteResult.from_json(result.json()) for result in results]
    dataset = committer.dataset(table)
    metrics = STEPS[committer].Compaction.commit(dataset, told)
    assert (metrics.fragments_removed, metrics.fragments_added) == (4, 2)
    assert (metrics.files_removed, metrics.files_added) == (6, 2)
    assert sizes(dataset) == [(4, 18), (5, 19)]
    assert dataset.version == 7  # 4 appends, a delete, a reservation of ids, the rewrite
    for library in BOTH:
        assert_same(library.dataset(table).to_table(columns=expected.column_names), expected)


def test_forms(tmp_path: Path) -> None:
    table = made(tmp_path / "t.lance", 10, 10, enable_stable_row_ids=True)
    reference.dataset(table).delete("id = 3")
    options: Any = {
        "target_rows_per_fragment": 100, "max_rows_per_group": 7, "max_bytes_per_file": 10**6,
        "materialize_deletions": False, "materialize_deletions_threshold": 0.3, "num_threads": 2, "batch_size": 5,
        "io_buffer_size": 1000, "compaction_mode": "try_binary_copy", "binary_copy_read_batch_bytes": 1000,
        "max_source_fragments": 9, "max_source_rows": 99, "max_source_bytes": 99999, "excluded_fragment_ids": [77],
    }  # fmt: skip
    for given_options in ({}, options):
        theirs = reference.optimize.Compaction.plan(reference.dataset(table), given_options)
        ours = Compaction.plan(lance_ours.dataset(table), given_options)
        assert json.loads(ours.json()) == json.loads(theirs.json())
        assert json.loads(ours.tasks[0].json()) == json.loads(theirs.tasks[0].json())
        assert json.loads(CompactionPlan.from_json(theirs.json()).json()) == json.loads(theirs.json())
        assert ours.read_version == theirs.read_version == ours.tasks[0].read_version == 3
        assert repr(ours) == repr(theirs)
    result = ours.tasks[0].execute(lance_ours.dataset(table))
    other = theirs.tasks[0].execute(reference.dataset(table))
    assert json.loads(result.json()).keys() == json.loads(other.json()).keys()
    for name in ("metrics", "read_version", "original_fragments", "row_addrs"):
        assert json.loads(result.json())[name] == json.loads(other.json())[name]
    assert result.read_version == 3
    assert [each.id for each in result.original_fragments] == [each.id for each in ours.tasks[0].fragments] == [0, 1]
    assert [each.physical_rows for each in result.new_fragments] == [19]
    for each in (ours, ours.tasks[0], result):
        assert pickle.loads(pickle.dumps(each)).json() == each.json()
        assert repr(pickle.loads(pickle.dumps(each))) == repr(each)


def _execute(task: bytes, table: str) -> bytes:
    return pickle.dumps(pickle.loads(task).execute(lance_ours.dataset(table)))


def test_workers_in_other_processes(tmp_path: Path) -> None:
    table = made(tmp_path / "t.lance", *[10] * 6)
    dataset = lance_ours.dataset(table)
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 20})
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(_execute, pickle.dumps(task), table) for task in plan.tasks]
        results = [pickle.loads(job.result()) for job in jobs]
    Compaction.commit(dataset, results)
    assert sizes(dataset) == [(6, 20), (7, 20), (8, 20)]
    assert_same(reference.dataset(table).to_table(), rows(0, 60))


def test_parts_of_a_plan_in_several_commits(tmp_path: Path) -> None:
    table = made(tmp_path / "t.lance", *[10] * 4)
    dataset = lance_ours.dataset(table)
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 20})
    results = [task.execute(dataset) for task in plan.tasks]
    reference.write_dataset(rows(40, 45), table, mode="append")
    assert Compaction.commit(dataset, []) == CompactionMetrics()
    assert dataset.version == 4
    Compaction.commit(dataset, results[:1])
    with pytest.raises(CommitConflictError) as caught:
        Compaction.commit(dataset, results[:1])
    assert caught.value.retryable
    Compaction.commit(dataset, results[1:])
    assert sizes(dataset) == [(4, 5), (5, 20), (6, 20)]
    assert_same(reference.dataset(table).to_table().sort_by("id"), rows(0, 45))


CHANGES: dict[str, tuple[Callable[[reference.LanceDataset], object], bool]] = {
    "append": (lambda ds: ds.insert(rows(100, 105)), True),
    "delete in it": (lambda ds: ds.delete("id = 3"), False),
    "update in it": (lambda ds: ds.update({"text": "'x'"}, "id = 3"), False),
    "delete elsewhere": (lambda ds: ds.delete("id = 25"), True),
    "update elsewhere": (lambda ds: ds.update({"text": "'x'"}, "id = 25"), True),
    "compaction": (lambda ds: ds.optimize.compact_files(excluded_fragment_ids=[2]), False),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_version_that_moved_on(tmp_path: Path, name: str) -> None:
    table = made(tmp_path / "t.lance", 10, 10, 10)
    plan = Compaction.plan(lance_ours.dataset(table), {"excluded_fragment_ids": [2]})
    change, fits = CHANGES[name]
    change(reference.dataset(table))
    newest = lance_ours.dataset(table)
    expected = newest.to_table().sort_by("id")
    result = plan.tasks[0].execute(newest)
    assert result.read_version == 3
    assert result.new_fragments[0].physical_rows == 20
    if fits:
        Compaction.commit(newest, [result])
        assert (newest.count_rows(), len(sizes(newest))) == (expected.num_rows, 2 if name.startswith("del") else 3)
    else:
        with pytest.raises(CommitConflictError) as caught:
            Compaction.commit(newest, [result])
        assert caught.value.retryable
    assert_same(reference.dataset(table).to_table().sort_by("id"), expected)


def test_what_does_not_fit(tmp_path: Path) -> None:
    table, other = made(tmp_path / "t.lance", 10, 10), made(tmp_path / "u.lance", 10, 10)
    dataset = lance_ours.dataset(table)
    task = Compaction.plan(dataset, {}).tasks[0]
    with pytest.raises(InvalidInputError, match="another dataset"):
        task.execute(lance_ours.dataset(other))
    result = task.execute(dataset)
    with pytest.raises(InvalidInputError, match="another dataset"):
        Compaction.commit(lance_ours.dataset(other), [result])
    with pytest.raises(InvalidInputError, match="several results"):
        Compaction.commit(dataset, [result, result])
    value = json.loads(result.json())
    value["new_fragments"][0]["physical_rows"] = 19
    with pytest.raises(InvalidInputError, match="have 20 rows"):
        Compaction.commit(dataset, [RewriteResult.from_json(json.dumps(value))])
    with pytest.raises(TypeError, match="RewriteResult"):
        Compaction.commit(dataset, [task])
    for options, error in (({"bogus": 1}, ValueError), (None, TypeError), ({"batch_size": -1}, OverflowError)):
        for call in (Compaction.plan, Compaction.execute):
            with pytest.raises(error):
                call(dataset, options)
    with pytest.raises(ValueError, match="bogus"):
        Compaction.commit(dataset, [result], {"bogus": 1})
    assert dataset.latest_version == 2


@pytest.mark.parametrize("kind", [CompactionPlan, CompactionTask, RewriteResult])
def test_broken_json(tmp_path: Path, kind: Any) -> None:
    table = made(tmp_path / "t.lance", 10, 10)
    plan = Compaction.plan(lance_ours.dataset(table), {})
    task = plan.tasks[0]
    text = {CompactionPlan: plan, CompactionTask: task, RewriteResult: task.execute(lance_ours.dataset(table))}[kind]
    value = json.loads(text.json())
    broken = [b"\xff", "{}", "[]", "xx", text.json()[:-5], *(json.dumps({**value, name: 7.5}) for name in value)]
    for each in broken:
        if kind is RewriteResult and '"metrics": 7.5' in str(each):
            continue  # computed again
        with pytest.raises(InvalidInputError, match=f"Could not load {kind.__name__} due to error"):
            kind.from_json(each)
    with pytest.raises(TypeError):
        kind.from_json(5)


@pytest.mark.parametrize("options", [{"compaction_mode": []}, {"compaction_mode": {}}, {"data_storage_version": 2.1}])
def test_broken_options(tmp_path: Path, options: dict[str, Any]) -> None:
    value = json.loads(Compaction.plan(lance_ours.dataset(made(tmp_path / "t.lance", 10, 10)), {}).json())
    value["options"] |= options
    with pytest.raises(InvalidInputError, match="Could not load CompactionPlan due to error"):
        CompactionPlan.from_json(json.dumps(value))


def _without_file(result: dict[str, Any], table: str) -> None:
    Path(table, "data", result["new_fragments"][0]["files"][0]["path"]).unlink()


def _changed_file(**changes: Any) -> Callable[[dict[str, Any], str], None]:
    return lambda result, table: result["new_fragments"][0]["files"][0].update(changes)


def _other_rows(result: dict[str, Any], table: str) -> None:
    new = result["new_fragments"]
    new[:] = [{**new[0], "physical_rows": 13}, {**new[0], "physical_rows": 7}]


def _other_old_rows(result: dict[str, Any], table: str) -> None:
    result["original_fragments"][0]["physical_rows"] += 1
    result["new_fragments"][0]["physical_rows"] += 1


WRONG_RESULTS: dict[str, Callable[[dict[str, Any], str], None]] = {
    "does not exist": _without_file,
    "lacks the fields": _changed_file(fields=[-1, 1]),
    "does not have the columns": _changed_file(column_indices=[0, 7]),
    "or the version": _changed_file(column_indices=[]),
    "its result says 7": _changed_file(file_size_bytes=7),
    "has 20 rows, but its fragment should have 13": _other_rows,
    "fragment 0 of a result is not that": _other_old_rows,
}


@pytest.mark.parametrize("message", WRONG_RESULTS)
def test_new_files_that_are_not_as_their_result_says(tmp_path: Path, message: str) -> None:
    """A result whose new files were removed by a cleanup, or were never right, is not committed."""
    table = made(tmp_path / "t.lance", 10, 10)
    dataset = lance_ours.dataset(table)
    value = json.loads(Compaction.plan(dataset, {}).tasks[0].execute(dataset).json())
    WRONG_RESULTS[message](value, table)
    with pytest.raises(OSError, match=message):
        Compaction.commit(dataset, [RewriteResult.from_json(json.dumps(value))])
    assert lance_ours.dataset(table).version == 2
    assert lance_ours.dataset(table).to_table().num_rows == 20


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_plans_of_the_reference(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Both libraries plan the same for a table with deletions, with or without indices, and any options."""
    folder = tmp_path_factory.mktemp("plans")
    counts = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=7))
    table = made(folder / "t.lance", *counts[: len(counts) // 2 + 1])
    dataset = reference.dataset(table)
    if data.draw(st.booleans()):
        dataset.create_scalar_index("id", "BTREE")
    for count in counts[len(counts) // 2 + 1 :]:
        dataset.insert(rows(100, 100 + count))
    deleted = data.draw(st.sets(st.integers(0, 30)))
    if deleted:
        dataset.delete(f"id in ({', '.join(map(str, deleted))})")
    limits = st.none() | st.integers(1, 30)
    options = {
        "target_rows_per_fragment": data.draw(st.integers(0, 30)),
        "materialize_deletions": data.draw(st.booleans()),
        "materialize_deletions_threshold": data.draw(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])),
        "excluded_fragment_ids": data.draw(st.lists(st.integers(0, 7), max_size=2)),
        "max_source_fragments": data.draw(limits),
        "max_source_rows": data.draw(limits),
        "max_source_bytes": data.draw(st.none() | st.integers(1, 4000)),
        "defer_index_remap": True,
    }
    options = {name: value for name, value in options.items() if value is not None}
    theirs = reference.optimize.Compaction.plan(reference.dataset(table), options)
    ours = Compaction.plan(lance_ours.dataset(table), options)
    assert [[each.id for each in task.fragments] for task in ours.tasks] == [
        [each.id for each in task.fragments] for task in theirs.tasks
    ]
    shutil.rmtree(folder)


# -- indices ---------------------------------------------------------------------------------------------------------


def assert_index_serves(table: str, expected: pa.Table) -> None:
    theirs = reference.dataset(table)
    assert "ScalarIndexQuery" in theirs.scanner(filter="id = 17").explain_plan()
    for condition in ("id = 17", "id in (0, 3, 5, 21, 44)", "id < 30", "id >= 0"):
        found = theirs.to_table(filter=condition).sort_by("id")
        assert found == theirs.to_table(filter=condition, use_scalar_index=False).sort_by("id")
    assert_same(theirs.to_table().sort_by("id"), expected)
    assert_same(lance_ours.dataset(table).to_table().sort_by("id"), expected)
    assert_same(
        lance_ours.dataset(table).to_table(filter="id < 20").sort_by("id"),
        expected.filter(pa.compute.less(expected["id"], 20)),
    )


@pytest.mark.parametrize("turns", ["oo", "ot", "to", "oto", "too"])
def test_deferred_by_turns(tmp_path: Path, turns: str) -> None:
    """Both libraries can compact with deferred indices in turn, and the index still finds all rows."""
    table = made(tmp_path / "t.lance", *[10] * 5)
    reference.dataset(table).create_scalar_index("id", "BTREE")
    reference.dataset(table).delete("id in (3, 14, 15)")
    target = 15
    for turn in turns:
        dataset = {"o": lance_ours, "t": reference}[turn].dataset(table)
        dataset.optimize.compact_files(target_rows_per_fragment=target, defer_index_remap=True)
        target *= 2
        reference.dataset(table).delete(f"id = {20 + target}")
        expected = lance_ours.dataset(table).to_table().sort_by("id")
        assert_index_serves(table, expected)
    covered = {each["name"]: set(each["fragment_ids"]) for each in reference.dataset(table).list_indices()}
    assert covered["id_idx"] == {each.fragment_id for each in reference.dataset(table).get_fragments()}
    addresses = pa.array([0, 3, 4, None, (1 << 32) + 1, (4 << 32) + 9, 99 << 32, 5], pa.uint64())
    found = lance_ours.dataset(table).remap_row_addrs(addresses)
    assert found == reference.dataset(table).remap_row_addrs(addresses)


def test_deferred_content(tmp_path: Path) -> None:
    """The list of rewrites equals that of the reference, except for random values."""
    table = made(tmp_path / "t.lance", 10, 10, 10)
    reference.dataset(table).create_scalar_index("id", "BTREE")
    reference.dataset(table).delete("id in (0, 12, 29)")
    twin = shutil.copytree(table, tmp_path / "u.lance")
    lance_ours.dataset(table).optimize.compact_files(defer_index_remap=True)
    reference.dataset(twin).optimize.compact_files(defer_index_remap=True)
    ours, theirs = (find_reuse_index(lance_ours.dataset(each).snapshot.manifest) for each in (table, twin))
    assert ours is not None
    assert theirs is not None
    assert ours.index_details == theirs.index_details
    assert ours.fragment_bitmap == theirs.fragment_bitmap
    assert (ours.dataset_version, list(ours.fields)) == (theirs.dataset_version, list(theirs.fields))


@pytest.mark.parametrize("turns", ["oo", "ot", "to"])
def test_deferred_content_in_a_file(tmp_path: Path, turns: str) -> None:
    table = str(tmp_path / "t.lance")
    ids = np.arange(1_800_000)
    reference.write_dataset(pa.table({"id": ids}), table, max_rows_per_file=450_000)
    theirs = reference.dataset(table)
    theirs.create_scalar_index("id", "BTREE")
    gone = np.random.default_rng(3).random(len(ids)) < 0.3
    theirs.merge_insert("id").when_matched_delete().execute(pa.table({"id": ids[gone]}))
    target = 600_000
    for turn in turns:
        dataset = {"o": lance_ours, "t": reference}[turn].dataset(table)
        dataset.optimize.compact_files(target_rows_per_fragment=target, defer_index_remap=True)
        target *= 2
    assert list(Path(table, "_indices").rglob("details.binpb"))
    alive = ids[~gone]
    for chosen in (alive[::1000].tolist(), ids[gone][:5].tolist()):
        found = reference.dataset(table).to_table(filter=f"id in ({', '.join(map(str, chosen))})")["id"].to_pylist()
        assert found == [each for each in chosen if not gone[each]]
    ours = lance_ours.dataset(table)
    assert ours.count_rows() == len(alive)
    addresses = pa.array((ids[::997] // 450_000 << 32) + ids[::997] % 450_000, pa.uint64())
    assert ours.remap_row_addrs(addresses) == reference.dataset(table).remap_row_addrs(addresses)
    # a change without an index keeps the coverage
    ours.delete("id = 17")
    covered = {each["name"]: set(each["fragment_ids"]) for each in reference.dataset(table).list_indices()}
    assert covered["id_idx"] == {each.fragment_id for each in ours.get_fragments()}


def test_deferred_refused_and_needless(tmp_path: Path) -> None:
    table = made(tmp_path / "t.lance", 10, 10)
    dataset = lance_ours.dataset(table)
    dataset.optimize.compact_files(defer_index_remap=True)  # no index, no list
    assert reference.dataset(table).list_indices() == []
    assert dataset.remap_row_addrs(pa.array([1], pa.uint64())) is None
    stable = made(tmp_path / "s.lance", 10, 10, enable_stable_row_ids=True)
    with pytest.raises(UnsupportedError, match="stable row ids"):
        lance_ours.dataset(stable).optimize.compact_files(defer_index_remap=True)
    assert lance_ours.dataset(stable).version == 2


def test_results_without_addresses(tmp_path: Path) -> None:
    table = made(tmp_path / "t.lance", 10, 10)
    dataset = lance_ours.dataset(table)
    task = Compaction.plan(dataset, {}).tasks[0]
    early = task.execute(dataset)
    dataset_with_index = reference.dataset(table)
    dataset_with_index.create_scalar_index("id", "BTREE")
    dataset.checkout_latest()
    with pytest.raises(CommitConflictError):
        Compaction.commit(dataset, [early], {"defer_index_remap": True})
    plan = Compaction.plan(dataset, {"defer_index_remap": True})
    result = plan.tasks[0].execute(dataset)
    before = files(table)
    value = json.loads(result.json())
    value["row_addrs"] = None
    with pytest.raises(InvalidInputError, match="which rows were written"):
        Compaction.commit(dataset, [RewriteResult.from_json(json.dumps(value))], {"defer_index_remap": True})
    value["row_addrs"] = list(encode_treemap({0: encode_bitmap([1, 2])}))
    with pytest.raises(InvalidInputError, match="a result lists 2 rows of the fragments"):
        Compaction.commit(dataset, [RewriteResult.from_json(json.dumps(value))], {"defer_index_remap": True})
    assert {each for each in files(table) - before if each.startswith(("data", "_indices"))} == set()
    Compaction.commit(dataset, [result], {"defer_index_remap": True})
    assert_index_serves(table, rows(0, 20))


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "LABEL_LIST"])
def test_indices_of_stable_row_ids(tmp_path: Path, kind: str) -> None:
    table = str(tmp_path / "t.lance")
    for start in (0, 10, 20):
        data = pa.table({"id": range(start, start + 10), "tags": [[n % 3] for n in range(start, start + 10)]})
        reference.write_dataset(data, table, mode="append", enable_stable_row_ids=True)
    theirs = reference.dataset(table)
    theirs.create_scalar_index("tags" if kind == "LABEL_LIST" else "id", kind)
    theirs.delete("id = 7")
    lance_ours.dataset(table).optimize.compact_files()
    theirs = reference.dataset(table)
    condition = "array_has_any(tags, [1])" if kind == "LABEL_LIST" else "id > 4 and id < 12"
    found = theirs.to_table(filter=condition)
    assert_same(found, theirs.to_table(filter=condition, use_scalar_index=False))
    assert found.num_rows > 5
    assert sizes(theirs) == [(3, 29)]


def test_treemaps() -> None:
    values = {0: [0, 1, 3], 7: [5], 2: list(range(100_000)), 9: [5, *range(65_000, 66_000), *range(70_000, 140_000, 2)]}
    data = encode_treemap({high: encode_bitmap(low) for high, low in values.items()})
    limits = {0: 4, 2: 100_000, 7: 6, 9: 140_000 - 1}
    found = decode_treemap(data, limits, "x")
    assert {
        high: [first + n for first, length in zip(*runs, strict=True) for n in range(length)]
        for high, runs in found.items()
    } == values
    assert {high: len(firsts) for high, (firsts, _) in found.items()} == {0: 2, 7: 1, 2: 1, 9: 35_002}
    for broken in (data[:-1], data[:9], b"", data[:8] + data[12:]):
        with pytest.raises(CorruptFileError):
            decode_treemap(broken, limits, "x")
    for high in limits:
        for fewer in ({**limits, high: limits[high] - 1}, {key: limits[key] for key in limits if key != high}):
            with pytest.raises(CorruptFileError):
                decode_treemap(data, fewer, "x")


# -- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("damage", "mode"),
    [
        ("missing", "reencode"),
        ("missing", "force_binary_copy"),
        ("truncated", "reencode"),
        ("truncated", "force_binary_copy"),
        ("broken", "reencode"),  # copied pages are not decoded
    ],
)
def test_a_task_that_fails(tmp_path: Path, damage: str, mode: str, threads: int) -> None:
    """If a task fails, the files of all tasks are removed, and the error names the file."""
    table = made(tmp_path / "t.lance", *[3000] * 6)
    dataset = lance_ours.dataset(table)
    broken = Path(table, "data", dataset.get_fragment(3).data_files()[0].path)
    content = broken.read_bytes()
    if damage == "missing":
        broken.unlink()
    elif damage == "truncated":
        broken.write_bytes(content[:-100])
    else:
        broken.write_bytes(content[:-700] + bytes(600) + content[-100:])
    before = files(table)
    options = {"target_rows_per_fragment": 6000, "compaction_mode": mode, "num_threads": threads}
    with pytest.raises(lance_ours.LanceError, match=broken.name):
        lance_ours.dataset(table).optimize.compact_files(**options)
    assert files(table) == before


def test_rows_that_move_between_files(tmp_path: Path) -> None:
    """Each of the files that are read together must have the rows that the manifest states for it, not only the sum."""
    table = made(tmp_path / "t.lance", 10, 20)
    first, second = (
        Path(table, "data", each.metadata.files[0].path) for each in reference.dataset(table).get_fragments()
    )
    contents = first.read_bytes(), second.read_bytes()
    if len(contents[0]) == len(contents[1]):
        pytest.fail("the files should differ in size")
    dataset = lance_ours.dataset(table)
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])
    with pytest.raises(CorruptFileError):
        dataset.optimize.compact_files()
    assert dataset.latest_version == 2
