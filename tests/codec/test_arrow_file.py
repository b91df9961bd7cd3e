"""Tests of the places of a batch in an Arrow file, compared with what pyarrow reads there."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest

from lancecodec import arrow_file

TABLE = pa.table({"a": pa.array([1, None, 3], pa.uint32()), "b": pa.array([1.5, 2.5, 3.5])})


def stored(table: pa.Table, codec: str | None) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_plain_buffers() -> None:
    data = stored(TABLE, None)
    found = arrow_file.only_batch(data)
    assert found is not None
    _, rows, codec, nulls, places = found
    assert (rows, codec, nulls) == (3, -1, [1, 0])
    start, length = places[3]
    assert np.frombuffer(data[start : start + length], np.float64).tolist() == [1.5, 2.5, 3.5]
    assert places[2][1] == 0


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_codecs(codec: str) -> None:
    found = arrow_file.only_batch(stored(TABLE, codec))
    assert found is not None
    assert found[2] == ["lz4", "zstd"].index(codec)


@pytest.mark.parametrize(
    "table",
    [
        TABLE.slice(0, 0),
        pa.concat_tables([TABLE, TABLE]),
        pa.table({"t": ["x"]}),
        pa.table({"d": pa.array(["x", "y"]).dictionary_encode()}),
        pa.table({f"c{i}": [1] for i in range(17)}),
    ],
    ids=["no batch", "two batches", "text", "dictionary", "many columns"],
)
def test_other_forms(table: pa.Table) -> None:
    assert arrow_file.only_batch(stored(table, None)) is None


def test_damage() -> None:
    """Whatever is found lies within the file."""
    data, rng = stored(TABLE, "zstd"), np.random.default_rng(3)
    for size in range(len(data)):
        assert arrow_file.only_batch(data[:size]) is None
    for _ in range(5000):
        damaged = bytearray(data)
        for place in rng.integers(0, len(data), rng.integers(1, 5)):
            damaged[place] = rng.integers(0, 256)
        found = arrow_file.only_batch(damaged)
        if found is not None:
            assert all(start >= 0 and length >= 0 and start + length <= len(data) for start, length in found[4])
            assert 0 < found[0] <= len(data)
