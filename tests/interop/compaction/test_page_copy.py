"""Tests of compaction that copies pages, and of all kinds of columns with and without copying."""

from __future__ import annotations

import datetime as dt
import decimal
import shutil
from pathlib import Path
from typing import Any

import lance as reference
import numpy as np
import pyarrow as pa
import pytest
from support.tables.equality import assert_same

import lance_dataset as lance_ours
from lance_dataset.errors import UnsupportedError

VERSIONS = ["2.0", "2.1", "2.2"]


def values(count: int, seed: int) -> pa.Table:
    """Return columns of many types, with nulls at every level."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-1000, 1000, count)
    some = rng.random(count) < 0.2
    words = [None if none else f"word {number % 7}" for number, none in zip(numbers, some, strict=True)]
    lists = [
        None if none else [None if n % 5 == 0 else int(n + each) for each in range(n % 4)]
        for n, none in zip(numbers, some, strict=True)
    ]
    return pa.table(
        {
            "id": np.arange(count) + seed * 1000,
            "small": pa.array(numbers % 100, pa.int8(), mask=some),
            "bool": pa.array(numbers > 0, mask=some),
            "float": pa.array(numbers / 3, pa.float32(), mask=some),
            "constant": pa.array([7] * count, pa.int32()),
            "null": pa.nulls(count, pa.int64()),
            "text": pa.array([f"{number}" * (abs(number) % 30) for number in numbers], mask=some),
            "word": pa.array(words),
            "dictionary": pa.array(words).dictionary_encode(),
            "binary": pa.array([bytes([abs(n) % 256]) * (abs(n) % 9) for n in numbers], pa.large_binary(), mask=some),
            "decimal": pa.array([decimal.Decimal(int(n)) / 100 for n in numbers], pa.decimal128(12, 2)),
            "day": pa.array([dt.date(2020, 1, 1) + dt.timedelta(int(n)) for n in numbers], mask=some),
            "list": pa.array(lists, pa.list_(pa.int32())),
            "texts": pa.array(
                [None if each is None else list(map(str, each)) for each in lists], pa.list_(pa.string())
            ),
            "vector": pa.array([[n, n / 2, 0.0] for n in numbers.tolist()], pa.list_(pa.float32(), 3)),
            "struct": pa.array(
                [{"a": int(n), "inner": {"b": str(n), "c": each}} for n, each in zip(numbers, lists, strict=True)],
                pa.struct({"a": pa.int64(), "inner": pa.struct({"b": pa.string(), "c": pa.list_(pa.int64())})}),
            ),
            "structs": pa.array(
                [[{"x": int(n), "y": str(n)}] * (abs(n) % 3) for n in numbers.tolist()],
                pa.list_(pa.struct({"x": pa.int64(), "y": pa.string()})),
            ),
            "json": pa.array([f'{{"a": {n}}}' for n in numbers], pa.json_(pa.utf8())),
            "uuid": pa.array([abs(n).to_bytes(16, "big") for n in numbers.tolist()], pa.uuid()),
        }
    )


def columns_for(version: str) -> list[str]:
    left_out = {"2.0": {"json", "null"}}.get(version, set())
    return [name for name in values(1, 0).column_names if name not in left_out]


def made(path: Path, version: str, *parts: pa.Table, ours: bool = False, **options: Any) -> str:
    library = lance_ours if ours else reference
    for part in parts:
        library.write_dataset(part, str(path), mode="append", data_storage_version=version, **options)
    return str(path)


def copied(dataset: Any) -> bool:
    """Return True if the new file has the pages of the old files, rather than one encoded page."""
    metadata = dataset.snapshot.reader.fragments[0].stored(0)[0]
    return len(metadata.column(0).pages) > 1


@pytest.mark.parametrize("ours", [False, True], ids=["their files", "our files"])
@pytest.mark.parametrize("mode", ["reencode", "force_binary_copy"])
@pytest.mark.parametrize("version", [*VERSIONS, "2.3"])
def test_all_types(tmp_path: Path, version: str, mode: str, ours: bool) -> None:
    names = columns_for(version)
    parts = [values(count, seed).select(names) for seed, count in enumerate((300, 1, 40, 1025))]
    table = made(tmp_path / "t.lance", version, *parts, ours=ours)
    dataset = lance_ours.dataset(table)
    expected = dataset.to_table()
    dataset.optimize.compact_files(compaction_mode=mode)
    assert [each.physical_rows for each in dataset.get_fragments()] == [1366]
    assert copied(dataset) == (mode == "force_binary_copy")
    assert_same(dataset.to_table(), expected)
    theirs = reference.dataset(table)
    assert_same(theirs.to_table(), reference.dataset(table, version=len(parts)).to_table())
    picked = [0, 299, 300, 301, 340, 341, 1000, 1365]
    assert_same(dataset.take(picked), expected.take(picked))
    assert_same(
        theirs.take(picked, columns=["id", "list", "struct"]), expected.select(["id", "list", "struct"]).take(picked)
    )
    assert dataset.to_table(filter="id = 3005")["id"].to_pylist() == [3005]
    # copied pages can be copied once more, and then be encoded
    (lance_ours if ours else reference).write_dataset(parts[1], table, mode="append")
    dataset.checkout_latest()
    dataset.optimize.compact_files(compaction_mode=mode)
    assert_same(dataset.to_table(), pa.concat_tables([expected, expected.slice(300, 1)]))
    assert reference.dataset(table).to_table().num_rows == 1367


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("stable", [False, True])
def test_the_same_choice_as_the_reference(tmp_path: Path, version: str, stable: bool) -> None:
    parts = [values(count, seed).select(["id", "word", "list"]) for seed, count in enumerate((9, 9, 9))]
    table = made(tmp_path / "t.lance", version, *parts, enable_stable_row_ids=stable)
    twin = str(shutil.copytree(table, tmp_path / "u.lance"))
    options = {"compaction_mode": "force_binary_copy", "target_rows_per_fragment": 10}
    shown = []
    for dataset in (lance_ours.dataset(table), reference.dataset(twin)):
        metrics = dataset.optimize.compact_files(**options)
        columns = ["id", "word", "list", "_rowid", "_row_created_at_version"]
        shown.append(
            (
                metrics.files_added,
                [(each.fragment_id, each.physical_rows) for each in dataset.get_fragments()],
                dataset.to_table(columns=columns).to_pylist(),
            )
        )
    assert shown[0] == shown[1]
    assert_same(reference.dataset(table).to_table(), lance_ours.dataset(twin).to_table())


REFUSED: dict[str, Any] = {
    "deleted rows": lambda ds: ds.delete("id = 3"),
    "does not store": lambda ds: ds.insert(pa.table({"id": [77]})),
    "must be written": None,
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_copied(tmp_path: Path, reason: str) -> None:
    table = made(tmp_path / "t.lance", "2.1", *[values(9, seed).select(["id", "word"]) for seed in range(2)])
    more = {"data_storage_version": "2.2"} if REFUSED[reason] is None else {}
    if not more:
        REFUSED[reason](reference.dataset(table))
    dataset = lance_ours.dataset(table)
    expected = dataset.to_table()
    before = {path for path in Path(table).rglob("*") if path.is_file()}
    with pytest.raises(OSError, match="binary copy"):
        reference.dataset(table).optimize.compact_files(compaction_mode="force_binary_copy", **more)
    with pytest.raises(UnsupportedError, match=f"binary copy is not supported: fragment . .*{reason}"):
        dataset.optimize.compact_files(compaction_mode="force_binary_copy", **more)
    assert {path for path in Path(table).rglob("*") if path.is_file()} == before
    dataset.optimize.compact_files(compaction_mode="try_binary_copy", **more)
    assert not copied(dataset)
    assert_same(dataset.to_table(), expected)
    assert_same(reference.dataset(table).to_table(), expected)


def test_columns_of_several_files(tmp_path: Path) -> None:
    """Columns of several files are copied; the reference re-encodes them, although their pages are whole."""
    table = made(tmp_path / "t.lance", "2.2", *[values(9, seed).select(["id", "word", "list"]) for seed in range(3)])
    theirs = reference.dataset(table)
    theirs.add_columns({"twice": "id * 2"})
    theirs.drop_columns(["word"])
    dataset = lance_ours.dataset(table)
    expected = dataset.to_table()
    dataset.optimize.compact_files(compaction_mode="force_binary_copy", binary_copy_read_batch_bytes=7)
    assert copied(dataset)
    assert dataset.snapshot.manifest.fragments[0].files[0].fields == (0, 3, 4)
    assert_same(dataset.to_table(), expected)
    assert_same(reference.dataset(table).to_table(), expected)


def test_legacy_and_blobs_cannot_be_copied(tmp_path: Path) -> None:
    legacy = made(tmp_path / "t.lance", "legacy", *[values(9, seed).select(["id", "word"]) for seed in range(2)])
    with pytest.raises(UnsupportedError, match="do not have pages to copy"):
        lance_ours.dataset(legacy).optimize.compact_files(compaction_mode="force_binary_copy")
    lance_ours.dataset(legacy).optimize.compact_files(compaction_mode="try_binary_copy")
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    data = pa.table([pa.array([b"a", None, b"c" * 5000])], schema=pa.schema([field]))
    blobs = made(tmp_path / "b.lance", "2.1", data, data)
    with pytest.raises(UnsupportedError, match="blob column 'blob'"):
        lance_ours.dataset(blobs).optimize.compact_files(compaction_mode="force_binary_copy")
    dataset = lance_ours.dataset(blobs)
    dataset.optimize.compact_files(compaction_mode="try_binary_copy")
    found = dataset.to_table(blob_handling="all_binary")["blob"].to_pylist()
    assert found == data["blob"].to_pylist() * 2


@pytest.mark.parametrize("version", ["2.1", "2.2", "2.3"])
@pytest.mark.parametrize("depth", [0, 1])
def test_pages_that_the_reference_does_not_read_together(tmp_path: Path, version: str, depth: int) -> None:
    """Lists below structs of which only some pages have nulls are not copied.

    The reference copies them, and then fails to read them.
    """
    structs: list[Any] = [{"a": [1, 2], "b": 1}, {"a": None, "b": 2}, {"a": [], "b": 3}]
    kind: pa.DataType = pa.struct({"a": pa.list_(pa.int32()), "b": pa.int32()})
    parts = [structs * 9, [*structs, None] * 9]
    for _ in range(depth):
        parts, kind = [[[each, each] for each in part] for part in parts], pa.list_(kind)
    tables = [pa.table({"c": pa.array(part, kind)}) for part in parts]
    table = made(tmp_path / "t.lance", version, *tables)
    dataset = lance_ours.dataset(table)
    with pytest.raises(UnsupportedError, match=r"only some pages of the column 'item' store nulls of structs"):
        dataset.optimize.compact_files(compaction_mode="force_binary_copy")
    dataset.optimize.compact_files(compaction_mode="try_binary_copy")
    for library in (lance_ours, reference):
        assert library.dataset(table).to_table()["c"].to_pylist() == [*parts[0], *parts[1]]
    again = made(tmp_path / "again.lance", version, tables[1], tables[1])
    dataset = lance_ours.dataset(again)
    dataset.optimize.compact_files(compaction_mode="force_binary_copy")
    assert reference.dataset(again).to_table()["c"].to_pylist() == parts[1] * 2


def test_many_pages_and_tasks_at_once(tmp_path: Path) -> None:
    data = pa.table({"id": np.arange(300_000), "x": np.random.default_rng(1).random(300_000)})
    table = str(tmp_path / "t.lance")
    reference.write_dataset(data, table, max_rows_per_file=50_000, data_storage_version="2.1")
    for mode in ("try_binary_copy", "reencode"):
        copy = str(shutil.copytree(table, tmp_path / mode))
        dataset = lance_ours.dataset(copy)
        dataset.optimize.compact_files(compaction_mode=mode, target_rows_per_fragment=100_000, num_threads=3)
        assert [each.physical_rows for each in dataset.get_fragments()] == [100_000] * 3
        assert_same(reference.dataset(copy).to_table(), data)
