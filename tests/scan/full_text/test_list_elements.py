"""Tests of full-text searches for elements of lists: the elements and scores of pylance, after all kinds of changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import query as reference_query

import lance_dataset
from lance_dataset import query as our_query
from lance_dataset.errors import CorruptFileError, InvalidInputError, UnsupportedError
from lance_dataset.file import LanceFileReader, LanceFileWriter

Make = Callable[[Any], Any]
WORDS = ["apple", "pear", "plum", "zebra", "Running", "runs", "café", "the", "pie"]
QUERIES = 12 if os.environ.get("LANCE_STRESS", "") in ("", "0") else 300
#: Type of the lists; pylance indexes no others by element.
LISTS = pa.list_(pa.string())


def lists(rng: np.random.Generator, rows: int) -> list[list[str | None] | None]:
    """Return lists of texts, some of them null or empty, with null and empty elements."""

    def element() -> str | None:
        return None if rng.random() < 0.1 else " ".join(rng.choice(WORDS, rng.integers(0, 5)))

    def values() -> list[str | None] | None:
        return None if rng.random() < 0.1 else [element() for _ in range(rng.integers(0, 5))]

    return [values() for _ in range(rows)]


def table(seed: int, rows: int, first: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {"n": pa.array(range(first, first + rows)), "l": pa.array(lists(rng, rows), LISTS)}
    return pa.table({**columns, "plain": pa.array(lists(rng, rows), LISTS), "s": ["apple pear"] * rows})


def random_query(rng: np.random.Generator, column: str, depth: int = 0) -> Make:
    """Return a query of any kind that can search elements."""
    words = " ".join(rng.choice(WORDS, rng.integers(1, 4)))
    kind = rng.integers(0, 3 if depth > 1 else 5)

    def granularity(module: Any) -> dict[str, Any]:
        return {"document_granularity": module.DocumentGranularity.LIST_ELEMENT}

    if kind <= 1:
        operator = str(rng.choice(["AND", "OR"]))
        return lambda module: module.MatchQuery(
            words, column, operator=module.FullTextOperator[operator], **granularity(module)
        )
    if kind == 2 and column == "l":
        return lambda module: module.PhraseQuery(words, column, **granularity(module))
    if kind == 3:
        positive, negative = (random_query(rng, column, depth + 1) for _ in range(2))
        return lambda module: module.BoostQuery(positive(module), negative(module), negative_boost=0.3)
    names = [str(name) for name in rng.choice(["MUST", "SHOULD", "MUST_NOT"], rng.integers(0, 3))]
    parts = [("SHOULD", random_query(rng, column, depth + 1))]
    parts += [(name, random_query(rng, column, depth + 1)) for name in names]
    return lambda module: module.BooleanQuery([(module.Occur[name], make(module)) for name, make in parts])


def found(handle: Any, query: Any, **options: Any) -> dict[tuple[int, tuple[int, ...]], float]:
    result = handle.scanner(columns=["n"], full_text_query=query, **options).to_table()
    assert result.schema.names == ["n", "_doc_index", "_score"]
    keys = [
        (n, tuple(place)) for n, place in zip(result["n"].to_pylist(), result["_doc_index"].to_pylist(), strict=True)
    ]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, result["_score"].to_pylist(), strict=True))


def changes(path: Path, **storage: Any) -> Iterator[None]:
    """Create a table with an index, and change it in several steps."""
    dataset = lance.write_dataset(table(1, 150), path, max_rows_per_file=60, **storage)
    granularity = reference_query.DocumentGranularity.LIST_ELEMENT
    dataset.create_scalar_index("l", "INVERTED", with_position=True, document_granularity=granularity)
    yield
    dataset = lance.write_dataset(table(2, 60, 150), path, mode="append")
    yield
    dataset.delete("n % 7 = 3")
    yield
    lance_dataset.dataset(path).optimize.optimize_indices()
    yield
    lance_dataset.dataset(path).optimize.compact_files()
    yield


@pytest.mark.parametrize("column", ["l", "plain"])
def test_same_results(column: str, tmp_path: Path) -> None:
    """Random queries find the elements and the scores of pylance, with an index and without one."""
    rng = np.random.default_rng(3)
    path = tmp_path / "t.lance"
    for _ in changes(path):
        for number in range(QUERIES):
            make = random_query(rng, column)
            options = {"filter": "n > 40", "prefilter": True} if number % 3 == 0 else {}
            theirs = found(lance.dataset(path), make(reference_query), **options)
            ours = found(lance_dataset.dataset(path), make(our_query), **options)
            assert ours == pytest.approx(theirs, rel=4e-6, abs=1e-6), f"{make(our_query)!r} {options}"


def test_own_index(tmp_path: Path) -> None:
    """An index that this package builds has the elements and the scores of one that pylance builds."""
    element = our_query.DocumentGranularity.LIST_ELEMENT
    for module, name in ((lance_dataset, "ours"), (lance, "theirs")):
        dataset = module.write_dataset(table(4, 200), tmp_path / name, max_rows_per_file=80)
        granularity = element if module is lance_dataset else reference_query.DocumentGranularity.LIST_ELEMENT
        dataset.create_scalar_index("l", "INVERTED", document_granularity=granularity)
    for words in ("apple", "pear plum", "running zebra the"):
        results = [
            found(module.dataset(tmp_path / name), query.MatchQuery(words, "l"))
            for module, query in ((lance_dataset, our_query), (lance, reference_query))
            for name in ("ours", "theirs")
        ]
        assert all(result == pytest.approx(results[0], rel=1e-6) for result in results)


def test_documents_without_places(tmp_path: Path) -> None:
    """A file of documents without places in lists, which the index needs, is damaged."""
    path = tmp_path / "t.lance"
    next(changes(path))
    name = next(path.glob("_indices/*/part_0_docs.lance"))
    documents = LanceFileReader(name).read_all().to_table().drop_columns(["_doc_index_0"])
    with LanceFileWriter(name) as writer:
        writer.write_batch(documents.replace_schema_metadata(None))
    with pytest.raises(CorruptFileError, match="its documents are rows, but elements of lists"):
        lance_dataset.dataset(path).to_table(full_text_query=our_query.MatchQuery("apple", "l"))


def test_outputs(tmp_path: Path) -> None:
    """Places can be named, filtered after the search, limited and ordered; without scores they stay."""
    path = tmp_path / "t.lance"
    next(changes(path))
    dataset = lance_dataset.dataset(path)
    query = our_query.MatchQuery("apple pear", "l")
    every = dataset.to_table(columns=["n"], full_text_query=query)
    named = dataset.to_table(columns=["_doc_index", "n", "_score"], full_text_query=query)
    assert named.select(["n", "_doc_index", "_score"]).equals(every)
    assert dataset.to_table(columns=["n"], full_text_query=query, limit=5).equals(every.slice(0, 5))
    hidden = dataset.scanner(columns=["n"], full_text_query=query, disable_scoring_autoprojection=True).to_table()
    assert hidden.schema.names == ["n", "_doc_index"]
    after = dataset.scanner(columns=["n"], full_text_query=query, filter="n < 50", prefilter=False).to_table()
    assert set(after["n"].to_pylist()) == {n for n in every["n"].to_pylist() if n < 50}
    nothing = dataset.to_table(columns=["n"], full_text_query=our_query.MatchQuery("nothing", "l"))
    assert nothing.schema == every.schema
    assert not nothing.num_rows


def test_no_fragment_left(tmp_path: Path) -> None:
    """Elements are found and scored after all rows of the index are gone."""
    path = tmp_path / "t.lance"
    next(changes(path))
    lance.dataset(path).delete("true")
    lance.write_dataset(table(5, 60, 1000), path, mode="append")
    for name in ("MatchQuery", "PhraseQuery"):
        ours = found(lance_dataset.dataset(path), getattr(our_query, name)("apple pear", "l"))
        assert ours == pytest.approx(found(lance.dataset(path), getattr(reference_query, name)("apple pear", "l")))
        assert ours


def test_refused(tmp_path: Path) -> None:
    """Queries that mix documents, or cannot search elements, raise an error, as in pylance."""
    path = tmp_path / "t.lance"
    next(changes(path))
    dataset = lance_dataset.dataset(path)
    row, element = our_query.DocumentGranularity.ROW, our_query.DocumentGranularity.LIST_ELEMENT
    by_element = our_query.MatchQuery("apple", "l")
    cases: list[tuple[Any, type[Exception], str]] = [
        (our_query.MatchQuery("apple", "l", document_granularity=row), InvalidInputError, "different granularity"),
        (our_query.MatchQuery("apple", "s", document_granularity=element), InvalidInputError, "no List layer"),
        (our_query.MultiMatchQuery("apple", ["l"]), UnsupportedError, "MultiMatch"),
        (our_query.CombinedFieldsQuery("apple", ["l"]), UnsupportedError, "whole rows"),
        (
            our_query.BooleanQuery(
                [(our_query.Occur.MUST, by_element), (our_query.Occur.SHOULD, our_query.MatchQuery("a", "s"))]
            ),
            InvalidInputError,
            "cannot mix",
        ),
        (
            our_query.BoostQuery(by_element, our_query.MatchQuery("a", "plain", document_granularity=element)),
            InvalidInputError,
            "same final field",
        ),
    ]
    for query, error, message in cases:
        with pytest.raises(error, match=message):
            dataset.to_table(full_text_query=query)
    dataset.create_scalar_index("l", "INVERTED")
    dataset = lance_dataset.dataset(path)
    with pytest.raises(InvalidInputError, match="ambiguous"):
        dataset.to_table(full_text_query=by_element)
    rows = dataset.to_table(full_text_query=our_query.MatchQuery("apple", "l", document_granularity=row))
    assert "_doc_index" not in rows.schema.names
    assert dataset.to_table(full_text_query="apple").num_rows == rows.num_rows
