"""Search in n-gram indices: texts that have all tokens of a text are candidates for containing it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder
from lance_dataset.index.scalar.conditions import (
    Answer,
    AnyText,
    CaselessTextCondition,
    Condition,
    Text,
    TextCondition,
    TextNeed,
    nothing,
)
from lance_dataset.index.scalar.ngram import ROWS, TOKENS, open_postings, tokens_in
from lance_dataset.index.scalar.ngram_tokens import tokens_of
from lance_dataset.table.known_sets import KnownSets
from lance_dataset.table.row_sets import TREEMAPS

__all__ = ["NgramSearch"]

_Rows = NDArray[np.uint64]

#: Tokens of one text that are looked up: more hardly exclude more rows.
_MOST_TOKENS = 24
#: Answers that are kept, and rows of those.
_MOST_ANSWERS = 16
_MOST_ROWS = 1 << 20
#: Nanoseconds of reading the rows of a token, and of each byte of the file when it is opened.
_TOKEN_COST = 2e4
_BYTE_COST = 0.01


@dataclass(frozen=True)
class _Tokens:
    """Need of a text for all of some tokens.

    Attributes
    ----------
    tokens
        The tokens, ascending.
    """

    tokens: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of tokens."""
        return len(self.tokens)


@dataclass(frozen=True)
class _Needs:
    """Needs of which a text must satisfy all, or one.

    Attributes
    ----------
    parts
        The needs.
    every
        True for all of them.
    """

    parts: tuple[_Need, ...]
    every: bool

    @property
    def count(self) -> int:
        """Number of tokens."""
        return sum(part.count for part in self.parts)


_Need: TypeAlias = "_Tokens | _Needs"


@lru_cache(maxsize=256)
def _need(wanted: TextNeed) -> _Need | None:
    """Return which tokens texts must have; None if they need none."""
    if isinstance(wanted, Text):
        tokens = tokens_of(wanted.content)
        step = -(-len(tokens) // _MOST_TOKENS)
        return _Tokens(tuple(tokens[::step])) if tokens else None
    parts = [_need(part) for part in wanted.parts]
    known = [part for part in parts if part is not None]
    if isinstance(wanted, AnyText):
        return _Needs(tuple(known), False) if len(known) == len(parts) else None
    return _joined(known)


def _joined(parts: Sequence[_Need]) -> _Need | None:
    """Return the need that all parts are satisfied."""
    tokens = {token for part in parts if isinstance(part, _Tokens) for token in part.tokens}
    joined: list[_Need] = [_Tokens(tuple(sorted(tokens)))] if tokens else []
    joined += [part for part in parts if isinstance(part, _Needs)]
    if len(joined) < 2:
        return joined[0] if joined else None
    return _Needs(tuple(joined), True)


def _of(condition: Condition) -> _Need | None:
    return _need(condition.need) if isinstance(condition, TextCondition | CaselessTextCondition) else None


class NgramSearch:
    """An open segment of an n-gram index; see `BTreeSearch` for its methods."""

    byte_cost: ClassVar[float] = _BYTE_COST

    def __init__(self, folder: IndexFolder, rows_in: Callable[[int], int]) -> None:
        self._table = open_postings(folder)
        tokens = tokens_in(self._table, self._table.read(columns=[TOKENS]).column(0))
        self._places = np.argsort(tokens, kind="stable")
        self._tokens = tokens[self._places]
        if (self._tokens[1:] == self._tokens[:-1]).any():
            raise self._table.corrupt("has a token several times")
        self._answers: OrderedDict[Condition, _Rows] = OrderedDict()
        self.kind: pa.DataType | None = None
        self.nbytes = self._tokens.nbytes + self._places.nbytes + 8 * _MOST_ROWS // 4

    @staticmethod
    def answers(condition: Condition) -> Answer:
        """Return how exactly such an index answers a condition."""
        return Answer.NONE if _of(condition) is None else Answer.CANDIDATES

    def estimate(self, condition: Condition) -> int:
        """Return the number of rows. Nothing less than the search tells it, so the answer is kept for that."""
        return len(self.search(condition))

    def cost(self, condition: Condition) -> float:
        """Return the nanoseconds of reading the rows of tokens."""
        need = _of(condition)
        return 0.0 if need is None else _TOKEN_COST * need.count

    def search(self, condition: Condition) -> _Rows:
        """Return the ids of the rows whose texts have the tokens, ascending."""
        need = _of(condition)
        if need is None:
            return nothing()
        found = self._answers.get(condition)
        if found is None:
            found = self._rows(need)
            if len(found) <= _MOST_ROWS // _MOST_ANSWERS:
                self._keep(condition, found)
        return found

    def _keep(self, condition: Condition, rows: _Rows) -> None:
        answers = OrderedDict(self._answers)  # other threads may look answers up
        answers[condition] = rows
        while len(answers) > _MOST_ANSWERS:
            answers.popitem(last=False)
        self._answers = answers

    def _rows(self, need: _Need) -> _Rows:
        if isinstance(need, _Tokens):
            return self._rows_with(np.array(need.tokens, np.uint32))
        parts = sorted(map(self._rows, need.parts), key=len)
        if need.every:
            return reduce(lambda one, two: np.intersect1d(one, two, assume_unique=True), parts)
        return np.unique(np.concatenate(parts))

    def _rows_with(self, tokens: NDArray[np.uint32]) -> _Rows:
        """Return the rows whose texts have all of some tokens."""
        at = np.searchsorted(self._tokens, tokens)
        if not len(self._tokens) or (self._tokens[np.minimum(at, len(self._tokens) - 1)] != tokens).any():
            return nothing()
        sets = self._table.take(np.sort(self._places[at]), ROWS).cast(pa.large_binary())
        return KnownSets(sets, TREEMAPS, self._table.where).intersection()
