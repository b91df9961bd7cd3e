"""Matching of source and target rows by one scan of the table's keys: rows to update, to delete and to insert."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.keys.key_index import KeyIndex
from lance_dataset.changes.keys.partitions import INDEX_BUDGET, PartitionedKeys, partitions_needed
from lance_dataset.changes.keys.source import Source, bounded_rows, source_row_bytes
from lance_dataset.changes.merge.clauses import MergeClauses, WhenMatched
from lance_dataset.changes.merge.conditions import PairCondition
from lance_dataset.errors import CorruptFileError, InvalidInputError
from lance_dataset.expr.compiled import Filter
from lance_dataset.memory import MemoryUse, share_of_memory
from lance_dataset.read.projection import located_projection, project
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.located import LocatedRows, map_located_rows
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.resolving import indices_for_scans
from lance_dataset.scan.scan import scan_batches

__all__ = ["Matches", "Matching", "find_matches", "matching_scan"]

#: Maximum number of target rows that are looked up together, so that they stay in the CPU caches.
_WINDOW_ROWS = 1 << 18
#: Bytes of keys of each side that are kept in memory when they are divided.
_KEPT_BYTES = 64 << 20

_Addresses = NDArray[np.uint64]
_Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Matches:
    """Rows that a merge changes.

    Attributes
    ----------
    addresses
        uint64: target rows that are updated or deleted because they match a source row, each once, in scan order.
    source_rows
        int64: the source row of each.
    rest
        uint64: target rows that are deleted because they do not match a source row, in scan order.
    is_new
        bool: True for source rows that are inserted; None if the merge does not insert rows.
    """

    addresses: _Addresses
    source_rows: _Rows
    rest: _Addresses
    is_new: NDArray[np.bool_] | None

    @property
    def num_new(self) -> int:
        """Number of inserted rows."""
        return 0 if self.is_new is None else int(np.count_nonzero(self.is_new))

    def of_first(self, rows: int) -> Matches:
        """Return the matches of the first source rows. The later rows are not inserted either."""
        first = self.source_rows < rows
        is_new = self.is_new
        if is_new is not None:
            is_new = is_new.copy()
            is_new[rows:] = False
        return replace(self, addresses=self.addresses[first], source_rows=self.source_rows[first], is_new=is_new)


@dataclass(frozen=True, eq=False)
class Matching:
    """Search for the matches of a merge.

    Attributes
    ----------
    clauses
        Clauses of the merge.
    source
        Source of the merge.
    keys
        Key columns of the source in the types of the table.
    condition, rest_filter
        Compiled conditions of the clauses.
    """

    clauses: MergeClauses
    source: Source
    keys: Sequence[pa.ChunkedArray]
    condition: PairCondition | None = None
    rest_filter: Filter | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are read for all rows: first the keys, then those of conditions."""
        names = list(self.clauses.on)
        names += () if self.condition is None else self.condition.target_columns
        names += () if self.rest_filter is None else self.rest_filter.columns
        return tuple(dict.fromkeys(names))


def matching_scan(snapshot: Snapshot, matching: Matching, metrics: ScanMetrics | None = None) -> ScanRequest:
    """Return the scan request that reads the rows of a snapshot that may match.

    These are all live rows, unless an index of a key column finds fewer faster.
    """
    schema = snapshot.scanned_schema
    request = ScanRequest(schema, project(schema, matching.columns), use_statistics=False, metrics=metrics)
    if not matching.clauses.use_index or matching.clauses.deletes_rest or not snapshot.manifest.index_section:
        return request
    # Imported here, so that `import lance_dataset` does not load what only tables with indices need.
    from lance_dataset.scan.indexed.keys import restricted_to_keys

    keys = dict(zip(matching.clauses.on, matching.keys, strict=True))
    return restricted_to_keys(snapshot.reader, replace(request, indices=indices_for_scans(snapshot)), keys)


def find_matches(snapshot: Snapshot, matching: Matching, metrics: ScanMetrics | None = None) -> Matches:
    """Look up every live row of a snapshot in the keys of a source.

    Windows of the table are read and looked up on several threads. Memory holds an address and a row number per match,
    and one byte per distinct key of the source.

    Raises
    ------
    InvalidInputError
        Several source rows match one target row, or a row matches although the clauses say that matches fail.
    pyarrow.ArrowInvalid
        A condition failed.
    """
    partitions = partitions_needed(matching.keys, share_of_memory(INDEX_BUDGET, MemoryUse.KEYS))
    if partitions > 1:
        return _matches_in_partitions(snapshot, matching, partitions, metrics)
    request = matching_scan(snapshot, matching, metrics)
    found = _scanned_matches(snapshot, matching, request)
    if request.used_indices:
        from lance_dataset.scan.indexed.checking import is_checking

        if is_checking():
            _check_index(snapshot, matching, found, request.used_indices)
    return found


def _scanned_matches(snapshot: Snapshot, matching: Matching, request: ScanRequest) -> Matches:
    look_up = LookUp(matching, KeyIndex(matching.keys))

    def work(rows: LocatedRows) -> _Found:
        return look_up.find(rows.read(), rows.addresses) if rows.num_rows else _NOTHING

    found = list(map_located_rows(snapshot.reader, request, work, most_rows=_WINDOW_ROWS))
    return Matches(
        addresses=_together([window.addresses for window in found], np.uint64),
        source_rows=_together([window.source_rows for window in found], np.int64),
        rest=_together([window.rest for window in found], np.uint64),
        is_new=look_up.is_new() if matching.clauses.inserts else None,
    )


def _check_index(snapshot: Snapshot, matching: Matching, found: Matches, used: Sequence[str]) -> None:
    """Raise CorruptFileError unless a scan without indices finds the same matches."""
    plain = replace(matching, clauses=replace(matching.clauses, use_index=False))
    expected = _scanned_matches(snapshot, plain, matching_scan(snapshot, plain))
    missing = np.setdiff1d(expected.addresses, found.addresses)
    if len(missing) or len(expected.addresses) != len(found.addresses) or expected.num_new != found.num_new:
        raise CorruptFileError(
            f"an index finds {len(found.addresses)} rows to merge instead of {len(expected.addresses)} "
            f"({'; '.join(used)}); drop the index and create it again"
        )


def _matches_in_partitions(
    snapshot: Snapshot, matching: Matching, partitions: int, metrics: ScanMetrics | None
) -> Matches:
    """Find matches in one partition of the keys after the other, if the index of all keys would be too large."""
    request = matching_scan(snapshot, matching, metrics)
    columns = located_projection(request.projection)
    found: list[_Found] = []
    is_new = np.zeros(matching.source.num_rows, bool) if matching.clauses.inserts else None
    targets = scan_batches(snapshot.reader, replace(request, projection=columns, batch_size=_WINDOW_ROWS))
    kept = share_of_memory(_KEPT_BYTES, MemoryUse.TEMPORARY)
    with PartitionedKeys(matching.keys, partitions, memory=kept) as keys:
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


def _taken(addresses: pa.Array, places: _Rows) -> _Addresses:
    return np.asarray(addresses.to_numpy()[places])


def _together(parts: Sequence[NDArray], dtype: type[np.generic]) -> NDArray:
    return np.concatenate([np.empty(0, dtype), *parts])


# -- looking up --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Found:
    """Matches among some target rows; the attributes are those of `Matches`."""

    addresses: _Addresses
    source_rows: _Rows
    rest: _Addresses


_NO_ROWS = np.empty(0, np.int64)
_NOTHING = _Found(_NO_ROWS.view(np.uint64), _NO_ROWS, _NO_ROWS.view(np.uint64))


class LookUp:
    """Look-up of target rows among the keys of a source. Several threads may use it concurrently.

    Parameters
    ----------
    matching
        The search.
    index
        Index of all keys, or of some of them.
    rows
        int64: source row of each row of the index; None if the index has all rows.
    """

    def __init__(self, matching: Matching, index: KeyIndex, rows: _Rows | None = None) -> None:
        self._matching, self._clauses = matching, matching.clauses
        self._index, self._members = index, _Members(index, rows)
        self._is_found = np.zeros(index.num_groups if matching.clauses.inserts else 0, bool)
        self._pair_rows = bounded_rows(source_row_bytes(matching.source))

    def is_new(self) -> NDArray[np.bool_]:
        """Return True for each source row whose key was not found. A key with a null part is never found."""
        groups = self._index.groups
        if not len(self._is_found):
            return groups < 0
        is_new = ~self._is_found[groups]
        is_new[groups < 0] = True
        return is_new

    def find(self, rows: pa.RecordBatch, addresses: Callable[[_Rows], _Addresses]) -> _Found:
        """Find the matches among target rows.

        Parameters
        ----------
        rows
            Keys and columns of conditions, with the columns of `Matching.columns`.
        addresses
            Returns the addresses of the rows at some places.
        """
        clauses = self._clauses
        places, groups = self._index.matches(rows.columns[: len(clauses.on)])
        if clauses.matched is WhenMatched.FAIL and len(places):
            key = _key_text(rows, clauses.on, int(places[0]))
            raise InvalidInputError(f"Merge insert failed: found matching row with key values: {key}")
        if clauses.inserts:
            self._is_found[groups] = True  # all threads write the same value
        matched = source_rows = rest = _NO_ROWS
        if clauses.matched in (WhenMatched.UPDATE, WhenMatched.DELETE):
            matched, source_rows = self._pairs(rows, places, groups)
        if clauses.deletes_rest:
            is_rest = np.ones(rows.num_rows, bool)
            is_rest[places] = False
            rest = self._rest(rows, np.flatnonzero(is_rest))
        return _Found(addresses(matched), source_rows, addresses(rest))

    def _pairs(self, rows: pa.RecordBatch, places: _Rows, groups: _Rows) -> tuple[_Rows, _Rows]:
        """Return the places of target rows to change, each once, and the source row of each."""
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
            # Raise immediately: keys that occur often on both sides make too many pairs to test them all.
            seen = np.concatenate([last, matched[keep]])
            again = np.flatnonzero(seen[1:] == seen[:-1])
            if len(again):
                raise self._ambiguous(rows, int(seen[again[0]]))
            last = seen[-1:]
            kept_places.append(matched[keep])
            kept_rows.append(source_rows[keep])
        return np.concatenate(kept_places), np.concatenate(kept_rows)

    def _holds(self, condition: PairCondition, rows: pa.RecordBatch, places: _Rows, source_rows: _Rows) -> _Rows:
        """Return the numbers of the pairs for which a condition is true."""
        source = target = None
        if condition.source_columns:
            source = self._matching.source.take(source_rows, list(condition.source_columns))
        if condition.target_columns:
            target = rows.select(list(condition.target_columns)).take(pa.array(places))
        return np.flatnonzero(condition.holds(source, target, len(places)).to_numpy(zero_copy_only=False))

    def _rest(self, rows: pa.RecordBatch, places: _Rows) -> _Rows:
        """Return the places of unmatched target rows that are deleted."""
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
    """Format the key of a row for error messages."""
    return ", ".join(f"{name} = {rows.column(name)[place].as_py()}" for name in keys)


class _Members:
    """Source rows of each key.

    Parameters
    ----------
    index
        Index of the keys.
    rows
        Source row of each row of the index; None if the index has all rows.

    Attributes
    ----------
    sizes
        Number of rows in each group of equal keys.
    has_several
        True if some group has more than one row.
    """

    def __init__(self, index: KeyIndex, rows: _Rows | None) -> None:
        self._first, self.sizes, self._rows = index.first_rows, index.group_sizes, rows
        self.has_several = bool(len(self.sizes) and self.sizes.max() > 1)
        if self.has_several:
            order = np.argsort(index.groups, kind="stable")
            self._members = order[len(order) - int(self.sizes.sum()) :]
            self._starts = np.cumsum(self.sizes) - self.sizes

    def first_rows(self, groups: _Rows) -> _Rows:
        """Return the first source row of each group."""
        return self._numbered(self._first[groups])

    def pairs(self, places: _Rows, groups: _Rows, most: int) -> Iterator[tuple[_Rows, _Rows]]:
        """Yield pairs of a place and a source row of its group, place by place, at most `most` pairs at a time."""
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
        """Convert row numbers of the index to row numbers of the source."""
        return rows if self._rows is None else self._rows[rows]
