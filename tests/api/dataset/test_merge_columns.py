"""Tests of columns joined from other tables, and of columns that workers add fragment by fragment."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.processes.fragment_worker import add_to_fragment
from support.reference.same_change import ROWS, assert_same_change, example

import lance_dataset
from lance_dataset import FragmentMetadata
from lance_dataset.errors import CommitConflictError, InvalidInputError

VERSIONS = ["0.1", "2.0", "2.1", "2.2"]
NAMES = pa.table({"i": [1, 2, 5, 1000], "r": ["a", "b", "c", "d"]})


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def table(version: str) -> Path:
        if version not in made:
            made[version] = example(tmp_path_factory.mktemp("table") / version, version)
        return made[version]

    return table


def merging(data: Any, *keys: Any, **options: Any) -> Callable[[ModuleType, Any], None]:
    def change(module: ModuleType, dataset: Any) -> None:
        dataset.merge(data() if callable(data) else data, *keys, **options)

    return change


def merging_each(data: Any, *keys: Any, **options: Any) -> Callable[[ModuleType, Any], None]:
    """Return a change that merges columns into each fragment and commits the parts."""

    def change(module: ModuleType, dataset: Any) -> None:
        parts = [
            fragment.merge(data() if callable(data) else data, *keys, **options) for fragment in dataset.get_fragments()
        ]
        commit(module, dataset, parts)

    return change


def commit(module: ModuleType, dataset: Any, parts: list[Any]) -> Any:
    operation = module.LanceOperation.Merge([fragment for fragment, _ in parts], parts[0][1])
    return module.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def required(keys: Any) -> pa.Table:
    schema = pa.schema([pa.field("i", pa.int64()), pa.field("r", pa.int64(), False, {"m": "1"})])
    values = list(keys)
    return pa.table([values, values], schema=schema)


#: Joins, given as parameters of `merge`.
JOINS: dict[str, tuple[Any, ...]] = {
    "other name": (NAMES.rename_columns(["k", "r"]), "i", "k"),
    "repeated keys": (pa.table({"i": [1, 1, 2, 2], "r": ["a", "b", "c", "d"]}), "i"),
    "column there": (pa.table({"i": [1, 2], "s": ["x", "y"]}), "i"),
    "key of that name there": (pa.table({"k": [1, 2], "i": [7, 8]}), "i", "k"),
    "only a key": (pa.table({"i": [1, 2]}), "i"),
    "no left key": (NAMES, "zz"),
    "no right key": (NAMES, "i", "zz"),
    "narrow key": (NAMES.set_column(0, "i", NAMES["i"].cast(pa.int32())), "i"),
    "key of text": (pa.table({"s": ["1", "2"], "r": ["a", "b"]}), "s"),
    "text for a number": (pa.table({"i": ["1", "2"], "r": ["a", "b"]}), "i"),
    "key of floats": (pa.table({"f": [0.5, 1.0], "r": ["a", "b"]}), "f"),
    "key of structs": (pa.table({"st": [{"a": 1, "b": "1"}], "r": ["a"]}), "st"),
    "row ids": (pa.table({"_rowid": pa.array([1, 2], pa.uint64()), "r": ["a", "b"]}), "_rowid"),
    "row addresses": (pa.table({"k": pa.array([1, 2], pa.uint64()), "r": ["a", "b"]}), "_rowaddr", "k"),
    "null key": (pa.table({"i": [None, 1], "r": ["n", "a"]}), "i"),
    "every type": (
        pa.table(
            {
                "i": [1, 2],
                "a": pa.array([1, 2], pa.int8()),
                "l": [[1], [2]],
                "n": [{"x": 1}, {"x": 2}],
                "b": [b"1", b"2"],
                "v": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
                "o": [True, False],
                "d": pa.array(["x", "y"]).dictionary_encode(),
            }
        ),
        "i",
    ),
    "required and missing": (required(range(5)), "i"),
    "required and there": (required(range(100)), "i"),
    "required for live rows": (required(i for i in range(100) if i not in (0, 3, 50, 99)), "i"),
    "dotted name": (pa.table({"i": [1], "a.b": [1]}), "i"),
    "struct that is there": (pa.table({"i": [1], "st": [{"c": 1}]}), "i"),
    "no name": (NAMES, ["i"]),
    "nothing": (None, "i"),
    "dict": ({"i": [1], "r": [2]}, "i"),
    "reader": (NAMES.to_reader, "i"),
    "iterator without schema": (lambda: iter(NAMES.to_batches()), "i"),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("merge", [merging, merging_each])
def test_both_join_the_same_in_every_version(
    tables: Callable[[str], Path], tmp_path: Path, merge: Callable[..., Any], version: str
) -> None:
    (tmp_path / "text").mkdir()
    assert_same_change(tables(version), tmp_path / "text", merge(NAMES, "i"))
    numbers = pa.table({"i": [1, 2], "n": [3, 4]})
    assert_same_change(tables(version), tmp_path, merge(numbers, "i"))


@pytest.mark.parametrize("name", JOINS)
def test_both_join_the_same(tables: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    assert_same_change(tables("2.2"), tmp_path, merging(*JOINS[name]))


@pytest.mark.parametrize("name", ["other name", "repeated keys", "column there", "every type", "row addresses"])
def test_both_join_fragments_the_same(tables: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    assert_same_change(tables("2.2"), tmp_path, merging_each(*JOINS[name]))


def test_nulls_and_odd_floats_are_keys(tmp_path: Path) -> None:
    left = pa.table({"i": pa.array([1, None, 3, None]), "f": [float("nan"), 0.0, -0.0, 1.0]})
    lance.write_dataset(left, tmp_path / "t")
    right = pa.table({"i": [None, 1, None], "r": ["first", "a", "last"]})
    floats = pa.table({"f": [float("nan"), -0.0, 1.0], "q": ["nan", "-0", "1"]})

    def change(module: ModuleType, dataset: Any) -> None:
        dataset.merge(right, "i")
        dataset.merge(floats, "f")

    found = assert_same_change(tmp_path / "t", tmp_path, change)
    assert isinstance(found, pa.Table)
    assert found["r"].to_pylist() == ["a", "last", None, "last"]
    assert found["q"].to_pylist() == ["nan", None, "-0", "1"]


def test_how_text_is_stored_does_not_matter_for_keys(tmp_path: Path) -> None:
    path = example(tmp_path / "t", "2.2")
    dataset = lance_dataset.dataset(path)
    for number, kind in enumerate([pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]):
        right = pa.table({"s": pa.array(["1", "2", None]).cast(kind), f"r{number}": ["a", "b", "c"]})
        dataset.merge(right, "s")
    found = lance.dataset(path).to_table(columns=["r0", "r1", "r2"])
    assert found["r0"].to_pylist() == ["a", "b"] + [None] * (ROWS - 2)
    assert found["r0"].equals(found["r1"])
    assert found["r0"].equals(found["r2"])


def test_keys_of_extension_types(tmp_path: Path) -> None:
    kind = pa.fixed_shape_tensor(pa.int32(), [2])

    def keys(*rows: int) -> pa.Array:
        return pa.ExtensionArray.from_storage(kind, pa.array([[row, row] for row in rows], kind.storage_type))

    dataset = lance_dataset.write_dataset(pa.table({"k": keys(0, 1, 2)}), tmp_path / "t")
    dataset.merge(pa.table({"k": keys(2, 0), "r": ["c", "a"]}), "k")
    assert dataset.to_table()["r"].to_pylist() == ["a", None, "c"]


def test_a_table_without_rows_gives_nulls(tmp_path: Path) -> None:
    path = example(tmp_path / "t", "2.2")
    lance_dataset.dataset(path).merge(NAMES.slice(0, 0), "i")
    assert lance.dataset(path).to_table()["r"].null_count == ROWS


def test_many_keys(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    keys = rng.permutation(60_000)
    lance.write_dataset(pa.table({"i": keys}), tmp_path / "t", max_rows_per_file=17_000)
    lance.dataset(tmp_path / "t").delete("i % 5 = 0")
    right = pa.table({"i": rng.permutation(50_000)})
    right = right.append_column("text", pa.array([f"row {i}" for i in right["i"].to_pylist()]))
    lance_dataset.dataset(tmp_path / "t").merge(right, "i")
    found = lance.dataset(tmp_path / "t").to_table()
    assert found.num_rows == 48_000
    assert found["text"].to_pylist() == [f"row {i}" if i < 50_000 else None for i in found["i"].to_pylist()]


def test_joins_are_done_again_on_top_of_what_others_did(tmp_path: Path) -> None:
    path = example(tmp_path / "t", "2.2")
    dataset = lance_dataset.dataset(path)
    lance.write_dataset(lance.dataset(path).to_table().slice(0, 2), path, mode="append")
    dataset.merge(NAMES.to_reader(), "i")
    found = lance.dataset(path).to_table(columns=["i", "r"])
    assert found.filter(found["i"].to_numpy() == 1)["r"].to_pylist() == ["a", "a"]


# -- fragments ---------------------------------------------------------------------------------------------------


def columns_each(value: Callable[[ModuleType, Any], Any], **options: Any) -> Callable[[ModuleType, Any], None]:
    def change(module: ModuleType, dataset: Any) -> None:
        fragments = dataset.get_fragments()
        commit(module, dataset, [each.merge_columns(value(module, each), **options) for each in fragments])

    return change


def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"u": pa.array(2 * batch["i"].to_numpy())})


def count(extra: int) -> Callable[[ModuleType, Any], pa.Table]:
    return lambda module, fragment: pa.table({"r": range(fragment.count_rows() + extra)})


VALUES: dict[str, Callable[[ModuleType, Any], None]] = {
    "expressions": columns_each(lambda *_: {"x": "i + 1", "y": "s"}),
    "function": columns_each(lambda *_: twice),
    "function of a column": columns_each(lambda *_: twice, columns=["i"], batch_size=7),
    "udf": columns_each(lambda module, _: module.batch_udf(pa.schema([("u", pa.int64())]))(twice)),
    "data": columns_each(count(0)),
    "too much data": columns_each(count(1)),
    "too little data": columns_each(count(-1)),
    "nulls": columns_each(lambda *_: pa.field("n", pa.int8())),
    "column there": columns_each(lambda *_: {"i": "i"}),
    "unknown column": columns_each(lambda *_: twice, columns=["zz"]),
    "failing": columns_each(lambda *_: lambda batch: 1 / 0),
    "no text": columns_each(lambda *_: {"x": 1}),
    "nothing": columns_each(lambda *_: None),
    "empty batches": columns_each(lambda *_: twice, batch_size=0),
    "child": columns_each(lambda *_: lambda batch: pa.record_batch({"st": [{"c": 1}] * batch.num_rows})),
}


@pytest.mark.parametrize("name", VALUES)
def test_both_add_columns_to_fragments_the_same(tables: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    assert_same_change(tables("2.2"), tmp_path, VALUES[name])


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1"])
def test_in_older_versions_too(tables: Callable[[str], Path], tmp_path: Path, version: str) -> None:
    assert_same_change(tables(version), tmp_path, VALUES["expressions"])


def test_checkpoints_are_not_for_fragments(tables: Callable[[str], Path], tmp_path: Path) -> None:
    udf = lance_dataset.batch_udf(checkpoint_file=tmp_path / "checkpoint")(twice)
    with pytest.raises(ValueError, match="checkpoint"):
        lance_dataset.dataset(tables("2.2")).get_fragments()[0].merge_columns(udf)


def test_workers_add_columns_together(tmp_path: Path) -> None:
    kinds = ("expression", "function", "join")
    paths = {kind: example(tmp_path / kind, "2.2") for kind in kinds}
    places = [(str(paths[kind]), fragment_id, kind) for kind in kinds for fragment_id in range(3)]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        done = list(pool.map(add_to_fragment, places))
    for number, path in enumerate(paths.values()):
        parts = [(FragmentMetadata.from_json(text), schema) for text, schema in done[3 * number : 3 * number + 3]]
        assert parts[0][1] == parts[1][1] == parts[2][1]
        dataset = lance_dataset.dataset(path)
        assert dataset.version == 2
        made = commit(lance_dataset, dataset, parts)
        with pytest.raises(CommitConflictError):
            commit(lance_dataset, dataset, parts)
        found = lance.dataset(path).to_table()
        assert found.equals(made.to_table())
        assert found.num_rows == ROWS
    found = lance.dataset(paths["expression"]).to_table()
    assert found["r"].to_pylist() == [f"r{i}" for i in found["i"].to_pylist()]


def test_a_commit_needs_all_fragments(tmp_path: Path) -> None:
    dataset = lance_dataset.dataset(example(tmp_path / "t", "2.2"))
    part = dataset.get_fragments()[0].merge_columns({"x": "i"})
    with pytest.raises(InvalidInputError, match="all fragments"):
        commit(lance_dataset, dataset, [part])
