"""Base tokenizers that find words by a dictionary, which this release does not have."""

from __future__ import annotations

from typing import NoReturn

from lance_dataset.errors import UnsupportedError

__all__ = ["dictionary_tokenizer"]


def dictionary_tokenizer(name: str) -> NoReturn:
    """Raise UnsupportedError."""
    raise UnsupportedError(f"base_tokenizer={name!r} is not supported by this release")
