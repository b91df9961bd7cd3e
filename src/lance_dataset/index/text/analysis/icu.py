"""Base tokenizers of ICU's words, which this release does not have."""

from __future__ import annotations

from typing import NoReturn

from lance_dataset.errors import UnsupportedError

__all__ = ["icu_tokenizer"]


def icu_tokenizer(name: str) -> NoReturn:
    """Raise UnsupportedError."""
    raise UnsupportedError(
        f"base_tokenizer={name!r} is not supported by this release: the ICU packages of Python divide Chinese, "
        "Japanese and Korean texts into other words than the reference; use cjk, jieba/... or lindera/..., or simple"
    )
