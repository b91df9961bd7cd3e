"""Tests of searches of vectors over a table and its shards."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.memwal.shards import SHARD, snapshots_for

import lance_dataset
from lance_dataset.errors import FieldNotFoundError, InvalidInputError
from lance_dataset.mem_wal import LsmVectorSearchPlanner

DIMENSION = 16
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"}),
        pa.field("x", pa.int64()),
        pa.field("v", pa.list_(pa.float32(), DIMENSION)),
    ]
)
RANDOM = np.random.default_rng(11)


def rows(ids: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    vectors = RANDOM.normal(size=(len(ids), DIMENSION)).astype(np.float32)
    arrays = [pa.array(ids), pa.array(ids % 7), pa.FixedSizeListArray.from_arrays(vectors.ravel(), DIMENSION)]
    return pa.table(arrays, schema=SCHEMA), vectors


def distances(vectors: np.ndarray, query: np.ndarray, metric: str) -> np.ndarray:
    if metric == "l2":
        return ((vectors - query) ** 2).sum(1)
    if metric == "dot":
        return 1 - vectors @ query
    return 1 - vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, np.ndarray]]:
    """Return a table with two SSTables, which replace and delete rows of it, and its vectors by id."""
    path = tmp_path_factory.mktemp("search") / "t"
    model: dict[int, np.ndarray] = {}
    base, vectors = rows(np.arange(3000))
    model.update(zip(range(3000), vectors, strict=True))
    dataset = lance_dataset.write_dataset(base, path, max_rows_per_file=1000)
    dataset.initialize_mem_wal()
    with dataset.mem_wal_writer(SHARD) as writer:
        for start in (500, 900):
            ids = np.arange(start, start + 600) * 2
            more, vectors = rows(ids)
            writer.put(more)
            model.update(zip(ids.tolist(), vectors, strict=True))
            gone = RANDOM.choice(3000, 200, replace=False).tolist()
            writer.delete(pa.table({"id": gone}))
            for key in gone:
                model.pop(key, None)
            writer.flush()
    return path, model


@pytest.mark.parametrize("metric", [None, "l2", "cosine", "dot"])
@pytest.mark.parametrize("filter", [None, "x = 3"])
def test_nearest_rows(table: tuple[Path, dict[int, np.ndarray]], metric: str | None, filter: str | None) -> None:
    """The nearest rows are those of brute force over the newest rows."""
    path, model = table
    ids = np.array([key for key in model if filter is None or key % 7 == 3])
    vectors = np.array([model[key] for key in ids.tolist()])
    dataset = lance_dataset.dataset(path)
    planner = LsmVectorSearchPlanner(dataset, dataset.mem_wal_snapshots(), "v", None, metric, filter)
    for _ in range(10):
        query = RANDOM.normal(size=DIMENSION).astype(np.float32)
        plan = planner.plan_search(pa.array(query), k=12, columns=["x"])
        found = plan.to_table()
        assert found.schema.names == ["x", "id", "_distance"]
        expected = distances(vectors, query, metric or "l2")
        best = np.argsort(expected)[:12]
        assert found["id"].to_pylist() == ids[best].tolist()
        assert found["x"].to_pylist() == (ids[best] % 7).tolist()
        assert np.allclose(found["_distance"].to_numpy(), expected[best], rtol=1e-4, atol=1e-5)
    assert "generation=2" in plan.explain()


def test_indices(table: tuple[Path, dict[int, np.ndarray]], tmp_path: Path) -> None:
    """With an index of the table, rows of SSTables are found, and rows that they hide are not; as by pylance."""
    path = tmp_path / "t"
    base, _ = rows(np.arange(2000))
    dataset = lance_dataset.write_dataset(base, path)
    dataset.create_index("v", "IVF_FLAT", num_partitions=4)
    dataset.initialize_mem_wal()
    new, vectors = rows(np.arange(0, 100))
    with lance.dataset(str(path)).mem_wal_writer(SHARD) as writer:
        writer.put(new)
    dataset = lance_dataset.dataset(path)
    ours = LsmVectorSearchPlanner(dataset, dataset.mem_wal_snapshots(), "v")
    theirs = lance.mem_wal.LsmVectorSearchPlanner(lance.dataset(str(path)), snapshots_for(path), "v")
    for number in range(10):
        query = pa.array(vectors[number])
        mine = ours.plan_search(query, k=5, nprobes=4).to_table()
        assert mine["id"][0].as_py() == number
        assert mine["id"].to_pylist() == theirs.plan_search(query, k=5, nprobes=4).to_table()["id"].to_pylist()
    refined = ours.plan_search(query, k=5, nprobes=4, refine_base_table=True, overfetch_factor=2.0).to_table()
    assert refined["id"].to_pylist() == mine["id"].to_pylist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "at least 1"),
        ({"nprobes": 0}, "at least 1"),
        ({"overfetch_factor": 0.5}, "at least 1"),
        ({"query": pa.array([1.0])}, "the vectors have 16"),
    ],
)
def test_refused_searches(
    table: tuple[Path, dict[int, np.ndarray]], arguments: dict[str, object], message: str
) -> None:
    dataset = lance_dataset.dataset(table[0])
    planner = LsmVectorSearchPlanner(dataset, dataset.mem_wal_snapshots(), "v")
    with pytest.raises(InvalidInputError, match=message):
        planner.plan_search(**{"query": pa.array(np.zeros(DIMENSION, np.float32)), **arguments})  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="unknown distance type"):
        LsmVectorSearchPlanner(dataset, [], "v", distance_type="none")
    with pytest.raises(InvalidInputError, match="not a fixed-size list"):
        LsmVectorSearchPlanner(dataset, [], "x")
    with pytest.raises(FieldNotFoundError):
        LsmVectorSearchPlanner(dataset, [], "none")


def test_indices_of_sstables(tmp_path: Path) -> None:
    """SSTables get counterparts of the indices of the table, in which pylance finds their rows."""
    path = tmp_path / "t"
    base, _ = rows(np.arange(2000))
    base = base.append_column(pa.field("t", pa.string()), pa.array([f"word{row % 50}" for row in range(2000)]))
    dataset = lance_dataset.write_dataset(base, path)
    dataset.create_index("v", "IVF_FLAT", metric="cosine", num_partitions=4)
    dataset.create_scalar_index("x", "BTREE")
    dataset.create_scalar_index("id", "BITMAP")
    dataset.create_scalar_index("t", "INVERTED")
    with pytest.raises(InvalidInputError, match="'id_idx' of the kind 'bitmap'"):
        dataset.initialize_mem_wal(maintained_indexes=["id_idx"])
    dataset.initialize_mem_wal()
    new, vectors = rows(np.arange(1900, 2400))
    new = new.append_column(pa.field("t", pa.string()), pa.array(["new"] * 500))
    with dataset.mem_wal_writer(SHARD, hnsw_params={"v_idx": {"num_edges": 8}}) as writer:
        writer.put(new)
        writer.delete(pa.table({"id": [1950]}))
        writer.put(new.slice(0, 1))
    folder = next((path / "_mem_wal" / SHARD).glob("*_gen_1"))
    made = lance.dataset(str(folder))
    assert {each.name: each.index_type for each in made.describe_indices()} == {
        "v_idx": "IVF_HNSW_FLAT",
        "x_idx": "BTree",
        "t_idx": "Inverted",
    }
    assert made.to_table(full_text_query="new").num_rows == 499
    assert made.count_rows("x = 3 AND id = 1921") == int(1921 % 7 == 3)
    planner = lance.mem_wal.LsmVectorSearchPlanner
    theirs = planner(lance.dataset(str(path)), snapshots_for(path), "v", distance_type="cosine")
    dataset = lance_dataset.dataset(path)
    ours = LsmVectorSearchPlanner(dataset, dataset.mem_wal_snapshots(), "v")
    for number in (3, 120, 499):
        query = pa.array(vectors[number])
        found = theirs.plan_search(query, k=3, nprobes=4).to_table()
        nearest = ours.plan_search(query, k=3, nprobes=4).to_table()
        assert found["id"][0].as_py() == nearest["id"][0].as_py() == 1900 + number
        # walks through graphs may miss a row, small SSTables are scanned here
        assert len({*found["id"].to_pylist()} & {*nearest["id"].to_pylist()}) >= 2
        assert all(
            mine <= other + 1e-5
            for mine, other in zip(*(each["_distance"].to_pylist() for each in (nearest, found)), strict=True)
        )
    gone = theirs.plan_search(pa.array(vectors[50]), k=3, nprobes=4).to_table()
    assert 1950 not in gone["id"].to_pylist()
