"""Base tokenizers of ICU's words, which this release does not have."""

from __future__ import annotations

from typing import NoReturn

from lance_dataset.errors import UnsupportedError

__all__ = ["icu_tokenizer"]


def icu_tokenizer(name: str) -> NoReturn:
    """Raise UnsupportedError."""
    raise UnsupportedError(
        f"base_tokenizer={name!r} is not supported by this release: it needs the word boundaries and dictionaries of "
        "ICU; use simple, whitespace or ngram"
    )
