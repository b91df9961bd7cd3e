"""Tokens of texts in n-gram indices: windows of three letters or digits of the text in lower case, folded to ASCII."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.text.folding import fold, lower
from lance_dataset.table.row_sets import TREEMAPS, encode_groups
from lancecodec.search import ngrams

__all__ = ["NULLS", "TokenSets", "is_doubtful", "sets_of_texts", "tokens_of"]

#: Token of null texts. Some texts with unusual characters have it, too.
NULLS: Final = 0


#: Characters that old releases did not fold, and the others that they might not have folded.
_DOUBTFUL = re.compile("[^\\0-\u017f]|[\u00aa\u00ba\u00bc-\u00be\u0138]")


class TokenSets(NamedTuple):
    """Tokens, ascending, each with the set of its rows.

    Attributes
    ----------
    tokens : uint32[n]
    sets : LargeBinaryArray
    """

    tokens: NDArray[np.uint32]
    sets: pa.LargeBinaryArray


def tokens_of(text: str) -> list[int]:
    """Return distinct tokens, ascending, that all texts have which contain a text, in any case of its letters.

    They are the same in indices of all releases: other characters are taken for borders, see `_DOUBTFUL`.
    """
    folded = _folded_text(_DOUBTFUL.sub(" ", text))
    return sorted(set(_found(pa.array([folded], pa.large_string()), folded=True).tokens.tolist()))


def is_doubtful(text: str) -> bool:
    """Return True if the tokens of a text may be others in indices of old releases."""
    return _DOUBTFUL.search(text) is not None


def _folded_text(text: str) -> str:
    """Return the text that tokens are cut from."""
    return fold(lower(text))


def sets_of_texts(texts: pa.Array, rows: NDArray[np.uint64]) -> Iterator[TokenSets]:
    """Yield the tokens of some texts.

    Parameters
    ----------
    texts : Array of string or large_string
        The texts.
    rows
        Id or address of the row of each, ascending.
    """
    if texts.null_count:
        nulls = np.asarray(texts.is_null())
        yield _sets(np.array([NULLS], np.uint32), np.array([nulls.sum()]), rows[nulls])
        texts, rows = texts.drop_null(), rows[~nulls]
    found = _found(texts, folded=False)
    yield _grouped(found, rows, ngrams.PLAIN)
    if len(found.others):
        some = _folded(texts.take(pa.array(found.others)))
        yield _grouped(_found(some, folded=True), rows[found.others], ngrams.FOLDED)


class _Found(NamedTuple):
    """Tokens with the texts that have them, and the texts that must be folded first."""

    tokens: NDArray[np.uint32]
    places: NDArray[np.uint32]
    others: NDArray[np.uint32]


def _found(texts: pa.Array, *, folded: bool) -> _Found:
    wide = pa.types.is_large_string(texts.type)
    none = np.empty(0, np.uint32)
    if not len(texts):
        return _Found(none, none, none)
    width = 8 if wide else 4
    offsets = texts.buffers()[1].slice(texts.offset * width, (len(texts) + 1) * width)
    data = texts.buffers()[2] or b""
    room = ngrams.room(data, offsets, wide, folded)
    tokens, places, others = (np.empty(size, np.uint32) for size in (room, room, len(texts)))
    count, left = ngrams.find(data, offsets, wide, folded, tokens, places, others)
    return _Found(tokens[:count], places[:count], others[:left])


def _folded(texts: pa.Array) -> pa.Array:
    """Return the texts that tokens are cut from."""
    parts: list[str] = texts.to_pylist()
    # One text is folded much faster than many. A zero byte stays what it is, and few texts have one.
    folded = _folded_text("\0".join(parts)).split("\0")
    if len(folded) != len(parts):
        folded = [_folded_text(part) for part in parts]
    return pa.array(folded, pa.large_string())


def _grouped(found: _Found, rows: NDArray[np.uint64], num_tokens: int) -> TokenSets:
    starts, values = np.empty(num_tokens + 1, np.int64), np.empty(len(found.tokens), np.uint64)
    ngrams.group(found.tokens, found.places, rows, starts, values)
    tokens = np.flatnonzero(np.diff(starts))
    return _sets(tokens.astype(np.uint32), starts[tokens + 1], values)


def _sets(tokens: NDArray[np.uint32], stops: NDArray[np.int64], rows: NDArray[np.uint64]) -> TokenSets:
    return TokenSets(tokens, encode_groups(rows, stops, TREEMAPS))
