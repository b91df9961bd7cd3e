"""Index from stable row ids to the addresses of their rows.

Every fragment lists the ids of its rows, including those of deleted rows. A row that was moved is listed by several
fragments, but is live in at most one. The index stores the lists as *stretches* of ids at consecutive addresses. A
stretch is either a range of consecutive ids, or a range with gaps and a bitmap of the ids in it. Stretches are arranged
in layers. The stretches of a layer never overlap, so that an id is found by a binary search and by counting bits
(`table.lineage.rank`).

Segments of many ids are placed from the largest to the smallest, each into the first of a few layers that has room. The
runs of all other segments, mostly of fragments made by updates, have layers of their own: one for each row that has the
same id, up to a few. The rest is reduced to its live rows. Those never overlap and form one more layer.

For example, 100 fragments of a million fresh rows are 100 stretches. Rows left over by compaction need about 1.5 bits
per number, and rows in no order need 20 bytes each. Deleted rows are removed only where necessary, because a look-up
checks whether the rows it found are live. Therefore, deletions leave an index unchanged, and appended fragments only
add to it. An index without some deleted rows must not serve a version in which they are live (`RowIdIndex.trimmed`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence, Set
from functools import reduce
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.lineage.id_pieces import IdPieces, IdRuns, Whole
from lance_dataset.table.lineage.plain_ids import PlainIds
from lance_dataset.table.lineage.rank import RankedBits
from lance_dataset.table.lineage.segments import Bitmap, Range, Runs, Values
from lance_dataset.table.row_addresses import addresses_in, first_addresses, fragments_of

__all__ = ["RowIdIndex"]

#: Maximum number of layers of segments, and of layers of runs, whose stretches may include deleted rows.
_MAX_LAYERS = 4
#: Exclusive limit on the span of a stretch.
_MAX_SPAN = 1 << 32
#: Bytes of a stretch, and bytes of its bitmap per number.
_STRETCH_BYTES = 20
_NUMBER_BYTES = 3 / 16

Addresses: TypeAlias = NDArray[np.uint64]
#: First ids, spans and addresses of stretches, and the bits if it is a stretch with gaps.
_Stretches: TypeAlias = tuple[NDArray[np.uint64], NDArray[np.uint64], Addresses, RankedBits | None]
#: Returns a mask of the addresses (ascending) whose rows are not deleted.
LiveTest: TypeAlias = Callable[[Addresses], NDArray[np.bool_]]
#: Reads the offsets of the deleted rows of a fragment, ascending.
Deletions: TypeAlias = Callable[[int], NDArray[np.int64]]


class RowIdIndex:
    """Index that finds rows by id.

    Attributes
    ----------
    layers
        Layers of stretches. Each layer contains an id at most once.
    trimmed
        Ids of the fragments whose deleted rows are left out. The index cannot find such rows if they become live again.
    """

    def __init__(self, layers: Sequence[_Layer], trimmed: Set[int] = frozenset()) -> None:
        self.layers = tuple(layers)
        self.trimmed = trimmed

    @classmethod
    def build(cls, pieces: IdPieces, deletions: Deletions, plain: PlainIds | None = None) -> RowIdIndex:
        """Index the rows of a version.

        Parameters
        ----------
        pieces
            Row ids of the fragments.
        deletions
            Returns the deleted rows of a fragment.
        plain
            Further fragments, no two of which have a common id.

        Raises
        ------
        CorruptFileError
            A fragment repeats an id, or an id was found in several live rows.
        """
        base = None if plain is None or not len(plain) else _plain_layer(plain)
        placed = _Placement(_MAX_LAYERS if base is None else _MAX_LAYERS - 1)
        for part in sorted(pieces.wholes, key=lambda part: len(part.segment), reverse=True):
            placed.add(part)
        layers = [_layer([part for _, _, part in spans]) for spans in placed.layers]
        *lanes, left = _checked(pieces.runs.ascending()).lanes(_MAX_LAYERS)
        rest = IdRuns.joined([left, *(IdRuns.of(part.segment, part.address) for part in placed.rest)])
        offsets = {each: deletions(each) for each in np.unique(fragments_of(rest.addresses)).tolist()}
        exact = _exact_layer(rest, [addresses_in(each, rows) for each, rows in offsets.items()])
        trimmed = {fragment_id for fragment_id, rows in offsets.items() if len(rows)}
        found = (exact, *map(_run_layer, lanes), base, *layers)
        return cls([layer for layer in found if layer is not None], trimmed)

    def extended(self, pieces: IdPieces, plain: PlainIds | None = None) -> RowIdIndex | None:
        """Return the index with more fragments, or None if some of their ids are not greater than those in it.

        The parameters are those of `build`. The ids of `pieces` must lie below or above those of `plain`.
        """
        runs, parts = pieces.runs.ascending(), sorted(pieces.wholes, key=lambda part: part.segment.bounds)
        bounds = [part.segment.bounds for part in parts]
        if (runs.first[1:] <= runs.last[:-1]).any() or any(low <= before for (_, before), (low, _) in pairwise(bounds)):
            return None
        found = [
            None if plain is None or not len(plain) else _plain_layer(plain),
            _run_layer(runs),
            _layer(parts) if parts else None,
        ]
        added = sorted((layer for layer in found if layer is not None), key=lambda layer: int(layer.first[0]))
        if not added:
            return self
        highest = max((layer.highest for layer in self.layers), default=-1)
        for layer in added:
            if int(layer.first[0]) <= highest:
                return None
            highest = layer.highest
        last = reduce(_Layer.followed_by, [*self.layers[-1:], *added])
        return RowIdIndex([*self.layers[:-1], last], self.trimmed)

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        return sum(layer.nbytes for layer in self.layers)

    def find(self, ids: NDArray[np.uint64], live: LiveTest) -> tuple[Addresses, NDArray[np.bool_]]:
        """Look up ids.

        Parameters
        ----------
        ids
            Ids in any order. Repeats are allowed.
        live
            Returns which rows are not deleted.

        Returns
        -------
        addresses : uint64[n]
            Addresses of the rows.
        found : bool[n]
            True if a live row has the id. Otherwise its address is meaningless.
        """
        order = np.argsort(ids) if len(ids) > 1 else None
        wanted = ids if order is None else ids[order]
        addresses, found = np.zeros(len(ids), np.uint64), np.zeros(len(ids), bool)
        left = np.arange(len(ids))
        for layer in self.layers:
            at, hits = layer.find(wanted[left])
            hits[hits] = _ask(live, at[hits])
            addresses[left[hits]], found[left[hits]] = at[hits], True
            left = left[~hits]
            if not len(left):
                break
        if order is None:
            return addresses, found
        back = np.empty(len(ids), np.int64)
        back[order] = np.arange(len(ids))
        return addresses[back], found[back]

    def candidates(self, ids: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the number of fragments that list each id, deleted or not, as far as they are in the index."""
        counts = np.zeros(len(ids), np.int64)
        for layer in self.layers:
            counts += layer.find(ids)[1]
        return counts


def _ask(live: LiveTest, addresses: Addresses) -> NDArray[np.bool_]:
    """Return a mask of the addresses, in any order, whose rows are live."""
    if not len(addresses):
        return np.empty(0, bool)
    order = np.argsort(addresses, kind="stable")
    answers = np.empty(len(addresses), bool)
    answers[order] = live(addresses[order])
    return answers


# -- layers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Layer:
    """Stretches ordered by id, without overlaps.

    Attributes
    ----------
    first
        uint64[n]: lowest id, ascending.
    spans
        uint32[n]: highest id minus lowest id.
    addresses
        uint64[n]: address of the row with the lowest id.
    places
        int64[n]: position of the first bit in `bits`, -1 for stretches without gaps. None if no stretch has gaps.
    bits
        One bit for each number of the stretches with gaps, set if a row has that id.
    """

    first: NDArray[np.uint64]
    spans: NDArray[np.uint32]
    addresses: NDArray[np.uint64]
    places: NDArray[np.int64] | None
    bits: RankedBits

    @property
    def highest(self) -> int:
        """Highest id."""
        return int(self.first[-1]) + int(self.spans[-1])

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        places = 0 if self.places is None else self.places.nbytes
        return self.first.nbytes + self.spans.nbytes + self.addresses.nbytes + places + self.bits.nbytes

    def find(self, ids: NDArray[np.uint64]) -> tuple[Addresses, NDArray[np.bool_]]:
        """Return the addresses of ids, and a mask of the ids that were found."""
        at = np.searchsorted(self.first, ids, side="right") - 1
        hits = at >= 0
        at[~hits] = 0
        shifts = ids - self.first[at]
        hits &= shifts <= self.spans[at]
        addresses = self.addresses[at] + shifts
        if self.places is None:
            return addresses, hits
        mapped = np.flatnonzero(hits & (self.places[at] >= 0))
        starts = self.places[at[mapped]]
        positions = starts + shifts[mapped].astype(np.int64)
        hits[mapped] = self.bits.test(positions)
        before = self.bits.rank(positions) - self.bits.rank(starts)
        addresses[mapped] = self.addresses[at[mapped]] + before.astype(np.uint64)
        return addresses, hits

    def followed_by(self, other: _Layer) -> _Layer:
        """Return a layer that joins both. All ids in `other` must be greater."""
        places = None
        if self.places is not None or other.places is not None:
            mine, others = (
                np.full(len(layer.first), -1, np.int64) if layer.places is None else layer.places
                for layer in (self, other)
            )
            places = np.concatenate([mine, np.where(others < 0, others, others + len(self.bits))])
        return _Layer(
            np.concatenate([self.first, other.first]),
            np.concatenate([self.spans, other.spans]),
            np.concatenate([self.addresses, other.addresses]),
            places,
            RankedBits.joined([self.bits, other.bits]),
        )


def _plain_layer(plain: PlainIds) -> _Layer:
    """Return a layer of fragments without common ids."""
    order = np.argsort(plain.first)
    first, last = plain.first[order], plain.last[order]
    addresses = first_addresses(plain.fragment_ids[order])
    return _Layer(first, (last - first).astype(np.uint32), addresses, None, RankedBits.joined([]))


def _run_layer(runs: IdRuns) -> _Layer | None:
    """Return a layer of ascending runs that do not overlap, None without any."""
    if not len(runs):
        return None
    return _Layer(runs.first, (runs.lengths - 1).astype(np.uint32), runs.addresses, None, RankedBits.joined([]))


def _layer(parts: Iterable[Whole]) -> _Layer:
    """Return a layer of parts in ascending order of ids, whose bounds do not overlap."""
    pieces = [_stretches(part) for part in parts]
    bits = [piece[3] for piece in pieces if piece[3] is not None]
    places = None
    if bits:
        starts = iter(np.cumsum([0, *(len(each) for each in bits)]).tolist())
        places = np.concatenate(
            [np.full(len(piece[0]), -1 if piece[3] is None else next(starts), np.int64) for piece in pieces]
        )
    first, spans, addresses = (np.concatenate([piece[member] for piece in pieces]) for member in range(3))
    return _Layer(first, spans.astype(np.uint32), addresses, places, RankedBits.joined(bits))


def _stretches(part: Whole) -> _Stretches:
    """Return one stretch with a bitmap for a part, or one stretch for each of its runs."""
    segment = part.segment
    if isinstance(segment, Range):
        low, high = segment.bounds
        return np.array([low], np.uint64), np.array([high - low], np.uint64), np.array([part.address], np.uint64), None
    if isinstance(segment, Bitmap):
        return _mapped(part, segment.start, segment.stop - 1, segment.bits)
    runs = segment.runs()
    offsets = runs.starts[:-1]
    if runs.is_ascending:
        low, high = runs.bounds
        if high - low < _MAX_SPAN and _NUMBER_BYTES * (high - low) < _STRETCH_BYTES * len(offsets):
            return _mapped(part, low, high, runs.to_bits())
    first, spans = runs.first, runs.lengths - 1
    if not runs.is_ascending:
        order = np.argsort(first)
        first, spans, offsets = first[order], spans[order], offsets[order]
        twice = np.flatnonzero(first[1:] - first[:-1] <= spans[:-1].astype(np.uint64))
        if len(twice):
            raise CorruptFileError(f"{part.where}: the row id {int(first[twice[0] + 1])} occurs twice")
    return first, spans.astype(np.uint64), part.base + offsets.astype(np.uint64), None


def _mapped(part: Whole, low: int, high: int, bits: NDArray[np.uint8]) -> _Stretches:
    first, span = np.array([low], np.uint64), np.array([high - low], np.uint64)
    return first, span, np.array([part.address], np.uint64), RankedBits.of(bits)


# -- distribution over layers -------------------------------------------------------------------------------------


def _checked(runs: IdRuns) -> IdRuns:
    """Return ascending runs. Raise CorruptFileError if two runs next to each other repeat an id of a fragment."""
    owners = fragments_of(runs.addresses)
    twice = np.flatnonzero((runs.first[1:] <= runs.last[:-1]) & (owners[1:] == owners[:-1]))
    if len(twice):
        raise CorruptFileError(
            f"fragment {int(owners[twice[0]])}: the row id {int(runs.first[twice[0] + 1])} occurs twice"
        )
    return runs


class _Placement:
    """Distributes parts over layers.

    Parameters
    ----------
    max_layers
        Maximum number of layers.

    Attributes
    ----------
    layers
        For each layer, its parts with their bounds, ascending.
    rest
        Parts that fit into no layer.
    """

    def __init__(self, max_layers: int) -> None:
        self.layers: list[list[tuple[int, int, Whole]]] = []
        self.rest: list[Whole] = []
        self._max_layers = max_layers

    def add(self, part: Whole) -> None:
        low, high = part.segment.bounds
        if high - low >= _MAX_SPAN and not isinstance(part.segment, Values | Runs):
            self.rest.append(part)
            return
        for spans in self.layers:
            at = bisect_left(spans, low, key=lambda span: span[1])
            if at == len(spans) or spans[at][0] > high:
                spans.insert(at, (low, high, part))
                return
        if len(self.layers) < self._max_layers:
            self.layers.append([(low, high, part)])
        else:
            self.rest.append(part)


def _exact_layer(runs: IdRuns, dead: Sequence[Addresses]) -> _Layer | None:
    """Return a layer of the live rows of runs, given the addresses of deleted rows of each fragment, ascending."""
    live = runs.without(np.concatenate(dead)).ascending() if dead else runs
    twice = np.flatnonzero(live.first[1:] <= live.last[:-1])
    if len(twice):
        number = int(live.first[twice[0] + 1])
        raise CorruptFileError(f"the row id {number} belongs to several rows that are not deleted")
    return _run_layer(live)
