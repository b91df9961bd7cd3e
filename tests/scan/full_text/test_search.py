"""Tests of full-text searches: the rows and scores of pylance, after all kinds of changes."""

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
from lance_dataset.errors import InvalidInputError

#: A query, made from the module `query` of either package.
Make = Callable[[Any], Any]
WORDS = ["apple", "pear", "plum", "zebra", "Running", "runs", "café", "naïve", "the", "x1", "don't", "of", "pie"]
#: Queries after each step of a history; 10,080 in all by request.
QUERIES = 25 if os.environ.get("LANCE_STRESS", "") in ("", "0") else 480


def texts(rng: np.random.Generator, rows: int, most: int = 12) -> list[str | None]:
    """Return texts of words whose frequencies differ much, some of them empty or null."""
    chances = 1 / np.arange(1, len(WORDS) + 1)
    found: list[str | None] = []
    for _ in range(rows):
        words = rng.choice(WORDS, rng.integers(0, most), p=chances / chances.sum())
        found.append(None if rng.random() < 0.05 else " ".join(words))
    return found


def table(seed: int, rows: int, first: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {"n": list(range(first, first + rows)), "t": texts(rng, rows), "u": texts(rng, rows, 5)}
    return pa.table({**columns, "plain": texts(rng, rows, 6)})


def match(words: str, column: str = "t", **options: Any) -> Make:
    def make(module: Any) -> Any:
        given = {**options}
        if "operator" in given:
            given["operator"] = module.FullTextOperator[given["operator"]]
        return module.MatchQuery(words, column, **given)

    return make


def phrase(words: str, column: str = "t", slop: int = 0) -> Make:
    return lambda module: module.PhraseQuery(words, column, slop=slop)


def boolean(**parts: list[Make]) -> Make:
    return lambda module: module.BooleanQuery(
        [(module.Occur[name.upper()], make(module)) for name, makes in parts.items() for make in makes]
    )


def boosted(positive: Make, negative: Make, factor: float) -> Make:
    return lambda module: module.BoostQuery(positive(module), negative(module), negative_boost=factor)


def random_query(rng: np.random.Generator, depth: int = 0) -> Make:
    """Return a query of any kind."""
    words = " ".join(rng.choice(WORDS, rng.integers(1, 4)))
    kind = rng.integers(0, 6 if depth > 1 else 9)
    column = str(rng.choice(["t", "t", "u"]))
    if kind <= 1:
        return match(words, column, operator=str(rng.choice(["AND", "OR"])), boost=float(rng.choice([0, 1, 2.5])))
    if kind == 2:
        word = str(rng.choice(["aple", "pare", "zebr", "plums", "tarte"]))
        return match(word, "t", fuzziness=int(rng.integers(1, 3)))
    if kind == 3:
        # The reference misses some phrases of three words or more with a slop.
        return phrase(words, slop=int(rng.integers(0, 3)) if words.count(" ") < 2 and "'" not in words else 0)
    if kind == 4:
        boosts = [float(rng.integers(1, 4)) for _ in range(2)]
        return lambda module: module.MultiMatchQuery(words, ["t", "u"], boosts=boosts)
    if kind == 5:
        factors, operator = [1.0, float(rng.integers(2, 6)) / 2], str(rng.choice(["AND", "OR"]))
        return lambda module: module.CombinedFieldsQuery(
            words, ["t", "u"], boosts=factors, operator=module.FullTextOperator[operator]
        )
    if kind == 6:
        return boosted(random_query(rng, depth + 1), random_query(rng, depth + 1), 0.3)
    parts = {name: [random_query(rng, depth + 1) for _ in range(rng.integers(0, 3))] for name in ("must", "must_not")}
    return boolean(should=[random_query(rng, depth + 1)], **parts)


def scores(handle: Any, module: Any, make: Make, **options: Any) -> dict[int, float]:
    found = handle.scanner(columns=["n", "_score"], full_text_query=make(module), **options).to_table()
    assert (np.diff(found["_score"].to_numpy()) <= 0).all() or "order" in options
    numbers = found["n"].to_pylist()
    assert len(set(numbers)) == len(numbers)
    return dict(zip(numbers, found["_score"].to_pylist(), strict=True))


def assert_same(path: Path, make: Make, **options: Any) -> None:
    """Compare rows and scores of both packages; with a limit, only the scores, as ties may be broken otherwise."""
    wanted = scores(lance.dataset(path), reference_query, make, **options)
    found = scores(lance_dataset.dataset(path), our_query, make, **options)
    where = f"{make(our_query)!r} {options}"
    if "limit" not in options:
        assert found.keys() == wanted.keys(), where
        assert all(abs(found[n] - wanted[n]) <= 1e-6 * max(1, abs(wanted[n])) * 4 for n in wanted), where
    assert list(found.values()) == pytest.approx(list(wanted.values()), rel=4e-6, abs=1e-6), where


def changes(path: Path, **index: Any) -> Iterator[str]:
    """Create a table with indices, and change it in several steps."""
    dataset = lance.write_dataset(table(1, 300), path, max_rows_per_file=120)
    for column in ("t", "u"):
        dataset.create_scalar_index(column, "INVERTED", with_position=True, **index)
    yield "covered"
    dataset = lance.write_dataset(table(2, 120, 300), path, mode="append")
    yield "appended"
    dataset.delete("n % 7 = 3")
    yield "deleted"
    dataset.update({"t": "'apple zebra apple'"}, where="n % 11 = 1")
    yield "updated"
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    yield "two segments"
    dataset.delete("n < 20")
    dataset.optimize.compact_files()
    yield "compacted"
    dataset.optimize.optimize_indices(num_indices_to_merge=5)
    yield "merged"


@pytest.mark.parametrize("index", [{}, {"block_size": 256}, {"format_version": 1, "remove_stop_words": False}], ids=str)
def test_changes(tmp_path: Path, index: dict[str, Any]) -> None:
    """Queries of all kinds find the rows and scores of pylance after every change."""
    rng = np.random.default_rng(len(index))
    for step in changes(tmp_path / "t.lance", **index):
        for number in range(QUERIES):
            options: dict[str, Any] = {"limit": int(rng.integers(1, 30))} if number % 3 == 0 else {}
            assert_same(tmp_path / "t.lance", random_query(rng), **options)
        assert step


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Table with two indices that do not cover all rows, and a column without one."""
    found = tmp_path_factory.mktemp("texts") / "t.lance"
    steps = changes(found)
    while next(steps) != "updated":
        pass
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"filter": "n > 100"},
        {"filter": "n > 100 and _score > 1.0"},
        {"filter": "n > 100", "prefilter": True},
        {"filter": "n > 100", "prefilter": True, "limit": 5},
        {"filter": "n % 2 = 0", "prefilter": True, "limit": 300},
        {"fast_search": True},
        {"fast_search": True, "limit": 7},
        {"limit": 6, "offset": 4},
        {"offset": 11},
    ],
    ids=str,
)
def test_options(path: Path, options: dict[str, Any]) -> None:
    """Filters before and after the search, limits, offsets and `fast_search` have the same effect."""
    makes = [match("apple pie"), match("pear plum", operator="AND"), phrase("pear apple", slop=1)]
    makes.append(boolean(must=[match("apple", "u")], should=[match("tart")], must_not=[match("zebra")]))
    for make in makes:
        if "offset" in options and "limit" not in options:
            found = scores(lance_dataset.dataset(path), our_query, make)
            assert list(scores(lance_dataset.dataset(path), our_query, make, **options)) == list(found)[11:]
            continue
        assert_same(path, make, **options)


def test_text_and_columns(path: Path) -> None:
    """A text is searched for in the columns named, or in all that have an index."""
    for given in ("apple", {"query": "pear tart", "columns": ["u"]}, {"query": "pear", "columns": ["t", "u"]}):
        assert_same(path, lambda _, given=given: given)
        assert_same(path, lambda _, given=given: given, limit=5)
    ours = lance_dataset.dataset(path)
    builder = lance_dataset.ScannerBuilder(ours).columns(["n"]).full_text_search("pear tart", columns=["u"])
    wanted = lance.dataset(path).to_table(columns=["n"], full_text_query={"query": "pear tart", "columns": ["u"]})
    assert builder.to_scanner().count_rows() == wanted.num_rows


@pytest.mark.parametrize("options", [{}, {"filter": "n < 150", "prefilter": True}, {"filter": "n < 150"}], ids=str)
def test_column_without_index(path: Path, options: dict[str, Any]) -> None:
    """Columns without an index are read; the rows have the order of the table, unless there is a limit."""
    for make in (match("apple", "plain"), match("the Running", "plain"), phrase("apple pear", "plain", 1)):
        ours = lance_dataset.dataset(path).scanner(full_text_query=make(our_query), columns=["n"], **options).to_table()
        theirs = lance.dataset(path).to_table(full_text_query=make(reference_query), columns=["n"], **options)
        assert ours["n"].to_pylist() == theirs["n"].to_pylist()
        both = [dict(zip(each["n"].to_pylist(), each["_score"].to_pylist(), strict=True)) for each in (ours, theirs)]
        assert both[0] == pytest.approx(both[1], rel=4e-6)
        if "filter" not in options or "prefilter" in options:
            assert_same(path, make, limit=9, **options)


def test_output(path: Path) -> None:
    """The score is a column that can be named, computed with, filtered and sorted by; or left out."""
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    for options in (
        {"columns": ["n"]},
        {"columns": ["_score", "n"]},
        {"columns": []},
        {"columns": {"double": "_score * 2", "n": "n"}},
        {"columns": ["n"], "with_row_id": True, "with_row_address": True},
        {"columns": ["n"], "disable_scoring_autoprojection": True},
        {"columns": ["n"], "order_by": ["n"]},
        {},
    ):
        results = [
            dataset.scanner(full_text_query=module.MatchQuery("zebra tart", "t"), limit=1, **options).to_table()
            for dataset, module in ((ours, our_query), (theirs, reference_query))
        ]
        assert results[0].schema.names == results[1].schema.names
        assert [field.type for field in results[0].schema] == [field.type for field in results[1].schema]
        assert results[0].num_rows == results[1].num_rows


def test_handles(path: Path) -> None:
    """A scanner of a search counts, returns batches, and describes its plan."""
    scanner = lance_dataset.dataset(path).scanner(
        full_text_query=our_query.MatchQuery("apple pear", "t"), columns=["n"], limit=20, filter="n > 3", prefilter=True
    )
    assert scanner.count_rows() == scanner.to_table().num_rows == 20
    assert scanner.head(3).equals(scanner.to_table().slice(0, 3))
    assert sum(batch.num_rows for batch in scanner.to_batches()) == 20
    plan = scanner.explain_plan(True)
    assert "MatchQuery: " in plan
    assert "best=20, where=n > 3" in plan
    assert "index 't_idx'" in plan
    assert "fragments without an index are read" in plan
    assert "MatchQuery" in scanner.analyze_plan()


def test_fragments(path: Path) -> None:
    """A search can be restricted to fragments."""
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    for number in range(len(ours.get_fragments())):
        found, wanted = (
            dataset.scanner(
                full_text_query=module.MatchQuery("apple", "t"),
                columns=["n"],
                fragments=[dataset.get_fragments()[number]],
            ).to_table()
            for dataset, module in ((ours, our_query), (theirs, reference_query))
        )
        assert sorted(found["n"].to_pylist()) == sorted(wanted["n"].to_pylist())
        assert np.allclose(np.sort(found["_score"]), np.sort(wanted["_score"]), rtol=4e-6)


def test_stable_row_ids(tmp_path: Path) -> None:
    """With stable row ids, updated rows are found by their new text only, and once."""
    path = tmp_path / "t.lance"
    dataset = lance.write_dataset(table(5, 200), path, enable_stable_row_ids=True, max_rows_per_file=90)
    dataset.create_scalar_index("t", "INVERTED")
    dataset.update({"t": "'quince tart'"}, where="n % 5 = 0")
    assert_same(path, match("quince"))
    assert_same(path, match("apple tart"))
    dataset.optimize.optimize_indices()
    for words in ("quince", "apple tart"):
        found = lance_dataset.dataset(path).to_table(
            columns=["n", "t"], full_text_query=our_query.MatchQuery(words, "t")
        )
        wanted = [n for n, text in _rows(path) if text and set(words.split()) & set(text.split())]
        assert sorted(found["n"].to_pylist()) == wanted


def test_no_fragment_left(tmp_path: Path) -> None:
    """Scores still count the documents of an index all of whose rows are gone."""
    path = tmp_path / "t.lance"
    next(changes(path))
    lance.dataset(path).delete("true")
    lance.write_dataset(table(5, 60, 1000), path, mode="append")
    for make in (match("apple plum"), phrase("apple pear")):
        texts_read = lance.dataset(path).to_table(columns=["n"], full_text_query=make(reference_query))
        wanted = dict(zip(texts_read["n"].to_pylist(), texts_read["_score"].to_pylist(), strict=True))
        assert scores(lance_dataset.dataset(path), our_query, make) == pytest.approx(wanted)


@pytest.mark.parametrize("boost", [0.0, 1e-40, 1e20, 1e30, 1e37, 3.4e38])
def test_extreme_boosts(path: Path, boost: float) -> None:
    """Boosts may be as large as numbers of 32 bits, and scores infinite, but not those that are combined."""
    for column in ("t", "plain"):
        wanted = [match("apple pear", column, boost=boost), match("apple pear", column, boost=boost, operator="AND")]
        for make in (*wanted, match("aple", column, boost=boost, fuzziness=1)):
            found = lance_dataset.dataset(path).to_table(columns=["n"], full_text_query=make(our_query))
            other = lance.dataset(path).to_table(columns=["n"], full_text_query=make(reference_query))
            assert sorted(found["n"].to_pylist()) == sorted(other["n"].to_pylist())
            assert sorted(found["_score"].to_pylist()) == pytest.approx(sorted(other["_score"].to_pylist()), rel=4e-6)
    combined = boolean(must=[match("x1 pie", boost=boost)])
    if boost < 1e38:
        assert_same(path, combined)
        assert_same(path, boosted(match("apple"), match("pear pie"), boost))
        return
    for package, module in ((lance, reference_query), (lance_dataset, our_query)):
        with pytest.raises((InvalidInputError, OSError, ValueError), match="finite"):
            package.dataset(path).to_table(full_text_query=combined(module))


def _rows(path: Path) -> list[tuple[int, str | None]]:
    rows = lance_dataset.dataset(path).to_table(columns=["n", "t"])
    return sorted(zip(rows["n"].to_pylist(), rows["t"].to_pylist(), strict=True))


def test_other_types(tmp_path: Path) -> None:
    """Large strings, lists of strings and JSON documents are searched, with rows without an index."""
    rng = np.random.default_rng(8)
    lists = [None if rng.random() < 0.1 else texts(rng, int(rng.integers(0, 4)), 4) for _ in range(80)]
    documents = [f'{{"a": "{word}", "b": {{"c": [1, "x y"]}}}}' for word in rng.choice(WORDS[:5], 80)]
    large = pa.array(texts(rng, 80), pa.large_string())
    data = pa.table({"n": range(80), "l": large, "s": lists, "j": pa.array(documents, pa.json_())})
    path = tmp_path / "t.lance"
    dataset = lance.write_dataset(data, path, data_storage_version="2.2")
    for column in ("l", "s", "j"):
        dataset.create_scalar_index(column, "INVERTED", with_position=True)
    for _ in range(2):
        assert_same(path, match("apple plum", "l"))
        assert_same(path, match("apple plum", "s", operator="AND"))
        assert_same(path, phrase("apple pear", "s"))
        assert_same(path, match("a,str,apple", "j"))
        assert_same(path, match("b.c,str,y;a,str,pear", "j", operator="AND"))
        lance.write_dataset(data.set_column(0, "n", pa.array(range(80, 160))), path, mode="append")
