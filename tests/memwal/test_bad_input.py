"""Data and shards that no writer can use: each has a clear error, and nothing that was acknowledged is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.memwal.shards import OTHER, SCHEMA, SHARD, keys, rows, seen, values

import lance_dataset
from lance_dataset.errors import (
    CommitConflictError,
    CorruptFileError,
    InvalidInputError,
    MissingFileError,
    SchemaError,
    UnsupportedError,
)
from lance_dataset.mem_wal import LsmScanner, ShardSnapshot
from lance_dataset.memwal.log_entries import encode_entry, encode_sentinel
from lance_dataset.memwal.places import bits_name
from lance_dataset.memwal.shard_manifest import decode_shard_manifest

NULLABLE = SCHEMA.set(0, SCHEMA.field(0).with_nullable(True))
ROW = rows({1: "x"})
LOGGED = {0: "base", 1: "merged", 2: "flushed", 3: "log", 4: "log", 5: "log"}


def changed(name: str, array: pa.Array) -> pa.Table:
    return ROW.set_column(ROW.schema.get_field_index(name), name, array)


PUTS: dict[str, tuple[Any, str]] = {
    "null key": (changed("id", pa.array([None], pa.int64())), "'id' is part of the primary key, but 1 rows"),
    "no key": (ROW.drop_columns(["id"]), "no column 'id'"),
    "null": (changed("n", pa.array([None], pa.int32())), "'n'"),
    "no column": (ROW.drop_columns(["n"]), "no column 'n'"),
    "more columns": (ROW.append_column("more", pa.array([1])), "'more'"),
    "another type": (changed("v", pa.array([1.5])), "'v'"),
    "key of another type": (changed("id", pa.array(["a"])), "'id'"),
    "key that does not fit": (changed("id", pa.array([2**64 - 1], pa.uint64())), "id"),
    "list": (changed("v", pa.array([["x"]])), "'v'"),
}
DELETES: dict[str, tuple[Any, str]] = {
    "null key": (pa.table({"id": pa.array([1, None], pa.int64())}), "'id' is part of the primary key, but 1 rows"),
    "no key": (ROW.drop_columns(["id"]), r"lack the columns \['id'\]"),
    "another type": (pa.table({"id": ["a"]}), "'id'"),
}


@pytest.mark.parametrize(
    ("method", "name"), [*(("put", name) for name in PUTS), *(("delete", name) for name in DELETES)]
)
def test_data(tmp_path: Path, method: str, name: str) -> None:
    """Nothing of the call is logged, also if only its last batch is bad, and the writer goes on."""
    data, message = {"put": PUTS, "delete": DELETES}[method][name]
    dataset = lance_dataset.write_dataset(rows({}).cast(NULLABLE), tmp_path / "t")
    dataset.initialize_mem_wal()
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(rows({7: "y"}))
        calls = [data]
        if "null" in name:
            calls.append([*({"put": rows({9: "z"}), "delete": keys(7)}[method].to_batches()), *data.to_batches()])
        for each in calls:
            given = {"schema": data.schema} if isinstance(each, list) else {}
            with pytest.raises(SchemaError, match=message):
                getattr(writer, method)(each, **given)
        assert writer.memtable_stats()["row_count"] == 1
        assert len(list((tmp_path / "t/_mem_wal" / SHARD / "wal").iterdir())) == 1
        writer.put(rows({8: "y"}))
        assert values(writer.lsm_scanner().to_table()) == {7: "y", 8: "y"}


@pytest.mark.parametrize("data", [None, 5, object(), b"rows"], ids=["none", "number", "object", "bytes"])
def test_no_data(tmp_path: Path, data: Any) -> None:
    dataset = lance_dataset.write_dataset(rows({}), tmp_path / "t")
    dataset.initialize_mem_wal()
    with dataset.mem_wal_writer(SHARD) as writer:
        for call in (writer.put, writer.delete):
            with pytest.raises((TypeError, ValueError)):
                call(data)
        assert writer.memtable_stats()["row_count"] == 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a table with a merged and a flushed SSTable, and three entries in the log."""
    path = tmp_path / "t"
    lance_dataset.write_dataset(rows({0: "base", 1: "base"}), path).initialize_mem_wal()
    with lance_dataset.dataset(path).mem_wal_writer(SHARD) as writer:
        writer.put(rows({1: "merged"}))
        writer.flush()
        lance_dataset.dataset(path).merge_mem_wal()
        writer.put(rows({2: "flushed"}))
    writer = lance_dataset.dataset(path).mem_wal_writer(SHARD)
    for number in (3, 4, 5):
        writer.put(rows({number: "log"}))
    writer.abort()
    return path


def entries(path: Path) -> list[Path]:
    """Return the files of the entries that are only in the log."""
    files = {int(file.name[:64][::-1], 2): file for file in (path / "_mem_wal" / SHARD / "wal").iterdir()}
    return [files[number] for number in sorted(files)[-3:]]


def newest_manifest(path: Path) -> tuple[Path, int]:
    folder = path / "_mem_wal" / SHARD / "manifest"
    number = max(int(file.name[:64][::-1], 2) for file in folder.glob("*.binpb"))
    return folder / f"{bits_name(number)}.binpb", number


def torn(path: Path) -> None:
    middle = entries(path)[1]
    middle.write_bytes(middle.read_bytes()[:-20])


def torn_last(path: Path) -> None:
    last = entries(path)[2]
    last.write_bytes(last.read_bytes()[:300])


def empty(path: Path) -> None:
    entries(path)[2].write_bytes(b"")


def noise(path: Path) -> None:
    entries(path)[0].write_bytes(b"\xff" * 500)


def missing(path: Path) -> None:
    entries(path)[1].unlink()


def foreign_epoch(path: Path) -> None:
    last = entries(path)[2]
    last.write_bytes(encode_sentinel(99).to_pybytes())


def later_generation(path: Path) -> None:
    content = encode_entry(2, 9, SCHEMA, rows({5: "log"}).to_batches())
    entries(path)[2].write_bytes(content.to_pybytes())


def earlier_generation(path: Path) -> None:
    for number, generation in ((0, 3), (1, 4), (2, 3)):
        content = encode_entry(2, generation, SCHEMA, rows({number + 3: "log"}).to_batches())
        entries(path)[number].write_bytes(content.to_pybytes())


def other_columns(path: Path) -> None:
    schema = pa.schema([pa.field("v", pa.string())])
    content = encode_entry(2, 3, schema, [pa.record_batch([["x"]], schema=schema)])
    entries(path)[2].write_bytes(content.to_pybytes())


def null_keys(path: Path) -> None:
    data = changed("id", pa.array([None], pa.int64())).to_batches()
    entries(path)[2].write_bytes(encode_entry(2, 3, NULLABLE, data).to_pybytes())


def torn_manifest(path: Path) -> None:
    file, _ = newest_manifest(path)
    file.write_bytes(file.read_bytes()[:-25])


def another_shard(path: Path) -> None:
    (path / "_mem_wal" / SHARD).rename(path / "_mem_wal" / OTHER)
    shutil.copytree(path / "_mem_wal" / OTHER, path / "_mem_wal" / SHARD)
    shutil.rmtree(path / "_mem_wal" / OTHER)
    file, _ = newest_manifest(path)
    content = file.read_bytes()
    mine, other = (bytes.fromhex(text.replace("-", "")) for text in (SHARD, OTHER))
    file.write_bytes(content.replace(mine, other))


def unknown_status(path: Path) -> None:
    file, _ = newest_manifest(path)
    file.write_bytes(file.read_bytes() + b"\x78\x07")


def earlier_shard(path: Path) -> None:
    """Put back the first manifest, as a backup has it that is older than the table."""
    file, number = newest_manifest(path)
    for other in range(2, number + 1):
        (file.parent / f"{bits_name(other)}.binpb").unlink()


SHARDS: dict[Callable[[Path], None], tuple[type[Exception], str]] = {
    torn: (CorruptFileError, "torn or not a stream of Arrow"),
    torn_last: (CorruptFileError, "torn or not a stream of Arrow"),
    empty: (CorruptFileError, "torn or not a stream of Arrow"),
    noise: (CorruptFileError, "torn or not a stream of Arrow"),
    missing: (CorruptFileError, "has a gap"),
    foreign_epoch: (CommitConflictError, "epoch 99"),
    later_generation: (CorruptFileError, "missing or in another order"),
    earlier_generation: (CorruptFileError, "missing or in another order"),
    other_columns: (CorruptFileError, "missing primary key column 'id'"),
    null_keys: (CorruptFileError, "no value in 'id'"),
    torn_manifest: (CorruptFileError, "binpb"),
    another_shard: (CorruptFileError, "belongs to shard"),
    unknown_status: (UnsupportedError, "unknown status 7"),
    earlier_shard: (CorruptFileError, "generation 1 is in the table"),
}


@pytest.mark.parametrize("damage", SHARDS)
def test_shards(path: Path, damage: Callable[[Path], None]) -> None:
    """No writer opens a damaged shard, again and again; when the files are put back, all rows are there."""
    kept = path.parent / "kept"
    shutil.copytree(path, kept)
    damage(path)
    error, message = SHARDS[damage]
    found = lance_dataset.dataset(path).doctor()
    assert {finding.subject.shard for finding in found.findings if finding.is_damage} == {SHARD}
    for _ in range(2):
        with pytest.raises(error, match=message):
            lance_dataset.dataset(path).mem_wal_writer(SHARD)
    for file in kept.rglob("*"):
        if file.is_file():
            shutil.copy(file, path / file.relative_to(kept))
    with lance_dataset.dataset(path).mem_wal_writer(SHARD) as writer:
        assert values(writer.lsm_scanner().to_table()) == LOGGED
        writer.put(rows({6: "more"}))
    assert seen(path) == LOGGED | {6: "more"}
    lance_dataset.dataset(path).merge_mem_wal()
    lance_dataset.dataset(path).validate()
    assert values(lance_dataset.dataset(path).to_table()) == LOGGED | {6: "more"}


def test_unknown_shards(path: Path) -> None:
    """A shard that does not exist is not taken for an empty one by those who merge, collect or read it."""
    dataset = lance_dataset.dataset(path)
    for call in (dataset.merge_mem_wal, dataset.collect_mem_wal):
        with pytest.raises(InvalidInputError, match=f"shard {OTHER} .*does not exist"):
            call(OTHER)
        with pytest.raises(InvalidInputError, match="must be a UUID"):
            call("other")
    for shard, folder in ((OTHER, "12345678_gen_1"), (SHARD, "12345678_gen_9")):
        with pytest.raises(MissingFileError):
            LsmScanner.from_snapshots(dataset, [ShardSnapshot(shard).with_sstable(9, folder)]).to_table()
    assert not (path / "_mem_wal" / OTHER).exists()


def test_manifest_fields(path: Path) -> None:
    """Fields of later releases in the manifest of a shard do no harm."""
    file, _ = newest_manifest(path)
    content = file.read_bytes()
    assert decode_shard_manifest(content + b"\xc2\x3e\x01x", "m") == decode_shard_manifest(content, "m")
