"""Tests of tokenizers that find words by a dictionary."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jieba
import lance
import lindera
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.index.text.analysis.analyzer import Analyzer
from lance_dataset.index.text.analysis.parameters import AnalysisParameters

HOME = "LANCE_LANGUAGE_MODEL_HOME"
PLAIN: dict[str, Any] = {"stem": False, "remove_stop_words": False}
CHINESE = [
    "我们",
    "中国科学院",
    "计算所",
    "长春市",
    "药店",
    "叛徒",
    "hello",
    "C++",
    "，",
    " ",
    "东西",
    "硕士毕业",
    "\n",
    "é",
]
JAPANESE = ["東京", "都", "に", "住む", "関西", "国際", "空港", "。", "hello", " ", "é", "\U0001f600", "カナ"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(HOME, str(tmp_path))
    return tmp_path


def folder(home: Path, name: str, **files: str) -> Path:
    """Make a folder of files, whose names have two underscores for a dot."""
    found = home / name
    found.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (found / file.replace("__", ".")).write_text(content, "utf-8")
    return found


def outcome(call: Any) -> list[tuple[str, int]] | str:
    try:
        return [(token.text, token.position) for token in call()]
    except ValueError as error:
        return str(error)


def compare(base: str, text: str) -> None:
    theirs = lance.tokenize(text, base_tokenizer=base, **PLAIN)
    ours = lance_dataset.tokenize(text, base_tokenizer=base, **PLAIN)
    assert [(token.text, token.position) for token in ours] == [(token.text, token.position) for token in theirs], text


def texts(pool: list[str]) -> Iterator[str]:
    pick = random.Random(1)
    for _ in range(100):
        yield "".join(pick.choices(pool, k=pick.randint(1, 10)))


# -- jieba -------------------------------------------------------------------------------------------------------


def test_jieba(home: Path) -> None:
    """Words and positions are those of the reference, with a dictionary, and one of the user."""
    words = (Path(jieba.__file__).parent / "dict.txt").read_text("utf-8")
    lines = [line for line in words.splitlines() if any(line.split()[0] in piece for piece in CHINESE)]
    models = folder(home, "jieba/default", dict__txt="\n".join(lines) + "\n")
    for text in texts(CHINESE):
        compare("jieba/default", text)
        compare("jieba", text)
    (models / "config.json").write_text('{"main": "dict.txt", "users": ["user.txt"]}')
    (models / "user.txt").write_text("叛徒中国 100000 n\n", "utf-8")
    compare("jieba/default", "我们叛徒中国科学院")
    assert "叛徒中国" in [token.text for token in lance_dataset.tokenize("叛徒中国", base_tokenizer="jieba")]


def test_jieba_without_a_folder() -> None:
    """The package has a dictionary of its own."""
    found = lance_dataset.tokenize("小明硕士毕业于中国科学院", base_tokenizer="jieba", **PLAIN)
    assert [token.text for token in found if len(token.text) > 1] == [
        "小明",
        "硕士",
        "毕业",
        "中国",
        "科学",
        "学院",
        "科学院",
        "中国科学院",
    ]


def test_search_by_jieba(tmp_path: Path) -> None:
    """Texts are indexed, found and highlighted by words."""
    values = ["我们在长春市的药店", None, "", "中国科学院 Institutes"]
    dataset = lance_dataset.write_dataset(pa.table({"t": values}), tmp_path / "t")
    dataset.create_scalar_index("t", "INVERTED", base_tokenizer="jieba", with_position=True)
    rows = dataset.search("药店 institute", columns=["t"], highlight=True).to_pylist()
    shown = {row["t"]: row["_highlights"][0]["snippet"] for row in rows}
    assert shown["我们在长春市的药店"] == "我们在长春市的<em>药店</em>"
    assert shown["中国科学院 Institutes"] == "中国科学院 <em>Institutes</em>"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "cannot be read.*dict.txt"),
        ({"config__json": "x"}, "config.json: Expecting value"),
        ({"config__json": "[]"}, "is not an object"),
        ({"config__json": '{"main": 5}'}, "main must be"),
        ({"config__json": '{"main": "nope.txt"}'}, "cannot be read.*nope.txt"),
        ({"config__json": '{"users": 5}'}, "users must be"),
        ({"config__json": '{"users": ["nope"]}', "dict__txt": "a 1 n\n"}, "cannot be read.*nope"),
        ({"dict__txt": "a b c\n"}, "cannot be read.*invalid dictionary entry"),
        ({"dict__txt": ""}, "cannot be read.*no word with a frequency above 0"),
        ({"dict__txt": "a 0 n\n"}, "cannot be read.*no word with a frequency above 0"),
        ({"dict__txt": "a 5 n\nb -3 n\n"}, "cannot be read.*a frequency below 0"),
    ],
)
def test_wrong_jieba_dictionaries(home: Path, files: dict[str, str], message: str) -> None:
    folder(home, "jieba/default", **files)
    with pytest.raises(InvalidInputError, match=f"(?s){message}"):
        lance_dataset.tokenize("x", base_tokenizer="jieba/default")


@pytest.mark.parametrize("base", ["jieba/nope", "jieba/", "lindera/ipadic", "lindera/"])
def test_missing_folders(base: str, home: Path) -> None:
    """Both packages say which folder does not exist."""
    for module in (lance, lance_dataset):
        with pytest.raises(ValueError, match=f"Invalid directory path: {home}/{base.rstrip('/')}"):
            module.tokenize("x", base_tokenizer=base)


@pytest.mark.parametrize("name", ["../x", "/etc", "a/../../b", ".", "a\nb"])
def test_names_stay_inside(name: str) -> None:
    """The name in an index cannot lead to other folders."""
    with pytest.raises(InvalidInputError, match="is not the name of a dictionary"):
        Analyzer(AnalysisParameters(base_tokenizer=f"jieba/{name}"))


@pytest.mark.parametrize("kind", ["jieba", "lindera"])
def test_missing_packages(kind: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    folder(home, f"{kind}/default", config__yml="{}")
    monkeypatch.setitem(__import__("sys").modules, kind, None)
    with pytest.raises(UnsupportedError, match=rf"pip install 'lance-dataset\[{kind}\]'"):
        lance_dataset.tokenize("x", base_tokenizer=f"{kind}/default")


# -- lindera -----------------------------------------------------------------------------------------------------


def build_dictionary(source: Path, target: Path) -> None:
    """Build a dictionary of a few words."""
    source.mkdir()
    words = ["東京", "都", "に", "住む", "関西", "国際", "空港", "関西国際空港", "。"]
    features = "名詞,一般,*,*,*,*,x,x,x"
    (source / "words.csv").write_text("".join(f"{word},0,0,{-100 * len(word)},{features}\n" for word in words), "utf-8")
    (source / "matrix.def").write_text("1 1\n0 0 0\n")
    kinds = ["DEFAULT 0 1 0", "SPACE 0 1 0", "ALPHA 1 1 0", "KATAKANA 1 1 2", "0x0020 SPACE", "0x0061..0x007A ALPHA"]
    (source / "char.def").write_text("\n".join([*kinds, "0x30A1..0x30FF KATAKANA", ""]))
    unknown = [f"{kind},0,0,1000,記号,*,*,*,*,*,*,*,*" for kind in ("DEFAULT", "SPACE", "ALPHA", "KATAKANA")]
    (source / "unk.def").write_text("\n".join([*unknown, ""]), "utf-8")
    lindera.build_dictionary(str(source), str(target), lindera.Metadata(name="tiny", encoding="UTF-8"))


def test_lindera(home: Path, tmp_path: Path) -> None:
    """Words and positions are those of the reference, and their places those in the text."""
    models = folder(home, "lindera/tiny")
    build_dictionary(tmp_path / "source", models / "main")
    (models / "config.yml").write_text(f'segmenter:\n  mode: "normal"\n  dictionary: "{models / "main"}"\n')
    analyzer = Analyzer(
        AnalysisParameters(base_tokenizer="lindera/tiny", lower_case=False, ascii_folding=False, **PLAIN)
    )
    for text in texts(JAPANESE):
        compare("lindera/tiny", text)
        assert all(text[each.start : each.end] == each.token for each in analyzer.spans(text))
    found = lance_dataset.tokenize("関西国際空港に住む", base_tokenizer="lindera/tiny", **PLAIN)
    assert [token.text for token in found] == ["関西国際空港", "に", "住む"]


@pytest.mark.parametrize("config", [None, "", "{}", "segmenter:\n  dictionary: /nope\n"])
def test_wrong_lindera_dictionaries(home: Path, config: str | None) -> None:
    models = folder(home, "lindera/x")
    if config is not None:
        (models / "config.yml").write_text(config)
    with pytest.raises(InvalidInputError, match=r"config\.yml"):
        lance_dataset.tokenize("x", base_tokenizer="lindera/x")
    assert isinstance(outcome(lambda: lance.tokenize("x", base_tokenizer="lindera/x")), str)
    assert os.environ[HOME] == str(home)


def test_indices_of_both_packages(home: Path, tmp_path: Path) -> None:
    """Each package searches an index of the other, with the same scores."""
    words = (Path(jieba.__file__).parent / "dict.txt").read_text("utf-8")
    lines = [line for line in words.splitlines() if any(line.split()[0] in piece for piece in CHINESE)]
    folder(home, "jieba/default", dict__txt="\n".join(lines) + "\n")
    table = pa.table({"n": range(100), "t": list(texts(CHINESE))})
    for number, module in enumerate((lance, lance_dataset)):
        path = str(tmp_path / f"{number}.lance")
        module.write_dataset(table, path).create_scalar_index("t", "INVERTED", base_tokenizer="jieba/default")
        for query in ("中国科学院", "药店 hello", "我们 叛徒"):
            results = [
                each.dataset(path).to_table(columns=["n", "_score"], full_text_query=query)
                for each in (lance, lance_dataset)
            ]
            theirs, ours = (
                dict(zip(*(column.to_pylist() for column in found.columns), strict=True)) for found in results
            )
            assert ours == pytest.approx(theirs, rel=4e-6)
            assert ours
