"""Tests of bytes: manifests of shards, details, names, hashes, keys, filters and entries of the log."""

from __future__ import annotations

import contextlib
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.mem_wal import ShardingField as TheirField
from lance.mem_wal import ShardingSpec as TheirSpec
from lance.mem_wal import evaluate_sharding_spec as their_values

import lance_dataset
from lance_dataset import mem_wal
from lance_dataset.errors import CorruptFileError, FieldNotFoundError, InvalidInputError, UnsupportedError
from lance_dataset.memwal.bloom import key_filter, key_hashes
from lance_dataset.memwal.bucket_hash import bucket_numbers
from lance_dataset.memwal.details import MemWalDetails, encode_details
from lance_dataset.memwal.keys import encoded_keys, newest_rows
from lance_dataset.memwal.log_entries import decode_entry, encode_entry, encode_sentinel
from lance_dataset.memwal.places import bits_name, number_of
from lance_dataset.memwal.shard_manifest import ShardManifest, SsTable, decode_shard_manifest, encode_shard_manifest
from lance_dataset.memwal.sharding import unsharded_spec

SHARD = "11111111-2222-4333-8444-555555555555"
KEY = {"lance-schema:unenforced-primary-key": "true"}


def test_names() -> None:
    assert bits_name(5) == "101" + "0" * 61
    assert [number_of(bits_name(number) + ".arrow", ".arrow") for number in (1, 2, 2**63)] == [1, 2, 2**63]
    assert number_of("1" * 63 + ".arrow", ".arrow") is None
    assert number_of("2" * 64 + ".arrow", ".arrow") is None


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        (
            ShardManifest(SHARD, version=1, writer_epoch=1),
            "0801100130015a120a1011111111222243338444555555555555",
        ),
        (
            ShardManifest(SHARD, 2, 1, 2, 2, 2, (SsTable(1, "234003d5_gen_1", 131, 4, 32),)),
            "0802100118022002300242190801120e32333430303364355f67656e5f31188301200428205a120a1011111111222243338444555555555555",
        ),
    ],
)
def test_manifests(manifest: ShardManifest, text: str) -> None:
    assert encode_shard_manifest(manifest).hex() == text
    assert decode_shard_manifest(bytes.fromhex(text), "m") == manifest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("08011001", "without the id"),
        ("080110015a030a0111", "a UUID has 16"),
        ("08011001", "id"),
        ("ff", "m"),
        ("080130015a120a1011111111222243338444555555555555" + "420508011201" + "61", "next one would be"),
        ("080130025a120a1011111111222243338444555555555555" + "4206080112022e2e", "not in a folder"),
    ],
)
def test_damaged_manifests(text: str, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message):
        decode_shard_manifest(bytes.fromhex(text), "m")


def test_unknown_status() -> None:
    with pytest.raises(UnsupportedError, match="status 7"):
        decode_shard_manifest(bytes.fromhex("080130015a120a10111111112222433384445555555555557807"), "m")


def test_details() -> None:
    assert encode_details(MemWalDetails(maintain_all_indexes=True)).value.hex() == "6001"
    unsharded = MemWalDetails(1, (unsharded_spec(),), maintain_all_indexes=True)
    known = "10013a1e0801121a0a066275636b65741a09756e736861726465642a05696e7433326001"
    assert encode_details(unsharded).value.hex() == known


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.string(), pa.binary()])
def test_filters_of_many_keys(kind: pa.DataType) -> None:
    """A filter is the union of those of its keys, whether these are hashed together, with nulls, or in slices."""
    numbers = pa.array(np.arange(-9000, 9000) * 7919, pa.int32())
    texts = numbers if pa.types.is_integer(kind) else numbers.cast(pa.string())
    column = texts.cast(kind)
    parts = [np.frombuffer(key_filter([column.slice(start, 500)]), np.uint8) for start in range(0, 18000, 500)]
    whole = key_filter([column])
    assert whole == np.bitwise_or.reduce(parts).tobytes()
    assert whole == key_filter([pa.concat_arrays([column.slice(17000), column])])
    null = key_filter([pa.array([None], kind)])
    both = np.frombuffer(whole, np.uint8) | np.frombuffer(null, np.uint8)
    assert key_filter([pa.concat_arrays([column, pa.array([None], kind)])]) == both.tobytes()


def test_key_hashes() -> None:
    known = [0x7467D6524C084857, 0xD8D0C7D906895713, 0xF066DD0237EA7875]
    assert key_hashes([pa.array([1, 2, 3])]).tolist() == known


def test_encoded_keys() -> None:
    columns = [
        pa.array(["x\0y", "z", None]),
        pa.array([5, -1, None], pa.int32()),
        pa.array([7, 65535, None], pa.uint16()),
        pa.array([True, False, None]),
    ]
    first = "017800ff79000001800000000000000501000000000000000" + "70101"
    second = "017a0000017fffffffffffffff01000000000000ffff0100"
    assert [value.hex() for value in encoded_keys(columns).to_pylist()] == [first, second, "00000000"]


def test_encoded_keys_sort_like_the_key() -> None:
    random = np.random.default_rng(5)
    texts = [bytes(random.integers(0, 3, random.integers(0, 5)).astype(np.uint8)) for _ in range(5000)]
    numbers = random.integers(-(2**63), 2**63 - 1, 5000)
    encoded = encoded_keys([pa.array(texts, pa.binary()), pa.array(numbers)]).to_pylist()
    expected = sorted(range(5000), key=lambda row: (texts[row], int(numbers[row])))
    assert sorted(range(5000), key=encoded.__getitem__) == expected


def test_newest_rows() -> None:
    values = np.random.default_rng(1).integers(0, 5000, 100_000)
    last = {value: row for row, value in enumerate(values.tolist())}
    assert newest_rows(pa.array(values)).tolist() == sorted(last.values())
    assert newest_rows(pa.array([None, 1, None])).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "small", "large"),
    [
        (pa.array([1, 2, 3, -7], pa.int32()), [2, 7, 1, 7], [42, 895, 369, 607]),
        (pa.array([1, -1, 2**40]), [4, 0, 2], [324, 232, 802]),
        (pa.array([4_000_000_000], pa.uint32()), [3], [667]),
        (pa.array(["a", "b", "abcd", "héllo wörld", ""]), [1, 5, 2, 2, 0], [1, 549, 874, 18, 0]),
        (pa.array([True, False, None]), [2, 6, 0], [42, 478, 0]),
        (pa.array([1.25, 0.0, -0.0, float("nan"), -3.5], pa.float32()), [0, 6, 6, 3, 6], [584, 478, 478, 339, 30]),
        (pa.array([1.25, -0.0, float("nan"), 1e300]), [0, 4, 5, 4], [888, 764, 13, 188]),
        (pa.array([1234567890123], pa.timestamp("us")), [6], [350]),
    ],
)
def test_buckets(values: pa.Array, small: list[int], large: list[int]) -> None:
    assert bucket_numbers(values, 8).to_pylist() == small
    assert bucket_numbers(values, 1024).to_pylist() == large


def test_buckets_of_random_values(tmp_path: Path) -> None:
    """Values of every type are in the bucket in which pylance has them, also in slices."""
    random = np.random.default_rng(3)
    texts = ["".join(map(chr, random.integers(32, 900, random.integers(0, 20)))) for _ in range(3000)]
    columns = {
        "t": pa.array([None if row % 17 == 0 else text for row, text in enumerate(texts)]),
        "i": pa.array(random.integers(-(2**63), 2**63 - 1, 3000)),
        "f": pa.array(random.normal(size=3000)),
        "s": pa.array(random.integers(-(2**15), 2**15, 3000).astype(np.int16)),
    }
    table = pa.table(columns)
    lance.write_dataset(table.slice(0, 1), tmp_path / "t")
    ours, theirs = lance_dataset.dataset(tmp_path / "t").lance_schema, lance.dataset(tmp_path / "t").lance_schema
    batch = table.to_batches()[0].slice(7)
    for number, _ in enumerate(columns):
        for transform, parameters in (("bucket", {"num_buckets": "1000"}), ("identity", {}), ("unsharded", {})):
            if transform == "identity" and batch.schema.types[number] == pa.float64():
                continue
            args = ("b", [number] if transform != "unsharded" else [], transform, None, "int32", parameters)
            mine = mem_wal.evaluate_sharding_spec(batch, mem_wal.ShardingSpec(1, [mem_wal.ShardingField(*args)]), ours)
            expected = their_values(batch, TheirSpec(1, [TheirField(*args)]), theirs)
            assert mine.schema.names == expected.schema.names
            assert mine.column(0) == expected.column(0)


def test_refused_specs(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"x": [1]}), tmp_path / "t")
    batch = pa.record_batch({"x": [1]})

    def values(*args: object, **spec: object) -> None:
        fields = [mem_wal.ShardingField("f", *args)]  # type: ignore[arg-type]
        mem_wal.evaluate_sharding_spec(batch, mem_wal.ShardingSpec(1, fields), dataset.lance_schema)

    with pytest.raises(UnsupportedError, match="transform 'year'"):
        values([0], "year")
    with pytest.raises(UnsupportedError, match="expressions"):
        values([0], "identity", "x + 1")
    with pytest.raises(InvalidInputError, match="num_buckets"):
        values([0], "bucket", None, "int32", {"num_buckets": "0"})
    with pytest.raises(FieldNotFoundError, match="field id 9"):
        values([9], "identity")
    with pytest.raises(TypeError, match="RecordBatch"):
        mem_wal.evaluate_sharding_spec(pa.table({"x": [1]}), {"spec_id": 1, "fields": []}, dataset.lance_schema)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="spec_id"):
        mem_wal.evaluate_sharding_spec(batch, {}, dataset.lance_schema)


@pytest.mark.parametrize(
    "columns",
    [
        {"k": pa.array(range(700))},
        {"k": pa.array(range(700), pa.int32())},
        {"k": pa.array([f"text {row}" * (row % 5) + str(row) for row in range(700)])},
        {"k": pa.array([b"\0" * (row % 40) + str(row).encode() for row in range(700)], pa.binary())},
        {"k": pa.array(range(700), pa.uint16())},
        {"k": pa.array([str(row) for row in range(700)], pa.large_string())},
        {"k": pa.array([row // 2 for row in range(700)]), "l": pa.array([f"{row}" for row in range(700)])},
    ],
    ids=["int64", "int32", "utf8", "binary", "uint16", "large_utf8", "composite"],
)
def test_files_of_sstables(tmp_path: Path, columns: dict[str, pa.Array]) -> None:
    """The filter of an SSTable is that of pylance bit for bit, and pylance reads the index of its keys."""
    parts = [(name, position) for position, name in enumerate(columns, 1)]
    meta = {name: {**KEY, "lance-schema:unenforced-primary-key:position": str(place)} for name, place in parts}
    schema = pa.schema([pa.field(name, values.type, False, meta[name]) for name, values in columns.items()])
    schema = schema.append(pa.field("v", pa.int64()))
    table = pa.table([*columns.values(), pa.array(range(700))], schema=schema)
    dataset = lance_dataset.write_dataset(table.slice(0, 0), tmp_path / "t")
    dataset.initialize_mem_wal()
    other = SHARD.replace("1", "a")
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(table)
    with lance.dataset(str(tmp_path / "t")).mem_wal_writer(other) as writer:
        writer.put(table)
    filters = [next((tmp_path / "t/_mem_wal" / shard).glob("*_gen_1")) / "bloom_filter.bin" for shard in (SHARD, other)]
    assert filters[0].read_bytes() == filters[1].read_bytes() == key_filter(list(columns.values()))
    both = []
    for shard in (SHARD, other):
        path = next((tmp_path / "t/_mem_wal" / shard).glob("*_gen_1")).name
        for library in (lance, lance_dataset):
            snapshot = library.mem_wal.ShardSnapshot(shard).with_sstable(1, path)
            found = library.mem_wal.LsmScanner.from_snapshots(library.dataset(str(tmp_path / "t")), [snapshot])
            both.append(found.to_table().sort_by("v"))
    assert all(each.to_pydict() == table.to_pydict() for each in both)


def test_entries() -> None:
    schema = pa.schema([pa.field("k", pa.int64()), pa.field("_tombstone", pa.bool_(), False)])
    batch = pa.record_batch([pa.array([1, 2]), pa.array([False, True])], schema=schema)
    data = encode_entry(3, 2, schema, [batch, batch]).to_pybytes()
    entry = decode_entry(data, "e")
    assert (entry.epoch, entry.generation, entry.is_sentinel, len(entry.batches)) == (3, 2, False, 2)
    assert decode_entry(data[:-8], "e").batches == entry.batches  # without the mark of its end
    sentinel = encode_sentinel(2).to_pybytes()
    assert decode_entry(sentinel, "e").is_sentinel
    for length in (0, 5, len(data) // 2, len(data) - 40):
        with pytest.raises(CorruptFileError, match=r"e: the entry of the log is torn"):
            decode_entry(data[:length], "e")


def test_entries_that_lie() -> None:
    def stream(metadata: dict[str, str]) -> bytes:
        sink = pa.BufferOutputStream()
        schema = pa.schema([pa.field("k", pa.int64())], metadata=metadata)
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_batch(pa.record_batch([pa.array([1])], schema=schema))
        return sink.getvalue().to_pybytes()

    for metadata, message in (
        ({}, "does not name the epoch"),
        ({"writer_epoch": "x"}, "not a number"),
        ({"writer_epoch": "1", "generation": "-1"}, "not a number"),
        ({"writer_epoch": "1", "fence_sentinel": "true"}, "a fence of the log has 1 batches"),
    ):
        with pytest.raises(CorruptFileError, match=message):
            decode_entry(stream(metadata), "e")
    with pytest.raises(UnsupportedError, match="blobs"):
        decode_entry(stream({"writer_epoch": "1", "mem_wal_target_generation_dir": "x"}), "e")


def test_random_damage_of_entries() -> None:
    """A damaged entry is refused or read, and never anything else."""
    schema = pa.schema([pa.field("k", pa.string()), pa.field("l", pa.list_(pa.int32()))])
    batch = pa.record_batch(
        [pa.array(["a", None, "ccc"]), pa.array([[1], [], None], pa.list_(pa.int32()))], schema=schema
    )
    data = encode_entry(1, 1, schema, [batch]).to_pybytes()
    random = np.random.default_rng(9)
    for _ in range(2000):
        changed = bytearray(data)
        for place in random.integers(0, len(data), random.integers(1, 4)):
            changed[place] = random.integers(0, 256)
        with contextlib.suppress(CorruptFileError, UnsupportedError):
            decode_entry(bytes(changed), "e")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"maintained_indexes": ["none"]}, "'none' does not exist"),
        ({"bucket_column": "none", "num_buckets": 4}, "none"),
        ({"bucket_column": "k", "num_buckets": 0}, "between 1 and 1024"),
        ({"bucket_column": "k", "num_buckets": 1025}, "between 1 and 1024"),
        ({"bucket_column": "k"}, "both"),
        ({"num_buckets": 3}, "both"),
        ({"identity_column": "f"}, "identity"),
        ({"identity_column": "k", "unsharded": True}, "choose one"),
        ({"max_memtable_rows": 0}, "at least 1"),
        ({"hnsw_params": {"none": {}}}, "none"),
        ({"hnsw_params": {"none": {"m": 4}}}, "unknown HNSW parameter"),
    ],
)
def test_refused_settings(tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    """Settings that pylance refuses are refused, with an error of the same base class."""
    dataset = lance_dataset.write_dataset(pa.table({"k": [1], "f": [0.5]}), tmp_path / "t")
    with pytest.raises(InvalidInputError, match=message):
        dataset.initialize_mem_wal(**arguments)  # type: ignore[arg-type]
    assert dataset.mem_wal_index_details() is None
    assert dataset.version == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"unsharded": True},
        {"bucket_column": "t", "num_buckets": 8},
        {"identity_column": "t", "maintained_indexes": []},
        {"max_memtable_rows": 2, "durable_write": False, "maintained_indexes": ["k_idx"]},
    ],
)
def test_settings_are_those_of_pylance(tmp_path: Path, arguments: dict[str, object]) -> None:
    shown = []
    for library in (lance, lance_dataset):
        uri = str(tmp_path / library.__name__)
        dataset = library.write_dataset(pa.table({"k": [1], "t": ["x"]}), uri)
        dataset.create_scalar_index("k", "BTREE")
        dataset.initialize_mem_wal(**arguments)
        shown += [lance.dataset(uri).mem_wal_index_details(), lance_dataset.dataset(uri).mem_wal_index_details()]
        with pytest.raises(OSError, match="already"):
            dataset.initialize_mem_wal()
    assert all(each == shown[0] for each in shown)


def test_keys_of_other_types_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("k", pa.float64(), False, KEY)])
    dataset = lance_dataset.write_dataset(pa.table({"k": [0.5]}, schema=schema), tmp_path / "t")
    with pytest.raises(InvalidInputError, match="unsupported type double"):
        dataset.initialize_mem_wal()


def test_old_layout_is_refused(tmp_path: Path) -> None:
    """Details of releases up to 1.0, whose first field is a message, are refused by name."""
    from lance_dataset._proto import table_pb2
    from lance_dataset.memwal.details import find_details
    from lance_dataset.table.index_metadata import IndexDetails, IndexMetadata
    from lance_dataset.table.manifest import Manifest
    from lance_dataset.types.schema import Schema

    entry = IndexMetadata(
        SHARD, "__lance_mem_wal", details=IndexDetails("/lance.table.MemWalIndexDetails", b"\x0a\x00")
    )
    section = table_pb2.IndexSection(indices=[entry.to_proto()]).SerializeToString()
    with pytest.raises(UnsupportedError, match=r"up to 1\.0"):
        find_details(Manifest(1, Schema(()), index_section=section))
