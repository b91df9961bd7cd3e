"""Which target rows a source updates or deletes, and which of its rows are new: one scan of the keys of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.merge.clauses import MergeClauses, WhenMatched
from lance_dataset.changes.merge.conditions import PairCondition
from lance_dataset.changes.merge.key_index import KeyIndex
from lance_dataset.changes.merge.partitions import INDEX_BUDGET, PartitionedKeys, partitions_needed
from lance_dataset.changes.merge.sizes import bounded_rows, source_row_bytes
from lance_dataset.changes.merge.source import Source
from lance_dataset.errors import InvalidInputError
from lance_dataset.query.engine import Scan
from lance_dataset.query.expr import Filter
from lance_dataset.query.join import join_arrays
from lance_dataset.query.metrics import ScanMetrics
from lance_dataset.query.projection import located_projection, project
from lance_dataset.query.request import ScanRequest
from lance_dataset.query.scan import scan_batches, strategy
from lance_dataset.query.selection import Selection

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["Matches", "Matching", "find_matches", "matching_scan"]

#: Target rows that are looked up together: few enough to stay in the caches, and at least so many parts of a table for
#: each thread.
_WINDOW_ROWS = 1 << 18
_LEAST_ROWS = 1 << 14
_PARTS = 2

_Addresses = NDArray[np.uint64]
_Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Matches:
    """What a merge does to which rows.

    Attributes
    ----------
    addresses
        uint64: target rows that are updated or deleted because of a source row, each once, in scan order.
    source_rows
        int64: the source row of each.
    rest
        uint64: target rows that are deleted because they have none, in scan order.
    is_new
        bool: whether each source row is inserted; None where no row is.
    """

    addresses: _Addresses
    source_rows: _Rows
    rest: _Addresses
    is_new: NDArray[np.bool_] | None

    @property
    def num_new(self) -> int:
        """Number of inserted rows."""
        return 0 if self.is_new is None else int(np.count_nonzero(self.is_new))


@dataclass(frozen=True, eq=False)
class Matching:
    """A search for matches.

    Attributes
    ----------
    clauses
        What the merge does.
    source
        Its source.
    keys
        The key columns of the source, as the types of the table.
    condition, rest_filter
        The conditions of the clauses, compiled.
    """

    clauses: MergeClauses
    source: Source
    keys: Sequence[pa.ChunkedArray]
    condition: PairCondition | None = None
    rest_filter: Filter | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are read of all rows: keys first, then those of conditions."""
        names = list(self.clauses.on)
        names += () if self.condition is None else self.condition.target_columns
        names += () if self.rest_filter is None else self.rest_filter.columns
        return tuple(dict.fromkeys(names))


def matching_scan(dataset: LanceDataset, matching: Matching, metrics: ScanMetrics | None = None) -> ScanRequest:
    """What is read of every live row of a version."""
    schema = dataset._scanned_schema
    return ScanRequest(schema, project(schema, matching.columns), use_statistics=False, metrics=metrics)


def find_matches(dataset: LanceDataset, matching: Matching, metrics: ScanMetrics | None = None) -> Matches:
    """Look up every live row of a version in the keys of a source.

    Windows of the table are read and looked up on several threads. What stays in memory is an address and a row number
    per match, and a bit per distinct key of the source.

    Raises
    ------
    InvalidInputError
        Several source rows for one target row, or any match where a match is to fail.
    pyarrow.ArrowInvalid
        A condition failed.
    """
    partitions = partitions_needed(matching.keys, INDEX_BUDGET)
    if partitions > 1:
        return _matches_in_partitions(dataset, matching, partitions, metrics)
    request = matching_scan(dataset, matching, metrics)
    scan = _scan(dataset, request)
    look_up = LookUp(matching, KeyIndex(matching.keys))

    def work(selection: Selection) -> _Found:
        if not selection.num_rows:
            return _NOTHING
        return look_up.find(_rows(scan, selection, request.projection.schema), partial(_addresses, selection))

    found = list(scan.each(work))
    return Matches(
        addresses=_together([window.addresses for window in found], np.uint64),
        source_rows=_together([window.source_rows for window in found], np.int64),
        rest=_together([window.rest for window in found], np.uint64),
        is_new=look_up.is_new() if matching.clauses.inserts else None,
    )


def _matches_in_partitions(
    dataset: LanceDataset, matching: Matching, partitions: int, metrics: ScanMetrics | None
) -> Matches:
    """The same where the index of all keys would be too large: one part of the keys after the other."""
    request = matching_scan(dataset, matching, metrics)
    columns = located_projection(request.projection)
    found: list[_Found] = []
    is_new = np.zeros(matching.source.num_rows, bool) if matching.clauses.inserts else None
    targets = scan_batches(dataset._reader, replace(request, projection=columns, batch_size=_WINDOW_ROWS))
    with PartitionedKeys(matching.keys, partitions) as keys:
        for partition in keys.join(targets, columns.schema):
            look_up = LookUp(matching, partition.index, partition.rows)
            found.extend(look_up.find(batch, partial(_taken, batch.columns[-1])) for batch in partition.targets)
            if is_new is not None:
                is_new[partition.rows] = look_up.is_new()
    addresses = _together([part.addresses for part in found], np.uint64)
    order = np.argsort(addresses)
    return Matches(
        addresses=addresses[order],
        source_rows=_together([part.source_rows for part in found], np.int64)[order],
        rest=np.sort(_together([part.rest for part in found], np.uint64)),
        is_new=is_new,
    )


def _scan(dataset: LanceDataset, request: ScanRequest) -> Scan:
    reader = dataset._reader
    plan = strategy(reader, request)
    part = max(reader.num_rows // (_PARTS * plan.threads), _LEAST_ROWS)
    rows = min(plan.window_rows, part, _WINDOW_ROWS)
    return Scan(reader, request, replace(plan, window_rows=rows, first_rows=min(plan.first_rows, rows)))


def _rows(scan: Scan, selection: Selection, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a window, each as one array."""
    arrays = [
        chunks[0] if len(chunks) == 1 else join_arrays(chunks, field.type, field.name)
        for chunks, field in zip(scan.read(selection).columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _addresses(selection: Selection, places: _Rows) -> _Addresses:
    """Addresses of the rows at some places of a selection, which ascend."""
    if selection.places is not None:
        places = selection.places[places]
    window = selection.window
    cuts = np.searchsorted(places, window.starts).tolist()
    parts = [
        part.fragment.addresses(part.rows_at(places[low:high] - start))
        for part, start, (low, high) in zip(window.slices, window.starts.tolist(), pairwise(cuts), strict=False)
        if low < high
    ]
    return parts[0] if len(parts) == 1 else _together(parts, np.uint64)


def _taken(addresses: pa.Array, places: _Rows) -> _Addresses:
    return np.asarray(addresses.to_numpy()[places])


def _together(parts: Sequence[NDArray], dtype: type[np.generic]) -> NDArray:
    return np.concatenate([np.empty(0, dtype), *parts])


# -- looking up --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Found:
    """Matches among some target rows; attributes as those of `Matches`."""

    addresses: _Addresses
    source_rows: _Rows
    rest: _Addresses


_NO_ROWS = np.empty(0, np.int64)
_NOTHING = _Found(_NO_ROWS.view(np.uint64), _NO_ROWS, _NO_ROWS.view(np.uint64))


class LookUp:
    """Looks up target rows among the keys of a source; several threads may do so at once.

    Parameters
    ----------
    matching
        The search.
    index
        The keys, or some of them.
    rows
        int64: which rows of the source those of the index are; None for all of them.
    """

    def __init__(self, matching: Matching, index: KeyIndex, rows: _Rows | None = None) -> None:
        self._matching, self._clauses = matching, matching.clauses
        self._index, self._members = index, _Members(index, rows)
        self._is_found = np.zeros(index.num_groups if matching.clauses.inserts else 0, bool)
        self._pair_rows = bounded_rows(source_row_bytes(matching.source))

    def is_new(self) -> NDArray[np.bool_]:
        """Whether each source row has a key that was not found; a key with a null part equals none."""
        groups = self._index.groups
        if not len(self._is_found):
            return groups < 0
        is_new = ~self._is_found[groups]
        is_new[groups < 0] = True
        return is_new

    def find(self, rows: pa.RecordBatch, addresses: Callable[[_Rows], _Addresses]) -> _Found:
        """The matches among target rows.

        Parameters
        ----------
        rows
            Keys and columns of conditions, as `Matching.columns` says.
        addresses
            Returns the addresses of the rows at some places.
        """
        clauses = self._clauses
        places, groups = self._index.matches(rows.columns[: len(clauses.on)])
        if clauses.matched is WhenMatched.FAIL and len(places):
            key = _key_text(rows, clauses.on, int(places[0]))
            raise InvalidInputError(f"Merge insert failed: found matching row with key values: {key}")
        if clauses.inserts:
            self._is_found[groups] = True  # of several threads all write the same
        matched = source_rows = rest = _NO_ROWS
        if clauses.matched in (WhenMatched.UPDATE, WhenMatched.DELETE):
            matched, source_rows = self._pairs(rows, places, groups)
        if clauses.deletes_rest:
            is_rest = np.ones(rows.num_rows, bool)
            is_rest[places] = False
            rest = self._rest(rows, np.flatnonzero(is_rest))
        return _Found(addresses(matched), source_rows, addresses(rest))

    def _pairs(self, rows: pa.RecordBatch, places: _Rows, groups: _Rows) -> tuple[_Rows, _Rows]:
        """Places of target rows to change, each once, and the source row of each."""
        members, condition = self._members, self._matching.condition
        if condition is None:
            several = members.sizes[groups] > 1 if members.has_several else np.zeros(0, bool)
            if several.any():
                raise self._ambiguous(rows, int(places[np.argmax(several)]))
            return places, members.first_rows(groups)
        kept_places, kept_rows = [_NO_ROWS], [_NO_ROWS]
        last = _NO_ROWS
        for matched, source_rows in members.pairs(places, groups, self._pair_rows):
            keep = self._holds(condition, rows, matched, source_rows)
            # at once: of keys that both sides have many times there are too many pairs to go through them all
            seen = np.concatenate([last, matched[keep]])
            again = np.flatnonzero(seen[1:] == seen[:-1])
            if len(again):
                raise self._ambiguous(rows, int(seen[again[0]]))
            last = seen[-1:]
            kept_places.append(matched[keep])
            kept_rows.append(source_rows[keep])
        return np.concatenate(kept_places), np.concatenate(kept_rows)

    def _holds(self, condition: PairCondition, rows: pa.RecordBatch, places: _Rows, source_rows: _Rows) -> _Rows:
        """Which pairs a condition is true of."""
        source = target = None
        if condition.source_columns:
            source = self._matching.source.take(source_rows, list(condition.source_columns))
        if condition.target_columns:
            target = rows.select(list(condition.target_columns)).take(pa.array(places))
        return np.flatnonzero(condition.holds(source, target, len(places)).to_numpy(zero_copy_only=False))

    def _rest(self, rows: pa.RecordBatch, places: _Rows) -> _Rows:
        """Places of the target rows without a source row that are deleted."""
        condition = self._matching.rest_filter
        if condition is None or not len(places):
            return places
        mask = condition.mask(rows.take(pa.array(places)))
        return places[np.flatnonzero(mask.to_numpy(zero_copy_only=False))]

    def _ambiguous(self, rows: pa.RecordBatch, place: int) -> InvalidInputError:
        key = _key_text(rows, self._clauses.on, place)
        return InvalidInputError(
            f"Ambiguous merge inserts are prohibited: multiple source rows match the same target row on ({key}). "
            "Please ensure each target row is matched by at most one source row"
        )


def _key_text(rows: pa.RecordBatch, keys: Sequence[str], place: int) -> str:
    """The key of a row, for messages."""
    return ", ".join(f"{name} = {rows.column(name)[place].as_py()}" for name in keys)


class _Members:
    """Which source rows have a key.

    Parameters
    ----------
    index
        The keys.
    rows
        Which rows of the source those of the index are; None for all of them.

    Attributes
    ----------
    sizes
        Rows of each group of equal keys.
    has_several
        Whether any group has more than one.
    """

    def __init__(self, index: KeyIndex, rows: _Rows | None) -> None:
        self._first, self.sizes, self._rows = index.first_rows, index.group_sizes, rows
        self.has_several = bool(len(self.sizes) and self.sizes.max() > 1)
        if self.has_several:
            order = np.argsort(index.groups, kind="stable")
            self._members = order[len(order) - int(self.sizes.sum()) :]
            self._starts = np.cumsum(self.sizes) - self.sizes

    def first_rows(self, groups: _Rows) -> _Rows:
        """The first source row of each of some groups."""
        return self._numbered(self._first[groups])

    def pairs(self, places: _Rows, groups: _Rows, most: int) -> Iterator[tuple[_Rows, _Rows]]:
        """Pairs of a place and a source row of its group, place by place, at most so many at a time."""
        if not self.has_several:
            for start in range(0, len(places), most):
                part = slice(start, start + most)
                yield places[part], self.first_rows(groups[part])
            return
        ends = np.cumsum(self.sizes[groups])
        total = int(ends[-1]) if len(ends) else 0
        for start in range(0, total, most):
            numbers = np.arange(start, min(start + most, total))
            owners = np.searchsorted(ends, numbers, side="right")
            members = numbers - (ends[owners] - self.sizes[groups[owners]])
            yield places[owners], self._numbered(self._members[self._starts[groups[owners]] + members])

    def _numbered(self, rows: _Rows) -> _Rows:
        """Rows of the index as rows of the source."""
        return rows if self._rows is None else self._rows[rows]
