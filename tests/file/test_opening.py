"""Tests of opening files: the fast parser agrees with protobuf for all releases and broken files, in few requests."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.files.file_parts import take_apart_file

import lance_dataset as ours
from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.file import container
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.reader import DataFileReader
from lance_dataset.io.local import LocalStore
from lancecodec import metadata

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
VERSIONS = ["2.0", "2.1", "2.2", "2.3"]


def column_of(file: FileMetadata, index: int, *, by_messages: bool) -> Any:
    """Return the metadata of a column, or the error."""
    try:
        position, size = container._TABLE_ENTRY.unpack_from(file._column_table, index * container._TABLE_ENTRY.size)
        return file._parse_column(index, file.source.read(position, size)) if by_messages else file.column(index)
    except LanceError as error:
        return type(error), str(error)


def check(file: FileMetadata) -> int:
    """Check that both parsers agree, and return the number of columns that the fast one parsed."""
    scanned = 0
    for index in range(file.num_columns):
        assert column_of(file, index, by_messages=False) == column_of(file, index, by_messages=True)
        position, size = container._TABLE_ENTRY.unpack_from(file._column_table, index * container._TABLE_ENTRY.size)
        scanned += metadata.scan_column(file.source.read(position, size), file.source.size) is not None
    return scanned


def test_files_of_all_releases() -> None:
    store, files, scanned, columns = LocalStore(), 0, 0, 0
    for path in sorted(FIXTURES.rglob("*.lance")):
        if not path.is_file():
            continue
        try:
            file = FileMetadata(store.open_input(str(path)))
        except LanceError:
            continue  # a legacy file
        files, columns, scanned = files + 1, columns + file.num_columns, scanned + check(file)
        assert file.num_rows == file._descriptor.length
    assert files > 20
    assert scanned == columns  # no release writes metadata that needs the messages


@pytest.mark.parametrize("version", VERSIONS)
def test_broken_metadata(tmp_path: Path, version: str) -> None:
    table = pa.table({"a": range(300), "s": ["x", None, "yz"] * 100, "l": [[1], [], None] * 100})
    path = tmp_path / "good.lance"
    ours.write_dataset(table, str(tmp_path / "t"), data_storage_version=version)
    path = next((tmp_path / "t" / "data").iterdir())
    good, rng = path.read_bytes(), random.Random(5)
    start = FileMetadata(LocalStore().open_input(str(path))).column_metadata_start
    store, ours_too = LocalStore(), 0
    for number in range(300):
        bad = bytearray(good)
        for _ in range(rng.choice([1, 1, 2, 8])):
            bad[rng.randrange(start - 200, len(bad) - 40)] = rng.randrange(256)
        place = tmp_path / f"bad{number % 4}"
        place.write_bytes(bad)
        try:
            file = FileMetadata(store.open_input(str(place)))
        except LanceError:
            continue
        check(file)
        ours_too += 1
        try:
            rows = file.num_rows
        except LanceError as error:
            with pytest.raises(type(error)):
                _ = file._descriptor
        else:
            assert rows == file._descriptor.length
    assert ours_too > 50


@pytest.mark.parametrize("version", VERSIONS)
def test_messages_written_otherwise_are_read(tmp_path: Path, version: str) -> None:
    ours.write_dataset(pa.table({"a": range(300)}), str(tmp_path / "t"), data_storage_version=version)
    path = next((tmp_path / "t" / "data").iterdir())
    parts = take_apart_file(path)
    parts.columns[0].MergeFromString(b"\xfa\x01\x01x")  # a field that does not exist (31)
    parts.descriptor.MergeFromString(b"\xfa\x01\x01x")
    path.write_bytes(parts.assemble())
    file = FileMetadata(LocalStore().open_input(str(path)))
    assert check(file) == 0
    assert file.num_rows == 300
    field = file.schema.fields[0]
    assert DataFileReader(LocalStore().open_input(str(path))).column(field).read(0, 300).to_pylist() == list(range(300))


@pytest.mark.parametrize("version", VERSIONS)
def test_pages_are_read_the_same_without_mapping(tmp_path: Path, version: str) -> None:
    """Reads without mapping give the same rows, with few requests for a row."""
    rng = np.random.default_rng(1)
    count = 30_000
    table = pa.table(
        {
            "small": pa.array(rng.integers(0, 3, count), pa.int8()),
            "wide": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(count * 40)), 40),
            "text": [None if n % 7 == 0 else f"text {n}" for n in range(count)],
            "long": [f"{n}" * 40 for n in range(count)],
            "list": [[n] * (n % 4) for n in range(count)],
        }
    )
    path = str(tmp_path / "t")
    ours.write_dataset(table, path, data_storage_version=version, max_rows_per_file=12_000)
    plain = ours.dataset(path, storage_options={"mmap": "false"})
    assert plain.to_table() == table
    rows = rng.choice(count, 200).tolist()
    assert plain.take(rows) == table.take(rows)
    before = plain.snapshot.store.statistics.read_iops
    plain.take([17])
    assert plain.snapshot.store.statistics.read_iops - before <= 2 * table.num_columns


def test_open_files_hold_no_descriptors(tmp_path: Path) -> None:
    """Open files hold no descriptors, as a table may have more fragments than a process may have open files."""
    limit, files = 50, 70
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > limit
    table = pa.table({"a": np.random.default_rng(1).random(files * 6000)})
    options = {"local_fsync": "false"}
    ours.write_dataset(table, str(tmp_path / "t"), max_rows_per_file=6000, storage_options=options)
    program = (
        "import resource, sys, lance_dataset as ours\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))\n"
        "dataset = ours.dataset(sys.argv[1])\n"
        f"assert dataset.to_table().num_rows == {files} * 6000\n"
        f"assert len(dataset.take(list(range(0, {files} * 6000, 6000)))) == {files}\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "t")], check=True)


def test_metadata_that_takes_a_request_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 40
    ours.write_dataset(pa.table({f"c{n}": [n] for n in range(count)}), str(tmp_path / "t"))
    monkeypatch.setattr(container, "_MAX_END", 1 << 10)  # so the metadata of the columns is not fetched at once
    store = LocalStore(mmap=False)
    file = FileMetadata(store.open_input(str(next((tmp_path / "t" / "data").iterdir()))))
    before = store.statistics.read_iops
    for index in [*range(count), *range(count)]:
        file.column(index)
    assert store.statistics.read_iops - before == count


def test_damaged_metadata_of_a_column_does_not_spoil_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours.write_dataset(pa.table({"a": [1], "b": [2]}), str(tmp_path / "t"))
    path = next((tmp_path / "t" / "data").iterdir())
    position, size = container._TABLE_ENTRY.unpack_from(FileMetadata(LocalStore().open_input(str(path)))._column_table)
    content = bytearray(path.read_bytes())
    content[position : position + size] = b"\xff" * size
    path.write_bytes(content)
    # the memory of all columns is weighed, as if their metadata were long
    monkeypatch.setattr(container, "_SHORT", 0)
    monkeypatch.setattr(container, "BASE_MEMORY", 0)
    file = FileMetadata(LocalStore().open_input(str(path)))
    for _ in range(2):
        with pytest.raises(CorruptFileError, match="column 0"):
            file.column(0)
        assert file.column(1).pages[0].length == 1


def test_threads_that_ask_for_different_columns_get_theirs(tmp_path: Path) -> None:
    count = 40
    ours.write_dataset(pa.table({f"c{n}": [n] for n in range(count)}), str(tmp_path / "t"))
    file = FileMetadata(LocalStore().open_input(str(next((tmp_path / "t" / "data").iterdir()))))

    def wrong(seed: int) -> int:
        rng = random.Random(seed)
        return sum(file.column(index).index != index for index in rng.choices(range(count), k=20_000))

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(wrong, range(4))) == 0
