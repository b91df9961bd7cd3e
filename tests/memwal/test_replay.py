"""Tests of the replay of logs: what crashes leave, and logs that nobody can have written."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from support.memwal.shards import SHARD, keys, new_table, rows, seen, snapshots_for, values

import lance_dataset
from lance_dataset.errors import CommitConflictError, CorruptFileError, InvalidInputError
from lance_dataset.memwal.log_entries import decode_entry, encode_sentinel
from lance_dataset.memwal.places import bits_name
from lance_dataset.memwal.shard_manifest import ShardManifest, encode_shard_manifest


def log(path: Path) -> Path:
    return path / "_mem_wal" / SHARD / "wal"


def entry(path: Path, position: int) -> Path:
    return log(path) / f"{bits_name(position)}.arrow"


def write_entry(path: Path, position: int, content: dict[int, str], **metadata: object) -> None:
    """Write an entry as another implementation may write it: without ids of fields and marks of deletions."""
    table = rows(content)
    schema = table.schema.with_metadata({name: str(value) for name, value in metadata.items()})
    log(path).mkdir(parents=True, exist_ok=True)
    with pa.ipc.new_stream(str(entry(path, position)), schema) as writer:
        writer.write_table(table.cast(schema))


def write_manifest(path: Path, **given: int) -> None:
    folder = path / "_mem_wal" / SHARD / "manifest"
    folder.mkdir(parents=True, exist_ok=True)
    manifest = ShardManifest(SHARD, **given)  # type: ignore[arg-type]
    (folder / f"{bits_name(manifest.version)}.binpb").write_bytes(encode_shard_manifest(manifest))


def opened(path: Path) -> dict[int, str]:
    """Return what the next writer of the shard sees."""
    writer = lance_dataset.dataset(path).mem_wal_writer(SHARD)
    found = values(writer.lsm_scanner().to_table())
    writer.abort()
    return found


def test_a_crash_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t"
    writer = new_table(path, {1: "a"}).mem_wal_writer(SHARD)
    writer.put(rows({1: "b", 2: "c"}))
    writer.delete(keys(1))
    writer.abort()
    for _ in range(3):  # replays end, and repeat
        assert opened(path) == {2: "c"}
    [status] = lance_dataset.dataset(path).mem_wal_status()
    assert (status.writer_epoch, status.log_entries, status.log_rows, status.sstables) == (4, 2, 3, 0)
    epochs = [decode_entry(file.read_bytes(), "e").is_sentinel for file in sorted(log(path).iterdir())]
    assert sorted(epochs) == [False, False, True, True, True]
    with lance_dataset.dataset(path).mem_wal_writer(SHARD):
        pass
    assert seen(path) == {2: "c"}


def test_pylance_replays_our_log(tmp_path: Path) -> None:
    path = tmp_path / "t"
    writer = new_table(path, {1: "a"}).mem_wal_writer(SHARD)
    writer.put(rows({1: "b", 2: "c"}))
    writer.delete(keys(1))
    writer.put(rows({3: "d"}))
    writer.abort()
    with lance.dataset(str(path)).mem_wal_writer(SHARD) as theirs:
        assert theirs.memtable_stats()["row_count"] == 4
        assert values(theirs.lsm_scanner([]).to_table()) == {2: "c", 3: "d"}
    ours = lance_dataset.dataset(path).mem_wal_writer(SHARD)
    ours.put(rows({5: "e"}))
    theirs = lance.dataset(str(path)).mem_wal_writer(SHARD)
    with pytest.raises(CommitConflictError, match="Writer fenced"):
        ours.put(rows({4: "e"}))
    theirs.put(rows({6: "f"}))
    ours = lance_dataset.dataset(path).mem_wal_writer(SHARD)
    with pytest.raises(OSError, match="Writer fenced"):
        theirs.put(rows({7: "g"}))
    ours.close()
    assert seen(path) == {2: "c", 3: "d", 5: "e", 6: "f"}


@pytest.mark.parametrize(
    ("generations", "manifest", "expected", "sstables"),
    [
        ((1, 1, 2, 2, 3), {"version": 1, "writer_epoch": 1}, {1, 2, 3, 4, 5}, 2),
        ((1, 2, 3), {"version": 1, "writer_epoch": 1, "generation": 3, "replay_after": 1}, {3}, 0),
        ((None, None, None), {"version": 1, "writer_epoch": 1, "generation": 3, "replay_after": 1}, {2, 3}, 0),
        ((None, 1, 2), {"version": 1, "writer_epoch": 0}, {1, 2, 3}, 1),
    ],
)
def test_logs_of_others(
    tmp_path: Path, generations: Sequence[int | None], manifest: dict[str, int], expected: set[int], sstables: int
) -> None:
    """Logs are replayed as pylance replays them, which opens the same shard afterwards."""
    path = tmp_path / "t"
    new_table(path)
    write_manifest(path, **manifest)
    for position, generation in enumerate(generations, 1):
        metadata = {"writer_epoch": 1} | ({} if generation is None else {"generation": generation})
        write_entry(path, position, {position: str(position)}, **metadata)
    shutil.copytree(path, tmp_path / "theirs")
    assert set(opened(path)) == expected
    assert lance_dataset.dataset(path).mem_wal_status()[0].sstables == sstables
    with lance.dataset(str(tmp_path / "theirs")).mem_wal_writer(SHARD) as writer:
        theirs = writer.lsm_scanner(snapshots_for(tmp_path / "theirs")).to_table()
    assert set(values(theirs)) == expected
    with lance.dataset(str(path)).mem_wal_writer(SHARD) as writer:
        assert set(values(writer.lsm_scanner(snapshots_for(path)).to_table())) == expected


def test_log_without_a_manifest(tmp_path: Path) -> None:
    new_table(tmp_path / "t")
    write_entry(tmp_path / "t", 1, {1: "a"}, writer_epoch=1)
    assert opened(tmp_path / "t") == {1: "a"}


@pytest.mark.parametrize(
    ("metadata", "error", "message"),
    [
        ({"writer_epoch": 7}, CommitConflictError, "fenced during open"),
        ({"generation": 1}, CorruptFileError, "does not name the epoch"),
        ({"writer_epoch": 1, "generation": 3}, CorruptFileError, "missing or in another order"),
    ],
)
def test_foreign_entries(tmp_path: Path, metadata: dict[str, int], error: type[Exception], message: str) -> None:
    new_table(tmp_path / "t")
    write_manifest(tmp_path / "t", version=1, writer_epoch=1)
    write_entry(tmp_path / "t", 1, {1: "a"}, writer_epoch=1, generation=1)
    write_entry(tmp_path / "t", 2, {2: "b"}, **metadata)
    with pytest.raises(error, match=message):
        lance_dataset.dataset(tmp_path / "t").mem_wal_writer(SHARD)


def test_reordered_entries(tmp_path: Path) -> None:
    """Generations that go back are refused, as rows would win that were overwritten."""
    new_table(tmp_path / "t")
    write_manifest(tmp_path / "t", version=1, writer_epoch=1)
    for position, generation in ((1, 1), (2, 2), (3, 1)):
        write_entry(tmp_path / "t", position, {1: str(position)}, writer_epoch=1, generation=generation)
    with pytest.raises(CorruptFileError, match="after those of 2"):
        lance_dataset.dataset(tmp_path / "t").mem_wal_writer(SHARD)


def test_torn_and_missing_entries(tmp_path: Path) -> None:
    """A torn entry and a gap are errors that name the file; nothing is dropped silently."""
    path = tmp_path / "t"
    writer = new_table(path).mem_wal_writer(SHARD)
    for number in range(3):
        writer.put(rows({number: "x"}))
    writer.abort()
    content = entry(path, 2).read_bytes()
    for cut in (0, 100, len(content) // 2):
        entry(path, 2).write_bytes(content[:cut])
        with pytest.raises(CorruptFileError, match=bits_name(2)):
            lance_dataset.dataset(path).mem_wal_writer(SHARD)
    entry(path, 2).unlink()
    with pytest.raises(CorruptFileError, match="has a gap"):
        lance_dataset.dataset(path).mem_wal_writer(SHARD)
    entry(path, 2).write_bytes(content)
    assert opened(path) == {0: "x", 1: "x", 2: "x"}


def test_missing_key_columns(tmp_path: Path) -> None:
    path = tmp_path / "t"
    new_table(path)
    log(path).mkdir(parents=True)
    schema = pa.schema([pa.field("v", pa.string())], metadata={"writer_epoch": "1"})
    with pa.ipc.new_stream(str(entry(path, 1)), schema) as writer:
        writer.write_batch(pa.record_batch([pa.array(["x"])], schema=schema))
    with pytest.raises(CorruptFileError, match="missing primary key column 'id'"):
        lance_dataset.dataset(path).mem_wal_writer(SHARD)


def test_changed_columns(tmp_path: Path) -> None:
    """Rows of the log and of SSTables follow columns that were renamed, dropped and added since."""
    path = tmp_path / "t"
    dataset = new_table(path, {1: "a"})
    writer = dataset.mem_wal_writer(SHARD)
    writer.put(rows({2: "b"}))
    writer.flush()
    writer.put(rows({3: "c"}))
    writer.abort()
    dataset = lance_dataset.dataset(path)
    dataset.alter_columns({"path": "v", "name": "w"}, {"path": "n", "nullable": True})
    dataset.drop_columns(["n"])
    dataset.add_columns(pa.field("z", pa.float32()))
    with dataset.mem_wal_writer(SHARD) as writer:
        found = writer.lsm_scanner().filter("w >= 'b'").to_table().sort_by("id")
        assert found.to_pydict() == {"id": [2, 3], "w": ["b", "c"], "z": [None, None]}
        writer.put(pa.table({"id": [4], "w": ["d"], "z": pa.array([0.5], pa.float32())}))
    dataset.merge_mem_wal()
    found = lance.dataset(str(path)).to_table().sort_by("id")
    assert found.to_pydict() == {"id": [1, 2, 3, 4], "w": ["a", "b", "c", "d"], "z": [None, None, None, 0.5]}


def test_sealed_and_strange_manifests(tmp_path: Path) -> None:
    path = tmp_path / "t"
    dataset = new_table(path)
    write_manifest(path, version=1, sealed=True)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="is sealed; refusing claim"):
        dataset.mem_wal_writer(SHARD)
    shutil.copy(*(path / "_mem_wal" / SHARD / "manifest" / f"{bits_name(number)}.binpb" for number in (1, 2)))
    with pytest.raises(CorruptFileError, match="version 2 by its name, 1 inside"):
        dataset.mem_wal_writer(SHARD)


@pytest.mark.parametrize("hint", [None, b"", b"[]", b"{}", b'{"version":99}', b'{"version":-1}', b'{"version":1}'])
def test_hints(tmp_path: Path, hint: bytes | None) -> None:
    """The newest manifest is found whatever the hint says."""
    path = tmp_path / "t"
    new_table(path)
    for number in range(4):
        with lance_dataset.dataset(path).mem_wal_writer(SHARD) as writer:
            writer.put(rows({number: "x"}))
    file = path / "_mem_wal" / SHARD / "manifest" / "version_hint.json"
    file.unlink()
    if hint is not None:
        file.write_bytes(hint)
    assert len(seen(path)) == 4
    assert len(opened(path)) == 4


def test_fences_of_a_race(tmp_path: Path) -> None:
    """An entry that a fenced writer appends before the fence of its successor is replayed."""
    path = tmp_path / "t"
    first = new_table(path).mem_wal_writer(SHARD)
    first.put(rows({1: "a"}))
    write_manifest(path, version=2, writer_epoch=2)  # the claim of a successor that stops here
    first.put(rows({2: "b"}))
    entry(path, 3).write_bytes(encode_sentinel(2).to_pybytes())
    with pytest.raises(CommitConflictError, match="Writer fenced"):
        first.put(rows({3: "c"}))
    assert opened(path) == {1: "a", 2: "b"}


def test_columns_that_change_under_a_writer(tmp_path: Path) -> None:
    """An open writer goes on with the columns that it knows; its readers and merges see those of the table."""
    path = tmp_path / "t"
    writer = new_table(path, {1: "a"}).mem_wal_writer(SHARD)
    writer.put(rows({2: "b"}))
    lance_dataset.dataset(path).alter_columns({"path": "v", "name": "w"})
    lance_dataset.dataset(path).add_columns(pa.field("z", pa.float32()))
    writer.put(rows({3: "c"}))
    expected = {"id": [1, 2, 3], "w": ["a", "b", "c"], "n": [1, 2, 3], "z": [None] * 3}
    assert writer.lsm_scanner().to_table().sort_by("id").to_pydict() == expected
    writer.flush()
    writer.put(rows({3: "d"}))
    assert writer.lsm_scanner().filter("w = 'd'").count_rows() == 1
    writer.close()
    dataset = lance_dataset.dataset(path)
    dataset.merge_mem_wal()
    assert dataset.to_table().sort_by("id")["w"].to_pylist() == ["a", "b", "d"]
