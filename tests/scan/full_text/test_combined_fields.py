"""Tests of searches in several columns as one text, compared with pylance."""

from __future__ import annotations

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

WORDS = ["apple", "pear", "plum", "zebra", "pie", "tart", "cake"]


def table(seed: int, rows: int) -> pa.Table:
    rng = np.random.default_rng(seed)

    def texts(most: int) -> list[str | None]:
        found = [" ".join(rng.choice(WORDS, rng.integers(0, most))) for _ in range(rows)]
        return [None if rng.random() < 0.1 else text for text in found]

    return pa.table({"n": rng.permutation(rows) + seed * 1000, "t": texts(40), "u": texts(4), "v": texts(9)})


def assert_same(path: Path, words: str, columns: list[str], **options: Any) -> None:
    scan = {name: options.pop(name) for name in ("filter", "prefilter", "fast_search") if name in options}
    found = []
    for module, package in ((reference_query, lance), (our_query, lance_dataset)):
        given = {**options, "operator": module.FullTextOperator[options.get("operator", "OR")]}
        query = module.CombinedFieldsQuery(words, columns, **given)
        got = package.dataset(str(path)).scanner(columns=["n", "_score"], full_text_query=query, **scan).to_table()
        found.append(dict(zip(got["n"].to_pylist(), got["_score"].to_pylist(), strict=True)))
        assert (np.diff(got["_score"].to_numpy()) <= 0).all()
    assert found[0].keys() == found[1].keys()
    for row, score in found[0].items():
        assert found[1][row] == pytest.approx(score, rel=1e-6)


def build(path: Path, columns: str = "tu", **options: Any) -> None:
    table_of = lance.write_dataset(table(1, 150), path)
    for column in columns:
        table_of.create_scalar_index(column, "INVERTED", stem=False, remove_stop_words=False, **options)


QUERIES: list[tuple[str, dict[str, Any]]] = [
    ("apple", {}),
    ("apple pie pie", {"boosts": [1.0, 2.5]}),
    ("pear zebra tart", {"operator": "AND"}),
    ("apple nothing", {"operator": "AND"}),
    ("apple nothing", {}),
    ("plum cake", {"filter": "n % 2 = 0", "prefilter": True}),
    ("plum cake", {"filter": "n % 2 = 0"}),
    ("", {}),
]


@pytest.mark.parametrize("block_size", [128, 256])
def test_changes(tmp_path: Path, block_size: int) -> None:
    path = tmp_path / "t.lance"
    build(path, block_size=block_size)
    for change in range(4):
        if change == 1:
            lance.dataset(path).delete("n % 7 = 1")
        elif change == 2:
            lance.write_dataset(table(2, 60), path, mode="append")
            assert_same(path, "apple pie", ["u", "t"], fast_search=True)
        elif change == 3:
            lance.dataset(path).optimize.optimize_indices()
        for words, options in QUERIES:
            if change == 2 and options.get("prefilter"):
                continue
            assert_same(path, words, ["t", "u"], **options)


def test_column_without_index(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    build(path, "t")
    for words, options in QUERIES:
        if "prefilter" not in options:
            assert_same(path, words, ["t", "v"], **options)


def test_wrong_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    build(path, "t")
    lance.dataset(path).create_scalar_index("u", "INVERTED", stem=True)
    handle = lance_dataset.dataset(str(path))
    for columns, words in ((["t", "u"], "configuration; column 'u'"), (["v"], "at least one of")):
        with pytest.raises(InvalidInputError, match=words):
            handle.to_table(full_text_query=our_query.CombinedFieldsQuery("apple", columns))
