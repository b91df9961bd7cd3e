"""Base tokenizers that find words by a dictionary: jieba for Chinese, lindera for Japanese and others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.index.text.analysis.batches import BaseTokenizer, TokenSpan
from lance_dataset.index.text.analysis.single_texts import SingleTextTokenizer

__all__ = ["JiebaTokenizer", "LinderaTokenizer", "dictionary_tokenizer", "language_model_home"]

_HOME: Final = "LANCE_LANGUAGE_MODEL_HOME"
_DEFAULT: Final = "jieba/default"
#: Dictionaries that stay loaded.
_LOADED: Final = 4


class JiebaTokenizer(SingleTextTokenizer):
    """Base tokenizer of the words of jieba, and of the shorter words inside of them; punctuation and blanks are words.

    The position of a word is that of its first character. Words that the dictionary lacks are found by jieba's hidden
    Markov model.

    Parameters
    ----------
    words
        A `jieba.Tokenizer`.
    """

    def __init__(self, words: Any) -> None:
        self._words = words

    def spans(self, text: str) -> list[TokenSpan]:
        """Return the tokens of one text, see `BaseTokenizer`."""
        found = self._words.tokenize(text, mode="search")
        return [TokenSpan(token, start, start, end) for token, start, end in found]


class LinderaTokenizer(SingleTextTokenizer):
    """Base tokenizer of the words of lindera; punctuation is words, too.

    Parameters
    ----------
    words
        A `lindera.Tokenizer`.
    """

    def __init__(self, words: Any) -> None:
        self._words = words

    def spans(self, text: str) -> list[TokenSpan]:
        """Return the tokens of one text, see `BaseTokenizer`."""
        found = self._words.tokenize(text)
        if text.isascii():
            return [TokenSpan(each.surface, each.position, each.byte_start, each.byte_end) for each in found]
        # Number of characters before each byte; a byte that continues a character begins none.
        data = np.frombuffer(text.encode(), np.uint8)
        before = np.append(0, np.cumsum((data & 0xC0) != 0x80)).tolist()
        return [
            TokenSpan(each.surface, each.position, before[each.byte_start], before[each.byte_end]) for each in found
        ]


def language_model_home() -> Path:
    """Return the folder of dictionaries: that of ``LANCE_LANGUAGE_MODEL_HOME``, or one in the user's data."""
    home = os.environ.get(_HOME)
    if home:
        return Path(home)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "lance" / "language_models"


def dictionary_tokenizer(name: str) -> BaseTokenizer:
    """Return the tokenizer of a dictionary.

    Parameters
    ----------
    name
        ``jieba/NAME`` or ``lindera/NAME``, for the folder of this name in `language_model_home`. ``jieba`` is
        ``jieba/default``; without a folder, it is the dictionary that the package jieba contains.

    Raises
    ------
    UnsupportedError
        The package that reads the dictionary is not installed.
    InvalidInputError
        The folder does not exist, or has no valid dictionary.
    """
    name = _DEFAULT if name == "jieba" else name
    kind, _, model = name.partition("/")
    if not _is_name(model):
        raise InvalidInputError(f"base_tokenizer={name!r}: {model!r} is not the name of a dictionary")
    folder = language_model_home() / kind / model
    if not model or not (folder.is_dir() or name == _DEFAULT):
        raise InvalidInputError(
            f"base_tokenizer={name!r}: Invalid directory path: {folder}; put the dictionary there, or set {_HOME}"
        )
    return _LOADERS[kind](name, folder)


def _is_name(model: str) -> bool:
    """Return True unless a name, which may come from a file, leads to another folder."""
    steps = {".", ".."} & set(model.split("/"))
    return model.isprintable() and not (steps or set(model) & {"\\", ":"} or model.startswith("/"))


def _package(kind: str, needed_by: str) -> Any:
    try:
        if kind == "jieba":
            import jieba

            return jieba
        import lindera

        return lindera
    except ImportError as error:
        raise UnsupportedError(
            f"{needed_by} needs the package {kind}: pip install 'lance-dataset[{kind}]' ({error})"
        ) from error


# -- jieba -------------------------------------------------------------------------------------------------------


def _jieba(name: str, folder: Path) -> JiebaTokenizer:
    package = _package("jieba", f"base_tokenizer={name!r}")
    if not folder.is_dir():
        names: tuple[str, ...] = ("dict.txt",)
        folder = Path(package.__file__).parent
    else:
        names = _jieba_files(folder)
    files = tuple(str(folder / each) for each in names)
    try:
        stamps = tuple(os.stat(each).st_mtime_ns for each in files)
        return JiebaTokenizer(_loaded_jieba(files, stamps))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"base_tokenizer={name!r}: the dictionary cannot be read: {error}") from error


def _jieba_files(folder: Path) -> tuple[str, ...]:
    """Return the names of the dictionary and of those of the user."""
    config = folder / "config.json"
    if not config.exists():
        return ("dict.txt",)
    try:
        found = json.loads(config.read_text("utf-8"))
        if not isinstance(found, Mapping):
            raise ValueError("is not an object")
        main, users = found.get("main", "dict.txt"), found.get("users") or []
        if not isinstance(main, str):
            raise ValueError(f"main must be the name of a file, not {main!r}")
        if not isinstance(users, list) or not all(isinstance(each, str) for each in users):
            raise ValueError(f"users must be a list of names of files, not {users!r}")
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{config}: {error}") from error
    return (main, *users)


@lru_cache(_LOADED)
def _loaded_jieba(files: tuple[str, ...], stamps: tuple[int, ...]) -> Any:
    """Load dictionaries; the times of their last changes tell apart versions of them."""
    import jieba

    found = jieba.Tokenizer(files[0])
    # Not `initialize`, which trusts a file of objects in the folder for temporary files.
    with open(files[0], "rb") as file:
        found.FREQ, found.total = found.gen_pfdict(file)
    found.initialized = True
    for path in files[1:]:
        found.load_userdict(path)
    if found.total <= 0 or min(found.FREQ.values()) < 0:
        raise ValueError(f"{files[0]} has no word with a frequency above 0, or one with a frequency below 0")
    return found


# -- lindera -----------------------------------------------------------------------------------------------------


def _lindera(name: str, folder: Path) -> LinderaTokenizer:
    package = _package("lindera", f"base_tokenizer={name!r}")
    config = folder / "config.yml"
    if not config.exists():
        raise InvalidInputError(f"base_tokenizer={name!r}: {config} does not exist, which names the dictionary")
    try:
        return LinderaTokenizer(_loaded_lindera(package, str(config), config.stat().st_mtime_ns))
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInputError(f"Failed to load tokenizer config at {config}: {error}") from error


@lru_cache(_LOADED)
def _loaded_lindera(package: Any, config: str, stamp: int) -> Any:
    return package.TokenizerBuilder().from_file(config).build()


_LOADERS: Final[Mapping[str, Callable[[str, Path], BaseTokenizer]]] = {"jieba": _jieba, "lindera": _lindera}
