"""Tests of pages that are read without page objects: of values side by side, and with dictionaries."""

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
from lance_dataset.file.structural.read.plain_pages import plain_array, plain_dictionary_bytes, plain_taker
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


def column(
    path: Path, array: pa.Array, version: str, *, mmap: bool = True, metadata: dict[str, str] | None = None
) -> LeafColumn:
    """Write a file of one column and open it."""
    schema = pa.schema([pa.field("a", array.type, metadata=metadata)])
    with LanceFileWriter(str(path), schema, version=version) as writer:
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


REPEATED = {
    "texts": pa.array([None, "a", "bcd", "e" * 20] * 5000),
    "large": pa.array(["a", "bcd", "e" * 20, ""] * 5000, pa.large_string()),
    "binaries": pa.array([b"a", b"bcd", b"e" * 20, b""] * 5000),
    "decimals": pa.array([10**9, 10**11, -(10**9), None] * 5000).cast(pa.decimal128(22, 2)),
    "numbers": pa.array([2**40, 2**55, -(2**40), 3] * 5000),
    "many": pa.array([f"a text with number {number % 300}" for number in range(20000)]),
}


@pytest.mark.parametrize("scheme", ["none", "zstd", "lz4"])
@pytest.mark.parametrize("name", REPEATED)
def test_dictionaries_are_taken_without_a_page_object(tmp_path: Path, name: str, scheme: str) -> None:
    values = REPEATED[name]
    metadata = {"lance-encoding:dict-values-compression": scheme}
    for mmap in (True, False):
        opened = column(tmp_path / "a.lance", values, "2.2", mmap=mmap, metadata=metadata)
        page = opened._pages[0]
        assert page.layout.dictionary is not None
        assert plain_taker(page, opened.branch) is not None
        told = plain_dictionary_bytes(page, opened.branch)
        known = opened._open(0).dictionary_bytes()  # type: ignore[attr-defined]
        assert told == pytest.approx(known, rel=0.5)
        rows = np.array([0, 7, 7, 19999, 2])
        taker = opened.taker()
        assert taker is not None
        taker.open(0)
        assert opened.take(rows).equals(values.take(pa.array(rows)))


@pytest.mark.parametrize("scheme", ["none", "zstd", "lz4"])
def test_large_and_damaged_dictionaries_are_left_to_page_objects(tmp_path: Path, scheme: str) -> None:
    metadata = {"lance-encoding:dict-values-compression": scheme}
    opened = column(tmp_path / "a.lance", REPEATED["many"], "2.2", metadata=metadata)
    page = opened._pages[0]
    layout, buffers = page.layout, page.buffers
    for count in (0, 299, 301, 2**50):
        page.layout = replace(layout, dictionary_size=count)
        assert plain_taker(page, opened.branch) is None
        with pytest.raises(CorruptFileError, match="column 0"):
            opened.take(np.arange(300))
        opened._opened.clear()
    page.layout = layout
    page.buffers = (*buffers[:2], (buffers[2][0], buffers[2][1] // 2))
    assert plain_taker(page, opened.branch) is None
    with pytest.raises(CorruptFileError, match="column 0"):
        opened.take(np.arange(300))
