"""Tests of random columns of 2.1 and 2.2 files, written and read by both implementations.

``HYPOTHESIS_PROFILE=long`` tries new cases, 30 times as many.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from support.arrays.random_arrays import whole
from support.arrays.random_columns import Column, columns, for_reference, make_table
from support.tables.equality import assert_same

import lance_dataset
import lance_dataset.file.standalone as ours

#: Two versions, three ways: at least 2,400 cases.
EXAMPLES = max(300, settings.default.max_examples * 10)
_WAYS = {
    "ours_to_ours": (ours, ours),
    "ours_to_reference": (ours, lance.file),
    "reference_to_ours": (lance.file, ours),
}
#: Values of a column at the most, as nested dictionaries are compared as Python objects.
_MOST_VALUES = 100_000
_ROWS = st.one_of(st.integers(0, 20), st.sampled_from([1, 2, 100, 1023, 1024, 1025, 3000]))


def write_file(writer: Any, table: pa.Table, path: Path, version: str, **sizes: int | None) -> None:
    """Write a file of the chunks of a table, each written as a batch."""
    with writer.LanceFileWriter(str(path), table.schema, version=version, **sizes) as file:
        for batch in (table if writer is ours else for_reference(table)).to_batches():
            if batch.num_rows or writer is ours:
                file.write_batch(batch)


def write_pages(writer: Any, table: pa.Table, path: Path, version: str, pages: int) -> None:
    """Write a file with about this many pages in a column; the reference panics when it divides some nested arrays."""
    size = None if pages == 1 else max(table.nbytes // pages // table.num_columns, 1)
    try:
        write_file(writer, table, path, version, max_page_bytes=size, data_cache_bytes=size)
    except BaseException as error:
        if writer is ours or size is None or type(error).__name__ != "PanicException":
            raise
        write_file(writer, table, path, version)


def _walk(kind: pa.DataType, nullable: bool = True) -> Iterator[tuple[pa.DataType, bool]]:
    """Yield a type and all types below it, each with its nullability."""
    yield kind, nullable
    for number in range(kind.num_fields):
        child = kind.field(number)
        yield from _walk(child.type, child.nullable)


def fixed_items(kind: pa.DataType) -> int:
    """Return the number of leaf values in a row of a type whose other lists have one item each."""
    items = kind.list_size if pa.types.is_fixed_size_list(kind) else 1
    return items * max(1, sum(fixed_items(kind.field(number).type) for number in range(kind.num_fields)))


def _has_list(kind: pa.DataType) -> bool:
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_map)
    return any(is_list(below) for below, _ in _walk(kind) for is_list in lists)


def _is_structural(kind: pa.DataType) -> bool:
    return pa.types.is_fixed_size_list(kind) and pa.types.is_struct(kind.value_type)


def reference_reads(column: Column) -> bool:
    """Return True if the reference reads columns of this kind, including its own files.

    It cannot read three kinds with nulls: fixed-size lists of structs, if pages differ or the structs have required
    fields; lists in a required struct inside a nullable one, if pages differ; and zipped fixed-size lists of booleans
    with
    null items, which it cannot write either.
    """
    zipped = ("structural-encoding", "fullzip") in column.options
    for kind, nullable in _walk(column.type, column.nullable) if column.data.nulls else ():
        if zipped and pa.types.is_fixed_size_list(kind) and pa.types.is_boolean(kind.value_type):
            return False
        if _is_structural(kind) or (pa.types.is_struct(kind) and not nullable and _has_list(kind)):
            return False
    return True


def reference_writes(column: Column) -> bool:
    """Return True if the reference writes the column: it panics on chunks of fixed-size lists of null items only."""
    is_list = any(pa.types.is_fixed_size_list(kind) for kind, _ in _walk(column.type))
    return not (is_list and column.data.nulls and ("structural-encoding", "miniblock") in column.options)


def alone_for_reference(drawn: list[Column]) -> list[Column]:
    """Return the columns, or only the one that the reference cannot read beside others: it takes items for rows."""
    for column in drawn:
        if any(_is_structural(kind) for kind, _ in _walk(column.type)):
            return [column]
    return drawn


def check_file(reader: Any, path: Path, table: pa.Table, seed: int) -> None:
    """Check that a scan, batches, a range and a take give the rows of a table."""
    file = reader.LanceFileReader(str(path))
    rng = np.random.default_rng(seed)
    assert file.num_rows() == table.num_rows
    read = file.read_all(batch_size=max(table.num_rows, 1)).to_table()
    assert_same(read, table)
    if table.num_rows:
        assert [field.nullable for field in read.schema] == [field.nullable for field in table.schema]
        size = max(int(rng.integers(1, 50)), table.num_rows // 7)
        assert_same(file.read_all(batch_size=size).to_table(), table)
        low, high = np.sort(rng.integers(0, table.num_rows, 2)).tolist()
        assert_same(file.read_range(low, high + 1 - low).to_table(), table.slice(low, high + 1 - low))
        rows = rng.integers(0, table.num_rows, 9)
        if reader is lance.file:  # takes ascending row numbers only
            rows = np.unique(rows)
        assert_same(file.take_rows(rows.tolist()).to_table(), whole(table).take(rows))


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("way", _WAYS)
def test_round_trip(way: str, version: str) -> None:
    writer, reader = _WAYS[way]

    one = columns(version)
    if writer is lance.file:
        one = one.filter(reference_writes)
    if reader is lance.file:
        one = one.filter(reference_reads)
    drawings = st.lists(one, min_size=1, max_size=3)

    @settings(max_examples=EXAMPLES)
    @given(
        drawn=drawings if reader is ours else drawings.map(alone_for_reference),
        rows=_ROWS,
        cuts=st.lists(st.floats(0, 1), max_size=2),
        before=st.integers(0, 9),
        pages=st.sampled_from([1, 3, 40]),
        seed=st.integers(0, 2**16),
    )
    def run(drawn: list[Column], rows: int, cuts: list[float], before: int, pages: int, seed: int) -> None:
        rows = min(rows, _MOST_VALUES // max(fixed_items(column.type) for column in drawn))
        table = make_table(drawn, rows, sorted(int(cut * rows) for cut in cuts), before)
        note(str(table.schema))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "t.lance")
            write_pages(writer, table, path, version, pages)
            check_file(reader, path, table, seed)

    run()


@pytest.mark.filterwarnings("ignore:file version 2.3 is unstable")
@pytest.mark.parametrize("version", ["2.1", "2.2", "2.3"])
def test_repeated_vectors(tmp_path: Path, version: str) -> None:
    """Few distinct vectors are read from the dictionary as which the reference stores them in 2.3."""
    kind = pa.list_(pa.float32(), 4)
    table = pa.table({"v": pa.array([[float(row % 2000)] * 4 for row in range(4000)], kind)})
    lance.write_dataset(table, tmp_path / "t", data_storage_version=version)
    dataset = lance_dataset.dataset(tmp_path / "t")
    assert dataset.to_table() == table
    assert dataset.take([3999, 0, 7]) == table.take([3999, 0, 7])
