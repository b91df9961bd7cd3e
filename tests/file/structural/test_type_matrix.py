"""Tests of types x nulls x sizes x file versions 2.1 and 2.2, written and read by this package and the reference.

What this package writes is read by it, too, with ``LANCE_STRESS=1``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.arrays.random_arrays import FLAT_TYPES
from support.arrays.random_columns import VALUES, Data, for_reference, random_column
from support.arrays.type_groups import GROUPS, groups
from support.tables.equality import assert_same

import lance_dataset

#: Every group with each version that supports it.
_CASES = [(group, version) for version in ("2.1", "2.2") for group in groups(version)]
_NULLS = {"none": 0.0, "some": 0.3, "all": 1.0}
#: (rows, nulls): the edges of chunks and blocks, and few values.
_SIZES = [
    *((0, "none"), (1, "none"), (1, "all"), (2, "some"), (1023, "none"), (1024, "all"), (1025, "some")),
    (5000, "some"),
]


THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")


@pytest.fixture(params=["ours_to_reference", "reference_to_ours", *(["ours_to_ours"] if THOROUGH else [])])
def ways(request: pytest.FixtureRequest) -> tuple[ModuleType, ModuleType]:
    """Return the pairs of writer and reader."""
    names = {"ours": lance_dataset, "reference": lance}
    writer, reader = request.param.split("_to_")
    return names[writer], names[reader]


def matrix_table(kinds: Mapping[str, pa.DataType], rows: int, nulls: float, seed: int) -> pa.Table:
    """Return a table of a row number and one column per type, each with another kind of values."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {"id": pa.array(range(rows), pa.int64())}
    for number, (name, kind) in enumerate(kinds.items()):
        columns[name] = random_column(kind, rows, Data(nulls, 0.3, VALUES[(number + seed) % len(VALUES)]), rng)
    return pa.table(columns)


def write(writer: ModuleType, table: pa.Table, path: Path, version: str, **options: Any) -> None:
    if writer is lance:
        table = for_reference(table)
    else:
        options["storage_options"] = {"local_fsync": "false"}
    writer.write_dataset(table, path, data_storage_version=version, **options)


def check_reads(dataset: Any, table: pa.Table) -> None:
    """Check scans, batches, ranges, subsets, filters and takes against a table with row numbers in ``id``."""
    assert dataset.count_rows() == table.num_rows
    assert dataset.schema.equals(table.schema)
    assert_same(dataset.to_table(), table)
    if not table.num_rows:
        return
    rng = np.random.default_rng(table.num_rows)
    size = table.num_rows // 5 + 1
    batches = list(dataset.to_batches(batch_size=size))
    assert all(batch.num_rows <= size for batch in batches)
    assert_same(pa.Table.from_batches(batches, dataset.schema), table)
    some = table.column_names[::-3]
    start = int(rng.integers(0, table.num_rows))
    assert_same(dataset.to_table(columns=some, offset=start, limit=99), table.select(some).slice(start, 99))
    kept = pc.less(pc.bit_wise_and(table["id"], pa.scalar(127, pa.int64())), 2)
    assert_same(dataset.to_table(filter="id % 128 < 2"), table.filter(kept))
    rows = rng.integers(0, table.num_rows, 30)
    for wanted in (rows, np.sort(rows)[:3], np.array([table.num_rows - 1])):
        # row by row, as Arrow does not take from chunks whose dictionaries have nulls
        assert_same(dataset.take(wanted), pa.concat_tables([table.slice(row, 1) for row in wanted.tolist()]))


@pytest.mark.parametrize(("rows", "nulls"), _SIZES)
@pytest.mark.parametrize(("group", "version"), _CASES)
def test_matrix(
    ways: tuple[ModuleType, ModuleType], tmp_path: Path, group: str, version: str, rows: int, nulls: str
) -> None:
    writer, reader = ways
    table = matrix_table(GROUPS[group], rows, _NULLS[nulls], rows + len(group))
    write(writer, table, tmp_path / "t", version)
    check_reads(reader.dataset(tmp_path / "t"), table)


@pytest.mark.parametrize(("group", "version"), _CASES)
def test_pages_and_fragments(ways: tuple[ModuleType, ModuleType], tmp_path: Path, group: str, version: str) -> None:
    """Pages of a few hundred rows whose layers and encodings differ, in three files, are read correctly."""
    writer, reader = ways
    kinds = GROUPS[group]
    parts = [matrix_table(kinds, 700, nulls, 7 + number) for number, nulls in enumerate((0.0, 0.4, 1.0, 0.0, 0.1))]
    table = pa.concat_tables(parts).drop(["id"])
    table = table.add_column(0, "id", pa.array(range(table.num_rows), pa.int64()))
    size = max(table.nbytes // 20, 1)
    # the reference divides pages at batches, and panics if it has to divide a batch of some nested arrays
    batches = {"data_cache_bytes": 1 if writer is lance else size}
    for start, rows in ((0, 1700), (1700, 1700), (3400, 100)):
        for first in range(start, start + rows, 425):
            piece = table.slice(first, min(425, start + rows - first))
            if writer is lance:
                write(writer, piece, tmp_path / "t", version, mode="append", **batches)
        if writer is not lance:
            write(writer, table.slice(start, rows), tmp_path / "t", version, mode="append", **batches)
    check_reads(reader.dataset(tmp_path / "t"), table)


#: Values that fill several chunks, blocks and default pages.
_LARGE = {
    **{name: FLAT_TYPES[name] for name in ("bool", "int8", "int64", "double", "decimal128", "string", "timestamp_us")},
    "lists": pa.list_(pa.int32()),
    "texts": pa.list_(pa.string()),
    "rows": pa.list_(pa.struct([("x", pa.int16()), ("t", pa.large_string())])),
    "vectors": pa.list_(pa.float32(), 16),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "wide": pa.binary(300),
}


@pytest.mark.parametrize("nulls", ["none", "some"])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_large(ways: tuple[ModuleType, ModuleType], tmp_path: Path, version: str, nulls: str) -> None:
    writer, reader = ways
    table = matrix_table(_LARGE, 70_000, _NULLS[nulls] / 3, 70)
    write(writer, table, tmp_path / "t", version)
    check_reads(reader.dataset(tmp_path / "t"), table)


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_kinds_of_values(ways: tuple[ModuleType, ModuleType], tmp_path: Path, version: str, values: str) -> None:
    """Every flat type is read correctly with the values for which each encoding is chosen."""
    writer, reader = ways
    rng = np.random.default_rng(len(values))
    kinds = {name: kind for name, kind in GROUPS["flat"].items() if not pa.types.is_null(kind)}
    columns = {"id": pa.array(range(3000), pa.int64())}
    for share, nulls in ((0.0, "full"), (0.1, "nulls")):
        for name, kind in kinds.items():
            columns[f"{name}_{nulls}"] = random_column(kind, 3000, Data(share, 0.3, values), rng)
    table = pa.table(columns)
    write(writer, table, tmp_path / "t", version)
    check_reads(reader.dataset(tmp_path / "t"), table)
