"""Copies of a table on which the same changes are made: by this package, by the reference, and by both in turn.

After every change all copies have to be equal, in both readers.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lance_dataset
from support.tables.equality import assert_same
from support.tables.manifest_content import manifest_content, manifest_of

__all__ = ["OURS", "REFERENCE", "Change", "Copies", "Order", "Refused", "View"]

OURS, REFERENCE, SHARED = "ours", "reference", "shared"
MODULES = {OURS: lance_dataset, REFERENCE: lance}
IDS = ["_rowid", "_rowaddr"]
LINEAGE = ("_row_created_at_version", "_row_last_updated_at_version")
#: A change of the newest version of a table, and its result.
Change = Callable[[Any, str], Any]


@dataclass(frozen=True)
class Refused:
    """Change that raised an error."""

    error: BaseException


@dataclass(frozen=True)
class View:
    """Version of a table as a reader sees it.

    Attributes
    ----------
    version
        Number of the version.
    schema
        Schema of the columns, with metadata.
    rows
        All columns, row ids and addresses, and the lineage of rows if there is one.
    """

    version: int
    schema: pa.Schema
    rows: pa.Table

    @classmethod
    def of(cls, module: Any, path: str, version: Any = None) -> View:
        """Read a table with a library."""
        dataset = module.dataset(path, version=version)
        system = [*IDS, *(LINEAGE if dataset.has_stable_row_ids else ())]
        rows = dataset.to_table(columns=[*dataset.schema.names, *system])
        assert dataset.count_rows() == rows.num_rows
        return cls(dataset.version, dataset.schema, rows)

    def check_same(self, other: View) -> None:
        """Assert that another reader sees exactly the same."""
        assert self.version == other.version
        assert self.schema.equals(other.schema, check_metadata=True), f"{self.schema}\nis not\n{other.schema}"
        if not self.rows.equals(other.rows):
            assert_same(self.rows, other.rows)

    def numbered(self, numbers: dict[int, int]) -> pa.Table:
        """Return the rows, with numbers of changes instead of the versions they made."""
        rows = self.rows
        for name in LINEAGE:
            if name in rows.column_names:
                made = pa.array([numbers[version] for version in rows[name].to_pylist()], pa.int64())
                rows = rows.set_column(rows.column_names.index(name), name, made)
        return rows


class Order(enum.Enum):
    """Degree to which the rows of two copies have to agree.

    The order in which a merge writes rows is undefined, so new rows may get different ids. Once one of them is deleted,
    even the sets of ids differ.
    """

    EXACT = "in the same order, with the same ids and addresses"
    IDS = "the same rows; the same ids and addresses"
    ROWS = "the same rows"


class Copies:
    """Three copies of one table.

    Parameters
    ----------
    folder
        Folder of the copies.

    Attributes
    ----------
    order
        Degree to which the rows of the newest version agree.
    view
        View of the reference on its own copy; None before the first change.
    settled
        True if the previous version has the same schema.
    """

    def __init__(self, folder: Path) -> None:
        self.paths = {name: str(folder / name) for name in (OURS, REFERENCE, SHARED)}
        self.order = Order.EXACT
        self.view: View | None = None
        self.settled = False
        self._done = 0
        self._numbers: dict[str, dict[int, int]] = {name: {} for name in self.paths}
        self._orders: dict[int, Order] = {}

    def make(self, change: Change, shared_by: str, *, order: Order | None = None, reorders: bool = False) -> Any:
        """Make a change on all copies, and compare the copies and the outcomes.

        Parameters
        ----------
        change
            The change; it may raise an error if it does so in both libraries.
        shared_by
            Library that makes it on the shared copy.
        order
            Degree to which rows have to agree afterwards; by default as before.
        reorders
            True if the order in which it writes rows is undefined.

        Returns
        -------
        Any
            Result of the reference; `Refused` if it raised an error.
        """
        expected = _tried(change, lance, self.paths[REFERENCE])
        if isinstance(expected, Refused) and "Internal error" in str(expected.error):
            return expected  # an error in the reference, and nothing changed
        for name, author in ((OURS, OURS), (SHARED, shared_by)):
            result = _tried(change, MODULES[author], self.paths[name])
            _check_result(f"{name} copy, by {author}", result, expected)
        self._done += 1
        if order is not None and not isinstance(expected, Refused):
            self.order = order
        self._compare(reorders=reorders)
        return expected

    def _compare(self, *, reorders: bool) -> None:
        """Compare all copies, in both readers."""
        views = {}
        for name, path in self.paths.items():
            views[name] = view = View.of(lance, path)
            View.of(lance_dataset, path).check_same(view)
            for version in range(max(self._numbers[name], default=0) + 1, view.version + 1):
                self._numbers[name][version] = self._done
        expected = views[REFERENCE]
        content = _content(self.paths[REFERENCE], expected.version)
        before = self.order
        for name in (OURS, SHARED):
            if reorders and before is Order.EXACT and not self._are_equal(name, views[name], expected):
                self._check_equal(name, views[name], expected, Order.IDS)
                self.order = Order.ROWS
            else:
                self._check_equal(name, views[name], expected, before)
            assert views[name].version == expected.version, name
            assert _content(self.paths[name], expected.version) == content, name
        self.settled = self.view is not None and self.view.schema.equals(expected.schema)
        self.view = expected
        self._orders[expected.version] = self.order

    def look_back(self, version: int | str) -> None:
        """Compare an old version of all copies, in both readers."""
        expected = View.of(lance, self.paths[REFERENCE], version)
        for name, path in self.paths.items():
            view = View.of(lance_dataset, path, version)
            self._check_equal(name, view, expected, self.order_of(expected.version))
            if name != REFERENCE:
                view.check_same(View.of(lance, path, version))

    def order_of(self, version: int) -> Order:
        """Return the degree to which the rows of a version agree."""
        return self._orders.get(version, Order.ROWS)

    def versions(self) -> list[int]:
        """Return the numbers of the existing versions, equal in all copies."""
        found = [
            [entry["version"] for entry in module.dataset(path).versions()]
            for path in self.paths.values()
            for module in MODULES.values()
        ]
        assert all(each == found[0] for each in found), found
        return found[0]

    def _are_equal(self, name: str, view: View, expected: View) -> bool:
        return view.numbered(self._numbers[name]).equals(expected.numbered(self._numbers[REFERENCE]))

    def _check_equal(self, name: str, view: View, expected: View, order: Order) -> None:
        assert view.schema.equals(expected.schema, check_metadata=True), f"{name}: {view.schema}, {expected.schema}"
        if self._are_equal(name, view, expected):
            return
        found = view.numbered(self._numbers[name])
        wanted = expected.numbered(self._numbers[REFERENCE])
        if order is Order.EXACT:
            assert found.to_pylist() == wanted.to_pylist(), name
        left, right = (Counter(map(repr, each.drop_columns(IDS).to_pylist())) for each in (found, wanted))
        assert left == right, f"{name}: {left - right} and not {right - left}"
        if order is Order.IDS:
            for column in IDS:
                assert set(found[column].to_pylist()) == set(wanted[column].to_pylist()), (name, column)


def _tried(change: Change, module: Any, path: str) -> Any:
    try:
        return change(module, path)
    except Exception as error:
        return Refused(error)


def _check_result(who: str, found: Any, expected: Any) -> None:
    if isinstance(found, Refused) and isinstance(expected, Refused):
        kinds = [
            each for each in (ValueError, OSError, NotImplementedError, KeyError) if isinstance(expected.error, each)
        ]
        assert isinstance(found.error, tuple(kinds)), f"{who}: {found.error!r} instead of {expected.error!r}"
        return
    if isinstance(found, Refused):
        raise AssertionError(f"{who}: rejected what the reference accepts: {found.error!r}") from found.error
    assert not isinstance(expected, Refused), f"{who}: accepted what the reference rejects: {expected.error!r}"
    assert found == expected, who


def _content(path: str, version: int) -> dict[str, Any]:
    """Return the content of a manifest, without names and sizes of files and without undefined orders."""
    content = manifest_content(manifest_of(path, version))
    fragments = []
    for fragment in content.pop("fragments"):
        files = [
            (each.fields, each.column_indices, each.file_major_version, each.file_minor_version)
            for each in fragment["files"]
        ]
        deletion = fragment["deletion_file"]
        fragments.append((fragment["id"], fragment["physical_rows"], deletion and deletion.num_deleted_rows, files))
    return {**content, "fragments": fragments}
