"""Division of texts into the tokens that searches compare: `tokenize`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Final

from lance_dataset.errors import InvalidInputError, OutOfRangeError

__all__ = ["FtsToken", "tokenize"]

_CODE: Final = "code"
_ESCAPES: Final = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"})


@dataclass(frozen=True, repr=False)
class FtsToken:
    """Token of a text.

    Attributes
    ----------
    text
        The token, as the filters leave it.
    position
        Its position, counted from the first token that is kept.
    """

    text: str
    position: int

    def __repr__(self) -> str:
        return f'FtsToken(text="{self.text.translate(_ESCAPES)}", position={self.position})'


def tokenize(
    query: str,
    *,
    analyzer: str | None = None,
    base_tokenizer: str | None = None,
    language: str | None = None,
    max_token_length: int | EllipsisType | None = ...,
    lower_case: bool | None = None,
    stem: bool | None = None,
    remove_stop_words: bool | None = None,
    custom_stop_words: Sequence[str] | None = None,
    ascii_folding: bool | None = None,
    min_ngram_length: int | None = None,
    max_ngram_length: int | None = None,
    prefix_only: bool | None = None,
    split_identifiers: bool | None = None,
    split_on_numerics: bool | None = None,
    preserve_original: bool | None = None,
    index_operators: bool | None = None,
) -> list[FtsToken]:
    """Divide a text into tokens, as a full-text index with the same parameters does.

    None stands for the default of a parameter, except that ``max_token_length=None`` keeps tokens of any length.

    Parameters
    ----------
    query
        The text.
    analyzer
        ``text`` (the default), or ``code`` for program code.
    base_tokenizer
        How the text is divided: ``simple`` (letters and digits), ``whitespace``, ``raw`` (not at all), ``ngram``,
        ``cjk`` (for Chinese, Japanese and Korean: also single characters and pairs of them), ``jieba/NAME`` or
        ``lindera/NAME`` (words of a dictionary), or ``code``, which is that of the analyzer of this name.
    language
        Language of stems and stop words, ``English`` by default.
    max_token_length
        Only tokens with fewer bytes are kept, 40 by default.
    lower_case, stem, remove_stop_words, ascii_folding
        Filters, which are applied in this order. All are on by default; stems and stop words are off for n-grams and
        code.
    custom_stop_words
        Words to leave out instead of those of the language.
    min_ngram_length, max_ngram_length, prefix_only
        Numbers of characters of n-grams, 3 by default; True for only those at the start of the text.
    split_identifiers, split_on_numerics, preserve_original, index_operators
        For code: divide identifiers into words, also between letters and digits, keep the identifiers too, and make
        tokens of operators.

    Returns
    -------
    list of FtsToken
        The tokens. Positions count from the first one, and tokens that are left out leave gaps.

    Raises
    ------
    ValueError
        A name is unknown, or parameters contradict each other (an `InvalidInputError`); or the tokenizer is not
        supported (an `UnsupportedError`).
    TypeError, OverflowError
        An argument has the wrong type, or is too large or negative.
    """
    from lance_dataset.index.text.analysis.analyzer import Analyzer
    from lance_dataset.index.text.analysis.parameters import AnalysisParameters

    text = _text("query", query)
    switches = {
        "lower_case": lower_case,
        "stem": stem,
        "remove_stop_words": remove_stop_words,
        "ascii_folding": ascii_folding,
        "prefix_only": prefix_only,
        "split_identifiers": split_identifiers,
        "split_on_numerics": split_on_numerics,
        "preserve_original": preserve_original,
        "index_operators": index_operators,
    }
    given: dict[str, Any] = {name: _switch(name, value) for name, value in switches.items() if value is not None}
    if language is not None:
        given["language"] = _text("language", language)
    if max_token_length is None:
        given["max_token_length"] = None
    elif max_token_length is not ...:
        given["max_token_length"] = _number("max_token_length", max_token_length, 64)
    for name, value in (("min_ngram_length", min_ngram_length), ("max_ngram_length", max_ngram_length)):
        if value is not None:
            given[name] = _number(name, value, 32)
    if custom_stop_words is not None:
        given["custom_stop_words"] = _words(custom_stop_words)
    base = _base(analyzer, base_tokenizer)
    if base is not None:
        given["base_tokenizer"] = base
    found = Analyzer(AnalysisParameters.of(given)).tokens(text)
    first = found[0][1] if found else 0
    return [FtsToken(token, position - first) for token, position in found]


def _base(analyzer: str | None, base: str | None) -> str | None:
    """Return the base tokenizer of an analyzer."""
    if base is not None:
        _text("base_tokenizer", base)
    if analyzer is None:
        return base
    if _text("analyzer", analyzer) not in ("text", _CODE):
        raise InvalidInputError(f"unknown analyzer {analyzer!r}, expected 'text' or 'code'")
    if analyzer == _CODE and base not in (None, _CODE):
        raise InvalidInputError(f"analyzer='code' requires base_tokenizer='code', got {base!r}")
    if analyzer != _CODE and base == _CODE:
        raise InvalidInputError("base_tokenizer='code' requires analyzer='code'")
    return _CODE if analyzer == _CODE else base


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, not {type(value).__name__}")
    return value


def _switch(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return value


def _number(name: str, value: object, bits: int) -> int:
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
    number = int(value.__index__())
    if not 0 <= number < 1 << bits:
        raise OutOfRangeError(f"{name} must be between 0 and 2**{bits} - 1, not {number}")
    return number


def _words(words: object) -> list[str]:
    if isinstance(words, str) or not isinstance(words, Sequence):
        raise TypeError(f"custom_stop_words must be a list of texts, not {type(words).__name__}")
    return [_text("a word of custom_stop_words", word) for word in words]
