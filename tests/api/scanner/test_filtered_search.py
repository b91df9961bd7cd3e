"""Tests of searches that have another search as their filter, compared with the reference."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.query
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
import lance_dataset.query
from lance_dataset.dataset import VectorSearchQuery, serialize_row_addrs
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError

ROWS = 120
THEIRS: Any = sys.modules["lance.dataset"]
#: A filter, made from the queries of either package and its `VectorSearchQuery`.
Make = Callable[[Any, Any], Any]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Return a dataset with a full-text index, in which some rows are deleted and some have no index."""
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(["apple", "pear", "plum", "zebra"], rng.integers(0, 5))) for _ in range(ROWS)]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.permutation(ROWS).astype(np.float32)), 1)
    table = pa.table({"id": range(ROWS), "t": texts, "u": texts, "v": vectors})
    path = tmp_path_factory.mktemp("filtered") / "t"
    dataset = lance.write_dataset(table.slice(0, 100), path, max_rows_per_file=40)
    dataset.create_scalar_index("t", "INVERTED", with_position=True)
    lance.write_dataset(table.slice(100), path, mode="append")
    lance.dataset(path).delete("id % 10 = 7")
    return lance_dataset.dataset(path), lance.dataset(path)


def rows(found: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in found.to_pylist()]


def compare(both: tuple[Any, Any], make: Make, *, ordered: bool = True, **options: Any) -> None:
    """Compare ids, in their order, and the scores of both packages."""
    ours = both[0].to_table(columns=["id"], filter=make(lance_dataset.query, VectorSearchQuery), **options)
    theirs = both[1].to_table(columns=["id"], filter=make(lance.query, THEIRS.VectorSearchQuery), **options)
    assert ours.schema.equals(theirs.schema)
    found, wanted = rows(ours), rows(theirs)
    if not ordered:
        found, wanted = sorted(row[:1] for row in found), sorted(row[:1] for row in wanted)
    assert [row[0] for row in found] == [row[0] for row in wanted]
    assert [row[-1] for row in found] == pytest.approx([row[-1] for row in wanted], rel=4e-6)


def compare_limited(both: tuple[Any, Any], make: Make, text: str, limit: int) -> None:
    """Compare rows of a limited text search; which of those with the last score are kept is up to each package."""
    tables = [
        dataset.to_table(columns=["id"], filter=make(query, vector), full_text_query=text, limit=limit)
        for dataset, query, vector in (
            (both[0], lance_dataset.query, VectorSearchQuery),
            (both[1], lance.query, THEIRS.VectorSearchQuery),
        )
    ]
    assert tables[0].schema.equals(tables[1].schema)
    scores = dict(rows(both[0].to_table(columns=["id"], full_text_query=text)))
    last = sorted(scores.values(), reverse=True)[limit - 1]
    better = [{id for id in table["id"].to_pylist() if scores[id] > last * (1 + 4e-6)} for table in tables]
    assert better[0] == better[1]


NEAR = {"column": "v", "q": [40.25], "k": 30}
TEXTS: dict[str, Make] = {
    "match": lambda query, _: query.MatchQuery("apple", "t"),
    "and": lambda query, _: query.MatchQuery("apple pear", "t", operator=query.FullTextOperator.AND),
    "stems": lambda query, _: query.MatchQuery("apples", "t"),
    "no index": lambda query, _: query.MatchQuery("plum", "u"),
    "both": lambda query, _: {"search_filter": query.MatchQuery("apple", "t"), "expr_filter": "id % 3 > 0"},
    "only search": lambda query, _: {"search_filter": query.MatchQuery("apple", "t")},
}
VECTORS: dict[str, Make] = {
    "vector": lambda _, vector: vector("v", np.array([40.25], np.float32), k=30),
    "ten": lambda _, vector: vector("v", np.array([40.25], np.float32)),
    "both": lambda _, vector: {
        "search_filter": vector("v", np.array([40.25], np.float32), k=30),
        "expr_filter": "id % 3 > 0",
    },
}


@pytest.mark.parametrize("prefilter", [False, True])
@pytest.mark.parametrize("name", TEXTS)
def test_texts(both: tuple[Any, Any], name: str, prefilter: bool) -> None:
    """A search by vector, filtered by words."""
    compare(both, TEXTS[name], nearest=NEAR, prefilter=prefilter)
    compare(both, TEXTS[name], nearest=NEAR, prefilter=prefilter, order_by=["id"])


@pytest.mark.parametrize("name", ["phrase", "boolean", "boost", "multi"])
def test_other_queries(both: tuple[Any, Any], name: str) -> None:
    """Any query filters; the reference has these only before a search."""
    makes: dict[str, Make] = {
        "phrase": lambda query, _: query.PhraseQuery("apple pear", "t"),
        "boolean": lambda query, _: query.MatchQuery("apple", "t") & query.MatchQuery("plum", "t"),
        "boost": lambda query, _: query.BoostQuery(query.MatchQuery("apple", "t"), query.MatchQuery("plum", "t")),
        "multi": lambda query, _: query.MultiMatchQuery("zebra", ["t", "u"]),
    }
    compare(both, makes[name], nearest=NEAR, prefilter=True)
    query = makes[name](lance_dataset.query, None)
    near = both[0].to_table(columns=["id"], nearest=NEAR)["id"].to_pylist()
    matching = set(both[0].to_table(columns=["id"], full_text_query=query)["id"].to_pylist())
    found = both[0].to_table(columns=["id"], nearest=NEAR, filter=query)["id"].to_pylist()
    assert found == [row for row in near if row in matching]


@pytest.mark.parametrize("limit", [None, 12])
@pytest.mark.parametrize("name", VECTORS)
def test_vectors_after(both: tuple[Any, Any], name: str, limit: int | None) -> None:
    """A full-text search whose rows are filtered by their distances comes in their order."""
    for text in ("apple pear", lance_dataset.query.PhraseQuery("apple pear", "t")):
        if isinstance(text, str):
            if limit is None:
                compare(both, VECTORS[name], full_text_query=text)
            else:
                compare_limited(both, VECTORS[name], text, limit)
        found = both[0].to_table(
            columns=["id", "v"],
            full_text_query=text,
            limit=limit,
            filter=VECTORS[name](lance_dataset.query, VectorSearchQuery),
        )
        distances = [abs(vector[0] - 40.25) for vector in found["v"].to_pylist()]
        assert distances == sorted(distances)


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_before(both: tuple[Any, Any], name: str) -> None:
    """A full-text search among the nearest rows has the scores of any other, and its order."""
    compare(both, VECTORS[name], full_text_query="apple pear", prefilter=True, ordered=False)
    filter = VECTORS[name](lance_dataset.query, VectorSearchQuery)
    found = rows(both[0].to_table(columns=["id"], full_text_query="apple pear", prefilter=True, filter=filter))
    every = dict(rows(both[0].to_table(columns=["id"], full_text_query="apple pear")))
    indexed = [row for row in found if row[0] < 100]
    assert [score for _, score in indexed] == [every[row] for row, _ in indexed]
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


def test_limits(both: tuple[Any, Any]) -> None:
    """A limit and an offset count the rows that are left."""
    query = lance_dataset.query.MatchQuery("apple", "t")
    for prefilter in (False, True):
        every = both[0].to_table(columns=["id"], nearest=NEAR, filter=query, prefilter=prefilter)
        for options in ({"limit": 2}, {"limit": 3, "offset": 1}, {"offset": 2}):
            scanner = both[0].scanner(columns=["id"], nearest=NEAR, filter=query, prefilter=prefilter, **options)
            part = every.slice(options.get("offset", 0), options.get("limit"))
            assert scanner.to_table() == part
            assert scanner.count_rows() == part.num_rows
            assert scanner.head(1) == part.slice(0, 1)


def test_builder_and_addresses(both: tuple[Any, Any]) -> None:
    """Builders take the same filters, and sets of addresses restrict both searches."""
    query = lance_dataset.query.MatchQuery("apple", "t")
    builder = lance_dataset.ScannerBuilder(both[0]).columns(["id"]).nearest(**NEAR).prefilter(True)
    found = builder.filter(query).to_scanner().to_table()["id"].to_pylist()
    assert found == both[0].to_table(columns=["id"], nearest=NEAR, filter=query, prefilter=True)["id"].to_pylist()
    table = both[0].to_table(columns=["id"], with_row_address=True, filter=f"id IN {tuple(found[:3])}")
    allowed = serialize_row_addrs(table["_rowaddr"].to_pylist())
    for prefilter in (False, True):
        scanner = both[0].scanner(
            columns=["id"], nearest=NEAR, filter=query, prefilter=prefilter, row_addr_allowlist=allowed
        )
        assert scanner.to_table()["id"].to_pylist() == found[:3]


def test_plans(both: tuple[Any, Any]) -> None:
    """Plans name the other search."""
    query = lance_dataset.query.MatchQuery("apple", "t")
    plan = both[0].scanner(nearest=NEAR, filter=query, prefilter=True).explain_plan(True)
    assert "SearchFilter: MatchQuery" in plan
    assert "before the search" in plan
    scanner = both[0].scanner(full_text_query="apple", filter=VectorSearchQuery("v", [1.0], k=3))
    assert "VectorSearchQuery" in repr(VectorSearchQuery("v", [1.0], k=3))
    assert "after the search" in scanner.explain_plan()
    assert scanner.analyze_plan()


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"filter": lance_dataset.query.MatchQuery("a", "t")}, InvalidInputError, "only be used with"),
    ({"filter": VectorSearchQuery("v", [1.0])}, InvalidInputError, "only be used with"),
    (
        {"filter": lance_dataset.query.MatchQuery("a", "t"), "full_text_query": "x"},
        InvalidInputError,
        "Fts filter can't be used with fts",
    ),
    (
        {"filter": VectorSearchQuery("v", [1.0]), "nearest": NEAR},
        InvalidInputError,
        "Query filter can't be used with vector",
    ),
    ({"filter": {"search_filter": "x"}, "nearest": NEAR}, TypeError, "a search_filter is"),
    ({"filter": {"expr_filter": 5}, "nearest": NEAR}, TypeError, "an expr_filter is"),
    ({"filter": lance_dataset.query.MatchQuery("a", "w"), "nearest": NEAR}, FieldNotFoundError, "w"),
    ({"filter": VectorSearchQuery("v", [1.0, 2.0]), "full_text_query": "x"}, InvalidInputError, "does not match"),
    ({"filter": VectorSearchQuery("v", [[1.0]]), "full_text_query": "x"}, InvalidInputError, "one vector"),
    (
        {
            "filter": lance_dataset.query.MatchQuery("a", "t"),
            "nearest": lance_dataset.query.MinHashQuery(text="x", column="t"),
        },
        UnsupportedError,
        "similar texts",
    ),
]


@pytest.mark.parametrize(("options", "kind", "message"), WRONG, ids=lambda value: str(value)[:60])
def test_wrong_filters(both: tuple[Any, Any], options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        both[0].scanner(**options)


def test_stable_row_ids(tmp_path: Path) -> None:
    """Rows are the same in a table with stable row ids after updates."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(range(20), pa.float32()), 1)
    table = pa.table({"id": range(20), "t": ["apple", "pear"] * 10, "v": vectors})
    dataset = lance_dataset.write_dataset(table, tmp_path / "t", enable_stable_row_ids=True)
    dataset.create_scalar_index("t", "INVERTED")
    dataset.update({"t": "'apple'"}, where="id = 3")
    query = lance_dataset.query.MatchQuery("apple", "t")
    near = {"column": "v", "q": [3.2], "k": 3}
    assert dataset.to_table(columns=["id"], nearest=near, filter=query, prefilter=True)["id"].to_pylist() == [3, 4, 2]
    assert dataset.to_table(columns=["id"], nearest=near, filter=query)["id"].to_pylist() == [3, 4, 2]
