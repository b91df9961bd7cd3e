"""Tests of dataset objects: signatures, inherited methods, copies, threads, processes, unusual shapes."""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.reference.outcomes import build_table

import lance_dataset
from lance_dataset.fragment import LanceFragment, write_fragments

REFERENCE = importlib.import_module("lance.dataset")
REFERENCE_FRAGMENT = importlib.import_module("lance.fragment")

PAIRS = {
    "dataset": (lance_dataset.dataset, lance.dataset),
    "write_dataset": (lance_dataset.write_dataset, lance.write_dataset),
    "write_fragments": (write_fragments, REFERENCE_FRAGMENT.write_fragments),
}
for _ours, _theirs in (
    (lance_dataset.LanceDataset, lance.LanceDataset),
    (LanceFragment, REFERENCE_FRAGMENT.LanceFragment),
    (lance_dataset.LanceScanner, REFERENCE.LanceScanner),
    (lance_dataset.ScannerBuilder, REFERENCE.ScannerBuilder),
    (lance_dataset.ColumnOrdering, REFERENCE.ColumnOrdering),
):
    for _name in dir(_theirs):
        if not _name.startswith("_") and callable(getattr(_theirs, _name)) and hasattr(_ours, _name):
            PAIRS[f"{_ours.__name__}.{_name}"] = (getattr(_ours, _name), getattr(_theirs, _name))


@pytest.mark.parametrize("name", PAIRS)
def test_signature(name: str) -> None:
    """Every parameter of the reference exists with the same name and default, or with one where it needs a value."""
    ours, theirs = (inspect.signature(function).parameters for function in PAIRS[name])
    for parameter in theirs.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        assert parameter.name in ours, parameter
        assert parameter.default is parameter.empty or ours[parameter.name].default == parameter.default


CRASH_TEST = """
import importlib, os, pkgutil, signal, sys, warnings
warnings.simplefilter("ignore")
import pyarrow as pa, pyarrow.compute as pc
import lance_dataset
for module in pkgutil.walk_packages(lance_dataset.__path__, "lance_dataset."):
    if module.name.split(".")[1] not in ("cli", "pydantic", "reports", "spark", "torch", "viewer", "namespace"):
        try:
            importlib.import_module(module.name)  # once, instead of in each child
        except Exception:
            pass
dataset = lance_dataset.dataset(sys.argv[1])
for thing in (dataset, dataset.get_fragments()[0], dataset.scanner()):
    for name in dir(thing):
        if name in ("drop", "__class__"):
            continue
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(1, 2)
            signal.alarm(20)
            try:
                value = getattr(thing, name)
                for arguments in ((), (1,), ("a",), (dataset,), (pc.field("a") > 1,), (dataset, "a"), (None,)):
                    try:
                        list(value(*arguments))
                    except Exception:
                        pass
            except BaseException:
                pass
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            print(type(thing).__name__, name)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each attribute is tried in a forked process")
def test_nothing_crashes(tmp_path: Path) -> None:
    """Reading any attribute, including inherited ones, never ends the process."""
    lance_dataset.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "d")
    command = [sys.executable, "-c", CRASH_TEST, str(tmp_path / "d")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    assert done.stdout == ""


def test_copies(both: tuple[Any, Any]) -> None:
    """Pickles and copies show the same version."""
    dataset = both[0].checkout_version(2)
    for again in (pickle.loads(pickle.dumps(dataset)), copy.copy(dataset), copy.deepcopy(dataset)):
        assert again.version == 2
        assert again.to_table(["id"]) == dataset.to_table(["id"])
    fragment = both[0].get_fragment(2)
    assert pickle.loads(pickle.dumps(fragment)).to_table(["id"]) == fragment.to_table(["id"])
    assert pickle.loads(pickle.dumps(fragment.metadata)).to_json() == fragment.metadata.to_json()


def test_threads(reference_path: Path) -> None:
    """Eight threads can share one handle from which nothing was read yet."""
    expected = lance_dataset.dataset(reference_path).to_table()
    dataset = lance_dataset.dataset(reference_path)

    def work(number: int) -> bool:
        rows = [(number * 7 + step) % len(expected) for step in range(20)]
        taken, scanned = dataset.take(rows, ["id", "s", "st"]), dataset.to_table(["id", "st"], "n > 3")
        kept = [position for position, n in enumerate(expected["n"].to_pylist()) if n is not None and n > 3]
        return taken == expected.select(["id", "s", "st"]).take(rows) and scanned == expected.select(["id", "st"]).take(
            kept
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_after_use(tmp_path: Path) -> None:
    """A forked child can read, even if the parent had started decoding threads."""
    dataset = lance_dataset.write_dataset(pa.table({f"c{i}": range(100_000) for i in range(4)}), tmp_path / "d")
    before = dataset.to_table()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if dataset.to_table() == before and dataset.take([5]).num_rows == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_many_fragments(tmp_path: Path) -> None:
    """A dataset of two thousand fragments of five rows is read correctly."""
    table = pa.table({"id": range(10_000)})
    dataset = lance_dataset.write_dataset(
        table, tmp_path / "d", max_rows_per_file=5, storage_options={"local_fsync": "false"}
    )
    dataset = lance_dataset.dataset(dataset.uri)
    assert len(dataset.get_fragments()) == 2000
    assert dataset.count_rows() == 10_000
    assert dataset.to_table() == table
    assert dataset.take([9_999, 0, 5_000])["id"].to_pylist() == [9_999, 0, 5_000]
    assert dataset.count_rows("id % 2 = 0") == 5_000


def test_wide_table(tmp_path: Path) -> None:
    """A dataset of three thousand columns is read correctly."""
    table = pa.table({f"c{i}": [i, i + 1] for i in range(3_000)})
    dataset = lance_dataset.write_dataset(table, tmp_path / "d")
    assert dataset.to_table() == table
    assert dataset.take([1], ["c2999"]).to_pydict() == {"c2999": [3000]}
    assert lance.dataset(tmp_path / "d").to_table() == table


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(tmp_path: Path, rows: int) -> None:
    """Datasets of no rows and of one row are read correctly."""
    table = build_table(rows)
    dataset = lance_dataset.write_dataset(table, tmp_path / "d")
    assert dataset.to_table().equals(table)
    assert dataset.to_table().schema.equals(table.schema, check_metadata=True)
    assert dataset.count_rows() == rows
    assert dataset.head(3).num_rows == rows
    assert dataset.take([]).num_rows == 0
    assert [batch.num_rows for batch in dataset.to_batches()] == [1] * rows
    assert lance.dataset(tmp_path / "d").to_table().num_rows == rows


def test_only_nulls(tmp_path: Path) -> None:
    """Columns in which every value is null are read correctly."""
    fields = [("i", pa.int32()), ("s", pa.string()), ("l", pa.list_(pa.int8())), ("n", pa.null()), ("b", pa.bool_())]
    table = pa.table({name: pa.nulls(5, kind) for name, kind in fields})
    dataset = lance_dataset.write_dataset(table, tmp_path / "d")
    assert dataset.to_table() == table
    assert lance.dataset(tmp_path / "d").to_table().to_pydict() == table.to_pydict()
