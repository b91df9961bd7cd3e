"""Training of n-gram indices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.buffers import concat_arrays
from lance_dataset.index.files import WRITTEN_VERSION
from lance_dataset.index.scalar.ngram import POSTINGS, ROWS, SCHEMA, TOKENS, open_postings, tokens_in
from lance_dataset.index.scalar.ngram_runs import TokenGathering, united
from lance_dataset.index.scalar.ngram_tokens import TokenSets, sets_of_texts
from lance_dataset.index.trainer import OldSegment, Trainer, Training
from lance_dataset.table.known_sets import KnownSets
from lance_dataset.table.row_sets import TREEMAPS, bounds_of_sets, encode_groups
from lance_dataset.threads.pools import cpu_count
from lance_dataset.threads.streams import stream
from lance_dataset.types.schema import Schema

__all__ = ["TRAINER"]

_Rows = NDArray[np.uint64]
#: Rows and bytes of texts whose tokens are found together.
_PIECE_ROWS = 1 << 16
_PIECE_BYTES = 4 << 20
_LEAST_BYTES = 64 << 10
#: Memory for the tokens of texts, as a multiple of their bytes.
_TOKENS_FACTOR = 20
#: Most bytes in one value of the file.
_MOST_BYTES = (1 << 31) - 1


class _Piece(NamedTuple):
    """Texts with the ids or addresses of their rows."""

    texts: pa.Array
    rows: _Rows


def _write(work: Training) -> bytes:
    return _extend([], work)


def _extend(old: Sequence[OldSegment], work: Training) -> bytes:
    """Write an index with the content of old ones."""
    size = min(_PIECE_BYTES, max(work.memory_limit // (4 * _TOKENS_FACTOR), _LEAST_BYTES))
    with ExitStack() as files:
        gathering = TokenGathering(work.memory_limit // 2, files)
        pieces = _pieces(work.entries, work.kind, size)
        for found in stream(_token_sets, pieces, ahead=cpu_count(), join=True):
            for part in found:
                gathering.add(part)
        sets = gathering.finish([_covered_sets(each) for each in old])
        work.target.write(POSTINGS, Schema.from_arrow(SCHEMA), WRITTEN_VERSION, _batches(sets))
    return b""


def _token_sets(piece: _Piece) -> list[TokenSets]:
    texts, rows = piece
    if not (rows[1:] > rows[:-1]).all():
        order = np.argsort(rows, kind="stable")
        texts, rows = texts.take(pa.array(order)), rows[order]
    return list(sets_of_texts(texts, rows))


def _pieces(entries: Iterable[pa.RecordBatch], kind: pa.DataType, size: int) -> Iterator[_Piece]:
    """Yield the texts in pieces with a limited number of rows and bytes; small batches are joined."""
    held: list[_Piece] = []
    count = filled = 0
    for batch in entries:
        for piece in _cut(batch, size):
            if held and (count + len(piece.rows) > _PIECE_ROWS or filled + piece.texts.nbytes > size):
                yield _joined(held, kind)
                held, count, filled = [], 0, 0
            held.append(piece)
            count += len(piece.rows)
            filled += piece.texts.nbytes
    if held:
        yield _joined(held, kind)


def _joined(held: Sequence[_Piece], kind: pa.DataType) -> _Piece:
    return _Piece(concat_arrays([piece.texts for piece in held], kind), np.concatenate([piece.rows for piece in held]))


def _cut(batch: pa.RecordBatch, size: int) -> Iterator[_Piece]:
    texts, rows = batch.column(0), batch.column(1).to_numpy()
    if texts.nbytes <= size and len(rows) <= _PIECE_ROWS:
        yield _Piece(texts, rows)
        return
    ends = np.cumsum(pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False), dtype=np.int64)
    start = 0
    while start < len(rows):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + size, side="right"))
        stop = min(max(stop, start + 1), start + _PIECE_ROWS)
        yield _Piece(texts.slice(start, stop - start), rows[start:stop])
        start = stop


def _batches(parts: Iterable[TokenSets]) -> Iterator[pa.RecordBatch]:
    for tokens, sets in parts:
        sizes = np.diff(bounds_of_sets(sets))
        if int(sizes.max(initial=0)) > _MOST_BYTES:
            raise UnsupportedError(f"a token of an NGRAM index is in too many rows: {int(sizes.max()):,} bytes of them")
        first = 0
        while first < len(tokens):  # offsets of binary columns have 32 bits
            count = max(int(np.searchsorted(np.cumsum(sizes[first:]), _MOST_BYTES, side="right")), 1)
            some = slice(first, first + count)
            columns = [pa.array(tokens[some]), sets[some].cast(pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
            first += count


def _covered_sets(old: OldSegment) -> Iterator[TokenSets]:
    """Yield the tokens of an old segment with those of their rows that it still covers."""
    table = open_postings(old.folder)
    before = -1
    for batch in table.batches([TOKENS, ROWS]):
        tokens = tokens_in(table, batch.column(0))
        if len(tokens) and (int(tokens[0]) <= before or (tokens[1:] <= tokens[:-1]).any()):
            raise table.corrupt("has tokens that are not ascending")
        before = int(tokens[-1]) if len(tokens) else before
        known = KnownSets(batch.column(1).cast(pa.large_binary()), TREEMAPS, table.where)
        if all(old.is_covered(rows).all() for _, rows in known.portions()):
            yield TokenSets(tokens, known.sets)
        else:
            yield united([_kept(tokens[owners], rows, old.is_covered(rows)) for owners, rows in known.portions()])


def _kept(tokens: NDArray[np.uint32], rows: _Rows, covered: NDArray[np.bool_]) -> TokenSets:
    tokens, rows = tokens[covered], rows[covered]
    last = np.flatnonzero(np.append(tokens[1:] != tokens[:-1], True)[: len(tokens)])
    return TokenSets(tokens[last], encode_groups(rows, last + 1, TREEMAPS))


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


TRAINER: Final = Trainer(
    "NGRAM", "/lance.table.NGramIndexDetails", _is_text, "a string or large string", _write, extend=_extend
)
