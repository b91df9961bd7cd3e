"""Random access to a projection in one compiled call. Columns that it does not support are taken one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, LanceError, UnsupportedError
from lance_dataset.file.take_shape import TakeShape, take_shape
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.holding import Holding
from lance_dataset.read.open_together import any_remote
from lance_dataset.read.prefetch import Announcements, announce, announce_numbers, open_for_announcing
from lance_dataset.read.projection import OutputColumn, Projection
from lance_dataset.read.wide_takes import MANY_COLUMNS, find_wide
from lance_dataset.table.row_addresses import places_of, split_places
from lance_dataset.threads.streams import map_parallel
from lance_dataset.threads.waiting import read_each
from lance_dataset.types.schema import Field
from lancecodec import CodecError
from lancecodec.take import ADDRESSES, ColumnTaker, FragmentTaker, RowTaker, TakenRows

__all__ = ["ProjectionTaker", "TakeColumns", "known_taker", "take_fields"]

_Look = Callable[..., TakenRows]
#: Function that takes the columns of a projection for all rows of a call.
TakeColumns = Callable[[Projection], pa.RecordBatch]

_ADDRESS_SHAPE = TakeShape(8)
#: Shape of columns that compiled code does not take.
_NO_SHAPE = TakeShape(0)
#: Minimum number of values for taking columns in parallel.
_PARALLEL = 1 << 14
#: Minimum number of rows for importing each column separately, so that it does not keep the memory of the others.
_MANY_ROWS = 1 << 12
_REMEMBERED = 16
#: Minimum number of rows to announce. For fewer rows, checking if they are in memory takes longer than taking them.
_ANNOUNCED_ROWS = 64
#: Takes from many columns before each of them is opened.
_EARLY_TAKES = 4
#: Rounds of opening: fragments, then pages.
_OPENINGS = 3


class ProjectionTaker:
    """Taker of rows of a projection from the fragments of a table.

    Parameters
    ----------
    fragments
        Readers of the fragments.
    starts
        Number of rows before each fragment, then the total number.
    outputs
        Columns to take.
    mixed
        True if some fragments may lie on other machines, and others not.
    """

    def __init__(
        self,
        fragments: Sequence[FragmentReader],
        starts: NDArray[np.int64],
        outputs: Sequence[OutputColumn],
        *,
        mixed: bool = False,
    ) -> None:
        self._fragments = fragments
        self._starts = starts
        self._outputs = outputs
        self._fields = [output.field for output in outputs if output.field is not None]
        self._announcements = Announcements()
        self._shapes = [_shape(output) for output in outputs]
        opened = partial(_open_fragment, fragments, outputs, self._shapes)
        shapes = [shape or _NO_SHAPE for shape in self._shapes]
        # if compiled code takes no column, it is not worth finding the rows there
        self._taker = (
            RowTaker(shapes, np.ascontiguousarray(starts, np.int64).data, opened) if any(self._shapes) else None
        )
        self._mixed = mixed
        #: Whether files lie on other machines; None until that is known for all.
        self._waits: bool | None = None
        self._parts: dict[tuple[int, ...], Projection] = {}
        #: Number of the next takes that may be early.
        self._early_takes = _EARLY_TAKES if len(self._fields) >= MANY_COLUMNS else 0

    def numbers(self, rows: NDArray[np.int64], projection: Projection, others: TakeColumns) -> pa.RecordBatch:
        """Take live rows by number.

        Parameters
        ----------
        rows
            At least one row number, in any order; repeats are allowed.
        projection
            Projection of these columns.
        others
            Function that takes the columns which compiled code does not support, because of their type, because of the
            encoding of a page, or because of damage, which that function reports in detail.

        Raises
        ------
        IndexError
            A row number is outside the table.
        """
        if self._early_takes and self._is_early(int(np.searchsorted(self._starts, rows[0], side="right")) - 1):
            return others(projection)
        look = None if self._taker is None else self._taker.numbers
        if len(rows) < _ANNOUNCED_ROWS:
            return self._take(look, rows, projection, others)
        known = partial(announce_numbers, self._fragments, self._starts, self._fields)
        return self._take_many(known, look, rows, projection, others)

    def places(self, rows: NDArray[np.int64], projection: Projection, others: TakeColumns) -> pa.RecordBatch:
        """Take physical rows, given as by `row_addresses.places_of`. Other parameters are those of `numbers`."""
        if self._early_takes and self._is_early(int(split_places(rows[:1])[0][0])):
            return others(projection)
        look = None if self._taker is None else self._taker.places
        if len(rows) < _ANNOUNCED_ROWS:
            return self._take(look, rows, projection, others)
        return self._take_many(self._announce_places, look, rows, projection, others)

    def _is_early(self, position: int) -> bool:
        """Return True if the first takes from a fragment are to read its columns together, without opening each."""
        self._early_takes -= 1
        fragment = self._fragments[position]
        columns = find_wide(fragment, self._outputs) if fragment.is_mapped else None
        if columns is None:
            self._early_takes = 0
        elif columns.copies_values and len(self._fragments) == 1:
            self._early_takes = _EARLY_TAKES  # no other way is faster
        return columns is not None

    def _take_many(
        self,
        announce_rows: Callable[[NDArray[np.int64]], None],
        look: _Look | None,
        rows: NDArray[np.int64],
        projection: Projection,
        others: TakeColumns,
    ) -> pa.RecordBatch:
        """Announce rows, then take them."""
        with self._announcements.taking(partial(announce_rows, rows)):
            return self._take(look, rows, projection, others)

    def _take(
        self, look: _Look | None, rows: NDArray[np.int64], projection: Projection, others: TakeColumns
    ) -> pa.RecordBatch:
        if look is None:
            return others(projection)
        if self._waits is not False:
            with Holding() as held:
                return self._find_and_take(partial(self._look, look, held), rows, projection, others)
        return self._find_and_take(look, rows, projection, others)

    def _find_and_take(
        self,
        look: Callable[[NDArray[np.int64]], TakenRows],
        rows: NDArray[np.int64],
        projection: Projection,
        others: TakeColumns,
    ) -> pa.RecordBatch:
        try:
            taken = look(rows)
        except (CodecError, CorruptFileError, UnsupportedError):
            return others(projection)
        return self._batch(taken, projection, others)

    def _look(self, look: _Look, held: Holding, rows: NDArray[np.int64]) -> TakenRows:
        """Find rows; what has to be opened on other machines for that is opened at the same time.

        Small files are fetched as a whole, and held.
        """
        for _ in range(_OPENINGS):
            pending: list[tuple[RowTaker | ColumnTaker, int]] = []
            taken = look(rows, pending)
            if not pending:
                return taken
            if not self._waits and pending[0][0] is self._taker:
                remote = any_remote([self._fragments[number] for owner, number in pending if owner is self._taker])
                self._waits = remote or (None if self._mixed else False)
            if self._waits:
                unopened = [self._fragments[number] for owner, number in pending if owner is self._taker]
                held.fetch_small(unopened, self._fields)
            tasks = [partial(owner.open, number) for owner, number in pending]
            _run_all(tasks, waiting=self._waits is True)
        return look(rows)

    def _announce_places(self, rows: NDArray[np.int64]) -> None:
        positions, offsets = split_places(np.sort(rows))
        cuts = [0, *(np.flatnonzero(np.diff(positions)) + 1).tolist(), len(rows)]
        many = [self._fragments[int(positions[low])] for low, high in pairwise(cuts) if high - low >= _ANNOUNCED_ROWS]
        open_for_announcing(many, self._fields)
        for low, high in pairwise(cuts):
            fragment = self._fragments[int(positions[low])]
            mine = offsets[low:high]
            if high - low >= _ANNOUNCED_ROWS and mine[-1] < fragment.physical_rows:
                announce(fragment, self._fields, mine)

    def _batch(self, taken: TakenRows, projection: Projection, others: TakeColumns) -> pa.RecordBatch:
        schema, length = projection.schema, taken.num_rows
        if taken.waits and not _load(taken):
            return others(projection)
        if length * len(self._shapes) < _PARALLEL:
            taken.decode_all()
        else:
            widths = [4.0 if shape is None or shape.width < 0 else 1.0 + shape.width / 64 for shape in self._shapes]
            map_parallel(taken.decode, range(len(widths)), parallel=True, costs=widths)
        missing = taken.missing
        if not missing and length < _MANY_ROWS:
            return pa.RecordBatch._import_from_c(taken.batch(), schema)
        if len(missing) == len(self._shapes):
            return others(projection)
        rest = others(self._part(tuple(missing))) if missing else None
        arrays, number = [], 0
        for column, field in enumerate(schema):
            if rest is not None and number < len(missing) and missing[number] == column:
                arrays.append(rest.column(number))
                number += 1
            else:
                arrays.append(pa.Array._import_from_c(taken.column(column), field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _part(self, columns: tuple[int, ...]) -> Projection:
        """Return the projection of some of the columns."""
        known = self._parts.get(columns)
        if known is None:
            outputs = tuple(self._outputs[column] for column in columns)
            known = Projection(outputs, pa.schema([output.arrow for output in outputs]))
            self._parts[columns] = known
        return known


def _load(taken: TakenRows) -> bool:
    """Load what rows need from files on other machines; return False if that failed."""
    try:
        while requests := taken.requests():
            _run_all([partial(blocks.load, ranges) for blocks, ranges in requests], waiting=True)
    except (LanceError, CodecError, OSError):  # the general code reports it with the place
        return False
    return True


def _run_all(tasks: Sequence[Callable[[], object]], *, waiting: bool) -> None:
    if waiting and len(tasks) > 1:
        read_each(_call, tasks)
        return
    for task in tasks:
        task()


def _call(task: Callable[[], object]) -> None:
    task()


def _shape(output: OutputColumn) -> TakeShape | None:
    if output.system in ("_rowaddr", "_rowid"):
        return _ADDRESS_SHAPE
    field = output.field
    if field is None or output.path or output.arrow.type != field.storage_type:
        return None
    return take_shape(field.storage_type)


def _open_fragment(
    fragments: Sequence[FragmentReader],
    outputs: Sequence[OutputColumn],
    shapes: Sequence[TakeShape | None],
    position: int,
) -> FragmentTaker:
    fragment = fragments[position]
    columns = [_column(fragment, output, shape) for output, shape in zip(outputs, shapes, strict=True)]
    deleted = None if fragment.fragment.deletion_file is None else fragment.deletions.data
    return FragmentTaker(columns, fragment.physical_rows, fragment.fragment.id, deleted)


def _column(fragment: FragmentReader, output: OutputColumn, shape: TakeShape | None) -> ColumnTaker | str | None:
    if shape is None:
        return None
    if output.field is not None:
        return fragment.column(output.field).taker()
    return ADDRESSES if output.system == "_rowaddr" or fragment.fragment.row_ids is None else None


def take_fields(
    parts: Sequence[tuple[FragmentReader, NDArray[np.int64]]], fields: Sequence[Field]
) -> list[pa.Array | None]:
    """Take the values of stored columns from several fragments in one compiled call.

    Parameters
    ----------
    parts
        Fragments and physical rows of each, with at least one row in total.
    fields
        Fields of the columns.

    Returns
    -------
    list of pyarrow.Array or None
        The values of each column in the order of the parts. None if compiled code does not support them, because of
        their type, because of the encoding of a page, or because of damage, which the general code reports in detail.
    """
    shapes = [take_shape(field.storage_type) for field in fields]
    if not any(shapes):
        return [None] * len(fields)

    def column(fragment: FragmentReader, field: Field, shape: TakeShape | None) -> ColumnTaker | None:
        return None if shape is None else fragment.column(field).taker()

    def opened(position: int) -> FragmentTaker:
        fragment = parts[position][0]
        columns = [column(fragment, field, shape) for field, shape in zip(fields, shapes, strict=True)]
        return FragmentTaker(columns, fragment.physical_rows, fragment.fragment.id)

    starts = np.cumsum([0, *(fragment.physical_rows for fragment, _ in parts)], dtype=np.int64)
    places = np.concatenate([places_of(number, rows) for number, (_, rows) in enumerate(parts)])
    try:
        taken = RowTaker([shape or _NO_SHAPE for shape in shapes], starts.data, opened).places(places)
        if taken.waits and not _load(taken):
            return [None] * len(fields)
        for number, shape in enumerate(shapes):
            if shape is not None:
                taken.decode(number)
        missing = {*taken.missing, *(number for number, shape in enumerate(shapes) if shape is None)}
    except (CodecError, CorruptFileError, UnsupportedError):
        return [None] * len(fields)
    return [
        None if number in missing else pa.Array._import_from_c(taken.column(number), field.storage_type)
        for number, field in enumerate(fields)
    ]


def known_taker(
    known: dict[tuple[int, ...], ProjectionTaker],
    projection: Projection,
    fragments: Callable[[], Sequence[FragmentReader]],
    starts: Callable[[], NDArray[np.int64]],
    *,
    mixed: bool = False,
) -> ProjectionTaker:
    """Return the cached taker of a projection, or make it.

    Parameters
    ----------
    known
        Cache of takers by the identities of the columns, which the takers keep alive.
    projection
        Projection of the columns to take.
    fragments, starts, mixed
        See `ProjectionTaker`.
    """
    key = tuple(map(id, projection.columns))
    found = known.get(key)
    if found is None:
        if len(known) >= _REMEMBERED:
            known.clear()
        found = known[key] = ProjectionTaker(fragments(), starts(), projection.columns, mixed=mixed)
    return found
