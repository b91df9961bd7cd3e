"""Tests of approximate deduplication."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, SchemaError
from lance_dataset.index.scalar.minhash_parameters import MinHashParameters
from lance_dataset.spark import drop_near_duplicates, near_duplicates
from lance_dataset.spark.search.duplicates import _comparing, _signing

WORDS = [f"w{n}" for n in range(400)]


def shingles(text, size=3):
    words = text.split()
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}


def jaccard(one, other):
    return len(shingles(one) & shingles(other)) / len(shingles(one) | shingles(other))


def texts():
    """Return texts by key: originals, copies with a word or two replaced, and repeats."""
    random.seed(5)
    found = [" ".join(random.choices(WORDS, k=60)) for _ in range(40)]
    for original in found[:20]:
        words = original.split()
        words[random.randrange(5)] = "other"
        found.append(" ".join(words))
    return dict(enumerate([*found, *found[30:35], found[3], "", None]))


def test_signatures_estimate_the_similarity():
    rows = {key: text for key, text in texts().items() if text}
    batch = pa.record_batch({"key": pa.array(rows, pa.int64()), "text": pa.array(rows.values())})
    signed = pa.Table.from_batches(list(_signing(MinHashParameters.of({}))(iter([batch]))))
    pairs = list(itertools.combinations(rows, 2))
    for one, other in (*pairs[::40], (0, 40), (30, 60)):
        pair = signed.take([list(rows).index(one), list(rows).index(other)])
        found = _comparing(128, 1e-9)(pair).to_pylist()
        estimate = found[0]["similarity"] if found else 0.0
        assert abs(estimate - jaccard(rows[one], rows[other])) < 0.2
    for text in ("", None):
        empty = pa.record_batch({"key": pa.array([1]), "text": pa.array([text], pa.string())})
        assert [part.num_rows for part in _signing(MinHashParameters.of({}))(iter([empty]))] == [0]


def test_rows_like_an_earlier_one_are_found_and_dropped(spark):
    rows = texts()
    frame = spark.createDataFrame([(f"k{key:03}", text) for key, text in rows.items()], "name string, body string")
    found = {row.name: (row.duplicate_of, row.similarity) for row in near_duplicates(frame, "body", "name").collect()}
    expected = {f"k{40 + n:03}": f"k{n:03}" for n in range(20)} | {f"k{60 + n:03}": f"k{30 + n:03}" for n in range(5)}
    expected["k065"] = "k003"
    assert {key: original for key, (original, _) in found.items()} == expected
    assert all(similarity == 1.0 for key, (_, similarity) in found.items() if key >= "k060")
    assert all(0.8 <= similarity < 1.0 for key, (_, similarity) in found.items() if key < "k060")
    left = drop_near_duplicates(frame, "body", "name")
    assert left.columns == frame.columns
    assert sorted(row.name for row in left.collect()) == [*(f"k{n:03}" for n in range(40)), "k066", "k067"]


def test_wrong_arguments(spark):
    frame = spark.range(1).selectExpr("id", "'a' t", "0.5D x")
    for arguments, error, message in (
        (("text", "id"), FieldNotFoundError, "There is no column 'text'"),
        (("id", "id"), SchemaError, "'id' must be a text, but it is bigint"),
        (("t", "x"), SchemaError, "'x' must be an integer, a text or a date, but it is double"),
    ):
        with pytest.raises(error, match=message):
            near_duplicates(frame, *arguments)
    with pytest.raises(InvalidInputError, match="threshold must be above 0"):
        near_duplicates(frame, "t", "id", threshold=0)
    with pytest.raises(InvalidInputError, match="multiple of num_bands"):
        near_duplicates(frame, "t", "id", num_bands=7)
