"""Encodings of 2.1 and later. A new encoding is a module and a line here."""

from __future__ import annotations

from functools import partial
from typing import Any

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.encodings.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lance_dataset.file.structural.encodings.byte_stream_split import ByteStreamSplit
from lance_dataset.file.structural.encodings.constant import Constant
from lance_dataset.file.structural.encodings.dictionary import Dictionary
from lance_dataset.file.structural.encodings.fixed_size_list import FixedSizeList
from lance_dataset.file.structural.encodings.flat import Flat, flat_candidate
from lance_dataset.file.structural.encodings.fsst import Fsst
from lance_dataset.file.structural.encodings.general import General
from lance_dataset.file.structural.encodings.packed_struct import PackedStruct, VariablePackedStruct
from lance_dataset.file.structural.encodings.request import (
    Candidate,
    EncodedChunks,
    Request,
    TextEncoding,
    WordEncoding,
)
from lance_dataset.file.structural.encodings.rle import Rle
from lance_dataset.file.structural.encodings.sequences import Delta, Range
from lance_dataset.file.structural.encodings.values import Strings, Words, measure
from lance_dataset.file.structural.encodings.variable import Variable

__all__ = [
    "ENCODINGS",
    "compressible_chunks",
    "parse_encoding",
    "parse_optional",
    "text_candidates",
    "word_candidates",
]

#: All encodings, cheapest to decode first: of candidates of equal size the writer takes the first.
ENCODINGS: tuple[type[Encoding], ...] = (
    Flat,
    InlineBitpacking,
    Rle,
    ByteStreamSplit,
    OutOfLineBitpacking,
    Variable,
    Fsst,
    Constant,
    Range,
    Delta,
    Dictionary,
    General,
    FixedSizeList,
    PackedStruct,
    VariablePackedStruct,
)
_WORD_ENCODINGS = tuple(encoding for encoding in ENCODINGS if issubclass(encoding, WordEncoding))
_TEXT_ENCODINGS = tuple(encoding for encoding in ENCODINGS if issubclass(encoding, TextEncoding))
#: Candidate methods of the encodings that define one.
_WORD_OFFERS = tuple(encoding.candidate for encoding in _WORD_ENCODINGS if "candidate" in vars(encoding))
_TEXT_OFFERS = tuple(encoding.candidate for encoding in _TEXT_ENCODINGS if "candidate" in vars(encoding))

_MAX_DEPTH = 32
_WORD_BITS = (8, 16, 32, 64)
_PARSERS = {encoding.message_field: encoding.parse for encoding in ENCODINGS}


def parse_optional(parent: Any, name: str) -> Encoding | None:
    """Parse the encoding in a field of a message, return None if it is missing."""
    return parse_encoding(getattr(parent, name)) if parent.HasField(name) else None


def parse_encoding(message: Any, depth: int = 0) -> Encoding:
    """Check a `CompressiveEncoding` of either package and return the encoding.

    Raises
    ------
    CorruptFileError
        The encoding is impossible. The caller adds the place.
    UnsupportedError
        This release does not know the encoding or scheme.
    """
    if depth > _MAX_DEPTH:
        raise CorruptFileError(f"an encoding is nested more than {_MAX_DEPTH} levels deep")
    kind = message.WhichOneof("compression")
    if kind is None:
        raise CorruptFileError("an encoding is missing, or of a kind this file version does not have")
    return _PARSERS[kind](getattr(message, kind), partial(_parse_part, depth + 1))


def _parse_part(depth: int, message: Any, name: str) -> Encoding:
    if not message.HasField(name):
        raise CorruptFileError(f"encoding {message.DESCRIPTOR.name} lacks its {name}")
    return parse_encoding(getattr(message, name), depth)


# -- choice by the writer -------------------------------------------------------------------------------------


def word_candidates(words: Words, request: Request) -> tuple[list[Candidate], int]:
    """Return candidates for words: flat, and smaller ones for 8 to 64 bits, cheapest to decode first.

    The second result is the minimum number of entries of run-length encoding, 0 if unknown.
    """
    plain = flat_candidate(words, request)
    if plain is None:
        return [], 0
    if words.bits not in _WORD_BITS or request.options.compression == "none" or words.count < 2:
        return [plain], 0
    measured = measure(words)
    candidates = [plain]
    for offer in _WORD_OFFERS:
        offered = offer(measured, plain.size, request)
        if offered is not None and offered.size < plain.size:
            candidates.append(offered)
    return candidates, measured.found.rle_entries or 0


def compressible_chunks(words: Words, request: Request) -> list[EncodedChunks]:
    """Encode words in large chunks in the ways that suit general compression."""
    per_chunk = request.flat_values(words.bits, roomy=True)
    if per_chunk == 0:
        return []
    return [chunks for encoding in _WORD_ENCODINGS for chunks in encoding.compressible(words, per_chunk, request)]


def text_candidates(strings: Strings, text: bool, plain: int, rival: int, request: Request) -> list[Candidate]:
    """Return candidates for strings that may be smaller than all found so far; see `TextEncoding.candidate`."""
    offered = [offer(strings, text, plain, rival, request) for offer in _TEXT_OFFERS]
    return [candidate for candidate in offered if candidate is not None]
