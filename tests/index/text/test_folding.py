"""Case and folding of characters are those of the reference, which indexes every kind of character here."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_dataset.index.text.folding import FOLDED, fold, lower
from lance_dataset.index.text.fst_reader import read_fst

#: All characters that change, and the first of every kind of 16 others.
_CHARACTERS = sorted(
    {ord(each) for each in FOLDED}
    | {code for code in range(0x20000) if not 0xD800 <= code < 0xE000 and lower(chr(code)) != chr(code)}
    | {code for code in range(1, 0x1FFFF, 16) if not 0xD800 <= code < 0xE000}
)


def _tokens(folder: Path, **options: Any) -> dict[int, str]:
    """Return what the reference makes of each character."""
    texts = pa.array([f"{code:x}:{chr(code)}" for code in _CHARACTERS])
    dataset = lance.write_dataset(pa.table({"t": texts}), folder)
    dataset.create_scalar_index(
        "t", "INVERTED", base_tokenizer="raw", stem=False, remove_stop_words=False, max_token_length=None, **options
    )
    (path,) = folder.glob("_indices/*/part_0_tokens.lance")
    data = lance.file.LanceFileReader(str(path)).read_all().to_table()["_token_fst_bytes"][0].as_py()
    pairs = (token.decode().partition(":") for token, _ in read_fst(data, len(texts), "test"))
    return {int(code, 16): text for code, _, text in pairs}


def test_folding_is_that_of_the_reference(tmp_path: Path) -> None:
    assert _tokens(tmp_path, lower_case=False, ascii_folding=True) == {code: fold(chr(code)) for code in _CHARACTERS}


def test_lower_case_is_that_of_the_reference(tmp_path: Path) -> None:
    assert _tokens(tmp_path, lower_case=True, ascii_folding=False) == {code: lower(chr(code)) for code in _CHARACTERS}


def test_folded_characters_are_ascii() -> None:
    assert len(FOLDED) == 2207
    assert all(key > "\x7f" and value and value.isascii() for key, value in FOLDED.items())


@pytest.mark.parametrize(
    ("text", "lowered", "folded"),
    [
        ("", "", ""),
        ("Plain TEXT", "plain text", "Plain TEXT"),
        ("Straße ÉTÉ", "straße été", "Strasse ETE"),
        ("ΑΣ", "ασ", "ΑΣ"),
        ("İ", "i̇", "I"),
        ("ﬁ½", "ﬁ½", "fi12"),
        ("𝐁𐵐", "𝐁\U00010d70", "B𐵐"),
        ("中文", "中文", "中文"),
    ],
)
def test_texts(text: str, lowered: str, folded: str) -> None:
    assert lower(text) == lowered
    assert fold(text) == folded


def test_newer_letters_agree_with_python_where_it_knows_them() -> None:
    for code in range(0x20000):
        if unicodedata.category(chr(code)) == "Lu" and not 0xD800 <= code < 0xE000:
            assert lower(chr(code)) == chr(code).lower()
