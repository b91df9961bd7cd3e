"""Validation of scalar indices: healthy ones pass after any history, and every sort of damage is described."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import lance.indices
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.processes.cli_runs import run, run_json
from support.tables.damaged_indices import (
    INDICES,
    create_indices,
    indexed_table,
    problem_of,
    problems_of,
    replace_index,
    segment_of,
    validate,
)

import lance_dataset
from lance_dataset.changes.commit import commit_change
from lance_dataset.errors import CorruptFileError, DamagedIndexError
from lance_dataset.file.jsonb import encode_document
from lance_dataset.index.files import NewIndexFolder
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.trainer import Training
from lance_dataset.index.training import TRAINERS
from lance_dataset.indices import IndexConfig
from lance_dataset.scan.validating import validate_indices
from lance_dataset.table.operations import CreateIndex
from lance_dataset.table.roaring import encode_bitmap

# -- healthy indices -------------------------------------------------------------------------------------------------


def _change(path: Path, rng: random.Random, count: int) -> int:
    """Make one change with either implementation; return the number of rows ever written."""
    module = rng.choice([lance, lance_dataset])
    dataset = module.dataset(path)
    stable = dataset.has_stable_row_ids
    kind = rng.choice(["append", "delete", "update", "change", "merge", "rewrite", "compact", "defer", "optimize"])
    names = {each["name"] for each in lance_dataset.dataset(path).list_indices()}
    # the reference loses rows if it compacts after a deferred compaction, and cannot extend JSON indices over bitmaps
    if (kind == "compact" and "__lance_frag_reuse" in names) or (kind == "optimize" and "names" in names):
        dataset = lance_dataset.dataset(path)
    if kind == "append":
        module.write_dataset(indexed_table(range(count, count + 60)), path, mode="append")
        return count + 60
    if kind == "delete":
        dataset.delete(f"n % 8 = {rng.randrange(8)}")
    elif kind == "update":
        dataset.update({"k": str(rng.randrange(60))}, where=f"n % 7 = {rng.randrange(7)}")
    elif kind == "change":
        dataset.update({"t": "'new alpha words'", "f": "2.5", "s": "'zzz'"}, where=f"n % 9 = {rng.randrange(9)}")
    elif kind == "merge":
        start = rng.randrange(count)
        rows = indexed_table(range(start + 1000, start + 1040)).set_column(0, "n", pa.array(range(start, start + 40)))
        dataset.merge_insert("n").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        return max(count, start + 40)
    elif kind == "rewrite":
        numbers = dataset.to_table(columns=["n"])["n"].combine_chunks()
        rows = pa.table({"n": numbers, "k": pc.multiply(numbers, 3)})
        dataset.merge_insert("n").when_matched_update_all().execute(rows)
    elif kind in ("compact", "defer"):
        options = {"defer_index_remap": True} if kind == "defer" and not stable else {}
        dataset.optimize.compact_files(materialize_deletions_threshold=0.01, **options)
    else:
        dataset.optimize.optimize_indices(**rng.choice([{}, {"num_indices_to_merge": 0}, {"num_indices_to_merge": 9}]))
    return count


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("seed", range(6))
def test_healthy_indices_pass(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path, stable = tmp_path / "t", seed % 2 == 1
    version = rng.choice(["2.1", "2.2"])
    lance.write_dataset(
        indexed_table(range(240)),
        path,
        max_rows_per_file=100,
        enable_stable_row_ids=stable,
        data_storage_version=version,
    )
    for name, _, kind, _ in INDICES:
        if rng.random() < 0.7:
            # the reference refuses indices of JSON documents in tables with stable row ids
            create_indices(
                lance_dataset if stable and kind == "json" else rng.choice([lance, lance_dataset]), path, [name]
            )
    count = 240
    for _ in range(6):
        count = _change(path, rng, count)
        validate(path)


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize(
    "name", ["pylance-0.10.18", "pylance-0.20.0", "pylance-1.0.0", "pylance-1.0.0-ngram", "zones-1.0.0", "zones-4.0.0"]
)
def test_indices_of_old_releases_pass(name: str) -> None:
    validate(Path(__file__).parents[2] / "fixtures" / "indices" / name)


def test_little_memory_is_enough(indexed: Path) -> None:
    result = validate_indices(lance_dataset.dataset(indexed).snapshot, memory_limit=1)
    assert (sorted(result.checked), result.unchecked) == (sorted(each[0] for each in INDICES), ())


@pytest.mark.filterwarnings("error::UserWarning")
def test_clones_and_branches(copied: Path, tmp_path: Path) -> None:
    dataset = lance_dataset.dataset(copied)
    dataset.shallow_clone(str(tmp_path / "clone"), dataset.version)
    dataset.create_branch("b").insert(indexed_table(range(1000, 1010)))
    for each in (lance_dataset.dataset(tmp_path / "clone"), dataset.checkout_version(("b", None))):
        each.delete("n = 7")
        each.validate(indices=True)
    shutil.rmtree(copied / "_indices" / segment_of(copied, "bitmap").metadata.uuid)
    with pytest.raises(FileNotFoundError, match="bitmap"):
        validate(tmp_path / "clone")


def test_empty_and_untrained_indices(tmp_path: Path) -> None:
    lance_dataset.write_dataset(indexed_table([]), tmp_path)
    create_indices(lance_dataset, tmp_path, [each[0] for each in INDICES if each[2] != "json"])
    validate(tmp_path)
    lance_dataset.dataset(tmp_path).insert(indexed_table(range(10)))
    validate(tmp_path)


def test_values_of_all_types(tmp_path: Path) -> None:
    numbers = list(range(40))
    columns = {
        "bool": pa.array([n % 3 == 0 for n in numbers]),
        "half": pa.array(np.array([n / 2 for n in numbers], np.float16)),
        "large": pa.array([f"{n % 7}" * (n % 4) for n in numbers], pa.large_string()),
        "binary": pa.array([bytes([n % 5]) * (n % 3) for n in numbers], pa.large_binary()),
        "fixed": pa.array([bytes([n % 5, n]) for n in numbers], pa.binary(2)),
        "decimal": pa.array(numbers, pa.int64()).cast(pa.decimal128(30, 2)),
        "wide": pa.array(numbers, pa.int64()).cast(pa.decimal256(50, 2)),
        "date": pa.array(numbers, pa.int32()).cast(pa.date32()),
        "time": pa.array([n << 56 for n in numbers], pa.int64()).cast(pa.timestamp("ns", "UTC")),
        "duration": pa.array(numbers, pa.int64()).cast(pa.duration("ms")),
        "null": pa.nulls(40, pa.int32()),
    }
    columns = {name: pc.if_else(pa.array([n % 6 != 1 for n in numbers]), each, None) for name, each in columns.items()}
    dataset = lance_dataset.write_dataset(pa.table(columns), tmp_path, max_rows_per_file=15)
    for name in columns:
        for kind in ("btree", "bitmap", "zonemap", "bloomfilter"):
            if kind != "bloomfilter" or TRAINERS[kind].fits(columns[name].type):
                dataset.create_scalar_index(name, IndexConfig(kind, {}), name=f"{name}_{kind}")
    dataset.create_scalar_index("binary", IndexConfig("fm", {}), name="fm")
    validate(tmp_path)


# -- wrong entries ---------------------------------------------------------------------------------------------------


def _trained(path: Path, name: str, change: Callable[[list[Any], list[int]], tuple[list[Any], list[int]]]) -> None:
    """Replace an index by one that is trained from other entries than those of the table."""

    def write(old: Segment, target: NewIndexFolder) -> None:
        (column,) = old.column_names
        dataset = lance_dataset.dataset(path)
        table = dataset.to_table(columns=[column], with_row_address=True).combine_chunks()
        values = table[column].chunk(0)
        if isinstance(values, pa.ExtensionArray):
            documents = [None if each is None else encode_document(each) for each in values.storage.to_pylist()]
            values = pa.array(documents, pa.large_binary())
        numbers, rows = change(list(range(len(values))), table["_rowaddr"].to_pylist())
        entries = pa.RecordBatch.from_arrays(
            [values.take(pa.array(numbers, pa.int64())), pa.array(rows, pa.uint64())], names=["values", "ids"]
        )
        details = old.metadata.details
        assert details is not None
        trainer, parameters = TRAINERS[old.kind or ""].of_index(details.value, old.folder)
        trainer.write(Training([entries], values.type, target, parameters, 1 << 26))

    replace_index(path, name, write)


def _lost(values: list[Any], rows: list[int]) -> tuple[list[Any], list[int]]:
    return values[:50] + values[51:], rows[:50] + rows[51:]


def _changed(values: list[Any], rows: list[int]) -> tuple[list[Any], list[int]]:
    return [*values[:50], 66, *values[51:]], rows


def _swapped(values: list[Any], rows: list[int]) -> tuple[list[Any], list[int]]:
    return [*values[:50], 66, *values[51:66], 50, *values[67:]], rows


def _other_row(values: list[Any], rows: list[int]) -> tuple[list[Any], list[int]]:
    return values, [*rows[:50], 1 << 40, *rows[51:]]


def _null_moved(values: list[Any], rows: list[int]) -> tuple[list[Any], list[int]]:
    """Put the first row with a null of each column under another value, and the row after it under null."""
    return [{2: 3, 3: 2, 1: 4, 4: 1, 5: 6, 6: 5}.get(each, each) for each in values], rows


_KEYED = [each[0] for each in INDICES if each[2] not in ("zonemap", "bloomfilter")]


@pytest.mark.parametrize("damage", [_lost, _changed, _swapped, _other_row, _null_moved])
@pytest.mark.parametrize("name", _KEYED)
def test_wrong_entries_are_found(copied_single: Callable[[str], Path], name: str, damage: Any) -> None:
    copied = copied_single(name)
    _trained(copied, name, damage)
    found = problem_of(copied, name)
    assert found.segment == segment_of(copied, name).metadata.uuid
    assert found.segment in str(problems_of(copied)[0])
    assert (found.num_rows or 0) >= 1
    if damage is not _null_moved:  # the 51st row is number 51: number 20 was deleted
        assert "row 51 of fragment 0 (address 51)" in found.what
    assert f"name={name!r}, replace=True" in found.remedy


@pytest.mark.parametrize("name", ["zones", "text_zones", "bloom"])
def test_wrong_zones_are_found(copied_single: Callable[[str], Path], name: str) -> None:
    copied = copied_single(name)
    first = {"zones": 9, "text_zones": 1, "bloom": 1}[name]
    _trained(copied, name, lambda values, rows: ([first] * 100 + values[100:], rows))
    found = problem_of(copied, name)
    assert (found.num_rows or 0) > 50
    assert "row 0 of fragment 0" in found.what or "row 1 of fragment 0" in found.what
    assert "zone 0" in found.what


@pytest.mark.parametrize("name", ["zones", "text_zones", "bloom"])
def test_rows_without_a_zone_are_found(copied_single: Callable[[str], Path], name: str) -> None:
    copied = copied_single(name)
    _trained(copied, name, lambda values, rows: (values[:-20], rows[:-20]))
    found = problem_of(copied, name)
    assert (found.num_rows or 0) >= 20
    assert "is in no zone" in found.what
    assert "fragment 2" in found.what


def test_the_remedy_mends(copied: Path) -> None:
    for name in ("btree", "labels", "numbers", "zones", "minhash"):
        _trained(copied, name, lambda values, rows: (values[:-9], rows[:-9]))
    problems = problems_of(copied)
    assert {each.index for each in problems} == {"btree", "labels", "numbers", "zones", "minhash"}
    before = {name: segment_of(copied, name).metadata.details for name in ("btree", "numbers", "zones", "minhash")}
    for each in problems:
        exec(each.remedy, {"ds": lance_dataset.dataset(copied), "IndexConfig": IndexConfig})
    validate(copied)
    assert {name: segment_of(copied, name).metadata.details for name in before} == before


def test_the_message_tells_rows_and_values(copied: Path) -> None:
    _trained(copied, "btree", _changed)
    (found,) = problems_of(copied)
    assert found.what == (
        "is wrong about 1 rows: the row 51 of fragment 0 (address 51) has 357, and is not under 357 but is under 469"
    )
    error = DamagedIndexError("t", [found])
    assert pickle.loads(pickle.dumps(error)).problems == (found,)
    assert isinstance(error, CorruptFileError)


def test_stale_entries_in_tables_with_row_ids(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(indexed_table(range(100)), tmp_path, enable_stable_row_ids=True)
    create_indices(lance_dataset, tmp_path, ["bitmap", "ngram", "labels"])
    dataset = lance_dataset.dataset(tmp_path)
    dataset.update({"s": "'new'", "t": "'other words'", "l": "[9]"}, where="n < 5")
    validate(tmp_path)
    for name in ("bitmap", "ngram", "labels"):
        _cover(tmp_path, name, [0, 1])
    assert {each.index: each.num_rows for each in problems_of(tmp_path)} == {"bitmap": 5, "ngram": 5, "labels": 5}


# -- coverage --------------------------------------------------------------------------------------------------------


def _cover(path: Path, name: str, fragment_ids: Sequence[int]) -> None:
    """Publish that an index covers other fragments."""
    old = segment_of(path, name).metadata
    changed = replace(old, fragment_bitmap=encode_bitmap(fragment_ids))
    commit_change(lance_dataset.dataset(path).snapshot, CreateIndex((changed,), (old,)))


@pytest.mark.parametrize("name", [each[0] for each in INDICES])
def test_uncovered_rows_in_the_bitmap_are_found(copied_single: Callable[[str], Path], name: str) -> None:
    copied = copied_single(name)
    lance_dataset.dataset(copied).insert(indexed_table(range(500, 530)))
    validate(copied)
    _cover(copied, name, [0, 1, 2, 3])
    found = problem_of(copied, name)
    assert (found.num_rows or 0) >= 16
    assert "fragment 3" in found.what


@pytest.mark.parametrize("name", ["btree", "bloom"])
def test_rewritten_columns_with_the_old_bitmap_are_found(copied_single: Callable[[str], Path], name: str) -> None:
    copied = copied_single(name)
    dataset = lance_dataset.dataset(copied)
    numbers = dataset.to_table(columns=["n"])["n"].combine_chunks()
    rows = pa.table({"n": numbers, "k": pc.add(numbers, 5000)})
    dataset.merge_insert("n").when_matched_update_all().execute(rows)
    validate(copied)
    ids = [fragment.fragment_id for fragment in lance_dataset.dataset(copied).get_fragments()]
    covered = segment_of(copied, name).recorded
    _cover(copied, name, sorted(covered | set(ids)))
    found = problem_of(copied, name)
    assert (found.num_rows or 0) >= 357


def test_overlapping_segments_are_found(copied: Path) -> None:
    dataset = lance_dataset.dataset(copied)
    dataset.insert(indexed_table(range(500, 530)))
    dataset.optimize.optimize_indices(index_names=["btree"], num_indices_to_merge=0)
    old = [each.metadata for each in index_segments(dataset.snapshot.reader) if each.name == "btree"]
    changed = replace(old[1], fragment_bitmap=encode_bitmap([2, 3]))
    commit_change(dataset.snapshot, CreateIndex((changed,), (old[1],)))
    texts = [each.what for each in problems_of(copied)]
    assert any(f"covers fragment 2, and so does segment {old[0].uuid}" in each for each in texts)


def test_segments_of_different_kinds_are_found(copied: Path) -> None:
    old = segment_of(copied, "fm").metadata
    changed = replace(old, name="ngram")
    commit_change(lance_dataset.dataset(copied).snapshot, CreateIndex((changed,), (old,)))
    texts = [each.what for each in problems_of(copied)]
    (field,) = old.fields
    assert f"is a fm index of field {field}, but another segment of it is a ngram index of field {field}" in texts


def test_rows_that_the_reference_loses_are_found(tmp_path: Path) -> None:
    """The reference forgets rows that moved in a deferred compaction when it compacts their fragment again."""
    lance.write_dataset(indexed_table(range(240)), tmp_path, max_rows_per_file=100)
    create_indices(lance, tmp_path, ["btree", "ngram"])
    lance.dataset(tmp_path).optimize.compact_files(defer_index_remap=True)
    validate(tmp_path)
    lance.dataset(tmp_path).delete("n % 9 = 3")
    validate(tmp_path)
    lance.dataset(tmp_path).optimize.compact_files(materialize_deletions_threshold=0.01)
    assert {each.index for each in problems_of(tmp_path)} == {"btree", "ngram"}


def test_unexplained_fragments_are_found(copied: Path) -> None:
    _cover(copied, "bitmap", [0, 1, 2, 77])
    assert "covers fragment 77, but no fragment had a higher id than 2 so far" in problem_of(copied, "bitmap").what


# -- reports ---------------------------------------------------------------------------------------------------------


def test_unchecked_indices_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(300 * 4, np.float32)), 4)
    lance.write_dataset(pa.table({"v": vectors, "s": ["some words"] * 300, "n": range(300)}), tmp_path)
    dataset = lance.dataset(tmp_path)
    dataset.create_index("v", "IVF_FLAT", num_partitions=2)
    dataset.create_scalar_index("s", "INVERTED")
    dataset.create_scalar_index("n", "BTREE")
    with pytest.warns(UserWarning, match="was not checked") as caught:
        validate(tmp_path)
    texts = sorted(str(each.message) for each in caught)
    assert len(texts) == 2
    assert "'s_idx'" in texts[0]
    assert "Inverted" in texts[0]
    assert "'v_idx'" in texts[1]
    assert Path(caught[0].filename).name == "damaged_indices.py"
    lance_dataset.dataset(tmp_path).validate()
    facts = run_json("validate", tmp_path, "--indices")
    assert facts["valid"] is True
    assert facts["indices"] == 3
    assert sorted(facts["warnings"]) == texts


def test_unknown_kinds_are_named(copied: Path) -> None:
    old = segment_of(copied, "btree").metadata
    commit_change(lance_dataset.dataset(copied).snapshot, CreateIndex((replace(old, index_version=9),), (old,)))
    with pytest.warns(UserWarning, match="'btree' was not checked: this release does not know its kind"):
        validate(copied)


def test_the_command_line(copied: Path) -> None:
    assert "3 fragments and 14 indices are valid" in run("validate", copied, "--indices").stdout
    _trained(copied, "btree", _changed)
    assert run_json("validate", copied)["valid"] is True
    failed = run("validate", copied, "--indices", "--json", status=1)
    error = json.loads(failed.stderr)["error"]
    assert error["type"] == "DamagedIndexError"
    (found,) = error["problems"]
    assert (found["index"], found["kind"], found["num_rows"]) == ("btree", "BTree", 1)
    assert found["remedy"] in error["message"]
    assert found["remedy"] in run("validate", copied, "--indices", status=1).stderr
