"""Tests of every type of file version 2.0: each implementation reads what the other one writes.

What this package writes is read by it, too, with ``LANCE_STRESS=1``.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.arrays.random_arrays import NULLS, random_table, whole
from support.arrays.type_groups import groups
from support.tables.equality import assert_same

import lance_dataset

#: Types of 2.0, without values of zero bytes: see test_values_of_no_bytes.
GROUPS = groups("2.0")
GROUPS["dictionary"] = {**GROUPS["dictionary"], "int32_int64": pa.dictionary(pa.int32(), pa.int64())}

_NO_FSYNC = {"local_fsync": "false"}


THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")


@pytest.fixture(params=["ours_to_reference", "reference_to_ours", *(["ours_to_ours"] if THOROUGH else [])])
def ways(request: pytest.FixtureRequest) -> tuple[ModuleType, ModuleType]:
    """Return the pairs of writer and reader."""
    ours, reference = lance_dataset, lance
    names = {"ours": ours, "reference": reference}
    writer, reader = request.param.split("_to_")
    return names[writer], names[reader]


def write(writer: ModuleType, table: pa.Table, path: Path, **options: Any) -> None:
    if writer is lance_dataset:
        options["storage_options"] = _NO_FSYNC
    writer.write_dataset(table, path, data_storage_version="2.0", **options)


def check_reads(dataset: Any, table: pa.Table) -> None:
    """Check scans, batches, subsets, filters and takes against a table that has a column ``id``, 0, 1, 2 ..."""
    assert dataset.count_rows() == table.num_rows
    assert_same(dataset.to_table(), table)
    for size in (7, 1000):
        if table.num_rows <= size * 300:
            batches = list(dataset.to_batches(batch_size=size))
            assert all(batch.num_rows <= size for batch in batches)
            assert_same(pa.Table.from_batches(batches, dataset.schema), table)
    some = table.column_names[::-3]
    assert_same(dataset.to_table(columns=some), table.select(some))
    kept = table.filter(pc.less(pc.bit_wise_and(table["id"], pa.scalar(7, pa.int64())), 2))
    assert_same(dataset.to_table(filter="id % 8 < 2"), kept)
    start = table.num_rows // 3
    assert_same(dataset.to_table(offset=start, limit=11), table.slice(start, 11))
    if table.num_rows:
        rows = np.random.default_rng(1).integers(0, table.num_rows, 50)
        for wanted in (rows, np.sort(rows), np.array([table.num_rows - 1])):
            assert_same(dataset.take(wanted), table.take(wanted))
        assert_same(dataset.take(rows, columns=some), table.select(some).take(rows))


def with_id(table: pa.Table) -> pa.Table:
    return table.add_column(0, "id", pa.array(range(table.num_rows), pa.int64()))


@pytest.mark.parametrize(
    ("rows", "nulls"), [(0, "none"), (1, "none"), (1, "all"), (500, "none"), (500, "some"), (500, "all")]
)
@pytest.mark.parametrize("group", GROUPS)
def test_types(ways: tuple[ModuleType, ModuleType], tmp_path: Path, group: str, rows: int, nulls: str) -> None:
    table = with_id(random_table(GROUPS[group], rows, NULLS[nulls], seed=rows))
    writer, reader = ways
    write(writer, table, tmp_path / "t")
    dataset = reader.dataset(tmp_path / "t")
    assert dataset.schema.equals(table.schema)
    check_reads(dataset, table)


@pytest.mark.parametrize("group", ["flat", "dictionary", "list", "fixed_list", "deep"])
def test_pages_and_fragments(ways: tuple[ModuleType, ModuleType], tmp_path: Path, group: str) -> None:
    """Small pages are read: lists span pages of items, and items and offsets are divided differently."""
    table = with_id(random_table(GROUPS[group], 4_000, 0.2, seed=7))
    writer, reader = ways
    write(writer, table, tmp_path / "t", max_rows_per_file=1_700, max_page_bytes=2_000, data_cache_bytes=100_000)
    dataset = reader.dataset(tmp_path / "t")
    assert [fragment.physical_rows for fragment in dataset.get_fragments()] == [1_700, 1_700, 600]
    check_reads(dataset, table)


@pytest.mark.parametrize("group", ["flat", "dictionary", "list", "struct", "deep"])
def test_appends_of_small_batches(ways: tuple[ModuleType, ModuleType], tmp_path: Path, group: str) -> None:
    table = with_id(random_table(GROUPS[group], 300, 0.2, seed=11))
    writer, reader = ways
    for start, stop in ((0, 1), (1, 100), (100, 100), (100, 300)):
        piece = table.slice(start, stop - start)
        chunks = whole(pa.Table.from_batches(piece.to_batches(max_chunksize=13), table.schema))
        write(writer, chunks, tmp_path / "t", mode="append")
    check_reads(reader.dataset(tmp_path / "t"), table)


def test_large_pages(ways: tuple[ModuleType, ModuleType], tmp_path: Path) -> None:
    """Columns with more than one page of the default size are read."""
    kinds = {
        "wide": pa.binary(100),
        "text": pa.string(),
        "lists": pa.list_(pa.decimal256(60, 20)),
        "vectors": pa.list_(pa.int32(), 32),
    }
    table = with_id(random_table(kinds, 150_000, 0.1, seed=3))
    writer, reader = ways
    write(writer, table, tmp_path / "t")
    dataset = reader.dataset(tmp_path / "t")
    assert_same(dataset.to_table(), table)
    rows = np.random.default_rng(1).integers(0, table.num_rows, 500)
    assert_same(dataset.take(rows), table.take(rows))
    assert_same(dataset.to_table(filter="id % 10000 = 7"), table.take(np.arange(7, table.num_rows, 10_000)))


@pytest.mark.parametrize("nulls", NULLS)
def test_null_filters(tmp_path: Path, nulls: str) -> None:
    for group in ("flat", "dictionary", "list", "fixed_list", "deep"):
        table = random_table(GROUPS[group], 200, NULLS[nulls], seed=5)
        write(lance, table, tmp_path / group)
        dataset = lance_dataset.dataset(tmp_path / group)
        for name in table.column_names:
            count = table.num_rows - table[name].null_count
            assert dataset.count_rows(f"`{name}` is not null") == count, name


@pytest.mark.parametrize("nulls", NULLS)
def test_values_of_no_bytes(tmp_path: Path, nulls: str) -> None:
    """Values of zero bytes are read; the reference writes them and fails to read them."""
    kinds = {"b": pa.binary(0), "l": pa.list_(pa.binary(0)), "v": pa.list_(pa.binary(0), 2)}
    table = with_id(random_table(kinds, 40, NULLS[nulls]))
    for writer in (lance, lance_dataset):
        write(writer, table, tmp_path / writer.__name__)
        check_reads(lance_dataset.dataset(tmp_path / writer.__name__), table)


def test_extension_types(ways: tuple[ModuleType, ModuleType], tmp_path: Path) -> None:
    tensor = pa.fixed_shape_tensor(pa.float32(), [2, 2])
    storage = random_table({"t": tensor.storage_type, "u": pa.binary(16), "b": pa.int8()}, 100, 0.2)
    kinds = {"t": tensor, "u": pa.uuid(), "b": pa.bool8()}
    columns = {
        name: pa.ExtensionArray.from_storage(kind, storage[name].combine_chunks()) for name, kind in kinds.items()
    }
    table = with_id(pa.table(columns))
    writer, reader = ways
    write(writer, table, tmp_path / "t")
    dataset = reader.dataset(tmp_path / "t")
    assert_same(dataset.to_table(), table)
    assert_same(dataset.take([99, 3, 3]), table.take([99, 3, 3]))
