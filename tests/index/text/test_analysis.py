"""Tests of the analysis of texts: tokens and positions are those of the reference."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.expr.characters import ALPHANUMERIC, ranges_of
from lance_dataset.index.text.analysis.analyzer import Analyzer
from lance_dataset.index.text.analysis.parameters import AnalysisParameters
from lance_dataset.index.text.analysis.stop_words import LANGUAGES, stop_words

PLAIN: dict[str, Any] = {"stem": False, "remove_stop_words": False, "ascii_folding": False, "max_token_length": None}
#: Words with endings that stemmers of several languages remove.
WORDS = {
    "Arabic": "والكتاب المدرسة يكتبون كتابها",
    "Danish": "husene løbende venlighed jazz",
    "Dutch": "lopende voor huizen mogelijkheden",
    "English": "running university international easily skies dying added",
    "Finnish": "taloissa juoksemme turhan kirjoittaminen",
    "French": "française mauvais continuellement palais chevaux",
    "German": "häuser findet bedeutet systeme möglichkeiten straße",
    "Greek": "ίσα γράμματα καλύτερος ανθρώπων",
    "Hungarian": "házakban könyveim legszebb",
    "Italian": "all'interno velocemente libri quest'anno",
    "Norwegian": "husene vennlighet tvers masters",
    "Portuguese": "informações rapidamente livros",
    "Romanian": "bucurești puteți românești cărților",
    "Russian": "красивая книгами бегущий домами",
    "Spanish": "informacion rápidamente bibliotecas habitación",
    "Swedish": "husen huvudet vänlighet problemet",
    "Tamil": "புத்தகங்கள் வீடுகளில் ஓடினார்கள்",
    "Turkish": "türkiye'nin evlerimizden kitapları",
}
PIECES = [
    *" ".join(WORDS.values()).split(),
    *("the", "THE", "and", "it's", "Running", "getUserName", "HTML2JSON", "__init__", "a_b_C", "x::y->z", "a+=b"),
    *(
        "İstanbul",
        "ΣΑΣ",
        "ﬁne",
        "Straße",
        "ǅ",
        "½",
        "x²",
        "日本語",
        "\U0001d400b",
        "e\u0301",
        "x" * 39,
        "x" * 40,
        "é" * 20,
    ),
]
GAPS = [" ", " ", "  ", "\n", "\t", ".", ", ", "-", "_", "\u00a0", "\u3000", "\v", ""]


def theirs(text: str, parameters: dict[str, Any]) -> list[tuple[str, int]]:
    return [(token.text, token.position) for token in lance.tokenize(text, **parameters)]


def ours(analyzer: Analyzer, text: str) -> list[tuple[str, int]]:
    found = analyzer.tokens(text)
    return [(token, position - found[0][1]) for token, position in found]


def random_parameters(pick: random.Random) -> dict[str, Any]:
    base = pick.choice(["simple", "simple", "whitespace", "raw", "ngram", "code", "code"])
    found: dict[str, Any] = {"base_tokenizer": base, "language": pick.choice(LANGUAGES)}
    for name in ("lower_case", "stem", "remove_stop_words", "ascii_folding"):
        if pick.random() < 0.5:
            found[name] = pick.random() < 0.5
    if pick.random() < 0.4:
        found["max_token_length"] = pick.choice([None, 0, 1, 3, 10, 40, 41])
    if pick.random() < 0.3:
        found["custom_stop_words"] = pick.sample(PIECES, 5)
    if base == "ngram" and pick.random() < 0.6:
        found.update(min_ngram_length=pick.randint(1, 3), max_ngram_length=pick.randint(3, 5))
        found["prefix_only"] = pick.random() < 0.3
    if base == "code":
        for name in ("split_identifiers", "split_on_numerics", "preserve_original", "index_operators"):
            if pick.random() < 0.6:
                found[name] = pick.random() < 0.6
    return found


@pytest.mark.parametrize("seed", range(60))
def test_random_texts(seed: int) -> None:
    """Tokens of random texts are those of the reference, for random parameters."""
    pick = random.Random(seed)
    parameters = random_parameters(pick)
    analyzer = Analyzer(AnalysisParameters.of(parameters))
    for _ in range(15):
        text = "".join(pick.choice(PIECES) + pick.choice(GAPS) for _ in range(pick.randint(0, 40)))
        assert ours(analyzer, text) == theirs(text, parameters), (parameters, text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_stems_and_stop_words(language: str) -> None:
    """Stems and stop words of every language are those of the reference."""
    words = sorted(stop_words(language))
    others = [f"{word}q" for word in words]
    text = " ".join(["zzq", *words, *others, *WORDS[language].split(), *PIECES])
    for stem, stops in ((True, False), (False, True), (True, True)):
        parameters = {**PLAIN, "base_tokenizer": "whitespace", "language": language}
        parameters.update(stem=stem, remove_stop_words=stops, lower_case=False)
        assert ours(Analyzer(AnalysisParameters.of(parameters)), text) == theirs(text, parameters)
    kept = Analyzer(AnalysisParameters.of({**parameters, "stem": False})).tokens(" ".join(words))
    assert not kept


def test_every_character() -> None:
    """Every character is a letter, or not, as in the reference; case and folding are the same, too."""
    points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    inside = {point for low, high in ranges_of(ALPHANUMERIC) for point in range(low, high)}
    parameters = {**PLAIN, "lower_case": True, "ascii_folding": True}
    analyzer = Analyzer(AnalysisParameters.of(parameters))
    chosen = [
        point for point in points if point < 0x3000 or point % 7 == 0 or (point in inside) != (point - 1 in inside)
    ]
    for start in range(0, len(chosen), 4096):
        text = " ".join(f"A{chr(point)}B" for point in chosen[start : start + 4096])
        assert ours(analyzer, text) == theirs(text, parameters)


def test_many_texts() -> None:
    """Texts of an array have their own tokens; nulls have none, and slices are respected."""
    pick = random.Random(0)
    texts = [
        None if pick.random() < 0.1 else " ".join(pick.choices(PIECES, k=pick.randint(0, 300))) for _ in range(3000)
    ]
    for kind, base in ((pa.string(), "simple"), (pa.large_string(), "code"), (pa.string(), "ngram")):
        parameters = AnalysisParameters.of({"base_tokenizer": base, "split_identifiers": base == "code"})
        array = pa.array(["other", *texts], kind).slice(1)
        analyzer, single = Analyzer(parameters), Analyzer(parameters)
        found = analyzer.analyze(array)
        assert len(found.ends) == len(texts)
        known = analyzer.table.tokens()
        assert np.frombuffer(known[0], np.int64)[-1] == len(known[1])
        assert analyzer.nbytes > len(known[1])
        ends = np.frombuffer(known[0], np.int64).tolist()
        stops = [0, *found.ends.tolist()]
        for i in pick.sample(range(len(texts)), 60):
            codes = found.codes[stops[i] : stops[i + 1]].tolist()
            words = [known[1][ends[code] : ends[code + 1]].decode() for code in codes]
            pairs = list(zip(words, found.positions[stops[i] : stops[i + 1]].tolist(), strict=True))
            assert pairs == ([] if texts[i] is None else single.tokens(texts[i]))


def test_no_texts() -> None:
    """An empty array has no tokens; forgotten tokens get new codes."""
    analyzer = Analyzer(AnalysisParameters())
    assert len(analyzer.analyze(pa.array([], pa.string())).codes) == 0
    assert analyzer.analyze(pa.array(["cat dog"])).codes.tolist() == [0, 1]
    analyzer.forget()
    assert analyzer.analyze(pa.array([None, "dog"])).codes.tolist() == [0]
    assert analyzer.table.count == 1


def test_wide_texts() -> None:
    """A text of many megabytes, and one token that long, are analyzed."""
    long = "word " * 3_000_000
    found = Analyzer(AnalysisParameters()).analyze(pa.array(["a", long, "b cat"], pa.large_string()))
    assert found.counts.tolist() == [0, 3_000_000, 2]
    assert found.positions[-3:].tolist() == [2_999_999, 0, 1]
    whole = Analyzer(AnalysisParameters(base_tokenizer="raw", max_token_length=None)).tokens(long)
    assert len(whole) == 1


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"base_tokenizer": "ngram", "max_token_length": None, "prefix_only": True},
        {"base_tokenizer": "code", "split_identifiers": True},
        {"language": "French", "lower_case": False, "ascii_folding": False, "stem": False, "max_token_length": 7},
    ],
)
def test_details(given: dict[str, Any]) -> None:
    """Parameters survive their form as details of an index."""
    parameters = AnalysisParameters.of(given)
    assert AnalysisParameters.of_details(parameters.details()) == parameters


def test_stored_defaults() -> None:
    """Parameters that a file does not name have the same default for every tokenizer."""
    assert AnalysisParameters.of_json({"base_tokenizer": "ngram", "with_position": True}).stem
    assert AnalysisParameters.of_json({}) == AnalysisParameters()


@pytest.mark.parametrize(
    "given",
    [
        *({"base_tokenizer": name} for name in ("", "Simple", "raw/x", 5)),
        *({"language": name} for name in ("english", "", '"English"', None)),
        *({"base_tokenizer": "ngram", "min_ngram_length": size} for size in (0, 4)),
        *({"max_token_length": size} for size in (-1, "a", 1.5, True, 1 << 64)),
        *({"custom_stop_words": words} for words in ("the", [1], 5)),
        *({name: 1} for name in ("stem", "lower_case", "prefix_only")),
        {"split_identifiers": True},
    ],
)
def test_wrong_parameters(given: dict[str, Any]) -> None:
    """Unknown names, and values of the wrong type or out of range, are refused."""
    with pytest.raises(InvalidInputError):
        AnalysisParameters.of(given)


@pytest.mark.parametrize("base", ["icu", "icu/split"])
def test_missing_tokenizers(base: str) -> None:
    """Tokenizers that this release does not have are named."""
    with pytest.raises(UnsupportedError, match=base):
        Analyzer(AnalysisParameters(base_tokenizer=base))


@pytest.mark.parametrize("seed", range(60))
def test_spans(seed: int) -> None:
    """Tokens with their places are those without, and are made from the characters at their places."""
    pick = random.Random(seed)
    parameters = AnalysisParameters.of(random_parameters(pick))
    analyzer = Analyzer(parameters)
    plain = Analyzer(replace(parameters, lower_case=False, stem=False, remove_stop_words=False, ascii_folding=False))
    for _ in range(15):
        text = "".join(pick.choice(PIECES) + pick.choice(GAPS) for _ in range(pick.randint(0, 40)))
        assert [(each.token, each.position) for each in analyzer.spans(text)] == analyzer.tokens(text)
        assert all(text[each.start : each.end] == each.token for each in plain.spans(text))
