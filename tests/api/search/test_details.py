"""Tests of snippets, explanations of scores, and facets."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_dataset
from lance_dataset.dataset import VectorSearchQuery
from lance_dataset.errors import FieldNotFoundError, InvalidInputError
from lance_dataset.query import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    DocumentGranularity,
    FullTextOperator,
    FullTextQuery,
    Highlight,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)
from lance_dataset.scan.full_text.snippets import Hit, byte_offsets, marked, snippets

WORDS = ["apple", "Apples", "pear", "plum", "zebra", "Running", "café", "the", "x1", "of", "pie"]


def texts(rng: np.random.Generator, rows: int) -> list[str | None]:
    found = [" ".join(rng.choice(WORDS, rng.integers(0, 12))) for _ in range(rows)]
    return [None if rng.random() < 0.05 else text for text in found]


def table(seed: int, rows: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"t": texts(rng, rows), "u": texts(rng, rows), "plain": texts(rng, rows)})


@pytest.fixture(scope="module", params=[128, 256])
def changed(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a dataset with segments, deleted rows, and rows without an index."""
    path = tmp_path_factory.mktemp("changed") / "t"
    dataset = lance_dataset.write_dataset(table(1, 200), path, max_rows_per_file=90)
    for column in ("t", "u"):
        dataset.create_scalar_index(column, "INVERTED", with_position=True, block_size=request.param)
    dataset.insert(table(2, 80))
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    dataset.insert(table(3, 50))
    dataset.delete("_rowid % 7 = 3")
    return dataset


def queries(pick: random.Random, depth: int = 0) -> FullTextQuery:
    words = " ".join(pick.choices(WORDS, k=pick.randint(1, 3)))
    column = pick.choice(["t", "u", "plain"])
    kind = pick.randint(0, 8 if depth < 2 else 5)
    operator = pick.choice(list(FullTextOperator))
    if kind <= 1:
        return MatchQuery(words, column, operator=operator, boost=pick.choice([0.5, 1, 3]))
    if kind == 2:
        return MatchQuery(pick.choice(["aple pare", "zebr", "plums"]), "t", fuzziness=2, operator=operator)
    if kind == 3:
        return PhraseQuery(words, column, slop=pick.randint(0, 2))
    if kind == 4:
        return MultiMatchQuery(words, ["t", "u"], boosts=[1.0, 2.0], operator=operator)
    if kind == 5:
        return CombinedFieldsQuery(words, ["t", "u"], boosts=[1.0, 2.5], operator=operator)
    if kind == 6:
        return BoostQuery(queries(pick, depth + 1), queries(pick, depth + 1), negative_boost=0.3)
    parts = [(occur, queries(pick, depth + 1)) for occur in pick.choices(list(Occur), k=2)]
    return BooleanQuery([(Occur.SHOULD, queries(pick, depth + 1)), *parts])


@pytest.mark.parametrize("seed", range(40))
def test_explanations(changed: Any, seed: int) -> None:
    """Contributions follow the formula and add up to the score, for queries of all kinds."""
    query = queries(random.Random(seed))
    found = changed.search(query, columns=[], k=50, explain_score=True).to_pylist()
    for row in found:
        terms = row["_explanation"]
        assert sum(term["score"] for term in terms) == pytest.approx(row["_score"], rel=2e-6, abs=2e-6), (query, row)
        for term in terms:
            share = term["frequency"] / (term["frequency"] + term["norm"])
            assert term["score"] == pytest.approx(term["boost"] * term["idf"] * 2.2 * share, rel=1e-5)


def test_explanation_of_one_row(tmp_path: Path) -> None:
    """Idf, frequency, length and norm are those of the definition."""
    dataset = lance_dataset.write_dataset(pa.table({"t": ["cat cat dog", "dog", "bird"]}), tmp_path / "t")
    dataset.create_scalar_index("t", "INVERTED")
    term = dataset.search(MatchQuery("cats", "t", boost=2), explain_score=True)["_explanation"].to_pylist()[0][0]
    assert term["idf"] == pytest.approx(np.log((3 - 1 + 0.5) / 1.5 + 1))
    norm = 1.2 * (0.25 + 0.75 * 3 / (5 / 3))
    assert term["norm"] == pytest.approx(norm)
    assert (term["term"], term["boost"], term["frequency"], term["length"]) == ("cat", 2, 2, 3)


def test_rows_of_the_vector_only(tmp_path: Path) -> None:
    """Rows that the text does not find have no explanation and no snippets."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0, 1, 2, 3], pa.float32()), 2)
    dataset = lance_dataset.write_dataset(pa.table({"t": ["cat", None], "v": vectors}), tmp_path / "t")
    found = dataset.search("cat", [2, 3], text_columns=["t"], explain_score=True, highlight=True).to_pylist()
    assert [(row["t"], row["_explanation"] is None, row["_highlights"] == []) for row in found] == [
        ("cat", False, False),
        (None, True, True),
    ]


# -- snippets ----------------------------------------------------------------------------------------------------


def highlighted(dataset: Any, query: Any, **options: Any) -> Iterator[Any]:
    """Yield the snippets of each row, after checks of all places against the stored text."""
    rows = dataset.search(query, columns=["t"], highlight=Highlight(**options), k=100)
    for row in rows.to_pylist():
        for snippet in row["_highlights"]:
            text = row["t"]
            if isinstance(text, list):
                text = text[int(snippet["path"][1:-1])]
            elif snippet["path"] is not None:
                text = at_path(json.loads(text), snippet["path"])
            data = text.encode()
            for place in (snippet, *snippet["terms"]):
                part = data[place["byte_start"] : place["byte_end"]].decode()
                assert text[place["start"] : place["end"]] == part
                assert snippet["start"] <= place["start"] <= place["end"] <= snippet["end"]
            assert (
                snippet["snippet"].replace("<em>", "").replace("</em>", "") == text[snippet["start"] : snippet["end"]]
            )
        yield row["_highlights"]


def at_path(value: Any, path: str) -> str:
    """Return the text of the scalar at a path such as ``$.a[0]["b c"]``."""
    for name, number, quoted in re.findall(r"\.(\w+)|\[(\d+)\]|\[(\"[^\"]*\")\]", path):
        value = value[name or (int(number) if number else json.loads(quoted))]
    return value if isinstance(value, str) else json.dumps(value)


def shown(dataset: Any, query: Any, **options: Any) -> list[list[str]]:
    return [[snippet["snippet"] for snippet in row] for row in highlighted(dataset, query, **options)]


def indexed(path: Path, values: Any, **parameters: Any) -> Any:
    dataset = lance_dataset.write_dataset(pa.table({"t": values}), path)
    dataset.create_scalar_index("t", "INVERTED", **parameters)
    return dataset


def test_stems_and_folding(tmp_path: Path) -> None:
    """Words are marked as they are in the text, also where the index has a stem, other case, or other letters."""
    dataset = indexed(tmp_path / "t", ["Naïve RUNNERS 🏃 ran; running Straße"])
    assert shown(dataset, "naive run Straße") == [["<em>Naïve</em> RUNNERS 🏃 ran; <em>running</em> <em>Straße</em>"]]


@pytest.mark.parametrize(
    ("parameters", "query", "wanted"),
    [
        ({"base_tokenizer": "ngram"}, "icky", "the qu<em>icky</em>"),
        ({"base_tokenizer": "whitespace", "stem": False}, "a-b", "x <em>a-b</em> a b"),
        ({"base_tokenizer": "raw", "stem": False}, "X y", "<em>x Y</em>"),
        ({"base_tokenizer": "code", "split_identifiers": True}, "user", "get<em>User</em>Name(x)"),
    ],
)
def test_tokenizers(tmp_path: Path, parameters: Any, query: str, wanted: str) -> None:
    """Every tokenizer marks the characters that it made its tokens from."""
    text = wanted.replace("<em>", "").replace("</em>", "")
    assert shown(indexed(tmp_path / "t", [text], **parameters), query) == [[wanted]]


def test_lists(tmp_path: Path) -> None:
    """Snippets of lists name the element."""
    dataset = indexed(tmp_path / "t", pa.array([["", None, "a red cat", "dog", "cats"], ["bird"]]))
    found = list(highlighted(dataset, "cat"))
    assert [(each["path"], each["snippet"]) for each in found[0]] == [
        ("[2]", "a red <em>cat</em>"),
        ("[4]", "<em>cats</em>"),
    ]


@pytest.mark.parametrize("kind", ["string_view", "large_string", "dictionary", "struct", "large_list"])
def test_types(tmp_path: Path, kind: str) -> None:
    """Texts of every type are shown, with and without an index."""
    plain = ["red cat", None, "", "dog Cats \u00e9 cat"]
    values = {
        "string_view": lambda: pa.array(plain, pa.string_view()),
        "large_string": lambda: pa.array(plain, pa.large_string()),
        "dictionary": lambda: pa.array(plain).dictionary_encode(),
        "struct": lambda: pa.StructArray.from_arrays([pa.array(plain)], names=["t"]),
        "large_list": lambda: pa.array([[text] if text else None for text in plain], pa.large_list(pa.large_string())),
    }[kind]()
    column = "c.t" if kind == "struct" else "c"
    dataset = lance_dataset.write_dataset(pa.table({"c": values}), tmp_path / "t")
    query = MatchQuery("cat", column)
    wanted = {"dog Cats \u00e9 <em>cat</em>", "red <em>cat</em>"}
    for indexed in (False, True):
        if indexed:
            dataset.create_scalar_index(column, "INVERTED")
            wanted = {"dog <em>Cats</em> \u00e9 <em>cat</em>", "red <em>cat</em>"}
        rows = dataset.search(query, columns=[], highlight=True, explain_score=True).to_pylist()
        assert {row["_highlights"][0]["snippet"] for row in rows} == wanted
        assert {row["_highlights"][0]["path"] for row in rows} == {"[0]" if kind == "large_list" else None}
        for row in rows:
            assert sum(term["score"] for term in row["_explanation"]) == pytest.approx(row["_score"], abs=2e-6)


def test_tokens_of_several_elements(tmp_path: Path) -> None:
    """A token of several elements is marked in each; one that ends where an element begins is not."""
    values = pa.array([["ab", "cd", "", "x"]])
    raw = indexed(tmp_path / "raw", values, base_tokenizer="raw", stem=False)
    found = next(highlighted(raw, "ab cd  x"))
    assert [(each["path"], each["snippet"]) for each in found] == [
        ("[0]", "<em>ab</em>"),
        ("[1]", "<em>cd</em>"),
        ("[3]", "<em>x</em>"),
    ]
    grams = indexed(tmp_path / "grams", values, base_tokenizer="ngram")
    found = next(highlighted(grams, "b c"))
    assert [(each["path"], each["snippet"]) for each in found] == [("[0]", "a<em>b</em>"), ("[1]", "<em>c</em>d")]


def test_json(tmp_path: Path) -> None:
    """Snippets of JSON documents are those of their values, with a path."""
    document = json.dumps({"b c": ["red cat", {"d": 5}], "a": {"x": "cats and dogs"}, "n": 1.5})
    values = pa.array([document], pa.json_(pa.string()))
    dataset = lance_dataset.write_dataset(pa.table({"t": values}), tmp_path / "t", data_storage_version="2.2")
    dataset.create_scalar_index("t", "INVERTED", with_position=True)
    rows = list(highlighted(dataset, "b c,str,cat;a.x,str,dog;n,number,1.5"))
    assert [(each["path"], each["snippet"]) for each in rows[0]] == [
        ("$.a.x", "cats and <em>dogs</em>"),
        ('$["b c"][0]', "red <em>cat</em>"),
        ("$.n", "<em>1.5</em>"),
    ]


def test_phrases(tmp_path: Path) -> None:
    """Only words in their order are marked, within the slop."""
    dataset = indexed(tmp_path / "t", ["cat red cat dog, dog cat big dog"], with_position=True)
    assert shown(dataset, PhraseQuery("cat dog", "t")) == [["cat red <em>cat</em> <em>dog</em>, dog cat big dog"]]
    assert shown(dataset, PhraseQuery("cat dog", "t", slop=1)) == [
        ["cat red <em>cat</em> <em>dog</em>, <em>dog</em> <em>cat</em> big <em>dog</em>"]
    ]
    assert shown(dataset, PhraseQuery("red cat dog", "t")) == [
        ["cat <em>red</em> <em>cat</em> <em>dog</em>, dog cat big dog"]
    ]


def test_compound_queries(tmp_path: Path) -> None:
    """Words of parts that must not match, or that lower the score, are not marked."""
    dataset = indexed(tmp_path / "t", ["cat dog bird catt"])
    cat, dog, bird = (MatchQuery(word, "t") for word in ("cat", "dog", "bird"))
    fish = BooleanQuery([(Occur.MUST_NOT, MatchQuery("fish", "t")), (Occur.MUST, cat), (Occur.SHOULD, bird)])
    assert shown(dataset, fish) == [["<em>cat</em> dog <em>bird</em> catt"]]
    assert shown(dataset, BoostQuery(cat, dog)) == [["<em>cat</em> dog bird catt"]]
    assert shown(dataset, MatchQuery("cat", "t", fuzziness=1)) == [["<em>cat</em> dog bird <em>catt</em>"]]


def test_snippets_of_a_long_text(tmp_path: Path) -> None:
    """The best parts of a text are shown, cut at blanks, with the most different words."""
    filler = "lorem ipsum dolor sit amet " * 20
    dataset = indexed(tmp_path / "t", [f"{filler}cat {filler}cat dog {filler}dog cat bird {filler}"])
    found = shown(dataset, "cat dog bird", length=40, snippets=2)
    assert [each.count("<em>") for each in found[0]] == [2, 3]
    for each in found[0]:
        plain = each.replace("<em>", "").replace("</em>", "")
        assert len(plain) <= 40
        assert set(plain.split()) <= {*filler.split(), "cat", "dog", "bird"}
    assert shown(dataset, "cat", length=1, snippets=1) == [["<em>cat</em>"]]


def test_marks_and_escapes(tmp_path: Path) -> None:
    dataset = indexed(tmp_path / "t", ["<b> cat & dog"])
    row = dataset.search("cat", highlight=Highlight(before="[", after="]", escape=True))["_highlights"].to_pylist()[0]
    assert row[0]["snippet"] == "&lt;b&gt; [cat] &amp; dog"


def test_columns(changed: Any) -> None:
    """Only the columns that are asked for are shown."""
    query = MultiMatchQuery("apple", ["t", "u"])
    every = changed.search(query, k=50, columns=[], highlight=True)["_highlights"].to_pylist()
    one = changed.search(query, k=50, columns=[], highlight=Highlight(columns=["u"]))["_highlights"].to_pylist()
    assert {each["column"] for row in every for each in row} == {"t", "u"}
    assert one == [[each for each in row if each["column"] == "u"] for row in every]
    with pytest.raises(InvalidInputError, match="'plain' is not among the columns of the query"):
        changed.search(query, highlight=Highlight(columns=["plain"]))


@pytest.mark.parametrize("seed", range(20))
def test_something_is_marked(changed: Any, seed: int) -> None:
    """Every row that a query of positive parts finds has snippets, and those of phrases as many words."""
    pick = random.Random(seed)
    query = MatchQuery(" ".join(pick.choices(WORDS, k=2)), "t") if seed % 2 else PhraseQuery("apple pie", "t", slop=2)
    rows = changed.search(query, columns=["t"], k=100, highlight=True).to_pylist()
    assert all(row["_highlights"] for row in rows)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Highlight(length=0), InvalidInputError, "length must be at least 1"),
        (lambda: Highlight(snippets=-1), InvalidInputError, "(?i)snippets must"),
        (lambda: Highlight(before=1), TypeError, "before must be text"),  # type: ignore[arg-type]
        (lambda: Highlight(escape=1), TypeError, "True or False"),  # type: ignore[arg-type]
        (lambda: Highlight(columns="t"), TypeError, "list of names"),
    ],
)
def test_wrong_highlights(make: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_wrong_details(changed: Any) -> None:
    with pytest.raises(TypeError, match="highlight must be"):
        changed.search("x", highlight="yes")
    with pytest.raises(TypeError, match="explain_score must be"):
        changed.search("x", explain_score=1)
    with pytest.raises(InvalidInputError, match="need a text"):
        changed.search(vector=[1.0], highlight=True)


# -- facets ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rng = np.random.default_rng(5)
    rows = 500
    kinds: list[Any] = [pick if pick < 6 else None for pick in rng.integers(0, 7, rows).tolist()]
    tags = [None if rng.random() < 0.1 else rng.choice(["a", "b", "c"], rng.integers(0, 4)).tolist() for _ in kinds]
    columns = {
        "t": texts(rng, rows),
        "kind": pa.array(kinds),
        "tags": pa.array(tags),
        "word": pa.array([str(kind) for kind in kinds]).dictionary_encode(),
        "st": pa.StructArray.from_arrays([pa.array(kinds)], names=["kind"]),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows, np.float32)), 1),
    }
    dataset = lance_dataset.write_dataset(
        pa.table(columns), tmp_path_factory.mktemp("shop") / "t", max_rows_per_file=200
    )
    dataset.create_scalar_index("t", "INVERTED")
    dataset.delete("kind = 2")
    return dataset


@pytest.mark.parametrize("options", [{}, {"filter": "kind < 4"}, {"most": 2}, {"most": 0}], ids=str)
def test_facets(shop: Any, options: dict[str, Any]) -> None:
    """Counts are those of all rows found."""
    found = shop.facets("apple pear", ["kind", "tags", "word", "st.kind"], **options)
    rows = shop.to_table(full_text_query="apple pear", prefilter=True, filter=options.get("filter")).to_pylist()
    values: dict[str, list[Any]] = {
        "kind": [row["kind"] for row in rows],
        "tags": [tag for row in rows for tag in set(row["tags"] or ())],
        "word": [row["word"] for row in rows],
        "st.kind": [row["kind"] for row in rows],
    }
    for name, mine in values.items():
        counts = Counter(mine)
        order = sorted(counts, key=lambda value: (-counts[value], value is None, value))
        wanted = [(value, counts[value]) for value in order[: options.get("most", 10)]]
        pairs = list(zip(found[name]["value"].to_pylist(), found[name]["count"].to_pylist(), strict=True))
        assert pairs == wanted, name
        assert found[name]["count"].type == pa.int64()


def test_facets_of_nothing(shop: Any) -> None:
    """Tables without rows have the types of others."""
    found = shop.facets("unknown", ["kind", "tags"])
    assert [found[name].num_rows for name in found] == [0, 0]
    assert (found["kind"]["value"].type, found["tags"]["value"].type) == (pa.int64(), pa.string())


def test_wrong_facets(shop: Any) -> None:
    for columns, kind, message in (
        (["st"], InvalidInputError, "single values or lists"),
        (["v"], InvalidInputError, "single values or lists"),
        (["nope"], FieldNotFoundError, "nope"),
        ("kind", TypeError, "list of names"),
    ):
        with pytest.raises(kind, match=message):
            shop.facets("apple", columns)
    with pytest.raises(InvalidInputError, match=r"(?i)most must"):
        shop.facets("apple", ["kind"], most=-1)


# -- elements of lists as documents --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rng = np.random.default_rng(8)
    values = [None if rng.random() < 0.1 else texts(rng, int(rng.integers(0, 5))) for _ in range(150)]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=150).astype(np.float32)), 1)
    table = pa.table({"n": range(150), "t": pa.array(values, pa.list_(pa.string())), "v": vectors})
    path = tmp_path_factory.mktemp("lists") / "t"
    dataset = lance_dataset.write_dataset(table.slice(0, 100), path, max_rows_per_file=60)
    granularity = DocumentGranularity.LIST_ELEMENT
    dataset.create_scalar_index("t", "INVERTED", with_position=True, document_granularity=granularity)
    dataset.insert(table.slice(100))
    return dataset


APPLE = MatchQuery("apple", "t")
ELEMENTS = [
    MatchQuery("apple pear", "t"),
    PhraseQuery("apple plum", "t", slop=1),
    MatchQuery("apple", "t") & MatchQuery("plum", "t"),
    BoostQuery(MatchQuery("apple", "t"), MatchQuery("plum", "t")),
]


@pytest.mark.parametrize("query", ELEMENTS, ids=str)
def test_elements(lists: Any, query: FullTextQuery) -> None:
    """Each element has its own explanation and snippets."""
    found = lists.search(query, columns=["n", "t"], k=300, explain_score=True, highlight=True).to_pylist()
    assert found
    assert any(row["n"] >= 100 for row in found)
    for row in found:
        assert sum(term["score"] for term in row["_explanation"]) == pytest.approx(row["_score"], abs=2e-6)
        element = row["_doc_index"][0]
        assert {each["path"] for each in row["_highlights"]} == {f"[{element}]"}
        for each in row["_highlights"]:
            assert row["t"][element][each["start"] : each["end"]] == re.sub("</?em>", "", each["snippet"])


def test_best_elements(lists: Any) -> None:
    """With a vector, the best element of each row counts; facets count rows."""
    both = lists.search(APPLE, [0.1], ["n"], k=150, candidates=300).to_pylist()
    assert len({row["n"] for row in both}) == len(both)
    best: dict[int, tuple[float, Any]] = {}
    for row in lists.search(APPLE, columns=["n"], k=1000).to_pylist():
        best.setdefault(row["n"], (row["_score"], row["_doc_index"]))
    assert {row["n"]: (row["_score"], row["_doc_index"]) for row in both if row["_score"] is not None} == best
    assert lists.facets(APPLE, ["n"], most=200)["n"]["count"].to_pylist() == [1] * len(best)


def test_elements_by_distance(lists: Any) -> None:
    """A vector search as the filter keeps all elements of a row."""
    near = lists.to_table(columns=["n"], nearest={"column": "v", "q": [0.1], "k": 60})
    filter = VectorSearchQuery("v", [0.1], k=60)
    every = lists.to_table(columns=["n"], full_text_query=APPLE).to_pylist()
    found = lists.to_table(columns=["n"], full_text_query=APPLE, filter=filter, prefilter=True).to_pylist()
    numbers = set(near["n"].to_pylist())
    wanted = {(row["n"], *row["_doc_index"]) for row in every if row["n"] in numbers}
    assert {(row["n"], *row["_doc_index"]) for row in found} == wanted
    after = lists.to_table(columns=["n"], full_text_query=APPLE, filter=VectorSearchQuery("v", [0.1], k=3))
    assert len(set(after["n"].to_pylist())) == 3
    assert after.num_rows == sum(row["n"] in after["n"].to_pylist() for row in every)


# -- other indices -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["0.16.0", "0.20.0", "4.0.0"])
def test_old_releases(release: str) -> None:
    """Indices of old releases have explanations and snippets, too."""
    root = Path(__file__).parents[2] / "fixtures" / "indices" / f"text-{release}"
    dataset = lance_dataset.dataset(str(root))
    for query in (MatchQuery("apple banana running", "t"), MatchQuery("aple", "t", fuzziness=2)):
        found = dataset.search(query, columns=["t"], k=100, highlight=True, explain_score=True).to_pylist()
        assert found
        for row in found:
            assert sum(term["score"] for term in row["_explanation"]) == pytest.approx(row["_score"], abs=2e-6)
            assert row["_highlights"]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_snippets(data: Any) -> None:
    """Snippets lie in the text, do not overlap, and show the most different words that fit."""
    word = st.sampled_from(["aa", "b", "ccc", "dddd é"])
    pieces = data.draw(st.lists(st.one_of(word, st.sampled_from([" ", "  ", "\U0001f600"])), max_size=40))
    hits, text = [], ""
    for piece in pieces:
        if piece.strip() and not piece.startswith("\U0001f600"):
            hits.append(Hit(len(text), len(text) + len(piece), piece))
        text += piece
    length, most = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 4))
    found = snippets(text, hits, length, most)
    assert len(found) <= most
    assert bool(found) == bool(hits)
    assert all(0 <= each.start < each.end <= len(text) for each in found)
    assert all(before.end <= after.start for before, after in pairwise(found))
    for each in found:
        assert each.hits
        assert each.end - each.start <= max(length, max(hit.end - hit.start for hit in each.hits))
        assert [hit for hit in hits if each.start <= hit.start and hit.end <= each.end] == list(each.hits)
        shown = marked(text, each, "<", ">", escape=False)
        assert shown.replace("<", "").replace(">", "") == text[each.start : each.end]
    best = max((each.rank[0] for each in found), default=0)
    for hit in hits:
        inside = [each for each in hits if hit.start <= each.start and each.end <= hit.start + length]
        assert len({each.term for each in inside}) <= best
    offsets = byte_offsets(text)
    assert all(offsets[place] == len(text[:place].encode()) for place in range(len(text) + 1))
