"""Parameters of analysis: their defaults, their checks, and the forms in which index files and manifests hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from lance_dataset._proto import scalar_index_pb2
from lance_dataset.errors import InvalidInputError
from lance_dataset.index.text.analysis.stop_words import LANGUAGES

__all__ = ["AnalysisParameters"]

_CODE: Final = "code"
_NGRAM: Final = "ngram"
_CJK: Final = "cjk"
_ICU: Final = "icu"
_ICU_SPLIT: Final = "icu/split"
#: Names of base tokenizers. Those of dictionaries begin with one of the prefixes.
_BASES: Final = ("simple", "whitespace", "raw", _NGRAM, _CODE, _CJK, _ICU, _ICU_SPLIT)
_DICTIONARIES: Final = ("jieba/", "lindera/")
_CODE_FLAGS: Final = ("split_identifiers", "split_on_numerics", "preserve_original", "index_operators")
_BOOLEANS: Final = frozenset(
    {"lower_case", "stem", "remove_stop_words", "ascii_folding", "prefix_only", *_CODE_FLAGS},
)


@dataclass(frozen=True)
class AnalysisParameters:
    """Parameters of the analysis of texts, complete and checked.

    Attributes
    ----------
    base_tokenizer
        How texts are divided: ``simple``, ``whitespace``, ``raw``, ``ngram``, ``code``, ``cjk``, ``icu``,
        ``icu/split``, or ``jieba/`` or ``lindera/`` with the name of a dictionary.
    language
        Language of the stemmer and the stop words, one of `LANGUAGES`.
    max_token_length
        Only tokens with fewer bytes are kept; None for all.
    lower_case, stem, remove_stop_words, ascii_folding
        Filters, which are applied in this order.
    custom_stop_words
        Words to leave out instead of those of the language; None for those.
    min_ngram_length, max_ngram_length, prefix_only
        Sizes of n-grams; True to make only those at the start of a text.
    split_identifiers, split_on_numerics, preserve_original, index_operators
        Of the tokenizer for code: divide identifiers into words, also between letters and digits, keep the identifiers
        too, and make tokens of operators.
    """

    base_tokenizer: str = "simple"
    language: str = "English"
    max_token_length: int | None = 40
    lower_case: bool = True
    stem: bool = True
    remove_stop_words: bool = True
    custom_stop_words: tuple[str, ...] | None = None
    ascii_folding: bool = True
    min_ngram_length: int = 3
    max_ngram_length: int = 3
    prefix_only: bool = False
    split_identifiers: bool = False
    split_on_numerics: bool = False
    preserve_original: bool = False
    index_operators: bool = False

    def __post_init__(self) -> None:
        _check_base(self.base_tokenizer)
        if self.language not in LANGUAGES:
            raise InvalidInputError(
                f"can't set tokenizer language to {self.language}: expected one of {', '.join(LANGUAGES)}"
            )
        if self.base_tokenizer == _NGRAM and self.min_ngram_length < 1:
            raise InvalidInputError("min_gram must be greater than 0")
        if self.base_tokenizer == _NGRAM and self.min_ngram_length > self.max_ngram_length:
            raise InvalidInputError("min_gram must not be greater than max_gram")
        if self.base_tokenizer != _CODE and any(getattr(self, flag) for flag in _CODE_FLAGS):
            raise InvalidInputError("code analyzer flags require analyzer='code'")

    @classmethod
    def of(cls, given: Mapping[str, Any], *, filters: bool = True) -> AnalysisParameters:
        """Return the parameters that a user gives; those that are missing depend on the tokenizer.

        Parameters
        ----------
        given
            Parameters by name. Other names are ignored.
        filters
            True if stemming and the removal of stop words are the default, where the tokenizer does not say otherwise.

        Raises
        ------
        InvalidInputError
            A parameter has the wrong type or value.
        """
        base = given.get("base_tokenizer")
        found: dict[str, Any] = {}
        if base == _CODE:
            found.update(split_on_numerics=True, preserve_original=True)
        if base in (_CODE, _NGRAM) or not filters:
            found.update(stem=False, remove_stop_words=False)
        known = {field.name for field in fields(cls)}
        found.update((name, _checked(name, value)) for name, value in given.items() if name in known)
        return cls(**found)

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> AnalysisParameters:
        """Return the parameters that an index file has as JSON. Missing ones have the same default for all tokenizers.

        Raises
        ------
        InvalidInputError
            A parameter has the wrong type or value.
        """
        known = {field.name for field in fields(cls)}
        return cls(**{name: _checked(name, value) for name, value in stored.items() if name in known})

    @classmethod
    def of_details(cls, details: scalar_index_pb2.InvertedIndexDetails) -> AnalysisParameters:
        """Return the parameters that the details of an index have, which do not include stop words of the user.

        Raises
        ------
        InvalidInputError
            A parameter has the wrong value.
        """
        code = details.code
        base = details.base_tokenizer if details.HasField("base_tokenizer") else "simple"
        is_code = base == _CODE
        return cls(
            base,
            details.language.strip('"'),
            details.max_token_length if details.HasField("max_token_length") else None,
            details.lower_case,
            details.stem,
            details.remove_stop_words,
            None,
            details.ascii_folding,
            details.min_ngram_length,
            details.max_ngram_length,
            details.prefix_only,
            is_code and code.split_identifiers,
            is_code and (code.split_on_numerics or not code.HasField("split_on_numerics")),
            is_code and (code.preserve_original or not code.HasField("preserve_original")),
            is_code and code.index_operators,
        )

    def details(
        self, *, with_position: bool = False, block_size: int = 128, format_version: int | None = None
    ) -> scalar_index_pb2.InvertedIndexDetails:
        """Return the parameters as details of an index. Stop words of the user are not part of them.

        Parameters
        ----------
        with_position, block_size
            Parameters of full-text indices.
        format_version
            Version of the layout of full-text indices; None for the lowest that fits.
        """
        is_code = self.base_tokenizer == _CODE
        found = scalar_index_pb2.InvertedIndexDetails(
            base_tokenizer=self.base_tokenizer,
            language=f'"{self.language}"',
            with_position=with_position,
            lower_case=self.lower_case,
            stem=self.stem,
            remove_stop_words=self.remove_stop_words,
            ascii_folding=self.ascii_folding,
            min_ngram_length=self.min_ngram_length,
            max_ngram_length=self.max_ngram_length,
            prefix_only=self.prefix_only,
            block_size=block_size,
            posting_format_version=format_version or (3 if is_code or block_size == 256 else 2),
        )
        if self.max_token_length is not None:
            found.max_token_length = min(self.max_token_length, (1 << 32) - 1)
        if is_code:
            found.code.split_identifiers = self.split_identifiers
            found.code.split_on_numerics = self.split_on_numerics
            found.code.preserve_original = self.preserve_original
            found.code.index_operators = self.index_operators
        return found


def _check_base(name: str) -> None:
    """Raise InvalidInputError unless there is such a base tokenizer."""
    if name in _BASES or name == "jieba" or name.startswith(_DICTIONARIES):
        return
    raise InvalidInputError(f"unknown base tokenizer {name}; known are {', '.join((*_BASES, *_DICTIONARIES))}")


def _checked(name: str, value: Any) -> Any:
    """Return a parameter as it is used; raise InvalidInputError if it has the wrong type."""
    if name == "custom_stop_words":
        if value is None or (isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)):
            return None if value is None else tuple(value)
        raise InvalidInputError(f"{name} must be a list of texts, not {value!r}")
    if name in _BOOLEANS:
        if isinstance(value, bool):
            return value
        raise InvalidInputError(f"{name} must be True or False, not {value!r}")
    if name in ("base_tokenizer", "language"):
        if isinstance(value, str):
            return value
        raise InvalidInputError(f"{name} must be text, not {value!r}")
    if value is None and name == "max_token_length":
        return None
    bits = 64 if name == "max_token_length" else 32
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << bits:
        raise InvalidInputError(f"{name} must be a number of {bits} bits, not {value!r}")
    return value
