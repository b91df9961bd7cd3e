"""Tests of files of 2.0 with every encoding option, exchanged with old releases."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import lance
import pyarrow as pa
import pytest
from support.files.file_parts import FileParts, take_apart_file
from support.tables.equality import assert_same

import lance_dataset

PROJECT = Path(__file__).parents[3]
HERE = Path(__file__).parent
RELEASES = ["0.20.0", "1.0.0"]
ROWS = 700
Run: TypeAlias = Callable[..., None]


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def run(release: str) -> Run:
    """Run a script of this folder in the old release."""
    home = os.environ.get(f"PYLANCE_{release.replace('.', '_')}", str(PROJECT / f".venv-pylance-{release}"))
    python = Path(home, "bin", "python")
    if not python.exists():
        pytest.fail(f"pylance {release} is not installed in {home}; run scripts/old_releases.sh")

    def call(script: str, *arguments: object) -> None:
        command = [str(python), str(HERE / script), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-4000:]

    return call


def asked(**options: str) -> dict[str, str]:
    return {f"lance-encoding:{name.replace('_', '-')}": value for name, value in options.items()}


WORDS = [f"the word of row {row * 7919 % 5003}" if row % 7 else None for row in range(ROWS)]
FEW = [f"word {row % 20}" if row % 3 else None for row in range(ROWS)]
PAIR = pa.struct([("x", pa.int8()), ("y", pa.float64())])
VECTORS = pa.struct([("x", pa.int16()), ("v", pa.list_(pa.float32(), 4))])
BLOBS = [b"%d" % row * (row % 50) if row % 3 else None for row in range(ROWS)]


def columns(compressions: list[str]) -> pa.Table:
    """Return rows with all options, but only the given schemes of compression."""
    made = {
        pa.field("id", pa.int64()): pa.array(range(ROWS)),
        pa.field("few", pa.string()): pa.array(FEW),
        pa.field("null", pa.string()): pa.nulls(ROWS, pa.string()),
        pa.field("null_binary", pa.large_binary()): pa.nulls(ROWS, pa.large_binary()),
        pa.field("pair", PAIR, metadata=asked(packed="true")): pa.array(
            [{"x": row % 100, "y": row / 2} for row in range(ROWS)], PAIR
        ),
        pa.field("old_pair", PAIR, metadata={"packed": "true"}): pa.array(
            [{"x": row % 100, "y": row / 2} for row in range(ROWS)], PAIR
        ),
        pa.field("vectors", VECTORS, metadata=asked(packed="true")): pa.array(
            [{"x": row, "v": [row, 1, 2, 3]} for row in range(ROWS)], VECTORS
        ),
        pa.field("dictionary", pa.dictionary(pa.int16(), pa.string())): pa.array(FEW).dictionary_encode(),
    }
    for scheme in compressions:
        for kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
            if scheme == "fsst" and kind in (pa.large_string(), pa.large_binary()):
                continue
            made[pa.field(f"{scheme} {kind}", kind, metadata=asked(compression=scheme))] = pa.array(WORDS).cast(kind)
    schema = pa.schema(list(made))
    return pa.table([column.cast(field.type) for field, column in made.items()], schema=schema)


def blob_table() -> pa.Table:
    field = pa.field("b", pa.large_binary(), metadata=asked(blob="true"))
    return pa.table(
        [pa.array(range(ROWS)), pa.array(BLOBS, pa.large_binary())],
        schema=pa.schema([pa.field("id", pa.int64()), field]),
    )


def write_ipc(table: pa.Table, path: Path) -> str:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return str(path)


def file_of(dataset: Path) -> FileParts:
    [path] = (dataset / "data").glob("*.lance")
    return take_apart_file(path)


def column_of(parts: FileParts, name: str) -> int:
    index = 0
    for field in parts.descriptor.schema.fields:
        if field.parent_id == -1:
            if field.name == name:
                return index
            index += 1
    raise AssertionError(name)


def test_we_read_what_they_write(run: Run, release: str, tmp_path: Path) -> None:
    schemes = {"0.20.0": ["zstd"], "1.0.0": ["zstd", "lz4", "none"]}[release]
    table, path = columns(schemes), tmp_path / "d"
    run("old_release.py", "write", path, write_ipc(table, tmp_path / "in"), "2.0")
    dataset = lance_dataset.dataset(path)
    assert_same(dataset.to_table(), table)
    rows = [ROWS - 1, 0, 5, 5, 300]
    assert_same(dataset.take(rows), table.take(rows))
    for name in ("pair.y", "old_pair.x", "vectors.v"):
        top, child = name.split(".")
        found = dataset.to_table(columns=[name])[name].to_pylist()
        assert found == [row[child] for row in table[top].to_pylist()]
    parts = file_of(path)
    assert parts.encoding(column_of(parts, "few")).HasField("dictionary")
    for name in ("pair", "old_pair", "vectors"):
        assert parts.encoding(column_of(parts, name)).HasField("packed_struct")
    stored = column_of(parts, "zstd string")
    assert parts.encoding(stored).binary.bytes.flat.compression.scheme == "zstd"
    page = parts.columns[stored].pages[0]
    bare = parts.data[page.buffer_offsets[1] :][:4] == b"\x28\xb5\x2f\xfd"
    assert bare == (release == "0.20.0")


def test_they_read_what_we_write(run: Run, release: str, tmp_path: Path) -> None:
    schemes = {"0.20.0": ["zstd", "fsst"], "1.0.0": ["zstd", "lz4", "none", "fsst"]}[release]
    table, path = columns(schemes), tmp_path / "d"
    lance_dataset.write_dataset(table, path, data_storage_version="2.0", max_page_bytes=4_000)
    run("old_release.py", "dump", path, tmp_path / "dump")
    for name, expected in (("rows", table), ("taken", table.take(list(range(ROWS))[::-7]))):
        assert_same(pa.ipc.open_stream(f"{tmp_path}/dump.{name}").read_all(), expected)
    assert_same(lance.dataset(str(path)).to_table(), table)
    parts = file_of(path)
    assert parts.encoding(column_of(parts, "fsst string")).HasField("fsst")
    assert parts.encoding(column_of(parts, "zstd string")).binary.bytes.flat.compression.scheme == "zstd"
    assert not parts.encoding(column_of(parts, "null")).nullable.all_nulls.ByteSize()


def test_blobs_of_either(run: Run, tmp_path: Path) -> None:
    table = blob_table()
    run("old_release.py", "write", tmp_path / "theirs", write_ipc(table, tmp_path / "in"), "2.0")
    lance_dataset.write_dataset(table, tmp_path / "ours", data_storage_version="2.0")
    rows = [row for row in range(0, ROWS, 11) if BLOBS[row] is not None]
    expected = [BLOBS[row] for row in rows]
    for name in ("theirs", "ours"):
        parts = file_of(tmp_path / name)
        assert parts.encoding(1).HasField("packed_struct")
        assert b"\x1a\x04\x0a\x02\x0a\x00" in parts.columns[1].encoding.direct.encoding
        dataset = lance_dataset.dataset(tmp_path / name)
        assert [blob.read() for blob in dataset.take_blobs("b", indices=rows)] == expected
        assert lance.dataset(str(tmp_path / name)).to_table(columns=["b"]) == dataset.to_table(columns=["b"])
        run("old_blobs.py", tmp_path / name, "b", ",".join(map(str, rows)), tmp_path / "blobs")
        assert pa.ipc.open_file(tmp_path / "blobs").read_all()["b"].to_pylist() == expected
        whole = dataset.scanner(columns=["b"], blob_handling="all_binary").to_table()["b"].to_pylist()
        assert whole == BLOBS
