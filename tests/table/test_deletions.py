"""Tests of deletion files: encoding, decoding, and damaged files."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyroaring
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_dataset.errors import CorruptFileError, LanceError, MissingFileError
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.deletions import decode_deletions, encode_deletions, read_deletions, write_deletions
from lance_dataset.table.fragment import DeletionFile, DeletionFileType, Fragment
from lance_dataset.table.manifest import BasePath
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.roaring import decode_bitmap, encode_bitmap

ARROW, BITMAP = DeletionFileType.ARROW_ARRAY, DeletionFileType.BITMAP
sets = st.one_of(
    st.sets(st.integers(0, 2**20 - 1), max_size=200),
    st.tuples(st.integers(0, 2**19), st.integers(0, 200_000), st.integers(1, 7)).map(
        lambda item: set(range(item[0], item[0] + item[1], item[2]))
    ),
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3a30000001000000000001001000000000000900", [0, 9]),
        ("3b3000000100000600010002000600", list(range(2, 9))),
        ("3a300000010000000000020010000000000001000200", [0, 1, 2]),
        ("3b3000000100000300010000000300", [0, 1, 2, 3]),
        ("3a30000000000000", []),
    ],
)
def test_golden_bitmaps(text: str, values: list[int]) -> None:
    assert decode_bitmap(bytes.fromhex(text), 10, "x").tolist() == values
    assert decode_bitmap(bytes.fromhex(text) + b"tail", 10, "x").tolist() == values


@settings(max_examples=60, deadline=None)
@given(sets, st.booleans())
def test_bitmaps_against_croaring(values: set[int], runs: bool) -> None:
    bitmap = pyroaring.BitMap(values)
    if runs:
        bitmap.run_optimize()
    expected = np.array(sorted(values), np.uint32)
    assert (decode_bitmap(bitmap.serialize(), 2**21, "x") == expected).all()
    assert set(pyroaring.BitMap.deserialize(encode_bitmap(expected))) == values
    with pytest.raises(CorruptFileError):
        decode_bitmap(bitmap.serialize()[:-1], 2**21, "x")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_deletion_files(data: st.DataObject) -> None:
    file_type = data.draw(st.sampled_from([ARROW, BITMAP]))
    values = np.arange(0, 20_000, data.draw(st.sampled_from([1, 3, 40])), dtype=np.uint32)
    content = bytearray(encode_deletions(values, file_type))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, min(len(content), 400) - 1))] = data.draw(st.integers(0, 255))
    try:
        offsets = decode_deletions(bytes(content), file_type, 20_000, "x")
    except LanceError:
        return
    assert offsets.dtype == np.uint32
    assert (np.diff(offsets.astype(np.int64)) > 0).all()
    assert len(offsets) == 0 or offsets[-1] < 20_000


def test_huge_claims_allocate_nothing() -> None:
    full_run = bytes.fromhex("01000000ffff")
    count = 60_000
    keys = b"".join(key.to_bytes(2, "little") + b"\xff\xff" for key in range(count))
    cookie = (0x303B | (count - 1) << 16).to_bytes(4, "little")
    data = cookie + b"\xff" * ((count + 7) // 8) + keys + bytes(4 * count) + full_run * count
    with pytest.raises(CorruptFileError, match="claims"):
        decode_bitmap(data, 1_000_000, "x")


@pytest.mark.parametrize(("count", "suffix"), [(1, "arrow"), (5_000, "arrow"), (5_001, "bin"), (70_000, "bin")])
def test_round_trip(count: int, suffix: str) -> None:
    store = MemoryStore()
    offsets = np.random.default_rng(0).permutation(100_000)[:count]
    file = write_deletions(store, "/t", 3, 8, np.concatenate([offsets, offsets[:1]]))
    assert file.num_deleted_rows == count
    assert store.exists(f"/t/_deletions/3-8-{file.id}.{suffix}")
    fragment = Fragment(3, (), file, physical_rows=100_000)
    assert (read_deletions(FileLocator(store, "/t"), fragment) == np.sort(offsets)).all()
    with pytest.raises(CorruptFileError):
        read_deletions(FileLocator(store, "/t"), fragment, int(offsets.max()))
    wrong = Fragment(3, (), DeletionFile(file.file_type, 8, file.id, count + 1), physical_rows=100_000)
    with pytest.raises(CorruptFileError, match="its manifest says"):
        read_deletions(FileLocator(store, "/t"), wrong)
    store.delete_tree("/t")
    with pytest.raises(MissingFileError):
        read_deletions(FileLocator(store, "/t"), fragment)


def _arrow(schema: pa.Schema, *columns: list, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for column in columns:
            writer.write_batch(pa.record_batch([pa.array(column, schema.field(0).type)], schema=schema))
    return sink.getvalue()


def _schema(name: str = "row_id", kind: pa.DataType | None = None, nullable: bool = False) -> pa.Schema:
    return pa.schema([pa.field(name, kind or pa.uint32(), nullable=nullable)])


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_arrow_files(compression: str | None) -> None:
    content = _arrow(_schema(), [5, 1, 5, 3] * 500, compression=compression)
    assert decode_deletions(content, ARROW, 6, "x").tolist() == [1, 3, 5]
    assert decode_deletions(_arrow(_schema(), [], compression=compression), ARROW, 6, "x").tolist() == []


@pytest.mark.parametrize(
    "content",
    [
        _arrow(_schema(nullable=True), [1]),
        _arrow(_schema("rowid"), [1]),
        _arrow(_schema(kind=pa.int32()), [1]),
        _arrow(_schema()),
        _arrow(_schema(), [1], [2]),
        _arrow(_schema(), [10]),
        b"",
        b"ARROW1",
    ],
)
def test_wrong_arrow_files(content: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_deletions(content, ARROW, 10, "x")


def test_deletion_files_in_base_paths(tmp_path) -> None:  # type: ignore[no-untyped-def]
    locator = FileLocator(
        MemoryStore(),
        "/t",
        [BasePath(0, str(tmp_path / "clone"), is_dataset_root=True), BasePath(4, f"file://{tmp_path}/flat")],
    )
    file = DeletionFile(ARROW, 1, 2)
    assert locator.deletion_file(7, file)[1] == "/t/_deletions/7-1-2.arrow"
    in_base = locator.deletion_file(7, DeletionFile(ARROW, 1, 2, base_id=0))
    assert in_base[1] == f"{tmp_path}/clone/_deletions/7-1-2.arrow"
    assert locator.deletion_file(7, DeletionFile(ARROW, 1, 2, base_id=4))[1] == f"{tmp_path}/flat/7-1-2.arrow"
    with pytest.raises(CorruptFileError, match="base path 5"):
        locator.deletion_file(7, DeletionFile(ARROW, 1, 2, base_id=5))
