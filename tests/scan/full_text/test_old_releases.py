"""Tests of full-text searches in indices of old releases, against what these releases found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pytest

import lance_dataset
from lance_dataset.errors import LanceError
from lance_dataset.query import MatchQuery, PhraseQuery

FIXTURES = Path(__file__).parents[2] / "fixtures" / "indices"
RELEASES = ("0.16.0", "0.20.0", "4.0.0")
#: Files of releases before 1.0.
FILES = ("tokens.lance", "docs.lance", "invert.lance")


def root(release: str) -> Path:
    return FIXTURES / f"text-{release}"


def found(dataset: Any, query: Any) -> dict[int, float]:
    table = dataset.scanner(columns=["id", "_score"], full_text_query=query).to_table()
    return dict(zip(table["id"].to_pylist(), table["_score"].to_pylist(), strict=True))


@pytest.mark.parametrize("release", RELEASES)
def test_same_results(release: str) -> None:
    """Words, phrases and similar words find the rows and the scores that the release itself found."""
    expected = json.loads((root(release) / "expected.json").read_text())
    dataset = lance_dataset.dataset(str(root(release)))
    for name, rows in expected.items():
        kind, _, words = name.rpartition(":")
        query: Any = words
        if kind == "phrase":
            query = PhraseQuery(words, "t")
        elif kind == "fuzzy":
            query = MatchQuery(words, "t", fuzziness=1 if words == "aple" else 2)
        assert found(dataset, query) == pytest.approx(dict(rows), rel=1e-6), name


def test_positions() -> None:
    """Phrases are found in an index with one row for each posting, which the reference does not do any more."""
    dataset = lance_dataset.dataset(str(root("0.20.0")))
    texts = {row["id"]: f" {row['t'] or ''} ".lower() for row in dataset.to_table().to_pylist()}
    for words in ("apple banana", "w3 apple", "running run", "the quick fox"):
        expected = {row for row, text in texts.items() if f" {words} " in text}
        assert set(found(dataset, PhraseQuery(words, "t"))) == expected


def test_rebuilt(tmp_path: Path) -> None:
    """New rows are searched together with an old index, and optimizing replaces it by one of this release."""
    path = shutil.copytree(root("0.20.0"), tmp_path / "table")
    dataset = lance_dataset.dataset(str(path))
    dataset.insert([{"id": 1000, "t": "apple apple kiwi"}])
    before = found(dataset, "kiwi apple")
    assert 1000 in before
    dataset.optimize.optimize_indices()
    assert set(found(dataset, "kiwi apple")) == set(before)
    assert found(dataset, "kiwi apple") == pytest.approx(found(lance.dataset(str(path)), "kiwi apple"), rel=1e-6)


@pytest.mark.parametrize("file", FILES)
def test_damage(file: str, tmp_path: Path) -> None:
    """Changed bytes of a file raise an error of this package, or change what is found."""
    path = shutil.copytree(root("0.20.0"), tmp_path / "table")
    target = next(path.glob(f"_indices/*/{file}"))
    good = target.read_bytes()
    rng = np.random.default_rng(5)
    for _ in range(60):
        data = bytearray(good)
        for place in rng.integers(len(data), size=rng.integers(1, 5)):
            data[place] = rng.integers(256)
        target.write_bytes(data)
        dataset = lance_dataset.dataset(str(path))
        for query in ("apple banana", PhraseQuery("apple banana", "t")):
            try:
                found(dataset, query)
            except LanceError:
                continue
