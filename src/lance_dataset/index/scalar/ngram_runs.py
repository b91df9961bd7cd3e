"""Sets of rows by token, gathered in any order of the tokens: in memory or, above a limit, in sorted runs on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import pyarrow as pa

from lance_dataset.index.scalar.ngram_tokens import TokenSets
from lance_dataset.read.spool import Spool
from lance_dataset.table.known_sets import KnownSets
from lance_dataset.table.row_sets import TREEMAPS, bounds_of_sets
from lancecodec.search import ngrams

__all__ = ["TokenGathering", "united"]

_SCHEMA = pa.schema([pa.field("tokens", pa.uint32()), pa.field("sets", pa.large_binary())])
#: Bytes of sets that are united together, unless one token has more.
_BLOCK_BYTES = 16 << 20
#: Memory that gathered sets take while they are united, as a multiple of their bytes.
_FACTOR = 2
#: Bytes of sets in a run: there must not be too many files.
_LEAST_BYTES = 4 << 20


class TokenGathering:
    """Gathers sets of rows by token.

    Parameters
    ----------
    memory_limit
        Maximum number of bytes to work with, approximately. Above it, sorted runs go to temporary files.
    files
        Closes these files.
    """

    def __init__(self, memory_limit: int, files: ExitStack) -> None:
        self._most = max(memory_limit // _FACTOR, _LEAST_BYTES)
        self._files = files
        self._held: list[TokenSets] = []
        self._held_bytes = 0
        self._runs: list[Spool] = []

    def add(self, part: TokenSets) -> None:
        """Add sets of any rows, with ascending tokens.

        Raises
        ------
        StorageError
            A temporary file cannot be written.
        """
        if not len(part.tokens):
            return
        size = part.sets.nbytes + part.tokens.nbytes
        if self._held and self._held_bytes + size > self._most:
            self._spill()
        self._held.append(part)
        self._held_bytes += size

    def _spill(self) -> None:
        run = self._files.enter_context(Spool(_SCHEMA, 0))
        for tokens, sets in _sorted(self._held):
            run.add(pa.RecordBatch.from_arrays([pa.array(tokens), sets], schema=_SCHEMA))
        run.seal()
        self._runs.append(run)
        self._held, self._held_bytes = [], 0

    def finish(self, others: Sequence[Iterator[TokenSets]] = ()) -> Iterator[TokenSets]:
        """Yield each token once, ascending, with all of its rows.

        Parameters
        ----------
        others
            More sets, each with ascending tokens.
        """
        streams = [_sorted(self._held), *(_read(run) for run in self._runs), *others]
        if len(streams) == 1:
            yield from streams[0]
        else:
            yield from _merged(streams)


def united(parts: Sequence[TokenSets]) -> TokenSets:
    """Return the union of sets for each token."""
    if len(parts) == 1:
        return parts[0]
    tokens = np.concatenate([np.empty(0, np.uint32), *(part.tokens for part in parts)])
    if not len(tokens):
        return TokenSets(tokens, pa.array([], pa.large_binary()))
    known = KnownSets(pa.concat_arrays([part.sets for part in parts]), TREEMAPS, "temporary sets of rows")
    order = np.argsort(tokens, kind="stable")
    ordered = tokens[order]
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(order) - 1)
    return TokenSets(ordered[last], known.union(order, last + 1))


def _read(run: Spool) -> Iterator[TokenSets]:
    for batch in run.batches():
        yield TokenSets(batch.column(0).to_numpy(), batch.column(1))


def _sorted(held: Sequence[TokenSets]) -> Iterator[TokenSets]:
    """Yield the union of sets for each token, ascending, a limited number of bytes at a time."""
    sizes = np.zeros(ngrams.FOLDED, np.int64)
    for tokens, sets in held:
        sizes[tokens] += np.diff(bounds_of_sets(sets))
    blocks = (np.cumsum(sizes) - sizes) // _BLOCK_BYTES
    borders = np.concatenate([[0], np.flatnonzero(np.diff(blocks)) + 1, [len(sizes)]])
    cuts = [np.searchsorted(tokens, borders).tolist() for tokens, _ in held]
    for number in range(len(borders) - 1):
        parts = [_slice(part, *cut[number : number + 2]) for part, cut in zip(held, cuts, strict=True)]
        parts = [part for part in parts if len(part.tokens)]
        if parts:
            yield united(parts)


def _slice(part: TokenSets, start: int, stop: int) -> TokenSets:
    return TokenSets(part.tokens[start:stop], part.sets.slice(start, stop - start))


class _Stream:
    """Sets that are read block by block.

    Attributes
    ----------
    block
        Sets that are read but not merged; None at the end.
    """

    def __init__(self, blocks: Iterator[TokenSets]) -> None:
        self._blocks = blocks
        self.block: TokenSets | None = None
        self._next()

    def _next(self) -> None:
        self.block = next((block for block in self._blocks if len(block.tokens)), None)

    def take(self, bound: int) -> TokenSets:
        """Return the sets of the block whose tokens are at most `bound`."""
        assert self.block is not None
        block, count = self.block, int(np.searchsorted(self.block.tokens, bound, side="right"))
        if count == len(block.tokens):
            self._next()
        else:
            self.block = _slice(block, count, len(block.tokens))
        return _slice(block, 0, count)


def _merged(sources: Sequence[Iterator[TokenSets]]) -> Iterator[TokenSets]:
    """Merge sets. In each step, the stream whose block ends first is merged to the end of that block."""
    streams = [_Stream(source) for source in sources]
    while left := [stream.block for stream in streams if stream.block is not None]:
        bound = min(int(block.tokens[-1]) for block in left)
        yield united([stream.take(bound) for stream in streams if stream.block is not None])
