"""Tests of searches by text, by vector, or by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError
from lance_dataset.query import MatchQuery

ROWS = 400
WORDS = ["apple", "pear", "plum", "zebra", "pie", "tart"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance_dataset.LanceDataset:
    rng = np.random.default_rng(1)
    texts = [None if rng.random() < 0.1 else " ".join(rng.choice(WORDS, rng.integers(0, 7))) for _ in range(ROWS)]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=ROWS * 4).astype(np.float32)), 4)
    columns = {"id": range(ROWS), "t": texts, "title": texts[::-1], "v": vectors}
    path = tmp_path_factory.mktemp("hybrid") / "t"
    found = lance_dataset.write_dataset(pa.table(columns), path, max_rows_per_file=150)
    found.create_scalar_index("t", "INVERTED")
    found.delete("id % 9 = 4")
    return found


QUERY = [0.5, -0.5, 1.0, 0.0]


def sides(dataset: Any, text: str, most: int, **options: Any) -> tuple[dict[int, float], dict[int, float]]:
    """Return the results of both searches by id, the best first."""
    found = dataset.to_table(columns=["id"], full_text_query=text, limit=most, prefilter=True, **options)
    near = dataset.to_table(columns=["id"], nearest={"column": "v", "q": QUERY, "k": most}, prefilter=True, **options)
    return (
        dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True)),
        dict(zip(near["id"].to_pylist(), near["_distance"].to_pylist(), strict=True)),
    )


def spread(scores: dict[int, float]) -> dict[int, float]:
    low, high = min(scores.values()), max(scores.values())
    return {row: (score - low) / (high - low) for row, score in scores.items()}


def expected(text: dict[int, float], near: dict[int, float], fusion: str, weights: Any, constant: float) -> list[Any]:
    """Return ids, scores, distances and relevance by definition."""
    relevance: dict[int, float] = {}
    for side, weight in zip((text, {row: -distance for row, distance in near.items()}), weights, strict=True):
        shares = {row: 1 / (constant + place) for place, row in enumerate(side, 1)}
        for row, share in (shares if fusion == "rrf" else spread(side)).items():
            relevance[row] = relevance.get(row, 0) + weight * share
    order = sorted(relevance, key=lambda row: (-relevance[row], row))
    return [(row, text.get(row), near.get(row), relevance[row]) for row in order]


@pytest.mark.parametrize("fusion", ["rrf", "weighted"])
@pytest.mark.parametrize("options", [{}, {"filter": "id < 200"}], ids=str)
@pytest.mark.parametrize(("weights", "constant"), [((1, 1), 60), ((0.3, 2), 5.5), ((0, 1), 0)])
def test_fusion(dataset: Any, fusion: Any, options: Any, weights: Any, constant: float) -> None:
    """Relevance is that of the definition."""
    found = dataset.search(
        "apple tart", QUERY, ["id"], k=20, fusion=fusion, weights=weights, rrf_k=constant, candidates=50, **options
    )
    wanted = expected(*sides(dataset, "apple tart", 50, **options), fusion, weights, constant)[:20]
    assert found.column_names == ["id", "_score", "_distance", "_relevance"]
    assert found["id"].to_pylist() == [row for row, *_ in wanted]
    assert found["_score"].to_pylist() == [score for _, score, *_ in wanted]
    assert found["_distance"].to_pylist() == [distance for _, _, distance, _ in wanted]
    assert found["_relevance"].to_pylist() == pytest.approx([relevance for *_, relevance in wanted])
    assert found["_distance"].null_count or weights != (1, 1)


def test_one_search(dataset: Any) -> None:
    """A search for only a text or a vector has the rows of the scan, and only its own column."""
    text, near = sides(dataset, "pear", 10)
    found = dataset.search("pear", columns=["id"])
    assert dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True)) == text
    assert found.column_names == ["id", "_score"]
    for vector in (QUERY, {"q": QUERY}, {"column": "v", "q": np.array(QUERY), "metric": "l2"}):
        found = dataset.search(vector=vector, columns=["id"])
        assert dict(zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True)) == near
        assert found.column_names == ["id", "_distance"]


def test_columns(dataset: Any) -> None:
    """Columns may be expressions of what is found, and row ids and addresses come last."""
    found = dataset.search(
        MatchQuery("plum", "t"),
        QUERY,
        {"n": "id + 1", "r": "_relevance * 2", "_score": "_score"},
        k=3,
        with_row_id=True,
    )
    assert found.column_names == ["n", "r", "_score", "_distance", "_relevance", "_rowid"]
    assert found["r"].to_pylist() == pytest.approx([2 * each for each in found["_relevance"].to_pylist()])
    ids = [(row >> 32) * 150 + row % 2**32 for row in found["_rowid"].to_pylist()]
    assert found["n"].to_pylist() == [row + 1 for row in ids]
    assert dataset.search("plum", QUERY, with_row_address=True).column_names[:4] == ["id", "t", "title", "v"]


def test_nothing_found(dataset: Any) -> None:
    """A search that finds nothing leaves the other one."""
    found = dataset.search("unknown", QUERY, ["id"], k=4)
    assert found["id"].to_pylist() == dataset.search(vector=QUERY, columns=["id"], k=4)["id"].to_pylist()
    assert found["_score"].null_count == 4
    assert dataset.search("unknown").num_rows == 0
    assert dataset.search("apple", QUERY, k=0).num_rows == 0
    assert dataset.search("apple", QUERY, filter="id < 0").num_rows == 0


def test_column_without_index(dataset: Any) -> None:
    """A column without an index is read; the best rows come first."""
    scores = dataset.search("apple", text_columns=["title"], k=30)["_score"].to_pylist()
    assert len(scores) == 30
    assert scores == sorted(scores, reverse=True)


def test_weighted_distances_without_bound(tmp_path: Path) -> None:
    """Distances that are too large for a number count as the worst."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 3e38, 3.0], pa.float32()), 1)
    table = pa.table({"t": ["x", "y", "x", "x y"], "v": vectors})
    found = lance_dataset.write_dataset(table, tmp_path / "t").search(
        "x", [1], ["_rowid"], text_columns=["t"], fusion="weighted"
    )
    assert np.isfinite(found["_relevance"].to_numpy()).all()
    assert np.isinf(found["_distance"].to_numpy()).any()


INVALID: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({}, InvalidInputError, "search for a text, for a vector, or for both"),
    ({"text": "x", "vector": QUERY, "fusion": "best"}, InvalidInputError, "one of rrf, weighted"),
    ({"text": "x", "weights": (1, -1)}, InvalidInputError, "not negative"),
    ({"text": "x", "weights": (0, 0)}, InvalidInputError, "must not both be 0"),
    ({"text": "x", "weights": 3}, TypeError, "pair of numbers"),
    ({"text": "x", "weights": (1, "a")}, TypeError, "a weight must be a number"),
    ({"text": "x", "rrf_k": float("nan")}, InvalidInputError, "rrf_k must be finite"),
    ({"text": "x", "k": -1}, InvalidInputError, "(?i)k must"),
    ({"text": "x", "k": "3"}, TypeError, "(?i)k must"),
    ({"text": "x", "k": 5, "candidates": 4}, InvalidInputError, "at least k, 5, not 4"),
    ({"text": 7}, TypeError, "query must be text"),
    ({"text": "x", "text_columns": "t"}, TypeError, "list of names"),
    ({"text": "x", "text_columns": ["nope"]}, FieldNotFoundError, "nope"),
    ({"vector": [QUERY]}, UnsupportedError, "one vector"),
    ({"vector": QUERY, "vector_column": "t"}, TypeError, "must be a vector"),
    ({"vector": {"column": "v", "q": QUERY}, "vector_column": "w"}, InvalidInputError, "in 'v', not in 'w'"),
    ({"vector": [1.0]}, InvalidInputError, "does not match"),
    ({"text": "x", "filter": "nope = 1"}, FieldNotFoundError, "nope"),
    ({"text": "x", "columns": ["nope"]}, FieldNotFoundError, "nope"),
    ({"text": "x", "filter": MatchQuery("x", "t")}, InvalidInputError, "not another search"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), INVALID, ids=lambda value: str(value)[:50])
def test_invalid(dataset: Any, arguments: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        dataset.search(**arguments)


def test_vector_column_is_needed(tmp_path: Path) -> None:
    """With none or several columns of vectors, the search asks for a name."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(range(4), pa.float32()), 2)
    two = lance_dataset.write_dataset(pa.table({"v": vectors, "w": vectors}), tmp_path / "two")
    with pytest.raises(InvalidInputError, match="vector_column: v, w"):
        two.search(vector=[1, 2])
    assert two.search(vector=[0, 1], vector_column="w", k=1)["_distance"].to_pylist() == [0]
    none = lance_dataset.write_dataset(pa.table({"t": ["x"]}), tmp_path / "none")
    with pytest.raises(InvalidInputError, match="no column of vectors"):
        none.search(vector=[1, 2])
