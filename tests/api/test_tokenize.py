"""Tests of `tokenize`."""

from __future__ import annotations

from typing import Any

import lance
import pytest

import lance_dataset
from lance_dataset import FtsToken, tokenize

TEXT = "The quick getUserName2 foxes -> a::b été"


def test_example() -> None:
    """Positions count from the first token, and stop words leave gaps."""
    assert tokenize("the Cats and Dogs") == [FtsToken("cat", 0), FtsToken("dog", 2)]
    assert repr(tokenize('a"b\\', base_tokenizer="raw")[0]) == repr(lance.tokenize('a"b\\', base_tokenizer="raw")[0])
    assert {"tokenize", "FtsToken"} <= set(lance_dataset.__all__)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"analyzer": "code"},
        {"analyzer": "code", "index_operators": True, "split_identifiers": True},
        {"base_tokenizer": "code", "split_identifiers": True},
        {"base_tokenizer": "ngram", "min_ngram_length": 2},
        {"base_tokenizer": "whitespace", "language": "French"},
        {"max_token_length": None, "stem": None},
        {"max_token_length": 4, "custom_stop_words": ("fox",)},
        {"max_token_length": True},
        {"analyzer": "text", "split_identifiers": False},
    ],
)
def test_same_tokens(options: dict[str, Any]) -> None:
    """Tokens are those of the reference."""
    found = [(token.text, token.position) for token in tokenize(TEXT, **options)]
    assert found == [(token.text, token.position) for token in lance.tokenize(TEXT, **options)]


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (5, {}),
        *(("x", {name: 5}) for name in ("analyzer", "base_tokenizer", "language", "lower_case", "custom_stop_words")),
        *(("x", {"custom_stop_words": words}) for words in ("x", {"x"}, [1])),
        *(("x", {"max_token_length": size}) for size in (-1, 1 << 70, "a", 2.0)),
        *(("x", {"min_ngram_length": size}) for size in (-1, 1 << 40, "a")),
        *(("x", {"analyzer": name}) for name in ("Code", "")),
        *(("x", {"base_tokenizer": name}) for name in ("Simple", "", "raw/x")),
        ("x", {"language": "english"}),
        ("x", {"analyzer": "code", "base_tokenizer": "simple"}),
        ("x", {"analyzer": "text", "base_tokenizer": "code"}),
        ("x", {"split_identifiers": True}),
        ("x", {"base_tokenizer": "ngram", "min_ngram_length": 0}),
    ],
)
def test_same_errors(query: Any, options: dict[str, Any]) -> None:
    """Errors have the class of the reference."""
    with pytest.raises((ValueError, TypeError, OverflowError)) as expected:
        lance.tokenize(query, **options)
    with pytest.raises(expected.type):
        tokenize(query, **options)
