"""Tests of pages of values side by side, which are used in place without opening the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.reader import DataFileReader
from lance_dataset.file.standalone import LanceFileWriter
from lance_dataset.file.structural.read.leaf import LeafColumn
from lance_dataset.file.structural.read.plain_pages import plain_array
from lance_dataset.io.local import LocalStore

ROWS = 3000
KINDS: list[pa.DataType] = [
    *(pa.int8(), pa.float16(), pa.float32(), pa.float64(), pa.timestamp("ns"), pa.binary(16), pa.decimal128(20, 2)),
]


def noise(kind: pa.DataType) -> pa.Array:
    """Return values of random bytes; no float among them is a NaN, which differs from itself."""
    data: object = np.random.default_rng(1).bytes(ROWS * kind.byte_width)
    if pa.types.is_floating(kind):
        data = np.random.default_rng(1).standard_normal(ROWS).astype(kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, ROWS, [None, pa.py_buffer(data)])


def column(path: Path, array: pa.Array, version: str, *, mmap: bool = True) -> LeafColumn:
    """Write a file of one column and open it."""
    with LanceFileWriter(str(path), pa.schema([pa.field("a", array.type)]), version=version) as writer:
        writer.write_batch(pa.record_batch([array], names=["a"]))
    reader = DataFileReader(LocalStore(mmap=mmap).open_input(str(path)))
    opened = reader.column(reader.schema.fields[0])
    assert isinstance(opened, LeafColumn)
    return opened


def first_page(opened: LeafColumn) -> pa.Array | None:
    return plain_array(opened._pages[0], opened.branch)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_values_are_used_in_place(tmp_path: Path, kind: pa.DataType, version: str) -> None:
    opened = column(tmp_path / "a.lance", noise(kind), version)
    page = opened._pages[0]
    found = first_page(opened)
    assert found is not None
    assert found.buffers()[1].address == page.source.read(*page.buffers[0]).address
    for start, stop in ((0, ROWS), (1, ROWS - 1), (7, 7)):
        assert opened.read(start, stop).equals(noise(kind).slice(start, stop - start))


def test_other_pages_are_opened(tmp_path: Path) -> None:
    values = noise(pa.float64())
    nulls = pa.array(values.to_numpy(zero_copy_only=False), mask=np.arange(ROWS) % 3 == 0)
    assert first_page(column(tmp_path / "unmapped.lance", values, "2.2", mmap=False)) is None
    assert first_page(column(tmp_path / "wide.lance", pa.array([b"x" * 300, b"y" * 400]), "2.2")) is None
    with_nulls = column(tmp_path / "nulls.lance", nulls, "2.2")
    assert with_nulls.read(0, ROWS).equals(nulls)


@pytest.mark.parametrize("change", ["rows", "items", "bits", "buffers"])
def test_pages_that_contradict_themselves_are_refused(tmp_path: Path, change: str) -> None:
    opened = column(tmp_path / "a.lance", noise(pa.float64()), "2.2")
    page = opened._pages[0]
    if change == "rows":
        page.buffers = ((page.buffers[0][0], page.buffers[0][1] - 8),)
    elif change == "items":
        page.layout = replace(page.layout, num_visible_items=ROWS - 1)
    elif change == "bits":
        page.layout = replace(page.layout, bits=32)
    else:
        page.buffers = (*page.buffers, *page.buffers)
    assert first_page(opened) is None
    with pytest.raises(CorruptFileError, match="column 0"):
        opened.read(0, ROWS)
