"""Tests of full-text searches over a table and its shards, against a table that holds the newest rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.memwal.shards import OTHER, SHARD

import lance_dataset
from lance_dataset.errors import FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError
from lance_dataset.mem_wal import LsmScanner, LsmTextSearchPlanner
from lance_dataset.query import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextOperator,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)

KEY = {"lance-schema:unenforced-primary-key": "true"}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False, KEY),
        pa.field("text", pa.string()),
        pa.field("title", pa.large_string()),
        pa.field("x", pa.int32()),
    ]
)
WORDS = np.array(["apple", "bear", "cat", "dog", "egg", "fish", "goat", "hen", "ibis", "jay"])
RANDOM = np.random.default_rng(3)
QUERIES: list[Any] = [
    "apple",
    "Bears dogs",
    MatchQuery("cat egg", "text", operator=FullTextOperator.AND, boost=2.5),
    PhraseQuery("apple bear", "text"),
    PhraseQuery("fish dog", "text", slop=2),
    MultiMatchQuery("goat jay", ["text", "title"], boosts=[1.0, 3.0]),
    BooleanQuery(
        [
            (Occur.MUST, MatchQuery("hen", "text")),
            (Occur.SHOULD, MatchQuery("ibis", "title")),
            (Occur.MUST_NOT, MatchQuery("cat", "text")),
        ]
    ),
    BoostQuery(MatchQuery("dog", "title"), MatchQuery("egg", "text"), negative_boost=0.3),
]


def text() -> str | None:
    """Return a random text, also an empty one or null."""
    if RANDOM.random() < 0.08:
        return None
    return " ".join(WORDS[(RANDOM.random(RANDOM.integers(0, 25)) ** 2 * len(WORDS)).astype(int)])


def rows(ids: Any) -> pa.Table:
    ids = list(ids)
    content = {"id": ids, "text": [text() for _ in ids], "title": [text() for _ in ids], "x": [key % 5 for key in ids]}
    return pa.table(content, schema=SCHEMA)


class Model:
    """Newest rows by key, all rows that were ever in an index, and the table with its shards."""

    def __init__(self, folder: Path, base: pa.Table, indexed: int, **settings: Any) -> None:
        self.folder = folder
        self.newest = {row["id"]: row for row in base.to_pylist()}
        #: Older rows that an index still has.
        self.older = []
        self.indexed = {row["id"] for row in base.slice(0, indexed).to_pylist()}
        dataset = lance_dataset.write_dataset(base.slice(0, indexed), folder / "t", max_rows_per_file=200)
        if indexed:
            for column in ("text", "title"):
                dataset.create_scalar_index(column, "INVERTED", with_position=True)
        if indexed < base.num_rows:
            lance_dataset.write_dataset(base.slice(indexed), folder / "t", mode="append")
        self.dataset = lance_dataset.dataset(folder / "t")
        self.dataset.initialize_mem_wal(**settings)

    def change(self, new: pa.Table, gone: list[int]) -> None:
        """Note that rows were put or deleted."""
        for row in new.to_pylist():
            self._drop(row["id"])
            self.newest[row["id"]] = row
        for key in gone:
            self._drop(key)

    def _drop(self, key: int) -> None:
        old = self.newest.pop(key, None)
        if old is not None and key in self.indexed:
            self.indexed.remove(key)
            self.older.append(old)

    def flushed(self, keys: Any) -> None:
        """Note that an index has the rows of keys."""
        self.indexed |= set(keys) & set(self.newest)

    def expected(self) -> lance_dataset.LanceDataset:
        """Return a table with one index, which has the older rows, too, although they are deleted."""
        newest = pa.Table.from_pylist(list(self.newest.values()), SCHEMA)
        older = pa.Table.from_pylist([{**row, "x": -1} for row in self.older], SCHEMA)
        made = lance_dataset.write_dataset(
            pa.concat_tables([newest, older]), self.folder / f"m{RANDOM.integers(1 << 40)}"
        )
        for column in ("text", "title"):
            made.create_scalar_index(column, "INVERTED", with_position=True)
        made.delete("x = -1")
        return made


def check(
    found: pa.Table, model: lance_dataset.LanceDataset, query: Any, k: int | None, filter: str | None = None
) -> None:
    """Compare the rows of a search with those of a table, in any order among equal scores."""
    query = MatchQuery(query, "text") if isinstance(query, str) else query
    every = model.to_table(full_text_query=query, filter=filter, prefilter=True)
    scores = dict(zip(every["id"].to_pylist(), every["_score"].to_pylist(), strict=True))
    mine = found["_score"].to_pylist()
    assert mine == sorted(mine, reverse=True)
    best = sorted(scores.values(), reverse=True)[:k]
    assert len(best)
    assert np.allclose(mine, best, rtol=1e-5)
    ids = found["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    assert np.allclose(mine, [scores[key] for key in ids], rtol=1e-5)
    expected = model.to_table(columns=["text", "x"], filter=f"id IN ({','.join(map(str, ids))})", with_row_id=False)
    by_id = dict(zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True))
    assert sorted(map(str, by_id.values())) == sorted(map(str, expected["text"].to_pylist()))


@pytest.fixture(scope="module", params=["maintained", "plain"])
def shards(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a table with SSTables of two shards, and the table of its newest rows."""
    maintained = request.param == "maintained"
    model = Model(
        *(tmp_path_factory.mktemp("texts"), rows(range(700)), 500),
        **({} if maintained else {"maintained_indexes": []}),
    )
    for shard, starts in ((SHARD, (100, 650)), (OTHER, (1000,))):
        with model.dataset.mem_wal_writer(shard) as writer:
            for start in starts:
                new = rows(range(start, start + 120))
                gone = [start + 3, start + 7, (start + 200) % 600]
                writer.put(new)
                writer.delete(pa.table({"id": gone}))
                writer.flush()
                model.change(new, gone)
                if maintained:
                    model.flushed(range(start, start + 120))
    return lance_dataset.dataset(model.folder / "t"), model.expected()


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
@pytest.mark.parametrize("filter", [None, "x > 2"])
def test_queries(shards: Any, query: Any, filter: str | None) -> None:
    """Rows and scores are those of a table that holds the newest rows."""
    dataset, model = shards
    planner = LsmTextSearchPlanner(dataset, dataset.mem_wal_snapshots(), "text", filter=filter)
    for k in (7, 2000):
        check(planner.plan_search(query, k=k).to_table(), model, query, k, filter)


def test_plans(shards: Any) -> None:
    """A plan names its sources and how they are searched; its result has the columns of its schema."""
    dataset, _ = shards
    planner = LsmTextSearchPlanner(dataset, dataset.mem_wal_snapshots(), "text")
    plan = planner.plan_search("apple", k=3, columns=["title", "_score"])
    assert plan.schema.names == plan.to_table().schema.names == ["title", "id", "_score"]
    assert plan.schema.types == [pa.large_string(), pa.int64(), pa.float32()]
    lines = plan.explain()
    assert "index 'text_idx'; the texts of 1 fragments are read" in lines
    assert "generation=2, column=text" in lines
    assert planner.plan_search("apple").schema.names == ["id", "text", "title", "x", "_score"]
    assert planner.plan_search("none of these words").to_table().num_rows == 0
    assert planner.plan_search("").to_table().num_rows == 0


@pytest.mark.parametrize("indexed", [0, 60])
def test_memtables(tmp_path: Path, indexed: int) -> None:
    """A scanner of a writer finds rows of its memtables; without an index, words are compared as they are."""
    model = Model(tmp_path, rows(range(60)), indexed)
    with model.dataset.mem_wal_writer(SHARD) as writer:
        for start in (20, 50):
            new = rows(range(start, start + 40))
            writer.put(new)
            writer.put(new.slice(0, 10))
            writer.delete(pa.table({"id": [start + 1, 5]}))
            model.change(new, [start + 1, 5])
            expected = model.expected()
            for query in QUERIES:
                if query == "Bears dogs" and not indexed:
                    continue
                scanner = writer.lsm_scanner().full_text_search(query, ["text"] if isinstance(query, str) else None)
                check(scanner.to_table(), expected, query, None)
                check(scanner.filter("x < 3").limit(5).to_table(), expected, query, 5, "x < 3")


def test_scanners(shards: Any) -> None:
    """Searches of a scanner have the other options of scans."""
    dataset, model = shards

    def new() -> LsmScanner:
        return LsmScanner.from_snapshots(dataset, dataset.mem_wal_snapshots()).full_text_search("apple")

    query = MultiMatchQuery("apple", ["text", "title"])
    every = new().project(["_score", "x"]).with_memtable_gen().with_row_address().to_table()
    assert every.schema.names == ["x", "id", "_memtable_gen", "_rowaddr", "_score"]
    assert new().count_rows() == every.num_rows == model.to_table(full_text_query=query).num_rows
    assert {*every["_memtable_gen"].to_pylist()} == {0, 1, 2}
    for row in every.to_pylist():
        assert (row["_rowaddr"] is None) == (row["_memtable_gen"] > 0)
    part = new().limit(5, 3)
    assert part.to_batch()["id"].to_pylist() == every["id"].to_pylist()[3:8]
    assert pa.Table.from_batches(part.to_batches()) == part.to_table() == part.to_reader().read_all()
    assert new().limit(0).to_table().num_rows == 0


def test_empty_shards(tmp_path: Path) -> None:
    """An empty table, a shard without rows and one with deletions only are sources without texts."""
    schema = SCHEMA.append(pa.field("inner", pa.struct([pa.field("t", pa.string())])))
    empty = lance_dataset.write_dataset(schema.empty_table(), tmp_path / "t")
    empty.initialize_mem_wal()
    empty.mem_wal_writer(OTHER).close()
    with empty.mem_wal_writer(SHARD) as writer:
        writer.delete(pa.table({"id": [1]}))
        writer.flush()
        search = LsmTextSearchPlanner(empty, empty.mem_wal_snapshots(), "text").plan_search
        assert search("apple").to_table().num_rows == 0
        row = {"id": 1, "text": "apple", "title": None, "x": 1, "inner": {"t": "bear cat"}}
        nothing = {"id": 2, "text": "bear", "title": None, "x": 2, "inner": None}
        writer.put(pa.Table.from_pylist([row, nothing], schema))
        scanner = writer.lsm_scanner()
        assert scanner.full_text_search("apple", ["text"]).to_table()["id"].to_pylist() == [1]
        assert scanner.full_text_search(PhraseQuery("bear cat", "inner.t")).to_table()["id"].to_pylist() == [1]
        assert scanner.full_text_search("bear", ["inner.t", "text"]).to_table()["id"].to_pylist() == [2, 1]
        with pytest.raises(InvalidInputError, match="INVERTED index has been created"):
            scanner.full_text_search("apple").to_table()


def test_composite_keys(tmp_path: Path) -> None:
    """Rows are the same only if all columns of the key are equal, also for a key that the planner is given."""
    position = "lance-schema:unenforced-primary-key:position"
    schema = pa.schema(
        [
            pa.field("a", pa.string(), False, {**KEY, position: "1"}),
            pa.field("b", pa.int16(), False, {**KEY, position: "2"}),
            pa.field("text", pa.string()),
        ]
    )

    def content(*values: tuple[str, int, str | None]) -> pa.Table:
        return pa.table(list(zip(*values, strict=True)), schema=schema)

    base = content(("k", 1, "old apple"), ("k", 2, "apple"), ("l", 1, "apple apple"))
    dataset = lance_dataset.write_dataset(base, tmp_path / "t")
    dataset.create_scalar_index("text", "INVERTED")
    dataset.initialize_mem_wal()
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(content(("k", 1, "new pear"), ("m", 1, "apple pear")))
        writer.flush()
        writer.put(content(("m", 1, None)))
        writer.delete(pa.table({"a": ["l"], "b": pa.array([1], pa.int16())}))
    dataset = lance_dataset.dataset(tmp_path / "t")
    planner = LsmTextSearchPlanner(dataset, dataset.mem_wal_snapshots(), "text")
    found = planner.plan_search("Apples pears", columns=["text"]).to_table()
    assert sorted(found.select(["text", "a", "b"]).to_pylist(), key=str) == [
        {"text": "apple", "a": "k", "b": 2},
        {"text": "new pear", "a": "k", "b": 1},
    ]
    other = LsmTextSearchPlanner(dataset, dataset.mem_wal_snapshots(), "text", ["a", "b"])
    assert other.plan_search("apple pear").to_table().num_rows == 2


def test_merged_shards(tmp_path: Path) -> None:
    """SSTables that the table contains, and those of an index with other parameters, do not change the result."""
    model = Model(tmp_path, rows(range(100)), 100)
    with model.dataset.mem_wal_writer(SHARD) as writer:
        new = rows(range(50, 150))
        writer.put(new)
        model.change(new, [])
    dataset = lance_dataset.dataset(tmp_path / "t")
    snapshots = dataset.mem_wal_snapshots()
    dataset.create_scalar_index("text", "INVERTED", with_position=True, stem=False, replace=True)
    planner = LsmTextSearchPlanner(dataset, snapshots, "text")
    assert "generation=1, column=text: the texts are read" in planner.plan_search("apple").explain()
    check(planner.plan_search("apple", k=500).to_table(), model.expected(), "apple", None)
    dataset.merge_mem_wal()
    merged = LsmTextSearchPlanner(dataset, snapshots, "text").plan_search("apple", k=500)
    assert "generation" not in merged.explain()
    check(merged.to_table(), model.expected(), "apple", None)


def test_refused_searches(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(rows(range(3)), tmp_path / "t")
    planner = LsmTextSearchPlanner(dataset, [], "text")
    for k in (0, -1):
        with pytest.raises((InvalidInputError, OverflowError)):
            planner.plan_search("apple", k=k)
    for query in (3, None, {"query": "apple"}):
        with pytest.raises(TypeError, match="query must be text"):
            planner.plan_search(query)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="query must be text"):
            LsmScanner.from_snapshots(dataset, []).full_text_search(query)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="similar words"):
        planner.plan_search(MatchQuery("aple", "text", fuzziness=1))
    with pytest.raises(UnsupportedError, match="CombinedFieldsQuery is not supported for shards"):
        planner.plan_search(CombinedFieldsQuery("apple", ["text", "title"]))
    with pytest.raises(FieldNotFoundError, match="nothing"):
        planner.plan_search("apple", columns=["nothing"])
    with pytest.raises(FieldNotFoundError, match="txt"):
        planner.plan_search(MatchQuery("apple", "txt"))
    with pytest.raises(FieldNotFoundError, match="did you mean 'text'"):
        LsmTextSearchPlanner(dataset, [], "txt")
    with pytest.raises(InvalidInputError, match="'x' must hold text"):
        LsmTextSearchPlanner(dataset, [], "x")
    with pytest.raises(FilterError):
        LsmTextSearchPlanner(dataset, [], "text", filter="x +")
    with pytest.raises(FieldNotFoundError, match="in filter"):
        LsmTextSearchPlanner(dataset, [], "text", filter="y = 1")
    with pytest.raises(TypeError, match="column must be a name"):
        LsmTextSearchPlanner(dataset, [], ["text"])  # type: ignore[arg-type]
    plain = lance_dataset.write_dataset(pa.table({"text": ["apple"]}), tmp_path / "plain")
    with pytest.raises(InvalidInputError, match="no primary key"):
        LsmTextSearchPlanner(plain, [], "text")
    lists = pa.table(
        {"id": [1], "tags": [["apple", "pear"]]},
        schema=pa.schema([SCHEMA.field("id"), pa.field("tags", pa.list_(pa.string()))]),
    )
    tagged = lance_dataset.write_dataset(lists, tmp_path / "lists")
    found = LsmTextSearchPlanner(tagged, [], "tags").plan_search("pear").to_table()
    assert found["id"].to_pylist() == [1]
