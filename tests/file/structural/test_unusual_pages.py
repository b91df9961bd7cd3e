"""Tests of valid but unusual pages of 2.1 and 2.2: empty structs, one row of many, more than one array holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance.file
import numpy as np
import pyarrow as pa
import pytest

from lance_dataset.file.column import OversizeError
from lance_dataset.file.reader import DataFileReader
from lance_dataset.file.standalone import LanceFileReader, LanceFileWriter
from lance_dataset.file.structural.nesting import branches
from lance_dataset.file.structural.read.leaf import LeafColumn
from lance_dataset.file.v2_1.pages import LEVEL_PAGES
from lance_dataset.io.local import LocalStore
from lance_dataset.types.schema import Schema


def write(folder: Path, table: pa.Table, version: str = "2.2", writer: Any = LanceFileWriter) -> Path:
    path = folder / "good.lance"
    with writer(str(path), table.schema, version=version) as file:
        file.write_batch(table.combine_chunks().to_batches()[0])
    return path


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("writer", [LanceFileWriter, lance.file.LanceFileWriter])
@pytest.mark.parametrize("kind", [pa.struct([]), pa.struct([("e", pa.struct([]))])], ids=["bare", "in a struct"])
def test_structs_without_children_are_valid(tmp_path: Path, version: str, writer: Any, kind: pa.DataType) -> None:
    row = {child.name: {} for child in kind}
    path = write(tmp_path, pa.table({"s": pa.array([row] * 5, kind)}), version, writer)
    assert LanceFileReader(path).read_all().to_table()["s"].to_pylist() == [row] * 5
    assert LanceFileReader(path).take_rows([3, 3, 0]).to_table()["s"].to_pylist() == [row] * 3


class Counting:
    """A file that counts the bytes read from it."""

    def __init__(self, path: Path) -> None:
        self._file = LocalStore(mmap=False).open_input(str(path))
        self.bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, offset: int, length: int) -> pa.Buffer:
        self.bytes += length
        return self._file.read(offset, length)

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        self.bytes += sum(length for _, length in ranges)
        return self._file.read_ranges(ranges)


def test_one_zipped_row_costs_one_entry_of_the_index(tmp_path: Path) -> None:
    field = pa.field("x", pa.string(), metadata={"lance-encoding:structural-encoding": "fullzip"})
    texts = [f"text {number}" for number in range(20_000)]
    path = write(tmp_path, pa.table([pa.array(texts)], schema=pa.schema([field])))
    source = Counting(path)
    reader = DataFileReader(source)
    column = reader.column(reader.schema.fields[0])
    column.take(np.array([5]))
    source.bytes = 0
    assert column.take(np.array([17_000, 3, 19_999, 3])).to_pylist() == [texts[i] for i in (17_000, 3, 19_999, 3)]
    assert source.bytes < 200
    rows = np.random.default_rng(1).permutation(20_000)
    assert column.take(rows).to_pylist() == [texts[i] for i in rows]


def test_pages_that_do_not_fit_one_array() -> None:
    kind = pa.list_(pa.null())
    (branch,) = branches(Schema.from_arrow(pa.schema([("x", kind)])).fields[0])
    column = LeafColumn([], branch, "a.lance, column 0 ('x')", LEVEL_PAGES.open_page)
    items = 2**31 - 1
    piece = pa.ListArray.from_arrays(pa.array([0, items], pa.int32()), pa.nulls(items))
    with pytest.raises(OversizeError, match="column 0"):
        column._join([piece, piece])


def test_page_of_many_wide_nulls(tmp_path: Path) -> None:
    """A page of more than a GiB as Arrow data is read, as the reference puts any batch into one page."""
    kind = pa.list_(pa.float32(), 1 << 20)
    path = write(tmp_path, pa.table({"x": pa.nulls(260, kind)}), writer=lance.file.LanceFileWriter)
    reader = DataFileReader(LocalStore().open_input(str(path)))
    chunks = reader.column(reader.schema.fields[0]).read_chunks(0, 260)
    assert sum(chunk.null_count for chunk in chunks) == sum(map(len, chunks)) == 260
