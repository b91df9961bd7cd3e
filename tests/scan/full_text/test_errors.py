"""Tests of full-text searches that are refused, and of damaged index files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import query as reference_query

import lance_dataset
from lance_dataset import query as our_query
from lance_dataset.errors import (
    CorruptFileError,
    FieldNotFoundError,
    InvalidInputError,
    LanceError,
    OutOfRangeError,
)
from lance_dataset.query import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    DocumentGranularity,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    words = [" ".join(rng.choice(["red", "green", "blue", "white", "black"], 5)) for _ in range(600)]
    data = pa.table({"n": range(600), "t": words, "u": words, "l": [[word] for word in words]})
    found = tmp_path_factory.mktemp("texts") / "t.lance"
    dataset = lance.write_dataset(data, found)
    dataset.create_scalar_index("t", "INVERTED", with_position=True)
    dataset.create_scalar_index("u", "INVERTED")
    dataset.create_scalar_index("l", "INVERTED", document_granularity=reference_query.DocumentGranularity.LIST_ELEMENT)
    return found


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: MatchQuery(1, "t"), TypeError),  # type: ignore[arg-type]
        (lambda: MatchQuery("x", None), TypeError),  # type: ignore[arg-type]
        (lambda: MatchQuery("x", "t", boost="2"), TypeError),  # type: ignore[arg-type]
        (lambda: MatchQuery("x", "t", fuzziness=-1), OutOfRangeError),
        (lambda: MatchQuery("x", "t", max_expansions=-1), OutOfRangeError),
        (lambda: MatchQuery("x", "t", prefix_length=1 << 32), OutOfRangeError),
        (lambda: MatchQuery("x", "t", operator="AND"), TypeError),  # type: ignore[arg-type]
        (lambda: MatchQuery("x", "t", document_granularity="row"), TypeError),
        (lambda: PhraseQuery("x", "t", slop=-1), OutOfRangeError),
        (lambda: MultiMatchQuery("x", "t"), TypeError),  # type: ignore[arg-type]
        (lambda: MultiMatchQuery("x", []), InvalidInputError),
        (lambda: MultiMatchQuery("x", ["t"], boosts=[1, 2]), InvalidInputError),
        (lambda: CombinedFieldsQuery("x", ["t"], boosts=[0.5]), InvalidInputError),
        (lambda: CombinedFieldsQuery("x", ["t", "t"]), InvalidInputError),
        (lambda: BoostQuery(MatchQuery("x", "t"), 1), TypeError),  # type: ignore[arg-type]
        (lambda: BooleanQuery([("must", MatchQuery("x", "t"))]), TypeError),  # type: ignore[list-item]
    ],
)
def test_wrong_queries(make: Any, error: type[Exception]) -> None:
    """Arguments of wrong types and values are refused when a query is made."""
    with pytest.raises(error):
        make()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (MatchQuery("red", "t", boost=-1), InvalidInputError, "finite and non-negative"),
        (MatchQuery("red", "t", boost=float("nan")), InvalidInputError, "finite and non-negative"),
        (MatchQuery("red", "t", boost=1e39), InvalidInputError, "finite and non-negative"),
        (BooleanQuery([(Occur.MUST_NOT, MatchQuery("red", "t"))]), InvalidInputError, "at least one should/must"),
        (BooleanQuery([]), InvalidInputError, "at least one should/must"),
        (MatchQuery("red", "x"), FieldNotFoundError, "No field named x"),
        (MatchQuery("red", ""), FieldNotFoundError, "name of a column"),
        (MatchQuery("red", "n"), InvalidInputError, "must hold text"),
        (CombinedFieldsQuery("red", ["t", "x"]), FieldNotFoundError, "No field named x"),
        ({"text": "red"}, TypeError, "'query'"),
        ({"query": "red", "columns": "t"}, TypeError, "list of names"),
        ({"query": MatchQuery("red", "t"), "columns": ["t"]}, InvalidInputError, "part of the MatchQuery"),
        (["red"], TypeError, "must be text"),
        (
            MatchQuery("red", "t", document_granularity=DocumentGranularity.LIST_ELEMENT),
            InvalidInputError,
            "document granularity",
        ),
        (PhraseQuery("red green", "u"), InvalidInputError, "position is not found"),
    ],
    ids=str,
)
def test_wrong_searches(path: Path, given: Any, error: type[Exception], words: str) -> None:
    """A search says what is wrong with its query."""
    with pytest.raises(error, match=words):
        lance_dataset.dataset(path).to_table(full_text_query=given)


def test_wrong_options(path: Path) -> None:
    """Options that do not fit a search are refused, and numbers as queries are ignored, as in pylance."""
    dataset = lance_dataset.dataset(path)
    with pytest.raises(InvalidInputError, match="deleted rows"):
        dataset.to_table(full_text_query="red", include_deleted_rows=True, with_row_id=True)
    with pytest.raises(InvalidInputError, match="at the same time"):
        dataset.to_table(full_text_query="red", nearest={"column": "v", "q": [1.0]})
    with pytest.raises(LanceError):
        dataset.to_table(full_text_query="red", filter="_score > 0", prefilter=True)
    assert dataset.to_table(full_text_query=5).num_rows == 600


def test_no_index(tmp_path: Path) -> None:
    """A text without columns needs an index."""
    dataset = lance_dataset.write_dataset(pa.table({"t": ["red"]}), tmp_path)
    with pytest.raises(InvalidInputError, match="unless an INVERTED index"):
        dataset.to_table(full_text_query="red")
    assert dataset.to_table(full_text_query=MatchQuery("red", "t"), fast_search=True).num_rows == 0


def test_empty_index(tmp_path: Path) -> None:
    """An index without documents finds nothing; rows without an index are still found."""
    dataset = lance.write_dataset(pa.table({"t": pa.array([], pa.string())}), tmp_path / "t.lance")
    dataset.create_scalar_index("t", "INVERTED", with_position=True)
    for rows in ([], ["red green", "blue"]):
        lance.write_dataset(pa.table({"t": pa.array(rows, pa.string())}), tmp_path / "t.lance", mode="append")
        ours, theirs = lance_dataset.dataset(tmp_path / "t.lance"), lance.dataset(tmp_path / "t.lance")
        for name, args in (("MatchQuery", ("red", "t")), ("PhraseQuery", ("red green", "t"))):
            found = ours.to_table(full_text_query=getattr(our_query, name)(*args))
            wanted = theirs.to_table(full_text_query=getattr(reference_query, name)(*args))
            assert found["t"].to_pylist() == wanted["t"].to_pylist()
            assert np.allclose(found["_score"], wanted["_score"])


def test_damaged_files(path: Path, tmp_path: Path) -> None:
    """Changed and truncated index files give an error of this package, or an answer, but never anything else."""
    rng = np.random.default_rng(7)
    queries = [MatchQuery("red blue", "t"), PhraseQuery("red blue", "t"), MatchQuery("rad", "t", fuzziness=1)]
    raised = 0
    for number in range(60):
        copy = tmp_path / str(number)
        shutil.copytree(path, copy)
        files = [file for file in (copy / "_indices").rglob("*.lance") if file.stat().st_size]
        file = files[number % len(files)]
        data = bytearray(file.read_bytes())
        for place in rng.integers(0, len(data), 30):
            data[place] = rng.integers(256)
        file.write_bytes(data)
        dataset = lance_dataset.dataset(copy)
        for query in queries:
            try:
                dataset.to_table(full_text_query=query, limit=int(rng.integers(1, 30)))
            except LanceError as error:
                raised += isinstance(error, CorruptFileError)
        shutil.rmtree(copy)
    assert raised
