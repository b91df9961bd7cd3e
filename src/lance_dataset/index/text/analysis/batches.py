"""Tokens of many texts as arrays, and the interface of base tokenizers, which make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lancecodec.search.tokens import FoundTokens, TokenTable

__all__ = [
    "BaseTokenizer",
    "Rules",
    "TextBuffers",
    "TokenBatch",
    "TokenSpan",
    "Tokenize",
    "found_tokens",
    "intern",
    "token_list",
]

Codes: TypeAlias = NDArray[np.int32]
Ends: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class TokenBatch:
    """Tokens of consecutive texts.

    Attributes
    ----------
    codes : int32[tokens]
        Codes of the tokens in a table of distinct ones.
    positions : int32[tokens]
        Position of each token in its text.
    ends : int64[texts]
        Number of tokens up to the end of each text.
    """

    codes: Codes
    positions: Codes
    ends: Ends

    @property
    def counts(self) -> Ends:
        """Number of tokens of each text."""
        return np.diff(self.ends, prepend=0)

    def texts(self) -> Ends:
        """Return for each token the number of its text."""
        return np.repeat(np.arange(len(self.ends)), self.counts)

    def kept(self, codes: Codes) -> TokenBatch:
        """Return the tokens with other codes, without those whose code is -1."""
        keep = codes >= 0
        if keep.all():
            return TokenBatch(codes, self.positions, self.ends)
        ends = np.append(0, np.cumsum(keep))[self.ends]
        return TokenBatch(codes[keep], self.positions[keep], ends)

    @staticmethod
    def concat(batches: Sequence[TokenBatch]) -> TokenBatch:
        """Return the tokens of the texts of several batches."""
        if len(batches) == 1:
            return batches[0]
        starts = np.cumsum([0, *(len(batch.codes) for batch in batches)]).tolist()
        ends = [batch.ends + start for batch, start in zip(batches, starts, strict=False)]
        return TokenBatch(
            np.concatenate([np.empty(0, np.int32), *(batch.codes for batch in batches)]),
            np.concatenate([np.empty(0, np.int32), *(batch.positions for batch in batches)]),
            np.concatenate([np.empty(0, np.int64), *ends]),
        )


@dataclass(frozen=True)
class TextBuffers:
    """Buffers of an array of texts.

    Attributes
    ----------
    data
        Concatenated texts; also those before and after the array.
    offsets
        Where they begin and end: one number more than there are texts.
    validity, bit
        Bitmap with a 0 for each null, and the position of the first text; None without nulls.
    """

    data: pa.Buffer | bytes
    offsets: NDArray[np.int32] | NDArray[np.int64]
    validity: pa.Buffer | None
    bit: int

    @classmethod
    def of(cls, texts: pa.Array) -> TextBuffers:
        """Return the buffers of strings of either width."""
        validity, offsets, data = texts.buffers()
        kind = np.int64 if pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type) else np.int32
        if offsets is None or not len(texts):
            ends = np.zeros(1, kind)
        else:
            ends = np.frombuffer(offsets, kind)[texts.offset : texts.offset + len(texts) + 1]
        return cls(b"" if data is None else data, ends, validity if texts.null_count else None, texts.offset)

    @property
    def wide(self) -> bool:
        """True if offsets have 64 bits."""
        return self.offsets.itemsize == 8

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def strings(self) -> Iterator[str]:
        """Yield the texts, an empty one for each null."""
        data, ends = memoryview(self.data), self.offsets.tolist()
        valid = np.ones(len(self), bool)
        if self.validity is not None:
            bits = np.unpackbits(np.frombuffer(self.validity, np.uint8), bitorder="little")
            valid = bits[self.bit : self.bit + len(self)].astype(bool)
        for number, has_text in enumerate(valid.tolist()):
            yield str(data[ends[number] : ends[number + 1]], "utf-8", "replace") if has_text else ""

    @property
    def nbytes(self) -> int:
        """Bytes of all texts."""
        return int(self.offsets[-1] - self.offsets[0])


@dataclass(frozen=True)
class Rules:
    """Filters that base tokenizers apply themselves.

    Attributes
    ----------
    longest
        Only tokens with fewer bytes are kept.
    lower_case
        True if ASCII letters become lower-case.
    """

    longest: int
    lower_case: bool


class Tokenize(Protocol):
    """Call of a method of `TokenTable` that fills memory for tokens."""

    def __call__(self, found: FoundTokens) -> int:
        """Fill the memory and return the number of tokens."""
        ...


class TokenSpan(NamedTuple):
    """Token with its place in a text.

    Attributes
    ----------
    token
        The token.
    position
        Its position.
    start, end
        Characters of the text that it is made from.
    """

    token: str
    position: int
    start: int
    end: int


class BaseTokenizer(Protocol):
    """Division of texts into tokens. An object is used by one thread at a time."""

    def tokens(self, table: TokenTable, texts: TextBuffers, rules: Rules) -> TokenBatch:
        """Return the tokens of texts, with codes of a table that gets them."""
        ...

    def spans(self, text: str) -> Iterable[TokenSpan]:
        """Return the tokens of one text as they are in it, before any rules, each with its place."""
        ...


def found_tokens(room: int, texts: int, rules: Rules, tokenize: Tokenize) -> TokenBatch:
    """Return the tokens that a call finds.

    Parameters
    ----------
    room
        Number of tokens at most.
    texts
        Number of texts.
    rules
        Filters.
    tokenize
        The call.
    """
    codes, positions, ends = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(texts, np.int64)
    count = tokenize(FoundTokens(codes, positions, ends, rules.longest, rules.lower_case))
    return TokenBatch(codes[:count].copy(), positions[:count].copy(), ends)


def intern(table: TokenTable, tokens: pa.Array, rules: Rules) -> Codes:
    """Add tokens to a table and return their codes, -1 for tokens that the rules leave out and for nulls."""
    texts = TextBuffers.of(tokens)

    def whole(found: FoundTokens) -> int:
        return table.whole(found, texts.data, texts.offsets.data, texts.wide, texts.validity, texts.bit)

    batch = found_tokens(len(tokens), len(tokens), rules, whole)
    codes = np.full(len(tokens), -1, np.int32)
    codes[batch.texts()] = batch.codes
    return codes


def token_list(table: TokenTable, start: int = 0) -> list[str]:
    """Return the tokens of a table by code, from a code on."""
    offsets, data = table.tokens(start)
    found = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) // 8 - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    return [token.decode("utf-8", "replace") for token in found.to_pylist()]
