"""Tests of full-text indices that are built here: the reference finds what it finds with its own, with equal scores."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader
from lance.query import BooleanQuery, FullTextOperator, MatchQuery, Occur, PhraseQuery

import lance_dataset
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.index.text.fst_reader import read_fst
from lance_dataset.indices import IndexConfig
from lance_dataset.records.index_config import DocumentGranularity

_WORDS = [f"{first}{vowel}{last}" for first, vowel, last in product("bdfgkl", "aeiou", ["t", "nd", "rs", "ving"])]
_ODD = ["", "the of and", "Ünïcode straße", "x" * 50, "日本語 текст", "a\x00b", "RUNNING runs runner"]


def _texts(count: int, seed: int) -> list[str | None]:
    """Return texts of Zipf words, with nulls and odd ones in between."""
    generator = np.random.default_rng(seed)
    shares = 1 / np.arange(1, len(_WORDS) + 1)
    found: list[str | None] = []
    for number in range(count):
        chosen = generator.choice(len(_WORDS), generator.integers(1, 30), p=shares / shares.sum())
        found.append(None if number % 17 == 5 else " ".join(_WORDS[each] for each in chosen))
    return [*found, *_ODD]


def _queries(texts: list[Any], *, phrases: bool, column: str = "t") -> Iterator[Any]:
    generator = random.Random(7)
    words = [word for text in texts if text for word in str(text).split()]
    for count in (1, 1, 2, 3):
        yield MatchQuery(" ".join(generator.choices(words, k=count)), column)
    yield MatchQuery(" ".join(generator.choices(words, k=2)), column, operator=FullTextOperator.AND)
    yield MatchQuery(generator.choice(words), column, fuzziness=1)
    must, should, never = (MatchQuery(generator.choice(words), column) for _ in range(3))
    yield BooleanQuery([(Occur.MUST, must), (Occur.SHOULD, should), (Occur.MUST_NOT, never)])
    for slop in (0, 0, 2) if phrases else ():
        near = generator.choice([text for text in texts if text and len(str(text).split()) > 4]).split()
        place = generator.randrange(len(near) - 2)
        yield PhraseQuery(" ".join(near[place : place + 2]), column, slop=slop)


def _answer(path: Path, query: Any) -> dict[Any, float]:
    """Return what the reference finds: scores by row and element."""
    found = lance.dataset(path).scanner(full_text_query=query, with_row_id=True, columns=["_score"]).to_table()
    rows = found["_rowid"].to_pylist()
    keys = (
        zip(rows, map(tuple, found["_doc_index"].to_pylist()), strict=True)
        if "_doc_index" in found.schema.names
        else rows
    )
    return dict(zip(keys, found["_score"].to_pylist(), strict=True))


def _assert_alike(ours: Path, theirs: Path, queries: Iterator[Any]) -> None:
    number = 0
    for query in queries:
        expected = _answer(theirs, query)
        assert _answer(ours, query) == pytest.approx(expected, rel=1e-6), query
        number += len(expected)
    assert number


def _pair(tmp_path: Path, table: pa.Table, **options: Any) -> tuple[Path, Path]:
    """Write a table twice, with an index of this package and with one of the reference."""
    stable = options.pop("stable", False)
    theirs = dict(options)
    if "document_granularity" in options:
        theirs["document_granularity"] = lance.query.DocumentGranularity(options["document_granularity"].value)
    paths = tmp_path / "ours", tmp_path / "theirs"
    for path in paths:
        lance.write_dataset(table, path, max_rows_per_file=100, enable_stable_row_ids=stable)
    lance_dataset.dataset(paths[0]).create_scalar_index("t", "INVERTED", **options)
    lance.dataset(paths[1]).create_scalar_index("t", "INVERTED", **theirs)
    return paths


def _files(path: Path) -> dict[str, Path]:
    """Return the files of the newest segment."""
    newest = max(path.glob("_indices/*"), key=lambda folder: folder.stat().st_mtime_ns)
    return {file.name: file for file in newest.iterdir()}


def _schema(file: Path) -> pa.Schema:
    return LanceFileReader(str(file)).metadata().schema


def _tokens(file: Path) -> dict[bytes, int]:
    row = LanceFileReader(str(file)).read_all().to_table().to_pylist()[0]
    return dict(read_fst(row["_token_fst_bytes"], row["_token_next_id"], ""))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"with_position": True},
        {"with_position": True, "format_version": 1},
        {"with_position": True, "block_size": 256, "stable": True},
        {"with_position": True, "format_version": 3, "stem": False, "remove_stop_words": False},
        {"base_tokenizer": "ngram", "min_ngram_length": 2},
        {"base_tokenizer": "whitespace", "lower_case": False, "ascii_folding": False, "max_token_length": None},
        {"base_tokenizer": "code", "split_identifiers": True},
        {"base_tokenizer": "raw", "stem": False},
        {"custom_stop_words": [_WORDS[0]], "language": "German"},
    ],
    ids=str,
)
def test_the_reference_searches_an_index_that_equals_its_own(tmp_path: Path, options: dict[str, Any]) -> None:
    texts = _texts(700, 1)
    ours, theirs = _pair(tmp_path, pa.table({"t": texts}), **options)
    _assert_alike(ours, theirs, _queries(texts, phrases=options.get("with_position", False)))
    mine, other = (lance.dataset(path).describe_indices()[0] for path in (ours, theirs))
    assert mine.details == other.details
    assert mine.segments[0].index_version == other.segments[0].index_version
    ours_files, their_files = _files(ours), _files(theirs)
    assert ours_files.keys() == their_files.keys()
    for name, file in ours_files.items():
        one, two = (
            LanceFileReader(str(file)).metadata().schema,
            LanceFileReader(str(their_files[name])).metadata().schema,
        )
        assert one.equals(two)
        assert (one.metadata or {}) == (two.metadata or {})
    assert _tokens(ours_files["part_0_tokens.lance"]).keys() == _tokens(their_files["part_0_tokens.lance"]).keys()
    plans = [
        lance.dataset(path).scanner(full_text_query=MatchQuery("x", "t")).explain_plan() for path in (ours, theirs)
    ]
    assert plans[0].replace("ours", "theirs") == plans[1]


@pytest.mark.parametrize(
    "kind",
    [pa.large_string(), pa.string_view(), pa.list_(pa.string()), pa.large_list(pa.large_string())],
    ids=str,
)
@pytest.mark.parametrize("elements", [False, True])
def test_types_of_columns(tmp_path: Path, kind: pa.DataType, elements: bool) -> None:
    texts: list[Any] = _texts(300, 2)
    is_list = not (pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
    if elements and not is_list:
        return
    options: dict[str, Any] = {"document_granularity": DocumentGranularity.LIST_ELEMENT} if elements else {}
    values = texts
    if is_list:
        values = [None if place % 7 == 3 else texts[place : place + place % 4] for place in range(len(texts))]
    table = pa.table({"t": pa.array(values, kind)})
    ours, theirs = _pair(tmp_path, table, with_position=True, **options)
    _assert_alike(ours, theirs, _queries(texts, phrases=True))
    assert lance.dataset(ours).list_indices()[0]["name"] == ("t_list_element_idx" if elements else "t_idx")


def test_dictionaries_of_texts(tmp_path: Path) -> None:
    texts = _texts(200, 3)
    dataset = lance_dataset.write_dataset(pa.table({"t": pa.array(texts).dictionary_encode()}), tmp_path / "a")
    dataset.create_scalar_index("t", "FTS")
    plain = lance_dataset.write_dataset(pa.table({"t": texts}), tmp_path / "b")
    plain.create_scalar_index("t", "fts")
    assert _tokens(_files(tmp_path / "a")["part_0_tokens.lance"]) == _tokens(
        _files(tmp_path / "b")["part_0_tokens.lance"]
    )


def test_json_documents(tmp_path: Path) -> None:
    texts = [json.dumps({"a": text, "n": [place, {"b": place % 2 == 0}]}) for place, text in enumerate(_texts(200, 4))]
    ours, theirs = _pair(tmp_path, pa.table({"t": pa.array([*texts, None], pa.json_())}), with_position=True)
    queries = [f"a,str,{_WORDS[0]}", "n,number,7", f"a,str,{_WORDS[1]};n.b,bool,true"]
    _assert_alike(ours, theirs, iter([MatchQuery(query, "t") for query in queries]))
    params = LanceFileReader(str(_files(ours)["metadata.lance"])).metadata().schema.metadata[b"params"]
    assert json.loads(params)["lance_tokenizer"] == "json"


@pytest.mark.parametrize("texts", [[], [None, None], ["", "the"]], ids=str)
def test_without_documents_there_are_no_partitions(tmp_path: Path, texts: list[str | None]) -> None:
    ours, theirs = _pair(tmp_path, pa.table({"t": pa.array(texts, pa.string())}))
    assert _files(ours).keys() == _files(theirs).keys() == {"metadata.lance"}
    assert _answer(ours, MatchQuery("word", "t")) == {}


def test_an_untrained_index_is_trained_later(tmp_path: Path) -> None:
    texts = _texts(150, 5)
    lance_dataset.write_dataset(pa.table({"t": texts}), tmp_path)
    lance_dataset.dataset(tmp_path).create_scalar_index("t", "INVERTED", train=False, with_position=True, stem=False)
    assert lance.dataset(tmp_path).describe_indices()[0].num_rows_indexed == 0
    lance_dataset.dataset(tmp_path).optimize.optimize_indices()
    found = lance.dataset(tmp_path).describe_indices()[0]
    assert found.num_rows_indexed == len(texts)
    assert found.details["with_position"]
    assert not found.details["stem"]
    assert _answer(tmp_path, PhraseQuery(" ".join(texts[0].split()[:2]), "t"))  # type: ignore[union-attr]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(("format_version", "block_size"), [(1, 128), (2, 128), (3, 256)])
def test_new_rows_become_new_partitions(tmp_path: Path, stable: bool, format_version: int, block_size: int) -> None:
    texts = _texts(400, 6)
    options = {"with_position": True, "format_version": format_version, "block_size": block_size}
    ours, theirs = _pair(tmp_path, pa.table({"t": texts}), stable=stable, **options)
    more = _texts(100, 7)
    for path in (ours, theirs):
        lance.write_dataset(pa.table({"t": more}), path, mode="append")
        lance.dataset(path).delete("t is null")
    lance_dataset.dataset(ours).optimize.optimize_indices()
    lance.dataset(theirs).optimize.optimize_indices()
    assert {"part_0_docs.lance", "part_1_docs.lance"} <= _files(ours).keys()
    if not stable:  # documents of deleted rows still count in the reference, ours leaves them out
        _assert_alike(ours, theirs, _queries(texts, phrases=True))
    lance.write_dataset(pa.table({"t": more}), ours, mode="append")
    lance.dataset(ours).optimize.optimize_indices()  # the reference goes on with what was written here
    lance.write_dataset(pa.table({"t": more}), ours, mode="append")
    lance_dataset.dataset(ours).optimize.optimize_indices()
    fresh = tmp_path / "fresh"
    lance.write_dataset(lance.dataset(ours).to_table(), fresh)
    lance.dataset(fresh).create_scalar_index("t", "INVERTED", **options)
    for query in _queries(texts, phrases=True):
        assert len(_answer(ours, query)) == len(_answer(fresh, query)), query


def test_documents_of_lost_fragments_are_dropped(tmp_path: Path) -> None:
    texts = _texts(400, 8)
    table = pa.table({"t": texts, "n": np.arange(len(texts))})
    for stable in (False, True):
        ours, theirs = _pair(tmp_path / str(stable), table, with_position=True, stable=stable)
        for path in (ours, theirs):
            lance.dataset(path).update({"t": "'mond ' || t"}, where="n < 150")
        lance_dataset.dataset(ours).optimize.optimize_indices()
        fresh = tmp_path / str(stable) / "fresh"
        lance.write_dataset(lance.dataset(ours).to_table(), fresh)
        lance.dataset(fresh).create_scalar_index("t", "INVERTED", with_position=True)
        for query in [*_queries(texts, phrases=True), MatchQuery("mond", "t"), MatchQuery(_WORDS[0], "t")]:
            assert len(_answer(ours, query)) == len(_answer(fresh, query)), query


def test_segments_are_built_apart_and_merged(tmp_path: Path) -> None:
    texts = _texts(300, 9)
    lance.write_dataset(pa.table({"t": texts}), tmp_path / "a", max_rows_per_file=100)
    dataset = lance_dataset.dataset(tmp_path / "a")
    parts = [
        dataset.create_index_uncommitted("t", "INVERTED", name="i", fragment_ids=[each], with_position=True)
        for each in (0, 1, 2, 3)
    ]
    dataset.commit_existing_index_segments("i", "t", [*parts[:2], dataset.merge_existing_index_segments(parts[2:])])
    lance.write_dataset(pa.table({"t": texts}), tmp_path / "b")
    lance.dataset(tmp_path / "b").create_scalar_index("t", "INVERTED", with_position=True)
    for query in _queries(texts, phrases=True):
        mine, other = _answer(tmp_path / "a", query), _answer(tmp_path / "b", query)
        assert sorted(mine.values()) == pytest.approx(sorted(other.values()), rel=1e-6)


def test_little_memory_makes_several_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_dataset.index.text.training.trainer._LEAST_BYTES", 0)
    monkeypatch.setattr("lance_dataset.index.text.training.documents._PIECE_BYTES", 4096)
    texts = _texts(900, 10)
    lance.write_dataset(pa.table({"t": texts}), tmp_path / "a", max_rows_per_file=100)
    lance.write_dataset(pa.table({"t": texts}), tmp_path / "b", max_rows_per_file=100)
    wanted = IndexConfig("inverted", {"with_position": True})
    lance_dataset.dataset(tmp_path / "a").create_scalar_index("t", wanted, memory_limit=400_000)
    lance.dataset(tmp_path / "b").create_scalar_index("t", "INVERTED", with_position=True)
    assert "part_2_docs.lance" in _files(tmp_path / "a")
    _assert_alike(tmp_path / "a", tmp_path / "b", _queries(texts, phrases=True))


@pytest.mark.parametrize(
    "options",
    [
        {"base_tokenizer": "foo"},
        {"language": "Klingon"},
        {"language": 3},
        {"block_size": 64},
        {"block_size": "x"},
        {"block_size": 256, "format_version": 2},
        {"base_tokenizer": "code", "format_version": 2},
        {"format_version": 4},
        {"format_version": 2.0},
        {"with_position": "yes"},
        {"stem": 1},
        {"stem": None},
        {"max_token_length": -1},
        {"custom_stop_words": "fox"},
        {"unknown": 3},
        {"split_identifiers": True},
        {"base_tokenizer": "ngram", "min_ngram_length": 0},
        {"base_tokenizer": "ngram", "min_ngram_length": 4},
        {"memory_limit": 0},
        {"memory_limit": "x"},
        {"num_workers": -1},
        {"document_granularity": "list_element"},
        {"base_tokenizer": "lindera/missing"},
    ],
    ids=str,
)
def test_bad_parameters(tmp_path: Path, options: dict[str, Any]) -> None:
    lance.write_dataset(pa.table({"t": ["some words"]}), tmp_path)
    with pytest.raises((ValueError, TypeError, OverflowError)) as caught:
        lance.dataset(tmp_path).create_scalar_index("t", "INVERTED", **options)
    kinds = ValueError if isinstance(caught.value, ValueError) else type(caught.value)
    with pytest.raises(kinds):
        lance_dataset.dataset(tmp_path).create_scalar_index("t", "INVERTED", **options)
    assert not lance.dataset(tmp_path).list_indices()


@pytest.mark.parametrize("parameters", [{"with_position": 1}, {"block_size": 64}, {"format_version": 9}], ids=str)
def test_bad_parameters_of_a_configuration(tmp_path: Path, parameters: dict[str, Any]) -> None:
    lance.write_dataset(pa.table({"t": ["some words"]}), tmp_path)
    with pytest.raises(RuntimeError):
        lance.dataset(tmp_path).create_scalar_index("t", lance.indices.IndexConfig("inverted", parameters))
    with pytest.raises(RuntimeError):
        lance_dataset.dataset(tmp_path).create_scalar_index("t", IndexConfig("inverted", parameters))


@pytest.mark.parametrize("values", [[1], [b"a"], [[["a"]]]], ids=str)
def test_columns_that_are_not_text(tmp_path: Path, values: list[Any]) -> None:
    lance.write_dataset(pa.table({"t": values}), tmp_path)
    with pytest.raises(TypeError):
        lance.dataset(tmp_path).create_scalar_index("t", "INVERTED")
    with pytest.raises(TypeError, match="list of strings"):
        lance_dataset.dataset(tmp_path).create_scalar_index("t", "INVERTED")


def test_elements_of_texts(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"t": ["a"]}), tmp_path)
    with pytest.raises(ValueError, match="has no List layer"):
        dataset.create_scalar_index("t", "INVERTED", document_granularity=DocumentGranularity.LIST_ELEMENT)


def test_damaged_files_are_reported(tmp_path: Path) -> None:
    texts = _texts(100, 11)
    lance.write_dataset(pa.table({"t": texts}), tmp_path / "a")
    lance_dataset.dataset(tmp_path / "a").create_scalar_index("t", "INVERTED")
    lance.write_dataset(pa.table({"t": texts}), tmp_path / "a", mode="append")
    generator = random.Random(12)
    for file in _files(tmp_path / "a").values():
        data = file.read_bytes()
        for _ in range(6):
            bad = bytearray(data)
            bad[generator.randrange(len(bad))] ^= 1 << generator.randrange(8)
            file.write_bytes(bytes(bad) if generator.random() < 0.7 else bytes(bad[: len(bad) // 2]))
            snapshot = lance_dataset.dataset(tmp_path / "a")
            with suppress(CorruptFileError, UnsupportedError):
                snapshot.optimize.optimize_indices()
                snapshot.checkout_version(3).restore()
        file.write_bytes(data)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("elements", [False, True])
def test_indices_follow_compactions(tmp_path: Path, stable: bool, elements: bool) -> None:
    texts = [text or "nothing" for text in _texts(500, 13)]
    values: list[Any] = [[text, _WORDS[place % 9]] for place, text in enumerate(texts)] if elements else texts
    options: dict[str, Any] = {"document_granularity": DocumentGranularity.LIST_ELEMENT} if elements else {}
    table = pa.table({"t": values, "n": np.arange(len(values))})
    ours, theirs = _pair(tmp_path, table, stable=stable, with_position=True, **options)
    for path in (ours, theirs):
        lance.dataset(path).delete("n % 3 = 0")
    lance_dataset.dataset(ours).optimize.compact_files()
    lance.dataset(theirs).optimize.compact_files()
    for path in (ours, theirs):
        lance.write_dataset(table.slice(0, 50), path, mode="append")
    lance_dataset.dataset(ours).optimize.optimize_indices()
    lance.dataset(theirs).optimize.optimize_indices()
    expected = [len(_answer(theirs, query)) for query in _queries(texts, phrases=True)]
    assert [len(_answer(ours, query)) for query in _queries(texts, phrases=True)] == expected
    if not stable:
        _assert_alike(ours, theirs, _queries(texts, phrases=True))
