"""Reader of one version of a table: its fragments, and lookup of rows by number, id and address."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, RowIndexError
from lance_dataset.file.column import ColumnReader
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import UNLIMITED, ResultLimit
from lance_dataset.memory import memory_limit
from lance_dataset.properties import cached_property
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import Projection, full_schema
from lance_dataset.read.row_taker import ProjectionTaker, known_taker
from lance_dataset.table.fragment import DeletionFile, DeletionFileType, Fragment, Spilled
from lance_dataset.table.fragment_list import FragmentList
from lance_dataset.table.lineage.id_pieces import IdPieces
from lance_dataset.table.lineage.plain_ids import PlainIds
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.row_index import RowIdIndex
from lance_dataset.table.lineage.stored_ids import StoredIds
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.row_addresses import by_fragment, first_address, fragments_of, grouped, offsets_of, places_of
from lance_dataset.types.schema import Field

__all__ = ["TableReader"]

Elsewhere = Callable[[Field, NDArray[np.uint64]], ColumnReader | None]


class TableReader:
    """Reader of one version of a table. Fragments are opened when they are read, and stay open.

    Parameters
    ----------
    locator
        Locator of the files.
    manifest
        Manifest of the version.
    elsewhere
        See `FragmentReader`.
    previous
        Reader of another version of the table, whose index of row ids may be reused in part.
    limit
        Limit of the memory of each result.
    """

    def __init__(
        self,
        locator: FileLocator,
        manifest: Manifest,
        elsewhere: Elsewhere | None = None,
        previous: TableReader | None = None,
        limit: ResultLimit = UNLIMITED,
    ) -> None:
        self._limit = limit
        self.locator = locator
        self.manifest = manifest
        self.elsewhere = elsewhere
        #: Schema that scans see, in which blobs are descriptions.
        self.scanned_schema = manifest.described_schema
        #: Projections of takes by requested columns, and of scans by these and the flags of system columns.
        self.projections: dict[tuple[str, ...] | None, Projection] = {}
        self.scan_projections: dict[tuple[tuple[str, ...], bool, bool], Projection] = {}
        #: What higher floors keep as long as the reader, by type.
        self.companions: dict[type, object] = {}
        self._indexed: _Indexed | None = None
        self._takers: dict[tuple[int, ...], ProjectionTaker] = {}
        self._earlier: _Indexed | None = None if previous is None else previous._indexed or previous._earlier

    @property
    def limit(self) -> ResultLimit:
        """Limit of the memory of a result that is made now."""
        return self._limit.within(memory_limit())

    @cached_property
    def fragments(self) -> Sequence[FragmentReader]:
        """Readers of the fragments, in scan order."""
        return _Fragments(self.locator, self.manifest, self.elsewhere, self._limit)

    @cached_property
    def live_starts(self) -> NDArray[np.int64]:
        """Number of live rows before each fragment, then the total."""
        counts = self.manifest.fragment_list.columns.num_rows.copy()
        for position in np.flatnonzero(counts < 0).tolist():
            counts[position] = self.fragments[position].num_rows
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])

    @property
    def num_rows(self) -> int:
        """Number of live rows of the version."""
        return int(self.live_starts[-1])

    def one_per_base(self, positions: Sequence[int] | None = None) -> Iterator[FragmentReader]:
        """Return a few fragments that together have a file of each base path.

        All files of a base path lie in the same store. `positions` restricts the choice; None for all fragments.
        """
        columns = self.manifest.fragment_list.columns
        owners, bases = columns.file_owners, columns.file_base_ids
        if positions is not None:
            wanted = np.isin(owners, np.asarray(positions, np.int64))
            owners, bases = owners[wanted], bases[wanted]
        _, first = np.unique(bases, return_index=True)
        return (self.fragments[owner] for owner in dict.fromkeys(owners[first].tolist()))

    @cached_property
    def is_remote(self) -> bool:
        """True if some fragment lies on another machine."""
        return any(fragment.is_remote for fragment in self.one_per_base())

    @cached_property
    def expression_schema(self) -> pa.Schema:
        """Schema of the names in expressions: all columns, as storage types, and system columns."""
        return full_schema(self.scanned_schema)

    def fragment(self, fragment_id: int) -> FragmentReader | None:
        """Return the reader of the fragment with the given id, or None if it does not exist."""
        position = self.manifest.fragment_list.position(fragment_id)
        return None if position is None else self.fragments[position]

    def taker(self, projection: Projection) -> ProjectionTaker:
        """Return the taker of a projection, which is cached."""
        mixed = bool(self.manifest.base_paths)
        return known_taker(self._takers, projection, lambda: self.fragments, lambda: self.live_starts, mixed=mixed)

    # -- lookup of rows ------------------------------------------------------------------------------------------

    def addresses_of_numbers(self, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the addresses of live rows by number. Raise RowIndexError if a number is too large."""
        starts = self.live_starts
        if len(numbers) and int(numbers.max()) >= starts[-1]:
            raise RowIndexError(
                f"row number {int(numbers.max())} is out of range: the dataset has {int(starts[-1])} rows"
            )
        owners = np.searchsorted(starts, numbers, side="right") - 1
        found = np.empty(len(numbers), np.uint64)
        for position, mine in grouped(owners):
            fragment = self.fragments[position]
            found[mine] = fragment.addresses(fragment.physical(numbers[mine] - starts[position]))
        return found

    def addresses_of_ids(
        self, ids: NDArray[np.uint64], *, ignore_deletions: bool = False
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the addresses of rows by id.

        Parameters
        ----------
        ids
            Values of `_rowid`: stable row ids if the table has them, otherwise addresses.
        ignore_deletions
            True if the rows are known to be live. Deletion files are then read only if several rows have had an id.

        Returns
        -------
        addresses : uint64[n]
            Row addresses.
        found : bool[n]
            True for each id that belongs to a live row.

        Raises
        ------
        RowIndexError
            An address is outside the table.
        CorruptFileError
            The row ids of the table contradict each other.
        """
        if not self.manifest.uses_stable_row_ids:
            self.check_addresses(ids)
            return ids, np.ones(len(ids), bool) if ignore_deletions else self.is_live(ids)
        index = self.row_id_index
        if not ignore_deletions:
            return index.find(ids, self.is_live)
        sure = index.candidates(ids) == 1
        addresses, found = np.zeros(len(ids), np.uint64), np.zeros(len(ids), bool)
        addresses[sure], found[sure] = index.find(ids[sure], lambda at: np.ones(len(at), bool))
        addresses[~sure], found[~sure] = index.find(ids[~sure], self.is_live)
        return addresses, found

    def places(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return addresses with fragment positions instead of fragment ids. Errors are those of `check_addresses`."""
        found = self._inside(addresses)
        if found is None:
            self.check_addresses(addresses)
            ids, positions = self._positions
            found = positions[np.searchsorted(ids, fragments_of(addresses).view(np.int64))]
        return places_of(found, offsets_of(addresses))

    @cached_property
    def _positions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Fragment ids, ascending, and the position of each fragment."""
        ids = self.manifest.fragment_list.columns.ids
        order = np.argsort(ids, kind="stable")
        return np.ascontiguousarray(ids[order]), order

    @cached_property
    def _counts_fragments(self) -> bool:
        """True if the ids of the fragments are their positions."""
        ids, _ = self._positions
        return bool((self.manifest.fragment_list.columns.ids == np.arange(len(ids))).all())

    def check_addresses(self, addresses: NDArray[np.uint64]) -> None:
        """Raise RowIndexError if an address does not belong to a row of the version, deleted or not."""
        if self._inside(addresses) is not None:
            return
        for fragment_id, mine in by_fragment(addresses):
            fragment = self.fragment(fragment_id)
            if fragment is None:
                raise RowIndexError(
                    f"row address {int(addresses[mine][0])} belongs to fragment {fragment_id}, which is not part of "
                    f"version {self.manifest.version}"
                )
            highest = int(offsets_of(addresses[mine]).max())
            if highest >= fragment.physical_rows:
                raise RowIndexError(
                    f"row address {first_address(fragment_id) + highest} is out of range: fragment {fragment_id} has "
                    f"{fragment.physical_rows} physical rows"
                )

    def _inside(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64] | None:
        """Return the positions of fragments if the manifest alone shows that all addresses are in the table."""
        ids, positions = self._positions
        if not len(ids):
            return None
        found = fragments_of(addresses).view(np.int64)
        if not self._counts_fragments:
            at = np.minimum(ids.searchsorted(found), len(ids) - 1)
            if (ids[at] != found).any():
                return None
            found = positions[at]
        elif len(found) and found.max() >= len(ids):
            return None
        rows = self.manifest.fragment_list.columns.physical_rows[found]
        return found if (offsets_of(addresses) < rows).all() else None

    def is_live(self, addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return a mask of the addresses that belong to live rows."""
        live = np.zeros(len(addresses), bool)
        if len(addresses) == 1:  # as lookups of keys ask for, which take less time than grouping
            only = self.fragment(int(fragments_of(addresses)[0]))
            return live if only is None else only.is_live(offsets_of(addresses))
        for fragment_id, mine in by_fragment(addresses):
            fragment = self.fragment(fragment_id)
            if fragment is not None:
                live[mine] = fragment.is_live(offsets_of(addresses[mine]))
        return live

    def without(self, addresses: NDArray[np.uint64]) -> TableReader:
        """Return a reader of the same version to which some more rows are deleted.

        Parameters
        ----------
        addresses
            Addresses of live rows of the version, each once.
        """
        gone: dict[int, NDArray[np.int64]] = {}
        removed, updated = set(), {}
        for fragment_id, mine in by_fragment(addresses):
            fragment = self.fragment(fragment_id)
            assert fragment is not None
            # a stable sort merges two ascending parts
            rows = np.sort(np.concatenate([fragment.deletions, offsets_of(addresses[mine])]), kind="stable")
            if len(rows) == fragment.physical_rows:
                removed.add(fragment_id)
                continue
            # The file does not exist: readers of these fragments know its content already.
            file = DeletionFile(DeletionFileType.BITMAP, self.manifest.version, 0, len(rows))
            updated[fragment_id] = replace(fragment.fragment, physical_rows=fragment.physical_rows, deletion_file=file)
            gone[fragment_id] = rows
        fragments = self.manifest.fragment_list.edited(removed, updated, ())
        made = TableReader(self.locator, replace(self.manifest, fragments=fragments), self.elsewhere, limit=self._limit)
        for fragment_id, rows in gone.items():
            reader = made.fragment(fragment_id)
            assert reader is not None
            reader.take_as_deleted(rows)
        return made

    # -- stable row ids ------------------------------------------------------------------------------------------

    @property
    def row_id_index(self) -> RowIdIndex:
        """Index of the stable row ids. It is made on first use, from the index of `previous` if possible.

        Raises
        ------
        CorruptFileError
            Row ids contradict the format or each other.
        """
        if self._indexed is None:
            self._indexed, self._earlier = self._index(self._earlier), None
        return self._indexed.index

    def _index(self, earlier: _Indexed | None) -> _Indexed:
        fragments = self.manifest.fragment_list
        stored = StoredIds.of(fragments)
        plain = stored.plain()
        others = _Lineages.of(fragments, stored, plain)
        if earlier is not None and earlier.serves(plain, others, fragments):
            new = ~np.isin(plain.fragment_ids, earlier.plain.fragment_ids)
            added = plain.where(new)
            if added.apart.all():
                more = self._pieces(stored, others.fragment_ids - earlier.others.fragment_ids)
                extended = earlier.index.extended(more, added)
                if extended is not None:
                    return _Indexed.of(plain, others, extended, fragments)
        pieces = self._pieces(stored, others.fragment_ids.union(plain.fragment_ids[~plain.apart].tolist()))
        index = RowIdIndex.build(pieces, self._deletions, plain.where(plain.apart))
        return _Indexed.of(plain, others, index, fragments)

    def _pieces(self, stored: StoredIds, fragment_ids: frozenset[int]) -> IdPieces:
        """Return the row ids of fragments, those that are stored in the usual form together."""
        mine = stored.of_fragments(np.array(sorted(fragment_ids), np.int64))
        pieces, known = mine.pieces(), mine.fragment_ids.tolist()
        if pieces is None:
            pieces, known = IdPieces.of({}), []
        others = sorted(fragment_ids.difference(known))
        return pieces.followed_by(IdPieces.of({each: self._row_ids(each) for each in others}))

    def _row_ids(self, fragment_id: int) -> RowIds:
        reader = self.fragment(fragment_id)
        if reader is None or reader.row_ids is None:
            raise CorruptFileError(f"fragment {fragment_id} has no row ids, but the table has stable ones")
        return reader.row_ids

    def _deletions(self, fragment_id: int) -> NDArray[np.int64]:
        reader = self.fragment(fragment_id)
        return np.empty(0, np.int64) if reader is None else reader.deletions


@dataclass(frozen=True, eq=False)
class _Lineages:
    """Sources of the row ids of fragments, which tell if an index is still right.

    Attributes
    ----------
    fragment_ids
        Ids of the fragments.
    stored
        Sequences in their messages.
    others
        Sources of the ids of other fragments, by fragment id.
    """

    fragment_ids: frozenset[int]
    stored: StoredIds
    others: Mapping[int, object]

    @classmethod
    def of(cls, fragments: FragmentList, stored: StoredIds, plain: PlainIds) -> _Lineages:
        """Return the sources of all fragments that are not plain."""
        wanted = frozenset(fragments.ids.tolist()).difference(plain.fragment_ids.tolist())
        others = sorted(wanted.difference(stored.fragment_ids.tolist()))
        return cls(wanted, stored, {each: _lineage(fragments.find(each)) for each in others})

    def hold(self, earlier: _Lineages) -> bool:
        """Return True if the fragments of an earlier version are among these, with the same sources."""
        return self.fragment_ids >= earlier.fragment_ids and all(
            self._source(each) == earlier._source(each) for each in earlier.fragment_ids
        )

    def _source(self, fragment_id: int) -> object:
        return self.others[fragment_id] if fragment_id in self.others else self.stored[self._places[fragment_id]]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {fragment_id: place for place, fragment_id in enumerate(self.stored.fragment_ids.tolist())}


@dataclass(frozen=True, eq=False)
class _Indexed:
    """Index of row ids, with the sources it was made from.

    Attributes
    ----------
    plain
        Fragments with consecutive ids.
    others
        Sources of the ids of other fragments.
    deletions
        Deletion files of the fragments whose deleted rows are not in the index.
    """

    plain: PlainIds
    others: _Lineages
    deletions: Mapping[int, DeletionFile | None]
    index: RowIdIndex

    @classmethod
    def of(cls, plain: PlainIds, others: _Lineages, index: RowIdIndex, fragments: FragmentList) -> _Indexed:
        """Make the entry for an index of these fragments."""
        return cls(plain, others, {each: _deletion_file(fragments, each) for each in index.trimmed}, index)

    def serves(self, plain: PlainIds, others: _Lineages, fragments: FragmentList) -> bool:
        """Return True if a version has all these fragments and no live rows that the index lacks."""
        return (
            plain.holds(self.plain)
            and others.hold(self.others)
            and all(_deletion_file(fragments, each) == file for each, file in self.deletions.items())
        )


def _deletion_file(fragments: FragmentList, fragment_id: int) -> DeletionFile | None:
    found = fragments.find(fragment_id)
    return None if found is None else found.deletion_file


def _lineage(fragment: Fragment | None) -> object:
    if fragment is None:
        return None
    return fragment.files if isinstance(fragment.row_ids, Spilled) else fragment.row_ids


class _Fragments(Sequence[FragmentReader]):
    """Readers of the fragments of a version. Each is made on first use and then kept."""

    def __init__(
        self, locator: FileLocator, manifest: Manifest, elsewhere: Elsewhere | None, limit: ResultLimit
    ) -> None:
        self._locator = locator
        self._fragments = manifest.fragment_list
        self._elsewhere = elsewhere
        self._limit = limit
        self._known: dict[int, FragmentReader] = {}

    def __len__(self) -> int:
        return len(self._fragments)

    @overload
    def __getitem__(self, position: int) -> FragmentReader: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[FragmentReader]: ...
    def __getitem__(self, position: int | slice) -> FragmentReader | Sequence[FragmentReader]:
        if isinstance(position, slice):
            return [self[index] for index in range(*position.indices(len(self)))]
        known = self._known.get(position)
        if known is not None:
            return known
        index = range(len(self))[position]
        known = self._known.get(index)
        if known is not None:
            return known
        # a reader refers to the previous one only if the manifest does not tell how many rows come before
        for uncounted in range(self._counted, index):
            self._add(uncounted)
        return self._add(index)

    def _add(self, index: int) -> FragmentReader:
        known = self._known.get(index)
        if known is None:
            before = int(self._starts[index]) if index <= self._counted else self._known[index - 1]
            made = FragmentReader(self._locator, self._fragments[index], before, self._elsewhere, self._limit)
            # the first of several threads wins, so that files are opened once
            known = self._known.setdefault(index, made)
        return known

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self._fragments.columns.num_rows)])

    @cached_property
    def _counted(self) -> int:
        """Number of fragments before the first one whose row count is not in the manifest."""
        unknown = np.flatnonzero(self._fragments.columns.num_rows < 0)
        return int(unknown[0]) if len(unknown) else len(self)
