"""Tests of the analysis of JSON documents: tokens and positions are those in indices of the reference."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileReader

from lance_dataset.errors import CorruptFileError, InvalidInputError
from lance_dataset.file.json_columns import encode_array
from lance_dataset.index.text.analysis.batches import token_list
from lance_dataset.index.text.analysis.json_documents import JsonAnalyzer, parse_triplets
from lance_dataset.index.text.analysis.parameters import AnalysisParameters
from lance_dataset.index.text.fst_reader import read_fst

DOCUMENTS: list[Any] = [
    {"name": "the Lance of the Dogs and", "f": 1.5, "n": None, "t": True, "z": {"b": "x y", "a": [1, "two and three"]}},
    {"b": "A", "a": "B"},
    [1, 2, "x", [{"k": ["v w"]}, []]],
    "plain text",
    3,
    None,
    {},
    {"e": "", "l": [], "o": {}},
    {"K.x": "q", "é": "Été the", "long": "x" * 50, "big": 12345678901234567890, "f2": 1e300, "neg": -0.0, "i": 1.0},
    {"u": "a,b;c", "p" * 60: "short", "false": False, "deep": {"a": {"b": {"c": {"d": "running dogs"}}}}},
]


def random_document(pick: random.Random, depth: int = 0) -> Any:
    kind = pick.random()
    if kind < 0.3 and depth < 4:
        return {pick.choice("abcdeéÄ"): random_document(pick, depth + 1) for _ in range(pick.randint(0, 4))}
    if kind < 0.45 and depth < 4:
        return [random_document(pick, depth + 1) for _ in range(pick.randint(0, 4))]
    words = " ".join(pick.choices(["the", "Dogs", "running", "été", "x_y", "a,b", "and"], k=pick.randint(0, 5)))
    return pick.choice([None, True, False, pick.randint(-9, 9), pick.random(), words, words, words])


def stored(path: Path) -> dict[int, list[tuple[int, str]]]:
    """Return the tokens of each row of an index of the reference, with their positions."""
    found: dict[int, list[tuple[int, str]]] = {}
    (folder,) = (path / "_indices").iterdir()
    for tokens in folder.glob("part_*_tokens.lance"):
        start = str(tokens).removesuffix("tokens.lance")
        words = LanceFileReader(str(tokens)).read_all().to_table()
        lists = LanceFileReader(f"{start}invert.lance").read_all().to_table()
        rows = LanceFileReader(f"{start}docs.lance").read_all().to_table().column("_rowid").to_pylist()
        for word, number in read_fst(words["_token_fst_bytes"][0].as_py(), lists.num_rows, "x"):
            left = lists["_length"][number].as_py()
            (block,) = lists["_posting"][number].as_py()
            places = struct.unpack_from(f"<{left}I", block, 4)
            for place, positions in zip(places, lists["_position"][number].as_py(), strict=True):
                (count,) = struct.unpack("<I", positions[0])
                values = struct.unpack(f"<{count}I", positions[1])
                found.setdefault(rows[place], []).extend((value, word.decode()) for value in values)
    return {row: sorted(pairs) for row, pairs in found.items()}


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"base_tokenizer": "whitespace", "stem": False, "remove_stop_words": False, "lower_case": False},
        {"base_tokenizer": "ngram"},
        {"base_tokenizer": "raw", "max_token_length": None, "ascii_folding": False},
    ],
)
def test_same_tokens(tmp_path: Path, parameters: dict[str, Any]) -> None:
    """Tokens and positions are those of an index of the reference."""
    pick = random.Random(1)
    documents = [*DOCUMENTS, *(random_document(pick) for _ in range(60))]
    texts = pa.array([json.dumps(document) for document in documents])
    table = pa.table({"j": pa.ExtensionArray.from_storage(pa.json_(), texts)})
    dataset = lance.write_dataset(table, tmp_path)
    dataset.create_scalar_index("j", "INVERTED", with_position=True, format_version=1, **parameters)
    analyzer = JsonAnalyzer(AnalysisParameters.of(parameters))
    found = analyzer.analyze(encode_array(texts, "j"), "j")
    known, stops = token_list(analyzer.table), [0, *found.ends.tolist()]
    tokens = [known[code] for code in found.codes.tolist()]
    pairs = list(zip(found.positions.tolist(), tokens, strict=True))
    ours = {row: sorted(pairs[stops[row] : stops[row + 1]]) for row in range(len(documents))}
    assert {row: each for row, each in ours.items() if each} == stored(tmp_path)
    assert analyzer.nbytes > 0
    analyzer.forget()
    assert analyzer.table.count == 0


def test_no_documents() -> None:
    """Nulls have no tokens, and damaged documents raise an error."""
    analyzer = JsonAnalyzer(AnalysisParameters())
    assert analyzer.analyze(pa.array([None, None], pa.large_binary()), "j").counts.tolist() == [0, 0]
    assert len(analyzer.analyze(pa.array([], pa.large_binary()), "j").ends) == 0
    with pytest.raises(CorruptFileError):
        analyzer.analyze(pa.array([b"\xff\xff\xff\xff"], pa.large_binary()), "j")


def test_triplets() -> None:
    """Queries are triplets with semicolons between; a value may have commas."""
    assert parse_triplets("a.b,str,x, y;n,null,null") == [("a.b", "str", "x, y"), ("n", "null", "null")]
    for wrong in ("", "name", "name,str", "name, str,x", "name,foo,x", "a,str,x;"):
        with pytest.raises(InvalidInputError, match="path,type,value"):
            parse_triplets(wrong)
