"""Tests of bad input from users and disks: each raises an error of this package, and the dataset stays unchanged."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.files.file_parts import problem

import lance_dataset as lance
from lance_dataset._proto import table_pb2
from lance_dataset.errors import (
    AlreadyExistsError,
    CorruptFileError,
    DatasetNotFoundError,
    FieldNotFoundError,
    FilterError,
    LanceError,
    MissingFileError,
    RowIndexError,
    SchemaError,
    UnsupportedError,
    VersionNotFoundError,
)

TABLE = pa.table({"number": pa.array(range(100), pa.int64()), "text": [f"row {i}" for i in range(100)]})


def snapshot(root: Path) -> dict[str, bytes]:
    """Return every file of a dataset with its content."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = str(tmp_path / "good.lance")
    lance.write_dataset(TABLE, path)
    return path


@pytest.fixture
def unchanged(uri: str) -> Iterator[None]:
    """Check at exit that the dataset has the same files with the same content, and can be read."""
    before = snapshot(Path(uri))
    yield
    assert snapshot(Path(uri)) == before
    dataset = lance.dataset(uri)
    assert dataset.version == 1
    assert dataset.to_table().equals(TABLE)


def data_file(uri: str) -> Path:
    [file] = Path(uri, "data").iterdir()
    return file


def edit_manifest(uri: str, change: Callable[[table_pb2.Manifest], Any]) -> None:
    [path] = Path(uri, "_versions").glob("*.manifest")
    content = path.read_bytes()
    (position,) = struct.unpack_from("<q", content, len(content) - 16)
    manifest = table_pb2.Manifest.FromString(content[position + 4 : -16])
    change(manifest)
    stored = manifest.SerializeToString()
    path.write_bytes(content[:position] + struct.pack("<I", len(stored)) + stored + content[-16:])


def fails(error: type[LanceError], action: Callable[[], Any], *said: str) -> None:
    with pytest.raises(LanceError) as caught:
        action()
    assert isinstance(caught.value, error), repr(caught.value)
    for word in said:
        assert word in str(caught.value), str(caught.value)


# -- what is not there -------------------------------------------------------------------------------------------


def test_not_a_dataset(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "readme.txt").write_text("hello")
    (tmp_path / "table.lance").write_text("hello")
    for path in ("missing.lance", "folder", "table.lance"):
        fails(DatasetNotFoundError, lambda path=path: lance.dataset(str(tmp_path / path)), path, "not found")
    assert sorted(os.listdir(tmp_path)) == ["folder", "table.lance"]


@pytest.mark.usefixtures("unchanged")
def test_version_that_is_not_there(uri: str) -> None:
    for version in (0, 2, 99, 2**40):
        fails(VersionNotFoundError, lambda version=version: lance.dataset(uri, version=version), str(version))


def test_missing_data_file(uri: str) -> None:
    name = data_file(uri).name
    data_file(uri).unlink()
    for read in readers(uri):
        fails(MissingFileError, read, name)


def readers(uri: str) -> list[Callable[[], Any]]:
    return [
        lambda: lance.dataset(uri).to_table(),
        lambda: list(lance.dataset(uri).to_batches()),
        lambda: lance.dataset(uri).take([3, 5]),
        lambda: lance.dataset(uri).to_table(filter="number > 3"),
        lambda: lance.dataset(uri).count_rows("number > 3"),
        lambda: lance.dataset(uri).delete("number > 3"),
    ]


# -- damaged files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [0, 10, 39, 500, -1])
def test_truncated_data_file(uri: str, left: int) -> None:
    path = data_file(uri)
    content = path.read_bytes()
    path.write_bytes(content[:left])
    for read in readers(uri):
        fails(CorruptFileError, read, path.name, str(len(content)), str(len(content[:left])))


def test_wrong_magic(uri: str) -> None:
    path = data_file(uri)
    path.write_bytes(path.read_bytes()[:-4] + b"PAR1")
    for read in readers(uri):
        fails(CorruptFileError, read, path.name, "PAR1", "not a Lance file")


def test_flipped_bytes_in_the_metadata_of_a_data_file(uri: str) -> None:
    path = data_file(uri)
    content = path.read_bytes()
    (start,) = struct.unpack_from("<Q", content, len(content) - 40)
    refused = 0
    for position in range(start, len(content)):
        changed = bytearray(content)
        changed[position] ^= 0xFF
        path.write_bytes(bytes(changed))
        for read in readers(uri)[:3]:
            said = problem(read)
            assert said is None or path.name in said
            refused += said is not None
    assert refused > len(content) - start


@pytest.mark.parametrize("mask", [0xFF, 0x01, 0x80])
def test_flipped_bytes_in_a_manifest(uri: str, mask: int) -> None:
    [path] = Path(uri, "_versions").glob("*.manifest")
    content = path.read_bytes()
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= mask
        path.write_bytes(bytes(changed))
        said = problem(lambda: lance.dataset(uri).to_table())
        assert said is None or len(said) > 20


def test_truncated_manifest(uri: str) -> None:
    [path] = Path(uri, "_versions").glob("*.manifest")
    content = path.read_bytes()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        fails(CorruptFileError, lambda: lance.dataset(uri), path.name)


def test_unknown_file_version(uri: str) -> None:
    path = data_file(uri)
    content = path.read_bytes()
    path.write_bytes(content[:-8] + struct.pack("<HH", 9, 7) + content[-4:])
    for read in readers(uri):
        fails(UnsupportedError, read, path.name, "9.7", "version")


def test_unknown_file_version_in_the_manifest(uri: str) -> None:
    def change(manifest: table_pb2.Manifest) -> None:
        manifest.fragments[0].files[0].file_major_version = 9

    edit_manifest(uri, change)
    with pytest.raises((UnsupportedError, CorruptFileError), match="9"):
        lance.dataset(uri).to_table()


@pytest.mark.parametrize("bit", [20, 33, 40, 63])
def test_unknown_feature_flag(uri: str, bit: int) -> None:
    edit_manifest(uri, lambda manifest: setattr(manifest, "reader_feature_flags", 1 << bit))
    before = snapshot(Path(uri))
    for read in (*readers(uri), lambda: lance.write_dataset(TABLE, uri, mode="append")):
        fails(UnsupportedError, read, "feature")
    assert snapshot(Path(uri)) == before


def test_unknown_writer_feature_flag(uri: str) -> None:
    edit_manifest(uri, lambda manifest: setattr(manifest, "writer_feature_flags", 1 << 40))
    before = snapshot(Path(uri))
    assert lance.dataset(uri).to_table().equals(TABLE)
    fails(UnsupportedError, lambda: lance.write_dataset(TABLE, uri, mode="append"), "feature")
    fails(UnsupportedError, lambda: lance.dataset(uri).delete("number = 3"), "feature")
    assert snapshot(Path(uri)) == before


@pytest.mark.parametrize("path", ["../../secret.lance", "/etc/passwd", "a/../../../b.lance", "..", "x\0y"])
def test_path_that_leaves_the_dataset(uri: str, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.lance").write_bytes(data_file(uri).read_bytes())

    def change(manifest: table_pb2.Manifest) -> None:
        manifest.fragments[0].files[0].path = path

    edit_manifest(uri, change)
    before = snapshot(tmp_path)
    for read in readers(uri):
        fails(CorruptFileError, read)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("rows", [0, 99, 101, 2**32, 2**60, 2**64 - 1])
def test_wrong_row_count_in_the_manifest(uri: str, rows: int) -> None:
    edit_manifest(uri, lambda manifest: setattr(manifest.fragments[0], "physical_rows", rows))
    if rows == 0:  # 0 means unknown: the file has the number of rows
        assert lance.dataset(uri).to_table().equals(TABLE)
        return
    for read in readers(uri):
        fails(CorruptFileError, read)


@pytest.mark.parametrize("index", [2, 2**31 - 1])
def test_column_index_out_of_range(uri: str, index: int) -> None:
    def change(manifest: table_pb2.Manifest) -> None:
        manifest.fragments[0].files[0].column_indices[0] = index

    edit_manifest(uri, change)
    for read in readers(uri):
        fails(CorruptFileError, read, f"column {index}", "has 2 columns")


def test_column_of_another_type(uri: str) -> None:
    def change(manifest: table_pb2.Manifest) -> None:
        manifest.fragments[0].files[0].column_indices[:] = [1, 0]

    edit_manifest(uri, change)
    for read in readers(uri):
        fails(CorruptFileError, read, "column 1", "'number'", "page 0")


# -- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unchanged")
def test_append_with_another_schema(uri: str) -> None:
    def append(table: pa.Table) -> Callable[[], Any]:
        return lambda: lance.write_dataset(table, uri, mode="append")

    number, text = TABLE["number"], TABLE["text"]
    fails(SchemaError, append(pa.table({"number": number, "words": text})), "words")
    fails(SchemaError, append(pa.table({"number": text, "text": text})), "number", "string", "int64")
    fails(SchemaError, append(TABLE.append_column("extra", text)), "extra")
    fails(SchemaError, append(pa.table([number, number, text], names=["number", "number", "text"])), "number", "twice")


@pytest.mark.usefixtures("unchanged")
def test_create_over_a_dataset(uri: str) -> None:
    fails(AlreadyExistsError, lambda: lance.write_dataset(TABLE, uri), "already exists", "good.lance")


@pytest.mark.usefixtures("unchanged")
def test_unknown_column(uri: str) -> None:
    dataset = lance.dataset(uri)
    for action in (
        lambda: dataset.to_table(columns=["nubmer"]),
        lambda: dataset.take([1], columns=["nubmer"]),
        lambda: list(dataset.to_batches(columns=["nubmer"])),
        lambda: dataset.to_table(filter="nubmer = 3"),
        lambda: dataset.delete("nubmer = 3"),
    ):
        fails(FieldNotFoundError, action, "nubmer", "did you mean 'number'")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("row", [100, -1, 2**31, 2**63, 2**64, -(2**63)])
def test_row_out_of_range(uri: str, row: int) -> None:
    dataset = lance.dataset(uri)
    fails(RowIndexError, lambda: dataset.take([3, row]), str(row))


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    ("text", "position"), [("number >", 8), ("number = = 3", 9), ("(number = 3", 11), ("number ! 3", 7)]
)
def test_malformed_filter(uri: str, text: str, position: int) -> None:
    dataset = lance.dataset(uri)
    for action in (
        lambda: dataset.to_table(filter=text),
        lambda: list(dataset.to_batches(filter=text)),
        lambda: dataset.count_rows(text),
        lambda: dataset.delete(text),
    ):
        fails(FilterError, action, f"position {position}", text)


@pytest.mark.usefixtures("unchanged")
def test_types_that_cannot_be_stored(uri: str) -> None:
    for array in (
        pa.array([None], pa.month_day_nano_interval()),
        pa.array([["a"]], pa.list_(pa.string(), 1)),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    ):
        table = pa.table({"odd": array})
        fails(UnsupportedError, lambda table=table: lance.write_dataset(table, uri, mode="overwrite"), "'odd'")


@pytest.mark.usefixtures("unchanged")
def test_types_that_a_version_cannot_store(uri: str) -> None:
    pairs = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    structs = pa.array([[{"a": 1}]], pa.list_(pa.struct([("a", pa.int64())]), 1))
    cases = [("2.0", pa.array([{"a": 1}, None])), *((v, array) for v in ("2.0", "2.1") for array in (pairs, structs))]
    for version, array in cases:
        table = pa.table({"odd": array})

        def write(table: pa.Table = table, version: str = version) -> None:
            lance.write_dataset(table, uri, mode="overwrite", data_storage_version=version)

        fails(UnsupportedError, write, "'odd'", version)


@pytest.mark.usefixtures("unchanged")
def test_nesting_too_deep_to_be_read_back(uri: str) -> None:
    deep = pa.array([1])
    for _ in range(140):
        deep = pa.StructArray.from_arrays([deep], ["x"])
    table = pa.table({"deep": deep})
    fails(UnsupportedError, lambda: lance.write_dataset(table, uri, mode="overwrite"), "'deep'", "nested")


@pytest.mark.usefixtures("unchanged")
def test_arrays_that_are_not_valid(uri: str) -> None:
    decreasing = pa.array([0, 5, 2], pa.int32()).buffers()[1]
    text = pa.Array.from_buffers(pa.string(), 2, [None, decreasing, pa.py_buffer(b"abcdefgh")])
    lists = pa.Array.from_buffers(pa.list_(pa.int64()), 2, [None, decreasing], children=[pa.array(range(9))])
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.array([0, 1, 3], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe\xfd")]
    )
    for array in (text, lists, broken):
        table = pa.table({"odd": array})
        fails(SchemaError, lambda table=table: lance.write_dataset(table, uri, mode="overwrite"), "'odd'")


# -- files that change while they are open -----------------------------------------------------------------------

SHRINK = """
import os, sys
import lance_dataset as lance
from pathlib import Path
uri = sys.argv[1]
dataset = lance.dataset(uri)
dataset.take([1])
[file] = Path(uri, "data").iterdir()
os.truncate(file, 4096)
try:
    print(dataset.to_table().num_rows)
except lance.LanceError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def long_uri(tmp_path: Path) -> str:
    path = str(tmp_path / "long.lance")
    lance.write_dataset(pa.table({"number": range(200_000), "text": ["some text"] * 200_000}), path)
    return path


def shrink(uri: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SHRINK, uri],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_file_that_shrinks_while_open_with_plain_reads(long_uri: str) -> None:
    done = shrink(long_uri, LANCE_MMAP="0")
    assert done.returncode == 0, done.stderr
    assert "CorruptFileError" in done.stdout
    assert "shrank" in done.stdout
    assert ".lance" in done.stdout


def test_file_that_shrinks_while_mapped(long_uri: str) -> None:
    """A process that reads a mapped data file while another program cuts it succeeds or ends with SIGBUS."""
    done = shrink(long_uri)
    assert done.returncode in (0, -signal.SIGBUS)


def test_file_that_shrank_before_it_was_opened(long_uri: str) -> None:
    [file] = Path(long_uri, "data").iterdir()
    os.truncate(file, 4096)
    fails(CorruptFileError, lambda: lance.dataset(long_uri).to_table(), file.name, "4096")
