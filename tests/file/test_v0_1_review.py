"""Legacy (0.1) files and tables: lies about sizes, bytes under nulls, dictionaries in many pieces, threads."""

from __future__ import annotations

import struct
import threading
from dataclasses import replace
from pathlib import Path

import lance as reference
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset as lance
from lance_dataset._proto import file_pb2
from lance_dataset.errors import CorruptFileError, SchemaError
from lance_dataset.file.reader import DataFileReader
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.v0_1.read.columns import open_column
from lance_dataset.file.v0_1.statistics import read_zones
from lance_dataset.io.resolve import resolve
from lance_dataset.query import fragment_reader
from lance_dataset.schema import Schema
from lance_dataset.types import logical_from_arrow

_MAPPED = pytest.mark.parametrize("mapped", ["true", "false"])


def _write(path: Path, table: pa.Table, **options: int) -> Path:
    """A legacy table in one file; returns the path of the file."""
    lance.write_dataset(table, path, data_storage_version="legacy", **options)
    (file,) = (path / "data").iterdir()
    return file


def _words(file: Path, changes: dict[int, int]) -> None:
    """Overwrite 64-bit integers of a file, by position."""
    content = bytearray(file.read_bytes())
    for position, value in changes.items():
        struct.pack_into("<q", content, position, value)
    file.write_bytes(content)


def _open(file: Path, mapped: str = "true") -> LegacyFile:
    store, path = resolve(str(file), {"mmap": mapped})
    return LegacyFile(store.open_input(path))


def _dataset(path: Path, mapped: str) -> lance.LanceDataset:
    return lance.dataset(path, storage_options={"mmap": mapped})


# -- hostile files ---------------------------------------------------------------------------------------------------


@_MAPPED
def test_offsets_that_overflow_and_descend(mapped: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    file = _write(path, pa.table({"s": ["a", "b", "c", "d"]}), max_rows_per_group=2)
    first, second = _open(file).pages.cells(0)[0].tolist()
    _words(file, {first + 16: 2**40, second + 8: 0})
    with pytest.raises(CorruptFileError, match=r"column 's'"):
        _dataset(path, mapped).to_table()


@_MAPPED
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_rows_that_all_claim_the_whole_file(kind: pa.DataType, mapped: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    file = _write(path, pa.table({"s": pa.array(["abc"] * 50).cast(kind)}), max_rows_per_group=1)
    known = _dataset(path, mapped).take([7] * 20000 + [3])
    assert known["s"].to_pylist() == pa.array(["abc"] * 20001).cast(kind).to_pylist()
    places = _open(file).pages.cells(0)[0].tolist()
    _words(file, {place + at: value for place in places for at, value in ((0, 0), (8, 150))})
    assert len(_dataset(path, mapped).take([5, 5, 6])) == 3
    with pytest.raises(CorruptFileError, match="more bytes than the"):
        _dataset(path, mapped).take(list(range(50)))


@_MAPPED
def test_values_wider_than_the_file(mapped: str, tmp_path: Path) -> None:
    file = _write(tmp_path / "t", pa.table({"i": pa.array(range(4), pa.int64())}))
    position = file_pb2.Metadata.FromString(_metadata(file)).page_table_position
    _words(file, {position + 8: 0})
    opened = _open(file, mapped)
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
    opened = _open(_write(tmp_path / "t", pa.table({"i": [1, 2]})))
    (field,) = opened.schema.fields
    assert read_zones(opened, field) is not None
    for change in (lambda nodes: nodes.append(nodes[0]), lambda nodes: setattr(nodes[0], "id", -1)):
        described = file_pb2.Metadata.StatisticsMetadata()
        described.CopyFrom(opened.statistics)
        change(described.schema)
        lying = _open(Path(opened.source.path))
        lying.statistics = described
        assert read_zones(lying, field) is None


# -- statistics ------------------------------------------------------------------------------------------------------


def _hidden(valid: list[bool]) -> pa.Array:
    """Strings with bytes under the nulls."""
    shown = pa.array(["aa", "bb", "zz", "cc"])
    return pa.Array.from_buffers(pa.string(), 4, [pa.array(valid).buffers()[1], *shown.buffers()[1:]])


@pytest.mark.parametrize("valid", [[True, True, False, True], [False] * 4, [False, True, False, False]])
def test_the_reference_keeps_bytes_under_nulls(valid: list[bool], tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    reference.write_dataset(pa.table({"s": _hidden(valid)}), path, data_storage_version="legacy")
    opened, expected = lance.dataset(path), reference.dataset(path)
    assert opened.to_table() == expected.to_table()
    for text in ("s = 'zz'", "s > 'bb'", "s is null", "s is not null"):
        found = opened.to_table(filter=text)
        assert found == opened.scanner(filter=text, use_stats=False).to_table()
        assert found == expected.scanner(filter=text, use_stats=False).to_table()


@_MAPPED
def test_batches_of_nulls_alone_are_known(mapped: str, tmp_path: Path) -> None:
    table = pa.table({"s": pa.array([None, None, "a", "b", None, "c", None, None], pa.string())})
    opened = _open(_write(tmp_path / "t", table, max_rows_per_group=2), mapped)
    zones = read_zones(opened, opened.schema.fields[0])
    assert zones is not None
    assert zones.may_be_valid.tolist() == [False, True, True, False]
    assert zones.may_be_null.tolist() == [True, False, True, True]
    assert zones.minimum.to_pylist() == [None, "a", None, None]


# -- writing ---------------------------------------------------------------------------------------------------------


def test_many_arrays_wait_for_one_batch(tmp_path: Path) -> None:
    """In time that grows with their number, not with its square."""
    table = pa.table({"i": np.arange(20_000), "s": np.arange(20_000).astype(str)})
    pieces = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=4))
    options = {"max_rows_per_group": 15_000, "data_cache_bytes": 1}
    lance.write_dataset(pieces, tmp_path / "t", data_storage_version="legacy", **options)
    assert reference.dataset(str(tmp_path / "t")).to_table() == table


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.int64(), pa.uint64()], ids=str)
def test_small_dictionaries_join_a_large_one(kind: pa.DataType, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    text = kind in (pa.string(), pa.large_binary())
    numbers = [rng.integers(0, 3000, size) for size in (2500, 7, 40, 900, 3, 2500, 1)]
    arrays = [pa.array(drawn).cast(pa.string()).cast(kind) if text else pa.array(drawn, kind) for drawn in numbers]
    arrays.append(pa.array([None, None], kind))
    coded = [values.dictionary_encode() for values in arrays]
    batches = [pa.record_batch([values], ["d"]) for values in coded]
    whole = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    if text:
        lance.write_dataset(whole, tmp_path / "t", data_storage_version="legacy")
    else:
        with pytest.warns(UserWarning, match="read as its first value"):
            lance.write_dataset(whole, tmp_path / "t", data_storage_version="legacy")
    decoded = lance.dataset(tmp_path / "t").to_table()["d"].combine_chunks().dictionary_decode().to_pylist()
    expected = pa.concat_arrays(arrays).to_pylist()
    assert decoded == (expected if text else [expected[0] if value is None else value for value in expected])
    theirs = reference.dataset(str(tmp_path / "t")).to_table()["d"].combine_chunks().dictionary_decode()
    assert theirs.to_pylist() == decoded


def test_dictionaries_that_are_not_text_are_refused(tmp_path: Path) -> None:
    first = pa.record_batch([pa.array(["a", "b"] * 100).dictionary_encode()], ["d"])
    lance.write_dataset(pa.Table.from_batches([first]), tmp_path / "t", data_storage_version="legacy")
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    batch = pa.record_batch([pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), broken)], ["d"])
    with pytest.raises(SchemaError, match="no valid Arrow array"):
        lance.write_dataset(pa.Table.from_batches([batch]), tmp_path / "t", mode="append")


# -- reading ---------------------------------------------------------------------------------------------------------


def test_dictionaries_are_read_without_the_rest_of_the_file(tmp_path: Path) -> None:
    table = pa.table({"d": pa.array(["x", "y"] * 50).dictionary_encode(), "s": ["z" * 5000] * 100})
    file = _write(tmp_path / "t", table)
    store, path = resolve(str(file), {"mmap": "false"})
    source = store.open_input(path)
    sizes, read = [], source.read

    def counted(offset: int, length: int) -> pa.Buffer:
        sizes.append(length)
        return read(offset, length)

    source.read = counted
    schema: Schema = DataFileReader(source).schema
    assert schema.fields[0].dictionary_values.to_pylist() == ["x", "y"]
    assert sum(sizes) < 5000


def test_threads_share_the_open_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the parts of a column could be of two files, although they are one."""
    _write(tmp_path / "t", pa.table({"l": [[1], [2, 3]]}))
    meeting, opening = threading.Barrier(2), fragment_reader.open_metadata

    def slow(*arguments: object, **options: object) -> object:
        meeting.wait(5)
        return opening(*arguments, **options)

    monkeypatch.setattr(fragment_reader, "open_metadata", slow)
    dataset, found = lance.dataset(tmp_path / "t"), []
    (reader,) = dataset._reader.fragments
    threads = [threading.Thread(target=lambda: found.append(reader.stored(0)[0])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert found[0] is found[1]


def test_scans_let_go_of_large_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"i": np.arange(100_000), "s": ["y" * 30] * 100_000})
    opened = _open(_write(tmp_path / "t", table, max_rows_per_group=50_000))
    gone = []
    monkeypatch.setattr(type(opened.source), "discard", lambda _, offset, length: gone.append((offset, length)))
    for field in opened.schema.fields:
        column = open_column(field, lambda node: (opened, node.id), 100_000)
        for _ in range(2):
            assert column.read(0, 100_000) == table[field.name].combine_chunks()
        column.take(np.arange(0, 100_000, 2))
    assert len(gone) == 6  # pages of numbers one by one, text as a whole
    assert all(length >= 400_000 and 0 <= offset <= opened.source.size - length for offset, length in gone)
