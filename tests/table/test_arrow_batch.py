"""Tests of columns of Arrow files: read as pyarrow reads them, or refused."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.table import arrow_batch
from lance_dataset.table.arrow_batch import read_column
from lancecodec import arrow_file

SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])


def stored(values: Any, codec: str | None, schema: pa.Schema = SCHEMA, batches: int = 1, alignment: int = 8) -> bytes:
    """Return an Arrow file, whose first message may be as far from the start as other writers place it."""
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        for _ in range(batches):
            writer.write_batch(pa.record_batch([pa.array(values, schema.field(0).type)], schema=schema))
    return sink.getvalue()


@given(st.lists(st.integers(0, 2**32 - 1), max_size=2000), st.sampled_from([None, "zstd", "lz4"]))
def test_round_trips(values: list[int], codec: str | None) -> None:
    data = stored(values, codec)
    assert read_column(data, SCHEMA, "f").tolist() == values
    found = arrow_file.only_batch(data)
    assert found is not None
    stop, rows, number, nulls, places = found
    assert pa.ipc.read_schema(pa.py_buffer(data[8:stop])).equals(SCHEMA)
    assert (rows, nulls, len(places)) == (len(values), [0], 2)
    assert number == {None: -1, "lz4": 0, "zstd": 1}[codec]


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_the_usual_form_is_read_without_pyarrow(codec: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    data = stored(range(1000), codec)
    if codec != "lz4":
        monkeypatch.setattr(arrow_batch, "_read_batch", None)
    assert read_column(data, SCHEMA, "f").tolist() == list(range(1000))


@pytest.mark.parametrize("codec", [None, "zstd"])
def test_damaged_files(codec: str | None) -> None:
    """A damaged file has the values that pyarrow finds in it, other values of the same number, or an error."""
    data = stored(np.arange(0, 3000, 3), codec)
    rng = np.random.default_rng(11)
    for _ in range(1500):
        damaged = bytearray(data)
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            damaged[place] = rng.integers(0, 256)
        if rng.random() < 0.2:
            del damaged[rng.integers(0, len(damaged)) :]
        try:
            found = read_column(bytes(damaged), SCHEMA, "f")
        except LanceError:
            continue
        assert found.dtype == np.uint32
        assert len(found) <= len(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "invalid Arrow file"),
        (stored([1], None)[:-1], "invalid Arrow file"),
        (stored([1], "zstd", batches=2), "should have one batch"),
        (stored([1], None, pa.schema([pa.field("row_id", pa.int32(), nullable=False)])), "should have one batch"),
        (stored([1], None, pa.schema([pa.field("other", pa.uint32(), nullable=False)])), "should have one batch"),
        (stored([1], None, pa.schema([pa.field("row_id", pa.uint32())])), "should have one batch"),
    ],
    ids=["empty", "cut", "batches", "type", "name", "nullable"],
)
def test_other_files(data: bytes, words: str) -> None:
    with pytest.raises(CorruptFileError, match=words):
        read_column(data, SCHEMA, "f")
