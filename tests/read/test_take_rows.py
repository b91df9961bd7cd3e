"""Tests of random access in one compiled call, compared with a scan and with reads column by column."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.arrays.random_columns import VALUES, Data, random_column
from support.arrays.type_groups import GROUPS
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset.errors import CorruptFileError, RowIndexError
from lance_dataset.read import prefetch, row_taker, take

_CASES = [
    *(("flat", nulls, version) for nulls in (0.0, 0.3) for version in ("2.1", "2.2")),
    *((group, 0.3, "2.2") for group in ("dictionary", "list", "fixed_list", "list_of_fixed_list", "struct", "deep")),
    *((group, 0.0, "2.1") for group in ("large_list", "fixed_list_of_fixed_list")),
    ("list", 1.0, "2.2"),
]
#: Groups of types and shares of nulls of which the compiled call takes all columns, except for those of
#: : `_NOT_COMPILED`: a type without buffers, and bits that are not whole bytes.
_COMPILED = {("flat", 0.0), ("flat", 0.3), ("fixed_list_of_fixed_list", 0.0)}
_NOT_COMPILED = {"null", "bool"}


def table_of(kinds: Mapping[str, pa.DataType], rows: int, nulls: float, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {"id": pa.array(range(rows), pa.int64())}
    for number, (name, kind) in enumerate(kinds.items()):
        columns[name] = random_column(kind, rows, Data(nulls, 0.3, VALUES[(number + seed) % len(VALUES)]), rng)
    return pa.table(columns)


def write(table: pa.Table, path: Path, version: str = "2.2", **options: Any) -> lance_dataset.LanceDataset:
    return lance_dataset.write_dataset(
        table, path, data_storage_version=version, storage_options={"local_fsync": "false"}, **options
    )


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the names of the columns that were read separately."""
    names: set[str] = set()
    plain = take._take_columns

    def recorded(fragment: Any, rows: Any, projection: Any, *others: Any) -> pa.RecordBatch:
        names.update(projection.schema.names)
        return plain(fragment, rows, projection, *others)

    monkeypatch.setattr(take, "_take_columns", recorded)
    return names


@pytest.mark.parametrize(("group", "nulls", "version"), _CASES)
def test_all_types(
    group: str, nulls: float, version: str, tmp_path: Path, one_by_one: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_taker, "_EARLY_TAKES", 0)
    dataset = write(table_of(GROUPS[group], 1_300, nulls, 1), tmp_path / "t", version, max_rows_per_file=500)
    dataset.delete("id % 7 = 3 or (id >= 500 and id < 550)")
    whole = dataset.to_table(with_row_address=True)
    live, rng = whole.num_rows, np.random.default_rng(5)
    one_by_one.clear()
    for wanted in (
        rng.integers(0, live, 1),
        np.sort(rng.integers(0, live, 40)),
        rng.integers(0, live, 1_500),
    ):
        expected = whole.take(pa.array(wanted))
        assert_same(dataset.take(wanted.tolist()), expected.drop_columns("_rowaddr"))
    assert_same(dataset._take_rows(expected["_rowaddr"].to_pylist()), expected.drop_columns("_rowaddr"))
    if (group, nulls) in _COMPILED:
        assert one_by_one <= _NOT_COMPILED
    elif "list" in group and nulls < 1.0:
        assert len(one_by_one) < len(dataset.schema.names)


def test_system_columns_and_nested_names(tmp_path: Path) -> None:
    table = pa.table(
        {
            "a": pa.array(range(100)),
            "s": pa.array([{"x": i, "y": str(i)} for i in range(100)]),
            "l": pa.array([[i] * (i % 3) for i in range(100)]),
        }
    )
    dataset = write(table, tmp_path / "t", max_rows_per_file=30)
    dataset.delete("a % 3 = 0")
    columns = ["_rowaddr", "l", "s.y", "_rowid", "a", "_rowoffset"]
    wanted = [5, 60, 5, 0, 33]
    found = dataset.take(wanted, columns)
    scanned = dataset.to_table(columns=["_rowaddr", "l", "s", "_rowid", "a", "_rowoffset"])
    expected = scanned.take(pa.array(wanted))
    for name in ("_rowaddr", "l", "_rowid", "a", "_rowoffset"):
        assert found[name].to_pylist() == expected[name].to_pylist()
    assert [row["y"] for row in found["s"].to_pylist()] == [row["y"] for row in expected["s"].to_pylist()]
    for fragment in dataset.get_fragments():
        mine = fragment.to_table()
        rows = [0, fragment.count_rows() - 1, 0]
        assert_same(fragment.take(rows), mine.take(rows))


def test_no_rows_and_no_columns(tmp_path: Path) -> None:
    dataset = write(pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]}), tmp_path / "t")
    assert dataset.take([]).schema == dataset.take([0]).schema == dataset.schema
    assert dataset.take([], ["b"]).num_rows == 0
    assert dataset.take([2, 0], []).shape == (2, 0)
    assert dataset._take_rows([]).num_rows == 0


def test_columns_that_some_fragments_have(tmp_path: Path, one_by_one: set[str]) -> None:
    full = table_of({"n": pa.string(), "v": pa.list_(pa.float32(), 2), "l": pa.list_(pa.int8())}, 10, 0.0, 1)
    write(full, tmp_path / "t")
    dataset = write(full.select(["id"]), tmp_path / "t", mode="append")
    wanted = [15, 3, 9, 10, 3]
    assert_same(dataset.take(wanted), dataset.to_table().take(wanted))
    assert not one_by_one & {"id", "n", "v"}


@pytest.mark.parametrize("stable", [False, True])
def test_row_ids(stable: bool, tmp_path: Path) -> None:
    dataset = write(pa.table({"a": range(500)}), tmp_path / "t", max_rows_per_file=100, enable_stable_row_ids=stable)
    dataset.delete("a % 5 = 1")
    whole = dataset.to_table(with_row_id=True)
    wanted = np.random.default_rng(1).permutation(whole.num_rows)
    found = dataset._take_rows(whole["_rowid"].take(pa.array(wanted)), ["a", "_rowid"])
    assert_same(found, whole.take(pa.array(wanted)))
    with pytest.raises(RowIndexError):
        dataset.take([whole.num_rows])
    if not stable:
        for address in (5 << 32, 100, (2**32 - 1) << 32):
            with pytest.raises(RowIndexError):
                dataset._take_rows([address])


def test_threads(tmp_path: Path) -> None:
    """Many threads may take from a dataset from which nothing was opened yet."""
    table = table_of({"s": pa.string(), "d": pa.decimal128(9, 2), "l": pa.list_(pa.int32())}, 4_000, 0.2, 3)
    write(table, tmp_path / "t", max_rows_per_file=250)
    dataset = lance_dataset.dataset(tmp_path / "t")
    wrong: list[BaseException] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for count in (1, 50, 1, 6_000, 1):
                wanted = rng.integers(0, 4_000, count)
                assert_same(dataset.take(wanted.tolist()), table.take(pa.array(wanted)))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_damage_is_told_as_ever(tmp_path: Path) -> None:
    """Damage raises the errors of the general path, with what is wrong and where."""
    words = np.random.default_rng(1).permutation(2_000).tolist()
    write(pa.table({"a": pa.array([f"{word:x}".zfill(8) for word in words])}), tmp_path / "t")
    [file] = (tmp_path / "t" / "data").iterdir()
    data = bytearray(file.read_bytes())
    half = len(data) // 2
    data[:half] = b"\xff" * half
    file.write_bytes(data)
    broken = lance_dataset.dataset(tmp_path / "t")
    with pytest.raises(CorruptFileError, match=r"column 0 \('a'\), page 0"):
        broken.take(list(range(2_000)))


@pytest.mark.parametrize("rows", [[3, 1], range(1, 4, 2), np.array([3, 1], np.int16), pa.array([3, 1], pa.uint32())])
def test_kinds_of_numbers(rows: Any, tmp_path: Path) -> None:
    dataset = write(pa.table({"a": range(5)}), tmp_path / "t")
    assert dataset.take(rows)["a"].to_pylist() == [int(row) for row in np.asarray(rows)]


@pytest.mark.parametrize("first", [0, 1])
def test_lists_with_and_without_nulls(first: int, tmp_path: Path) -> None:
    """Pages of one column may have definition levels or none."""
    kind = pa.list_(pa.int32())
    full = pa.table({"l": pa.array([[i, i + 1] for i in range(100)], kind)})
    some = pa.table({"l": pa.array([[i, None] if i % 3 else None if i % 2 else [] for i in range(100)], kind)})
    both = (some, full) if first else (full, some)
    write(both[0], tmp_path / "t")
    dataset = write(both[1], tmp_path / "t", mode="append")
    for wanted in ([1, 150, 3, 160], [150, 1], [199, 0, 0], list(range(200))):
        assert_same(dataset.take(wanted), pa.concat_tables(both).take(pa.array(wanted)))


@pytest.mark.parametrize("mapped", ["0", "1"])
def test_files_that_are_not_mapped(mapped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_MMAP", mapped)
    table = table_of({"n": pa.string(), "s": pa.struct([("a", pa.int8())]), "l": pa.list_(pa.int8())}, 900, 0.3, 1)
    dataset = write(table, tmp_path / "t", max_rows_per_file=300)
    for count in (1, 200, 2_000):
        wanted = np.random.default_rng(count).integers(0, 900, count)
        assert_same(dataset.take(wanted.tolist()), table.take(pa.array(wanted)))


def test_rows_are_announced_as_long_as_the_device_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first take of many rows announces them, and so does a take after one for which the device was read."""
    reads = iter([0, 5, 5, 5, 5, 5, 5, 9, 9, 9])
    announced: list[int] = []
    for name in ("announce", "announce_numbers"):
        monkeypatch.setattr(row_taker, name, lambda *given: announced.append(len(given[-1])))
    monkeypatch.setattr(prefetch, "device_reads", lambda: next(reads))
    table = table_of({"s": pa.struct([("a", pa.int8())])}, 1_000, 0.0, 1)
    dataset = write(table, tmp_path / "t", max_rows_per_file=500)
    wanted = np.random.default_rng(1).integers(0, 1_000, 200).tolist()
    for expected in ([200], [200], [], [], [200]):
        announced.clear()
        dataset.take([3, 1])
        assert_same(dataset.take(wanted), table.take(pa.array(wanted)))
        assert announced == expected
    monkeypatch.setattr(prefetch, "device_reads", lambda: 0)
    announced.clear()
    addresses = [(number // 500 << 32) + number % 500 for number in wanted if number < 520]
    found = dataset._take_rows(addresses)
    assert_same(found, table.take(pa.array([number for number in wanted if number < 520])))
    assert announced == []


def test_announced_rows_of_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fragments from which few rows are taken are not announced."""
    announced: list[list[int]] = []
    monkeypatch.setattr(row_taker, "announce", lambda _fragment, _fields, rows: announced.append(rows.tolist()))
    table = pa.table({"a": range(1_000)})
    dataset = write(table, tmp_path / "t", max_rows_per_file=500)
    rows = [*range(499, 399, -1), 700, 3]
    found = dataset._take_rows([(row // 500 << 32) + row % 500 for row in rows])
    assert found["a"].to_pylist() == rows
    assert announced == [[3, *range(400, 500)]]


@settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(data=st.data())
def test_any_columns(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Columns of all kinds are taken together, with nulls in the pages of some fragments only."""
    kinds = {f"{group} {name}": kind for group in GROUPS for name, kind in GROUPS[group].items()}
    chosen = data.draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=5, unique=True))
    parts = [
        table_of({name: kinds[name] for name in chosen}, rows, data.draw(st.sampled_from([0.0, 0.3, 1.0])), seed)
        for seed, rows in enumerate(data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=3)))
    ]
    path = tmp_path_factory.mktemp("t") / "t"
    dataset = write(parts[0], path)
    for part in parts[1:]:
        dataset = write(part, path, mode="append")
    whole = dataset.to_table()
    wanted = data.draw(st.lists(st.integers(0, whole.num_rows - 1), min_size=1, max_size=40))
    repeats = data.draw(st.sampled_from([1, 1, 10]))
    assert_same(dataset.take(wanted * repeats), whole.take(pa.array(wanted * repeats)))
