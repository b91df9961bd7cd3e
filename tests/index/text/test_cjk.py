"""Tests of the tokenizer for Chinese, Japanese and Korean without a dictionary."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_dataset
from lance_dataset.index.text.analysis.analyzer import Analyzer
from lance_dataset.index.text.analysis.batches import token_list
from lance_dataset.index.text.analysis.parameters import AnalysisParameters
from lance_dataset.query import FullTextOperator, MatchQuery, PhraseQuery

CJK = AnalysisParameters(base_tokenizer="cjk", remove_stop_words=False, max_token_length=None)
PIECES = [
    "東京都",
    "に住む",
    "한국어",
    "カタカナ",
    "我",
    "Running",
    "x1",
    "é",
    "\U00020000\U00020001",
    " ",
    "。",
    "-",
    "ー",
    "々",
]


def words(text: str, **options: Any) -> list[tuple[str, int]]:
    return Analyzer(CJK, **options).tokens(text)


def test_documents_and_queries() -> None:
    """Texts have characters and pairs; queries have pairs only, or a single character."""
    assert words("東京都 Running 我x") == [
        *(("東", 0), ("東京", 0), ("京", 1), ("京都", 1), ("都", 2)),
        *(("run", 3), ("我", 4), ("x", 5)),
    ]
    assert words("東京都 Running 我x", queries=True) == [("東京", 0), ("京都", 1), ("run", 3), ("我", 4), ("x", 5)]
    assert words("") == words(" 。-") == []


@pytest.mark.parametrize("queries", [False, True])
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), max_size=6))
def test_many_texts(queries: bool, texts: list[str]) -> None:
    """Tokens of many texts are those of each, with the same places as its spans."""
    analyzer, single = Analyzer(CJK, queries=queries), Analyzer(CJK, queries=queries)
    found = analyzer.analyze(pa.array(["x", None, *texts], pa.string()).slice(1))
    known = token_list(analyzer.table)
    start = 0
    for end, text in zip(found.ends.tolist(), [None, *texts], strict=True):
        pairs = [(known[code], place) for code, place in zip(found.codes, found.positions.tolist(), strict=True)]
        wanted = [] if text is None else [(each.token, each.position) for each in single.spans(text)]
        assert pairs[start:end] == wanted
        start = end


def test_long_tokens_are_left_out() -> None:
    """Only tokens with fewer bytes than the limit are kept."""
    limited = AnalysisParameters(base_tokenizer="cjk", max_token_length=6)
    assert [token for token, _ in Analyzer(limited).tokens("東京 abcdef xyz")] == ["東", "京", "xyz"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    texts = ["東京都に住む", "京都は古い", "東の京", "私は猫が好き", "Tokyo 東京タワー"]
    path = tmp_path_factory.mktemp("cjk") / "t"
    found = lance_dataset.write_dataset(pa.table({"n": range(len(texts)), "t": texts}), path)
    found.create_scalar_index("t", "INVERTED", with_position=True, base_tokenizer="cjk")
    return found


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (MatchQuery("東京", "t"), {0, 4}),
        (MatchQuery("猫", "t"), {3}),
        (MatchQuery("京都", "t"), {0, 1}),
        (MatchQuery("東京都", "t", operator=FullTextOperator.AND), {0}),
        (MatchQuery("tokyo", "t"), {4}),
        (PhraseQuery("東京タワー", "t"), {4}),
        (PhraseQuery("tokyo 東京", "t"), {4}),
        (PhraseQuery("東京に", "t"), set()),
    ],
    ids=str,
)
def test_search(dataset: Any, query: Any, wanted: set[int]) -> None:
    assert set(dataset.search(query, columns=["n"])["n"].to_pylist()) == wanted


def test_highlights(dataset: Any) -> None:
    """Pairs are marked together."""
    row = dataset.search("東京都", columns=[], highlight=True)["_highlights"].to_pylist()[0]
    assert row[0]["snippet"] == "<em>東京都</em>に住む"


def test_new_rows_and_merges(dataset: Any, tmp_path: Path) -> None:
    """Rows without an index, and merged segments, are found like others."""
    pick = random.Random(1)
    texts = ["".join(pick.choices(PIECES, k=5)) for _ in range(200)]
    found = lance_dataset.write_dataset(pa.table({"n": range(100), "t": texts[:100]}), tmp_path / "t")
    found.create_scalar_index("t", "INVERTED", base_tokenizer="cjk")
    found.insert(pa.table({"n": range(100, 200), "t": texts[100:]}))
    for _ in range(2):
        rows = found.search("京都", columns=["n"], k=200)["n"].to_pylist()
        assert sorted(rows) == [number for number, text in enumerate(texts) if "京都" in text]
        found.optimize.optimize_indices()


def test_reference_cannot_search(dataset: Any) -> None:
    """The reference reads the table and names the tokenizer in a search."""
    theirs = lance.dataset(dataset.uri)
    assert theirs.count_rows("n > 1") == 3
    with pytest.raises(ValueError, match="unknown base tokenizer cjk"):
        theirs.to_table(full_text_query="東京")


def test_reference_changes_the_table(tmp_path: Path) -> None:
    """Rows that the reference adds, moves and changes are found before and after they are indexed."""
    path = str(tmp_path / "t")
    found = lance_dataset.write_dataset(pa.table({"n": range(20), "t": ["東京都"] * 20}), path, max_rows_per_file=5)
    found.create_scalar_index("t", "INVERTED", base_tokenizer="cjk")
    theirs = lance.dataset(path)
    theirs.insert(pa.table({"n": [20], "t": ["京都"]}))
    theirs.optimize.optimize_indices()
    theirs.delete("n = 3")
    theirs.optimize.compact_files()
    theirs.update({"t": "'x'"}, where="n = 4")
    found = lance_dataset.dataset(path)
    for fast in (False, True):
        rows = found.search("京都", columns=["n"], k=50, fast_search=fast)["n"].to_pylist()
        assert sorted(rows) == [number for number in range(21) if number not in (3, 4)]
        found.optimize.optimize_indices()
