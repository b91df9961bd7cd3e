"""Tests of columns encoded on several threads: the file equals that of one thread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_dataset.errors import SchemaError
from lance_dataset.file.standalone import LanceFileReader, LanceFileWriter

ROWS = 700_000
BATCH = 100_000


def _table() -> pa.Table:
    rng = np.random.default_rng(3)
    numbers = rng.integers(0, 2**40, ROWS)
    return pa.table(
        {
            "wide": pa.array(numbers),
            "few": pa.array(rng.integers(0, 100, ROWS), pa.int8()),
            "words": pa.array(np.char.add("word number ", (numbers % 50_021).astype(str))),
            "null": pa.array(numbers, mask=numbers % 3 == 0),
            "list": pa.ListArray.from_arrays(
                pa.array(np.arange(0, 2 * ROWS + 1, 2), pa.int32()), pa.array(rng.random(2 * ROWS))
            ),
        }
    )


def _write(path: Path, table: pa.Table, version: str) -> bytes:
    with LanceFileWriter(str(path), table.schema, version=version) as writer:
        for batch in table.to_batches(max_chunksize=BATCH):
            writer.write_batch(batch)
    return path.read_bytes()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_files_do_not_depend_on_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    table = _table()
    monkeypatch.setenv("LANCE_CPU_THREADS", "1")
    alone = _write(tmp_path / "alone.lance", table, version)
    monkeypatch.setenv("LANCE_CPU_THREADS", "4")
    together = [_write(tmp_path / f"together{number}.lance", table, version) for number in range(2)]
    assert together[0] == together[1]
    assert len(together[0]) == len(alone)
    assert LanceFileReader(str(tmp_path / "together0.lance")).read_all().to_table().equals(table)
    assert LanceFileReader(str(tmp_path / "alone.lance")).read_all().to_table().equals(table)


def test_an_error_on_a_thread_reaches_the_caller_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_CPU_THREADS", "4")
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.int64(), nullable=False), ("c", pa.int64())])
    good, bad = pa.array(np.arange(ROWS)), pa.array([None] + [1] * (ROWS - 1), pa.int64())
    batch = pa.RecordBatch.from_arrays([good, bad, good], schema=schema)
    path = tmp_path / "bad.lance"
    writer = LanceFileWriter(str(path), schema, version="2.2")

    def write() -> None:
        for _ in range(4):
            writer.write_batch(batch)
        writer.close()

    with pytest.raises(SchemaError, match="'b' is declared not nullable"):
        write()
    writer.abort()
    assert not path.exists()


def test_blobs_are_written_in_their_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_CPU_THREADS", "4")
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([("a", pa.int64()), blob, ("b", pa.float64())])
    rng = np.random.default_rng(4)
    arrays = [
        pa.array(np.arange(300_000)),
        pa.array([b"x" * 20] * 300_000, pa.large_binary()),
        pa.array(rng.random(300_000)),
    ]
    table = pa.Table.from_arrays(arrays, schema=schema)
    first = _write(tmp_path / "one.lance", table, "2.1")
    assert first == _write(tmp_path / "two.lance", table, "2.1")
    read = LanceFileReader(str(tmp_path / "one.lance")).read_all().to_table()
    assert read["a"].equals(table["a"])
    assert read["b"].equals(table["b"])
