"""The index of stable row ids: building it, and looking up rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import lance_dataset as lance
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.row_index import IndexedFragment, RowIdIndex

_FRAGMENTS = 100
#: Rows of a fragment; the tables have ten million.
_ROWS = 100_000

Fragments = list[IndexedFragment]


def _fragment(number: int, ids: RowIds, deleted: NDArray[np.int64]) -> IndexedFragment:
    """Return a fragment whose sequence is as parsed from a manifest."""
    decoded = RowIds.decode(ids.encode(), len(ids), "benchmark")
    return IndexedFragment(number, decoded, lambda: deleted)


def _ranges(deleted_share: float, *, compacted: bool) -> Fragments:
    random = np.random.default_rng(0)
    fragments = []
    for number in range(_FRAGMENTS):
        ids = RowIds.from_range(number * _ROWS, _ROWS)
        deleted = np.flatnonzero(random.random(_ROWS) < deleted_share)
        kept = ids.without(deleted) if compacted else ids
        fragments.append(_fragment(number, kept, deleted[:0] if compacted else deleted))
    return fragments


def _updated() -> Fragments:
    """Return fragments where ten updates have each moved one percent of the rows to a new fragment."""
    fragments = _ranges(0.01, compacted=False)
    moved = np.concatenate([each.deletions() + number * _ROWS for number, each in enumerate(fragments)])
    np.random.default_rng(1).shuffle(moved)
    none = np.empty(0, np.int64)
    parts = enumerate(np.array_split(moved, 10), start=_FRAGMENTS)
    return [*fragments, *(_fragment(number, RowIds.from_values(np.sort(part)), none) for number, part in parts)]


def _shuffled() -> Fragments:
    """Return fragments with a tenth of the rows, in random order."""
    ids = np.random.default_rng(2).permutation(_FRAGMENTS * _ROWS // 10).reshape(10, -1)
    return [_fragment(number, RowIds.from_values(part), np.empty(0, np.int64)) for number, part in enumerate(ids)]


_TABLES = {
    "ranges": lambda: _ranges(0.0, compacted=False),
    "deleted": lambda: _ranges(0.1, compacted=False),
    "compacted": lambda: _ranges(0.1, compacted=True),
    "updated": _updated,
    "shuffled": _shuffled,
}


def _everything_lives(addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
    return np.ones(len(addresses), bool)


class RowIds10M:
    """Ten million rows (one of shuffled ids) in a hundred fragments, without files."""

    params = (tuple(_TABLES),)
    param_names = ("table",)
    timeout = 300

    def setup(self, name: str) -> None:
        self.fragments = _TABLES[name]()
        self.index = RowIdIndex.build(self.fragments)
        rows = sum(len(fragment.row_ids) for fragment in self.fragments)
        random = np.random.default_rng(3)
        self.ids = {count: random.integers(0, rows, count).astype(np.uint64) for count in (1, 1_000, 1_000_000)}

    def time_build(self, _name: str) -> None:
        RowIdIndex.build(self.fragments)

    def time_find_1(self, _name: str) -> None:
        self.index.find(self.ids[1], _everything_lives)

    def time_find_1000(self, _name: str) -> None:
        self.index.find(self.ids[1_000], _everything_lives)

    def time_find_1m(self, _name: str) -> None:
        self.index.find(self.ids[1_000_000], _everything_lives)

    def track_bytes(self, _name: str) -> int:
        return self.index.nbytes

    track_bytes.unit = "bytes"  # type: ignore[attr-defined]


class OneRowOfManyFragments:
    """Opening a table of two thousand fragments and reading one row."""

    params = ([False, True],)
    param_names = ("stable_row_ids",)
    timeout = 300

    def setup_cache(self) -> dict[bool, str]:
        stored = {}
        for stable in (False, True):
            stored[stable] = str(Path.cwd() / f"fragments-{stable}.lance")
            rows = pa.table({"a": np.arange(4_000)})
            lance.write_dataset(rows, stored[stable], max_rows_per_file=2, enable_stable_row_ids=stable)
        return stored

    def setup(self, stored: dict[bool, str], stable: bool) -> None:
        self.uri = stored[stable]
        self.row_id = 2_777 if stable else 1_388 << 32

    def time_take(self, _stored: dict[bool, str], _stable: bool) -> None:
        lance.dataset(self.uri).take([2_777])

    def time_take_by_id(self, _stored: dict[bool, str], _stable: bool) -> None:
        lance.dataset(self.uri)._take_rows([self.row_id])

    def time_filter_by_id(self, _stored: dict[bool, str], _stable: bool) -> None:
        lance.dataset(self.uri).to_table(filter=f"_rowid = {self.row_id}")
