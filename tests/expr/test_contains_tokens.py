"""Tests of `contains_tokens`: words are divided as in the reference, whatever release of Unicode Python has."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

import lance_dataset
from lance_dataset.expr.characters import ALPHANUMERIC, ranges_of


def test_every_kind_of_character(tmp_path: Path) -> None:
    """Characters at the borders of all ranges of letters, and a sample of others, divide words as in the reference."""
    borders = {point + step for pair in ranges_of(ALPHANUMERIC) for point in pair for step in (-1, 0)}
    others = np.random.default_rng(1).integers(0, 0x110000, 4000).tolist()
    points = sorted(point for point in {*borders, *others, *range(0x3000)} if not 0xD800 <= point < 0xE000)
    table = pa.table({"n": range(len(points)), "t": [f"a{chr(point)}b" for point in points]})
    path = tmp_path / "t"
    lance_dataset.write_dataset(table, path)
    for words in ("a", "b a", "", "A"):
        filter = f"contains_tokens(t, '{words}')"
        found = lance_dataset.dataset(path).to_table(["n"], filter)
        assert found == lance.dataset(path).to_table(["n"], filter), words
        assert (found.num_rows > 0) == (words != "A")


def test_random_texts(tmp_path: Path) -> None:
    """Rows are those of the reference, with nulls, negations, and columns of words; an n-gram index changes nothing."""
    pick = random.Random(5)
    pieces = ["apple", "Apple", "pie", "x_y", "naïve", "e\u0301", "日本", "1.5", "ap", "हिन्दी", ""]

    def text() -> str:
        return "".join(
            pick.choice(pieces) + pick.choice([" ", "-", "_", "", "\u00a0"]) for _ in range(pick.randint(0, 6))
        )

    texts = [None if pick.random() < 0.1 else text() for _ in range(300)]
    words = [None if pick.random() < 0.1 else text() for _ in range(300)]
    path = tmp_path / "t"
    dataset = lance_dataset.write_dataset(pa.table({"n": range(300), "t": texts, "w": words}), path)
    filters = [f"contains_tokens(t, '{text()}')" for _ in range(40)]
    filters += [f"NOT {filter}" for filter in filters[:10]] + [f"{filters[0]} OR {filters[1]}"]
    expected = {filter: lance.dataset(path).to_table(["n"], filter) for filter in filters}
    for indexed in (False, True):
        if indexed:
            dataset.create_scalar_index("t", "NGRAM")
        for filter, wanted in expected.items():
            assert dataset.to_table(["n"], filter) == wanted, filter
    # The reference compares all rows with the words of the first.
    plain = [f"contains_tokens('{text or ''}', '{word or ''}')" for text, word in zip(texts, words, strict=True)]
    chosen = dataset.to_table({"n": "n", "found": "contains_tokens(t, w)"}, "n < 60")["found"].to_pylist()
    for row, found in enumerate(chosen):
        one = dataset.to_table({"found": plain[row]}, limit=1)["found"][0].as_py()
        assert found == (None if None in (texts[row], words[row]) else one)
