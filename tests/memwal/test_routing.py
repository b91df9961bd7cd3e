"""Tests of scans and lookups that read only the SSTables that may have rows of a sharding value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.memwal.shards import OTHER, SHARD, snapshots_for

import lance_dataset
from lance_dataset.mem_wal import LsmPointLookupPlanner, LsmScanner, ShardSnapshot
from lance_dataset.memwal import sources, sstables
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.routing import ShardRouting, may_hold

KEY = "lance-schema:unenforced-primary-key"
SCHEMA = pa.schema(
    [
        pa.field("region", pa.string(), False, {KEY: "true", f"{KEY}:position": "1"}),
        pa.field("id", pa.int64(), False, {KEY: "true", f"{KEY}:position": "2"}),
        pa.field("v", pa.string()),
    ]
)
SHARDS = {"eu": SHARD, "us": OTHER}


def rows(region: str, content: dict[int, str]) -> pa.Table:
    return pa.table([[region] * len(content), list(content), list(content.values())], schema=SCHEMA)


def values(table: pa.Table) -> dict[tuple[str, int], str]:
    found = {(row["region"], row["id"]): row["v"] for row in table.to_pylist()}
    assert len(found) == table.num_rows
    return found


@pytest.fixture(params=["identity", "bucket"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return a table of three regions, two of which have a shard with an SSTable."""
    parts = [rows(region, {1: "base", 2: "base", 3: "base"}) for region in ("eu", "us", "as")]
    dataset = lance_dataset.write_dataset(pa.concat_tables(parts), tmp_path / "t")
    if request.param == "identity":
        dataset.initialize_mem_wal(identity_column="region")
    else:
        dataset.initialize_mem_wal(bucket_column="region", num_buckets=1024)
    for region, shard in SHARDS.items():
        with dataset.mem_wal_writer(shard) as writer:
            writer.put(rows(region, {1: region, 4: region}))
            writer.delete(pa.table({"region": [region], "id": [2]}))
    return tmp_path / "t"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the shards of SSTables that are opened from now on."""
    found: list[str] = []
    real = sources.open_sstable

    def noted(location: Any, place: Any, *others: Any) -> Any:
        found.append(place.shard_id)
        return real(location, place, *others)

    monkeypatch.setattr(sources, "open_sstable", noted)
    return found


SCANS: list[tuple[str, set[str]]] = [
    ("region = 'eu'", {"eu"}),
    ("'us' = region AND id > 0", {"us"}),
    ("region IN ('eu', 'as')", {"eu"}),
    ("region = 'eu' OR (region = 'us' AND v = 'us')", {"eu", "us"}),
    ("region = 'as'", set()),
    ("region = NULL", set()),
    ("region = 'eu' OR id = 1", {"eu", "us"}),
    ("region != 'eu'", {"eu", "us"}),
    ("NOT region = 'eu'", {"eu", "us"}),
    ("region > 'es' AND region < 'ev'", {"eu", "us"}),
]


@pytest.mark.parametrize(("filter", "regions"), SCANS)
def test_scans(path: Path, opened: list[str], filter: str, regions: set[str]) -> None:
    dataset = lance_dataset.dataset(path)
    snapshots = dataset.mem_wal_snapshots()
    found = values(LsmScanner.from_snapshots(dataset, snapshots).filter(filter).to_table())
    assert set(opened) == {SHARDS[region] for region in regions}
    bare = [ShardSnapshot(each.shard_id) for each in snapshots]  # nothing is known of these SSTables
    for each, known in zip(bare, snapshots, strict=True):
        for generation, name in known.sstables.items():
            each.with_sstable(generation, name)
    assert values(LsmScanner.from_snapshots(dataset, bare).filter(filter).to_table()) == found
    if "NULL" not in filter:
        theirs = lance.mem_wal.LsmScanner.from_snapshots(lance.dataset(str(path)), snapshots_for(path))
        assert values(theirs.filter(filter).to_table()) == found


def test_lookups(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_dataset.dataset(path)
    planner = LsmPointLookupPlanner(dataset, dataset.mem_wal_snapshots())
    searched: list[str] = []
    real = sstables.OpenSsTable.find

    def noted(table: Any, key: object, wanted: Any) -> Any:
        searched.append(table.snapshot.root.split("/")[-2])
        return real(table, key, wanted)

    monkeypatch.setattr(sstables.OpenSsTable, "find", noted)
    for region in ("eu", "us", "as"):
        for number, text in ((1, "base" if region == "as" else region), (2, "base" if region == "as" else None)):
            searched.clear()
            key = pa.StructArray.from_arrays([pa.array([region]), pa.array([number])], ["region", "id"])
            found = values(planner.plan_lookup(key).to_table())
            assert found == ({} if text is None else {(region, number): text})
            assert set(searched) == ({SHARDS[region]} if region in SHARDS else set())


def test_pylance_goes_on(path: Path, opened: list[str]) -> None:
    """It reads and writes shards with marks. Of its SSTables nothing is known, so they are read."""
    with lance.dataset(str(path)).mem_wal_writer(SHARD) as theirs:
        theirs.put(rows("us", {1: "stray"}))  # it does not mind which shard
    dataset = lance_dataset.dataset(path)
    with dataset.mem_wal_writer(OTHER) as writer:
        found = values(writer.lsm_scanner(dataset.mem_wal_snapshots()).filter("region = 'us' AND id = 4").to_table())
        assert found == {("us", 4): "us"}
    assert SHARD in opened
    dataset.merge_mem_wal(OTHER)
    dataset.merge_mem_wal(SHARD)
    assert values(dataset.to_table())["us", 1] == "stray"


def test_what_is_not_marked(tmp_path: Path) -> None:
    """Rows are not marked by a column outside of the key, nor if they have many values."""
    dataset = lance_dataset.write_dataset(rows("eu", {1: "base"}), tmp_path / "t")
    dataset.initialize_mem_wal(bucket_column="v", num_buckets=4)
    manifest = dataset.snapshot.manifest
    assert ShardRouting.of(manifest, KeyColumns.of(manifest.schema)) is None
    other = lance_dataset.write_dataset(rows("eu", {1: "base"}), tmp_path / "u")
    other.initialize_mem_wal(identity_column="id")
    manifest = other.snapshot.manifest
    routing = ShardRouting.of(manifest, KeyColumns.of(manifest.schema))
    assert routing is not None
    assert routing.marks(pa.array(range(9))) is None
    some = routing.marks(pa.array([1, 2, 1]))
    assert some is not None
    assert may_hold(some, routing.wanted("id = 2"))
    assert not may_hold(some, routing.wanted("id = 3"))
    assert may_hold(some, routing.wanted("id + 1 = 3"))
    assert may_hold(some, routing.wanted(None))
