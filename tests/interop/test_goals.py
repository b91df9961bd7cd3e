"""Tests of the goals of storage (``optimize=``): both packages read the same rows, and goals decide sizes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.arrays.random_arrays import NULLS, random_table
from support.arrays.type_groups import groups
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.optimize import Compaction

GOALS = ("speed", "balanced", "size")
GROUPS = groups("2.1")


def numbered(rows: int = 60_000) -> pa.Table:
    """Return columns that light encodings make smaller, and Zstandard even more."""
    rng = np.random.default_rng(0)
    words = np.array([f"word {number * number} of some text" for number in range(40)])
    text = [" ".join(some) for some in rng.choice(words, (rows, 2))]
    return pa.table({"number": np.arange(rows) // 3 % 9000, "text": text, "ratio": rng.integers(0, 90, rows) / 8})


def stored_bytes(dataset: Any) -> int:
    return sum(file.file_size_bytes for each in dataset.get_fragments() for file in each.metadata.files)


def write(table: pa.Table, path: Path, goal: Any, **options: Any) -> Any:
    return lance_dataset.write_dataset(table, path, optimize=goal, storage_options={"local_fsync": "false"}, **options)


@pytest.mark.parametrize(
    ("version", "goal", "nulls"), [("2.1", "size", "none"), *(("2.2", goal, "some") for goal in GOALS[::2])]
)
@pytest.mark.parametrize("group", GROUPS)
def test_types(tmp_path: Path, group: str, version: str, goal: str, nulls: str) -> None:
    table = random_table(GROUPS[group], 1100, NULLS[nulls], seed=3)
    write(table, tmp_path / "t", goal, data_storage_version=version)
    for package in (lance, lance_dataset):
        dataset = package.dataset(tmp_path / "t")
        assert dataset.schema.equals(table.schema, check_metadata=True)
        assert_same(dataset.to_table(), table)
        assert_same(dataset.take([1099, 3, 500]), table.take([1099, 3, 500]))


def test_goals_decide_sizes(tmp_path: Path) -> None:
    table = numbered()
    speed, balanced, size = (stored_bytes(write(table, tmp_path / goal, goal)) for goal in GOALS)
    assert size < 0.8 * balanced < 0.8 * 0.8 * speed
    assert stored_bytes(write(table, tmp_path / "none", None)) == balanced


def test_table_decides(tmp_path: Path) -> None:
    table = numbered()
    dataset = write(table, tmp_path / "t", None, max_rows_per_file=30_000)
    balanced = stored_bytes(dataset)
    dataset.update_config({"lance_dataset.optimize": "size"})
    dataset.optimize.compact_files()
    small = stored_bytes(dataset)
    assert small < 0.8 * balanced
    appended = lance_dataset.write_dataset(table, dataset, mode="append")
    assert stored_bytes(appended) == pytest.approx(2 * small, rel=0.01)
    appended.update({"number": "number"})
    assert stored_bytes(appended) == pytest.approx(2 * small, rel=0.1)
    before = stored_bytes(appended)
    appended.add_columns({"again": "text"})
    assert stored_bytes(appended) - before < 0.4 * 2 * balanced
    lance_dataset.write_dataset(table, appended, mode="append", optimize="speed")
    assert_same(lance.dataset(tmp_path / "t").to_table(["number"]), pa.concat_tables([table.select(["number"])] * 3))


def test_compaction_to_a_goal(tmp_path: Path) -> None:
    table = numbered()
    dataset = write(table, tmp_path / "t", None, max_rows_per_file=20_000)
    balanced = stored_bytes(dataset)
    with pytest.raises(UnsupportedError, match="encodes pages anew"):
        dataset.optimize.compact_files(optimize="size", compaction_mode="force_binary_copy")
    copied = dataset.checkout_version(dataset.version)
    plan = Compaction.plan(copied, {"optimize": "size", "compaction_mode": "try_binary_copy"})
    tasks = [pickle.loads(pickle.dumps(task)).execute(copied) for task in plan.tasks]
    Compaction.commit(dataset, tasks)
    assert stored_bytes(dataset) < 0.8 * balanced
    assert_same(lance.dataset(tmp_path / "t").to_table(), table)


def test_metadata_of_fields_takes_precedence(tmp_path: Path) -> None:
    table = numbered()
    asked = pa.schema([table.field("text").with_metadata({"lance-encoding:compression": "none"})])
    plain = stored_bytes(write(table.select(["text"]), tmp_path / "plain", "speed"))
    kept = write(table.select(["text"]).cast(asked), tmp_path / "kept", "size")
    assert stored_bytes(kept) == pytest.approx(plain, rel=0.01)
    assert kept.schema.equals(asked, check_metadata=True)


def test_maps_blobs_and_packed_structs(tmp_path: Path) -> None:
    packed = pa.field("p", pa.struct([("x", pa.int32()), ("y", pa.float32())]), metadata={"packed": "true"})
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    pairs = pa.field("m", pa.map_(pa.string(), pa.int32()))
    rows = {
        "m": [[("a", i), ("b", 1)] for i in range(900)],
        "p": [{"x": i, "y": i / 2} for i in range(900)],
        "b": [bytes([i % 250]) * 50 for i in range(900)],
    }
    table = pa.table(rows, schema=pa.schema([pairs, packed, blob]))
    for goal in GOALS:
        mapped = write(table.select(["m"]), tmp_path / f"{goal} of maps", goal, data_storage_version="2.2")
        assert_same(lance.dataset(mapped.uri).to_table(), table.select(["m"]))
        write(table.drop_columns("m"), tmp_path / goal, goal, data_storage_version="2.1")
        assert_same(lance.dataset(tmp_path / goal).to_table(["p"]), table.select(["p"]))
        assert [file.read() for file in lance.dataset(tmp_path / goal).take_blobs("b", indices=[7])] == [b"\x07" * 50]


def test_indices_of_dictionaries_are_compressed_once(tmp_path: Path) -> None:
    """Indices that can be compressed again after they were."""
    field = pa.field("a", pa.int64(), metadata={"lance-encoding:compression": "zstd"})
    table = pa.table({"a": np.arange(60_000) // 3 % 9000}, schema=pa.schema([field]))
    dataset = lance_dataset.write_dataset(table, tmp_path / "t")
    assert "zstd(zstd" not in str(dataset.explain_encodings())
    for package in (lance, lance_dataset):
        assert_same(package.dataset(tmp_path / "t").to_table(), table)


@pytest.mark.parametrize("version", ["legacy", "2.0"])
def test_old_versions_have_no_goals(tmp_path: Path, version: str) -> None:
    table = pa.table({"a": [1]})
    with pytest.raises(UnsupportedError, match=r"needs file version 2\.1 or later"):
        write(table, tmp_path / "t", "size", data_storage_version=version)
    assert not (tmp_path / "t").exists()
    dataset = write(table, tmp_path / "t", "balanced", data_storage_version=version)
    assert dataset.count_rows() == 1


def test_wrong_goals(tmp_path: Path) -> None:
    table = pa.table({"a": [1]})
    with pytest.raises(InvalidInputError, match="optimize is 'small'; use one of 'speed', 'balanced', 'size'"):
        write(table, tmp_path / "t", "small")
    with pytest.raises(TypeError, match="optimize must be a string, not int"):
        write(table, tmp_path / "t", 3)
    dataset = write(table, tmp_path / "t", None)
    with pytest.raises(InvalidInputError, match="optimize is 'small'"):
        dataset.optimize.compact_files(optimize="small")
    dataset.update_config({"lance_dataset.optimize": "small"})
    with pytest.raises(InvalidInputError, match=r"config lance_dataset\.optimize is 'small'"):
        lance_dataset.write_dataset(table, tmp_path / "t", mode="append")
    assert lance_dataset.dataset(tmp_path / "t").count_rows() == 1


@pytest.mark.filterwarnings("ignore:column 'x'")
@pytest.mark.parametrize("level", ["99", "9999999999", "-2147483648", "x"])
@pytest.mark.parametrize("asked", [{}, {"lance-encoding:compression": "zstd"}])
def test_levels_out_of_range(tmp_path: Path, level: str, asked: dict[str, str]) -> None:
    """Levels that Zstandard does not have are accepted, as in the reference."""
    field = pa.field("x", pa.string(), metadata={**asked, "lance-encoding:compression-level": level})
    table = pa.table([pa.array([f"some words {number % 7}" for number in range(5000)])], schema=pa.schema([field]))
    lance.write_dataset(table, tmp_path / "theirs", data_storage_version="2.1")
    for goal in (None, "size"):
        write(table, tmp_path / f"{goal}", goal, data_storage_version="2.1")
        for package in (lance, lance_dataset):
            assert package.dataset(tmp_path / f"{goal}").to_table() == table
