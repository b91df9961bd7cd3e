"""Tests of small files that stand for much memory: they are refused before the memory is allocated.

Large tables of real programs still open.
"""

from __future__ import annotations

import io
import struct
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyroaring
import pytest

import lance_dataset
from lance_dataset import limits
from lance_dataset._proto import file_pb2, rowids_pb2, table_pb2
from lance_dataset.errors import CorruptFileError, MemoryLimitError
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.text import fst_reader
from lance_dataset.index.text.fst_writer import write_fst
from lance_dataset.table.deletions import decode_deletions
from lance_dataset.table.fragment import DeletionFileType
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.row_versions import RowVersions
from lance_dataset.table.manifest import decode_manifest
from lance_dataset.table.overlays import Overlay
from lance_dataset.table.roaring import decode_bitmap, decode_treemap, encode_bitmap, encode_treemap
from lance_dataset.table.transaction import Transaction

MB = 1 << 20
_pools: list[pa.MemoryPool] = []


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Check that no more than `size` bytes are allocated inside by Python, NumPy and Arrow together."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    _pools.append(pool)  # a buffer may outlive the test
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
    assert peak <= size, f"{peak:,} bytes"


# -- manifests ---------------------------------------------------------------------------------------------------


def manifest(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message + struct.pack("<qHH4s", 0, 0, 2, b"LANC")


def varint(value: int) -> bytes:
    return bytes([value & 0x7F | 0x80]) + varint(value >> 7) if value > 0x7F else bytes([value])


def inside(tag: int, data: bytes) -> bytes:
    return varint(tag << 3 | 2) + varint(len(data)) + data


MANIFESTS: dict[str, bytes] = {
    "empty fragments": b"\x12\x00" * 4_000_000,
    "files of a fragment": inside(2, b"\x12\x00" * 4_000_000),
    "files of fragments": inside(2, b"\x12\x00" * 2_000) * 2_000,
    "row ids of a fragment": inside(2, inside(2, b"\x2a\x02\x0a\x00" * 100) + b"\x22\x00" * 4_000_000),
    "numbers of a file": inside(2, inside(2, inside(2, b"\x01" * 8_000_000))),
    "schema fields": b"\x0a\x00" * 4_000_000,
    "base paths": b"\x92\x01\x00" * 3_000_000,
    "settings": b"\x82\x01\x00" * 3_000_000,
    "metadata of the schema": b"\x2a\x00" * 4_000_000,
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_manifests(kind: str) -> None:
    data = manifest(MANIFESTS[kind])
    with at_most(64 * MB + 4 * len(data)), pytest.raises((MemoryLimitError, CorruptFileError), match=r"1\.manifest"):
        decode_manifest(data, "1.manifest").fragment_list[0]


def test_deep_schemas() -> None:
    fields = [file_pb2.Field(id=at, name="a", parent_id=at - 1, logical_type="struct") for at in range(20_000)]
    data = manifest(table_pb2.Manifest(fields=fields).SerializeToString())
    with pytest.raises((MemoryLimitError, CorruptFileError), match=r"1\.manifest"):
        decode_manifest(data, "1.manifest")


def test_a_manifest_of_many_fragments_opens(tmp_path: Path) -> None:
    """A table of 200,000 fragments: the first one is as the reference wrote it, the others have other names."""
    lance.write_dataset(pa.table({"a": range(10), "b": range(10)}), tmp_path / "t")
    name = next((tmp_path / "t/_versions").glob("*.manifest"))
    data = name.read_bytes()
    (position,) = struct.unpack_from("<q", data, len(data) - 16)
    message = table_pb2.Manifest.FromString(data[position + 4 : -16])
    fragment = table_pb2.DataFragment.FromString(message.fragments[0].SerializeToString())
    del message.fragments[:]
    size, parts = 200_000, []
    for number in range(size):
        fragment.id = number
        fragment.files[0].path = f"{uuid.UUID(int=number).hex}.lance"
        parts.append(inside(2, fragment.SerializeToString()))
    message.max_fragment_id = size - 1
    message.ClearField("transaction_section")
    message.ClearField("index_section")
    encoded = b"".join([*parts, message.SerializeToString()])
    name.write_bytes(manifest(encoded))
    opened = lance_dataset.dataset(tmp_path / "t")
    assert opened.count_rows() == 10 * size
    assert opened.get_fragment(size - 1).fragment_id == size - 1
    assert lance.dataset(tmp_path / "t").count_rows() == 10 * size


@pytest.mark.parametrize(
    "data",
    [inside(100, inside(1, b"\x12\x00" * 4_000_000)), b"\xa2\x06\x00" * 3_000_000, b"\x22\x00" * 4_000_000],
    ids=["append", "operations", "properties"],
)
def test_transactions(data: bytes) -> None:
    with at_most(64 * MB + 4 * len(data)):
        try:
            Transaction.decode(data, "1.txn")
        except (MemoryLimitError, CorruptFileError) as error:
            assert "1.txn" in str(error)  # noqa: PT017 - unknown fields are accepted


# -- deleted rows ------------------------------------------------------------------------------------------------


def arrow_file(rows: int, compression: str | None = "zstd") -> bytes:
    sink = io.BytesIO()
    schema = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(pa.record_batch([pa.array(np.zeros(rows, np.uint32))], schema=schema))
    return sink.getvalue()


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_deletions(compression: str) -> None:
    data = arrow_file(40_000_000, compression)
    with at_most(MB), pytest.raises(MemoryLimitError, match=r"a\.arrow: its batch of 40,000,000 rows"):
        decode_deletions(data, DeletionFileType.ARROW_ARRAY, 1 << 31, "a.arrow")


@pytest.mark.parametrize("size", [1 << 26, 1 << 40, (1 << 63) - 1, -2])
def test_forged_sizes_of_deletions(size: int) -> None:
    data = arrow_file(1000)
    forged = data.replace(struct.pack("<q", 4000), struct.pack("<q", size), 1)
    assert forged != data
    with at_most(MB), pytest.raises((MemoryLimitError, CorruptFileError), match=r"a\.arrow"):
        decode_deletions(forged, DeletionFileType.ARROW_ARRAY, 1 << 31, "a.arrow")


def every_value(stop: int) -> bytes:
    bitmap = pyroaring.BitMap()
    bitmap.add_range(0, stop)
    bitmap.run_optimize()
    return bitmap.serialize()


def test_bitmaps_of_runs() -> None:
    data = every_value(1 << 32)
    assert len(data) < MB
    with at_most(MB), pytest.raises(MemoryLimitError, match=r"a\.bin: a bitmap needs"):
        decode_deletions(data, DeletionFileType.BITMAP, 1 << 32, "a.bin")
    with pytest.raises(CorruptFileError, match="at most 1000 are possible"):
        decode_deletions(data, DeletionFileType.BITMAP, 1000, "a.bin")


def test_many_deleted_rows_of_a_large_fragment() -> None:
    """Rows that take bytes in the files of their fragment may be deleted."""
    data, rows = every_value(6_000_000), 6_000_000
    with pytest.raises(MemoryLimitError):
        decode_deletions(data, DeletionFileType.BITMAP, rows, "a.bin")
    found = decode_deletions(data, DeletionFileType.BITMAP, rows, "a.bin", bytes_read=lambda: 8 * rows)
    assert len(found) == rows


@pytest.mark.parametrize("kind", ["arrow", "bitmap"])
def test_a_dataset_with_a_bomb(kind: str, tmp_path: Path) -> None:
    """20 million equal rows are a file of a few kilobytes, and so are the deletions of most of them."""
    path, rows = tmp_path / "t", 20_000_000
    values = np.zeros(rows, np.int8)
    values[:10] = 1
    written = lance.write_dataset(pa.table({"a": values}), path, max_rows_per_file=rows, data_storage_version="2.2")
    written.delete("a = 1" if kind == "arrow" else "a = 0")
    file = next((path / "_deletions").iterdir())
    if kind == "arrow":
        file.write_bytes(arrow_file(30_000_000))
    opened = lance_dataset.dataset(path)
    with at_most(80 * MB), pytest.raises(MemoryLimitError, match=file.name):
        opened.take([5])


def test_rows_outside_of_the_fragment(tmp_path: Path) -> None:
    written = lance.write_dataset(pa.table({"a": range(100)}), tmp_path / "t")
    written.delete("a < 3")
    file = next((tmp_path / "t/_deletions").iterdir())
    sink = io.BytesIO()
    schema = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array([1, 2, 100], pa.uint32())], schema=schema))
    file.write_bytes(sink.getvalue())
    with pytest.raises(CorruptFileError, match=f"{file.name}.*row 100 of a fragment of 100 rows"):
        lance_dataset.dataset(tmp_path / "t").to_table()


# -- row ids, overlays, indices ----------------------------------------------------------------------------------


def test_row_ids() -> None:
    bits = b"\x55" * (4 * MB)
    segment = {"range_with_bitmap": {"start": 0, "end": 8 * len(bits), "bitmap": bits}}
    data = rowids_pb2.RowIdSequence(segments=[segment]).SerializeToString()
    ids = RowIds.decode(data, 4 * len(bits), "fragment 1")
    assert len(ids) == 4 * len(bits)
    with at_most(MB), pytest.raises(MemoryLimitError, match="row ids"):
        ids.take(np.array([5]))
    empty = rowids_pb2.RowIdSequence(segments=[{"range": {}}]).SerializeToString() * 2_000_000
    with at_most(64 * MB + 4 * len(empty)), pytest.raises(MemoryLimitError, match="fragment 1: row ids"):
        RowIds.decode(empty, 10, "fragment 1")
    with at_most(64 * MB + 4 * len(empty)), pytest.raises(MemoryLimitError, match="fragment 1: row versions"):
        RowVersions.decode(b"\x0a\x00" * 2_000_000, 10, "fragment 1")


def test_runs_of_a_treemap() -> None:
    values = np.arange(0, 1 << 24, 2, dtype=np.uint32)
    data = encode_treemap({7: encode_bitmap(values)})
    with at_most(128 * MB), pytest.raises(MemoryLimitError, match="group: a 64-bit bitmap"):
        decode_treemap(data, {7: 1 << 24}, "group")
    found = decode_treemap(encode_treemap({7: every_value(1 << 32)}), {7: 1 << 32}, "group")
    assert found[7][1].tolist() == [1 << 32]


def test_overlays() -> None:
    bitmap = encode_bitmap(np.arange(100_000, dtype=np.uint32))
    file = {"path": "x.lance", "fields": range(10_000), "column_indices": range(10_000)}
    data = table_pb2.DataOverlayFile(data_file=file, shared_offset_bitmap=bitmap).SerializeToString()
    with at_most(8 * MB):
        assert len(Overlay.decode(data).offsets) == 10_000
    many = table_pb2.DataOverlayFile(data_file=file, field_coverage={"offset_bitmaps": [bitmap] * 10_000})
    with at_most(128 * MB), pytest.raises(MemoryLimitError, match=r"x\.lance"):
        Overlay.decode(many.SerializeToString())


def test_dictionaries_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [b"a" * (1000 + depth) + bytes([last]) for depth in range(20) for last in range(98, 200)]
    entries = [(word, number) for number, word in enumerate(sorted(words))]
    data = write_fst(entries)
    assert list(fst_reader.read_fst(data, len(words), "tokens")) == entries
    for module in (limits, fst_reader):
        monkeypatch.setattr(module, "BASE_MEMORY", MB)
    with pytest.raises(MemoryLimitError, match="tokens: a dictionary of words"):
        list(fst_reader.read_fst(data, len(words), "tokens"))


def test_json_of_indices() -> None:
    with at_most(16 * MB), pytest.raises(MemoryLimitError):
        parse_json("[" + "[]," * 1_500_000 + "0]")
    assert parse_json("[1, [2]]") == [1, [2]]


def test_more_memory_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    decode: Callable[[], np.ndarray] = lambda: decode_bitmap(every_value(20_000_000), 1 << 32, "a.bin")  # noqa: E731
    with pytest.raises(MemoryLimitError, match="LANCE_METADATA_MEMORY"):
        decode()
    monkeypatch.setenv("LANCE_METADATA_MEMORY", str(100 * MB))
    assert len(decode()) == 20_000_000
