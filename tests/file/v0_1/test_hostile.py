"""Tests of legacy (0.1) files with wrong offsets, sizes, positions or statistics."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.files.legacy_files import open_file, write_dataset_file

import lance_dataset as lance
from lance_dataset._proto import file_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.file.v0_1.read.columns import open_column
from lance_dataset.file.v0_1.read.statistics import read_zones
from lance_dataset.types.logical import logical_from_arrow

_MAPPED = pytest.mark.parametrize("mapped", ["true", "false"])


def _words(file: Path, changes: dict[int, int]) -> None:
    """Overwrite 64-bit integers of a file, by position."""
    content = bytearray(file.read_bytes())
    for position, value in changes.items():
        struct.pack_into("<q", content, position, value)
    file.write_bytes(content)


def _dataset(path: Path, mapped: str) -> lance.LanceDataset:
    return lance.dataset(path, storage_options={"mmap": mapped})


@_MAPPED
def test_offsets_that_overflow_and_descend(mapped: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    file = write_dataset_file(path, pa.table({"s": ["a", "b", "c", "d"]}), max_rows_per_group=2)
    first, second = open_file(file).pages.cells(0)[0].tolist()
    _words(file, {first + 16: 2**40, second + 8: 0})
    with pytest.raises(CorruptFileError, match=r"column 's'"):
        _dataset(path, mapped).to_table()


@_MAPPED
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_rows_that_all_claim_the_whole_file(kind: pa.DataType, mapped: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    file = write_dataset_file(path, pa.table({"s": pa.array(["abc"] * 50).cast(kind)}), max_rows_per_group=1)
    known = _dataset(path, mapped).take([7] * 20000 + [3])
    assert known["s"].to_pylist() == pa.array(["abc"] * 20001).cast(kind).to_pylist()
    places = open_file(file).pages.cells(0)[0].tolist()
    _words(file, {place + at: value for place in places for at, value in ((0, 0), (8, 150))})
    assert len(_dataset(path, mapped).take([5, 5, 6])) == 3
    with pytest.raises(CorruptFileError, match="more bytes than the"):
        _dataset(path, mapped).take(list(range(50)))


@_MAPPED
def test_values_wider_than_the_file(mapped: str, tmp_path: Path) -> None:
    file = write_dataset_file(tmp_path / "t", pa.table({"i": pa.array(range(4), pa.int64())}))
    position = file_pb2.Metadata.FromString(_metadata(file)).page_table_position
    _words(file, {position + 8: 0})
    opened = open_file(file, mapped)
    (field,) = opened.schema.fields
    field = replace(field, logical_type=logical_from_arrow(pa.list_(pa.int64(), 2**31 - 1), "i"))
    with pytest.raises(CorruptFileError, match="the page has 0 values"):
        open_column(field, lambda node: (opened, node.id), 4).take(np.arange(4))


def _metadata(file: Path) -> bytes:
    content = file.read_bytes()
    position = struct.unpack("<q", content[-16:-8])[0]
    (length,) = struct.unpack_from("<I", content, position)
    return content[position + 4 : position + 4 + length]


def test_statistics_named_twice_or_of_no_field_say_nothing(tmp_path: Path) -> None:
    opened = open_file(write_dataset_file(tmp_path / "t", pa.table({"i": [1, 2]})))
    (field,) = opened.schema.fields
    assert read_zones(opened, field) is not None
    for change in (lambda nodes: nodes.append(nodes[0]), lambda nodes: setattr(nodes[0], "id", -1)):
        described = file_pb2.Metadata.StatisticsMetadata()
        described.CopyFrom(opened.statistics)
        change(described.schema)
        lying = open_file(Path(opened.source.path))
        lying.statistics = described
        assert read_zones(lying, field) is None
